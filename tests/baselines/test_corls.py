"""Co-regularization: closed forms against primals solved directly, each with a broken twin."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from cmvmed.baselines.coregularization import coregularize, fit_hinge, fit_least_squares
from cmvmed.estimators.corls import CoRLS
from tests.baselines.problems import corls_primal, draw_views
from tests.core.factories import rejects

SETTINGS = [
    {},
    {"n_unlabeled": 20},
    {"n_unlabeled": 20, "missing": 0.3, "weighted": True},
    {"n_unlabeled": 15, "widths": (3, 4, 2), "missing": 0.3},
    {"n_unlabeled": 15, "widths": (30, 40)},
    {"n_unlabeled": 5, "widths": (4,)},
    {"n_unlabeled": 12, "widths": (3, 2, 4, 1, 5, 2), "missing": 0.4, "weighted": True},
]
FORMS = {"least squares": fit_least_squares, "svm": fit_hinge}


def gammas(views):
    return [0.5, 0.2, 1.3, 0.7, 0.4, 0.9][: len(views.rows)]


def scores(views, form, *, coupling=0.4):
    """f̄ (n,) from the co-regularization kernel and the expansions of the views."""
    L = views.y != 0.0
    space = coregularize(views.kernels, views.rows, L.sum(), gammas(views), coupling * views.weights[~L])
    a, violation = FORMS[form](space.kernel, views.y[L, None], views.weights[L])
    assert violation <= 1e-8
    total, count = np.zeros(L.size), np.zeros(L.size)
    for K, rows, expansion in zip(views.kernels, views.rows, space.expansions, strict=True):
        total[rows] += K @ (expansion @ a)[:, 0]
        count[rows] += 1.0
    np.testing.assert_allclose((total / count)[L], (space.kernel @ a)[:, 0], atol=1e-9)
    return total / count


def check_primal(views, form, given, *, coupling=0.4, atol=1e-6):
    primal = corls_primal(views, regularization=gammas(views), coupling=coupling, hinge=form == "svm")
    np.testing.assert_allclose(given, primal, rtol=0.0, atol=atol)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("given", SETTINGS)
@pytest.mark.parametrize("seed", range(2))
def test_kernel_form_equals_the_primal(form, given, seed):
    views = draw_views(seed, **given)
    f = scores(views, form)
    check_primal(views, form, f)
    one_flipped = np.where(np.arange(views.y.size) == 0, -views.y, views.y)
    rejects(check_primal, replace(views, y=one_flipped), form, f)


@pytest.mark.parametrize("form", FORMS)
def test_coupling_counts(form):
    views = draw_views(2, n_unlabeled=20)
    rejects(check_primal, views, form, scores(views, form, coupling=0.0))
    rejects(check_primal, views, form, scores(views, form, coupling=0.5))


def test_kernel_is_the_published_one():
    """(s - μ dᵀ(I + μS)⁻¹d)/4 with s = k_1/γ_1 + k_2/γ_2 and d = k_1/γ_1 - k_2/γ_2; /4 since f̄ = (f_1 + f_2)/2."""
    views = draw_views(3, n_labeled=8, n_unlabeled=12)
    (first, second), mu = (K / gamma for K, gamma in zip(views.kernels, (0.5, 0.2), strict=True)), 0.4
    s, d = first + second, (first - second)[8:, :8]

    def check(sign):
        published = s[:8, :8] - sign * mu * d.T @ np.linalg.solve(np.eye(12) + mu * s[8:, 8:], d)
        np.testing.assert_allclose(space.kernel, published / 4.0, atol=1e-12)

    space = coregularize(views.kernels, views.rows, 8, [0.5, 0.2], np.full(12, mu))
    check(1.0)
    rejects(check, -1.0)


def test_kernel_is_that_of_all_pairs_of_six_views():
    """K̃ = AGAᵀ - AGDᵀ(I + DGDᵀ)⁻¹DGAᵀ with a row of D for each pair of views and each unlabeled row that has both."""
    views = draw_views(9, n_labeled=9, n_unlabeled=11, widths=(3, 2, 4, 1, 5, 2), missing=0.3, weighted=True)
    gamma, mu = gammas(views), 0.4 * views.weights[9:]
    space = coregularize(iter(views.kernels), views.rows, 9, gamma, mu)
    present = np.zeros((6, 20), dtype=bool)
    for seen, rows in zip(present, views.rows, strict=True):
        seen[rows] = True
    G = np.zeros((6, 20, 6, 20))
    for v, (K, rows) in enumerate(zip(views.kernels, views.rows, strict=True)):
        G[v, rows[:, None], v, rows] = K / gamma[v]
    G = G.reshape(120, 120)
    A = np.hstack([np.eye(9, 20) * seen / present.sum(axis=0) for seen in present])
    unit = np.eye(120).reshape(6, 20, 120)

    def check(pairs):
        D = np.array(
            [
                np.sqrt(mu[n]) * (unit[v, 9 + n] - unit[u, 9 + n])
                for v, u in pairs
                for n in np.flatnonzero(present[v, 9:] & present[u, 9:])
            ]
        )
        published = A @ G @ A.T - A @ G @ D.T @ np.linalg.solve(np.eye(len(D)) + D @ G @ D.T, D @ G @ A.T)
        np.testing.assert_allclose(space.kernel, published, rtol=0.0, atol=1e-12)

    pairs = list(combinations(range(6), 2))
    check(pairs)
    rejects(check, pairs[1:])


def test_memory_grows_with_the_views_not_with_their_pairs():
    views = draw_views(10, n_labeled=5, n_unlabeled=200, widths=(3,) * 6)
    kernels, one = views.kernels, 8 * 205**2
    tracemalloc.start()
    coregularize(kernels, views.rows, 5, gammas(views), np.ones(200))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * one  # six factors and a few of their size; all pairs of views would take 225 times one


def test_views_agree_the_more_it_is_asked():
    views = draw_views(4, n_labeled=10, n_unlabeled=20)
    U = views.y == 0.0

    def disagreement(coupling):
        space = coregularize(views.kernels, views.rows, 10, [0.5, 0.2], np.full(20, coupling))
        a, _ = fit_least_squares(space.kernel, views.y[~U, None], np.ones(10))
        first, second = (K @ e @ a for K, e in zip(views.kernels, space.expansions, strict=True))
        return np.abs(first - second)[U].sum()

    steps = [disagreement(mu) for mu in (0.0, 0.01, 0.1, 1.0, 100.0)]
    assert (np.diff(steps) < 0.0).all()
    assert steps[-1] < 0.05 * steps[0]


def test_single_view_is_kernel_ridge_regression():
    views = draw_views(5, n_labeled=20)
    X, y = views.Phi[0], views.y
    model = CoRLS(kernel="linear", scaling=None, regularization=0.3, bias_variance=0.2).fit(X, y > 0.0)

    def check(alpha):
        ridge = KernelRidge(alpha=alpha, kernel="precomputed").fit(X @ X.T + 0.2, y)
        np.testing.assert_allclose(model.decision_function(X), ridge.predict(X @ X.T + 0.2), rtol=0.0, atol=1e-10)

    check(0.3)
    rejects(check, 0.31)


@pytest.mark.parametrize("form", FORMS)
def test_certificates_see_wrong_points(form, monkeypatch):
    K, Y, weights = draw_views(8).kernels[0], draw_views(8).y[:, None], np.ones(14)
    assert FORMS[form](K, Y, weights)[1] <= 1e-8
    monkeypatch.setattr("cmvmed.baselines.coregularization.solve_box_qps", lambda S, G, Y, upper, start: 0.5 * upper)
    monkeypatch.setattr("cmvmed.baselines.coregularization.solve_cholesky", lambda factor, rhs: rhs)
    assert FORMS[form](K, Y, weights)[1] > 1e-2


@pytest.mark.parametrize("form", FORMS)
def test_estimator_solves_the_primal(form):
    views = draw_views(6, n_unlabeled=20, weighted=True)
    X, y = list(views.Phi), views.y.astype(int)
    model = CoRLS(kernel="linear", scaling=None, form=form, regularization=[0.5, 0.2], coupling=0.4, bias_variance=0.0)
    decision = model.set_params(unlabeled=0).fit(X, y, sample_weight=views.weights).decision_function(X)
    check_primal(views, form, decision)
    rejects(check_primal, replace(views, weights=np.ones_like(views.weights)), form, decision)


def fitted_decision(views, size, settings, weights=None):
    X = [size * rows for rows in views.Phi]
    return CoRLS(unlabeled=0, **settings).fit(X, views.y.astype(int), sample_weight=weights).decision_function(X)


@pytest.mark.parametrize("form", FORMS)
def test_huge_values_that_are_scaled_change_nothing(form):
    views = draw_views(7, n_unlabeled=10)
    found, expected = (fitted_decision(views, size, {"form": form}) for size in (1e300, 1.0))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(
    "settings", [{"regularization": 1e-308}, {"regularization": 1e300}, {"coupling": 1e300}], ids=str
)
def test_extreme_penalties_without_overflow_give_finite_functions(settings):
    views = draw_views(7, n_unlabeled=10)
    decision = fitted_decision(views, 1.0, settings)
    assert np.isfinite(decision).all()
    assert np.ptp(decision) > 0.0


def test_huge_weights_give_finite_functions():
    """Labels with large weights are interpolated."""
    views = draw_views(7, n_unlabeled=10)
    decision = fitted_decision(views, 1.0, {}, weights=np.full(views.y.size, 1e300))
    np.testing.assert_allclose(decision[views.y != 0.0], views.y[views.y != 0.0], atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("size", "settings", "message"),
    [
        (1e45, {"kernel": "linear", "scaling": None}, "too large to compute with; use scaling"),
        (1e60, {"kernel": "linear", "scaling": None}, "kernel of view 'view0' gave values that are .* too large"),
        (1e160, {"scaling": None}, "kernel of view 'view0' gave values that are NaN or infinite"),
        (1.0, {"coupling": 1e308}, "or a smaller coupling"),
        (1.0, {"coupling": 1e200, "regularization": 1e-200}, "a larger regularization or a smaller coupling"),
        (1.0, {"bias_variance": 1e308}, "too large to compute with"),
    ],
)
def test_overflow_is_one_clear_error_and_no_warning_of_numpy(form, size, settings, message):
    """Warnings are errors in tests: one of numpy would come instead of the ValueError."""
    with pytest.raises(ValueError, match=message):
        fitted_decision(draw_views(7, n_unlabeled=10), size, {"form": form, **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "logistic"}, "form"),
        ({"regularization": [0.1, 0.0]}, "regularization of view 'view1' must be a number greater than 0, but is 0.0"),
        ({"coupling": -1.0}, "coupling"),
    ],
)
def test_bad_settings_are_named(settings, message):
    views = draw_views(7)
    with pytest.raises(ValueError, match=message):
        CoRLS(**settings).fit(list(views.Phi), views.y > 0.0)
