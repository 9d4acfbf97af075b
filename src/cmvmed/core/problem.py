"""From views and labels to a fitted consensus: the rows' partition, the class prior, and the refit it may call for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.neighbors import (
    N_NEIGHBORS,
    NeighborGraph,
    NeighborPredictor,
    build_graph,
    graph_blocks,
    joins_views,
    neighbor_weight,
)
from cmvmed.core.annealing import (
    AnnealingResult,
    Problem,
    auto_consensus_weight,
    independent_states,
)
from cmvmed.core.consensus import agreement, agreement_weights, mean_agreement
from cmvmed.core.exact import CholeskyView, SpectralView
from cmvmed.core.linalg import Array, BoolArray, IntArray
from cmvmed.core.low_rank import LowRankView
from cmvmed.core.nystroem import Basis, choose_landmarks, fit_basis
from cmvmed.core.posterior import ViewModel
from cmvmed.core.threads import Mapper
from cmvmed.data.labels import Labels
from cmvmed.data.view_data import KernelPredictor, LowRankPredictor, ViewData, ViewPredictor

# What fully trusted neighbors weigh in the consensus, and λ beside them: they have heard all views already, so there is little
# left to learn from each other. Chosen on development splits (docs/accuracy.md).
NEIGHBOR_WEIGHT = 0.9
NEIGHBOR_CONSENSUS_WEIGHT = 0.02


@dataclass(frozen=True)
class RowPartition:
    """What each training row does.

    The labeled block holds the rows with a hinge; an unlabeled row of zero weight rides along in it with a zero hinge, so
    that it gets an opinion without having a say. Rows without any view are in neither block.
    """

    block_L: IntArray
    block_U: IntArray
    weights: Array  # (n,)
    hinge: Array  # (n,) relative hinge weight
    counts: Array  # (K,) weighted number of labeled rows of each class


def partition_rows(labels: Labels, present: Sequence[BoolArray], weights: Array, hinge: Array) -> RowPartition:
    """Sort the rows into the labeled and the unlabeled block."""
    seen = np.logical_or.reduce(present)
    labeled = labels.codes >= 0
    speaks = ~labeled & (weights > 0.0)
    usable = labeled & seen
    counts = np.bincount(labels.codes[usable], weights=weights[usable], minlength=labels.n_classes).astype(np.float64)
    if (counts == 0.0).any():
        lost = labels.classes[counts == 0.0].tolist()[0]
        raise ValueError(
            f"Every labeled row of class {lost!r} has all views missing, so nothing can be learned about it; label a row "
            "that has a view."
        )
    return RowPartition(np.flatnonzero(seen & ~speaks), np.flatnonzero(seen & speaks), weights, hinge, counts)


def landmark_basis(
    view: ViewData, partition: RowPartition, n_components: int, method: str, rng: np.random.Generator
) -> Basis:
    """Low-rank features of a view, seen through its labeled rows and some of its unlabeled ones."""
    used = np.concatenate([partition.block_L[view.rows_L], partition.block_U[view.rows_U]])
    weights = partition.weights[used]
    labeled = view.index_L[weights[view.index_L] > 0.0]  # a row of no weight rides along without having a say
    chosen = choose_landmarks(view.training_rows, labeled, view.index_U, weights, n_components, method, rng)
    return fit_basis(view.training_rows, chosen, view.bias)


def build_problem(
    views: Sequence[ViewData],
    partition: RowPartition,
    Y: Array,
    n_classes: int,
    *,
    spectral: bool,
    bases: Sequence[Basis] | None = None,
    map_views: Mapper = map,
) -> Problem:
    """Kernel blocks and factorizations of all views.

    Parameters
    ----------
    Y : (n_L, F), labels ±1 of the labeled block
    spectral : one eigendecomposition per view (constant curvature) instead of a Cholesky factorization per sweep
    bases : per view, the features that take the place of its kernel; None for the kernel itself
    """
    weights_U = partition.weights[partition.block_U]

    def model(i: int) -> ViewModel:
        if bases is not None:
            return views[i].low_rank(bases[i], weights_U)
        blocks = views[i].blocks(weights_U)
        return SpectralView(blocks) if spectral else CholeskyView(blocks)

    return Problem(
        models=tuple(map_views(model, range(len(views)))),
        rows_L=tuple(view.rows_L for view in views),
        rows_U=tuple(view.rows_U for view in views),
        Y=Y,
        box=tuple(view.settings.C * partition.hinge[partition.block_L] for view in views),
        weights_U=weights_U,
        n_classes=n_classes,
    )


@dataclass(frozen=True)
class Surroundings:
    """The problem, with the neighbors' opinion as one more view if there is a graph, and how it is to be annealed."""

    problem: Problem
    view_weights: Array | None  # (V,) or (V + 1,); None: by agreement
    consensus_weight: float | None  # None: from the agreement
    graph: NeighborGraph | None = None

    def predictor(self, annealed: AnnealingResult) -> NeighborPredictor | None:
        """What prediction needs of the neighbors' opinion: the scores of the graph's nodes."""
        if self.graph is None:
            return None
        state = annealed.states[-1]
        return NeighborPredictor(self.graph, np.concatenate([state.m_L, state.m_U])[self.graph.nodes])


def add_neighbor_view(
    problem: Problem,
    views: Sequence[ViewData],
    partition: RowPartition,
    view_weights: Array | None,
    consensus_weight: float | None,
    n_neighbors: int | None,
) -> Surroundings:
    """Add the neighbors' opinion as far as it deserves trust.

    Parameters
    ----------
    view_weights : (V,), π; None weights the views by their agreement
    consensus_weight : λ; None takes it from the agreement of the views and the trust in neighbors
    n_neighbors : None asks the unlabeled rows whether neighbors are to be trusted; a number trusts so many in full
    """
    n_L, unheard = partition.block_L.size, Surroundings(problem, view_weights, consensus_weight)
    if not joins_views(views) or partition.block_U.size == 0 or (n_neighbors is None and len(views) < 2):
        return unheard
    states = independent_states(problem)
    R = agreement([state.m_U for state in states], problem.rows_U, problem.weights_U)
    pi = agreement_weights(R, problem.known_views) if view_weights is None else view_weights
    weights = partition.weights[np.concatenate([partition.block_L, partition.block_U])]
    graph = build_graph(views, n_L, weights, n_neighbors or N_NEIGHBORS)
    g, agreed = 1.0, mean_agreement(R, pi)
    if n_neighbors is None:
        rows = [n_L + rows_U for rows_U in problem.rows_U]
        g = neighbor_weight(graph, [state.m_U for state in states], rows, pi, agreed)
    if g == 0.0:
        return unheard
    blocks = graph_blocks(graph, n_L, problem.weights_U)
    spectral = isinstance(problem.models[0], SpectralView)
    hinge = float(np.mean([view.settings.C for view in views])) * partition.hinge[partition.block_L]
    joined = replace(
        problem,
        models=(*problem.models, SpectralView(blocks) if spectral else CholeskyView(blocks)),
        rows_L=(*problem.rows_L, np.arange(n_L)),
        rows_U=(*problem.rows_U, np.arange(partition.block_U.size)),
        box=(*problem.box, hinge),
        n_derived=1,
    )
    if consensus_weight is None:
        consensus_weight = (1.0 - g) * auto_consensus_weight(agreed) + g * NEIGHBOR_CONSENSUS_WEIGHT
    share = g * NEIGHBOR_WEIGHT
    return Surroundings(joined, np.append((1.0 - share) * pi, share), consensus_weight, graph)


def view_predictors(
    views: Sequence[ViewData], bases: Sequence[Basis] | None, problem: Problem, annealed: AnnealingResult
) -> tuple[ViewPredictor, ...]:
    """What prediction needs of each view."""
    lam = annealed.consensus_weight
    if bases is None:
        return tuple(
            KernelPredictor.from_state(view, state, lam, problem.weights_U)
            for view, state in zip(views, annealed.states[: len(views)], strict=True)
        )
    predictors: list[ViewPredictor] = []
    for view, basis, model, state in zip(views, bases, problem.models, annealed.states, strict=True):
        assert isinstance(model, LowRankView)
        gaussian = model.condition(lam, state.a[:, 0])
        predictors.append(LowRankPredictor(view.reader, basis.rotated(model.rotation), state.m_gamma, gaussian.d))
    return tuple(predictors)
