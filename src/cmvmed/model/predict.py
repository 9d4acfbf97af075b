"""Step 3, prediction: the outputs of a model for new rows, in memory, in chunks from files, or lazily in dask collections."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from cmvmed._warnings import warn_user
from cmvmed.core.consensus import class_scores
from cmvmed.data.layout import ViewLayout
from cmvmed.data.reading import InputSettings, Rows, open_new
from cmvmed.data.sources import ArrayTable, LocalRows, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, MAX_CHUNK_ROWS, as_numbers
from cmvmed.data.sources.dask import import_dask
from cmvmed.data.validation import RowCheck
from cmvmed.model.evaluate import member_logits
from cmvmed.model.fitted_model import Model
from cmvmed.model.uncertainty import ClassThresholds
from cmvmed.numerics.softmax import softmax
from cmvmed.numerics.threads import blas_limit
from cmvmed.numerics.types import Array, BoolArray, Matrix

OutputKind: TypeAlias = Literal["score", "class", "probability"] | ClassThresholds
SCORE_COPIES = 3  # of the kernel values of a row while it is scored


@dataclass(frozen=True)
class ScoredRows:
    """Rows as a model sees them."""

    logits: Array  # (n, K), log p up to a constant of each row
    coverage: Array  # (n,), weight of the views that the row has, 0 if there is none

    @property
    def has_view(self) -> BoolArray:
        """Which rows have a view with weight, (n,)."""
        return np.asarray(self.coverage > 0.0)

    @property
    def table(self) -> Array:
        """All of it as one table, (n, 1 + K)."""
        return np.hstack([self.coverage[:, None], self.logits])

    @classmethod
    def read(cls, table: Array) -> "ScoredRows":
        """From such a table."""
        return cls(table[:, 1:], table[:, 0])


def score_rows(
    model: Model, matrices: Sequence[Matrix], present: Sequence[BoolArray], dtype: DTypeLike = np.float64
) -> ScoredRows:
    """Rows in memory, with kernels in a precision."""
    usable = model.usable(present)
    logits = model.log_probabilities(model.evaluator(dtype).logits(matrices, usable))
    return ScoredRows(logits, model.consensus.coverage(usable))


def probabilities(model: Model, matrices: Sequence[Matrix], present: Sequence[BoolArray]) -> Array:
    """The probability of each class of rows in memory, (n, K)."""
    scored = score_rows(model, matrices, present)
    return model.probabilities(scored.logits, scored.has_view)


def output(model: Model, scored: ScoredRows, kind: OutputKind) -> Any:
    """The "score", "class" or "probability" of rows, or their sets of classes."""
    if kind == "probability":
        return model.probabilities(scored.logits, scored.has_view)
    if not isinstance(kind, str):
        return kind.sets(model.probabilities(scored.logits, scored.has_view), scored.coverage)
    scores = scikit_shape(model.decision_scores(scored.logits, scored.has_view))
    if kind == "score":
        return scores
    codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(np.intp)
    return model.classes[codes]


def predict(model: Model, X: object, kind: OutputKind, settings: InputSettings) -> Any:
    """The output for each row of X; lazy for dask collections, in chunks for many rows."""
    opened, scorer = open_new(X, model.schema, settings), RowScorer(model, model.row_check, settings.dtype)
    if isinstance(opened, list):
        return output(model, warn_without_views(scorer.of_matrices(opened)), kind)
    if opened.in_dask:
        layout = model.schema.layout if opened.names is None else None
        return predict_dask(opened.dask_arrays(), _BlockTask(model, kind, layout, settings.dtype))
    source = opened.rows(model.schema.layout, settings)
    return output(model, warn_without_views(scorer.of_source(source)), kind)


@dataclass(frozen=True)
class RowScorer:
    """A model applied to chunks of rows, whose values are checked."""

    model: Model
    check: RowCheck
    dtype: DTypeLike = (
        np.float64
    )  # of kernels; rows are scaled, and distances to neighbors computed, in double precision

    def __call__(self, first_row: int, matrices: list[Matrix]) -> Array:
        """The table of the rows of a chunk."""
        return self._scored(first_row, matrices).table

    def _scored(self, first_row: int, matrices: list[Matrix]) -> ScoredRows:
        present = self.check.present(first_row, matrices)
        return score_rows(self.model, [as_numbers(matrix) for matrix in matrices], present, self.dtype)

    def of_matrices(self, matrices: list[Matrix]) -> ScoredRows:
        """Rows in memory, in chunks if they are many."""
        if matrices[0].shape[0] > MAX_CHUNK_ROWS:
            return self.of_source(memory_rows(matrices))
        with blas_limit(1 if matrices[0].shape[0] > 1 else None):  # a limit takes as long as a part of one row
            return self._scored(0, matrices)

    def of_source(self, source: Rows) -> ScoredRows:
        """All rows of a source."""
        table, start = np.empty((source.n_rows, 1 + self.model.n_classes)), 0
        for part in source.map(self, bytes_per_row=bytes_per_row(self.model)):
            table[start : start + len(part)] = part
            start += len(part)
        return ScoredRows.read(table)


def bytes_per_row(model: Model) -> int:
    """Memory that a row needs while it is scored."""
    others = [sum(term.n_compared for term in own.terms) for own in model.members[:-1]]
    compared = sum(term.n_compared for term in model.consensus.terms) + max(others, default=0)
    return SCORE_COPIES * FLOAT_BYTES * compared


def scores_by_view(model: Model, matrices: Sequence[Matrix], present: Sequence[BoolArray]) -> list[Array]:
    """Per view the scores of all rows with the offset, (n, F); those of the class prior where the view is missing."""
    usable, found = model.usable(present), []
    for term, has in zip(model.view_terms, usable, strict=True):
        scores = term.scores(matrices, usable)
        own = scores[:, 1:] if model.n_classes == 2 else scores
        found.append(np.where(has[:, None], own + model.score_offset, model.prior_scores))
    return found


def probabilities_by_view(model: Model, matrices: Sequence[Matrix], present: Sequence[BoolArray]) -> list[Array]:
    """Per view the probabilities (n, K), at the temperature and class balance of the consensus; the prior without the view."""
    return [softmax_of_scores(model, scores) for scores in scores_by_view(model, matrices, present)]


def softmax_of_scores(model: Model, scores: Array) -> Array:
    """The probabilities (n, K) that the consensus gives to scores (n, F)."""
    return softmax(class_scores(scores) / (2.0 * model.temperature))


def probabilities_by_member(model: Model, matrices: Sequence[Matrix], present: Sequence[BoolArray]) -> dict[str, Array]:
    """The probabilities (n, K) by each member that takes part; the class prior for rows without any view."""
    usable, members = model.usable(present), model.in_use
    logits = member_logits(members, matrices, usable)
    coverage = model.consensus.coverage(usable)
    warn_without_views(ScoredRows(logits[0], coverage))
    p = np.where(coverage[:, None] > 0.0, softmax(logits), model.class_prior)
    return {member.name: own for member, own in zip(members, p, strict=True)}


def scikit_shape(values: Array) -> Array:
    """(n,) for one function, (n, K) for more."""
    return values[:, 0] if values.shape[1] == 1 else values


def warn_without_views(scored: ScoredRows) -> ScoredRows:
    """The same rows, with a warning if some have no view."""
    without_views, n_rows = np.flatnonzero(scored.coverage == 0.0), scored.coverage.size
    if without_views.size:
        warn_user(
            f"{without_views.size} of {n_rows} rows have no view present, the first is row {without_views[0]}; they get the class "
            "shares as probabilities."
        )
    return scored


@dataclass(frozen=True)
class _BlockTask:
    """The output for one block of rows of dask arrays."""

    model: Model
    kind: OutputKind
    layout: ViewLayout | None  # of the columns of a single array; without it each array is a view
    dtype: DTypeLike

    def __call__(self, blocks: tuple[Matrix, ...]) -> Any:
        """The output, computed by one thread."""
        source = LocalRows([ArrayTable(block) for block in blocks], self.layout, n_threads=1)
        if not source.n_rows:
            return self.empty()
        return output(self.model, RowScorer(self.model, self.model.row_check, self.dtype).of_source(source), self.kind)

    def empty(self) -> Any:
        """The output of no rows."""
        return output(self.model, ScoredRows(np.zeros((0, self.model.n_classes)), np.zeros(0)), self.kind)


def predict_dask(arrays: list[Any], task: _BlockTask) -> Any:
    """The output for dask arrays as a dask array with the same blocks of rows, not yet computed."""
    dask, da = import_dask(), import_module("dask.array")
    blocks = arrays[0].chunks[0]
    if not any(np.isnan(count) for array in arrays for count in array.chunks[0]):
        arrays = [array.rechunk((blocks, -1)) for array in arrays]
    counts = [array.numblocks[0] for array in arrays]
    if len(set(counts)) > 1:
        raise ValueError(f"The views have unequal numbers of partitions, {counts}; align them with repartition.")
    example = task.empty()
    shape = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (blocks, (example.shape[1],))}
    return da.map_blocks(_predict_block, *arrays, task=dask.delayed(task), dtype=example.dtype, meta=example, **shape)


def _predict_block(*blocks: Matrix, task: _BlockTask) -> Any:
    return task(blocks)
