"""The compared methods fit, use no test row, and are tuned on the labeled rows only."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cmvmed import CMVMED, MED, SVM2K
from cmvmed.datasets import make_multiview_gaussian
from experiments import evaluation
from experiments.baseline_pipelines import (
    LabeledOnlyClassifier,
    LateFusionClassifier,
    concatenated_views,
    one_view,
)
from experiments.evaluation import evaluate, labeled_folds, tuned_estimator
from experiments.methods import (
    ALL_METHODS,
    CMV_MED,
    CMV_MED_PAPER,
    CMV_MED_PRINTED,
    CO_RLS,
    EACH_VIEW,
    GROUPS,
    KERNELS,
    LATE_FUSION,
    METHODS,
    MV_MED,
    SVM_2K,
    Candidate,
    Method,
    each_view_name,
    expand_groups,
    methods_for,
    with_kernel,
    without_kernel,
)
from experiments.result_rows import Key
from experiments.tasks import Task, draw_split

DATA = make_multiview_gaussian(160, separation=(3.0, 2.5), random_state=1)
SPLIT = draw_split(Task("small", lambda: DATA, 16, 60), 0)
ALL = methods_for(ALL_METHODS, list(SPLIT.views))
LABELED = SPLIT.y >= 0


def key(method, protocol="defaults"):
    return Key("spec", "small", 16, 0, method.name, protocol)


def without_timing(row):
    return replace(row, fit_seconds=None, predict_seconds=None, peak_mib=None, finished="")


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL, ids=[method.name for method in ALL])
def test_every_method_fits_and_repeats(method):
    row = evaluate(key(method), method, SPLIT)
    assert (row.status, row.error) == ("done", "")
    assert row.accuracy > row.majority_rate + 0.1
    assert row.kernel == method.kernel
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


CHEAP = ["logistic regression, labels only", "LabelSpreading knn"]


@pytest.mark.parametrize(
    "name", [*CHEAP, *(pytest.param(name, marks=pytest.mark.slow) for name in (MV_MED, CMV_MED_PAPER))]
)
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


class TwoParameters(BaseEstimator):
    """An estimator with two parameters; ``HITS`` has the accuracies."""

    def __init__(self, a=0, b=0):
        self.a, self.b = a, b


HITS = {(0, 0): 0.5, (1, 0): 0.5, (2, 0): 0.6, (2, 1): 0.6, (2, 2): 0.7, (0, 2): 0.9, (1, 2): 0.8}


def test_selection_is_one_parameter_after_the_other(monkeypatch):
    """a = 2 is better than the default, then b = 2 given a = 2; (0, 2), the best of all pairs, is not looked at."""
    monkeypatch.setattr(evaluation, "cross_validated_accuracy", lambda e, split: HITS[e.a, e.b])
    chosen = tuned_estimator(Candidate(TwoParameters(), {"a": [0, 1, 2], "b": [0, 1, 2]}), SPLIT)
    assert (chosen.a, chosen.b) == (2, 2)


def test_the_default_is_selected_if_no_value_is_better(monkeypatch):
    monkeypatch.setattr(evaluation, "cross_validated_accuracy", lambda e, split: HITS[e.a, e.b])
    assert tuned_estimator(Candidate(TwoParameters(), {"a": [0, 1]}), SPLIT).a == 0


def test_selection_is_that_of_grid_search_for_one_parameter():
    candidate = METHODS["logistic regression, labels only"].build(SPLIT)
    search = GridSearchCV(candidate.estimator, dict(candidate.grid), cv=labeled_folds(SPLIT.y), refit=False)
    best = search.fit(SPLIT.X, SPLIT.y).best_params_
    assert {name: tuned_estimator(candidate, SPLIT).get_params()[name] for name in best} == best


OUR_DEFAULT = (CMV_MED, with_kernel(CMV_MED, "rbf"))
SEARCHED = [method for method in ALL if method.name not in OUR_DEFAULT]


@pytest.mark.parametrize("method", SEARCHED, ids=[method.name for method in SEARCHED])
def test_bandwidth_variance_penalty_and_consensus_weight_are_tuned_where_they_exist(method):
    """C stands for σ² in methods without it: a hinge loss depends on their product."""
    candidate = method.build(SPLIT)
    grid = {name.rpartition("__")[2] for name in candidate.grid}
    parameters = {name.rpartition("__")[2] for name in candidate.estimator.get_params()}
    assert {"prior_variance", "consensus_weight"} & parameters <= grid
    assert not {"C", "prior_variance"} & parameters or {"C", "prior_variance"} & grid
    if method.kernel in KERNELS:
        assert "gamma" in grid


@pytest.mark.parametrize("name", OUR_DEFAULT)
def test_our_default_has_no_grid(name):
    assert not METHODS[name].build(SPLIT).grid


def test_methods_with_a_kernel_are_compared_with_both():
    kernels = {}
    for method in ALL:
        kernels.setdefault(without_kernel(method.name), set()).add(method.kernel)
    compared = {name for name, found in kernels.items() if found == set(KERNELS)}
    views = {f"MED, view {name}" for name in SPLIT.views}
    assert compared == {*views, LATE_FUSION, SVM_2K, MV_MED, CO_RLS, CMV_MED_PRINTED, CMV_MED_PAPER, CMV_MED}
    for method in ALL:
        estimator = method.build(SPLIT).estimator
        given = {value for name, value in estimator.get_params().items() if name.rpartition("__")[2] == "kernel"}
        default = {"auto"} if method.name == CMV_MED else set()  # "linear+rbf" on these data
        assert given <= {method.kernel} | default
        assert method.kernel


def test_a_name_without_kernel_has_the_default_parameters():
    assert METHODS[SVM_2K].build(SPLIT).estimator.get_params() == SVM2K(views=SPLIT.views).get_params()
    assert METHODS[CMV_MED].build(SPLIT).estimator.get_params() == CMVMED(views=SPLIT.views).get_params()
    assert METHODS[CMV_MED_PAPER].build(SPLIT).estimator.get_params() == CMVMED.paper(views=SPLIT.views).get_params()
    printed = CMVMED.paper(views=SPLIT.views, algorithm="printed")
    assert METHODS[CMV_MED_PRINTED].build(SPLIT).estimator.get_params() == printed.get_params()


def test_kernels_in_names():
    assert without_kernel(with_kernel("MED, each view", "linear+rbf")) == "MED, each view"
    assert without_kernel("SelfTraining (LR)") == "SelfTraining (LR)"
    assert each_view_name("MED, view a (linear+rbf)") == "MED, each view (linear+rbf)"
    assert each_view_name("MV-MED (linear+rbf)") == "MV-MED (linear+rbf)"


def test_groups():
    assert {METHODS[name].kernel for name in GROUPS["paper"][1:]} == {"rbf"}
    assert set(GROUPS["rbf"]) | set(GROUPS["linear+rbf"]) <= set(ALL_METHODS)
    assert not set(GROUPS["rbf"]) & set(GROUPS["linear+rbf"])
    assert expand_groups(["CMV-MED", "paper", "SVM-2K"]) == ("CMV-MED", *GROUPS["paper"])


@pytest.mark.slow
def test_accuracy_by_stage_is_recorded_without_changing_the_fit():
    method = METHODS["CMV-MED"]
    row = evaluate(key(method), method, SPLIT)
    model = CMVMED(views=SPLIT.views).fit(SPLIT.X, SPLIT.y)
    assert [stage["stage"] for stage in row.annealing] == list(range(1, model.n_stages + 1))
    assert row.accuracy == model.score(SPLIT.X_test, SPLIT.y_test)
    consensus = model.predict_proba_by_member(SPLIT.X_test)["consensus"].argmax(axis=1)
    assert row.annealing[-1]["consensus"] == pytest.approx(
        np.mean(consensus == SPLIT.y_test), abs=0.05
    )  # not calibrated
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


def test_missing_package_is_reported():
    method = Method("new", lambda split: None, package="no_such_package")
    assert method.missing_package() == "new needs no_such_package: pip install no_such_package"
    assert METHODS["CMV-MED"].missing_package() == ""
