"""Distances between points and the nodes of a graph, by the views that both have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.graphs.search import SAME_POINT
from cmvmed.numerics.kernels import squared_distances
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix


@dataclass(frozen=True)
class NodeDistances:
    """The mean over the views that point and node have of γ‖x - x'‖²; infinite if they have none in common.

    A point and a node that do not have the same views are not equal, so they keep a distance.
    """

    size: int  # m, number of nodes
    gammas: tuple[float, ...]  # per view of the graph
    nodes: tuple[IntArray, ...]  # per view, the nodes that have it
    features: tuple[Matrix, ...]  # per view, the features of these nodes

    @classmethod
    def of(cls, rows: Sequence[Matrix], place: Sequence[IntArray], gammas: Sequence[float]) -> "NodeDistances":
        """From the rows of each view, and where each node is among them, -1 if it lacks the view."""
        nodes = [np.flatnonzero(own >= 0) for own in place]
        features = []
        for matrix, own, has in zip(rows, place, nodes, strict=True):
            whole = np.array_equal(own[has], np.arange(matrix.shape[0]))
            features.append(matrix if whole else matrix[own[has]])
        return cls(place[0].size, tuple(gammas), tuple(nodes), tuple(features))

    def of_points(self, points: Iterable[Matrix], rows: Sequence[IntArray], n_points: int) -> Array:
        """Distances (n_points, m).

        Parameters
        ----------
        points : per view, points in the form of its nodes
        rows : per view, which of the ``n_points`` points those are
        """
        return self.mean(self.squared(points), rows, n_points)

    def squared(self, points: Iterable[Matrix]) -> Iterable[Array]:
        """Per view ‖x - x'‖² between points that have it and the nodes that have it."""
        return (squared_distances(own, train) for own, train in zip(points, self.features, strict=True))

    def mean(self, squared: Iterable[Array], rows: Sequence[IntArray], n_points: int) -> Array:
        """The mean distances, from the squared distances of each view between the points and the nodes that have it."""
        if all(index.size in (0, n_points) for index in rows):
            return self._mean_of_like_points(squared, [index.size > 0 for index in rows], n_points)
        total, count = np.zeros((2, n_points, self.size))
        for gamma, nodes, between, index in zip(self.gammas, self.nodes, squared, rows, strict=True):
            if index.size and nodes.size:
                pairs = np.ix_(index, nodes)
                total[pairs] += gamma * between
                count[pairs] += 1.0
        if count.min(initial=np.inf) < len(self.gammas):
            of_points = np.bincount(np.concatenate(rows), minlength=n_points)
            unlike = (count < of_points[:, None]) | (count < self._views_of_nodes)
            total[unlike] = np.maximum(total[unlike], 2.0 * SAME_POINT * len(self.gammas))
        return np.divide(total, count, out=np.full_like(total, np.inf), where=count > 0.0)

    @property
    def _views_of_nodes(self) -> IntArray:
        """Number of views of each node, (m,)."""
        return np.bincount(np.concatenate(self.nodes), minlength=self.size)

    def _mean_of_like_points(self, squared: Iterable[Array], used: Sequence[bool], n_points: int) -> Array:
        """The mean for points that all have the same views."""
        total, count = np.zeros((n_points, self.size)), np.zeros(self.size)
        for gamma, nodes, between, has_view in zip(self.gammas, self.nodes, squared, used, strict=True):
            if has_view:
                columns = slice(None) if nodes.size == self.size else nodes
                total[:, columns] += gamma * between
                count[nodes] += 1.0
        unlike = np.flatnonzero((count < sum(used)) | (count < self._views_of_nodes))
        if unlike.size:
            total[:, unlike] = np.maximum(total[:, unlike], 2.0 * SAME_POINT * len(self.gammas))
        total /= np.maximum(count, 1.0)
        total[:, count == 0.0] = np.inf
        return total

    def has_view(self) -> list[BoolArray]:
        """Per view, which nodes have it, (m,)."""
        return [np.isin(np.arange(self.size), own) for own in self.nodes]
