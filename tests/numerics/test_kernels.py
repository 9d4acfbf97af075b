"""Kernels: scale-free bandwidth, weights as repetitions, exact diagonals, and errors that name the view."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cmvmed.numerics.kernels import Kernel, fit_kernel, median_factor
from tests.core.factories import rejects


def fitted(train, *, kind="rbf", gamma="median", weights=None, seed=0, view="sonar"):
    weights = np.ones(train.shape[0]) if weights is None else weights
    return fit_kernel(view, kind, gamma, train, weights, np.random.default_rng(seed), 1000)


def draw_rows(seed, n_rows=15, n_features=4):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features)) + 1.0


def naive(kind, gamma, A, B):
    """Kernel values one by one."""
    values = {
        "rbf": lambda x, z: np.exp(-gamma * ((x - z) ** 2).sum()),
        "linear": lambda x, z: x @ z,
        "linear+rbf": lambda x, z: 0.5 * (x @ z + np.exp(-gamma * ((x - z) ** 2).sum())),
        "cosine": lambda x, z: x @ z / np.sqrt((x @ x) * (z @ z)),
    }
    return np.array([[values[kind](x, z) for z in B] for x in A])


NAMED = ["rbf", "linear", "linear+rbf", "cosine"]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("kind", NAMED)
def test_values_are_those_of_the_formula(kind, container):
    train, rows = draw_rows(0), draw_rows(1, n_rows=6)
    kernel = Kernel("sonar", kind, 0.3)
    index = np.array([3, 0, 7])
    np.testing.assert_allclose(
        kernel.gram(container(train), index), naive(kind, 0.3, train[index], train[index]), rtol=1e-9
    )
    np.testing.assert_allclose(
        kernel.cross(container(rows), container(train), index), naive(kind, 0.3, rows, train[index]), rtol=1e-9
    )
    np.testing.assert_allclose(kernel.diagonal(container(rows)), np.diag(naive(kind, 0.3, rows, rows)), rtol=1e-9)


def test_callable_kernel_has_the_diagonal_of_its_values():
    kernel = fitted(draw_rows(0), kind=lambda A, B: A @ B.T + 2.0)
    rows = draw_rows(1)
    np.testing.assert_allclose(kernel.diagonal(rows), (rows**2).sum(axis=1) + 2.0, rtol=1e-12)


def test_cosine_of_zero_rows_is_zero():
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    kernel = fitted(rows, kind="cosine")
    np.testing.assert_allclose(kernel.diagonal(rows), [0.0, 1.0], rtol=1e-15)
    np.testing.assert_allclose(kernel.gram(rows, np.arange(2)), np.diag([0.0, 1.0]), rtol=0.0, atol=1e-15)


def test_blocks_without_rows():
    kernel, none = fitted(draw_rows(0)), np.empty(0, dtype=int)
    assert kernel.gram(draw_rows(0), none).shape == (0, 0)
    assert kernel.cross(draw_rows(1), draw_rows(0), none).shape == (15, 0)
    assert kernel.cross(draw_rows(1)[:0], draw_rows(0), np.arange(4)).shape == (0, 4)


def check_scale_free(gram_of, factor):
    """Rows in other units have the same kernel matrix."""
    rows = draw_rows(2)
    np.testing.assert_allclose(gram_of(factor * rows), gram_of(rows), rtol=1e-9)


def median_gram(rows):
    return fitted(rows).gram(rows, np.arange(rows.shape[0]))


@pytest.mark.parametrize("factor", [1e-60, 1e-3, 7.0, 1e60])
def test_median_gamma_is_scale_free(factor):
    check_scale_free(median_gram, factor)


def test_scale_free_check_rejects_a_fixed_gamma_and_one_over_distance():
    def fixed(rows):
        return fitted(rows, gamma=0.5).gram(rows, np.arange(15))

    def of_the_distance(rows):
        gamma = np.sqrt(fitted(rows).gamma)
        return fitted(rows, gamma=gamma).gram(rows, np.arange(15))

    for broken in (fixed, of_the_distance):
        rejects(check_scale_free, broken, 7.0)


def test_median_gamma_is_one_over_the_median_of_all_pairs_drawn_with_replacement():
    rows = draw_rows(3)
    distances = np.sort(((rows[:, None] - rows) ** 2).sum(axis=2).ravel())
    np.testing.assert_allclose(fitted(rows).gamma, 1.0 / distances[(distances.size - 1) // 2], rtol=1e-9)
    assert fitted(rows, kind="linear+rbf").gamma == fitted(rows).gamma


@pytest.mark.parametrize(("text", "factor"), [("median", 1.0), ("0.2*median", 0.2), ("5 * median", 5.0)])
def test_multiples_of_the_median_gamma(text, factor):
    rows = draw_rows(3)
    assert fitted(rows, gamma=text).gamma == factor * fitted(rows).gamma


@pytest.mark.parametrize("text", ["", "*median", "two*median", "0.2*mean", "0.2", "median*0.2"])
def test_other_texts_are_no_multiple_of_the_median(text):
    assert np.isnan(median_factor(text))


def check_weights_are_repetitions(gamma_of, kind, seed, counts):
    rows = draw_rows(seed, n_rows=counts.size)
    weighted = gamma_of(rows, kind, counts.astype(float))
    repeated = gamma_of(np.repeat(rows, counts, axis=0), kind, np.ones(counts.sum()))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)


def gamma_of(rows, kind, weights):
    return fitted(rows, kind=kind, weights=weights).gamma


@settings(derandomize=True, max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    counts=st.lists(st.integers(1, 3), min_size=8, max_size=12).map(np.array),
    kind=st.sampled_from(["rbf", "linear+rbf"]),
)
def test_weights_are_repetitions(seed, counts, kind):
    check_weights_are_repetitions(gamma_of, kind, seed, counts)


@pytest.mark.parametrize("kind", ["rbf", "linear+rbf"])
def test_check_of_repetitions_rejects_unweighted_medians(kind):
    counts = np.array([9, 1, 1, 8, 1, 1, 1, 9])
    rejects(check_weights_are_repetitions, lambda rows, kind, w: gamma_of(rows, kind, w**0.5), kind, 0, counts)
    rejects(check_weights_are_repetitions, lambda rows, kind, w: gamma_of(rows, kind, np.ones_like(w)), kind, 0, counts)


def test_bandwidth_when_most_rows_are_zero_or_all_are_equal():
    rows = np.vstack([np.zeros((80, 3)), draw_rows(4, n_rows=20, n_features=3)])
    assert 0.1 < fitted(rows).gamma < 10.0
    assert fitted(np.ones((6, 3))).gamma == 1.0
    assert fitted(np.zeros((6, 3)), kind="linear+rbf").gamma == 1.0


def test_bandwidth_when_most_rows_are_equal():
    """The distances of equal rows come out as rounding noise, whose median must not set the bandwidth."""
    for seed in range(20):
        rows = draw_rows(seed, n_rows=20, n_features=6)
        repeated = np.vstack([np.repeat(rows[:1], 80, axis=0), rows])
        assert 1e-3 < fitted(repeated).gamma < 1e3


def test_large_sets_take_the_median_of_a_sample_that_the_seed_fixes():
    rows = draw_rows(5, n_rows=1500, n_features=2)
    gamma = fitted(rows, seed=1).gamma
    assert gamma == fitted(rows, seed=1).gamma
    assert gamma != fitted(rows, seed=2).gamma
    distances = ((rows[:, None] - rows) ** 2).sum(axis=2)
    np.testing.assert_allclose(gamma, 1.0 / np.median(distances), rtol=0.1)


def test_given_gamma_is_kept():
    assert fitted(draw_rows(0), gamma=0.37).gamma == 0.37
    assert fitted(draw_rows(0), kind="linear").gamma == 1.0


def gram_matrix(seed, n_rows=6):
    rows = draw_rows(seed, n_rows=n_rows)
    return rows @ rows.T


@pytest.mark.parametrize("kind", ["precomputed", "callable"])
def test_asymmetric_kernel_is_refused_by_name_and_entry(kind):
    K = gram_matrix(0)
    K[4, 1] += 0.25
    kinds = {"precomputed": "precomputed", "callable": lambda A, B: K}
    with pytest.raises(ValueError, match=r"view 'sonar' is not symmetric: entry \((1, 4|4, 1)\)"):
        fitted(K, kind=kinds[kind])


@pytest.mark.parametrize("kind", ["precomputed", "callable"])
def test_indefinite_kernel_is_refused_by_name_and_eigenvalue(kind):
    K = gram_matrix(1)
    values, vectors = np.linalg.eigh(K)
    K = (vectors * (values - 0.5)) @ vectors.T
    K = 0.5 * (K + K.T)
    kinds = {"precomputed": "precomputed", "callable": lambda A, B: K}
    with pytest.raises(ValueError, match=r"view 'sonar' is not positive semi-definite \(smallest eigenvalue -0\.5\)"):
        fitted(K, kind=kinds[kind])


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_rounding_noise_in_a_given_kernel_is_no_reason_to_refuse_it(size):
    K = size * gram_matrix(2, n_rows=10)
    noise = 1e-13 * size * np.random.default_rng(0).normal(size=K.shape)
    kernel = fitted(K + noise, kind="precomputed")
    index = np.array([5, 2])
    np.testing.assert_array_equal(kernel.gram(K, index), K[np.ix_(index, index)])
    np.testing.assert_array_equal(kernel.cross(K[:3], K, index), K[:3][:, index])
    with pytest.raises(ValueError, match="semi-definite"):
        fitted(K - 1e-3 * size * np.eye(10), kind="precomputed")


def test_values_that_overflow_are_refused_by_name():
    rows = 1e160 * draw_rows(0)
    for kind in ("rbf", "linear", "linear+rbf"):
        with pytest.raises(ValueError, match="kernel of view 'sonar' gave values that are NaN or infinite"):
            Kernel("sonar", kind, 1.0).cross(rows, rows, np.arange(3))
    with pytest.raises(ValueError, match="kernel of view 'sonar' gave values that are NaN"):
        fitted(np.full((3, 3), np.nan), kind="precomputed")


def test_precomputed_kernel_has_no_diagonal_of_new_rows():
    kernel = fitted(gram_matrix(0), kind="precomputed")
    with pytest.raises(ValueError, match="View 'sonar' has a precomputed kernel"):
        kernel.diagonal(gram_matrix(0))


def check_same_kernel(kernel, rows, expected):
    np.testing.assert_allclose(kernel.gram(rows, np.arange(len(rows))), expected, rtol=1e-12)


def test_computation_in_blocks_gives_the_same_kernel(monkeypatch):
    rows, kernel = np.random.default_rng(0).normal(size=(23, 4)), Kernel("v", "linear+rbf", 0.3)
    whole = kernel.gram(rows, np.arange(23))
    monkeypatch.setattr("cmvmed.numerics.kernels.BLOCK_SIZE", 23 * 5)  # five rows at a time, and three at the end
    check_same_kernel(kernel, rows, whole)
    rejects(check_same_kernel, kernel, rows[::-1], whole)
