"""The nearest of some points: which are near, and what they have on average."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cmvmed.numerics.types import Array, IntArray

SAME_POINT = 1e-12  # rows nearer than this, in units of the median squared distance, are equal
GROUP_SIZE = 16  # columns, of which the smallest distance is taken
WIDE_LISTS = 8  # times as many points as neighbors, from which on lists of equal length would waste memory
TIE_TOLERANCE = 1e-6  # of a squared distance; rounding, even of features in single precision, must not choose neighbors
MAX_FLOAT = float(np.finfo(np.float64).max)


def nearest_shares(distances: Array, n_neighbors: int) -> sparse.csr_matrix:
    """Equal shares of the nearest columns of each row; of the columns equal to it alone, if there are any."""
    return _as_sparse(*_list_shares(distances, n_neighbors), distances.shape[1])


def _as_sparse(columns: IntArray, shares: Array, n_columns: int) -> sparse.csr_matrix:
    rows, places = np.nonzero(shares)
    found = (shares[rows, places], (rows, columns[rows, places]))
    return sparse.csr_matrix(found, shape=(len(shares), n_columns))


def nearest_means(distances: Array, n_neighbors: int, values: Array) -> Array:
    """The mean of the values of the nearest columns of each row, (n, K): the shares times the values.

    Parameters
    ----------
    distances : (n, m)
    values : (m, K)
    """
    columns, shares = _list_shares(distances, n_neighbors)
    if columns.shape[1] > WIDE_LISTS * n_neighbors:  # some row has many ties
        return np.asarray(_as_sparse(columns, shares, len(values)) @ values)
    return np.asarray(np.einsum("ij,ijk->ik", shares, values[columns]))


def _list_shares(distances: Array, n_neighbors: int) -> tuple[IntArray, Array]:
    """For each row a list of columns (n, w) and their shares, zero for those that are not among the nearest."""
    columns, near = _lists(distances, n_neighbors)
    used, equal = near < np.inf, near <= SAME_POINT
    if equal.any():
        used &= equal | ~equal.any(axis=1, keepdims=True)
    return columns, used / np.maximum(used.sum(axis=1, keepdims=True), 1)


def _lists(distances: Array, n_neighbors: int) -> tuple[IntArray, Array]:
    """For each row the nearest columns (n, w), and others, with their distances, infinite for the others.

    The smallest of each of several groups of columns bound how far the nearest can be, so that few pairs are compared.
    """
    n, m = distances.shape
    k = min(n_neighbors, m) - 1
    if k < 0 or n == 0:
        return np.zeros((n, 0), dtype=np.intp), np.zeros((n, 0))
    smallest, width = distances, m // GROUP_SIZE
    if width > k:
        smallest = distances[:, : width * GROUP_SIZE].reshape(n, GROUP_SIZE, width).min(axis=1)
    found = np.flatnonzero(distances <= _reach(smallest, k))
    rows = found // m
    counts = np.bincount(rows, minlength=n)
    places = np.arange(max(counts.max(), k + 1))
    filled = places < counts[:, None]
    columns, near = np.zeros(filled.shape, dtype=np.intp), np.full(filled.shape, np.inf)
    columns[filled], near[filled] = found - rows * m, distances.ravel()[found]
    near[near > _reach(near, k)] = np.inf
    return columns, near


def _reach(distances: Array, k: int) -> Array:
    """The k-th smallest of each row, counted from 0, with what rounding may add to it, (n, 1)."""
    kth = np.maximum(np.partition(distances, k, axis=1)[:, k : k + 1], 0.0)  # rounding may make distances negative
    reach = kth * (1.0 + TIE_TOLERANCE) + SAME_POINT
    return np.asarray(np.minimum(reach, MAX_FLOAT))


@dataclass(frozen=True)
class NearestPairs:
    """Rows and their nearest points, with all ties, by ascending rows."""

    rows: IntArray  # (t,)
    points: IntArray  # (t,)
    distances: Array  # (t,)

    @classmethod
    def gather(cls, blocks: Iterable[Array], n_neighbors: int) -> "NearestPairs":
        """The pairs from the distances (b, m) of some rows at a time to all points."""
        rows, points, distances, start = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)], [np.zeros(0)], 0
        for block in blocks:
            columns, near = _lists(block, n_neighbors)
            i, places = np.nonzero(np.isfinite(near))
            rows.append(start + i)
            points.append(columns[i, places])
            distances.append(near[i, places])
            start += len(block)
        return cls(np.concatenate(rows), np.concatenate(points), np.concatenate(distances))

    def shares(self) -> "tuple[Array, NearestPairs]":
        """As :func:`nearest_shares`: equal shares of the points of each row, and the pairs that have one."""
        equal, n_rows = self.distances <= SAME_POINT, int(self.rows.max(initial=-1)) + 1
        has_equal = np.bincount(self.rows[equal], minlength=n_rows) > 0
        kept = equal | ~has_equal[self.rows]
        rows = self.rows[kept]
        shares = 1.0 / np.bincount(rows, minlength=n_rows)[rows]
        return shares, NearestPairs(rows, self.points[kept], self.distances[kept])
