"""MV-MED: the identities of its dual, each with a broken twin, and what the estimator makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from cmvmed.baselines.duals import SharedMarginDual, solve_mvmed
from cmvmed.estimators.mvmed import MVMED
from tests.baselines.problems import Views, draw_views, mvmed_primal
from tests.core.factories import rejects

SETTINGS = [
    {},
    {"weighted": True},
    {"missing": 0.3, "weighted": True},
    {"widths": (30, 30)},
    {"widths": (4,)},
    {"widths": (3, 4, 2), "missing": 0.2},
]


def solve(views, c, *, kernels=None):
    """Multipliers λ_v, per view (m_v,), and scores per view."""
    kernels = views.kernels if kernels is None else kernels
    coefficients, violation = solve_mvmed(kernels, views.rows, views.y, views.weights, c)
    assert violation <= 1e-8
    lam = [g * views.y[rows] for g, rows in zip(coefficients, views.rows, strict=True)]
    return lam, [K @ g for K, g in zip(views.kernels, coefficients, strict=True)]


def dual_value(views, lam, fs, c):
    total = np.zeros(views.y.size)
    for part, rows in zip(lam, views.rows, strict=True):
        total[rows] += part
    quadratic = sum(part @ (views.y[rows] * f) for part, rows, f in zip(lam, views.rows, fs, strict=True))
    with np.errstate(divide="ignore"):  # -inf outside the domain
        barrier = np.log(np.maximum(1.0 - total / (views.weights * c), 0.0))
    return (total + views.weights * barrier).sum() - 0.5 * quadratic


def check_primal_equals_dual(views, lam, fs, c, *, rtol=1e-6):
    value, primal_scores = mvmed_primal(views, c=c)
    np.testing.assert_allclose(dual_value(views, lam, fs, c), value, rtol=rtol)
    for ours, theirs in zip(fs, primal_scores, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("c", [1.2, 5.0, 100.0])
@pytest.mark.parametrize("given", SETTINGS)
def test_primal_equals_dual(given, c):
    views = draw_views(1, **given)
    check_primal_equals_dual(views, *solve(views, c), c)
    rejects(check_primal_equals_dual, views, *solve(views, 1.1 * c), c)


def alone(views, i):
    """The problem of one view."""
    return Views((views.Phi[i],), (views.rows[i],), views.y, views.weights)


def test_views_that_do_not_share_their_margins_solve_another_problem():
    views = draw_views(1)
    parts = [solve(alone(views, i), 5.0) for i in (0, 1)]
    separate = [part[0][0] for part in parts], [part[1][0] for part in parts]
    rejects(check_primal_equals_dual, views, *separate, 5.0)


def check_shared_margin(views, lam, fs, c, *, n_shared, atol=1e-8):
    """Where both multipliers are positive, y f_1 = y f_2 = 1 - 1/(c - λ_1 - λ_2)."""
    both = (lam[0] > 0.0) & (lam[1] > 0.0)
    assert both.sum() >= n_shared
    margin = 1.0 - 1.0 / (c - lam[0] - lam[1])
    for f in fs:
        np.testing.assert_allclose((views.y * f)[both], margin[both], rtol=0.0, atol=atol)


@pytest.mark.parametrize("c", [1.5, 5.0, 100.0])
def test_views_share_the_margin_of_their_support_vectors(c):
    views = draw_views(2, n_labeled=30, widths=(40, 40))
    lam, fs = solve(views, c)
    check_shared_margin(views, lam, fs, c, n_shared=5)
    rejects(check_shared_margin, views, lam, fs, 1.01 * c, n_shared=5)
    rejects(check_shared_margin, views, lam, [fs[0], 1.01 * fs[1]], c, n_shared=5)


def jaakkola_med(K, y, c):
    """Multipliers of max Σ λ + log(1 - λ/c) - ½ (λ∘y)ᵀK(λ∘y), 0 <= λ < c, by a general optimizer."""
    Q = K * np.outer(y, y)

    def loss(lam):
        return 0.5 * lam @ Q @ lam - (lam + np.log1p(-lam / c)).sum(), Q @ lam - 1.0 + 1.0 / (c - lam)

    bounds = [(0.0, c - 1e-9)] * y.size
    return minimize(loss, np.full(y.size, 0.1), jac=True, bounds=bounds, options={"ftol": 1e-16, "gtol": 1e-10}).x


@pytest.mark.parametrize("c", [1.5, 5.0, 30.0])
def test_single_view_is_jaakkolas_med(c):
    views = draw_views(3, widths=(20,))
    (lam,), _ = solve(views, c)

    def check(rate):
        np.testing.assert_allclose(lam, jaakkola_med(views.kernels[0], views.y, rate), rtol=0.0, atol=1e-4)

    check(c)
    rejects(check, 1.1 * c)


def test_view_twice_is_one_view_of_doubled_covariance():
    """Two equal views split each multiplier, so each behaves like one view with half of it: K(λ/2) shares."""
    views = draw_views(4, widths=(20,))
    twice = Views(views.Phi * 2, views.rows * 2, views.y, views.weights)
    _, (first, second) = solve(twice, 5.0)
    _, (halved,) = solve(views, 5.0, kernels=[0.5 * views.kernels[0]])
    np.testing.assert_allclose(first, second, atol=1e-8)
    np.testing.assert_allclose(first, 0.5 * halved, atol=1e-8)
    rejects(np.testing.assert_allclose, first, halved, atol=1e-8)


def repeated(views, times):
    """Every row several times over: the multipliers are no longer unique, and the kernels singular."""
    n = views.y.size
    rows = tuple(np.arange(n * times) for _ in views.Phi)
    y, weights = np.repeat(views.y, times), np.repeat(views.weights, times)
    return Views(tuple(np.repeat(part, times, axis=0) for part in views.Phi), rows, y, weights)


@pytest.mark.parametrize("c", [1.5, 3.0, 30.0])
@pytest.mark.parametrize("variance", [1.0, 10.0])
def test_equal_rows_are_one_row_that_counts_as_often(c, variance):
    views = draw_views(10, n_labeled=20, widths=(4, 3))
    scaled = Views(tuple(np.sqrt(variance) * part for part in views.Phi), views.rows, views.y, views.weights)
    _, fs = solve(repeated(scaled, 4), c)

    def check(times):
        _, heavier = solve(Views(scaled.Phi, scaled.rows, scaled.y, times * scaled.weights), c)
        for ours, theirs in zip(fs, heavier, strict=True):
            np.testing.assert_allclose(ours[::4], theirs, rtol=0.0, atol=1e-6)

    check(4.0)
    rejects(check, 3.9)


@pytest.mark.parametrize("c", [10.0, 30.0])
def test_rows_that_repeat_and_contradict_each_other_are_solved(c):
    """A few patterns of two binary views, most of them repeated and some with both labels, as in advertisements."""
    rng = np.random.default_rng(0)
    patterns = [rng.integers(0, 2, size=(3, width)).astype(float) for width in (6, 8)]
    which = [np.zeros(40, dtype=int), rng.integers(0, 3, size=40)]
    y = np.where(rng.uniform(size=40) < 0.2, 1.0, -1.0)
    rows = tuple(np.arange(40) for _ in patterns)
    views = Views(tuple(part[index] for part, index in zip(patterns, which, strict=True)), rows, y, np.ones(40))
    kernels = [10.0 * np.exp(-((P[:, None] - P) ** 2).sum(axis=-1) / 8) + 0.1 for P in views.Phi]
    _, violation = solve_mvmed(kernels, views.rows, views.y, views.weights, c)
    assert violation <= 1e-8


def test_certificate_sees_wrong_points():
    views = draw_views(5)
    (first, second), _ = solve(views, 5.0)
    lam = np.concatenate([first, second])
    sign = np.tile(views.y, 2)
    Q = np.outer(sign, sign) * np.kron([[1, 0], [0, 0]], views.kernels[0])
    Q += np.outer(sign, sign) * np.kron([[0, 0], [0, 1]], views.kernels[1])
    dual = SharedMarginDual(Q, np.tile(np.arange(views.y.size), 2), views.weights, 5.0)
    assert dual.violation(lam) <= 1e-8
    assert all(dual.violation(wrong) > 1e-4 for wrong in (0.99 * lam, lam + 1e-3, np.zeros_like(lam)))


def test_estimator_solves_the_primal_with_bias_and_prior_variance_in_the_kernel():
    views = draw_views(6, weighted=True)
    X, y = list(views.Phi), views.y > 0.0
    given = {"kernel": "linear", "scaling": None, "prior_variance": [2.0, 0.5], "bias_variance": [0.3, 0.0]}
    model = MVMED(c=4.0, **given).fit(X, y, sample_weight=views.weights)

    def check(prior_variance, bias_variance):
        Phi = tuple(
            np.column_stack([np.sqrt(variance) * part, np.full(len(part), np.sqrt(bias))])
            for part, variance, bias in zip(X, prior_variance, bias_variance, strict=True)
        )
        _, primal_scores = mvmed_primal(Views(Phi, views.rows, views.y, views.weights), c=4.0)
        np.testing.assert_allclose(model.decision_function(X), np.mean(primal_scores, axis=0), rtol=0.0, atol=1e-4)

    check(given["prior_variance"], given["bias_variance"])
    rejects(check, given["prior_variance"], [0.0, 0.0])
    rejects(check, [1.0, 1.0], given["bias_variance"])
    assert model.kkt_violation_ <= 1e-8


def test_probability_is_the_logistic_of_the_pooled_score():
    views = draw_views(7)
    X = list(views.Phi)
    model = MVMED().fit(X, views.y > 0.0)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)), rtol=1e-12)


@pytest.mark.parametrize("c", [1.0, -2.0, "large", np.inf])
def test_bad_rates_are_refused(c):
    views = draw_views(8)
    with pytest.raises(ValueError, match="'c' parameter"):
        MVMED(c=c).fit(list(views.Phi), views.y > 0.0)


def test_unsolved_dual_warns(monkeypatch):
    monkeypatch.setattr("cmvmed.numerics.interior_point.MAX_STEPS", 2)
    views = draw_views(9)
    with pytest.warns(UserWarning, match="violates the optimality conditions by"):
        MVMED().fit(list(views.Phi), views.y > 0.0)
