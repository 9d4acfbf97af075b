"""The safeguard: a smaller consensus weight where the consensus contradicts the classifiers learned from the labels.

Views may agree on a structure of the unlabeled rows other than the classes. The pooled scores then hardly correlate
with those of the independent views. Only a consensus weight that the library chose is reduced; a given one is used as
it is.
"""

from collections.abc import Callable
from dataclasses import replace

from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult, Plan, anneal
from cmvmed.core.consensus import mean_correlation, pool


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
