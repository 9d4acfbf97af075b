"""How estimators read X: which columns are which view, in memory or elsewhere, and whether new rows look like those of fit."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from cmvmed.core.linalg import BoolArray, Matrix
from cmvmed.data.inputs import OpenInput, all_rows, open_new_X, open_training_X
from cmvmed.data.labels import read_labeled_rows
from cmvmed.data.layout import (
    ViewLayout,
    absent_rows,
    collection_items,
    first_text,
    is_view_collection,
    layout_of_widths,
    per_view,
    resolve_views,
)
from cmvmed.data.sources import DaskRows, LocalRows
from cmvmed.data.sources.base import RowCheck
from cmvmed.data.sources.opening import is_dask, is_external
from cmvmed.data.validation import as_table, column_names
from cmvmed.data.view_data import ViewPredictor
from cmvmed.scale.memory import read_memory_limit


@dataclass(frozen=True)
class InputSchema:
    """The columns that ``fit`` saw in X, and which view each belongs to."""

    layout: ViewLayout
    names: list[str] | None  # of all columns, None unless all have one
    of_tables: list[list[str] | None] | None = None  # if X was one table per view, the column names of its frames

    @property
    def view_names(self) -> tuple[str, ...]:
        """Names of the views."""
        return self.layout.names

    @property
    def in_messages(self) -> tuple[list[str] | None, ...]:
        """Per view, the names of its columns if all columns of X have names."""
        names = self.names
        return tuple(None if names is None else [names[c] for c in columns] for columns in self.layout.columns)

    @property
    def by_view(self) -> list[list[str] | None]:
        """Per view, the names of its columns, None where they have none."""
        return list(self.in_messages) if self.of_tables is None else self.of_tables

    @property
    def attributes(self) -> dict[str, Any]:
        """What an estimator fitted to this X remembers of it, by attribute name."""
        names = None if self.names is None else np.asarray(self.names, dtype=object)
        return {"n_features_in_": sum(self.layout.widths), "feature_names_in_": names, "_columns": self}


class ViewReader(BaseEstimator):
    """Reads X as views, and y where it belongs to X. Reading changes nothing: only :meth:`_set_fitted_attributes` does."""

    views: Any
    kernel: Any
    missing: str
    unlabeled: Any
    n_features_in_: int
    feature_names_in_: Any
    _columns: InputSchema
    _predictors: tuple[ViewPredictor, ...]

    def _set_fitted_attributes(self, fitted: dict[str, Any]) -> None:
        """Take over all that a fit has learned, at its very end: a fit that fails before leaves an earlier model as it was."""
        for name, value in fitted.items():
            setattr(self, name, value)
        if self.feature_names_in_ is None:  # scikit-learn asks whether the attribute is there
            del self.feature_names_in_

    def _read_training_parts(self, X: Any, y: Any) -> tuple[InputSchema, list[Matrix], Any]:
        """The columns of X, the views' matrices in memory and the labels of their rows."""
        if not is_external(X):
            return *self._read_columns(X), y.compute() if is_dask(y) else y
        columns, opened = self._open_training(X, y)
        return columns, all_rows(self._rows(opened, columns), self._memory_limit()), self._labels_of(opened, y)

    def _labels_of(self, opened: OpenInput, y: Any) -> Any:
        """``y`` itself, or the labels that it names in X or that a dask collection holds."""
        if not is_dask(y) and not isinstance(y, str):
            return y
        rows, labels, n_rows = opened.labels(y, self.unlabeled)
        return read_labeled_rows(rows, labels, n_rows, self.unlabeled)

    def _open_training(self, X: Any, y: Any) -> tuple[InputSchema, OpenInput]:
        """Open an X that lies elsewhere."""
        opened = open_training_X(X, y if isinstance(y, str) else None)
        if opened.names is not None:
            return self._columns_of_tables(opened.names, opened.widths, opened.columns), opened
        names = opened.columns[0]
        return InputSchema(resolve_views(self.views, opened.widths[0], names), names), opened

    def _open_new(self, X: Any) -> OpenInput:
        """The same for new rows, which must have the layout of ``fit``."""
        opened = open_new_X(X, self._columns.view_names, self._columns.names, self._columns.by_view)
        if opened.names is not None:
            self._check_widths(opened.widths)
        elif opened.widths[0] != self.n_features_in_:
            raise ValueError(
                f"X has {opened.widths[0]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input."
            )
        return opened

    def _rows(self, opened: OpenInput, columns: InputSchema) -> LocalRows | DaskRows:
        """The rows of an opened X, in chunks that respect the memory limit."""
        n_jobs = getattr(self, "n_jobs", None)
        return opened.rows(columns.layout, self._memory_limit(), None if n_jobs is None else effective_n_jobs(n_jobs))

    def _memory_limit(self) -> int:
        return read_memory_limit(getattr(self, "memory_limit", None))

    def _present_in_training(self, columns: InputSchema, matrices: list[Matrix]) -> list[BoolArray]:
        """Per view, which training rows have it; in a given kernel, the columns of rows without the view do not matter."""
        kernels = per_view(self.kernel, columns.view_names, "kernel")
        unused = [
            absent_rows(m) if isinstance(kernel, str) and kernel == "precomputed" and m.shape[0] == m.shape[1] else None
            for kernel, m in zip(kernels, matrices, strict=True)
        ]
        return self._row_check(columns, unused).present(0, matrices)

    def _row_check(self, columns: InputSchema, unused: Sequence[BoolArray | None]) -> RowCheck:
        """The check of rows; ``unused`` marks, per view, columns whose values do not matter."""
        return RowCheck(columns.view_names, self.missing, columns.in_messages, tuple(unused))

    def _read_views(self, X: Any) -> tuple[list[Matrix], list[BoolArray]]:
        """Validated matrices of new rows and which rows have them; the rows must have the layout of ``fit``."""
        check_is_fitted(self)
        if is_external(X):
            matrices = all_rows(self._rows(self._open_new(X), self._columns), self._memory_limit())
        else:
            matrices = self._read_new(X)
        unused = [predictor.unused_columns(m.shape[1]) for predictor, m in zip(self._predictors, matrices, strict=True)]
        return matrices, self._row_check(self._columns, unused).present(0, matrices)

    def _read_columns(self, X: Any) -> tuple[InputSchema, list[Matrix]]:
        """The columns of a training X in memory and the matrices of its views."""
        if is_view_collection(X):
            views, parts, matrices = _tables_in(X)
            widths = [matrix.shape[1] for matrix in matrices]
            return self._columns_of_tables(views, widths, [column_names(part) for part in parts]), matrices
        seen = copy(self)  # scikit-learn notes what it sees of X in the estimator that it is given
        table = _validated(seen, X, self.views, reset=True)
        feature_names = getattr(seen, "feature_names_in_", None)
        names = None if feature_names is None else [str(name) for name in feature_names]
        layout = resolve_views(self.views, table.shape[1], names)
        return InputSchema(layout, names), layout.split(table)

    def _read_new(self, X: Any) -> list[Matrix]:
        """The matrices of the views of new rows in memory, which must have the columns of ``fit``."""
        if not is_view_collection(X):
            return self._columns.layout.split(_validated(self, X, self.views, reset=False))
        names, parts, matrices = _tables_in(X)
        if isinstance(X, Mapping):
            parts = self._in_layout_order(dict(zip(names, parts, strict=True)))
            matrices = self._in_layout_order(dict(zip(names, matrices, strict=True)))
        self._check_widths([matrix.shape[1] for matrix in matrices])
        self._check_columns(parts)
        return matrices

    def _columns_of_tables(
        self, names: Sequence[str], widths: Sequence[int], columns: list[list[str] | None]
    ) -> InputSchema:
        """The columns of one table per view, which may have names."""
        if self.views is not None:
            raise ValueError(
                "views= describes the columns of one X, but X is a list or dict with one array per view; leave views=None."
            )
        of_all = None if None in columns else [name for part in columns for name in part or ()]
        return InputSchema(layout_of_widths(names, widths), of_all, columns)

    def _check_columns(self, parts: list[Any]) -> None:
        """Compare the column names of frames with those of fit."""
        for view, expected, part in zip(self._columns.view_names, self._columns.by_view, parts, strict=True):
            given = column_names(part)
            if given is not None and expected is not None and given != expected:
                raise ValueError(
                    f"View {view!r} has the columns {given[:6]}, but fit saw {expected[:6]}; pass the same columns in the same "
                    "order."
                )

    def _in_layout_order(self, by_name: dict[str, Any]) -> list[Any]:
        expected = self._columns.view_names
        if set(by_name) != set(expected):
            raise ValueError(f"X has the views {sorted(by_name)} but fit saw {sorted(expected)}; pass the same views.")
        return [by_name[name] for name in expected]

    def _check_widths(self, widths: Sequence[int]) -> None:
        names = self._columns.view_names
        if len(widths) != len(names):
            raise ValueError(f"X has {len(widths)} views but fit saw {len(names)}: {list(names)}.")
        for name, expected, width in zip(names, self._columns.layout.widths, widths, strict=True):
            if width != expected:
                raise ValueError(f"View {name!r} has {width} features, but fit saw {expected}; pass the same columns.")


def _tables_in(X: Any) -> tuple[list[str], list[Any], list[Matrix]]:
    """Per view its name, its table as it was given, and the same as a matrix."""
    items = collection_items(X)
    names, parts = [name for name, _ in items], [part for _, part in items]
    matrices = [as_table(name, part) for name, part in items]
    rows = [matrix.shape[0] for matrix in matrices]
    if len(set(rows)) > 1:
        raise ValueError(
            f"The views have unequal numbers of rows: {dict(zip(names, rows, strict=True))}; align them first."
        )
    return names, parts, matrices


def _validated(estimator: BaseEstimator, X: Any, views: Any, *, reset: bool) -> Matrix:
    """One table for all views as a matrix of numbers; ``reset`` notes its columns in the estimator, else they are compared."""
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
        raise ValueError(cell.message(resolve_views(views, cell.n_columns, names), names)) from error
