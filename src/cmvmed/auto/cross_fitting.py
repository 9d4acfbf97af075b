"""Folds of the labeled rows, and the problem without the labels of one of them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cmvmed.core.annealing import Problem
from cmvmed.core.linalg import Array, BoolArray, IntArray

N_FOLDS = 5
TIED_DIGITS = 9  # of likenesses relative to the largest; closer ones are of equal rows


def held_out_folds(problem: Problem, view_weights: Array, codes: IntArray, weights: Array) -> Iterator[BoolArray]:
    """Per fold, which rows of the labeled block it holds, (n_L,).

    Parameters
    ----------
    view_weights : (V,)
    codes, weights : (n_L,), the class of each row of the labeled block, negative if it has none, and how often it counts
    """
    usable = (codes >= 0) & (weights > 0.0)
    order = mean_similarity(problem, view_weights, np.where(usable, weights, 0.0))
    folds = assign_folds(np.where(usable, codes, -1), order)
    for fold in range(N_FOLDS):
        if (folds == fold).any():
            yield folds == fold


def without_labels(problem: Problem, out: BoolArray) -> Problem:
    """The problem in which the labels of some rows have no weight.

    Such a row stays in the labeled block with a hinge of zero, so kernels and their factorizations serve all folds.
    """
    return replace(problem, box=tuple(np.where(out, 0.0, box) for box in problem.box))


def mean_similarity(problem: Problem, view_weights: Array, weights: Array) -> Array:
    """How alike each labeled row is to the others, which count ``weights`` (n_L,) times; (n_L,), equal for equal rows.

    It orders the rows by what they are, not by their places in the table.
    """
    total = np.zeros(weights.size)
    for share, model, rows in zip(view_weights, problem.models, problem.rows_L, strict=True):
        total[rows] += share * (model.blocks.LL @ weights[rows])
    largest = float(np.abs(total).max(initial=0.0))
    return np.round(total / largest, TIED_DIGITS) if largest > 0.0 else total


def assign_folds(codes: IntArray, order: Array) -> IntArray:
    """Deal the rows of each class to folds in turn; -1 for rows of no class, and for a class's only row, which must be kept.

    Classes and rows take their turns by ``order`` (n,), so neither the rows' places nor the classes' names matter. Rows of the same
    class and order count as one row that occurs more than once, and stay together.
    """
    folds = np.full(codes.size, -1)
    members = [np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])]
    distinct = [(rows, *np.unique(order[rows], return_inverse=True)) for rows in members]
    dealt = 0
    for rows, values, turn in sorted(distinct, key=lambda part: (part[1].size, part[1].sum())):
        if values.size > 1:
            folds[rows] = (dealt + turn) % N_FOLDS
            dealt += values.size
    return folds
