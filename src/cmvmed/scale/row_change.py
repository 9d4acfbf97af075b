"""What sweeps over all rows would still change: estimated from what the last, four times larger sample changed.

A model that was fitted to n of N rows and one that was fitted to r n of them, the same n included, predict rows that
neither has seen. What is learned from n rows differs from what is learned from all of them by an error of variance
proportional to 1/n - 1/N, and the errors of nested samples differ by 1/n - 1/(rn). So

    change from r n to N rows  =  change from n to r n rows  ×  √ratio,   ratio = (1/(rn) - 1/N) / (1/n - 1/(rn)),

for differences of probabilities and for the share of rows whose class changes. The accuracy that is lost is of second
order, since rows whose class changes are almost as probable in one class as in the other: it is multiplied by the ratio.
"""

from dataclasses import dataclass

import numpy as np

from cmvmed.core.types import Array

NORMAL_QUANTILE = 1.645  # one-sided, 95 %
DRAW_FACTOR = (
    1.5  # by which the error of one draw of rows exceeds that of another in at most 5 % of fits (benchmarks.rows)
)


@dataclass(frozen=True)
class RowChange:
    """Estimates of what sweeps over all rows would change, and bounds that hold in 95 % of fits."""

    accuracy: float  # expected accuracy that is lost
    accuracy_bound: float
    classes: float  # share of rows whose class would change
    classes_bound: float
    probability: float  # mean over rows of half of the sum of the absolute changes over classes
    probability_bound: float


def remaining_change(before: Array, after: Array, n_before: int, n_after: int, n_rows: int) -> RowChange:
    """What all ``n_rows`` rows would change after ``n_after`` of them.

    Parameters
    ----------
    before, after : (m, K), probabilities of rows outside of the samples, after sweeps over ``n_before`` rows and ``n_after``
    """
    rows = np.arange(len(after))
    old, new = before.argmax(axis=1), after.argmax(axis=1)
    ratio = (1.0 / n_after - 1.0 / n_rows) / (1.0 / n_before - 1.0 / n_after)
    lost = _with_bound(after[rows, new] - after[rows, old], ratio, DRAW_FACTOR**2)
    classes = _with_bound((old != new).astype(np.float64), np.sqrt(ratio), DRAW_FACTOR)
    probability = _with_bound(0.5 * np.abs(after - before).sum(axis=1), np.sqrt(ratio), DRAW_FACTOR)
    return RowChange(*lost, *classes, *probability)


def _with_bound(values: Array, factor: float, draws: float) -> tuple[float, float]:
    """The mean of the rows' values times ``factor``, and its bound, which is ``draws`` times as large for other rows drawn."""
    m = max(values.size, 1)
    mean = float(values.mean()) if values.size else 0.0
    error = float(np.sqrt((values.var() + mean / m) / m)) if values.size else 0.0
    seen = mean + NORMAL_QUANTILE * error + (0.0 if mean else 3.0 / m)  # without any change, the rule of three
    return factor * mean, factor * draws * seen
