"""Bring the features of a view to a common scale before the kernel sees them.

``"standard"``: subtract the mean, divide by the standard deviation, clip at ±2 and divide by √d, so that one wild column or
recording cannot dominate and a row's squared length is about 1. ``"unit"``: divide each row by its length, the custom
for counts and text, which keeps sparse rows sparse. ``"auto"`` takes "unit" for views that are sparse or look like bags of
words (no negative value, at most a quarter of the entries non-zero) and "standard" for all others.
"""

from dataclasses import dataclass

import numpy as np

from cmvmed.core.linalg import is_sparse, unit_rows
from cmvmed.core.types import Array, Matrix

SCALINGS = ("auto", "standard", "unit", None)


@dataclass(frozen=True)
class Scaling:
    """A fitted scaling of one view; ``size`` tames extreme magnitudes before anything is squared."""

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
        rows = rows.toarray() if is_sparse(rows) else rows
        return np.clip((rows / self.size - self.mean) * self.factor, -self.clip, self.clip) / np.sqrt(rows.shape[1])


def fit_scaling(
    kind: str | None, train: Matrix, weights: Array, *, clip: float, bag_of_words_density: float
) -> Scaling:
    """Learn a scaling from training rows (n, d) with row weights (n,).

    Parameters
    ----------
    kind : "auto", "standard", "unit" or None
    clip : standard deviations at which "standard" clips
    bag_of_words_density : fraction of nonzero entries up to which "auto" takes "unit" for a nonnegative view
    """
    if kind == "auto":
        kind = "unit" if is_sparse(train) or _is_bag_of_words(train, bag_of_words_density) else "standard"
    if kind is None:
        return Scaling(None)
    if kind == "unit":
        return Scaling("unit")
    size = _largest(train)
    rows = train.toarray() if is_sparse(train) else train
    return _fit_standard(rows / size, weights / weights.sum(), size, clip)


def _fit_standard(rows: Array, share: Array, size: float, clip: float) -> Scaling:
    """Columns may still differ in magnitude by more than squares can hold, so each is measured in its own unit."""
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


def _is_bag_of_words(train: Array, density: float) -> bool:
    if train.size == 0:
        return False
    return bool(train.min() >= 0.0 and np.count_nonzero(train) <= density * train.size)


def _largest(train: Matrix) -> float:
    """Largest magnitude in the view, 1 for a view of zeros."""
    values = train.data if is_sparse(train) else train
    largest = float(np.abs(values).max(initial=0.0))
    return largest if largest > 1e-300 else 1.0
