"""What counts as unlabeled, and how labels become classes and codes."""

from __future__ import annotations

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

from cmvmed.data.labels import (
    Labels,
    SparseLabels,
    labeled_part,
    read_labels,
    read_sparse_labels,
    unlabeled_mask,
)

NAN = float("nan")

# Each y holds: first class, second class, then three unlabeled rows or fewer.
PARTLY_LABELED = {
    "list of ints": [0, 1, -1, None, NAN],
    "tuple of ints": (0, 1, -1, None, NAN),
    "list of strings and the number -1": ["a", "b", -1, None, NAN],
    "list with pandas missing values": ["a", "b", pd.NA, pd.NaT, np.datetime64("NaT")],
    "list with a decimal NaN": [0, 1, decimal.Decimal("NaN"), np.float32("nan"), -1],
    "list of booleans": [False, True, None, NAN, -1],
    "int array": np.array([0, 1, -1, -1, -1]),
    "float array": np.array([0.0, 1.0, NAN, -1.0, NAN]),
    "string array that swallowed -1": np.array(["a", "b", -1, "-1", "-1"]),
    "variable-width string array": np.array(["a", "b", "-1", "-1", "-1"], dtype=np.dtypes.StringDType()),
    "object array": np.array(["a", "b", None, NAN, -1], dtype=object),
    "masked array": np.ma.array([0, 1, 1, 0, -1], mask=[0, 0, 1, 1, 0]),
    "read-only, strided array": np.broadcast_to(np.array([[0], [9], [1], [9], [-1], [9]]), (6, 2))[::2, 0],
    "pandas int": pd.Series([0, 1, -1, -1, -1], index=[7, 7, 3, 2, 1]),
    "pandas float": pd.Series([0, 1, NAN, None, -1]),
    "pandas Int64": pd.Series([0, 1, None, -1, pd.NA], dtype="Int64"),
    "pandas boolean": pd.Series([False, True, None, pd.NA, None], dtype="boolean"),
    "pandas str": pd.Series(["a", "b", None, "-1", NAN]),
    "pandas string": pd.Series(["a", "b", None, "-1", pd.NA], dtype="string"),
    "pandas object": pd.Series(["a", "b", None, -1, pd.NaT], dtype=object),
    "pandas category": pd.Series(["a", "b", None, "-1", None], dtype="category"),
    "pandas category of ints": pd.Series([0, 1, None, -1, None], dtype="category"),
    "pandas pyarrow int": pd.Series([0, 1, None, -1, None], dtype="int64[pyarrow]"),
    "pandas pyarrow string": pd.Series(["a", "b", None, "-1", None], dtype=pd.ArrowDtype(pa.string())),
    "pandas array": pd.array([0, 1, None, -1, None], dtype="Int64"),
    "pandas categorical": pd.Categorical(["a", "b", None, "-1", None]),
    "polars int": pl.Series([0, 1, None, -1, None]),
    "polars float": pl.Series([0.0, 1.0, None, NAN, -1.0]),
    "polars string": pl.Series(["a", "b", None, "-1", None]),
    "polars bool": pl.Series([False, True, None, None, None]),
    "polars categorical": pl.Series(["a", "b", None, "-1", None], dtype=pl.Categorical),
    "pyarrow chunked array": pa.chunked_array([["a", "b"], [None, "-1", None]]),
}


@pytest.mark.parametrize("y", PARTLY_LABELED.values(), ids=PARTLY_LABELED.keys())
def test_unlabeled_rows_of_every_container(y):
    n_unlabeled = len(y) - 2
    np.testing.assert_array_equal(unlabeled_mask(y), [False, False] + [True] * n_unlabeled, strict=True)
    labels = read_labels(y)
    np.testing.assert_array_equal(labels.codes, np.array([0, 1] + [-1] * n_unlabeled, dtype=np.intp), strict=True)
    rows, given = labeled_part(y)
    np.testing.assert_array_equal(rows, [0, 1])
    np.testing.assert_array_equal(given, labels.classes, strict=True)


@pytest.mark.parametrize(
    ("container", "classes"),
    [
        ("list of ints", np.array([0, 1])),
        ("pandas Int64", np.array([0, 1])),
        ("pandas pyarrow int", np.array([0, 1])),
        ("pandas category of ints", np.array([0, 1])),
        ("polars int", np.array([0, 1])),
        ("masked array", np.array([0, 1])),
        ("float array", np.array([0.0, 1.0])),
        ("pandas float", np.array([0.0, 1.0])),
        ("polars float", np.array([0.0, 1.0])),
        ("list of booleans", np.array([False, True])),
        ("pandas boolean", np.array([False, True])),
        ("polars bool", np.array([False, True])),
        ("object array", np.array(["a", "b"])),
        ("pandas string", np.array(["a", "b"])),
        ("polars categorical", np.array(["a", "b"])),
        ("pyarrow chunked array", np.array(["a", "b"])),
    ],
)
def test_classes_keep_their_type_beside_missing_labels(container, classes):
    np.testing.assert_array_equal(read_labels(PARTLY_LABELED[container]).classes, classes, strict=True)


def test_classes_are_sorted_as_numpy_does_and_small_types_stay():
    y = np.array([200, 3, 3, 17], dtype=np.uint8)
    labels = read_labels(y)
    np.testing.assert_array_equal(labels.classes, np.unique(y), strict=True)
    np.testing.assert_array_equal(labels.classes[labels.codes], y)


def test_object_array_of_ints_is_read_as_ints():
    np.testing.assert_array_equal(read_labels(np.array([5, 2, 5], dtype=object)).classes, np.array([2, 5]), strict=True)


def test_labels_have_their_rows_and_counts():
    labels = read_labels(["c", None, "a", "c", -1])
    assert labels.n_classes == 2
    np.testing.assert_array_equal(labels.labeled, [0, 2, 3])
    np.testing.assert_array_equal(labels.unlabeled, [1, 4])
    np.testing.assert_array_equal(labels.counts, [1, 2])


def test_counts_include_a_class_without_rows():
    labels = Labels(classes=np.array(["a", "b", "c"]), codes=np.array([1, -1, 1]))
    np.testing.assert_array_equal(labels.counts, [0, 2, 0])


@pytest.mark.parametrize(
    ("y", "unlabeled", "expected"),
    [
        ([0, 1, -1], None, [False, False, False]),
        ([0, 1, None, NAN], None, [False, False, True, True]),
        (np.array(["a", "None", "b"]), None, [False, False, False]),
        (["a", "?", None], "?", [False, True, True]),
        (np.array(["a", "?"]), "?", [False, True]),
        ([0, 1, 99], 99, [False, False, True]),
        (np.array([0.0, 99.0]), 99, [False, True]),
        (np.array([0, 99]), 99.0, [False, True]),
        (np.array([0, 1]), "0", [False, False]),
        (np.array([0, 1]), NAN, [False, False]),
        (np.array(["a", "nan"]), NAN, [False, True]),
        (np.array([255, 0], dtype=np.uint8), -1, [False, False]),
        (np.array([-1, 0]), np.int8(-1), [True, False]),
        ([0, 1, pd.NA], pd.NA, [False, False, True]),
    ],
)
def test_marker(y, unlabeled, expected):
    np.testing.assert_array_equal(unlabeled_mask(y, unlabeled), expected)


@pytest.mark.parametrize(
    "y", [np.array([True, False]), [True, False], pd.Series([True, False]), pl.Series([True, False])]
)
@pytest.mark.parametrize("unlabeled", [1, 0, -1, 1.0])
def test_numbers_never_match_booleans(y, unlabeled):
    assert not unlabeled_mask(y, unlabeled).any()


@pytest.mark.parametrize("y", [np.array([0, 1]), [0, 1], np.array([0.0, 1.0])])
def test_booleans_never_match_numbers(y):
    assert not unlabeled_mask(y, True).any()
    assert not unlabeled_mask(y, False).any()


def test_a_boolean_marker_matches_booleans():
    np.testing.assert_array_equal(unlabeled_mask(np.array([True, False]), False), [False, True])
    np.testing.assert_array_equal(unlabeled_mask([True, False], False), [False, True])


def test_the_marker_is_one_value():
    with pytest.raises(ValueError, match=r"unlabeled must be one value .* got \[-1, 0\]"):
        unlabeled_mask([0, 1], unlabeled=[-1, 0])


@pytest.mark.parametrize(
    "y",
    [
        np.array([[0], [1], [-1]]),
        [[0], [1], [None]],
        pd.DataFrame({"y": [0, 1, None]}),
        pl.DataFrame({"y": [0, 1, -1]}),
    ],
    ids=["array", "list", "pandas", "polars"],
)
def test_a_column_is_raveled_with_a_warning(y):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        codes = read_labels(y).codes
    np.testing.assert_array_equal(codes, [0, 1, -1])


@pytest.mark.parametrize(
    "y",
    [
        np.zeros((3, 2)),
        [[0, 1], [1, 0]],
        pd.DataFrame({"a": [0], "b": [1]}),
        pl.DataFrame({"a": [0], "b": [1]}),
        1,
        "ab",
    ],
)
def test_anything_but_one_column_is_refused(y):
    with pytest.raises(ValueError, match="y should be a 1d array"):
        unlabeled_mask(y)


def test_input_is_not_changed():
    y = np.array(["a", None, -1, NAN, "b"], dtype=object)
    before = y.copy()
    read_labels(y)
    assert all(now is then for now, then in zip(y, before, strict=True))


ERRORS = {
    "None": (None, "requires y to be passed, but the target y is None"),
    "empty list": ([], "y is empty: it has 0 rows"),
    "empty array": (np.array([], dtype=int), "y is empty: it has 0 rows"),
    "only -1": ([-1, -1], r"no labels: all 2 rows are unlabeled \(None or NaN, or equal to the marker unlabeled=-1\)"),
    "only NaN": (np.full(10, np.nan), "no labels: all 10 rows"),
    "one class": (np.ones(10), r"labels of only 1 class \(1.0\), but a fit needs 2"),
    "one class and None": (["a", None], r"labels of only 1 class \('a'\)"),
    "continuous": (np.linspace(0, 1, 9), "Unknown label type: continuous"),
    "continuous beside unlabeled": ([0.5, 1.5, None, -1], "Unknown label type: continuous"),
    "infinity": (np.full(10, np.inf), "y contains infinity"),
    "strings and numbers": (["a", 1, "b"], r"mixes labels .*: number \(1\), string \('a'\)"),
    "booleans and numbers": ([True, 0], r"mixes labels .*: boolean \(True\), number \(0\)"),
    "dates": (
        [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
        "of type date, but classes must be texts, whole numbers or",
    ),
    "times in nanoseconds": (
        np.array(["2020-01-01", "2021-01-01", "NaT"], dtype="datetime64[ns]"),
        "of type datetime64, but classes must be",
    ),
    "durations in nanoseconds": (np.array([1, 2], dtype="timedelta64[ns]"), "of type timedelta64, but classes must be"),
    "ragged": ([[0], [0, 1]], "of type list, but classes must be"),
    "complex": ([1j, 2.0], "Complex data not supported"),
}


@pytest.mark.parametrize(("y", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_bad_labels_get_a_clear_error(y, message):
    with pytest.raises(ValueError, match=message):
        read_labels(y)


@pytest.mark.parametrize(
    "y",
    [
        np.array([-1, 1, 1, -1]),
        np.array([-1.0, 1.0]),
        np.array([-1.0, 1.0, np.nan]),
        np.array(["-1", "1"]),
        [1, -1, None],
        pd.Series([1, -1], dtype="Int64"),
        pl.Series([1, -1, None]),
    ],
)
def test_minus_one_as_a_class_is_explained_and_not_lost(y):
    with pytest.raises(ValueError, match=r"-1 marks unlabeled.*unlabeled=None"):
        read_labels(y)


def test_with_no_marker_minus_one_is_a_class():
    labels = read_labels(np.array([-1, 1, 1, -1]), unlabeled=None)
    np.testing.assert_array_equal(labels.classes, [-1, 1])
    np.testing.assert_array_equal(labels.codes, [0, 1, 1, 0])


def test_message_without_marker_does_not_mention_one():
    with pytest.raises(ValueError, match=r"all 1 rows are unlabeled \(None or NaN\)\."):
        read_labels([None], unlabeled=None)


def test_labeled_part_may_hold_one_class_or_none():
    rows, labels = labeled_part([-1, "a", None])
    np.testing.assert_array_equal(rows, [1])
    np.testing.assert_array_equal(labels, ["a"])
    rows, labels = labeled_part([-1, None])
    assert len(rows) == len(labels) == 0


def test_labels_of_labeled_rows_alone():
    y = np.array(["a", None, "b", None, "a"], dtype=object)
    rows, given = labeled_part(y)
    found, expected = read_sparse_labels(SparseLabels(rows, given, len(y))), read_labels(y)
    np.testing.assert_array_equal(found.classes, expected.classes)
    np.testing.assert_array_equal(found.codes, expected.codes)
    with pytest.raises(ValueError, match="all 7 rows are unlabeled"):
        read_sparse_labels(SparseLabels(np.array([], dtype=np.intp), np.array([], dtype=object), 7))
    with pytest.raises(ValueError, match="1 class is left"):
        read_sparse_labels(SparseLabels(np.array([0]), np.array([1], dtype=object), 2))


@pytest.mark.parametrize("blank", ["", "  "])
@pytest.mark.parametrize("form", [list, np.array, pd.Series, pl.Series])
def test_a_blank_text_is_a_class_with_a_warning(blank, form):
    y = form(["cat", "dog", blank, "cat", blank])
    with pytest.warns(UserWarning, match=rf"2 of 5 labels in y are the blank text '{blank}'.*pass unlabeled='{blank}'"):
        labels = read_labels(y)
    np.testing.assert_array_equal(labels.classes, [blank, "cat", "dog"])


@pytest.mark.parametrize("y", [["cat", "dog", None, "", ""], ["cat", "a dog"], [0, 1, 2]])
def test_a_blank_marker_and_labels_that_are_not_blank_give_no_warning(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = read_labels(y, unlabeled="")
    assert "" not in labels.classes.tolist()


def test_blank_labels_of_labeled_rows_alone_give_a_warning():
    with pytest.warns(UserWarning, match="1 of 2 labels in y are the blank text ''"):
        read_sparse_labels(SparseLabels(np.array([0, 2]), np.array(["cat", ""], dtype=object), 5))


@pytest.mark.parametrize(
    "names",
    [("caf\u00e9", "cafe\u0301"), ("a", "a\u200b"), ("cat", "c\u0430t"), ("1", "01"), ("1", "1.0"), ("A", "\uff21")],
)
def test_classes_that_look_alike_are_named(names):
    with pytest.warns(UserWarning, match="look alike and count as 2 classes"):
        read_labels([*names, "other"])


def test_classes_that_differ_are_not_named():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = read_labels(["1", "10", "-1.5", "a1", "a01", "l", "o", "0", "\u043a\u043e\u0442", "kot"])
    assert labels.n_classes == 10


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
def test_a_mark_that_an_unsigned_type_cannot_hold_is_an_error(dtype):
    y = np.array([0, 1, 2, -1] * 3).astype(dtype)
    with pytest.raises(
        ValueError, match=f"cannot hold the marker unlabeled=-1: -1 becomes {y[-1]}, which 3 of 12 rows have"
    ):
        read_labels(y)
    assert read_labels(y, unlabeled=int(y[-1])).n_classes == 3
    assert read_labels(y, unlabeled=None).n_classes == 4
    assert read_labels(np.arange(1024).astype(np.uint8)).n_classes == 256


def test_minus_one_beside_another_mark_is_an_error():
    with pytest.raises(ValueError, match=r"2 of 4 labels in y are -1, which usually marks unlabeled rows.*unlabeled=0"):
        read_labels([1, 2, -1, 0, 0, -1], unlabeled=0)
    for y in ([1, -1, 0] * 3, [1, 0, -1, 9] * 3, [-2, -1, 1, 2] * 3):
        assert read_labels(y, unlabeled=9 if 9 in y else 0).n_classes >= 2


def test_a_label_that_arrays_of_texts_would_cut_is_an_error():
    with pytest.raises(ValueError, match=r"'a\\x00', which ends in a zero character"):
        read_labels(["a", "a\0", "b"])
