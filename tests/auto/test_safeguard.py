"""The safeguard: a fit whose consensus has left the independent views' scores is repeated with less consensus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed import CMVMED
from cmvmed.auto.consensus_weight import (
    anneal_with_safeguard,
    auto_consensus_weight,
    correlation_with_start,
    mean_agreement,
)
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.core.annealing import Schedule, anneal
from tests.core.factories import draw_problem, make_plan, rejects

N_LABELED = 20


def automatic_plan():
    """A plan of two views of equal weight, with the library's choice of λ."""
    plan = make_plan(draw_problem(0)[0], Schedule(0.5, 0.2, 4, 20, 1e-3), chosen=["consensus_weight"])
    lam = auto_consensus_weight(mean_agreement(plan.start.agreement, plan.view_weights), Tuning())
    return replace(plan, schedule=replace(plan.schedule, consensus_weight=lam))


def check_correlation(correlation_of):
    """With views of equal weight and all rows, the correlation of the views' mean scores before and after annealing."""
    plan = automatic_plan()
    result = anneal(plan)
    before, after = (sum(state.m_U[:, 0] for state in states) for states in (plan.start.states, result.states))
    expected = np.corrcoef(before, after)[0, 1]
    assert 0.0 < expected < 0.999
    np.testing.assert_allclose(correlation_of(plan, result), expected, rtol=1e-9)


def test_correlation_with_the_start_is_that_of_the_pooled_scores():
    check_correlation(correlation_with_start)
    rejects(
        check_correlation,
        lambda plan, result: correlation_with_start(
            replace(plan, start=replace(plan.start, states=result.states)), result
        ),
    )
    rejects(check_correlation, lambda plan, result: correlation_with_start(plan, result) ** 2)


@pytest.mark.parametrize(("chosen", "correlated"), [(True, True), (True, False), (False, False)])
def test_annealing_is_repeated_only_with_a_low_correlation_and_a_chosen_consensus_weight(chosen, correlated):
    tuning = replace(Tuning(), min_start_correlation=-1.1 if correlated else 1.1, safeguard_factor=0.1)
    plan = automatic_plan()
    plan = plan if chosen else replace(plan, chosen=frozenset())
    unguarded = anneal(plan)
    guarded = anneal_with_safeguard(plan, tuning)
    if chosen and not correlated:
        assert guarded.consensus_weight == pytest.approx(0.1 * unguarded.consensus_weight)
    else:
        assert guarded.consensus_weight == unguarded.consensus_weight
        np.testing.assert_array_equal(guarded.consensus.q, unguarded.consensus.q)


def test_callbacks_are_called_in_both_runs_and_a_stopped_fit_is_not_repeated():
    tuning, before, after = replace(Tuning(), min_start_correlation=1.1), [], []

    def keep_going(stage, result):
        after.append(stage)
        return False

    anneal_with_safeguard(automatic_plan(), tuning, before_stage=before.append, on_stage=keep_going)
    assert before == after == [1, 2, 3, 4, 1, 2, 3, 4]
    stopped = anneal_with_safeguard(automatic_plan(), tuning, on_stage=lambda stage, result: stage == 2)
    assert stopped.stopped
    assert stopped.history[-1].stage == 2


def draw_clusters(seed):
    """Two views in which a rare cluster that is independent of the class is far more distinct than the class."""
    rng = np.random.default_rng(seed)
    y, cluster = (rng.uniform(size=(2, 300)) < 0.15).astype(int)
    signs = (2 * y - 1, 2 * cluster - 1)
    views = [
        np.column_stack([signs[0] + rng.normal(size=300), 3.0 * signs[1][:, None] + 0.5 * rng.normal(size=(300, 5))])
        for _ in range(2)
    ]
    return np.hstack(views), y


def check_accuracy_is_kept(min_start_correlation):
    """The accuracy is at most two points below that of the independent views."""
    X, y = draw_clusters(3)
    partly = np.where(np.arange(y.size) < N_LABELED, y, -1)
    with tuning_context(replace(Tuning(), min_start_correlation=min_start_correlation)):
        model, independent = (
            CMVMED(views=[6, 6], opinions=None, **given).fit(X, partly) for given in ({}, {"consensus_weight": 0.0})
        )
    accuracy, without = (float((m.predict(X)[N_LABELED:] == y[N_LABELED:]).mean()) for m in (model, independent))
    assert accuracy > without - 0.02


def test_a_distinct_cluster_that_is_not_the_class_costs_no_accuracy():
    check_accuracy_is_kept(Tuning().min_start_correlation)
    rejects(check_accuracy_is_kept, -1.1)


def test_the_safeguard_also_acts_when_neighbors_have_weight():
    X, y = draw_clusters(3)
    few = np.where(np.arange(y.size) < N_LABELED, y, -1)
    weights = []
    for threshold in (-1.1, 1.1):  # never and always repeated
        with tuning_context(replace(Tuning(), min_start_correlation=threshold)):
            model = CMVMED(views=[6, 6], class_prior="labels").fit(X, few)
        assert model.neighbor_weight_ > 0.0
        weights.append(model.consensus_weight_)
    assert weights[1] < 0.2 * weights[0]
