"""Cross-fitting of the consensus: labeled rows as seen by fits that did not use their labels."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cmvmed.auto.labeled_rows import LabeledRows, in_labeled_block
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult, Plan, Start, anneal, independent_states
from cmvmed.core.consensus import class_scores, pool
from cmvmed.core.problem import Problem, RowPartition
from cmvmed.numerics.threads import Mapper
from cmvmed.numerics.types import Array, BoolArray


def consensus_logits(plan: Plan, result: AnnealingResult, partition: RowPartition) -> tuple[Array, Array]:
    """The logits z (m, K) of the consensus softmax(z) for all rows of a fit.

    Also the weight (m,) of the views that each row has; where it is zero, the logits are those of no information.
    """
    scores_L, coverage_L = _labeled_scores(plan, result)
    scores = partition.joined(scores_L, result.consensus.scores)
    return _logits(scores, result), partition.joined(coverage_L, result.consensus.coverage)


def labeled_logits(plan: Plan, result: AnnealingResult) -> Array:
    """The logits (n_L, K) of the labeled block."""
    return _logits(_labeled_scores(plan, result)[0], result)


def _labeled_scores(plan: Plan, result: AnnealingResult) -> tuple[Array, Array]:
    means, n_L = [state.m_L for state in result.states], plan.problem.Y.shape[0]
    return pool(means, plan.problem.rows_L, result.view_weights, n_L)


def _logits(scores: Array, result: AnnealingResult) -> Array:
    z = class_scores(scores + result.consensus.offset) / (2.0 * result.temperature)
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def cross_fit(
    plan: Plan,
    result: AnnealingResult,
    rows: LabeledRows,
    folds: Sequence[BoolArray],
    shares: Sequence[Array | None],
    tuning: Tuning,
    map_folds: Mapper = map,
) -> Array:
    """Logits (l, K) of each labeled row by a short fit in which the labels of its fold have no weight; zero for others.

    Parameters
    ----------
    plan, result : the fit on all labels
    folds : which labeled rows (l,) each fold holds
    shares : per fold, the class shares (K,) that are imposed, found without its labels; None for none
    map_folds : ``map``, or a parallel one
    """
    short = plan.schedule.short(tuning.short_stages, tuning.cross_sweeps).ending_at(result.consensus_weight)
    n_L = plan.problem.Y.shape[0]

    def fold_logits(i: int) -> Array:
        problem = without_labels(plan.problem, in_labeled_block(rows, folds[i], n_L))
        start = Start(independent_states(problem, plan.start.states), plan.start.agreement)
        fold_plan = replace(plan, problem=problem, start=start, schedule=short, shares=shares[i])
        return labeled_logits(fold_plan, anneal(fold_plan))[rows.positions]

    logits = np.zeros((rows.codes.size, rows.n_classes))
    for fold, found in zip(folds, map_folds(fold_logits, range(len(folds))), strict=True):
        logits[fold] = found[fold]
    return logits


def without_labels(problem: Problem, out: BoolArray) -> Problem:
    """The problem in which the labels of some rows have no weight.

    Such a row stays in the labeled block with a hinge weight of zero, so kernels and factorizations serve all folds.
    """
    return replace(problem, box=tuple(np.where(out, 0.0, box) for box in problem.box))
