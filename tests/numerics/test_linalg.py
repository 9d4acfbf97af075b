"""Inverses from the Cholesky factor, solutions with singular matrices, whitening, and products."""

from __future__ import annotations

import numpy as np
import pytest

from cmvmed.numerics import linalg
from cmvmed.numerics.linalg import (
    MAX_NARROW,
    cholesky,
    inverse_diagonal,
    inverse_lower_half,
    narrow_product,
    solve_semidefinite,
    whitening,
)
from tests.core.factories import rejects


def draw_matrix(n):
    Phi = np.random.default_rng(n).normal(size=(n, n + 2))
    return np.eye(n) + Phi @ Phi.T


@pytest.mark.parametrize("n", [0, 1, 3, 5, 23])
def test_inverse_by_way_of_the_factor(n):
    B = draw_matrix(n)
    factor = cholesky(np.array(B, order="F"))
    kept = factor.copy()

    def check(inverse):
        np.testing.assert_allclose(inverse_diagonal(factor), np.diagonal(inverse), rtol=1e-12)
        np.testing.assert_allclose(np.tril(inverse_lower_half(factor)), np.tril(inverse), rtol=0.0, atol=1e-13)
        np.testing.assert_array_equal(factor, kept)

    check(np.linalg.inv(B))


def test_comparison_rejects_the_inverse_of_another_matrix():
    factor = cholesky(np.array(draw_matrix(6), order="F"))
    other = np.linalg.inv(draw_matrix(6) + 1e-6 * np.eye(6))
    rejects(lambda: np.testing.assert_allclose(inverse_diagonal(factor), np.diagonal(other), rtol=1e-12))


@pytest.mark.parametrize(("n", "rank"), [(0, 0), (1, 1), (12, 12), (12, 5)])
def test_whitening_keeps_what_a_matrix_spans(n, rank):
    Phi = np.random.default_rng(n).normal(size=(n, rank))
    K = Phi @ Phi.T
    T = whitening(K, 1e-10)

    def check(T):
        assert T.shape == (n, rank)
        np.testing.assert_allclose(T.T @ K @ T, np.eye(rank), rtol=0.0, atol=1e-8)
        np.testing.assert_allclose(K @ T @ T.T @ K, K, rtol=0.0, atol=1e-8 * np.abs(K).max(initial=0.0))

    check(T)


def test_comparison_rejects_the_whitening_of_another_matrix():
    K, T = draw_matrix(6), whitening(draw_matrix(6) + 1e-3 * np.eye(6), 1e-10)
    rejects(lambda: np.testing.assert_allclose(T.T @ K @ T, np.eye(6), rtol=0.0, atol=1e-8))


def test_solution_with_a_positive_definite_matrix():
    B, rhs = draw_matrix(6), np.arange(6.0)
    kept = B.copy()
    np.testing.assert_allclose(B @ solve_semidefinite(B, rhs), rhs, rtol=0.0, atol=1e-10)
    np.testing.assert_array_equal(B, kept)
    rejects(lambda: np.testing.assert_allclose(B @ solve_semidefinite(B + 1e-6 * np.eye(6), rhs), rhs, atol=1e-10))


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_solution_with_a_singular_matrix(scale):
    K = scale * np.repeat(np.repeat(draw_matrix(3), 4, axis=0), 4, axis=1)
    rhs = np.repeat(np.arange(3.0), 4)
    np.testing.assert_allclose(K @ solve_semidefinite(K, rhs), rhs, rtol=0.0, atol=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(K, rhs)


def test_solution_with_a_matrix_that_rounding_has_made_indefinite():
    K = np.ones((5, 5)) - 1e-13 * np.eye(5)
    np.testing.assert_allclose(K @ solve_semidefinite(K, np.ones(5)), np.ones(5), rtol=0.0, atol=1e-6)


def test_an_indefinite_matrix_gives_the_plain_solution():
    A = np.array([[1.0, 3.0], [3.0, 1.0]])
    np.testing.assert_allclose(A @ solve_semidefinite(A, np.ones(2)), np.ones(2), rtol=1e-12)


@pytest.mark.parametrize("n_columns", [0, 1, 3, MAX_NARROW, MAX_NARROW + 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_narrow_product_is_the_product(n_columns, dtype, transposed, monkeypatch):
    monkeypatch.setattr(linalg, "NARROW_BYTES", 1000)  # several parts
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 37)).astype(dtype)
    A = A.T if transposed else A
    B = rng.normal(size=(A.shape[1], n_columns)).astype(dtype)
    found = narrow_product(A, B)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, A.astype(float) @ B.astype(float), rtol=0.0, atol=100 * np.finfo(dtype).eps)
    sliced = rng.normal(size=(20, 30))[::2, ::3]
    np.testing.assert_allclose(narrow_product(sliced, np.eye(10)[:, :2]), sliced[:, :2])
