"""Textbook formulas and a second solver, written without the core, to compare it with."""

from __future__ import annotations

from functools import cache

import clarabel
import numpy as np
from scipy import sparse


def clarabel_box_qp(Q, g, upper):
    """Maximize g·α - ½ αᵀQα over 0 <= α <= upper by an interior-point solver."""
    n = g.size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    identity = sparse.identity(n, format="csc")
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(Q)),
        -g,
        sparse.vstack([identity, -identity], format="csc"),
        np.concatenate([upper, np.zeros(n)]),
        [clarabel.NonnegativeConeT(2 * n)],
        settings,
    )
    return np.clip(np.array(solver.solve().x), 0.0, upper)


def gaussian_posterior(sensor, lam, a, b, tau):
    """Mean (p,) and covariance (p, p) of the posterior in section 3 of docs/theory.md, for one function."""
    weights, variance = sensor.blocks.weights, sensor.blocks.prior_variance
    precision = np.eye(sensor.Phi_U.shape[1]) / variance + lam * sensor.Phi_U.T @ np.diag(weights * a) @ sensor.Phi_U
    covariance = np.linalg.inv(precision)
    return covariance @ (sensor.Phi_L.T @ tau + lam * sensor.Phi_U.T @ (weights * b)), covariance


def gaussian_kl(mean, covariance, prior_variance):
    """KL(N(mean, covariance) ‖ N(0, prior_variance I))."""
    p = mean.size
    return 0.5 * (
        np.trace(covariance) / prior_variance
        + mean @ mean / prior_variance
        - p
        + p * np.log(prior_variance)
        - np.linalg.slogdet(covariance)[1]
    )


hermite_rule = cache(np.polynomial.hermite.hermgauss)


def expected_log_partition(m, s, n_nodes=80):
    """E log 2cosh(f/2) for f ~ N(m, s), by Gauss-Hermite quadrature."""
    nodes, weights = hermite_rule(n_nodes)
    f = np.asarray(m)[..., None] + np.sqrt(2.0 * np.asarray(s))[..., None] * nodes
    return np.logaddexp(f / 2.0, -f / 2.0) @ weights / np.sqrt(np.pi)


def state_weights(sensor, state):
    """ŵ = σ²(Φ_Lᵀτ + Φ_Uᵀγ), (p, F), from a state's coefficients."""
    return sensor.blocks.prior_variance * (sensor.Phi_L.T @ state.tau + sensor.Phi_U.T @ state.gamma)
