"""Products with (Λ + εI)⁻², for the normalized Laplacian Λ of a graph, without a dense matrix.

Λ = I - S with the normalized adjacency S, whose eigenvalues are between -1 and 1. The products are a Chebyshev series in
S: each term is one product with a sparse matrix, and how many terms are needed depends on ε alone, not on the graph.
"""

import numpy as np
from scipy import sparse

from cmvmed.numerics.types import Array

SERIES_TOLERANCE = 1e-11  # what the terms that are left out may add, relative to the largest eigenvalue, 1/ε²

BLOCK_COLUMNS = 32  # columns that are multiplied at a time


def inverse_square_product(S: sparse.csr_matrix, regularization: float, B: Array) -> Array:
    """((1 + ε)I - S)⁻² B for B (m, k), some columns at a time so that they stay in the cache."""
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
