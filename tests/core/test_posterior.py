"""A view's Gaussian: two routes to the same numbers, weights as repetitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmvmed.core.full_kernel import CholeskyView, SpectralView, predictive_variance
from cmvmed.core.posterior import interpolate, scaled, supervised_state, update_view
from cmvmed.core.surrogates import Bohning, Jaakkola, Newton, Quadrature
from tests.core.factories import draw_labels, draw_sensor, make_sensor, rejects, squared_norm
from tests.core.reference import gaussian_posterior, state_weights

QUARTER = 0.25
SURROGATES = {"bohning": Bohning(), "jaakkola": Jaakkola(), "exact": Quadrature(), "newton": Newton()}
LAM = 0.8


def observable(conditioned, b, tau):
    """All values of a conditioned Gaussian."""
    projected = conditioned.project_response(b)
    zeros = np.zeros_like(tau)
    return {
        "S_LL": conditioned.S_LL,
        "variance_U": conditioned.variance_U,
        "total_variance": np.array(conditioned.total_variance()),
        "log_det": np.array(conditioned.log_det),
        "mean_L": conditioned.labeled_mean(projected),
        "mean_U": conditioned.unlabeled(projected, zeros)[1],
        "spread": conditioned.unlabeled(np.zeros_like(projected), tau)[1],
    }


def check_same_gaussian(first, second, *, n_functions=3, rtol=1e-10):
    rng = np.random.default_rng(5)
    u, n_labeled = first.blocks.UL.shape
    b, tau = rng.normal(size=(u, n_functions)), rng.normal(size=(n_labeled, n_functions))
    a = np.full(u, QUARTER)
    for lam in (0.0, 1e-3, 0.6, 40.0):
        expected = observable(second.condition(lam, a), b, tau)
        for name, value in observable(first.condition(lam, a), b, tau).items():
            size = np.abs(expected[name]).max(initial=0.0)
            np.testing.assert_allclose(value, expected[name], rtol=0.0, atol=rtol * (1.0 + size), err_msg=name)


@settings(derandomize=True, max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_labeled=st.integers(0, 6),
    n_unlabeled=st.integers(1, 10),
    n_features=st.integers(1, 15),
    weighted=st.booleans(),
)
def test_eigen_route_equals_cholesky_route(seed, n_labeled, n_unlabeled, n_features, weighted):
    blocks = draw_sensor(
        seed, n_labeled=n_labeled, n_unlabeled=n_unlabeled, n_features=n_features, weighted=weighted
    ).blocks
    check_same_gaussian(SpectralView(blocks), CholeskyView(blocks))


@pytest.mark.parametrize("prior_variance", [1e-14, 1e-9, 1e-4])
def test_a_weak_prior_keeps_its_digits(prior_variance):
    blocks = replace(draw_sensor(3, n_labeled=4, n_unlabeled=9, n_features=6).blocks, prior_variance=prior_variance)
    rng = np.random.default_rng(0)
    b, tau, a = rng.normal(size=(9, 2)), rng.normal(size=(4, 2)), np.full(9, QUARTER)
    found, expected = (observable(view(blocks).condition(LAM, a), b, tau) for view in (SpectralView, CholeskyView))
    for name in ("mean_U", "spread", "total_variance"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-8, atol=1e-8 * np.abs(expected[name]).max())


class WithoutWeights(SpectralView):
    def __init__(self, blocks):
        super().__init__(replace(blocks, weights=np.ones_like(blocks.weights)))


class WithoutDivisionByTheRoot(SpectralView):
    def __init__(self, blocks):
        super().__init__(blocks)
        self.blocks = replace(blocks, weights=np.ones_like(blocks.weights))


class OtherPriorVariance(SpectralView):
    def __init__(self, blocks):
        super().__init__(replace(blocks, prior_variance=1.01 * blocks.prior_variance))


@pytest.mark.parametrize("broken", [WithoutWeights, WithoutDivisionByTheRoot, OtherPriorVariance])
def test_comparison_of_routes_rejects_broken_routes(broken):
    blocks = draw_sensor(0, weighted=True).blocks
    rejects(check_same_gaussian, broken(blocks), CholeskyView(blocks))


def test_eigen_route_is_computed_once_per_weight_and_curvature():
    view = SpectralView(draw_sensor(0).blocks)
    a = np.full(14, QUARTER)
    assert view.condition(0.5, a) is view.condition(0.5, a)
    assert view.condition(0.5, a) is not view.condition(0.6, a)
    np.testing.assert_array_equal(view.condition(0.5, a).S_LL, view.condition(0.5, a).S_LL)
    assert np.abs(view.condition(0.5, a).S_LL - view.condition(0.5, 0.5 * a).S_LL).max() > 1e-3


def run_sweeps(model, surrogate, q, Y, box, *, lam=LAM, n_sweeps=4):
    state = supervised_state(model, Y, box)
    for _ in range(n_sweeps):
        state = update_view(model, surrogate, state, q, Y, box, lam)
    return state


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("weighted", [False, True])
def test_states_agree_with_the_primal_form(name, weighted):
    """The means of every surrogate, by the Cholesky route, are those of the primal form."""
    sensor = draw_sensor(3, weighted=weighted)
    Y, q = draw_labels(3, 8, n_functions=3), np.random.default_rng(3).dirichlet(np.ones(3), size=14)
    state = run_sweeps(CholeskyView(sensor.blocks), SURROGATES[name], q, Y, np.full(8, 0.7))
    for c in range(3):
        a = np.broadcast_to(state.a, state.b.shape)[:, c]
        w, _ = gaussian_posterior(sensor, LAM, a, state.b[:, c], state.tau[:, c])
        np.testing.assert_allclose(state.m_U[:, c], sensor.Phi_U @ w, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(state.m_L[:, c], sensor.Phi_L @ w, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(state_weights(sensor, state)[:, 2], w, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_bohning_states_of_both_routes_agree(weighted):
    blocks = draw_sensor(4, weighted=weighted).blocks
    Y, q = draw_labels(4, 8, n_functions=3), np.random.default_rng(4).dirichlet(np.ones(3), size=14)
    box = np.full(8, 0.7)
    views = SpectralView(blocks), CholeskyView(blocks)
    spectral, direct = (run_sweeps(view, Bohning(), q, Y, box) for view in views)
    norms = [squared_norm(view, state) for view, state in zip(views, (spectral, direct), strict=True)]
    np.testing.assert_allclose(norms[0], norms[1], rtol=0.0, atol=1e-8)
    for field in ("tau", "gamma", "m_L", "m_U", "s_U", "a", "b", "covariance_cost"):
        np.testing.assert_allclose(getattr(spectral, field), getattr(direct, field), rtol=0.0, atol=1e-8, err_msg=field)


def check_weights_are_repetitions(name, view_class, counts):
    """A row of weight w acts like w equal rows."""
    rng = np.random.default_rng(6)
    Phi_L, Phi_U = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    Y, q = draw_labels(6, 6), rng.uniform(size=(5, 1))
    repeated = np.repeat(np.arange(5), [2, 1, 3, 1, 2])
    weighted_view = view_class(make_sensor(Phi_L, Phi_U, weights=counts).blocks)
    repeated_view = view_class(make_sensor(Phi_L, Phi_U[repeated]).blocks)
    few = run_sweeps(weighted_view, SURROGATES[name], q, Y, np.ones(6))
    many = run_sweeps(repeated_view, SURROGATES[name], q[repeated], Y, np.ones(6))
    np.testing.assert_allclose(few.m_L, many.m_L, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(few.m_U[repeated], many.m_U, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(
        np.broadcast_to(few.s_U, few.m_U.shape)[repeated],
        np.broadcast_to(many.s_U, many.m_U.shape),
        rtol=0.0,
        atol=1e-8,
    )
    np.testing.assert_allclose(
        squared_norm(weighted_view, few) + few.covariance_cost,
        squared_norm(repeated_view, many) + many.covariance_cost,
        rtol=1e-9,
    )


ROUTES = [
    ("bohning", SpectralView),
    ("bohning", CholeskyView),
    ("jaakkola", CholeskyView),
    ("exact", CholeskyView),
    ("newton", CholeskyView),
]


@pytest.mark.parametrize(("name", "view_class"), ROUTES)
def test_weighted_row_equals_repeated_rows(name, view_class):
    check_weights_are_repetitions(name, view_class, np.array([2.0, 1.0, 3.0, 1.0, 2.0]))
    rejects(check_weights_are_repetitions, name, view_class, np.ones(5))
    rejects(check_weights_are_repetitions, name, view_class, np.sqrt([2.0, 1.0, 3.0, 1.0, 2.0]))


def check_predictive_variance(variance_of):
    """s(x) of new rows equals φ(x)ᵀ Σ φ(x)."""
    sensor = draw_sensor(8, weighted=True)
    rng = np.random.default_rng(8)
    Phi_x, a = rng.normal(size=(9, 5)), rng.uniform(0.0, 0.25, 14)
    _, covariance = gaussian_posterior(sensor, LAM, a, np.zeros(14), np.zeros(8))
    r = np.sqrt(LAM * sensor.blocks.prior_variance * sensor.blocks.weights * a)
    s = variance_of(sensor.blocks.UU, sensor.Phi_U @ Phi_x.T, (Phi_x**2).sum(axis=1), r, sensor.blocks.prior_variance)
    np.testing.assert_allclose(s, np.einsum("ni,ij,nj->n", Phi_x, covariance, Phi_x), rtol=1e-9)


def test_predictive_variance_equals_the_primal_one():
    check_predictive_variance(predictive_variance)
    rejects(check_predictive_variance, lambda K, K_x, k, r, s2: predictive_variance(K, K_x, k, r**2, s2))
    rejects(check_predictive_variance, lambda K, K_x, k, r, s2: predictive_variance(K, K_x, k, r, 1.0))


def test_states_between_and_scaled_are_those_of_the_weights_between_and_scaled():
    sensor = draw_sensor(9)
    Y, q = draw_labels(9, 8), np.random.default_rng(9).uniform(size=(14, 1))
    model = CholeskyView(sensor.blocks)
    start = supervised_state(model, Y, np.ones(8))
    end = update_view(model, Newton(), start, q, Y, np.ones(8), LAM)
    w_start, w_end = state_weights(sensor, start), state_weights(sensor, end)
    for state, w in (
        (interpolate(start, end, 0.3), 0.7 * w_start + 0.3 * w_end),
        (scaled(end, 1.0 / 1.7), w_end / 1.7),
    ):
        np.testing.assert_allclose(state_weights(sensor, state), w, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(state.m_U, sensor.Phi_U @ w, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(state.m_L, sensor.Phi_L @ w, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(squared_norm(model, state), (w**2).sum() / sensor.blocks.prior_variance, rtol=1e-10)


def test_rank_deficient_and_duplicated_rows_need_no_jitter():
    rng = np.random.default_rng(10)
    Phi_U = np.repeat(rng.normal(size=(4, 2)), 5, axis=0)
    blocks = make_sensor(rng.normal(size=(6, 2)), Phi_U, prior_variance=1e4).blocks
    check_same_gaussian(SpectralView(blocks), CholeskyView(blocks), rtol=1e-7)  # λσ²aω is 1e6 here


def test_view_without_unlabeled_or_without_labeled_rows():
    for n_labeled, n_unlabeled in ((6, 0), (0, 6)):
        sensor = draw_sensor(11, n_labeled=n_labeled, n_unlabeled=n_unlabeled)
        Y, q = np.ones((n_labeled, 1)), np.full((n_unlabeled, 1), 0.9)
        for view_class in (SpectralView, CholeskyView):
            view = view_class(sensor.blocks)
            state = run_sweeps(view, Bohning(), q, Y, np.ones(n_labeled))
            assert state.m_L.shape == (n_labeled, 1)
            assert state.m_U.shape == (n_unlabeled, 1)
            assert np.isfinite(squared_norm(view, state))


def check_variance_keeps_its_digits(*, power=1.0):
    """Curvatures over 17 orders of magnitude: each formula of the variance is used where it is accurate."""
    sensor = draw_sensor(11, n_unlabeled=40, n_features=30)
    a = 10.0 ** np.linspace(-14.0, 3.0, 40)
    _, covariance = gaussian_posterior(sensor, LAM, a, np.zeros(40), np.zeros(8))
    expected = np.einsum("ni,ij,nj->n", sensor.Phi_U, covariance, sensor.Phi_U)
    given = CholeskyView(sensor.blocks).condition(LAM, a**power).variance_U
    np.testing.assert_allclose(given, expected, rtol=1e-9)


def test_variance_keeps_its_digits_at_any_curvature(monkeypatch):
    check_variance_keeps_its_digits()
    rejects(check_variance_keeps_its_digits, power=1.001)
    monkeypatch.setattr("cmvmed.core.full_kernel.MIN_INFORMATION", 0.0)
    rejects(check_variance_keeps_its_digits)
