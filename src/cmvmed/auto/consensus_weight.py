"""How much the consensus counts: view weights and λ by the agreement of the views, and a safeguard that lowers λ.

Views may agree on a structure of the unlabeled rows other than the classes. The pooled scores then hardly correlate
with those of the independent views. Only a consensus weight that the library chose is reduced; a given one is used as
it is.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult, Plan, anneal
from cmvmed.core.consensus import mean_correlation, pool
from cmvmed.numerics.types import Array, BoolArray


def anneal_with_safeguard(
    plan: Plan,
    tuning: Tuning,
    *,
    before_stage: Callable[[int], None] = lambda stage: None,
    on_stage: Callable[[int, AnnealingResult], bool] = lambda stage, result: False,
) -> AnnealingResult:
    """Anneal; if the consensus no longer correlates with the independent views' scores, anneal again with less of it."""
    result = anneal(plan, before_stage=before_stage, on_stage=on_stage)
    if "consensus_weight" not in plan.chosen or result.stopped or result.consensus_weight == 0.0:
        return result
    if not correlation_with_start(plan, result) < tuning.min_start_correlation:  # NaN where scores do not vary
        return result
    reduced = replace(plan.schedule, consensus_weight=tuning.safeguard_factor * plan.schedule.consensus_weight)
    return anneal(replace(plan, schedule=reduced), before_stage=before_stage, on_stage=on_stage)


def correlation_with_start(plan: Plan, result: AnnealingResult) -> float:
    """Correlation over the unlabeled rows of the pooled scores with those of the independent views, mean over functions."""
    problem = plan.problem
    means = [state.m_U for state in plan.start.states]
    before, _ = pool(means, problem.rows_U, result.view_weights, problem.weights_U.size)
    return mean_correlation(before, result.consensus.scores, problem.weights_U * result.consensus.coverage)


def agreement_weights(R: Array, known: BoolArray, tuning: Tuning) -> Array:
    """View weights (V,) that sum to 1: the leading eigenvector of the agreement R (V, V) of the ``known`` views.

    A view of pure noise agrees with no other view and gets almost no weight; two views are weighted equally by
    symmetry. A view that no training row has is not known and gets none.
    """
    among = np.maximum(R[np.ix_(known, known)], tuning.min_agreement)
    leading = np.zeros(known.size)
    leading[known] = np.abs(np.linalg.eigh(among)[1][:, -1])
    return np.asarray(leading / leading.sum())


def mean_agreement(R: Array, weights: Array) -> float:
    """Weighted mean of R_ij over pairs of different views; 1 for a single view."""
    pairs = np.outer(weights, weights)
    np.fill_diagonal(pairs, 0.0)
    return float((pairs * R).sum() / pairs.sum()) if pairs.any() else 1.0


def auto_consensus_weight(agreement: float, tuning: Tuning) -> float:
    """λ from the mean agreement of the independent views: views that do not agree cannot improve each other."""
    return tuning.consensus_weight * min(1.0, agreement / tuning.full_agreement)
