"""Step 3, prediction: pooled scores of new rows, in memory, in chunks from files, or lazily in dask collections."""

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cmvmed._warnings import warn_user
from cmvmed.auto.neighbors import NeighborPredictor
from cmvmed.core.consensus import class_scores, prior_scores, soft_labels
from cmvmed.data.layout import InputSchema, ViewLayout
from cmvmed.data.reading import InputSettings, Rows, load_new, open_new
from cmvmed.data.sources import ArrayTable, LocalRows, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, MAX_CHUNK_ROWS, as_numbers
from cmvmed.data.sources.dask import import_dask
from cmvmed.data.validation import RowCheck
from cmvmed.members.accuracy import Mixture
from cmvmed.members.candidates import PartScorer
from cmvmed.members.part_sums import PartSums, WeightedParts
from cmvmed.members.pool import PoolScorer
from cmvmed.members.prediction_sets import ClassThresholds
from cmvmed.model.predictors import MeanPredictor, ViewMeans, ViewPredictor
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix

OutputKind: TypeAlias = Literal["score", "class", "probability"] | ClassThresholds
SCORE_COPIES = 3  # of the kernel values of a row while it is scored


@dataclass(frozen=True)
class ScoredRows:
    """Rows as a model sees them."""

    values: Array  # (n, F), pooled scores of the views with the offset; if there are opinions, log-probabilities (n, K)
    coverage: Array  # (n,), weight of the views that the row has, 0 if there is none

    @property
    def table(self) -> Array:
        """All of it as one table, (n, 1 + F) or (n, 1 + K)."""
        return np.hstack([self.coverage[:, None], self.values])

    @classmethod
    def read(cls, table: Array) -> "ScoredRows":
        """From such a table."""
        return cls(table[:, 1:], table[:, 0])


@dataclass(frozen=True)
class FittedModel(PickledByFields):
    """All that predictions need."""

    schema: InputSchema
    classes: NDArray[Any]  # (K,)
    class_prior: Array  # (K,)
    predictors: tuple[ViewPredictor, ...]
    pool_weights: Array  # (V,), and the neighbors' if they have weight
    offset: Array  # (F,)
    temperature: float
    neighbors: NeighborPredictor | None = None
    opinions: "FittedOpinions | None" = None  # beside the consensus; None if it is alone

    @property
    def prior_scores(self) -> Array:
        """Scores (F,) of the class prior, given to rows without any view."""
        return prior_scores(self.class_prior, self.temperature)

    @cached_property
    def row_check(self) -> RowCheck:
        """The check of new rows."""
        widths, preprocessors = self.schema.layout.widths, [p.preprocessor for p in self.predictors]
        unused = tuple(p.unused_columns(width) for p, width in zip(preprocessors, widths, strict=True))
        complete = tuple(p.needs_all_cells for p in preprocessors)
        return RowCheck(self.schema.view_names, self.schema.columns_by_view, unused, complete)

    @cached_property
    def pooled(self) -> "PooledPredictor":
        """The function of chunks behind all predictions."""
        return PooledPredictor(
            self.predictors,
            self.pool_weights,
            self.offset,
            self.temperature,
            self.row_check,
            self.neighbors,
            self.opinions,
        )

    @cached_property
    def _single_pooled(self) -> "PooledPredictor":
        return replace(self.pooled, dtype=np.float32)

    def pooled_in(self, dtype: DTypeLike) -> "PooledPredictor":
        """The same with kernels in a precision."""
        return self._single_pooled if dtype == np.float32 else self.pooled

    def read_views(self, X: object, settings: InputSettings) -> tuple[list[Matrix], list[BoolArray]]:
        """The matrices of new rows and which rows have which view."""
        matrices = load_new(X, self.schema, settings)
        return matrices, self.row_check.present(0, matrices)

    def scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Scores as ``decision_function`` gives them, but (n, F)."""
        return self.decision_scores(warn_without_views(self.pooled.scored(matrices, present)))

    def soft_labels(self, scores: Array) -> Array:
        """Probabilities (n, K) by the consensus, of scores that include the offset (n, F)."""
        return soft_labels(scores, np.zeros(scores.shape[1]), self.temperature)

    def output(self, scored: ScoredRows, kind: OutputKind) -> Any:
        """The "score", "class" or "probability" of rows, or their sets of classes."""
        if isinstance(kind, ClassThresholds):
            return kind.sets(self.probabilities(scored), scored.coverage)
        if kind == "probability":
            return self.probabilities(scored)
        scores = scikit_shape(self.decision_scores(scored))
        if kind == "score":
            return scores
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(np.intp)
        return self.classes[codes]

    def probabilities(self, scored: ScoredRows) -> Array:
        """The probability of each class, (n, K); the class prior for rows without any view."""
        if self.opinions is None:
            return self.soft_labels(fill_missing(scored.values, scored.coverage, self.prior_scores))
        p = np.exp(scored.values)
        p[scored.coverage == 0.0] = self.class_prior
        return p

    def by_opinion(self, matrices: list[Matrix], present: list[BoolArray]) -> dict[str, Array]:
        """The probabilities (n, K) by each opinion, and by the consensus if it takes part."""
        consensus = warn_without_views(replace(self.pooled, opinions=None).scored(matrices, present))
        found = {}
        if self.opinions is not None:
            log_p = self.opinions.pool.by_opinion(matrices, self.pooled.usable(present))
            found = {name: np.exp(values) for name, values in zip(self.opinions.names, log_p, strict=True)}
        if self.opinions is None or self.opinions.with_consensus:
            found["consensus"] = self.soft_labels(consensus.values)
        return {name: fill_missing(p, consensus.coverage, self.class_prior) for name, p in found.items()}

    def decision_scores(self, scored: ScoredRows) -> Array:
        """Scores (n, F): log-odds of two classes, log-probabilities of more; of the consensus alone, its pooled scores."""
        if self.opinions is None:
            return fill_missing(scored.values, scored.coverage, self.prior_scores)
        log_p = fill_missing(scored.values, scored.coverage, np.log(self.class_prior))
        if self.classes.size == 2:
            return log_p[:, 1:] - log_p[:, :1]
        return np.asarray(log_p - log_p.mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class FittedOpinions(PickledByFields):
    """The pool of opinions, and how it is put together with the consensus."""

    names: tuple[str, ...]  # of the opinions in the pool
    pool: PoolScorer
    pool_offset: Array  # (K,)
    mixture: Mixture
    with_consensus: bool

    @cached_property
    def constant(self) -> Array:
        """What does not depend on the row in the logits of the pool, (K,)."""
        return self.pool.logit_constant + self.pool_offset

    def log_probabilities(self, pool: Array, consensus: Array | None) -> Array:
        """(n, K).

        Parameters
        ----------
        pool : (parts, n, K), values of the functions whose sum are the logits of the pool
        consensus : (n, K), logits of the consensus if it takes part
        """
        logits = pool.sum(axis=0)
        logits += self.constant
        if consensus is None:
            return self.mixture.log_probabilities(logits[None])
        return self.mixture.log_probabilities(np.stack([logits, consensus / self.mixture.scales[-1]]))


def predict(model: FittedModel, X: object, kind: OutputKind, settings: InputSettings) -> Any:
    """The output for each row of X; lazy for dask collections, in chunks for many rows."""
    opened, pooled = open_new(X, model.schema, settings), model.pooled_in(settings.dtype)
    if isinstance(opened, list):
        return model.output(warn_without_views(pooled.of_matrices(opened)), kind)
    if opened.in_dask:
        layout = model.schema.layout if opened.names is None else None
        return predict_dask(opened.dask_arrays(), _BlockTask(model, kind, layout, settings.dtype))
    source = opened.rows(model.schema.layout, settings)
    return model.output(warn_without_views(pooled.of_source(source)), kind)


@dataclass(frozen=True)
class PooledPredictor(PickledByFields):
    """What all predictions are made of, for chunks of rows."""

    predictors: tuple[MeanPredictor, ...]
    pool_weights: Array  # (V,), and the neighbors' if they have weight
    offset: Array  # (F,)
    temperature: float
    check: RowCheck
    neighbors: NeighborPredictor | None = None
    opinions: FittedOpinions | None = None
    dtype: DTypeLike = (
        np.float64
    )  # of kernels; rows are scaled, and distances to neighbors computed, in double precision

    def __call__(self, first_row: int, matrices: list[Matrix]) -> Array:
        """The table of the rows of a chunk, whose values are checked."""
        return self._checked(first_row, matrices).table

    def _checked(self, first_row: int, matrices: list[Matrix]) -> ScoredRows:
        present = self.check.present(first_row, matrices)
        return self.scored([as_numbers(matrix) for matrix in matrices], present)

    def scored(self, matrices: list[Matrix], present: list[BoolArray]) -> ScoredRows:
        """Scores of rows in memory."""
        usable = self.usable(present)
        values, coverage = self._sums.values(matrices, usable), self._coverage(usable)
        if self.opinions is None:
            return ScoredRows(self._consensus(values[0], coverage), coverage)
        if not self.opinions.with_consensus:
            return ScoredRows(self.opinions.log_probabilities(values, None), coverage)
        consensus = self._consensus(values[-1], coverage) / (2.0 * self.temperature)
        return ScoredRows(self.opinions.log_probabilities(values[:-1], consensus), coverage)

    @cached_property
    def _sums(self) -> PartSums:
        """What is summed over views: the logits of the pool in parts, and last Σ π_i m_i of the consensus, if they take part."""
        functions = [] if self.opinions is None else self.opinions.pool.logit_parts()
        if self.opinions is None or self.opinions.with_consensus:
            functions = [*functions, self._weighted_means()]
        return PartSums(functions, self._offset.size, np.float32 if self.dtype == np.float32 else np.float64)

    def _weighted_means(self) -> WeightedParts:
        """Σ π_i m_i over the views that a row has, and the neighbors; beside opinions, as scores of all classes."""
        by_class = self.opinions is not None
        parts: list[PartScorer] = [ViewMeans(i, own, by_class, self.dtype) for i, own in enumerate(self.predictors)]
        if self.neighbors is not None:
            parts.append(self.neighbors.scorer(by_class=by_class))
        weighted = zip(self.pool_weights, parts, strict=True)
        return WeightedParts(tuple((float(weight), part) for weight, part in weighted if weight > 0.0))

    def _coverage(self, usable: list[BoolArray]) -> Array:
        """ψ = Σ π_i over the views that each row has, and the neighbors, (n,)."""
        has = usable if self.neighbors is None else [*usable, self.neighbors.has_neighbors(usable)]
        return np.asarray(self.pool_weights @ np.array(has))

    def _consensus(self, total: Array, coverage: Array) -> Array:
        """Σ π_i m_i / Σ π_i + o of equation (E) from the totals, (n, F), or (n, K) beside opinions."""
        return np.asarray(total / np.where(coverage > 0.0, coverage, 1.0)[:, None] + self._offset)

    @cached_property
    def _offset(self) -> Array:
        return self.offset if self.opinions is None else class_scores(self.offset[None])[0]

    def usable(self, present: list[BoolArray]) -> list[BoolArray]:
        """Per view, which rows have it, none if no training row had it."""
        return [has if known else np.zeros_like(has) for has, known in zip(present, self._are_known, strict=True)]

    @cached_property
    def _are_known(self) -> list[bool]:
        return [predictor.has_training_rows for predictor in self.predictors]

    def means(self, matrices: list[Matrix], present: list[BoolArray]) -> tuple[list[IntArray], list[Array]]:
        """Per view, the rows that it can score and their posterior means (n_i, F)."""
        rows = [np.flatnonzero(usable) for usable in self.usable(present)]
        parts = zip(self.predictors, matrices, rows, strict=True)
        return rows, [predictor.mean(matrix[index], self.dtype) for predictor, matrix, index in parts]

    def of_matrices(self, matrices: list[Matrix]) -> ScoredRows:
        """Scores of rows in memory, in chunks if they are many."""
        if matrices[0].shape[0] > MAX_CHUNK_ROWS:
            return self.of_source(memory_rows(matrices))
        return self._checked(0, matrices)

    @property
    def bytes_per_row(self) -> int:
        """Memory that a row needs while it is scored."""
        compared = sum(predictor.n_basis_rows for predictor in self.predictors)
        if self.neighbors is not None:
            compared += self.neighbors.n_basis_rows
        if self.opinions is not None:
            compared += self.opinions.pool.n_basis_rows
        return SCORE_COPIES * FLOAT_BYTES * compared

    def of_source(self, source: Rows) -> ScoredRows:
        """Scores of all rows of a source."""
        table, start = np.empty((source.n_rows, self.empty.table.shape[1])), 0
        for part in source.map(self, bytes_per_row=self.bytes_per_row):
            table[start : start + len(part)] = part
            start += len(part)
        return ScoredRows.read(table)

    @property
    def empty(self) -> ScoredRows:
        """Scores of no rows."""
        n_values = self.offset.size if self.opinions is None else self.opinions.pool_offset.size
        return ScoredRows(np.zeros((0, n_values)), np.zeros(0))


def scikit_shape(values: Array) -> Array:
    """(n,) for one function, (n, K) for more."""
    return values[:, 0] if values.shape[1] == 1 else values


def fill_missing(values: Array, coverage: Array, absent: Array) -> Array:
    """The values (n, k), with those of ``absent`` (k,) for rows without any view, whose coverage is zero."""
    return np.where(coverage[:, None] > 0.0, values, absent)


def warn_without_views(scored: ScoredRows) -> ScoredRows:
    """The same rows, with a warning if some have no view."""
    without_views, n_rows = np.flatnonzero(scored.coverage == 0.0), scored.coverage.size
    if without_views.size:
        warn_user(
            f"{without_views.size} of {n_rows} rows have no view present, the first is row {without_views[0]}; they get the class "
            "prior."
        )
    return scored


@dataclass(frozen=True)
class _BlockTask:
    """The output for one block of rows of dask arrays."""

    model: FittedModel
    kind: OutputKind
    layout: ViewLayout | None  # of the columns of a single array; without it each array is a view
    dtype: DTypeLike

    def __call__(self, blocks: tuple[Matrix, ...]) -> Any:
        """The output, computed by one thread."""
        source = LocalRows([ArrayTable(block) for block in blocks], self.layout, n_threads=1)
        pooled = self.model.pooled_in(self.dtype)
        return self.model.output(pooled.of_source(source) if source.n_rows else pooled.empty, self.kind)


def predict_dask(arrays: list[Any], task: _BlockTask) -> Any:
    """The output for dask arrays as a dask array with the same blocks of rows, not yet computed."""
    dask, da = import_dask(), import_module("dask.array")
    blocks = arrays[0].chunks[0]
    if not any(np.isnan(count) for array in arrays for count in array.chunks[0]):
        arrays = [array.rechunk((blocks, -1)) for array in arrays]
    counts = [array.numblocks[0] for array in arrays]
    if len(set(counts)) > 1:
        raise ValueError(f"The views have unequal numbers of partitions, {counts}; align them with repartition.")
    example = task.model.output(task.model.pooled.empty, task.kind)
    shape = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (blocks, (example.shape[1],))}
    return da.map_blocks(_predict_block, *arrays, task=dask.delayed(task), dtype=example.dtype, meta=example, **shape)


def _predict_block(*blocks: Matrix, task: _BlockTask) -> Any:
    return task(blocks)
