"""The nearest of some points: which are near, and lists of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cmvmed.core.types import Array, IntArray

SAME_POINT = 1e-12  # rows nearer than this, in units of the median squared distance, are equal
GROUP_SIZE = 16  # columns, of which the smallest distance is taken
TIE_TOLERANCE = 1e-6  # of a squared distance; rounding, even of features in single precision, must not choose neighbors
MAX_FLOAT = float(np.finfo(np.float64).max)


def nearest_pairs(distances: Array, n_neighbors: int) -> tuple[IntArray, IntArray]:
    """The rows and columns of the nearest columns of each row, with all ties; never one at infinite distance."""
    columns, near = _lists(distances, n_neighbors)
    rows, places = np.nonzero(np.isfinite(near))
    return rows, columns[rows, places]


def nearest_shares(distances: Array, n_neighbors: int) -> sparse.csr_matrix:
    """Equal shares of the nearest columns of each row; of the columns equal to it alone, if there are any."""
    columns, shares = _list_shares(distances, n_neighbors)
    rows, places = np.nonzero(shares)
    return sparse.csr_matrix((shares[rows, places], (rows, columns[rows, places])), shape=distances.shape)


def nearest_means(distances: Array, n_neighbors: int, values: Array, first: IntArray | None = None) -> Array:
    """The mean of the values of the nearest columns of each row, (n, K): the shares times the values.

    Parameters
    ----------
    distances : (n, m)
    values : (m, K), or more rows if ``first`` is given
    first : (n,), where in ``values`` those of the columns begin, if not at 0 for each row
    """
    columns, shares = _list_shares(distances, n_neighbors)
    if first is not None:
        columns = columns + first[:, None]
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
class NearestLists:
    """The nearest points of some rows, with all ties; lists are filled up with points at infinite distance."""

    points: IntArray  # (n, w)
    distances: Array  # (n, w)
    n_neighbors: int

    @classmethod
    def gather(cls, blocks: Iterable[Array], n_neighbors: int) -> "NearestLists":
        """The lists from the distances (b, m) of some rows at a time to all points."""
        parts = [_lists(block, n_neighbors) for block in blocks]
        width = max((points.shape[1] for points, _ in parts), default=0)
        every = [np.zeros((0, width), dtype=np.intp), *(_padded(points, width, 0) for points, _ in parts)]
        distances = [np.zeros((0, width)), *(_padded(own, width, np.inf) for _, own in parts)]
        return cls(np.concatenate(every), np.concatenate(distances), n_neighbors)

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Each row with each point in its list."""
        rows, places = np.nonzero(np.isfinite(self.distances))
        return rows, self.points[rows, places]

    def shares(self) -> tuple[Array, IntArray, IntArray]:
        """As :func:`nearest_shares`: the shares, and which row has which point."""
        found = nearest_shares(self.distances, self.n_neighbors).tocoo()
        rows = np.asarray(found.row, dtype=np.intp)
        return np.asarray(found.data), rows, self.points[rows, found.col]


def _padded(lists: NDArray[Any], width: int, value: float) -> NDArray[Any]:
    """Lists (n, w) filled up to a width."""
    return np.pad(lists, ((0, 0), (0, width - lists.shape[1])), constant_values=value)
