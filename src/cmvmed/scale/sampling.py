"""What a fit works on: all rows in memory, or a sample of them and the others where they lie."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from cmvmed.core.consensus import prior_scores, soft_labels
from cmvmed.core.linalg import Array, BoolArray, IntArray, Matrix
from cmvmed.core.problem import partition_rows
from cmvmed.core.surrogates import Surrogate
from cmvmed.data.inputs import SHARE_OF_CHUNKS, all_rows, memory_after_rows
from cmvmed.data.labels import Labels
from cmvmed.data.sources import LocalRows, RowSource, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, RowCheck, numbers_per_row
from cmvmed.data.sources.opening import is_external
from cmvmed.estimators._approximation import Approximation, read_approximation
from cmvmed.estimators._base import TrainingData
from cmvmed.estimators._parameters import check_choice
from cmvmed.estimators._prediction import PooledPredictor, filled
from cmvmed.estimators._reading import InputSchema
from cmvmed.scale.memory import format_bytes
from cmvmed.scale.streamed import StreamedResult, StreamedRows, sample_rows

SAMPLE_ROWS = 5000  # unlabeled rows in memory; beyond, the annealing runs on as many of them
LEAST_SAMPLE_ROWS = 1000  # of which a memory limit must leave room for
MOST_LABELED_ROWS = 20_000  # whose covariance is a square matrix
BETWEEN_ROWS = 50_000  # unlabeled rows of a larger sample
LEAST_OF_BETWEEN = 8  # times as many rows there must be: with five times as many it took as long as it spared
SHARE_OF_BETWEEN = 4  # of the memory for chunks; it takes at most this part
SHARE_OF_SAMPLE = 2  # the sample and what is computed from it take at most this part of the memory limit
COPIES_OF_SAMPLE = 3  # of its rows, as they are given and while they are scaled
COPIES_OF_FEATURES = 1  # of the sample
MATRICES_OF_A_VIEW = 7  # p x p: its features, turned twice, their Gram matrix, and what eigendecompositions take
COVARIANCES_OF_A_VIEW = 4  # of the labeled rows: before and, twice, after conditioning, and in a dual
COPIES_OF_CONSENSUS = 8  # scores, coverage, probabilities, and some room


@dataclass(frozen=True)
class FitRows:
    """The rows to anneal on in memory and, if these are a sample, all rows."""

    training: TrainingData
    approximation: Approximation
    labels: Labels  # of all rows
    everything: StreamedRows | None  # None if all rows are in memory
    between: StreamedRows | None = None  # a larger sample, swept over before very many rows


def read_fit_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, surrogate: Surrogate) -> FitRows:
    """Read what ``fit`` was given, as far as it is needed in memory."""
    check_choice("missing", estimator.missing, ("ignore", "error"))
    if is_external(X):
        return _read_elsewhere(estimator, X, y, sample_weight, surrogate)
    training = estimator._read_training(X, y, sample_weight)
    partition = training.partition
    approximation = read_approximation(estimator, surrogate, partition.block_U.size)
    n_sample = sample_size(estimator, approximation, [numbers_per_row(m) for m in training.matrices], training.labels)
    if approximation.n_components is None or partition.block_U.size <= n_sample or _has_given_kernel(estimator):
        return FitRows(training, approximation, training.labels, None)
    threads = None if estimator.n_jobs is None else effective_n_jobs(estimator.n_jobs)
    source = memory_rows(training.matrices, n_threads=threads)
    return _sampled(
        estimator,
        training.columns,
        source,
        training.labels,
        partition.weights,
        partition.hinge,
        approximation,
        n_sample,
        sample_weight is None,
    )


def _read_elsewhere(estimator: Any, X: Any, y: Any, sample_weight: Any, surrogate: Surrogate) -> FitRows:
    """The same for rows that lie in files or on a cluster."""
    columns, opened = estimator._open_training(X, y)
    source = estimator._rows(opened, columns)
    labels = estimator._read_labels(estimator._labels_of(opened, y), source.n_rows)
    like = np.broadcast_to(0.0, (source.n_rows, 1))
    weights = estimator._read_sample_weight(sample_weight, source.n_rows, like)
    hinge = estimator._hinge_weights(labels, weights)
    n_unlabeled = int(((labels.codes < 0) & (weights > 0.0)).sum())
    approximation = read_approximation(estimator, surrogate, n_unlabeled)
    n_sample = sample_size(estimator, approximation, source.widths, labels)
    if approximation.n_components is None or n_unlabeled <= n_sample or _has_given_kernel(estimator):
        matrices = all_rows(source, estimator._memory_limit())
        present = estimator._present_in_training(columns, matrices)
        training = TrainingData(columns, matrices, present, labels, partition_rows(labels, present, weights, hinge))
        return FitRows(training, approximation, labels, None)
    return _sampled(estimator, columns, source, labels, weights, hinge, approximation, n_sample, sample_weight is None)


def sample_size(estimator: Any, approximation: Approximation, widths: Sequence[int], labels: Labels) -> int:
    """Unlabeled rows to anneal on: 5000, or as many as the memory limit has room for."""
    n_components = approximation.n_components
    if n_components is None:
        return SAMPLE_ROWS
    n_rows, n_labeled, limit = labels.codes.size, labels.labeled.size, estimator._memory_limit()
    room = memory_after_rows(limit, n_rows)
    p, least = min(n_components, n_rows) + 1, min(LEAST_SAMPLE_ROWS, n_rows)
    row = int(FLOAT_BYTES * (COPIES_OF_FEATURES * len(widths) * p + COPIES_OF_SAMPLE * sum(widths)))
    squares = MATRICES_OF_A_VIEW * p**2 + COVARIANCES_OF_A_VIEW * n_labeled**2
    fixed = FLOAT_BYTES * len(widths) * squares + n_labeled * row
    n_sample = min(SAMPLE_ROWS, (room // SHARE_OF_SAMPLE - fixed) // row)
    if n_sample < least:
        needed = limit - room + SHARE_OF_SAMPLE * (fixed + least * row)
        raise MemoryError(
            f"A fit with n_components={n_components} in {len(widths)} views and {n_labeled} labeled rows needs at least "
            f"{format_bytes(needed)} of memory, but only {format_bytes(limit)} may be used. Lower n_components or raise memory_limit."
        )
    return int(n_sample)


def _has_given_kernel(estimator: Any) -> bool:
    """Whether rows of some view are lines of a kernel matrix, which must be in memory as a whole."""
    kernels = estimator.kernel
    kernels = (
        kernels.values() if hasattr(kernels, "values") else kernels if isinstance(kernels, (list, tuple)) else [kernels]
    )
    return any(isinstance(kernel, str) and kernel == "precomputed" for kernel in kernels)


def _sampled(
    estimator: Any,
    columns: InputSchema,
    source: RowSource,
    labels: Labels,
    weights: Array,
    hinge: Array,
    approximation: Approximation,
    n_sample: int,
    equal_weights: bool,
) -> FitRows:
    """A sample of the rows to anneal on, with its labels and partition."""
    labeled = labels.labeled
    if labeled.size > MOST_LABELED_ROWS:
        raise MemoryError(
            f"y has {labeled.size} labeled rows, but the labeled rows' covariance is a square matrix: at most "
            f"{MOST_LABELED_ROWS} can be used. Hide some labels, or use a supervised classifier: with so many labels the "
            "unlabeled rows have little to add."
        )
    with_between = False
    if isinstance(source, LocalRows):  # workers of a cluster keep nothing of each row
        room = memory_after_rows(estimator._memory_limit(), source.n_rows) // SHARE_OF_CHUNKS
        taken = (BETWEEN_ROWS + labeled.size) * FLOAT_BYTES * sum(source.widths)
        enough = source.n_rows - labeled.size >= LEAST_OF_BETWEEN * BETWEEN_ROWS
        with_between = enough and taken <= room // SHARE_OF_BETWEEN
        source = replace(source, memory_limit=room - taken * with_between)
    check = estimator._row_check(columns, [None] * len(columns.view_names))
    rows = StreamedRows(source, check, labeled, None if equal_weights else weights)
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31))
    numbers, sample_weights = sample_rows(rows, n_sample, rng)
    matrices = source.take(numbers)
    present = _present_in_sample(check, numbers, matrices)
    of_sample = Labels(labels.classes, labels.codes[numbers])
    partition = partition_rows(of_sample, present, sample_weights, hinge[numbers])
    between = larger_sample(rows, rng) if with_between else None
    return FitRows(TrainingData(columns, matrices, present, of_sample, partition), approximation, labels, rows, between)


def larger_sample(rows: StreamedRows, rng: np.random.Generator) -> StreamedRows:
    """``BETWEEN_ROWS`` unlabeled rows, and the labeled ones, in memory."""
    numbers, weights = sample_rows(rows, BETWEEN_ROWS, rng)
    matrices = rows.source.take(numbers)
    _present_in_sample(rows.check, numbers, matrices)
    assert isinstance(rows.source, LocalRows)
    source = memory_rows(matrices, memory_limit=rows.source.memory_limit, n_threads=rows.source.n_threads)
    return StreamedRows(source, rows.check, np.searchsorted(numbers, rows.labeled), weights)


def _present_in_sample(check: RowCheck, numbers: IntArray, matrices: list[Matrix]) -> list[BoolArray]:
    """Per view, which rows of the sample have it; a bad value is named by its row's number in all of X."""
    try:
        return check.present(0, matrices)
    except ValueError:
        for i, number in enumerate(numbers):
            check.present(int(number), [matrix[i : i + 1] for matrix in matrices])
        raise


def consensus_of_all_rows(
    fit_rows: FitRows, streamed: StreamedResult, prior: Array, temperature: float, memory_limit: int
) -> Array | None:
    """The consensus over the classes of every training row, (n, K), certain for labeled ones; None if too large for the limit.

    ``temperature`` is that of the calibrated probabilities.
    """
    labels, rows, end = fit_rows.labels, fit_rows.everything, streamed.annealed
    assert rows is not None
    if COPIES_OF_CONSENSUS * FLOAT_BYTES * rows.source.n_rows * labels.n_classes > memory_limit:
        return None
    scored = PooledPredictor(streamed.predictors, end.view_weights, end.consensus.offset, rows.check).of_source(
        rows.source
    )
    blind = int((scored[:, -1] == 0.0).sum())
    if blind:
        warnings.warn(
            f"{blind} training rows have all views missing; they teach nothing and get the class prior.", stacklevel=4
        )
    scores = filled(scored, prior_scores(prior, temperature))
    q = soft_labels(scores, np.zeros(scores.shape[1]), temperature)
    q[labels.labeled] = np.eye(labels.n_classes)[labels.codes[labels.labeled]]
    return q
