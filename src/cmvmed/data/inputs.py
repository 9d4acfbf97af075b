"""X and y of a fit or a prediction, opened by one path whatever they are: arrays, data frames, files or dask collections.

:func:`open_training` gives the columns of X, the source of its rows and the labels; :func:`open_new` gives the source
of new rows with the columns of the training X. Arrays and frames become a source in memory.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from cmvmed.core.types import Matrix
from cmvmed.data.labels import Labels, read_labeled_rows, read_labels
from cmvmed.data.layout import ViewLayout, collection_items, is_view_collection, layout_of_widths, resolve_views
from cmvmed.data.sources import ArrayTable, DaskRows, LocalRows, Table, dask_rows, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, format_bytes
from cmvmed.data.sources.files import FileTable
from cmvmed.data.sources.opening import (
    check_files_match,
    is_dask,
    is_external,
    labels_in_column,
    labels_in_dask,
    open_table,
)
from cmvmed.data.validation import as_table, column_names, first_text

CHUNK_MEMORY = 2  # reading and the chunks in work take at most this part of the memory limit
UNEQUAL_ROWS = "The views have unequal numbers of rows: {}; align them first."

Rows: TypeAlias = LocalRows | DaskRows


@dataclass(frozen=True)
class InputSettings:
    """How X and y are read."""

    estimator: BaseEstimator  # for the checks of scikit-learn, which name it in their messages
    views: object
    unlabeled: object
    memory_limit: int  # bytes
    n_threads: int | None  # that work on chunks of rows; None for those of the linear algebra


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
    def n_features(self) -> int:
        """Number of columns of all views."""
        return sum(self.layout.widths)


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
    """Open X and y for a fit; y may name the column of X, in files or dask DataFrames, that holds the labels."""
    if is_external(X):
        schema, opened = _open_external_training(X, y, settings)
        source, matrices = opened.rows(schema.layout, settings), None
        if isinstance(y, str) or is_dask(y):
            y = read_labeled_rows(*opened.labels(y, settings.unlabeled), settings.unlabeled)
    else:
        schema, matrices = _read_training_arrays(X, settings)
        source = memory_rows(matrices, n_threads=settings.n_threads)
        y = y.compute() if is_dask(y) else y
    return TrainingInput(schema, source, _read_labels(y, source.n_rows, settings), matrices)


def open_new(X: object, schema: InputSchema, settings: InputSettings) -> "list[Matrix] | OpenInput":
    """Open X for predictions, which must have the columns of the training X: matrices if it is in memory."""
    if not is_external(X):
        return _read_new_arrays(X, schema, settings)
    opened = _open_external_new(X, schema)
    if opened.names is not None:
        _check_widths(opened.widths, schema)
    elif opened.widths[0] != schema.n_features:
        raise ValueError(
            f"X has {opened.widths[0]} features, but {type(settings.estimator).__name__} is expecting {schema.n_features} "
            "features as input."
        )
    return opened


def load_new(X: object, schema: InputSchema, settings: InputSettings) -> list[Matrix]:
    """The views of new rows in memory."""
    opened = open_new(X, schema, settings)
    if isinstance(opened, list):
        return opened
    return load_all_rows(opened.rows(schema.layout, settings), settings.memory_limit)


def load_all_rows(source: Rows, memory_limit: int) -> list[Matrix]:
    """The rows of all views in memory, or an error if they need more than the limit."""
    needed = FLOAT_BYTES * source.n_rows * sum(source.widths)
    if needed > memory_limit:
        raise MemoryError(
            f"X has {source.n_rows} rows of {sum(source.widths)} numbers, {format_bytes(needed)}. All of them are needed at "
            f"once, but only {format_bytes(memory_limit)} of memory may be used: take fewer rows, or raise the limit with "
            "cmvmed.config_context(memory_limit=...) if there is more memory."
        )
    return source.take(np.arange(source.n_rows))


def _read_labels(y: object, n_rows: int, settings: InputSettings) -> Labels:
    if y is None:
        raise ValueError(
            f"This {type(settings.estimator).__name__} estimator requires y to be passed, but the target y is None: give the "
            f"classes of the labeled rows and {settings.unlabeled!r} for the others."
        )
    labels = y if isinstance(y, Labels) else read_labels(y, settings.unlabeled)
    if labels.codes.size != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y {labels.codes.size}."
        )
    return labels


# --- X in memory
# ---------------------------------------------------------------------------------------------------------------


def _read_training_arrays(X: object, settings: InputSettings) -> tuple[InputSchema, list[Matrix]]:
    """The columns of a training X in memory and the matrices of its views."""
    if is_view_collection(X):
        view_names, parts, matrices = _tables_in(X)
        widths = [matrix.shape[1] for matrix in matrices]
        return _schema_of_tables(view_names, widths, [column_names(part) for part in parts], settings), matrices
    estimator = copy(settings.estimator)  # scikit-learn stores the columns of X in the estimator it is given
    table = _validated_table(X, estimator, settings, reset=True)
    seen = getattr(estimator, "feature_names_in_", None)
    names = None if seen is None else [str(name) for name in seen]
    layout = resolve_views(settings.views, table.shape[1], names)
    return InputSchema(layout, names), layout.split(table)


def _read_new_arrays(X: object, schema: InputSchema, settings: InputSettings) -> list[Matrix]:
    """The matrices of the views of new rows in memory."""
    if not is_view_collection(X):
        return schema.layout.split(_validated_table(X, settings.estimator, settings, reset=False))
    names, parts, matrices = _tables_in(X)
    if isinstance(X, Mapping):
        order = _order_of_views(names, schema)
        parts, matrices = [parts[i] for i in order], [matrices[i] for i in order]
    _check_widths([matrix.shape[1] for matrix in matrices], schema)
    for view, expected, part in zip(schema.view_names, schema.known_columns, parts, strict=True):
        given = column_names(part)
        if given is not None and expected is not None and given != expected:
            raise ValueError(
                f"View {view!r} has the columns {given[:6]}, but fit saw {expected[:6]}; pass the same columns in the same "
                "order."
            )
    return matrices


def _validated_table(X: object, estimator: BaseEstimator, settings: InputSettings, *, reset: bool) -> Matrix:
    """One table for all views as a matrix of numbers; ``reset`` stores its columns in the estimator, else they are compared."""
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=1,
        )
    except ValueError as error:
        cell = first_text(X)
        if cell is None:
            raise
        names = column_names(X)
        raise ValueError(cell.message(resolve_views(settings.views, cell.n_columns, names), names)) from error


def _tables_in(X: object) -> tuple[list[str], list[Any], list[Matrix]]:
    """Per view its name, its table as it was given, and the same as a matrix."""
    items = collection_items(X)
    names, parts = [name for name, _ in items], [part for _, part in items]
    matrices = [as_table(name, part) for name, part in items]
    rows = {name: matrix.shape[0] for name, matrix in zip(names, matrices, strict=True)}
    if len(set(rows.values())) > 1:
        raise ValueError(UNEQUAL_ROWS.format(rows))
    return names, parts, matrices


def _schema_of_tables(
    names: Sequence[str], widths: Sequence[int], columns: list[list[str] | None], settings: InputSettings
) -> InputSchema:
    """The columns of one table per view, which may have names."""
    if settings.views is not None:
        raise ValueError(
            "views= describes the columns of one X, but X is a list or dict with one array per view; leave views=None."
        )
    of_all = None if None in columns else [name for part in columns for name in part or ()]
    return InputSchema(layout_of_widths(names, widths), of_all, columns)


def _order_of_views(names: Sequence[str], schema: InputSchema) -> list[int]:
    """Where each view of the training X is among those of a dict."""
    if set(names) != set(schema.view_names):
        raise ValueError(
            f"X has the views {sorted(names)} but fit saw {sorted(schema.view_names)}; pass the same views."
        )
    return [names.index(view) for view in schema.view_names]


def _check_widths(widths: Sequence[int], schema: InputSchema) -> None:
    names = schema.view_names
    if len(widths) != len(names):
        raise ValueError(f"X has {len(widths)} views but fit saw {len(names)}: {list(names)}.")
    for name, expected, width in zip(names, schema.layout.widths, widths, strict=True):
        if width != expected:
            raise ValueError(f"View {name!r} has {width} features, but fit saw {expected}; pass the same columns.")


# --- X in files or dask collections
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OpenInput:
    """X outside of memory: one part per view, or a single part without a name whose columns ``views=`` assigns to the views."""

    names: tuple[str, ...] | None
    parts: tuple[Any, ...]  # a Table or a dask collection each, with the columns in use
    with_labels: Any = None  # the part that has the column of labels, with all its columns
    label_column: str | None = None

    @property
    def columns(self) -> list[list[str] | None]:
        """Names of the columns of each part, None where they have none."""
        return [_names_in(part) for part in self.parts]

    @property
    def widths(self) -> list[int]:
        """Number of columns of each part."""
        return [_width(part) for part in self.parts]

    @property
    def in_dask(self) -> bool:
        """Whether the rows are in dask collections."""
        return is_dask(self.parts[0])

    def rows(self, layout: ViewLayout, settings: InputSettings) -> Rows:
        """The source of the rows of all views, in chunks that respect the memory limit."""
        split, chunks = layout if self.names is None else None, settings.memory_limit // CHUNK_MEMORY
        if self.in_dask:
            origin = self.with_labels if self.with_labels is not None else self.parts[0]
            return dask_rows(self.parts, split, chunks, origin)
        source = LocalRows(self.parts, split, chunks, settings.n_threads)
        source.chunk_memory()  # an error before anything is read
        return source

    def dask_arrays(self) -> list[Any]:
        """The parts as dask arrays, of frames with blocks of unknown length."""
        return [part.to_dask_array() if hasattr(part, "to_dask_array") else part for part in self.parts]

    def labels(self, y: object, unlabeled: object) -> tuple[Any, Any, int]:
        """Numbers and labels of the labeled rows and the number of rows, from a column of X or a dask collection."""
        if is_dask(y):
            return labels_in_dask(y, unlabeled)
        if is_dask(self.with_labels):
            return labels_in_dask(self.with_labels[self.label_column], unlabeled)
        return labels_in_column(self.with_labels, str(y), unlabeled)


def _open_external_training(X: object, y: object, settings: InputSettings) -> tuple[InputSchema, OpenInput]:
    """The columns and parts of an X outside of memory; a column of labels is separated from the features."""
    label_column = y if isinstance(y, str) else None
    names, parts = _open_parts(X)
    with_labels = None if label_column is None else _part_with(label_column, parts)
    features = [
        None if columns is None else [name for name in columns if name != label_column]
        for columns in map(_names_in, parts)
    ]
    selected = tuple(_select(part, columns) for part, columns in zip(parts, features, strict=True))
    _check_rows(names, selected)
    opened = OpenInput(names, selected, with_labels, label_column)
    if names is not None:
        return _schema_of_tables(names, opened.widths, opened.columns, settings), opened
    columns = opened.columns[0]
    return InputSchema(resolve_views(settings.views, opened.widths[0], columns), columns), opened


def _open_external_new(X: object, schema: InputSchema) -> OpenInput:
    """The parts of new rows, with the columns of the training X, found by name where they have names."""
    names, parts = _open_parts(X)
    expected = [schema.names] if names is None else schema.known_columns
    if isinstance(X, Mapping):
        parts = [parts[i] for i in _order_of_views(names or (), schema)]
        names = schema.view_names
    if len(parts) != len(expected):
        raise ValueError(f"X has {len(parts)} views but fit saw {len(expected)}: {list(schema.view_names)}.")
    wanted = [columns if _names_in(part) is not None else None for part, columns in zip(parts, expected, strict=True)]
    selected = tuple(_select(part, columns) for part, columns in zip(parts, wanted, strict=True))
    _check_rows(names, selected)
    return OpenInput(names, selected)


def _open_parts(X: object) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Names of the views, None for a single table, and the tables, or dask collections as they are."""
    if not isinstance(X, (Mapping, list, tuple)):
        return None, [X if is_dask(X) else open_table(X)]
    items = collection_items(X)
    local = [name for name, part in items if not is_dask(part)]
    if local and len(local) < len(items):
        raise ValueError(
            f"View {local[0]!r} is no dask collection, but others are; make all views dask collections, or none."
        )
    return tuple(name for name, _ in items), [_open_view(name, part) if local else part for name, part in items]


def _open_view(name: str, part: object) -> Table:
    if not is_external(part):
        return ArrayTable(as_table(name, part), column_names(part))
    try:
        return open_table(part)
    except ValueError as error:
        raise ValueError(f"View {name!r}: {error}") from error


def _names_in(part: Any) -> list[str] | None:
    return column_names(part) if is_dask(part) else part.column_names


def _width(part: Any) -> int:
    if not is_dask(part):
        return int(part.n_columns)
    return len(part.columns) if hasattr(part, "columns") else int(part.shape[1])


def _part_with(label_column: str, parts: Sequence[Any]) -> Any:
    """The one part that has the column of labels."""
    owners = [part for part in parts if label_column in (_names_in(part) or ())]
    if len(owners) != 1:
        names = [name for part in parts for name in _names_in(part) or ()]
        what = "is in more than one table of X" if owners else f"is no column of X, whose columns are {names}"
        raise ValueError(
            f"y={label_column!r} {what}; y must be the name of one column with the classes, or hold the classes."
        )
    if not (is_dask(owners[0]) or isinstance(owners[0], FileTable)):
        raise ValueError(
            f"y={label_column!r} is a column of a table in memory, beside views in files; pass that column itself as y and "
            "leave it out of X."
        )
    return owners[0]


def _select(part: Any, columns: list[str] | None) -> Any:
    """A part with the given columns only; None takes it as it is."""
    if columns is None:
        return part
    if isinstance(part, (FileTable, ArrayTable)):
        return part.select(columns)
    if not is_dask(part):
        return part
    lacking = [name for name in columns if name not in part.columns]
    if lacking:
        raise ValueError(f"The dask frame has no column {lacking[0]!r}; its columns are {list(part.columns)}.")
    texts = [name for name in columns if part[name].dtype.kind not in "biuf"]
    if texts:
        raise ValueError(
            f"Column {texts[0]!r} of the dask frame holds {part[texts[0]].dtype} values, but features must be numbers."
        )
    return part[columns]


def _check_rows(names: Sequence[str] | None, parts: Sequence[Any]) -> None:
    """Raise if tables differ in their rows, or have none; dask collections are compared when their lengths are known."""
    if is_dask(parts[0]):
        return
    names = names or ("X",)
    counts = {name: part.n_rows for name, part in zip(names, parts, strict=True)}
    if len(set(counts.values())) > 1:
        raise ValueError(UNEQUAL_ROWS.format(counts))
    if parts[0].n_rows == 0:
        raise ValueError("X has 0 rows; at least one is needed.")
    check_files_match(names, parts)
