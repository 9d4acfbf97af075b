"""The accuracy that labels of random rows show: prediction-powered inference.

Rows that were chosen because they are uncertain say little of the others, but random rows stand for all. With h_i whether the
class of row i is predicted correctly by fits without its label, and f_i a guess at its probability, by the same fits for labeled
and unlabeled rows, the accuracy is estimated by

    mean of f over the unlabeled rows + mean of h - f over the random labeled rows,

whatever the guesses are worth (Angelopoulos et al., Science 382, 2023; by folds: Zrnic and Candès, PNAS 121, 2024). The better
f tells right from wrong, the smaller the variance of h - f, and the narrower the interval. A normal interval fails where all of
few labels are right, so that z²/2 labels that are right and z²/2 that are wrong, each with the mean f, are added to it: if f is
constant, it is the interval of Agresti and Coull (1998), which contains Wilson's.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from cmvmed.numerics.types import Array


@dataclass(frozen=True)
class RandomLabels:
    """What the held-out labels of random rows, and the unlabeled rows, say of the accuracy."""

    n: float  # random labels that were held out; of unequal weights, as many of equal weights as have the same variance
    residual: float  # mean of h - f
    squared_residual: float  # mean of (h - f)²
    confidence: float  # mean f of the unlabeled rows
    variance: float  # of that mean
    n_unlabeled: float  # number of these, as ``n``; their accuracy varies too

    @property
    def mean(self) -> float:
        """The estimate, within 0 and 1."""
        return min(max(self.confidence + self.residual, 0.0), 1.0)

    def interval(self, level: float) -> tuple[float, float]:
        """Lower and upper bound of the accuracy."""
        z, f = NormalDist().inv_cdf(0.5 * (1.0 + level)), self.confidence
        n = self.n + z**2
        mean = (self.n * self.residual + 0.5 * z**2 * (1.0 - 2.0 * f)) / n
        square = (self.n * self.squared_residual + 0.5 * z**2 * ((1.0 - f) ** 2 + f**2)) / n
        center, half = f + mean, z * ((square - mean**2) * (1.0 / n + 1.0 / self.n_unlabeled) + self.variance) ** 0.5
        return max(min(center - half, self.mean), 0.0), min(max(center + half, self.mean), 1.0)


def random_labels(right: Array, confidence: Array, weights: Array, others: Array, mass: Array) -> RandomLabels | None:
    """The labels of random rows; None if none was held out.

    Parameters
    ----------
    right : (l,), h, whether each label is predicted correctly by a fit without it
    confidence : (l,), f
    weights : (l,), of the labels; zero for those that were chosen, or not held out
    others, mass : (n,), f of all rows, and weights of the unlabeled ones; zero for others
    """
    total = float(weights.sum())
    if total == 0.0:
        return None
    residual = right - confidence
    mean, variance, n_unlabeled = float(weights @ confidence) / total, 0.0, np.inf
    if mass.sum() > 0.0:
        share = mass / mass.sum()
        mean = float(share @ others)
        variance, n_unlabeled = float(share**2 @ (others - mean) ** 2), 1.0 / float(share @ share)
    return RandomLabels(
        n=total**2 / float(weights @ weights),
        residual=float(weights @ residual) / total,
        squared_residual=float(weights @ residual**2) / total,
        confidence=mean,
        variance=variance,
        n_unlabeled=n_unlabeled,
    )
