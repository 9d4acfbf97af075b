"""The box-constrained dual of a view, and the certificates of its solution.

The dual of equation (4) of the theory page is, for one function of one view,

    maximise  gᵀα - ½ αᵀ Q α   subject to  0 <= α <= C,

with g = 1 - y∘m⁰ and Q = S_LL ∘ yyᵀ. Certificates are computed from the problem at the returned point, never
reported by the solver.
"""

import numpy as np
from scipy.linalg import lapack

from cmvmed.linalg import Array, BoolArray

KKT_TOLERANCE = 1e-10  # largest violation of an optimality condition, relative to the size of the gradient's terms
MAX_NEWTON_STEPS = 200
RIDGE = 1e-13  # relative to the trace: makes the Newton system of a semi-definite Q solvable, a proximal-point step


def gradient(Q: Array, g: Array, alpha: Array) -> Array:
    """G - Qα: for a view's dual, the margin residual 1 - y m of each labelled row."""
    return g - Q @ alpha


def kkt_violation(grad: Array, alpha: Array, upper: Array) -> float:
    """Largest violation of: α = 0 ⇒ grad <= 0;  0 < α < C ⇒ grad = 0;  α = C ⇒ grad >= 0."""
    could_grow = np.where(alpha < upper, grad, 0.0)
    could_shrink = np.where(alpha > 0.0, -grad, 0.0)
    return float(np.maximum(could_grow, could_shrink).max(initial=0.0))


def duality_gap(grad: Array, alpha: Array, upper: Array) -> float:
    """Primal minus dual, Σ C[grad]₊ - α·grad >= 0; zero only at the optimum (identity C6)."""
    return float((upper * np.maximum(grad, 0.0) - alpha * grad).sum())


def solve_box_qp(Q: Array, g: Array, upper: Array, start: Array) -> Array:
    """Maximise gᵀα - ½αᵀQα over 0 <= α <= upper by projected Newton steps.

    The variables that sit on a bound with the gradient pointing outwards are fixed; the others take a Newton step that
    is projected back onto the box and shortened until the objective rises (Bertsekas, 1982).

    Parameters
    ----------
    Q : (n, n) symmetric positive semi-definite
    g, upper, start : (n,)

    Returns
    -------
    alpha : (n,)
    """
    alpha = np.clip(start, 0.0, upper)
    ridge = RIDGE * max(float(np.trace(Q)), np.finfo(float).tiny)
    noise = np.abs(g).max(initial=0.0) + float(np.abs(Q).max(initial=0.0)) * float(upper.sum())
    tolerance = KKT_TOLERANCE * max(1.0, min(noise, 1e6)) + np.finfo(float).eps * noise
    for _ in range(MAX_NEWTON_STEPS):
        grad = gradient(Q, g, alpha)
        if kkt_violation(grad, alpha, upper) <= tolerance:
            break
        fixed = ((alpha <= 0.0) & (grad <= 0.0)) | ((alpha >= upper) & (grad >= 0.0))
        better = _projected_newton_step(Q, alpha, grad, upper, ~fixed, ridge)
        if better is None:  # no step along this direction helps within rounding: polish one variable at a time
            better = _coordinate_sweep(Q, g, alpha, upper)
            if np.array_equal(better, alpha):
                break
        alpha = better
    return alpha


def _projected_newton_step(
    Q: Array, alpha: Array, grad: Array, upper: Array, free: BoolArray, ridge: float
) -> Array | None:
    """One projected, shortened Newton step, or None if no length of it improves the objective."""
    system = Q[np.ix_(free, free)]
    system[np.diag_indices_from(system)] += ridge
    factor, info = lapack.dpotrf(system, lower=1)
    solved = info == 0
    direction = lapack.dpotrs(factor, grad[free], lower=1)[0] if solved else np.linalg.lstsq(system, grad[free])[0]
    length = 1.0
    while length > 1e-9:
        candidate = alpha.copy()
        candidate[free] = np.clip(alpha[free] + length * direction, 0.0, upper[free])
        move = candidate - alpha
        gain = grad @ move - 0.5 * move @ (Q @ move)
        if gain > 1e-4 * (grad @ move) and gain > 0.0:
            return candidate
        length *= 0.5
    return None


def _coordinate_sweep(Q: Array, g: Array, alpha: Array, upper: Array) -> Array:
    """Exact maximisation over one variable after another."""
    alpha = alpha.copy()
    for n in range(alpha.size):
        slope = g[n] - Q[n] @ alpha
        step = slope / Q[n, n] if Q[n, n] > 0.0 else np.sign(slope) * upper[n]
        alpha[n] = min(max(alpha[n] + step, 0.0), upper[n])
    return alpha
