"""X and y of a fit or a prediction, opened by one path whatever they are: arrays, data frames, files or dask collections.

:func:`open_training` gives the columns of X, the source of its rows and the labels; :func:`open_new` gives new rows with
the columns of the training X. Arrays and frames become a source in memory.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from cmvmed.core.types import Matrix
from cmvmed.data.external import OpenInput, Rows, open_external_new, open_external_training
from cmvmed.data.labels import Labels, read_labeled_rows, read_labels
from cmvmed.data.layout import collection_items, is_view_collection, resolve_views
from cmvmed.data.schema import (
    UNEQUAL_ROWS,
    InputSchema,
    InputSettings,
    check_widths,
    order_of_views,
    schema_of_tables,
)
from cmvmed.data.sources import memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, format_bytes
from cmvmed.data.sources.opening import is_dask, is_external
from cmvmed.data.validation import as_table, column_names, first_text


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
        schema, opened = open_external_training(X, y, settings)
        source, matrices = opened.rows(schema.layout, settings), None
        if isinstance(y, str) or is_dask(y):
            y = read_labeled_rows(*opened.labels(y, settings.unlabeled), settings.unlabeled)
    else:
        schema, matrices = _read_training_arrays(X, settings)
        source = memory_rows(matrices, n_threads=settings.n_threads)
        y = y.compute() if is_dask(y) else y
    return TrainingInput(schema, source, _read_labels(y, source.n_rows, settings), matrices)


def open_new(X: object, schema: InputSchema, settings: InputSettings) -> list[Matrix] | OpenInput:
    """Open X for predictions, which must have the columns of the training X: matrices if it is in memory."""
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


def _read_training_arrays(X: object, settings: InputSettings) -> tuple[InputSchema, list[Matrix]]:
    """The columns of a training X in memory and the matrices of its views."""
    if is_view_collection(X):
        view_names, parts, matrices = _tables_in(X)
        widths = [matrix.shape[1] for matrix in matrices]
        return schema_of_tables(view_names, widths, [column_names(part) for part in parts], settings), matrices
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
        order = order_of_views(names, schema)
        parts, matrices = [parts[i] for i in order], [matrices[i] for i in order]
    check_widths([matrix.shape[1] for matrix in matrices], schema)
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
