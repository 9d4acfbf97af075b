"""Co-regularization: functions of several views whose mean fits the labels and which agree on unlabeled rows.

Over f_v in the space of the kernel K_v, with the mean f̄ over the views that a row has,

    argmin  Σ_labeled loss(y, f̄) + Σ_v γ_v ‖f_v‖² + μ Σ_unlabeled Σ_{v<u} (f_v - f_u)²  (the last two halved for the hinge).

The last two terms are the norm of f̄ in a space with a kernel of its own (Sindhwani and Rosenberg, 2008): the
covariance of f̄ for independent f_v of covariance G_v = K_v/γ_v, once their differences on the unlabeled rows were seen
to be zero with noise of variance 1/μ. Any kernel method with that kernel then solves the problem.

In a row with k views the pairs' differences sum to Σ_{v<u} (f_v - f_u)² = kΣ_v f_v² - (Σ_v f_v)². The first part
concerns each view by itself, so that with T = diag(√(μk)) it costs a factorization of B_v = I + T G_v T per view; the
second couples the views through the matrix C = Σ_v B_v⁻¹ alone, which has one row per unlabeled row, however many views
there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from cmvmed.core.box_qp import kkt_violation, solve_box_qps
from cmvmed.numerics.linalg import NotPositiveDefiniteError, cholesky, inverse_lower_half, solve_cholesky
from cmvmed.numerics.types import Array, IntArray, Matrix


@dataclass(frozen=True)
class CoRegularization:
    """The co-regularization kernel of the labeled rows, and how its functions are made of the views'.

    For coefficients a (l, F) of the labeled rows, f̄ = ``kernel`` a on them and f_v(x) = k_v(x, ·) ``expansions[v]`` a.
    """

    kernel: Array  # (l, l)
    expansions: tuple[Array, ...]  # per view (m_v, l)


@dataclass(frozen=True)
class _CoupledView:
    """One view at its coupled rows, the c_v unlabeled ones that another view has too."""

    at: IntArray  # (c_v,) where they are among the view's rows
    row: IntArray  # (c_v,) which of the coupled rows they are, ascending
    root: Array  # (c_v,) T = √(μk)
    factor: Array  # (c_v, c_v) Cholesky factor of B = I + T G T
    TGA: Array  # (c_v, l)
    AGA: Array  # (l, l)


def coregularize(
    kernels: Iterable[Array],
    rows: Sequence[IntArray],
    n_labeled: int,
    regularization: Sequence[float],
    coupling: Array,
) -> CoRegularization:
    """K̃ = Σ_v A_v G_v (A_vᵀ - T X_v) with X_v = B_v⁻¹(T G_v A_vᵀ - Z) and CZ = Σ_v B_v⁻¹ T G_v A_vᵀ.

    A_v is the share of view v in the means f̄ of the labeled rows; G_v, T, B_v and C are as at the top of this module.

    Parameters
    ----------
    kernels : per view (m_v, m_v), taken one after the other
    rows : per view (m_v,), the row numbers that the kernel's rows have; the first ``n_labeled`` rows are the labeled ones
    regularization : per view γ_v > 0
    coupling : (u,), μ of each row that is not labeled
    """
    coupled, roots = _coupled_rows(rows, n_labeled, coupling)
    A = _means(rows, n_labeled)
    views = [
        _couple(K, gamma, A_v, np.intersect1d(index, coupled, return_indices=True), roots)
        for K, gamma, A_v, index in zip(kernels, regularization, A, rows, strict=True)
    ]
    C, total = np.zeros((coupled.size, coupled.size), order="F"), np.zeros((coupled.size, n_labeled))
    for view in views:
        C[np.ix_(view.row, view.row)] += inverse_lower_half(view.factor)
        total[view.row] += solve_cholesky(view.factor, view.TGA)
    Z = solve_cholesky(_factor(C), total)  # (c, l)

    kernel, expansions = np.zeros((n_labeled, n_labeled)), []
    for view, A_v, gamma in zip(views, A, regularization, strict=True):
        X = solve_cholesky(view.factor, view.TGA - Z[view.row])
        expansion = A_v.toarray().T
        expansion[view.at] -= view.root[:, None] * X
        expansions.append(expansion / gamma)
        kernel += view.AGA - view.TGA.T @ X
    return CoRegularization(kernel, tuple(expansions))


def _coupled_rows(rows: Sequence[IntArray], n_labeled: int, coupling: Array) -> tuple[IntArray, Array]:
    """Unlabeled rows that several views have, ascending, and T = √(μk) for the k views that have each."""
    n_views = np.bincount(np.concatenate(rows), minlength=n_labeled + coupling.size)[n_labeled:]
    coupled = np.flatnonzero((n_views > 1) & (coupling > 0.0))
    return coupled + n_labeled, np.sqrt(coupling[coupled] * n_views[coupled])


def _couple(
    K: Array, gamma: float, A_v: Matrix, place: tuple[IntArray, IntArray, IntArray], roots: Array
) -> _CoupledView:
    """Factorize B = I + T G T of one view; ``place`` says where its coupled rows are among its own and among all."""
    _, at, row = place
    root = roots[row]
    GA = (A_v @ K).T / gamma  # (m_v, l)
    B = K[np.ix_(at, at)].T  # K is symmetric; its transpose is in Fortran order, so nothing is rearranged
    B *= root / gamma
    B *= root[:, None]
    B[np.diag_indices_from(B)] += 1.0
    return _CoupledView(at, row, root, _factor(B), root[:, None] * GA[at], A_v @ GA)


def fit_least_squares(K: Array, Y: Array, weights: Array) -> tuple[Array, float]:
    """Coefficients a (l, F) of argmin Σ w (y - f)² + ‖f‖² with f = Ka, and their largest violation of a = w(y - f)."""
    root = np.sqrt(weights)[:, None]
    a = root * solve_cholesky(_factor(np.eye(len(K)) + root * K * root.T), root * Y)
    return a, float(np.abs(a - weights[:, None] * (Y - K @ a)).max())


def fit_hinge(K: Array, Y: Array, weights: Array) -> tuple[Array, float]:
    """Coefficients a (l, F) of argmin Σ w [1 - y f]₊ + ½‖f‖² with f = Ka, and their largest violation of a KKT condition."""
    alphas = solve_box_qps(K, np.ones_like(Y), Y, np.repeat(weights[:, None], Y.shape[1], axis=1), np.zeros_like(Y))
    slopes = 1.0 - Y * (K @ (Y * alphas))
    return Y * alphas, max(
        kkt_violation(slope, alpha, weights) for slope, alpha in zip(slopes.T, alphas.T, strict=True)
    )


def _factor(system: Array) -> Array:
    """The Cholesky factor of a matrix that is overwritten, unless it is so large that rounding hides its structure."""
    largest = np.diagonal(system).max(initial=0.0)  # taken before the matrix is overwritten
    try:
        return cholesky(np.asfortranarray(system))
    except NotPositiveDefiniteError as error:
        raise ValueError(
            f"The kernels, divided by the regularization and times the coupling, reach {largest:.1e}, too large to "
            'compute with; use scaling="auto", a larger regularization or a smaller coupling.'
        ) from error


def _means(rows: Sequence[IntArray], n_labeled: int) -> list[Any]:
    """A, per view sparse (l, m_v): the share of each view in f̄ of the labeled rows that have it."""
    labeled = [np.flatnonzero(index < n_labeled) for index in rows]
    own = [index[at] for index, at in zip(rows, labeled, strict=True)]
    n_views = np.bincount(np.concatenate(own), minlength=n_labeled)
    return [
        sparse.csr_array((1.0 / n_views[row], (row, at)), shape=(n_labeled, index.size))
        for row, at, index in zip(own, labeled, rows, strict=True)
    ]
