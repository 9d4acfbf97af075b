"""The annealed EM algorithm: its schedule, its history, and when it ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.core.annealing import Schedule, anneal, step_view
from cmvmed.core.consensus import update_consensus
from cmvmed.core.full_kernel import KernelBlocks
from cmvmed.core.problem import Problem
from cmvmed.core.surrogates import AsPrinted
from tests.core.factories import SCHEDULE, draw_problem, independent_states, make_plan, uneven_prior

LAM = 0.8


def test_printed_mean_lacks_the_factor_of_the_prior_variance():
    problem, _ = draw_problem(1, spectral=False, prior_variance=2.0)
    state, q = independent_states(problem)[0], np.full((24, 2), 0.5)
    printed = step_view(problem, 0, AsPrinted(), state, q, LAM)
    kept = step_view(problem, 0, AsPrinted(drops_prior_variance=False), state, q, LAM)
    np.testing.assert_allclose(2.0 * printed.m_U, kept.m_U, rtol=1e-12)
    assert np.abs(kept.m_U).max() > 0.1


def test_schedule_grows_the_weight_and_lowers_the_temperature():
    schedule = Schedule(consensus_weight=0.7, temperature=0.25, n_stages=4, max_iter=1, tol=0.0)
    lams, temperatures = zip(*(schedule.stage(s) for s in (1, 2, 3, 4)), strict=True)
    np.testing.assert_allclose(lams, 0.7 * (1.0 - np.exp([-0.5, -1.0, -1.5, -2.0])), rtol=1e-12)
    np.testing.assert_allclose(temperatures, [0.25**0.25, 0.5, 0.25**0.75, 0.25], rtol=1e-12)


def test_a_short_schedule_ends_where_the_long_one_does():
    schedule = Schedule(consensus_weight=0.7, temperature=0.25, n_stages=8, max_iter=100, tol=1e-3)
    short = schedule.short(2, 6)
    assert (short.n_stages, short.max_iter) == (2, 6)
    np.testing.assert_allclose(short.stage(short.n_stages), schedule.stage(8), rtol=1e-12)
    lams = [short.stage(s)[0] for s in range(1, short.n_stages + 1)]
    assert (np.diff(lams) > 0.0).all()
    assert short.short(2, 6) == short


def test_a_schedule_of_one_stage_or_sweep_is_not_lengthened():
    short = Schedule(consensus_weight=0.7, temperature=0.25, n_stages=1, max_iter=1, tol=0.0).short(2, 6)
    assert (short.n_stages, short.max_iter) == (1, 1)


@pytest.mark.parametrize("n_stages", [1, 2, 8])
def test_a_schedule_ends_at_the_given_weight(n_stages):
    schedule = Schedule(consensus_weight=0.7, temperature=0.25, n_stages=n_stages, max_iter=3, tol=0.0)
    for form in (schedule, schedule.short(2, 6)):
        assert form.ending_at(0.3).stage(form.n_stages)[0] == pytest.approx(0.3, rel=1e-12)


@pytest.fixture(scope="module")
def annealed():
    problem, _ = draw_problem(2, n_classes=3, n_views=3, missing=0.2)
    return problem, anneal(make_plan(problem, shares=uneven_prior(3)))


def test_history_starts_at_the_independent_views_and_falls_within_stages(annealed):
    _, result = annealed
    stages = np.array([sweep.stage for sweep in result.history])
    np.testing.assert_array_equal(np.unique(stages), [0, 1, 2, 3])
    assert (np.diff(stages) >= 0).all()
    assert result.history[0].consensus_weight == 0.0
    for stage in (1, 2, 3):
        values = np.array([sweep.objective for sweep in result.history if sweep.stage == stage])
        assert np.diff(values).max() <= 1e-9 * np.abs(values).max()
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
    again = update_consensus(
        problem,
        result.states,
        result.view_weights,
        uneven_prior(3),
        result.temperature,
        result.consensus,
    )
    np.testing.assert_allclose(result.consensus.q, again.q, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(result.consensus.scores, again.scores, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_imposed_shares_the_offset_is_zero(n_classes):
    problem, _ = draw_problem(4, n_classes=n_classes)
    free, imposed = (anneal(make_plan(problem, shares=shares)).consensus for shares in (None, uneven_prior(n_classes)))
    assert free.shares is None
    np.testing.assert_array_equal(free.offset, np.zeros_like(imposed.offset))
    np.testing.assert_array_equal(imposed.shares, uneven_prior(n_classes))
    assert np.abs(imposed.offset).max() > 1e-3


def test_a_fit_ends_by_tolerance_or_number_of_sweeps_or_callback():
    problem, _ = draw_problem(2)
    plan = make_plan(problem)
    complete = anneal(replace(plan, schedule=replace(SCHEDULE, max_iter=2000, tol=1e-6)))
    assert complete.converged
    incomplete = anneal(replace(plan, schedule=replace(SCHEDULE, max_iter=1)))
    assert not incomplete.converged
    assert len(incomplete.history) == 1 + SCHEDULE.n_stages
    before, after = [], []

    def stop_after_second(stage, result):
        after.append((stage, result.consensus_weight))
        return stage == 2

    stopped = anneal(plan, before_stage=before.append, on_stage=stop_after_second)
    assert before == [1, 2]
    assert after == [(1, SCHEDULE.stage(1)[0]), (2, SCHEDULE.stage(2)[0])]
    assert stopped.history[-1].stage == 2
    assert stopped.stopped
    assert not complete.stopped


def test_c11_without_weight_or_without_unlabeled_rows_the_views_stay_independent():
    problem, _ = draw_problem(3)
    expected = independent_states(problem)
    without_weight = anneal(make_plan(problem, replace(SCHEDULE, consensus_weight=0.0)))
    labeled, _ = draw_problem(3, n_unlabeled=0)
    without_rows = anneal(make_plan(labeled, shares=np.array([0.5, 0.5])))
    for result, states in ((without_weight, expected), (without_rows, independent_states(labeled))):
        assert result.converged
        assert len(result.history) == 1
        for state, same in zip(result.states, states, strict=True):
            np.testing.assert_array_equal(state.tau, same.tau)
            np.testing.assert_array_equal(state.m_L, same.m_L)
            np.testing.assert_array_equal(state.m_U, same.m_U)
    with_weight = anneal(make_plan(problem, replace(SCHEDULE, consensus_weight=1e-3)))
    assert np.abs(with_weight.states[0].m_U - expected[0].m_U).max() > 1e-6


def test_rows_without_any_weighted_view_get_the_prior():
    problem, _ = draw_problem(5)
    half = problem.rows_U[0][:12]
    first = problem.models[0]
    UU = (first.Q * first.omega @ first.Q.T)[:12, :12]
    blocks = KernelBlocks.of(first.blocks.LL, first.blocks.UL[:12], UU, np.ones(12), first.blocks.prior_variance)
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
    result = anneal(make_plan(partial, shares=prior, view_weights=[1.0, 0.0]))
    np.testing.assert_array_equal(result.consensus.coverage, np.repeat([1.0, 0.0], 12))
    np.testing.assert_array_equal(result.consensus.q[12:], np.tile(prior, (12, 1)))
    np.testing.assert_allclose(result.consensus.q[:12].mean(axis=0), prior, rtol=0.0, atol=1e-8)
