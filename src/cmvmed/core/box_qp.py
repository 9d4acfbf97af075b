"""The box-constrained dual of a view, paper eq. (5), and the certificates of its solution.

For one function of one view it is (equation (C) of the theory page)

    maximize  gᵀα - ½ αᵀ Q α   subject to  0 <= α <= C,

with g = 1 - y∘m⁰ and Q = S_LL ∘ yyᵀ. Certificates are computed from the problem at the returned point, never
reported by the solver.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg import lapack

from cmvmed.numerics.interior_point import interior_point
from cmvmed.numerics.types import Array, BoolArray

KKT_TOLERANCE = 1e-10  # largest violation of an optimality condition, in units of margin, beyond rounding
MAX_NEWTON_STEPS = 30  # well-posed duals take a handful
RIDGE = 1e-13  # relative to the trace: makes the Newton system of a semi-definite Q solvable, a proximal-point step
ROUNDING, SMALLEST = float(np.finfo(float).eps), float(np.finfo(float).tiny)
MAX_REPEATS = 2  # steps without fewer changes of the active sets after which they are given up
MAX_PROXIMAL_POINTS = 8  # well-conditioned duals take two
COOLING = 0.03  # factor between the μ of two proximal points, at first
NEAR = 1e-8  # size of a step, relative to the variables, at which a proximal point is reached
SHORTEST_STEP = 1e-4  # towards a proximal point; shorter ones do not get there in the end
INTERIOR_TOLERANCE = 1e-13  # complementarity, relative to the objective, at which interior-point steps end


def gradient(Q: Array, g: Array, alpha: Array) -> Array:
    """g - Qα: for a view's dual, the margin residual 1 - y m of each labeled row."""
    return g - Q @ alpha


def kkt_violation(grad: Array, alpha: Array, upper: Array) -> float:
    """Largest violation of: α = 0 ⇒ grad <= 0;  0 < α < C ⇒ grad = 0;  α = C ⇒ grad >= 0."""
    return float(_violations(grad, alpha, upper).max(initial=0.0))


def _violations(grad: Array, alpha: Array, upper: Array) -> Array:
    """How much each variable violates these conditions."""
    could_grow = np.where(alpha < upper, grad, 0.0)
    could_shrink = np.where(alpha > 0.0, -grad, 0.0)
    return np.asarray(np.maximum(could_grow, could_shrink))


def duality_gap(grad: Array, alpha: Array, upper: Array) -> float:
    """Primal minus dual, Σ C[grad]₊ - α·grad >= 0; zero only at the optimum (identity C6)."""
    return float((upper * np.maximum(grad, 0.0) - alpha * grad).sum())


def solve_box_qps(S: Array, G: Array, Y: Array, upper: Array, start: Array) -> Array:
    """Maximize gᵀα - ½αᵀQα over 0 <= α <= upper with Q = S ∘ yyᵀ, for each of F functions: the dual, paper eq. (5).

    Active sets for all functions end after a few factorizations if ``start`` is near the solutions. Functions whose sets
    repeat are solved one by one: by active sets from points nearer to the solution, or else by an interior-point method.

    Parameters
    ----------
    S : (n, n) symmetric positive semi-definite
    G, upper, start : (n, F)
    Y : (n, F), y = ±1 of each function

    Returns
    -------
    alpha : (n, F)
    """
    alpha, solved = _active_sets(S, G, Y, upper, np.clip(start, 0.0, upper))
    if not solved.all() and not np.isfinite(S).all():
        raise np.linalg.LinAlgError("the matrix of a dual is not finite")
    for c in np.flatnonzero(~solved):
        one = slice(c, c + 1)
        alpha[:, one], found = _from_proximal_points(S, G[:, one], Y[:, one], upper[:, one], alpha[:, one])
        if not found[0]:
            y = Y[:, c]
            alpha[:, c] = _from_interior_point(S * y * y[:, None], G[:, c], upper[:, c], alpha[:, c])
    return alpha


def _active_sets(S: Array, G: Array, Y: Array, upper: Array, start: Array) -> tuple[Array, BoolArray]:
    """The solutions (n, F) by primal-dual active sets (Kunisch and Rendl, 2003), and which functions (F,) have theirs.

    Variables are at zero, at their upper bound, or free. The free ones take a whole Newton step. Then those outside of
    the box go to the bound that they passed, and those on a bound whose gradient points inwards become free. A function is
    given up when for some steps no fewer variables had to change: sets may repeat if S is singular and the box wide.
    """
    alpha, solved, left = start.copy(), np.zeros(start.shape[1], dtype=bool), np.arange(start.shape[1])
    x, room, ridge, largest = start, upper > 0.0, _ridge(S), _largest(S)
    grad = G - Y * (S @ (Y * x))
    low, top = (x <= 0.0) & (grad <= 0.0), (x >= upper) & (grad >= 0.0)
    fewest, since = np.full(left.size, x.shape[0] + 1), np.zeros(left.size, dtype=int)
    while left.size:
        last, x = x, _step_of_free(S, Y, x, np.where(low, 0.0, np.where(top, upper, x)), grad, ~(low | top), ridge)
        inside = np.minimum(np.maximum(x, 0.0), upper)
        near = largest * np.abs(x - inside).sum(axis=0) <= KKT_TOLERANCE
        # where a function may be done, the gradient is free of the rounding of earlier points
        grad = G - Y * (S @ (Y * x)) if near.any() else grad - Y * _product(S, Y * (x - last))
        done = near & (_violations(grad, inside, upper).max(axis=0, initial=0.0) <= _tolerance(largest, G, x))
        alpha[:, left[done]], solved[left[done]] = inside[:, done], True
        if done.all():
            break
        below, above = ~top & (x < 0.0), ~low & (x > upper)
        up, down = low & (grad > 0.0) & room, top & (grad < 0.0) & room
        low, top = (low & ~up) | below, (top & ~down) | above
        changes = (below | above | up | down).sum(axis=0)
        since = np.where(changes < fewest, 0, since + 1)
        fewest = np.minimum(changes, fewest)
        go_on = ~done & (since < MAX_REPEATS) & np.isfinite(x).all(axis=0)
        if not go_on.all():
            left, fewest, since = left[go_on], fewest[go_on], since[go_on]
            G, Y, upper, x, grad = (part[:, go_on] for part in (G, Y, upper, x, grad))
            low, top, room = (part[:, go_on] for part in (low, top, room))
    return alpha, solved


def _step_of_free(S: Array, Y: Array, x: Array, moved: Array, grad: Array, free: BoolArray, ridge: float) -> Array:
    """Points (n, F) with a gradient of zero for the free variables, others as in ``moved``; NaN without a solution.

    ``grad`` (n, F) is that at ``x``, where the free variables are those of ``moved``.
    """
    signed, change = Y * grad, Y * (moved - x)
    known, factor, info = np.empty(0, dtype=np.intp), S, 0
    for c in range(x.shape[1]):
        chosen, others = np.flatnonzero(free[:, c]), np.flatnonzero(change[:, c])
        if chosen.size:
            rest = signed[chosen, c]
            if others.size:
                rest -= S[chosen[:, None], others] @ change[others, c]
            if not np.array_equal(chosen, known):  # as for all functions at the start from zero
                system = S[chosen[:, None], chosen]
                system.flat[:: chosen.size + 1] += ridge
                factor, info = lapack.dpotrf(system, lower=1, overwrite_a=1)
                known = chosen
            moved[chosen, c] += Y[chosen, c] * (lapack.dpotrs(factor, rest, lower=1)[0] if info == 0 else np.nan)
    return moved


def _product(S: Array, v: Array) -> Array:
    """S v, (n, F), from the rows of the symmetric S where v is not zero, if these are few."""
    rows = np.flatnonzero(v.any(axis=1))
    return np.asarray(S[rows].T @ v[rows] if 2 * rows.size < v.shape[0] else S @ v)


def _fixed(alpha: Array, grad: Array, upper: Array) -> BoolArray:
    """Which variables sit on a bound with the gradient pointing outwards."""
    return np.asarray(((alpha <= 0.0) & (grad <= 0.0)) | ((alpha >= upper) & (grad >= 0.0)))


def _tolerance(largest: float, g: Array, alpha: Array) -> Array:
    """The violation of an optimality condition that may be rounding of g - Qα, of each function; ``largest`` is that of Q."""
    with np.errstate(over="ignore"):
        noise = np.abs(g).max(axis=0, initial=0.0) + largest * np.abs(alpha).sum(axis=0)
    return np.asarray(KKT_TOLERANCE + 16.0 * ROUNDING * noise)


def _largest(Q: Array) -> float:
    """The largest entry, which is on the diagonal of a positive semi-definite matrix."""
    return float(np.abs(np.diagonal(Q)).max(initial=0.0))


def _ridge(Q: Array) -> float:
    return RIDGE * max(float(np.trace(Q)), SMALLEST)


def _from_proximal_points(S: Array, G: Array, Y: Array, upper: Array, x: Array) -> tuple[Array, BoolArray]:
    """The solution (n, 1) for one function by active sets from proximal points, if that is found, and whether it is (1,).

    Each point maximizes gᵀα - ½αᵀQα - ½μ‖α - x‖², where x is the last one (Rockafellar, 1976), with smaller and smaller μ.
    """
    solved, mu, cooling = np.zeros(1, dtype=bool), max(_largest(S), SMALLEST), COOLING
    for _ in range(MAX_PROXIMAL_POINTS):
        point = _proximal_point(S, G, Y, upper, x, cooling * mu)
        if point is None:
            cooling = float(np.sqrt(cooling))
            continue
        mu *= cooling
        x, solved = _active_sets(S, G, Y, upper, point)
        if solved[0]:
            break
    return x, solved


def _proximal_point(S: Array, G: Array, Y: Array, upper: Array, center: Array, mu: float) -> Array | None:
    """The maximizer (n, 1) of gᵀα - ½αᵀQα - ½μ‖α - center‖² in the box, for one function.

    It is a(β) = clip(center + (g - Qβ)/μ) at the minimum over all β of the dual ½βᵀQβ + Σ max over α in the box of
    α(g - Qβ) - ½μ(α - center)². Its gradient Q(β - a(β)) is piecewise linear; each Newton step is one of active sets, and
    is shortened where the dual rises at its end. None if the steps do not reach the minimum, as for a small μ.
    """

    def nearest(grad: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.clip(center + grad / mu, 0.0, upper)

    def slope(length: float, x: Array, step: Array, grad: Array, fall: Array) -> float:
        return float(np.vdot(fall, x + length * step - nearest(grad - length * fall)))

    x = center
    grad = G - Y * (S @ (Y * x))
    for _ in range(MAX_NEWTON_STEPS):
        wanted = nearest(grad)
        free = (wanted > 0.0) & (wanted < upper)
        step = _step_of_free(S, Y, x, np.where(free, x, wanted), grad + mu * (center - x), free, mu) - x
        if not np.isfinite(step).all():
            return None
        if np.abs(step).max(initial=0.0) <= NEAR * np.abs(x).max(initial=0.0):
            return np.clip(x + step, 0.0, upper)
        fall = Y * _product(S, Y * step)  # of the gradient
        length = _step_length(partial(slope, x=x, step=step, grad=grad, fall=fall))
        if length < SHORTEST_STEP:
            return None
        x, grad = x + length * step, grad - length * fall
    return None


def _step_length(slope: Callable[[float], float]) -> float:
    """1, or where a convex function with this slope is then rising, a length near its minimum."""
    flat = 0.1 * abs(slope(0.0))
    if slope(1.0) <= flat:
        return 1.0
    shortest, longest, length = 0.0, 1.0, 0.5
    while length >= SHORTEST_STEP:
        found = slope(length)
        if abs(found) <= flat:
            break
        shortest, longest = (shortest, length) if found > 0.0 else (length, longest)
        length = 0.5 * (shortest + longest)
    return length


def _from_interior_point(Q: Array, g: Array, upper: Array, start: Array) -> Array:
    """The better point of two that projected Newton steps reach, from ``start`` and from an interior-point method.

    Where Q is singular and the box wide, the steps from ``start`` may zigzag between faces; interior points have no faces.
    """
    alpha, violation = _projected_newton(Q, g, upper, start)
    if violation > _tolerance(_largest(Q), g, alpha):
        polished, better = _projected_newton(Q, g, upper, _near_optimum(Q, g, upper))
        if better < violation:
            return polished
    return alpha


def _projected_newton(Q: Array, g: Array, upper: Array, alpha: Array) -> tuple[Array, float]:
    """The point reached by projected Newton steps, and its KKT violation.

    The variables that sit on a bound with the gradient pointing outwards are fixed; the others take a Newton step that
    is projected back onto the box and shortened until the objective rises.
    """
    ridge, largest = _ridge(Q), _largest(Q)
    for step in range(MAX_NEWTON_STEPS + 1):
        grad = gradient(Q, g, alpha)
        fixed = _fixed(alpha, grad, upper)
        violation = float(np.abs(grad[~fixed]).max(initial=0.0))  # the same as kkt_violation
        if violation <= _tolerance(largest, g, alpha) or step == MAX_NEWTON_STEPS:
            break
        better = _projected_newton_step(Q, alpha, grad, upper, ~fixed, ridge)
        if better is None:  # no step along this direction helps within rounding
            break
        alpha = better
    return alpha, violation


def _near_optimum(Q: Array, g: Array, upper: Array) -> Array:
    """A point near the optimum by interior-point steps, its variables near a bound set to it."""
    room = upper > 0.0
    alpha = np.zeros_like(upper)
    if not room.any():
        return alpha
    g_room, top = g[room], upper[room]
    for point in interior_point(Q[np.ix_(room, room)], g_room, np.arange(top.size), top):
        if point.mu <= INTERIOR_TOLERANCE * (1.0 + float(np.abs(g_room) @ point.x)):
            break
    at_zero, at_top = point.z > 1e3 * point.x / top, point.u > 1e3 * point.room / top
    alpha[room] = np.where(at_zero, 0.0, np.where(at_top, top, point.x))
    return alpha


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
