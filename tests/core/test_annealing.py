"""The annealed loop: the objective is the textbook one and never rises, whatever half-step is taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.auto.class_prior import ClassBalance
from cmvmed.core.annealing import (
    Problem,
    Schedule,
    anneal,
    objective,
    pooled_consensus,
    step_view,
)
from cmvmed.core.consensus import balancing_offset, positive_probability, soft_labels
from cmvmed.core.exact import SpectralView
from cmvmed.core.surrogates import AsPrinted, Bohning, Jaakkola, Newton
from tests.core.factories import draw_problem, half_steps, independent_states, rejects
from tests.core.reference import expected_log_partition, gaussian_kl, gaussian_posterior, state_weights

ROUTES = {
    "bohning, eigen": (Bohning(), True),
    "bohning, cholesky": (Bohning(), False),
    "jj": (Jaakkola(), False),
}
LAM = 0.8


def uneven_prior(n_classes):
    return np.arange(1.0, n_classes + 1.0) / np.arange(1.0, n_classes + 1.0).sum()


def textbook_objective(energy, problem, sensors, states, pi, consensus, lam, temperature):
    """Objective (1) from weights, covariances and the KL divergence of two Gaussians; ``energy(m, s)`` stands for E A(f)."""
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
    balance = ClassBalance(uneven_prior(n_classes)) if balanced else None
    pi = np.array([0.5, 0.3, 0.2])
    values, states, consensus = half_steps(
        problem, surrogate, lam=LAM, temperature=temperature, balance=balance, pi=pi, **named
    )
    return problem, sensors, pi, values, states, consensus


def check_never_rises(values, *, rtol=1e-9):
    """C10: not at one half-step."""
    assert np.diff(values).max() <= rtol * np.abs(values).max()


@pytest.mark.parametrize("missing", [0.0, 0.35])
@pytest.mark.parametrize("balanced", [False, True])
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


def wrong_temperature(problem, states, pi, balance, stage, temperature, last):
    return pooled_consensus(problem, states, pi, balance, stage, 0.5 * temperature, last)


def wrong_sign(problem, states, pi, balance, stage, temperature, last):
    consensus = pooled_consensus(problem, states, pi, balance, stage, temperature, last)
    return replace(consensus, q=consensus.q[:, ::-1].copy())


def ignores_coverage(problem, states, pi, balance, stage, temperature, last):
    """Balances the plain mean of q instead of the one weighted by the views that a row has."""
    consensus = pooled_consensus(problem, states, pi, balance, stage, temperature, last)
    offset = balancing_offset(consensus.scores, problem.weights_U, balance.prior, temperature, consensus.offset)
    return replace(consensus, offset=offset, q=soft_labels(consensus.scores, offset, temperature))


class PullsApart(Bohning):
    def response(self, m, q, a):
        return super().response(m, 1.0 - q, a)


class TooFlat(Bohning):
    """A curvature below A'' is no bound."""

    def curvature(self, m, s):
        return np.full((m.shape[0], 1), 0.02)


class ForgetsExpansionPoint(Bohning):
    def response(self, m, q, a):
        return q - 0.5


def view_step_of(twin):
    return lambda problem, i, surrogate, state, q, lam: step_view(problem, i, twin, state, q, lam)


@pytest.mark.parametrize(
    "twin",
    [
        {"consensus_step": wrong_temperature},
        {"consensus_step": wrong_sign},
        {"consensus_step": ignores_coverage},
        {"step": view_step_of(PullsApart())},
        {"step": view_step_of(TooFlat())},
        {"step": view_step_of(ForgetsExpansionPoint())},
    ],
    ids=["temperature", "sign of consensus", "coverage", "sign of response", "curvature", "expansion point"],
)
def test_c10_check_rejects_broken_half_steps(twin):
    case = {"n_classes": 2, "missing": 0.35, "weighted": True, "spectral": True, "balanced": True, "temperature": 0.5}
    values = [run_case(Bohning(), **case, seed=seed, n_sweeps=12, **twin)[3] for seed in range(2)]
    rejects(check_never_rises, max(values, key=lambda path: np.diff(path).max()))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_c10_objective_never_rises_with_a_fixed_offset(n_classes):
    """After the release of the balance, the offset is a fixed term of the objective."""
    problem, _ = draw_problem(0, n_classes=n_classes, missing=0.35, weighted=True)
    offset = np.linspace(-0.5, 0.7, problem.Y.shape[1])

    def released(problem, states, pi, balance, stage, temperature, last):
        start = pooled_consensus(problem, states, pi, None, stage, temperature, None)
        return pooled_consensus(problem, states, pi, balance, stage, temperature, replace(start, offset=offset))

    balance = ClassBalance(uneven_prior(n_classes), constrained_stages=1)
    named = {"temperature": 0.5, "balance": balance, "stage": 2, "consensus_step": released}
    check_never_rises(half_steps(problem, Bohning(), **named)[0])

    def forgets_offset(problem, surrogate, states, pi, consensus, lam, temperature):
        return objective(problem, surrogate, states, pi, replace(consensus, shares=balance.prior), lam, temperature)

    rejects(check_never_rises, half_steps(problem, Bohning(), objective=forgets_offset, **named)[0])


def test_c10_objective_never_rises_under_the_guard_of_a_released_balance():
    problem, _ = draw_problem(0, n_classes=4, n_unlabeled=60)
    guard = ClassBalance(
        np.full(4, 0.25),
        constrained_stages=1,
        lower=np.array([0.5, 0.02, 0.02, 0.02]),
        upper=np.array([0.6, 0.3, 0.3, 0.3]),
    )
    check_never_rises(half_steps(problem, Bohning(), temperature=0.3, balance=guard, stage=2)[0])


def check_objective(objective_of, surrogate, problem, sensors, pi, states, consensus):
    """The recorded objective is equation (1) with the surrogate's energy, and no less than (1) itself."""
    value = objective_of(problem, surrogate, states, pi, consensus, LAM, 0.5)
    same = textbook_objective(surrogate.energy, problem, sensors, states, pi, consensus, LAM, 0.5)
    exact = textbook_objective(expected_log_partition, problem, sensors, states, pi, consensus, LAM, 0.5)
    np.testing.assert_allclose(value, same, rtol=1e-9)
    assert value > exact


def without_entropy_factor(problem, surrogate, states, pi, consensus, lam, temperature):
    return objective(problem, surrogate, states, pi, consensus, lam, 1.0)


def without_variance(problem, surrogate, states, pi, consensus, lam, temperature):
    means_only = [replace(state, covariance_cost=0.0) for state in states]
    return objective(problem, surrogate, means_only, pi, consensus, lam, temperature)


def plugs_in_the_mean(problem, surrogate, states, pi, consensus, lam, temperature):
    return objective(problem, Newton(), states, pi, consensus, lam, temperature)


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
    check_objective(objective, surrogate, problem, sensors, pi, states, consensus)
    for twin in (without_entropy_factor, without_variance, plugs_in_the_mean):
        rejects(check_objective, twin, surrogate, problem, sensors, pi, states, consensus)


def plug_in_path(problem, surrogate, *, judge, n_sweeps=5):
    return half_steps(
        problem,
        surrogate,
        lam=5.0,
        temperature=0.3,
        n_sweeps=n_sweeps,
        objective=lambda p, _, states, pi, consensus, lam, t: objective(p, judge, states, pi, consensus, lam, t),
    )[0]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_newton_steps_are_shortened_until_the_objective_falls(n_classes):
    """Newton's model is no bound; its line search still never lets the objective with plugged-in means rise."""
    problems = [draw_problem(seed, n_classes=n_classes, spectral=False, prior_variance=40.0)[0] for seed in range(2)]
    for problem in problems:
        check_never_rises(plug_in_path(problem, Newton(), judge=Newton()))
    full = [plug_in_path(problem, Newton(needs_line_search=False), judge=Newton()) for problem in problems]
    rejects(check_never_rises, max(full, key=lambda path: np.diff(path).max()))


def test_literal_mean_is_shorter_by_the_prior_variance():
    problem, _ = draw_problem(1, spectral=False, prior_variance=2.0)
    state, q = independent_states(problem)[0], np.full((24, 2), 0.5)
    printed = step_view(problem, 0, AsPrinted(), state, q, LAM)
    kept = step_view(problem, 0, AsPrinted(drops_prior_variance=False), state, q, LAM)
    np.testing.assert_allclose(2.0 * printed.m_U, kept.m_U, rtol=1e-12)
    assert np.abs(kept.m_U).max() > 0.1


@pytest.mark.parametrize(("signs", "least", "most"), [((1.0, 1.0), 0.5, 0.5), ((1.0, -1.0), 0.0, 0.05)])
def test_automatic_weight_is_full_for_views_that_agree_and_none_for_views_that_do_not(signs, least, most):
    """The second view sees the first one's rows, or the same with the labels of the classes exchanged."""
    problem, sensors = draw_problem(7, n_views=1)
    twins = replace(
        problem,
        models=tuple(SpectralView(replace(sensors[0].blocks, UL=sign * sensors[0].blocks.UL)) for sign in signs),
        rows_L=problem.rows_L * 2,
        rows_U=problem.rows_U * 2,
        box=problem.box * 2,
    )
    result = anneal(twins, Bohning(), replace(SCHEDULE, consensus_weight=None), None, np.array([0.5, 0.5]))
    full_length = 1.0 - np.exp(-1.5)
    assert least * full_length - 1e-12 <= result.consensus_weight <= most * full_length + 1e-12


def test_schedule_grows_the_weight_and_lowers_the_temperature():
    schedule = Schedule(consensus_weight=0.7, temperature=0.25, n_stages=4, max_iter=1, tol=0.0)
    lams, temperatures = zip(*(schedule.stage(s) for s in (1, 2, 3, 4)), strict=True)
    np.testing.assert_allclose(lams, 0.7 * (1.0 - np.exp([-0.5, -1.0, -1.5, -2.0])), rtol=1e-12)
    np.testing.assert_allclose(temperatures, [0.25**0.25, 0.5, 0.25**0.75, 0.25], rtol=1e-12)


def test_a_short_schedule_ends_where_the_long_one_does():
    schedule = Schedule(consensus_weight=0.7, temperature=0.25, n_stages=8, max_iter=100, tol=1e-3)
    short = schedule.short()
    assert short.n_stages < schedule.n_stages
    assert short.max_iter < schedule.max_iter
    np.testing.assert_allclose(short.stage(short.n_stages), schedule.stage(8), rtol=1e-12)
    lams = [short.stage(s)[0] for s in range(1, short.n_stages + 1)]
    assert (np.diff(lams) > 0.0).all()
    assert short.short() == short


def test_a_schedule_of_one_stage_or_sweep_is_not_lengthened():
    short = Schedule(consensus_weight=0.7, temperature=0.25, n_stages=1, max_iter=1, tol=0.0).short()
    assert (short.n_stages, short.max_iter) == (1, 1)


@pytest.mark.parametrize("n_stages", [1, 2, 8])
def test_a_schedule_reaches_the_weight_asked_for(n_stages):
    schedule = Schedule(consensus_weight=None, temperature=0.25, n_stages=n_stages, max_iter=3, tol=0.0)
    for form in (schedule, schedule.short()):
        assert form.ending_at(0.3).stage(form.n_stages)[0] == pytest.approx(0.3, rel=1e-12)


SCHEDULE = Schedule(consensus_weight=1.0, temperature=0.3, n_stages=3, max_iter=25, tol=1e-7)


@pytest.fixture(scope="module")
def annealed():
    problem, _ = draw_problem(2, n_classes=3, n_views=3, missing=0.2)
    return problem, anneal(problem, Bohning(), SCHEDULE, ClassBalance(uneven_prior(3)), None)


def test_history_starts_at_the_independent_views_and_falls_within_stages(annealed):
    _, result = annealed
    stages = np.array([sweep.stage for sweep in result.history])
    np.testing.assert_array_equal(np.unique(stages), [0, 1, 2, 3])
    assert (np.diff(stages) >= 0).all()
    assert result.history[0].consensus_weight == 0.0
    for stage in (1, 2, 3):
        check_never_rises(np.array([sweep.objective for sweep in result.history if sweep.stage == stage]))
    lam, temperature = SCHEDULE.stage(3)
    assert (result.consensus_weight, result.temperature) == (lam, temperature)
    assert (result.history[-1].consensus_weight, result.history[-1].temperature) == (lam, temperature)


def test_history_reports_shares_entropy_and_gap(annealed):
    _, result = annealed
    for sweep in result.history:
        np.testing.assert_allclose(sweep.class_shares, uneven_prior(3), rtol=0.0, atol=1e-8)
        assert 0.0 <= sweep.entropy <= np.log(3.0)
        assert 0.0 <= sweep.dual_gap <= 1e-6
    assert result.history[-1].entropy < result.history[1].entropy


def test_final_consensus_belongs_to_the_final_states(annealed):
    problem, result = annealed
    again = pooled_consensus(
        problem,
        result.states,
        result.view_weights,
        ClassBalance(uneven_prior(3)),
        3,
        result.temperature,
        result.consensus,
    )
    np.testing.assert_allclose(result.consensus.q, again.q, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(result.consensus.scores, again.scores, rtol=0.0, atol=1e-12)


def test_endings():
    problem, _ = draw_problem(2)
    settled = anneal(problem, Bohning(), replace(SCHEDULE, max_iter=2000, tol=1e-6), None, None)
    assert settled.converged
    hurried = anneal(problem, Bohning(), replace(SCHEDULE, max_iter=1), None, None)
    assert not hurried.converged
    assert len(hurried.history) == 1 + SCHEDULE.n_stages
    seen = []

    def stop_after_second(stage, result):
        seen.append((stage, result.consensus_weight))
        return stage == 2

    stopped = anneal(problem, Bohning(), SCHEDULE, None, None, on_stage=stop_after_second)
    assert seen == [(1, SCHEDULE.stage(1)[0]), (2, SCHEDULE.stage(2)[0])]
    assert stopped.history[-1].stage == 2


def test_c11_without_weight_or_without_unlabeled_rows_the_views_stay_independent():
    problem, _ = draw_problem(3)
    expected = independent_states(problem)
    silent = anneal(problem, Bohning(), replace(SCHEDULE, consensus_weight=0.0), None, None)
    alone, _ = draw_problem(3, n_unlabeled=0)
    for result, states in (
        (silent, expected),
        (anneal(alone, Bohning(), SCHEDULE, ClassBalance(np.array([0.5, 0.5])), None), independent_states(alone)),
    ):
        assert result.converged
        assert len(result.history) == 1
        for state, same in zip(result.states, states, strict=True):
            np.testing.assert_array_equal(state.tau, same.tau)
            np.testing.assert_array_equal(state.m_L, same.m_L)
            np.testing.assert_array_equal(state.m_U, same.m_U)
    spoken = anneal(problem, Bohning(), replace(SCHEDULE, consensus_weight=1e-3), None, None)
    assert np.abs(spoken.states[0].m_U - expected[0].m_U).max() > 1e-6


def test_rows_without_any_weighted_view_get_the_prior():
    problem, _ = draw_problem(5)
    half = problem.rows_U[0][:12]
    blocks = replace(
        problem.models[0].blocks,
        UU=problem.models[0].blocks.UU[:12, :12],
        UL=problem.models[0].blocks.UL[:12],
        weights=np.ones(12),
    )
    partial = Problem(
        models=(type(problem.models[0])(blocks), problem.models[1]),
        rows_L=problem.rows_L,
        rows_U=(half, problem.rows_U[1]),
        Y=problem.Y,
        box=problem.box,
        weights_U=problem.weights_U,
        n_classes=2,
    )
    prior = np.array([0.3, 0.7])
    result = anneal(partial, Bohning(), SCHEDULE, ClassBalance(prior), np.array([1.0, 0.0]))
    np.testing.assert_array_equal(result.consensus.coverage, np.repeat([1.0, 0.0], 12))
    np.testing.assert_array_equal(result.consensus.q[12:], np.tile(prior, (12, 1)))
    np.testing.assert_allclose(result.consensus.q[:12].mean(axis=0), prior, rtol=0.0, atol=1e-8)
