"""A fitted model through fewer rows, for small model files.

Kernel expansions f(x) = Σ_i a_i k(x, x_i) over all training rows become expansions over p landmark rows Z, the nearest ones
in feature space: b = K_ZZ⁻¹ K_Z a, so that f is unchanged at the landmarks. An expansion of a linear kernel is one weight per
feature, and needs no rows. A graph keeps p of its nodes; each gets the mean score of the nodes nearest to it, and a
row is compared with so many fewer of them that they stand for about as many rows as before.

Expansions of smooth kernels lose little. A graph of fewer nodes is another graph, which may lose much. What changes is
therefore measured on the training rows, and a model that changes too much is not used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from cmvmed.auto.neighbors import NeighborPredictor
from cmvmed.estimators._prediction import FittedModel
from cmvmed.graphs.nodes import GraphScorer, Nodes
from cmvmed.members.candidates import OpinionScorer, PartScorer
from cmvmed.members.centered_kernels import KernelScorer
from cmvmed.model.predictors import KernelPredictor, ViewPredictor
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.linalg import is_sparse, whitening
from cmvmed.numerics.nystroem import RANK_TOLERANCE
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.view_rows import ViewData


@dataclass(frozen=True)
class Compacted:
    """A compact model, and how its predictions of the training rows differ from those of the whole one."""

    model: FittedModel
    n_rows: int  # landmarks of each view
    same_class: float  # share of the training rows whose most probable class is the same
    mean_change: float  # of the probability of that class


def compact_model(model: FittedModel, n_rows: int) -> Compacted:
    """The model through ``n_rows`` rows of each view, and of each graph."""
    neighbors, opinions = model.neighbors, model.opinions
    if neighbors is not None:
        nodes, scores = _fewer_nodes(neighbors.nodes, neighbors.scores, n_rows)
        neighbors = NeighborPredictor(nodes, scores)
    if opinions is not None:
        data = [p.data if isinstance(p, KernelPredictor) else None for p in model.predictors]
        scorers = tuple(_fewer_rows_of_opinion(scorer, data, n_rows) for scorer in opinions.pool.scorers)
        opinions = replace(opinions, pool=replace(opinions.pool, scorers=scorers))
    predictors = tuple(_fewer_rows(predictor, n_rows) for predictor in model.predictors)
    smaller = replace(model, predictors=predictors, neighbors=neighbors, opinions=opinions)
    return Compacted(smaller, n_rows, *_change(model, smaller))


def landmarks_of(data: ViewData, n_rows: int) -> IntArray:
    """Rows of a view's ``train``, ascending."""
    return np.sort(np.argsort(_priority(data, n_rows), kind="stable")[:n_rows])


def _priority(data: ViewData, n_rows: int) -> Array:
    """The order in which rows of ``train`` become landmarks, the same for all views that have a row.

    Labeled rows come first if they are at most half of the landmarks; the others are in a random order.
    """
    labeled, unlabeled = _random_order(data.rows_L, 0), _random_order(data.rows_U, 1)
    return np.concatenate([labeled - (labeled.size <= n_rows // 2), unlabeled])


def _random_order(rows: IntArray, seed: int) -> Array:
    """A number between 0 and 1 for each row, which depends on its own number alone."""
    return np.asarray(np.random.default_rng(seed).random(rows.max(initial=-1) + 1)[rows])


def project(
    kernel: Kernel, train: Matrix, landmarks: IntArray, rows: IntArray, coefficients: Array, bias: float
) -> Array:
    """b = K_ZZ⁻¹ K_Z a, (p, F), for coefficients a (r, F) of the rows."""
    R = whitening(kernel.gram(train, landmarks) + bias, RANK_TOLERANCE)
    right = (kernel.cross(train[landmarks], train, rows) + bias) @ coefficients
    return np.asarray(R @ (R.T @ right))


def _fewer_rows(predictor: ViewPredictor, n_rows: int) -> ViewPredictor:
    """A view's kernel expansion over landmarks; low-rank predictors consist of landmarks already.

    The unlabeled rows reduce the variance of a score by their curvature. A landmark gets the weight of the rows nearest to
    it, and their mean curvature.
    """
    if not isinstance(predictor, KernelPredictor) or predictor.n_basis_rows <= n_rows:
        return predictor
    data = predictor.data
    Z, every = landmarks_of(data, n_rows), np.arange(data.train.shape[0])
    a = np.concatenate([predictor.tau, predictor.gamma])
    curvature, row_weights = np.zeros((n_rows, predictor.curvature.shape[1])), np.zeros(n_rows)
    if predictor.curvature.any() and predictor.row_weights.any():
        nearest = _squared_distances(data, data.index_U, Z).argmin(axis=1)
        np.add.at(row_weights, nearest, predictor.row_weights)
        np.add.at(curvature, nearest, predictor.row_weights[:, None] * predictor.curvature)
        curvature /= np.where(row_weights > 0.0, row_weights, 1.0)[:, None]
    smaller = replace(
        data,
        train=data.train[np.ix_(Z, Z)] if data.columns is not None else data.train[Z],
        columns=None if data.columns is None else data.columns[Z],
        rows_L=np.empty(0, dtype=np.intp),
        rows_U=np.arange(n_rows),
    )
    gamma = project(data.kernel, data.train, Z, every, a, data.bias)
    return replace(predictor, data=smaller, tau=a[:0], gamma=gamma, row_weights=row_weights, curvature=curvature)


def _squared_distances(data: ViewData, rows: IntArray, landmarks: IntArray) -> Array:
    """‖φ(x) - φ(z)‖² less ‖φ(x)‖², (n, p)."""
    training = data.training_rows
    return np.asarray(training.diagonal(landmarks) - 2.0 * training.cross(rows, landmarks))


def _fewer_rows_of_opinion(scorer: OpinionScorer, data: Sequence[ViewData | None], n_rows: int) -> OpinionScorer:
    parts: list[PartScorer] = []
    for part in scorer.parts:
        if isinstance(part, GraphScorer):
            parts.append(GraphScorer(*_fewer_nodes(part.nodes, part.node_scores, n_rows)))
        elif isinstance(part, KernelScorer):
            parts.append(_fewer_rows_of_scorer(part, data[part.view], n_rows))
    return replace(scorer, parts=tuple(parts))


def _fewer_rows_of_scorer(part: KernelScorer, data: ViewData | None, n_rows: int) -> KernelScorer:
    """A kernel expansion over one row per class (linear), over landmarks, or, in low-rank models, over the rows in use."""
    if part.index is None:  # a linear kernel
        weights = part.basis.T @ part.coefficients
        rows = sparse.csr_matrix(weights.T) if is_sparse(part.basis) else np.ascontiguousarray(weights.T)
        return replace(part, basis=rows, coefficients=np.eye(rows.shape[0]))
    if data is None and part.preprocessor.columns is None:
        return replace(part, basis=part.basis[part.index], index=None)
    if data is None or part.basis.shape[0] <= n_rows:
        return part
    Z = landmarks_of(data, n_rows)
    coefficients = project(part.kernel, part.basis, Z, part.index, part.coefficients, 0.0)
    smaller = replace(part, index=None, coefficients=coefficients)
    if part.preprocessor.columns is None:
        return replace(smaller, basis=part.basis[Z])
    preprocessor = replace(part.preprocessor, columns=part.preprocessor.columns[Z])
    return replace(smaller, basis=part.basis[np.ix_(Z, Z)], preprocessor=preprocessor)


def _fewer_nodes(nodes: Nodes, scores: Array, n_rows: int) -> tuple[Nodes, Array]:
    """Some of the nodes of a graph, and the mean scores of those nearest to each."""
    if nodes.size <= n_rows:
        return nodes, scores
    order = np.full(nodes.size, np.inf)
    for view, place in zip(nodes.views, nodes.place, strict=True):
        has = place >= 0
        order[has] = np.minimum(order[has], _priority(view, n_rows)[place[has]])
    kept = np.sort(np.argsort(order, kind="stable")[:n_rows])
    weights, sums = np.zeros(n_rows), np.zeros((n_rows, scores.shape[1]))
    for block, distances in nodes.distances_between(kept):
        reached = np.isfinite(distances).any(axis=1)
        nearest, own = distances[reached].argmin(axis=1), block[reached]
        np.add.at(weights, nearest, nodes.weights[own])
        np.add.at(sums, nearest, nodes.weights[own, None] * scores[own])
    means = np.divide(sums, weights[:, None], out=scores[kept].copy(), where=weights[:, None] > 0.0)
    parts = [_of_nodes(view, place[kept]) for view, place in zip(nodes.views, nodes.place, strict=True)]
    smaller = Nodes(
        views=tuple(view for view, _, _ in parts),
        indices=nodes.indices,
        members=tuple(members for _, members, _ in parts),
        place=tuple(place for _, _, place in parts),
        present=np.ones(n_rows, dtype=bool),
        node_of_row=np.arange(n_rows),
        weights=weights,
        n_neighbors=max(1, round(nodes.n_neighbors * n_rows / nodes.size)),
    )
    return smaller, means


def _of_nodes(view: ViewData, place: IntArray) -> tuple[ViewData, IntArray, IntArray]:
    """A view with the rows of some nodes alone, which nodes have it, and where they are in its ``train``."""
    has = np.flatnonzero(place >= 0)
    where = np.full(place.size, -1)
    where[has] = np.arange(has.size)
    smaller = replace(view, train=view.train[place[has]], rows_L=np.empty(0, dtype=np.intp), rows_U=np.arange(has.size))
    return smaller, has, where


def _change(model: FittedModel, smaller: FittedModel) -> tuple[float, float]:
    """The share of the training rows that keep their class, and the mean change of its probability."""
    rows = held_training_rows(model)
    if rows is None:
        return 1.0, 0.0
    before, after = (m.probabilities(m.pooled.scored(*rows)) for m in (model, smaller))
    best, every = before.argmax(axis=1), np.arange(len(before))
    return float((after.argmax(axis=1) == best).mean()), float(np.abs(after - before)[every, best].mean())


def _views(model: FittedModel) -> Iterator[tuple[int, ViewData]]:
    """Training rows that a model holds, with the number of their view."""
    for i, predictor in enumerate(model.predictors):
        if isinstance(predictor, KernelPredictor):
            yield i, predictor.data
    for scorer in () if model.opinions is None else model.opinions.pool.scorers:
        for part in scorer.parts:
            if isinstance(part, GraphScorer):
                yield from zip(part.nodes.indices, part.nodes.views, strict=True)


def held_training_rows(model: FittedModel) -> tuple[list[Matrix], list[BoolArray]] | None:
    """The training rows as the user gave them, up to the clipping of features; None if the model does not hold them all."""
    data = dict(reversed(list(_views(model))))
    if len(data) < len(model.predictors):
        return None
    n_L = max(view.rows_L.max(initial=-1) for view in data.values()) + 1
    n_rows = n_L + max(view.rows_U.max(initial=-1) for view in data.values()) + 1
    matrices: list[Any] = []
    present = []
    for i, width in enumerate(model.schema.layout.widths):
        members = np.concatenate([data[i].rows_L, n_L + data[i].rows_U])
        entries = (np.ones(members.size), (members, np.arange(members.size)))
        to_all_rows = sparse.csr_matrix(entries, shape=(n_rows, members.size))
        matrices.append(to_all_rows @ data[i].preprocessor.inverse_transform(data[i].train, width))
        present.append(np.isin(np.arange(n_rows), members))
    return matrices, present
