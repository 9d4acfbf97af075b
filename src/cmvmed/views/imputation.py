"""Gaps inside a view: cells that are NaN in a row that has other numbers of the view.

A gap is filled with the mean of its column over the training rows that have a number there. The mean is a sum over
rows, so weights count as repetitions; it leaves the column's mean as it is, and "standard" scaling turns it into zero:
a filled cell adds nothing to a linear score. A row without any number of the view is not filled: it lacks the view.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, Matrix


@dataclass(frozen=True)
class Imputation:
    """What fills the gaps of one view; a column without any number in training is zero in all rows."""

    means: Array  # (d,), NaN for a column without any number
    gaps: Array  # (d,), the share of the training rows with the view, by weight, that have a gap in the column
    n_cells: int  # filled in training, those of columns without any number not counted

    @cached_property
    def empty(self) -> BoolArray:
        """Columns without any number in training, (d,)."""
        return np.isnan(self.means)

    @cached_property
    def _has_empty(self) -> bool:
        return bool(self.empty.any())

    @cached_property
    def _values(self) -> Array:
        """What is filled in, (d,)."""
        return np.where(self.empty, 0.0, self.means)

    def apply(self, rows: Matrix) -> Matrix:
        """``rows`` (n, d) with their gaps filled; the same object if there are none."""
        empty, values = self.empty, self._values
        if is_sparse(rows):
            stored = np.isnan(rows.data) | empty[rows.indices]
            if not stored.any():
                return rows
            filled = rows.copy()
            filled.data[stored] = values[rows.indices[stored]]
            return filled
        missing = np.isnan(rows)
        if self._has_empty:
            missing[:, empty] = True
        return np.where(missing, values, rows) if missing.any() else rows


def fit_imputation(train: Matrix, weights: Array) -> Imputation:
    """Learn the column means of training rows (n, d) that have the view, with row weights (n,)."""
    if train.shape[0] == 0:
        return Imputation(np.full(train.shape[1], np.nan), np.ones(train.shape[1]), 0)
    share = weights / weights.sum()
    if is_sparse(train):
        missing = train.copy()
        missing.data = np.isnan(train.data).astype(np.float64)
        known = train.copy()
        known.data = np.where(np.isnan(train.data), 0.0, train.data)
        counts, totals = np.bincount(train.indices[np.isnan(train.data)], minlength=train.shape[1]), known.T @ share
        gaps = np.asarray(missing.T @ share)
    else:
        missing = np.isnan(train)
        counts, gaps = missing.sum(axis=0), share @ missing
        totals = share @ (np.where(missing, 0.0, train) if missing.any() else train)
    seen = counts < train.shape[0]
    means = np.divide(totals, 1.0 - gaps, out=np.full(train.shape[1], np.nan), where=seen)
    return Imputation(means, np.where(seen, gaps, 1.0), int(counts[seen].sum()))
