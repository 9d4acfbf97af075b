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

    # Consensus weight and view weights (agreement.py).
    consensus_weight: float = 0.5
    """λ where the views agree."""
    full_agreement: float = 0.25
    """Mean correlation of the independent views' scores from which on λ is taken in full."""
    min_agreement: float = 1e-3
    """Lower bound of a correlation between views, which makes the leading eigenvector unique. Not compared."""

    # Short fits, which evaluate a class share.
    short_stages: int = 2
    """Stages of a short fit: its class shares differ from those of a whole fit by less than their standard error."""
    short_sweeps: int = 6
    """Sweeps per stage of a short fit; as above."""

    # Safeguard (safeguard.py).
    min_start_correlation: float = 0.45
    """Correlation with the independent views' scores below which a fit is repeated with less consensus."""
    safeguard_factor: float = 0.1
    """What the repeated fit multiplies λ with."""

    # Graphs of nearest rows (members/candidates.py, auto/neighbors.py).
    n_neighbors: int = 5
    """Nearest rows that a row is joined with in the graphs: of 5 to 12, five for all digit tasks (docs/accuracy.md)."""
    graph_regularization: float = 0.05
    """ε of the graph kernel (Λ + εI)⁻²."""
    neighbor_consensus_weight: float = 0.02
    """λ beside neighbors of full weight, which already combine all views."""

    # Opinions learned from the labels (members/). Evidence: the suite's development splits (docs/accuracy.md).
    wide_clip: float = 5.0
    """Standard deviations at which features are clipped for the joint linear kernel, the distances of the graphs and wide views."""
    linear_ridge: float = 0.01
    """Ridge of the joint linear kernel, whose mean diagonal is one: a linear function of few labels needs little."""
    kernel_ridge: float = 0.3
    """Ridge of the other kernels."""
    graph_ridge: float = 0.1
    """Ridge of the graph kernels."""
    opinion_scale: float = 10.0
    """Center of the scale from scores to logits: scores of left-out labels differ by some tenths between the classes."""
    opinion_scale_sd: float = 1.0
    """Standard deviation of its logarithm in the prior."""
    opinion_offset_sd: float = 1.0
    """Standard deviation of the offsets of the logits in the prior."""
    opinion_strength: float = 0.5
    """Labels for each opinion that the prior of the weights counts as."""
    max_compared_nodes: int = 2000
    """Nodes of the graphs that a row is compared with if rows are predicted in chunks, beside labeled ones (docs/accuracy.md)."""
    max_opinion_labels: int = 1000
    """Labeled rows that opinions learn from at most: their cost grows with the cube of it. Not compared."""
    share_row_weight: float = 0.05
    """How much an unlabeled row says of the class shares, compared with a label, since its class is only predicted."""
    share_prior_labels: float = 2.0
    """Labels of each class that equal class shares count as."""
    share_scale_sd: float = 0.5
    """Standard deviation of log scale and offsets that recalibrate predictions before shares are inferred from them."""
    mixture_strength: float = 2.0
    """Labels for each of pool and consensus that the prior of their weights counts as."""
    last_scale_sd: float = 0.5
    """Standard deviation of the logarithm of the mixture's scale in the prior."""
    interval_divisor: float = 2.0
    """Held-out labels that count as one in the interval of the expected accuracy."""
    interval_divisor_per_class: float = 3.0
    """The same if labels were drawn per class."""
    interval_divisor_chosen: float = 5.0
    """The same if labeled rows were chosen. Evidence: ``benchmarks.active_learning`` on development splits."""

    # Rows to label next (suggestions.py). Evidence: development splits, docs/labeling.md.
    suggestion_parts: int = 50
    """Labels from which on the part of the rows that one stands for, which is the scale of similarities, stays the same."""
    suggestion_rows: int = 2000
    """Unlabeled rows among which are chosen at most, drawn at random if there are more. Not compared."""

    # Class shares of two classes by anchors (anchors.py).
    interval_level: float = 0.95
    """Level of the interval of a class share given the labels' counts. Not compared."""
    min_anchor_rows: int = 20
    """Unlabeled rows that a view needs to take part in the estimate by anchors. Not compared."""
    min_common_rows: int = 10
    """Unlabeled rows that two views must have in common for it. Not compared."""
    anchor_fraction: tuple[float, float] = (0.3, 0.8)
    """Range of the fraction of a class's rows that serve as anchors; within it, the correlation of the two views. Not compared."""
    anchor_model_sd: float = 0.03
    """Standard deviation added for views that are not exactly independent given the class."""
    share_range: tuple[float, float] = (0.01, 0.99)
    """Range of an inferred share. Not compared."""
    max_evaluations: int = 3
    """Shares that are tried to infer one."""
    min_share_step: float = 0.02
    """Shares closer than this give no slope. Not compared."""
    max_slope: float = 0.95
    """Slope of the observed share in the imposed one from which on anchors carry no information. Not compared."""

    # Cross-fitting and calibration.
    cross_sweeps: int = 3
    """Sweeps per stage of a short fit without a fold's labels: more change held-out scores by less than their error."""
    n_folds: int = 5
    """Folds of the labeled rows. Not compared."""
    probability_scale: float = 0.5
    """Center of the prior of the probability scale."""
    log_scale_sd: float = 0.7
    """Standard deviation of the logarithm of that scale in the prior."""
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
    landmark_rounds: int = 10
    """Rounds in which landmarks are drawn. Not compared."""
    candidates_per_landmark: int = 20
    """Rows among which a landmark is drawn. Not compared."""
    double_precision_rows: int = 2000
    """Unlabeled rows up to which features are kept in double precision; single precision is right to about 1e-6."""
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
