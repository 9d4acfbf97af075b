"""X outside of memory: files, memory-mapped and Zarr arrays, pyarrow datasets, dask collections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cmvmed.data.layout import ViewLayout, abbreviate, collection_items, resolve_views
from cmvmed.data.schema import (
    UNEQUAL_ROWS,
    InputSchema,
    InputSettings,
    check_columns,
    parts_by_view,
    schema_of_tables,
    views_in,
)
from cmvmed.data.sources import ArrayApiRows, ArrayTable, DaskRows, LocalRows, PaddedTable, Table, dask_rows
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
from cmvmed.numerics.types import Array, Matrix

CHUNK_MEMORY = 2  # reading and the chunks in work take at most this part of the memory limit

Rows: TypeAlias = LocalRows | DaskRows | ArrayApiRows


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


def open_external_training(X: object, y: object, settings: InputSettings) -> tuple[InputSchema, OpenInput]:
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
        return schema_of_tables(names, opened.widths, opened.columns, settings), opened
    columns = opened.columns[0]
    return InputSchema(resolve_views(settings.views, opened.widths[0], columns), columns), opened


def open_label_column(X: object, column: str) -> OpenInput:
    """X with the part that has the column of labels."""
    names, parts = _open_parts(X)
    return OpenInput(names, tuple(parts), _part_with(column, parts), column)


def open_external_new(X: object, schema: InputSchema) -> OpenInput:
    """The parts of new rows, with the columns of the training X, found by name where they have names.

    Views that are missing in all rows, with all their columns or as None, become columns of NaN.
    """
    if not isinstance(X, (Mapping, list, tuple)):
        return OpenInput(None, (_new_table(_open_parts(X)[1][0], schema),))
    given = dict(zip(schema.view_names, parts_by_view(X, schema), strict=True))
    names, parts = _open_parts({view: part for view, part in given.items() if part is not None})
    opened = dict(zip(names or (), parts, strict=True))
    selected = {
        view: _new_view(opened[view], view, columns)
        for view, columns in zip(schema.view_names, schema.known_columns, strict=True)
        if view in opened
    }
    _check_rows(tuple(selected), tuple(selected.values()))
    like = next(iter(selected.values()))
    widths = zip(schema.view_names, schema.layout.widths, strict=True)
    return OpenInput(
        schema.view_names,
        tuple(selected[view] if view in selected else _missing(like, width) for view, width in widths),
    )


def _new_view(part: Any, view: str, wanted: list[str] | None) -> Any:
    """The table of one view, with the columns of the training X if both have names."""
    given = _names_in(part)
    if given is None or wanted is None:
        return part
    check_columns(given, wanted, view, whole=True)
    return _select(part, wanted)


def _new_table(part: Any, schema: InputSchema) -> Any:
    """One table for all views, with the columns of the training X if both have names; NaN in the columns of missing views."""
    given = _names_in(part)
    if given is None or not schema.can_match:
        return part
    columns = zip(views_in(given, schema), schema.layout.columns, strict=True)
    found = np.sort(np.concatenate([index for present, index in columns if present]))
    selected = _select(part, [(schema.names or [])[c] for c in found])
    if found.size == schema.n_features:
        return selected
    if is_dask(selected):
        absent = {name: np.nan for name in schema.names or () if name not in given}
        return selected.assign(**absent)[schema.names]
    return PaddedTable(selected, found, schema.n_features)


def _missing(like: Any, width: int) -> Any:
    """A view of NaN for the rows of another one."""
    if not is_dask(like):
        return ArrayTable(np.broadcast_to(np.nan, (like.n_rows, width)))
    array = like.to_dask_array() if hasattr(like, "to_dask_array") else like.rechunk({1: -1})
    return array.map_blocks(_nan_block, width=width, chunks=(array.chunks[0], (width,)), dtype=np.float64)


def _nan_block(block: Matrix, width: int) -> Array:
    return np.full((block.shape[0], width), np.nan)


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
        raise ValueError(wrong_label_column(label_column, [n for part in parts for n in _names_in(part) or ()], owners))
    if not (is_dask(owners[0]) or isinstance(owners[0], FileTable)):
        raise ValueError(
            f"y={label_column!r} is a column of a table in memory, beside views in files; pass that column itself as y and "
            "leave it out of X."
        )
    return owners[0]


def wrong_label_column(label_column: str, columns: Sequence[str], owners: Sequence[Any]) -> str:
    """What is wrong with y as the name of a column."""
    what = f"is no column of X, whose columns are {abbreviate(columns) if columns else 'not named'}"
    if owners:
        what = "is in more than one table of X"
    return f"y={label_column!r} {what}; y must be the name of one column with the classes, or hold the classes."


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
