"""Scores of new rows by all opinions of a pool, in which each kernel value and each distance is computed once.

Several opinions compare a row with the same training rows: the joint kernel and those of the single views, the joint
graph and those of the single views. Their coefficients are put side by side, so that a block of rows is scaled and
compared once for all of them. What has no such form, as sparse rows or given kernels, is scored part by part.

In single precision only kernels are: the distances of the nearest of many rows often differ by less than it resolves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cmvmed.auto.opinions.candidates import OpinionScorer, PartScorer, row_factors
from cmvmed.auto.opinions.centered_kernels import KernelScorer
from cmvmed.auto.opinions.graph import GraphScorer, Nodes
from cmvmed.auto.opinions.nearest import nearest_means
from cmvmed.core.kernel_functions import (
    BLOCK_ROWS,
    KernelSum,
    are_moderate,
    blocks_of_rows,
    can_sum,
    extend,
    extended_centers,
    kernel_sum,
)
from cmvmed.core.kernels import Kernel
from cmvmed.core.linalg import is_sparse
from cmvmed.core.types import Array, BoolArray, IntArray, Matrix
from cmvmed.data.view_data import ViewPreprocessor


@dataclass(frozen=True)
class _Form:
    """A view's rows with one scaling."""

    view: int
    preprocessor: ViewPreprocessor

    def equals(self, view: int, preprocessor: ViewPreprocessor) -> bool:
        return self.view == view and _same(self.preprocessor, preprocessor)


@dataclass
class _KernelTerms:
    """All kernel expansions of the opinions in rows of one form, while they are collected."""

    form: int
    parts: list[tuple[Kernel, Array, list[tuple[int, Array]]]] = field(default_factory=list)
    constants: list[tuple[int, Array]] = field(default_factory=list)

    def add(self, opinion: int, part: KernelScorer) -> None:
        centers = part.basis if part.index is None else part.basis[part.index]
        self.constants.append((opinion, part.constant))
        for kernel, known, coefficients in self.parts:
            if (kernel.kind, kernel.gamma) == (part.kernel.kind, part.kernel.gamma) and _same(known, centers):
                coefficients.append((opinion, part.coefficients))
                return
        self.parts.append((part.kernel, centers, [(opinion, part.coefficients)]))

    def summed(self, dtype: type) -> tuple[IntArray, KernelSum]:
        """The opinions, and the sum of their kernel functions side by side."""
        opinions = sorted({opinion for opinion, _ in self.constants})
        K = self.constants[0][1].size

        def side_by_side(own: Sequence[tuple[int, Array]], n: int) -> Array:
            every = np.zeros((n, len(opinions), K))
            for opinion, values in own:
                every[:, opinions.index(opinion)] += values
            return every.reshape(n, -1)

        parts = [(kernel, centers, side_by_side(own, len(centers))) for kernel, centers, own in self.parts]
        return np.array(opinions), kernel_sum(parts, side_by_side(self.constants, 1)[0], dtype)


@dataclass(frozen=True)
class _NodeDistances:
    """γ‖x - z‖² to the nodes of a graph by one view, as a product of extended rows."""

    form: int
    nodes: Array  # (m, d)
    gamma: float
    extended: Array  # (d + 2, m)


class PoolScores:
    """The scores of a pool's opinions, prepared for many calls."""

    def __init__(self, scorers: Sequence[OpinionScorer], dtype: type = np.float64) -> None:
        self.scorers = scorers
        self.intercepts = np.stack([scorer.intercept for scorer in scorers])  # (J, K)
        self.factors = np.array([1.0 / np.sqrt(max(len(scorer.views), 1)) for scorer in scorers])  # of complete rows
        self.n_classes = self.intercepts.shape[1]
        self.forms: list[_Form] = []
        self.distances: list[_NodeDistances] = []
        self.graphs: list[tuple[int, GraphScorer, list[int]]] = []  # opinion, graph, its distances by view
        self.others: list[tuple[int, PartScorer]] = []
        kernels: dict[int, _KernelTerms] = {}
        for opinion, scorer in enumerate(scorers):
            for part in scorer.parts:
                if isinstance(part, KernelScorer) and can_sum(part.kernel, part.basis):
                    form = self._form(part.view, part.preprocessor)
                    kernels.setdefault(form, _KernelTerms(form)).add(opinion, part)
                elif isinstance(part, GraphScorer) and _is_whole(part.nodes):
                    self.graphs.append(
                        (opinion, part, [self._distance(part.nodes, i) for i in range(len(part.nodes.views))])
                    )
                else:
                    self.others.append((opinion, part))
        self.kernels = [(terms.form, *terms.summed(dtype)) for terms in kernels.values()]

    def _form(self, view: int, preprocessor: ViewPreprocessor) -> int:
        for i, form in enumerate(self.forms):
            if form.equals(view, preprocessor):
                return i
        self.forms.append(_Form(view, preprocessor))
        return len(self.forms) - 1

    def _distance(self, nodes: Nodes, i: int) -> int:
        view, train = nodes.views[i], nodes.features(i)
        form, gamma = self._form(nodes.indices[i], view.preprocessor), view.kernel.gamma
        for number, known in enumerate(self.distances):
            if known.form == form and known.gamma == gamma and _same(known.nodes, train):
                return number
        extended = -extended_centers(gamma, train)
        self.distances.append(_NodeDistances(form, train, gamma, extended))
        return len(self.distances) - 1

    def scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Scores (J, n, K) of rows given by view, with which rows have which view."""
        n = matrices[0].shape[0]
        if any(is_sparse(matrix) for matrix in matrices):
            return np.stack([scorer.scores(matrices, present) for scorer in self.scorers])
        scores = np.empty((len(self.scorers), n, self.n_classes))
        work = self._workspace(min(n, BLOCK_ROWS))
        for rows in blocks_of_rows(n):
            scores[:, rows] = self._block([matrix[rows] for matrix in matrices], [has[rows] for has in present], work)
        return scores

    def _workspace(self, n: int) -> list[Array]:
        """Room for the distances of n rows to the nodes, by view and by several: memory from the system costs time."""
        sizes = [len(distance.nodes) for distance in self.distances]
        return [np.empty((n, size)) for size in [*sizes, *([max(sizes)] if sizes else [])]]

    def _block(self, matrices: list[Matrix], present: list[BoolArray], work: list[Array]) -> Array:
        n, K = matrices[0].shape[0], self.n_classes
        scores = np.zeros((n, len(self.scorers), K))
        complete = all(has.all() for has in present)
        rows = [None if complete else np.flatnonzero(present[form.view]) for form in self.forms]
        points = [
            np.ascontiguousarray(
                form.preprocessor.transform(matrices[form.view] if own is None else matrices[form.view][own])
            )
            for form, own in zip(self.forms, rows, strict=True)
        ]
        for form, opinions, kernel in self.kernels:
            values = kernel.values(points[form]).reshape(-1, opinions.size, K)
            if (own := rows[form]) is None:
                scores[:, opinions] += values
            else:
                scores[np.ix_(own, opinions)] += values
        if complete and self.graphs:
            self._add_graphs(scores, points, work)
        others = self.others if complete else [*self.others, *((j, graph) for j, graph, _ in self.graphs)]
        for j, part in others:
            scores[:, j] += part.scores(matrices, present)
        return self._finished(scores, present, complete=complete)

    def _add_graphs(self, scores: Array, points: list[Array], work: list[Array]) -> None:
        """Add those of the graphs, of rows that have all views."""
        n, extended = len(scores), {d.form: extend(points[d.form], np.dtype(np.float64)) for d in self.distances}
        distances = [
            np.matmul(extended[d.form], d.extended, out=w[:n]) for d, w in zip(self.distances, work, strict=False)
        ]
        for j, graph, own in self.graphs:
            mean = distances[own[0]]
            if len(own) > 1:
                mean = _mean([distances[i] for i in own], work[-1].ravel()[: mean.size].reshape(mean.shape))
            scores[:, j] += nearest_means(mean, graph.nodes.n_neighbors, graph.node_scores)

    def _finished(self, scores: Array, present: list[BoolArray], *, complete: bool) -> Array:
        """Sums over views as means over those that a row has, and intercepts; (J, n, K) from (n, J, K)."""
        if complete:
            scores *= self.factors[:, None]
        else:
            for j, scorer in enumerate(self.scorers):
                if scorer.views:
                    scores[:, j] *= row_factors([present[view] for view in scorer.views])[:, None]
        scores += self.intercepts
        return scores.transpose(1, 0, 2)


def _mean(distances: Sequence[Array], out: Array) -> Array:
    """The mean of distances by several views, (n, m)."""
    np.add(distances[0], distances[1], out=out)
    for more in distances[2:]:
        out += more
    out /= len(distances)
    return out


def _is_whole(nodes: Nodes) -> bool:
    """Whether distances are those of moderate features in dense matrices, and all nodes have all views of the graph."""
    return (
        type(nodes) is Nodes
        and nodes.size > 0
        and all(
            (place >= 0).all() and not is_sparse(view.train) and are_moderate(view.train, view.kernel.gamma)
            for view, place in zip(nodes.views, nodes.place, strict=True)
        )
    )


def _same(first: Any, second: Any) -> bool:
    """Whether two arrays or preprocessors hold the same numbers."""
    if first is second:
        return True
    if isinstance(first, ViewPreprocessor):
        pairs = [(getattr(first.scaling, name), getattr(second.scaling, name)) for name in ("kind", "size", "clip")]
        arrays = [(getattr(first.scaling, name), getattr(second.scaling, name)) for name in ("mean", "factor")]
        means = [None if p.imputation is None else p.imputation.means for p in (first, second)]
        return (
            all(a == b for a, b in pairs)
            and all(_same(a, b) for a, b in [*arrays, (means[0], means[1])])
            and first.columns is None
            and second.columns is None
        )
    if first is None or second is None:
        return False
    return first.shape == second.shape and bool(np.array_equal(first, second, equal_nan=True))
