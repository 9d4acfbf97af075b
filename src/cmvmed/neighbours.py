"""The opinion of a row's neighbours: one more view, made of all others, for data whose rows form clusters.

Training rows are the nodes of a graph that joins each with its nearest ones, by the mean over the views of γ‖x - x'‖². With its
normalised Laplacian Λ, the kernel (Λ + εI)⁻², scaled to a mean diagonal of one, makes functions smooth along the graph; it is then
a view like any other. The score of a new row is the mean score of its nearest training rows. Equal rows are one node, so that a
row of weight two counts like two rows.

Whether neighbours deserve trust is asked of the unlabelled rows: they do if a view's score is foretold by the mean score of the
row's neighbours *in another view*, and better so than by that view's own classifier.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from cmvmed.exact_views import KernelBlocks
from cmvmed.kernels import DISTANCE_KERNELS, products_and_distances
from cmvmed.linalg import Array, BoolArray, IntArray, Matrix
from cmvmed.machines import ViewData

N_NEIGHBOURS = 5
REGULARISATION = 0.05  # ε
SAME_POINT = 1e-12  # rows nearer than this, in units of the median squared distance, are equal

# Foretold correlation from which on neighbours are trusted at all, and in full; chosen on development splits (docs/accuracy.md).
LEAST_FORETOLD = 0.5
FULL_FORETOLD = 0.75


@dataclass(frozen=True)
class NeighbourGraph:
    """The graph of the training rows: first the labelled block, then the unlabelled one.

    ``members[i]`` says which rows view i has, in the order of its ``train``.
    """

    views: tuple[ViewData, ...]
    members: tuple[IntArray, ...]
    n_rows: int
    n_neighbours: int
    nodes: IntArray  # (m,) one row for each set of equal rows
    share: Array  # (n, m) what each node contributes to a row's score; rows sum to 1

    def between(self, prepared: Sequence[Matrix], rows: Sequence[IntArray], n_points: int) -> Array:
        """Mean over the views that both have of γ‖x - x'‖², (n_points, n); infinite if they have none in common.

        Parameters
        ----------
        prepared : per view, points in the form of its training rows
        rows : per view, which of the ``n_points`` points those are
        """
        return _joint_distances(self.views, self.members, self.n_rows, prepared, rows, n_points)

    def new_shares(self, distances: Array) -> Array:
        """What each node contributes to points at these distances from all training rows, (n_points, m)."""
        return _nearest_shares(distances[:, self.nodes], self.n_neighbours)


def joins_views(views: Sequence[ViewData]) -> bool:
    """Whether distances can be taken over all views: each has features and a kernel with a bandwidth."""
    return all(view.settings.kernel in DISTANCE_KERNELS for view in views)


def build_graph(views: Sequence[ViewData], n_L: int, weights: Array, n_neighbours: int) -> tuple[NeighbourGraph, Array]:
    """The graph of the rows of both blocks with weights (n,), and the distances of its nodes, (m, m).

    A row of zero weight is no node.
    """
    n = weights.size
    members = tuple(np.concatenate([view.rows_L, n_L + view.rows_U]) for view in views)
    distances = _joint_distances(views, members, n, [view.train for view in views], members, n)
    has_view = np.zeros((n, len(views)), dtype=bool)
    for i, rows in enumerate(members):
        has_view[rows, i] = True
    speaks = np.flatnonzero(weights > 0.0)
    first = _first_equal(distances[np.ix_(speaks, speaks)], has_view[speaks])
    nodes = speaks[np.unique(first)]
    share = _nearest_shares(distances[:, nodes], n_neighbours)
    share[speaks] = np.eye(nodes.size)[np.searchsorted(nodes, speaks[first])]
    graph = NeighbourGraph(tuple(views), members, n, n_neighbours, nodes, share)
    return graph, distances[np.ix_(nodes, nodes)]


def graph_blocks(graph: NeighbourGraph, node_distances: Array, n_L: int, weights_U: Array) -> KernelBlocks:
    """The kernel (Λ + εI)⁻² of all rows as blocks, with the mean settings of the views."""
    settings = [view.settings for view in graph.views]
    prior_variance = float(np.mean([s.prior_variance for s in settings]))
    bias = float(np.mean([s.bias_variance for s in settings])) / prior_variance
    K = graph.share @ laplacian_kernel(node_distances, graph.n_neighbours) @ graph.share.T + bias
    return KernelBlocks(
        LL=np.ascontiguousarray(K[:n_L, :n_L]),
        UL=np.ascontiguousarray(K[n_L:, :n_L]),
        UU=np.ascontiguousarray(K[n_L:, n_L:]),
        weights=weights_U,
        prior_variance=prior_variance,
        view="neighbors",
    )


def laplacian_kernel(distances: Array, n_neighbours: int, regularisation: float = REGULARISATION) -> Array:
    """(Λ + εI)⁻² of nodes at these distances, (m, m), scaled to a mean diagonal of one."""
    joined = nearest(distances, n_neighbours)
    W = (joined | joined.T).astype(np.float64)
    root = np.sqrt(np.maximum(W.sum(axis=1), 1.0))
    shifted = (1.0 + regularisation) * np.eye(len(W)) - W / root / root[:, None]  # Λ + εI
    factor, _ = dpotrf(shifted, lower=1)
    inverse, _ = dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    K = inverse @ inverse
    return np.asarray(K / np.diagonal(K).mean())


def nearest(distances: Array, n_neighbours: int) -> BoolArray:
    """Which nodes are among the nearest of each, (m, m), itself left out; ties are all in."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    return _within_nearest(others, n_neighbours)


def foretold_by_neighbours(graph: NeighbourGraph, means: Sequence[Array], rows: Sequence[IntArray], pi: Array) -> float:
    """How well a view's scores are foretold by the mean score of the neighbours in another view: a mean correlation.

    Parameters
    ----------
    means : per view (n_i, F), scores of unlabelled rows
    rows : per view (n_i,), which rows of the graph those are
    pi : (V,), weights of the views
    """
    n_views, m, n_functions = len(graph.views), graph.nodes.size, means[0].shape[1]
    scores = np.full((n_views, graph.n_rows, n_functions), np.nan)
    for i in range(n_views):
        scores[i, rows[i]] = means[i]
    scores = scores[:, graph.nodes]
    total = weight = 0.0
    for j, (view, members) in enumerate(zip(graph.views, graph.members, strict=True)):
        place = np.full(graph.n_rows, -1)
        place[members] = np.arange(members.size)
        has = place[graph.nodes] >= 0
        train = view.train[place[graph.nodes[has]]]
        if train.shape[0] <= graph.n_neighbours:
            continue
        near = nearest(products_and_distances(train, train)[1], graph.n_neighbours)
        for i in range(n_views):
            if i != j:
                total += pi[i] * pi[j] * _foretold(scores[i, has], near)
                weight += pi[i] * pi[j]
    return total / weight if weight > 0.0 and m > graph.n_neighbours else 0.0


def trust(foretold: float, by_classifiers: float) -> float:
    """How far neighbours are trusted, 0 to 1: not at all if the views' own classifiers foretell each other better."""
    if foretold <= by_classifiers:
        return 0.0
    return float(np.clip((foretold - LEAST_FORETOLD) / (FULL_FORETOLD - LEAST_FORETOLD), 0.0, 1.0))


@dataclass(frozen=True)
class NeighbourMachine:
    """The fitted opinion of neighbours: the mean score of a row's nearest training rows."""

    graph: NeighbourGraph
    scores: Array  # (m, F), posterior means of the nodes

    @property
    def n_compared(self) -> int:
        """Number of rows that a new row is compared with."""
        return self.graph.n_rows

    def mean(self, matrices: Sequence[Matrix], rows: Sequence[IntArray]) -> tuple[IntArray, Array]:
        """The points that have neighbours, and their means (n, F); ``rows`` says per view which points have it."""
        n_points = matrices[0].shape[0]
        prepared = [
            view.reader.prepared(matrix[index])
            for view, matrix, index in zip(self.graph.views, matrices, rows, strict=True)
        ]
        distances = self.graph.between(prepared, rows, n_points)
        known = np.flatnonzero(np.isfinite(distances[:, self.graph.nodes]).any(axis=1))
        return known, self.graph.new_shares(distances[known]) @ self.scores


def _joint_distances(
    views: Sequence[ViewData],
    members: Sequence[IntArray],
    n: int,
    prepared: Sequence[Matrix],
    rows: Sequence[IntArray],
    n_points: int,
) -> Array:
    total, count = np.zeros((n_points, n)), np.zeros((n_points, n))
    for view, own, points, index in zip(views, members, prepared, rows, strict=True):
        if own.size and index.size:
            pairs = np.ix_(index, own)
            total[pairs] += view.kernel.gamma * products_and_distances(points, view.train)[1]
            count[pairs] += 1.0
    return np.divide(total, count, out=np.full_like(total, np.inf), where=count > 0.0)


def _first_equal(distances: Array, has_view: BoolArray) -> IntArray:
    """For each row, the first one that is equal to it and has the same views."""
    same_views = (has_view[:, None, :] == has_view[None, :, :]).all(axis=2)
    equal = (distances <= SAME_POINT) & same_views
    np.fill_diagonal(equal, True)
    first = equal.argmax(axis=1)
    return np.asarray(first[first])


def _within_nearest(distances: Array, n_neighbours: int) -> BoolArray:
    """Which columns are among the nearest of each row, with all ties; never one at infinite distance."""
    k = min(n_neighbours, distances.shape[1]) - 1
    if k < 0:
        return np.zeros(distances.shape, dtype=bool)
    reach = np.partition(distances, k, axis=1)[:, k : k + 1]
    return np.asarray((distances <= reach * (1.0 + SAME_POINT)) & np.isfinite(distances))


def _nearest_shares(distances: Array, n_neighbours: int) -> Array:
    """Equal shares of the nearest columns of each row; of the columns equal to it alone, if there are any."""
    chosen = _within_nearest(distances, n_neighbours)
    equal = distances <= SAME_POINT
    chosen = np.where(equal.any(axis=1, keepdims=True), equal, chosen).astype(np.float64)
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1.0))


def _foretold(scores: Array, near: BoolArray) -> float:
    """Mean over functions of the correlation, if positive, of scores (m, F) and their neighbours' mean; NaN is unknown."""
    known = ~np.isnan(scores[:, 0])
    near = near & known
    count = near.sum(axis=1)
    usable = known & (count > 0)
    if usable.sum() < 2:
        return 0.0
    around = (near[usable].astype(np.float64) @ np.nan_to_num(scores)) / count[usable, None]
    x, y = scores[usable] - scores[usable].mean(axis=0), around - around.mean(axis=0)
    norm = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    correlation = np.divide((x * y).sum(axis=0), norm, out=np.zeros(x.shape[1]), where=norm > 0.0)
    return float(np.maximum(correlation, 0.0).mean())
