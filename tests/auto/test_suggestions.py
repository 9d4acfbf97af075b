"""The rows to label next: greedy choice against direct computations, and the similarities it works on."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics.pairwise import euclidean_distances

from cmvmed.auto.suggestions import (
    ViewPoints,
    choose_rows,
    joint_distances,
    similarities,
    uncertainty,
    view_distances,
)
from cmvmed.auto.tuning import Tuning
from cmvmed.numerics.kernels import Kernel
from tests.core.factories import rejects

TUNING = Tuning()
RBF = Kernel("v", "rbf", 0.3)


def covered(S, u, rows):
    """Σ_j u_j max_i s_ij."""
    return float(u @ S[:, rows].max(axis=1, initial=0.0))


@pytest.fixture(scope="module")
def problem():
    """Similarities of 40 rows, their uncertainties, labeled rows and candidates."""
    rng = np.random.default_rng(0)
    S = similarities([ViewPoints(RBF, rng.normal(size=(40, 3)), np.arange(40))], 40, 10, TUNING)
    u = rng.random(40)
    labeled, candidates = np.arange(4), np.arange(4, 40)
    u[labeled] = 0.0
    return S, u, labeled, candidates


def check_is_greedy(S, u, labeled, candidates, rows, scores):
    """Each row adds most of all that are left, and the score is what it adds."""
    have = list(labeled)
    for row, score in zip(rows, scores, strict=True):
        gains = {i: covered(S, u, [*have, i]) - covered(S, u, have) for i in candidates if i not in have}
        assert score == pytest.approx(gains[row], abs=1e-12)
        assert gains[row] == pytest.approx(max(gains.values()), abs=1e-12)
        have.append(row)


def test_each_row_adds_most_to_those_before(problem):
    rows, scores = choose_rows(*problem, 12)
    check_is_greedy(*problem, rows, scores)
    assert (np.diff(scores) <= 1e-12).all()
    at_once = np.argsort([-covered(problem[0], problem[1], [*problem[2], i]) for i in problem[3]])[:12] + 4
    rejects(check_is_greedy, *problem, at_once, scores)  # the best rows one by one resemble each other


def test_three_rows_are_almost_as_good_as_the_best_three(problem):
    S, u, labeled, candidates = problem
    rows, _ = choose_rows(*problem, 3)
    start = covered(S, u, labeled)
    best = max(covered(S, u, [*labeled, *three]) for three in combinations(candidates, 3)) - start
    assert covered(S, u, [*labeled, *rows]) - start >= (1.0 - 1.0 / np.e) * best


def test_all_rows_can_be_chosen_and_a_copy_comes_last():
    points = np.random.default_rng(1).normal(size=(12, 2))
    points[7] = points[2]
    S = similarities([ViewPoints(RBF, points, np.arange(12))], 12, 12, TUNING)
    rows, scores = choose_rows(S, np.ones(12), np.arange(0), np.arange(12), 12)
    assert sorted(rows) == list(range(12))
    assert {rows[-1]} < {2, 7}
    assert scores[-1] == 0.0


def test_uncertainty_is_zero_for_one_class_and_one_for_equal_ones():
    p = np.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0]])
    np.testing.assert_allclose(uncertainty(p), [0.0, 1.0, np.log(2) / np.log(3)], atol=1e-12)


def test_distances_are_means_over_the_views_that_both_rows_have():
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=(6, 2)), rng.normal(size=(4, 3))
    rows = np.array([0, 2, 3, 6])
    views = [ViewPoints(RBF, first, np.arange(6)), ViewPoints(RBF, second, rows)]
    A, B = (euclidean_distances(points, squared=True) for points in (first, second))
    D = joint_distances(views, 7)
    assert D[0, 2] == pytest.approx(0.5 * (A[0, 2] / A.mean() + B[0, 1] / B.mean()))
    assert D[1, 4] == pytest.approx(A[1, 4] / A.mean())
    assert D[6, 3] == pytest.approx(B[3, 2] / B.mean())
    assert D[6, 1] == np.inf


def test_similarities_do_not_depend_on_units_and_rows_without_a_common_view_have_none():
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(30, 2)), rng.normal(size=(20, 3))
    views = [ViewPoints(RBF, first, np.arange(30)), ViewPoints(RBF, second, np.arange(20, 40))]
    S = similarities(views, 40, 10, TUNING)
    np.testing.assert_allclose(S, S.T, atol=1e-14)
    np.testing.assert_array_equal(np.diagonal(S), 1.0)
    assert (S[:20, 30:] == 0.0).all()
    assert (S[:20, :20].sum(axis=1) > 1.0).all()
    in_other_units = [replace(views[0], points=1000.0 * first), views[1]]
    np.testing.assert_allclose(similarities(in_other_units, 40, 10, TUNING), S, atol=1e-9)


def test_one_of_many_labels_stands_for_fewer_rows():
    points = [ViewPoints(RBF, np.random.default_rng(4).normal(size=(200, 2)), np.arange(200))]
    few, many, most = (similarities(points, 200, n, TUNING).mean() for n in (5, TUNING.suggestion_parts, 1000))
    assert few > many == most


@pytest.mark.parametrize("n_rows", [1, 2])
def test_one_or_two_rows(n_rows):
    S = similarities([ViewPoints(RBF, np.zeros((n_rows, 2)), np.arange(n_rows))], n_rows, 1, TUNING)
    np.testing.assert_array_equal(S, 1.0)


def test_distances_by_a_callable_kernel_are_those_of_its_feature_space():
    points = np.random.default_rng(5).normal(size=(8, 3))
    expected = euclidean_distances(points, squared=True)
    for kind in ("linear", "rbf", lambda A, B: A @ B.T):
        np.testing.assert_allclose(view_distances(Kernel("v", kind), points), expected, atol=1e-12)
