"""The border where X becomes views: layouts, collections, settings by view, rows that have a view."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cmvmed.data.layout import (
    collection_items,
    is_view_collection,
    layout_of_widths,
    per_view,
    resolve_views,
)
from cmvmed.data.validation import present_rows, with_rows

NAMES = ["a_0", "b_0", "a_1", "b_1", "a_2"]


def columns_of(views, n_features=5, feature_names=None):
    return [index.tolist() for index in resolve_views(views, n_features, feature_names).columns]


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        (None, [[0, 1, 2, 3, 4]]),
        ([2, 3], [[0, 1], [2, 3, 4]]),
        ([2, 1, 2], [[0, 1], [2], [3, 4]]),
        ([slice(2), slice(2, 5)], [[0, 1], [2, 3, 4]]),
        ([slice(2, 5), slice(2)], [[2, 3, 4], [0, 1]]),
        ([slice(None, None, -1)], [[4, 3, 2, 1, 0]]),
        ([slice(0, 2), 3], [[0, 1], [2, 3, 4]]),
        ([[0, 1], 3], [[0, 1], [2, 3, 4]]),
        ({"x": [4, 0], "y": [1, 2, 3]}, [[4, 0], [1, 2, 3]]),
        ({"x": np.array([True, False, False, False, True]), "y": [-4, -3, -2]}, [[0, 4], [1, 2, 3]]),
        ({"x": "a_", "y": "b_"}, [[0, 2, 4], [1, 3]]),
        ({"x": ["a_2", "a_0", "a_1"], "y": ("b_0", "b_1")}, [[4, 0, 2], [1, 3]]),
        ({"x": ["a_0"], "y": "b_", "z": pd.Index(["a_1", "a_2"])}, [[0], [1, 3], [2, 4]]),
    ],
)
def test_the_columns_of_each_view(views, expected):
    assert columns_of(views, feature_names=NAMES) == expected


def test_views_are_named_by_the_dict_or_numbered():
    assert resolve_views({"x": 2, 7: 3}, 5, None).names == ("x", "7")
    assert resolve_views([2, 3], 5, None).names == ("view0", "view1")
    assert resolve_views(None, 5, None).names == ("view0",)


@given(widths=st.lists(st.integers(1, 6), min_size=1, max_size=5), data=st.data())
@settings(max_examples=60, deadline=None)
def test_widths_slices_positions_and_masks_agree(widths, data):
    total = sum(widths)
    ends = np.cumsum(widths)
    ranges = [np.arange(end - width, end) for width, end in zip(widths, ends, strict=True)]
    order = data.draw(st.permutations(range(len(widths))))
    expected = [index.tolist() for index in ranges]
    assert columns_of(widths, total) == expected
    assert columns_of([slice(index[0], index[-1] + 1) for index in ranges], total) == expected
    shuffled = {f"view {i}": ranges[i] for i in order}
    assert columns_of(shuffled, total) == [expected[i] for i in order]
    masks = {name: np.isin(np.arange(total), index) for name, index in shuffled.items()}
    assert columns_of(masks, total) == [expected[i] for i in order]


@given(n_columns=st.integers(1, 8), data=st.data())
@settings(max_examples=60, deadline=None)
def test_every_column_belongs_to_exactly_one_view_or_an_error_names_one_that_does_not(n_columns, data):
    lists = data.draw(st.lists(st.lists(st.integers(0, n_columns - 1), min_size=1), min_size=1, max_size=3))
    taken = [column for columns in lists for column in columns]
    is_partition = sorted(taken) == list(range(n_columns))
    assert is_partition == (outcome(lists, n_columns) == "accepted")


def outcome(lists, n_columns):
    try:
        resolve_views(lists, n_columns, None)
    except ValueError as error:
        assert "Views overlap: column" in str(error) or "Views do not cover X: column" in str(error)  # noqa: PT017
        return "refused"
    return "accepted"


def test_consecutive_columns_of_an_array_are_not_copied():
    X = np.arange(20.0).reshape(4, 5)
    first, second = layout_of_widths(["x", "y"], [2, 3]).split(X)
    assert np.shares_memory(first, X)
    assert np.shares_memory(second, X)
    np.testing.assert_array_equal(np.hstack([first, second]), X)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_scattered_columns_are_taken_in_the_given_order(form):
    X = np.arange(20.0).reshape(4, 5)
    first, second = resolve_views([[4, 0], [3, 1, 2]], 5, None).split(form(X))
    np.testing.assert_array_equal(sparse.csr_array(first).toarray(), X[:, [4, 0]])
    np.testing.assert_array_equal(sparse.csr_array(second).toarray(), X[:, [3, 1, 2]])


TABLE = np.ones((3, 2))


@pytest.mark.parametrize(
    "X", [[TABLE], [TABLE, TABLE], (TABLE, sparse.csr_array(TABLE)), {"x": TABLE}, {}, [pl.DataFrame(TABLE), TABLE]]
)
def test_a_list_or_dict_of_tables_is_a_collection(X):
    assert is_view_collection(X)


@pytest.mark.parametrize(
    "X",
    [
        TABLE,
        [[1.0, 2.0], [3.0, 4.0]],
        [np.ones(2), np.ones(2)],
        [],
        sparse.csr_matrix(TABLE),
        sparse.dok_matrix(TABLE),
        sparse.dok_array(TABLE),
        pd.DataFrame(TABLE),
        pl.DataFrame(TABLE),
    ],
    ids=lambda X: type(X).__name__,
)
def test_one_table_is_no_collection(X):
    assert not is_view_collection(X)


def test_the_items_of_a_collection_are_named():
    assert [name for name, _ in collection_items([TABLE, TABLE])] == ["view0", "view1"]
    assert [name for name, _ in collection_items({"x": TABLE, 3: TABLE})] == ["x", "3"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2.0, [2.0, 2.0]),
        ("rbf", ["rbf", "rbf"]),
        (None, [None, None]),
        ([1.0, 2.0], [1.0, 2.0]),
        ((1.0, 2.0), [1.0, 2.0]),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        ({"y": 2.0, "x": 1.0}, [1.0, 2.0]),
        (abs, [abs, abs]),
    ],
)
def test_a_setting_for_each_view(value, expected):
    assert per_view(value, ["x", "y"], "C") == expected


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_a_row_of_nan_lacks_the_view(form):
    X = np.array([[1.0, 2.0], [np.nan, np.nan], [0.0, 0.0], [3.0, 0.0]])
    np.testing.assert_array_equal(present_rows(form(X), "x", None), [True, False, True, True])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.0, np.inf], r"infinity: view 'x', row 1, column 'q' \(position 1\)"),
        ([np.nan, -np.inf], r"infinity: view 'x', row 1, column 'q' \(position 1\)"),
        ([np.nan, 0.0], r"NaN: view 'x', row 1, column 'p' \(position 0\), beside values that are numbers"),
    ],
)
def test_other_numbers_that_are_not_finite_are_refused_in_a_complete_view(row, message, form):
    with pytest.raises(ValueError, match=message):
        present_rows(form(np.array([[1.0, 2.0], row])), "x", ["p", "q"], complete=True)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_columns_that_do_not_matter_make_no_row_present(form):
    X = np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, np.nan], [np.nan, np.nan, np.nan], [np.nan, np.nan, 3.0]])
    np.testing.assert_array_equal(present_rows(form(X), "x", None), [True, True, False, True])
    unused = np.array([False, True, False])
    np.testing.assert_array_equal(present_rows(form(X), "x", None, unused), [True, False, False, True])


def test_present_rows_of_a_huge_finite_view():
    """The sum of the entries overflows, the entries do not."""
    X = np.full((3, 2), 1.5e308)
    assert present_rows(X, "x", None).all()


def test_with_rows_fills_the_others():
    table = with_rows(np.array([[1.0], [2.0]]), np.array([2, 0]), 3, np.array([9.0]))
    np.testing.assert_array_equal(table, [[2.0], [9.0], [1.0]])
