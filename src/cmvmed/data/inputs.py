"""X and y of a fit or a prediction, opened by one path whatever they are: arrays, data frames, files or dask collections.

:func:`open_training` gives the columns of X, the source of its rows and the labels; :func:`open_new` gives new rows with
the columns of the training X. Arrays and frames become a source in memory, arrays of other libraries one where they are.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from cmvmed._warnings import warn_user
from cmvmed.data.array_api import ArrayPlace, array_place, on_host
from cmvmed.data.external import (
    CHUNK_MEMORY,
    OpenInput,
    Rows,
    open_external_new,
    open_external_training,
    open_label_column,
    wrong_label_column,
)
from cmvmed.data.labels import Labels, read_labeled_rows, read_labels
from cmvmed.data.layout import collection_items, is_view_collection, resolve_views
from cmvmed.data.schema import (
    UNEQUAL_ROWS,
    InputSchema,
    InputSettings,
    check_columns,
    check_widths,
    parts_by_view,
    schema_of_tables,
    views_in,
)
from cmvmed.data.sources import ArrayApiRows, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, as_numbers, format_bytes
from cmvmed.data.sources.opening import is_dask, is_external
from cmvmed.data.validation import as_table, column_names, first_bad_cell, first_date, without_mask
from cmvmed.numerics.types import Matrix


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
    if is_external(X):
        schema, opened = open_external_training(X, y, settings)
        source, matrices = opened.rows(schema.layout, settings), None
        if isinstance(y, str) or is_dask(y):
            y = read_labeled_rows(*opened.labels(y, settings.unlabeled), settings.unlabeled)
    else:
        if isinstance(y, str):
            X, y = without_column(X, y)
        schema, matrices = _read_training_arrays(X, settings)
        source = memory_rows(matrices, n_threads=settings.n_threads)
        y = y.compute() if is_dask(y) else y
        _warn_of_other_order(X, y)
    return TrainingInput(schema, source, _read_labels(y, source.n_rows, settings), matrices)


def open_rows(X: object, settings: InputSettings) -> tuple[InputSchema, Rows]:
    """The columns and the source of the rows of an X without labels."""
    X = on_host(X)
    if is_external(X):
        schema, opened = open_external_training(X, None, settings)
        return schema, opened.rows(schema.layout, settings)
    schema, matrices = _read_training_arrays(X, settings)
    return schema, memory_rows(matrices, n_threads=settings.n_threads)


def open_new(X: object, schema: InputSchema, settings: InputSettings) -> list[Matrix] | OpenInput:
    """Open X for predictions, which must have the columns of the training X: matrices if it is in memory.

    Those of a single table stay in single precision if they are given so: what is computed converts some rows at a time.
    """
    if not is_external(X):
        return _read_new_arrays(X, schema, settings)
    opened = open_external_new(X, schema)
    if opened.names is not None:
        check_widths(opened.widths, schema)
    elif opened.widths[0] != schema.n_features:
        raise ValueError(
            f"X has {opened.widths[0]} features, but {type(settings.estimator).__name__} is expecting {schema.n_features} "
            "features as input."
        )
    return opened


def read_label_column(X: object, column: str, unlabeled: object) -> Any:
    """The labels in a column of X, one for each row."""
    if not is_external(X):
        return without_column(X, column)[1]
    rows, given, n_rows = open_label_column(X, column).labels(column, unlabeled)
    labels = np.full(n_rows, None, dtype=object)
    labels[rows] = given
    return labels


def without_column(X: object, column: str) -> tuple[Any, Any]:
    """X, of data frames in memory, without one of their columns, and that column."""
    items: list[tuple[str, Any]] = collection_items(X) if is_view_collection(X) else [("X", X)]
    columns = {name: column_names(part) or [] for name, part in items}
    owners = [name for name in columns if column in columns[name]]
    if len(owners) != 1:
        raise ValueError(wrong_label_column(column, [name for names in columns.values() for name in names], owners))
    kept = {
        name: part[[other for other in columns[name] if other != column]] if name == owners[0] else part
        for name, part in items
    }
    values = dict(items)[owners[0]][column]
    if not is_view_collection(X):
        return kept["X"], values
    return kept if isinstance(X, Mapping) else list(kept.values()), values


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


def _warn_of_other_order(X: object, y: object) -> None:
    """Warn if the indices of a pandas X and y hold the same rows in another order."""
    rows: Any = getattr(X, "index", None)
    labels: Any = getattr(y, "index", None)
    if callable(rows) or callable(labels) or not (hasattr(rows, "equals") and hasattr(labels, "equals")):
        return
    if len(rows) == len(labels) and rows.is_unique and not rows.equals(labels) and rows.isin(labels).all():
        warn_user(
            "X and y have the same index in another order. Rows are matched by position, so if they are to be matched by their "
            "index pass y.loc[X.index]."
        )


def _read_training_arrays(X: object, settings: InputSettings) -> tuple[InputSchema, list[Matrix]]:
    """The columns of a training X in memory and the matrices of its views."""
    if is_view_collection(X):
        items = collection_items(X)
        view_names, columns = [name for name, _ in items], [column_names(part) for _, part in items]
        matrices = [as_table(name, part) for name, part in items]
        _check_equal_rows(view_names, matrices)
        widths = [matrix.shape[1] for matrix in matrices]
        return schema_of_tables(view_names, widths, columns, settings), matrices
    estimator = copy(settings.estimator)  # scikit-learn stores the columns of X in the estimator it is given
    table = _validated_table(X, estimator, settings, reset=True)
    seen = getattr(estimator, "feature_names_in_", None)
    names = None if seen is None else [str(name) for name in seen]
    layout = resolve_views(settings.views, table.shape[1], names)
    return InputSchema(layout, names), layout.split(table)


def _open_arrays(X: Any, place: ArrayPlace, settings: InputSettings) -> tuple[InputSchema, ArrayApiRows]:
    """The columns of arrays of another library, whose first rows are checked as others are, and the source of their rows."""
    items = collection_items(X) if is_view_collection(X) else [("X", X)]
    heads = {
        name: part[: min(1, part.shape[0]), ...] if getattr(part, "ndim", 0) == 2 else part for name, part in items
    }
    in_views = is_view_collection(X)
    schema, _ = _read_training_arrays(on_host(heads if in_views else heads["X"]), settings)
    names, arrays = [name for name, _ in items], [part for _, part in items]
    _check_equal_rows(names, arrays)
    limit = settings.memory_limit // CHUNK_MEMORY
    return schema, ArrayApiRows(place, arrays, None if in_views else schema.layout, limit)


def _read_new_arrays(X: object, schema: InputSchema, settings: InputSettings) -> list[Matrix]:
    """The matrices of the views of new rows in memory; columns with names are found by them."""
    if is_view_collection(X):
        parts = parts_by_view(X, schema)
    else:
        given = column_names(X)
        if given is None or not schema.can_match or given == schema.names:
            return schema.layout.split(_validated_table(X, settings.estimator, settings, reset=False))
        parts = [X if present else None for present in views_in(given, schema)]
    tables = [
        None if part is None else as_table(view, _with_columns(part, columns, view))
        for view, part, columns in zip(schema.view_names, parts, schema.known_columns, strict=True)
    ]
    present = {view: table for view, table in zip(schema.view_names, tables, strict=True) if table is not None}
    n_rows = _check_equal_rows(list(present), list(present.values()))
    matrices = [
        np.full((n_rows, width), np.nan) if table is None else table
        for table, width in zip(tables, schema.layout.widths, strict=True)
    ]
    check_widths([matrix.shape[1] for matrix in matrices], schema)
    return matrices


def _with_columns(part: Any, wanted: list[str] | None, view: str) -> Any:
    """A table with the columns of a view in their order, if both have names."""
    given = column_names(part)
    if given is None or wanted is None or given == wanted:
        return part
    check_columns(given, wanted, view, whole=True)
    return part[wanted]


def _validated_table(X: object, estimator: BaseEstimator, settings: InputSettings, *, reset: bool) -> Matrix:
    """One table for all views as a matrix of numbers; ``reset`` stores its columns in the estimator, else they are compared."""
    date, names = first_date(X), column_names(X)
    if date is not None:
        raise ValueError(date.message(resolve_views(settings.views, date.n_columns, names), names))
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


def _check_equal_rows(names: Sequence[str], matrices: Sequence[Matrix]) -> int:
    """The number of rows, which must be the same in all views."""
    rows = {name: int(matrix.shape[0]) for name, matrix in zip(names, matrices, strict=True)}
    if len(set(rows.values())) > 1:
        raise ValueError(UNEQUAL_ROWS.format(rows))
    return int(matrices[0].shape[0])
