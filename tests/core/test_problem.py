"""The two blocks of training rows, and the problem that the views form on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmvmed.core.full_kernel import CholeskyView, SpectralView
from cmvmed.core.problem import build_problem, partition_rows
from tests.core.factories import draw_problem, make_sensor

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


@dataclass(frozen=True)
class SmallView:
    """A view with explicit features of the rows it has."""

    Phi: np.ndarray
    rows_L: np.ndarray
    rows_U: np.ndarray
    C: float

    def exact_model(self, weights_U, *, shared_curvature):
        Phi_L, Phi_U = self.Phi[: self.rows_L.size], self.Phi[self.rows_L.size :]
        blocks = make_sensor(Phi_L, Phi_U, weights=weights_U[self.rows_U]).blocks
        return (SpectralView if shared_curvature else CholeskyView)(blocks)

    def low_rank_model(self, basis, weights_U):
        return basis, weights_U


def test_problem_takes_its_rows_and_weights_from_the_partition():
    rows = partition([0, -1, 1, -1, 1, 0], weights=[2.0, 3.0, 1.0, 2.0, 0.5, 1.0])
    Phi = np.random.default_rng(0).normal(size=(6, 2))
    views = [
        SmallView(Phi, np.arange(4), np.arange(2), 1.0),
        SmallView(Phi[:3], np.array([1, 3]), np.array([1]), 10.0),
    ]
    Y = np.array([[-1.0], [1.0], [1.0], [-1.0]])
    problem = build_problem(views, rows, Y, 2, shared_curvature=True)
    assert (problem.n_views, problem.n_classes) == (2, 2)
    np.testing.assert_array_equal(problem.weights_U, [3.0, 2.0])
    np.testing.assert_array_equal(problem.box[0], [2.0, 1.0, 0.5, 1.0])
    np.testing.assert_array_equal(problem.box[1], [20.0, 10.0, 5.0, 10.0])
    np.testing.assert_array_equal(problem.models[1].blocks.weights, [2.0])
    assert all(isinstance(model, SpectralView) for model in problem.models)
    other = build_problem(views, rows, Y, 2, shared_curvature=False)
    assert all(isinstance(model, CholeskyView) for model in other.models)
    low_rank = build_problem(views, rows, Y, 2, shared_curvature=True, bases=["first", "second"])
    assert [model[0] for model in low_rank.models] == ["first", "second"]


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
