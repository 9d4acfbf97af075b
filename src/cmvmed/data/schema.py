"""The columns of X and the views that they belong to, and the settings by which X and y are read."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator

from cmvmed._warnings import warn_user
from cmvmed.data.layout import ViewLayout, abbreviate, collection_items, layout_of_widths

UNEQUAL_ROWS = "The views have unequal numbers of rows: {}; align them first."


@dataclass(frozen=True)
class InputSettings:
    """How X and y are read."""

    estimator: BaseEstimator  # for the checks of scikit-learn, which name it in their messages
    views: object
    unlabeled: object
    measure_memory: Callable[[], int]  # bytes that may be taken
    n_threads: int | None  # that work on chunks of rows; None for those of the linear algebra
    dtype: DTypeLike = np.float64  # in which new rows are compared with training rows

    @cached_property
    def memory_limit(self) -> int:
        """Bytes that may be taken, measured when they are first needed: it takes longer than predicting a row."""
        return self.measure_memory()


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


def schema_of_tables(
    names: Sequence[str], widths: Sequence[int], columns: list[list[str] | None], settings: InputSettings
) -> InputSchema:
    """The columns of one table per view, which may have names."""
    if settings.views is not None:
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
