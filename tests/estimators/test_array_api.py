"""Predictions of arrays of other libraries: equal to those of numpy's, and of the same library and device."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn

from cmvmed import CMVMED, MED, MVMED, SVM2K, CoRLS
from cmvmed.data.array_api import array_place, on_host
from cmvmed.data.sources import array_rows
from cmvmed.datasets import make_multiview_gaussian
from tests.array_libraries import put

QUICK = {"n_stages": 2, "max_iter": 3}
LANDMARKS = {"approximation": 40, **QUICK}
pytestmark = [
    pytest.mark.usefixtures("array_api_dispatch"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def rows(n_classes=2, **options):
    separation = (2.0, 1.5)
    return make_multiview_gaussian(
        150, n_features=3, n_classes=n_classes, separation=separation, labeled=30, random_state=0, **options
    )


def with_gaps(X):
    """Rows of which one has no view, one lacks a view, and one has a gap."""
    X = X.copy()
    X[3], X[5, :3], X[7, 1] = np.nan, np.nan, np.nan
    return X


def outputs(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without any view
        names = [n for n in ("predict_proba", "decision_function", "predict") if hasattr(model, n)]
        return {name: getattr(model, name)(X) for name in names}


def check_same(model, X, xp):
    """All outputs are those of numpy's rows, as arrays of the library on the device of the rows."""
    arrays = put(xp, X)
    found, expected = outputs(model, arrays), outputs(model, X)
    assert list(found) == list(expected)
    for name, values in found.items():
        assert type(values) is type(arrays)
        assert values.device == arrays.device
        assert isinstance(expected[name], np.ndarray)
        np.testing.assert_allclose(on_host(values), expected[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("members", ["auto", "consensus"])
def test_landmark_models(xp, n_classes, members):
    data = rows(n_classes)
    model = CMVMED(views=data.views, members=members, **LANDMARKS).fit(data.data, data.y)
    check_same(model, with_gaps(data.data), xp)


@pytest.mark.parametrize(
    ("kernel", "scaling"),
    [("linear+rbf", "unit"), ("rbf", "standard"), ("rbf", None), ("linear", None), ("cosine", None)],
)
def test_kernels_and_scalings(xp, kernel, scaling):
    data = rows()
    model = CMVMED(views=data.views, kernel=kernel, scaling=scaling, **LANDMARKS).fit(data.data, data.y)
    check_same(model, data.data, xp)


@pytest.mark.parametrize("estimator", [CMVMED(**QUICK), MVMED(), SVM2K(), CoRLS(), MED()])
def test_exact_models_with_graphs_and_the_baselines(xp, estimator):
    data = rows()
    y = data.target if isinstance(estimator, (MVMED, SVM2K, MED)) else data.y
    X, views = (data.data[:, :3], None) if isinstance(estimator, MED) else (data.data, data.views)
    model = sklearn.clone(estimator).set_params(**({} if views is None else {"views": views})).fit(X, y)
    check_same(model, X, xp)


def test_kernels_that_numpy_computes(xp):
    data = rows()
    model = CMVMED(views=data.views, kernel=lambda a, b: (1.0 + a @ b.T) ** 2, **LANDMARKS).fit(data.data, data.y)
    check_same(model, with_gaps(data.data), xp)


def test_rows_are_predicted_in_chunks(xp, monkeypatch):
    data = rows()
    model = CMVMED(views=data.views, **LANDMARKS).fit(data.data, data.y)
    monkeypatch.setattr(array_rows, "NUMBERS_AT_A_TIME", 1000)
    check_same(model, with_gaps(data.data), xp)


def test_a_table_per_view_of_any_type(xp):
    data = rows()
    first, second = data.data[:, :3].astype(np.float32), data.data[:, 3:].round().astype(np.int64)
    model = CMVMED(**LANDMARKS).fit({"a": first, "b": second}, data.y)
    expected = model.predict_proba({"a": first, "b": second})
    found = model.predict_proba({"b": put(xp, second), "a": put(xp, first)})
    np.testing.assert_allclose(on_host(found), expected, atol=1e-12)
    alone = model.predict_proba({"a": put(xp, first), "b": None})
    np.testing.assert_allclose(on_host(alone), model.predict_proba({"a": first, "b": None}), atol=1e-12)


def test_views_of_columns_that_are_not_side_by_side(xp):
    data = rows()
    views = {"even": [0, 2, 4], "odd": [5, 3, 1]}
    check_same(CMVMED(views=views, **LANDMARKS).fit(data.data, data.y), data.data, xp)


def test_classes_that_are_texts_are_returned_by_numpy(xp):
    data = rows()
    y = np.where(data.y < 0, None, np.array(["no", "yes"], dtype=object)[data.y])
    model = CMVMED(views=data.views, **LANDMARKS).fit(data.data, y)
    assert model.predict(put(xp, data.data)).tolist() == model.predict(data.data).tolist()


def test_other_methods_take_the_arrays_too(xp):
    data = rows()
    model = CMVMED(views=data.views, **LANDMARKS).fit(put(xp, data.data), put(xp, data.y))
    reference = CMVMED(views=data.views, **LANDMARKS).fit(data.data, data.y)
    np.testing.assert_array_equal(model.predict_proba(data.data), reference.predict_proba(data.data))
    assert model.score(put(xp, data.data), put(xp, data.target)) == model.score(data.data, data.target)
    np.testing.assert_array_equal(on_host(model.predict_set(put(xp, data.data))), model.predict_set(data.data))
    for view, shares in model.explain(data.data).items():
        np.testing.assert_array_equal(model.explain(put(xp, data.data))[view], shares)


def test_errors_and_warnings_are_those_of_other_rows(xp):
    data = rows()
    model = CMVMED(views=data.views, **LANDMARKS).fit(data.data, data.y)
    X = data.data.copy()
    X[4, 5] = np.inf
    with pytest.raises(ValueError, match=r"infinity: view 'view2', row 4, column 2"):
        model.predict(put(xp, X))
    with pytest.raises(ValueError, match="X has 5 features, but fit saw 6"):
        model.predict(put(xp, X[:, :5]))
    with pytest.raises(ValueError, match="at least one row"):
        model.predict(put(xp, X[:0]))
    with pytest.raises(ValueError, match="unequal numbers of rows"):
        model.predict({"view1": put(xp, X[:, :3]), "view2": put(xp, X[:9, 3:])})
    with pytest.raises(TypeError, match="give all views as arrays of one library"):
        model.predict({"view1": put(xp, X[:, :3]), "view2": X[:, 3:]})
    X[4] = np.nan
    with pytest.warns(UserWarning, match="1 of 150 rows have no view present, the first is row 4"):
        model.predict(put(xp, X))


def test_nothing_changes_without_the_setting(xp):
    data = rows()
    model = CMVMED(views=data.views, **LANDMARKS).fit(data.data, data.y)
    with sklearn.config_context(array_api_dispatch=False):
        assert array_place(xp.asarray(data.data)) is None
        assert isinstance(model.predict_proba(xp.asarray(data.data)), np.ndarray)


def test_a_device_without_double_precision_gets_what_numpy_computes(xp, monkeypatch):
    data = rows()
    model = CMVMED(views=data.views, **LANDMARKS).fit(data.data, data.y)
    monkeypatch.setattr("cmvmed.data.array_api.ArrayPlace.has_double_precision", False)
    found = model.predict_proba(put(xp, data.data))
    np.testing.assert_array_equal(on_host(found), model.predict_proba(data.data))


@pytest.mark.parametrize("X", [np.zeros((2, 2)), [[0.0]], None, "rows.npy", [np.zeros((2, 2)), None]])
def test_what_is_not_of_another_library_stays_as_it_is(X):
    assert array_place(X) is None
    assert on_host(X) is X
