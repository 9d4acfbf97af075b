"""The order of rows in a fitted model: the labeled rows first.

Kernels and graphs are computed of rows in the order of the table, which does not depend on labels. A fitted model holds
rows in one order, so that those that several of its parts use are held once.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cmvmed.graphs.nodes import GraphScorer, Nodes
from cmvmed.members.candidates import OpinionScorer, PartScorer
from cmvmed.members.centered_kernels import KernelScorer
from cmvmed.members.pool import PoolScorer
from cmvmed.numerics.types import IntArray, Matrix
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_kernel import FitView
from cmvmed.views.view_rows import ViewData


class FitOrder:
    """From the order of the table to that of a fit; equal parts stay one object."""

    def __init__(self, training: TrainingData, views: Sequence[FitView]) -> None:
        self.training = training
        self._views: dict[int, tuple[ViewData, IntArray]] = {
            id(view.whole): (view.data, _inverse(view.order)) for view in views
        }
        self._rows: dict[int, tuple[Matrix, IntArray]] = {
            id(view.whole.train): (view.data.train, _inverse(view.order)) for view in views
        }
        self._nodes: dict[int, Nodes] = {}

    def pool(self, scorer: PoolScorer) -> PoolScorer:
        """The opinions of a pool."""
        return replace(scorer, scorers=tuple(self._opinion(opinion) for opinion in scorer.scorers))

    def _opinion(self, scorer: OpinionScorer) -> OpinionScorer:
        return replace(scorer, parts=tuple(self._part(part) for part in scorer.parts))

    def _part(self, part: PartScorer) -> PartScorer:
        if isinstance(part, GraphScorer):
            return replace(part, nodes=self.nodes(part.nodes))
        if isinstance(part, KernelScorer) and part.index is not None and id(part.basis) in self._rows:
            rows, place = self._rows[id(part.basis)]
            return replace(part, basis=rows, index=place[part.index])
        return part

    def nodes(self, nodes: Nodes) -> Nodes:
        """The nodes of a graph."""
        if id(nodes) not in self._nodes:
            self._nodes[id(nodes)] = self._arranged_nodes(nodes)
        return self._nodes[id(nodes)]

    def _arranged_nodes(self, nodes: Nodes) -> Nodes:
        found = [self._view(view) for view in nodes.views]
        n_L, order = self.training.partition.block_L.size, self.training.order
        return Nodes(
            views=tuple(view for view, _ in found),
            indices=nodes.indices,
            members=tuple(np.concatenate([view.rows_L, n_L + view.rows_U]) for view, _ in found),
            place=tuple(np.where(own >= 0, place[own], -1) for own, (_, place) in zip(nodes.place, found, strict=True)),
            present=nodes.present[order],
            node_of_row=nodes.node_of_row[order],
            weights=nodes.weights,
            n_neighbors=nodes.n_neighbors,
        )

    def _view(self, view: ViewData) -> tuple[ViewData, IntArray]:
        """The view in the order of the fit, and where its rows are then."""
        if id(view) not in self._views:
            partition = self.training.partition
            arranged, order = view.arranged(self.training.rows, partition.block_L, partition.block_U)
            self._views[id(view)] = arranged, _inverse(order)
        return self._views[id(view)]


def _inverse(order: IntArray) -> IntArray:
    inverse = np.empty_like(order)
    inverse[order] = np.arange(order.size)
    return inverse
