"""Labels that are hidden: in proportion, nested, and at least one of each class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmvmed.model_selection import hide_labels
from tests.model_selection.factories import labels_with_counts


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
