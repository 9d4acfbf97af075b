"""Objective (1): it is the textbook formula, and no half-step of the EM algorithm increases it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from cmvmed.core.annealing import step_view
from cmvmed.core.consensus import (
    balancing_offset,
    positive_probability,
    soft_labels,
    update_consensus,
)
from cmvmed.core.objective import objective
from cmvmed.core.surrogates import Bohning, Jaakkola, Newton, Quadrature
from tests.core.factories import draw_problem, half_steps, objective_value, rejects, uneven_prior
from tests.core.reference import expected_log_partition, gaussian_kl, gaussian_posterior, state_weights

ROUTES = {
    "bohning, eigen": (Bohning(), True),
    "bohning, cholesky": (Bohning(), False),
    "jaakkola": (Jaakkola(), False),
    "exact": (Quadrature(), False),
}
LAM = 0.8


def textbook_objective(energy, problem, sensors, states, pi, consensus, lam, temperature):
    """Objective (1) from weights, covariances and the KL divergence of Gaussians; ``energy(m, s)`` is E A(f)."""
    total, q = 0.0, positive_probability(consensus.q)
    for i, (sensor, state) in enumerate(zip(sensors, states, strict=True)):
        W = state_weights(sensor, state)
        rows_L, rows_U = problem.rows_L[i], problem.rows_U[i]
        for c in range(W.shape[1]):
            a = np.broadcast_to(state.a, state.b.shape)[:, c]
            _, covariance = gaussian_posterior(sensor, lam, a, state.b[:, c], state.tau[:, c])
            m = sensor.Phi_U @ W[:, c]
            s = np.einsum("mi,ij,mj->m", sensor.Phi_U, covariance, sensor.Phi_U)
            hinge = np.maximum(1.0 - problem.Y[rows_L, c] * (sensor.Phi_L @ W[:, c]), 0.0)
            agreement = energy(m, s) - (q[rows_U, c] - 0.5) * m
            total += pi[i] * (
                gaussian_kl(W[:, c], covariance, sensor.blocks.prior_variance)
                + problem.box[i][rows_L] @ hinge
                + lam * problem.weights_U[rows_U] @ agreement
            )
    coverage = sum(weight * np.isin(np.arange(len(q)), rows) for weight, rows in zip(pi, problem.rows_U, strict=True))
    entropy = -np.nan_to_num(consensus.q * np.log(consensus.q)).sum(axis=1)
    kappa = float(min(problem.n_classes - 1, 2))
    return total - lam * kappa * temperature * (problem.weights_U * coverage) @ entropy


def run_case(surrogate, *, n_classes, missing, weighted, spectral, balanced, temperature, seed=0, **named):
    problem, sensors = draw_problem(
        seed, n_classes=n_classes, n_views=3, n_labeled=8, missing=missing, weighted=weighted, spectral=spectral
    )
    shares = uneven_prior(n_classes) if balanced else None
    pi = np.array([0.5, 0.3, 0.2])
    values, states, consensus = half_steps(
        problem, surrogate, lam=LAM, temperature=temperature, shares=shares, pi=pi, **named
    )
    return problem, sensors, pi, values, states, consensus


def check_never_rises(values, *, rtol=1e-9):
    """C10: no half-step increases the objective."""
    assert np.diff(values).max() <= rtol * np.abs(values).max()


@pytest.mark.parametrize(("balanced", "missing"), [(False, 0.0), (True, 0.35)])
@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.3])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("route", ROUTES)
def test_c10_objective_never_rises(route, n_classes, temperature, balanced, missing):
    surrogate, spectral = ROUTES[route]
    *_, values, _, _ = run_case(
        surrogate,
        n_classes=n_classes,
        missing=missing,
        weighted=True,
        spectral=spectral,
        balanced=balanced,
        temperature=temperature,
    )
    check_never_rises(values)
    assert values[-1] < values[0] - 1e-3


def wrong_temperature(problem, states, pi, shares, temperature, last):
    return update_consensus(problem, states, pi, shares, 0.5 * temperature, last)


def wrong_sign(problem, states, pi, shares, temperature, last):
    consensus = update_consensus(problem, states, pi, shares, temperature, last)
    return replace(consensus, q=consensus.q[:, ::-1].copy())


def ignores_coverage(problem, states, pi, shares, temperature, last):
    """Balances the plain mean of q instead of the one weighted by the views that a row has."""
    consensus = update_consensus(problem, states, pi, shares, temperature, last)
    offset = balancing_offset(consensus.scores, problem.weights_U, shares, temperature, consensus.offset)
    return replace(consensus, offset=offset, q=soft_labels(consensus.scores, offset, temperature))


class OppositeResponse(Bohning):
    def response(self, m, s, q, a):
        return super().response(m, s, 1.0 - q, a)


class TooSmallCurvature(Bohning):
    """A curvature below A'' is no bound."""

    def curvature(self, m, s):
        return np.full((m.shape[0], 1), 0.02)


class WithoutExpansionPoint(Bohning):
    def response(self, m, s, q, a):
        return q - 0.5


def view_step_of(broken):
    return lambda problem, i, surrogate, state, q, lam: step_view(problem, i, broken, state, q, lam)


@pytest.mark.parametrize(
    "broken",
    [
        {"consensus_step": wrong_temperature},
        {"consensus_step": wrong_sign},
        {"consensus_step": ignores_coverage},
        {"step": view_step_of(OppositeResponse())},
        {"step": view_step_of(TooSmallCurvature())},
        {"step": view_step_of(WithoutExpansionPoint())},
    ],
    ids=["temperature", "sign of consensus", "coverage", "sign of response", "curvature", "expansion point"],
)
def test_c10_check_rejects_broken_half_steps(broken):
    case = {"n_classes": 2, "missing": 0.35, "weighted": True, "spectral": True, "balanced": True, "temperature": 0.5}
    values = [run_case(Bohning(), **case, seed=seed, n_sweeps=12, **broken)[3] for seed in range(2)]
    rejects(check_never_rises, max(values, key=lambda path: np.diff(path).max()))


def check_objective(objective_of, surrogate, problem, sensors, pi, states, consensus):
    """The recorded objective is (A) with the surrogate's energy: (A) itself for "exact", more for a bound."""
    value = objective_of(problem, surrogate, states, pi, consensus, LAM, 0.5)
    same = textbook_objective(surrogate.energy, problem, sensors, states, pi, consensus, LAM, 0.5)
    exact = textbook_objective(expected_log_partition, problem, sensors, states, pi, consensus, LAM, 0.5)
    np.testing.assert_allclose(value, same, rtol=1e-9)
    if isinstance(surrogate, Quadrature):
        np.testing.assert_allclose(value, exact, rtol=1e-9)
    else:
        assert value > exact


def without_entropy_factor(problem, surrogate, states, pi, consensus, lam, temperature):
    return objective_value(problem, surrogate, states, pi, consensus, lam, 1.0)


def without_variance(problem, surrogate, states, pi, consensus, lam, temperature):
    means_only = [replace(state, covariance_cost=0.0) for state in states]
    return objective_value(problem, surrogate, means_only, pi, consensus, lam, temperature)


def plugs_in_the_mean(problem, surrogate, states, pi, consensus, lam, temperature):
    return objective_value(problem, Newton(), states, pi, consensus, lam, temperature)


@pytest.mark.parametrize("missing", [0.0, 0.35])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("route", ROUTES)
def test_c10_objective_is_the_textbook_one_and_bounds_the_quadrature(route, n_classes, missing):
    surrogate, spectral = ROUTES[route]
    problem, sensors, pi, _, states, consensus = run_case(
        surrogate,
        n_classes=n_classes,
        missing=missing,
        weighted=True,
        spectral=spectral,
        balanced=True,
        temperature=0.5,
        n_sweeps=2,
    )
    check_objective(objective_value, surrogate, problem, sensors, pi, states, consensus)
    for broken in (without_entropy_factor, without_variance, plugs_in_the_mean):
        rejects(check_objective, broken, surrogate, problem, sensors, pi, states, consensus)


def plug_in_path(problem, surrogate, *, n_sweeps=5):
    """The objective with the mean plugged in, after every half-step."""
    return half_steps(
        problem,
        surrogate,
        lam=5.0,
        temperature=0.3,
        n_sweeps=n_sweeps,
        value=lambda p, _, states, pi, consensus, lam, t: objective_value(p, Newton(), states, pi, consensus, lam, t),
    )[0]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_newton_steps_are_shortened_until_the_objective_falls(n_classes):
    """Newton's model is no bound; with its line search the objective with plugged-in means never rises."""
    problems = [draw_problem(seed, n_classes=n_classes, spectral=False, prior_variance=40.0)[0] for seed in range(2)]
    for problem in problems:
        check_never_rises(plug_in_path(problem, Newton()))
    full = [plug_in_path(problem, Newton(needs_line_search=False)) for problem in problems]
    rejects(check_never_rises, max(full, key=lambda path: np.diff(path).max()))


def exact_objective_at_the_end(surrogate, *, seed):
    """Objective (A), by the reference's own quadrature, where an algorithm ends."""
    problem, sensors = draw_problem(seed, spectral=False, prior_variance=3.0)
    pi = np.full(2, 0.5)
    _, states, consensus = half_steps(problem, surrogate, lam=LAM, temperature=0.5, n_sweeps=50)
    return textbook_objective(expected_log_partition, problem, sensors, states, pi, consensus, LAM, 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_algorithm_ends_at_a_lower_objective_than_the_exact_one(seed):
    exact, *others = (exact_objective_at_the_end(s, seed=seed) for s in (Quadrature(), Jaakkola(), Bohning()))
    assert exact < min(others)


def undamped_path(problem, surrogate):
    return half_steps(problem, surrogate, lam=20.0, temperature=0.3, n_sweeps=6)[0]


def test_exact_steps_are_shortened_until_the_objective_falls():
    problems = [draw_problem(seed, spectral=False, prior_variance=40.0)[0] for seed in range(3)]
    for problem in problems:
        check_never_rises(undamped_path(problem, Quadrature()))
    full = [undamped_path(problem, Quadrature(needs_line_search=False)) for problem in problems]
    rejects(check_never_rises, max(full, key=lambda path: np.diff(path).max()))


def test_the_consensus_term_is_the_divergence_of_the_views_from_the_consensus():
    """At T = 1 it is λ Σ_i π_i Σ_U w E KL(q ‖ p_i), paper eq. (4), here by quadrature over each row's score."""
    problem, _, pi, _, states, consensus = run_case(
        Quadrature(), n_classes=2, missing=0.35, weighted=True, spectral=False, balanced=False, temperature=1.0
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    total = 0.0
    for weight, rows, state in zip(pi, problem.rows_U, states, strict=True):
        f = state.m_U + np.sqrt(state.s_U) * nodes
        q = consensus.q[rows, 1:]
        kl = q * np.log(q / expit(f)) + (1.0 - q) * np.log((1.0 - q) / expit(-f))
        total += weight * problem.weights_U[rows] @ (kl @ weights / weights.sum())
    value = objective(problem, Quadrature(), states, pi, consensus, LAM, 1.0)
    np.testing.assert_allclose(value.consensus, LAM * total, rtol=1e-8)
    assert value.total == pytest.approx(value.views + value.consensus)
