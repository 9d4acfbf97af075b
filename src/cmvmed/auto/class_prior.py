"""The share of each class among the unlabeled rows, from the labels' counts or as the user gives it.

With few labels the ranking of the rows is accurate and the threshold is not, so the share has a large effect on
accuracy (``docs/theory.md``, section 4). What the unlabeled rows add is in
:mod:`cmvmed.members.shares`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, logit, softmax

from cmvmed.numerics.types import Array

SUM_TOLERANCE = 1e-6  # of shares that a user gives
MIN_SHARE = 1e-9  # of a class, in logarithms and ratios


def label_share(counts: Array) -> Array:
    """(n_c + ½)/(N + K/2): the labeled rows' share of each class, (K,), never zero."""
    return np.asarray((counts + 0.5) / (counts.sum() + 0.5 * counts.size))


def empirical_bayes_share(counts: Array) -> Array:
    """Label shares shrunk towards equal classes, (K,), as strongly as the counts themselves suggest.

    An average over symmetric Dirichlet priors of concentration κ, weighted by the probability they give the counts:
    r_c = Σ_κ w_κ (n_c + κ)/(N + Kκ), w_κ ∝ DirichletMultinomial(n | κ1).
    """
    kappa = np.logspace(-0.5, 3.0, 40)
    total, n_classes = counts.sum(), counts.size
    log_evidence = (
        gammaln(n_classes * kappa)
        - gammaln(total + n_classes * kappa)
        + (gammaln(counts[:, None] + kappa) - gammaln(kappa)).sum(axis=0)
    )
    shares = (counts[:, None] + kappa) / (total + n_classes * kappa)
    return np.asarray(shares @ softmax(log_evidence))


@dataclass(frozen=True)
class ShareBounds:
    """What is known of the class shares: each is at least ``low`` and at most ``high``, both (K,)."""

    low: Array
    high: Array

    def hold(self, shares: Array) -> bool:
        """Whether shares (K,) are within the bounds."""
        return bool((self.low <= shares).all() and (shares <= self.high).all())

    def tightened(self) -> "ShareBounds":
        """The same, after what the bounds of the other classes leave for each."""
        low = np.clip(1.0 - (self.high.sum() - self.high), self.low, self.high)
        return ShareBounds(low, np.clip(1.0 - (self.low.sum() - self.low), low, self.high))

    def combined(self, shares: Array, n_labels: float) -> Array:
        """The shares by these bounds and an estimate r (K,) together; within the bounds.

        Who gives a range takes its middle for likelier than its ends. Its ends in logits, a and b, are taken as two standard
        deviations from the middle, and r as shares that were seen in as many rows as there are labels, N. The mean of both, each
        weighted by the inverse of its variance,

            logit s = w (a + b)/2 + (1 - w) logit r,   w = 1/(1 + N r (1 - r) ((b - a)/4)²),

        is brought to the sum 1 and into the bounds. A range that begins at 0 or ends at 1 is a bound only (w = 0).
        """
        known = (self.low > 0.0) & (self.high < 1.0)
        a, b, r = logit(self.low[known]), logit(self.high[known]), np.clip(shares[known], MIN_SHARE, 1.0 - MIN_SHARE)
        w = 1.0 / (1.0 + n_labels * r * (1.0 - r) * (0.25 * (b - a)) ** 2)
        found = shares.copy()
        found[known] = expit(0.5 * w * (a + b) + (1.0 - w) * logit(r))
        return self.nearest(found / found.sum() if known.any() else found)

    def nearest(self, shares: Array) -> Array:
        """The shares s within the bounds that are nearest to given ones r: min KL(s ‖ r), so that s = clip(t r, low, high).

        The sum of the clipped shares is linear in t between the values where one of them reaches a bound, which gives t.
        """
        if self.hold(shares):
            return shares
        r = np.maximum(shares, MIN_SHARE)
        t = np.unique(np.concatenate([self.low / r, self.high / r]))
        sums = np.clip(t[:, None] * r, self.low, self.high).sum(axis=1)
        found = np.clip(np.interp(1.0, sums, t) * r, self.low, self.high)
        return np.asarray(found / found.sum())


def given_prior(class_prior: object, classes: NDArray[Any]) -> Array | ShareBounds:
    """The user's class prior: shares (K,), or bounds if a dict has ranges or leaves classes out.

    Shares are a number for the second of two classes, one number per class, or a dict with a number for every class.
    """
    n_classes, names = len(classes), classes.tolist()
    if isinstance(class_prior, Mapping):
        bounds = _given_bounds(class_prior, names)
        if (bounds.low < bounds.high).any():
            return bounds
        prior = bounds.low
    elif np.ndim(class_prior) == 0:  # type: ignore[arg-type]
        if n_classes != 2:
            raise ValueError(
                f"class_prior={class_prior!r} is one number, but there are {n_classes} classes: give one for each."
            )
        share = _numbers([class_prior])
        prior = np.concatenate([1.0 - share, share])
    else:
        prior = _numbers(list(class_prior))  # type: ignore[call-overload]
    if prior.shape != (n_classes,) or not (prior > 0.0).all() or abs(prior.sum() - 1.0) > SUM_TOLERANCE:
        raise ValueError(
            f"class_prior must give each of the {n_classes} classes a positive share, summing to 1, in the order of "
            f"classes_ {names}, but is {class_prior!r}."
        )
    return np.asarray(prior / prior.sum())


def _given_bounds(given: Mapping[Any, object], names: list[Any]) -> ShareBounds:
    """The bounds that a dict from class to number or pair gives; those of classes that it leaves out are 0 and 1."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"class_prior has {unknown[0]!r}, which is not a class of the labels: they are {names}. Correct the name, or "
            "leave the class out."
        )
    bounds = np.array([_bounds_of(name, given.get(name, (0.0, 1.0))) for name in names])
    found = ShareBounds(bounds[:, 0], bounds[:, 1])
    least, most = found.low.sum(), found.high.sum()
    if least > 1.0 + SUM_TOLERANCE:
        name = names[int(found.low.argmax())]
        raise ValueError(
            f"class_prior cannot sum to 1: the smallest shares that it allows sum to {least:.3g}. Lower that of {name!r} "
            "or of other classes."
        )
    if most < 1.0 - SUM_TOLERANCE:
        name = names[int(found.high.argmax())]
        raise ValueError(
            f"class_prior cannot sum to 1: the largest shares that it allows sum to {most:.3g}. Raise that of {name!r} or of "
            "other classes, or leave out a class whose share is unknown."
        )
    if least > 1.0 - SUM_TOLERANCE and (found.low == 0.0).any():
        name = names[int(found.low.argmin())]
        raise ValueError(
            f"class_prior leaves nothing for class {name!r}, which has labels: the smallest shares of the others sum to 1. "
            "Lower them."
        )
    return found.tightened()


def _bounds_of(name: object, given: object) -> tuple[float, float]:
    """The smallest and largest share of a class, from a number or a pair."""
    pair = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given, given]
    values = _numbers(pair)
    where = f"class_prior of class {name!r}"
    if values.size != 2 or not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError(
            f"{where} must be a share between 0 and 1 or a pair of them, smallest and largest, but is {given!r}."
        )
    low, high = map(float, values)
    if low > high:
        raise ValueError(f"{where} is {given!r}, whose first number is larger: give the smallest share first.")
    if high == 0.0:
        raise ValueError(f"{where} is {given!r}, but the class has labels: allow it a share above 0, or remove them.")
    return low, high


def _numbers(given: Sequence[object]) -> Array:
    """The given numbers as an array; NaN, which fits no prior, for what is no number."""
    return np.array([float(value) if isinstance(value, Real) else np.nan for value in given])
