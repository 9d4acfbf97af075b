"""What sweeps over all rows would still change: estimated from what the last, larger sample changed.

A model that was fitted to n of N rows and one that was fitted to r n of them, the same n included, predict rows that
neither has seen. What is learned from n rows differs from what is learned from all of them by an error of variance
proportional to 1/n - 1/N, and the errors of nested samples differ by 1/n - 1/(rn). So

    change from r n to N rows  =  change from n to r n rows  ×  √ratio,   ratio = (1/(rn) - 1/N) / (1/n - 1/(rn)),

for differences of probabilities and for the share of rows whose class changes. The accuracy that is lost is of second
order in small errors, since rows whose class changes are almost as probable in one class as in the other. But sweeps ended
by ``tol`` and would go on over more rows, a change that does not fall with n, so that √ratio is nearer to what all rows
change of the accuracy, too, and the ratio itself half of it (``python -m benchmarks.rows``).

The bounds allow for the draw of the held-out rows and of the samples; those of probabilities and classes assume that more
rows change as much as the last did.
"""

from dataclasses import dataclass

import numpy as np

from cmvmed.numerics.types import Array

NORMAL_QUANTILE = 1.645  # one-sided, 95 %
DRAW_RATIO = (
    5.05  # of the squared errors of two draws of rows: the 95 % quantile of F(5, 5), for errors in few dimensions
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
    if ratio <= 0.0:
        return RowChange(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    root, draws = float(np.sqrt(ratio)), float(np.sqrt(DRAW_RATIO))
    lost, lost_bound = _mean_and_limit(after[rows, new] - after[rows, old])
    classes, classes_bound = _mean_and_limit((old != new).astype(np.float64))
    moved, moved_bound = _mean_and_limit(0.5 * np.abs(after - before).sum(axis=1))
    return RowChange(
        accuracy=root * lost,
        accuracy_bound=root * DRAW_RATIO * lost_bound,
        classes=root * classes,
        classes_bound=max(root, 1.0) * draws * classes_bound,
        probability=root * moved,
        probability_bound=max(root, 1.0) * draws * moved_bound,
    )


def _mean_and_limit(values: Array) -> tuple[float, float]:
    """The mean of the rows' values, and what the mean over all rows is below with a probability of 95 %."""
    m, mean = values.size, float(values.mean())
    limit = mean + NORMAL_QUANTILE * float(np.sqrt((values.var() + mean / m) / m))
    return mean, limit if mean else 3.0 / m  # without any change, the rule of three
