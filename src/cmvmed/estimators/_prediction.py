"""Step 3, prediction: pooled scores of new rows, in memory, in chunks from files, or lazily in dask collections."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed._warnings import warn_user
from cmvmed.auto.neighbors import NeighborPredictor
from cmvmed.core.consensus import pool, prior_scores, soft_labels
from cmvmed.core.types import Array, BoolArray, IntArray, Matrix
from cmvmed.data.external import Rows
from cmvmed.data.inputs import load_new, open_new
from cmvmed.data.layout import ViewLayout
from cmvmed.data.predictors import ViewPredictor
from cmvmed.data.schema import InputSchema, InputSettings
from cmvmed.data.sources import ArrayTable, LocalRows, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, MAX_CHUNK_ROWS
from cmvmed.data.sources.dask import import_dask
from cmvmed.data.validation import RowCheck

OutputKind: TypeAlias = Literal["score", "class", "probability"]
SCORE_COPIES = 3  # of the kernel values of a row while it is scored


@dataclass(frozen=True)
class FittedModel:
    """All that predictions need."""

    schema: InputSchema
    classes: NDArray[Any]  # (K,)
    class_prior: Array  # (K,)
    predictors: tuple[ViewPredictor, ...]
    pool_weights: Array  # (V,), and the neighbors' if they have weight
    offset: Array  # (F,)
    temperature: float
    neighbors: NeighborPredictor | None = None

    @property
    def prior_scores(self) -> Array:
        """Scores (F,) of the class prior, given to rows without any view."""
        return prior_scores(self.class_prior, self.temperature)

    @property
    def row_check(self) -> RowCheck:
        """The check of new rows."""
        widths = self.schema.layout.widths
        unused = tuple(p.unused_columns(width) for p, width in zip(self.predictors, widths, strict=True))
        return RowCheck(self.schema.view_names, self.schema.columns_by_view, unused)

    @property
    def pooled(self) -> "PooledPredictor":
        """The function of chunks behind all predictions."""
        return PooledPredictor(self.predictors, self.pool_weights, self.offset, self.row_check, self.neighbors)

    def read_views(self, X: object, settings: InputSettings) -> tuple[list[Matrix], list[BoolArray]]:
        """The matrices of new rows and which rows have which view."""
        matrices = load_new(X, self.schema, settings)
        return matrices, self.row_check.present(0, matrices)

    def scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Pooled scores with the offset, (n, F)."""
        return fill_missing_scores(_warn_without_views(self.pooled.pooled(matrices, present)), self.prior_scores)

    def soft_labels(self, scores: Array) -> Array:
        """Probabilities (n, K) of scores that include the offset (n, F)."""
        return soft_labels(scores, np.zeros(scores.shape[1]), self.temperature)

    def output(self, scored: Array, kind: OutputKind) -> Any:
        """The "score", "class" or "probability" of rows with scores and coverage (n, F + 1)."""
        scores = fill_missing_scores(scored, self.prior_scores)
        if kind == "probability":
            return self.soft_labels(scores)
        scores = scikit_shape(scores)
        if kind == "score":
            return scores
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(np.intp)
        return self.classes[codes]


def predict(model: FittedModel, X: object, kind: OutputKind, settings: InputSettings) -> Any:
    """The output for each row of X; lazy for dask collections, in chunks for many rows."""
    opened = open_new(X, model.schema, settings)
    if isinstance(opened, list):
        return model.output(_warn_without_views(model.pooled.of_matrices(opened)), kind)
    if opened.in_dask:
        layout = model.schema.layout if opened.names is None else None
        return predict_dask(opened.dask_arrays(), _BlockTask(model, kind, layout))
    source = opened.rows(model.schema.layout, settings)
    return model.output(_warn_without_views(model.pooled.of_source(source)), kind)


@dataclass(frozen=True)
class PooledPredictor:
    """Pooled scores of a chunk of rows beside their coverage, (n, F + 1).

    The coverage is the weight of the views that the row has, 0 if there is none.
    """

    predictors: tuple[ViewPredictor, ...]
    pool_weights: Array  # (V,), and the neighbors' if they have weight
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
        """Per view, the rows that it can score and their posterior means (n_i, F)."""
        rows = [np.flatnonzero(has & p.has_training_rows) for has, p in zip(present, self.predictors, strict=True)]
        return rows, [p.mean(matrix[index]) for p, matrix, index in zip(self.predictors, matrices, rows, strict=True)]

    def of_matrices(self, matrices: list[Matrix]) -> Array:
        """Scores of rows in memory, in chunks if they are many."""
        return self(0, matrices) if matrices[0].shape[0] <= MAX_CHUNK_ROWS else self.of_source(memory_rows(matrices))

    def of_source(self, source: Rows) -> Array:
        """Scores of all rows of a source."""
        compared = sum(predictor.n_basis_rows for predictor in self.predictors)
        if self.neighbors is not None:
            compared += self.neighbors.n_basis_rows
        return np.concatenate(list(source.map(self, bytes_per_row=SCORE_COPIES * FLOAT_BYTES * compared)))


def scikit_shape(values: Array) -> Array:
    """(n,) for one function, (n, K) for more."""
    return values[:, 0] if values.shape[1] == 1 else values


def fill_missing_scores(scored: Array, absent: Array) -> Array:
    """Scores (n, F) from scores and coverage (n, F + 1); ``absent`` for rows without any view."""
    return np.where(scored[:, -1:] > 0.0, scored[:, :-1], absent)


def _warn_without_views(scored: Array) -> Array:
    """The same scores and coverage, with a warning if some rows have no view."""
    rows_without_views = np.flatnonzero(scored[:, -1] == 0.0)
    if rows_without_views.size:
        warn_user(
            f"{rows_without_views.size} of {len(scored)} rows have no view present, the first is row {rows_without_views[0]}; "
            "they get the class prior."
        )
    return scored


@dataclass(frozen=True)
class _BlockTask:
    """The output for one block of rows of dask arrays."""

    model: FittedModel
    kind: OutputKind
    layout: ViewLayout | None  # of the columns of a single array; without it each array is a view

    def __call__(self, blocks: tuple[Matrix, ...]) -> Any:
        """The output, computed by one thread."""
        source = LocalRows([ArrayTable(block) for block in blocks], self.layout, n_threads=1)
        scored = self.model.pooled.of_source(source) if source.n_rows else self.empty
        return self.model.output(scored, self.kind)

    @property
    def empty(self) -> Array:
        """Scores and coverage of no rows."""
        return np.zeros((0, self.model.offset.size + 1))


def predict_dask(arrays: list[Any], task: _BlockTask) -> Any:
    """The output for dask arrays as a dask array with the same blocks of rows, not yet computed."""
    dask, da = import_dask(), import_module("dask.array")
    blocks = arrays[0].chunks[0]
    if not any(np.isnan(count) for array in arrays for count in array.chunks[0]):
        arrays = [array.rechunk((blocks, -1)) for array in arrays]
    counts = [array.numblocks[0] for array in arrays]
    if len(set(counts)) > 1:
        raise ValueError(f"The views have unequal numbers of partitions, {counts}; align them with repartition.")
    example = task.model.output(task.empty, task.kind)
    shape = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (blocks, (example.shape[1],))}
    return da.map_blocks(_predict_block, *arrays, task=dask.delayed(task), dtype=example.dtype, meta=example, **shape)


def _predict_block(*blocks: Matrix, task: _BlockTask) -> Any:
    return task(blocks)
