"""The share of each class among the unlabeled rows: how it is estimated, and how far predictions follow it.

Two sources that fail in different ways are combined by their geometric mean: the mean of the pooled predictions, and the labels'
share, shrunk towards equal classes. The latter says nothing if labels were chosen class by class, and is then left out. If some
labels are of random rows and the others of chosen ones, it is that of the random ones, and counts by their part of all labels. With
few labels of each class both are uncertain, and the result is near equal shares.

Predictions follow the shares by an offset b of the log-probabilities that minimizes

    mean_i log Σ_k exp(log p_ik + b_k) - r·b + ‖b‖²/2τ,

which is convex. At the minimum the mean prediction differs from the shares r by b/τ. Shares that the user gives are met exactly,
with τ = ∞; τ = 0 imposes nothing. Between them an offset has its price: rows of which the members are sure stay where they are.
If the user gives bounds and the mean prediction is not within them, it is brought to the nearest shares that are, with τ = ∞.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from cmvmed.auto.class_prior import MIN_SHARE, ShareBounds, empirical_bayes_share
from cmvmed.auto.tuning import Tuning
from cmvmed.core.consensus import balancing_offset
from cmvmed.numerics.softmax import log_softmax, softmax
from cmvmed.numerics.types import Array

MAX_STEPS = 100
TOLERANCE = 1e-10  # of the shares
MAX_HALVINGS = 40
ROUNDING = 1e-14  # of the objective
PLAUSIBLE = 0.9  # probability of the interval of a class share
MAX_ROWS = 2000  # that say how much depends on the shares


def drawn_per_class(counts: Array, labels_drawn: str) -> bool:
    """Whether the labels' counts say nothing of the class shares.

    Equal counts, up to one, are what labels chosen class by class have; a random draw of unequal classes rarely has
    them, and one of equal classes loses nothing by the assumption. Rows chosen by a rule, such as uncertain ones, have
    any counts.
    """
    if labels_drawn == "unknown":
        return bool(counts.max() - counts.min() <= 1.0)
    return labels_drawn in ("per_class", "chosen")


def estimate_shares(log_p: Array, mass: Array, counts: Array, drawn: Array, tuning: Tuning) -> Array:
    """The share of each class, (K,).

    Parameters
    ----------
    log_p : (n, K), pooled log-probabilities of the rows
    mass : (n,), weights of the unlabeled rows; zero for others
    counts : (K,), labels of each class
    drawn : (K,), those of them that were drawn at random; zero if labels were drawn class by class
    """
    if mass.sum() == 0.0:
        return empirical_bayes_share(counts)
    used = mass > 0.0
    found = np.stack([mass[used] @ softmax(log_p[used]) / mass.sum(), empirical_bayes_share(drawn)])
    of_labels = 0.5 * drawn.sum() / counts.sum()  # weight of the labels' share
    per_label = counts.size / counts.sum()  # classes for each label
    trust = 1.0 / (1.0 + tuning.share_shrinkage * per_label**2)
    return softmax(trust * np.array([1.0 - of_labels, of_labels]) @ np.log(np.maximum(found, MIN_SHARE)))


def share_offset(
    log_p: Array, mass: Array, shares: Array | None, tau: float, bounds: ShareBounds | None = None
) -> Array:
    """The offset b (K,), with the mean zero, that brings the shares of rows with weights ``mass`` towards ``shares``.

    Parameters
    ----------
    log_p : (n, K)
    mass : (n,)
    shares : (K,), r; None imposes nothing
    tau : τ
    bounds : of the shares, which are met in any case
    """
    K, used = log_p.shape[1], mass > 0.0
    if shares is None or tau == 0.0 or not used.any():
        return np.zeros(K)
    z, w = log_p[used], mass[used] / mass[used].sum()
    if np.isinf(tau):
        return _exact_offset(z, w, shares)
    offset = _regularized_offset(z, w, shares, tau)
    mean = w @ softmax(z + offset)
    return offset if bounds is None or bounds.hold(mean) else _exact_offset(z, w, bounds.nearest(mean))


def _exact_offset(z: Array, w: Array, shares: Array) -> Array:
    """b for τ = ∞."""
    if shares.size > 2:
        offset = balancing_offset(z, w, shares, 0.5, np.zeros(shares.size))
        return np.asarray(offset - offset.mean())
    half = 0.5 * balancing_offset(z[:, 1:] - z[:, :1], w, shares, 1.0, np.zeros(1))[0]
    return np.array([-half, half])


def _regularized_offset(z: Array, w: Array, shares: Array, tau: float) -> Array:
    """b for finite τ > 0, by Newton steps, shortened until the objective falls."""

    def value(b: Array) -> tuple[float, Array]:
        log_q = log_softmax(z + b)
        normalizer = (z + b).max(axis=1) - log_q.max(axis=1)  # the other classes give it less exactly
        return float(w @ normalizer - shares @ b + 0.5 * b @ b / tau), np.exp(log_q)

    b = np.zeros(shares.size)
    best, Q = value(b)
    for _ in range(MAX_STEPS):
        mean = w @ Q
        gradient = mean - shares + b / tau
        if np.abs(gradient).max() < TOLERANCE:
            break
        hessian = np.diag(mean + 1.0 / tau) - (Q * w[:, None]).T @ Q
        step, rise = np.linalg.solve(hessian, gradient), ROUNDING * max(1.0, abs(best))
        for _ in range(MAX_HALVINGS):
            found, Q = value(b - step)
            if found <= best + rise:
                break
            step = 0.5 * step
        b, best = b - step, found
    return b


@dataclass(frozen=True)
class ShareSensitivity:
    """How much depends on the class shares, as far as they are not known."""

    plausible: ShareBounds
    changed: float  # share of the unlabeled rows whose class changes within the plausible shares
    accuracy: tuple[float, float]  # least and largest change of the expected accuracy of the classes that rows have


def share_sensitivity(
    p: Array, mass: Array, shares: Array, n_labels: float, given: ShareBounds | None
) -> ShareSensitivity:
    """What other plausible shares would change.

    The shares r of the predictions are taken to be as uncertain as shares that were seen in as many rows as there are
    labels: each within an interval of its Beta distribution (Jeffreys' prior), and within the bounds that the user
    gives. One class after the other gets its smallest and largest share, the others the nearest to r, and rows the
    probabilities that Bayes' rule gives with these shares s, p_k s_k/r_k.

    Parameters
    ----------
    p : (n, K), probabilities
    mass : (n,), weights of the unlabeled rows; zero for others
    shares : (K,), r if there are no unlabeled rows
    n_labels : number of labels
    given : the user's bounds, or None
    """
    used = np.flatnonzero(mass > 0.0)
    used = used[:: max(1, -(-used.size // MAX_ROWS))]
    p, w = p[used], mass[used] / max(mass[used].sum(), MIN_SHARE)
    r = np.maximum(w @ p, MIN_SHARE) if used.size else shares
    plausible = _plausible_shares(r, n_labels, given)
    if not used.size:
        return ShareSensitivity(plausible, 0.0, (0.0, 0.0))
    own, changed, accuracy = p.argmax(axis=1), np.zeros(used.size, dtype=bool), [0.0]
    for k in range(r.size):
        for end in (plausible.low[k], plausible.high[k]):
            at_end = np.arange(r.size) == k
            s = ShareBounds(np.where(at_end, end, plausible.low), np.where(at_end, end, plausible.high)).nearest(r)
            q = p * (s / r)
            q /= q.sum(axis=1, keepdims=True)
            changed |= q.argmax(axis=1) != own
            accuracy.append(float(w @ (q - p)[np.arange(used.size), own]))
    return ShareSensitivity(plausible, float(w @ changed), (min(accuracy), max(accuracy)))


def _plausible_shares(r: Array, n_labels: float, given: ShareBounds | None) -> ShareBounds:
    """An interval of each share (K,), within the given bounds."""
    K, tail = r.size, 0.5 * (1.0 - PLAUSIBLE)
    a, b = n_labels * r + 0.5, n_labels * (1.0 - r) + 0.5 * (K - 1)
    low, high = np.minimum(beta.ppf(tail, a, b), r), np.maximum(beta.isf(tail, a, b), r)
    if given is not None:
        low, high = np.clip(low, given.low, given.high), np.clip(high, given.low, given.high)
    return ShareBounds(low, high).tightened()
