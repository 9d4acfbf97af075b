"""Splits, scores and searches over partly labeled data."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from cmvmed.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit, hide_labels, labeled_scorer
from tests.core.factories import rejects


def labels_with_counts(counts, n_unlabeled, seed):
    """Shuffled y with counts[k] rows of class k and n_unlabeled rows of -1."""
    y = np.repeat(np.arange(-1, len(counts)), [n_unlabeled, *counts])
    return np.random.default_rng(seed).permutation(y)


def splits_of(splitter, y):
    """All splits, with the warnings about rare classes put aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros((len(y), 1)), y))


def check_tests_are_labeled(y, splits):
    assert all((y[test] != -1).all() for _, test in splits)


def check_no_class_vanishes(y, splits):
    classes = set(y[y != -1])
    assert all(classes <= set(y[train]) for train, _ in splits)


def check_unlabeled_rows_train(y, splits):
    assert all(set(np.flatnonzero(y == -1)) <= set(train) for train, _ in splits)


def check_train_and_test_are_disjoint(splits):
    assert all(len(np.unique(np.concatenate(split))) == sum(map(len, split)) for split in splits)
    assert all(len(test) for _, test in splits)


# Class 0 has enough labels for every n_splits in use; the others may be rare down to a single label.
class_counts = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(lambda others: [6, *others])
partly_labeled = st.builds(labels_with_counts, class_counts, st.integers(0, 8), st.integers(0, 99))


@given(y=partly_labeled, n_splits=st.integers(2, 5), seed=st.none() | st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_kfold_contract(y, n_splits, seed):
    splits = splits_of(SemiSupervisedKFold(n_splits, shuffle=seed is not None, random_state=seed), y)
    assert len(splits) == n_splits
    check_tests_are_labeled(y, splits)
    check_unlabeled_rows_train(y, splits)
    check_no_class_vanishes(y, splits)
    check_train_and_test_are_disjoint(splits)
    assert all(len(train) + len(test) == len(y) for train, test in splits)
    tested = np.sort(np.concatenate([test for _, test in splits]))
    counts = np.bincount(y[y >= 0])
    np.testing.assert_array_equal(tested, np.flatnonzero((y >= 0) & (counts[y] > 1)))
    per_fold = np.array([np.bincount(y[test], minlength=len(counts)) for _, test in splits])
    assert np.ptp(per_fold, axis=0).max() <= 1


@given(y=partly_labeled, test_size=st.none() | st.floats(0.4, 0.6), seed=st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_shuffle_split_contract(y, test_size, seed):
    splits = splits_of(SemiSupervisedShuffleSplit(3, test_size=test_size, random_state=seed), y)
    assert len(splits) == 3
    check_tests_are_labeled(y, splits)
    check_unlabeled_rows_train(y, splits)
    check_no_class_vanishes(y, splits)
    check_train_and_test_are_disjoint(splits)
    assert all(len(train) + len(test) == len(y) for train, test in splits)


def test_the_checks_reject_plain_stratified_splits():
    y = labels_with_counts([20, 4, 1], n_unlabeled=30, seed=0)
    plain = splits_of(StratifiedKFold(4), y)
    for check in (check_tests_are_labeled, check_no_class_vanishes, check_unlabeled_rows_train):
        with pytest.raises(AssertionError):
            check(y, plain)


def test_a_rare_class_keeps_a_row_in_a_small_training_set():
    y = labels_with_counts([98, 2], n_unlabeled=0, seed=0)
    sizes = {"train_size": 10, "test_size": 80, "random_state": 0}
    with pytest.raises(AssertionError):
        check_no_class_vanishes(y, splits_of(StratifiedShuffleSplit(5, **sizes), y))
    splits = splits_of(SemiSupervisedShuffleSplit(5, **sizes), y)
    check_no_class_vanishes(y, splits)
    check_train_and_test_are_disjoint(splits)
    assert {len(train) for train, _ in splits} == {11}


def test_without_unlabeled_rows_the_folds_are_those_of_scikit_learn():
    y = labels_with_counts([12, 9, 7], n_unlabeled=0, seed=1)
    options = {"n_splits": 4, "shuffle": True, "random_state": 3}
    ours = splits_of(SemiSupervisedKFold(**options), y)
    theirs = splits_of(StratifiedKFold(**options), y)
    for (train, test), (train_expected, test_expected) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(train, train_expected, strict=True)
        np.testing.assert_array_equal(test, test_expected, strict=True)


def test_without_unlabeled_rows_the_random_splits_are_those_of_scikit_learn():
    y = labels_with_counts([12, 9, 7], n_unlabeled=0, seed=1)
    ours = splits_of(SemiSupervisedShuffleSplit(4, test_size=0.3, random_state=3), y)
    theirs = splits_of(StratifiedShuffleSplit(4, test_size=0.3, random_state=3), y)
    for (train, test), (train_expected, test_expected) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(train, train_expected)
        np.testing.assert_array_equal(test, test_expected)


@pytest.mark.parametrize("splitter", [SemiSupervisedKFold(2), SemiSupervisedShuffleSplit(2, random_state=0)])
def test_a_single_label_stays_in_training_and_is_announced(splitter):
    y = np.array(["a", "a", "b", "b", "lone", None, "a", "b"], dtype=object)
    with pytest.warns(UserWarning, match=r"classes \['lone'\] have one label each.*stay in every training set"):
        splits = list(splitter.split(np.zeros((8, 1)), y))
    assert all(4 in train and 4 not in test for train, test in splits)


def test_a_class_with_fewer_labels_than_folds_is_tested_with_scikit_learns_warning():
    y = labels_with_counts([10, 2], n_unlabeled=5, seed=0)
    with pytest.warns(UserWarning, match="least populated class in y has only 2 members"):
        splits = list(SemiSupervisedKFold(5).split(np.zeros((17, 1)), y))
    assert sum((y[test] == 1).sum() for _, test in splits) == 2


@pytest.mark.parametrize("splitter", [SemiSupervisedKFold(2), SemiSupervisedShuffleSplit(2)])
def test_one_label_per_class_cannot_be_tested(splitter):
    with pytest.raises(ValueError, match="Each of the 2 classes has one label only"):
        next(splitter.split(np.zeros((3, 1)), [0, 1, -1]))


def test_more_folds_than_labels_is_an_error_that_names_the_limit():
    with pytest.raises(ValueError, match=r"n_splits=5 is more than any class has labels.*n_splits=3 or fewer"):
        next(SemiSupervisedKFold(5).split(np.zeros((6, 1)), [0, 0, 0, 1, 1, -1]))


@pytest.mark.parametrize("splitter", [SemiSupervisedKFold(2), SemiSupervisedShuffleSplit(2)])
def test_plus_and_minus_one_do_not_lose_a_class(splitter):
    with pytest.raises(ValueError, match="pass unlabeled=None"):
        next(splitter.split(np.zeros((4, 1)), [-1, 1, -1, 1]))
    splitter.unlabeled = None
    train, test = next(splitter.split(np.zeros((4, 1)), [-1, 1, -1, 1]))
    assert len(train) + len(test) == 4


@pytest.mark.parametrize("splitter", [SemiSupervisedKFold(2), SemiSupervisedShuffleSplit(2)])
def test_rows_of_X_and_y_must_agree(splitter):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        next(splitter.split(np.zeros((5, 1)), [0, 0, 1, 1]))


def test_groups_are_ignored_by_random_splits_with_a_warning():
    with pytest.warns(UserWarning, match="groups parameter is ignored by SemiSupervised"):
        next(SemiSupervisedShuffleSplit(2).split(np.zeros((4, 1)), [0, 0, 1, 1], groups=[0, 1, 0, 1]))


def group_splits(splitter, y, groups):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros((len(y), 1)), y, groups))


def check_groups_are_on_one_side(groups, splits):
    assert all(not set(groups[train]) & set(groups[test]) for train, test in splits)


def check_only_tested_groups_are_left_out(groups, splits):
    for train, test in splits:
        left_out = np.setdiff1d(np.arange(len(groups)), np.concatenate([train, test]))
        assert set(groups[left_out]) <= set(groups[test])


@settings(deadline=None, max_examples=60)
@given(y=partly_labeled, n_groups=st.integers(3, 12), n_splits=st.integers(2, 3), seed=st.integers(0, 99))
def test_kfold_contract_with_groups(y, n_groups, n_splits, seed):
    groups = np.random.default_rng(seed).integers(n_groups, size=len(y))
    splitter = SemiSupervisedKFold(n_splits, shuffle=True, random_state=seed)
    try:
        splits = group_splits(splitter, y, groups)
    except ValueError as error:
        if re.search("Take fewer splits|cannot be greater than the number of members", str(error)):
            return
        raise
    assert len(splits) == n_splits
    check_tests_are_labeled(y, splits)
    check_no_class_vanishes(y, splits)
    check_train_and_test_are_disjoint(splits)
    check_groups_are_on_one_side(groups, splits)
    check_only_tested_groups_are_left_out(groups, splits)
    tested = np.concatenate([test for _, test in splits])
    assert len(np.unique(tested)) == len(tested)


def test_the_check_of_groups_rejects_folds_without_groups():
    y, groups = labels_with_counts([6, 6], n_unlabeled=12, seed=0), np.arange(24) % 6
    rejects(check_groups_are_on_one_side, groups, splits_of(SemiSupervisedKFold(3), y))


def test_without_unlabeled_rows_the_folds_of_groups_are_those_of_scikit_learn():
    y, groups = labels_with_counts([20, 20], n_unlabeled=0, seed=0), np.arange(40) // 4
    ours = SemiSupervisedKFold(4).split(np.zeros((40, 1)), y, groups)
    for (train, test), (train_expected, test_expected) in zip(
        ours, StratifiedGroupKFold(4).split(np.zeros((40, 1)), y, groups), strict=True
    ):
        np.testing.assert_array_equal(train, train_expected)
        np.testing.assert_array_equal(test, test_expected)


def test_a_group_that_alone_has_a_class_is_never_tested():
    y, groups = np.array([0, 1, 0, 1, 0, 1, 2, -1, -1]), np.array(list("aabbccdda"))
    with pytest.warns(UserWarning, match="1 groups with labels stay in every training set and are never tested"):
        splits = list(SemiSupervisedKFold(2).split(y[:, None], y, groups))
    assert not any("d" in groups[test] for _, test in splits)
    check_no_class_vanishes(y, splits)


def test_groups_that_cannot_be_split():
    y, groups = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    with pytest.raises(
        ValueError, match=r"n_splits=2 is more than the 1 groups that can be held out.*Take fewer splits"
    ):
        next(SemiSupervisedKFold(2).split(y[:, None], y, groups))
    with pytest.raises(
        ValueError, match=r"groups must have one entry for each of the 4 rows, but has the shape \(3,\)"
    ):
        next(SemiSupervisedKFold(2).split(y[:, None], y, groups[:3]))


def test_groups_reach_the_splitter_from_cross_validation():
    y, groups = labels_with_counts([20, 20], n_unlabeled=20, seed=0), np.arange(60) // 4
    X = np.random.default_rng(0).normal(size=(60, 2))
    seen = []

    class Recorder(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(set(groups[np.isin(rows, X[:, 0])]))
            return super().fit(X, y)

    rows = X[:, 0]
    cross_val_score(Recorder(), X, y, cv=SemiSupervisedKFold(3), groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        cross_val_score(Recorder(), X, y, cv=SemiSupervisedKFold(3), params={"groups": groups})
    tested = [set(groups[test]) for _, test in SemiSupervisedKFold(3).split(X, y, groups)]
    assert [not training & held for training, held in zip(seen, tested * 2, strict=True)] == [True] * 6


def test_default_test_set_has_a_row_of_each_class_when_labels_are_few():
    y = labels_with_counts([3, 3, 3], n_unlabeled=4, seed=0)
    splits = splits_of(SemiSupervisedShuffleSplit(5, random_state=0), y)
    assert all(sorted(y[test]) == [0, 1, 2] for _, test in splits)


def test_sizes_of_random_splits_count_labeled_rows():
    y = labels_with_counts([20, 20], n_unlabeled=100, seed=0)
    train, test = splits_of(SemiSupervisedShuffleSplit(1, train_size=10, test_size=0.5, random_state=0), y)[0]
    assert len(test) == 20
    assert len(train) == 100 + 10


@pytest.mark.parametrize(
    "splitter",
    [SemiSupervisedKFold(3, shuffle=True, random_state=4), SemiSupervisedShuffleSplit(3, random_state=4)],
    ids=["kfold", "shuffle"],
)
def test_a_seed_and_copies_repeat_the_splits(splitter):
    y = labels_with_counts([9, 6], n_unlabeled=7, seed=0)
    first = splits_of(splitter, y)
    for twin in (splitter, clone(splitter, safe=False), pickle.loads(pickle.dumps(splitter))):
        for split, split_of_twin in zip(first, splits_of(twin, y), strict=True):
            np.testing.assert_array_equal(np.concatenate(split), np.concatenate(split_of_twin))
    assert splitter.get_n_splits() == 3
    assert eval(repr(splitter)).__dict__ == splitter.__dict__


def test_another_marker_and_frames():
    y = pd.Series(["a", "b", "?", "a", "b", None], index=list("uvwxyz"))
    X = pl.DataFrame({"x": np.arange(6.0)})
    splits = list(SemiSupervisedKFold(2, unlabeled="?").split(X, y))
    np.testing.assert_array_equal(splits[0][0], [2, 3, 4, 5])
    np.testing.assert_array_equal(splits[1][1], [3, 4])


@pytest.fixture(scope="module")
def digits():
    """Digits whose truth is known, with 60 labels kept: X, y, truth."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:600] / 16.0, truth[:600]
    return X, hide_labels(truth, 60, random_state=0), truth


@pytest.mark.parametrize(
    "model",
    [LabelSpreading(gamma=5), SelfTrainingClassifier(LogisticRegression(C=10.0), threshold=0.9)],
    ids=["LabelSpreading", "SelfTraining"],
)
def test_cross_validation_gives_the_true_figure_where_plain_folds_score_the_marker(digits, model):
    X, y, truth = digits
    hidden = y == -1
    true_accuracy = accuracy_score(truth[hidden], clone(model).fit(X, y).predict(X[hidden]))
    ours = cross_val_score(model, X, y, cv=SemiSupervisedKFold(5, shuffle=True, random_state=0)).mean()
    plain = cross_val_score(model, X, y, cv=KFold(5)).mean()
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


@given(counts=st.lists(st.integers(1, 30), min_size=2, max_size=5), share=st.floats(0, 1), seed=st.integers(0, 20))
@settings(max_examples=100, deadline=None)
def test_hidden_labels_are_stratified_with_one_at_least_per_class(counts, share, seed):
    truth = labels_with_counts(counts, n_unlabeled=3, seed=seed)
    n_labeled = len(counts) + int(share * (sum(counts) - len(counts)))
    y = hide_labels(truth, n_labeled, random_state=seed)
    kept = y != -1
    assert kept.sum() == n_labeled
    np.testing.assert_array_equal(y[kept], truth[kept])
    seats = np.bincount(y[kept], minlength=len(counts))
    assert seats.min() >= 1
    # Sainte-Lague: the last seat given was worth at least as much as any next seat would be.
    counts = np.array(counts)
    worth_of_last = np.where(seats > 1, counts / (seats - 0.5), np.inf)
    worth_of_next = counts / (seats + 0.5)
    assert worth_of_last.min() >= worth_of_next[seats < counts].max(initial=0.0) * (1 - 1e-12)


def test_hidden_labels_are_nested_and_repeatable():
    truth = np.arange(90) % 3
    few = hide_labels(truth, 9, random_state=5)
    more = hide_labels(truth, 30, random_state=5)
    assert set(np.flatnonzero(few >= 0)) < set(np.flatnonzero(more >= 0))
    np.testing.assert_array_equal(few, hide_labels(truth, 9, random_state=5))
    assert (few != hide_labels(truth, 9, random_state=6)).any()


def test_hidden_labels_by_fraction():
    truth = np.repeat([0, 1], [30, 10])
    y = hide_labels(truth, fraction=0.2, random_state=0)
    np.testing.assert_array_equal(np.bincount(y[y >= 0]), [6, 2])
    np.testing.assert_array_equal(hide_labels(truth, fraction=1.0), truth)


@pytest.mark.parametrize(
    ("truth", "unlabeled", "dtype"),
    [
        (np.array([0, 1, 0, 1]), -1, np.int64),
        (np.array([0, 1, 0, 1], dtype=np.uint8), -1, np.int64),
        (np.array([0.0, 1.0, 0.0, 1.0]), -1, np.float64),
        (np.array([0, 1, 0, 1]), np.nan, np.float64),
        (np.array([0, 1, 0, 1]), None, object),
        (np.array([True, False, True, False]), -1, object),
        (np.array(["a", "b", "a", "b"]), -1, object),
        (np.array(["a", "b", "a", "b"]), "hidden", np.dtype("<U6")),
        (pd.Series(["a", "b", "a", "b"], dtype="category"), -1, object),
        (pl.Series([1, 2, 1, 2]), -1, np.int64),
    ],
)
def test_hidden_labels_hold_the_marker_unchanged_and_leave_the_input_alone(truth, unlabeled, dtype):
    before = list(truth)
    y = hide_labels(truth, 2, unlabeled=unlabeled, random_state=0)
    assert list(truth) == before
    assert y.dtype == dtype
    kept = [value == known for value, known in zip(y, before, strict=True)]
    assert sum(kept) == 2
    np.testing.assert_array_equal(y[~np.array(kept)], np.array([unlabeled] * 2, dtype=y.dtype))


def test_rows_unlabeled_before_stay_so():
    y = hide_labels([0, None, 1, 1, float("nan"), -1], 2, random_state=0)
    assert y.dtype == np.int64
    np.testing.assert_array_equal(y[[1, 4, 5]], -1)
    assert (y != -1).sum() == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "either n_labeled or fraction"),
        ({"n_labeled": 2, "fraction": 0.5}, ValueError, "either n_labeled or fraction"),
        ({"n_labeled": 1}, ValueError, "between 2, one for each class, and 4.*n_labeled=1 came"),
        ({"n_labeled": 5}, ValueError, "between 2, one for each class, and 4.*n_labeled=5 came"),
        ({"n_labeled": 2.0}, TypeError, "n_labeled must be an instance of int"),
        ({"fraction": 0.25}, ValueError, "fraction=0.25 gives 1"),
        ({"fraction": 1.5}, ValueError, "fraction == 1.5, must be <= 1"),
        ({"fraction": "half"}, TypeError, "fraction must be an instance of float"),
    ],
)
def test_impossible_numbers_of_labels_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        hide_labels([0, 0, 1, 1, -1], **arguments)
