"""Splits of partly labeled data: test folds hold labels only, and no class vanishes from training."""

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
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import (
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)

from cmvmed.model_selection import SemiSupervisedKFold, SemiSupervisedShuffleSplit
from tests.core.factories import rejects
from tests.model_selection.factories import labels_with_counts


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
    with pytest.warns(UserWarning, match=r"\['lone'\] have one label"):
        splits = list(splitter.split(np.zeros((8, 1)), y))
    assert all(4 in train and 4 not in test for train, test in splits)


def test_a_class_with_fewer_labels_than_folds_is_tested_with_scikit_learns_warning():
    y = labels_with_counts([10, 2], n_unlabeled=5, seed=0)
    with pytest.warns(UserWarning, match="least populated class in y has only 2 members"):
        splits = list(SemiSupervisedKFold(5).split(np.zeros((17, 1)), y))
    assert sum((y[test] == 1).sum() for _, test in splits) == 2


@pytest.mark.parametrize("splitter", [SemiSupervisedKFold(2), SemiSupervisedShuffleSplit(2)])
def test_one_label_per_class_cannot_be_tested(splitter):
    with pytest.raises(ValueError, match="only one label"):
        next(splitter.split(np.zeros((3, 1)), [0, 1, -1]))


def test_more_folds_than_labels_is_an_error_that_names_the_limit():
    with pytest.raises(ValueError, match=r"n_splits=5 .*n_splits=3"):
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
    with pytest.warns(UserWarning, match="1 groups .*never tested"):
        splits = list(SemiSupervisedKFold(2).split(y[:, None], y, groups))
    assert not any("d" in groups[test] for _, test in splits)
    check_no_class_vanishes(y, splits)


def test_groups_that_cannot_be_split():
    y, groups = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    with pytest.raises(ValueError, match=r"n_splits=2 .* only 1 can be held out"):
        next(SemiSupervisedKFold(2).split(y[:, None], y, groups))
    with pytest.raises(ValueError, match=r"groups .* 4 rows, .*\(3,\)"):
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
