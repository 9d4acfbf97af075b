"""The scores of all opinions together against those of each part of each opinion."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from cmvmed import CMVMED, config_context
from cmvmed._config import configured_memory_limit, configured_prediction_dtype
from cmvmed.auto.opinions.pool_scores import PoolScores
from cmvmed.datasets import make_multiview_gaussian


@pytest.fixture(scope="module", params=["exact", "nystroem"])
def fitted(request):
    data = make_multiview_gaussian(500, n_classes=3, n_views=3, n_features=5, labeled=40, random_state=0)
    model = CMVMED(views=data.views, approximation=request.param, n_components=80).fit(data.data, data.y)
    return model, data.data


def new_rows(X, kind):
    rows = X[:300] + 0.1
    if kind == "without views":
        rows[::3, :5] = np.nan
        rows[1::4, 5:10] = np.nan
    if kind == "with gaps":
        rows[::5, 2] = np.nan
    if kind == "equal to training rows":
        rows = X[:300].copy()
    return rows


@pytest.mark.parametrize("kind", ["whole", "without views", "with gaps", "equal to training rows"])
def test_shared_distances_change_no_score(fitted, kind):
    model, X = fitted
    pool = model._model.opinions.pool
    matrices = model._model.schema.layout.split(new_rows(X, kind))
    present = model._model.row_check.present(0, matrices)
    together = PoolScores(pool.scorers).scores(matrices, present)
    apart = np.stack([scorer.scores(matrices, present) for scorer in pool.scorers])
    np.testing.assert_allclose(together, apart, rtol=1e-9, atol=1e-11)


def test_each_distance_is_computed_once(fitted):
    scores = fitted[0]._model.opinions.pool._scores
    assert len(scores.graphs) == 4  # one by all views, and one by each
    assert len(scores.distances) == 3
    gaussians = sum(len(kernel.gaussians) for _, _, kernel in scores.kernels)
    assert gaussians == 3  # of "rbf" and of each view


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_in_single_precision_differ_by_rounding(fitted, dtype):
    model, X = fitted
    rows = new_rows(X, "without views").astype(dtype)
    double = model.predict_proba(rows)
    with config_context(prediction_dtype="float32"):
        single = model.predict_proba(rows)
    assert single.dtype == np.float64
    assert 1e-12 < np.abs(single - double).max() < 2e-5


def test_rows_given_in_single_precision_are_compared_in_double_precision(fitted):
    model, X = fitted
    rows = X.astype(np.float32)
    np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(rows.astype(np.float64)))
    np.testing.assert_array_equal(
        model.decision_function_by_view(rows)["view1"],
        model.decision_function_by_view(rows.astype(np.float64))["view1"],
    )


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_features_with_an_offset_keep_their_digits(offset):
    data = make_multiview_gaussian(200, n_features=4, labeled=20, random_state=1)
    X = data.data + offset
    model = CMVMED(views=data.views).fit(X, data.y)
    single = X.astype(np.float32)
    total = sum(model.explain(single).values())
    np.testing.assert_allclose(total, model.decision_function(single), atol=1e-8)
    double = model.predict_proba(X)
    with config_context(prediction_dtype="float32"):
        assert 0.0 < np.abs(model.predict_proba(X) - double).max() < 2e-5


def test_a_prediction_does_not_make_a_pickle_larger(fitted):
    model, X = fitted
    copied = pickle.loads(pickle.dumps(model))
    before = len(pickle.dumps(copied))
    expected = copied.predict_proba(X)
    after = pickle.dumps(copied)
    assert len(after) == before
    np.testing.assert_array_equal(pickle.loads(after).predict_proba(X), expected)


def test_settings_that_are_not_given_stay_as_they_are():
    with config_context(memory_limit="1GiB"), config_context(prediction_dtype="float32"):
        assert configured_memory_limit() == "1GiB"
        with config_context(memory_limit=None):
            assert configured_memory_limit() is None
            assert configured_prediction_dtype() is np.float32
    assert configured_memory_limit() is None
    assert configured_prediction_dtype() is np.float64


def test_an_unknown_precision_is_an_error():
    with pytest.raises(ValueError, match="prediction_dtype"), config_context(prediction_dtype="float16"):
        pass


def test_sparse_rows_are_scored_part_by_part(fitted):
    model, X = fitted
    rows = X[:50].copy()
    np.testing.assert_allclose(model.predict_proba(sparse.csr_matrix(rows)), model.predict_proba(rows), atol=1e-9)
