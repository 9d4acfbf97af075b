"""From one matrix per view to a Bunch: slices, explicit NaN for missing views, DataFrames."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from cmvmed.datasets.bunch import Dataset, View, column_slices, to_bunch

SECOND_MISSING = np.array([False, True, False])


def dataset(as_type):
    views = {
        "a": View(as_type(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])), ["x", "y"]),
        "b": View(as_type(np.array([[3.0], [9.0], [0.0]])), ["x"], SECOND_MISSING),
    }
    return Dataset(views, np.array([0, 1, 1]), ["no", "yes"], "text", {"groups": [7, 8, 9]})


EXPECTED = np.array([[1, 0, 3], [0, 2, np.nan], [0, 0, 0]])


def dense(data):
    return data.toarray() if sp.issparse(data) else np.asarray(data)


@pytest.mark.parametrize("as_type", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("as_frame", [False, True])
def test_views_are_concatenated_with_nan_where_one_is_missing(as_type, as_frame):
    bunch = to_bunch(dataset(as_type), as_frame=as_frame, return_X_y=False)
    np.testing.assert_array_equal(dense(bunch.data), EXPECTED)
    np.testing.assert_array_equal(bunch.missing, [[False, False], [False, True], [False, False]])
    assert bunch.views == {"a": slice(0, 2), "b": slice(2, 3)}
    assert bunch.feature_names == ["a__x", "a__y", "b__x"]
    assert bunch.target_names[bunch.target].tolist() == ["no", "yes", "yes"]
    assert (bunch.DESCR, bunch.groups) == ("text", [7, 8, 9])


def test_sparse_views_stay_sparse_and_store_only_values_and_the_nan():
    data = to_bunch(dataset(sp.csr_array), as_frame=False, return_X_y=False).data
    assert isinstance(data, sp.csr_array)
    assert data.nnz == 4


def test_the_input_is_not_changed():
    values = np.ones((3, 2))
    to_bunch(
        Dataset({"a": View(values, ["x", "y"], SECOND_MISSING)}, np.zeros(3, int), ["no"], ""),
        as_frame=False,
        return_X_y=True,
    )
    np.testing.assert_array_equal(values, 1)


def test_a_frame_has_named_columns_and_the_target():
    bunch = to_bunch(dataset(np.asarray), as_frame=True, return_X_y=False)
    assert list(bunch.data.columns) == bunch.feature_names
    assert list(bunch.frame.columns) == [*bunch.feature_names, "target"]
    assert bunch.target.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(bunch.data.iloc[:, bunch.views["b"]], EXPECTED[:, 2:])


def test_return_x_y():
    data, target = to_bunch(dataset(np.asarray), as_frame=False, return_X_y=True)
    np.testing.assert_array_equal(data, EXPECTED)
    assert target.tolist() == [0, 1, 1]


def test_without_pandas_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        to_bunch(dataset(np.asarray), as_frame=True, return_X_y=False)


def test_column_slices_follow_the_widths():
    assert column_slices({"a": 2, "b": 1, "c": 4}) == {"a": slice(0, 2), "b": slice(2, 3), "c": slice(3, 7)}
