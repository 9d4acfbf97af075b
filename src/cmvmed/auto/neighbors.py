"""The opinion of a row's neighbors: one more view, made of all others, for data whose rows form clusters.

TrainingData rows are the nodes of a graph that joins each with its nearest ones, by the mean over the views of γ‖x - x'‖². With its
normalized Laplacian Λ, the kernel (Λ + εI)⁻², scaled to a mean diagonal of one, makes functions smooth along the graph; it is then
a view like any other. The score of a new row is the mean score of its nearest training rows. Equal rows are one node, so that a
row of weight two counts like two rows.

Whether neighbors deserve trust is asked of the unlabeled rows: they do if a view's score is foretold by the mean score of the
row's neighbors *in another view*, and better so than by that view's own classifier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from cmvmed.core.exact import KernelBlocks
from cmvmed.core.kernels import DISTANCE_KERNELS, row_blocks, squared_distances
from cmvmed.core.linalg import Array, BoolArray, IntArray, Matrix, is_sparse
from cmvmed.data.view_data import ViewData

N_NEIGHBORS = 5
REGULARIZATION = 0.05  # ε
# Unlabeled rows at most, evenly spaced, that are asked whether their neighbors deserve trust; first a few, whose answer suffices
# if it is hopeless.
ASKED_ROWS = 500
FIRST_ASKED = 100
HOPELESS = 0.2
SAME_POINT = 1e-12  # rows nearer than this, in units of the median squared distance, are equal

# Foretold correlation from which on neighbors are trusted at all, and in full; chosen on development splits (docs/accuracy.md).
LEAST_FORETOLD = 0.5
FULL_FORETOLD = 0.75


@dataclass(frozen=True)
class NeighborGraph:
    """The graph of the training rows: first the labeled block, then the unlabeled one. Equal rows are one node.

    ``members[i]`` says which rows view i has, in the order of its ``train``.
    """

    views: tuple[ViewData, ...]
    members: tuple[IntArray, ...]
    n_neighbors: int
    nodes: IntArray  # (m,) one row for each set of equal rows
    node_of_row: IntArray  # (n,) -1 for a row of zero weight, which is no node

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.node_of_row.size

    def between(self, prepared: Sequence[Matrix], rows: Sequence[IntArray], n_points: int) -> Array:
        """Mean over the views that both have of γ‖x - x'‖², (n_points, n); infinite if they have none in common.

        Parameters
        ----------
        prepared : per view, points in the form of its training rows
        rows : per view, which of the ``n_points`` points those are
        """
        total, count = np.zeros((n_points, self.n_rows)), np.zeros((n_points, self.n_rows))
        for view, own, points, index in zip(self.views, self.members, prepared, rows, strict=True):
            if own.size and index.size:
                pairs = np.ix_(index, own)
                total[pairs] += view.kernel.gamma * squared_distances(points, view.train)
                count[pairs] += 1.0
        return np.divide(total, count, out=np.full_like(total, np.inf), where=count > 0.0)

    def new_shares(self, distances: Array) -> Array:
        """What each node contributes to points at these distances from all training rows, (n_points, m)."""
        return _nearest_shares(distances[:, self.nodes], self.n_neighbors)


def joins_views(views: Sequence[ViewData]) -> bool:
    """Whether distances can be taken over all views: each has features and a kernel with a bandwidth."""
    return all(view.settings.kernel in DISTANCE_KERNELS for view in views)


def build_graph(views: Sequence[ViewData], n_L: int, weights: Array, n_neighbors: int) -> NeighborGraph:
    """The nodes among the rows of both blocks with weights (n,). A row of zero weight is no node."""
    members = tuple(np.concatenate([view.rows_L, n_L + view.rows_U]) for view in views)
    contents = _contents_of_rows(views, members, weights.size)
    speaks = np.flatnonzero(weights > 0.0)
    first_with: dict[tuple[bytes | None, ...], int] = {}
    first_equal = [first_with.setdefault(contents[row], row) for row in speaks.tolist()]
    nodes, node_of_row = np.array(list(first_with.values()), dtype=np.intp), np.full(weights.size, -1)
    node_of_row[speaks] = np.searchsorted(nodes, first_equal)
    return NeighborGraph(tuple(views), members, n_neighbors, nodes, node_of_row)


def graph_blocks(graph: NeighborGraph, n_L: int, weights_U: Array) -> KernelBlocks:
    """The kernel (Λ + εI)⁻² of all rows as blocks, with the mean settings of the views."""
    settings = [view.settings for view in graph.views]
    prior_variance = float(np.mean([s.prior_variance for s in settings]))
    bias = float(np.mean([s.bias_variance for s in settings])) / prior_variance
    distances = graph.between([view.train for view in graph.views], graph.members, graph.n_rows)
    silent = np.flatnonzero(graph.node_of_row < 0)
    shares = graph.new_shares(distances[silent])

    def of_rows(of_nodes: Array) -> Array:
        """(n, k) from (m, k): a row has what its node has; one without a node, what its nearest nodes have."""
        values = of_nodes[graph.node_of_row]
        values[silent] = shares @ of_nodes
        return values

    K = laplacian_kernel(distances[np.ix_(graph.nodes, graph.nodes)], graph.n_neighbors)
    K = of_rows(of_rows(K).T) + bias
    return KernelBlocks(
        LL=np.ascontiguousarray(K[:n_L, :n_L]),
        UL=np.ascontiguousarray(K[n_L:, :n_L]),
        UU=np.ascontiguousarray(K[n_L:, n_L:]),
        weights=weights_U,
        prior_variance=prior_variance,
        view="neighbors",
    )


def laplacian_kernel(distances: Array, n_neighbors: int, regularization: float = REGULARIZATION) -> Array:
    """(Λ + εI)⁻² of nodes at these distances, (m, m), scaled to a mean diagonal of one."""
    joined = nearest(distances, n_neighbors)
    W = (joined | joined.T).astype(np.float64)
    root = np.sqrt(np.maximum(W.sum(axis=1), 1.0))
    shifted = (1.0 + regularization) * np.eye(len(W)) - W / root / root[:, None]  # Λ + εI
    factor, _ = dpotrf(shifted, lower=1)
    inverse, _ = dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    K = inverse @ inverse
    return np.asarray(K / np.diagonal(K).mean())


def nearest(distances: Array, n_neighbors: int) -> BoolArray:
    """Which nodes are among the nearest of each, (m, m), itself left out; ties are all in."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    return _within_nearest(others, n_neighbors)


def neighbor_weight(
    graph: NeighborGraph, means: Sequence[Array], rows: Sequence[IntArray], pi: Array, by_classifiers: float
) -> float:
    """How far neighbors are trusted, 0 to 1, given how well the views' own classifiers foretell each other."""
    if cross_view_predictability(graph, means, rows, pi, FIRST_ASKED) < HOPELESS:
        return 0.0
    return trust(cross_view_predictability(graph, means, rows, pi), by_classifiers)


def cross_view_predictability(
    graph: NeighborGraph, means: Sequence[Array], rows: Sequence[IntArray], pi: Array, n_asked: int = ASKED_ROWS
) -> float:
    """How well a view's scores are foretold by the mean score of the neighbors in another view: a mean correlation.

    Parameters
    ----------
    means : per view (n_i, F), scores of unlabeled rows
    rows : per view (n_i,), which rows of the graph those are
    pi : (V,), weights of the views
    n_asked : how many rows of each view are asked
    """
    n_views, n_functions = len(graph.views), means[0].shape[1]
    scores = np.full((n_views, graph.n_rows, n_functions), np.nan)
    for i in range(n_views):
        scores[i, rows[i]] = means[i]
    total = weight = 0.0
    for j, (view, members) in enumerate(zip(graph.views, graph.members, strict=True)):
        is_node = np.isin(members, graph.nodes)
        train, seen = view.train[is_node], scores[:, members[is_node]]
        if train.shape[0] <= graph.n_neighbors:
            continue
        asked = _evenly(np.flatnonzero(~np.isnan(seen[..., 0]).all(axis=0)), n_asked)
        around = _neighbor_means(seen, train, asked, graph.n_neighbors)
        for i in range(n_views):
            if i != j:
                total += pi[i] * pi[j] * _foretold(seen[i, asked], around[i])
                weight += pi[i] * pi[j]
    return total / weight if weight > 0.0 else 0.0


def trust(foretold: float, by_classifiers: float) -> float:
    """How far neighbors are trusted, 0 to 1: not at all if the views' own classifiers foretell each other better."""
    if foretold <= by_classifiers:
        return 0.0
    return float(np.clip((foretold - LEAST_FORETOLD) / (FULL_FORETOLD - LEAST_FORETOLD), 0.0, 1.0))


@dataclass(frozen=True)
class NeighborPredictor:
    """The fitted opinion of neighbors: the mean score of a row's nearest training rows."""

    graph: NeighborGraph
    scores: Array  # (m, F), posterior means of the nodes

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""
        return self.graph.n_rows

    def mean(self, matrices: Sequence[Matrix], rows: Sequence[IntArray]) -> tuple[IntArray, Array]:
        """The points that have neighbors, and their means (n, F); ``rows`` says per view which points have it."""
        n_points = matrices[0].shape[0]
        prepared = [
            view.reader.transform(matrix[index])
            for view, matrix, index in zip(self.graph.views, matrices, rows, strict=True)
        ]
        distances = self.graph.between(prepared, rows, n_points)
        known = np.flatnonzero(np.isfinite(distances[:, self.graph.nodes]).any(axis=1))
        return known, self.graph.new_shares(distances[known]) @ self.scores


def _contents_of_rows(views: Sequence[ViewData], members: Sequence[IntArray], n: int) -> list[tuple[bytes | None, ...]]:
    """For each of the n rows its features in every view, None in a view that it lacks."""
    columns = []
    for view, own in zip(views, members, strict=True):
        column: list[bytes | None] = [None] * n
        for row, content in zip(own.tolist(), _contents(view.train), strict=True):
            column[row] = content
        columns.append(column)
    return list(zip(*columns, strict=True))


def _contents(matrix: Matrix) -> list[bytes]:
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


def _evenly(rows: IntArray, most: int) -> IntArray:
    """At most so many of the rows, evenly spaced."""
    return rows if rows.size <= most else rows[np.linspace(0, rows.size - 1, most).astype(np.intp)]


def _within_nearest(distances: Array, n_neighbors: int) -> BoolArray:
    """Which columns are among the nearest of each row, with all ties; never one at infinite distance."""
    k = min(n_neighbors, distances.shape[1]) - 1
    if k < 0:
        return np.zeros(distances.shape, dtype=bool)
    reach = np.partition(distances, k, axis=1)[:, k : k + 1] * (1.0 + SAME_POINT)
    return np.asarray(distances <= np.minimum(reach, np.finfo(np.float64).max))


def _nearest_shares(distances: Array, n_neighbors: int) -> Array:
    """Equal shares of the nearest columns of each row; of the columns equal to it alone, if there are any."""
    chosen = _within_nearest(distances, n_neighbors)
    equal = distances <= SAME_POINT
    chosen = np.where(equal.any(axis=1, keepdims=True), equal, chosen).astype(np.float64)
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1.0))


def _neighbor_means(scores: Array, train: Matrix, asked: IntArray, n_neighbors: int) -> Array:
    """Mean scores (V, a, F) of the nearest of the rows ``train`` (m, d) to those ``asked`` (a,), from scores (V, m, F).

    NaN is an unknown score.
    """
    known = ~np.isnan(scores[..., :1])
    table = np.concatenate([np.nan_to_num(scores), known], axis=2)
    sums = np.empty((len(scores), asked.size, table.shape[2]))
    for block in row_blocks(asked.size, train.shape[0]):
        distances = squared_distances(train[asked[block]], train)
        distances[np.arange(len(distances)), asked[block]] = np.inf
        sums[:, block] = _within_nearest(distances, n_neighbors).astype(np.float64) @ table
    total, count = sums[..., :-1], sums[..., -1:]
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0.0)


def _foretold(scores: Array, around: Array) -> float:
    """Mean over functions of the correlation, if positive, of scores (a, F) and neighbors' means (a, F); NaN is unknown."""
    usable = ~(np.isnan(scores[:, 0]) | np.isnan(around[:, 0]))
    if usable.sum() < 2:
        return 0.0
    x, y = scores[usable] - scores[usable].mean(axis=0), around[usable] - around[usable].mean(axis=0)
    norm = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    correlation = np.divide((x * y).sum(axis=0), norm, out=np.zeros(x.shape[1]), where=norm > 0.0)
    return float(np.maximum(correlation, 0.0).mean())
