"""Tables in Zarr arrays, read by their own chunks. After each pass, the files must look as they did when they were opened."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from cmvmed._optional import import_optional
from cmvmed.data.sources.base import FLOAT_BYTES, as_numbers
from cmvmed.data.sources.files import READING, FileStamps, file_errors, rebatch
from cmvmed.numerics.types import Array, IntArray, Matrix


@dataclass(frozen=True)
class ZarrTable:
    """A two-dimensional Zarr array, read by its own chunks."""

    array: Any
    stamps: FileStamps = field(default_factory=FileStamps)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.array.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes in memory."""
        return self.n_columns

    @property
    def column_names(self) -> None:
        """Columns of an array have no names."""
        return

    @property
    def reading_bytes(self) -> int:
        """Memory that reading takes, beside the blocks: a chunk as it is stored and as numbers."""
        return int(2 * FLOAT_BYTES * min(self.array.chunks[0], self.n_rows) * self.n_columns)

    def blocks(self, size: int) -> Iterator[Matrix]:
        """The rows in blocks of ``size``."""
        yield from rebatch(self._stored(), size, self.n_rows, _name(self.array))
        self.stamps.check()

    def take(self, rows: IntArray) -> Matrix:
        """The rows of the given ascending numbers; chunks that hold none of them are not read."""
        taken = [np.empty((0, self.n_columns))]
        for start in range(0, self.n_rows, self.array.chunks[0]):
            stop = start + self.array.chunks[0]
            first, last = np.searchsorted(rows, [start, stop])
            if last > first:
                taken.append(self._rows(start, stop)[rows[first:last] - start])
        self.stamps.check()
        return np.concatenate(taken)

    def _stored(self) -> Iterator[Array]:
        step = self.array.chunks[0]
        return (self._rows(start, start + step) for start in range(0, self.n_rows, step))

    def _rows(self, start: int, stop: int) -> Array:
        with file_errors(_name(self.array)):
            stored = self.array[start:stop]
        return np.asarray(as_numbers(stored))


def open_zarr(place: Any) -> ZarrTable:
    """The table in a Zarr array, or in the folder of one."""
    stamps = FileStamps()
    if isinstance(place, (str, PathLike)):
        zarr = import_optional("zarr", "files", READING)
        with file_errors(fspath(place)):
            stamps, place = FileStamps.below(place), zarr.open_array(fspath(place), mode="r")
    if len(place.shape) != 2:
        raise ValueError(
            f"A Zarr array must have rows and columns, but {_name(place)} has the shape {tuple(place.shape)}."
        )
    _check_chunks(place)
    return ZarrTable(place, stamps)


def _name(array: Any) -> str:
    """Where a Zarr array is stored."""
    return str(array.store_path).removeprefix("file://")


def _check_chunks(array: Any) -> None:
    """Raise if chunks are not stored: Zarr reads them as the fill value, whether they were lost or never written."""
    n_stored, n_chunks = int(array.nchunks_initialized), int(array.nchunks)
    if n_stored < n_chunks:
        raise ValueError(
            f"{n_chunks - n_stored} of the {n_chunks} chunks of the Zarr array {_name(array)} are not stored and would be read "
            f"as {array.fill_value}. If they were lost, restore them; if they hold nothing else, write the array again under "
            "zarr.config.set({'array.write_empty_chunks': True})."
        )


def is_zarr_folder(path: Path) -> bool:
    """Whether a folder holds a Zarr array or group."""
    return path.is_dir() and any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))
