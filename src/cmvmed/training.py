"""From views and labels to a fitted consensus: the rows' roles, the class prior, and the refit it may call for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.annealing import (
    Annealed,
    Problem,
    auto_consensus_weight,
    independent_states,
)
from cmvmed.consensus import agreement, agreement_weights, mean_agreement
from cmvmed.exact_views import CholeskyView, SpectralView
from cmvmed.labels import Labels
from cmvmed.linalg import Array, BoolArray, IntArray
from cmvmed.low_rank import LowRankView
from cmvmed.machines import LowRankMachine, Machine, ViewData, ViewMachine
from cmvmed.neighbours import (
    N_NEIGHBOURS,
    NeighbourGraph,
    NeighbourMachine,
    build_graph,
    graph_blocks,
    joins_views,
    trusted_neighbours,
)
from cmvmed.nystroem import Basis, choose_landmarks, fit_basis
from cmvmed.parallel import Mapper
from cmvmed.posterior import ViewModel

# What fully trusted neighbours weigh in the consensus, and λ beside them: they have heard all views already, so there is little
# left to learn from each other. Chosen on development splits (docs/accuracy.md).
NEIGHBOUR_WEIGHT = 0.9
NEIGHBOUR_CONSENSUS_WEIGHT = 0.02


@dataclass(frozen=True)
class RowRoles:
    """What each training row does.

    The labelled block holds the rows with a hinge; an unlabelled row of zero weight rides along in it with a zero hinge, so
    that it gets an opinion without having a say. Rows without any view are in neither block.
    """

    block_L: IntArray
    block_U: IntArray
    weights: Array  # (n,)
    hinge: Array  # (n,) relative hinge weight
    counts: Array  # (K,) weighted number of labelled rows of each class


def assign_roles(labels: Labels, present: Sequence[BoolArray], weights: Array, hinge: Array) -> RowRoles:
    """Sort the rows into the labelled and the unlabelled block."""
    seen = np.logical_or.reduce(present)
    labelled = labels.codes >= 0
    speaks = ~labelled & (weights > 0.0)
    usable = labelled & seen
    counts = np.bincount(labels.codes[usable], weights=weights[usable], minlength=labels.n_classes).astype(np.float64)
    if (counts == 0.0).any():
        lost = labels.classes[counts == 0.0].tolist()[0]
        raise ValueError(
            f"Every labelled row of class {lost!r} has all views missing, so nothing can be learned about it; label a row "
            "that has a view."
        )
    return RowRoles(np.flatnonzero(seen & ~speaks), np.flatnonzero(seen & speaks), weights, hinge, counts)


def landmark_basis(view: ViewData, roles: RowRoles, n_components: int, method: str, rng: np.random.Generator) -> Basis:
    """Low-rank features of a view, seen through its labelled rows and some of its unlabelled ones."""
    used = np.concatenate([roles.block_L[view.rows_L], roles.block_U[view.rows_U]])
    weights = roles.weights[used]
    labelled = view.index_L[weights[view.index_L] > 0.0]  # a row of no weight rides along without having a say
    chosen = choose_landmarks(view.training_rows, labelled, view.index_U, weights, n_components, method, rng)
    return fit_basis(view.training_rows, chosen, view.bias)


def build_problem(
    views: Sequence[ViewData],
    roles: RowRoles,
    Y: Array,
    n_classes: int,
    *,
    spectral: bool,
    bases: Sequence[Basis] | None = None,
    map_views: Mapper = map,
) -> Problem:
    """Kernel blocks and factorisations of all views.

    Parameters
    ----------
    Y : (n_L, F), labels ±1 of the labelled block
    spectral : one eigendecomposition per view (constant curvature) instead of a Cholesky factorisation per sweep
    bases : per view, the features that take the place of its kernel; None for the kernel itself
    """
    weights_U = roles.weights[roles.block_U]

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
        box=tuple(view.settings.C * roles.hinge[roles.block_L] for view in views),
        weights_U=weights_U,
        n_classes=n_classes,
    )


@dataclass(frozen=True)
class Surroundings:
    """The problem, with the neighbours' opinion as one more view if there is a graph, and how it is to be annealed."""

    problem: Problem
    view_weights: Array | None  # (V,) or (V + 1,); None: by agreement
    consensus_weight: float | None  # None: from the agreement
    graph: NeighbourGraph | None = None

    def machine(self, annealed: Annealed) -> NeighbourMachine | None:
        """What prediction needs of the neighbours' opinion: the scores of the graph's nodes."""
        if self.graph is None:
            return None
        state = annealed.states[-1]
        return NeighbourMachine(self.graph, np.concatenate([state.m_L, state.m_U])[self.graph.nodes])


def hear_neighbours(
    problem: Problem,
    views: Sequence[ViewData],
    roles: RowRoles,
    view_weights: Array | None,
    consensus_weight: float | None,
    n_neighbours: int | None,
) -> Surroundings:
    """Add the neighbours' opinion as far as it deserves trust.

    Parameters
    ----------
    view_weights : (V,), π; None weights the views by their agreement
    consensus_weight : λ; None takes it from the agreement of the views and the trust in neighbours
    n_neighbours : None asks the unlabelled rows whether neighbours are to be trusted; a number trusts so many in full
    """
    n_L, unheard = roles.block_L.size, Surroundings(problem, view_weights, consensus_weight)
    if not joins_views(views) or roles.block_U.size == 0 or (n_neighbours is None and len(views) < 2):
        return unheard
    states = independent_states(problem)
    R = agreement([state.m_U for state in states], problem.rows_U, problem.weights_U)
    pi = agreement_weights(R, problem.known_views) if view_weights is None else view_weights
    weights = roles.weights[np.concatenate([roles.block_L, roles.block_U])]
    graph = build_graph(views, n_L, weights, n_neighbours or N_NEIGHBOURS)
    g, agreed = 1.0, mean_agreement(R, pi)
    if n_neighbours is None:
        rows = [n_L + rows_U for rows_U in problem.rows_U]
        g = trusted_neighbours(graph, [state.m_U for state in states], rows, pi, agreed)
    if g == 0.0:
        return unheard
    blocks = graph_blocks(graph, n_L, problem.weights_U)
    spectral = isinstance(problem.models[0], SpectralView)
    hinge = float(np.mean([view.settings.C for view in views])) * roles.hinge[roles.block_L]
    joined = replace(
        problem,
        models=(*problem.models, SpectralView(blocks) if spectral else CholeskyView(blocks)),
        rows_L=(*problem.rows_L, np.arange(n_L)),
        rows_U=(*problem.rows_U, np.arange(roles.block_U.size)),
        box=(*problem.box, hinge),
        n_derived=1,
    )
    if consensus_weight is None:
        consensus_weight = (1.0 - g) * auto_consensus_weight(agreed) + g * NEIGHBOUR_CONSENSUS_WEIGHT
    share = g * NEIGHBOUR_WEIGHT
    return Surroundings(joined, np.append((1.0 - share) * pi, share), consensus_weight, graph)


def view_machines(
    views: Sequence[ViewData], bases: Sequence[Basis] | None, problem: Problem, annealed: Annealed
) -> tuple[Machine, ...]:
    """What prediction needs of each view."""
    lam = annealed.consensus_weight
    if bases is None:
        return tuple(
            ViewMachine.from_state(view, state, lam, problem.weights_U)
            for view, state in zip(views, annealed.states[: len(views)], strict=True)
        )
    machines: list[Machine] = []
    for view, basis, model, state in zip(views, bases, problem.models, annealed.states, strict=True):
        assert isinstance(model, LowRankView)
        gaussian = model.condition(lam, state.a[:, 0])
        machines.append(LowRankMachine(view.reader, basis.rotated(model.rotation), state.m_gamma, gaussian.d))
    return tuple(machines)
