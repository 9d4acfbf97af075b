"""From the user's settings to a plan: every "auto" of the consensus is decided here, before the EM algorithm runs."""

from dataclasses import dataclass

import numpy as np

from cmvmed.auto.class_prior import ShareBounds, empirical_bayes_share, label_share
from cmvmed.auto.consensus_weight import agreement_weights, auto_consensus_weight, mean_agreement
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Plan, Schedule, supervised_start
from cmvmed.core.problem import Problem
from cmvmed.core.surrogates import Surrogate
from cmvmed.numerics.types import Array
from cmvmed.views.training_data import TrainingData


@dataclass(frozen=True)
class PlanSettings:
    """The user's choices, checked; "auto" and "agreement" are decided by :func:`choose_plan`."""

    surrogate: Surrogate
    consensus_weight: float | str  # λ or "auto"
    temperature: float
    n_stages: int
    max_iter: int
    tol: float
    class_prior: Array | ShareBounds | str | None  # shares (K,), bounds, "auto", "labels" or None
    view_weights: Array | str  # (V,) or "agreement"

    def schedule(self, consensus_weight: float) -> Schedule:
        """The schedule for a given λ."""
        return Schedule(consensus_weight, self.temperature, self.n_stages, self.max_iter, self.tol)

    @property
    def infers_shares(self) -> bool:
        """Whether class shares are learned from the unlabeled rows too."""
        return isinstance(self.class_prior, ShareBounds) or (
            isinstance(self.class_prior, str) and self.class_prior == "auto"
        )

    @property
    def bounds(self) -> ShareBounds | None:
        """The user's bounds of the shares, which are equal if the shares are given; None if nothing is given."""
        given = self.class_prior
        if isinstance(given, np.ndarray):
            return ShareBounds(given, given)
        return given if isinstance(given, ShareBounds) else None


@dataclass(frozen=True)
class ChosenPlan:
    """The plan, and what its class shares come from."""

    plan: Plan
    settings: PlanSettings

    def shares(self, inferred: Array | None, counts: Array) -> Array | None:
        """The shares to impose on a fit to other labels, with these counts (K,) and their own estimate ``inferred``."""
        return None if self.plan.shares is None else _known_shares(self.settings, counts, inferred)

    def tau(self, n_rows: float, n_classes: int, tuning: Tuning) -> float:
        """How far the pool of members may be brought to the shares: all the way if they were given as numbers.

        Else the less, the fewer rows there are, whose own shares differ from those of all rows by chance.
        """
        if not self.settings.infers_shares:
            return np.inf
        return tuning.share_offset * n_classes * n_rows / (n_rows + n_classes)


def choose_plan(
    problem: Problem, training: TrainingData, settings: PlanSettings, tuning: Tuning, inferred: Array | None = None
) -> ChosenPlan:
    """Decide view weights, λ and class shares; ``inferred`` are those (K,) that other members found, None if there are none."""
    start = supervised_start(problem)
    if isinstance(settings.view_weights, str):
        weights = agreement_weights(start.agreement, problem.known_views)
    else:
        weights = settings.view_weights
    lam = settings.consensus_weight
    if isinstance(lam, str):
        lam = auto_consensus_weight(mean_agreement(start.agreement, weights), tuning)
    prior = _known_shares(settings, training.partition.counts, inferred)
    shares = None if settings.class_prior is None else prior
    if not settings.infers_shares and problem.weights_U.sum() * prior.min() < 1.0:
        shares = None  # not one row of the rarest class is expected
    return ChosenPlan(
        Plan(problem, start, settings.surrogate, settings.schedule(lam), weights, prior, shares), settings
    )


def _known_shares(settings: PlanSettings, counts: Array, inferred: Array | None) -> Array:
    """The class shares, (K,)."""
    found = label_share(counts)
    if settings.infers_shares:
        found = empirical_bayes_share(counts) if inferred is None else inferred
    return found if settings.bounds is None else settings.bounds.combined(found, float(counts.sum()))
