"""From scores to probabilities, and the weights of several members: both learned from labels that were held out."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cmvmed.auto.tuning import Tuning
from cmvmed.numerics.softmax import log_softmax
from cmvmed.numerics.types import Array, IntArray

MAX_NEWTON_STEPS = 60
MAX_HALVINGS = 12
STEP_TOLERANCE = 1e-7
MAX_STEP = 1.5
MAX_BEND = 0.9  # of the curvature, by which it is lowered at most


def smoothed_targets(codes: IntArray, total: float, n_classes: int, tuning: Tuning) -> Array:
    """One-hot targets (n, K), smoothed by ``tuning.label_smoothing`` labels in all: no number of hits is certainty."""
    e = tuning.label_smoothing / (total + 2.0)
    return np.asarray(np.eye(n_classes)[codes] * (1.0 - e) + e / n_classes)


def fit_logits(
    scores: Array,
    codes: IntArray,
    weights: Array,
    log_prior: Array,
    center: Array,
    tuning: Tuning,
) -> tuple[Array, Array]:
    """Scale c (J,) and offsets b (J, K) of J members' scores, so that softmax(c M + log r + b) are probabilities.

    They maximize, each member on its own, the penalized likelihood of labels that were held out,

        Σ_i w_i log softmax(c M_i + log r + b)[y_i] - ½(log c - log c_0)² - ½‖b‖²,

    by Newton steps in (log c, b), shortened until it rises. The threshold thus comes from held-out labels.

    Parameters
    ----------
    scores : (J, n, K)
    codes, weights : (n,), classes and weights of the rows; a weight of zero leaves a row out
    log_prior : (K,), log r, or (J, 1, K) if members differ in it
    center : (J,), c_0
    """
    used = weights > 0.0
    M, w = scores[:, used], weights[used]
    J, n, K = M.shape
    start = np.log(center)
    t, b = start.copy(), np.zeros((J, K))
    if n == 0:
        return np.exp(t), b
    target = smoothed_targets(codes[used], float(w.sum()), K, tuning)

    def value(t: Array, b: Array) -> tuple[Array, Array]:
        log_p = log_softmax(np.exp(t)[:, None, None] * M + log_prior + b[:, None])
        fit = np.einsum("nk,n,jnk->j", target, w, log_p)
        return fit - 0.5 * (t - start) ** 2 - 0.5 * (b**2).sum(axis=1), np.exp(log_p)

    v, P = value(t, b)
    for _ in range(MAX_NEWTON_STEPS):
        step = _newton_step(M, P, target, w, t, t - start, b)
        step *= np.minimum(1.0, MAX_STEP / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        length = np.ones(J)
        for _ in range(MAX_HALVINGS):
            t_new, b_new = t + length * step[:, 0], b + length[:, None] * step[:, 1:]
            v_new, P_new = value(t_new, b_new)
            worse = ~(v_new >= v - 1e-12 * np.abs(v))
            if not worse.any():
                break
            length[worse] *= 0.5
        better = ~worse
        t, b = np.where(better, t_new, t), np.where(better[:, None], b_new, b)
        v, P = np.where(better, v_new, v), np.where(better[:, None, None], P_new, P)
        if not np.abs(np.where(better[:, None], length[:, None] * step, 0.0)).max() > STEP_TOLERANCE:
            break
    return np.exp(t), b


def _newton_step(M: Array, P: Array, target: Array, w: Array, t: Array, behind: Array, b: Array) -> Array:
    """The Newton step of every member, (J, 1 + K)."""
    J, _, K = M.shape
    X = np.exp(t)[:, None, None] * M  # derivative of the logits by log c
    G = (target - P) * w[:, None]
    WP = P * w[:, None]
    deviation = X - (X * P).sum(axis=2, keepdims=True)
    gradient = np.empty((J, K + 1))
    gradient[:, 0] = (G * X).sum(axis=(1, 2)) - behind
    gradient[:, 1:] = G.sum(axis=1) - b
    hessian = np.zeros((J, K + 1, K + 1))
    hessian[:, 0, 0] = (WP * deviation**2).sum(axis=(1, 2)) + 1.0
    hessian[:, 0, 1:] = hessian[:, 1:, 0] = (WP * deviation).sum(axis=1)
    hessian[:, 1:, 1:] = -np.matmul(WP.transpose(0, 2, 1), P)
    i = np.arange(1, K + 1)
    hessian[:, i, i] += WP.sum(axis=1) + 1.0
    # so far the Fisher information; the rest of the second derivative by log c, unless the matrix became indefinite
    cross = hessian[:, 0, 1:]
    given_b = hessian[:, 0, 0] - (cross * np.linalg.solve(hessian[:, 1:, 1:], cross[..., None])[..., 0]).sum(axis=1)
    hessian[:, 0, 0] -= np.minimum((G * X).sum(axis=(1, 2)), MAX_BEND * given_b)
    return np.asarray(np.linalg.solve(hessian, gradient[..., None])[..., 0])


def pool(log_p: Array, weights: Array) -> Array:
    """log Π_j p_j^{w_j}, normalized, (n, K), of log-probabilities (J, n, K): the rule by which members are put together."""
    return log_softmax(np.asarray(np.tensordot(weights, log_p, 1), dtype=np.float64))


def prior_weights(kinds: Sequence[str]) -> Array:
    """Weights (J,) before any label was held out: equal for all kinds of members, and among those of one kind; the sum is 1."""
    count = Counter(kinds)
    return np.array([1.0 / (len(count) * count[kind]) for kind in kinds])


def pool_weights(held_out: Array, codes: IntArray, weights: Array, kinds: Sequence[str], tuning: Tuning) -> Array:
    """Weights v > 0 (J,) of the pool, not normalized, so that their sum is its sharpness.

    They maximize the likelihood of held-out labels under the pool itself, with a prior that counts as one label for each
    kind of member, a of them,

        Σ_i w_i log pool(held-out log p_i; v)[y_i] + a Σ_j (u_j log v_j - v_j),

    which is concave; u are the prior weights, which it returns if no label was held out. Newton steps, taken in log v,
    shortened until it rises.

    Parameters
    ----------
    held_out : (J, l, K), log-probabilities of labeled rows by fits without their labels
    codes, weights : (l,), classes, and weights w, zero for labels that were not held out
    kinds : of each member
    """
    prior, strength, used = prior_weights(kinds), float(len(set(kinds))), weights > 0.0
    Z, w = held_out[:, used], weights[used]
    v = prior.copy()
    if not used.any():
        return v
    target = smoothed_targets(codes[used], float(w.sum()), Z.shape[2], tuning)

    def value(v: Array) -> tuple[float, Array]:
        log_p = pool(Z, v)
        return float(w @ (target * log_p).sum(axis=1) + strength * (prior @ np.log(v) - v.sum())), np.exp(log_p)

    best, P = value(v)
    for _ in range(MAX_NEWTON_STEPS):
        mean = np.einsum("jnk,nk->jn", Z, P)
        gradient = np.einsum("jnk,nk,n->j", Z, target, w) - mean @ w + strength * (prior / v - 1.0)
        spread = ((Z - mean[:, :, None]) * np.sqrt(P * w[:, None])).reshape(len(Z), -1)
        hessian = spread @ spread.T
        hessian[np.diag_indices_from(hessian)] += strength * prior / v**2
        step = np.linalg.solve(hessian, gradient) / v
        step *= min(1.0, MAX_STEP / max(np.abs(step).max(), 1e-300))
        for _ in range(MAX_HALVINGS):
            new = v * np.exp(step)
            found, P_new = value(new)
            if found >= best - 1e-12 * abs(best):
                break
            step *= 0.5
        else:
            break
        v, best, P = new, found, P_new
        if np.abs(step).max() < STEP_TOLERANCE:
            break
    return np.asarray(v)
