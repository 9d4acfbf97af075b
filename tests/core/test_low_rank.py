"""The low-rank form of a view against the exact one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cmvmed.core.annealing import Schedule, anneal
from cmvmed.core.full_kernel import KernelBlocks, SpectralView
from cmvmed.core.low_rank import LowRankConditioned, LowRankView, gather_features
from cmvmed.core.posterior import supervised_state, update_view
from cmvmed.core.surrogates import Bohning
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.nystroem import TrainingRows, fit_basis
from tests.core.factories import (
    draw_labels,
    draw_problem,
    draw_sensor,
    half_steps,
    make_plan,
    rejects,
    squared_norm,
)
from tests.core.reference import gaussian_posterior
from tests.core.test_posterior import check_same_gaussian

BIAS = 0.2


def feature_view(sensor, view=LowRankView, *, single=False, **changed):
    blocks = sensor.blocks
    given = {
        "weights": blocks.weights,
        "prior_variance": blocks.prior_variance,
        **changed,
    }
    features = gather_features(np.array_split(sensor.Phi_U, 3), given["weights"], sensor.Phi_U.shape[1], single=single)
    return view(sensor.Phi_L, features, np.arange(len(sensor.Phi_U)), **given)


class ExactShape:
    """A low-rank view with the kernel blocks whose shapes the comparison needs."""

    def __init__(self, view, blocks):
        self.blocks, self.condition = blocks, view.condition


def check_equals_kernel_view(sensor, view):
    check_same_gaussian(ExactShape(view, sensor.blocks), SpectralView(sensor.blocks), rtol=1e-9)


@pytest.mark.parametrize("n_features", [1, 5, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_equal_their_kernel(n_features, weighted):
    sensor = draw_sensor(0, n_features=n_features, weighted=weighted)
    check_equals_kernel_view(sensor, feature_view(sensor))


class WithoutRotation(LowRankView):
    """Uses the eigenvalues of G with features that are not rotated."""

    def __init__(self, Z_L, features, *given, **named):
        super().__init__(Z_L, features, *given, **named)
        self.blocks = replace(self.blocks, Z_U=features.Z)

    def condition(self, lam, a):
        return LowRankConditioned(self.space, self.blocks, lam, a[0])


@pytest.mark.parametrize(
    "broken",
    [
        lambda sensor: feature_view(sensor, weights=np.ones_like(sensor.blocks.weights)),
        lambda sensor: feature_view(sensor, prior_variance=1.01 * sensor.blocks.prior_variance),
        lambda sensor: feature_view(sensor, view=WithoutRotation),
    ],
    ids=["without weights", "other prior variance", "without rotation"],
)
def test_comparison_rejects_broken_views(broken):
    sensor = draw_sensor(0, weighted=True)
    rejects(check_equals_kernel_view, sensor, broken(sensor))


def test_weights_are_the_textbook_posterior_mean():
    sensor = draw_sensor(3, weighted=True)
    Y, box, lam = draw_labels(1, 8, 2), np.ones(8), 0.7
    view = feature_view(sensor)
    q = np.random.default_rng(0).uniform(size=(14, 2))
    state = update_view(view, Bohning(), supervised_state(view, Y, box), q, Y, box, lam)
    theta = view.blocks.mean_weights(state.tau, state.gamma)
    variance = view.condition(lam, state.a[:, 0]).variance_U
    for c in range(2):
        mean, covariance = gaussian_posterior(sensor, lam, state.a[:, 0], state.b[:, c], state.tau[:, c])
        np.testing.assert_allclose(view.rotation @ theta[:, c], mean, atol=1e-10)
        np.testing.assert_allclose(
            variance, np.einsum("ij,jk,ik->i", sensor.Phi_U, covariance, sensor.Phi_U), atol=1e-10
        )
    expected = (theta**2).sum() / sensor.blocks.prior_variance
    np.testing.assert_allclose(squared_norm(view, state), expected, rtol=1e-10)
    assert abs((state.gamma * theta).sum() - expected) > 1e-3  # without the labeled rows' part


def rbf_problems(seed, *, n_classes=2, missing=0.0, weighted=False, n_landmarks=None, n_unlabeled=120):
    """The same problem with exact kernels and through Nyström features of some or all rows."""
    problem, _ = draw_problem(
        seed, n_classes=n_classes, n_unlabeled=n_unlabeled, n_labeled=12, missing=missing, weighted=weighted
    )
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(12) % n_classes, rng.integers(n_classes, size=n_unlabeled)])
    exact, low_rank = [], []
    for rows_L, rows_U in zip(problem.rows_L, problem.rows_U, strict=True):
        X = rng.normal(size=(n_classes, 4))[codes] + 0.8 * rng.normal(size=(codes.size, 4))
        rows = TrainingRows(Kernel("v", "rbf", gamma=0.15), X)
        L, U = rows_L, 12 + rows_U
        weights = problem.weights_U[rows_U]
        exact.append(
            SpectralView(
                KernelBlocks.of(
                    rows.kernel.gram(X, L) + BIAS,
                    rows.cross(U, L) + BIAS,
                    rows.kernel.gram(X, U) + BIAS,
                    weights,
                    prior_variance=2.0,
                )
            )
        )
        basis = fit_basis(rows, np.concatenate([L, U])[:n_landmarks], BIAS)
        features = gather_features([basis.features(X[U])], weights, basis.rank, single=False)
        low_rank.append(LowRankView(basis.features(X[L]), features, np.arange(U.size), weights, 2.0))
    return replace(problem, models=tuple(exact)), replace(problem, models=tuple(low_rank))


def fitted(problem):
    """The result of a fit with equal classes, and its squared norms."""
    schedule = Schedule(consensus_weight=0.5, temperature=0.3, n_stages=4, max_iter=30, tol=1e-6)
    shares = np.full(problem.n_classes, 1.0 / problem.n_classes)
    result = anneal(make_plan(problem, schedule, shares=shares))
    return result, [squared_norm(model, state) for model, state in zip(problem.models, result.states, strict=True)]


def check_same_fit(first_fit, second_fit, tolerance):
    (first, first_norms), (second, second_norms) = first_fit, second_fit
    np.testing.assert_allclose(first.consensus.q, second.consensus.q, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(first.view_weights, second.view_weights, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(first.consensus.offset, second.consensus.offset, rtol=0.0, atol=tolerance)
    for one, other in zip(first.states, second.states, strict=True):
        np.testing.assert_allclose(one.m_L, other.m_L, rtol=0.0, atol=tolerance)
        np.testing.assert_allclose(one.s_U, other.s_U, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(first_norms, second_norms, rtol=tolerance)
    assert len(first.history) == len(second.history)
    np.testing.assert_allclose(
        [sweep.objective for sweep in first.history], [sweep.objective for sweep in second.history], rtol=tolerance
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_rows_as_landmarks_give_the_exact_fit(n_classes, missing, weighted):
    exact, low_rank = rbf_problems(4, n_classes=n_classes, missing=missing, weighted=weighted)
    check_same_fit(fitted(low_rank), fitted(exact), 1e-7)


def test_comparison_rejects_a_fit_with_few_landmarks():
    exact, low_rank = rbf_problems(4, n_landmarks=25)
    rejects(check_same_fit, fitted(low_rank), fitted(exact), 1e-7)


def check_falls(values):
    assert np.diff(values).max() <= 1e-9 * np.abs(values).max()


class TooSmallCurvature(LowRankView):
    """A quadratic of a tenth of the curvature is no bound."""

    def __init__(self, view):
        self.blocks, self.space = view.blocks, replace(view.space, omega=0.1 * view.space.omega)

    def condition(self, lam, a):
        return LowRankConditioned(self.space, self.blocks, lam, a[0])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shares", [None, "equal"])
def test_objective_falls_at_every_half_step(n_classes, shares):
    imposed = None if shares is None else np.full(n_classes, 1.0 / n_classes)
    _, problem = rbf_problems(1, n_classes=n_classes, missing=0.2, weighted=True, n_landmarks=20)
    values, _, _ = half_steps(problem, Bohning(), lam=2.0, temperature=0.3, shares=imposed, n_sweeps=15)
    check_falls(values)
    broken = replace(problem, models=tuple(TooSmallCurvature(model) for model in problem.models))
    values, _, _ = half_steps(broken, Bohning(), lam=2.0, temperature=0.3, shares=imposed, n_sweeps=15)
    rejects(check_falls, values)


@pytest.mark.parametrize("make", [feature_view, lambda sensor: SpectralView(sensor.blocks)], ids=["features", "kernel"])
def test_gaussians_are_kept_by_weight_and_curvature(make):
    view, a = make(draw_sensor(0)), np.full(14, 0.25)
    first = view.condition(0.5, a)
    assert view.condition(0.5, 0.5 * a) is not first
    assert view.condition(0.5, a) is first  # two of them are kept
    others = [view.condition(lam, a) for lam in (0.1, 0.2)]
    assert view.condition(0.5, a) not in [first, *others]


def test_total_variance_is_the_sum_over_rows():
    sensor = draw_sensor(0, weighted=True)
    conditioned = feature_view(sensor).condition(0.5, np.full(14, 0.25))
    np.testing.assert_allclose(conditioned.total_variance(), sensor.blocks.weights @ conditioned.variance_U, rtol=1e-12)


def test_features_of_many_rows_are_kept_in_single_precision_with_the_same_results():
    sensor = draw_sensor(0, n_features=12, weighted=True)
    double = feature_view(sensor)
    single = feature_view(sensor, single=True)
    assert (single.blocks.Z_U.dtype, double.blocks.Z_U.dtype) == (np.float32, np.float64)
    Y = draw_labels(0, len(sensor.Phi_L))
    box = np.full(len(Y), 1.3)
    q = np.random.default_rng(0).random((len(sensor.Phi_U), Y.shape[1]))
    for lam in (0.0, 0.7):
        one, other = (
            update_view(view, Bohning(), supervised_state(view, Y, box), q, Y, box, lam) for view in (single, double)
        )
        for field in ("m_L", "m_U", "s_U", "tau"):
            values = getattr(one, field)
            assert values.dtype == np.float64
            np.testing.assert_allclose(values, getattr(other, field), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(single.blocks.diagonal_U, double.blocks.diagonal_U, rtol=1e-5)


def test_features_beyond_the_range_of_single_precision_stay_in_double():
    sensor = draw_sensor(0)
    view = feature_view(replace(sensor, Phi_U=1e20 * sensor.Phi_U), single=True)
    assert view.blocks.Z_U.dtype == np.float64
    assert np.isfinite(view.blocks.diagonal_U).all()
