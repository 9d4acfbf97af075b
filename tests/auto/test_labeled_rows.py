"""Labeled rows: which they are, their groups, and the folds in which they are held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from cmvmed.auto.labeled_rows import (
    LabeledRows,
    _numbers_of_alike,
    assign_folds,
    held_out_folds,
    in_labeled_block,
    mean_similarity,
)
from tests.auto.factories import TUNING, draw_rows, draw_training, read_training
from tests.core.factories import rejects

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


def check_noise_changes_no_fold(assign):
    """Repeated rows whose similarities differ by rounding are dealt as equal ones, wherever their values lie."""
    rng = np.random.default_rng(3)
    codes, order = np.repeat([0, 1], 300), np.tile(rng.random(300), 2)
    codes, order = np.r_[codes, codes[:200]], np.r_[order, order[:200]]
    noise = 1e-10 * rng.normal(size=order.size)
    np.testing.assert_array_equal(assign(codes, order + noise, N_FOLDS), assign(codes, order, N_FOLDS))


def test_repeated_rows_with_rounding_are_dealt_as_equal_ones():
    check_noise_changes_no_fold(assign_folds)
    rejects(check_noise_changes_no_fold, lambda codes, order, n: assign_folds(codes, np.round(order, 9) * 1e3, n))


def test_folds_depend_on_the_rows_and_not_on_their_positions_or_class_names():
    rng = np.random.default_rng(1)
    codes, order, moved = rng.integers(3, size=20), rng.normal(size=20), rng.permutation(20)
    folds = assign_folds(codes, order, N_FOLDS)
    np.testing.assert_array_equal(assign_folds(codes[moved], order[moved], N_FOLDS), folds[moved])
    np.testing.assert_array_equal(assign_folds(2 - codes, order, N_FOLDS), folds)
    assert (assign_folds(codes, rng.normal(size=20), N_FOLDS) != folds).any()


def rows_of(codes, groups, weights=None):
    codes, groups = np.asarray(codes), np.asarray(groups)
    weights = np.ones(codes.size) if weights is None else np.asarray(weights, dtype=float)
    own = np.arange(codes.size)
    return LabeledRows(own, own, codes, weights, groups, int(codes.max()) + 1)


def test_labeled_rows_are_those_with_label_and_weight():
    matrices, codes, _ = draw_rows(n_labeled=12)
    weights = np.ones(codes.size)
    weights[[4, 30, 31]] = 0.0
    training = read_training(matrices, codes, weights=weights)
    rows = training.labeled_rows()
    assert training.partition.block_L[rows.positions].tolist() == [*range(4), *range(5, 12)]
    np.testing.assert_array_equal(rows.codes, np.delete(codes[:12], 4))
    np.testing.assert_array_equal(rows.weights, 1.0)
    assert rows.n_classes == 2


def test_counts_are_weighted():
    rows = rows_of([0, 1, 1, 2], range(4), [1.0, 2.0, 0.5, 3.0])
    np.testing.assert_array_equal(rows.counts(np.array([True, True, True, False])), [1.0, 2.5, 0.0])


def test_a_row_is_judged_if_another_group_has_its_class():
    rows = rows_of([0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 2, 3, 4, 4], [1.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    everything = np.ones(7, dtype=bool)
    np.testing.assert_array_equal(rows.judged(everything), [1.0, 2.0, 3.0, 1.0, 1.0, 0.0, 0.0])
    kept = np.array([True, False, True, True, True, True, True])
    np.testing.assert_array_equal(rows.judged(kept), [0.0, 0.0, 3.0, 1.0, 1.0, 0.0, 0.0])


def check_groups(groups, expected):
    """The same partition of the rows, whatever the numbers of the groups."""
    np.testing.assert_array_equal(np.equal.outer(groups, groups), np.equal.outer(expected, expected))


def test_equal_rows_are_one_group_unless_groups_are_given():
    matrices, codes, _ = draw_rows(n_labeled=6)
    for matrix in matrices:
        matrix[3] = matrix[0]
    matrices[0][4] = matrices[0][1]  # equal in one view only
    expected = np.array([0, 1, 2, 0, 4, 5])
    check_groups(read_training(matrices, codes).labeled_rows().groups, expected)
    given = np.arange(codes.size) // 2
    check_groups(read_training(matrices, codes, groups=given).labeled_rows().groups, given[:6])
    rejects(check_groups, np.arange(6), expected)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_that_differ_by_rounding_are_one_group(form):
    rng = np.random.default_rng(0)
    codes, first = np.arange(200) % 2, rng.normal(size=(100, 3)) * [1.0, 1e4, 1e-4]
    first[rng.random(first.shape) < 0.2] = 0.0
    rows = np.vstack([first, first * (1.0 + 1e-11 * rng.normal(size=first.shape))])
    groups = read_training([form(rows)], codes).labeled_rows().groups
    np.testing.assert_array_equal(groups, np.tile(np.arange(100), 2))


def test_of_very_many_labels_the_same_part_of_each_class_is_taken():
    matrices, codes, _ = draw_rows(n_labeled=200, n_unlabeled=10)
    codes[:200] = np.repeat([0, 1, 2], [140, 58, 2])
    rows = read_training(matrices, codes).labeled_rows(replace(TUNING, max_member_labels=50))
    assert np.bincount(rows.codes).tolist() == [35, 14, 2]
    assert (np.diff(rows.positions) > 0).all()
    assert np.unique(rows.positions).size == rows.positions.size


def check_group_folds(folds, rows):
    """No fold splits a group, no row is held out twice, and each class has rows outside of every fold."""
    assert np.sum(folds, axis=0).max() <= 1
    for fold in folds:
        assert fold.any()
        assert not set(rows.groups[fold]) & set(rows.groups[~fold])
        assert set(rows.codes[~fold]) == set(rows.codes)


def group_folds(rows, n_folds=N_FOLDS):
    problem = draw_training(n_labeled=rows.codes.size).problem
    return held_out_folds(problem, rows, n_folds, grouped=True)


@pytest.mark.parametrize("seed", range(20))
def test_folds_of_given_groups(seed):
    """Groups of one class or of several, with classes that only one group has."""
    rng = np.random.default_rng(seed)
    n_groups, n_classes = rng.integers(2, 12), rng.integers(2, 5)
    codes, groups = np.append(rng.integers(n_classes, size=40), n_classes), rng.integers(n_groups, size=41)
    if seed % 2:
        codes = groups % n_classes
    rows = rows_of(np.unique(codes, return_inverse=True)[1], np.unique(groups, return_inverse=True)[1])
    check_group_folds(group_folds(rows), rows)


def test_group_folds_that_split_a_group_or_lose_a_class_are_rejected():
    rows = rows_of([0, 0, 1, 1, 0, 1, 2], [0, 0, 1, 1, 2, 3, 0])
    folds = group_folds(rows)
    check_group_folds(folds, rows)
    rejects(check_group_folds, [np.arange(7) == 0], rows)
    rejects(check_group_folds, [rows.groups == 0], rows)
    rejects(check_group_folds, [*folds, folds[0]], rows)


def test_as_many_groups_as_can_be_are_held_out():
    rows = rows_of(np.repeat([0, 1], 10), np.repeat(np.arange(10), 2))
    assert np.sum(group_folds(rows), axis=0).tolist() == [1] * 20
    only = rows_of([0, 0, 1, 1, 1], [0, 0, 1, 2, 3])  # the first class has one group
    assert np.sum(group_folds(only), axis=0).tolist() == [0, 0, 1, 1, 1]


def check_weight_is_repetition(folds_of, rows):
    """The folds of the rows are the same if a row of weight two is there twice."""
    twice = np.repeat(np.arange(rows.codes.size), rows.weights.astype(int))
    repeated = rows_of(rows.codes[twice], rows.groups[twice])
    np.testing.assert_array_equal(folds_of(rows)[:, twice], folds_of(repeated))


def test_group_folds_count_a_row_as_often_as_its_weight():
    rng = np.random.default_rng(0)
    rows = rows_of(rng.integers(2, size=30), np.arange(30) // 4, rng.integers(1, 4, size=30))
    check_weight_is_repetition(lambda given: np.array(group_folds(given)), rows)
    unweighted = [lambda given: np.array(group_folds(replace(given, weights=np.ones(given.codes.size))))]
    rejects(check_weight_is_repetition, *unweighted, rows)


def test_folds_by_content_do_not_depend_on_positions():
    matrices, codes, _ = draw_rows(n_classes=3, n_labeled=20)
    order = np.random.default_rng(1).permutation(codes.size)

    def folds_by_row(matrices, codes, numbers):
        """For each labeled row of the first table, the rows of its fold."""
        training = read_training(matrices, codes)
        own = numbers[training.partition.block_L]
        return {frozenset(own[fold].tolist()) for fold in training.folds(training.labeled_rows())}

    before = folds_by_row(matrices, codes, np.arange(codes.size))
    after = folds_by_row([matrix[order] for matrix in matrices], codes[order], order)
    assert before == after
    assert len(before) == N_FOLDS


def check_similarity(similarity_of):
    """The mean kernel value with the labeled rows, over the views, in units of the largest."""
    training = draw_training(3, missing=0.3)
    rows = training.labeled_rows()
    total = np.zeros(rows.codes.size)
    for view in training.views:
        block = view.rows_in(training.partition.L)
        for i, first in zip(block, view.L, strict=True):
            for second in view.L:
                a, b = view.train[first], view.train[second]
                rbf = np.exp(-view.kernel.gamma * ((a - b) ** 2).sum())
                total[i] += 0.5 * (a @ b + rbf) + view.bias
    np.testing.assert_allclose(similarity_of(training.problem, rows), total / np.abs(total).max(), atol=1e-8)


def test_mean_similarity_is_that_of_all_pairs():
    check_similarity(mean_similarity)
    rejects(check_similarity, lambda problem, rows: -mean_similarity(problem, rows))
    rejects(
        check_similarity,
        lambda problem, rows: mean_similarity(problem, replace(rows, weights=1.0 + (np.arange(rows.codes.size) < 3))),
    )


def test_chosen_labeled_rows_in_the_labeled_block():
    rows = replace(rows_of([0, 1, 1], range(3)), positions=np.array([1, 4, 5]))
    assert in_labeled_block(rows, [True, False, True], 7).nonzero()[0].tolist() == [1, 5]


def test_balanced_classes_have_the_same_weight_and_the_drawn_ones_come_back():
    codes = np.array([0, 0, 0, 1, 2, 2])
    weights = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    rows = LabeledRows(np.arange(6), np.arange(6), codes, weights, np.arange(6), 3)
    everything = np.ones(6, dtype=bool)
    np.testing.assert_allclose(rows.balanced().counts(everything), np.full(3, 3.0))
    np.testing.assert_array_equal(rows.balanced().as_drawn.weights, weights)
    np.testing.assert_allclose(rows.balanced().weights[:3] / rows.balanced().weights[0], weights[:3])
    assert rows.as_drawn is rows


def test_rounding_joins_rows_and_one_outlier_does_not():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 4))
    noisy = rows + 1e-12 * rng.normal(size=rows.shape)
    np.testing.assert_array_equal(_numbers_of_alike([np.vstack([rows, noisy])]), np.tile(np.arange(12), 2))
    rows[0] = 1e8
    np.testing.assert_array_equal(_numbers_of_alike([rows]), np.arange(12))
