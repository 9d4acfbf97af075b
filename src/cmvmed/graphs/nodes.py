"""The graph of nearest rows: rows are nodes, each joined with its nearest ones; equal rows are one node."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from cmvmed.data.row_hashes import numbers_of_equal, numbers_of_joined, row_contents
from cmvmed.graphs.distances import NodeDistances
from cmvmed.graphs.search import NearestPairs
from cmvmed.numerics.kernel_expansions import are_moderate, extend, extended_centers
from cmvmed.numerics.kernels import row_blocks
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.view_rows import ViewData

RESOLUTION = 1e-7  # of features in units of the median distance; beyond, they are rounding
ROUNDING_EDGES = (0.118, 0.618)  # of two grids; the first keeps common numbers away from the edges


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

    @cached_property
    def between(self) -> NodeDistances:
        """The distances between points and nodes."""
        return NodeDistances.of(
            [view.train for view in self.views], self.place, [view.kernel.gamma for view in self.views]
        )

    def chosen(self, nodes: IntArray) -> "Nodes":
        """Some of the nodes alone."""
        number = np.full(self.size + 1, -1)
        number[nodes] = np.arange(nodes.size)
        place = tuple(own[nodes] for own in self.place)
        return replace(self, place=place, node_of_row=number[self.node_of_row], weights=self.weights[nodes])

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
        return self.between.of_points(points, rows, chosen.size)

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

    @property
    def _joined_views(self) -> Array | None:
        """All views of the nodes side by side, (m, d), so scaled that squared distances are those of the graph.

        None if some node lacks a view, or if rows are sparse or too large for this.
        """
        between = self.between
        if any(own.shape[0] < self.size or is_sparse(own) for own in between.features):
            return None
        scales = np.sqrt(np.array(between.gammas) / len(between.gammas))
        joined = np.hstack([scale * own for scale, own in zip(scales, between.features, strict=True)])
        return joined if are_moderate(joined, 1.0) else None

    def _blocks(self) -> Iterator[tuple[IntArray, Array]]:
        """Some nodes at a time, with their distances to all nodes."""
        joined = self._joined_views
        if joined is not None:
            every = extended_centers(-1.0, joined)
            for block in row_blocks(self.size, self.size):
                yield np.arange(block.start, block.stop), extend(joined[block]) @ every
            return
        for block in row_blocks(self.size, self.size):
            chosen = np.arange(block.start, block.stop)
            points, rows = [], []
            for view, place in zip(self.views, self.place, strict=True):
                own = np.flatnonzero(place[chosen] >= 0)
                points.append(view.train[place[chosen[own]]])
                rows.append(own)
            yield chosen, self.between.of_points(points, rows, chosen.size)


def find_nodes(views: Sequence[ViewData], indices: Sequence[int], weights: Array, n_neighbors: int) -> Nodes:
    """The nodes of the graph of some views: one for each distinct row.

    Parameters
    ----------
    indices : which of the fit's views those are
    weights : (n,), sample weights of the training rows
    """
    members = tuple(view.rows for view in views)
    present = np.zeros(weights.size, dtype=bool)
    for own in members:
        present[own] = True
    candidates = np.flatnonzero(present & (weights > 0.0))
    node_of_row = np.full(weights.size, -1)
    grids = [_contents_of_rows(views, members, weights.size, edge) for edge in ROUNDING_EDGES]
    node_of_row[candidates] = numbers_of_joined(
        *(numbers_of_equal([contents[row] for row in candidates.tolist()]) for contents in grids)
    )
    _, first = np.unique(node_of_row[candidates], return_index=True)
    place = []
    for own in members:
        where = np.full(weights.size, -1)
        where[own] = np.arange(own.size)
        place.append(where[candidates[first]])
    mass = np.zeros(first.size)
    np.add.at(mass, node_of_row[candidates], weights[candidates])
    return Nodes(tuple(views), tuple(indices), members, tuple(place), present, node_of_row, mass, n_neighbors)


def _contents_of_rows(
    views: Sequence[ViewData], members: Sequence[IntArray], n: int, edge: float
) -> list[tuple[bytes | None, ...]]:
    """For each of the n rows its features in every view, None in a view that it lacks."""
    columns = []
    for view, own in zip(views, members, strict=True):
        column: list[bytes | None] = [None] * n
        for row, content in zip(own.tolist(), row_contents(_rounded(view, edge)), strict=True):
            column[row] = content
        columns.append(column)
    return list(zip(*columns, strict=True))


def _rounded(view: ViewData, edge: float) -> Matrix:
    """The view's training rows as multiples of the resolution."""
    rows = view.train * (np.sqrt(view.kernel.gamma) / RESOLUTION)
    if is_sparse(rows):
        rows.data = np.round(rows.data + edge)
        return rows
    return np.asarray(np.round(rows + edge))
