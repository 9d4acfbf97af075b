"""All tuned numbers that change predictions, in one place, each with its evidence.

Alternatives to any of them are compared by ``python -m benchmarks.settings --tuning '{"NAME": VALUE}'`` on development
splits that no reported table uses. "Development splits" below are those runs; docs/accuracy.md has the figures. A
number without figures is marked "not compared": it was chosen by the reason given.

Numerical tolerances, which change nothing beyond rounding, are constants beside the code that uses them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Tuned numbers; the defaults are those of the library."""

    # Views. Evidence: development splits of the nine tasks, except where noted.
    clip: float = 2.0
    """Standard deviations at which standardized features are clipped: bounds the influence of one outlying value."""
    sparse_density: float = 0.25
    """Fraction of nonzero entries up to which rows are scaled to unit length. Not compared: bags of words are far sparser."""
    prior_variance_binary: float = 2.25
    """σ² for two classes."""
    prior_variance_multiclass: float = 10.0
    """σ² for more classes: one-vs-rest functions have few positive labels each and need more freedom to become positive."""
    median_sample: int = 1000
    """Rows whose pairwise distances give the median bandwidth. Not compared: its sampling error is below 1 %."""

    # Consensus weight and view weights (auto/consensus_weight.py).
    consensus_weight: float = 0.5
    """λ where the views agree."""
    full_agreement: float = 0.25
    """Mean correlation of the independent views' scores from which on λ is taken in full."""

    # Graphs of nearest rows (members/kernel_members.py).
    n_neighbors: int = 5
    """Nearest rows that a row is joined with in the graphs: of 5 to 12, five for all digit tasks (docs/accuracy.md)."""
    graph_regularization: float = 0.05
    """ε of the graph kernel (Λ + εI)⁻²."""

    # Members (members/). Evidence: the suite's development splits, sensors and other sets apart (docs/accuracy.md).
    wide_clip: float = 5.0
    """Standard deviations at which features are clipped for discriminant analysis, graphs, trees and wide views."""
    kernel_ridge: float = 0.3
    """Ridge of the views' kernels, whose mean diagonal is one."""
    graph_ridge: float = 0.1
    """Ridge of the graph kernels."""
    ridge_scale: float = 10.0
    """Scale from scores of ridge regression to logits before any label was held out: scores differ by some tenths."""
    n_trees: int = 100
    """Trees of each forest, dealt to the folds."""
    max_split_columns: int = 600
    """Columns that a split of ``trees_all`` looks at, at most: bounds the time for wide views. Not compared."""
    vote_smoothing: float = 0.05
    """Equal votes beside those of the trees, so that no class has a probability of zero: .02, .05, .2 differ by .04 points."""
    share_shrinkage: float = 2.0
    """c in 1/(1 + c (K/N)²), the trust in class shares estimated with N labels of K classes: 2 and 5 differ by .02 points."""
    share_offset: float = 3.0
    """τ/K for many rows: an offset of one logit costs a third of an equal class share; 1, 3 and 10 differ by .1 points."""
    confidence_labels: float = 20.0
    """Held-out labels that the mean largest probability counts as in the expected accuracy."""
    interval_labels: tuple[float, float] = (0.3, 4.0)
    """a and b: the interval of the expected accuracy is that of a share seen in a u + b rows, u the number of held-out labels."""
    max_compared_nodes: int = 2000
    """Nodes of the graphs that a row is compared with if rows are predicted in chunks, beside labeled ones (docs/accuracy.md)."""
    max_member_labels: int = 1000
    """Labeled rows that members learn from at most: their cost grows with the cube of it. Not compared."""

    # Rows to label next (suggestions.py). Evidence: development splits, docs/labeling.md.
    suggestion_parts: int = 50
    """Labels from which on the part of the rows that one stands for, which is the scale of similarities, stays the same."""
    suggestion_rows: int = 2000
    """Unlabeled rows among which are chosen at most, drawn at random if there are more. Not compared."""

    # Held-out labels.
    short_stages: int = 2
    """Stages of a fit without a fold's labels: more change held-out scores by less than their error."""
    cross_sweeps: int = 3
    """Sweeps per stage of such a fit; as above."""
    n_folds: int = 5
    """Folds of the labeled rows. Not compared."""
    label_smoothing: float = 0.25
    """Labels, in all, by which held-out labels are smoothed: no number of hits is certainty. Not compared."""

    # What is kept of the training rows to compare new rows with them (monitoring/). Evidence: benchmarks.sensor_health.
    reference_rows: int = 500
    """Rows that are kept, at most, and as many for each of the two steps before: their sampling error is that of a batch of 500."""
    reference_directions: int = 16
    """Principal directions of each view, at most."""

    # Many rows.
    max_exact_rows: int = 1000
    """Unlabeled rows up to which kernels are exact: beyond, landmarks take less time and are as accurate (benchmarks.threshold)."""
    compact_rows: int = 300
    """Training rows of each view that a compact model file keeps (benchmarks.model_files)."""
    components_per_root: float = 9.0
    """Landmarks per square root of the number of rows (benchmarks.agreement)."""
    min_components: int = 600
    """Smallest default number of landmarks: 500 change predictions by more than half a point (benchmarks.agreement)."""
    max_components: int = 1000
    """Largest default number of landmarks (benchmarks.scale)."""
    sample_rows: int = 5000
    """Unlabeled rows that are annealed in memory if there are more (benchmarks.scale)."""
    max_row_weight: float = 3.0
    """Rows that a row of the sample stands for at most: of 1, 3, 10 and no limit, sweeps over 256,000 rows needed fewest from 3."""
    row_growth: int = 4
    """How many times larger each sample of very many rows is than the one before, at most (benchmarks.rows)."""
    held_out_rows: int = 5000
    """Rows outside of all samples by which their models are compared: they show a loss of 0.2 % of accuracy to a tenth."""


_CURRENT: ContextVar[Tuning] = ContextVar("tuning", default=Tuning())  # noqa: B039 (frozen)


def current_tuning() -> Tuning:
    """The numbers in force."""
    return _CURRENT.get()


@contextmanager
def tuning_context(tuning: Tuning) -> Iterator[None]:
    """Fit with other numbers, as benchmarks do to compare them."""
    token = _CURRENT.set(tuning)
    try:
        yield
    finally:
        _CURRENT.reset(token)
