"""Fits of more rows than are annealed, in arrays of other libraries: the models of numpy's, computed where the rows are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sklearn

from cmvmed import CMVMED, MED, MVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.data import array_api
from cmvmed.data.sources import array_rows
from cmvmed.datasets import make_multiview_gaussian
from cmvmed.model.predict import RowScorer
from cmvmed.scale.passes import SweepPass
from tests.array_libraries import LIBRARIES, put

N_ROWS, N_SAMPLE, N_HELD_OUT, N_LABELED, WIDTH = 2500, 200, 150, 30, 4
CLOSE = 1e-9  # sums of both differ by rounding alone, of about 1e-13 in probabilities
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*have all views missing"),
    pytest.mark.filterwarnings("ignore:.*have no view present"),
]


@pytest.fixture(autouse=True)
def few_rows_are_annealed(monkeypatch):
    """Scikit-learn's setting, which asks for a variable of scipy too, and a small sample in place of 5,000 rows."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    small = replace(Tuning(), sample_rows=N_SAMPLE, held_out_rows=N_HELD_OUT)
    with sklearn.config_context(array_api_dispatch=True), tuning_context(small):
        yield


@pytest.fixture(params=LIBRARIES)
def xp(request):
    return pytest.importorskip(request.param)


def draw(n_classes=2, seed=0):
    return make_multiview_gaussian(
        N_ROWS, n_features=WIDTH, n_classes=n_classes, separation=(2.0, 1.5), labeled=N_LABELED, random_state=seed
    )


def estimator(data, **settings):
    chosen = {"approximation": 30, "n_stages": 2, "max_iter": 8, "random_state": 0}
    return CMVMED(views=data.views, **(chosen | settings))


def with_gaps(X):
    """Rows without any view, without one of them, and with single gaps."""
    X, rng = X.copy(), np.random.default_rng(1)
    X[::11, :WIDTH] = np.nan
    X[::13, WIDTH:] = np.nan
    X[rng.uniform(size=X.shape) < 0.02] = np.nan
    return X


def check_same_fit(xp, model, X, y, **options):
    """Fits to arrays of the library and of numpy are the same up to rounding; that of numpy is returned."""
    expected = sklearn.clone(model).fit(X, y, **options)
    found = sklearn.clone(model).fit(put(xp, X), put(xp, y), **options)
    assert found.approximation_["n_swept"] == expected.approximation_["n_swept"] > N_SAMPLE
    assert found.n_iter_ == expected.n_iter_
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=0.0, atol=CLOSE)
    np.testing.assert_allclose(found.objective_history_, expected.objective_history_, rtol=1e-9)
    np.testing.assert_allclose(found.history_["kl_by_view"], expected.history_["kl_by_view"], rtol=1e-7, atol=1e-12)
    assert isinstance(found.label_distributions_, np.ndarray)
    np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_, rtol=0.0, atol=CLOSE)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    for name, rows in expected.support_.items():
        np.testing.assert_array_equal(found.support_[name], rows)
    return expected


@pytest.mark.parametrize("rows_tol", [0, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_missing_views_and_weights(xp, rows_tol, n_classes):
    data = draw(n_classes)
    weights = np.random.default_rng(2).integers(0, 3, N_ROWS).astype(float)
    weights[data.y >= 0] = 1.0
    model = estimator(data, rows_tol=rows_tol)
    fitted = check_same_fit(xp, model, with_gaps(data.data), data.y, sample_weight=weights)
    n_swept = fitted.approximation_["n_swept"]
    assert (n_swept < np.count_nonzero(weights) - N_LABELED) == (rows_tol > 0)


@pytest.mark.parametrize(
    ("kernel", "scaling"),
    [("linear+rbf", "unit"), ("rbf", "standard"), ("rbf", None), ("linear", None), ("cosine", None), ("auto", "auto")],
)
def test_kernels_and_scalings(xp, kernel, scaling):
    data = draw()
    check_same_fit(xp, estimator(data, kernel=kernel, scaling=scaling), with_gaps(data.data), data.y)


@pytest.mark.parametrize("members", ["auto", "consensus"])
def test_a_table_per_view_of_any_type(xp, members):
    data = draw()
    first, second = data.data[:, :WIDTH].astype(np.float32), data.data[:, WIDTH:].round().astype(np.int64)
    model = estimator(data, members=members).set_params(views=None)
    expected = sklearn.clone(model).fit({"a": first, "b": second}, data.y)
    found = sklearn.clone(model).fit({"a": put(xp, first), "b": put(xp, second)}, data.y)
    assert found.view_names_ == ["a", "b"]
    np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_, rtol=0.0, atol=CLOSE)


def test_views_of_columns_that_are_not_side_by_side(xp):
    data = draw()
    views = {"even": [0, 2, 4, 6], "odd": [7, 5, 3, 1]}
    check_same_fit(xp, estimator(data).set_params(views=views), data.data, data.y)


@pytest.mark.parametrize("columns", [[1], [0, 1, 2, 3]])
@pytest.mark.filterwarnings("ignore:.*in every training row")
def test_columns_that_no_annealed_row_has(xp, columns):
    """Of one column, and of a whole view; some other rows have nothing else in that view."""
    data, X = draw(), draw().data.copy()
    first = estimator(data, rows_tol=0).fit(X, data.y)
    annealed = first._model.rows.numbers
    X[::7, :WIDTH] = np.where(np.isin(np.arange(WIDTH), columns), X[::7, :WIDTH], np.nan)
    X[np.ix_(annealed, columns)] = np.nan
    check_same_fit(xp, estimator(data, rows_tol=0), X, data.y)


@pytest.fixture
def moved(monkeypatch):
    """The shapes of the arrays that are moved to the memory of the processor."""
    shapes, move = [], array_api._as_numpy

    def recorded(array):
        shapes.append(tuple(array.shape))
        return move(array)

    monkeypatch.setattr(array_api, "_as_numpy", recorded)
    return shapes


@pytest.mark.parametrize("rows_tol", [0, 2e-3])
def test_only_the_sample_sums_and_probabilities_are_moved(xp, rows_tol, moved, monkeypatch):
    def by_numpy(*_):
        raise AssertionError("rows were given to numpy")

    for function in (SweepPass, RowScorer):
        monkeypatch.setattr(function, "__call__", by_numpy)
    data = draw()
    model = estimator(data, rows_tol=rows_tol).fit(put(xp, data.data), data.y)
    assert model.approximation_["n_swept"] > N_SAMPLE
    tables = [shape for shape in moved if shape[1:] in ((WIDTH,), (2 * WIDTH,))]
    assert sum(shape[0] for shape in tables) <= 2 * (N_SAMPLE + N_LABELED + N_HELD_OUT) + 1  # the first row is checked
    assert {shape for shape in moved if shape[0] == N_ROWS} == {(N_ROWS, 2), (N_ROWS, 1)}
    n_components = model.approximation_["n_components"]
    assert moved.count((n_components + 1, 1)) == 2 * (len(model.history_["n_rows"]) - n_annealed_sweeps(model))


def n_annealed_sweeps(model):
    """Sweeps over the sample in memory."""
    return int(np.count_nonzero(model.history_["n_rows"] <= N_SAMPLE))


def test_kernels_that_numpy_computes_get_chunks(xp, moved):
    data = draw()
    model = estimator(data, kernel=lambda a, b: (1.0 + a @ b.T) ** 2, members="consensus", max_iter=2)
    check_same_fit(xp, model, with_gaps(data.data), data.y)
    assert (N_ROWS, WIDTH) in moved


def test_chunks_of_few_rows(xp, monkeypatch):
    monkeypatch.setattr(array_rows, "NUMBERS_AT_A_TIME", 20_000)
    data = draw(3)
    check_same_fit(xp, estimator(data, rows_tol=0, max_iter=2), with_gaps(data.data), data.y)


def test_a_device_without_double_precision_is_read_as_a_whole(xp, moved, monkeypatch):
    monkeypatch.setattr("cmvmed.data.array_api.ArrayPlace.has_double_precision", False)
    data = draw()
    expected = estimator(data).fit(data.data, data.y)
    found = estimator(data).fit(put(xp, data.data), data.y)
    np.testing.assert_array_equal(found.label_distributions_, expected.label_distributions_)
    assert moved == [(N_ROWS, 2 * WIDTH)]


def test_other_estimators_read_all_rows(xp):
    data = draw()
    for model, X in ((MVMED(views=data.views), data.data[:200]), (MED(), data.data[:200, :WIDTH])):
        expected = sklearn.clone(model).fit(X, data.target[:200]).decision_function(X)
        found = sklearn.clone(model).fit(put(xp, X), data.target[:200]).decision_function(X)
        np.testing.assert_array_equal(found, expected)


def test_a_row_outside_of_the_sample_is_named(xp):
    data, X = draw(), draw().data.copy()
    model = estimator(data)
    fitted = model.fit(X, data.y)
    outside = np.setdiff1d(np.arange(N_ROWS), fitted._model.rows.numbers)[-1]
    X[outside, WIDTH + 2] = -np.inf
    with pytest.raises(ValueError, match=rf"infinity: view 'view2', row {outside}, column 2"):
        model.fit(put(xp, X), data.y)


def test_rows_without_any_view_are_counted(xp):
    data, X = draw(), draw().data.copy()
    X[np.flatnonzero(data.y < 0)[:5]] = np.nan
    with pytest.warns(UserWarning, match="5 training rows have all views missing"):
        model = estimator(data).fit(put(xp, X), data.y)
    np.testing.assert_allclose(model.label_distributions_[np.isnan(X).all(axis=1)], [model.class_prior_] * 5)


def test_a_kernel_that_overflows_outside_of_the_sample_names_its_view(xp):
    data, X = draw(), draw().data.copy()
    model = estimator(data, kernel="linear", scaling=None, rows_tol=0)
    fitted = model.fit(X, data.y)
    outside = np.setdiff1d(np.arange(N_ROWS), fitted._model.rows.numbers)[-1]
    X[outside, WIDTH:] = 1e200
    for rows in (X, put(xp, X)):
        with pytest.raises(ValueError, match="kernel of view 'view2' gave values that are NaN or infinite"):
            model.fit(rows, data.y)


def test_errors_are_those_of_other_rows(xp):
    data = draw()
    X, y, model = data.data, data.y, estimator(data)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.fit(put(xp, X[:, 0]), y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(put(xp, X[:0]), y[:0])
    with pytest.raises(ValueError, match="X has 2500 rows, y 2499"):
        model.fit(put(xp, X), put(xp, y[:-1]))
    with pytest.raises(ValueError, match="y='label' is not a column of X"):
        model.fit(put(xp, X), "label")
    model.set_params(views=None)
    with pytest.raises(ValueError, match="unequal numbers of rows"):
        model.fit([put(xp, X[:, :4]), put(xp, X[:9, 4:])], y)
    with pytest.raises(ValueError, match="must be a two-dimensional array"):
        model.fit([put(xp, X[:, :4]), None], y)
