"""The tridiagonal form of a symmetric matrix: its identity, and functions of it against dense linear algebra."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from cmvmed.core.tridiagonal import Tridiagonal, tridiagonal_form
from cmvmed.numerics.linalg import LONG_ROWS, NotPositiveDefiniteError
from tests.core.factories import rejects


def symmetric(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A + A.T


def check_form(K, T, P):
    """K = P T Pᵀ with an orthogonal P."""
    size = 1e-13 * len(K) * np.abs(K).max(initial=1.0)
    np.testing.assert_allclose(P.T @ P, np.eye(len(K)), atol=1e-13 * max(1, len(K)))
    np.testing.assert_allclose(P @ T.times(P.T), K, atol=size)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 40, LONG_ROWS])
def test_a_symmetric_matrix_is_reduced(n):
    K = symmetric(n)
    given = K.copy()
    T, P = tridiagonal_form(K)
    check_form(K, T, P)
    np.testing.assert_array_equal(K, given)
    if n > 2:
        rejects(check_form, K, Tridiagonal(T.diagonal, 1.001 * T.beside), P)
        rejects(check_form, K, T, P[:, ::-1])


@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("rho", [0.0, 0.3, 50.0])
def test_solutions_and_traces_are_those_of_the_dense_matrix(n, rho):
    A = np.random.default_rng(n).normal(size=(n, n))
    T, P = tridiagonal_form(A @ A.T)
    factor, dense = T.factorize(rho), np.eye(n) + rho * (A @ A.T)
    B = np.random.default_rng(0).normal(size=(n, 4))
    np.testing.assert_allclose(dense @ (P @ factor.solve(P.T @ B)), B, atol=1e-9)
    np.testing.assert_allclose(factor.log_determinant, np.linalg.slogdet(dense)[1], atol=1e-10)
    np.testing.assert_allclose(factor.inverse_trace(), np.trace(np.linalg.inv(dense)), rtol=1e-10)
    assert factor.solve(np.empty((n, 0))).shape == (n, 0)


@pytest.mark.parametrize("broken", [-np.eye(5), np.full((5, 5), np.nan)])
def test_what_cannot_be_factorized_is_an_error(broken):
    with pytest.raises(NotPositiveDefiniteError):
        tridiagonal_form(broken)[0].factorize(10.0)


def test_other_threads_run_during_a_reduction():
    """A call that holds the interpreter would let this thread run once or twice."""
    K, done, turns = symmetric(1200), threading.Event(), 0
    thread = threading.Thread(target=lambda: (tridiagonal_form(K), done.set()))
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        turns += 1
    thread.join()
    assert turns > 5
