"""Means over the nearest nodes of several graphs, in which each distance is computed once and nodes are searched together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.graphs.search import nearest_means
from cmvmed.model.graph_votes import GraphVote
from cmvmed.model.row_forms import RowForms, same_arrays
from cmvmed.numerics.kernel_expansions import FormedRows, blocks_of_rows, extended_centers
from cmvmed.numerics.types import Array

FEW_ROWS = 16  # of all graphs, whose distances stay in the cache


@dataclass(frozen=True)
class _NodeDistances:
    """γ‖x - z‖² to the nodes of a graph by one view, as a product of extended rows."""

    form: int
    nodes: Array  # (m, d)
    gamma: float
    extended: Array  # (d + 2, m)


class GraphMeans:
    """Graphs with equally many nodes and neighbors.

    Few rows are searched in all graphs at once, many in one graph after the other, so that distances stay in the cache.
    """

    def __init__(self, graph: GraphVote) -> None:
        self.size, self.n_neighbors = graph.size, graph.n_neighbors
        self.distances: list[_NodeDistances] = []
        self.functions: list[int] = []  # those that graphs are added to
        self._scores: dict[tuple[int, ...], dict[int, Array]] = {}  # by the distances of a graph, and by function

    def fits(self, graph: GraphVote) -> bool:
        """Whether a graph is one of this size."""
        return (graph.size, graph.n_neighbors) == (self.size, self.n_neighbors)

    def add(self, function: int, factor: float, graph: GraphVote, forms: RowForms) -> None:
        """Add a graph's scores, times a factor, to a function."""
        own = tuple(self._distance(graph, i, forms) for i in range(len(graph.centers)))
        scores = self._scores.setdefault(own, {})
        scores[function] = scores.get(function, 0.0) + factor * graph.node_scores

    def _distance(self, graph: GraphVote, i: int, forms: RowForms) -> int:
        centers, train, gamma = graph.centers[i], graph.distances.features[i], graph.gammas[i]
        form = forms.number(centers.view, centers.preprocessor)
        for number, known in enumerate(self.distances):
            if known.form == form and known.gamma == gamma and same_arrays(known.nodes, train):
                return number
        self.distances.append(_NodeDistances(form, train, gamma, -extended_centers(gamma, train)))
        return len(self.distances) - 1

    @property
    def graphs(self) -> list[tuple[int, ...]]:
        """The distances of each graph."""
        return list(self._scores)

    def prepare(self) -> None:
        """Put the node scores of all graphs together, after the last one was added."""
        K = next(scores.shape[1] for own in self._scores.values() for scores in own.values())
        self.functions = sorted({function for own in self._scores.values() for function in own})
        zeros = np.zeros((self.size, K))
        every = [np.hstack([own.get(j, zeros) for j in self.functions]) for own in self._scores.values()]
        self._values = np.concatenate(every)  # (graphs m, functions K)
        alone = {own[0] for own in self._scores if len(own) == 1}
        places = sorted(range(len(self.distances)), key=lambda number: (number in alone, number))
        self._place = {number: place for place, number in enumerate(places)}  # distances that are searched come last
        self._n_unsearched = len(self.distances) - len(alone)
        self._joint = [own for own in self._scores if len(own) > 1]
        searched = [(number,) for number in places if number in alone] + self._joint
        self._first = np.array([self.graphs.index(own) * self.size for own in searched])

    def workspace(self, n: int) -> Array:
        """Room for all distances of n rows: memory from the system costs time."""
        return np.empty((len(self.distances) + len(self._joint), n, self.size))

    def means(self, rows: Sequence[FormedRows], n: int, work: Array) -> Array:
        """The sums over graphs, (n, functions K), of n rows that have all views."""
        distances = work.reshape(-1)[: len(work) * n * self.size].reshape(len(work), n, self.size)
        for number, distance in enumerate(self.distances):
            np.matmul(rows[distance.form].extended, distance.extended, out=distances[self._place[number]])
        for place, own in enumerate(self._joint, len(self.distances)):
            _mean([distances[self._place[number]] for number in own], out=distances[place])
        searched = distances[self._n_unsearched :].reshape(-1, self.size)
        first = np.repeat(self._first, n)
        found = [
            nearest_means(searched[part], self.n_neighbors, self._values, first[part])
            for part in blocks_of_rows(len(searched), max(n, FEW_ROWS))
        ]
        every = found[0] if len(found) == 1 else np.concatenate(found)
        return np.asarray(every.reshape(len(self._first), n, -1).sum(axis=0))


def _mean(distances: Sequence[Array], out: Array) -> None:
    """The mean of distances by several views, (n, m)."""
    np.add(distances[0], distances[1], out=out)
    for more in distances[2:]:
        out += more
    out /= len(distances)
