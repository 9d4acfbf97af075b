"""Kernel ridge regression: leave-group-out scores equal those of fits without the group."""

from __future__ import annotations

import numpy as np
import pytest
from cmvmed.members.ridge import RidgeFit, fit_ridge, inverse, without_rows

from tests.core.factories import rejects

N, K, RIDGE = 14, 3, 0.3


def draw_case(seed=0):
    """Kernel, weights, targets and groups of labeled rows, and which rows are kept."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(N, 5))
    kept = rng.permutation(N) > 2
    return Phi @ Phi.T, rng.uniform(0.5, 3.0, N), rng.normal(size=(N, K)), rng.integers(8, size=N), kept


def check_inverse(inverse_of):
    gram, weights, *_ = draw_case()
    product = inverse_of(gram, weights, RIDGE) @ (gram + np.diag(RIDGE / weights))
    np.testing.assert_allclose(product, np.eye(N), atol=1e-9)


def test_inverse_of_kernel_and_ridge():
    check_inverse(inverse)
    rejects(check_inverse, lambda gram, weights, ridge: inverse(gram, 1.0 / weights, ridge))
    rejects(check_inverse, lambda gram, weights, ridge: inverse(gram, np.ones(N), ridge))


def check_without_rows(without, seed):
    """The inverse of the part of the matrix that belongs to the kept rows."""
    gram, weights, _, _, kept = draw_case(seed)
    matrix = gram + np.diag(RIDGE / weights)
    direct = np.linalg.inv(matrix[np.ix_(kept, kept)])
    np.testing.assert_allclose(without(np.linalg.inv(matrix), kept), direct, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_without_rows_is_the_inverse_of_the_rest(seed):
    check_without_rows(without_rows, seed)
    rejects(check_without_rows, lambda A, kept: A[np.ix_(kept, kept)], seed)


def test_without_rows_is_the_same_if_all_are_kept():
    A = np.linalg.inv(np.eye(4) + 1.0)
    assert without_rows(A, np.ones(4, dtype=bool)) is A


def ridge_scores(gram, weights, targets, train, test):
    """Scores of the rows ``test`` by ridge regression on the rows ``train``, as the minimum of the penalized squares.

    Σ_i w_i ‖Y_i - (Kα)_i‖² + η αᵀKα has the gradient 2K{W(Kα - Y) + ηα}, which vanishes for WKα + ηα = WY.
    """
    W = np.diag(weights[train])
    K_train = gram[np.ix_(train, train)]
    alpha = np.linalg.solve(W @ K_train + RIDGE * np.eye(len(train)), W @ targets[train])
    return gram[np.ix_(test, train)] @ alpha


def check_ridge(fit_of, seed):
    """Scores by fits without the group, each solved anew, and coefficients of the fit to all kept rows."""
    gram, weights, targets, groups, kept = draw_case(seed)
    fit = fit_of(inverse(gram, weights, RIDGE), targets, groups, kept)
    np.testing.assert_array_equal(fit.coefficients[~kept], 0.0)
    np.testing.assert_array_equal(fit.left_out[~kept], 0.0)
    everything = ridge_scores(gram, weights, targets, np.flatnonzero(kept), np.arange(N))
    np.testing.assert_allclose(gram @ fit.coefficients, everything, atol=1e-8)
    for group in np.unique(groups[kept]):
        own = np.flatnonzero(kept & (groups == group))
        others = np.flatnonzero(kept & (groups != group))
        np.testing.assert_allclose(fit.left_out[own], ridge_scores(gram, weights, targets, others, own), atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_left_out_scores_are_those_of_refits(seed):
    check_ridge(fit_ridge, seed)

    def each_row_alone(A, targets, groups, kept):
        return fit_ridge(A, targets, np.arange(N), kept)

    def in_sample(A, targets, groups, kept):
        fit = fit_ridge(A, targets, groups, kept)
        gram = draw_case(seed)[0]
        return RidgeFit(fit.coefficients, np.where(kept[:, None], gram @ fit.coefficients, 0.0))

    def all_rows(A, targets, groups, kept):
        return fit_ridge(A, targets, groups, np.ones(N, dtype=bool))

    for broken in (each_row_alone, in_sample, all_rows):
        rejects(check_ridge, broken, seed)


def test_a_row_of_weight_two_is_the_row_twice():
    """Equal rows are one group, so both copies are left out together."""
    gram, weights, targets, _, _ = draw_case()
    twice = np.append(np.arange(N), 3)
    doubled = np.where(np.arange(N) == 3, 2.0, 1.0)
    weighted = fit_ridge(inverse(gram, weights * doubled, RIDGE), targets, np.arange(N), np.ones(N, dtype=bool))
    A = inverse(gram[np.ix_(twice, twice)], weights[twice], RIDGE)
    repeated = fit_ridge(A, targets[twice], twice, np.ones(N + 1, dtype=bool))
    np.testing.assert_allclose(repeated.left_out, weighted.left_out[twice], atol=1e-9)
    np.testing.assert_allclose(repeated.coefficients[3] + repeated.coefficients[N], weighted.coefficients[3], atol=1e-9)
