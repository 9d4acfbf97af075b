"""Kernels of graphs: products with the squared inverse of a Laplacian, against dense linear algebra."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy import sparse

from cmvmed.graphs import kernel
from cmvmed.graphs.kernel import BLOCK_COLUMNS, inverse_square_product, inverse_square_series, series_product
from tests.core.factories import rejects


def draw_graph(n=90, degree=3, seed=0):
    """The normalized adjacency of a random graph of two parts, with a node that is joined with none."""
    rng = np.random.default_rng(seed)
    joined = np.zeros((n, n))
    half = n // 2
    for first, last in ((0, half), (half, n - 1)):
        for row in range(first, last):
            joined[row, rng.choice(np.setdiff1d(np.arange(first, last), row), degree, replace=False)] = 1.0
    joined = np.maximum(joined, joined.T)
    root = np.sqrt(np.maximum(joined.sum(axis=1), 1.0))
    return sparse.csr_matrix(joined / np.outer(root, root))


def check_product(found, S, epsilon, B, power=2):
    shifted = (1.0 + epsilon) * np.eye(S.shape[0]) - S.toarray()
    expected = np.linalg.solve(np.linalg.matrix_power(shifted, power), B)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("epsilon", [1e-2, 0.05, 1.0, 10.0])
@pytest.mark.parametrize("n_columns", [0, 1, BLOCK_COLUMNS, 2 * BLOCK_COLUMNS + 3])
@pytest.mark.parametrize("product", [inverse_square_product, series_product])
def test_products_are_those_of_the_dense_inverse(product, epsilon, n_columns):
    S, B = draw_graph(), np.random.default_rng(1).normal(size=(90, max(n_columns, 1)))[:, :n_columns]
    found = product(S, epsilon, B)
    assert found.shape == (90, n_columns)
    if n_columns:
        check_product(found, S, epsilon, B)
        rejects(check_product, found, S, epsilon, B, power=1)
        rejects(check_product, found, S, 1.1 * epsilon, B)


@pytest.mark.parametrize("epsilon", [1e-2, 0.05, 1.0])
def test_the_series_is_that_of_the_function(epsilon):
    series, x = inverse_square_series(epsilon), np.linspace(-1.0, 1.0, 101)
    np.testing.assert_allclose(chebyshev.chebval(x, series), (1.0 + epsilon - x) ** -2, atol=2e-11 / epsilon**2)
    assert (series > 0.0).all()
    assert series.sum() == pytest.approx(epsilon**-2, rel=1e-10)


def test_a_column_does_not_depend_on_the_others():
    S, B = draw_graph(), np.random.default_rng(1).normal(size=(90, 2 * BLOCK_COLUMNS))
    whole, part = series_product(S, 0.05, B), series_product(S, 0.05, B[:, 3:40])
    np.testing.assert_array_equal(whole[:, 3:40], part)


def test_known_columns_are_not_computed_again(monkeypatch):
    """As in fits to more labels of the same rows; a dense factor gives all columns anew."""
    S, B, widths, found = draw_graph(), np.random.default_rng(1).normal(size=(90, 10)), [], {}

    def counted(S, epsilon, B):
        widths.append(B.shape[1])
        return series_product(S, epsilon, B)

    monkeypatch.setattr(kernel, "series_product", counted)
    kernel._columns(S, 0.05, B, range(10), found)
    assert (widths, found) == ([], {})
    monkeypatch.setattr(kernel, "SERIES_COST", 0.0)
    kernel._columns(S, 0.05, B[:, 2:6], range(2, 6), found)
    np.testing.assert_array_equal(kernel._columns(S, 0.05, B, range(10), found), series_product(S, 0.05, B))
    assert widths == [4, 6]


def test_memory_is_that_of_the_columns_not_of_a_dense_matrix():
    n, n_columns = 20_000, 64
    ring = sparse.diags([0.5, 0.5], [-1, 1], shape=(n, n), format="csr")
    B = np.zeros((n, n_columns))
    B[np.arange(n_columns), np.arange(n_columns)] = 1.0
    tracemalloc.start()
    try:
        inverse_square_product(ring, 0.05, B)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * B.nbytes < 8 * n**2 / 50
