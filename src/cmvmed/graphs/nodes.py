"""The graph of nearest rows: rows are nodes, each joined with its nearest ones; equal rows are one node."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from cmvmed.data.row_hashes import numbers_of_equal, row_contents
from cmvmed.graphs.search import SAME_POINT, NearestPairs, nearest_means
from cmvmed.numerics.kernels import row_blocks, squared_distances
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.view_rows import ViewData

RESOLUTION = 1e-7  # of features in units of the median distance; beyond, they are rounding
ROUNDING_EDGE = 0.118  # keeps common numbers away from the edges of rounding


@dataclass(frozen=True)
class Nodes:
    """The nodes of a graph among the training rows that have one of some views.

    ``place[i]`` says for each node where it is in the ``train`` of view i, -1 if it lacks that view.
    """

    views: tuple[ViewData, ...]
    indices: tuple[int, ...]  # which of the fit's views those are
    members: tuple[IntArray, ...]  # per view, the training rows that have it, ascending
    place: tuple[IntArray, ...]
    present: BoolArray  # (n,) which training rows have one of the views
    node_of_row: IntArray  # (n,) the node of each training row, -1 if it has none
    weights: Array  # (m,) sum of the weights of a node's rows
    n_neighbors: int

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.weights.size

    def distances(self, points: Sequence[Matrix], rows: Sequence[IntArray], n_points: int) -> Array:
        """Mean over the views that both have of γ‖x - x'‖², (n_points, m); infinite if they have none in common.

        Rows that do not have the same views are not equal, so they keep a distance.

        Parameters
        ----------
        points : per view, points in the form of its training rows
        rows : per view, which of the ``n_points`` points those are
        """
        nodes = zip(self._nodes_with_view, points, strict=True)
        return self._mean((squared_distances(own, train) for (_, train), own in nodes), rows, n_points)

    def distances_of_new(self, matrices: Sequence[Matrix], rows: Sequence[IntArray], n_points: int) -> Array:
        """The same from points as the user gives them, by view of the fit; ``rows`` are those of the graph's views."""
        return self._mean(self.squared_of_new(matrices, rows), rows, n_points)

    def squared_of_new(self, matrices: Sequence[Matrix], rows: Sequence[IntArray]) -> Iterator[Array]:
        """Per view of the graph ‖x - x'‖² between those of the points that have it and the nodes that have it."""
        for view, i, own, (_, train) in zip(self.views, self.indices, rows, self._nodes_with_view, strict=True):
            yield squared_distances(view.preprocessor.transform(matrices[i][own]), train)

    def _mean(self, squared: Iterable[Array], rows: Sequence[IntArray], n_points: int) -> Array:
        """The mean distances, from the squared distances of each view between the points and the nodes that have it."""
        if all(index.size in (0, n_points) for index in rows) and all(
            nodes.size == self.size for nodes, _ in self._nodes_with_view
        ):
            return self._mean_of_whole_views(squared, [index.size > 0 for index in rows], n_points)
        total, count = np.zeros((2, n_points, self.size))
        for view, (nodes, _), between, index in zip(self.views, self._nodes_with_view, squared, rows, strict=True):
            if index.size and nodes.size:
                pairs = np.ix_(index, nodes)
                total[pairs] += view.kernel.gamma * between
                count[pairs] += 1.0
        if count.min(initial=np.inf) < len(self.views):
            of_points = np.bincount(np.concatenate(rows), minlength=n_points)
            of_nodes = np.sum([place >= 0 for place in self.place], axis=0)
            unlike = (count < of_points[:, None]) | (count < of_nodes)
            total[unlike] = np.maximum(total[unlike], 2.0 * SAME_POINT * len(self.views))
        return np.divide(total, count, out=np.full_like(total, np.inf), where=count > 0.0)

    def _mean_of_whole_views(self, squared: Iterable[Array], used: Sequence[bool], n_points: int) -> Array:
        """The mean over views that all points and nodes have; no point has the others."""
        total, count = np.zeros((n_points, self.size)), sum(used)
        if count == 0:
            return np.full_like(total, np.inf)
        for view, between, has_view in zip(self.views, squared, used, strict=True):
            if has_view:
                total += (view.kernel.gamma / count) * between
        if count < len(self.views):  # points and nodes do not have the same views
            np.maximum(total, 2.0 * SAME_POINT * len(self.views) / count, out=total)
        return total

    def features(self, i: int) -> Matrix:
        """The features, by view i of the graph, of the nodes that have it."""
        return self._nodes_with_view[i][1]

    @cached_property
    def _nodes_with_view(self) -> tuple[tuple[IntArray, Matrix], ...]:
        """Per view, the nodes that have it and their features."""
        found = []
        for view, place in zip(self.views, self.place, strict=True):
            nodes = np.flatnonzero(place >= 0)
            own = place[nodes]
            whole = np.array_equal(own, np.arange(view.train.shape[0]))
            found.append((nodes, view.train if whole else view.train[own]))
        return tuple(found)

    def chosen(self, nodes: IntArray) -> "Nodes":
        """Some of the nodes alone."""
        number = np.full(self.size + 1, -1)
        number[nodes] = np.arange(nodes.size)
        place = tuple(own[nodes] for own in self.place)
        return replace(self, place=place, node_of_row=number[self.node_of_row], weights=self.weights[nodes])

    def of_nodes(self, row_values: Array) -> Array:
        """(m, k) for the nodes from (n, k) for the training rows, which is the same for equal rows."""
        own = np.flatnonzero(self.node_of_row >= 0)
        values = np.empty((self.size, row_values.shape[1]))
        values[self.node_of_row[own]] = row_values[own]
        return values

    def of_rows(self, node_values: Array) -> Array:
        """(n, k) for the training rows from (m, k): a row has what its node has, zero without any of the views.

        A row of zero weight is no node: it has the mean of its nearest nodes.
        """
        return np.asarray(self.row_shares @ node_values)

    @cached_property
    def row_shares(self) -> sparse.csr_matrix:
        """How much of each node a training row has, (n, m): its own node, or equal shares of its nearest ones."""
        own = np.flatnonzero(self.node_of_row >= 0)
        shares, pairs = self.nearest_of_rows.shares()
        values = np.concatenate([np.ones(own.size), shares])
        rows = np.concatenate([own, self.without_node[pairs.rows]])
        columns = np.concatenate([self.node_of_row[own], pairs.points])
        return sparse.csr_matrix((values, (rows, columns)), shape=(self.node_of_row.size, self.size))

    @property
    def without_node(self) -> IntArray:
        """The training rows that have one of the views but are no nodes."""
        return np.flatnonzero(self.present & (self.node_of_row < 0))

    @cached_property
    def nearest_of_rows(self) -> NearestPairs:
        """The nearest nodes of the rows that are no nodes."""
        blocks = (self.distances_of(self.without_node[b]) for b in row_blocks(self.without_node.size, self.size))
        return NearestPairs.gather(blocks, self.n_neighbors)

    @cached_property
    def nearest_of_nodes(self) -> NearestPairs:
        """The nearest nodes of each node."""
        return NearestPairs.gather(self._distances_to_others(), self.n_neighbors)

    def _distances_to_others(self) -> Iterator[Array]:
        for chosen, distances in self._blocks():
            distances[np.arange(chosen.size), chosen] = np.inf
            yield distances

    def distances_of(self, chosen: IntArray) -> Array:
        """Distances between some training rows and all nodes, (c, m)."""
        points, rows = [], []
        for view, members in zip(self.views, self.members, strict=True):
            own = np.flatnonzero(np.isin(chosen, members))
            points.append(view.train[np.searchsorted(members, chosen[own])])
            rows.append(own)
        return self.distances(points, rows, chosen.size)

    @cached_property
    def adjacency(self) -> sparse.csr_matrix:
        """Which nodes are joined, (m, m): each with its nearest, in either direction."""
        i, j = self.nearest_of_nodes.rows, self.nearest_of_nodes.points
        directed = sparse.csr_matrix((np.ones(i.size), (i, j)), shape=(self.size, self.size))
        return sparse.csr_matrix(directed.maximum(directed.T))

    @cached_property
    def root_degrees(self) -> Array:
        """Square roots of the nodes' degrees, (m,); 1 for a node without neighbors."""
        degrees = np.asarray(self.adjacency.sum(axis=1)).ravel()
        return np.asarray(np.sqrt(np.maximum(degrees, 1.0)))

    @cached_property
    def normalized_adjacency(self) -> sparse.csr_matrix:
        """S = D^(-1/2) W D^(-1/2), (m, m), whose eigenvalues are between -1 and 1."""
        scale = sparse.diags(1.0 / self.root_degrees)
        return sparse.csr_matrix(scale @ self.adjacency @ scale)

    def shifted_laplacian(self, regularization: float) -> sparse.csr_matrix:
        """Λ + εI = (1 + ε)I - S, (m, m)."""
        return sparse.csr_matrix((1.0 + regularization) * sparse.identity(self.size) - self.normalized_adjacency)

    def distances_between(self, others: IntArray) -> Iterator[tuple[IntArray, Array]]:
        """Some nodes at a time, with their distances to other nodes."""
        for chosen, distances in self._blocks():
            yield chosen, distances[:, others]

    def _blocks(self) -> Iterator[tuple[IntArray, Array]]:
        """Some nodes at a time, with their distances to all nodes."""
        for block in row_blocks(self.size, self.size):
            chosen = np.arange(block.start, block.stop)
            points, rows = [], []
            for view, place in zip(self.views, self.place, strict=True):
                own = np.flatnonzero(place[chosen] >= 0)
                points.append(view.train[place[chosen[own]]])
                rows.append(own)
            yield chosen, self.distances(points, rows, chosen.size)


@dataclass(frozen=True)
class GraphScorer:
    """Scores of new rows: the mean of those of their nearest nodes, zero for rows without any of the views."""

    nodes: Nodes
    node_scores: Array  # (m, K)

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that new rows are compared with at a time: none, since that is done for some of them at a time."""
        return 0

    def scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Scores (m, K) of rows given by view, with which rows have which view."""
        nodes, n = self.nodes, matrices[0].shape[0]
        scores = np.zeros((n, self.node_scores.shape[1]))
        for block in row_blocks(n, nodes.size):
            here = np.arange(block.start, block.stop)
            rows = [np.flatnonzero(present[i][here]) for i in nodes.indices]
            distances = nodes.distances_of_new([matrix[here] for matrix in matrices], rows, here.size)
            scores[here] = nearest_means(distances, nodes.n_neighbors, self.node_scores)
        return scores


def find_nodes(views: Sequence[ViewData], indices: Sequence[int], n_L: int, weights: Array, n_neighbors: int) -> Nodes:
    """The nodes of the graph of some views: one for each distinct row.

    Parameters
    ----------
    indices : which of the fit's views those are
    n_L : number of rows of the labeled block
    weights : (n,), sample weights of the training rows; those of the labeled block come first
    """
    members = tuple(np.concatenate([view.rows_L, n_L + view.rows_U]) for view in views)
    contents = _contents_of_rows(views, members, weights.size)
    present = np.zeros(weights.size, dtype=bool)
    for own in members:
        present[own] = True
    candidates = np.flatnonzero(present & (weights > 0.0))
    node_of_row = np.full(weights.size, -1)
    node_of_row[candidates] = numbers_of_equal([contents[row] for row in candidates.tolist()])
    _, first = np.unique(node_of_row[candidates], return_index=True)
    place = []
    for own in members:
        where = np.full(weights.size, -1)
        where[own] = np.arange(own.size)
        place.append(where[candidates[first]])
    mass = np.zeros(first.size)
    np.add.at(mass, node_of_row[candidates], weights[candidates])
    return Nodes(tuple(views), tuple(indices), members, tuple(place), present, node_of_row, mass, n_neighbors)


def _contents_of_rows(views: Sequence[ViewData], members: Sequence[IntArray], n: int) -> list[tuple[bytes | None, ...]]:
    """For each of the n rows its features in every view, None in a view that it lacks."""
    columns = []
    for view, own in zip(views, members, strict=True):
        column: list[bytes | None] = [None] * n
        for row, content in zip(own.tolist(), row_contents(_rounded(view)), strict=True):
            column[row] = content
        columns.append(column)
    return list(zip(*columns, strict=True))


def _rounded(view: ViewData) -> Matrix:
    """The view's training rows as multiples of the resolution."""
    rows = view.train * (np.sqrt(view.kernel.gamma) / RESOLUTION)
    if is_sparse(rows):
        rows.data = np.round(rows.data + ROUNDING_EDGE)
        return rows
    return np.asarray(np.round(rows + ROUNDING_EDGE))
