"""Rows in dask collections: every block is processed where it is stored, and only sums are transferred.

The blocks are distributed over as many chains as the cluster has threads. A task of a chain adds one block's summands
to those of the task before it, so a chain stays on one worker, holds one block at a time and has one result. Tasks
depend on nothing but their block and parameters: dask repeats those that a lost worker had, and the sums are added in
the same order again.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from operator import getitem
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np
from joblib import cpu_count

from cmvmed._optional import import_optional
from cmvmed.data.labels import SparseLabels, joined_labels, labels_of_part
from cmvmed.data.layout import ViewLayout
from cmvmed.data.sources.base import (
    ArrayColumns,
    ChunkFunction,
    RowFunction,
    Sums,
    add,
    as_numbers,
    checked_sums,
    chunk_size,
    parts_of,
    row_bytes,
    stacked,
)
from cmvmed.numerics.threads import blas_limit
from cmvmed.numerics.types import Array, IntArray, Matrix

TIMEOUT_KEY = "cmvmed.worker-timeout"  # in dask's configuration: how long to wait for the first worker of a cluster
DEFAULT_TIMEOUT = "60s"


@dataclass(frozen=True)
class _Block:
    """Consecutive rows, as delayed parts of each array."""

    number: int
    first_row: int
    n_rows: int
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class DaskRows(ArrayColumns):
    """The rows of dask arrays with the same blocks of rows.

    ``layout`` names the columns of each view if there is one array; without it each array is a view. ``memory_limit``,
    in bytes, is for one thread of a worker, beside the block that it works on. ``origin`` is the collection whose
    blocks the arrays' blocks come from, to find the workers that hold them.
    """

    arrays: Sequence[Any]
    layout: ViewLayout | None = None
    memory_limit: int | None = None
    origin: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.arrays[0].shape[0])

    def take(self, rows: IntArray) -> list[Matrix]:
        """Per view, the rows of the given ascending numbers."""
        dask = import_dask()
        tasks = [dask.delayed(_taken)(own, self.layout, *block.parts) for block, own in self._with_rows(rows)]
        if not tasks:
            return [np.empty((0, width)) for width in self.widths]
        with single_threaded_blas():
            parts = dask.compute(*tasks)
        return [stacked(view) for view in zip(*parts, strict=True)]

    def chosen(self, rows: IntArray) -> "DaskRows":
        """The rows of the given ascending numbers, each in the memory of the worker that has its block."""
        dask, da, blocks = import_dask(), import_module("dask.array"), self._with_rows(rows)
        arrays = [
            da.concatenate(
                [
                    da.from_delayed(dask.delayed(getitem)(block.parts[k], own), (own.size, array.shape[1]), array.dtype)
                    for block, own in blocks  # dask's own choice of rows would gather them in few blocks
                ]
            )
            for k, array in enumerate(self.arrays)
        ]
        arrays = dask.persist(*arrays)
        return replace(self, arrays=arrays, origin=arrays[0])

    def _with_rows(self, rows: IntArray) -> list[tuple[_Block, IntArray]]:
        """The blocks that have some of the rows of the given ascending numbers, and which of their rows those are."""
        bounds = [np.searchsorted(rows, [own.first_row, own.first_row + own.n_rows]) for own in self._blocks]
        pairs = zip(self._blocks, bounds, strict=True)
        return [(own, rows[first:last] - own.first_row) for own, (first, last) in pairs if last > first]

    def reduce(self, function: ChunkFunction, *, bytes_per_row: int = 0) -> Sums:
        """Elementwise sums over all chunks, always added in the same order."""
        dask = import_dask()
        shipped = self._shipped(function, bytes_per_row)
        totals = []
        for chain in self._chains:
            total = None
            for block in chain:
                total = dask.delayed(_accumulated)(shipped, total, block.first_row, *block.parts)
            totals.append(total)
        with single_threaded_blas():
            results = dask.compute(*totals)
        sums: Sums | None = None
        for result in results:
            sums = add(sums, result)
        return checked_sums(sums)

    def map(self, function: RowFunction, *, bytes_per_row: int = 0) -> Iterator[Array]:
        """Results of the blocks in row order, a few of them at a time."""
        dask = import_dask()
        shipped = self._shipped(function, bytes_per_row)
        tasks = [dask.delayed(_mapped)(shipped, block.first_row, *block.parts) for block in self._blocks]
        at_once = sum(cluster_threads().values())
        for start in range(0, len(tasks), at_once):
            with single_threaded_blas():
                results = dask.compute(*tasks[start : start + at_once])
            yield from results

    def _shipped(self, function: ChunkFunction | RowFunction, bytes_per_row: int) -> Any:
        size = chunk_size(row_bytes(self.widths, bytes_per_row), 1, self.memory_limit)
        return import_dask().delayed(_Shipped(function, self.layout, size))

    @cached_property
    def _blocks(self) -> list[_Block]:
        """The blocks that have rows."""
        counts = self.arrays[0].chunks[0]
        starts = np.concatenate([[0], np.cumsum(counts)])
        parts = zip(*(array.to_delayed()[:, 0] for array in self.arrays), strict=True)
        return [
            _Block(number, int(start), int(count), delayed)
            for number, (start, count, delayed) in enumerate(zip(starts[:-1], counts, parts, strict=True))
            if count > 0
        ]

    @cached_property
    def _chains(self) -> list[list[_Block]]:
        """Blocks by chain, the same in every pass over the rows.

        Blocks in the memory of a worker are dealt to its threads, others in equal shares to all threads.
        """
        threads = cluster_threads()
        holders = {} if self.origin is None else block_holders(self.origin)
        if not all(holders.get(block.number) in threads for block in self._blocks):
            return _equal_shares(self._blocks, sum(threads.values()))
        chains = [
            chain
            for worker, n_threads in threads.items()
            for chain in _equal_shares([b for b in self._blocks if holders[b.number] == worker], n_threads)
        ]
        return sorted(chains, key=lambda chain: chain[0].first_row)


def dask_rows(
    collections: Sequence[Any],
    layout: ViewLayout | None = None,
    memory_limit: int | None = None,
    origin: Any = None,
) -> DaskRows:
    """A source of one dask array or DataFrame for all views, or of one per view; the lengths of DataFrames are computed."""
    if (client := current_client()) is not None:
        wait_for_workers(client)
    arrays = [_as_array(collection) for collection in collections]
    rows = [int(array.shape[0]) for array in arrays]
    if len(set(rows)) > 1:
        raise ValueError(f"The views have unequal numbers of rows: {rows}; align them first.")
    blocks = arrays[0].chunks[0]
    whole_rows = [array.rechunk((blocks, -1)) for array in arrays]
    return DaskRows(whole_rows, layout, memory_limit, collections[0] if origin is None else origin)


def import_dask() -> ModuleType:
    """The module dask, or an error that says how to install it."""
    return import_optional("dask", "dask", "A dask collection")


def current_client() -> Any | None:
    """The client of dask.distributed in use, if there is one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:  # there is none
        return None


def cluster_threads() -> dict[str, int]:
    """Threads of each worker, by its address; without a cluster those of this machine."""
    client = current_client()
    if client is None:
        return {"": import_dask().config.get("num_workers", None) or cpu_count()}
    wait_for_workers(client)
    return {str(address): int(n) for address, n in sorted(client.nthreads().items())}


def wait_for_workers(client: Any) -> None:
    """Wait until the cluster has a worker, for at most ``cmvmed.worker-timeout`` of dask's configuration."""
    dask = import_dask()
    limit = dask.config.get(TIMEOUT_KEY, DEFAULT_TIMEOUT)
    try:
        client.wait_for_workers(1, timeout=dask.utils.parse_timedelta(limit))
    except TimeoutError as error:
        raise TimeoutError(
            f"The Dask scheduler at {client.scheduler.address} has had no worker for {limit}. Start a worker, or wait longer: "
            f'dask.config.set({{"{TIMEOUT_KEY}": "10 min"}}).'
        ) from error


def block_holders(collection: Any) -> dict[int, str]:
    """The address of a worker that holds a block of rows, by the block's number; empty if the blocks are not in memory.

    The blocks of a persisted collection are futures whose keys are (name, number of the block of rows, ...).
    """
    client = current_client()
    if client is None:
        return {}
    distributed = sys.modules["distributed"]
    futures = distributed.futures_of(collection)
    distributed.wait(futures)
    addresses = client.who_has(futures)
    if len({key[0] for key in addresses}) != 1:
        return {}
    return {int(key[1]): min(workers) for key, workers in addresses.items() if workers}


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Compute with one thread of linear algebra per task, as workers of a cluster have it anyway.

    The graph carries parameters of some megabytes, of which dask warns: scattered data would be lost with a worker.
    """
    with warnings.catch_warnings(), blas_limit(1 if current_client() is None else None):
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield


def _as_array(collection: Any) -> Any:
    """A dask array whose blocks have known numbers of rows."""
    array = collection
    if hasattr(collection, "to_dask_array"):
        array = collection.to_dask_array(lengths=True)
    elif any(np.isnan(count) for count in collection.chunks[0]):
        array = collection.compute_chunk_sizes()
    if array.ndim != 2:
        raise ValueError(f"A dask collection must have rows and columns, but this one has the shape {array.shape}.")
    return array


def _equal_shares(blocks: list[_Block], n_shares: int) -> list[list[_Block]]:
    """Consecutive blocks in at most ``n_shares`` lists that are not empty."""
    bounds = np.linspace(0, len(blocks), min(n_shares, len(blocks)) + 1).astype(int)
    return [blocks[start:stop] for start, stop in pairwise(bounds)]


@dataclass(frozen=True)
class _Shipped:
    """A function of chunks with what a worker needs to know to cut a block into them."""

    function: Any
    layout: ViewLayout | None
    size: int

    def results(self, first_row: int, blocks: Sequence[Matrix]) -> Iterator[Any]:
        """Results of the chunks of one block."""
        matrices = _by_view(blocks, self.layout)
        return (self.function(first, chunk) for first, chunk in parts_of(first_row, matrices, self.size))


def _accumulated(shipped: _Shipped, before: Sums | None, first_row: int, *blocks: Matrix) -> Sums:
    """Sums of a block added to those before it, which stay as they are."""
    total: Sums | None = None
    for summands in shipped.results(first_row, blocks):
        total = add(total, summands)
    total = checked_sums(total)
    return total if before is None else add(total, before)


def _mapped(shipped: _Shipped, first_row: int, *blocks: Matrix) -> Array:
    return np.concatenate(list(shipped.results(first_row, blocks)))


def _taken(rows: IntArray, layout: ViewLayout | None, *blocks: Matrix) -> list[Matrix]:
    return [matrix[rows] for matrix in _by_view(blocks, layout)]


def _by_view(blocks: Sequence[Matrix], layout: ViewLayout | None) -> list[Matrix]:
    matrices = [as_numbers(block) for block in blocks]
    return matrices if layout is None else layout.split(matrices[0])


def is_dask(part: object) -> TypeGuard[Any]:
    """Whether something is a dask collection, without importing dask."""
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(part))


def labels_in_dask(collection: Any, unlabeled: object) -> SparseLabels:
    """The labeled rows of a dask series or array."""
    dask = import_dask()
    tasks = [dask.delayed(labels_of_part)(part, unlabeled) for part in np.ravel(collection.to_delayed())]
    with single_threaded_blas():
        return joined_labels(dask.compute(*tasks))
