"""SVM-2K: the identities of its dual, each with a broken twin, and what the estimator makes of it."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from cmvmed.baselines.duals import solve_two_view, svm2k_program, two_view_violation
from cmvmed.estimators.svm2k import SVM2K
from tests.baselines.problems import draw_views, svm2k_primal
from tests.core.factories import rejects

SETTINGS = [
    {"epsilon": 0.0},
    {"epsilon": 0.2},
    {"epsilon": 0.0, "missing": 0.3, "weighted": True},
    {"epsilon": 0.2, "missing": 0.3, "weighted": True, "n_unlabeled": 10},
    {"epsilon": 0.0, "n_unlabeled": 12},
    {"epsilon": 0.1, "C": 50.0, "D": 20.0},
]


def build(views, *, C=1.0, D=0.5, epsilon=0.0):
    """The program; its similarity runs over all rows of both views."""
    hinge = np.where(views.y != 0.0, C * views.weights, 0.0)
    return svm2k_program(views.kernels, views.rows, views.y, [hinge] * len(views.rows), D * views.weights, epsilon)


def scores(program, solution):
    return [K @ g + b for K, g, b in zip(program.kernels, solution.coefficients, solution.biases, strict=True)]


def dual_value(program, solution):
    quadratic = sum(g @ K @ g for K, g in zip(program.kernels, solution.coefficients, strict=True))
    return -program.cost @ solution.variables - 0.5 * quadratic


def check_primal_equals_dual(views, program, *, C=1.0, D=0.5, epsilon=0.0, rtol=1e-7):
    solution = solve_two_view(program)
    assert solution.violation <= 1e-7
    value, primal_scores = svm2k_primal(views, C=C, D=D, epsilon=epsilon, similar=np.ones(views.y.size, dtype=bool))
    np.testing.assert_allclose(dual_value(program, solution), value, rtol=rtol)
    for ours, theirs in zip(scores(program, solution), primal_scores, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("given", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_primal_equals_dual(given, seed):
    costs = {name: value for name, value in given.items() if name in ("C", "D", "epsilon")}
    views = draw_views(seed, **{name: value for name, value in given.items() if name not in costs})
    program = build(views, **costs)
    check_primal_equals_dual(views, program, **costs)
    same_signs = replace(program, signs=np.abs(program.signs) * program.signs[0].max())
    rejects(check_primal_equals_dual, views, same_signs, **costs)
    rejects(check_primal_equals_dual, views, build(views, **costs | {"epsilon": 0.4}), **costs)


def separate_machines(X, y, kernel, C):
    return [SVC(kernel=kernel, C=C, tol=1e-9).fit(part, y).decision_function(part) for part in X]


@pytest.mark.parametrize("C", [0.3, 3.0])
def test_without_similarity_is_two_support_vector_machines(C):
    views = draw_views(1, n_labeled=40)
    y = views.y > 0.0

    def check(D, *, atol=1e-6):
        model = SVM2K(kernel="linear", scaling=None, C=C, D=D).fit(list(views.Phi), y)
        pooled = np.mean(separate_machines(views.Phi, y, "linear", C), axis=0)
        np.testing.assert_allclose(model.decision_function(list(views.Phi)), pooled, rtol=0.0, atol=atol)

    check(0.0)
    rejects(check, 0.1)


def test_single_view_is_a_support_vector_machine():
    views = draw_views(2, n_labeled=30)
    X, y = views.Phi[0], views.y > 0.0
    model = SVM2K(kernel="linear", scaling=None, C=2.0, D=7.0).fit(X, y)
    (reference,) = separate_machines([X], y, "linear", 2.0)
    np.testing.assert_allclose(model.decision_function(X), reference, rtol=0.0, atol=1e-6)


def check_free_support_vectors(program, solution, *, n_free, atol=1e-7):
    """Where 0 < α < C the margin y f is 1; where 0 < β < D the scores differ by ε."""
    slopes = program.slopes(solution.variables, solution.biases)
    free = (solution.variables > program.lower) & (solution.variables < program.upper)
    assert free.sum() >= n_free
    np.testing.assert_allclose(slopes[free], 0.0, atol=atol)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_free_support_vectors_lie_on_the_margin(epsilon):
    program = build(draw_views(3, n_labeled=30), epsilon=epsilon)
    solution = solve_two_view(program)
    check_free_support_vectors(program, solution, n_free=4)
    rejects(check_free_support_vectors, program, replace(solution, biases=solution.biases + 1e-3), n_free=4)
    rejects(check_free_support_vectors, program, replace(solution, variables=0.99 * solution.variables), n_free=4)


def test_certificate_sees_wrong_points():
    program = build(draw_views(4), epsilon=0.1)
    solution = solve_two_view(program)
    x, biases = solution.variables, solution.biases
    assert two_view_violation(program, x, biases) == solution.violation <= 1e-8
    wrong = [(x, biases + 1e-3), (0.99 * x, biases), (x + 1e-3, biases), (x - 1e-3, biases), (0.0 * x, 0.0 * biases)]
    assert all(two_view_violation(program, *point) > 1e-4 for point in wrong)


def test_only_one_of_each_pair_of_similarity_multipliers_is_used():
    views = draw_views(5)
    plus, minus = solve_two_view(build(views, epsilon=0.1)).variables[-2 * views.y.size :].reshape(2, -1)
    assert (plus * minus == 0.0).all()
    assert plus.any()
    assert minus.any()


def test_views_disagree_less_the_more_it_costs():
    views = draw_views(6, n_unlabeled=20)

    def disagreement(D):
        first, second = (program := build(views, D=D)) and scores(program, solve_two_view(program))
        return np.abs(first - second).sum()

    steps = [disagreement(D) for D in (0.0, 0.01, 0.1, 1.0, 10.0)]
    assert (np.diff(steps) < 0.0).all()
    assert steps[-1] < 0.05 * steps[0]


def test_view_with_labels_of_one_class_only_gets_a_bias_of_that_class():
    views = draw_views(7, n_labeled=8)
    rows = (np.arange(8), np.arange(0, 8, 2))  # the second view has positive rows only
    one_sided = replace(views, rows=rows, Phi=(views.Phi[0], views.Phi[1][rows[1]]))
    solution = solve_two_view(build(one_sided, D=0.0))
    assert solution.violation <= 1e-8
    assert not solution.coefficients[1].any()
    assert solution.biases[1] == 1.0


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_view_without_labels_follows_the_other_on_unlabeled_rows(epsilon):
    views = draw_views(14, n_unlabeled=12)
    unlabeled = views.rows[1][views.y[views.rows[1]] == 0.0]
    views = replace(views, rows=(views.rows[0], unlabeled), Phi=(views.Phi[0], views.Phi[1][unlabeled]))
    check_primal_equals_dual(views, build(views, epsilon=epsilon), epsilon=epsilon)
    rejects(check_primal_equals_dual, views, build(views, D=0.0), epsilon=epsilon)


def fit_pair(views, y, **settings):
    return SVM2K(kernel="linear", scaling=None, **settings).fit(list(views.Phi), y)


def test_transductive_without_unlabeled_rows_is_the_plain_machine():
    views = draw_views(8, n_labeled=20, n_unlabeled=15)
    X = list(views.Phi)

    def check(n_rows):
        part, y = replace(views, Phi=tuple(Phi[:n_rows] for Phi in views.Phi)), views.y[:n_rows].astype(int)
        plain, transductive = (fit_pair(part, y, unlabeled=0, transductive=choice) for choice in (False, True))
        np.testing.assert_allclose(transductive.decision_function(X), plain.decision_function(X), atol=1e-7)

    check(20)
    rejects(check, 35)


def test_estimator_solves_the_transductive_primal():
    views = draw_views(9, n_labeled=12, n_unlabeled=15, weighted=True)
    model = SVM2K(kernel="linear", scaling=None, C=2.0, D=0.7, epsilon=0.1, transductive=True, unlabeled=0)
    model.fit(list(views.Phi), views.y.astype(int), sample_weight=views.weights)

    def check(similar):
        _, primal_scores = svm2k_primal(views, C=2.0, D=0.7, epsilon=0.1, similar=similar)
        pooled = np.mean(primal_scores, axis=0)
        np.testing.assert_allclose(model.decision_function(list(views.Phi)), pooled, rtol=0.0, atol=1e-4)

    check(np.ones(27, dtype=bool))
    rejects(check, views.y != 0.0)
    assert model.kkt_violation_ <= 1e-7


def test_three_views_are_refused():
    views = draw_views(10, widths=(2, 2, 2))
    with pytest.raises(ValueError, match=r"two views, but X has 3: \['view0', 'view1', 'view2'\]"):
        SVM2K().fit(list(views.Phi), views.y > 0.0)


def test_absent_solver_is_explained(monkeypatch):
    views = draw_views(11)
    monkeypatch.setitem(sys.modules, "piqp", None)
    with pytest.raises(ImportError, match=r"install .*\[baselines\]"):
        SVM2K().fit(list(views.Phi), views.y > 0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"D": -1.0}, "'D' parameter"),
        ({"epsilon": "small"}, "epsilon"),
        ({"C": [1.0, 0.0]}, "C of view 'view1' must be a number greater than 0, but is 0.0"),
        ({"transductive": "yes"}, "transductive"),
    ],
)
def test_bad_settings_are_named(settings, message):
    views = draw_views(12)
    with pytest.raises(ValueError, match=message):
        SVM2K(**settings).fit(list(views.Phi), views.y > 0.0)


def test_unsolved_program_warns(monkeypatch):
    monkeypatch.setattr("cmvmed.baselines.duals.MAX_SOLVER_STEPS", 2)
    views = draw_views(13)
    with pytest.warns(UserWarning, match="violates the optimality conditions by"):
        SVM2K().fit(list(views.Phi), views.y > 0.0)
