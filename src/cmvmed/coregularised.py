"""Co-regularisation: functions of several views whose mean fits the labels and which agree on unlabelled rows.

Over f_v in the space of the kernel K_v, with the mean f̄ over the views that a row has,

    argmin  Σ_labelled loss(y, f̄) + Σ_v γ_v ‖f_v‖² + μ Σ_unlabelled Σ_{v<u} (f_v - f_u)²  (the last two halved for the hinge).

The last two terms are the norm of f̄ in a space with a kernel of its own (Sindhwani and Rosenberg, 2008): the covariance of f̄
for independent f_v of covariance K_v/γ_v, once their differences on the unlabelled rows were seen to be zero with noise of
variance 1/μ. Any kernel method with that kernel then solves the problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from cmvmed.linalg import Array, IntArray, NotPositiveDefiniteError, cholesky, solve_cholesky
from cmvmed.qp import kkt_violation, solve_box_qp


@dataclass(frozen=True)
class CoRegularisation:
    """The co-regularisation kernel of the labelled rows, and how its functions are made of the views'.

    For coefficients a (l, F) of the labelled rows, f̄ = ``kernel`` a on them and f_v(x) = k_v(x, ·) ``expansions[v]`` a.
    """

    kernel: Array  # (l, l)
    expansions: tuple[Array, ...]  # per view (m_v, l)


def coregularise(
    kernels: Sequence[Array],
    rows: Sequence[IntArray],
    n_labelled: int,
    regularization: Sequence[float],
    coupling: Array,
) -> CoRegularisation:
    """K̃ = A G Aᵀ - A G Bᵀ (I + B G Bᵀ)⁻¹ B G Aᵀ with G = diag(K_v/γ_v), A the means over views, B their differences.

    Parameters
    ----------
    kernels : per view (m_v, m_v)
    rows : per view (m_v,), the row numbers that the kernel's rows have; the first ``n_labelled`` rows are the labelled ones
    regularization : per view γ_v > 0
    coupling : (u,), μ of each row that is not labelled
    """
    A, B = _means(rows, n_labelled), _differences(rows, n_labelled, coupling)
    views = [(K / gamma, A_v, B_v) for K, gamma, A_v, B_v in zip(kernels, regularization, A, B, strict=True)]
    AGA = np.sum([A_v @ (A_v @ G).T for G, A_v, _ in views], axis=0)
    BGA = np.sum([B_v @ (A_v @ G).T for G, A_v, B_v in views], axis=0)
    BGB = np.sum([B_v @ (B_v @ G).T for G, _, B_v in views], axis=0)
    correction = solve_cholesky(_factor(np.eye(len(BGB)) + BGB), BGA)  # (d, l)
    expansions = [
        (A_v.toarray().T - B_v.T @ correction) / gamma for A_v, B_v, gamma in zip(A, B, regularization, strict=True)
    ]
    return CoRegularisation(AGA - BGA.T @ correction, tuple(expansions))


def fit_least_squares(K: Array, Y: Array, weights: Array) -> tuple[Array, float]:
    """Coefficients a (l, F) of argmin Σ w (y - f)² + ‖f‖² with f = Ka, and their largest violation of a = w(y - f)."""
    root = np.sqrt(weights)[:, None]
    a = root * solve_cholesky(_factor(np.eye(len(K)) + root * K * root.T), root * Y)
    return a, float(np.abs(a - weights[:, None] * (Y - K @ a)).max())


def fit_hinge(K: Array, Y: Array, weights: Array) -> tuple[Array, float]:
    """Coefficients a (l, F) of argmin Σ w [1 - y f]₊ + ½‖f‖² with f = Ka, and their largest violation of a KKT condition."""
    ones, start = np.ones(len(K)), np.zeros(len(K))
    alphas = np.column_stack([solve_box_qp(np.outer(y, y) * K, ones, weights, start) for y in Y.T])
    slopes = 1.0 - Y * (K @ (Y * alphas))
    return Y * alphas, max(
        kkt_violation(slope, alpha, weights) for slope, alpha in zip(slopes.T, alphas.T, strict=True)
    )


def _factor(system: Array) -> Array:
    """The Cholesky factor of I plus a positive semi-definite matrix, unless that is so large that I is lost in rounding."""
    try:
        return cholesky(np.asfortranarray(system))
    except NotPositiveDefiniteError as error:
        raise ValueError(
            f"The kernels, divided by the regularization and times the coupling, reach {np.abs(system).max():.1e}, too large to "
            'compute with; use scaling="auto", a larger regularization or a smaller coupling.'
        ) from error


def _means(rows: Sequence[IntArray], n_labelled: int) -> list[Any]:
    """A, per view sparse (l, m_v): the share of each view in f̄ of the labelled rows that have it."""
    labelled = [np.flatnonzero(index < n_labelled) for index in rows]
    own = [index[at] for index, at in zip(rows, labelled, strict=True)]
    n_views = np.bincount(np.concatenate(own), minlength=n_labelled)
    return [
        sparse.csr_array((1.0 / n_views[row], (row, at)), shape=(n_labelled, index.size))
        for row, at, index in zip(own, labelled, rows, strict=True)
    ]


def _differences(rows: Sequence[IntArray], n_labelled: int, coupling: Array) -> list[Any]:
    """B, per view sparse (d, m_v): √μ (f_v - f_u) for each pair of views and each unlabelled row that has both."""
    blocks: list[list[Any]] = [[sparse.csr_array((0, index.size))] for index in rows]
    for v, u in combinations(range(len(rows)), 2):
        shared, at_v, at_u = np.intersect1d(rows[v], rows[u], return_indices=True)
        unlabelled = shared >= n_labelled
        root = np.sqrt(coupling[shared[unlabelled] - n_labelled])
        order = np.arange(root.size)
        for block, index in zip(blocks, rows, strict=True):
            block.append(sparse.csr_array((root.size, index.size)))
        blocks[v][-1] = sparse.csr_array((root, (order, at_v[unlabelled])), shape=(root.size, rows[v].size))
        blocks[u][-1] = sparse.csr_array((-root, (order, at_u[unlabelled])), shape=(root.size, rows[u].size))
    return [sparse.vstack(block, format="csr") for block in blocks]
