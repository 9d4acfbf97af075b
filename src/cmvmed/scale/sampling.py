"""The rows that are annealed in memory: all of them, or a sample if they are many, and larger samples that contain it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.approximation import Approximation
from cmvmed.auto.tuning import Tuning
from cmvmed.data.labels import Labels
from cmvmed.data.reading import CHUNK_MEMORY, Rows, TrainingInput
from cmvmed.data.sources import ArrayApiRows, DaskRows, LocalRows, RowSource, memory_rows
from cmvmed.data.sources.base import FLOAT_BYTES, format_bytes
from cmvmed.data.validation import RowCheck
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.scale.passes import StreamedRows
from cmvmed.views.training_data import RowWeights, TrainingData, generator, present_in_training, training_data

MIN_SAMPLE_ROWS = 1000  # unlabeled rows for which a memory limit must leave room
MAX_LABELED_ROWS = 20_000  # whose covariance is a square matrix
# How memory is divided. The sample and what is computed from it take at most 1/SAMPLE_MEMORY of the limit.
SAMPLE_MEMORY = 2
LARGER_MEMORY = 4  # the largest of the larger samples takes at most this part of the memory for chunks
MIN_GROWTH = 2  # of a sample
LARGEST_PART = 2  # the largest of them has at most this part of all rows
# Copies of the sample's rows: as they are given, while gaps are filled and they are scaled, and as the views hold them
SAMPLE_COPIES = 4
FEATURE_COPIES = 1  # in double precision of the sample's features, which are kept in single precision twice
SQUARE_MATRICES = 7  # (p, p) per view: features, rotated twice, their Gram matrix, and what eigendecompositions take
COVARIANCES = 4  # (l, l) per view: before and, twice, after conditioning, and in a dual
BYTES_PER_ROW = 32  # its class, weights and scores, which are kept


@dataclass(frozen=True)
class TakenRows:
    """Some rows in memory: files are read once for all that is surely needed of them."""

    numbers: IntArray  # ascending
    matrices: list[Matrix]

    def take(self, numbers: IntArray) -> list[Matrix] | None:
        """Per view, the rows of the given ascending numbers; None if there are others among them."""
        place = np.minimum(np.searchsorted(self.numbers, numbers), self.numbers.size - 1)
        if not np.array_equal(self.numbers[place], numbers):
            return None
        return [matrix[place] for matrix in self.matrices]


@dataclass(frozen=True)
class LargerSamples:
    """Samples that contain each other, and rows outside of all of them by which their models are compared."""

    rows: StreamedRows  # all rows
    taken: TakenRows  # the first sample and the held-out rows
    order: IntArray  # numbers of unlabeled rows in random order: a sample of n rows is the first n of them
    smallest: int  # sample
    largest: int
    n_held_out: int  # rows at the end of ``order`` that are in no sample
    max_row_weight: float  # of a row of a sample, in units of its own

    def sample(self, size: int) -> StreamedRows:
        """A sample with the labeled rows, standing for all rows or, if these are many more, some of them."""
        numbers, weights = rows_with_weights(self.rows, self.order[:size], self.max_row_weight)
        source = self._source(numbers)
        check = replace(self.rows.check, numbers=numbers)
        return StreamedRows(source, check, np.searchsorted(numbers, self.rows.labeled), weights)

    def _source(self, numbers: IntArray) -> RowSource:
        if isinstance(self.rows.source, (ArrayApiRows, DaskRows)):
            return self.rows.source.chosen(numbers)
        local = self.rows.source if isinstance(self.rows.source, LocalRows) else None
        if local is not None and (chosen := local.chosen(numbers)) is not None:
            return chosen
        matrices = self.taken.take(numbers) or self.rows.source.take(numbers)
        limit, n_threads = (None, None) if local is None else (local.memory_limit, local.n_threads)
        return memory_rows(matrices, memory_limit=limit, n_threads=n_threads)

    def next_size(self, size: int, ratio: float | None, growth: int) -> int | None:
        """The size of the sample after one of ``size`` rows; None if it would be too large.

        What a sample loses is proportional to 1/√n. If it loses ``ratio`` times as much as it may, the square of that times
        as many rows are needed; at least twice as many, by which the loss can be estimated, and at most ``growth`` times.
        """
        if MIN_GROWTH * size > self.largest:
            return None
        factor = float(growth) if ratio is None else min(max(ratio**2, MIN_GROWTH), growth)
        return min(int(factor * size), self.largest)

    def held_out(self) -> tuple[list[Matrix], list[BoolArray]]:
        """Per view, the rows that are in no sample, and which of them have it."""
        numbers = np.sort(self.order[self.order.size - self.n_held_out :])
        matrices = self.taken.take(numbers) or self.rows.source.take(numbers)
        return matrices, replace(self.rows.check, numbers=numbers).present(0, matrices)


@dataclass(frozen=True)
class Sample:
    """The rows to anneal on in memory and, if these are a sample, all rows."""

    training: TrainingData
    all_rows: StreamedRows | None = None  # None if all rows are in memory
    larger: LargerSamples | None = None  # samples to sweep over before very many rows
    numbers: IntArray | None = None  # of the sample's rows in X; None if all rows are in memory

    @property
    def is_complete(self) -> bool:
        """Whether all rows are in memory."""
        return self.all_rows is None

    def row_numbers(self, rows: IntArray) -> IntArray:
        """The numbers in X of some rows in memory."""
        return rows if self.numbers is None else self.numbers[rows]


def count_unlabeled(labels: Labels, weights: RowWeights) -> int:
    """Unlabeled rows of positive weight."""
    return int(((labels.codes < 0) & (weights.sample > 0.0)).sum())


def draw_sample(
    data: TrainingInput,
    weights: RowWeights,
    approximation: Approximation,
    *,
    kernel: object,
    memory_limit: int,
    random_state: object,
    tuning: Tuning,
) -> Sample:
    """The rows to anneal on: all, unless low-rank features of them would be too many for memory or time."""
    n_sample, n_components = sample_size(approximation, data, memory_limit, tuning), approximation.n_components
    few = count_unlabeled(data.labels, weights) <= n_sample
    use_all = few or n_components is None or _has_precomputed(kernel)
    if use_all or data.matrices is not None:  # all rows in memory are checked, also those outside of the sample
        matrices = data.load(memory_limit)
        present = present_in_training(data.schema, matrices, kernel)
        training = training_data(data.schema, matrices, present, data.labels, weights)
        if use_all or n_components is None:
            return Sample(training)
    return _sampled(data, weights, n_sample, memory_limit, random_state, tuning)


def sample_size(approximation: Approximation, data: TrainingInput, memory_limit: int, tuning: Tuning) -> int:
    """Unlabeled rows to anneal on: a fixed number, or as many as the memory limit has room for."""
    if approximation.n_components is None:
        return tuning.sample_rows
    n_rows, n_labeled, sizes = data.source.n_rows, data.labels.labeled.size, data.source.row_sizes
    room = memory_after_rows(memory_limit, n_rows)
    n_components = max(approximation.n_components, tuning.max_components * approximation.may_grow)
    p, least = min(n_components, n_rows) + 1, min(MIN_SAMPLE_ROWS, n_rows)
    row = int(FLOAT_BYTES * (FEATURE_COPIES * len(sizes) * p + SAMPLE_COPIES * sum(sizes)))
    squares = SQUARE_MATRICES * p**2 + COVARIANCES * n_labeled**2
    fixed = FLOAT_BYTES * len(sizes) * squares + n_labeled * row
    n_sample = min(tuning.sample_rows, (room // SAMPLE_MEMORY - fixed) // row)
    if n_sample < min(least, tuning.sample_rows):
        needed = memory_limit - room + SAMPLE_MEMORY * (fixed + least * row)
        raise MemoryError(
            f"A fit with {n_components} landmarks in {len(sizes)} views and {n_labeled} labeled rows needs at "
            f"least {format_bytes(needed)} of memory, but only {format_bytes(memory_limit)} may be used. Give a smaller "
            "number of landmarks as approximation, or raise the limit with cmvmed.config_context(memory_limit=...)."
        )
    return int(n_sample)


def memory_after_rows(memory_limit: int, n_rows: int) -> int:
    """Bytes that are left beside what is kept of each row, or an error if nothing is."""
    kept = BYTES_PER_ROW * n_rows
    if kept >= memory_limit:
        raise MemoryError(
            f"The classes, weights and scores of {n_rows} rows take {format_bytes(kept)}, but only {format_bytes(memory_limit)} "
            "of memory may be used. Take fewer rows, or raise the limit with cmvmed.config_context(memory_limit=...)."
        )
    return memory_limit - kept


def _has_precomputed(kernel: object) -> bool:
    """Whether rows of some view are lines of a kernel matrix, which must be in memory as a whole."""
    kernels = list(kernel.values()) if isinstance(kernel, Mapping) else kernel
    kernels = kernels if isinstance(kernels, (list, tuple)) else [kernels]
    return any(isinstance(k, str) and k == "precomputed" for k in kernels)


def _sampled(
    data: TrainingInput,
    weights: RowWeights,
    n_sample: int,
    memory_limit: int,
    random_state: object,
    tuning: Tuning,
) -> Sample:
    """A sample of the rows to anneal on, with its labels."""
    labels, source = data.labels, data.source
    labeled = labels.labeled
    if labeled.size > MAX_LABELED_ROWS:
        raise MemoryError(
            f"y has {labeled.size} labeled rows, but a fit can use at most {MAX_LABELED_ROWS}. Hide some labels, or use a "
            "supervised classifier: with so many labels, unlabeled rows add little."
        )
    smallest = n_sample * tuning.row_growth
    n_unlabeled = count_unlabeled(labels, weights)
    source, largest = _divide_memory(source, labeled.size, n_unlabeled, memory_limit, smallest, tuning)
    has_larger = largest >= smallest
    check = RowCheck(data.schema.view_names, data.schema.columns_by_view, (None,) * len(data.schema.view_names))
    rows = StreamedRows(source, check, labeled, None if weights.equal else weights.sample)
    if isinstance(source, ArrayApiRows):
        source.check_values(check)  # as all rows in memory are, also those outside of the sample
    n_held_out = tuning.held_out_rows if has_larger else 0
    order = random_rows(rows, max(n_sample, largest if has_larger else 0) + n_held_out, generator(random_state))
    numbers, sample_weights = rows_with_weights(rows, order[:n_sample], tuning.max_row_weight)
    stays = isinstance(source, ArrayApiRows)  # larger samples are where the rows are
    first = order[: max(n_sample, smallest if has_larger and not stays else 0)]
    needed = np.unique(np.concatenate([first, order[order.size - n_held_out :], labeled]))
    taken = TakenRows(needed, source.take(needed))
    matrices = taken.take(numbers) or source.take(numbers)
    present = replace(check, numbers=numbers).present(0, matrices)
    sample_labels = Labels(labels.classes, labels.codes[numbers])
    groups = None if weights.groups is None else weights.groups[numbers]
    random = None if weights.random is None else weights.random[numbers]
    sample = RowWeights(sample_weights, weights.equal, groups, random)
    training = training_data(data.schema, matrices, present, sample_labels, sample)
    growing = LargerSamples(rows, taken, order, smallest, largest, n_held_out, tuning.max_row_weight)
    return Sample(training, rows, growing if has_larger else None, numbers)


def _divide_memory(
    source: Rows, n_labeled: int, n_unlabeled: int, memory_limit: int, smallest: int, tuning: Tuning
) -> tuple[Rows, int]:
    """The source with its share of the memory, and the size of the largest sample that fits beside it.

    It has at most half of the unlabeled rows that have weight: if it is enough it saves as much as it would cost in vain.
    """
    room = memory_after_rows(memory_limit, source.n_rows) // CHUNK_MEMORY
    bytes_per_row = FLOAT_BYTES * sum(source.row_sizes)
    fitting = room // LARGER_MEMORY // max(bytes_per_row, 1) - n_labeled - tuning.held_out_rows
    largest = min(fitting, n_unlabeled // LARGEST_PART, n_unlabeled - tuning.held_out_rows)
    if largest < smallest or not isinstance(source, LocalRows):  # workers of a cluster have memory of their own
        return source if not isinstance(source, LocalRows) else replace(source, memory_limit=room), largest
    taken = (largest + smallest + tuning.held_out_rows + n_labeled) * bytes_per_row
    return replace(source, memory_limit=room - taken), largest


def random_rows(rows: StreamedRows, n: int, rng: np.random.Generator) -> IntArray:
    """Numbers of ``n`` unlabeled rows of positive weight in random order; of all, if there are fewer."""
    if rows.weights is None:
        drawn = rng.choice(rows.source.n_rows, min(rows.source.n_rows, n + rows.labeled.size), replace=False)
        unlabeled = drawn[~np.isin(drawn, rows.labeled)]
    else:
        with_weight = rows.weights > 0.0
        with_weight[rows.labeled] = False
        unlabeled = rng.permutation(np.flatnonzero(with_weight))
    return np.asarray(unlabeled[:n])


def rows_with_weights(rows: StreamedRows, unlabeled: IntArray, max_row_weight: float) -> tuple[IntArray, Array]:
    """The labeled rows and the given unlabeled ones, ascending, and the weight of each, (n_sample,).

    A labeled row keeps its weight; the weight of all unlabeled rows is distributed over those of the sample, up to
    ``max_row_weight`` times their own.
    """
    sample = np.sort(unlabeled)
    own = np.ones(sample.size) if rows.weights is None else rows.weights[sample]
    labeled_weights = np.ones(rows.labeled.size) if rows.weights is None else rows.weights[rows.labeled]
    times = min(rows.unlabeled_weight / own.sum(), max_row_weight) if sample.size else 1.0
    numbers = np.concatenate([rows.labeled, sample])
    weights = np.concatenate([labeled_weights, own * times])
    order = np.argsort(numbers)
    return numbers[order], weights[order]
