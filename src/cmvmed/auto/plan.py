"""From the user's settings to a plan: every "auto" is decided here, in order, before the EM algorithm runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.agreement import agreement_weights, auto_consensus_weight, mean_agreement
from cmvmed.auto.anchors import anchored_share
from cmvmed.auto.class_prior import initial_balance
from cmvmed.auto.neighbors import NeighborGraph, add_neighbor_view
from cmvmed.auto.ranks import ranked_share
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Plan, Schedule, supervised_start
from cmvmed.core.consensus import ClassBalance
from cmvmed.core.problem import Problem, RowPartition
from cmvmed.core.surrogates import Surrogate
from cmvmed.core.types import Array, IntArray
from cmvmed.data.view_data import ViewData


@dataclass(frozen=True)
class PlanSettings:
    """The user's choices, checked; "auto" and "agreement" are decided by :func:`choose_plan`."""

    surrogate: Surrogate
    consensus_weight: float | str  # λ or "auto"
    temperature: float
    n_stages: int
    max_iter: int
    tol: float
    class_prior: Array | str | None  # shares (K,), "auto", "labels" or None
    view_weights: Array | str  # (V,) or "agreement"
    n_neighbors: int | str | None  # a number, "auto" or None

    def schedule(self, consensus_weight: float) -> Schedule:
        """The schedule for a given λ."""
        return Schedule(consensus_weight, self.temperature, self.n_stages, self.max_iter, self.tol)


def choose_plan(
    problem: Problem,
    views: Sequence[ViewData],
    partition: RowPartition,
    codes: IntArray,
    settings: PlanSettings,
    tuning: Tuning,
) -> tuple[Plan, NeighborGraph | None]:
    """Decide view weights, λ, neighbors and class prior; also return the graph of the neighbors, if they have weight.

    Parameters
    ----------
    codes : (n_L,), the class of each row of the labeled block, negative if it has none
    """
    start = supervised_start(problem)
    if isinstance(settings.view_weights, str):
        weights = agreement_weights(start.agreement, problem.known_views, tuning)
    else:
        weights = settings.view_weights
    lam, chosen = settings.consensus_weight, frozenset[str]()
    if isinstance(lam, str):
        lam, chosen = (
            auto_consensus_weight(mean_agreement(start.agreement, weights), tuning),
            frozenset(["consensus_weight"]),
        )
    prior, balance = initial_balance(settings.class_prior, partition.counts, settings.n_stages, tuning)
    plan = Plan(problem, start, settings.surrogate, settings.schedule(lam), weights, prior, balance, chosen)
    plan, graph = add_neighbor_view(plan, views, partition, settings.n_neighbors, tuning)
    if problem.weights_U.sum() * prior.min() < 1.0:  # not one row of the rarest class is expected
        return replace(plan, balance=None), graph
    infer = isinstance(settings.class_prior, str) and settings.class_prior == "auto" and problem.n_classes == 2
    return (infer_class_prior(plan, problem.n_views, partition, codes, tuning) if infer else plan), graph


def infer_class_prior(plan: Plan, n_sensors: int, partition: RowPartition, codes: IntArray, tuning: Tuning) -> Plan:
    """The plan with the share of the second of two classes inferred from labels, ranks and anchors."""
    weights = partition.weights[partition.block_L]
    by_labels = ranked_share(plan.problem, plan.view_weights, codes, weights, partition.counts, tuning)
    share = anchored_share(plan, n_sensors, partition.counts, by_labels, tuning)
    prior = np.array([1.0 - share, share])
    return replace(plan, class_prior=prior, balance=ClassBalance(prior))
