"""Cross-fitting: folds of the labeled rows, and their scores by fits that did not use their labels."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.class_prior import relaxed_balance
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult, Plan, Start, anneal, independent_states
from cmvmed.core.consensus import ClassBalance, class_scores, pool
from cmvmed.core.problem import Problem
from cmvmed.core.threads import Mapper
from cmvmed.core.types import Array, BoolArray, IntArray

SIMILARITY_DIGITS = 9  # of similarities relative to the largest; equal rows agree in them


@dataclass(frozen=True)
class OutOfFoldScores:
    """Labeled rows as scored by fits that did not use their labels."""

    logits: Array  # (n, K), z
    codes: IntArray  # (n,), their classes
    weights: Array  # (n,), sample weights


def cross_fit(
    plan: Plan,
    result: AnnealingResult,
    codes: IntArray,
    weights: Array,
    tuning: Tuning,
    map_folds: Mapper = map,
) -> OutOfFoldScores:
    """Score each labeled row by a fit in which its label has no weight.

    The weights of the views, λ and the class shares are those of the fit on all labels.

    Parameters
    ----------
    plan, result : the fit on all labels
    codes, weights : (n_L,), class (negative if it has none) and sample weight of each row of the labeled block
    map_folds : ``map``, or a parallel one
    """
    short = plan.schedule.short(tuning.short_stages, tuning.short_sweeps).ending_at(result.consensus_weight)
    rows_L, pi = plan.problem.rows_L, plan.view_weights

    def fit_fold(out: BoolArray) -> tuple[Array, Array]:
        kept = (codes >= 0) & (weights > 0.0) & ~out
        counts = np.bincount(codes[kept], weights=weights[kept], minlength=plan.problem.n_classes).astype(np.float64)
        problem = without_labels(plan.problem, out)
        start = Start(independent_states(problem), plan.start.agreement)
        balance = _fold_balance(result, counts, short.n_stages, tuning)
        end = anneal(replace(plan, problem=problem, start=start, schedule=short, balance=balance))
        pooled, coverage = pool([state.m_L for state in end.states], rows_L, pi, codes.size)
        return pooled + end.consensus.offset, coverage

    folds = list(held_out_folds(plan.problem, pi, codes, weights, tuning.n_folds))
    scores, scored = np.zeros_like(plan.problem.Y), np.zeros(codes.size, dtype=bool)
    for out, (fold_scores, coverage) in zip(folds, map_folds(fit_fold, folds), strict=True):
        scores[out] = fold_scores[out]
        scored |= out & (coverage > 0.0)
    return OutOfFoldScores(class_scores(scores[scored]) / (2.0 * result.temperature), codes[scored], weights[scored])


def _fold_balance(result: AnnealingResult, counts: Array, n_stages: int, tuning: Tuning) -> ClassBalance | None:
    """The balance at the end of the whole fit, for a fit of ``n_stages`` on labels with these counts (K,)."""
    consensus = result.consensus
    if not consensus.offset.any():  # nothing was imposed
        return None
    return relaxed_balance(counts, n_stages, tuning) if consensus.shares is None else ClassBalance(consensus.shares)


def held_out_folds(
    problem: Problem, view_weights: Array, codes: IntArray, weights: Array, n_folds: int
) -> Iterator[BoolArray]:
    """Per fold, which rows of the labeled block it holds, (n_L,).

    Parameters
    ----------
    view_weights : (V,)
    codes, weights : (n_L,), class (negative if it has none) and sample weight of each row of the labeled block
    """
    usable = (codes >= 0) & (weights > 0.0)
    order = mean_similarity(problem, view_weights, np.where(usable, weights, 0.0))
    folds = assign_folds(np.where(usable, codes, -1), order, n_folds)
    for fold in range(n_folds):
        if (folds == fold).any():
            yield folds == fold


def without_labels(problem: Problem, out: BoolArray) -> Problem:
    """The problem in which the labels of some rows have no weight.

    Such a row stays in the labeled block with a hinge weight of zero, so kernels and factorizations serve all folds.
    """
    return replace(problem, box=tuple(np.where(out, 0.0, box) for box in problem.box))


def mean_similarity(problem: Problem, view_weights: Array, weights: Array) -> Array:
    """Mean kernel value of each labeled row with the others, with weights (n_L,); (n_L,), equal for equal rows.

    It orders the rows by their content, not by their positions in the table.
    """
    total = np.zeros(weights.size)
    for share, model, rows in zip(view_weights, problem.models, problem.rows_L, strict=True):
        total[rows] += share * (model.blocks.LL @ weights[rows])
    largest = float(np.abs(total).max(initial=0.0))
    return np.round(total / largest, SIMILARITY_DIGITS) if largest > 0.0 else total


def assign_folds(codes: IntArray, order: Array, n_folds: int) -> IntArray:
    """Distribute the rows of each class over the folds; -1 for rows of no class, and for a class's only row, which is kept.

    Classes and rows are taken by ``order`` (n,), so neither the rows' positions nor the classes' names matter. Rows of
    the same class and order count as one row that occurs more than once, and stay together.
    """
    folds = np.full(codes.size, -1)
    members = [np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])]
    distinct = [(rows, *np.unique(order[rows], return_inverse=True)) for rows in members]
    assigned = 0
    for rows, values, turn in sorted(distinct, key=lambda part: (part[1].size, part[1].sum())):
        if values.size > 1:
            folds[rows] = (assigned + turn) % n_folds
            assigned += values.size
    return folds
