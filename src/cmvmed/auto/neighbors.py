"""The nearest training rows as an additional view, made of all others, for data whose rows form clusters.

Training rows are the nodes of a graph that joins each with its nearest ones, by the mean over the views of γ‖x - x'‖².
With its normalized Laplacian Λ, the kernel (Λ + εI)⁻², scaled to a mean diagonal of one, makes functions smooth along
the graph; it is then a view like any other. The score of a new row is the mean score of its nearest training rows.
Equal rows are one node, so that a row of weight two counts like two rows.

The weight of this view is set by the unlabeled rows: it is positive if a view's score is predicted by the mean score of
the row's neighbors *in another view*, and better than by that view's own classifier.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from cmvmed.auto.agreement import mean_agreement
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Plan, Start
from cmvmed.core.consensus import mean_correlation
from cmvmed.core.exact import CholeskyView, KernelBlocks, SpectralView
from cmvmed.core.kernels import DISTANCE_KERNELS, row_blocks, squared_distances
from cmvmed.core.linalg import is_sparse
from cmvmed.core.posterior import ViewModel, supervised_state
from cmvmed.core.problem import RowPartition
from cmvmed.core.types import Array, BoolArray, IntArray, Matrix
from cmvmed.data.view_data import ViewData

SAME_POINT = 1e-12  # rows nearer than this, in units of the median squared distance, are equal


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

    def distances(self, points_by_view: Sequence[Matrix], rows: Sequence[IntArray], n_points: int) -> Array:
        """Mean over the views that both have of γ‖x - x'‖², (n_points, n); infinite if they have none in common.

        Parameters
        ----------
        points_by_view : per view, points in the form of its training rows
        rows : per view, which of the ``n_points`` points those are
        """
        total, count = np.zeros((n_points, self.n_rows)), np.zeros((n_points, self.n_rows))
        for view, own, points, index in zip(self.views, self.members, points_by_view, rows, strict=True):
            if own.size and index.size:
                pairs = np.ix_(index, own)
                total[pairs] += view.kernel.gamma * squared_distances(points, view.train)
                count[pairs] += 1.0
        return np.divide(total, count, out=np.full_like(total, np.inf), where=count > 0.0)

    def interpolation_weights(self, distances: Array) -> Array:
        """What each node contributes to points at these distances from all training rows, (n_points, m)."""
        return _nearest_weights(distances[:, self.nodes], self.n_neighbors)


def joins_views(views: Sequence[ViewData]) -> bool:
    """Whether distances can be taken over all views: each has features and a kernel with a bandwidth."""
    return all(view.settings.kernel in DISTANCE_KERNELS for view in views)


def build_graph(views: Sequence[ViewData], n_L: int, weights: Array, n_neighbors: int) -> NeighborGraph:
    """The nodes among the rows of both blocks with weights (n,). A row of zero weight is no node."""
    members = tuple(np.concatenate([view.rows_L, n_L + view.rows_U]) for view in views)
    contents = _contents_of_rows(views, members, weights.size)
    with_weight = np.flatnonzero(weights > 0.0)
    first_with: dict[tuple[bytes | None, ...], int] = {}
    first_equal = [first_with.setdefault(contents[row], row) for row in with_weight.tolist()]
    nodes, node_of_row = np.array(list(first_with.values()), dtype=np.intp), np.full(weights.size, -1)
    node_of_row[with_weight] = np.searchsorted(nodes, first_equal)
    return NeighborGraph(tuple(views), members, n_neighbors, nodes, node_of_row)


def graph_blocks(graph: NeighborGraph, n_L: int, weights_U: Array, regularization: float) -> KernelBlocks:
    """The kernel (Λ + εI)⁻² of all rows as blocks, with the mean settings of the views."""
    settings = [view.settings for view in graph.views]
    prior_variance = float(np.mean([s.prior_variance for s in settings]))
    bias = float(np.mean([s.bias_variance for s in settings])) / prior_variance
    distances = graph.distances([view.train for view in graph.views], graph.members, graph.n_rows)
    without_node = np.flatnonzero(graph.node_of_row < 0)
    shares = graph.interpolation_weights(distances[without_node])

    def of_rows(of_nodes: Array) -> Array:
        """(n, k) from (m, k): a row has what its node has; one without a node, what its nearest nodes have."""
        values = of_nodes[graph.node_of_row]
        values[without_node] = shares @ of_nodes
        return values

    K = laplacian_kernel(distances[np.ix_(graph.nodes, graph.nodes)], graph.n_neighbors, regularization)
    K = of_rows(of_rows(K).T) + bias
    return KernelBlocks(
        LL=np.ascontiguousarray(K[:n_L, :n_L]),
        UL=np.ascontiguousarray(K[n_L:, :n_L]),
        UU=np.ascontiguousarray(K[n_L:, n_L:]),
        weights=weights_U,
        prior_variance=prior_variance,
        view="neighbors",
    )


def laplacian_kernel(distances: Array, n_neighbors: int, regularization: float) -> Array:
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


def add_neighbor_view(
    plan: Plan,
    views: Sequence[ViewData],
    partition: RowPartition,
    n_neighbors: int | str | None,
    tuning: Tuning,
) -> tuple[Plan, NeighborGraph | None]:
    """The plan with the neighbors as an additional view, and their graph; the plan itself if they get no weight.

    Parameters
    ----------
    n_neighbors : "auto" sets their weight by how well the unlabeled rows are predicted by neighbors; a number gives so many
        their full weight; None leaves them out
    """
    problem, n_L, automatic = plan.problem, partition.block_L.size, isinstance(n_neighbors, str)
    exact = all(isinstance(model, SpectralView | CholeskyView) for model in problem.models)
    usable = exact and joins_views(views) and partition.block_U.size > 0 and not (automatic and len(views) < 2)
    if n_neighbors is None or not usable:
        return plan, None
    weights = partition.weights[np.concatenate([partition.block_L, partition.block_U])]
    k = tuning.n_neighbors if isinstance(n_neighbors, str) else n_neighbors
    graph, weight = build_graph(views, n_L, weights, k), 1.0
    if automatic:
        rows = [n_L + rows_U for rows_U in problem.rows_U]
        weight = neighbor_weight(graph, plan.start, rows, plan.view_weights, tuning)
    if weight == 0.0:
        return plan, None
    blocks = graph_blocks(graph, n_L, problem.weights_U, tuning.graph_regularization)
    model: ViewModel = (SpectralView if plan.surrogate.shared_curvature else CholeskyView)(blocks)
    hinge = float(np.mean([view.settings.C for view in views])) * partition.hinge[partition.block_L]
    joined = replace(
        problem,
        models=(*problem.models, model),
        rows_L=(*problem.rows_L, np.arange(n_L)),
        rows_U=(*problem.rows_U, np.arange(partition.block_U.size)),
        box=(*problem.box, hinge),
    )
    state = supervised_state(model, problem.Y, hinge)
    schedule, share = plan.schedule, weight * tuning.neighbor_weight
    if "consensus_weight" in plan.chosen:
        lam = (1.0 - weight) * schedule.consensus_weight + weight * tuning.neighbor_consensus_weight
        schedule = replace(schedule, consensus_weight=lam)
    joined_plan = replace(
        plan,
        problem=joined,
        start=replace(plan.start, states=(*plan.start.states, state)),
        schedule=schedule,
        view_weights=np.append((1.0 - share) * plan.view_weights, share),
    )
    return joined_plan, graph


def neighbor_weight(
    graph: NeighborGraph, start: Start, rows: Sequence[IntArray], view_weights: Array, tuning: Tuning
) -> float:
    """Relative weight of the neighbors, 0 to 1: by how well a view is predicted by neighbors in another view.

    0 if the views' own classifiers predict each other better. ``rows`` says per view which rows of the graph its
    unlabeled rows are.
    """
    means = [state.m_U for state in start.states]
    first = cross_view_predictability(graph, means, rows, view_weights, tuning.first_probe_rows)
    if first < tuning.early_reject:
        return 0.0
    predictability = cross_view_predictability(graph, means, rows, view_weights, tuning.probe_rows)
    if predictability <= mean_agreement(start.agreement, view_weights):
        return 0.0
    span = tuning.full_predictability - tuning.min_predictability
    return float(np.clip((predictability - tuning.min_predictability) / span, 0.0, 1.0))


def cross_view_predictability(
    graph: NeighborGraph, means: Sequence[Array], rows: Sequence[IntArray], view_weights: Array, n_probe: int
) -> float:
    """Mean correlation of a view's scores with the mean score of the row's neighbors in another view.

    Parameters
    ----------
    means : per view (n_i, F), scores of unlabeled rows
    rows : per view (n_i,), which rows of the graph those are
    view_weights : (V,)
    n_probe : at most so many rows of each view, evenly spaced, are used
    """
    n_views, n_functions = len(graph.views), means[0].shape[1]
    scores = np.full((n_views, graph.n_rows, n_functions), np.nan)
    for i in range(n_views):
        scores[i, rows[i]] = means[i]
    total = weight = 0.0
    for j, (view, members) in enumerate(zip(graph.views, graph.members, strict=True)):
        is_node = np.isin(members, graph.nodes)
        train, known = view.train[is_node], scores[:, members[is_node]]
        if train.shape[0] <= graph.n_neighbors:
            continue
        probe = _evenly_spaced(np.flatnonzero(~np.isnan(known[..., 0]).all(axis=0)), n_probe)
        around = _neighbor_means(known, train, probe, graph.n_neighbors)
        for i in range(n_views):
            if i != j:
                pair = view_weights[i] * view_weights[j]
                total += pair * _predictability(known[i, probe], around[i])
                weight += pair
    return total / weight if weight > 0.0 else 0.0


def _predictability(scores: Array, around: Array) -> float:
    """Mean correlation of scores (a, F) with neighbors' means (a, F), where NaN is unknown; 0 if there is none."""
    correlation = mean_correlation(scores, around, np.ones(len(scores)), constant=0.0)
    return 0.0 if np.isnan(correlation) else correlation


@dataclass(frozen=True)
class NeighborPredictor:
    """The fitted view of neighbors: the mean score of a row's nearest training rows."""

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
            view.preprocessor.transform(matrix[index])
            for view, matrix, index in zip(self.graph.views, matrices, rows, strict=True)
        ]
        distances = self.graph.distances(prepared, rows, n_points)
        known = np.flatnonzero(np.isfinite(distances[:, self.graph.nodes]).any(axis=1))
        return known, self.graph.interpolation_weights(distances[known]) @ self.scores


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


def _evenly_spaced(rows: IntArray, n: int) -> IntArray:
    """At most so many of the rows, evenly spaced."""
    return rows if rows.size <= n else rows[np.linspace(0, rows.size - 1, n).astype(np.intp)]


def _within_nearest(distances: Array, n_neighbors: int) -> BoolArray:
    """Which columns are among the nearest of each row, with all ties; never one at infinite distance."""
    k = min(n_neighbors, distances.shape[1]) - 1
    if k < 0:
        return np.zeros(distances.shape, dtype=bool)
    reach = np.partition(distances, k, axis=1)[:, k : k + 1] * (1.0 + SAME_POINT)
    return np.asarray(distances <= np.minimum(reach, np.finfo(np.float64).max))


def _nearest_weights(distances: Array, n_neighbors: int) -> Array:
    """Equal shares of the nearest columns of each row; of the columns equal to it alone, if there are any."""
    chosen = _within_nearest(distances, n_neighbors)
    equal = distances <= SAME_POINT
    chosen = np.where(equal.any(axis=1, keepdims=True), equal, chosen).astype(np.float64)
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1.0))


def _neighbor_means(scores: Array, train: Matrix, probe: IntArray, n_neighbors: int) -> Array:
    """Mean scores (V, a, F) of the nearest of the rows ``train`` (m, d) to those ``probe`` (a,), from scores (V, m, F).

    NaN is an unknown score.
    """
    known = ~np.isnan(scores[..., :1])
    table = np.concatenate([np.nan_to_num(scores), known], axis=2)
    sums = np.empty((len(scores), probe.size, table.shape[2]))
    for block in row_blocks(probe.size, train.shape[0]):
        distances = squared_distances(train[probe[block]], train)
        distances[np.arange(len(distances)), probe[block]] = np.inf
        sums[:, block] = _within_nearest(distances, n_neighbors).astype(np.float64) @ table
    total, count = sums[..., :-1], sums[..., -1:]
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0.0)
