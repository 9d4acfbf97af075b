"""Tables of numbers: conversion to matrices, missing views, and errors that name the view, row and column of a bad cell."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import check_array

from cmvmed.data.layout import ViewLayout, column_label, layout_of_widths
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix


def column_names(part: object) -> list[str] | None:
    """Column names of a data frame, if they are text; they must be different."""
    names = list(getattr(part, "columns", []))
    if not names or not all(isinstance(name, str) for name in names):
        return None
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise ValueError(f"X has two columns named {repeated!r}; give each column its own name.")
    return names


def as_table(name: str, part: object) -> Matrix:
    """One view's array or frame as a float matrix."""
    shape = np.shape(part) if isinstance(part, (list, tuple)) else getattr(part, "shape", ())
    if len(shape) != 2:
        raise ValueError(
            f"View {name!r} must be a two-dimensional array, sparse matrix or data frame, but is {type(part).__name__} of shape "
            f"{tuple(shape)}."
        )
    date = first_date(part)
    if date is not None:
        raise ValueError(date.message(layout_of_widths([name], [date.n_columns]), column_names(part)))
    try:
        return check_array(without_mask(part), accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    except (ValueError, TypeError) as error:
        cell = first_bad_cell(part)
        if cell is None:
            raise ValueError(f"View {name!r}: {error}") from error
        raise cell.error(layout_of_widths([name], [cell.n_columns]), column_names(part), error) from error


@dataclass(frozen=True)
class RowCheck:
    """Which rows of a chunk have which view; a bad value is named by its view, row and column."""

    views: tuple[str, ...]
    columns: tuple[Sequence[str] | None, ...]  # per view the names of its columns, if they have names
    unused: tuple[BoolArray | None, ...]  # per view the columns whose values do not matter
    complete: tuple[bool, ...] | None = None  # per view whether single NaN are errors; None: in no view
    numbers: IntArray | None = None  # of the rows in X; None for all

    def present(self, first_row: int, matrices: Sequence[Matrix]) -> list[BoolArray]:
        """Per view, which rows of the chunk have it, (n,)."""
        if self.numbers is None:
            return self._present(first_row, matrices)
        try:
            return self._present(0, matrices)
        except ValueError:
            for i, number in enumerate(self.numbers[first_row : first_row + matrices[0].shape[0]]):
                self._present(int(number), [matrix[i : i + 1] for matrix in matrices])
            raise

    def _present(self, first_row: int, matrices: Sequence[Matrix]) -> list[BoolArray]:
        complete = (False,) * len(self.views) if self.complete is None else self.complete
        settings = zip(matrices, self.views, self.columns, self.unused, complete, strict=True)
        return [
            present_rows(m, view, names, unused, first_row, complete=needs_all)
            for m, view, names, unused, needs_all in settings
        ]


def present_rows(
    matrix: Matrix,
    name: str,
    feature_names: Sequence[str] | None,
    unused: BoolArray | None = None,
    first_row: int = 0,
    *,
    complete: bool = False,
) -> BoolArray:
    """Which rows have this view, (n,); a row whose values are all NaN has not.

    ``unused`` marks columns whose values do not matter, such as those of a given kernel that belong to a missing row.
    ``first_row`` is the number of the matrix's first row in the user's data, for messages. ``complete`` is for a given
    kernel, in which no single value can be filled.

    Raises
    ------
    ValueError
        For an infinite value, and if ``complete`` for a NaN beside numbers.
    """
    values = matrix.data if is_sparse(matrix) else matrix
    finite = bool(np.isfinite(values).all())
    if finite:
        return np.ones(matrix.shape[0], dtype=bool)
    rows, columns = _not_finite(matrix)
    entries = np.asarray(matrix[rows, columns]).ravel()
    infinite = np.flatnonzero(np.isinf(entries))
    if infinite.size:
        row, column = rows[infinite[0]], columns[infinite[0]]
        raise ValueError(
            f"Input X contains infinity: view {name!r}, row {first_row + row}, {column_label(int(column), feature_names)}. "
            "Replace it by a number, or set the whole view to NaN in that row if the sensor failed; a single NaN is filled with "
            "the mean of its column."
        )
    if unused is not None:
        rows, columns = rows[~unused[columns]], columns[~unused[columns]]
    n_used = matrix.shape[1] if unused is None else int((~unused).sum())
    absent = np.bincount(rows, minlength=matrix.shape[0]) == n_used
    stray = ~absent[rows]
    if complete and stray.any():
        row, column = rows[stray][0], columns[stray][0]
        raise ValueError(
            f"Input X contains NaN: view {name!r}, row {first_row + row}, {column_label(int(column), feature_names)}, beside "
            "values that are numbers. A single value cannot be filled, since there are no column means, as in a precomputed "
            "kernel: compute it, or set all of the row to NaN if the view is missing there."
        )
    return np.asarray(~absent)


@dataclass(frozen=True)
class BadCell:
    """A cell of a table of features that holds no number: a text, a date, or another object."""

    row: int
    column: int
    n_columns: int  # of the table
    value: object

    def message(self, layout: ViewLayout, feature_names: Sequence[str] | None) -> str:
        """What is wrong and what to do, with the view and the column by their names."""
        view = next(i for i, columns in enumerate(layout.columns) if self.column in columns)
        within = int(np.flatnonzero(layout.columns[view] == self.column)[0])
        names = None if feature_names is None else [feature_names[c] for c in layout.columns[view]]
        place = f"view {layout.names[view]!r}, row {self.row}, {column_label(within, names)}"
        if isinstance(self.value, (str, bytes)):
            return (
                f"Input X contains the text {self.value!r}: {place}, but features must be numbers. Correct the cell if it is an "
                "error, set it to NaN if the value is unknown, or turn a column of texts into numbers before, for instance with "
                "sklearn.preprocessing.OneHotEncoder."
            )
        return (
            f"Input X contains {self.value!r} of type {type(self.value).__name__}: {place}, but features must be numbers. Drop "
            "the column, or turn it into numbers that have a meaning for new rows, such as the hour of a date."
        )

    def error(self, layout: ViewLayout, feature_names: Sequence[str] | None, cause: Exception) -> Exception:
        """An error of the kind of its cause, as scikit-learn expects it: a TypeError for objects that are no numbers."""
        message = self.message(layout, feature_names)
        return TypeError(f"{message} ({cause})") if isinstance(cause, TypeError) else ValueError(message)


def first_bad_cell(table: object) -> BadCell | None:
    """The first cell of a table, row by row, that is neither a number nor missing nor a text that spells a number."""
    cells = np.asarray(table, dtype=object)
    if cells.ndim != 2:
        return None
    for row, line in enumerate(cells):
        for column, value in enumerate(line):
            if not _can_be_number(value):
                return BadCell(row, column, cells.shape[1], value)
    return None


def first_date(table: Any) -> BadCell | None:
    """The first cell of the first column of dates or durations, which would silently become large numbers."""
    if hasattr(table, "columns"):
        types = list(getattr(table, "dtypes", ()))
        column = next((c for c, kind in enumerate(types) if _is_temporal(kind)), None)
        return (
            None if column is None else BadCell(0, column, len(types), next(iter(table[table.columns[column]]), None))
        )
    if _is_temporal(getattr(table, "dtype", None)) and isinstance(table, np.ndarray) and table.ndim == 2 and table.size:
        return BadCell(0, 0, table.shape[1], table[0, 0])
    return None


def _is_temporal(dtype: Any) -> bool:
    """Whether a type of numpy, pandas or polars is one of dates or durations."""
    return getattr(dtype, "kind", None) in ("m", "M") or bool(getattr(dtype, "is_temporal", bool)())


def _can_be_number(value: object) -> bool:
    if isinstance(value, (str, bytes)):
        return is_number(value)
    return isinstance(value, Number) or value is None or type(value).__name__ in ("NAType", "NaTType")


def without_mask(table: Any) -> Any:
    """A masked array with NaN in its masked cells; anything else as it is."""
    return np.ma.filled(table.astype(np.float64), np.nan) if isinstance(table, np.ma.MaskedArray) else table


def is_number(text: str | bytes) -> bool:
    """Whether a text spells a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def absent_rows(matrix: Matrix) -> BoolArray:
    """Which rows are NaN throughout, (n,)."""
    rows, _ = _not_finite(matrix)
    return np.asarray(np.bincount(rows, minlength=matrix.shape[0]) == matrix.shape[1])


def _not_finite(matrix: Matrix) -> tuple[IntArray, IntArray]:
    """Row and column of every entry that is NaN or infinite."""
    if is_sparse(matrix):
        coordinates = matrix.tocoo()
        bad = ~np.isfinite(coordinates.data)
        return coordinates.row[bad].astype(np.intp), coordinates.col[bad].astype(np.intp)
    rows, columns = np.nonzero(~np.isfinite(matrix))
    return rows, columns


def with_rows(part: Array, rows: IntArray, n_rows: int, fill: Array) -> Array:
    """A table (n_rows, F) with ``part`` at ``rows`` and ``fill`` (F,) elsewhere."""
    table = np.tile(fill, (n_rows, 1))
    table[rows] = part
    return table
