"""The box-constrained dual: against a second solver, and by the optimality conditions at the returned point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmvmed.core import box_qp
from cmvmed.core.box_qp import duality_gap, gradient, kkt_violation, solve_box_qps
from tests.core.factories import rejects
from tests.core.reference import clarabel_box_qp


def full_rank_features(rng, n):
    return rng.normal(size=(n, 2 * n)) / np.sqrt(2 * n), rng.choice([-1.0, 1.0], n)


def few_features(rng, n):
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0.0, 1.0, -1.0)


def opposite_labels(rng, n):
    """Every row occurs twice, once with each label."""
    return np.repeat(rng.normal(size=(n // 2, 6)), 2, axis=0), np.tile([1.0, -1.0], n // 2)


def smooth_functions(rng, n):
    """A Gaussian kernel matrix: full rank on paper, singular in double precision."""
    Z = rng.normal(size=(n, 2))
    K = np.exp(-0.3 * ((Z[:, None] - Z) ** 2).sum(axis=2))
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0)), rng.choice([-1.0, 1.0], n)


FAMILIES = {
    "full rank": full_rank_features,
    "rank 4": few_features,
    "duplicates with opposite labels": opposite_labels,
    "Gaussian kernel": smooth_functions,
}
DECADES = [1e-4, 1e-2, 1.0, 1e2, 1e4]


def box_problem(family, C, seed, *, n=40, n_fixed=3):
    """The dual of a view with mean m⁰ from elsewhere; the first ``n_fixed`` rows have no hinge."""
    rng = np.random.default_rng(seed)
    Phi, y = FAMILIES[family](rng, n)
    upper = np.full(n, C)
    upper[:n_fixed] = 0.0
    return (Phi @ Phi.T) * y * y[:, None], 1.0 - 0.3 * y * rng.normal(size=n), upper


def solve_box_qp(Q, g, upper, start):
    """The solution (n,) for one function."""
    return solve_box_qps(Q, g[:, None], np.ones((g.size, 1)), upper[:, None], start[:, None])[:, 0]


def dual_value(Q, g, alpha):
    return g @ alpha - 0.5 * alpha @ Q @ alpha


def check_optimal(Q, g, upper, alpha, *, atol=1e-6):
    """C7: the optimality conditions at the returned point, each with its own sign."""
    slope = g - Q @ alpha
    assert ((alpha >= 0.0) & (alpha <= upper)).all()
    assert slope[(alpha == 0.0) & (upper > 0.0)].max(initial=-np.inf) <= atol
    assert slope[(alpha == upper) & (upper > 0.0)].min(initial=np.inf) >= -atol
    inside = (alpha > 0.0) & (alpha < upper)
    assert np.abs(slope[inside]).max(initial=0.0) <= atol


def check_same_optimum(Q, g, upper, alpha, *, rtol=1e-7):
    """As good as the second solver's point, with the same gradient, which is unique even where α is not."""
    other = clarabel_box_qp(Q, g, upper)
    value, best = dual_value(Q, g, alpha), dual_value(Q, g, other)
    assert value >= best - rtol * abs(best)
    size = np.abs(g).max() + np.abs(Q @ other).max()
    np.testing.assert_allclose(Q @ alpha, Q @ other, rtol=0.0, atol=100.0 * rtol * size)


@pytest.mark.parametrize("C", DECADES)
@pytest.mark.parametrize("family", FAMILIES)
def test_same_optimum_as_clarabel(family, C):
    for seed in range(3):
        Q, g, upper = box_problem(family, C, seed)
        alpha = solve_box_qp(Q, g, upper, np.zeros_like(g))
        check_optimal(Q, g, upper, alpha)
        check_same_optimum(Q, g, upper, alpha)
        assert (alpha[upper == 0.0] == 0.0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_checks_reject_points_that_are_not_optimal(family):
    Q, g, upper = box_problem(family, 1.0, 0)
    alpha = solve_box_qp(Q, g, upper, np.zeros_like(g))
    rejects(check_optimal, Q, g, upper, 0.9 * alpha)
    rejects(check_same_optimum, Q, g, upper, 0.9 * alpha)
    wrong_sign = solve_box_qp(Q, -g, upper, np.zeros_like(g))
    rejects(check_optimal, Q, g, upper, wrong_sign)
    rejects(check_same_optimum, Q, g, upper, wrong_sign)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), rank=st.integers(0, 12), log_C=st.floats(-3.0, 4.0))
def test_optimal_for_any_rank(seed, n, rank, log_C):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, rank))
    upper = rng.choice([0.0, 10.0**log_C, 3.0 * 10.0**log_C], size=n)
    Q, g = Phi @ Phi.T, rng.normal(size=n)
    alpha = solve_box_qp(Q, g, upper, np.zeros(n))
    check_optimal(Q, g, upper, alpha)


@pytest.mark.parametrize("family", FAMILIES)
def test_start_does_not_matter(family):
    Q, g, upper = box_problem(family, 1.0, 1)
    cold = solve_box_qp(Q, g, upper, np.zeros_like(g))
    for start in (upper, -upper - 1.0, 10.0 * upper + 1.0, cold):
        warm = solve_box_qp(Q, g, upper, start)
        check_optimal(Q, g, upper, warm)
        np.testing.assert_allclose(Q @ warm, Q @ cold, rtol=0.0, atol=1e-7)


def test_bounds_whose_products_overflow_give_no_warning_of_numpy():
    """Warnings are errors in tests."""
    Q, g = 1e3 * np.eye(3), np.ones(3)
    upper, labels = np.full((3, 1), 1e306), np.ones((3, 1))
    alpha = solve_box_qps(Q, g[:, None], labels, upper, np.zeros((3, 1)))
    np.testing.assert_allclose(alpha[:, 0], 1e-3)


def test_without_rows_or_with_a_box_of_size_zero():
    none = np.empty(0)
    assert solve_box_qp(np.empty((0, 0)), none, none, none).shape == (0,)
    assert kkt_violation(none, none, none) == duality_gap(none, none, none) == 0.0
    Q, g, _ = box_problem("rank 4", 1.0, 0)
    np.testing.assert_array_equal(solve_box_qp(Q, g, np.zeros_like(g), g), np.zeros_like(g))


def test_with_a_zero_kernel_every_variable_is_at_the_bound_in_the_direction_of_its_gradient():
    g, upper = np.array([1.0, -1.0, 2.0]), np.array([0.5, 0.5, 3.0])
    np.testing.assert_array_equal(solve_box_qp(np.zeros((3, 3)), g, upper, np.zeros(3)), [0.5, 0.0, 3.0])


def explicit_gap(Phi, y, g, C, alpha):
    """C6: primal minus dual of hinge + ½‖w - w⁰‖², where g = 1 - y m⁰, in the weights w - w⁰ = Φᵀ(y∘α)."""
    w = Phi.T @ (y * alpha)
    primal = 0.5 * w @ w + C * np.maximum(g - y * (Phi @ w), 0.0).sum()
    return primal - (g @ alpha - 0.5 * w @ w)


def check_gap(gap_of):
    """A gap is primal minus dual at any feasible point, optimal or not."""
    rng = np.random.default_rng(3)
    for C in (0.1, 1.0, 10.0):
        Phi, y = few_features(rng, 20)
        g = 1.0 - 0.5 * rng.normal(size=20)
        Q, upper = (Phi @ Phi.T) * y * y[:, None], np.full(20, C)
        alpha = rng.uniform(0.0, C, 20)
        gap = gap_of(gradient(Q, g, alpha), alpha, upper)
        np.testing.assert_allclose(gap, explicit_gap(Phi, y, g, C, alpha), rtol=1e-10)
        assert gap >= 0.0


def test_c06_duality_gap_is_primal_minus_dual_at_any_point():
    check_gap(duality_gap)
    rejects(check_gap, lambda grad, alpha, upper: float((upper * np.maximum(-grad, 0.0) + alpha * grad).sum()))
    rejects(check_gap, lambda grad, alpha, upper: float((upper * np.maximum(grad, 0.0)).sum()))


def check_violation(violation_of):
    """Each condition is violated in one direction only."""
    alpha, upper = np.array([0.0, 0.5, 1.0]), np.ones(3)
    assert violation_of(np.array([-5.0, 0.0, 5.0]), alpha, upper) == 0.0
    assert violation_of(np.array([2.0, 0.0, 0.0]), alpha, upper) == 2.0
    assert violation_of(np.array([0.0, -3.0, 0.0]), alpha, upper) == 3.0
    assert violation_of(np.array([0.0, 3.0, 0.0]), alpha, upper) == 3.0
    assert violation_of(np.array([0.0, 0.0, -4.0]), alpha, upper) == 4.0
    assert violation_of(np.array([9.0]), np.zeros(1), np.zeros(1)) == 0.0


def test_c07_violation_has_the_right_signs():
    check_violation(kkt_violation)
    rejects(check_violation, lambda grad, alpha, upper: kkt_violation(-grad, alpha, upper))
    rejects(check_violation, lambda grad, alpha, upper: float(np.abs(grad).max()))
    rejects(check_violation, lambda grad, alpha, upper: float((np.abs(grad) * alpha * (upper - alpha)).max()))


def test_equal_rows_with_contradicting_labels_in_a_wide_box():
    """Every row three times, once with the other label: both the Newton and the interior-point systems are singular."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Phi = np.repeat(rng.normal(size=(20, 30)), 3, axis=0)
        y = np.repeat(rng.choice([-1.0, 1.0], 20), 3)
        y[::3] *= -1.0
        Q, g, upper = 100.0 * (Phi @ Phi.T) * y * y[:, None], np.ones(60), np.full(60, 1e3)
        alpha = solve_box_qp(Q, g, upper, np.zeros(60))
        check_optimal(Q, g, upper, alpha, atol=1e-8)
        rejects(check_optimal, Q, g, upper, 0.999 * alpha, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("C", DECADES)
def test_several_functions_are_solved_as_one_by_one(family, C):
    """From zero, and after a small change from the last solution, where a step for all functions at once is tried first."""
    rng = np.random.default_rng(3)
    Phi, _ = FAMILIES[family](rng, 40)
    S, Y = Phi @ Phi.T, rng.choice([-1.0, 1.0], (40, 3))
    upper = np.where(np.arange(40)[:, None] < 3, 0.0, np.full((40, 3), C))
    G, start = 1.0 - 0.3 * Y * rng.normal(size=(40, 3)), np.zeros((40, 3))
    for change in (0.0, 1e-3, 1e-5):
        G = G + change * rng.normal(size=G.shape)
        start = solve_box_qps(S, G, Y, upper, start)
        for c in range(3):
            check_optimal(S * Y[:, c] * Y[:, c, None], G[:, c], upper[:, c], start[:, c])


def many_functions(seed, n=300):
    """Duals of one Gaussian kernel of full rank, whose projected Newton steps zigzag."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 20))
    S = 5.0 * np.exp(-0.02 * ((Z[:, None] - Z) ** 2).sum(axis=2)) + 0.25 * Z @ Z.T
    Y = np.where(Z[:, :4] + rng.normal(size=(n, 4)) > 0.0, 1.0, -1.0)
    return S, np.ones((n, 4)), Y, np.ones((n, 4))


def test_active_sets_solve_full_rank_duals_from_zero_without_shortened_steps(monkeypatch):
    S, G, Y, upper = many_functions(0)
    y = Y[:, 0]
    _, violation = box_qp._projected_newton(S * y * y[:, None], G[:, 0], upper[:, 0], np.zeros(300))
    assert violation > 1e-3
    monkeypatch.setattr(box_qp, "_from_proximal_points", lambda *problem: pytest.fail("solved one by one"))
    alpha = solve_box_qps(S, G, Y, upper, np.zeros((300, 4)))
    for c in range(4):
        check_optimal(S * Y[:, c] * Y[:, c, None], G[:, c], upper[:, c], alpha[:, c], atol=1e-9)


def test_active_sets_that_repeat_are_given_up():
    """Kernels of rank four in wide boxes: the rest is solved one by one."""
    rng = np.random.default_rng(3)
    Phi, _ = few_features(rng, 40)
    S, Y = Phi @ Phi.T, rng.choice([-1.0, 1.0], (40, 3))
    _, solved = box_qp._active_sets(S, np.ones((40, 3)), Y, np.full((40, 3), 1e4), np.zeros((40, 3)))
    assert not solved.all()


def overlapping_classes(seed, n=300):
    """Duals of two overlapping classes and a Gaussian kernel, in whose solution most variables are at a bound."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], (n, 1))
    Z = rng.normal(size=(n, 6)) + 0.4 * y
    S = 10.0 * np.exp(-0.1 * ((Z[:, None] - Z) ** 2).sum(axis=2)) + 1.0
    return S, np.ones((n, 1)), y, np.ones((n, 1))


def test_active_sets_that_repeat_end_from_proximal_points_without_interior_points(monkeypatch):
    monkeypatch.setattr(box_qp, "_from_interior_point", lambda *problem: pytest.fail("the last resort"))
    for seed in (0, 2, 3):
        S, G, Y, upper = overlapping_classes(seed)
        _, solved = box_qp._active_sets(S, G, Y, upper, np.zeros((300, 1)))
        assert not solved.any()
        alpha = solve_box_qps(S, G, Y, upper, np.zeros((300, 1)))
        check_optimal(S * Y * Y.T, G[:, 0], upper[:, 0], alpha[:, 0], atol=1e-9)
        assert ((alpha == 0.0) | (alpha == upper)).mean() > 0.5


@pytest.mark.parametrize("mu", [10.0, 1.0])
def test_proximal_points_are_optimal(mu):
    """At a proximal point the gradient less its pull to the center meets the optimality conditions."""
    S, G, Y, upper = overlapping_classes(0)
    center = np.random.default_rng(0).uniform(size=(300, 1))
    point = box_qp._proximal_point(S, G, Y, upper, center, mu)
    Q = S * Y * Y.T + mu * np.eye(300)
    check_optimal(Q, (G + mu * center)[:, 0], upper[:, 0], point[:, 0], atol=1e-6)
    rejects(check_optimal, Q, G[:, 0], upper[:, 0], point[:, 0], atol=1e-6)


def test_one_step_is_enough_after_a_small_change(monkeypatch):
    Phi, _ = full_rank_features(np.random.default_rng(0), 30)
    S, Y, upper = Phi @ Phi.T, np.ones((30, 2)), np.ones((30, 2))
    start = solve_box_qps(S, np.ones((30, 2)), Y, upper, np.zeros((30, 2)))
    monkeypatch.setattr(box_qp, "_from_proximal_points", lambda *problem: pytest.fail("solved one by one"))
    G = np.full((30, 2), 1.0 + 1e-6)
    check_optimal(S, G[:, 0], upper[:, 0], solve_box_qps(S, G, Y, upper, start)[:, 0])
