"""From the user's settings to a plan: every "auto" of the consensus is decided here, before the EM algorithm runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.anchors import anchor_evidence
from cmvmed.auto.class_prior import ShareEstimate, empirical_bayes_share, label_share, share_estimate
from cmvmed.auto.consensus_weight import agreement_weights, auto_consensus_weight, mean_agreement
from cmvmed.auto.neighbors import NeighborEvidence, add_neighbor_view
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Plan, Schedule, supervised_start
from cmvmed.core.problem import Problem
from cmvmed.core.surrogates import Surrogate
from cmvmed.numerics.types import Array
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_rows import ViewData


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

    def schedule(self, consensus_weight: float) -> Schedule:
        """The schedule for a given λ."""
        return Schedule(consensus_weight, self.temperature, self.n_stages, self.max_iter, self.tol)

    @property
    def infers_shares(self) -> bool:
        """Whether class shares are learned from the unlabeled rows too."""
        return isinstance(self.class_prior, str) and self.class_prior == "auto"


@dataclass(frozen=True)
class ChosenPlan:
    """The plan, and what its class shares come from."""

    plan: Plan
    settings: PlanSettings
    anchors: ShareEstimate | None = None  # the share of the second of two classes by anchors
    neighbors: NeighborEvidence | None = None  # the graph that is the last view of the plan

    def shares(self, inferred: Array | None, counts: Array) -> Array | None:
        """The shares to impose on a fit to other labels, with these counts (K,) and their own estimate ``inferred``."""
        if self.plan.shares is None:
            return None
        known = _known_shares(self.settings, counts, inferred)
        return known if self.anchors is None else with_anchors(known, counts, self.anchors)


def choose_plan(
    problem: Problem,
    views: Sequence[ViewData],
    training: TrainingData,
    settings: PlanSettings,
    tuning: Tuning,
    inferred: Array | None = None,
    neighbors: NeighborEvidence | None = None,
) -> ChosenPlan:
    """Decide view weights, λ, neighbors and class shares.

    Parameters
    ----------
    inferred : class shares (K,) from opinions learned from the labels; None if there are none
    neighbors : the graph of nearest rows as a further view; None for none
    """
    start, partition = supervised_start(problem), training.partition
    if isinstance(settings.view_weights, str):
        weights = agreement_weights(start.agreement, problem.known_views, tuning)
    else:
        weights = settings.view_weights
    lam, chosen = settings.consensus_weight, frozenset[str]()
    if isinstance(lam, str):
        agreed = mean_agreement(start.agreement, weights)
        lam, chosen = auto_consensus_weight(agreed, tuning), frozenset(["consensus_weight"])
    prior = _known_shares(settings, partition.counts, inferred)
    shares = None if settings.class_prior is None else prior
    plan = Plan(problem, start, settings.surrogate, settings.schedule(lam), weights, prior, shares, chosen)
    if neighbors is not None:
        plan = add_neighbor_view(plan, neighbors, views, training, tuning)
    if problem.weights_U.sum() * prior.min() < 1.0:  # not one row of the rarest class is expected
        return ChosenPlan(replace(plan, shares=None), settings, neighbors=neighbors)
    if not settings.infers_shares or problem.n_classes > 2:
        return ChosenPlan(plan, settings, neighbors=neighbors)
    known = share_estimate(prior, partition.counts)
    anchors = anchor_evidence(plan, problem.n_views, partition.counts, known, tuning)
    if anchors is not None:
        prior = with_anchors(prior, partition.counts, anchors)
    return ChosenPlan(replace(plan, class_prior=prior, shares=prior), settings, anchors, neighbors)


def _known_shares(settings: PlanSettings, counts: Array, inferred: Array | None) -> Array:
    """The class shares before anchors are looked at, (K,)."""
    if settings.infers_shares:
        by_labels = label_share(counts) if counts.size == 2 else empirical_bayes_share(counts)
        return by_labels if inferred is None else inferred
    if settings.class_prior is None or isinstance(settings.class_prior, str):
        return label_share(counts)
    return settings.class_prior


def with_anchors(shares: Array, counts: Array, anchors: ShareEstimate) -> Array:
    """The shares of two classes, (2,), combined with what anchors say."""
    share = share_estimate(shares, counts).combined(anchors)
    return np.array([1.0 - share, share])
