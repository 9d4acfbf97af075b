"""How estimators read X: which columns are which view, in memory or elsewhere, and whether new rows look like those of fit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from cmvmed.estimators.streaming import OpenedX, all_rows, open_new_X, open_training_X
from cmvmed.estimators.tables import as_table, column_names
from cmvmed.labels import read_labelled_rows
from cmvmed.linalg import BoolArray, Matrix
from cmvmed.machines import Machine
from cmvmed.sources import DaskRows, LocalRows
from cmvmed.sources.memory import read_memory_limit
from cmvmed.sources.opening import is_dask, lies_elsewhere
from cmvmed.sources.rows import RowCheck
from cmvmed.views import (
    ViewLayout,
    absent_rows,
    collection_items,
    is_view_collection,
    layout_of_widths,
    per_view,
    resolve_views,
)


class ViewReader(BaseEstimator):
    """Reads X as views, and y where it belongs to X."""

    views: Any
    kernel: Any
    missing: str
    unlabeled: Any
    feature_names_in_: Any
    _layout: ViewLayout
    _view_columns: list[list[str] | None] | None  # if fit saw one table per view, the column names of its frames
    _machines: tuple[Machine, ...]

    def _read_training_parts(self, X: Any, y: Any) -> tuple[list[Matrix], Any]:
        """The views' matrices in memory and the labels of their rows; sets the layout and feature attributes."""
        if not lies_elsewhere(X):
            return self._split(X, reset=True), y.compute() if is_dask(y) else y
        opened = self._open_training(X, y)
        return all_rows(self._rows(opened), self._memory_limit()), self._labels_of(opened, y)

    def _labels_of(self, opened: OpenedX, y: Any) -> Any:
        """``y`` itself, or the labels that it names in X or that a dask collection holds."""
        if not is_dask(y) and not isinstance(y, str):
            return y
        rows, labels, n_rows = opened.labels(y, self.unlabeled)
        return read_labelled_rows(rows, labels, n_rows, self.unlabeled)

    def _open_training(self, X: Any, y: Any) -> OpenedX:
        """Open an X that lies elsewhere; sets the layout and feature attributes."""
        opened = open_training_X(X, y if isinstance(y, str) else None)
        if opened.names is not None:
            self._set_collection_layout(opened.names, opened.widths, opened.columns)
            return opened
        self.n_features_in_ = opened.widths[0]
        self._set_feature_names(opened.columns[0])
        self._layout = resolve_views(self.views, self.n_features_in_, opened.columns[0])
        self._view_columns = None
        return opened

    def _open_new(self, X: Any) -> OpenedX:
        """The same for new rows, which must have the layout of ``fit``."""
        opened = open_new_X(X, self._layout.names, self._feature_names(), self._expected_columns())
        if opened.names is not None:
            self._check_widths(opened.widths)
        elif opened.widths[0] != self.n_features_in_:
            raise ValueError(
                f"X has {opened.widths[0]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input."
            )
        return opened

    def _rows(self, opened: OpenedX) -> LocalRows | DaskRows:
        """The rows of an opened X, in chunks that respect the memory limit."""
        n_jobs = getattr(self, "n_jobs", None)
        return opened.rows(self._layout, self._memory_limit(), None if n_jobs is None else effective_n_jobs(n_jobs))

    def _memory_limit(self) -> int:
        return read_memory_limit(getattr(self, "memory_limit", None))

    def _unused_in_training(self, matrices: list[Matrix]) -> list[BoolArray | None]:
        """Per view, the columns of a given kernel that belong to rows without the view."""
        kernels = per_view(self.kernel, self._layout.names, "kernel")
        return [
            absent_rows(m) if isinstance(kernel, str) and kernel == "precomputed" and m.shape[0] == m.shape[1] else None
            for kernel, m in zip(kernels, matrices, strict=True)
        ]

    def _read_views(self, X: Any) -> tuple[list[Matrix], list[BoolArray]]:
        """Validated matrices of new rows and which rows have them; the rows must have the layout of ``fit``."""
        check_is_fitted(self)
        if lies_elsewhere(X):
            matrices = all_rows(self._rows(self._open_new(X)), self._memory_limit())
        else:
            matrices = self._split(X, reset=False)
        unused = [machine.unused_columns(m.shape[1]) for machine, m in zip(self._machines, matrices, strict=True)]
        return matrices, self._present(matrices, unused)

    def _split(self, X: Any, *, reset: bool) -> list[Matrix]:
        """The matrices of the views of an X in memory."""
        return self._split_collection(X, reset=reset) if is_view_collection(X) else self._split_columns(X, reset=reset)

    def _split_columns(self, X: Any, *, reset: bool) -> list[Matrix]:
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1
        )
        if reset:
            self._layout = resolve_views(self.views, X.shape[1], self._feature_names())
            self._view_columns = None
        return self._layout.split(X)

    def _split_collection(self, X: Any, *, reset: bool) -> list[Matrix]:
        items = collection_items(X)
        matrices = [as_table(name, part) for name, part in items]
        names = [name for name, _ in items]
        rows = [matrix.shape[0] for matrix in matrices]
        if len(set(rows)) > 1:
            raise ValueError(
                f"The views have unequal numbers of rows: {dict(zip(names, rows, strict=True))}; align them first."
            )
        if reset:
            widths = [matrix.shape[1] for matrix in matrices]
            self._set_collection_layout(names, widths, [column_names(part) for _, part in items])
            return matrices
        parts = [part for _, part in items]
        if isinstance(X, Mapping):
            parts = self._in_layout_order(dict(items))
            matrices = self._in_layout_order(dict(zip(names, matrices, strict=True)))
        self._check_widths([matrix.shape[1] for matrix in matrices])
        self._check_columns(parts)
        return matrices

    def _set_collection_layout(
        self, names: Sequence[str], widths: Sequence[int], columns: list[list[str] | None]
    ) -> None:
        """The layout of one table per view, whose columns may have names."""
        if self.views is not None:
            raise ValueError(
                "views= describes the columns of one X, but X is a list or dict with one array per view; leave views=None."
            )
        self._layout = layout_of_widths(names, widths)
        self.n_features_in_ = sum(widths)
        self._view_columns = columns
        self._set_feature_names(None if None in columns else [name for part in columns for name in part or ()])

    def _set_feature_names(self, names: list[str] | None) -> None:
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _check_columns(self, parts: list[Any]) -> None:
        """Compare the column names of frames with those of fit."""
        for view, expected, part in zip(self._layout.names, self._expected_columns(), parts, strict=True):
            given = column_names(part)
            if given is not None and expected is not None and given != expected:
                raise ValueError(
                    f"View {view!r} has the columns {given[:6]}, but fit saw {expected[:6]}; pass the same columns in the same "
                    "order."
                )

    def _expected_columns(self) -> list[list[str] | None]:
        """Per view, the column names that fit saw, None where it saw none."""
        if self._view_columns is not None:
            return self._view_columns
        return list(self._columns_in_messages())

    def _in_layout_order(self, by_name: dict[str, Any]) -> list[Any]:
        expected = self._layout.names
        if set(by_name) != set(expected):
            raise ValueError(f"X has the views {sorted(by_name)} but fit saw {sorted(expected)}; pass the same views.")
        return [by_name[name] for name in expected]

    def _check_widths(self, widths: Sequence[int]) -> None:
        names = self._layout.names
        if len(widths) != len(names):
            raise ValueError(f"X has {len(widths)} views but fit saw {len(names)}: {list(names)}.")
        for name, expected, width in zip(names, self._layout.widths, widths, strict=True):
            if width != expected:
                raise ValueError(f"View {name!r} has {width} features, but fit saw {expected}; pass the same columns.")

    def _present(self, matrices: list[Matrix], unused: Sequence[BoolArray | None]) -> list[BoolArray]:
        check = RowCheck(self._layout.names, self.missing, self._columns_in_messages(), tuple(unused))
        return check.present(0, matrices)

    def _columns_in_messages(self) -> tuple[list[str] | None, ...]:
        """Per view, the names of its columns if all columns of X have names."""
        names = self._feature_names()
        return tuple(None if names is None else [names[c] for c in columns] for columns in self._layout.columns)

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]
