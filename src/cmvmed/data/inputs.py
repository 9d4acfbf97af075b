"""X and y that are not simply in memory: open them where they lie."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed.core.linalg import IntArray, Matrix
from cmvmed.data.layout import ViewLayout, collection_items
from cmvmed.data.sources import ArrayTable, DaskRows, LocalRows, RowSource, Table, dask_rows
from cmvmed.data.sources.base import FLOAT_BYTES
from cmvmed.data.sources.files import FileTable
from cmvmed.data.sources.opening import (
    check_files_match,
    is_dask,
    is_external,
    labels_in_column,
    labels_in_dask,
    open_table,
)
from cmvmed.data.validation import as_table, column_names
from cmvmed.scale.memory import format_bytes

SHARE_OF_CHUNKS = 2  # reading and chunks in work take at most this part of the memory limit
BYTES_OF_A_ROW = 32  # its class, weights and scores, which are kept


@dataclass(frozen=True)
class OpenInput:
    """X opened where it lies: one part per view, or a single part without a name whose columns ``views=`` assigns to the views."""

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
        return [_shape(part)[1] for part in self.parts]

    @property
    def in_dask(self) -> bool:
        """Whether the rows are in dask collections."""
        return is_dask(self.parts[0])

    def rows(self, layout: ViewLayout, memory_limit: int, n_threads: int | None = None) -> LocalRows | DaskRows:
        """The source of the rows of all views."""
        split, chunks = layout if self.names is None else None, memory_limit // SHARE_OF_CHUNKS
        if self.in_dask:
            origin = self.with_labels if self.with_labels is not None else self.parts[0]
            return dask_rows(self.parts, split, chunks, origin)
        source = LocalRows(self.parts, split, chunks, n_threads)
        source.limit_of_chunks()  # refuses before anything is read
        return source

    def dask_arrays(self) -> list[Any]:
        """The parts as dask arrays, of frames with blocks of unknown length."""
        return [part.to_dask_array() if hasattr(part, "to_dask_array") else part for part in self.parts]

    def labels(self, y: Any, unlabeled: Any) -> tuple[IntArray, Any, int]:
        """Numbers and labels of the labeled rows and the number of rows, from a column of X or a dask collection."""
        if is_dask(y):
            return labels_in_dask(y, unlabeled)
        if is_dask(self.with_labels):
            return labels_in_dask(self.with_labels[self.label_column], unlabeled)
        return labels_in_column(self.with_labels, y, unlabeled)


def open_training_X(X: Any, label_column: str | None) -> OpenInput:
    """Open X for a fit; a column of labels is set apart from the features."""
    names, parts = _opened(X)
    with_labels = None if label_column is None else _part_with(label_column, parts)
    features = [
        None if columns is None else [name for name in columns if name != label_column]
        for columns in map(_names_in, parts)
    ]
    chosen = tuple(_selected(part, columns) for part, columns in zip(parts, features, strict=True))
    _check_rows(names, chosen)
    return OpenInput(names, chosen, with_labels, label_column)


def open_new_X(X: Any, views: Sequence[str], of_table: list[str] | None, by_view: list[list[str] | None]) -> OpenInput:
    """Open X for predictions, with the columns that fit saw, found by name where they have names.

    Parameters
    ----------
    views : names of the views
    of_table, by_view : names of the columns in fit, in the order of one table for all views, and of each view
    """
    names, parts = _opened(X)
    expected = [of_table] if names is None else by_view
    if isinstance(X, Mapping):
        assert names is not None
        if set(names) != set(views):
            raise ValueError(f"X has the views {sorted(names)} but fit saw {sorted(views)}; pass the same views.")
        parts = [parts[names.index(view)] for view in views]
        names = tuple(views)
    if len(parts) != len(expected):
        raise ValueError(f"X has {len(parts)} views but fit saw {len(expected)}: {list(views)}.")
    wanted = [seen if _names_in(part) is not None else None for part, seen in zip(parts, expected, strict=True)]
    chosen = tuple(_selected(part, columns) for part, columns in zip(parts, wanted, strict=True))
    _check_rows(names, chosen)
    return OpenInput(names, chosen)


def all_rows(source: RowSource, memory_limit: int) -> list[Matrix]:
    """The rows of all views in memory, or an error if they do not fit."""
    needed = rows_in_memory(source)
    if needed > memory_limit:
        raise MemoryError(
            f"X has {source.n_rows} rows of {sum(source.widths)} numbers, {format_bytes(needed)}. All of them are needed at once, but "
            f"only {format_bytes(memory_limit)} of memory may be used: take fewer rows, or raise memory_limit if there is more memory."
        )
    return source.take(np.arange(source.n_rows))


def memory_after_rows(memory_limit: int, n_rows: int) -> int:
    """Bytes that are left beside what is kept of each row, or an error if nothing is."""
    kept = BYTES_OF_A_ROW * n_rows
    if kept >= memory_limit:
        raise MemoryError(
            f"The classes, weights and scores of {n_rows} rows take {format_bytes(kept)}, but only {format_bytes(memory_limit)} of memory "
            "may be used. Take fewer rows, or raise memory_limit if there is more memory."
        )
    return memory_limit - kept


def rows_in_memory(source: RowSource) -> int:
    """Bytes that all rows of all views need."""
    return FLOAT_BYTES * source.n_rows * sum(source.widths)


def _opened(X: Any) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Names of the views, None for a single table, and the tables, or dask collections as they are."""
    if not isinstance(X, (Mapping, list, tuple)):
        return None, [X if is_dask(X) else open_table(X)]
    items = collection_items(X)
    local = [name for name, part in items if not is_dask(part)]
    if local and len(local) < len(items):
        raise ValueError(
            f"View {local[0]!r} is no dask collection, but others are; make all views dask collections, or none."
        )
    return tuple(name for name, _ in items), [_table(name, part) if local else part for name, part in items]


def _table(name: str, part: Any) -> Table:
    if not is_external(part):
        return ArrayTable(as_table(name, part), column_names(part))
    try:
        return open_table(part)
    except ValueError as error:
        raise ValueError(f"View {name!r}: {error}") from error


def _names_in(part: Any) -> list[str] | None:
    return column_names(part) if is_dask(part) else part.column_names


def _shape(part: Any) -> tuple[int, int]:
    """Rows and columns; the rows of a dask collection count as 0 here, as they may be unknown."""
    return (
        (0, len(part.columns) if hasattr(part, "columns") else int(part.shape[1]))
        if is_dask(part)
        else (part.n_rows, part.n_columns)
    )


def _part_with(label_column: str, parts: Sequence[Any]) -> Any:
    """The one part that has the column of labels."""
    owners = [part for part in parts if label_column in (_names_in(part) or ())]
    if len(owners) != 1:
        names = [name for part in parts for name in _names_in(part) or ()]
        what = "is in more than one table of X" if owners else f"is no column of X, whose columns are {names}"
        raise ValueError(
            f"y={label_column!r} {what}; y must be the name of one column with the classes, or hold the classes."
        )
    return owners[0]


def _selected(part: Any, columns: list[str] | None) -> Any:
    """A part with the given columns only; None takes it as it is."""
    if columns is None:
        return part
    if isinstance(part, FileTable):
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
        raise ValueError(f"The views have unequal numbers of rows: {counts}; align them first.")
    if parts[0].n_rows == 0:
        raise ValueError("X has 0 rows; at least one is needed.")
    check_files_match(names, parts)
