"""From views and labels to a fitted consensus: the rows' roles, the class prior, and the refit it may call for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from cmvmed.annealing import (
    Annealed,
    Mapper,
    Problem,
    Schedule,
    anneal,
    auto_consensus_weight,
    independent_states,
)
from cmvmed.consensus import agreement, agreement_weights, mean_agreement, mean_correlation, pool
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
from cmvmed.posterior import ViewModel, ViewState, cavity_scores
from cmvmed.prior import MOST_QUESTIONS, Anchors, Balance, inferred_share, label_share, read_anchors, released_balance
from cmvmed.surrogates import Surrogate

# What fully trusted neighbours weigh in the consensus, and λ beside them: they have heard all views already, so there is little
# left to learn from each other. Chosen on development splits (docs/accuracy.md).
NEIGHBOUR_WEIGHT = 0.9
NEIGHBOUR_CONSENSUS_WEIGHT = 0.02
# Correlation with the independent views' opinion below which a consensus has gone astray, and what is left of λ then. Chosen on
# development splits (docs/accuracy.md).
LEAST_LOYALTY = 0.45
CAREFUL = 0.1
ANCHOR_ROWS = 20  # unlabelled rows that two views must share before they can tell the class prior


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
            return LowRankView(views[i].features(bases[i], weights_U))
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
    map_views: Mapper = map,
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
    states = independent_states(problem, map_views)
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


def given_prior(class_prior: Any, classes: Any) -> Array:
    """The user's class prior (K,): a number for the second of two classes, one number per class, or a dict by class."""
    n_classes = len(classes)
    if isinstance(class_prior, Mapping):
        unknown = [key for key in class_prior if key not in set(classes.tolist())]
        lacking = [name for name in classes.tolist() if name not in class_prior]
        if unknown or lacking:
            raise ValueError(
                f"class_prior must have one entry for each class {classes.tolist()}, but is {class_prior!r}."
            )
        prior = _numbers([class_prior[name] for name in classes.tolist()])
    elif np.ndim(class_prior) == 0:
        if n_classes != 2:
            raise ValueError(
                f"class_prior={class_prior!r} is one number, but there are {n_classes} classes: give one for each."
            )
        share = _numbers([class_prior])
        prior = np.concatenate([1.0 - share, share])
    else:
        prior = _numbers(list(class_prior))
    if prior.shape != (n_classes,) or not (prior > 0.0).all() or abs(prior.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"class_prior must give each of the {n_classes} classes a positive share, summing to 1, in the order of classes_ "
            f"{classes.tolist()}, but is {class_prior!r}."
        )
    return np.asarray(prior / prior.sum())


def _numbers(given: list[Any]) -> Array:
    """The given numbers as an array; NaN, which fits no prior, for what is no number."""
    return np.array([float(value) if isinstance(value, Real) else np.nan for value in given])


def most_passes(class_prior: Any, n_classes: int) -> int:
    """How often ``fit_consensus`` may run through all stages: for each share tried, and again with less consensus."""
    infers = isinstance(class_prior, str) and class_prior == "auto" and n_classes == 2
    return 2 * (MOST_QUESTIONS + 1 if infers else 1)


def fit_consensus(
    problem: Problem,
    surrogate: Surrogate,
    schedule: Schedule,
    class_prior: Any,
    labels: Labels,
    roles: RowRoles,
    view_weights: Array | None,
    *,
    before_stage: Callable[[int], None] = lambda stage: None,
    on_stage: Callable[[int, Annealed, Array], bool] = lambda stage, annealed, prior: False,
    map_views: Mapper = map,
) -> tuple[Annealed, Array]:
    """Anneal under the class prior asked for; return where it ended and the prior used, (K,).

    ``class_prior="auto"`` with two classes infers the share from labels and cross-view anchors, which takes up to three fits under
    shares that are tried, before the fit under the share found. With more classes it imposes an empirical-Bayes share in the
    first half of the stages only.
    """
    from_labels = label_share(roles.counts)
    infer = isinstance(class_prior, str) and class_prior == "auto"
    if class_prior is None:
        balance, prior = None, from_labels
    elif infer and problem.n_classes > 2:
        balance = released_balance(roles.counts, schedule.n_stages)
        prior = balance.prior
    else:
        prior = from_labels if isinstance(class_prior, str) else given_prior(class_prior, labels.classes)
        balance = Balance(prior)
    # not one row of the rarest class is expected: nothing to balance
    if roles.weights[roles.block_U].sum() * prior.min() < 1.0:
        balance = None
    independent = independent_states(problem, map_views)

    def run(balance: Balance | None, prior: Array) -> Annealed:
        return loyal_anneal(
            problem,
            surrogate,
            schedule,
            balance,
            view_weights,
            independent,
            before_stage=before_stage,
            on_stage=lambda stage, annealed: on_stage(stage, annealed, prior),
            map_views=map_views,
        )

    witnesses = _witnesses(problem, view_weights) if schedule.consensus_weight != 0.0 else []
    if not infer or balance is None or problem.n_classes > 2 or len(witnesses) < 2:
        return run(balance, prior), prior
    return _fit_under_inferred_share(problem, roles, witnesses, run)


def _witnesses(problem: Problem, view_weights: Array | None) -> list[int]:
    """Views that can tell the class prior by anchors: they have rows enough, and a say."""
    n_sensors = len(problem.models) - problem.n_derived
    has_say = np.ones(n_sensors) if view_weights is None else view_weights
    return [i for i in range(n_sensors) if problem.rows_U[i].size >= ANCHOR_ROWS and has_say[i] > 0.0]


def _fit_under_inferred_share(
    problem: Problem,
    roles: RowRoles,
    witnesses: Sequence[int],
    run: Callable[[Balance, Array], Annealed],
) -> tuple[Annealed, Array]:
    """Anneal under shares that are tried, then under the one they tell; two classes. A fit that was stopped is the last."""
    fits: list[tuple[Annealed, Array]] = []

    def fit(share: float) -> Annealed:
        prior = np.array([1.0 - share, share])
        fits.append((run(Balance(prior), prior), prior))
        return fits[-1][0]

    def ask(share: float) -> Anchors | None:
        annealed = fit(share)
        if annealed.stopped or annealed.consensus_weight == 0.0:
            return None
        lam = annealed.consensus_weight
        scores = [cavity_scores(problem.models[i], annealed.states[i], lam)[:, 0] for i in witnesses]
        anchors = read_anchors(scores, [problem.rows_U[i] for i in witnesses], problem.weights_U, share)
        # views that have clusters in common, which is why neighbours are heard, are no independent witnesses
        own = float(annealed.view_weights[: len(problem.models) - problem.n_derived].sum())
        return anchors and replace(anchors, variance=anchors.variance / own)

    share = inferred_share(roles.counts, ask)
    if not fits[-1][0].stopped:
        fit(share)
    return fits[-1]


def loyal_anneal(
    problem: Problem,
    surrogate: Surrogate,
    schedule: Schedule,
    balance: Balance | None,
    view_weights: Array | None,
    independent: tuple[ViewState, ...],
    **reporting: Any,
) -> Annealed:
    """Anneal; if the views' common opinion has left what they learned from the labels behind, anneal with less consensus.

    A consensus on some other structure of the unlabelled rows hardly correlates with the independent views' opinion. Only where λ
    is the library's choice.
    """
    annealed = anneal(problem, surrogate, schedule, balance, view_weights, independent, **reporting)
    if schedule.consensus_weight is not None or annealed.stopped or annealed.consensus_weight == 0.0:
        return annealed
    if not loyalty(problem, independent, annealed) < LEAST_LOYALTY:  # it is NaN where scores do not vary
        return annealed
    careful = replace(schedule, consensus_weight=CAREFUL * annealed.consensus_weight)
    return anneal(problem, surrogate, careful, balance, view_weights, independent, **reporting)


def loyalty(problem: Problem, independent: Sequence[ViewState], annealed: Annealed) -> float:
    """Correlation over the unlabelled rows of the pooled scores with those of the independent views, mean over functions."""
    n_rows = problem.weights_U.size
    before, _ = pool([state.m_U for state in independent], problem.rows_U, annealed.view_weights, n_rows)
    mass = problem.weights_U * annealed.consensus.coverage
    return mean_correlation(before, annealed.consensus.scores, mass)
