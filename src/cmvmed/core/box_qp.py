"""The box-constrained dual of a view, and the certificates of its solution.

The dual of equation (4) of the theory page is, for one function of one view,

    maximize  gᵀα - ½ αᵀ Q α   subject to  0 <= α <= C,

with g = 1 - y∘m⁰ and Q = S_LL ∘ yyᵀ. Certificates are computed from the problem at the returned point, never
reported by the solver.
"""

import numpy as np
from scipy.linalg import lapack

from cmvmed.core.linalg import Array, BoolArray, solve_semidefinite

KKT_TOLERANCE = 1e-10  # largest violation of an optimality condition, in units of margin, beyond rounding
MAX_NEWTON_STEPS = 30  # well-posed duals take a handful
RIDGE = 1e-13  # relative to the trace: makes the Newton system of a semi-definite Q solvable, a proximal-point step
MAX_INTERIOR_STEPS = 100
CENTERING = 0.1  # by which an interior-point step aims to reduce the complementarity


def gradient(Q: Array, g: Array, alpha: Array) -> Array:
    """G - Qα: for a view's dual, the margin residual 1 - y m of each labeled row."""
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
    """Maximize gᵀα - ½αᵀQα over 0 <= α <= upper.

    Projected Newton steps from ``start`` (Bertsekas, 1982) end after a few factorizations in almost all cases. Where Q is
    singular and the box wide they may zigzag between faces; an interior-point method, which has no such faces, then finds
    the right one and the Newton steps polish its answer.

    Parameters
    ----------
    Q : (n, n) symmetric positive semi-definite
    g, upper, start : (n,)

    Returns
    -------
    alpha : (n,)
    """
    noise = np.abs(g).max(initial=0.0) + float(np.abs(Q).max(initial=0.0)) * float(upper.sum())
    tolerance = KKT_TOLERANCE + 16.0 * np.finfo(float).eps * noise
    alpha, violation = _projected_newton(Q, g, upper, np.clip(start, 0.0, upper), tolerance)
    if violation > tolerance:
        polished, better = _projected_newton(Q, g, upper, _interior_point(Q, g, upper), tolerance)
        if better < violation:
            return polished
    return alpha


def _projected_newton(Q: Array, g: Array, upper: Array, alpha: Array, tolerance: float) -> tuple[Array, float]:
    """The point reached by projected Newton steps, and its KKT violation.

    The variables that sit on a bound with the gradient pointing outwards are fixed; the others take a Newton step that
    is projected back onto the box and shortened until the objective rises.
    """
    ridge = RIDGE * max(float(np.trace(Q)), np.finfo(float).tiny)
    for step in range(MAX_NEWTON_STEPS + 1):
        grad = gradient(Q, g, alpha)
        fixed = ((alpha <= 0.0) & (grad <= 0.0)) | ((alpha >= upper) & (grad >= 0.0))
        violation = float(np.abs(grad[~fixed]).max(initial=0.0))  # the same as kkt_violation
        if violation <= tolerance or step == MAX_NEWTON_STEPS:
            break
        better = _projected_newton_step(Q, alpha, grad, upper, ~fixed, ridge)
        if better is None:  # no step along this direction helps within rounding
            break
        alpha = better
    return alpha, violation


def _interior_point(Q: Array, g: Array, upper: Array) -> Array:
    """A point near the optimum by primal-dual interior-point steps, its variables near a bound put onto it.

    Q α - g - z + v = 0 with multipliers z of α >= 0 and v of α <= upper; each step aims at z α = v (upper - α) = μ.
    """
    room = upper > 0.0
    Q_room, g_room, top = Q[np.ix_(room, room)], g[room], upper[room]
    x, left = 0.5 * top, 0.5 * top  # α, and its distance to the upper bound
    nearest = np.finfo(float).tiny * np.maximum(top, 1.0)
    z = np.maximum(1.0, np.abs(g_room - Q_room @ x))
    v = z.copy()
    for _ in range(MAX_INTERIOR_STEPS):
        mu = CENTERING * float((z @ x + v @ left) / (2.0 * x.size))
        system = Q_room + np.diag(z / x + v / left)
        dx = solve_semidefinite(system, g_room - Q_room @ x + mu / x - mu / left)
        dz, dv = mu / x - z - z / x * dx, mu / left - v + v / left * dx
        step = _length(x, left, dx) * dx
        x, left = np.maximum(x + step, nearest), np.maximum(left - step, nearest)
        length = min(_length(z, np.inf, dz), _length(v, np.inf, dv))
        z, v = z + length * dz, v + length * dv
        if mu <= 1e-13 * (1.0 + float(np.abs(g_room) @ x)):
            break
    alpha = np.zeros_like(upper)
    alpha[room] = np.where(z > 1e3 * x / top, 0.0, np.where(v > 1e3 * left / top, top, x))
    return alpha


def _length(low: Array, high: Array | float, step: Array) -> float:
    """Longest step, up to 1, that keeps 0.5 % of the distance to the bounds at ``low`` below and ``high`` above."""
    with np.errstate(divide="ignore"):
        limits = np.where(step < 0.0, -low / step, np.where(step > 0.0, high / step, np.inf))
    return float(min(1.0, 0.995 * limits.min()))


def _projected_newton_step(
    Q: Array, alpha: Array, grad: Array, upper: Array, free: BoolArray, ridge: float
) -> Array | None:
    """One projected, shortened Newton step, or None if no length of it improves the objective."""
    chosen = np.flatnonzero(free)
    system = Q[chosen[:, None], chosen]
    system.flat[:: chosen.size + 1] += ridge
    factor, info = lapack.dpotrf(system, lower=1)
    solved = info == 0
    direction = lapack.dpotrs(factor, grad[free], lower=1)[0] if solved else np.linalg.lstsq(system, grad[free])[0]
    length = 1.0
    while length > 1e-9:
        candidate = alpha.copy()
        candidate[free] = np.minimum(np.maximum(alpha[free] + length * direction, 0.0), upper[free])
        move = candidate - alpha
        gain = grad @ move - 0.5 * move @ (Q @ move)
        if gain > 1e-4 * (grad @ move) and gain > 0.0:
            return candidate
        length *= 0.5
    return None
