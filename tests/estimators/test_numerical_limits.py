"""Extreme values and parameters: a finite model, a warning or a named error, and never a result decided by rounding."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED
from cmvmed.core.consensus import mean_correlation
from cmvmed.core.objective import Objective
from cmvmed.members.accuracy import HeldOutAccuracy
from cmvmed.numerics.threads import blas_threads


def clusters(seed, n=60, n_classes=3, n_features=4, separation=2.0, n_labeled=4):
    """Two views of noisy class centers, with labels of the first ``n_labeled`` rows of each class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = np.hstack([rng.normal(size=(n_classes, n_features))[y] * separation for _ in range(2)])
    return X + rng.normal(size=X.shape), np.where(np.arange(n) < n_labeled * n_classes, y, -1)


def test_fits_in_several_threads_leave_the_blas_threads_as_they_were():
    X, y = clusters(0, n=90)
    with threadpool_limits(2):
        fit = CMVMED(views=[4, 4], approximation=20, n_stages=2, members=None).fit
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda seed: fit(X, y), range(8)))
        assert blas_threads() == 2


def test_the_correlation_of_a_constant_function_is_not_decided_by_rounding():
    rng = np.random.default_rng(0)
    varying, noise = rng.normal(size=200), 1e-15 * rng.normal(size=(2, 200))
    first, second = np.column_stack([varying, -1.0 + noise[0]]), np.column_stack([varying, -1.0 + noise[1]])
    assert mean_correlation(first, second, np.ones(200)) == pytest.approx(1.0)
    assert mean_correlation(first, second, np.ones(200), constant=0.0) == pytest.approx(0.5)


@pytest.mark.parametrize("kernel", ["linear", "cosine", "linear+rbf"])
@pytest.mark.parametrize("seed", [6, 7, 11, 18])
def test_the_order_of_the_rows_does_not_matter(kernel, seed):
    X, y = clusters(seed, n=40, n_classes=5, n_features=1, separation=0.5, n_labeled=2)  # some functions are constant
    order = np.random.default_rng(seed).permutation(len(y))
    model = CMVMED(views=[1, 1], kernel=kernel, members=None)
    first, second = model.fit(X, y).predict_proba(X), model.fit(X[order], y[order]).predict_proba(X)
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("settings", [{"kernel": "linear"}, {}, {"kernel": "linear", "prior_variance": 1e16}])
def test_large_kernels_are_factorized(settings):
    X, y = clusters(1)
    X = X if "prior_variance" in settings else 1e7 * X
    scaling = "auto" if "prior_variance" in settings else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CMVMED(views=[4, 4], scaling=scaling, members=None, n_stages=2, max_iter=10, **settings).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_dual_that_is_not_solved_gives_a_warning_and_no_convergence(monkeypatch):
    X, y = clusters(1)
    monkeypatch.setattr("cmvmed.core.posterior.solve_box_qps", lambda S, G, Y, upper, start: 0.5 * upper)
    with pytest.warns(ConvergenceWarning, match="solved only to a gap"):
        model = CMVMED(views=[4, 4], members=None).fit(X, y)
    assert not model.converged_


def test_a_rising_objective_is_not_convergence(monkeypatch):
    X, y = clusters(2)
    rising = iter(100.0 * (1.0 + 1e-5) ** np.arange(10_000))
    monkeypatch.setattr("cmvmed.core.annealing.objective", lambda *arguments: Objective(float(next(rising)), 0.0))
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        assert not CMVMED(views=[4, 4], members=None, max_iter=5).fit(X, y).converged_


@pytest.mark.parametrize("algorithm", ["bohning", "jaakkola", "exact", "newton"])
@pytest.mark.parametrize(
    "extreme",
    [
        {"gamma": 1e300, "prior_variance": 1e300},
        {"prior_variance": 1e300, "C": 1e300},
        {"consensus_weight": 1e300},
        {"temperature": 1e-300},
        {"bias_variance": 1e300},
        {"C": 94.0},
    ],
    ids=str,
)
def test_extreme_parameters_give_a_finite_model_or_a_named_error(algorithm, extreme):
    X, y = clusters(3, n=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = CMVMED(views=[4, 4], algorithm=algorithm, n_stages=2, max_iter=10, **extreme).fit(X, y)
        except np.linalg.LinAlgError:
            raise
        except ValueError as error:
            assert "Use scaling" in str(error)  # noqa: PT017 (an error is one of two right outcomes)
            return
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.objective_history_).all()


@pytest.mark.parametrize("random_state", [-1, 2**40, "seed"])
def test_an_invalid_random_state_is_named(random_state):
    X, y = clusters(4)
    with pytest.raises(ValueError, match="random_state"):
        CMVMED(views=[4, 4], random_state=random_state).fit(X, y)


@pytest.mark.parametrize("shift", [1e8, -1e10])
def test_unscaled_rbf_views_far_from_the_origin_keep_their_digits(shift):
    X, y = clusters(5)
    near, far = (CMVMED(views=[4, 4], kernel="rbf", scaling=None).fit(Z, y) for Z in (X, X + shift))
    np.testing.assert_allclose(near.predict_proba(X), far.predict_proba(X + shift), atol=1e-4)


@pytest.mark.filterwarnings("ignore:The expected accuracy")  # few features are left
@pytest.mark.parametrize("density", [0.1, 0.9])
@pytest.mark.parametrize("signed", [False, True])
def test_sparse_and_dense_matrices_of_the_same_values_give_the_same_predictions(density, signed):
    X, y = clusters(6)
    X = X if signed else np.abs(X)
    X = np.where(np.random.default_rng(6).uniform(size=X.shape) < density, X, 0.0)
    X[:, 0] = np.where(X.any(axis=1), X[:, 0], 1.0)
    dense, compressed = (CMVMED(views=[4, 4]).fit(Z, y).predict_proba(Z) for Z in (X, sparse.csr_matrix(X)))
    np.testing.assert_allclose(dense, compressed, atol=1e-6)


@pytest.mark.parametrize("accuracy", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_held_out", [1e-300, 1.0, 1e20, 1e300])
def test_the_interval_of_the_accuracy_is_in_order(accuracy, n_held_out):
    labels = {"confidence_labels": 20.0, "interval_labels": (0.3, 4.0)}
    found = HeldOutAccuracy(accuracy, np.nan, 0.0, 0.0, largest=accuracy, n_held_out=n_held_out, **labels)
    estimate = found.estimate(0.9)
    assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_estimates_of_fits_with_extreme_weights_are_in_order(weight):
    X, y = clusters(7)
    weights = np.where((y >= 0) & (np.arange(len(y)) % 2 == 0), weight, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            estimate = CMVMED(views=[4, 4]).fit(X, y, sample_weight=weights).accuracy_estimate()
        except ValueError as error:
            assert "Use scaling" in str(error)  # noqa: PT017
            return
    assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0


@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [1e-305, 1e-308, 1e-315])
def test_units_in_which_all_numbers_are_tiny_change_no_prediction(size, sparse_rows):
    rng, truth = np.random.default_rng(0), np.arange(40) % 2
    X = rng.normal(size=(40, 4)) + 2.0 * truth[:, None]
    y = np.where(np.arange(40) < 10, truth, -1)
    form = sparse.csr_array if sparse_rows else np.asarray
    models = [CMVMED(views=[2, 2], scaling="standard").fit(form(X * unit), y) for unit in (1.0, size)]
    expected, found = (model.predict(form(X * unit)) for model, unit in zip(models, (1.0, size), strict=True))
    assert np.array_equal(found, expected)
    assert len(set(found)) == 2
