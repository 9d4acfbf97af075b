"""Several fits together: the same results as one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.core.annealing import Start, anneal
from cmvmed.core.joint_annealing import anneal_together
from cmvmed.core.surrogates import Bohning, Jaakkola
from tests.core.factories import SCHEDULE, draw_problem, independent_states, make_plan, rejects, uneven_prior


def fold_plans(n_classes, *, surrogate=None, weight=None, n_folds=3, missing=0.2):
    """Plans without the labels of one fold each; the last has other class shares."""
    surrogate = Bohning() if surrogate is None else surrogate
    problem, _ = draw_problem(
        2, n_classes=n_classes, n_views=2, missing=missing, spectral=surrogate.shared_curvature, weighted=True
    )
    schedule = replace(SCHEDULE, n_stages=2, max_iter=5, tol=1e-3)
    schedule = schedule if weight is None else replace(schedule, consensus_weight=weight)
    plans = []
    for fold in range(n_folds):
        out = np.arange(problem.Y.shape[0]) % 4 == fold
        fewer = replace(problem, box=tuple(np.where(out, 0.0, box) for box in problem.box))
        start = Start(independent_states(fewer), np.ones((2, 2)))
        shares = uneven_prior(n_classes) if fold == n_folds - 1 else np.full(n_classes, 1.0 / n_classes)
        plan = make_plan(fewer, surrogate=surrogate, shares=shares)
        plans.append(replace(plan, start=start, schedule=schedule))
    return plans


def check_same(together, alone):
    for ours, theirs in zip(together, alone, strict=True):
        assert len(ours.history) == len(theirs.history)
        assert ours.converged == theirs.converged
        assert (ours.consensus_weight, ours.temperature) == (theirs.consensus_weight, theirs.temperature)
        np.testing.assert_allclose(ours.consensus.q, theirs.consensus.q, atol=1e-9)
        np.testing.assert_allclose(
            [sweep.objective for sweep in ours.history], [sweep.objective for sweep in theirs.history], rtol=1e-10
        )
        for one, other in zip(ours.states, theirs.states, strict=True):
            for field in ("tau", "gamma", "m_L", "m_U", "s_U", "a", "b", "covariance_cost", "gap"):
                np.testing.assert_allclose(getattr(one, field), getattr(other, field), atol=1e-8, err_msg=field)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"weight": 0.0}, {"n_folds": 1}, {"surrogate": Jaakkola()}])
def test_fits_together_are_those_one_after_the_other(n_classes, settings):
    plans = fold_plans(n_classes, **settings)
    alone = [anneal(plan) for plan in plans]
    check_same(anneal_together(plans), alone)
    if len(plans) > 1:
        rejects(check_same, anneal_together(plans[::-1]), alone)


def test_each_fit_ends_a_stage_by_itself():
    plans = fold_plans(3)
    plans = [replace(plan, schedule=replace(plan.schedule, max_iter=60)) for plan in plans]
    results = anneal_together(plans)
    assert len({len(result.history) for result in results}) > 1
    assert all(result.converged for result in results)
    check_same(results, [anneal(plan) for plan in plans])
