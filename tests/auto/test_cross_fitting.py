"""Cross-fitting: folds of the labeled rows, and scores by fits that did not use their labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.auto.cross_fitting import assign_folds, cross_fit
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Schedule, anneal, supervised_start
from cmvmed.core.consensus import ClassBalance
from tests.core.factories import draw_problem, make_plan, rejects

TUNING = Tuning()
N_FOLDS = TUNING.n_folds


def check_folds(folds, codes):
    """Every row of a class with two labels or more is held out once, and each class keeps a label in every fold."""
    single = np.bincount(codes)[codes] == 1
    np.testing.assert_array_equal(folds < 0, single)
    for fold in range(N_FOLDS):
        assert set(codes[folds != fold]) == set(codes)
    sizes = np.bincount(folds[folds >= 0], minlength=N_FOLDS)
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("counts", [(10, 10), (2, 13), (1, 9), (3, 3, 3, 3), (2, 2), (1, 1), (6, 1, 2)])
def test_folds_keep_every_class(counts):
    codes = np.repeat(np.arange(len(counts)), counts)
    order = np.random.default_rng(0).normal(size=codes.size)
    check_folds(assign_folds(codes, order, N_FOLDS), codes)


def test_folds_that_lose_a_class_are_rejected():
    codes = np.repeat([0, 1], [8, 2])
    folds = assign_folds(codes, np.arange(10.0), N_FOLDS)
    check_folds(folds, codes)
    rejects(check_folds, np.where(codes == 1, 0, folds), codes)


def test_equal_rows_stay_together():
    codes, order = np.zeros(12, dtype=int), np.repeat(np.arange(6.0), 2)
    folds = assign_folds(codes, order, N_FOLDS)
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    np.testing.assert_array_equal(folds[::2], assign_folds(codes[::2], order[::2], N_FOLDS))
    assert (assign_folds(np.zeros(3, dtype=int), np.ones(3), N_FOLDS) == -1).all()


def test_folds_depend_on_the_rows_and_not_on_their_positions_or_class_names():
    rng = np.random.default_rng(1)
    codes, order, moved = rng.integers(3, size=20), rng.normal(size=20), rng.permutation(20)
    folds = assign_folds(codes, order, N_FOLDS)
    np.testing.assert_array_equal(assign_folds(codes[moved], order[moved], N_FOLDS), folds[moved])
    np.testing.assert_array_equal(assign_folds(2 - codes, order, N_FOLDS), folds)
    assert (assign_folds(codes, rng.normal(size=20), N_FOLDS) != folds).any()


def fitted_plan(n_classes=2):
    problem, _ = draw_problem(3, n_classes=n_classes, n_labeled=12, n_unlabeled=30)
    balance = np.full(n_classes, 1.0 / n_classes)
    plan = make_plan(problem, Schedule(0.5, 0.2, 8, 100, 1e-3), balance=balance, view_weights=[0.5, 0.5])
    return plan, anneal(plan), np.arange(12) % n_classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_out_of_fold_scores_do_not_depend_on_the_own_label(n_classes):
    """If a row's label is changed, its own score stays and those of rows in other folds change, with the same folds."""
    plan, result, codes = fitted_plan(n_classes)
    weights = np.ones(12)
    before = cross_fit(plan, result, codes, weights, TUNING)
    assert before.codes.size == 12
    Y = plan.problem.Y.copy()
    Y[5] = -Y[5]
    changed = replace(plan.problem, Y=Y)
    after = cross_fit(replace(plan, problem=changed, start=supervised_start(changed)), result, codes, weights, TUNING)
    np.testing.assert_allclose(after.logits[5], before.logits[5], rtol=0.0, atol=1e-9)
    assert np.abs(after.logits - before.logits).max() > 1e-3


def test_rows_without_label_or_weight_are_not_scored():
    plan, result, codes = fitted_plan()
    weights = np.where(np.arange(12) == 4, 0.0, 1.0)
    with_unlabeled = np.where(np.arange(12) == 7, -1, codes)
    held_out = cross_fit(plan, result, with_unlabeled, weights, TUNING)
    np.testing.assert_array_equal(held_out.codes, np.delete(codes, [4, 7]))
