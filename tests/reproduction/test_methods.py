"""The compared methods: each fits, none sees a test row, settings come from the labeled rows alone."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cmvmed import CMVMED, MED
from cmvmed.datasets import make_multiview_gaussian
from cmvmed.reproduction.baseline_pipelines import LabeledOnly, LateFusion, concatenated_views, one_view
from cmvmed.reproduction.evaluation import chosen, evaluate, labeled_folds
from cmvmed.reproduction.methods import EACH_VIEW, METHODS, Method, methods_for
from cmvmed.reproduction.result_rows import Key
from cmvmed.reproduction.tasks import Task, draw

DATA = make_multiview_gaussian(160, separation=(3.0, 2.5), random_state=1)
SPLIT = draw(Task("small", lambda: DATA, 16, 60), 0)
ALL = methods_for([EACH_VIEW, *METHODS], list(SPLIT.views))
LABELED = SPLIT.y >= 0


def key(method, protocol="defaults"):
    return Key("spec", "small", 16, 0, method.name, protocol)


def without_chance(row):
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
    assert without_chance(row) == without_chance(evaluate(key(method), method, SPLIT))


@pytest.mark.parametrize("method", ALL, ids=[method.name for method in ALL])
def test_defaults_stand_first_in_the_grid(method):
    candidate = method.build(SPLIT)
    for name, values in candidate.grid.items():
        assert candidate.estimator.get_params()[name] == values[0]
        assert len(set(values)) == len(values)


@pytest.mark.parametrize("name", ["logistic regression, labels only", "LabelSpreading knn", "MV-MED", "CMV-MED"])
def test_choices_do_not_depend_on_test_rows(name):
    method = METHODS[name]
    row = evaluate(key(method, "tuned"), method, SPLIT)
    other = replace(SPLIT, X_test=SPLIT.X_test[::-1] * 3.0, y_test=1 - SPLIT.y_test)
    again = evaluate(key(method, "tuned"), method, other)
    assert row.settings == again.settings
    assert row.settings["folds"] == 5
    assert row.accuracy != again.accuracy


def test_the_search_is_over_the_labeled_rows():
    held_out = np.concatenate([test for _, test in labeled_folds(SPLIT.y).split(SPLIT.X, SPLIT.y)])
    np.testing.assert_array_equal(np.sort(held_out), np.flatnonzero(LABELED))


def test_the_choice_is_that_of_a_search_with_the_whole_fit():
    candidate = METHODS["CMV-MED"].build(SPLIT)
    assert candidate.while_searching == {"calibrate": False}
    whole = replace(candidate, while_searching={})
    names = list(candidate.grid)
    picked = [chosen(one, SPLIT).get_params() for one in (candidate, whole)]
    assert {name: picked[0][name] for name in names} == {name: picked[1][name] for name in names}
    assert picked[0]["calibrate"]  # the fit after the choice is a whole one


def test_cmvmed_tells_its_accuracy_by_stage_without_changing_the_fit():
    method = METHODS["CMV-MED"]
    row = evaluate(key(method), method, SPLIT)
    model = CMVMED(views=SPLIT.views).fit(SPLIT.X, SPLIT.y)
    assert [stage["stage"] for stage in row.annealing] == list(range(1, model.n_stages + 1))
    assert row.annealing[-1]["consensus"] == row.accuracy == model.score(SPLIT.X_test, SPLIT.y_test)
    by_view = model.score_by_view(SPLIT.X_test, SPLIT.y_test)
    assert {name: row.annealing[-1][name] for name in SPLIT.views} == by_view


def test_a_method_that_raises_becomes_a_row():
    def build(split):
        raise RuntimeError("no\nway")

    row = evaluate(key(METHODS["CMV-MED"]), Method("CMV-MED", build), SPLIT)
    assert (row.status, row.error, row.accuracy) == ("failed", "RuntimeError: no way", None)


def test_labels_only_is_the_classifier_on_the_labeled_rows():
    scaler = StandardScaler().fit(SPLIT.X)
    alone = SVC().fit(scaler.transform(SPLIT.X[LABELED]), SPLIT.y[LABELED])
    ours = concatenated_views(SPLIT.X, LabeledOnly(SVC())).fit(SPLIT.X, SPLIT.y)
    X_test = scaler.transform(SPLIT.X_test)
    np.testing.assert_allclose(ours.decision_function(SPLIT.X_test), alone.decision_function(X_test), atol=1e-12)
    assert not hasattr(ours, "predict_proba")
    assert hasattr(concatenated_views(SPLIT.X, LabeledOnly(LogisticRegression())), "predict_proba")


def test_side_by_side_of_sparse_views_fills_what_is_missing():
    X = sparse.csr_array(np.where(np.abs(SPLIT.X) > 0.7, SPLIT.X, 0.0))
    X.data[:5] = np.nan
    scaled = concatenated_views(X, None)[:-1].fit_transform(X)
    lengths = np.sqrt(scaled.multiply(scaled).sum(axis=1))
    np.testing.assert_allclose(lengths[lengths > 0.0], 1.0)
    assert np.isnan(X.data).sum() == 5


def test_late_fusion_is_the_mean_of_the_views():
    fused = LateFusion(SPLIT.views, MED()).fit(SPLIT.X, SPLIT.y)
    alone = [one_view(view, MED()).fit(SPLIT.X, SPLIT.y).predict_proba(SPLIT.X_test) for view in SPLIT.views.values()]
    np.testing.assert_allclose(fused.predict_proba(SPLIT.X_test), (alone[0] + alone[1]) / 2.0)
    assert not np.allclose(alone[0], alone[1])


def test_methods_for_views():
    three = [method.name for method in methods_for(["SVM-2K", EACH_VIEW, "CMV-MED"], ["a", "b", "c"])]
    assert three == ["MED, view a", "MED, view b", "MED, view c", "CMV-MED"]
    assert [method.name for method in methods_for(["SVM-2K"], ["a", "b"])] == ["SVM-2K"]


def test_a_missing_package_is_named_with_its_extra():
    method = Method("new", lambda split: None, package=("no_such_package", "rivals"))
    assert method.missing_package() == "new needs no_such_package: pip install 'cmvmed[rivals]'"
    assert METHODS["CMV-MED"].missing_package() == ""
