"""The kernel of a graph of nearest rows.

With the normalized Laplacian Λ of the graph and its degrees D, the kernel

    H = D^(-1/2) (Λ + εI)^(-2) D^(-1/2)

makes functions smooth along the graph. Its leading eigenvector is the constant, which centering removes, so that the
kernel of a new row is the mean of those of its nearest nodes.

Members need the columns of the labeled rows alone. For many nodes they are a Chebyshev series in S = I - Λ, the
normalized adjacency, whose eigenvalues are between -1 and 1: each term is one product with a sparse matrix, and how many
terms are needed depends on ε alone, not on the graph. For few nodes a dense factor takes less time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cmvmed.graphs.nodes import Nodes
from cmvmed.numerics.linalg import cholesky, solve_cholesky
from cmvmed.numerics.types import Array, BoolArray, IntArray

SERIES_TOLERANCE = 1e-11  # what the terms that are left out may add, relative to the largest eigenvalue, 1/ε²
BLOCK_COLUMNS = 32  # columns that are multiplied at a time
SERIES_COST = 1e4  # of the series, per node and column, in operations of dense linear algebra


@dataclass(frozen=True)
class GraphKernel:
    """The columns of the labeled rows of a centered and scaled graph kernel."""

    nodes: Nodes
    shares_L: sparse.csr_matrix  # (l, m) how much of each node the labeled rows have
    columns: Array  # (m, l)
    compared: IntArray | None = None  # nodes that new rows are compared with; None for all

    @property
    def present(self) -> BoolArray:
        """Whether each training row has one of the graph's views, (n,)."""
        return self.nodes.present

    def gram(self) -> Array:
        """The kernel of the labeled rows, (l, l), with zeros for those without any of the views."""
        return np.asarray(self.shares_L @ self.columns)

    def scores(self, coefficients: Array) -> Array:
        """Scores (n, F) of all training rows, for coefficients (l, F) of the labeled rows."""
        return self.nodes.of_rows(self.columns @ coefficients)

    def node_scores(self, coefficients: Array) -> tuple[Nodes, Array]:
        """The nodes that new rows are compared with, and their scores (m, K) for coefficients (l, K)."""
        scores = self.columns @ coefficients
        if self.compared is None:
            return self.nodes, scores
        return self.nodes.chosen(self.compared), scores[self.compared]


def graph_kernel(
    nodes: Nodes, labeled: IntArray, weights_L: Array, regularization: float, found: dict[int, Array] | None = None
) -> GraphKernel:
    """The kernel H of the graph, its columns of the labeled rows centered and scaled to a mean diagonal of one.

    Parameters
    ----------
    labeled : (l,), the training rows that members learn from
    weights_L : (l,), their weights in the mean diagonal
    regularization : ε
    found : columns that are known from a fit to the same nodes, to which new ones are added
    """
    m, root = nodes.size, nodes.root_degrees
    shares_L = sparse.csr_matrix(nodes.row_shares[labeled])
    known = np.flatnonzero(np.asarray(shares_L.sum(axis=1)).ravel() > 0.0)
    mass = nodes.weights / nodes.weights.sum() if nodes.weights.any() else np.full(m, 1.0 / max(m, 1))
    right = np.column_stack([shares_L[known].toarray().T, mass]) / root[:, None]
    rows = [*labeled[known].tolist(), -1]
    H = (
        _columns(nodes.normalized_adjacency, regularization, right, rows, {} if found is None else found)
        / root[:, None]
    )
    means = H[:, -1]  # mean of a node's kernel over all rows
    centered = H[:, :-1] - means[:, None] - shares_L[known] @ means + mass @ means
    w, diagonal = weights_L[known], np.asarray(shares_L[known].multiply(centered.T).sum(axis=1)).ravel()
    mean = float(w @ diagonal / w.sum()) if w.sum() > 0.0 else 0.0
    columns = np.zeros((m, labeled.size))
    negligible = 1e-9 * float(np.abs(H).max(initial=0.0))
    columns[:, known] = centered / (mean if mean > negligible else 1.0)
    return GraphKernel(nodes, shares_L, columns)


def _columns(
    S: sparse.csr_matrix, regularization: float, B: Array, rows: Sequence[int], found: dict[int, Array]
) -> Array:
    """:func:`inverse_square_product`, of which columns by the series, which do not depend on each other, are found once."""
    if _is_dense_faster(*B.shape):
        return inverse_square_product(S, regularization, B)
    new = [i for i, row in enumerate(rows) if row not in found]
    found |= {rows[i]: own for i, own in zip(new, series_product(S, regularization, B[:, new]).T, strict=True)}
    return np.column_stack([found[row] for row in rows])


def _is_dense_faster(m: int, k: int) -> bool:
    return m * (m / 3.0 + 4.0 * k) < SERIES_COST * k


def inverse_square_product(S: sparse.csr_matrix, regularization: float, B: Array) -> Array:
    """((1 + ε)I - S)⁻² B for B (m, k), by a dense factor or by a series, whichever takes less time."""
    if _is_dense_faster(*B.shape):
        shifted = -S.toarray(order="F")
        shifted[np.diag_indices_from(shifted)] += 1.0 + regularization
        factor = cholesky(shifted)
        return solve_cholesky(factor, solve_cholesky(factor, B))
    return series_product(S, regularization, B)


def series_product(S: sparse.csr_matrix, regularization: float, B: Array) -> Array:
    """The same by a series, some columns at a time so that they stay in the cache."""
    series = inverse_square_series(regularization)
    total = np.empty_like(B)
    for start in range(0, B.shape[1], BLOCK_COLUMNS):
        columns = slice(start, start + BLOCK_COLUMNS)
        total[:, columns] = _chebyshev_sum(S, series, np.ascontiguousarray(B[:, columns]))
    return total


def _chebyshev_sum(S: sparse.csr_matrix, series: Array, B: Array) -> Array:
    """Σ_k c_k T_k(S) B, with T_1(S) = S and T_(k+1)(S) = 2 S T_k(S) - T_(k-1)(S)."""
    total, before, term, doubled = series[0] * B, B, S @ B, 2.0 * S
    for coefficient in series[1:]:
        total += coefficient * term
        following = doubled @ term
        following -= before
        before, term = term, following
    return np.asarray(total)


def inverse_square_series(regularization: float) -> Array:
    """The coefficients c_k of 1/(c - x)² = Σ_k c_k T_k(x) on [-1, 1], with c = 1 + ε.

    With s = √(c² - 1) and q = c - s, 1/(c - x) = (1 + 2 Σ_k q^k T_k(x))/s. Minus the derivative of this by c, where
    dq/dc = -q/s, has the coefficients 2 q^k (c/s³ + k/s²), half of it for k = 0. All are positive, so that they add up to
    the value at x = 1, which is 1/ε².
    """
    c = 1.0 + regularization
    s = np.sqrt(c * c - 1.0)
    k = np.arange(int(np.ceil(2.0 * np.log(SERIES_TOLERANCE) / np.log(c - s))))
    coefficients = 2.0 * (c - s) ** k * (c / s**3 + k / s**2)
    coefficients[0] /= 2.0
    left = np.cumsum(coefficients[::-1])[::-1]  # what each term and those after it add up to
    return np.asarray(coefficients[left > SERIES_TOLERANCE / regularization**2])
