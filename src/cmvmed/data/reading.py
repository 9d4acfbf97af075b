"""X and y of a fit or a prediction, opened in one way whatever they are: arrays, data frames, files or dask collections.

:func:`open_training` gives the columns of X, the source of its rows and the labels; :func:`open_new` gives new rows with
the columns of the training X. Both open the parts of X (:mod:`cmvmed.data.sources.parts`), choose columns, check parts in
memory, and compare the rows of views. Arrays of other libraries are a source where they are.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from cmvmed._warnings import warn_user
from cmvmed.data.array_api import ArrayPlace, array_place, on_host
from cmvmed.data.labels import Labels, SparseLabels, read_labels, read_sparse_labels
from cmvmed.data.layout import (
    InputSchema,
    ViewLayout,
    abbreviate,
    check_columns,
    check_equal_counts,
    check_widths,
    collection_items,
    is_view_collection,
    parts_by_view,
    resolve_views,
    schema_of_tables,
    views_in,
)
from cmvmed.data.sources import ArrayApiRows, ArrayTable, DaskRows, LocalRows, dask_rows, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, as_numbers, format_bytes
from cmvmed.data.sources.dask import is_dask, labels_in_dask
from cmvmed.data.sources.parts import (
    check_files_match,
    is_external,
    is_table,
    labels_in,
    missing_view,
    names_in,
    open_part,
    padded,
    select,
    width_of,
)
from cmvmed.data.validation import as_table, column_names, first_bad_cell, first_date, without_mask
from cmvmed.numerics.types import Array, Matrix

CHUNK_MEMORY = 2  # reading and the chunks in work take at most this part of the memory limit

Rows: TypeAlias = LocalRows | DaskRows | ArrayApiRows


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
class OpenInput:
    """X, opened: one part per view, or a single part without a name whose columns belong to the views."""

    names: tuple[str, ...] | None
    parts: tuple[Any, ...]  # a Table or a dask collection each, with the columns in use
    in_memory: bool  # all of it

    @property
    def columns(self) -> list[list[str] | None]:
        """Names of the columns of each part, None where they have none."""
        return [names_in(part) for part in self.parts]

    @property
    def widths(self) -> list[int]:
        """Number of columns of each part."""
        return [width_of(part) for part in self.parts]

    @property
    def in_dask(self) -> bool:
        """Whether the rows are in dask collections."""
        return is_dask(self.parts[0])

    def matrices(self, layout: ViewLayout) -> list[Matrix]:
        """The rows of each view, if X is in memory."""
        return layout.split(self.parts[0].array) if self.names is None else [part.array for part in self.parts]

    def rows(self, layout: ViewLayout, settings: InputSettings, origin: Any = None) -> Rows:
        """The source of the rows of all views, in chunks that respect the memory limit.

        ``origin`` is the dask collection that the parts come from, if they are not it.
        """
        if self.in_memory:
            return memory_rows(self.matrices(layout), n_threads=settings.n_threads)
        split, chunks = layout if self.names is None else None, settings.memory_limit // CHUNK_MEMORY
        if self.in_dask:
            return dask_rows(self.parts, split, chunks, self.parts[0] if origin is None else origin)
        source = LocalRows(self.parts, split, chunks, settings.n_threads)
        source.chunk_memory()  # an error before anything is read
        return source

    def dask_arrays(self) -> list[Any]:
        """The parts as dask arrays, of frames with blocks of unknown length."""
        return [part.to_dask_array() if hasattr(part, "to_dask_array") else part for part in self.parts]


@dataclass(frozen=True)
class TrainingInput:
    """X and y of a fit."""

    schema: InputSchema
    source: Rows
    labels: Labels
    matrices: list[Matrix] | None  # the rows of each view, if X is in memory

    def load(self, memory_limit: int) -> list[Matrix]:
        """The rows of all views in memory, or an error if they need more than the limit."""
        return load_all_rows(self.source, memory_limit) if self.matrices is None else self.matrices


def open_training(X: object, y: object, settings: InputSettings) -> TrainingInput:
    """Open X and y for a fit; y may name the column of X, in data frames, files or dask DataFrames, that holds the labels."""
    place, y = array_place(X), on_host(y)
    if place is not None and place.has_double_precision and not isinstance(y, str):
        schema, arrays = _open_arrays(X, place, settings)
        y = y.compute() if is_dask(y) else y
        return TrainingInput(schema, arrays, _read_labels(y, arrays.n_rows, settings), None)
    X = on_host(X)
    names, parts = _open_parts(X)
    owner = _part_with(y, parts) if isinstance(y, str) else None
    schema, opened = _open_columns(
        names, parts, settings, y if isinstance(y, str) else None, in_memory=not is_external(X)
    )
    source = opened.rows(schema.layout, settings, owner)
    if isinstance(y, str):
        y = _label_column(owner, y, settings.unlabeled)
    elif is_dask(y):
        y = y.compute() if opened.in_memory else labels_in_dask(y, settings.unlabeled)
    matrices = None
    if opened.in_memory:
        matrices = opened.matrices(schema.layout)
        _warn_of_other_order(X, y)
    return TrainingInput(schema, source, _read_labels(y, source.n_rows, settings), matrices)


def open_rows(X: object, settings: InputSettings) -> tuple[InputSchema, Rows]:
    """The columns and the source of the rows of an X without labels."""
    X = on_host(X)
    schema, opened = _open_columns(*_open_parts(X), settings, in_memory=not is_external(X))
    return schema, opened.rows(schema.layout, settings)


def read_label_column(X: object, column: str, unlabeled: object) -> Any:
    """The labels in a column of X, one for each row."""
    labels = _label_column(_part_with(column, _open_parts(X)[1]), column, unlabeled)
    if not isinstance(labels, SparseLabels):
        return labels
    every = np.full(labels.n_rows, None, dtype=object)
    every[labels.rows] = labels.labels
    return every


def open_new(X: object, schema: InputSchema, settings: InputSettings) -> list[Matrix] | OpenInput:
    """Open X for predictions, which must have the columns of the training X: matrices if it is in memory.

    Those of a single table stay in single precision if they are given so: what is computed converts some rows at a time.
    """
    opened = _open_new_parts(X, schema, settings)
    if opened.names is not None:
        check_widths(opened.widths, schema)
    elif opened.widths[0] != schema.n_features:
        raise ValueError(
            f"X has {opened.widths[0]} features, but {type(settings.estimator).__name__} is expecting {schema.n_features} "
            "features as input."
        )
    return opened.matrices(schema.layout) if opened.in_memory else opened


def load_new(X: object, schema: InputSchema, settings: InputSettings) -> list[Matrix]:
    """The views of new rows in memory."""
    opened = open_new(on_host(X), schema, settings)
    if isinstance(opened, list):
        return [as_numbers(matrix) for matrix in opened]
    return load_all_rows(opened.rows(schema.layout, settings), settings.memory_limit)


def load_all_rows(source: Rows, memory_limit: int) -> list[Matrix]:
    """The rows of all views in memory, or an error if they need more than the limit."""
    needed = FLOAT_BYTES * source.n_rows * sum(source.widths)
    if needed > memory_limit:
        raise MemoryError(
            f"All {source.n_rows} rows of X are needed at once. They take {format_bytes(needed)}, but only "
            f"{format_bytes(memory_limit)} of memory may be used: take fewer rows, or raise the limit with "
            "cmvmed.config_context(memory_limit=...)."
        )
    return source.take(np.arange(source.n_rows))


def _open_parts(X: Any) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Names of the views, None for a single table, and the parts: tables, dask collections, and what is in memory."""
    if not _has_views(X):
        return None, [open_part(X)]
    items = collection_items(X)
    local = [name for name, part in items if not is_dask(part)]
    if local and len(local) < len(items):
        raise ValueError(
            f"View {local[0]!r} is not a dask collection, but others are; make all views dask collections, or none."
        )
    return tuple(name for name, _ in items), [_open_view(name, part) for name, part in items]


def _has_views(X: object) -> bool:
    """Whether X is a list or dict with one part per view."""
    return is_view_collection(X) or (isinstance(X, (Mapping, list, tuple)) and is_external(X))


def _open_view(name: str, part: object) -> Any:
    try:
        return open_part(part)
    except ValueError as error:
        raise ValueError(f"View {name!r}: {error}") from error


def _open_columns(
    names: tuple[str, ...] | None,
    parts: Sequence[Any],
    settings: InputSettings,
    label_column: str | None = None,
    *,
    in_memory: bool,
) -> tuple[InputSchema, OpenInput]:
    """The columns of a training X and its parts, without the column of labels."""
    features = [
        part if columns is None else select(part, [name for name in columns if name != label_column])
        for part, columns in zip(parts, map(names_in, parts), strict=True)
    ]
    if names is None and in_memory:
        tables = [_training_table(features[0], settings)]
    else:
        tables = [_checked(name, part) for name, part in zip(names or ("X",), features, strict=True)]
    _check_rows(names or ("X",), tables)
    opened = OpenInput(names, tuple(tables), in_memory)
    if names is not None:
        return schema_of_tables(names, opened.widths, opened.columns, settings.views), opened
    columns = opened.columns[0]
    return InputSchema(resolve_views(settings.views, opened.widths[0], columns), columns), opened


def _checked(name: str, part: Any) -> Any:
    """A view in memory as a table of numbers; others as they are."""
    return part if is_table(part) or is_dask(part) else ArrayTable(as_table(name, part), column_names(part))


def _training_table(X: object, settings: InputSettings) -> ArrayTable:
    """One table in memory for all views."""
    estimator = copy(settings.estimator)  # scikit-learn stores the columns of X in the estimator it is given
    table = _validated_table(X, estimator, settings, reset=True)
    seen = getattr(estimator, "feature_names_in_", None)
    return ArrayTable(table, None if seen is None else [str(name) for name in seen])


def _validated_table(X: object, estimator: BaseEstimator, settings: InputSettings, *, reset: bool) -> Matrix:
    """One table for all views as a matrix of numbers; ``reset`` stores its columns in the estimator, else they are compared."""
    if not reset and _is_plain_table(X, estimator):
        return X
    date, names = first_date(X), column_names(X)
    if date is not None:
        raise ValueError(date.message(resolve_views(settings.views, date.n_columns, names), names))
    if not reset:
        _warn_of_numbered_columns(X)
    try:
        return validate_data(
            estimator,
            without_mask(X),
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64 if reset else [np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=1,
        )
    except (ValueError, TypeError) as error:
        cell = first_bad_cell(X)
        if cell is None:
            raise
        raise cell.error(resolve_views(settings.views, cell.n_columns, names), names, error) from error


def _is_plain_table(X: object, estimator: Any) -> TypeGuard[Array]:
    """Whether an array needs none of the checks of scikit-learn, which take as long as a part of one row."""
    return (
        type(X) is np.ndarray
        and (X.dtype == np.float64 or X.dtype == np.float32)
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def _warn_of_numbered_columns(X: object) -> None:
    """Warn if the columns of a data frame have numbers in another order than that of their positions."""
    numbers = list(getattr(X, "columns", []))
    are_numbers = all(isinstance(number, Integral) for number in numbers)
    if are_numbers and numbers != sorted(numbers) == list(range(len(numbers))):
        warn_user(
            f"The columns of X have the numbers {numbers[:5]}{'...' if len(numbers) > 5 else ''}, in another order than their "
            "positions, by which they are taken. Sort them if fit saw them in order, or give columns texts as names, by which they "
            "are found."
        )


def _open_arrays(X: Any, place: ArrayPlace, settings: InputSettings) -> tuple[InputSchema, ArrayApiRows]:
    """The columns of arrays of another library, whose first rows are checked as others are, and the source of their rows."""
    in_views = is_view_collection(X)
    items = collection_items(X) if in_views else [("X", X)]
    heads = {
        name: part[: min(1, part.shape[0]), ...] if getattr(part, "ndim", 0) == 2 else part for name, part in items
    }
    first_rows = on_host(heads if in_views else heads["X"])
    schema, _ = _open_columns(*_open_parts(first_rows), settings, in_memory=True)
    arrays = [part for _, part in items]
    check_equal_counts({name: int(part.shape[0]) for name, part in items})
    limit = settings.memory_limit // CHUNK_MEMORY
    return schema, ArrayApiRows(place, arrays, None if in_views else schema.layout, limit)


def _open_new_parts(X: object, schema: InputSchema, settings: InputSettings) -> OpenInput:
    """The parts of new rows, with the columns of the training X, found by name where they have names.

    Views that are missing in all rows, with all their columns or as None, become columns of NaN.
    """
    in_memory = not is_external(X)
    if _has_views(X):
        by_view = parts_by_view(X, schema)
    else:
        part = open_part(X)
        given = names_in(part)
        by_position = given is None or not schema.can_match
        if not in_memory:
            return OpenInput(None, (part if by_position else _with_names_of(part, schema),), in_memory)
        if by_position or given == schema.names:
            table = _validated_table(X, settings.estimator, settings, reset=False)
            return OpenInput(None, (ArrayTable(table),), in_memory)
        by_view = [X if present else None for present in views_in(given or (), schema)]
    present = {view: part for view, part in zip(schema.view_names, by_view, strict=True) if part is not None}
    opened = dict(zip(present, _open_parts(present)[1], strict=True))
    tables = {
        view: _checked(view, _new_view(opened[view], view, columns))
        for view, columns in zip(schema.view_names, schema.known_columns, strict=True)
        if view in opened
    }
    _check_rows(list(tables), list(tables.values()))
    like = next(iter(tables.values()))
    widths = zip(schema.view_names, schema.layout.widths, strict=True)
    parts = tuple(tables[view] if view in tables else missing_view(like, width) for view, width in widths)
    return OpenInput(schema.view_names, parts, in_memory)


def _new_view(part: Any, view: str, wanted: list[str] | None) -> Any:
    """One view, with the columns of the training X if both have names."""
    given = names_in(part)
    if given is None or wanted is None:
        return part
    check_columns(given, wanted, view, whole=True)
    return select(part, wanted)


def _with_names_of(part: Any, schema: InputSchema) -> Any:
    """One table for all views with the columns of the training X; NaN in the columns of missing views."""
    names = schema.names or []
    views = zip(views_in(names_in(part) or (), schema), schema.layout.columns, strict=True)
    found = np.sort(np.concatenate([index for present, index in views if present]))
    return padded(select(part, [names[c] for c in found]), names, found)


def _part_with(label_column: str, parts: Sequence[Any]) -> Any:
    """The one part that has the column of labels."""
    owners = [part for part in parts if label_column in (names_in(part) or ())]
    if len(owners) == 1:
        return owners[0]
    columns = [name for part in parts for name in names_in(part) or ()]
    what = f"is not a column of X, whose columns are {abbreviate(columns) if columns else 'not named'}"
    if owners:
        what = "is in more than one table of X"
    raise ValueError(
        f"y={label_column!r} {what}; y must be the name of one column with the classes, or hold the classes."
    )


def _label_column(part: Any, column: str, unlabeled: object) -> Any:
    """The labeled rows of a column of files or of a dask frame; a column in memory as it is."""
    found = labels_in(part, column, unlabeled)
    return part[column] if found is None else found


def _read_labels(y: object, n_rows: int, settings: InputSettings) -> Labels:
    if y is None:
        raise ValueError(
            f"This {type(settings.estimator).__name__} estimator requires y to be passed, but the target y is None: give the "
            f"classes of the labeled rows and {settings.unlabeled!r} for the others."
        )
    read: Any = read_sparse_labels if isinstance(y, SparseLabels) else read_labels
    labels: Labels = read(y, settings.unlabeled)
    if labels.codes.size != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y {labels.codes.size}."
        )
    return labels


def _warn_of_other_order(X: object, y: object) -> None:
    """Warn if the indices of a pandas X and y hold the same rows in another order."""
    rows: Any = getattr(X, "index", None)
    labels: Any = getattr(y, "index", None)
    if callable(rows) or callable(labels) or not (hasattr(rows, "equals") and hasattr(labels, "equals")):
        return
    if len(rows) == len(labels) and rows.is_unique and not rows.equals(labels) and rows.isin(labels).all():
        warn_user(
            "X and y have the same index in another order. Rows are matched by position; to match them by index, pass "
            "y.loc[X.index]."
        )


def _check_rows(names: Sequence[str], parts: Sequence[Any]) -> None:
    """Raise if tables differ in their rows, or have none; dask collections are compared when their lengths are known."""
    if is_dask(parts[0]):
        return
    check_equal_counts({name: part.n_rows for name, part in zip(names, parts, strict=True)})
    if parts[0].n_rows == 0:
        raise ValueError("X has 0 rows; at least one is needed.")
    check_files_match(names, parts)
