"""What a source of rows can do, and what all sources share: chunks, their sums, and how large a chunk may be.

A fit over more rows than memory holds reads them in chunks. A function of a chunk must depend on nothing but its
arguments, so that it may run in any thread or process, and again if a worker is lost.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from cmvmed.data.layout import ViewLayout
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, IntArray, Matrix

Sums = tuple[Array, ...]
ChunkFunction = Callable[[int, list[Matrix]], Sums]  # (number of the first row, rows of each view) -> summands
RowFunction = Callable[[int, list[Matrix]], Array]  # the same arguments -> one line per row

MAX_CHUNK_ROWS = 4096  # rows; matrix products are not faster with more
CHUNK_COPIES = 6  # as it is read and joined, its unlabeled rows, and these while they are filled and scaled
FLOAT_BYTES = 8


class RowSource(Protocol):
    """The rows of all views. Every view has the same rows in the same order."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each view."""

    @property
    def row_sizes(self) -> tuple[int, ...]:
        """Numbers that a row takes in memory, per view; fewer than its columns if the view is sparse."""

    def take(self, rows: IntArray) -> list[Matrix]:
        """Per view, the rows of the given ascending numbers, in memory."""

    def reduce(self, function: ChunkFunction, *, bytes_per_row: int = 0) -> Sums:
        """Elementwise sums of ``function(first_row, matrices)`` over all chunks, always added in the same order.

        ``bytes_per_row`` is the memory that the function needs for each row of its chunk, beside the row itself.
        """

    def map(self, function: RowFunction, *, bytes_per_row: int = 0) -> Iterator[Array]:
        """``function(first_row, matrices)`` of each chunk in row order, computed lazily."""


class ArrayColumns:
    """The columns of rows in arrays: ``layout`` names those of each view if there is one array, else each array is a view."""

    arrays: Sequence[Any]
    layout: ViewLayout | None

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return self.layout.widths if self.layout is not None else tuple(int(array.shape[1]) for array in self.arrays)

    @property
    def row_sizes(self) -> tuple[int, ...]:
        """Numbers that a row takes in memory, per view."""
        return self.widths


def chunk_size(row_bytes: int, n_chunks: int, memory_limit: int | None) -> int:
    """Rows per chunk such that ``n_chunks`` of them fit ``memory_limit`` bytes (None: no limit).

    Raises
    ------
    MemoryError
        If not even one row each does.
    """
    if memory_limit is None:
        return MAX_CHUNK_ROWS
    fitting = memory_limit // (n_chunks * max(row_bytes, 1))
    if fitting < 1:
        raise MemoryError(
            f"The memory limit is too small: {memory_limit} bytes are left for chunks of rows, but {n_chunks} rows at a time "
            f"need {row_bytes} bytes each. Raise the limit with cmvmed.config_context, or use fewer threads (n_jobs) or "
            "landmarks (approximation)."
        )
    return min(int(fitting), MAX_CHUNK_ROWS)


def numbers_per_row(matrix: Matrix) -> int:
    """Numbers that a row takes in memory: its columns, or twice its non-zero values, on average, if it is sparse."""
    return int(-(-2 * matrix.nnz // max(matrix.shape[0], 1)) if is_sparse(matrix) else matrix.shape[1])


def row_bytes(widths: Sequence[int], bytes_per_row: int) -> int:
    """Memory that one row of a chunk needs while a function works on it."""
    return CHUNK_COPIES * FLOAT_BYTES * sum(widths) + bytes_per_row


def parts_of(first_row: int, matrices: list[Matrix], size: int) -> Iterator[tuple[int, list[Matrix]]]:
    """A block of rows in chunks of at most ``size``, each with the number of its first row."""
    n_rows = matrices[0].shape[0]
    for start in range(0, n_rows, size):
        yield first_row + start, [matrix[start : start + size] for matrix in matrices]


def checked_sums(total: Sums | None) -> Sums:
    """Sums over rows, or an error if there was none."""
    if total is None:
        raise ValueError("There are no rows to compute sums of.")
    return total


def add(total: Sums | None, summands: Sums) -> Sums:
    """Elementwise sums; the first summands start the total. The total is changed in place."""
    if total is None:
        return tuple(summand.copy() for summand in summands)
    if len(total) != len(summands):
        raise ValueError(
            f"A function of chunks returned {len(summands)} arrays after {len(total)} for an earlier chunk."
        )
    for accumulated, summand in zip(total, summands, strict=True):
        accumulated += summand
    return total


def as_numbers(block: Matrix, dtype: DTypeLike = np.float64) -> Matrix:
    """A block of rows as numbers of one type, dense or CSR."""
    if is_sparse(block):
        return block.tocsr().astype(dtype, copy=False)
    return np.asarray(block, dtype=dtype)


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Matrices one below the other, CSR if they are."""
    return sparse.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate(parts)


def format_bytes(n_bytes: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("bytes", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.3g} GiB"
