"""The two blocks of training rows, and which views a problem knows."""

from __future__ import annotations

import numpy as np

from cmvmed.core.problem import partition_rows
from tests.core.factories import draw_problem

EVERYWHERE = np.full(6, True)


def partition(codes, *, present=(EVERYWHERE,), weights=None, n_classes=2):
    codes = np.array(codes)
    weights = np.ones(codes.size) if weights is None else np.array(weights)
    return partition_rows(codes, n_classes, present, weights)


def test_labeled_and_unlabeled_rows_form_two_blocks():
    rows = partition([0, -1, 1, -1, 1, 0])
    np.testing.assert_array_equal(rows.block_L, [0, 2, 4, 5])
    np.testing.assert_array_equal(rows.block_U, [1, 3])
    np.testing.assert_array_equal(rows.counts, [2.0, 2.0])


def test_unlabeled_rows_of_zero_weight_are_in_the_labeled_block_without_weight():
    rows = partition([0, -1, 1, -1, 1, 0], weights=[1.0, 0.0, 1.0, 2.0, 1.0, 1.0])
    np.testing.assert_array_equal(rows.block_L, [0, 1, 2, 4, 5])
    np.testing.assert_array_equal(rows.block_U, [3])
    assert rows.weights[1] == 0.0
    np.testing.assert_array_equal(rows.counts, [2.0, 2.0])


def test_labeled_rows_of_zero_weight_stay_in_the_labeled_block_and_count_nothing():
    rows = partition([0, -1, 1, -1, 1, 0], weights=[0.0, 1.0, 1.0, 1.0, 2.5, 1.0])
    np.testing.assert_array_equal(rows.block_L, [0, 2, 4, 5])
    np.testing.assert_array_equal(rows.counts, [1.0, 3.5])


def test_rows_without_any_view_are_in_neither_block():
    first = np.array([True, False, True, True, False, False])
    second = np.array([False, False, True, False, True, False])
    rows = partition([0, -1, 1, -1, 1, 0], present=[first, second])
    np.testing.assert_array_equal(rows.block_L, [0, 2, 4])
    np.testing.assert_array_equal(rows.block_U, [3])
    np.testing.assert_array_equal(rows.counts, [1.0, 2.0])


def test_a_class_without_usable_rows_has_a_count_of_zero():
    rows = partition([0, -1, 1, -1, 1, 0], n_classes=3)
    np.testing.assert_array_equal(rows.counts, [2.0, 2.0, 0.0])


def test_rows_of_both_blocks_are_in_the_order_of_the_table():
    first = np.array([True, False, True, True, True, True])
    rows = partition([0, -1, 1, -1, -1, 0], present=[first], weights=[1.0, 1.0, 1.0, 3.0, 2.0, 1.0])
    np.testing.assert_array_equal(rows.rows, [0, 2, 3, 4, 5])
    np.testing.assert_array_equal(rows.rows[rows.L], rows.block_L)
    np.testing.assert_array_equal(rows.rows[rows.U], rows.block_U)
    np.testing.assert_array_equal(rows.unlabeled_weights, [0.0, 0.0, 3.0, 2.0, 0.0])
    joined = rows.joined(np.array([[1.0], [2.0], [3.0]]), np.array([[4.0], [5.0]]))
    np.testing.assert_array_equal(joined, [[1.0], [2.0], [4.0], [5.0], [3.0]])


def test_views_that_no_row_has_are_not_known():
    problem, _ = draw_problem(0)
    none = np.empty(0, dtype=int)
    unknown = type(problem)(
        models=problem.models,
        rows_L=(problem.rows_L[0], none),
        rows_U=(none, none),
        Y=problem.Y,
        box=problem.box,
        weights_U=problem.weights_U,
        n_classes=2,
    )
    np.testing.assert_array_equal(problem.known_views, [True, True])
    np.testing.assert_array_equal(unknown.known_views, [True, False])
