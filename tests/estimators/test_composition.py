"""The estimators inside scikit-learn: copies, files, pipelines, searches, ensembles, calibration, routing, HTML."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from cmvmed import CMVMED, MED, SemiSupervisedKFold, SemiSupervisedShuffleSplit
from cmvmed.model_selection import labeled_scorer
from tests.estimators.algorithms import with_algorithm

VIEWS = {"a": slice(0, 3), "b": slice(3, 5)}
COLUMNS = ["a_0", "a_1", "a_2", "b_0", "b_1"]


def quick(**settings):
    return CMVMED(**{"views": VIEWS, "n_stages": 2, **settings})


ESTIMATORS = {
    "med": MED(),
    "cmvmed": quick(),
    "per-view settings": quick(kernel={"a": "rbf", "b": "linear"}, C=[1.0, 0.5], view_weights={"a": 1.0, "b": 2.0}),
    "jaakkola": quick(algorithm="jaakkola"),
    "newton": quick(algorithm="newton"),
    "printed": with_algorithm("printed", views=VIEWS, n_stages=2),
}
parametrize_estimators = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())


def same_predictions(model, other, X):
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))
    return True


@parametrize_estimators
def test_a_clone_has_the_parameters_and_nothing_else(estimator, partly):
    model = clone(estimator).fit(partly.X, partly.y)
    copy = clone(model)
    assert copy.get_params().keys() == estimator.get_params().keys()
    assert repr(copy) == repr(estimator)
    assert not hasattr(copy, "classes_")
    assert same_predictions(copy.fit(partly.X, partly.y), model, partly.X)


@parametrize_estimators
def test_parameters_can_be_set_again(estimator):
    parameters = estimator.get_params()
    assert type(estimator)().set_params(**parameters).get_params() == parameters


@parametrize_estimators
def test_a_model_survives_pickling(estimator, partly):
    model = clone(estimator).fit(pd.DataFrame(partly.X, columns=COLUMNS), partly.y)
    copy = pickle.loads(pickle.dumps(model))
    X = pd.DataFrame(partly.X, columns=COLUMNS)
    assert same_predictions(copy, model, X)
    np.testing.assert_array_equal(copy.feature_names_in_, model.feature_names_in_)


@parametrize_estimators
def test_a_model_survives_a_file(estimator, partly, tmp_path):
    model = clone(estimator).fit(partly.X, partly.y)
    joblib.dump(model, tmp_path / "model.joblib")
    assert same_predictions(joblib.load(tmp_path / "model.joblib"), model, partly.X)
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")  # read-only arrays
    assert same_predictions(mapped, model, partly.X)


def test_everything_that_a_fit_learned_survives_pickling(partly):
    model = quick().fit(partly.X, partly.y)
    copy = pickle.loads(pickle.dumps(model))
    for name in ("transduction_", "label_distributions_", "view_weights_", "class_prior_", "objective_history_"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(model, name))
    assert (copy.view_names_, copy.dual_gap_, copy.n_iter_) == (model.view_names_, model.dual_gap_, model.n_iter_)


def test_a_pipeline(partly):
    pipeline = make_pipeline(StandardScaler(), quick(scaling=None)).fit(partly.X, partly.y)
    scaled = StandardScaler().fit_transform(partly.X)
    expected = quick(scaling=None).fit(scaled, partly.y)
    np.testing.assert_allclose(pipeline.predict_proba(partly.X), expected.predict_proba(scaled), atol=1e-10)
    assert pipeline.score(partly.X, partly.truth) == expected.score(scaled, partly.truth)
    np.testing.assert_array_equal(pipeline.classes_, [0, 1])


def by_sensor(**sensors):
    """A transformer per sensor, whose output columns carry the sensor's name as prefix."""
    columns = {"a": COLUMNS[:3], "b": COLUMNS[3:]}
    transformers = [(name, transformer, columns[name]) for name, transformer in sensors.items()]
    return ColumnTransformer(transformers).set_output(transform="pandas")


def test_a_column_transformer_in_front_names_the_views(partly):
    X = pd.DataFrame(partly.X, columns=COLUMNS)
    front = by_sensor(b=StandardScaler(), a=PCA(2))  # another order and another number of columns than in X
    model = make_pipeline(front, CMVMED(views={"a": "a__", "b": "b__"}, n_stages=2)).fit(X, partly.y)
    assert list(model[-1].feature_names_in_) == ["b__b_0", "b__b_1", "a__pca0", "a__pca1"]
    assert (model[-1].n_views_, model[-1].n_features_in_) == (2, 4)
    assert model.score(X, partly.truth) > 0.7


def test_a_feature_union_in_front_names_the_views(partly):
    X = pd.DataFrame(partly.X, columns=COLUMNS)
    union = FeatureUnion([("raw", "passthrough"), ("components", PCA(2))]).set_output(transform="pandas")
    model = make_pipeline(union, CMVMED(views={"raw": "raw__", "pca": "components__"}, n_stages=2)).fit(X, partly.y)
    assert model[-1].view_names_ == ["raw", "pca"]


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_the_output_of_a_transformer_in_front_may_have_any_container(output, partly):
    front = StandardScaler().set_output(transform=output)
    model = make_pipeline(front, quick()).fit(partly.X, partly.y)
    expected = make_pipeline(StandardScaler(), quick()).fit(partly.X, partly.y)
    np.testing.assert_allclose(model.predict_proba(partly.X), expected.predict_proba(partly.X), atol=1e-10)


def test_a_transformer_may_turn_one_X_into_a_dict_of_views(partly):
    split = FunctionTransformer(lambda X: {"a": X[:, :3], "b": X[:, 3:]})
    model = make_pipeline(split, CMVMED(n_stages=2)).fit(partly.X, partly.y)
    assert same_predictions(model, quick().fit(partly.X, partly.y), partly.X)


def test_missing_sensors_pass_through_a_pipeline(partly):
    X = partly.X.copy()
    X[12:20, :3] = np.nan
    model = make_pipeline(StandardScaler(), quick()).fit(X, partly.y)  # StandardScaler leaves NaN alone
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("scoring", [None, {"accuracy": labeled_scorer("accuracy")}], ids=["score", "labeled"])
def test_a_search_with_plain_folds_warns_from_score_and_names_the_tools(partly, scoring):
    """Plain folds hold unlabeled rows in their test parts; ``score`` leaves them out and says so."""
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(quick(n_stages=1), {"C": [1.0]}, cv=folds, scoring=scoring, refit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(partly.X, partly.y)
    told = [str(one.message) for one in caught if "not scored" in str(one.message)]
    assert len(told) == (3 if scoring is None else 0)
    assert all("SemiSupervisedKFold" in text and "labeled_scorer" in text for text in told)
    (scores,) = (search.cv_results_[key] for key in search.cv_results_ if key.startswith("mean_test"))
    assert scores[0] > np.mean(partly.y != -1)  # the most that scikit-learn's accuracy could give


def test_a_search_over_views(partly):
    grid = {"views": [None, [3, 2], {"b": [3, 4], "a": [0, 1, 2]}, {"all": slice(None)}]}
    search = GridSearchCV(quick(), grid, cv=SemiSupervisedKFold(3)).fit(partly.X, partly.y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert scores[0] == pytest.approx(scores[3])
    assert search.best_estimator_.transduction_.shape == (40,)


def test_a_search_over_settings_by_view(partly):
    grid = {
        "kernel": ["rbf", ["rbf", "linear"], {"a": "linear", "b": "rbf"}],
        "prior_variance": [1.0, {"a": 0.5, "b": 4.0}],
        "view_weights": ["uniform", [1.0, 2.0]],
    }
    search = GridSearchCV(quick(n_stages=1), grid, cv=SemiSupervisedKFold(2), error_score="raise")
    search.fit(partly.X, partly.y)
    assert len(search.cv_results_["params"]) == 12
    assert search.score(partly.X, partly.truth) == search.best_estimator_.score(partly.X, partly.truth)


def test_a_search_over_the_steps_of_a_pipeline(partly):
    X = pd.DataFrame(partly.X, columns=COLUMNS)
    pipeline = Pipeline([("front", by_sensor(a=PCA(2), b="passthrough")), ("model", CMVMED(n_stages=1))])
    grid = {"front__a__n_components": [1, 3], "model__views": [None, {"a": "a__", "b": "b__"}], "model__C": [0.5, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=SemiSupervisedKFold(2), error_score="raise").fit(X, partly.y)
    assert len(search.cv_results_["params"]) == 8


def test_a_search_counts_labeled_rows_only(partly):
    search = GridSearchCV(quick(), {"C": [1.0]}, cv=SemiSupervisedKFold(5)).fit(partly.X, partly.y)
    by_hand = []
    for train, test in SemiSupervisedKFold(5).split(partly.X, partly.y):
        model = quick(C=1.0).fit(partly.X[train], partly.y[train])
        by_hand.append((model.predict(partly.X[test]) == partly.y[test]).mean())
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


@pytest.mark.slow
def test_a_random_search_in_two_processes(partly):
    search = RandomizedSearchCV(
        quick(),
        {"C": [0.1, 1.0, 10.0], "gamma": ["median", 0.5]},
        n_iter=3,
        cv=SemiSupervisedShuffleSplit(2, test_size=0.4, random_state=0),
        n_jobs=2,
        random_state=0,
    )
    assert search.fit(partly.X, partly.y).best_score_ > 0.5


@pytest.mark.parametrize("y_type", ["strings", "NaN"])
def test_cross_validation_of_other_labels(y_type, partly):
    y = {
        "strings": np.where(partly.hidden, "-1", np.array(["cat", "dog"])[partly.y]),
        "NaN": np.where(partly.hidden, np.nan, partly.y),
    }[y_type]
    expected = cross_val_score(quick(), partly.X, partly.y, cv=SemiSupervisedKFold(3))
    np.testing.assert_array_equal(cross_val_score(quick(), partly.X, y, cv=SemiSupervisedKFold(3)), expected)


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc", "neg_log_loss", "f1", None])
def test_the_scores_of_scikit_learn(scoring, partly):
    scores = cross_val_score(quick(), partly.X, partly.y, cv=SemiSupervisedKFold(3), scoring=scoring)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("scoring", ["roc_auc_ovr", "neg_log_loss", "accuracy"])
def test_the_scores_of_scikit_learn_for_three_classes(scoring, partly_three):
    X, y = partly_three.X, partly_three.y
    scores = cross_val_score(quick(), X, y, cv=SemiSupervisedKFold(3), scoring=scoring)
    assert np.isfinite(scores).all()


def test_splitters_of_scikit_learn_with_a_scorer_that_skips_unlabeled_rows(partly):
    scores = cross_validate(quick(), partly.X, partly.y, cv=2, scoring=labeled_scorer(["accuracy", "f1"]))
    assert np.isfinite(scores["test_accuracy"]).all()
    assert get_scorer("accuracy")(quick().fit(partly.X, partly.y), partly.X, partly.truth) > 0.7


def test_one_X_passes_through_the_splitters_and_curves(partly):
    X_train, X_test, y_train, y_test = train_test_split(
        pd.DataFrame(partly.X, columns=COLUMNS), partly.truth, random_state=0, stratify=partly.truth
    )
    model = quick(views={"a": "a_", "b": "b_"}).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.6
    sizes, train_scores, test_scores = learning_curve(
        quick(), partly.X, partly.truth, train_sizes=[0.5, 1.0], cv=2, shuffle=True, random_state=0
    )
    assert len(sizes) == 2
    assert np.isfinite(train_scores).all()
    assert np.isfinite(test_scores).all()
    assert cross_val_predict(quick(), partly.X, partly.truth, cv=3, method="predict_proba").shape == (40, 2)


def test_permutation_importance_finds_the_columns_that_matter(partly):
    X = np.hstack([partly.X, np.random.default_rng(0).normal(size=(40, 1))])
    model = CMVMED(views=[3, 3]).fit(X, partly.y)
    result = permutation_importance(model, X, partly.truth, n_repeats=5, random_state=0)
    assert result.importances_mean[:5].max() > result.importances_mean[5]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", ["med", "cmvmed"])
def test_calibration_of_labeled_rows(name, method, partly):
    calibrated = CalibratedClassifierCV(ESTIMATORS[name], method=method, cv=3).fit(partly.X, partly.truth)
    np.testing.assert_allclose(calibrated.predict_proba(partly.X).sum(axis=1), 1.0, atol=1e-12)
    assert calibrated.score(partly.X, partly.truth) > 0.7


def test_calibration_of_a_model_that_saw_unlabeled_rows(partly):
    y = np.where(np.arange(40) < 24, partly.truth, -1)
    train, held_out = next(SemiSupervisedShuffleSplit(1, test_size=0.5, random_state=0).split(partly.X, y))
    model = quick().fit(partly.X[train], y[train])
    calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(partly.X[held_out], y[held_out])
    np.testing.assert_array_equal(calibrated.classes_, [0, 1])
    probability = calibrated.predict_proba(partly.X)[:, 1]
    order = np.argsort(model.decision_function(partly.X))
    assert np.diff(probability[order]).min() >= 0.0


def test_calibration_of_three_classes(partly_three):
    calibrated = CalibratedClassifierCV(quick(), cv=3).fit(partly_three.X, partly_three.truth)
    assert calibrated.predict_proba(partly_three.X).shape == (42, 3)


@pytest.mark.parametrize("name", ["med", "cmvmed"])
def test_bagging_of_labeled_rows(name, partly):
    bagging = BaggingClassifier(ESTIMATORS[name], n_estimators=4, random_state=0).fit(partly.X, partly.truth)
    assert bagging.score(partly.X, partly.truth) > 0.7


def test_bagging_of_unlabeled_rows(partly):
    """Bagging numbers the values of y, and -1 becomes 0: the marker of the model inside."""
    bagging = BaggingClassifier(quick(unlabeled=0), n_estimators=5, max_samples=0.9, bootstrap=False, random_state=0)
    bagging.fit(partly.X, partly.y)
    assert set(bagging.predict(partly.X)) == {0, 1}
    np.testing.assert_allclose(bagging.predict_proba(partly.X)[:, 0], 0.0, atol=0.0)  # no class is "unlabeled"
    assert (bagging.predict(partly.X) == partly.truth).mean() > 0.7


def test_bagging_of_columns(partly):
    bagging = BaggingClassifier(MED(), max_features=0.6, n_estimators=4, random_state=0).fit(partly.X, partly.truth)
    assert bagging.predict_proba(partly.X).shape == (40, 2)


def test_voting_stacking_and_one_against_the_rest(partly, partly_three):
    both = [("med", MED()), ("consensus", quick())]
    voting = VotingClassifier(both, voting="soft").fit(partly.X, partly.truth)
    stacking = StackingClassifier(both, LogisticRegression(), cv=2).fit(partly.X, partly.truth)
    rest = OneVsRestClassifier(quick()).fit(partly_three.X, partly_three.truth)
    assert voting.score(partly.X, partly.truth) > 0.7
    assert stacking.score(partly.X, partly.truth) > 0.7
    assert rest.score(partly_three.X, partly_three.truth) > 0.6


def test_a_precomputed_kernel_is_split_along_both_axes(partly):
    """scikit-learn takes the columns of the training rows where the tag ``pairwise`` is set."""
    K = partly.X @ partly.X.T
    model = CMVMED(kernel="precomputed", n_stages=2)
    found = cross_val_score(model, K, partly.y, cv=SemiSupervisedKFold(3))
    expected = CMVMED(kernel="linear", scaling=None, n_stages=2)
    np.testing.assert_array_equal(found, cross_val_score(expected, partly.X, partly.y, cv=SemiSupervisedKFold(3)))
    assert model.__sklearn_tags__().input_tags.pairwise
    assert not CMVMED().__sklearn_tags__().input_tags.pairwise


@parametrize_estimators
def test_the_page_of_an_estimator(estimator, partly):
    for model in (clone(estimator), clone(estimator).fit(partly.X, partly.y)):
        page = model._repr_html_()
        assert type(estimator).__name__ in page
        assert "prior_variance" in page
    assert "text/html" in estimator._repr_mimebundle_()


def test_the_page_of_a_pipeline(partly):
    pipeline = make_pipeline(by_sensor(a=PCA(2), b=StandardScaler()), quick(views={"a": "a__", "b": "b__"}))
    page = pipeline.fit(pd.DataFrame(partly.X, columns=COLUMNS), partly.y)._repr_html_()
    assert all(name in page for name in ("ColumnTransformer", "PCA", "CMVMED"))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", ["med", "cmvmed"])
def test_weights_are_routed_through_a_pipeline(name, partly):
    weights = np.linspace(0.2, 3.0, 40)
    model = clone(ESTIMATORS[name]).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, model).fit(partly.X, partly.y, sample_weight=weights)
    scaled = StandardScaler().fit_transform(partly.X)
    expected = clone(ESTIMATORS[name]).fit(scaled, partly.y, sample_weight=weights)
    np.testing.assert_allclose(pipeline.predict_proba(partly.X), expected.predict_proba(scaled), atol=1e-10)
    plain = clone(ESTIMATORS[name]).fit(scaled, partly.y)
    assert np.abs(plain.predict_proba(scaled) - expected.predict_proba(scaled)).max() > 1e-4


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_a_search(partly):
    weights = np.linspace(0.2, 3.0, 40)
    model = quick().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"C": [0.5, 2.0]}, cv=SemiSupervisedKFold(2), error_score="raise")
    search.fit(partly.X, partly.y, sample_weight=weights)
    expected = clone(search.best_estimator_).fit(partly.X, partly.y, sample_weight=weights)
    assert same_predictions(search.best_estimator_, expected, partly.X)


@pytest.mark.usefixtures("routing")
def test_groups_and_random_rows_are_routed_through_a_search(partly):
    """The splitter takes the groups too: no group is in training and in test."""
    given = {"groups": np.arange(40) // 2, "random_rows": np.ones(40, dtype=bool)}
    model = CMVMED(views={"a": slice(0, 3), "b": slice(3, 6)}, members="consensus", n_stages=2)
    search = GridSearchCV(
        clone(model).set_fit_request(groups=True, random_rows=True),
        {"C": [0.5, 2.0]},
        cv=SemiSupervisedKFold(2),
        error_score="raise",
    )
    search.fit(partly.X, partly.y, **given)
    expected = clone(model).set_params(**search.best_params_).fit(partly.X, partly.y, **given)
    assert same_predictions(search.best_estimator_, expected, partly.X)
    assert search.best_estimator_.accuracy_estimate() == expected.accuracy_estimate()
    assert expected.accuracy_estimate().n_groups > 0
    assert expected.accuracy_estimate().n_random > 0
    plain = clone(model).set_params(**search.best_params_).fit(partly.X, partly.y)
    assert plain.accuracy_estimate().n_groups == plain.accuracy_estimate().n_random == 0


@pytest.mark.usefixtures("routing")
def test_groups_are_routed_through_cross_validation_of_a_pipeline(partly):
    seen = []

    class Recorder(CMVMED):
        def fit(self, X, y, sample_weight=None, groups=None, random_rows=None):
            seen.append(groups)
            return super().fit(X, y, sample_weight, groups, random_rows)

    groups = np.arange(40) // 2
    model = Recorder(members="consensus", n_stages=2).set_fit_request(groups=True)
    scores = cross_val_score(
        make_pipeline(StandardScaler(), model), partly.X, partly.y, cv=SemiSupervisedKFold(2), params={"groups": groups}
    )
    expected = [groups[train] for train, _ in SemiSupervisedKFold(2).split(partly.X, partly.y, groups)]
    assert np.isfinite(scores).all()
    assert [own.tolist() for own in seen] == [own.tolist() for own in expected]


@pytest.mark.usefixtures("routing")
def test_weights_that_nobody_asked_for_are_refused(partly):
    search = GridSearchCV(quick(), {"C": [0.5]}, cv=SemiSupervisedKFold(2), error_score="raise")
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        search.fit(partly.X, partly.y, sample_weight=np.ones(40))


def test_weights_without_routing_go_to_the_named_step(partly):
    weights = np.linspace(0.2, 3.0, 40)
    pipeline = Pipeline([("model", quick())]).fit(partly.X, partly.y, model__sample_weight=weights)
    assert same_predictions(pipeline, quick().fit(partly.X, partly.y, sample_weight=weights), partly.X)


def test_generic_data_of_scikit_learn():
    X, y = make_classification(60, 8, n_informative=6, n_classes=3, random_state=0)
    y[20:] = np.where(np.arange(40) % 2, y[20:], -1)
    model = CMVMED(views=[4, 4], n_stages=2).fit(X, y)
    labeled = y >= 0
    assert model.score(X[labeled], y[labeled]) > 0.8
