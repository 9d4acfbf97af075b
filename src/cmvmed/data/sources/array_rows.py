"""Rows in arrays of another library: sums over them are computed where they are, and only the sums are moved.

A function of chunks that has a form for other libraries, :class:`OnDevice`, is computed by them, on a GPU if the rows are
there. For other functions each chunk is moved to the memory of the processor.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from cmvmed.data.array_api import ArrayPlace, on_host
from cmvmed.data.layout import ViewLayout
from cmvmed.data.sources.base import (
    FLOAT_BYTES,
    ArrayColumns,
    ChunkFunction,
    RowFunction,
    Sums,
    add,
    as_numbers,
    checked_sums,
    chunk_size,
    row_bytes,
)
from cmvmed.data.validation import RowCheck
from cmvmed.numerics.types import Array, IntArray, Matrix

NUMBERS_AT_A_TIME = 2**22  # of a table computed from a chunk; with twice as many, torch on the processor is slower

ArrayFunction = Callable[[int, list[Any]], tuple[Any, ...]]  # as a ChunkFunction, of arrays of a library


@runtime_checkable
class OnDevice(Protocol):
    """A function of chunks that other libraries can compute."""

    def on_device(self, place: ArrayPlace) -> ArrayFunction | None:
        """The same function of tables in double precision at a place; None if the library cannot compute it."""


@dataclass(frozen=True)
class ArrayApiRows(ArrayColumns):
    """The rows of arrays of one library, which stay where they are.

    ``layout`` names the columns of each view if there is one array; without it each array is a view. ``memory_limit``,
    in bytes, is for chunks in the memory of the processor.
    """

    place: ArrayPlace
    arrays: Sequence[Any]
    layout: ViewLayout | None = None
    memory_limit: int | None = None
    numbers: IntArray | None = None  # of the rows that are chosen, ascending; None: all

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.arrays[0].shape[0] if self.numbers is None else self.numbers.size)

    def take(self, rows: IntArray) -> list[Matrix]:
        """Per view, the rows of the given ascending numbers, in the memory of the processor."""
        return _matrices(self._by_view(self._taken(rows)))

    def chosen(self, rows: IntArray) -> "ArrayApiRows":
        """The rows of the given ascending numbers without a copy of them."""
        return replace(self, numbers=rows if self.numbers is None else self.numbers[rows])

    def chunks(self, size: int) -> Iterator[tuple[int, list[Any]]]:
        """The number of the first row and the tables of each view in double precision, ``size`` rows at a time."""
        for start in range(0, self.n_rows, size):
            stop = min(start + size, self.n_rows)
            if self.numbers is None:
                blocks = [array[start:stop, :] for array in self.arrays]
            else:
                blocks = self._taken(np.arange(start, stop))
            yield start, self._by_view(blocks)

    def check_values(self, check: RowCheck) -> None:
        """Raise if a value is infinite, naming its view, row and column."""
        for first_row, tables in self.chunks(rows_at_a_time(sum(self.widths))):
            self.check_chunk(check, first_row, tables)

    def check_chunk(self, check: RowCheck, first_row: int, tables: Sequence[Any]) -> None:
        """The same for the tables of one chunk."""
        xp = self.place.xp
        if any(bool(xp.any(xp.isinf(table))) for table in tables):
            check.present(first_row, _matrices(tables))

    def reduce(self, function: ChunkFunction, *, bytes_per_row: int = 0) -> Sums:
        """Elementwise sums over all chunks, added in row order where they are computed."""
        computed = function.on_device(self.place) if isinstance(function, OnDevice) else None
        total: Any = None
        if computed is None:
            for summands in self._host_results(function, bytes_per_row):
                total = add(total, summands)
            return checked_sums(total)
        for first_row, tables in self.chunks(rows_at_a_time(max(bytes_per_row // FLOAT_BYTES, sum(self.widths)))):
            summands = computed(first_row, tables)
            total = summands if total is None else [a + b for a, b in zip(total, summands, strict=True)]
        return tuple(on_host(array) for array in checked_sums(total))

    def map(self, function: RowFunction, *, bytes_per_row: int = 0) -> Iterator[Array]:
        """Results of the chunks in row order, each moved to the memory of the processor and computed there."""
        return self._host_results(function, bytes_per_row)

    def _host_results(self, function: Any, bytes_per_row: int) -> Iterator[Any]:
        size = chunk_size(row_bytes(self.widths, bytes_per_row), 1, self.memory_limit)
        return (function(first_row, _matrices(tables)) for first_row, tables in self.chunks(size))

    def _taken(self, rows: IntArray) -> list[Any]:
        """The rows of each array, at the place."""
        index = self.place.put(rows if self.numbers is None else self.numbers[rows])
        return [self.place.xp.take(array, index, axis=0) for array in self.arrays]

    def _by_view(self, blocks: list[Any]) -> list[Any]:
        xp = self.place.xp
        numbers = [xp.astype(block, xp.float64, copy=False) for block in blocks]
        return numbers if self.layout is None else [xp.take(numbers[0], index, axis=1) for index in self._columns]

    @cached_property
    def _columns(self) -> list[Any]:
        """The columns of each view in the only array, at the place."""
        return [] if self.layout is None else [self.place.put(columns) for columns in self.layout.columns]


def rows_at_a_time(numbers_per_row: int) -> int:
    """Rows of a chunk from which tables of so many columns are computed."""
    return max(1, NUMBERS_AT_A_TIME // max(numbers_per_row, 1))


def _matrices(tables: Sequence[Any]) -> list[Matrix]:
    return [as_numbers(on_host(table)) for table in tables]
