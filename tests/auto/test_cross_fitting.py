"""Cross-fitting of the consensus: logits of labeled rows by fits that did not use their labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.auto.cross_fitting import consensus_logits, cross_fit, labeled_logits, without_labels
from cmvmed.auto.labeled_rows import LabeledRows, held_out_folds
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Schedule, anneal, independent_states, supervised_start
from cmvmed.core.consensus import soft_labels
from cmvmed.core.problem import RowPartition
from tests.core.factories import draw_problem, make_plan, rejects, uneven_prior

TUNING = Tuning()


def labeled_rows(codes, positions=None):
    """Labeled rows of weight one, each its own group."""
    positions = np.arange(codes.size) if positions is None else positions
    ones, own = np.ones(positions.size), np.arange(positions.size)
    return LabeledRows(positions, positions, codes[positions], ones, own, int(codes.max()) + 1)


def mixed_partition():
    """12 labeled rows among 30 unlabeled ones, in a table in which some rows have no view."""
    numbers = np.random.default_rng(0).permutation(50)
    return RowPartition(np.sort(numbers[:12]), np.sort(numbers[12:42]), np.ones(50), np.full(2, 6.0))


def fitted_plan(n_classes=2):
    problem, _ = draw_problem(3, n_classes=n_classes, n_labeled=12, n_unlabeled=30)
    shares = np.full(n_classes, 1.0 / n_classes)
    plan = make_plan(problem, Schedule(0.5, 0.2, 8, 100, 1e-3), shares=shares, view_weights=[0.5, 0.5])
    rows = labeled_rows(np.arange(12) % n_classes)
    return plan, anneal(plan), rows, held_out_folds(problem, rows, TUNING.n_folds, grouped=False)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logits_of_the_consensus_give_its_probabilities(n_classes):
    plan, result, _, _ = fitted_plan(n_classes)
    partition = mixed_partition()
    logits, coverage = consensus_logits(plan, result, partition)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p[partition.U], result.consensus.q, rtol=0.0, atol=1e-12)
    pooled = 0.5 * (result.states[0].m_L + result.states[1].m_L)
    expected = soft_labels(pooled, result.consensus.offset, result.temperature)
    np.testing.assert_allclose(p[partition.L], expected, atol=1e-12)
    np.testing.assert_allclose(logits[partition.L], labeled_logits(plan, result), atol=1e-12)
    np.testing.assert_allclose(logits.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(coverage, 1.0)


def changed_label(plan, row):
    """The plan in which the label of a row is another one."""
    Y = plan.problem.Y.copy()
    Y[row] = -Y[row]
    problem = replace(plan.problem, Y=Y)
    return replace(plan, problem=problem, start=supervised_start(problem))


def check_own_label_does_not_matter(logits_of, n_classes):
    plan, result, rows, folds = fitted_plan(n_classes)
    before, after = (logits_of(p, result, rows, folds) for p in (plan, changed_label(plan, 5)))
    (own,) = (fold for fold in folds if fold[5])
    np.testing.assert_allclose(after[own], before[own], rtol=0.0, atol=1e-9)
    assert np.abs(after - before)[~own].max() > 1e-3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logits_do_not_depend_on_the_labels_of_the_own_fold(n_classes):
    def by_cross_fit(plan, result, rows, folds):
        return cross_fit(plan, result, rows, folds, [plan.shares] * len(folds), TUNING)

    def by_one_fit(plan, result, rows, folds):
        return labeled_logits(plan, anneal(plan))[rows.positions]

    check_own_label_does_not_matter(by_cross_fit, n_classes)
    rejects(check_own_label_does_not_matter, by_one_fit, n_classes)


def test_rows_in_no_fold_have_zero_logits_and_folds_their_own_shares():
    plan, result, rows, folds = fitted_plan()
    equal, uneven = (
        cross_fit(plan, result, rows, folds[:2], [plan.shares, shares], TUNING)
        for shares in (plan.shares, uneven_prior(2))
    )
    held_out = folds[0] | folds[1]
    np.testing.assert_array_equal(equal[~held_out], 0.0)
    assert np.abs(equal[held_out]).min() > 0.0
    np.testing.assert_array_equal(equal[folds[0]], uneven[folds[0]])
    assert np.abs(uneven - equal)[folds[1]].max() > 1e-3


def test_only_some_of_the_labeled_block_may_be_scored():
    plan, result, _, _ = fitted_plan()
    rows = labeled_rows(np.arange(12) % 2, np.array([0, 1, 2, 3, 7, 8]))
    folds = held_out_folds(plan.problem, rows, TUNING.n_folds, grouped=False)
    logits = cross_fit(plan, result, rows, folds, [plan.shares] * len(folds), TUNING)
    assert logits.shape == (6, 2)
    assert (np.abs(logits[:, 0]) > 0.0).all()


def test_without_labels_a_row_has_no_weight():
    problem, _ = draw_problem(3)
    out = np.arange(12) < 3
    fewer = without_labels(problem, out)
    for state, model, rows in zip(independent_states(fewer), fewer.models, fewer.rows_L, strict=True):
        assert model in problem.models
        np.testing.assert_array_equal(state.tau[out[rows]], 0.0)
        assert np.abs(state.tau[~out[rows]]).max() > 0.0
