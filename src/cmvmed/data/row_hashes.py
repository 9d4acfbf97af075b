"""Which rows, and which tables, are equal."""

from hashlib import blake2b
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import IntArray, Matrix


def row_contents(matrix: Matrix) -> list[bytes]:
    """The features of each row as bytes, which are equal if the rows are."""
    if not is_sparse(matrix):
        return [row.tobytes() for row in matrix + 0.0]  # which makes -0.0 equal to 0.0
    canonical = matrix.tocsr().copy()
    canonical.sum_duplicates()
    canonical.eliminate_zeros()
    return [
        canonical.indices[start:end].tobytes() + canonical.data[start:end].tobytes()
        for start, end in pairwise(canonical.indptr.tolist())
    ]


def numbers_of_equal(contents: list[tuple[bytes | None, ...]]) -> IntArray:
    """A number for each row, the same for equal contents, counted from 0 in the order of the rows."""
    seen: dict[tuple[bytes | None, ...], int] = {}
    return np.array([seen.setdefault(content, len(seen)) for content in contents], dtype=np.intp)


def numbers_of_joined(first: IntArray, second: IntArray) -> IntArray:
    """A number for each row, the same for rows that have the same in one of two numberings, counted as above.

    Of rows rounded to two grids: values that an edge of one grid separates are inside a cell of the other.
    """
    n_first, n = int(first.max(initial=-1)) + 1, int(first.max(initial=-1) + second.max(initial=-1)) + 2
    pairs = sparse.coo_array((np.ones(first.size), (first, n_first + second)), shape=(n, n))
    component = connected_components(pairs, directed=False)[1][first]
    seen: dict[int, int] = {}
    return np.array([seen.setdefault(number, len(seen)) for number in component.tolist()], dtype=np.intp)


def checksum(matrix: Matrix) -> bytes:
    """A checksum of an array or sparse matrix; equal ones are of equal shape, type and content."""
    parts = (matrix.data, matrix.indices, matrix.indptr) if is_sparse(matrix) else (matrix,)
    digest = blake2b(repr((matrix.shape, *(part.dtype.str for part in parts))).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()
