"""Rows on this machine, read by one thread and processed by the others.

A :class:`Table` is one rectangle of numbers that can be read block by block: an array, a memory-mapped file, a Zarr
array, a folder of Parquet files. :class:`LocalRows` makes a source of one table and the columns of its views, or of one
table per view.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from cmvmed.data.layout import ViewLayout
from cmvmed.data.sources.base import (
    ChunkFunction,
    RowFunction,
    Sums,
    add,
    as_numbers,
    checked_sums,
    chunk_size,
    format_bytes,
    numbers_per_row,
    row_bytes,
)
from cmvmed.numerics.threads import blas_limit, usable_threads
from cmvmed.numerics.types import Array, IntArray, Matrix

T = TypeVar("T")


class Table(Protocol):
    """A rectangle of numbers that can be read block by block."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    @property
    def column_names(self) -> list[str] | None:
        """Names of the columns, None if they have none."""

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes in memory."""

    @property
    def reading_bytes(self) -> int:
        """Memory that reading takes, beside the blocks."""

    def blocks(self, size: int) -> Iterator[Matrix]:
        """The rows in blocks of ``size`` (the last may be shorter), dense or CSR, in double precision."""

    def take(self, rows: IntArray) -> Matrix:
        """The rows of the given ascending numbers."""


@dataclass(frozen=True)
class ArrayTable:
    """An array, memory-mapped file or CSR matrix: what can be sliced by rows; chosen ones are not copied as a whole."""

    array: Any
    column_names: list[str] | None = None
    numbers: IntArray | None = None  # of the rows that are chosen, ascending; None: all
    reading_bytes: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.array.shape[0] if self.numbers is None else self.numbers.size)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes in memory."""
        return numbers_per_row(self.array)

    def select(self, columns: Sequence[str]) -> "ArrayTable":
        """The same rows with the given columns, in their order; they must have names."""
        names = self.column_names or []
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise ValueError(f"There is no column {unknown[0]!r}; the columns are {names}.")
        if list(columns) == names:
            return self
        chosen = self.array[:, [names.index(name) for name in columns]]
        return replace(self, array=chosen, column_names=list(columns))

    def blocks(self, size: int) -> Iterator[Matrix]:
        """The rows in blocks of ``size``."""
        for start in range(0, self.n_rows, size):
            yield self.take(slice(start, start + size))

    def take(self, rows: IntArray | slice) -> Matrix:
        """The rows of the given ascending numbers, counted among the chosen ones."""
        return as_numbers(self.array[rows if self.numbers is None else self.numbers[rows]])


@dataclass(frozen=True)
class PaddedTable:
    """A table with further columns, which hold NaN: those of views that new rows lack."""

    table: Table
    positions: IntArray  # where the columns of ``table`` are
    n_columns: int
    column_names: list[str] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes in memory, as it is read and padded."""
        return self.table.numbers_per_row + self.n_columns

    @property
    def reading_bytes(self) -> int:
        """Memory that reading takes, beside the blocks."""
        return self.table.reading_bytes

    def blocks(self, size: int) -> Iterator[Matrix]:
        """The rows in blocks of ``size``."""
        return (self._padded(block) for block in self.table.blocks(size))

    def take(self, rows: IntArray) -> Matrix:
        """The rows of the given ascending numbers."""
        return self._padded(self.table.take(rows))

    def _padded(self, block: Matrix) -> Matrix:
        padded = np.full((block.shape[0], self.n_columns), np.nan)
        padded[:, self.positions] = block
        return padded


@dataclass(frozen=True)
class LocalRows:
    """The rows of tables on this machine, in chunks worked on by threads with one thread of linear algebra each.

    ``layout`` names the columns of each view if there is one table; without it each table is a view. ``memory_limit``
    is in bytes. ``n_threads=None`` takes as many as the linear algebra may use.
    """

    tables: Sequence[Table]
    layout: ViewLayout | None = None
    memory_limit: int | None = None
    n_threads: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.tables[0].n_rows

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return self.layout.widths if self.layout is not None else tuple(table.n_columns for table in self.tables)

    @property
    def row_sizes(self) -> tuple[int, ...]:
        """Numbers that a row takes in memory, per view."""
        return self.widths if self.layout is not None else tuple(table.numbers_per_row for table in self.tables)

    def take(self, rows: IntArray) -> list[Matrix]:
        """Per view, the rows of the given ascending numbers."""
        return self._by_view([table.take(rows) for table in self.tables])

    def chosen(self, rows: IntArray) -> "LocalRows | None":
        """The rows of the given ascending numbers without a copy of them; None unless all rows are in memory."""
        arrays = [table.array for table in self.tables if isinstance(table, ArrayTable) and table.numbers is None]
        if len(arrays) < len(self.tables) or any(isinstance(array, np.memmap) for array in arrays):
            return None
        return replace(self, tables=[ArrayTable(array, numbers=rows) for array in arrays])

    def reduce(self, function: ChunkFunction, *, bytes_per_row: int = 0) -> Sums:
        """Elementwise sums over all chunks, added in row order."""
        total: Sums | None = None
        for summands in self._results(function, bytes_per_row):
            total = add(total, summands)
        return checked_sums(total)

    def map(self, function: RowFunction, *, bytes_per_row: int = 0) -> Iterator[Array]:
        """Results of the chunks in row order, computed lazily."""
        return self._results(function, bytes_per_row)

    def _results(self, function: Callable[[int, list[Matrix]], T], bytes_per_row: int) -> Iterator[T]:
        threads = self.n_threads if self.n_threads is not None else usable_threads()
        in_flight = threads + 1  # one chunk more is read while the others are worked on
        per_row = row_bytes([table.numbers_per_row for table in self.tables], bytes_per_row)
        size = chunk_size(per_row, in_flight, self.chunk_memory())
        if threads == 1:
            yield from (function(first, matrices) for first, matrices in self._chunks(size))
            return
        waiting: deque[Future[T]] = deque()
        with blas_limit(1), ThreadPoolExecutor(threads) as pool:
            try:
                for first, matrices in self._chunks(size):
                    waiting.append(pool.submit(function, first, matrices))
                    if len(waiting) == in_flight:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C, no chunk is begun

    def chunk_memory(self) -> int | None:
        """Bytes that are left for chunks beside what reading takes, or an error if nothing is."""
        if self.memory_limit is None:
            return None
        reading = sum(table.reading_bytes for table in self.tables)
        if reading >= self.memory_limit:
            raise MemoryError(
                f"Reading these files takes {format_bytes(reading)}, because they store many rows together, but there is room "
                f"for {format_bytes(self.memory_limit)}. Write them with smaller row groups or chunks, or raise the limit with "
                "cmvmed.config_context(memory_limit=...)."
            )
        return self.memory_limit - reading

    def _chunks(self, size: int) -> Iterator[tuple[int, list[Matrix]]]:
        first = 0
        for blocks in zip(*(table.blocks(size) for table in self.tables), strict=True):
            yield first, self._by_view(list(blocks))
            first += blocks[0].shape[0]

    def _by_view(self, blocks: list[Matrix]) -> list[Matrix]:
        return blocks if self.layout is None else self.layout.split(blocks[0])


def memory_rows(
    matrices: Sequence[Matrix], *, memory_limit: int | None = None, n_threads: int | None = None
) -> LocalRows:
    """The rows of one array, memory-mapped file or CSR matrix per view."""
    return LocalRows([ArrayTable(matrix) for matrix in matrices], memory_limit=memory_limit, n_threads=n_threads)
