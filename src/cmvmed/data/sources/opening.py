"""From what the user gives as X to tables: paths, memory-mapped files, pyarrow datasets, Zarr arrays, dask collections."""

import sys
from collections.abc import Iterator, Mapping, Sequence, Sized
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from cmvmed.data.labels import labeled_part
from cmvmed.data.sources.arrays import ArrayTable, Table
from cmvmed.data.sources.dask import import_dask, single_threaded_blas
from cmvmed.data.sources.files import FileTable, file_errors, open_files
from cmvmed.data.sources.zarr_arrays import is_zarr_folder, open_zarr
from cmvmed.numerics.types import IntArray


class DaskCollection(Protocol):
    """A dask series or array."""

    def to_delayed(self) -> NDArray[Any]:
        """Its blocks."""


def is_external(X: object) -> bool:
    """Whether X, or the X of any view, is not simply in memory."""
    if isinstance(X, Mapping):
        return any(_is_outside_memory(part) for part in X.values())
    if isinstance(X, (list, tuple)):
        return any(_is_outside_memory(part) for part in X)
    return _is_outside_memory(X)


def is_dask(part: object) -> TypeGuard[Any]:
    """Whether something is a dask collection, without importing dask."""
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(part))


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


def _is_outside_memory(part: object) -> bool:
    kinds = (str, PathLike, np.memmap)
    return isinstance(part, kinds) or _is_from("zarr", part) or _is_arrow_dataset(part) or is_dask(part)


def _is_from(package: str, part: object) -> bool:
    return type(part).__module__.split(".")[0] == package


def _is_arrow_dataset(part: object) -> bool:
    return _is_from("pyarrow", part) and hasattr(part, "get_fragments")


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


def labels_in_column(table: FileTable, column: str, unlabeled: object) -> tuple[IntArray, Any, int]:
    """Numbers and labels of the labeled rows, and the number of rows, from a column of files."""
    rows, labels, n_rows = _joined(_labeled(part, unlabeled) for part in table.label_values(column))
    return rows, _from_text(labels) if table.is_text else labels, n_rows


def labels_in_dask(collection: DaskCollection, unlabeled: object) -> tuple[IntArray, Any, int]:
    """Numbers and labels of the labeled rows, and the number of rows, from a dask series or array."""
    dask = import_dask()
    tasks = [dask.delayed(_labeled)(part, unlabeled) for part in np.ravel(collection.to_delayed())]
    with single_threaded_blas():
        return _joined(iter(dask.compute(*tasks)))


def _labeled(part: Sized, unlabeled: object) -> tuple[IntArray, list[Any], int]:
    """Numbers and labels of the labeled rows of a part, and its number of rows."""
    if len(part) == 0:
        return np.empty(0, dtype=np.intp), [], 0
    rows, labels = labeled_part(part, unlabeled)
    return rows, labels.tolist(), len(part)


def _joined(parts: Iterator[tuple[IntArray, list[Any], int]]) -> tuple[IntArray, Any, int]:
    rows, labels, n_rows = [np.empty(0, dtype=np.intp)], [], 0
    for part_rows, part_labels, n_part in parts:
        rows.append(part_rows + n_rows)
        labels += part_labels
        n_rows += n_part
    return np.concatenate(rows), np.array(labels, dtype=object), n_rows


def _from_text(labels: NDArray[Any]) -> Any:
    """Labels of a CSV file as the numbers they spell, if all of them do."""
    for kind in (int, float):
        try:
            return np.array([kind(label) for label in labels], dtype=object)
        except ValueError:
            continue
    return labels
