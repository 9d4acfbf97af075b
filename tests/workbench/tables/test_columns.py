"""Kinds of columns, and cells read as numbers, truth values and times."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

from cmvmed.workbench.tables.columns import (
    clean_name,
    column_kind,
    missing_cells,
    read_booleans,
    read_numbers,
    read_times,
)

NAN = np.nan
SENTENCES = [f"the {color} fox jumps over dog {i}" for i, color in enumerate(["red", "blue", "gray"] * 10)]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "-3e4", ""], "number"),
        (["007", "012"], "number"),
        (["1", "2", "n/a", "?", "-", "inf"], "number"),
        ([*map(str, range(19)), "error"], "number"),  # one cell in twenty cannot be read
        ([*map(str, range(4)), "error", "error"], "category"),
        (["yes", "No", ""], "boolean"),
        (["true", "true"], "boolean"),
        (["2024-01-02", "2024-02-30x", *["2024-01-03"] * 18], "date"),
        (["2024-01-02T03:04:05+02:00"], "date"),
        (["3/4/2025", "5/6/2025 7:08"], "date"),
        (["8:30", "12:15:01"], "date"),
        (["red", "blue", "red", "N/A"], "category"),
        (SENTENCES, "text"),
        ([f"id-{i}" for i in range(30)], "identifier"),
        ([f"id-{i}" for i in range(5)], "category"),
        (["", "NA", " "], "empty"),
        ([1.0, NAN], "number"),
        ([NAN, NAN], "empty"),
        ([True, False], "boolean"),
        ([True, None], "boolean"),
        ([[1], [2]], "unusable"),
        ([1j, 2j], "unusable"),
        ([b"x", b"y"], "unusable"),
        ([date(2024, 1, 2), None], "date"),
        ([datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 3, tzinfo=UTC)], "date"),
        (["a", 1], "category"),
    ],
    ids=str,
)
def test_the_kind_of_a_column(cells, kind):
    assert column_kind(pd.Series(cells)) == kind


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "boolean", "category", "string", "datetime64[s]"])
def test_typed_columns(dtype):
    cells = {
        "boolean": [True, None],
        "category": ["a", None],
        "string": ["a", None],
        "datetime64[s]": ["2024-01-01", None],
    }
    kinds = {"boolean": "boolean", "category": "category", "string": "category", "datetime64[s]": "date"}
    series = pd.Series(cells.get(dtype, [1, None]), dtype=dtype)
    assert column_kind(series) == kinds.get(dtype, "number")
    assert column_kind(series[1:]) == "empty"
    np.testing.assert_array_equal(missing_cells(series), [False, True])


@pytest.mark.parametrize(
    ("cells", "decimal", "values", "bad"),
    [
        (["1.5", " -2 ", "1e3"], ".", [1.5, -2, 1000], []),
        (["1,234.5", "1,234", "1,23,45"], ".", [1234.5, 1234, NAN], [2]),
        (["0,741", "1,741", "-12,5", "3"], ".", [0.741, 1.741, -12.5, 3], []),
        (["0.741", "1.741", "n/a"], ",", [0.741, 1.741, NAN], []),
        (["0,74", "0,1", ",5"], ".", [0.74, 0.1, 0.5], []),
        (["1,741", "22,741"], ".", [1741, 22741], []),
        (["1,234,567", "1,234"], ",", [1234567, 1234], []),
        (["1,5", "1.234,25", "-3"], ",", [1.5, 1234.25, -3], []),
        (["1.234", "1,234"], ",", [1234, 1.234], []),
        (["", "NA", "?", "none", "."], ".", [NAN] * 5, []),
        (["5 kg", "1e999", "-Inf"], ".", [NAN, np.inf, -np.inf], [0]),
        ([1.0, np.inf, NAN], ".", [1, np.inf, NAN], []),
        ([0.5, "1.5", "x", None], ".", [0.5, 1.5, NAN, NAN], [2]),
        (pd.to_datetime(["2024-01-01"]), ".", [NAN], [0]),
    ],
)
def test_numbers(cells, decimal, values, bad):
    read = read_numbers(pd.Series(cells), decimal)
    np.testing.assert_array_equal(read.values, values)
    np.testing.assert_array_equal(np.flatnonzero(read.bad), bad)


def test_a_column_of_two_decimal_signs_names_a_cell_of_each():
    assert read_numbers(pd.Series(["1", "0.52", "1,234", "0,741"])).clash == (1, 3)
    assert read_numbers(pd.Series(["1", "0.52", "1,234"])).clash is None


@pytest.mark.parametrize(
    ("cells", "usual", "value", "note"),
    [
        (["1,741"], ",", 1.741, "as in the training data"),
        (["1,741"], ".", 1741, "between thousands"),
        (["1.741", "n/a"], ",", 1.741, ""),
        (["1,741", "2,500.5"], ",", 1741, ""),
        (["1,741", "0,5"], ".", 1.741, ""),
    ],
)
def test_new_rows_have_the_decimal_sign_of_the_training_rows_in_doubt(cells, usual, value, note):
    read = read_numbers(pd.Series(cells), ".", usual)
    np.testing.assert_equal(read.values[0], value)  # noqa: PD011
    assert note in read.note
    assert bool(note) == bool(read.note)


@pytest.mark.parametrize(
    ("cells", "bad"),
    [
        (pd.Series([True, False]), [True, True]),
        (pd.Series([True, None], dtype="boolean"), [True, False]),
        (pd.Series([1 + 2j, 3.0]), [True, True]),
        (pd.Series([1.5, True, "2.5", None], dtype=object), [False, True, False, False]),
    ],
)
def test_truth_values_and_complex_numbers_are_no_numbers(cells, bad):
    read = read_numbers(cells)
    assert read.bad.tolist() == bad
    assert np.isnan(np.compress(read.bad, read.values)).all()


def test_of_numbers_only_zero_and_one_are_truth_values():
    read = read_booleans(pd.Series([1.0, 0.0, 17.0, np.nan, -1.0]))
    np.testing.assert_array_equal(read.values, [1.0, 0.0, np.nan, np.nan, np.nan])
    assert read.bad.tolist() == [False, False, True, False, True]


def test_booleans():
    read = read_booleans(pd.Series(["Yes", "no", "1", "0", "", "maybe"]))
    np.testing.assert_array_equal(read.values, [1, 0, 1, 0, NAN, NAN])
    np.testing.assert_array_equal(np.flatnonzero(read.bad), [5])


def seconds(*when):
    return datetime(*when, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("cells", "day_first", "values", "note"),
    [
        (["2024-01-02", "2024-01-02 03:04"], None, [seconds(2024, 1, 2), seconds(2024, 1, 2, 3, 4)], ""),
        (["2024-01-02T03:00:00+02:00"], None, [seconds(2024, 1, 2, 1)], "converted to UTC"),
        (["2024-01-02T03:00:00Z"], None, [seconds(2024, 1, 2, 3)], "converted to UTC"),
        (["13/4/2025"], None, [seconds(2025, 4, 13)], ""),
        (["4/13/2025 8:05"], None, [seconds(2025, 4, 13, 8, 5)], ""),
        (["3/4/2025"], None, [seconds(2025, 4, 3)], "day, month, year"),
        (["3/4/2025"], False, [seconds(2025, 3, 4)], ""),
        (["03.04.2025 23:59:30"], True, [seconds(2025, 4, 3, 23, 59, 30)], ""),
        (["8:30", "", "25:99"], None, [8.5 * 3600, NAN, NAN], ""),
    ],
)
def test_times(cells, day_first, values, note):
    read = read_times(pd.Series(cells), day_first=day_first)
    np.testing.assert_array_equal(read.values, values)
    assert note in read.note
    assert bool(read.note) == bool(note)


def test_typed_times():
    zoned = pd.Series(pd.to_datetime(["2024-01-02T03:00+02:00", None]))
    np.testing.assert_array_equal(read_times(zoned).values, [seconds(2024, 1, 2, 1), NAN])
    naive = pd.Series(pd.to_datetime(["2024-01-02"]))
    np.testing.assert_array_equal(read_times(naive).values, [seconds(2024, 1, 2)])


def test_names_of_files_are_written_in_one_form():
    assert clean_name(" cafe\u0301\u200b\0") == "caf\u00e9"
    assert clean_name("\ufeffup\n") == "up"
    assert clean_name("\u0645\u06cc\u200c\u062e") == "\u0645\u06cc\u200c\u062e"  # a joiner within a word has a meaning
