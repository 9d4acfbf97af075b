"""How much each view contributes to the score of each row.

The score of the consensus alone is a sum over views, and so are its shares: π_i m_i / Σ π over the views that the row
has, and the offset. With opinions the score is not a sum over views. The share of a view is then its Shapley value

    φ_i = Σ_{S ∌ i} |S|! (V - |S| - 1)! / V! · (v(S ∪ i) - v(S)),

where v(S) is the score that the model gives to the row if it has the views S alone; v(∅) is that of the class prior.
The values add up to the score, whatever the model is. Of more than a few views, the mean of v(S ∪ i) - v(S) is taken over
random orders in which views join: an estimate of φ_i that adds up to the score as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from math import factorial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils.validation import check_is_fitted

from cmvmed.core.consensus import pool
from cmvmed.data.array_api import on_host
from cmvmed.data.reading import InputSettings, open_new
from cmvmed.data.sources import memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, MAX_CHUNK_ROWS, as_numbers
from cmvmed.data.validation import with_rows
from cmvmed.estimators._prediction import (
    SCORE_COPIES,
    FittedModel,
    PooledPredictor,
    ScoredRows,
    fill_missing,
    scikit_shape,
    warn_without_views,
)
from cmvmed.estimators._settings import read_input_settings
from cmvmed.graphs.nodes import GraphScorer, Nodes
from cmvmed.members.candidates import PartScorer
from cmvmed.members.centered_kernels import KernelScorer
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix

PRIOR = "prior"
MAX_EXACT_VIEWS = 8  # up to which all 2^V sets of views are scored
N_ORDERS = 64  # random orders of more views
MAX_KEPT_DISTANCES = 2**22  # between rows and nodes of a graph, at a time

# By set of views, the weight (V,) of its score in the share of each view.
Coalitions: TypeAlias = dict[tuple[bool, ...], Array]


class ExplainMixin:
    """The method ``explain``."""

    _model: FittedModel

    def explain(self, X: object) -> dict[str, Any]:
        """Share of each view in the score of each row; the shares add up to ``decision_function(X)``.

        With ``opinions="consensus"`` a score is the weighted mean of the views' scores and an offset, and its shares
        are the terms of this sum. Otherwise the share of a view is its Shapley value: the mean, over all orders in
        which views become known, of how much the model's score changes when this one does. Of more than eight views it is
        the mean over about 64 random orders, always the same.

        Parameters
        ----------
        X : as in ``decision_function``, except for dask collections

        Returns
        -------
        shares : dict from view name, and "prior", to arrays as ``decision_function`` gives them
            A view that a row does not have is 0. "prior" is what does not depend on the row: the offset of the class
            balance, or the score of the class prior if there are opinions or the row has no view.
        """
        check_is_fitted(self)
        return explain(self._model, X, read_input_settings(self))  # type: ignore[arg-type]


def explain(model: FittedModel, X: object, settings: InputSettings) -> dict[str, Any]:
    """The shares in the scores of all rows of X, by view; in chunks for many rows."""
    names = model.schema.view_names
    if PRIOR in names:
        raise ValueError(f"A view is named {PRIOR!r}, as the part that does not depend on the row; use another name.")
    opened, explainer = open_new(on_host(X), model.schema, settings), Explainer.of(model)
    if not isinstance(opened, list) and opened.in_dask:
        raise TypeError(
            "explain does not take dask collections: pass a part of the rows that is in memory, such as "
            "X.partitions[0].compute(), or write them to a file and pass its path."
        )
    if isinstance(opened, list) and opened[0].shape[0] <= MAX_CHUNK_ROWS:
        table = explainer(0, [as_numbers(matrix) for matrix in opened])
    else:
        source = memory_rows(opened) if isinstance(opened, list) else opened.rows(model.schema.layout, settings)
        table = np.concatenate(list(source.map(explainer, bytes_per_row=explainer.bytes_per_row)))
    shares = warn_without_views(ScoredRows.read(table)).values
    by_name = np.split(shares, len(names) + 1, axis=1)
    return {name: scikit_shape(values) for name, values in zip([*names, PRIOR], by_name, strict=True)}


@dataclass(frozen=True)
class Explainer:
    """The shares in the scores of chunks of rows."""

    model: FittedModel
    coalitions: Coalitions

    @classmethod
    def of(cls, model: FittedModel) -> "Explainer":
        """Of a model; the score of the consensus alone is a sum, and needs no sets of views."""
        is_sum = model.opinions is None and model.neighbors is None
        return cls(model, {} if is_sum else shapley_weights(len(model.predictors)))

    @cached_property
    def n_distances(self) -> int:
        """How many distances to training rows are kept for each row."""
        graphs = [] if self.model.neighbors is None else [self.model.neighbors.nodes]
        if self.model.opinions is not None:
            parts = [part for scorer in self.model.opinions.pool.scorers for part in scorer.parts]
            graphs += [part.nodes for part in parts if isinstance(part, GraphScorer)]
        return max((nodes.size * len(nodes.indices) for nodes in graphs), default=0)

    @property
    def bytes_per_row(self) -> int:
        """Memory that a row needs while its score is explained."""
        return self.model.pooled.bytes_per_row + SCORE_COPIES * FLOAT_BYTES * self.n_distances

    def __call__(self, first_row: int, matrices: list[Matrix]) -> Array:
        """The coverage of each row, then the shares of the views and of the prior in its scores, (n, 1 + (V + 1) F)."""
        present, n_rows = self.model.row_check.present(first_row, matrices), matrices[0].shape[0]
        shares = self._shapley_values if self.coalitions else self._terms
        step = max(1, MAX_KEPT_DISTANCES // max(1, self.n_distances))
        blocks = [slice(start, start + step) for start in range(0, n_rows, step)]
        return np.concatenate([shares([m[rows] for m in matrices], [has[rows] for has in present]) for rows in blocks])

    def _terms(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """π_i m_i / Σ π of the views that a row has, and the offset."""
        model, n_rows = self.model, matrices[0].shape[0]
        rows, means = model.pooled.means(matrices, present)
        _, coverage = pool(means, rows, model.pool_weights, n_rows)
        total, zero = np.where(coverage > 0.0, coverage, 1.0)[:, None], np.zeros(model.offset.size)
        terms = [
            with_rows(weight * mean / total[index], index, n_rows, zero)
            for weight, mean, index in zip(model.pool_weights, means, rows, strict=True)
        ]
        prior = fill_missing(np.tile(model.offset, (n_rows, 1)), coverage, model.prior_scores)
        return np.hstack([coverage[:, None], *terms, prior])

    def _shapley_values(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """The Shapley values of the views that a row has, and the score of the class prior."""
        model, n_rows = self.model, matrices[0].shape[0]
        pooled = of_known_rows(model.pooled, matrices, present)
        numbers: list[Matrix] = [np.arange(n_rows)[:, None]] * len(matrices)
        shares: list[Any] = [0.0] * len(matrices)
        for members, weights in self.coalitions.items():
            has = [own if member else np.zeros_like(own) for own, member in zip(present, members, strict=True)]
            scored = pooled.scored(numbers, has)
            value = model.decision_scores(scored)
            shares = [share + weight * value for share, weight in zip(shares, weights, strict=True)]
            if not any(members):
                prior = value
            if all(members):
                coverage = scored.coverage
        usable = pooled.usable(present)
        views = [np.where(own[:, None], share, 0.0) for own, share in zip(usable, shares, strict=True)]
        return np.hstack([coverage[:, None], *views, prior])


def shapley_weights(n_views: int) -> Coalitions:
    """The weights of the scores of sets of views in the views' shares; all sets if the views are few."""
    if n_views > MAX_EXACT_VIEWS:
        return _weights_of_orders(n_views)
    weight = [factorial(s) * factorial(n_views - s - 1) / factorial(n_views) for s in range(n_views)] + [0.0]
    found = {}
    for members in product((False, True), repeat=n_views):
        size = sum(members)
        found[members] = np.where(members, weight[size - 1], -weight[size])
    return found


def _weights_of_orders(n_views: int) -> Coalitions:
    """The same over random orders.

    Each is taken with all its rotations, so that every view is at every position equally often, and with the reverse of
    these, so that errors partly cancel.
    """
    rng, n_random = np.random.default_rng(0), -(-N_ORDERS // (2 * n_views))
    rotated = [
        np.roll(order, shift)
        for order in rng.permuted(np.tile(np.arange(n_views), (n_random, 1)), axis=1)
        for shift in range(n_views)
    ]
    orders = [*rotated, *(order[::-1] for order in rotated)]
    found: Coalitions = {}
    for order in orders:
        members = np.zeros(n_views, dtype=bool)
        for view in order:
            for joined, sign in ((False, -1.0), (True, 1.0)):
                members[view] = joined
                found.setdefault(tuple(members.tolist()), np.zeros(n_views))[view] += sign / len(orders)
    return found


def of_known_rows(pooled: PooledPredictor, matrices: list[Matrix], present: list[BoolArray]) -> PooledPredictor:
    """The same predictions of these rows alone, given by their numbers: what depends on one view is computed once."""
    usable, n_rows = pooled.usable(present), matrices[0].shape[0]
    rows, means = pooled.means(matrices, present)
    zero = np.zeros(pooled.offset.size)
    predictors = [
        KnownMeans(with_rows(mean, index, n_rows, zero), p.has_training_rows)
        for p, mean, index in zip(pooled.predictors, means, rows, strict=True)
    ]
    graphs: dict[int, KnownNodes] = {}

    def known_nodes(nodes: Nodes) -> KnownNodes:
        if id(nodes) not in graphs:
            graphs[id(nodes)] = KnownNodes.to_rows(nodes, matrices, usable)
        return graphs[id(nodes)]

    def known_part(part: PartScorer) -> PartScorer:
        if isinstance(part, GraphScorer) and len(part.nodes.indices) > 1:
            return replace(part, nodes=known_nodes(part.nodes))
        if isinstance(part, GraphScorer):
            return KnownScores(part.nodes.indices[0], part.scores(matrices, usable))
        if isinstance(part, KernelScorer):
            return KnownScores(part.view, part.scores(matrices, usable))
        raise TypeError(f"Scores of a {type(part).__name__} cannot be explained.")

    neighbors, opinions = pooled.neighbors, pooled.opinions
    if neighbors is not None:
        neighbors = replace(neighbors, nodes=known_nodes(neighbors.nodes))
    if opinions is not None:
        scorers = [replace(scorer, parts=tuple(map(known_part, scorer.parts))) for scorer in opinions.pool.scorers]
        opinions = replace(opinions, pool=replace(opinions.pool, scorers=tuple(scorers)))
    return replace(pooled, predictors=tuple(predictors), neighbors=neighbors, opinions=opinions)


@dataclass(frozen=True)
class KnownMeans:
    """A view's posterior means of rows that are given by their numbers."""

    means: Array  # (n, F), zero for rows without the view
    has_training_rows: bool
    n_basis_rows: int = 0

    def mean(self, rows: Matrix, dtype: DTypeLike = np.float64) -> Array:
        """Posterior means (m, F) of some of the rows."""
        return np.asarray(self.means[rows[:, 0]])


@dataclass(frozen=True)
class KnownScores:
    """Scores, by a kernel of one view, of rows that are given by their numbers."""

    view: int
    values: Array  # (n, K), zero for rows without the view
    n_basis_rows: int = 0

    def scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Scores (m, K) of some of the rows, with which rows have which view."""
        return np.where(present[self.view][:, None], self.values[matrices[self.view][:, 0]], 0.0)


@dataclass(frozen=True)
class KnownNodes(Nodes):
    """A graph and the distances of its nodes to rows that are given by their numbers."""

    squared: tuple[Array, ...]  # per view of the graph, (n, nodes with the view); zero for rows without the view

    @classmethod
    def to_rows(cls, nodes: Nodes, matrices: list[Matrix], present: list[BoolArray]) -> "KnownNodes":
        """Compute the distances."""
        rows = [np.flatnonzero(present[i]) for i in nodes.indices]
        squared = [
            with_rows(values, own, matrices[0].shape[0], np.zeros(values.shape[1]))
            for values, own in zip(nodes.squared_of_new(matrices, rows), rows, strict=True)
        ]
        return cls(**{field.name: getattr(nodes, field.name) for field in fields(Nodes)}, squared=tuple(squared))

    def squared_of_new(self, matrices: Sequence[Matrix], rows: Sequence[IntArray]) -> Iterator[Array]:
        """Per view of the graph, the distances of those of the rows that have it."""
        for squared, i, own in zip(self.squared, self.indices, rows, strict=True):
            yield squared[matrices[i][own, 0]]
