"""The nearest of some points: which are near, and lists of them that can be extended by further points."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cmvmed.core.types import Array, BoolArray, IntArray

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
        found = cls(np.empty((0, 0), dtype=np.intp), np.empty((0, 0)), n_neighbors)
        parts = [cls(np.arange(block.shape[1])[None, :], block, n_neighbors)._shortest() for block in blocks]
        return found.followed_by(*parts)

    def followed_by(self, *others: "NearestLists") -> "NearestLists":
        """The lists of these rows and then of others."""
        width = max(part.points.shape[1] for part in (self, *others))
        padded = [part._padded(width) for part in (self, *others)]
        points, distances = (np.concatenate([getattr(p, name) for p in padded]) for name in ("points", "distances"))
        return NearestLists(points, distances, self.n_neighbors)

    def with_points(self, points: IntArray, distances: Array) -> "NearestLists":
        """The lists if there are also other points (e,), at these distances (n, e)."""
        every = np.concatenate([self.points, np.broadcast_to(points, distances.shape)], axis=1)
        found = NearestLists(every, np.concatenate([self.distances, distances], axis=1), self.n_neighbors)
        return found._shortest()

    def of_rows(self, rows: IntArray | BoolArray) -> "NearestLists":
        """The lists of some of the rows."""
        return NearestLists(self.points[rows], self.distances[rows], self.n_neighbors)

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Each row with each point in its list."""
        rows, places = np.nonzero(np.isfinite(self.distances))
        return rows, self.points[rows, places]

    def shares(self) -> tuple[Array, IntArray, IntArray]:
        """As :func:`nearest_shares`: the shares, and which row has which point."""
        found = nearest_shares(self.distances, self.n_neighbors).tocoo()
        rows = np.asarray(found.row, dtype=np.intp)
        return np.asarray(found.data), rows, self.points[rows, found.col]

    def _shortest(self) -> "NearestLists":
        """The lists without points that are too far."""
        rows, places = nearest_pairs(self.distances, self.n_neighbors)
        counts = np.bincount(rows, minlength=len(self.distances))
        slots = np.arange(rows.size) - (np.cumsum(counts) - counts)[rows]
        shape = (len(self.distances), int(counts.max(initial=0)))
        points, distances = np.zeros(shape, dtype=np.intp), np.full(shape, np.inf)
        points[rows, slots] = np.broadcast_to(self.points, self.distances.shape)[rows, places]
        distances[rows, slots] = self.distances[rows, places]
        return NearestLists(points, distances, self.n_neighbors)

    def _padded(self, width: int) -> "NearestLists":
        more = ((0, 0), (0, width - self.points.shape[1]))
        points = np.pad(self.points, more)
        return NearestLists(points, np.pad(self.distances, more, constant_values=np.inf), self.n_neighbors)
