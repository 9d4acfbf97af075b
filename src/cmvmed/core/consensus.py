"""Step 2(a), the consensus q(y|x) over the unlabeled rows: pooled scores, temperature, class balance.

A two-class problem has one function per view (F = 1, the score of the second class); K > 2 classes have one function
each (F = K). The consensus is the same formula for both, equation (E) of the theory page:

    q(y|x) = softmax( class_scores(m̄(x) + o) / 2T ),   class_scores(m) = (-m, m) if F = 1 else m,

where m̄ is the weighted mean of the views' posterior means, T the temperature and o an offset that sets the share of
each class. For two classes this is q(second class) = σ((m̄ + o)/T).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import entr, expit, logit

from cmvmed.core.posterior import ViewState
from cmvmed.core.problem import Problem
from cmvmed.numerics.linalg import OVERFLOW_ADVICE
from cmvmed.numerics.softmax import log_softmax, softmax
from cmvmed.numerics.types import Array, IntArray

BALANCE_TOLERANCE = 1e-10  # largest difference between a class's share and its prior
MAX_BALANCE_STEPS = 200
SMOOTH_RANGE = 20.0  # a range of scores, in units of 2T, over which the balance is a smooth problem
ROUNDING = float(np.finfo(float).eps)
SMALLEST = float(np.finfo(float).tiny)
MAX_OFFSET_STEPS = 1000  # halvings of the widest bracket, and some room
VARIATION_TOLERANCE = 1e-9  # correlations, and deviations relative to the largest score, below this are rounding
HARD_RANGE = 1e-9  # of the range of scores; at lower temperatures the consensus is a hard assignment anyway
COOLING = 4.0  # between the temperatures of a balance that is not


@dataclass(frozen=True)
class Consensus:
    """q over the unlabeled rows, the pooled scores it comes from, and the offset between the two."""

    q: Array  # (n_U, K)
    scores: Array  # (n_U, F)
    coverage: Array  # (n_U,) weight of the views a row has
    offset: Array  # (F,)
    shares: Array | None  # (K,) class shares that the offset was chosen to meet; None: it is zero, as in the paper

    @cached_property
    def entropy(self) -> Array:
        """H(q) of each row, (n_U,)."""
        return entropy(self.q)


def update_consensus(
    problem: Problem,
    states: Sequence[ViewState],
    view_weights: Array,
    shares: Array | None,
    temperature: float,
    last: Consensus | None,
) -> Consensus:
    """Step 2(a): the exact minimizer of the objective in q, with these class shares (K,) if they are not None."""
    n_rows = problem.weights_U.size
    scores, coverage = pool([state.m_U for state in states], problem.rows_U, view_weights, n_rows)
    if not np.isfinite(scores).all():
        raise ValueError(f"Scores of unlabeled rows are not finite: {OVERFLOW_ADVICE}")
    mass = problem.weights_U * coverage
    offset = np.zeros(scores.shape[1]) if last is None else last.offset
    imposed = shares if mass.sum() > 0.0 else None
    if imposed is not None:
        offset = balancing_offset(scores, mass, imposed, temperature, offset)
    q = soft_labels(scores, offset, temperature)
    if shares is not None:
        q[coverage == 0.0] = shares
    return Consensus(q, scores, coverage, offset, imposed)


def n_functions(n_classes: int) -> int:
    """F: one function for two classes, K functions for K > 2."""
    return 1 if n_classes == 2 else n_classes


def class_scores(scores: Array) -> Array:
    """Scores of all K classes (n, K) from those of the F functions (n, F)."""
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def positive_probability(q: Array) -> Array:
    """The probability of each function's positive class, (n, F), from that of each class, (n, K)."""
    return q[:, 1:] if q.shape[1] == 2 else q


def pool(means: Sequence[Array], rows: Sequence[IntArray], weights: Array, n_rows: int) -> tuple[Array, Array]:
    """Weighted mean of the present views' scores, m̄ of equation (E).

    Parameters
    ----------
    means : per view (n_i, F), scores of the rows the view has
    rows : per view (n_i,), which rows those are
    weights : (V,), π
    n_rows : number of rows of the result

    Returns
    -------
    scores : (n_rows, F), Σ π_i m_i / Σ π_i over the present views; zero where no view is present
    coverage : (n_rows,), ψ = Σ π_i over the present views
    """
    total = np.zeros((n_rows, means[0].shape[1]), order="F")
    coverage = np.zeros(n_rows)
    for mean, index, weight in zip(means, rows, weights, strict=True):
        own = slice(None) if index.size == n_rows else index  # rows ascend
        total[own] += weight * mean
        coverage[own] += weight
    return total / np.where(coverage > 0.0, coverage, 1.0)[:, None], coverage


def soft_labels(scores: Array, offset: Array, temperature: float) -> Array:
    """q(y|x), (n, K), from pooled scores (n, F) and offset (F,): equation (E), steps 2(a) and 3."""
    if scores.shape[1] == 1:  # the same as the softmax, but exact complements
        p = expit((scores + offset) / temperature)
        return np.hstack([expit(-(scores + offset) / temperature), p])
    return softmax((scores + offset) / (2.0 * temperature))


def prior_scores(prior: Array, temperature: float) -> Array:
    """The scores (F,) whose soft labels are the class prior (K,)."""
    if prior.size == 2:
        return np.array([temperature * float(logit(prior[1]))])
    return np.asarray(2.0 * temperature * np.log(prior))


def entropy(q: Array) -> Array:
    """H(q) of each row, (n,)."""
    return np.asarray(entr(q) @ np.ones(q.shape[1]))


def divergence(q: Array, entropy: Array, m: Array, offset: Array, temperature: float) -> Array:
    """KL(q ‖ p) of each row, (n,), from the distribution p that a view's own means m (n, F) give by (E).

    ``entropy`` (n,) is that of q.

    q is the normalized geometric mean Π p_i^{π_i} of the views' distributions, which minimizes Σ π_i KL(q ‖ p_i).
    """
    log_p = log_softmax(class_scores(m + offset) / (2.0 * temperature))
    return np.asarray(np.maximum(-entropy - (q * log_p) @ np.ones(q.shape[1]), 0.0))


def class_shares(q: Array, mass: Array) -> Array:
    """Mean of q (n, K) over rows with weights ``mass`` (n,): the share of each class, (K,)."""
    return np.asarray(mass @ q / mass.sum())


def balancing_offset(scores: Array, mass: Array, prior: Array, temperature: float, start: Array) -> Array:
    """The offset (F,) at which the classes' shares of q equal ``prior`` (K,).

    This is the exact minimizer of the objective in q under the linear constraint Σ_m mass_m q_m / Σ mass = prior, an
    information projection, so the descent of the objective is kept.
    """
    if scores.shape[1] == 1:
        return _two_class_offset(scores[:, 0], mass, float(prior[1]), temperature, float(start[0]))
    return _many_class_offset(scores, mass / mass.sum(), prior, temperature, start)


def _two_class_offset(scores: Array, mass: Array, prior: float, temperature: float, start: float) -> Array:
    """The root of a strictly increasing function, bracketed by the largest and smallest score.

    Newton steps from ``start``; the bracket is halved instead where one leaves it, or is not half as long as the step
    before. The logarithm of the function's slope changes by at most δ/T over a distance δ, so a Newton step of δ ends
    within δ²/T of the root.
    """
    center, share = temperature * float(logit(prior)), mass / mass.sum()
    low, high = center - float(scores.max()), center - float(scores.min())
    offset, step = min(max(start, low), high), high - low
    for _ in range(MAX_OFFSET_STEPS):
        q = expit((scores + offset) / temperature)
        excess = float(share @ q) - prior
        low, high = (low, offset) if excess > 0.0 else (offset, high)
        slope = float(share @ (q * (1.0 - q))) / temperature
        last, step = step, -excess / slope if slope > 0.0 else np.inf
        close = max(ROUNDING**0.5 * temperature, ROUNDING * abs(offset))
        if not (low <= offset + step <= high and abs(step) <= 0.5 * abs(last)):
            step, close = 0.5 * (low + high) - offset, ROUNDING * max(abs(offset), temperature)
        offset += step
        if abs(step) <= close:
            break
    return np.array([offset])


def _many_class_offset(scores: Array, share: Array, prior: Array, temperature: float, start: Array) -> Array:
    """Minimize the convex φ(o) = 2T Σ share·logsumexp((m + o)/2T) - prior·o; its gradient is the imbalance of the shares.

    Where the scores dwarf the temperature, φ is all but piecewise linear; it is then minimized at higher temperatures
    first, each solution the start of the next.
    """
    spread = float(np.ptp(scores))
    scale = max(2.0 * temperature, HARD_RANGE * spread)
    smooth = spread / SMOOTH_RANGE
    levels = max(0, int(np.ceil(np.log(max(smooth, scale) / scale) / np.log(COOLING))))
    offset = np.asarray(start, dtype=np.float64) if levels == 0 else np.zeros_like(start)
    for level in range(levels, -1, -1):
        offset = _newton_balance(scores, share, prior, scale * COOLING**level, offset)
    return offset


def _newton_balance(scores: Array, share: Array, prior: Array, scale: float, offset: Array) -> Array:
    """Newton steps on φ at one temperature, each shortened until φ's slope along it has not turned steeply upwards.

    Before them, each class is scaled by what its share lacks: where one class has almost all of it, φ is all but linear.
    """

    def imbalance(o: Array) -> tuple[Array, Array]:
        q = softmax((scores + o) / scale)
        return share @ q - prior, q

    found = np.maximum(share @ softmax((scores + offset) / scale), SMALLEST)
    offset = offset + scale * (np.log(prior) - np.log(found))
    gradient, q = imbalance(offset)
    for _ in range(MAX_BALANCE_STEPS):
        if np.abs(gradient).max() <= BALANCE_TOLERANCE:
            break
        hessian = np.diag(gradient + prior) - (share[:, None] * q).T @ q
        hessian[np.diag_indices_from(hessian)] += 1e-12  # hard shares make it vanish
        direction = -scale * np.linalg.solve(hessian, gradient)
        direction -= direction.mean()
        slope, length = float(gradient @ direction), 1.0
        while length > 1e-12:
            candidate = offset + length * direction
            gradient, q = imbalance(candidate)
            if float(gradient @ direction) <= -0.5 * slope:
                break
            length *= 0.5
        offset = candidate
    return np.asarray(offset - offset.mean())


def agreement(means: Sequence[Array], rows: Sequence[IntArray], mass: Array) -> Array:
    """How well the views' scores agree: R (V, V) with R_ij the positive part of the correlation of m_i and m_j.

    Correlations are taken over the rows that both views have, weighted by ``mass`` (n,), and averaged over functions;
    R_ii = 1. Where there is none (no row in common, or a view without labels, whose scores are constant) it is the mean
    of the others.
    """
    n_views = len(means)
    filled = np.full((n_views, mass.size, means[0].shape[1]), np.nan)
    for view in range(n_views):
        filled[view, rows[view]] = means[view]
    R = np.eye(n_views)
    for i in range(n_views):
        for j in range(i):
            R[i, j] = R[j, i] = mean_correlation(filled[i], filled[j], mass)
    known = ~np.isnan(R) & ~np.eye(n_views, dtype=bool)
    return np.where(np.isnan(R), R[known].mean() if known.any() else 1.0, R)


def mean_correlation(first: Array, second: Array, mass: Array, *, constant: float | None = None) -> float:
    """Mean over columns of the positive part of the weighted correlation, over the rows where both are known; NaN if none.

    A column that does not vary counts as ``constant``, or is left out if that is None.
    """
    both = ~(np.isnan(first[:, 0]) | np.isnan(second[:, 0]))
    if both.sum() < 2:
        return float("nan")
    w = mass[both] / mass[both].sum()
    x, y = first[both] - w @ first[both], second[both] - w @ second[both]
    sd_x, sd_y = np.sqrt(w @ (x * x)), np.sqrt(w @ (y * y))
    size = sd_x * sd_y
    varies = (sd_x > VARIATION_TOLERANCE * np.abs(first[both]).max()) & (
        sd_y > VARIATION_TOLERANCE * np.abs(second[both]).max()
    )
    correlation = np.full(size.size, np.nan if constant is None else constant)
    found = (w @ (x * y))[varies] / size[varies]
    correlation[varies] = np.where(found > VARIATION_TOLERANCE, found, 0.0)
    known = correlation[~np.isnan(correlation)]
    return float(known.mean()) if known.size else float("nan")


@dataclass(frozen=True)
class Disagreement:
    """What the classes that two views give to the same rows say of the first view's error."""

    rate: float  # share of the rows to which they give unequal classes; NaN without rows
    rate_by_class: Array  # (K,) the same among the rows to which the second view gives class c; NaN without such rows
    error_bound: float  # on the share of rows that the first view gives a wrong class


def disagreement(first: IntArray, second: IntArray, mass: Array, class_prior: Array) -> Disagreement:
    """Compare two views on rows with weights ``mass`` (n,), given the class codes (n,) by each.

    S. Dasgupta, M. L. Littman and D. McAllester, "PAC generalization bounds for co-training", NIPS 2001 (published 2002).

    With d_c the rate in class c, the first view's error among the rows of class c is at most d_c/(1 - 2d_c) if

    * the views are independent given the class,
    * the first view gives to the rows of each class that class more often than any other,
    * the rates are those of the population.

    Where d_c is 1/3 or more, or unknown, nothing follows and the bound is 1. The mean over classes has the weights
    ``class_prior`` (K,).
    """
    unequal = first != second
    n_classes = class_prior.size
    totals = np.bincount(second, weights=mass, minlength=n_classes)
    wrong = np.bincount(second, weights=mass * unequal, minlength=n_classes)
    d = np.divide(wrong, totals, out=np.full(n_classes, np.nan), where=totals > 0.0)
    informative = d < 1.0 / 3.0
    bound = np.ones(n_classes)
    bound[informative] = d[informative] / (1.0 - 2.0 * d[informative])
    rate = float(wrong.sum() / totals.sum()) if totals.sum() > 0.0 else float("nan")
    return Disagreement(rate, d, float(class_prior @ bound))
