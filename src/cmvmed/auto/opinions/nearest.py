"""The nearest of some points: which are near, and lists of them that can be extended by further points."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cmvmed.core.types import Array, BoolArray, IntArray

SAME_POINT = 1e-12  # rows nearer than this, in units of the median squared distance, are equal
TIE_TOLERANCE = 1e-6  # of a squared distance; rounding, even of features in single precision, must not choose neighbors


def within_nearest(distances: Array, n_neighbors: int) -> BoolArray:
    """Which columns are among the nearest of each row, with all ties; never one at infinite distance."""
    k = min(n_neighbors, distances.shape[1]) - 1
    if k < 0:
        return np.zeros(distances.shape, dtype=bool)
    reach = np.partition(distances, k, axis=1)[:, k : k + 1] * (1.0 + TIE_TOLERANCE) + SAME_POINT
    return np.asarray(distances <= np.minimum(reach, np.finfo(np.float64).max))


def nearest_shares(distances: Array, n_neighbors: int) -> sparse.csr_matrix:
    """Equal shares of the nearest columns of each row; of the columns equal to it alone, if there are any."""
    rows, columns = np.nonzero(within_nearest(distances, n_neighbors))
    equal = distances[rows, columns] <= SAME_POINT
    has_equal = np.zeros(len(distances), dtype=bool)
    has_equal[rows[equal]] = True
    kept = equal | ~has_equal[rows]
    rows, columns = rows[kept], columns[kept]
    share = 1.0 / np.bincount(rows, minlength=len(distances))[rows]
    return sparse.csr_matrix((share, (rows, columns)), shape=distances.shape)


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
        near = within_nearest(self.distances, self.n_neighbors)
        rows, places = np.nonzero(near)
        first = np.concatenate([[0], np.cumsum(near.sum(axis=1))])[:-1]
        slots = np.arange(rows.size) - first[rows]
        shape = (len(near), int(slots.max(initial=-1)) + 1)
        points, distances = np.zeros(shape, dtype=np.intp), np.full(shape, np.inf)
        points[rows, slots] = np.broadcast_to(self.points, near.shape)[rows, places]
        distances[rows, slots] = self.distances[rows, places]
        return NearestLists(points, distances, self.n_neighbors)

    def _padded(self, width: int) -> "NearestLists":
        more = ((0, 0), (0, width - self.points.shape[1]))
        points = np.pad(self.points, more)
        return NearestLists(points, np.pad(self.distances, more, constant_values=np.inf), self.n_neighbors)
