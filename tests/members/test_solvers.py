"""Ridge regression and discriminant analysis by products of rows, against explicit formulas in the space of the columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf_shrinkage

from cmvmed.members.solvers import (
    discriminant_coefficients,
    inverse,
    ridge_coefficients,
    shrinkage,
    without_rows,
)
from tests.core.factories import rejects

N, K, RIDGE = 14, 3, 0.3
ALL = np.ones(N, dtype=bool)


def draw_case(seed=0, n_columns=5):
    """Rows, weights, targets, classes, and which rows are kept."""
    rng = np.random.default_rng(seed)
    kept = rng.permutation(N) > 2
    X = rng.normal(size=(N, n_columns)) * rng.uniform(0.3, 2.0, n_columns)
    return X, rng.uniform(0.5, 3.0, N), rng.normal(size=(N, K)), rng.permutation(np.arange(N) % K), kept


def check_inverse(inverse_of):
    X, weights, *_ = draw_case()
    product = inverse_of(X @ X.T, weights, RIDGE) @ (X @ X.T + np.diag(RIDGE / weights))
    np.testing.assert_allclose(product, np.eye(N), atol=1e-9)


def test_inverse_of_kernel_and_ridge():
    check_inverse(inverse)
    rejects(check_inverse, lambda gram, weights, ridge: inverse(gram, 1.0 / weights, ridge))
    rejects(check_inverse, lambda gram, weights, ridge: inverse(gram, np.ones(N), ridge))


def check_without_rows(without, seed):
    """The inverse of the part of the matrix that belongs to the kept rows."""
    X, weights, _, _, kept = draw_case(seed)
    matrix = X @ X.T + np.diag(RIDGE / weights)
    direct = np.linalg.inv(matrix[np.ix_(kept, kept)])
    np.testing.assert_allclose(without(np.linalg.inv(matrix), kept), direct, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_without_rows_is_the_inverse_of_the_rest(seed):
    check_without_rows(without_rows, seed)
    rejects(check_without_rows, lambda A, kept: A[np.ix_(kept, kept)], seed)


def test_without_rows_is_the_same_if_all_are_kept():
    A = np.linalg.inv(np.eye(4) + 1.0)
    assert without_rows(A, np.ones(4, dtype=bool)) is A


def check_ridge(coefficients_of, seed):
    """The minimum of Σ_i w_i ‖Y_i - BᵀX_i‖² + η ‖B‖² over the kept rows, B = XᵀA."""
    X, w, targets, _, kept = draw_case(seed)
    A = coefficients_of(inverse(X @ X.T, w, RIDGE), targets, kept)
    np.testing.assert_array_equal(A[~kept], 0.0)
    own, W = X[kept], np.diag(w[kept])
    B = np.linalg.solve(own.T @ W @ own + RIDGE * np.eye(5), own.T @ W @ targets[kept])
    np.testing.assert_allclose(X.T @ A, B, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_ridge_without_rows_is_a_fit_to_the_others(seed):
    check_ridge(ridge_coefficients, seed)
    rejects(check_ridge, lambda A, targets, kept: ridge_coefficients(A, targets, ALL), seed)
    rejects(check_ridge, lambda A, targets, kept: ridge_coefficients(A, targets, ALL) * kept[:, None], seed)


def test_ridge_takes_a_row_of_weight_two_for_the_row_twice():
    X, weights, targets, _, _ = draw_case()
    twice, doubled = np.append(np.arange(N), 3), np.where(np.arange(N) == 3, 2.0, 1.0)
    weighted = ridge_coefficients(inverse(X @ X.T, weights * doubled, RIDGE), targets, ALL)
    A = inverse(X[twice] @ X[twice].T, weights[twice], RIDGE)
    repeated = ridge_coefficients(A, targets[twice], np.ones(N + 1, dtype=bool))
    np.testing.assert_allclose(repeated[3] + repeated[N], weighted[3], atol=1e-9)
    np.testing.assert_allclose(np.delete(repeated[:N], 3, axis=0), np.delete(weighted, 3, axis=0), atol=1e-9)


def residuals_of(X, codes, w):
    """Class means (K, d), residuals, and degrees of freedom."""
    means = np.zeros((K, X.shape[1]))
    for c in np.unique(codes):
        means[c] = np.average(X[codes == c], axis=0, weights=w[codes == c])
    return means, X - means[codes], w.sum() - np.unique(codes).size


def explicit_shrinkage(R, w, freedom):
    """Ledoit and Wolf (2004): the covariance's sampling error over its distance from a multiple of the identity."""
    d = R.shape[1]
    S = (R * w[:, None]).T @ R / freedom
    distance = np.linalg.norm(S - np.trace(S) / d * np.eye(d)) ** 2
    products = [np.outer(r, r) for r in R]
    error = sum(wi * np.linalg.norm(P) ** 2 for wi, P in zip(w, products, strict=True)) / freedom**2
    return min(max((error - np.linalg.norm(S) ** 2 / freedom) / distance, 0.0), 1.0), S


def check_discriminant(coefficients_of, seed, n_columns):
    """x·Σ⁻¹m - ½ m·Σ⁻¹m for new rows x, with an explicit inverse of an explicit Σ of the kept rows."""
    X, w, _, codes, kept = draw_case(seed, n_columns)
    a, intercept = coefficients_of(X @ X.T, codes, w, K, n_columns, kept)
    means, R, freedom = residuals_of(X[kept], codes[kept], w[kept])
    delta, S = explicit_shrinkage(R, w[kept], freedom)
    delta = max(delta, K / w[kept].sum())  # the labels that the means use up
    sigma = (1.0 - delta) * S + delta * np.trace(S) / n_columns * np.eye(n_columns)
    new = np.random.default_rng(seed + 100).normal(size=(20, n_columns))
    precision = np.linalg.inv(sigma)
    expected = new @ precision @ means.T - 0.5 * np.diag(means @ precision @ means.T)
    np.testing.assert_allclose(new @ X.T @ a + intercept, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(a[~kept], 0.0)
    densities = [multivariate_normal(m, sigma).logpdf(new) for m in means]  # differences of Gaussian log-densities
    np.testing.assert_allclose(np.diff(new @ X.T @ a + intercept, axis=1), np.diff(densities, axis=0).T, atol=1e-7)


@pytest.mark.parametrize("n_columns", [2, 5, 40])
@pytest.mark.parametrize("seed", range(3))
def test_discriminant_analysis_is_that_of_the_columns(seed, n_columns):
    check_discriminant(discriminant_coefficients, seed, n_columns)

    def changed(**others):
        def solve(gram, codes, weights, n_classes, n_columns, kept):
            given = {"weights": weights, "n_columns": n_columns, "kept": kept} | others
            return discriminant_coefficients(gram, codes, n_classes=n_classes, **given)

        return solve

    for broken in (changed(weights=np.ones(N)), changed(n_columns=n_columns + 1), changed(kept=ALL)):
        rejects(check_discriminant, broken, seed, n_columns)


def test_the_covariance_is_shrunk_at_least_by_the_labels_that_the_means_use_up():
    """Residuals of two values, all of one size, have a covariance without sampling error."""
    X = np.column_stack([np.tile([3.0, -3.0], 6), np.zeros(12)]) + np.repeat([[0.0, 0.0], [1.0, 2.0]], 6, axis=0)
    codes, w = np.repeat([0, 1], 6), np.ones(12)
    means, R, freedom = residuals_of(X, codes, w)
    delta, S = explicit_shrinkage(R, w, freedom)
    assert delta < 2 / 12
    sigma = 10 / 12 * S + 2 / 12 * np.trace(S) / 2 * np.eye(2)
    a, intercept = discriminant_coefficients(X @ X.T, codes, w, 2, 2, np.ones(12, dtype=bool))
    np.testing.assert_allclose(X.T @ a, np.linalg.solve(sigma, means[:2].T), atol=1e-9)
    np.testing.assert_allclose(intercept, -0.5 * np.diag(means[:2] @ np.linalg.solve(sigma, means[:2].T)), atol=1e-9)


def test_discriminant_analysis_takes_weights_for_repetitions():
    X, _, _, codes, kept = draw_case()
    times = np.random.default_rng(1).integers(1, 4, size=N)
    rows = np.repeat(np.arange(N), times)
    weighted, a = discriminant_coefficients(X @ X.T, codes, times * 1.0, K, 5, kept)
    ones, gram = np.ones(rows.size), X[rows] @ X[rows].T
    repeated, b = discriminant_coefficients(gram, codes[rows], ones, K, 5, kept[rows])
    np.testing.assert_allclose(X[rows].T @ repeated, X.T @ weighted, atol=1e-9)
    np.testing.assert_allclose(b, a, atol=1e-9)


@pytest.mark.parametrize("n_columns", [1, 3, 30])
def test_shrinkage_is_that_of_ledoit_and_wolf(n_columns):
    """With known means it is scikit-learn's; weights are repetitions."""
    rng = np.random.default_rng(n_columns)
    for n in (4, 12, 200):
        X = rng.normal(size=(n, n_columns)) * rng.uniform(0.1, 3.0, n_columns)
        expected = ledoit_wolf_shrinkage(X, assume_centered=True) if n_columns > 1 else 1.0
        assert shrinkage(X @ X.T, np.ones(n), float(n), n_columns) == pytest.approx(expected, rel=1e-8)
        w = rng.uniform(0.5, 2.0, n)
        weighted = np.sqrt(w)[:, None] * X
        found = shrinkage(weighted @ weighted.T, w, w.sum() - 2.0, n_columns)
        assert n_columns == 1 or found == pytest.approx(explicit_shrinkage(X, w, w.sum() - 2.0)[0], rel=1e-8)


@pytest.mark.parametrize(
    ("X", "codes"),
    [
        (np.random.default_rng(0).normal(size=(3, 4)), [0, 1, 2]),  # one row of each class
        (np.repeat(np.random.default_rng(0).normal(size=(2, 4)), 3, axis=0), [0, 0, 0, 1, 1, 1]),  # equal rows
        (np.zeros((6, 4)), [0, 0, 0, 1, 1, 1]),
        (np.zeros((0, 4)), []),
    ],
)
def test_scores_are_zero_where_nothing_is_known_of_the_covariance(X, codes):
    given = np.array(codes, dtype=int), np.ones(len(X)), K, 4, np.ones(len(X), dtype=bool)
    for part in discriminant_coefficients(X @ X.T, *given):
        np.testing.assert_array_equal(part, 0.0)
    more, own = np.concatenate([X, np.eye(4)[:2]]), np.append(given[0], [0, 0])
    known = discriminant_coefficients(more @ more.T, own, np.ones(len(more)), K, 4, np.ones(len(more), dtype=bool))
    assert np.abs(known[0]).max() > 0.0


def test_a_class_without_kept_rows_is_at_the_mean_of_all_rows():
    """Its mean is zero, where centered kernels have the mean, so its score is."""
    X, w, _, codes, _ = draw_case()
    a, intercept = discriminant_coefficients(X @ X.T, codes, w, K, 5, codes != 1)
    np.testing.assert_array_equal(a[:, 1], 0.0)
    assert intercept[1] == 0.0
    assert np.abs(a[:, 0]).max() > 0.0
