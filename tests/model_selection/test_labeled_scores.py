"""Scores and searches over partly labeled data."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from cmvmed.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit, hide_labels, labeled_scorer


@pytest.fixture(scope="module")
def digits():
    """Digits whose truth is known, with 60 labels kept: X, y, truth."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:600] / 16.0, truth[:600]
    return X, hide_labels(truth, 60, random_state=0), truth


@pytest.mark.parametrize(
    "model",
    [LabelSpreading(gamma=5), SelfTrainingClassifier(LogisticRegression(C=10.0), threshold=0.9, max_iter=2)],
    ids=["LabelSpreading", "SelfTraining"],
)
def test_cross_validation_gives_the_true_figure_where_plain_folds_score_the_marker(digits, model):
    X, y, truth = digits
    hidden = y == -1
    true_accuracy = accuracy_score(truth[hidden], clone(model).fit(X, y).predict(X[hidden]))
    ours = cross_val_score(model, X, y, cv=SemiSupervisedKFold(5, shuffle=True, random_state=0)).mean()
    plain = cross_val_score(model, X, y, cv=KFold(2)).mean()
    # 60 labels are scored: the standard error of an accuracy near 0.85 is 0.046.
    assert ours == pytest.approx(true_accuracy, abs=0.1)
    # A tenth of the rows is labeled; a plain fold calls every prediction on the others wrong.
    assert plain <= 0.1
    assert true_accuracy > 0.75


def test_grid_search_finds_what_the_hidden_truth_prefers(digits):
    X, y, truth = digits
    search = GridSearchCV(LabelSpreading(), {"gamma": [0.01, 5.0]}, cv=SemiSupervisedKFold(3)).fit(X, y)
    hidden = y == -1
    truth_prefers = max(
        [0.01, 5.0], key=lambda gamma: LabelSpreading(gamma=gamma).fit(X, y).score(X[hidden], truth[hidden])
    )
    assert search.best_params_ == {"gamma": truth_prefers}
    assert search.best_score_ > 0.8
    assert accuracy_score(truth[hidden], search.predict(X[hidden])) > 0.8
    clone(search)


def test_cross_validate_with_several_labeled_scores(digits):
    X, y, _ = digits
    cv = SemiSupervisedShuffleSplit(2, test_size=0.3, random_state=0)
    scoring = {"accuracy": labeled_scorer("accuracy"), "log_loss": labeled_scorer("neg_log_loss")}
    with_dict = cross_validate(LabelSpreading(gamma=5), X, y, cv=cv, scoring=scoring)
    with_list = cross_validate(
        LabelSpreading(gamma=5), X, y, cv=cv, scoring=labeled_scorer(["accuracy", "neg_log_loss"])
    )
    np.testing.assert_array_equal(with_dict["test_accuracy"], with_list["test_accuracy"])
    np.testing.assert_array_equal(with_dict["test_log_loss"], with_list["test_neg_log_loss"])


def test_cross_val_predict_needs_a_partition_of_all_rows(digits):
    X, y, _ = digits
    with pytest.raises(ValueError, match="only works for partitions"):
        cross_val_predict(LabelSpreading(gamma=5), X, y, cv=SemiSupervisedKFold(3))


def weights_of_class_three(y):
    """Weights under which the prediction "3" for every row is as good as always right."""
    return (y == 3) + 1e-12


def test_metadata_routing_reaches_the_labeled_scorer(digits):
    X, y, _ = digits
    weights = {"sample_weight": weights_of_class_three(y)}
    with sklearn.config_context(enable_metadata_routing=True):
        model = DummyClassifier(strategy="constant", constant=3).set_fit_request(sample_weight=False)
        weighted = labeled_scorer(make_scorer(accuracy_score).set_score_request(sample_weight=True))
        cv = SemiSupervisedKFold(3)
        with_weights = cross_val_score(model, X, y, cv=cv, scoring=weighted, params=weights)
        without_weights = cross_val_score(model, X, y, cv=cv, scoring=labeled_scorer())
    np.testing.assert_allclose(with_weights, 1.0, rtol=1e-9)
    np.testing.assert_allclose(without_weights, 0.1, rtol=1e-9)


@pytest.mark.parametrize("scoring", [labeled_scorer(), {"score": labeled_scorer()}], ids=["one", "dict"])
def test_grid_search_hands_weights_to_the_scorer(digits, scoring):
    X, y, _ = digits
    search = GridSearchCV(
        DummyClassifier(strategy="constant"), {"constant": [3]}, cv=SemiSupervisedKFold(3), scoring=scoring, refit=False
    ).fit(X, y, sample_weight=weights_of_class_three(y))
    scores = [search.cv_results_[key][0] for key in search.cv_results_ if key.startswith("mean_test")]
    np.testing.assert_allclose(scores, 1.0, rtol=1e-9)


class ReadsLabelFromX(ClassifierMixin, BaseEstimator):
    """A stand-in classifier that predicts the first column of X, whatever the container."""

    classes_ = np.array([0.0, 1.0])

    def fit(self, X, y):
        return self

    def predict(self, X):
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return dense[:, 0]


ROWS = [[0.0, 7.0], [1.0, 7.0], [1.0, 7.0], [0.0, 7.0]]


@pytest.mark.parametrize(
    "X",
    [
        ROWS,
        np.array(ROWS),
        sparse.csr_array(ROWS),
        sparse.csc_array(ROWS),
        sparse.coo_array(ROWS),
        pd.DataFrame(ROWS, index=[5, 5, 5, 5]),
        pl.DataFrame(ROWS, schema=["a", "b"], orient="row"),
    ],
    ids=["list", "array", "csr", "csc", "coo", "pandas", "polars"],
)
@pytest.mark.parametrize(
    "y",
    [
        [0, None, 0, 0],
        np.array([0, -1, 0, 0]),
        np.array([0.0, np.nan, 0.0, 0.0]),
        np.array([0, None, 0, 0], dtype=object),
        pd.Series([0, None, 0, 0], dtype="Int64"),
        pl.Series([0, None, 0, 0]),
    ],
    ids=["list", "int", "float", "object", "pandas", "polars"],
)
def test_the_labeled_scorer_takes_every_container(X, y):
    assert labeled_scorer()(ReadsLabelFromX(), X, y) == pytest.approx(2 / 3)


def test_the_labeled_scorer_drops_the_weights_of_unlabeled_rows():
    y = np.array([0, -1, 0, 0])
    weighted = labeled_scorer("accuracy")(ReadsLabelFromX(), np.array(ROWS), y, sample_weight=[1.0, 50.0, 2.0, 1.0])
    assert weighted == pytest.approx(0.5)
    assert labeled_scorer()(ReadsLabelFromX(), np.array(ROWS), y, sample_weight=None) == pytest.approx(2 / 3)


def score_with_offset(estimator, X, y, offset):
    return float(np.mean(estimator.predict(X) == y)) + offset


def test_the_labeled_scorer_wraps_functions_and_passes_their_other_arguments():
    scorer = labeled_scorer(score_with_offset)
    assert scorer(ReadsLabelFromX(), np.array(ROWS), [0, -1, 0, 0], offset=10.0) == pytest.approx(10 + 2 / 3)
    assert not scorer._accept_sample_weight()
    without_weights = scorer(ReadsLabelFromX(), np.array(ROWS), [0, -1, 0, 0], offset=0.0, sample_weight=None)
    assert without_weights == pytest.approx(2 / 3)


def test_the_labeled_scorer_can_be_pickled_and_printed():
    scorer = labeled_scorer("balanced_accuracy", unlabeled=99)
    twin = pickle.loads(pickle.dumps(scorer))
    assert twin(ReadsLabelFromX(), ROWS, [0, 99, 1, 1]) == scorer(ReadsLabelFromX(), ROWS, [0, 99, 1, 1]) == 0.75
    assert repr(scorer).startswith("labeled_scorer(make_scorer(balanced_accuracy_score")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scoring": "no such score"}, "scoring"),
        ({"scoring": None}, "got None"),
        ({"scoring": accuracy_score}, "looks like it is a metric"),
    ],
)
def test_the_labeled_scorer_refuses_what_is_no_scorer(arguments, message):
    with pytest.raises(ValueError, match=message):
        labeled_scorer(**arguments)


def test_a_test_set_without_labels_cannot_be_scored():
    with pytest.raises(ValueError, match="none of the 4 rows is labeled"):
        labeled_scorer()(ReadsLabelFromX(), ROWS, [-1, -1, None, -1])


def test_rows_of_the_scored_X_and_y_must_agree():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        labeled_scorer()(ReadsLabelFromX(), ROWS, [0, 1, 1])
