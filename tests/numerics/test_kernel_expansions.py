"""Sums of kernel functions against the kernels themselves."""

import numpy as np
import pytest
from scipy import sparse

from cmvmed.numerics.kernel_expansions import BLOCK_ROWS, FormedRows, KernelExpansion, can_sum, kernel_sum
from cmvmed.numerics.kernels import Kernel

KINDS = ("linear", "rbf", "linear+rbf")


def draw(n, n_centers=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n_centers, d)), rng.normal(size=(n_centers, 3))


@pytest.mark.parametrize("n", [0, 1, BLOCK_ROWS, 2 * BLOCK_ROWS + 7])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_is_that_of_its_kernels(kind, n):
    points, centers, coefficients = draw(n)
    kernel, constant = Kernel("view", kind, 0.3), np.array([1.0, -2.0, 0.5])
    values = kernel_sum([KernelExpansion(kernel, centers, coefficients, constant)]).values(points)
    np.testing.assert_allclose(values, kernel.cross(points, centers) @ coefficients + constant, rtol=1e-10, atol=1e-10)


def test_several_expansions_are_added():
    points, centers, coefficients = draw(20)
    parts = [
        KernelExpansion(Kernel("view", kind, gamma), centers, coefficients, np.array([0.0, 1.0, gamma]))
        for kind, gamma in zip(KINDS, (1.0, 0.2, 2.0), strict=True)
    ]
    expected = sum(part.kernel.cross(points, centers) @ coefficients + part.constant for part in parts)
    np.testing.assert_allclose(kernel_sum(parts).values(points), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_keeps_about_six_digits(kind):
    points, centers, coefficients = draw(300)
    part = KernelExpansion(Kernel("view", kind, 0.3), centers, coefficients, np.zeros(3))
    double, single = (kernel_sum([part], dtype).values(points) for dtype in (np.float64, np.float32))
    assert double.dtype == single.dtype == np.float64
    error = np.abs(double - single).max() / np.abs(coefficients).sum()
    assert error < 1e-6
    assert (error > 1e-12) == (kind != "linear")


def test_values_that_are_no_numbers_are_an_error_that_names_the_view():
    _, centers, coefficients = draw(1)
    with pytest.raises(ValueError, match="'microphone'"):
        kernel_sum([KernelExpansion(Kernel("microphone", "linear"), centers, coefficients, np.zeros(3))]).values(
            np.full((2, 6), 1e200)
        )


def test_sparse_centers_and_given_kernels_have_no_such_sum():
    centers = draw(1)[1]
    assert can_sum(Kernel("view", "rbf"), centers)
    assert not can_sum(Kernel("view", "rbf"), sparse.csr_matrix(centers))
    assert not can_sum(Kernel("view", "precomputed"), centers)
    assert not can_sum(Kernel("view", "cosine"), centers)


def test_a_very_narrow_kernel_has_no_value_above_one():
    points, centers, _ = draw(30)
    kernel = Kernel("view", "rbf", 1e300)
    every = KernelExpansion(kernel, np.vstack([centers, points]), np.ones((70, 1)), np.zeros(1))
    values = kernel_sum([every]).values(points)
    assert (values <= 70.0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_share_what_they_need_of_rows(dtype):
    points, centers, coefficients = draw(7)
    rows = FormedRows(points)
    first, second = (
        kernel_sum([KernelExpansion(Kernel("view", "rbf", gamma), centers, coefficients, np.zeros(3))], dtype)
        for gamma in (0.1, 2.0)
    )
    np.testing.assert_array_equal(first.of_rows(rows), first.values(points))
    extended = rows.extended
    np.testing.assert_array_equal(second.of_rows(rows), second.values(points))
    assert rows.extended is extended
    np.testing.assert_allclose(extended[:, -2], (points**2).sum(axis=1), rtol=1e-14)
