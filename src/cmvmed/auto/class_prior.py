"""The share of each class among the unlabeled rows, from the labels' counts.

With few labels the ranking of the rows is accurate and the threshold is not, so the share has a large effect on
accuracy (``docs/theory.md``, section 4). Shares of two classes are refined by :mod:`.ranks` and :mod:`.anchors`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax
from scipy.stats import beta

from cmvmed.auto.tuning import Tuning
from cmvmed.core.consensus import ClassBalance
from cmvmed.core.types import Array


@dataclass(frozen=True)
class ShareEstimate:
    """Mean and variance of the share of the second of two classes."""

    mean: float
    variance: float


def label_share(counts: Array) -> Array:
    """(n_c + ½)/(N + K/2): the labeled rows' share of each class, (K,), never zero."""
    return np.asarray((counts + 0.5) / (counts.sum() + 0.5 * counts.size))


def counted_share(counts: Array) -> ShareEstimate:
    """The share of the second of two classes, given the labeled rows' counts (2,) alone (Jeffreys prior)."""
    posterior = beta(counts[1] + 0.5, counts[0] + 0.5)
    return ShareEstimate(float(posterior.mean()), float(posterior.var()))


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


def label_interval(counts: Array, level: float) -> tuple[Array, Array]:
    """Central interval of each class's share given the labeled counts (Jeffreys prior), two arrays (K,)."""
    rest = counts.sum() - counts
    tail = 0.5 * (1.0 - level)
    return np.asarray(beta.ppf(tail, counts + 0.5, rest + 0.5)), np.asarray(beta.isf(tail, counts + 0.5, rest + 0.5))


def relaxed_balance(counts: Array, n_stages: int, tuning: Tuning) -> ClassBalance:
    """Impose the empirical-Bayes share in the first stages, then only keep shares inside the labels' interval."""
    lower, upper = label_interval(counts, tuning.interval_level)
    constrained = max(1, int(n_stages * tuning.constrained_fraction))
    return ClassBalance(empirical_bayes_share(counts), constrained, lower, upper)


def initial_balance(
    class_prior: Array | str | None, counts: Array, n_stages: int, tuning: Tuning
) -> tuple[Array, ClassBalance | None]:
    """The class shares that labels or the user give, and how they are imposed; None imposes nothing.

    Parameters
    ----------
    class_prior : shares (K,), "labels", "auto" or None
    counts : (K,), labeled rows of each class
    """
    if class_prior is None:
        return label_share(counts), None
    if isinstance(class_prior, str) and class_prior == "auto" and counts.size > 2:
        balance = relaxed_balance(counts, n_stages, tuning)
        return balance.prior, balance
    prior = label_share(counts) if isinstance(class_prior, str) else class_prior
    return prior, ClassBalance(prior)


def given_prior(class_prior: object, classes: NDArray[Any]) -> Array:
    """The user's class prior (K,): a number for the second of two classes, one number per class, or a dict by class."""
    n_classes, names = len(classes), classes.tolist()
    if isinstance(class_prior, Mapping):
        if set(class_prior) != set(names):
            raise ValueError(f"class_prior must have one entry for each class {names}, but is {class_prior!r}.")
        prior = _numbers([class_prior[name] for name in names])
    elif np.ndim(class_prior) == 0:  # type: ignore[arg-type]
        if n_classes != 2:
            raise ValueError(
                f"class_prior={class_prior!r} is one number, but there are {n_classes} classes: give one for each."
            )
        share = _numbers([class_prior])
        prior = np.concatenate([1.0 - share, share])
    else:
        prior = _numbers(list(class_prior))  # type: ignore[call-overload]
    if prior.shape != (n_classes,) or not (prior > 0.0).all() or abs(prior.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"class_prior must give each of the {n_classes} classes a positive share, summing to 1, in the order of "
            f"classes_ {names}, but is {class_prior!r}."
        )
    return np.asarray(prior / prior.sum())


def _numbers(given: Sequence[object]) -> Array:
    """The given numbers as an array; NaN, which fits no prior, for what is no number."""
    return np.array([float(value) if isinstance(value, Real) else np.nan for value in given])
