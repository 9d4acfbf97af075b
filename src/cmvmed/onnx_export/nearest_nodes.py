"""Scores of rows by their nearest nodes of a graph of training rows, as in :mod:`cmvmed.graphs.nodes`."""

from collections.abc import Sequence

import numpy as np

from cmvmed.graphs.nodes import Nodes
from cmvmed.graphs.search import SAME_POINT, TIE_TOLERANCE
from cmvmed.numerics.types import Array
from cmvmed.onnx_export.compared_rows import ComparedRows
from cmvmed.onnx_export.graph_builder import Tensor, sum_of
from cmvmed.onnx_export.view_inputs import ViewInput

LARGEST = float(np.finfo(np.float64).max)


def use_nodes(nodes: Nodes, rows: ComparedRows) -> None:
    """Say that the rows of the nodes are needed."""
    for view, place in zip(nodes.views, nodes.place, strict=True):
        rows.use(view.train, place[place >= 0])


def node_distances(nodes: Nodes, views: Sequence[ViewInput], rows: ComparedRows) -> Tensor:
    """Mean over the views that row and node have of γ‖x - x'‖², (n, m); infinite if they have none in common.

    A row and a node that do not have the same views keep a distance, as in :meth:`Nodes.distances`.
    """
    own, n_views = [views[i] for i in nodes.indices], len(nodes.views)
    in_node = [np.asarray(place >= 0, dtype=np.float64) for place in nodes.place]
    both = [view.mask * has for view, has in zip(own, in_node, strict=True)]
    used = [k for k in range(n_views) if in_node[k].any()]
    total, count = sum_of([_view_distances(nodes, k, own[k], rows) * both[k] for k in used]), sum_of(both)
    unlike = count.below(sum_of([view.mask for view in own])) | count.below(np.sum(in_node, axis=0))
    total = unlike.where(total.at_least(2.0 * SAME_POINT * n_views), total)
    return count.above(0.0).where(total / count.at_least(1.0), np.inf)


def _view_distances(nodes: Nodes, k: int, view: ViewInput, rows: ComparedRows) -> Tensor:
    """γ‖x - x'‖² in the graph's k-th view, (n, m); arbitrary finite numbers for nodes without the view."""
    data, place = nodes.views[k], nodes.place[k]
    used = rows.used(data.train)
    distances = rows.squared_distances(view.points(data.preprocessor), data.train) * data.kernel.gamma
    columns = np.searchsorted(used, np.maximum(place, used[0]))
    if not np.array_equal(columns, np.arange(used.size)):
        distances = distances.graph.apply("Gather", distances, columns.astype(np.int64), axis=1)
    return distances


def neighbor_scores(
    nodes: Nodes, scores: Array, views: Sequence[ViewInput], rows: ComparedRows
) -> tuple[Tensor, Tensor]:
    """The mean of the nodes' scores (m, F) over each row's nearest, (n, F), and whether there are any, 1 or 0, (n, 1)."""
    if nodes.size == 0:
        nothing = views[0].mask * 0.0
        return nothing * np.zeros((1, scores.shape[1])), nothing
    return nearest_mean(node_distances(nodes, views, rows), scores, nodes.n_neighbors)


def nearest_mean(distances: Tensor, scores: Array, n_neighbors: int) -> tuple[Tensor, Tensor]:
    """The mean score (n, F) of each row's nearest nodes, zero without any, and whether there are any, 1 or 0, (n, 1).

    Nodes equal to the row are its only neighbors; ties with the last neighbor are neighbors too.

    Parameters
    ----------
    distances : (n, m), with m >= 1
    scores : (m, F)
    """
    graph, k = distances.graph, min(n_neighbors, len(scores))
    nearest = graph.results("TopK", 2, distances, np.array([k]), axis=1, largest=0, sorted=1)[0]
    first, last = (graph.apply("Gather", nearest, np.array([i]), axis=1) for i in (0, k - 1))
    reach = (last * (1.0 + TIE_TOLERANCE) + SAME_POINT).at_most(LARGEST)
    chosen = distances.within(first.within(SAME_POINT).where(SAME_POINT, reach)).as_number()
    return chosen @ scores / chosen.sum().at_least(1.0), first.within(LARGEST).as_number()
