"""Do no harm: a consensus that has left behind what the views learned from the labels is annealed again, with less of it."""

from __future__ import annotations

import numpy as np
import pytest

from cmvmed import CMVMED
from cmvmed.auto.plan import CAREFUL, anneal_with_safeguard, correlation_with_start
from cmvmed.core.annealing import Schedule, anneal, independent_states
from cmvmed.core.surrogates import Bohning
from tests.core.factories import draw_problem, rejects

AUTO = Schedule(None, 0.2, 4, 20, 1e-3)
N_LABELED = 20


def check_loyalty(loyalty_of):
    """With views of equal weight and all rows, the correlation of the views' mean scores before and after."""
    problem, _ = draw_problem(0)
    independent = independent_states(problem)
    annealed = anneal(problem, Bohning(), AUTO, None, np.array([0.5, 0.5]))
    before, after = (sum(state.m_U[:, 0] for state in states) for states in (independent, annealed.states))
    truth = np.corrcoef(before, after)[0, 1]
    assert 0.0 < truth < 0.999
    np.testing.assert_allclose(loyalty_of(problem, independent, annealed), truth, rtol=1e-9)


def test_loyalty_is_the_correlation_with_the_independent_views():
    check_loyalty(correlation_with_start)
    rejects(
        check_loyalty, lambda problem, independent, annealed: correlation_with_start(problem, annealed.states, annealed)
    )
    rejects(
        check_loyalty,
        lambda problem, independent, annealed: correlation_with_start(problem, independent[::-1], annealed) ** 2,
    )


@pytest.mark.parametrize(("consensus_weight", "astray"), [(None, False), (None, True), (0.5, True)])
def test_only_a_consensus_that_went_astray_under_the_librarys_own_weight_is_annealed_again(
    consensus_weight, astray, monkeypatch
):
    monkeypatch.setattr("cmvmed.auto.plan.LEAST_LOYALTY", 1.1 if astray else -1.1)
    problem, _ = draw_problem(0)
    schedule = Schedule(consensus_weight, 0.2, 4, 20, 1e-3)
    usual = anneal(problem, Bohning(), schedule, None, None)
    guarded = anneal_with_safeguard(problem, Bohning(), schedule, None, None, independent_states(problem))
    if astray and consensus_weight is None:
        least = CAREFUL * usual.consensus_weight
        assert guarded.consensus_weight == pytest.approx(least * -np.expm1(-0.5 * schedule.n_stages))
    else:
        assert guarded.consensus_weight == usual.consensus_weight
        np.testing.assert_array_equal(guarded.consensus.q, usual.consensus.q)


def distracted(seed):
    """Two views in which a rare cluster that has nothing to do with the class is far clearer than the class."""
    rng = np.random.default_rng(seed)
    y, cluster = (rng.uniform(size=(2, 300)) < 0.15).astype(int)
    signs = (2 * y - 1, 2 * cluster - 1)
    views = [
        np.column_stack([signs[0] + rng.normal(size=300), 3.0 * signs[1][:, None] + 0.5 * rng.normal(size=(300, 5))])
        for _ in range(2)
    ]
    return np.hstack(views), y


def check_does_no_harm(least_loyalty, monkeypatch):
    """No more than two points below the views' own opinion."""
    monkeypatch.setattr("cmvmed.auto.plan.LEAST_LOYALTY", least_loyalty)
    X, y = distracted(3)
    partly = np.where(np.arange(y.size) < N_LABELED, y, -1)
    model, alone = (CMVMED(views=[6, 6], **given).fit(X, partly) for given in ({}, {"consensus_weight": 0.0}))
    accuracy, without = (float((m.predict(X)[N_LABELED:] == y[N_LABELED:]).mean()) for m in (model, alone))
    assert accuracy > without - 0.02


def test_a_clear_cluster_that_is_not_the_class_does_no_harm(monkeypatch):
    check_does_no_harm(0.45, monkeypatch)
    rejects(check_does_no_harm, -1.1, monkeypatch)
