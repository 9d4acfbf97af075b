"""The accuracy that labels of random rows show: prediction-powered inference.

Rows that were chosen because they are uncertain say little of the others, but random rows stand for all. With h_i whether the
class of row i is predicted correctly by fits without its label, and f_i a guess at its probability, by the same fits for labeled
and unlabeled rows, the accuracy is estimated by

    mean of f over the unlabeled rows + mean of h - f over the random labeled rows,

whatever the guesses are worth (Angelopoulos et al., Science 382, 2023; by folds: Zrnic and Candès, PNAS 121, 2024). The better
f tells right from wrong, the smaller the variance of h - f, and the narrower the interval. That variance is itself estimated
with n labels, so that the interval has the quantile of Student's t distribution with n - 1 degrees of freedom. It would fail
where all of few labels are right, so that z²/2 labels that are right and z²/2 that are wrong, each with the mean f, are added, z
the normal quantile: if f is constant and labels are many, it is the interval of Agresti and Coull (1998), which contains Wilson's.

Labels of one group (person, day) are right or wrong together. For rows of new groups each group counts as one label, with the
means of its h and f.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy.stats import t as student

from cmvmed.numerics.types import Array, BoolArray, IntArray


@dataclass(frozen=True)
class RandomLabels:
    """What the held-out labels of random rows, and the unlabeled rows, say of the accuracy."""

    n_labels: float  # of random rows; of unequal weights, as many of equal weights as have the same variance
    n: float  # the same number of groups, if groups are the unit, else of labels
    residual: float  # mean of h - f
    squared_residual: float  # mean of (h - f)²
    confidence: float  # mean f of the unlabeled rows
    variance: float  # of that mean
    n_unlabeled: float  # number of these rows or groups, as ``n``; their accuracy varies too

    @property
    def mean(self) -> float:
        """The estimate, within 0 and 1."""
        return min(max(self.confidence + self.residual, 0.0), 1.0)

    def interval(self, level: float) -> tuple[float, float]:
        """Lower and upper bound of the accuracy."""
        tail, f = 0.5 * (1.0 - level), self.confidence
        z, t = NormalDist().inv_cdf(1.0 - tail), float(student.isf(tail, max(self.n - 1.0, 1.0)))
        n = self.n + z**2
        mean = (self.n * self.residual + 0.5 * z**2 * (1.0 - 2.0 * f)) / n
        square = (self.n * self.squared_residual + 0.5 * z**2 * ((1.0 - f) ** 2 + f**2)) / n
        center, half = f + mean, t * ((square - mean**2) * (1.0 / n + 1.0 / self.n_unlabeled) + self.variance) ** 0.5
        return max(min(center - half, self.mean), 0.0), min(max(center + half, self.mean), 1.0)


def random_labels(
    right: BoolArray,
    confidence: Array,
    weights: Array,
    others: Array,
    mass: Array,
    groups: tuple[IntArray, IntArray] | None = None,
) -> RandomLabels | None:
    """The labels of random rows; None if there are none.

    Parameters
    ----------
    right : (l,), h, whether each label is predicted correctly by a fit without it
    confidence : (l,), f
    weights : (l,), of the labels; zero for those that were chosen
    others, mass : (n,), f of all rows, and weights of the unlabeled ones; zero for others
    groups : (l,) and (n,), numbers of the groups of labels and of all rows, if the accuracy is for new groups
    """
    if not weights.any():
        return None
    n_labels, residual = _equal_weights(weights), right - confidence
    mean = float(weights @ confidence) / float(weights.sum())
    if groups is not None:
        residual, weights = _group_means(residual, weights, groups[0])
        others, mass = _group_means(others, mass, groups[1])
    share, variance, n_unlabeled = weights / weights.sum(), 0.0, np.inf
    if mass.any():
        of_unlabeled = mass / mass.sum()
        mean = float(of_unlabeled @ others)
        variance, n_unlabeled = float(of_unlabeled**2 @ (others - mean) ** 2), _equal_weights(mass)
    return RandomLabels(
        n_labels=n_labels,
        n=_equal_weights(weights),
        residual=float(share @ residual),
        squared_residual=float(share @ residual**2),
        confidence=mean,
        variance=variance,
        n_unlabeled=n_unlabeled,
    )


def _equal_weights(weights: Array) -> float:
    """Number of equal weights whose mean has the same variance."""
    return float(weights.sum()) ** 2 / float(weights @ weights)


def _group_means(values: Array, weights: Array, groups: IntArray) -> tuple[Array, Array]:
    """Mean and sum of weights of each group, (G,); zero for groups without weight."""
    total = np.bincount(groups, weights=weights).astype(np.float64)
    return np.bincount(groups, weights=weights * values) / np.where(total > 0.0, total, 1.0), total
