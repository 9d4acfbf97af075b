"""Identities C1 to C20 of the method, each with a broken version that the same check rejects.

Notation as in docs/theory.md. More tests of C6, C7, C10, C11, C13 and C20 are in the test modules of the functions
concerned.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

from cmvmed import CMVMED, MED
from cmvmed.core.annealing import step_view
from cmvmed.core.consensus import balancing_offset, positive_probability, soft_labels, update_consensus
from cmvmed.core.full_kernel import CholeskyView, SpectralView
from cmvmed.core.posterior import scaled, supervised_state, update_view
from cmvmed.core.surrogates import (
    AsPrinted,
    Bohning,
    Jaakkola,
    Newton,
    Quadrature,
    jaakkola_curvature,
    logistic_curvature,
)
from tests.core.factories import (
    draw_labels,
    draw_problem,
    draw_sensor,
    half_steps,
    independent_states,
    make_sensor,
    rejects,
    squared_norm,
)
from tests.core.reference import clarabel_box_qp, gaussian_kl, gaussian_posterior, state_weights

LAM = 0.7
COMPLETE = {"bohning": Bohning(), "jaakkola": Jaakkola(), "exact": Quadrature(), "newton": Newton()}


def draw_table(seed, *, n_rows=50, n_views=2, width=3, n_classes=2, n_labeled=10):
    """One table of views side by side, and y with -1 for most rows."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.arange(n_rows) % n_classes)
    X = np.hstack(
        [1.2 * rng.normal(size=(n_classes, width))[classes] + rng.normal(size=(n_rows, width)) for _ in range(n_views)]
    )
    y = np.full(n_rows, -1)
    for c in range(n_classes):
        some = np.flatnonzero(classes == c)[: n_labeled // n_classes]
        y[some] = c
    return X, y


def plain_cmvmed(**changes):
    """The method without automatic choices, on two views of three columns."""
    settings = {
        "views": [3, 3],
        "kernel": "rbf",
        "gamma": 0.2,
        "scaling": None,
        "prior_variance": 1.6,
        "bias_variance": 0.0,
        "class_prior": None,
        "view_weights": "uniform",
        "consensus_weight": 1.0,
        "temperature": 0.5,
        "members": None,
        "n_stages": 3,
        "max_iter": 200,
    }
    return CMVMED(**(settings | changes))


# ------------------------------------------------------------------ C1, C2: what the paper prints


def check_c01_consensus_is_ignored(surrogate):
    problem, _ = draw_problem(0, spectral=False)
    state, rng = independent_states(problem)[0], np.random.default_rng(0)
    first, second = (step_view(problem, 0, surrogate, state, rng.dirichlet(np.ones(2), size=24), LAM) for _ in range(2))
    np.testing.assert_array_equal(first.m_U, second.m_U)
    np.testing.assert_array_equal(first.m_L, second.m_L)


def test_c01_printed_step_ignores_the_consensus_and_the_complete_ones_do_not():
    check_c01_consensus_is_ignored(AsPrinted())
    for surrogate in COMPLETE.values():
        rejects(check_c01_consensus_is_ignored, surrogate)


def check_c02_view_ignores_the_other(algorithm):
    X, y = draw_table(0)
    both = plain_cmvmed(algorithm=algorithm).fit(X, y).decision_function_by_view(X)
    alone = plain_cmvmed(algorithm=algorithm, views=[3]).fit(X[:, :3], y).decision_function_by_view(X[:, :3])
    np.testing.assert_array_equal(both["view0"], alone["view0"])


def test_c02_printed_view_is_the_same_with_and_without_the_other():
    check_c02_view_ignores_the_other("printed")
    rejects(check_c02_view_ignores_the_other, "bohning")
    rejects(check_c02_view_ignores_the_other, "newton")


def printed_algorithm(views_L, views_U, y, sigma2, gamma, n_steps, *, mean_factor=1.0, curvature=logistic_curvature):
    """The paper's steps 1 and 2 with its printed equations; returns each view's means on U.

    Step 1 is the MED of each view. Step 2b solves the printed dual with K̃ = K_L - λ k_ULᵀ [M⁻¹/σ² + λ K_U]⁻¹ k_UL; its
    mean Σ y α Φ̃(x) has no σ² (``mean_factor=1``).
    """

    def kernel(A, B):
        return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))

    means = []
    for X_L, X_U in zip(views_L, views_U, strict=True):
        K_L, K_U, k_UL = kernel(X_L, X_L), kernel(X_U, X_U), kernel(X_U, X_L)
        alpha = clarabel_box_qp(sigma2 * K_L * np.outer(y, y), np.ones(y.size), np.ones(y.size))
        m = sigma2 * k_UL @ (y * alpha)
        for t in range(1, n_steps + 1):
            lam = 1.0 - np.exp(-0.5 * t)
            M = np.diag(curvature(m))
            bracket = np.linalg.inv(M) / sigma2 + lam * K_U
            new_L = K_L - lam * k_UL.T @ np.linalg.solve(bracket, k_UL)
            new_UL = k_UL - lam * K_U @ np.linalg.solve(bracket, k_UL)
            alpha = clarabel_box_qp(sigma2 * new_L * np.outer(y, y), np.ones(y.size), np.ones(y.size))
            m = mean_factor * new_UL @ (y * alpha)
        means.append(m)
    return means


def check_printed_algorithm(**broken):
    X, y = draw_table(1, n_rows=40)
    labeled, sigma2, gamma = y >= 0, 2.5, 0.2
    settings = {"gamma": gamma, "scaling": None, "prior_variance": sigma2, "n_stages": 4}
    model = CMVMED.paper(algorithm="printed", views=[3, 3], **settings).fit(X, y)
    ours = model.decision_function_by_view(X[~labeled])
    views_L, views_U = ([X[rows][:, :3], X[rows][:, 3:]] for rows in (labeled, ~labeled))
    printed = printed_algorithm(views_L, views_U, 2.0 * y[labeled] - 1.0, sigma2, gamma, 4, **broken)
    for name, m in zip(("view0", "view1"), printed, strict=True):
        np.testing.assert_allclose(ours[name], m, rtol=0.0, atol=1e-6)
    consensus = expit(0.5 * (printed[0] + printed[1]))
    np.testing.assert_allclose(model.predict_proba(X[~labeled])[:, 1], consensus, rtol=0.0, atol=1e-6)


def test_paper_preset_with_the_printed_algorithm_follows_the_printed_equations():
    check_printed_algorithm()
    rejects(check_printed_algorithm, mean_factor=2.5)
    rejects(check_printed_algorithm, curvature=jaakkola_curvature)


# ------------------------------------------------------------------ C3 to C8: the view update


def check_c03_is_a_support_vector_machine(C_svm, *, kernel="linear", C=0.7, sigma2=1.9):
    """MED's score is that of a support vector machine without intercept, of penalty ``C_svm``, on explicit features."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 3))
    labeled = np.arange(50) < 40
    y = np.where(labeled, X[:, 0] + rng.normal(size=50) > 0.0, -1)
    # (x·z + 1)² has the features 1, √2 x_i, x_i², √2 x_i x_j
    powers = PolynomialFeatures(2).fit(X)
    factor = np.where((powers.powers_.sum(axis=1) == 0) | (powers.powers_.max(axis=1) == 2), 1.0, np.sqrt(2.0))
    features = {"linear": X, "polynomial": powers.transform(X) * factor}[kernel]
    kind = {"linear": "linear", "polynomial": lambda A, B: (A @ B.T + 1.0) ** 2}[kernel]
    med = MED(kernel=kind, C=C, prior_variance=sigma2, scaling=None, bias_variance=0.0).fit(X, y)
    svm = LinearSVC(loss="hinge", fit_intercept=False, C=C_svm, tol=1e-10, max_iter=2_000_000, random_state=0)
    svm.fit(features[labeled], y[labeled])
    np.testing.assert_allclose(
        med.decision_function(X), svm.decision_function(features), rtol=0.0, atol=1e-6 * np.abs(features).max()
    )


@pytest.mark.parametrize(
    ("kernel", "C"), [("linear", 0.01), ("linear", 0.5), ("polynomial", 0.01), ("polynomial", 0.2)]
)
def test_c03_without_unlabeled_rows_a_view_is_a_support_vector_machine(kernel, C):
    check_c03_is_a_support_vector_machine(1.9 * C, kernel=kernel, C=C)
    rejects(check_c03_is_a_support_vector_machine, C, kernel=kernel, C=C)
    rejects(check_c03_is_a_support_vector_machine, C / 1.9, kernel=kernel, C=C)


def test_c03_holds_for_a_wide_box_and_a_singular_kernel():
    """With three features the solution depends little on a large penalty, so only a much smaller one is rejected."""
    check_c03_is_a_support_vector_machine(1.9 * 30.0, C=30.0)
    rejects(check_c03_is_a_support_vector_machine, 0.1, C=30.0)


def check_c04_primal(sensor, view, a, *, power=1):
    """The posterior is ΦΣΦᵀ and Φŵ with Σ⁻¹ = I/σ² + λ ΦᵀAΦ; ``power=-1`` is the printed, uninverted covariance."""
    rng = np.random.default_rng(4)
    b, tau = rng.normal(size=14), rng.normal(size=8)
    _, covariance = gaussian_posterior(sensor, LAM, a, b, tau)
    covariance = np.linalg.matrix_power(covariance, power)
    natural = sensor.Phi_L.T @ tau + LAM * sensor.Phi_U.T @ (sensor.blocks.weights * b)
    conditioned = view.condition(LAM, a)
    projected = conditioned.project_response(b[:, None])
    m_L = conditioned.labeled_mean(projected)[:, 0] + conditioned.S_LL @ tau
    m_U = conditioned.unlabeled(projected, tau[:, None])[1][:, 0]
    np.testing.assert_allclose(conditioned.S_LL, sensor.Phi_L @ covariance @ sensor.Phi_L.T, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(
        conditioned.variance_U, np.diag(sensor.Phi_U @ covariance @ sensor.Phi_U.T), rtol=0.0, atol=1e-10
    )
    np.testing.assert_allclose(m_L, sensor.Phi_L @ covariance @ natural, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(m_U, sensor.Phi_U @ covariance @ natural, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_c04_kernel_form_is_the_primal_form(weighted):
    sensor = draw_sensor(4, weighted=weighted)
    uneven, even = np.random.default_rng(4).uniform(0.0, 0.25, 14), np.full(14, 0.25)
    check_c04_primal(sensor, CholeskyView(sensor.blocks), uneven)
    check_c04_primal(sensor, SpectralView(sensor.blocks), even)
    rejects(check_c04_primal, sensor, CholeskyView(sensor.blocks), uneven, power=-1)
    rejects(check_c04_primal, sensor, SpectralView(sensor.blocks), uneven)


def check_c04_printed_kernel(S_LL_of):
    """σ²K̃ as printed in the paper is S_LL when a = ν."""
    sensor, nu = draw_sensor(5), logistic_curvature(np.random.default_rng(5).normal(size=14))
    blocks, sigma2 = sensor.blocks, sensor.blocks.prior_variance
    bracket = np.diag(1.0 / nu) / sigma2 + LAM * blocks.UU
    printed = blocks.LL - LAM * blocks.UL.T @ np.linalg.solve(bracket, blocks.UL)
    np.testing.assert_allclose(S_LL_of(CholeskyView(blocks), nu), sigma2 * printed, rtol=0.0, atol=1e-12)


def test_c04_covariance_is_the_printed_kernel():
    check_c04_printed_kernel(lambda view, nu: view.condition(LAM, nu).S_LL)
    rejects(check_c04_printed_kernel, lambda view, nu: view.condition(LAM, nu).S_LL / view.blocks.prior_variance)
    rejects(check_c04_printed_kernel, lambda view, nu: view.condition(1.0, nu).S_LL)


def check_c04_predicted_deviation(*, sigma2=1.6, bias_variance=0.3, power=1.0, curvature=0.25):
    """The deviation of a new row's score is √(φᵀΣφ), with the training rows' weights and the bias as a feature."""
    X, y = draw_table(4)
    weights = np.random.default_rng(4).uniform(0.5, 3.0, 50)
    model = plain_cmvmed(kernel="linear", bias_variance=0.3).fit(X, y, sample_weight=weights)
    lam, unlabeled, new = 1.0 - np.exp(-1.5), y < 0, draw_table(5)[0]
    for name, columns in (("view0", slice(0, 3)), ("view1", slice(3, 6))):
        constant = np.full((50, 1), np.sqrt(bias_variance / sigma2))
        Phi_U, Phi_x = (
            np.hstack([rows[:, columns], constant])[keep] for rows, keep in ((X, unlabeled), (new, slice(None)))
        )
        precision = np.eye(4) / sigma2 + lam * curvature * Phi_U.T @ (weights[unlabeled, None] ** power * Phi_U)
        variance = np.einsum("ni,in->n", Phi_x, np.linalg.solve(precision, Phi_x.T))
        deviation = model.decision_function_by_view(new, return_std=True)[name][1]
        np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-7)


def test_c04_predicted_deviation_is_the_primal_one():
    check_c04_predicted_deviation()
    for broken in ({"sigma2": 1.0}, {"bias_variance": 0.0}, {"power": 0.0}, {"curvature": 0.0}):
        rejects(check_c04_predicted_deviation, **broken)


def updated_state(surrogate, *, seed=6, n_functions=2, weighted=True, n_sweeps=2, C=0.8):
    sensor = draw_sensor(seed, weighted=weighted)
    Y, box = draw_labels(seed, 8, n_functions), np.full(8, C)
    q = np.random.default_rng(seed).uniform(size=(14, n_functions))
    model = CholeskyView(sensor.blocks)
    state = supervised_state(model, Y, box)
    for _ in range(n_sweeps):
        state = update_view(model, surrogate, state, q, Y, box, LAM)
    return sensor, state, q, Y, box


def posteriors(sensor, state):
    """Mean and covariance of each function from the state's pseudo-data, by section 3 of docs/theory.md."""
    a = np.broadcast_to(state.a, state.b.shape)
    return [gaussian_posterior(sensor, LAM, a[:, c], state.b[:, c], state.tau[:, c]) for c in range(state.b.shape[1])]


def check_c05_divergence(divergence_of, surrogate):
    sensor, state, *_ = updated_state(surrogate)
    expected = sum(gaussian_kl(*posterior, sensor.blocks.prior_variance) for posterior in posteriors(sensor, state))
    np.testing.assert_allclose(divergence_of(sensor, state), expected, rtol=1e-10)


def test_c05_divergence_is_the_textbook_one():
    def half_norm(sensor, state):
        return 0.5 * squared_norm(CholeskyView(sensor.blocks), state)

    def ours(sensor, state):
        return state.covariance_cost + half_norm(sensor, state)

    def without_trace(sensor, state):
        a = np.broadcast_to(state.a, state.b.shape)
        view = CholeskyView(sensor.blocks)
        return 0.5 * sum(view.condition(LAM, column).log_det for column in a.T) + half_norm(sensor, state)

    def with_wrong_sign(sensor, state):
        return -state.covariance_cost + half_norm(sensor, state)

    for surrogate in (Bohning(), Jaakkola()):
        check_c05_divergence(ours, surrogate)
        rejects(check_c05_divergence, without_trace, surrogate)
        rejects(check_c05_divergence, with_wrong_sign, surrogate)
        rejects(check_c05_divergence, half_norm, surrogate)


def primal_minus_dual(sensor, state, Y, C, alpha):
    """C6: ½ŵᵀΣ⁻¹ŵ - λ b·f_U + C Σ[1 - yf]₊ - {dual - ½λ² bᵀS_UU b}, summed over functions, at multipliers ``alpha``."""
    total, a = 0.0, np.broadcast_to(state.a, state.b.shape)
    weights = sensor.blocks.weights
    for c in range(Y.shape[1]):
        y, b = Y[:, c], weights * state.b[:, c]
        w, covariance = gaussian_posterior(sensor, LAM, a[:, c], state.b[:, c], y * alpha[:, c])
        S_LL, S_UU = (Phi @ covariance @ Phi.T for Phi in (sensor.Phi_L, sensor.Phi_U))
        m0_L = LAM * sensor.Phi_L @ covariance @ sensor.Phi_U.T @ b
        primal = 0.5 * w @ np.linalg.solve(covariance, w) - LAM * b @ sensor.Phi_U @ w
        primal += C * np.maximum(1.0 - y * (sensor.Phi_L @ w), 0.0).sum()
        tau = y * alpha[:, c]
        dual = alpha[:, c].sum() - tau @ m0_L - 0.5 * tau @ S_LL @ tau - 0.5 * LAM**2 * b @ S_UU @ b
        total += primal - dual
    return total


def check_c06_gap(surrogate, change):
    sensor, state, _, Y, _ = updated_state(surrogate)
    gap = primal_minus_dual(sensor, state, Y, 0.8, change(Y * state.tau))
    assert abs(gap) <= 1e-6 * squared_norm(CholeskyView(sensor.blocks), state)
    assert abs(gap - state.gap) <= 1e-8


@pytest.mark.parametrize("name", COMPLETE)
def test_c06_duality_gap_vanishes_and_is_reported(name):
    check_c06_gap(COMPLETE[name], lambda alpha: alpha)
    rejects(check_c06_gap, COMPLETE[name], lambda alpha: 0.9 * alpha)
    rejects(check_c06_gap, COMPLETE[name], lambda alpha: 0.8 - alpha)


def check_c07_conditions(surrogate, change, *, atol=1e-6):
    """Margins recomputed from the weights that the multipliers imply."""
    sensor, state, _, Y, box = updated_state(surrogate, C=0.3)
    alpha, a = change(Y * state.tau), np.broadcast_to(state.a, state.b.shape)
    W = [gaussian_posterior(sensor, LAM, a[:, c], state.b[:, c], Y[:, c] * alpha[:, c])[0] for c in range(Y.shape[1])]
    margin, upper = Y * (sensor.Phi_L @ np.column_stack(W)), box[:, None]
    at_zero, at_top = alpha <= 1e-12, alpha >= upper - 1e-12
    assert at_zero.any()
    assert at_top.any()
    assert margin[at_zero].min() >= 1.0 - atol
    assert margin[at_top].max() <= 1.0 + atol
    np.testing.assert_allclose(margin[~at_zero & ~at_top], 1.0, rtol=0.0, atol=atol)


@pytest.mark.parametrize("name", COMPLETE)
def test_c07_optimality_conditions_hold_at_the_returned_multipliers(name):
    check_c07_conditions(COMPLETE[name], lambda alpha: alpha)
    rejects(check_c07_conditions, COMPLETE[name], lambda alpha: 0.9 * alpha)
    rejects(check_c07_conditions, COMPLETE[name], lambda alpha: 0.3 - alpha)


def check_c08_variance(variance_of):
    """0 <= s <= σ²k, and s does not grow with λ at fixed curvature."""
    sensor, a = draw_sensor(8, weighted=True), np.random.default_rng(8).uniform(0.0, 0.25, 14)
    s = np.array([variance_of(CholeskyView(sensor.blocks), lam, a) for lam in (0.0, 0.1, 0.5, 2.0, 50.0)])
    assert s.min() >= 0.0
    assert (s <= sensor.blocks.prior_variance * np.diag(sensor.blocks.UU) + 1e-12).all()
    assert np.diff(s, axis=0).max() <= 1e-12
    assert s[-1].max() < 0.5 * s[0].max()


def test_c08_unlabeled_rows_only_reduce_the_variance():
    check_c08_variance(lambda view, lam, a: view.condition(lam, a).variance_U)

    def adds(view, lam, a):
        prior = view.blocks.prior_variance * np.diag(view.blocks.UU)
        return 2.0 * prior - view.condition(lam, a).variance_U

    rejects(check_c08_variance, adds)
    rejects(check_c08_variance, lambda view, lam, a: view.condition(1.0 / (lam + 0.1), a).variance_U)


# ------------------------------------------------------------------ C9 to C12: the objective


def settle(problem, surrogate, *, n_sweeps=150, temperature=1.0):
    """Alternate consensus and views from zero weights to a fixed point."""
    pi = np.full(len(problem.models), 1.0 / len(problem.models))
    states, consensus = [scaled(state, 0.0) for state in independent_states(problem)], None
    for _ in range(n_sweeps):
        consensus = update_consensus(problem, states, pi, None, temperature, consensus)
        states = [step_view(problem, i, surrogate, states[i], consensus.q, LAM) for i in range(len(states))]
    return states, consensus


def check_c09_is_med(surrogate, *, n_views=1, prior_variance=1.0, atol=1e-5):
    """One view, or several that are equal, agree completely: the consensus must not change the MED."""
    single, sensors = draw_problem(
        9, n_views=1, n_labeled=8, n_unlabeled=10, prior_variance=prior_variance, C=0.5 / prior_variance
    )
    copies = type(single)(
        models=tuple(CholeskyView(sensors[0].blocks) for _ in range(n_views)),
        rows_L=single.rows_L * n_views,
        rows_U=single.rows_U * n_views,
        Y=single.Y,
        box=single.box * n_views,
        weights_U=single.weights_U,
        n_classes=2,
    )
    med = independent_states(copies)[0]
    states, _ = settle(copies, surrogate)
    for state in states:
        np.testing.assert_allclose(state.m_U, med.m_U, rtol=0.0, atol=atol)
        np.testing.assert_allclose(state.m_L, med.m_L, rtol=0.0, atol=atol)


@pytest.mark.parametrize("n_views", [1, 3])
def test_c09_equal_views_stay_meds(n_views):
    check_c09_is_med(Newton(), n_views=n_views)
    check_c09_is_med(Bohning(), n_views=n_views)
    rejects(check_c09_is_med, AsPrinted(), n_views=n_views)
    rejects(check_c09_is_med, Jaakkola(), n_views=n_views)


def test_c09_variance_penalty_vanishes_with_the_prior_variance():
    check_c09_is_med(Jaakkola(), prior_variance=1e-3, atol=1e-3)
    rejects(check_c09_is_med, Jaakkola(), prior_variance=1.0, atol=1e-3)
    check_c09_is_med(Quadrature(), prior_variance=1e-3, atol=1e-3)
    rejects(check_c09_is_med, Quadrature(), prior_variance=1.0, atol=1e-3)


def check_c10_never_rises(surrogate, *, temperature, spectral=False, step=step_view):
    problem, _ = draw_problem(10, n_classes=2, missing=0.2, spectral=spectral)
    values, *_ = half_steps(problem, surrogate, temperature=temperature, step=step)
    assert np.diff(values).max() <= 1e-9 * np.abs(values).max()


@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.3])
def test_c10_objective_never_rises(temperature):
    check_c10_never_rises(Bohning(), temperature=temperature, spectral=True)
    check_c10_never_rises(Jaakkola(), temperature=temperature)

    def printed_step(problem, i, surrogate, state, q, lam):
        return step_view(problem, i, AsPrinted(), state, q, lam)

    rejects(check_c10_never_rises, Bohning(), temperature=temperature, step=printed_step)


def check_c11_bit_identical(**changes):
    """Each view's scores are those of its own MED, bit by bit."""
    X, y = draw_table(11)
    kernel = {"gamma": 0.2, "scaling": None, "prior_variance": 1.6, "bias_variance": 0.0}
    model = plain_cmvmed(**changes).fit(X, y)
    scores = model.decision_function_by_view(X)
    for name, columns in (("view0", slice(0, 3)), ("view1", slice(3, 6))):
        np.testing.assert_array_equal(
            scores[name], MED(**kernel).fit(X[:, columns], y).decision_function(X[:, columns])
        )


def test_c11_without_consensus_weight_the_views_are_independent():
    check_c11_bit_identical(consensus_weight=0.0)
    rejects(check_c11_bit_identical, consensus_weight=1e-3)


def test_c11_without_unlabeled_rows_the_views_are_independent():
    X, y = draw_table(11)
    X, y = X[y >= 0], y[y >= 0]
    scores = plain_cmvmed().fit(X, y).decision_function_by_view(X)
    kernel = {"gamma": 0.2, "scaling": None, "prior_variance": 1.6, "bias_variance": 0.0}
    np.testing.assert_array_equal(scores["view0"], MED(**kernel).fit(X[:, :3], y).decision_function(X[:, :3]))
    np.testing.assert_array_equal(scores["view1"], MED(**kernel).fit(X[:, 3:], y).decision_function(X[:, 3:]))


def plug_in_lagrangian(W, sensors, problem, states, energy, temperature):
    """Objective (1) as a function of the views' weights: q at its minimum, hinges replaced by their multipliers."""
    total, pooled = 0.0, 0.0
    for w, sensor, state in zip(W, sensors, states, strict=True):
        m_U, m_L = sensor.Phi_U @ w, sensor.Phi_L @ w
        bracket = (
            0.5 * w @ w / sensor.blocks.prior_variance
            - state.tau[:, 0] @ m_L
            + LAM * energy(m_U, state.s_U[:, 0]).sum()
        )
        total, pooled = total + bracket / len(sensors), pooled + m_U / len(sensors)
    # min over q of -(q - ½) m̄ - T H(q) is -T log 2cosh(m̄/2T)
    return total - LAM * temperature * np.logaddexp(0.5 * pooled / temperature, -0.5 * pooled / temperature).sum()


def check_c12_gradient(surrogate, change, *, temperature=0.5):
    """Central differences along each unlabeled row's features vanish at the fixed point."""
    problem, sensors = draw_problem(12, spectral=False, n_labeled=8, n_unlabeled=10, prior_variance=0.8)
    states, _ = settle(problem, surrogate, temperature=temperature)
    W = [change(state_weights(sensor, state)[:, 0]) for sensor, state in zip(sensors, states, strict=True)]
    step = 1e-5
    for i, sensor in enumerate(sensors):
        for direction in sensor.Phi_U:
            values = [
                plug_in_lagrangian(
                    [w + sign * step * direction * (j == i) for j, w in enumerate(W)],
                    sensors,
                    problem,
                    states,
                    surrogate.energy,
                    temperature,
                )
                for sign in (1.0, -1.0)
            ]
            assert abs(values[0] - values[1]) / (2.0 * step) <= 1e-5


@pytest.mark.parametrize("name", COMPLETE)
def test_c12_gradient_vanishes_at_the_fixed_point(name):
    check_c12_gradient(COMPLETE[name], lambda w: w)
    rejects(check_c12_gradient, COMPLETE[name], lambda w: 1.01 * w)


def test_c12_gradient_does_not_vanish_where_the_printed_algorithm_ends():
    rejects(check_c12_gradient, AsPrinted(), lambda w: w)


# ------------------------------------------------------------------ C13 to C16: balance, symmetries, bias


def check_c13_balance(class_prior, expected):
    X, y = draw_table(13, n_rows=60, n_classes=len(expected), n_labeled=4 * len(expected))
    model = plain_cmvmed(class_prior=class_prior, temperature=0.3, bias_variance=0.1).fit(X, y)
    np.testing.assert_allclose(model.label_distributions_[y < 0].mean(axis=0), expected, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("expected", [[0.7, 0.3], [0.1, 0.2, 0.3, 0.4]])
def test_c13_consensus_keeps_the_class_prior(expected):
    check_c13_balance(expected, expected)
    rejects(check_c13_balance, None, expected)
    rejects(check_c13_balance, expected[::-1], expected)


def check_c14_swap(first_prior, second_prior, *, algorithm="bohning"):
    """Other names for the classes negate scores and exchange probabilities."""
    X, y = draw_table(14)
    settings = {"algorithm": algorithm, "bias_variance": 0.1}
    model = plain_cmvmed(class_prior=first_prior, **settings).fit(X, y)
    swapped = plain_cmvmed(class_prior=second_prior, **settings).fit(X, np.where(y < 0, -1, 1 - y))
    np.testing.assert_allclose(swapped.decision_function(X), -model.decision_function(X), rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(swapped.label_distributions_, model.label_distributions_[:, ::-1], rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("algorithm", ["bohning", "jaakkola", "exact", "newton", "printed"])
def test_c14_swapping_class_names_negates_the_scores(algorithm):
    check_c14_swap(0.3, 0.7, algorithm=algorithm)
    check_c14_swap("labels", "labels", algorithm=algorithm)


def test_c14_check_rejects_a_prior_that_is_not_swapped():
    rejects(check_c14_swap, 0.3, 0.3)


def check_c15_permutations(rows, views, **settings):
    """Other orders of rows and views give the same scores, in that order."""
    X, y = draw_table(15, n_views=3)
    columns = np.arange(9).reshape(3, 3)[views].ravel()
    settings = {"views": [3, 3, 3], "bias_variance": 0.1, "class_prior": "labels"} | settings
    model = plain_cmvmed(**settings).fit(X, y)
    permuted = plain_cmvmed(**settings).fit(X[rows][:, columns], y[rows])
    np.testing.assert_allclose(
        permuted.decision_function(X[:, columns]), model.decision_function(X), rtol=0.0, atol=1e-8
    )
    np.testing.assert_allclose(permuted.label_distributions_, model.label_distributions_[rows], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(permuted.view_weights_, model.view_weights_[views], rtol=0.0, atol=1e-10)


@pytest.mark.parametrize(
    "settings",
    [{}, {"algorithm": "jaakkola"}, {"algorithm": "exact"}, {"algorithm": "newton"}, {"view_weights": "agreement"}],
)
def test_c15_order_of_rows_and_views_does_not_matter(settings):
    order = np.random.default_rng(15).permutation(50)
    check_c15_permutations(order, [2, 0, 1], **settings)


def test_c15_check_rejects_weights_that_are_not_permuted():
    order = np.random.default_rng(15).permutation(50)
    rejects(check_c15_permutations, order, [2, 0, 1], view_weights=[0.6, 0.3, 0.1])


def check_c16_bias(constant, *, bias_variance=0.3, sigma2=1.6):
    """A Gaussian bias is one more feature, of constant value √(σ_b²/σ²)."""
    X, y = draw_table(16)
    with_bias = plain_cmvmed(kernel="linear", bias_variance=bias_variance).fit(X, y)
    column = np.full((50, 1), constant)
    widened = np.hstack([X[:, :3], column, X[:, 3:], column])
    with_column = plain_cmvmed(kernel="linear", views=[4, 4]).fit(widened, y)
    np.testing.assert_allclose(
        with_column.decision_function(widened), with_bias.decision_function(X), rtol=0.0, atol=1e-7
    )


def test_c16_bias_is_a_constant_feature():
    check_c16_bias(np.sqrt(0.3 / 1.6))
    rejects(check_c16_bias, np.sqrt(0.3))
    rejects(check_c16_bias, 0.0)


# ------------------------------------------------------------------ C17 to C20: prediction, missing views, many classes


def printed_rule(f):
    """The paper's rule with the normalized log-likelihood it states: argmax of q(y) Σ log p_i(y)."""
    q = expit(f.mean())
    return int(q * np.log(expit(f)).sum() > (1.0 - q) * np.log(expit(-f)).sum())


def printed_rule_unnormalized(f):
    """The same rule with F = y f/2, as the paper first defines it."""
    q = expit(f.mean())
    return int(q * f.sum() / 2.0 > -(1.0 - q) * f.sum() / 2.0)


def check_c17_rule(rule):
    """The class has the sign of the sum of the views' scores, also where the views disagree."""
    for f in (np.array([4.0, -3.0]), np.array([-4.0, 3.0]), np.array([0.5, -0.4]), np.array([9.0, -8.0])):
        assert rule(f) == int(f.sum() > 0.0)


def test_c17_prediction_is_the_sign_of_the_pooled_score():
    X, y = draw_table(17)
    model = plain_cmvmed(kernel="linear", views=[3, 3]).fit(X, y)
    slopes = model.decision_function_by_view(np.hstack([np.eye(3), np.eye(3)]))

    def ours(f):
        row = np.hstack([f[i] * slopes[name] / (slopes[name] @ slopes[name]) for i, name in enumerate(slopes)])
        scores = model.decision_function_by_view(row[None])
        np.testing.assert_allclose([scores["view0"][0], scores["view1"][0]], f, rtol=1e-9)
        return model.predict(row[None])[0]

    check_c17_rule(ours)
    check_c17_rule(printed_rule_unnormalized)
    rejects(check_c17_rule, printed_rule)


def test_c17_ties_go_to_the_first_class():
    X, y = draw_table(17)
    model = plain_cmvmed(kernel="linear").fit(X, y)
    assert model.decision_function(np.zeros((1, 6)))[0] == 0.0
    assert model.predict(np.zeros((1, 6)))[0] == model.classes_[0]


def check_c18_training_rows(probabilities_of, **settings):
    """New rows that equal training rows get the consensus of training."""
    n_classes = settings.pop("n_classes", 2)
    X, y = draw_table(18, n_classes=n_classes, n_labeled=4 * n_classes)
    X[np.ix_(np.flatnonzero(y < 0)[:6], [0, 1, 2])] = np.nan
    weights = np.random.default_rng(18).uniform(0.5, 2.0, 50)
    model = plain_cmvmed(bias_variance=0.1, class_prior="labels", **settings).fit(X, y, sample_weight=weights)
    unlabeled = y < 0
    np.testing.assert_allclose(
        probabilities_of(model, X)[unlabeled], model.label_distributions_[unlabeled], rtol=0.0, atol=1e-8
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"members": "consensus"},
        {"algorithm": "jaakkola"},
        {"algorithm": "exact"},
        {"algorithm": "newton"},
        {"algorithm": "printed"},
        {"n_classes": 3},
        {"n_classes": 3, "members": "consensus"},
        {"n_classes": 3, "algorithm": "jaakkola"},
    ],
)
def test_c18_prediction_of_training_rows_is_the_consensus(settings):
    check_c18_training_rows(lambda model, X: model.predict_proba(X), **settings)
    rejects(check_c18_training_rows, lambda model, X: model.predict_proba_by_view(X)["view1"], **settings)


def check_c19_masked_view(model, without, *, fill=np.nan):
    X, y = draw_table(19, n_views=3)
    masked = np.hstack([X, np.full((50, 2), fill)])
    with pytest.warns(UserWarning, match="'view3' is missing in every training row"):
        model.fit(masked, y)
    without.fit(X, y)
    np.testing.assert_allclose(model.decision_function(masked), without.decision_function(X), rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(model.label_distributions_, without.label_distributions_, rtol=0.0, atol=1e-9)


def c19_pair(**settings):
    return (
        plain_cmvmed(views=[3, 3, 3, 2], **settings),
        plain_cmvmed(views=[3, 3, 3], **settings),
    )


@pytest.mark.parametrize(
    "settings", [{}, {"algorithm": "jaakkola"}, {"algorithm": "exact"}, {"algorithm": "newton"}, {"class_prior": 0.4}]
)
def test_c19_view_masked_everywhere_is_a_view_that_is_absent(settings):
    check_c19_masked_view(*c19_pair(**settings))
    different, _ = c19_pair(**settings, view_weights=[0.5, 0.3, 0.1, 0.1])
    rejects(check_c19_masked_view, different, c19_pair(**settings)[1])


def test_c19_holds_with_agreement_weights():
    check_c19_masked_view(*c19_pair(view_weights="agreement"))


def check_sample_weight_is_repetition(*, power=1, **settings):
    X, y = draw_table(20, n_views=3)
    counts = np.random.default_rng(20).integers(1, 4, size=50)
    settings = {"views": [3, 3, 3], "class_prior": "labels", "gamma": "median", "scaling": "standard"} | settings
    weighted = plain_cmvmed(**settings).fit(X, y, sample_weight=counts**power)
    repeated = plain_cmvmed(**settings).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{}, {"algorithm": "jaakkola"}, {"algorithm": "exact"}, {"algorithm": "newton"}, {"view_weights": "agreement"}],
)
def test_sample_weight_is_repetition(settings):
    check_sample_weight_is_repetition(**settings)


def test_sample_weight_check_rejects_other_weights():
    rejects(check_sample_weight_is_repetition, power=0)
    rejects(check_sample_weight_is_repetition, power=2)


def one_versus_rest_loop(sensors, Y, temperature, prior, *, factor=1.0, n_sweeps=6):
    """The method with as many functions as Y has columns, written with the core's parts for any number of functions."""
    models = [CholeskyView(sensor.blocks) for sensor in sensors]
    box = np.ones(Y.shape[0])
    states = [supervised_state(model, Y, box) for model in models]
    offset = np.zeros(Y.shape[1])
    for _ in range(n_sweeps):
        scores = sum(state.m_U for state in states) / len(states)
        offset = balancing_offset(scores, np.ones(len(scores)), prior, factor * temperature, offset)
        q = soft_labels(scores, offset, factor * temperature)
        targets = q if Y.shape[1] == 2 else positive_probability(q)
        states = [
            update_view(model, Jaakkola(), state, targets, Y, box, LAM)
            for model, state in zip(models, states, strict=True)
        ]
    return states, q


def check_c20_two_classes(**broken):
    """One function per class, at two classes, is the binary method: scores ±m, the same consensus."""
    sensors = [draw_sensor(seed) for seed in (20, 21)]
    y, prior = draw_labels(20, 8), np.array([0.6, 0.4])
    binary, q = one_versus_rest_loop(sensors, y, 0.4, prior)
    both, q_both = one_versus_rest_loop(sensors, np.hstack([-y, y]), 0.4, prior, **broken)
    np.testing.assert_allclose(q_both, q, rtol=0.0, atol=1e-8)
    for state, pair in zip(binary, both, strict=True):
        np.testing.assert_allclose(pair.m_U, np.hstack([-state.m_U, state.m_U]), rtol=0.0, atol=1e-8)
        np.testing.assert_allclose(pair.m_L, np.hstack([-state.m_L, state.m_L]), rtol=0.0, atol=1e-8)


def test_c20_one_versus_rest_of_two_classes_is_the_binary_method():
    check_c20_two_classes()
    rejects(check_c20_two_classes, factor=0.5)


def test_c20_identical_classes_get_identical_scores():
    """Three classes of which two have the same rows: their functions and shares agree."""
    rng = np.random.default_rng(22)
    Phi_L, Phi_U = rng.normal(size=(9, 4)), rng.normal(size=(12, 4))
    Phi_L[6:9] = Phi_L[3:6]
    sensor = make_sensor(Phi_L, Phi_U)
    Y = np.where(np.repeat(np.arange(3), 3)[:, None] == np.arange(3), 1.0, -1.0)
    states, q = one_versus_rest_loop([sensor], Y, 0.4, np.array([0.4, 0.3, 0.3]))
    np.testing.assert_allclose(states[0].m_U[:, 1], states[0].m_U[:, 2], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(q[:, 1], q[:, 2], rtol=0.0, atol=1e-8)
    assert np.abs(q[:, 0] - q[:, 1]).max() > 0.1
