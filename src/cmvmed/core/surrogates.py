"""Quadratic models of the consensus term: the table of section 3 of the theory page, one class per row.

With A(f) = log 2cosh(f/2), an unlabeled row contributes E A(f) - (q - 1/2) m to a view's objective. Every surrogate
replaces A(f) - (q - 1/2) f by a f²/2 - b f, which makes the view's posterior Gaussian. All functions act elementwise on
scores ``m``, variances ``s`` and consensus probabilities ``q`` of shape (n_unlabeled, n_functions); ``s`` may have one
column that serves all functions.
"""

from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from scipy.special import expit

from cmvmed.numerics.types import Array

N_NODES = (
    64  # of the quadrature: errors of E A are below 1e-7 up to a variance of 10, 4e-5 at 30, 2e-3 at 100, 0.15 at 4000
)
MIN_VARIANCE = 1e-12  # stands in for smaller ones, where the quadrature would divide by zero


def log_partition(f: Array) -> Array:
    """A(f) = log 2cosh(f/2), without overflow."""
    size = np.abs(f)
    return np.asarray(0.5 * size + np.log1p(np.exp(-size)))


def logistic_curvature(f: Array) -> Array:
    """A''(f) = p (1 - p) with p = σ(f)."""
    p = expit(-np.abs(f))
    return np.asarray(p * (1.0 - p))


def jaakkola_curvature(xi: Array) -> Array:
    """χ(ξ) = tanh(ξ/2) / (2ξ), which tends to 1/4 as ξ tends to 0."""
    safe = np.maximum(np.abs(xi), 1e-6)  # below this, the series 1/4 - ξ²/48 is 1/4 to machine precision
    return np.asarray(np.tanh(0.5 * safe) / (2.0 * safe))


@cache
def _normal_rule() -> tuple[Array, Array]:
    """Nodes and weights with Σ w g(t) ≈ E g(t) for t ~ N(0, 1): Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    return nodes, weights / weights.sum()


def expected_log_partition(m: Array, s: Array) -> Array:
    """E A(f) for f ~ N(m, s)."""
    nodes, weights = _normal_rule()
    return np.asarray(sum(w * log_partition(m + np.sqrt(s) * t) for t, w in zip(nodes, weights, strict=True)))


def expected_logistic(m: Array, s: Array) -> Array:
    """E σ(f) = ½ + d/dm E A(f)."""
    nodes, weights = _normal_rule()
    return np.asarray(sum(w * expit(m + np.sqrt(s) * t) for t, w in zip(nodes, weights, strict=True)))


def expected_curvature(m: Array, s: Array) -> Array:
    """E ν(f) = 2 d/ds E A(f), as E (f - m)σ(f)/s: Stein's identity, by which it is the derivative of the quadrature too."""
    nodes, weights = _normal_rule()
    root = np.sqrt(np.maximum(s, MIN_VARIANCE))
    half = nodes > 0.0  # nodes are symmetric, and differences of a pair do not cancel in the sum
    pairs = zip(nodes[half], weights[half], strict=True)
    return np.asarray(sum(w * t * (expit(m + root * t) - expit(m - root * t)) for t, w in pairs) / root)


class Surrogate(Protocol):
    """A quadratic model a f²/2 - b f of A(f) - (q - 1/2) f, and the value it gives to E A(f)."""

    @property
    def shared_curvature(self) -> bool:
        """One curvature for all rows and functions, so that one factorization serves them all."""

    @property
    def uses_variance(self) -> bool:
        """The posterior variance enters the model (else the mean alone is plugged in)."""

    @property
    def needs_line_search(self) -> bool:
        """No bound, so that a full step may raise the objective."""

    @property
    def drops_prior_variance(self) -> bool:
        """The mean is taken without its factor σ²."""

    @property
    def has_objective(self) -> bool:
        """Updates minimize an objective, so that convergence can be checked."""

    def curvature(self, m: Array, s: Array) -> Array:
        """a, (n_unlabeled, 1) if shared and (n_unlabeled, n_functions) else."""

    def response(self, m: Array, s: Array, q: Array, a: Array) -> Array:
        """b, (n_unlabeled, n_functions)."""

    def energy(self, m: Array, s: Array) -> Array:
        """The value taken for E A(f) at the point of expansion."""


@dataclass(frozen=True)
class Bohning:
    """Constant curvature a = 1/4 >= A'': an upper bound, E A(f) <= A(m) + s/8, touching in the mean."""

    shared_curvature: bool = True
    uses_variance: bool = True
    needs_line_search: bool = False
    drops_prior_variance: bool = False
    has_objective: bool = True

    def curvature(self, m: Array, s: Array) -> Array:
        """a = 1/4."""
        return np.full((m.shape[0], 1), 0.25)

    def response(self, m: Array, s: Array, q: Array, a: Array) -> Array:
        """b = m/4 + q - σ(m)."""
        return np.asarray(a * m + q - expit(m))

    def energy(self, m: Array, s: Array) -> Array:
        """A(m) + s/8."""
        return log_partition(m) + s / 8.0


@dataclass(frozen=True)
class Jaakkola:
    """The variational bound A(f) <= A(ξ) + χ(ξ)(f² - ξ²)/2 at its best ξ² = m² + s (the Pólya-Gamma bound)."""

    shared_curvature: bool = False
    uses_variance: bool = True
    needs_line_search: bool = False
    drops_prior_variance: bool = False
    has_objective: bool = True

    def curvature(self, m: Array, s: Array) -> Array:
        """a = χ(ξ)."""
        return jaakkola_curvature(np.sqrt(m * m + s))

    def response(self, m: Array, s: Array, q: Array, a: Array) -> Array:
        """b = q - 1/2."""
        return q - 0.5

    def energy(self, m: Array, s: Array) -> Array:
        """A(√(m² + s))."""
        return log_partition(np.sqrt(m * m + s))


@dataclass(frozen=True)
class Newton:
    """Second-order Taylor expansion at the mean, a = A''(m): no bound, so the step is damped by a line search."""

    shared_curvature: bool = False
    uses_variance: bool = False
    needs_line_search: bool = True
    drops_prior_variance: bool = False
    has_objective: bool = True

    def curvature(self, m: Array, s: Array) -> Array:
        """a = ν(m)."""
        return logistic_curvature(m)

    def response(self, m: Array, s: Array, q: Array, a: Array) -> Array:
        """b = ν m + q - σ(m): the working response is b/a = m + (q - p)/ν."""
        return np.asarray(a * m + q - expit(m))

    def energy(self, m: Array, s: Array) -> Array:
        """A(m): the mean is plugged in."""
        return log_partition(m)


@dataclass(frozen=True)
class Quadrature:
    """E A(f) itself, by Gauss-Hermite quadrature: the model has its derivatives in the mean and the variance.

    At a fixed point the posterior minimizes objective (A) over Gaussians; no bound, so the step is damped by a line
    search.
    """

    shared_curvature: bool = False
    uses_variance: bool = True
    needs_line_search: bool = True
    drops_prior_variance: bool = False
    has_objective: bool = True

    def curvature(self, m: Array, s: Array) -> Array:
        """a = E ν(f)."""
        return expected_curvature(m, s)

    def response(self, m: Array, s: Array, q: Array, a: Array) -> Array:
        """b = a m + q - E σ(f)."""
        return np.asarray(a * m + q - expected_logistic(m, s))

    def energy(self, m: Array, s: Array) -> Array:
        """E A(f)."""
        return expected_log_partition(m, s)


@dataclass(frozen=True)
class AsPrinted(Newton):
    """The paper's print: curvature A''(m) but no linear term, so the consensus q never enters a view.

    Its mean Σ y α Φ̃(x) also lacks the factor σ² that its own dual implies.
    """

    needs_line_search: bool = False
    drops_prior_variance: bool = True
    has_objective: bool = False

    def response(self, m: Array, s: Array, q: Array, a: Array) -> Array:
        """b = 0."""
        return np.zeros_like(m)
