"""From scores to probabilities, and the weights of several opinions: both learned from labels that were left out."""

import numpy as np

from cmvmed.auto.tuning import Tuning
from cmvmed.numerics.softmax import log_softmax
from cmvmed.numerics.types import Array, IntArray

MAX_NEWTON_STEPS = 30
MAX_HALVINGS = 8
STEP_TOLERANCE = 1e-7
MAX_STEP = 1.5
MAX_BEND = 0.9  # of the curvature, by which it is lowered at most
WEIGHT_STEPS = 200
LEAST_LIKELIHOOD = 1e-300  # below, it is rounding


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
    scale_sd: float,
    offset_sd: float,
    tuning: Tuning,
) -> tuple[Array, Array]:
    """Scale c (J,) and offsets b (J, K) of J opinions' scores, so that softmax(c M + log r + b) are probabilities.

    They maximize, each opinion on its own, the penalized likelihood of labels that were left out,

        Σ_i w_i log softmax(c M_i + log r + b)[y_i] - (log c - log c_0)²/2s² - ‖b‖²/2κ²,

    by Newton steps in (log c, b), shortened until it rises. The threshold thus comes from held-out labels.

    Parameters
    ----------
    scores : (J, n, K)
    codes, weights : (n,), classes and weights of the rows; a weight of zero leaves a row out
    log_prior : (K,), log r
    center : (J,), c_0
    scale_sd, offset_sd : s and κ
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
        return fit - 0.5 * ((t - start) / scale_sd) ** 2 - 0.5 * (b**2).sum(axis=1) / offset_sd**2, np.exp(log_p)

    v, P = value(t, b)
    for _ in range(MAX_NEWTON_STEPS):
        step = _newton_step(M, P, target, w, t, t - start, b, scale_sd, offset_sd)
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


def _newton_step(
    M: Array, P: Array, target: Array, w: Array, t: Array, behind: Array, b: Array, scale_sd: float, offset_sd: float
) -> Array:
    """The Newton step of every opinion, (J, 1 + K)."""
    J, _, K = M.shape
    X = np.exp(t)[:, None, None] * M  # derivative of the logits by log c
    G = (target - P) * w[:, None]
    WP = P * w[:, None]
    deviation = X - (X * P).sum(axis=2, keepdims=True)
    gradient = np.empty((J, K + 1))
    gradient[:, 0] = (G * X).sum(axis=(1, 2)) - behind / scale_sd**2
    gradient[:, 1:] = G.sum(axis=1) - b / offset_sd**2
    hessian = np.zeros((J, K + 1, K + 1))
    hessian[:, 0, 0] = (WP * deviation**2).sum(axis=(1, 2)) + 1.0 / scale_sd**2
    hessian[:, 0, 1:] = hessian[:, 1:, 0] = (WP * deviation).sum(axis=1)
    hessian[:, 1:, 1:] = -np.matmul(WP.transpose(0, 2, 1), P)
    i = np.arange(1, K + 1)
    hessian[:, i, i] += WP.sum(axis=1) + 1.0 / offset_sd**2
    # so far the Fisher information; the rest of the second derivative by log c, unless the matrix became indefinite
    cross = hessian[:, 0, 1:]
    given_b = hessian[:, 0, 0] - (cross * np.linalg.solve(hessian[:, 1:, 1:], cross[..., None])[..., 0]).sum(axis=1)
    hessian[:, 0, 0] -= np.minimum((G * X).sum(axis=(1, 2)), MAX_BEND * given_b)
    return np.asarray(np.linalg.solve(hessian, gradient[..., None])[..., 0])


def stacking_weights(likelihood: Array, weights: Array, prior: Array, strength: float) -> Array:
    """Weights (J,) of opinions that gave the held-out labels these probabilities (n, J).

    The posterior mode of the weights of a mixture, w_j ← (Σ_i u_i R_ij + a J p_j)/(Σ_i u_i + a J) with the
    responsibilities R_ij ∝ w_j p_j(y_i): with few labels they stay near the prior p.

    Parameters
    ----------
    weights : (n,), u
    prior : (J,), p
    strength : a, labels for each opinion that the prior counts as
    """
    J, total = prior.size, float(weights.sum())
    w, likelihood = prior.copy(), np.maximum(likelihood, LEAST_LIKELIHOOD)
    for _ in range(WEIGHT_STEPS):
        responsibility = w * likelihood
        responsibility /= responsibility.sum(axis=1, keepdims=True)
        last, w = w, (weights @ responsibility + strength * J * prior) / (total + strength * J)
        if np.abs(w - last).max() < 1e-10:
            break
    return np.asarray(w)


def log_linear_pool(log_p: Array, weights: Array) -> Array:
    """log Π_j p_j^{w_j}, normalized, (n, K), of log-probabilities (J, n, K)."""
    return log_softmax(np.asarray(np.tensordot(weights, log_p, 1), dtype=np.float64))
