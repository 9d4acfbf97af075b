"""The columns of X and the views that they belong to, in training and in new rows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from cmvmed._warnings import warn_user
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.types import IntArray, Matrix


@dataclass(frozen=True)
class ViewLayout(PickledByFields):
    """The names of the views and the columns of X that belong to each."""

    names: tuple[str, ...]
    columns: tuple[IntArray, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return tuple(index.size for index in self.columns)

    def split(self, X: Matrix) -> list[Matrix]:
        """One matrix per view; consecutive columns of a dense X are not copied."""
        return [X[:, columns] for columns in self._ranges]

    @cached_property
    def _ranges(self) -> list[slice | IntArray]:
        """The columns of each view, as slices where they are consecutive."""
        return [_as_slice(index) for index in self.columns]


@dataclass(frozen=True)
class InputSchema:
    """The columns of the training X, and which view each belongs to."""

    layout: ViewLayout
    names: list[str] | None  # of all columns, None unless all have one
    table_columns: list[list[str] | None] | None = None  # if X was one table per view, the column names of its frames

    @property
    def view_names(self) -> tuple[str, ...]:
        """Names of the views."""
        return self.layout.names

    @property
    def columns_by_view(self) -> tuple[list[str] | None, ...]:
        """Per view, the names of its columns if all columns of X have names."""
        names = self.names
        return tuple(None if names is None else [names[c] for c in columns] for columns in self.layout.columns)

    @property
    def known_columns(self) -> list[list[str] | None]:
        """Per view, the names of its columns, None where they have none."""
        return list(self.columns_by_view) if self.table_columns is None else self.table_columns

    @property
    def can_match(self) -> bool:
        """Whether the columns of one table can be found by their names."""
        return self.names is not None and len(set(self.names)) == len(self.names)

    @property
    def n_features(self) -> int:
        """Number of columns of all views."""
        return sum(self.layout.widths)


def is_view_collection(X: object) -> bool:
    """Whether X is a dict, or a list or tuple that holds two-dimensional arrays or frames: one entry per view."""
    if isinstance(X, Mapping):
        return not is_sparse(X)  # a sparse matrix of format "dok" is a mapping too
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return False
    return any(len(getattr(part, "shape", ())) == 2 for part in X)


def collection_items(X: object) -> list[tuple[str, Any]]:
    """(name, array) of each view of a list or dict of views."""
    if isinstance(X, Mapping):
        if len(X) == 0:
            raise ValueError("X is an empty dict: give one two-dimensional array per view.")
        check_different([str(name) for name in X])
        return [(str(name), part) for name, part in X.items()]
    if not isinstance(X, (list, tuple)):
        raise TypeError(f"X must be a list or dict with one array per view, but is {type(X).__name__}.")
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


def resolve_views(views: object, n_features: int, feature_names: Sequence[str] | None) -> ViewLayout:
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
    name: str, choice: object, next_column: int, n_features: int, feature_names: Sequence[str] | None
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
            f"View {name!r}: no column name starts with {prefix!r}; the columns are {abbreviate(feature_names)}."
        )
    return columns


def _listed_columns(name: str, choice: object, n_features: int, feature_names: Sequence[str] | None) -> IntArray:
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
            have = abbreviate(feature_names) if feature_names is not None else "not named, as X is not a data frame"
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
                f"Views overlap: {column_label(column, feature_names)} belongs to {both}; give each column to one view."
            )
        values, counts = np.unique(index, return_counts=True)
        if counts.max() > 1:
            column = int(values[counts > 1][0])
            raise ValueError(
                f"Views overlap: {column_label(column, feature_names)} is twice in view {names[view]!r}; name each column once."
            )
        owner[index] = view
    left = np.flatnonzero(owner < 0)
    if left.size:
        raise ValueError(
            f"Views do not cover X: {column_label(int(left[0]), feature_names)} and {left.size - 1} further of its {n_features} "
            "columns belong to no view. Add them to a view or drop them from X."
        )


def per_view(value: object, names: Sequence[str], parameter: str) -> list[Any]:
    """A setting for each view from a single value, a list in the views' order or a dict by view name."""
    if isinstance(value, Mapping):
        value = {str(name): setting for name, setting in value.items()}
        unknown = sorted(set(value) - set(names))
        lacking = [name for name in names if name not in value]
        if unknown or lacking:
            what = (
                f"has an entry for {unknown[0]!r}, which is not a view"
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


def _as_slice(index: IntArray) -> slice | IntArray:
    """A slice if the columns are consecutive, so that no copy is made."""
    if index.size and np.array_equal(index, np.arange(index[0], index[0] + index.size)):
        return slice(int(index[0]), int(index[0]) + index.size)
    return index


def column_label(column: int, feature_names: Sequence[str] | None) -> str:
    """A column as messages name it."""
    return f"column {column}" if feature_names is None else f"column {feature_names[column]!r} (position {column})"


def abbreviate(names: Sequence[str] | None) -> str:
    """Names as messages list them."""
    shown = list(names or ())
    return f"{shown}" if len(shown) <= 8 else f"{shown[:6]} ... {shown[-1]!r}"


def schema_of_tables(
    names: Sequence[str], widths: Sequence[int], columns: list[list[str] | None], views: object
) -> InputSchema:
    """The columns of one table per view, which may have names."""
    if views is not None:
        raise ValueError(
            "views= describes the columns of one X, but X is a list or dict with one array per view; leave views=None."
        )
    of_all = None if None in columns else [name for part in columns for name in part or ()]
    return InputSchema(layout_of_widths(names, widths), of_all, columns)


def parts_by_view(X: object, schema: InputSchema) -> list[Any]:
    """The tables of a list or dict in the order of the views of the training X; None for one that is missing in all rows."""
    items = collection_items(X)
    names, parts = [name for name, _ in items], [part for _, part in items]
    if isinstance(X, Mapping):
        if set(names) != set(schema.view_names):
            raise ValueError(
                f"X has the views {sorted(names)} but fit saw {sorted(schema.view_names)}; pass the same views, and None "
                "for one that is missing in all rows."
            )
        parts = [parts[names.index(view)] for view in schema.view_names]
    elif names != list(schema.view_names) and len(set(schema.layout.widths)) < len(parts) == len(schema.view_names):
        raise ValueError(
            f"X is a list, but fit saw named views, some of them with the same number of columns: {list(schema.view_names)}. "
            "Pass a dict with these names."
        )
    if len(parts) != len(schema.view_names):
        raise ValueError(f"X has {len(parts)} views but fit saw {len(schema.view_names)}: {list(schema.view_names)}.")
    if all(part is None for part in parts):
        raise ValueError("X has None for every view; give the rows of at least one.")
    return parts


def views_in(columns: Sequence[str], schema: InputSchema) -> list[bool]:
    """Which views of the training X a table with these columns has; it may have others, and lack all of a view's columns."""
    given, has = set(columns), []
    for view, wanted in zip(schema.view_names, schema.columns_by_view, strict=True):
        has.append(check_columns(given, wanted or (), view, whole=False))
    if not any(has):
        raise ValueError(
            f"X has none of the columns that fit saw: {abbreviate(schema.names)}; its columns are {abbreviate(columns)}."
        )
    for view, present in zip(schema.view_names, has, strict=True):
        if not present:
            warn_user(f"X has no column of view {view!r}, which counts as missing in all rows.")
    return has


def check_columns(given: Collection[str], wanted: Sequence[str], view: str, *, whole: bool) -> bool:
    """Whether a view's columns are there; an error if only some are or, with ``whole``, if none is."""
    lacking = [name for name in wanted if name not in given]
    if not lacking:
        return True
    if whole or len(lacking) < len(wanted):
        raise ValueError(
            f"X lacks {len(lacking)} of the {len(wanted)} columns of view {view!r} that fit saw: {abbreviate(lacking)}. Add "
            "them, with NaN where a value is unknown; a view that is missing in all rows may be left out with all its columns."
        )
    return False


def check_widths(widths: Sequence[int], schema: InputSchema) -> None:
    """Raise if the views of new rows have other numbers of columns than those of the training X."""
    for name, expected, width in zip(schema.view_names, schema.layout.widths, widths, strict=True):
        if width != expected:
            raise ValueError(f"View {name!r} has {width} features, but fit saw {expected}; pass the same columns.")


def check_equal_counts(rows: Mapping[str, int]) -> None:
    """Raise if views have unequal numbers of rows."""
    if len(set(rows.values())) > 1:
        raise ValueError(f"The views have unequal numbers of rows: {dict(rows)}; align them first.")
