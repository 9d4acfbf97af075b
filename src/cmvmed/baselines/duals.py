"""The duals of the two-view baselines, SVM-2K and MV-MED, and the certificates of their solutions.

Both are quadratic programs that couple the views row by row. Their variables add to the coefficients g_v of the views'
functions f_v = K_v g_v + b_v. Certificates are computed from the problem at the returned point, never reported by the
solver.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from cmvmed._optional import import_optional
from cmvmed.numerics.interior_point import interior_point, sums_by_row
from cmvmed.numerics.types import Array, BoolArray, IntArray

SOLVER_TOLERANCE = 1e-11  # of the QP solver; the violation reached is measured afterwards
MAX_SOLVER_STEPS = 100
INTERIOR_TOLERANCE = 1e-11  # largest violation of an optimality condition, beyond rounding


@dataclass(frozen=True)
class TwoViewProgram:
    """Minimize costᵀx + ½ Σ_v g_vᵀ K_v g_v over lower <= x <= upper with Σ g_v = 0 in each view.

    Variable j adds ``signs[v, j] * x[j]`` to entry ``positions[v, j]`` of the coefficients g_v; a sign of 0 leaves the
    view alone. The multiplier of Σ g_v = 0 is the view's bias.
    """

    kernels: tuple[Array, ...]  # per view (m_v, m_v)
    positions: IntArray  # (V, n)
    signs: Array  # (V, n)
    cost: Array  # (n,)
    lower: Array  # (n,)
    upper: Array  # (n,)

    def coefficients(self, x: Array) -> tuple[Array, ...]:
        """The coefficients g_v, per view (m_v,), that the variables (n,) imply."""
        return tuple(
            sums_by_row(p, s * x, K.shape[0]) for K, p, s in zip(self.kernels, self.positions, self.signs, strict=True)
        )

    def slopes(self, x: Array, biases: Array) -> Array:
        """Derivative (n,) of the Lagrangian in each variable: y f - 1 of a hinge, ε ± (f_A - f_B) of a similarity."""
        total = self.cost.copy()
        for K, p, s, g, b in zip(self.kernels, self.positions, self.signs, self.coefficients(x), biases, strict=True):
            if K.size:  # a view that no row has touches no variable
                total += s * (K @ g + b)[p]
        return total

    def curvature(self, free: BoolArray) -> Array:
        """Second derivatives in the ``free`` variables."""
        return np.asarray(
            sum(
                np.outer(s[free], s[free]) * K[np.ix_(p[free], p[free])]
                for K, p, s in zip(self.kernels, self.positions, self.signs, strict=True)
                if K.size
            )
        )


@dataclass(frozen=True)
class TwoViewSolution:
    """Coefficients per view (m_v,), biases (V,), variables (n,), and the largest violation of an optimality condition."""

    coefficients: tuple[Array, ...]
    biases: Array
    variables: Array
    violation: float


def svm2k_program(
    kernels: Sequence[Array],
    rows: Sequence[IntArray],
    y: Array,
    hinge: Sequence[Array],
    similarity: Array,
    epsilon: float,
) -> TwoViewProgram:
    """The dual of argmin ½ Σ_v ‖w_v‖² + Σ_v C_v·[1 - y f_v]₊ + D·[|f_A - f_B| - ε]₊, with f_v = ⟨w_v, φ_v⟩ + b_v.

    Its variables are α_v in [0, C_v] for each hinge, and for each similarity β⁺ and β⁻ in [0, D], of which only one
    differs from zero at the optimum; ε = 0 needs only their difference, in [-D, D]. Then g_A = α_A∘y - β⁺ + β⁻ and g_B
    = α_B∘y + β⁺ - β⁻.

    Parameters
    ----------
    kernels : per view (m_v, m_v); one view makes the dual of a support vector machine
    rows : per view (m_v,), the row numbers that the kernel's rows have, ascending
    y : (n,), labels ±1
    hinge : per view (n,), C_v of each row; 0 for rows without a label
    similarity : (n,), D of each row; it acts where both views are present
    epsilon : difference between the views that costs nothing
    """
    where = np.full((len(kernels), y.size), -1)
    for v, present in enumerate(rows):
        where[v, present] = np.arange(present.size)
    groups = [_hinges(v, where, y, hinge[v]) for v in range(len(kernels))]
    if len(kernels) == 2:
        groups += _similarities(where, similarity, epsilon)
    joined = (np.concatenate(parts, axis=-1) for parts in zip(*groups, strict=True))
    positions, signs, cost, lower, upper = joined
    return TwoViewProgram(tuple(kernels), positions.astype(np.intp), signs, cost, lower, upper)


def _hinges(v: int, where: IntArray, y: Array, penalty: Array) -> tuple[Array, ...]:
    """Positions, signs, costs and bounds of the variables α of view ``v``."""
    used = np.flatnonzero((where[v] >= 0) & (penalty > 0.0))
    positions, signs = np.zeros((len(where), used.size)), np.zeros((len(where), used.size))
    positions[v], signs[v] = where[v, used], y[used]
    return positions, signs, np.full(used.size, -1.0), np.zeros(used.size), penalty[used]


def _similarities(where: IntArray, penalty: Array, epsilon: float) -> list[tuple[Array, ...]]:
    """The same of β⁺ and β⁻, or of their difference if ε = 0."""
    used = np.flatnonzero((where >= 0).all(axis=0) & (penalty > 0.0))
    positions, top, cost = where[:, used].astype(np.float64), penalty[used], np.full(used.size, epsilon)
    plus = np.repeat([[-1.0], [1.0]], used.size, axis=1)
    if epsilon == 0.0:
        return [(positions, plus, cost, -top, top)]
    return [(positions, sign * plus, cost, np.zeros(used.size), top) for sign in (1.0, -1.0)]


def solve_two_view(program: TwoViewProgram) -> TwoViewSolution:
    """Solve the program with piqp and measure how well.

    In a view whose variables can only push Σ g_v one way, Σ g_v = 0 leaves nothing but zeros: its labeled rows are of
    one class only, and a bias of ±1, the sign of that class, is optimal.
    """
    biases = np.array([_only_way(s, program.lower) for s in program.signs])
    free = ~(program.signs[biases != 0.0] != 0.0).any(axis=0)
    coupled = (program.signs[:, free] != 0.0).any(axis=1)
    x = np.zeros(program.cost.size)
    if free.any():
        x[free], biases[coupled] = _solve_with_piqp(program, free, coupled)
        x = _onto_bounds(x, program.slopes(x, biases), program)
    return TwoViewSolution(program.coefficients(x), biases, x, two_view_violation(program, x, biases))


def _only_way(signs: Array, lower: Array) -> float:
    """The common sign of a view's variables if none of them can be negative, else 0."""
    touching = signs != 0.0
    one_way = touching.any() and np.ptp(signs[touching]) == 0.0 and (lower[touching] >= 0.0).all()
    return float(signs[touching][0]) if one_way else 0.0


def two_view_violation(program: TwoViewProgram, x: Array, biases: Array) -> float:
    """Largest of |x - clip(x - slope, lower, upper)| and |Σ g_v|, zero exactly at an optimum with these biases."""
    step = x - np.clip(x - program.slopes(x, biases), program.lower, program.upper)
    sums = [abs(float(g.sum())) for g in program.coefficients(x)]
    outside = np.maximum(program.lower - x, x - program.upper)
    return float(max(np.abs(step).max(initial=0.0), outside.max(initial=0.0), *sums))


def _solve_with_piqp(program: TwoViewProgram, free: BoolArray, coupled: BoolArray) -> tuple[Array, Array]:
    """The free variables and the multipliers of the equalities of the views they touch."""
    solver = import_optional("piqp", "baselines", "SVM2K").DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = SOLVER_TOLERANCE
    solver.settings.eps_rel = solver.settings.eps_duality_gap_rel = 0.1 * SOLVER_TOLERANCE
    solver.settings.max_iter = MAX_SOLVER_STEPS
    equalities = program.signs[np.ix_(coupled, free)]
    solver.setup(
        P=np.asfortranarray(program.curvature(free)),
        c=program.cost[free],
        A=np.asfortranarray(equalities),
        b=np.zeros(len(equalities)),
        x_l=program.lower[free],
        x_u=program.upper[free],
    )
    solver.solve()
    return np.clip(solver.result.x, program.lower[free], program.upper[free]), np.array(solver.result.y)


def _onto_bounds(x: Array, slopes: Array, program: TwoViewProgram) -> Array:
    """Put variables whose slope outweighs their distance to a bound onto it, where the solver only comes near."""
    x = np.where(slopes > x - program.lower, program.lower, x)
    return np.where(-slopes > program.upper - x, program.upper, x)


@dataclass(frozen=True)
class SharedMarginDual:
    """Maximize Σ_t [s_t + w_t log(1 - s_t/(w_t c))] - ½ Σ_v (λ_v∘y)ᵀ K_v (λ_v∘y) over λ >= 0, with s_t = Σ_v λ_vt.

    The λ of all views stand one after the other in one vector; ``rows`` says which row t each belongs to.
    """

    Q: Array  # (m, m), blocks K_v∘yyᵀ
    rows: IntArray  # (m,)
    weights: Array  # (n,), positive; how often each row's margin counts
    c: float

    def room(self, lam: Array) -> Array:
        """w_t c - s_t of each row, (n,)."""
        return self.c * self.weights - sums_by_row(self.rows, lam, self.weights.size)

    def slopes(self, lam: Array) -> Array:
        """Derivative (m,): the margin 1 - w/(wc - s) that the row's penalty sets, minus the margin y f_v."""
        return np.asarray(1.0 - (self.weights / self.room(lam))[self.rows] - self.Q @ lam)

    def violation(self, lam: Array) -> float:
        """Largest |λ - [λ + slope]₊|, zero exactly at the optimum."""
        return float(np.abs(lam - np.maximum(lam + self.slopes(lam), 0.0)).max(initial=0.0))


def solve_mvmed(
    kernels: Sequence[Array], rows: Sequence[IntArray], y: Array, weights: Array, c: float
) -> tuple[tuple[Array, ...], float]:
    """Maximum entropy discrimination with one margin per row for all views: argmin KL(p ‖ p₀) s.t. E[y f_v - γ] >= 0.

    p₀ has a Gaussian process f_v of covariance K_v for each view and the margin prior p₀(γ) = c exp(-c(1 - γ)), γ <= 1.
    The posterior means are f_v = K_v (λ_v∘y), with λ from :class:`SharedMarginDual`.

    Parameters
    ----------
    kernels : per view (m_v, m_v), prior variance and bias included
    rows : per view (m_v,), the row numbers that the kernel's rows have
    y, weights : (n,), labels ±1 and how often each row counts
    c : rate of the margin prior, greater than 1

    Returns
    -------
    coefficients : per view (m_v,), λ_v∘y
    violation : largest violation of an optimality condition
    """
    sign = np.concatenate([y[present] for present in rows])
    row = np.concatenate(rows)
    counts = weights[row] > 0.0
    Q = (np.outer(sign, sign) * block_diag(*kernels))[np.ix_(counts, counts)]
    used, index = np.unique(row[counts], return_inverse=True)
    dual = SharedMarginDual(Q, index, weights[used], c)
    lam = _best_iterate(dual)
    coefficients = np.zeros(row.size)
    coefficients[counts] = lam * sign[counts]
    ends = np.cumsum([present.size for present in rows])
    return tuple(np.split(coefficients, ends[:-1])), dual.violation(lam)


def _best_iterate(dual: SharedMarginDual) -> Array:
    """The best point of some interior-point steps; variables that they leave near zero become zero."""
    best, least = np.zeros(dual.rows.size), dual.violation(np.zeros(dual.rows.size))
    points = interior_point(dual.Q, np.ones(dual.rows.size), dual.rows, dual.c * dual.weights, dual.weights)
    for point in points if dual.rows.size else ():
        candidate = np.where(point.z > point.x, 0.0, point.x)
        violation = dual.violation(candidate)
        if violation < least:
            best, least = candidate, violation
        rounding = 16.0 * np.finfo(float).eps * float((np.abs(dual.Q) @ point.x).max(initial=0.0))
        if violation <= INTERIOR_TOLERANCE + rounding:
            break
    return best
