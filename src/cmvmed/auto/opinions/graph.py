"""The graph of nearest rows and its kernel.

Rows are nodes, each joined with its nearest ones; equal rows are one node. With the normalized Laplacian Λ of the graph
and its degrees D, the kernel

    H = D^(-1/2) (Λ + εI)^(-2) D^(-1/2)

makes functions smooth along the graph. Its leading eigenvector is the constant, which centering removes, so that the
kernel of a new row is the mean of those of its nearest nodes. Only the columns of the labeled rows are computed, by
conjugate gradients: the condition number of Λ + εI is at most (2 + ε)/ε, whatever the number of rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from cmvmed.core.kernels import row_blocks, squared_distances
from cmvmed.core.linalg import is_sparse
from cmvmed.core.types import Array, BoolArray, IntArray, Matrix
from cmvmed.data.contents import numbers_of_equal, row_contents
from cmvmed.data.view_data import ViewData

SAME_POINT = 1e-12  # rows nearer than this, in units of the median squared distance, are equal
TIE_TOLERANCE = 1e-6  # of a squared distance; rounding, even of features in single precision, must not choose neighbors
RESOLUTION = 1e-7  # of features in units of the median distance; beyond, they are rounding
ROUNDING_EDGE = 0.118  # keeps common numbers away from the edges of rounding
CG_TOLERANCE = 1e-10  # of a residual, relative to the right-hand side
MAX_CG_STEPS = 500


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

    def of_nodes(self, row_values: Array) -> Array:
        """(m, k) for the nodes from (n, k) for the training rows, which is the same for equal rows."""
        own = np.flatnonzero(self.node_of_row >= 0)
        values = np.empty((self.size, row_values.shape[1]))
        values[self.node_of_row[own]] = row_values[own]
        return values

    def of_rows(self, node_values: Array) -> Array:
        """(n, k) for the training rows from (m, k): a row has what its node has, zero without any of the views.

        A row of zero weight is no node, nor is every row if they are many: it has the mean of its nearest nodes.
        """
        values = np.where(self.node_of_row[:, None] >= 0, node_values[self.node_of_row], 0.0)
        without_node = np.flatnonzero(self.present & (self.node_of_row < 0))
        for block in row_blocks(without_node.size, self.size):
            loose = without_node[block]
            points, rows = [], []
            for view, members in zip(self.views, self.members, strict=True):
                own = np.flatnonzero(np.isin(loose, members))
                points.append(view.train[np.searchsorted(members, loose[own])])
                rows.append(own)
            distances = self.distances(points, rows, loose.size)
            values[loose] = nearest_shares(distances, self.n_neighbors) @ node_values
        return np.asarray(values)

    @cached_property
    def adjacency(self) -> sparse.csr_matrix:
        """Which nodes are joined, (m, m): each with its nearest, in either direction."""
        rows, columns = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
        for chosen, distances in self._blocks():
            distances[np.arange(chosen.size), chosen] = np.inf
            i, j = np.nonzero(within_nearest(distances, self.n_neighbors))
            rows.append(chosen[i])
            columns.append(j)
        i, j = np.concatenate(rows), np.concatenate(columns)
        directed = sparse.csr_matrix((np.ones(i.size), (i, j)), shape=(self.size, self.size))
        return sparse.csr_matrix(directed.maximum(directed.T))

    @cached_property
    def root_degrees(self) -> Array:
        """Square roots of the nodes' degrees, (m,); 1 for a node without neighbors."""
        degrees = np.asarray(self.adjacency.sum(axis=1)).ravel()
        return np.asarray(np.sqrt(np.maximum(degrees, 1.0)))

    def shifted_laplacian(self, regularization: float) -> sparse.csr_matrix:
        """Λ + εI, (m, m)."""
        scale = sparse.diags(1.0 / self.root_degrees)
        normalized = scale @ self.adjacency @ scale
        return sparse.csr_matrix((1.0 + regularization) * sparse.identity(self.size) - normalized)

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
            scores[here] = nearest_shares(distances, nodes.n_neighbors) @ self.node_scores
        return scores


@dataclass(frozen=True)
class GraphKernel:
    """The columns of the labeled rows of a centered and scaled graph kernel."""

    nodes: Nodes
    nodes_L: IntArray  # (l,) the node of each labeled row, -1 if it has none
    columns: Array  # (m, l)

    @property
    def present(self) -> BoolArray:
        """Whether each training row has one of the graph's views, (n,)."""
        return self.nodes.present

    def gram(self) -> Array:
        """The kernel of the labeled rows, (l, l), with zeros for those without node."""
        return np.where(self.nodes_L[:, None] >= 0, self.columns[self.nodes_L], 0.0)

    def scores(self, coefficients: Array) -> Array:
        """Scores (n, F) of all training rows, for coefficients (l, F) of the labeled rows."""
        return self.nodes.of_rows(self.columns @ coefficients)

    def scorer(self, coefficients: Array) -> GraphScorer:
        """The scores of new rows for coefficients (l, K)."""
        return GraphScorer(self.nodes, self.columns @ coefficients)


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


def graph_kernel(nodes: Nodes, labeled: IntArray, weights_L: Array, regularization: float) -> GraphKernel:
    """The kernel H of the graph, its columns of the labeled rows centered and scaled to a mean diagonal of one.

    Parameters
    ----------
    labeled : (l,), the training rows that opinions learn from
    weights_L : (l,), their weights in the mean diagonal
    regularization : ε
    """
    nodes_L, m = nodes.node_of_row[labeled], nodes.size
    root, shifted = nodes.root_degrees, nodes.shifted_laplacian(regularization)
    distinct, column = np.unique(nodes_L[nodes_L >= 0], return_inverse=True)
    right = np.zeros((m, distinct.size + 1))
    right[distinct, np.arange(distinct.size)] = 1.0 / root[distinct]
    mass = nodes.weights / nodes.weights.sum() if nodes.weights.any() else np.full(m, 1.0 / max(m, 1))
    right[:, -1] = mass / root
    H = _solve(shifted, _solve(shifted, right)) / root[:, None]
    means = H[:, -1]  # mean of a node's kernel over all rows
    centered = H[:, :-1] - means[:, None] - means[distinct] + mass @ means
    has_node = nodes_L >= 0
    w, diagonal = weights_L[has_node], centered[nodes_L[has_node], column]
    mean = float(w @ diagonal / w.sum()) if w.sum() > 0.0 else 0.0
    columns = np.zeros((m, labeled.size))
    negligible = 1e-9 * float(np.abs(H).max(initial=0.0))
    columns[:, has_node] = centered[:, column] / (mean if mean > negligible else 1.0)
    return GraphKernel(nodes, nodes_L, columns)


def _solve(A: sparse.csr_matrix, B: Array) -> Array:
    """A⁻¹ B for a sparse positive definite A (m, m) and B (m, k), by conjugate gradients of all columns together."""
    X, R = np.zeros_like(B), B.copy()
    P, square = R.copy(), np.einsum("ij,ij->j", R, R)
    enough = CG_TOLERANCE**2 * square
    for _ in range(MAX_CG_STEPS):
        if (square <= enough).all():
            break
        AP = A @ P
        curvature = np.einsum("ij,ij->j", P, AP)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=curvature > 0.0)
        X += step * P
        R -= step * AP
        last, square = square, np.einsum("ij,ij->j", R, R)
        P = R + np.divide(square, last, out=np.zeros_like(square), where=last > 0.0) * P
    return X


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
