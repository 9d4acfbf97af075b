"""The labeled rows that held-out decisions are made with: their classes, weights, groups and folds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.tuning import Tuning
from cmvmed.core.problem import Problem
from cmvmed.data.row_hashes import numbers_of_equal, numbers_of_joined, row_contents
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.training_data import TrainingData

RESOLUTION = 1e-7  # of similarities; beyond, they are rounding
FEATURE_RESOLUTION = 1e-9  # of features, in units of their spread: one outlier may be 1e8 times the others


@dataclass(frozen=True)
class LabeledRows:
    """Labeled rows, l in number.

    Rows of the same group are left out together: those of one recording or subject, or rows that are equal.
    """

    positions: IntArray  # (l,) positions in the labeled block
    index: IntArray  # (l,) positions among the rows of the fit
    codes: IntArray  # (l,) classes
    weights: Array  # (l,) sample weights
    groups: IntArray  # (l,)
    n_classes: int
    unbalanced: Array | None = None  # (l,) the weights before all classes got the same sum; None if they did not

    @property
    def as_drawn(self) -> "LabeledRows":
        """With the weights that labels were drawn with."""
        return self if self.unbalanced is None else replace(self, weights=self.unbalanced, unbalanced=None)

    def counts(self, kept: BoolArray) -> Array:
        """Weighted number of the kept rows of each class, (K,)."""
        counts = np.bincount(self.codes[kept], weights=self.weights[kept], minlength=self.n_classes)
        return np.asarray(counts, dtype=np.float64)

    def balanced(self) -> "LabeledRows":
        """With weights that give all classes the same sum, as the draw says nothing of their shares."""
        counts = self.counts(np.ones(self.codes.size, dtype=bool))
        factors = counts.sum() / ((counts > 0.0).sum() * np.where(counts > 0.0, counts, 1.0))
        return replace(self, weights=self.weights * factors[self.codes], unbalanced=self.weights)

    def judged(self, kept: BoolArray) -> Array:
        """Weights (l,) of the rows that can be left out: kept rows whose class has kept rows in another group."""
        pairs = np.unique(np.stack([self.codes[kept], self.groups[kept]]), axis=1)
        several = np.bincount(pairs[0], minlength=self.n_classes) > 1
        return np.where(kept & several[self.codes], self.weights, 0.0)


def read_labeled_rows(
    training: TrainingData, tuning: Tuning, rng: np.random.Generator, used: BoolArray | None = None
) -> LabeledRows:
    """The labeled rows with weight; if they are very many, a part of each class.

    ``used`` (V,) says which views take part, all if it is left out: rows are equal if they are in those.
    """
    partition, n_classes = training.partition, training.labels.n_classes
    block = partition.block_L
    codes = training.labels.codes[block]
    positions = np.flatnonzero((codes >= 0) & (partition.weights[block] > 0.0))
    if positions.size > tuning.max_member_labels:
        positions = _part_of_each_class(positions, codes, n_classes, tuning.max_member_labels, rng)
    rows = block[positions]
    if training.groups is None:
        matrices = [m for i, m in enumerate(training.matrices) if used is None or used[i]]
        groups = _numbers_of_alike([matrix[rows] for matrix in matrices])
    else:
        groups = np.unique(training.groups[rows], return_inverse=True)[1]
    weights, index = partition.weights[rows], partition.L[positions]
    return LabeledRows(positions, index, codes[positions], weights, groups, n_classes)


def _numbers_of_alike(matrices: Sequence[Matrix]) -> IntArray:
    """A number for each row, the same for rows that differ by no more than rounding in all views."""

    def numbers(edge: float) -> IntArray:
        contents = (row_contents(_on_grid(matrix, edge)) for matrix in matrices)
        return numbers_of_equal(list(zip(*contents, strict=True)))

    return numbers_of_joined(numbers(0.0), numbers(0.5))


def _on_grid(matrix: Matrix, edge: float) -> Matrix:
    """The features as multiples of the resolution; ``edge`` moves the edges of rounding."""
    if not is_sparse(matrix):
        low, high = (extreme.reduce(matrix, axis=0, initial=None) for extreme in (np.fmin, np.fmax))
        return _steps(matrix - low, high - low, edge)
    low, high = np.zeros((2, matrix.shape[1]))
    np.fmin.at(low, matrix.indices, matrix.data)
    np.fmax.at(high, matrix.indices, matrix.data)
    rounded = _steps(matrix.data, (high - low)[matrix.indices], edge)
    return type(matrix)((rounded, matrix.indices, matrix.indptr), shape=matrix.shape)


def _steps(values: Array, spread: Array, edge: float) -> Array:
    return np.asarray(np.round(values / np.where(spread > 0.0, spread, 1.0) / FEATURE_RESOLUTION + edge))


def _part_of_each_class(
    positions: IntArray, codes: IntArray, n_classes: int, n: int, rng: np.random.Generator
) -> IntArray:
    """About ``n`` of the rows, the same part of each class, but at least two of it."""
    shuffled = rng.permutation(positions)
    members = [shuffled[codes[shuffled] == c] for c in range(n_classes)]
    return np.sort(np.concatenate([own[: max(2, own.size * n // positions.size)] for own in members]))


def held_out_folds(
    problem: Problem, rows: LabeledRows, n_folds: int, *, grouped: bool, used: BoolArray | None = None
) -> list[BoolArray]:
    """Per fold, which labeled rows it holds, (l,); every class has rows outside of it.

    Parameters
    ----------
    grouped : whether the user gave groups; otherwise rows are dealt by their content
    used : (V,), views that take part; all if it is left out
    """
    by_content = assign_folds(rows.codes, mean_similarity(problem, rows, used), n_folds)
    folds = _group_folds(rows, n_folds) if grouped else by_content
    return [folds == fold for fold in range(n_folds) if (folds == fold).any()]


def mean_similarity(problem: Problem, rows: LabeledRows, used: BoolArray | None = None) -> Array:
    """Mean kernel value of each labeled row with the others, in units of the largest, over the used views, (l,).

    It orders the rows by their content, not by their positions in the table.
    """
    n_L = problem.Y.shape[0]
    weights, total = np.zeros(n_L), np.zeros(n_L)
    weights[rows.positions] = rows.weights
    for i, (model, own) in enumerate(zip(problem.models, problem.rows_L, strict=True)):
        if used is None or used[i]:
            total[own] += model.blocks.LL @ weights[own]
    largest = float(np.abs(total).max(initial=0.0))
    return np.asarray((total / largest if largest > 0.0 else total)[rows.positions])


def assign_folds(codes: IntArray, order: Array, n_folds: int) -> IntArray:
    """Distribute the rows of each class over the folds; -1 for a class's only row, which is kept.

    Classes and rows are taken by ``order`` (n,), so neither the rows' positions nor the classes' names matter. Rows of
    the same class whose order differs by rounding count as one row that occurs more than once, and stay together.
    """
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    distinct = [(rows, *_distinct(order[rows])) for rows in members]
    folds, assigned = np.full(codes.size, -1), 0
    for rows, values, turn in sorted(distinct, key=lambda part: (part[1].size, part[1].sum())):
        if values.size > 1:
            folds[rows] = (assigned + turn) % n_folds
            assigned += values.size
    return folds


def _distinct(values: Array) -> tuple[Array, IntArray]:
    """As ``np.unique`` with inverse; values that differ by no more than rounding from the next are one, rounded."""
    order = np.argsort(values)
    number = np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > RESOLUTION)
    turn = np.empty(values.size, dtype=np.intp)
    turn[order] = number
    first = np.searchsorted(number, np.arange(number[-1] + 1))
    return np.round(values[order[first]] / RESOLUTION) * RESOLUTION, turn


def _group_folds(rows: LabeledRows, n_folds: int) -> IntArray:
    """Deal the groups in turn, those of the same most frequent class one after the other.

    A fold that would hold all groups of a class gives one of them up, whose rows get -1.
    """
    table = np.zeros((int(rows.groups.max()) + 1, rows.n_classes))
    np.add.at(table, (rows.groups, rows.codes), rows.weights)
    order = np.lexsort([-table.sum(axis=1), table.argmax(axis=1)])
    fold_of_group = np.empty(len(table), dtype=np.intp)
    fold_of_group[order] = np.arange(len(table)) % n_folds
    for of_class in table.T:
        own = np.flatnonzero(of_class)
        if np.unique(fold_of_group[own]).size == 1:
            fold_of_group[own[0]] = -1
    return fold_of_group[rows.groups]


def in_labeled_block(rows: LabeledRows, chosen: Sequence[bool] | BoolArray, n_L: int) -> BoolArray:
    """The chosen labeled rows as rows of the labeled block, (n_L,)."""
    block = np.zeros(n_L, dtype=bool)
    block[rows.positions[np.asarray(chosen)]] = True
    return block
