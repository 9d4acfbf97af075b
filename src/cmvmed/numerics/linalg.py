"""Factorizations: the wrappers of LAPACK and BLAS routines.

Everything rests on symmetric positive (semi-)definite matrices in double precision. The routines below overwrite the
Fortran-ordered work array they are given, which is what makes them fast.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import blas, lapack

from cmvmed.numerics.threads import interruptible
from cmvmed.numerics.types import Array, Matrix

LONG_ROWS = 500  # from which on an eigendecomposition takes long enough that someone may want to stop it
INVERSE_BLOCKS = 5  # more would spare work, at the price of smaller and slower solves
MAX_NARROW = 6  # columns up to which a product with each of them is faster than one with all
NARROW_BYTES = 2**19  # of a matrix, that stay in the cache
RIDGE = 1e-15  # relative to the diagonal, for each row: what rounding may take from the smallest eigenvalue


def is_sparse(matrix: Matrix) -> bool:
    """Whether a matrix is a scipy sparse one (scipy's own test narrows the type to one without methods)."""
    return bool(sparse.issparse(matrix))


def unit_rows(matrix: Matrix) -> Matrix:
    """Each row divided by its Euclidean length; rows of zeros stay. Rows of any magnitude keep their direction."""
    if is_sparse(matrix):
        matrix = matrix.tocsr()
        sizes = np.repeat(_nonzero(abs(matrix).max(axis=1).toarray().ravel()), np.diff(matrix.indptr))
        scaled = matrix.copy()
        scaled.data = matrix.data / sizes
        lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
        scaled.data = scaled.data / np.repeat(_nonzero(lengths), np.diff(matrix.indptr))
        return scaled
    scaled = matrix / _nonzero(np.abs(matrix).max(axis=1, initial=0.0))[:, None]
    return scaled / _nonzero(np.linalg.norm(scaled, axis=1))[:, None]


def _nonzero(sizes: Array) -> Array:
    """The sizes, with 1 in place of 0."""
    return np.where(sizes > 0.0, sizes, 1.0)


OVERFLOW_ADVICE = (
    'values are so large or so small that numbers overflow. Use scaling="auto", and less extreme gamma, prior_variance, C, '
    "bias_variance, consensus_weight, temperature and sample weights."
)


@contextmanager
def numerical_errors() -> Iterator[None]:
    """Turn errors of the linear algebra and of arithmetic into one that says what to do.

    Overflow is not reported as a warning: results are checked, and are finite or an error.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except (np.linalg.LinAlgError, FloatingPointError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"The fit failed ({error}): {OVERFLOW_ADVICE}") from error


class NotPositiveDefiniteError(ValueError):
    """A matrix that had to be positive definite is not."""


def cholesky(B: Array) -> Array:
    """Lower factor of B = Λ Λᵀ; ``B`` (n, n) in Fortran order is overwritten. The upper triangle is left as it was."""
    factor, info = lapack.dpotrf(B, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        raise NotPositiveDefiniteError(f"the leading minor of order {abs(info)} is not positive")
    return np.asarray(factor)


def solve_lower(factor: Array, rhs: Array) -> Array:
    """Λ⁻¹ rhs for a lower factor (n, n) and ``rhs`` (n, k); a Fortran-ordered ``rhs`` is overwritten."""
    if rhs.shape[1] == 0 or rhs.shape[0] == 0:
        return rhs
    return np.asarray(blas.dtrsm(1.0, factor, rhs, lower=1, overwrite_b=1))


def solve_cholesky(factor: Array, rhs: Array) -> Array:
    """(Λ Λᵀ)⁻¹ rhs for a lower factor (n, n) and ``rhs`` (n, k)."""
    if rhs.shape[1] == 0 or rhs.shape[0] == 0:
        return rhs
    solution, _ = lapack.dpotrs(factor, rhs, lower=1)
    return np.asarray(solution)


def solve_semidefinite(A: Array, rhs: Array) -> Array:
    """(A + ρ diag A)⁻¹ rhs for a positive semi-definite A (n, n) with positive diagonal, and ``rhs`` (n,).

    ρ is as small as rounding lets it be. A Newton step with it is a proximal one: where A is singular, as for equal
    rows, it stays short along the directions that A does not see, and has the same fixed point.
    """
    diagonal = np.diag_indices_from(A)
    ridge = RIDGE * A.shape[0]
    while ridge < 1.0:
        raised = np.array(A, order="F")
        raised[diagonal] *= 1.0 + ridge
        try:
            return solve_cholesky(cholesky(raised), rhs[:, None])[:, 0]
        except NotPositiveDefiniteError:
            ridge *= 10.0
    return np.asarray(
        np.linalg.lstsq(A, rhs, rcond=None)[0]
    )  # cancellation has left no semi-definite matrix: the shortest step


def inverse_lower_half(factor: Array) -> Array:
    """Lower triangle of (Λ Λᵀ)⁻¹ from a lower factor (n, n); what stands above the diagonal has no meaning."""
    if factor.shape[0] == 0:
        return factor
    inverse, _ = lapack.dpotri(factor, lower=1)
    return np.asarray(inverse)


def inverse_diagonal(factor: Array) -> Array:
    """Diagonal (n,) of (Λ Λᵀ)⁻¹: squared lengths of the columns of Λ⁻¹, which begin with zeros that are left out.

    A few triangular solves with blocks of columns, because the routine that inverts Λ at once is slow where threads
    have to wait for each other.
    """
    n = factor.shape[0]
    diagonal = np.empty(n)
    for block in np.array_split(np.arange(n), INVERSE_BLOCKS):
        if block.size:
            first = block[0]
            columns = solve_lower(factor[first:, first:], np.eye(n - first, block.size, order="F"))
            diagonal[block] = np.einsum("ij,ij->j", columns, columns)
    return diagonal


def product(A: Array, B: Array) -> Array:
    """A B by the library of the factorizations above: alternating with numpy's own library makes their threads compete."""
    if 0 in (*A.shape, *B.shape):
        return np.zeros((A.shape[0], B.shape[1]))
    transposed = [not matrix.flags.f_contiguous for matrix in (A, B)]
    a, b = (matrix.T if flip else matrix for matrix, flip in zip((A, B), transposed, strict=True))
    return np.asarray(blas.dgemm(1.0, a, b, trans_a=transposed[0], trans_b=transposed[1]))


def narrow_product(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """A B for a B of few columns.

    One product with all of them would rearrange A first, which takes longer than to read it. Up to ``MAX_NARROW`` columns are
    taken one by one, with some rows of A, or of its transpose if that is in C order, at a time, which stay in the cache.
    """
    if B.shape[1] == 1 or B.shape[1] > MAX_NARROW or 0 in A.shape:
        return np.asarray(A @ B)
    by_rows, columns = A.flags.c_contiguous, np.ascontiguousarray(B.T)
    found = np.zeros((B.shape[1], A.shape[0]), dtype=np.result_type(A, B))
    width, n = (A.shape[1], A.shape[0]) if by_rows else A.shape
    step = max(1, NARROW_BYTES // (width * A.itemsize))
    for part in (slice(start, start + step) for start in range(0, n, step)):
        for out, column in zip(found, columns, strict=True):
            if by_rows:
                out[part] = A[part] @ column
            else:
                out += A[:, part] @ column[part]
    return found.T


def log_determinant(factor: Array) -> float:
    """log |Λ Λᵀ| from the lower factor."""
    return float(2.0 * np.log(np.diagonal(factor)).sum())


def eigen_psd(K: Array) -> tuple[Array, Array]:
    """Eigenvalues ω (n,), clipped at zero, and eigenvectors Q (n, n) of a positive semi-definite K = Q diag(ω) Qᵀ."""
    if K.shape[0] == 0:
        return np.empty(0), np.empty((0, 0))
    values, vectors = np.linalg.eigh(K) if K.shape[0] < LONG_ROWS else interruptible(np.linalg.eigh, K)
    return np.maximum(values, 0.0), vectors


def whitening(K: Array, tolerance: float) -> Array:
    """T (n, r) with T'KT = I, from the pivoted Cholesky factor K[P, P] = RᵀR of a positive semi-definite K: T[P] = R⁻¹.

    Rows that would add less than ``tolerance`` times the trace of K have no part in it.
    """
    n = K.shape[0]
    if n == 0:
        return np.empty((0, 0))
    factor, pivots, rank, _ = lapack.dpstrf(np.array(K, order="F"), tol=tolerance * float(np.trace(K)), overwrite_a=1)
    T = np.zeros((n, rank))
    if rank == 0:
        return T
    inverse, _ = lapack.dtrtri(factor[:rank, :rank])
    T[pivots[:rank] - 1] = np.triu(inverse)
    return T


def is_positive_semidefinite(K: Array, tolerance: float) -> bool:
    """Whether the smallest eigenvalue of a symmetric K is at least ``-tolerance`` times its largest diagonal entry."""
    shift = tolerance * max(float(np.abs(np.diagonal(K)).max(initial=0.0)), np.finfo(float).tiny)
    shifted = np.array(K, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    try:
        cholesky(shifted)
    except NotPositiveDefiniteError:
        return False
    return True
