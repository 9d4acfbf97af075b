"""The vote of the nearest nodes of a graph: the mean score of those training rows that a new row is nearest to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cmvmed.graphs.distances import NodeDistances
from cmvmed.graphs.nodes import Nodes
from cmvmed.graphs.search import SAME_POINT, TIE_TOLERANCE, nearest_means
from cmvmed.model.terms import Centers, FewerRows, Present, are_finite, are_indices, check_that
from cmvmed.numerics.kernel_expansions import are_moderate
from cmvmed.numerics.kernels import row_blocks
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.types import Array, IntArray, Matrix

if TYPE_CHECKING:
    from cmvmed.model.evaluate import FusedSum
    from cmvmed.model.formulas import Formulas, Tensor

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class GraphVote(PickledByFields):
    """A term of one or more views; zero for rows that have none of them."""

    centers: tuple[Centers, ...]  # per view of the graph
    gammas: tuple[float, ...]  # per view, of its squared distances
    place: tuple[IntArray, ...]  # per view (m,), where each node is among the rows, -1 if it lacks the view
    mass: Array  # (m,), weight of the training rows that a node stands for
    n_neighbors: int
    node_scores: Array  # (m, K)

    @property
    def views(self) -> tuple[int, ...]:
        """The views of the graph."""
        return tuple(own.view for own in self.centers)

    @cached_property
    def needs(self) -> tuple[int, ...]:
        """The views that some node has."""
        return tuple(own.view for own, place in zip(self.centers, self.place, strict=True) if (place >= 0).any())

    @property
    def size(self) -> int:
        """Number of nodes, m."""
        return self.mass.size

    @property
    def n_compared(self) -> int:
        """None: new rows are compared with nodes some at a time."""
        return 0

    @property
    def n_kept(self) -> int:
        """Distances to all nodes."""
        return self.size * len(self.centers)

    @property
    def without_formula(self) -> str | None:
        """Graphs have a formula."""
        return None

    @cached_property
    def distances(self) -> NodeDistances:
        """Between points and nodes."""
        return NodeDistances.of([own.rows for own in self.centers], self.place, self.gammas)

    @cached_property
    def n_views(self) -> IntArray:
        """How many of the views each node has, (m,)."""
        return np.asarray(np.sum([place >= 0 for place in self.place], axis=0))

    @cached_property
    def is_dense(self) -> bool:
        """Whether distances are those of moderate features in dense matrices."""
        return (
            self.size > 0
            and bool(self.n_views.all())
            and all(
                not is_sparse(own.rows) and are_moderate(own.rows, gamma)
                for own, gamma in zip(self.centers, self.gammas, strict=True)
            )
        )

    def _squared(self, matrices: Sequence[Matrix], rows: Sequence[IntArray]) -> Iterator[Array]:
        """Per view ‖x - x'‖² between those of the new rows that have it and the nodes that have it."""
        points = (own.points(matrices, index) for own, index in zip(self.centers, rows, strict=True))
        yield from self.distances.squared(points)

    def scores(self, matrices: Sequence[Matrix], present: Present) -> Array:
        """(n, K), of rows given by view; zero for rows that have none of the views."""
        n = matrices[0].shape[0]
        scores = np.zeros((n, self.node_scores.shape[1]))
        for block in row_blocks(n, self.size):
            here = np.arange(block.start, block.stop)
            rows = [np.flatnonzero(present[view][here]) for view in self.views]
            squared = self._squared([matrix[here] for matrix in matrices], rows)
            scores[here] = self._vote(self.distances.mean(squared, rows, here.size))
        return scores

    def _vote(self, distances: Array) -> Array:
        return nearest_means(distances, self.n_neighbors, self.node_scores)

    def given_views(self, matrices: Sequence[Matrix], present: Present) -> Callable[[Present], Array]:
        """The scores of these rows as a function of the views that they are taken to have."""
        if len(self.centers) == 1:
            scores = self.scores(matrices, present)
            return lambda has: np.where(has[self.views[0]][:, None], scores, 0.0)
        n, known = matrices[0].shape[0], [np.flatnonzero(present[view]) for view in self.views]
        kept = list(self._squared(matrices, known))

        def vote(has: Present) -> Array:
            rows = [np.flatnonzero(has[view]) for view in self.views]
            places = [np.searchsorted(before, now) for before, now in zip(known, rows, strict=True)]
            squared = (own[place] for own, place in zip(kept, places, strict=True))
            return self._vote(self.distances.mean(squared, rows, n))

        return vote

    def join(self, sums: FusedSum, factor: float) -> bool:
        """Add the term to the graphs that are searched together; False unless rows are dense."""
        if self.is_dense:
            sums.add_graph(factor, self)
        return self.is_dense

    def smaller(self, fewer: FewerRows) -> GraphVote:
        """Some of the nodes, each with the mean score of those nearest to it.

        A row is compared with so many fewer of them that they stand for about as many rows as before.
        """
        n_rows = fewer.n_rows
        if self.size <= n_rows:
            return self
        order = np.full(self.size, np.inf)
        for own, place in zip(self.centers, self.place, strict=True):
            has = place >= 0
            numbers = np.arange(own.size) if own.numbers is None else own.numbers
            order[has] = np.minimum(order[has], fewer.priority[numbers[place[has]]])
        kept = np.sort(np.argsort(order, kind="stable")[:n_rows])
        mass, sums = np.zeros(n_rows), np.zeros((n_rows, self.node_scores.shape[1]))
        for block, distances in self._distances_of_nodes():
            to_kept = distances[:, kept]
            reached = np.isfinite(to_kept).any(axis=1)
            nearest, own_nodes = to_kept[reached].argmin(axis=1), block[reached]
            np.add.at(mass, nearest, self.mass[own_nodes])
            np.add.at(sums, nearest, self.mass[own_nodes, None] * self.node_scores[own_nodes])
        means = np.divide(sums, mass[:, None], out=self.node_scores[kept].copy(), where=mass[:, None] > 0.0)
        places = [place[kept] for place in self.place]
        return replace(
            self,
            centers=tuple(own.chosen(p[p >= 0]) for own, p in zip(self.centers, places, strict=True)),
            place=tuple(np.where(p >= 0, np.cumsum(p >= 0) - 1, -1) for p in places),
            mass=mass,
            n_neighbors=max(1, round(self.n_neighbors * n_rows / self.size)),
            node_scores=means,
        )

    def _distances_of_nodes(self) -> Iterator[tuple[IntArray, Array]]:
        """Some nodes at a time, with their distances to all nodes."""
        for block in row_blocks(self.size, self.size):
            chosen = np.arange(block.start, block.stop)
            points, rows = [], []
            for own, place in zip(self.centers, self.place, strict=True):
                has = np.flatnonzero(place[chosen] >= 0)
                points.append(own.rows[place[chosen[has]]])
                rows.append(has)
            yield chosen, self.distances.of_points(points, rows, chosen.size)

    def compared(self) -> Iterator[tuple[Matrix, IntArray]]:
        """The rows of the nodes."""
        for own, place in zip(self.centers, self.place, strict=True):
            yield own.rows, place[place >= 0]

    def emit(self, formulas: Formulas) -> Tensor:
        """The mean of the scores of each row's nearest nodes."""
        if self.size == 0:
            return formulas.views[0].mask * np.zeros((1, self.node_scores.shape[1]))
        return nearest_mean(self._emit_distances(formulas), self.node_scores, self.n_neighbors)

    def _emit_distances(self, formulas: Formulas) -> Tensor:
        """The distances of :class:`NodeDistances`, (n, m)."""
        own, n_views = [formulas.views[view] for view in self.views], len(self.views)
        in_node = [np.asarray(place >= 0, dtype=np.float64) for place in self.place]
        both = [view.mask * has for view, has in zip(own, in_node, strict=True)]
        used = [k for k in range(n_views) if in_node[k].any()]
        total = formulas.sum_of([self._emit_view(k, formulas) * both[k] for k in used])
        count = formulas.sum_of(both)
        unlike = count.below(formulas.sum_of([view.mask for view in own])) | count.below(np.sum(in_node, axis=0))
        total = unlike.where(total.at_least(2.0 * SAME_POINT * n_views), total)
        return count.above(0.0).where(total / count.at_least(1.0), np.inf)

    def _emit_view(self, k: int, formulas: Formulas) -> Tensor:
        """γ‖x - x'‖² in the graph's k-th view, (n, m); arbitrary finite numbers for nodes without the view."""
        centers, place = self.centers[k], self.place[k]
        used, points = formulas.rows.used(centers.rows), formulas.views[centers.view].points(centers.preprocessor)
        distances = formulas.rows.squared_distances(points, centers.rows) * self.gammas[k]
        columns = np.searchsorted(used, np.maximum(place, used[0]))
        if not np.array_equal(columns, np.arange(used.size)):
            distances = distances.graph.apply("Gather", distances, columns.astype(np.int64), axis=1)
        return distances

    def check(self, n_classes: int, widths: Sequence[int]) -> None:
        """Raise a ValueError unless its arrays fit together."""
        fit = len(self.gammas) == len(self.place) == len(self.centers) > 0
        check_that(fit and type(self.n_neighbors) is int and self.n_neighbors > 0, "a graph lacks some of its views")
        for own, place in zip(self.centers, self.place, strict=True):
            check_that(are_indices(place, own.size, least=-1) and place.size == self.size, "a node is none of the rows")
        check_that(are_finite(self.node_scores, (self.size, n_classes)), "scores do not fit the nodes")


def nearest_mean(distances: Tensor, scores: Array, n_neighbors: int) -> Tensor:
    """The mean score (n, K) of each row's nearest nodes, zero without any.

    Nodes equal to the row are its only neighbors; ties with the last neighbor are neighbors too.

    Parameters
    ----------
    distances : (n, m), with m >= 1
    scores : (m, K)
    """
    graph, k = distances.graph, min(n_neighbors, len(scores))
    nearest = graph.results("TopK", 2, distances, np.array([k]), axis=1, largest=0, sorted=1)[0]
    first, last = (graph.apply("Gather", nearest, np.array([i]), axis=1) for i in (0, k - 1))
    reach = (last * (1.0 + TIE_TOLERANCE) + SAME_POINT).at_most(LARGEST)
    chosen = distances.within(first.within(SAME_POINT).where(SAME_POINT, reach)).as_number()
    return chosen @ scores / chosen.sum().at_least(1.0)


def graph_vote(nodes: Nodes, node_scores: Array) -> GraphVote:
    """The vote of the nodes of a graph of training rows, with scores (m, K)."""
    parts = zip(nodes.indices, nodes.views, nodes.members, strict=True)
    return GraphVote(
        centers=tuple(Centers(i, view.preprocessor, view.train, numbers) for i, view, numbers in parts),
        gammas=tuple(view.kernel.gamma for view in nodes.views),
        place=nodes.place,
        mass=nodes.weights,
        n_neighbors=nodes.n_neighbors,
        node_scores=node_scores,
    )
