"""What is done to a view's rows before its kernel: gaps are filled, features are brought to a common scale.

A gap is a cell that is NaN in a row that has other numbers of the view. It is filled with the mean of its column over
the training rows that have a number there. The mean is a sum over rows, so weights count as repetitions; it leaves the
column's mean as it is, and "standard" scaling turns it into zero: a filled cell adds nothing to a linear score. A row
without any number of the view is not filled: it lacks the view.

``"standard"``: subtract the mean, divide by the standard deviation, clip at ±2 and divide by √d, so that one outlying
column or row cannot dominate and a row's squared length is about 1. ``"unit"``: divide each row by its length, as is
usual for counts and text; sparse rows stay sparse. ``"auto"`` takes "unit" for views of which at most a quarter of the
entries is nonzero, whether stored as sparse or dense matrices, and "standard" for all others. ``"center"``, used for
"rbf" kernels without scaling, subtracts the mean: it changes no distance, and keeps the digits of distances between
rows far from the origin. ``"magnitude"`` also divides all features by one number, so that they can be squared
and vary by about one.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from cmvmed.numerics.linalg import is_sparse, unit_rows
from cmvmed.numerics.types import Array, BoolArray, Matrix

SMALLEST_SIZE = 6e-309  # whose inverse, with which scipy divides sparse rows, is finite
SCALINGS = ("auto", "standard", "unit", None)


@dataclass(frozen=True)
class Scaling:
    """A fitted scaling of one view; rows are divided by ``size`` before anything is squared."""

    kind: str | None
    size: float = 1.0
    clip: float = np.inf  # standard deviations
    mean: Array | None = None  # (d,)
    factor: Array | None = None  # (d,)

    def apply(self, rows: Matrix) -> Matrix:
        """Scaled copy of ``rows`` (n, d)."""
        if self.kind is None or rows.shape[0] == 0:
            return rows
        if self.kind == "unit":
            return unit_rows(rows)
        if self.kind == "center":
            rows = rows if self.size == 1.0 else rows / self.size
            if self.mean is None:  # learned from sparse rows, which are not centered
                return rows
            return (rows.toarray() if is_sparse(rows) else rows) - self.mean
        rows = rows.toarray() if is_sparse(rows) else rows
        scaled = rows / self.size - self.mean
        scaled *= self.factor
        scaled /= sqrt(rows.shape[1])
        return self.clipped(np.asarray(scaled), out=scaled)

    def clipped(self, scaled: Array, out: Array | None = None) -> Array:
        """Rows (n, d) that are scaled by "standard" with no or a wider clip, clipped at that of this scaling."""
        bound = self.clip / sqrt(scaled.shape[1])
        lower = np.minimum(scaled, bound, out=out)
        return np.asarray(np.maximum(lower, -bound, out=lower))

    def invert(self, rows: Matrix) -> Matrix:
        """Rows whose scaled form is ``rows`` (n, d), up to rounding; a constant column has its mean."""
        if self.kind == "standard" and self.mean is not None and self.factor is not None:
            inverse = np.divide(
                np.sqrt(rows.shape[1]), self.factor, out=np.zeros_like(self.factor), where=self.factor > 0.0
            )
            return (rows * inverse + self.mean) * self.size
        return (rows if self.mean is None else rows + self.mean) * self.size


def fit_scaling(kind: str | None, train: Matrix, weights: Array, *, clip: float, sparse_density: float) -> Scaling:
    """Learn a scaling from training rows (n, d) with row weights (n,).

    Parameters
    ----------
    kind : "auto", "standard", "unit", "center", "magnitude" or None
    clip : standard deviations at which "standard" clips
    sparse_density : fraction of nonzero entries up to which "auto" takes "unit"; the container does not matter
    """
    if kind == "auto":
        kind = "unit" if _density(train) <= sparse_density else "standard"
    if kind is None:
        return Scaling(None)
    if kind in ("center", "magnitude"):
        size = _largest(train) if kind == "magnitude" else 1.0
        if is_sparse(train):
            return Scaling("center", size)
        mean = (weights / weights.sum()) @ (train / size)
        spread = float(np.abs(train / size - mean).max(initial=0.0)) if kind == "magnitude" else 1.0
        if not (spread > 1e-12 and size * spread > 1e-300):  # rounding
            spread = 1.0
        return Scaling("center", size * spread, mean=mean / spread)
    if kind == "unit":
        return Scaling("unit")
    size = _largest(train)
    rows = train.toarray() if is_sparse(train) else train
    return _fit_standard(rows / size, weights / weights.sum(), size, clip)


def _fit_standard(rows: Array, share: Array, size: float, clip: float) -> Scaling:
    """Columns may still differ in magnitude by more than squares can hold, so each is scaled by its own largest value."""
    mean = share @ rows
    centered = rows - mean
    unit = np.abs(centered).max(axis=0, initial=0.0)
    unit_or_one = np.where(unit > 0.0, unit, 1.0)
    deviation = unit * np.sqrt(share @ (centered / unit_or_one) ** 2)
    varies = deviation > 1e-12 * np.abs(rows).max(
        axis=0, initial=0.0
    )  # a constant column is rounding noise after centering
    factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies & (deviation > 1e-300))
    return Scaling("standard", size, clip, mean, factor)


def _density(train: Matrix) -> float:
    """Fraction of nonzero entries; 1 if there are no entries."""
    n_entries = train.shape[0] * train.shape[1]
    nonzero = np.count_nonzero(train.data if is_sparse(train) else train)
    return nonzero / n_entries if n_entries else 1.0


def _largest(train: Matrix) -> float:
    """Largest magnitude in the view, 1 for a view of zeros."""
    values = train.data if is_sparse(train) else train
    largest = float(np.abs(values).max(initial=0.0))
    return max(largest, SMALLEST_SIZE) if largest > 0.0 else 1.0


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
