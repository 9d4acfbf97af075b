"""One part of X, all of it or one view, whatever it is: an array or frame in memory, a table in files, a dask collection.

What depends on the kind of a part is here: how to recognize and open it, its columns, and its labels. A part in memory
stays what the user gave until its columns have been chosen, and is then checked and becomes an :class:`ArrayTable`.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from cmvmed.data.labels import SparseLabels
from cmvmed.data.sources.arrays import ArrayTable, PaddedTable, Table
from cmvmed.data.sources.dask import is_dask, labels_in_dask
from cmvmed.data.sources.files import FileTable, file_errors, open_files
from cmvmed.data.sources.zarr_arrays import ZarrTable, is_zarr_folder, open_zarr
from cmvmed.data.validation import column_names
from cmvmed.numerics.types import Array, IntArray, Matrix

TABLES = (ArrayTable, FileTable, PaddedTable, ZarrTable)


def is_external(X: object) -> bool:
    """Whether X, or the X of any view, is not simply in memory."""
    if isinstance(X, Mapping):
        return any(_is_outside_memory(part) for part in X.values())
    if isinstance(X, (list, tuple)):
        return any(_is_outside_memory(part) for part in X)
    return _is_outside_memory(X)


def _is_outside_memory(part: object) -> bool:
    kinds = (str, PathLike, np.memmap)
    return isinstance(part, kinds) or _is_from("zarr", part) or _is_arrow_dataset(part) or is_dask(part)


def _is_from(package: str, part: object) -> bool:
    return type(part).__module__.split(".")[0] == package


def _is_arrow_dataset(part: object) -> bool:
    return _is_from("pyarrow", part) and hasattr(part, "get_fragments")


def open_part(part: object) -> Any:
    """A table if the part is in a file, a Zarr or memory-mapped array; dask collections and parts in memory as they are."""
    return open_table(part) if _is_outside_memory(part) and not is_dask(part) else part


def open_table(part: object) -> Table:
    """The table in a file, folder, pyarrow dataset, Zarr array or memory-mapped array."""
    if isinstance(part, (str, PathLike)):
        return _open_path(Path(part))
    if _is_from("zarr", part):
        return open_zarr(part)
    if _is_arrow_dataset(part):
        return open_files(part)
    return _array_table(np.asanyarray(part), "the memory-mapped array")


def _open_path(path: Path) -> Table:
    if path.suffix.lower() == ".npy":
        with file_errors(str(path)):
            return _array_table(np.load(path, mmap_mode="r", allow_pickle=False), str(path))
    return open_zarr(path) if is_zarr_folder(path) else open_files(path)


def _array_table(array: NDArray[Any], place: str) -> ArrayTable:
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(f"{place} must hold a table of numbers, but has shape {array.shape} and type {array.dtype}.")
    return ArrayTable(array)


def is_table(part: object) -> TypeGuard[Table]:
    """Whether a part has been opened or checked."""
    return isinstance(part, TABLES)


def names_in(part: Any) -> list[str] | None:
    """Names of the columns of a part, None if they have none."""
    return part.column_names if is_table(part) else column_names(part)


def width_of(part: Any) -> int:
    """Number of columns of a table or dask collection."""
    if is_table(part):
        return part.n_columns
    return len(part.columns) if hasattr(part, "columns") else int(part.shape[1])


def select(part: Any, columns: Sequence[str] | None) -> Any:
    """A part with the given columns only, in their order; None, or a part without names, takes it as it is."""
    given = names_in(part)
    if columns is None or given is None:
        return part
    if isinstance(part, (FileTable, ArrayTable)):
        return part.select(columns)
    if is_dask(part):
        _check_dask_columns(part, columns)
    return part if list(columns) == given and not is_dask(part) else part[list(columns)]


def _check_dask_columns(frame: Any, columns: Sequence[str]) -> None:
    """Raise if a dask frame lacks columns, or they hold no numbers."""
    lacking = [name for name in columns if name not in frame.columns]
    if lacking:
        raise ValueError(f"The dask frame has no column {lacking[0]!r}; its columns are {list(frame.columns)}.")
    texts = [name for name in columns if frame[name].dtype.kind not in "biuf"]
    if texts:
        raise ValueError(
            f"Column {texts[0]!r} of the dask frame holds {frame[texts[0]].dtype} values, but features must be numbers."
        )


def labels_in(part: Any, column: str, unlabeled: object) -> SparseLabels | None:
    """The labels in a column of files or of a dask frame; None if the part is in memory, where y is ``part[column]``."""
    if is_dask(part):
        return labels_in_dask(part[column], unlabeled)
    return part.labels(column, unlabeled) if isinstance(part, FileTable) else None


def padded(part: Any, names: Sequence[str], found: IntArray) -> Any:
    """A part that has the columns ``found`` of all ``names``, with NaN in the others."""
    if found.size == len(names):
        return part
    if is_dask(part):
        absent = {name: np.nan for name in names if name not in part.columns}
        return part.assign(**absent)[list(names)]
    return PaddedTable(part, found, len(names))


def missing_view(like: Any, width: int) -> Any:
    """A view of NaN for the rows of another one."""
    if not is_dask(like):
        return ArrayTable(np.broadcast_to(np.nan, (like.n_rows, width)))
    array = like.to_dask_array() if hasattr(like, "to_dask_array") else like.rechunk({1: -1})
    return array.map_blocks(_nan_block, width=width, chunks=(array.chunks[0], (width,)), dtype=np.float64)


def _nan_block(block: Matrix, width: int) -> Array:
    return np.full((block.shape[0], width), np.nan)


def check_files_match(names: Sequence[str], tables: Sequence[Table]) -> None:
    """Raise if files of the same name hold unequal numbers of rows of different views, even if the totals agree."""
    counts: dict[str, tuple[str, int]] = {}
    for view, table in zip(names, tables, strict=True):
        if not isinstance(table, FileTable):
            continue
        for path, count in zip(table.dataset.files, table.counts, strict=True):
            file = Path(path).name
            other, expected = counts.setdefault(file, (view, count))
            if count != expected and len(table.counts) > 1:
                raise ValueError(
                    f"The files {file} hold {expected} rows of view {other!r} and {count} of view {view!r}; the rows of all views "
                    "must be in the same order."
                )
