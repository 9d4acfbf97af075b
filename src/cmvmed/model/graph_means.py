"""Means over the nearest nodes of several graphs, in which each distance is computed once and nodes are searched together.

Distances are computed in single precision first, with a bound of their error. It says of most rows which nodes are the
nearest. The others, such as rows that are equal to nodes or have ties, are searched again in double precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmvmed.graphs.search import GROUP_SIZE, SAME_POINT, TIE_TOLERANCE, nearest_means
from cmvmed.model.graph_votes import GraphVote
from cmvmed.model.row_forms import RowForms, same_arrays
from cmvmed.numerics.kernel_expansions import FormedRows, blocks_of_rows, extended_centers
from cmvmed.numerics.types import Array, BoolArray, IntArray, Single

FEW_ROWS = 32  # whose distances in double precision stay in the cache
HALF_ULP = 2.0**-24  # relative error of a number in single precision


@dataclass(frozen=True)
class _NodeDistances:
    """γ‖x - z‖² to the nodes of a graph by one view, as a product of extended rows."""

    form: int
    nodes: Array  # (m, d), zero for those that lack the view
    gamma: float
    share: Array  # (m,), what the distance of each node is multiplied by; zero for those that lack the view
    extended: Array  # (d + 2, m)
    single: Single  # (d + 2, m' + 1), the same for m' >= m nodes, of which the last are infinitely far, and the bound of the error

    @classmethod
    def of(cls, form: int, nodes: Array, gamma: float, share: Array) -> "_NodeDistances":
        """The error of a sum of d + 2 products is at most (d + 4) ulp/2 times γ(‖x‖ + ‖z‖)² <= 2γ(‖x‖² + ‖z‖²).

        The bound is twice that, of a difference between two distances.
        """
        extended, (m, d) = -share * extended_centers(gamma, nodes), nodes.shape
        single = np.zeros((d + 2, m + -m % GROUP_SIZE + 1), dtype=np.float32)
        single[:, :m] = extended
        single[-1, m:-1] = np.inf
        bounds = np.array([gamma * share.max(initial=0.0), extended[-1].max(initial=0.0)])
        single[-2:, -1] = 4.0 * (d + 8) * HALF_ULP * bounds
        return cls(form, nodes, gamma, share, extended, single)


class GraphMeans:
    """Graphs with equally many nodes and neighbors."""

    def __init__(self, graph: GraphVote) -> None:
        self.size, self.n_neighbors = graph.size, graph.n_neighbors
        self.distances: list[_NodeDistances] = []
        self._scores: dict[tuple[int, ...], Array] = {}  # by the distances of a graph
        self._least: dict[tuple[int, ...], Array] = {}  # the smallest distance of each node

    def fits(self, graph: GraphVote) -> bool:
        """Whether a graph is one of this size."""
        return (graph.size, graph.n_neighbors) == (self.size, self.n_neighbors)

    def add(self, factor: float, graph: GraphVote, forms: RowForms) -> None:
        """Add a graph's scores, times a factor."""
        own = tuple(self._distance(graph, i, forms) for i in range(len(graph.centers)))
        self._scores[own] = self._scores.get(own, 0.0) + factor * graph.node_scores
        n_views = len(graph.centers)
        lacking = graph.n_views < n_views  # a node that lacks a view is not equal to a row that has it
        self._least[own] = np.where(lacking, 2.0 * SAME_POINT * n_views / graph.n_views, 0.0)

    def _distance(self, graph: GraphVote, i: int, forms: RowForms) -> int:
        """The number of γ‖x - z‖² by view i, of which those of all views have the mean that a node's own views have."""
        centers, gamma, has = graph.centers[i], graph.gammas[i], graph.distances.nodes[i]
        nodes, share = np.zeros((self.size, graph.distances.features[i].shape[1])), np.zeros(self.size)
        nodes[has], share[has] = graph.distances.features[i], len(graph.centers) / graph.n_views[has]
        form = forms.number(centers.view, centers.preprocessor)
        for number, known in enumerate(self.distances):
            known_nodes = (known.nodes, known.share)
            if (known.form, known.gamma) == (form, gamma) and all(map(same_arrays, known_nodes, (nodes, share))):
                return number
        self.distances.append(_NodeDistances.of(form, nodes, gamma, share))
        return len(self.distances) - 1

    @property
    def graphs(self) -> list[tuple[int, ...]]:
        """The distances of each graph."""
        return list(self._scores)

    def prepare(self) -> None:
        """Put the node scores of all graphs together, after the last one was added."""
        self.can_screen = self.size > self.n_neighbors
        self._largest_least = max(float(own.max()) for own in self._least.values())
        alone = {own[0] for own in self._scores if len(own) == 1}
        places = sorted(range(len(self.distances)), key=lambda number: (number in alone, number))
        self._place = {number: place for place, number in enumerate(places)}  # distances that are searched come last
        self._n_unsearched = len(self.distances) - len(alone)
        self._joint = [own for own in self._scores if len(own) > 1]
        searched = [(number,) for number in places if number in alone] + self._joint
        self._values = np.concatenate([self._scores[own] for own in searched])  # (graphs m, K)

    def screened(self, rows: Sequence[FormedRows]) -> tuple[Array, BoolArray]:
        """The sums over graphs, (n, K), and which of the rows are to be searched again."""
        n, width = len(rows[0].points), self.distances[0].single.shape[1]
        work = np.empty((len(self.distances) + len(self._joint), n, width), dtype=np.float32)
        for number, distance in enumerate(self.distances):
            np.matmul(rows[distance.form].extended_in(np.float32), distance.single, out=work[self._place[number]])
        for place, own in enumerate(self._joint, len(self.distances)):
            _mean([work[self._place[number]] for number in own], out=work[place])
        searched = work[self._n_unsearched :].reshape(-1, width)
        nearest, are_sure = _nearest(
            searched[:, :-1], searched[:, -1] + np.float32(self._largest_least), self.n_neighbors
        )
        nearest += np.repeat(np.arange(len(searched) // n) * self.size, n)[:, None]
        again = np.asarray(~are_sure.reshape(-1, n).all(axis=0))
        means = self._values.take(nearest.T, axis=0, mode="clip").sum(
            axis=0
        )  # the numbers of unsure rows may be too large
        means /= self.n_neighbors
        sums = means.reshape(-1, n, means.shape[1]).sum(axis=0)
        sums[again] = 0.0
        return sums, again

    def means(self, rows: Sequence[FormedRows]) -> Array:
        """The sums over graphs, (n, K), in double precision."""
        n = len(rows[0].points)
        sums = np.zeros((n, self._values.shape[1]))
        for part in blocks_of_rows(n, FEW_ROWS):
            by_distance = [rows[own.form].extended[part] @ own.extended for own in self.distances]
            for own, scores in self._scores.items():
                chosen = [by_distance[number] for number in own]
                distances = chosen[0]
                if len(own) > 1:
                    distances = np.empty_like(chosen[0])
                    _mean(chosen, out=distances)
                distances = np.maximum(distances, self._least[own])
                sums[part] += nearest_means(distances, self.n_neighbors, scores)
        return sums


def _mean(distances: Sequence[NDArray[np.floating]], out: NDArray[np.floating]) -> None:
    """The mean of distances by several views, (n, m)."""
    np.add(distances[0], distances[1], out=out)
    for more in distances[2:]:
        out += more
    out *= 1.0 / len(distances)


def _nearest(distances: Single, error: Single, k: int) -> tuple[IntArray, BoolArray]:
    """The k nearest nodes of each row, (n, k), and whether their distances leave no doubt of that, (n,).

    They are in doubt if another may be as near, or if one may be at no distance. The bits of positive numbers, taken for
    those of whole numbers, have the same order, and are compared faster.

    Parameters
    ----------
    distances : (n, m), m > k divisible by ``GROUP_SIZE``
    error : (n,), at most that of the difference of two distances
    """
    n, m = distances.shape
    rows, width, are_k = np.arange(n)[:, None], m // GROUP_SIZE, np.ones(n, dtype=bool)
    bits, in_groups = distances.view(np.int32), width > k + 1
    if in_groups:  # the nearest are in those groups whose own nearest are the nearest
        groups = bits.reshape(n, GROUP_SIZE, width)
        group, _, are_k = _smallest(groups.min(axis=1), k + 1)
        bits = groups[rows, :, group].reshape(n, -1)
    column, following, are_k_again = _smallest(bits, k)
    near = bits[rows, column].view(np.float32).astype(np.float64)
    reach = near.max(axis=1) * (1.0 + TIE_TOLERANCE) + SAME_POINT + error
    is_apart = (following.view(np.float32) > reach) & (near.min(axis=1) > SAME_POINT + error)
    if in_groups:
        column = group[rows, column // GROUP_SIZE] + column % GROUP_SIZE * width
    return column, are_k & are_k_again & is_apart


def _smallest(values: NDArray[np.int32], k: int) -> tuple[IntArray, NDArray[np.int32], BoolArray]:
    """The columns of the k smallest values of each row (n, k), the next value (n,), and whether they are exactly k, (n,).

    Of rows with ties the columns are any.
    """
    n, m = values.shape
    ordered = np.partition(values, k, axis=1)
    chosen, are_k = values <= ordered[:, :k].max(axis=1, keepdims=True), np.ones(n, dtype=bool)
    found = chosen.ravel().nonzero()[0]
    if found.size != n * k:
        are_k = chosen.sum(axis=1) == k
        chosen[~are_k] = np.arange(m) < k
        found = np.flatnonzero(chosen)
    return found.reshape(n, k) % m, np.ascontiguousarray(ordered[:, k]), are_k
