"""Landmarks, and the features by which they approximate a kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.nystroem import (
    Basis,
    TrainingRows,
    choose_landmarks,
    fit_basis,
    residual,
    weighted_sample,
)
from tests.core.factories import rejects

BIAS = 0.3


def draw_rows(seed=0, n=60, d=4):
    return np.random.default_rng(seed).normal(size=(n, d))


def laplacian(A, B):
    return np.exp(-np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2))


def training_rows(kind, rows):
    if kind == "precomputed":
        return TrainingRows(Kernel("v", "precomputed"), laplacian(rows, rows))
    if kind == "sparse rbf":
        return TrainingRows(Kernel("v", "rbf", gamma=0.4), sparse.csr_array(rows))
    kernel = Kernel("v", laplacian if kind == "callable" else kind, gamma=0.4)
    return TrainingRows(kernel, rows)


KINDS = ("rbf", "linear+rbf", "sparse rbf", "linear", "cosine", "callable", "precomputed")


def check_reproduces_kernel(rows, landmarks, basis):
    """Z Zᵀ is the kernel plus the bias between landmarks and all rows."""
    everything = np.arange(rows.train.shape[0])
    Z = basis.features(rows.train)
    expected = rows.cross(everything, landmarks) + BIAS
    np.testing.assert_allclose(Z @ Z[landmarks].T, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_exact_between_landmarks_and_all_rows(kind):
    rows, landmarks = training_rows(kind, draw_rows()), np.array([3, 17, 1, 40, 22, 58, 9])
    basis = fit_basis(rows, landmarks, BIAS)
    check_reproduces_kernel(rows, landmarks, basis)
    rejects(check_reproduces_kernel, rows, landmarks, replace(basis, transform=1.001 * basis.transform))
    rejects(check_reproduces_kernel, rows, landmarks, fit_basis(rows, landmarks, 0.0))


def check_raw(basis, rows, weights):
    values = basis.raw(rows, weights)
    kernel = basis.kernel.cross(rows, basis.landmarks, basis.columns)
    expected = np.hstack([kernel, np.ones((rows.shape[0], 1))]) * np.sqrt(weights)[:, None]
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("kind", ["rbf", "linear+rbf", "sparse rbf"])
def test_kernel_values_with_roots_of_weights_and_a_constant(kind):
    rows = training_rows(kind, draw_rows())
    basis = fit_basis(rows, np.arange(0, 60, 4), BIAS)
    weights = np.random.default_rng(1).uniform(0.1, 5.0, 60)
    check_raw(basis, rows.train, weights)
    np.testing.assert_array_equal(basis.raw(rows.train), basis.raw(rows.train, np.ones(60)))
    other_bandwidth = replace(basis, kernel=replace(basis.kernel, gamma=1.01 * basis.kernel.gamma))
    rejects(lambda: np.testing.assert_allclose(other_bandwidth.raw(rows.train), basis.raw(rows.train), atol=1e-13))


def test_sparse_rows_stay_sparse():
    """A landmark matrix of two million columns that became dense would not fit here."""
    rng = np.random.default_rng(0)
    wide = sparse.random_array((400, 2_000_000), density=1e-5, format="csr", rng=rng)
    rows = TrainingRows(Kernel("v", "rbf", gamma=0.05), wide)
    basis = fit_basis(rows, np.arange(200), BIAS)
    assert sparse.issparse(basis.landmarks)
    check_reproduces_kernel(rows, np.arange(200), basis)


def test_residual_falls_with_landmarks_and_vanishes_with_all_rows():
    rows, everything = training_rows("rbf", draw_rows(n=200, d=6)), np.arange(200)
    features = [fit_basis(rows, everything[:p], BIAS).features(rows.train) for p in (5, 20, 80, 200)]
    lost = [residual(rows.diagonal(everything) + BIAS, (z**2).sum(axis=1)) for z in features]
    assert (np.diff(lost) < 0.0).all()
    assert 0.2 < lost[0] < 1.0
    assert lost[-1] < 1e-9


def chosen_landmarks(rows, weights, n_components, rng=None):
    rng = np.random.default_rng(0) if rng is None else rng
    return choose_landmarks(rows, weights, n_components, rng)


@pytest.mark.parametrize("kind", ["rbf", "sparse rbf", "precomputed"])
def test_landmarks_are_different_rows_of_positive_weight(kind):
    rows = training_rows(kind, draw_rows(n=300))
    weights = np.random.default_rng(2).integers(0, 3, 300).astype(float)
    chosen = chosen_landmarks(rows, weights, 60)
    assert chosen.size == np.unique(chosen).size == 60
    assert (weights[chosen] > 0.0).all()
    np.testing.assert_array_equal(chosen_landmarks(rows, weights, 300), np.flatnonzero(weights))


def uniform_landmarks(rows, weights, n_components, rng):
    return weighted_sample(np.arange(weights.size), weights, n_components, rng)


def far_rows_chosen(choose, seed):
    """Of ten rows far from the other thousand and from each other, how many are landmarks."""
    rng = np.random.default_rng(seed)
    cluster = 0.1 * rng.normal(size=(1000, 2))
    small = 10.0 * np.arange(1, 11)[:, None] + 0.1 * rng.normal(size=(10, 2))
    rows = TrainingRows(Kernel("v", "rbf", gamma=1.0), np.vstack([cluster, small]))
    chosen = choose(rows, np.ones(1010), 60, rng)
    return int((chosen >= 1000).sum())


def test_far_rows_are_found_by_distance_not_by_chance():
    by_distance, by_chance = (
        np.mean([far_rows_chosen(choose, seed) for seed in range(5)])
        for choose in (chosen_landmarks, uniform_landmarks)
    )
    assert by_distance >= 9.0
    assert by_chance < 3.0


def test_draws_follow_their_mass():
    rng = np.random.default_rng(0)
    rows, mass = np.arange(10, 20), np.array([0.0, 1, 1, 1, 1, 1, 1, 1, 1, 1000.0])
    draws = [weighted_sample(rows, mass, 3, rng) for _ in range(50)]
    assert all(19 in draw and 10 not in draw and (np.diff(draw) > 0).all() for draw in draws)
    np.testing.assert_array_equal(weighted_sample(rows, mass, 9, rng), rows[1:])


def test_rank_is_the_number_of_distinct_rows_and_one_for_the_bias():
    rows = training_rows("rbf", np.repeat(draw_rows(n=5), 4, axis=0))
    basis = fit_basis(rows, np.arange(20), BIAS)
    assert basis.rank == 6
    assert isinstance(basis, Basis)
    check_reproduces_kernel(rows, np.arange(20), basis)
