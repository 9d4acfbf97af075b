"""The share of the second of two classes, from cross-view anchors.

The rows with the highest and lowest scores in one view are anchors: nearly pure samples of the two classes for another
view. Matching that view's mean score to its means over the anchors gives a share. A fit under an imposed share r has an
observed share φ(r). Where the views separate the classes, φ hardly depends on r, and the true share is near the fixed
point φ(r) = r; where they do not, φ(r) follows r and carries no information.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from cmvmed.auto.class_prior import ShareEstimate, label_interval
from cmvmed.auto.consensus_weight import anneal_with_safeguard
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Plan
from cmvmed.core.consensus import mean_correlation
from cmvmed.core.posterior import cavity_scores
from cmvmed.numerics.types import Array, IntArray

TIE_TOLERANCE = 1e-6  # of the range of scores; closer ones are those of equal rows, which rounding must not order
MIN_DIFFERENCE = 1e-9  # of the anchors' means, relative to the largest score; below, it is rounding
UNINFORMATIVE_VARIANCE = 0.25  # of a share that may be anything between 0 and 1


def anchor_evidence(
    plan: Plan, n_sensors: int, counts: Array, estimate: ShareEstimate, tuning: Tuning
) -> ShareEstimate | None:
    """The share by anchors, None if they carry no information.

    It takes up to ``tuning.max_evaluations`` short fits under shares that are tried.

    Parameters
    ----------
    plan : of two classes
    n_sensors : number of the plan's views that are sensors, which come first; a view made of them is no anchor view
    counts : (2,), labeled rows of each class
    estimate : the share as far as it is known without anchors
    """
    views = anchor_views(plan, n_sensors, tuning)
    if len(views) < 2 or plan.schedule.consensus_weight == 0.0:
        return None
    problem, short = plan.problem, plan.schedule.short(tuning.short_stages, tuning.short_sweeps)
    sensor_weight = float(plan.view_weights[:n_sensors].sum())

    def evaluate(share: float) -> ShareEstimate | None:
        prior = np.array([1.0 - share, share])
        trial = replace(plan, schedule=short, class_prior=prior, shares=prior)
        result = anneal_with_safeguard(trial, tuning)
        lam = result.consensus_weight
        if lam == 0.0:
            return None
        scores = [cavity_scores(problem.models[i], result.states[i], lam)[:, 0] for i in views]
        observed = anchor_estimate(scores, [problem.rows_U[i] for i in views], problem.weights_U, share, tuning)
        # views that have clusters in common, which is where neighbors get weight, are not independent given the class
        return observed and replace(observed, variance=observed.variance / sensor_weight)

    return infer_share(counts, estimate, evaluate, tuning)


def anchor_views(plan: Plan, n_sensors: int, tuning: Tuning) -> list[int]:
    """The sensors that can take part: they have weight and enough unlabeled rows."""
    mass = [float(plan.problem.weights_U[rows].sum()) for rows in plan.problem.rows_U]
    return [i for i in range(n_sensors) if mass[i] >= tuning.min_anchor_rows and plan.view_weights[i] > 0.0]


def infer_share(
    counts: Array, estimate: ShareEstimate, evaluate: Callable[[float], ShareEstimate | None], tuning: Tuning
) -> ShareEstimate | None:
    """Share of the second of two classes: the fixed point of the anchors' estimates; None if there is none.

    With the slope β of φ(r), the fixed point (φ - βr)/(1 - β) has the variance of φ, divided by (1 - β)². The search
    starts from the plausible share nearest to equal classes, since a class with too small a share is not found at all.
    If the observed share there is the imposed one, the known estimate is tried next, which gives the slope.

    Parameters
    ----------
    counts : (2,), labeled rows of each class
    estimate : the share as far as it is known without anchors
    evaluate : fits under an imposed share and returns the share by its anchors, or None
    """
    lower, upper = label_interval(counts, tuning.interval_level)
    share = float(np.clip(0.5, lower[1], upper[1]))
    observed = evaluate(share)
    if observed is None or (share - 0.5) * (observed.mean - share) < 0.0:  # no anchors, or beyond equal classes
        return None
    slope = None
    for _ in range(tuning.max_evaluations - 1):
        following = float(np.clip(_fixed_point(share, observed.mean, slope or 0.0), *tuning.share_range))
        if slope is None and abs(following - share) < tuning.min_share_step:
            following = estimate.mean
        if abs(following - share) < tuning.min_share_step:
            break
        next_observed = evaluate(following)
        if next_observed is None:
            return None
        slope = max(0.0, (next_observed.mean - observed.mean) / (following - share))
        if slope > tuning.max_slope:
            return None
        share, observed = following, next_observed
    if slope is None:
        return None
    fixed_point = float(np.clip(_fixed_point(share, observed.mean, slope), *tuning.share_range))
    return ShareEstimate(fixed_point, observed.variance / (1.0 - slope) ** 2)


def _fixed_point(share: float, observed: float, slope: float) -> float:
    """Where a line of this slope through (share, observed) meets the diagonal."""
    return (observed - slope * share) / (1.0 - slope)


def anchor_estimate(
    scores: Sequence[Array], rows: Sequence[IntArray], mass: Array, share: float, tuning: Tuning
) -> ShareEstimate | None:
    """The share by the anchors of a fit under ``share``; None if no two views have enough rows in common.

    Parameters
    ----------
    scores : per view (n_i,), cavity scores of the unlabeled rows the view has
    rows : per view (n_i,), which rows those are
    mass : (n_U,), sample weights
    share : the share that was imposed on the fit; it sets how many rows serve as anchors
    """
    estimates = [
        _pair_estimate(scores[a], rows[a], scores[b], rows[b], mass, share, tuning)
        for a, b in permutations(range(len(scores)), 2)
    ]
    known = np.array([estimate for estimate in estimates if estimate is not None])
    if len(known) == 0:
        return None
    variance = float(known[:, 1].mean() + known[:, 0].var() + tuning.anchor_model_sd**2)
    return ShareEstimate(float(known[:, 0].mean()), variance)


def _pair_estimate(
    first: Array, first_rows: IntArray, second: Array, second_rows: IntArray, mass: Array, share: float, tuning: Tuning
) -> tuple[float, float] | None:
    """Share by the first view's scores with anchors by the second's, and its variance; None if too few rows are common."""
    common, in_first, in_second = np.intersect1d(first_rows, second_rows, return_indices=True)
    x, z, w = first[in_first], second[in_second], mass[common]
    if w.sum() < tuning.min_common_rows:
        return None
    correlation = mean_correlation(x[:, None], z[:, None], w, constant=0.0)
    return _moment_match(x, z, w, share, float(np.clip(correlation, *tuning.anchor_fraction)), tuning)


def _moment_match(x: Array, z: Array, w: Array, share: float, fraction: float, tuning: Tuning) -> tuple[float, float]:
    """r = (x̄ - x̄_N)/(x̄_P - x̄_N) on scores x, with anchors P and N chosen by the other view's z; its variance.

    The variance is that of a mean of the rows' influences on r, where a row of weight w counts as w rows.
    """
    low = w * lowest_share(z, w, fraction * (1.0 - share))
    high = w * lowest_share(-z, w, fraction * share)
    if low.sum() == 0.0 or high.sum() == 0.0:
        return share, UNINFORMATIVE_VARIANCE
    mean, x_low, x_high = w @ x / w.sum(), low @ x / low.sum(), high @ x / high.sum()
    if not x_high - x_low > MIN_DIFFERENCE * np.abs(x).max():
        return share, UNINFORMATIVE_VARIANCE
    r = float(np.clip((mean - x_low) / (x_high - x_low), *tuning.share_range))
    influence = (
        w * (x - mean) / w.sum() - (1.0 - r) * low * (x - x_low) / low.sum() - r * high * (x - x_high) / high.sum()
    ) / (x_high - x_low)
    return r, float((influence[w > 0.0] ** 2 / w[w > 0.0]).sum())


def lowest_share(z: Array, w: Array, part: float) -> Array:
    """How much of each row belongs to the lowest ``part`` of the weight, in the order of z: equal rows share alike, (n,)."""
    values, group = np.unique(merge_ties(z), return_inverse=True)
    mass = np.bincount(group, weights=w, minlength=values.size)
    left = part * w.sum() - (np.cumsum(mass) - mass)
    return np.asarray(np.clip(np.divide(left, mass, out=np.zeros_like(mass), where=mass > 0.0), 0.0, 1.0)[group])


def merge_ties(z: Array) -> Array:
    """The scores, with those that differ only by rounding made equal."""
    order = np.argsort(z, kind="stable")
    ascending = z[order]
    scale = np.abs(z).max(initial=0.0) or 1.0  # differences of very large scores would overflow
    gaps = np.diff(ascending / scale, prepend=-np.inf)
    differs = gaps > TIE_TOLERANCE * np.ptp(z / scale)
    tied = np.empty_like(z)
    tied[order] = ascending[differs][np.cumsum(differs) - 1]
    return tied
