"""Gaussian classes on the vertices of a regular simplex: their means, and the Bayes error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.special import ndtr


def simplex_vertices(n_classes: int) -> NDArray[np.float64]:
    """Return the (K, K - 1) vertices of the regular simplex with circumradius 1 around the origin.

    For two classes: +1 and -1.
    """
    centered = np.eye(n_classes) - 1.0 / n_classes
    # Helmert's orthonormal basis of the space orthogonal to the ones vector, with fixed signs
    basis = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        basis[:j, j - 1] = 1.0 / np.sqrt(j * (j + 1))
        basis[j, j - 1] = -j / np.sqrt(j * (j + 1))
    return np.asarray(centered @ basis * np.sqrt(n_classes / (n_classes - 1)))


def simplex_bayes_error(circumradius: float, class_probabilities: ArrayLike) -> float:
    r"""Return the Bayes error of Gaussian classes of unit variance on the vertices of a regular simplex.

    Parameters
    ----------
    circumradius : float
        Distance r of every class mean from the center, in units of the common standard deviation.
    class_probabilities : (K,)
        Class probabilities, summing to one.

    Returns
    -------
    float
        1 - P(correct).

    Notes
    -----
    The vertices are K orthogonal vectors of length a = r sqrt(K / (K - 1)) minus their mean, and a translation does
    not change the error. In orthogonal coordinates the K scores are independent normal variables, so that with class
    probabilities pi

    .. math::
        P(\text{correct}) = \sum_k \pi_k \int \phi(t - a)
            \prod_{j \ne k} \Phi\bigl(t + \log(\pi_k / \pi_j) / a\bigr)\, dt .

    For K = 2 equal classes this is 1 - Phi(-r).
    """
    priors = np.asarray(class_probabilities, dtype=float)
    n_classes = len(priors)
    a = circumradius * np.sqrt(n_classes / (n_classes - 1))
    if a < 1e-9:  # no information: predict the majority class
        return float(1.0 - priors.max())

    def correct(t: float, k: int) -> float:
        others = np.delete(priors, k)
        density = math.exp(-0.5 * (t - a) ** 2) / math.sqrt(2.0 * math.pi)
        return density * float(np.prod(ndtr(t + np.log(priors[k] / others) / a)))

    p_correct = sum(priors[k] * quad(correct, a - 10.0, a + 10.0, args=(k,), limit=200)[0] for k in range(n_classes))
    return float(1.0 - p_correct)
