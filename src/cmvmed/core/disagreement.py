"""How often two views disagree, and the bound on a view's error that this implies if they are independent given the class.

S. Dasgupta, M. L. Littman and D. McAllester, "PAC generalization bounds for co-training", NIPS 2001 (published 2002).
"""

from dataclasses import dataclass

import numpy as np

from cmvmed.numerics.types import Array, IntArray


@dataclass(frozen=True)
class Disagreement:
    """What the classes that two views give to the same rows say of the first view's error."""

    rate: float  # share of the rows to which they give unequal classes; NaN without rows
    rate_by_class: Array  # (K,) the same among the rows to which the second view gives class c; NaN without such rows
    error_bound: float  # on the share of rows that the first view gives a wrong class


def disagreement(first: IntArray, second: IntArray, mass: Array, class_prior: Array) -> Disagreement:
    """Compare two views on rows with weights ``mass`` (n,), given the class codes (n,) by each.

    With d_c the rate in class c, the first view's error among the rows of class c is at most d_c/(1 - 2d_c) if

    * the views are independent given the class,
    * the first view gives to the rows of each class that class more often than any other,
    * the rates are those of the population.

    Where d_c is 1/3 or more, or unknown, nothing follows and the bound is 1. The mean over classes has the weights
    ``class_prior`` (K,).
    """
    unequal = first != second
    n_classes = class_prior.size
    totals = np.bincount(second, weights=mass, minlength=n_classes)
    wrong = np.bincount(second, weights=mass * unequal, minlength=n_classes)
    d = np.divide(wrong, totals, out=np.full(n_classes, np.nan), where=totals > 0.0)
    informative = d < 1.0 / 3.0
    bound = np.ones(n_classes)
    bound[informative] = d[informative] / (1.0 - 2.0 * d[informative])
    rate = float(wrong.sum() / totals.sum()) if totals.sum() > 0.0 else float("nan")
    return Disagreement(rate, d, float(class_prior @ bound))
