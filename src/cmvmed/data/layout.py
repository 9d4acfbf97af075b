"""Which columns of X are which sensor, and which sensors a row has.

The native form is one X (array, sparse matrix or data frame) and ``views=``, because only that passes through scikit-learn's
splitters, searches and pipelines. A list or a dict of arrays is accepted too and becomes the same thing at this border.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from cmvmed.core.linalg import Array, BoolArray, IntArray, Matrix, is_sparse


@dataclass(frozen=True)
class ViewLayout:
    """The names of the views and the columns of X that belong to each."""

    names: tuple[str, ...]
    columns: tuple[IntArray, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return tuple(index.size for index in self.columns)

    def split(self, X: Matrix) -> list[Matrix]:
        """One matrix per view; consecutive columns of a dense X are not copied."""
        return [X[:, _as_slice(index)] for index in self.columns]


def is_view_collection(X: Any) -> bool:
    """Whether X is a dict, or a list or tuple that holds two-dimensional arrays or frames: one entry per view."""
    if isinstance(X, Mapping):
        return not is_sparse(X)  # a sparse matrix of format "dok" is a mapping too
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return False
    return any(len(getattr(part, "shape", ())) == 2 for part in X)


def collection_items(X: Any) -> list[tuple[str, Any]]:
    """(name, array) of each view of a list or dict of views."""
    if isinstance(X, Mapping):
        if len(X) == 0:
            raise ValueError("X is an empty dict: give one two-dimensional array per view.")
        check_different([str(name) for name in X])
        return [(str(name), part) for name, part in X.items()]
    return [(default_name(i), part) for i, part in enumerate(X)]


def check_different(names: Sequence[str]) -> None:
    """Raise if two views have the same name."""
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise ValueError(f"Two views are named {repeated[0]!r}; names are compared as text, so give each view its own.")


def default_name(i: int) -> str:
    """Name of the i-th view where the user gave none."""
    return f"view{i}"


def layout_of_widths(names: Sequence[str], widths: Sequence[int]) -> ViewLayout:
    """Views side by side in the given order."""
    ends = np.cumsum(widths)
    columns = tuple(np.arange(end - width, end) for width, end in zip(widths, ends, strict=True))
    return ViewLayout(tuple(names), columns)


def resolve_views(views: Any, n_features: int, feature_names: Sequence[str] | None) -> ViewLayout:
    """The layout that ``views=`` describes for an X of ``n_features`` columns.

    Parameters
    ----------
    views : None (all columns are one view), or a list or a dict by view name of: width (int), slice, column prefix
        (str, needs a frame), list of column names or positions, boolean mask
    feature_names : column names if X is a frame
    """
    if views is None:
        return layout_of_widths([default_name(0)], [n_features])
    if isinstance(views, Mapping):
        names, choices = [str(name) for name in views], list(views.values())
    elif isinstance(views, Sequence) and not isinstance(views, (str, bytes)):
        names, choices = [default_name(i) for i in range(len(views))], list(views)
    else:
        raise ValueError(f"views must be None, a list or a dict with one entry per view, but is {views!r}.")
    if not choices:
        raise ValueError("views is empty: give one entry per view, or None to treat all columns as one view.")
    check_different(names)
    columns: list[IntArray] = []
    next_column = 0
    for name, choice in zip(names, choices, strict=True):
        columns.append(_columns_of(name, choice, next_column, n_features, feature_names))
        next_column = int(columns[-1][-1]) + 1
    _check_partition(names, columns, n_features, feature_names)
    return ViewLayout(tuple(names), tuple(columns))


def _columns_of(
    name: str, choice: Any, next_column: int, n_features: int, feature_names: Sequence[str] | None
) -> IntArray:
    """Column positions of one view."""
    if isinstance(choice, Integral) and not isinstance(choice, bool):
        columns = np.arange(next_column, next_column + int(choice))
    elif isinstance(choice, slice):
        columns = np.arange(n_features)[_integer_slice(name, choice)]
    elif isinstance(choice, str):
        columns = _columns_with_prefix(name, choice, feature_names)
    else:
        columns = _listed_columns(name, choice, n_features, feature_names)
    if columns.size == 0:
        raise ValueError(f"View {name!r} has no columns: views gives it {choice!r} and X has {n_features} columns.")
    outside = columns[(columns < 0) | (columns >= n_features)]
    if outside.size:
        raise ValueError(
            f"View {name!r} asks for column {outside[0]} but X has {n_features} columns; check the widths or positions in views."
        )
    return columns.astype(np.intp)


def _integer_slice(name: str, choice: slice) -> slice:
    if any(not isinstance(part, (Integral, type(None))) for part in (choice.start, choice.stop, choice.step)):
        raise ValueError(
            f"View {name!r} has the slice {choice!r}; slices count column positions, so use whole numbers."
        )
    return choice


def _columns_with_prefix(name: str, prefix: str, feature_names: Sequence[str] | None) -> IntArray:
    if feature_names is None:
        raise ValueError(
            f"View {name!r} is given by the column prefix {prefix!r}, which needs a data frame with string column names; for "
            "an array use widths, slices or column positions."
        )
    columns = np.array([i for i, column in enumerate(feature_names) if column.startswith(prefix)], dtype=np.intp)
    if columns.size == 0:
        raise ValueError(
            f"View {name!r}: no column name starts with {prefix!r}; the columns are {_shortened(feature_names)}."
        )
    return columns


def _listed_columns(name: str, choice: Any, n_features: int, feature_names: Sequence[str] | None) -> IntArray:
    items = np.asarray(choice, dtype=object).ravel().tolist()
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != n_features:
            raise ValueError(f"View {name!r} has a mask of length {len(items)} but X has {n_features} columns.")
        return np.flatnonzero(items)
    if all(isinstance(item, Integral) for item in items):
        positions = np.array(items, dtype=np.intp)
        return np.where((positions < 0) & (positions >= -n_features), positions + n_features, positions)
    if all(isinstance(item, str) for item in items):
        known = {column: i for i, column in enumerate(feature_names or ())}
        unknown = [item for item in items if item not in known]
        if unknown:
            have = _shortened(feature_names) if feature_names is not None else "not named, as X is not a data frame"
            raise ValueError(
                f"View {name!r} asks for column {unknown[0]!r}, which X does not have; its columns are {have}."
            )
        return np.array([known[item] for item in items], dtype=np.intp)
    raise ValueError(
        f"View {name!r} is given as {choice!r}; use a width, a slice, a column prefix, or a list of column names or positions."
    )


def _check_partition(
    names: Sequence[str], columns: Sequence[IntArray], n_features: int, feature_names: Sequence[str] | None
) -> None:
    """Raise unless every column belongs to exactly one view."""
    owner = np.full(n_features, -1)
    for view, index in enumerate(columns):
        taken = index[owner[index] >= 0]
        if taken.size:
            column = int(taken[0])
            both = f"{names[owner[column]]!r} and to {names[view]!r}"
            raise ValueError(
                f"Views overlap: {_column_label(column, feature_names)} belongs to {both}; give each column to one view."
            )
        values, counts = np.unique(index, return_counts=True)
        if counts.max() > 1:
            column = int(values[counts > 1][0])
            raise ValueError(
                f"Views overlap: {_column_label(column, feature_names)} is twice in view {names[view]!r}; name each column once."
            )
        owner[index] = view
    left = np.flatnonzero(owner < 0)
    if left.size:
        raise ValueError(
            f"Views do not cover X: {_column_label(int(left[0]), feature_names)} and {left.size - 1} further of its {n_features} "
            "columns belong to no view. Add them to a view or drop them from X."
        )


def present_rows(
    matrix: Matrix,
    name: str,
    missing: str,
    feature_names: Sequence[str] | None,
    unused: BoolArray | None = None,
    first_row: int = 0,
) -> BoolArray:
    """Which rows have this view, (n,); a row whose values are all NaN has not.

    ``unused`` marks columns whose values do not matter, such as those of a given kernel that belong to a missing row.
    ``first_row`` is the number of the matrix's first row in the user's data, for messages.

    Raises
    ------
    ValueError
        For an infinite value, for a NaN beside numbers, and for an absent view if ``missing="error"``.
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
            f"Input X contains infinity: view {name!r}, row {first_row + row}, {_column_label(int(column), feature_names)}. "
            "Replace it by a number, or set the whole view to NaN in that row if the sensor failed."
        )
    nan_count = np.bincount(rows, minlength=matrix.shape[0])
    absent = nan_count == matrix.shape[1]
    stray = ~absent[rows] if unused is None else ~absent[rows] & ~unused[columns]
    if stray.any():
        row, column = rows[stray][0], columns[stray][0]
        raise ValueError(
            f"Input X contains NaN: view {name!r}, row {first_row + row}, {_column_label(int(column), feature_names)}, beside "
            "values that are numbers. A row whose view is missing must be NaN in all of the view's columns; fill single gaps "
            "before, for instance with sklearn.impute.SimpleImputer."
        )
    present = ~absent
    if missing == "error" and absent.any():
        first_absent = first_row + int(np.flatnonzero(absent)[0])
        raise ValueError(
            f"View {name!r} is missing (NaN) in {int(absent.sum())} rows, first in row {first_absent}, and "
            'missing="error"; use missing="ignore" to leave an absent view out of the consensus.'
        )
    return np.asarray(present)


@dataclass(frozen=True)
class TextCell:
    """A cell of a table of features that holds a text."""

    row: int
    column: int
    n_columns: int  # of the table
    text: str | bytes

    def message(self, layout: ViewLayout, feature_names: Sequence[str] | None) -> str:
        """What is wrong and what to do, with the view and the column by their names."""
        view = next(i for i, columns in enumerate(layout.columns) if self.column in columns)
        within = int(np.flatnonzero(layout.columns[view] == self.column)[0])
        names = None if feature_names is None else [feature_names[c] for c in layout.columns[view]]
        return (
            f"Input X contains the text {self.text!r}: view {layout.names[view]!r}, row {self.row}, "
            f"{_column_label(within, names)}, but features must be numbers. Correct the cell if it is an error, set the whole "
            "view to NaN in that row if the sensor failed, or turn a column of texts into numbers before, for instance with "
            "sklearn.preprocessing.OneHotEncoder."
        )


def first_text(table: Any) -> TextCell | None:
    """The first cell of a table, row by row, with a text that spells no number; None if there is none."""
    cells = np.asarray(table, dtype=object)
    if cells.ndim != 2:
        return None
    for row, line in enumerate(cells):
        for column, value in enumerate(line):
            if isinstance(value, (str, bytes)) and not _spells_number(value):
                return TextCell(row, column, cells.shape[1], value)
    return None


def _spells_number(text: str | bytes) -> bool:
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


def per_view(value: Any, names: Sequence[str], parameter: str) -> list[Any]:
    """A setting for each view from a single value, a list in the views' order or a dict by view name."""
    if isinstance(value, Mapping):
        value = {str(name): setting for name, setting in value.items()}
        unknown = sorted(set(value) - set(names))
        lacking = [name for name in names if name not in value]
        if unknown or lacking:
            what = (
                f"has an entry for {unknown[0]!r}, which is no view"
                if unknown
                else f"has no entry for view {lacking[0]!r}"
            )
            raise ValueError(f"{parameter} {what}; the views are {list(names)}.")
        return [value[name] for name in names]
    if isinstance(value, (list, tuple, np.ndarray)):
        if len(value) != len(names):
            raise ValueError(f"{parameter} has {len(value)} entries but there are {len(names)} views: {list(names)}.")
        return list(value)
    return [value] * len(names)


def with_rows(part: Array, rows: IntArray, n_rows: int, fill: Array) -> Array:
    """A table (n_rows, F) with ``part`` at ``rows`` and ``fill`` (F,) elsewhere."""
    table = np.tile(fill, (n_rows, 1))
    table[rows] = part
    return table


def _as_slice(index: IntArray) -> slice | IntArray:
    """A slice if the columns are consecutive, so that no copy is made."""
    if index.size and np.array_equal(index, np.arange(index[0], index[0] + index.size)):
        return slice(int(index[0]), int(index[0]) + index.size)
    return index


def _column_label(column: int, feature_names: Sequence[str] | None) -> str:
    return f"column {column}" if feature_names is None else f"column {feature_names[column]!r} (position {column})"


def _shortened(names: Sequence[str] | None) -> str:
    shown = list(names or ())
    return f"{shown}" if len(shown) <= 8 else f"{shown[:6]} ... {shown[-1]!r}"
