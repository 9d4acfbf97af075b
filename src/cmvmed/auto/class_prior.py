"""The share of each class among the unlabeled rows, from the labels' counts.

With few labels the ranking of the rows is accurate and the threshold is not, so the share has a large effect on
accuracy (``docs/theory.md``, section 4). What the unlabeled rows add is in
:mod:`cmvmed.members.shares`.
"""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax

from cmvmed.numerics.types import Array


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
