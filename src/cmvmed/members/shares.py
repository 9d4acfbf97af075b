"""The share of each class among the unlabeled rows: how it is estimated, and how far predictions follow it.

Two sources that fail in different ways are combined by their geometric mean: the mean of the pooled predictions, and the labels'
share, shrunk towards equal classes. The latter says nothing if labels were chosen class by class, and is then left out. If some
labels are of random rows and the others of chosen ones, it is that of the random ones, and counts by their part of all labels. With
few labels of each class both are uncertain, and the result is near equal shares.

Predictions follow the shares by an offset b of the log-probabilities that minimizes

    mean_i log Σ_k exp(log p_ik + b_k) - r·b + ‖b‖²/2τ,

which is convex. At the minimum the mean prediction differs from the shares r by b/τ. Shares that the user gives are met exactly,
with τ = ∞; τ = 0 imposes nothing. Between them an offset has its price: rows of which the members are sure stay where they are.
"""

import numpy as np

from cmvmed.auto.class_prior import empirical_bayes_share
from cmvmed.auto.tuning import Tuning
from cmvmed.core.consensus import balancing_offset
from cmvmed.numerics.softmax import log_softmax, softmax
from cmvmed.numerics.types import Array

MIN_SHARE = 1e-9  # of a class, in logarithms
MAX_STEPS = 100
TOLERANCE = 1e-10  # of the shares
MAX_HALVINGS = 40
ROUNDING = 1e-14  # of the objective


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


def share_offset(log_p: Array, mass: Array, shares: Array | None, tau: float) -> Array:
    """The offset b (K,), with the mean zero, that brings the shares of rows with weights ``mass`` towards ``shares``.

    Parameters
    ----------
    log_p : (n, K)
    mass : (n,)
    shares : (K,), r; None imposes nothing
    tau : τ
    """
    K, used = log_p.shape[1], mass > 0.0
    if shares is None or tau == 0.0 or not used.any():
        return np.zeros(K)
    z, w = log_p[used], mass[used] / mass[used].sum()
    return _exact_offset(z, w, shares) if np.isinf(tau) else _regularized_offset(z, w, shares, tau)


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
