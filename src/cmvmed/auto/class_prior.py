"""The share of each class among the unlabeled rows, from labels and from the unlabeled rows themselves.

With a handful of labels the ranking of the rows is learned well and the threshold badly, so this is worth more than any
other refinement (``docs/theory.md``, section on the class prior).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.special import gammaln, softmax
from scipy.stats import beta

from cmvmed.core.linalg import Array, IntArray

ANCHOR_MODEL_SD = 0.03  # views are never exactly independent given the class: an error no variance shows
GUARD_LEVEL = 0.95
SHARE_RANGE = (0.01, 0.99)
MOST_QUESTIONS = 3  # shares that are tried to infer one
ANCHOR_STEP = 0.02  # shares closer than this tell no slope
STEEPEST = 0.95  # slope of the anchors' answers from which on they tell next to nothing
TIED_SCORES = 1e-6  # of their range; closer ones are those of equal rows, which rounding must not order


@dataclass(frozen=True)
class ClassBalance:
    """How the consensus is tied to a class prior.

    ``prior`` (K,) is imposed on the classes' shares in the first ``constrained_stages`` stages; afterwards the offset
    found last is kept, as long as every share stays between ``lower`` and ``upper`` (numbers or (K,)).
    """

    prior: Array
    constrained_stages: int | None = None  # None: in all stages
    lower: Array | float = 0.0
    upper: Array | float = 1.0


def label_share(counts: Array) -> Array:
    """(n_c + ½)/(N + K/2): the labeled rows' share of each class, (K,), never zero."""
    return np.asarray((counts + 0.5) / (counts.sum() + 0.5 * counts.size))


def empirical_bayes_share(counts: Array) -> Array:
    """Label shares shrunk towards equal classes, (K,), as strongly as the counts themselves suggest.

    An average over symmetric Dirichlet priors of concentration κ, weighted by the probability they give the counts:
    r_c = Σ_κ w_κ (n_c + κ)/(N + Kκ), w_κ ∝ DirichletMultinomial(n | κ1).
    """
    kappa = np.logspace(-0.5, 3.0, 40)
    total, n_classes = counts.sum(), counts.size
    log_evidence = (
        gammaln(n_classes * kappa)
        - gammaln(total + n_classes * kappa)
        + (gammaln(counts[:, None] + kappa) - gammaln(kappa)).sum(axis=0)
    )
    shares = (counts[:, None] + kappa) / (total + n_classes * kappa)
    return np.asarray(shares @ softmax(log_evidence))


def label_interval(counts: Array, level: float = GUARD_LEVEL) -> tuple[Array, Array]:
    """Central interval of each class's share given the labeled counts (Jeffreys prior), two arrays (K,)."""
    rest = counts.sum() - counts
    tail = 0.5 * (1.0 - level)
    return np.asarray(beta.ppf(tail, counts + 0.5, rest + 0.5)), np.asarray(beta.isf(tail, counts + 0.5, rest + 0.5))


def relaxed_balance(counts: Array, n_stages: int) -> ClassBalance:
    """Impose the empirical-Bayes share in the first half of the stages, then only keep inside the labels' interval."""
    lower, upper = label_interval(counts)
    return ClassBalance(empirical_bayes_share(counts), max(1, n_stages // 2), lower, upper)


@dataclass(frozen=True)
class ShareEstimate:
    """Mean and variance of what is known of the share of the second of two classes."""

    mean: float
    variance: float


def counted_share(counts: Array) -> ShareEstimate:
    """Given the labeled rows' counts (2,) alone (Jeffreys prior)."""
    posterior = beta(counts[1] + 0.5, counts[0] + 0.5)
    return ShareEstimate(float(posterior.mean()), float(posterior.var()))


@dataclass(frozen=True)
class AnchorEstimate:
    """What the anchors of a fit under some share say about the share of the second of two classes."""

    share: float
    variance: float


def read_anchors(scores: Sequence[Array], rows: Sequence[IntArray], mass: Array, share: float) -> AnchorEstimate | None:
    """The share that cross-view anchors of a fit under ``share`` tell; None if no two views have enough rows in common.

    Parameters
    ----------
    scores : per view (n_i,), cavity scores of the unlabeled rows the view has
    rows : per view (n_i,), which rows those are
    mass : (n_unlabeled,), how often each row counts
    share : the share that was imposed on the fit; it sets how many rows serve as anchors
    """
    estimates = [
        _anchor_of_pair(scores[a], rows[a], scores[b], rows[b], mass, share)
        for a, b in permutations(range(len(scores)), 2)
    ]
    known = np.array([estimate for estimate in estimates if estimate is not None])
    if len(known) == 0:
        return None
    return AnchorEstimate(float(known[:, 0].mean()), float(known[:, 1].mean() + known[:, 0].var() + ANCHOR_MODEL_SD**2))


def inferred_share(counts: Array, labels: ShareEstimate, ask: Callable[[float], AnchorEstimate | None]) -> float:
    """Share of the second of two classes, from labels and from the share that anchors confirm.

    AnchorEstimate answer a(r) to a share r imposed on the fit. Where views tell the classes apart, a hardly depends on r, and the
    truth is near the fixed point a(r) = r; where they do not, a(r) follows r and tells nothing. With the slope b of a there, the
    fixed point (a - br)/(1 - b) has the variance of a, divided by (1 - b)². The search starts from the plausible share nearest
    to equal classes, since a class that was given too few rows is not found at all, and follows the answers; a share that is
    confirmed at once is compared with the answer to the labels' share, to learn the slope.

    Parameters
    ----------
    counts : (2,), labeled rows of each class
    labels : what these rows tell of the share
    ask : anneals under a share and returns what its anchors say, or None
    """
    lower, upper = label_interval(counts)
    share = float(np.clip(0.5, lower[1], upper[1]))
    told = ask(share)
    if told is None or (share - 0.5) * (told.share - share) < 0.0:  # nothing is told, or on towards equal classes
        return labels.mean
    slope = None
    for _ in range(MOST_QUESTIONS - 1):
        following = float(np.clip(_fixed_point(share, told.share, slope or 0.0), *SHARE_RANGE))
        if slope is None and abs(following - share) < ANCHOR_STEP:
            following = labels.mean
        if abs(following - share) < ANCHOR_STEP:
            break
        answer = ask(following)
        if answer is None:
            return labels.mean
        slope = max(0.0, (answer.share - told.share) / (following - share))
        if slope > STEEPEST:
            return labels.mean
        share, told = following, answer
    if slope is None:
        return labels.mean
    precision = (1.0 - slope) ** 2 / told.variance
    told_mean = float(np.clip(_fixed_point(share, told.share, slope), *SHARE_RANGE))
    return (labels.mean / labels.variance + told_mean * precision) / (1.0 / labels.variance + precision)


def _fixed_point(share: float, answer: float, slope: float) -> float:
    """Where a line through (share, answer) meets the diagonal."""
    return (answer - slope * share) / (1.0 - slope)


def _anchor_of_pair(
    seen: Array, seen_rows: IntArray, judge: Array, judge_rows: IntArray, mass: Array, share: float
) -> tuple[float, float] | None:
    """Anchor estimate of the share and its variance; None if the two views have too few rows in common."""
    common, in_seen, in_judge = np.intersect1d(seen_rows, judge_rows, return_indices=True)
    if common.size < 10:
        return None
    x, z, w = seen[in_seen], judge[in_judge], mass[common]
    agreement = float(np.corrcoef(x, z)[0, 1]) if x.std() > 0.0 and z.std() > 0.0 else 0.0
    return _anchor_share(x, z, w, share, float(np.clip(agreement, 0.3, 0.8)))


def without_rounding(z: Array) -> Array:
    """The scores, where those of equal rows are equal: rounding must not choose among them."""
    order = np.argsort(z, kind="stable")
    ascending = z[order]
    differs = np.diff(ascending, prepend=-np.inf) > TIED_SCORES * np.ptp(z)
    tied = np.empty_like(z)
    tied[order] = ascending[differs][np.cumsum(differs) - 1]
    return tied


def _anchor_share(x: Array, z: Array, w: Array, share: float, fraction: float) -> tuple[float, float]:
    """Moment match r = (x̄ - x̄_N)/(x̄_P - x̄_N) on view scores x, with anchors P and N chosen by the other view's z; its variance.

    The variance is that of a mean of the rows' influences on r, where a row of weight w counts as w rows.
    """
    order = np.argsort(without_rounding(z), kind="stable")
    x, w = x[order], w[order]
    reached = np.cumsum(w) - 0.5 * w
    low = w * (reached <= fraction * (1.0 - share) * w.sum())
    high = w * (reached >= (1.0 - fraction * share) * w.sum())
    if low.sum() == 0.0 or high.sum() == 0.0:
        return share, 0.25
    mean, x_low, x_high = w @ x / w.sum(), low @ x / low.sum(), high @ x / high.sum()
    if not x_high > x_low:
        return share, 0.25
    r = float(np.clip((mean - x_low) / (x_high - x_low), *SHARE_RANGE))
    influence = (
        w * (x - mean) / w.sum() - (1.0 - r) * low * (x - x_low) / low.sum() - r * high * (x - x_high) / high.sum()
    ) / (x_high - x_low)
    return r, float((influence[w > 0.0] ** 2 / w[w > 0.0]).sum())
