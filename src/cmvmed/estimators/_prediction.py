"""Scores of new rows and what follows from them, chunk by chunk: in memory, from files, or lazily in dask collections."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from cmvmed.auto.neighbors import NeighborPredictor
from cmvmed.core.consensus import pool, soft_labels
from cmvmed.core.linalg import Array, BoolArray, IntArray, Matrix
from cmvmed.data.layout import ViewLayout
from cmvmed.data.sources import ArrayTable, LocalRows, RowSource, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, LARGEST_CHUNK, RowCheck
from cmvmed.data.sources.dask import required_dask
from cmvmed.data.view_data import ViewPredictor


@dataclass(frozen=True)
class PooledPredictor:
    """Pooled scores of a chunk of rows beside their coverage, (n, F + 1): the function of chunks behind all predictions.

    The coverage is the weight of the views that could judge the row, 0 if there is none.
    """

    predictors: tuple[ViewPredictor, ...]
    pool_weights: Array  # (V,), and the neighbors' if they are heard
    offset: Array  # (F,)
    check: RowCheck
    neighbors: NeighborPredictor | None = None

    def __call__(self, first_row: int, matrices: list[Matrix]) -> Array:
        """Scores of the rows of a chunk, whose values are checked."""
        return self.pooled(matrices, self.check.present(first_row, matrices))

    def pooled(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Scores with the offset, and coverage."""
        rows, means = self.means(matrices, present)
        if self.neighbors is not None:
            known, mean = self.neighbors.mean(matrices, rows)
            rows, means = [*rows, known], [*means, mean]
        scores, coverage = pool(means, rows, self.pool_weights, matrices[0].shape[0])
        return np.column_stack([scores + self.offset, coverage])

    def means(self, matrices: list[Matrix], present: list[BoolArray]) -> tuple[list[IntArray], list[Array]]:
        """Per view, the rows that it can judge and their posterior means (n_i, F)."""
        rows = [
            np.flatnonzero(p & predictor.has_training_rows)
            for p, predictor in zip(present, self.predictors, strict=True)
        ]
        return rows, [m.mean(matrix[index]) for m, matrix, index in zip(self.predictors, matrices, rows, strict=True)]

    def of_matrices(self, matrices: list[Matrix]) -> Array:
        """Scores of rows in memory, in chunks if they are many."""
        return self(0, matrices) if matrices[0].shape[0] <= LARGEST_CHUNK else self.of_source(memory_rows(matrices))

    def of_source(self, source: RowSource) -> Array:
        """Scores of all rows of a source."""
        compared = sum(predictor.n_basis_rows for predictor in self.predictors)
        if self.neighbors is not None:
            compared += self.neighbors.n_basis_rows
        return np.concatenate(list(source.map(self, bytes_per_row=3 * FLOAT_BYTES * compared)))


@dataclass(frozen=True)
class OutputKind:
    """What is asked about rows: their "score", "class" or "probability"."""

    kind: str
    classes: Any  # (K,)
    temperature: float
    absent: Array  # (F,), scores of rows without any view

    def __call__(self, scored: Array) -> Any:
        """From scores and coverage (n, F + 1)."""
        scores = filled(scored, self.absent)
        if self.kind == "probability":
            return soft_labels(scores, np.zeros(scores.shape[1]), self.temperature)
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        if self.kind == "score":
            return scores
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(np.intp)
        return self.classes[codes]


def filled(scored: Array, absent: Array) -> Array:
    """Scores (n, F), ``absent`` for rows without any view."""
    return np.where(scored[:, -1:] > 0.0, scored[:, :-1], absent)


@dataclass(frozen=True)
class BlockTask:
    """The answer about one block of rows of dask arrays."""

    scorer: PooledPredictor
    answer: OutputKind
    layout: ViewLayout | None  # of the columns of a single array; without it each array is a view

    def __call__(self, blocks: tuple[Matrix, ...]) -> Any:
        """The answer, computed by one thread."""
        source = LocalRows([ArrayTable(block) for block in blocks], self.layout, n_threads=1)
        empty = np.zeros((0, self.scorer.offset.size + 1))
        return self.answer(self.scorer.of_source(source) if source.n_rows else empty)


def predict_dask(arrays: list[Any], task: BlockTask) -> Any:
    """The answers about dask arrays as a dask array with the same blocks of rows, not yet computed."""
    dask, da = required_dask(), import_module("dask.array")
    blocks = arrays[0].chunks[0]
    if not any(np.isnan(count) for array in arrays for count in array.chunks[0]):
        arrays = [array.rechunk((blocks, -1)) for array in arrays]
    counts = [array.numblocks[0] for array in arrays]
    if len(set(counts)) > 1:
        raise ValueError(f"The views have unequal numbers of partitions, {counts}; align them with repartition.")
    example = task.answer(np.zeros((0, task.scorer.offset.size + 1)))
    shape = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (blocks, (example.shape[1],))}
    return da.map_blocks(_answered, *arrays, task=dask.delayed(task), dtype=example.dtype, meta=example, **shape)


def _answered(*blocks: Matrix, task: BlockTask) -> Any:
    return task(blocks)
