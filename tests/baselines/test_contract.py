"""What every baseline shares with CMVMED: forms of X and y, missing views, several classes, composition."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from cmvmed.estimators.corls import CoRLS
from cmvmed.estimators.mvmed import MVMED
from cmvmed.estimators.svm2k import SVM2K
from tests.core.factories import rejects

BASELINES = [
    pytest.param(SVM2K(), id="SVM2K"),
    pytest.param(SVM2K(transductive=True, epsilon=0.1), id="SVM2K transductive"),
    pytest.param(MVMED(), id="MVMED"),
    pytest.param(CoRLS(), id="CoRLS least squares"),
    pytest.param(CoRLS(form="svm"), id="CoRLS svm"),
]
every_baseline = pytest.mark.parametrize("baseline", BASELINES)
WIDTHS = [3, 2]
SAME_PRIOR_FOR_ANY_NUMBER_OF_CLASSES = {"SVM2K": {}, "MVMED": {"prior_variance": 5.0}, "CoRLS": {}}


def draw(n_classes, seed, *, n_rows=60, n_labeled=18):
    """X (n, 5) of two views, y with -1 for unlabeled rows, and the truth."""
    random = np.random.default_rng(seed)
    truth = np.arange(n_rows) % n_classes
    X = 2.5 * random.normal(size=(n_classes, 5))[truth] + random.normal(size=(n_rows, 5))
    return X, np.where(np.arange(n_rows) < n_labeled, truth, -1), truth


def fit(baseline, X, y, *, views=WIDTHS, **settings):
    return clone(baseline).set_params(views=views, **settings).fit(X, y)


@every_baseline
def test_learns_two_classes(baseline):
    X, y, truth = draw(2, 0)
    model = fit(baseline, X, y)
    assert model.score(X, truth) > 0.9
    assert model.decision_function(X).shape == (60,)
    assert model.view_names_ == ["view0", "view1"]
    assert model.n_views_ == 2


@every_baseline
def test_learns_several_classes_each_against_the_rest(baseline):
    X, y, truth = draw(3, 1)
    baseline = clone(baseline).set_params(**SAME_PRIOR_FOR_ANY_NUMBER_OF_CLASSES[type(baseline).__name__])
    model = fit(baseline, X, y)
    decision = model.decision_function(X)
    assert decision.shape == (60, 3)
    assert model.score(X, truth) > 0.85
    binary = fit(baseline, X, np.where(y == -1, -1, y == 1))
    np.testing.assert_allclose(decision[:, 1], binary.decision_function(X), rtol=0.0, atol=1e-7)


@every_baseline
def test_names_of_classes_do_not_matter(baseline):
    X, y, _ = draw(3, 2)
    names = np.array(["ant", "bee", "cat", None], dtype=object)
    model, named = fit(baseline, X, y), fit(baseline, X, names[y])
    assert named.classes_.tolist() == ["ant", "bee", "cat"]
    assert (named.predict(X) == names[model.predict(X)]).all()
    np.testing.assert_array_equal(named.decision_function(X), model.decision_function(X))


@every_baseline
def test_forms_of_x_give_the_same_model(baseline):
    X, y, _ = draw(2, 3)
    expected = fit(baseline, X, y).decision_function(X)
    frame = pd.DataFrame(X, columns=["a_0", "a_1", "a_2", "b_0", "b_1"])
    forms = [
        (list(np.split(X, [3], axis=1)), None),
        ({"a": X[:, :3], "b": X[:, 3:]}, None),
        (frame, {"a": "a_", "b": "b_"}),
    ]
    for form, views in forms:
        given = fit(baseline, form, y, views=views).decision_function(form)
        np.testing.assert_allclose(given, expected, rtol=0.0, atol=1e-9)


@every_baseline
def test_sparse_rows_give_the_model_of_dense_ones(baseline):
    X, y, _ = draw(2, 4)
    dense = fit(baseline, np.abs(X), y, scaling="unit")
    rows = sparse.csr_matrix(np.abs(X))
    given = fit(baseline, rows, y, scaling="unit").decision_function(rows)
    np.testing.assert_allclose(given, dense.decision_function(np.abs(X)), rtol=0.0, atol=1e-8)


@every_baseline
def test_precomputed_kernels_give_the_model_of_their_features(baseline):
    X, y, _ = draw(2, 5)
    parts = np.split(X, [3], axis=1)
    expected = fit(baseline, X, y, kernel="linear", scaling=None).decision_function(X)
    grams = [part @ part.T for part in parts]
    given = fit(baseline, grams, y, views=None, kernel="precomputed").decision_function(grams)
    np.testing.assert_allclose(given, expected, rtol=0.0, atol=1e-8)


def without_second_view(X, rows):
    gaps = X.copy()
    gaps[rows, 3:] = np.nan
    return gaps


@every_baseline
def test_rows_without_a_view_are_scored_by_the_other(baseline):
    X, y, truth = draw(2, 6)
    model = fit(baseline, X, y)
    gaps = without_second_view(X, slice(None))
    changed = gaps.copy()
    changed[:, :3] = X[::-1, :3]
    assert model.score(gaps, truth) > 0.75
    np.testing.assert_array_equal(model.decision_function(changed), model.decision_function(gaps)[::-1])


@every_baseline
def test_views_may_be_missing_at_fit(baseline):
    X, y, truth = draw(2, 7)
    gaps = without_second_view(X, slice(0, 60, 3))
    model = fit(baseline, gaps, y)
    assert np.isfinite(model.decision_function(gaps)).all()
    assert model.score(X, truth) > 0.8


@every_baseline
def test_view_that_no_row_has_leaves_the_model_of_the_other(baseline):
    X, y, _ = draw(2, 8)
    gaps = without_second_view(X, slice(None))
    one_view = fit(baseline, X[:, :3], y, views=None)
    expected = one_view.decision_function(X[:, :3])
    np.testing.assert_allclose(fit(baseline, gaps, y).decision_function(X), expected, rtol=0.0, atol=1e-8)


@every_baseline
def test_rows_without_any_view_get_the_class_prior(baseline):
    X, _, _ = draw(2, 9)
    X[-1] = np.nan
    model = fit(baseline, X, np.where(np.arange(60) < 18, np.arange(60) % 3 > 0, -1))
    with pytest.warns(UserWarning, match="1 of 60 rows have no view"):
        assert model.predict(X)[-1] == 1


@every_baseline
def test_row_of_weight_two_counts_as_two_rows(baseline):
    X, y, _ = draw(2, 10)
    weights = np.where(np.arange(60) % 4 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    model = clone(baseline).set_params(views=WIDTHS)
    weighted = clone(model).fit(X, y, sample_weight=weights).decision_function(X)
    np.testing.assert_allclose(clone(model).fit(X[repeated], y[repeated]).decision_function(X), weighted, atol=1e-6)
    rejects(np.testing.assert_allclose, clone(model).fit(X, y).decision_function(X), weighted, atol=1e-6)


@every_baseline
def test_weights_of_a_class_move_the_border(baseline):
    X, y, _ = draw(2, 11)
    model = clone(baseline).set_params(views=WIDTHS)
    plain, eager = (
        clone(model).fit(X, y, sample_weight=np.where(y == 0, weight, 1.0)).decision_function(X)
        for weight in (1.0, 0.1)
    )
    assert eager.mean() > plain.mean()


@every_baseline
def test_can_be_searched_copied_and_stored(baseline):
    X, _, truth = draw(2, 12)
    search = GridSearchCV(clone(baseline).set_params(views=WIDTHS), {"kernel": ["linear", "rbf"]}, cv=2).fit(X, truth)
    assert search.best_score_ > 0.9
    copy = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(copy.decision_function(X), search.decision_function(X))


@pytest.mark.parametrize(
    ("baseline", "offers"), [(SVM2K(), False), (MVMED(), True), (CoRLS(), False), (CoRLS(form="svm"), False)]
)
def test_probabilities_only_where_the_method_has_them(baseline, offers):
    assert hasattr(baseline, "predict_proba") == offers
