"""All tuned numbers that change predictions, in one place, each with its evidence.

Alternatives to any of them are compared by ``python -m benchmarks.suite --variant 'NAME={"tuning": {...}}'`` on development
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
    """Standardized features are clipped here, in standard deviations, so one outlier cannot dominate."""
    sparse_density: float = 0.25
    """Share of nonzero entries up to which rows are scaled to unit length, as for bags of words. Not compared."""
    prior_variance_binary: float = 2.25
    """σ² for two classes."""
    prior_variance_multiclass: float = 10.0
    """σ² for more classes, where each function has few positive labels."""
    median_sample: int = 1000
    """Rows that give the median distance; their sampling error is below 1 %. Not compared."""

    # Consensus weight and view weights (auto/consensus_weight.py).
    consensus_weight: float = 0.5
    """λ where the views agree."""
    full_agreement: float = 0.25
    """Mean correlation of the views' scores above which λ is not reduced."""

    # Graphs of nearest rows (members/kernel_members.py).
    n_neighbors: int = 5
    """Neighbors of a row in the graphs; best of 5 to 12 on the digit tasks."""
    graph_regularization: float = 0.05
    """ε of the graph kernel."""

    # Members (members/). Evidence: the suite's development splits, sensors and other sets apart (docs/accuracy.md).
    wide_clip: float = 5.0
    """As ``clip``, for wide views, discriminant analysis, graphs and trees."""
    kernel_ridge: float = 0.3
    """Ridge of the views' kernels."""
    graph_ridge: float = 0.1
    """Ridge of the graph kernels."""
    ridge_scale: float = 10.0
    """Turns scores of ridge regressions into logits before any label is held out."""
    n_trees: int = 100
    """Trees of each forest, over all folds."""
    max_split_columns: int = 600
    """Columns that a split of ``trees_all`` tries at most, to bound the time. Not compared."""
    vote_smoothing: float = 0.05
    """Equal votes added to those of the trees; .02, .05 and .2 differ by .04 points."""
    share_shrinkage: float = 2.0
    """How far few labels pull class shares towards equal ones; 2 and 5 differ by .02 points."""
    share_offset: float = 3.0
    """τ/K for many rows; 1, 3 and 10 differ by .1 points."""
    confidence_labels: float = 20.0
    """Labels that the mean probability counts as in the estimate of the accuracy."""
    interval_labels: tuple[float, float] = (0.3, 4.0)
    """a and b: u held-out labels count as a u + b rows in the interval."""
    max_compared_nodes: int = 2000
    """Unlabeled nodes of a graph that rows in chunks are compared with."""
    max_member_labels: int = 1000
    """Labels that members learn from; the cost grows with their cube. Not compared."""

    # Rows to label next (suggestions.py). Evidence: development splits, docs/labeling.md.
    suggestion_parts: int = 50
    """Number of labels beyond which a suggestion stands for the same part of the rows."""
    suggestion_rows: int = 2000
    """Rows among which suggestions are chosen, drawn at random. Not compared."""

    # Held-out labels.
    short_stages: int = 2
    """Stages of a fit without a fold's labels; more change less than the error."""
    cross_sweeps: int = 3
    """Sweeps per stage of such a fit."""
    n_folds: int = 5
    """Folds of the labels. Not compared."""
    label_smoothing: float = 0.25
    """Labels by which targets are smoothed, because hits never prove certainty. Not compared."""

    # What is kept of the training rows to compare new rows with them (monitoring/). Evidence: benchmarks.sensor_health.
    reference_rows: int = 500
    """Rows kept for ``sensor_health``, in each of three parts."""
    reference_directions: int = 16
    """Principal directions of each view in ``novelty`` and ``sensor_health``."""

    # Many rows.
    max_exact_rows: int = 1000
    """Unlabeled rows beyond which landmarks are faster and as accurate (benchmarks.threshold)."""
    compact_rows: int = 300
    """Training rows of each view in a compact model file (benchmarks.model_files)."""
    min_components: int = 640
    """Landmarks where these miss little of a kernel; 1000 gain .04 points on five sets of 9,100 to 16,000 rows."""
    max_components: int = 1000
    """Landmarks where fewer miss much; for rows in memory up to twice as many."""
    sample_rows: int = 5000
    """Unlabeled rows that are annealed in memory."""
    max_row_weight: float = 3.0
    """Rows that a row of the sample stands for; of 1, 3, 10 and no limit, 3 needed fewest sweeps."""
    row_growth: int = 4
    """Growth of the samples of very many rows (benchmarks.rows)."""
    held_out_rows: int = 5000
    """Rows outside all samples that compare their models; they show a loss of 0.2 %."""


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
