"""The compared methods fit, use no test row, and are tuned on the labeled rows only."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cmvmed import CMVMED, MED
from cmvmed.datasets import make_multiview_gaussian
from cmvmed.reproduction.baseline_pipelines import (
    LabeledOnlyClassifier,
    LateFusionClassifier,
    concatenated_views,
    one_view,
)
from cmvmed.reproduction.evaluation import evaluate, labeled_folds, tuned_estimator
from cmvmed.reproduction.method_names import EACH_VIEW
from cmvmed.reproduction.methods import METHODS, Method, methods_for
from cmvmed.reproduction.result_rows import Key
from cmvmed.reproduction.tasks import Task, draw_split

DATA = make_multiview_gaussian(160, separation=(3.0, 2.5), random_state=1)
SPLIT = draw_split(Task("small", lambda: DATA, 16, 60), 0)
ALL = methods_for([EACH_VIEW, *METHODS], list(SPLIT.views))
LABELED = SPLIT.y >= 0


def key(method, protocol="defaults"):
    return Key("spec", "small", 16, 0, method.name, protocol)


def without_timing(row):
    return replace(row, fit_seconds=None, predict_seconds=None, peak_mib=None, finished="")


@pytest.mark.parametrize("method", ALL, ids=[method.name for method in ALL])
def test_every_method_fits_and_repeats(method):
    row = evaluate(key(method), method, SPLIT)
    assert (row.status, row.error) == ("done", "")
    assert row.accuracy > row.majority_rate + 0.1 or method.name == "majority class"
    assert row.n_test == 84
    assert row.n_train == 76
    assert row.fit_seconds > 0.0
    assert set(row.settings["chosen"]) == set(method.build(SPLIT).grid)
    assert without_timing(row) == without_timing(evaluate(key(method), method, SPLIT))


@pytest.mark.parametrize("method", ALL, ids=[method.name for method in ALL])
def test_defaults_are_first_in_the_grid(method):
    candidate = method.build(SPLIT)
    for name, values in candidate.grid.items():
        assert candidate.estimator.get_params()[name] == values[0]
        assert len(set(values)) == len(values)


@pytest.mark.parametrize("name", ["logistic regression, labels only", "LabelSpreading knn", "MV-MED", "CMV-MED"])
def test_tuning_does_not_depend_on_test_rows(name):
    method = METHODS[name]
    row = evaluate(key(method, "tuned"), method, SPLIT)
    other = replace(SPLIT, X_test=SPLIT.X_test[::-1] * 3.0, y_test=1 - SPLIT.y_test)
    again = evaluate(key(method, "tuned"), method, other)
    assert row.settings == again.settings
    assert row.settings["folds"] == 5
    assert row.accuracy != again.accuracy


def test_search_uses_the_labeled_rows():
    held_out = np.concatenate([test for _, test in labeled_folds(SPLIT.y).split(SPLIT.X, SPLIT.y)])
    np.testing.assert_array_equal(np.sort(held_out), np.flatnonzero(LABELED))


def test_search_params_do_not_change_the_selection():
    candidate = METHODS["CMV-MED"].build(SPLIT)
    assert candidate.search_params == {"calibrate": False}
    whole = replace(candidate, search_params={})
    names = list(candidate.grid)
    tuned = [tuned_estimator(one, SPLIT).get_params() for one in (candidate, whole)]
    assert {name: tuned[0][name] for name in names} == {name: tuned[1][name] for name in names}
    assert tuned[0]["calibrate"]


def test_accuracy_by_stage_is_recorded_without_changing_the_fit():
    method = METHODS["CMV-MED"]
    row = evaluate(key(method), method, SPLIT)
    model = CMVMED(views=SPLIT.views).fit(SPLIT.X, SPLIT.y)
    assert [stage["stage"] for stage in row.annealing] == list(range(1, model.n_stages + 1))
    assert row.annealing[-1]["consensus"] == row.accuracy == model.score(SPLIT.X_test, SPLIT.y_test)
    by_view = model.score_by_view(SPLIT.X_test, SPLIT.y_test)
    assert {name: row.annealing[-1][name] for name in SPLIT.views} == by_view


def test_exception_gives_a_failed_row():
    def build(split):
        raise RuntimeError("two\nlines")

    row = evaluate(key(METHODS["CMV-MED"]), Method("CMV-MED", build), SPLIT)
    assert (row.status, row.error, row.accuracy) == ("failed", "RuntimeError: two lines", None)


def test_labeled_only_classifier_is_fitted_to_the_labeled_rows():
    scaler = StandardScaler().fit(SPLIT.X)
    alone = SVC().fit(scaler.transform(SPLIT.X[LABELED]), SPLIT.y[LABELED])
    ours = concatenated_views(SPLIT.X, LabeledOnlyClassifier(SVC())).fit(SPLIT.X, SPLIT.y)
    X_test = scaler.transform(SPLIT.X_test)
    np.testing.assert_allclose(ours.decision_function(SPLIT.X_test), alone.decision_function(X_test), atol=1e-12)
    assert not hasattr(ours, "predict_proba")
    assert hasattr(concatenated_views(SPLIT.X, LabeledOnlyClassifier(LogisticRegression())), "predict_proba")


def test_concatenated_sparse_views_have_missing_values_filled():
    X = sparse.csr_array(np.where(np.abs(SPLIT.X) > 0.7, SPLIT.X, 0.0))
    X.data[:5] = np.nan
    scaled = concatenated_views(X, None)[:-1].fit_transform(X)
    lengths = np.sqrt(scaled.multiply(scaled).sum(axis=1))
    np.testing.assert_allclose(lengths[lengths > 0.0], 1.0)
    assert np.isnan(X.data).sum() == 5


def test_late_fusion_averages_the_views():
    fused = LateFusionClassifier(SPLIT.views, MED()).fit(SPLIT.X, SPLIT.y)
    alone = [one_view(view, MED()).fit(SPLIT.X, SPLIT.y).predict_proba(SPLIT.X_test) for view in SPLIT.views.values()]
    np.testing.assert_allclose(fused.predict_proba(SPLIT.X_test), (alone[0] + alone[1]) / 2.0)
    assert not np.allclose(alone[0], alone[1])


def test_methods_for_views():
    three = [method.name for method in methods_for(["SVM-2K", EACH_VIEW, "CMV-MED"], ["a", "b", "c"])]
    assert three == ["MED, view a", "MED, view b", "MED, view c", "CMV-MED"]
    assert [method.name for method in methods_for(["SVM-2K"], ["a", "b"])] == ["SVM-2K"]


def test_missing_package_is_reported_with_its_extra():
    method = Method("new", lambda split: None, package=("no_such_package", "baselines"))
    assert method.missing_package() == "new needs no_such_package: pip install 'cmvmed[baselines]'"
    assert METHODS["CMV-MED"].missing_package() == ""
