"""What a fit works on: matrices, labels and weights of the training rows, read and checked."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from cmvmed._warnings import warn_user
from cmvmed.core.problem import RowPartition, partition_rows
from cmvmed.data.array_api import on_host
from cmvmed.data.groups import read_groups
from cmvmed.data.labels import Labels
from cmvmed.data.layout import InputSchema, column_label, per_view
from cmvmed.data.row_hashes import checksum
from cmvmed.data.validation import RowCheck, absent_rows
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.row_cache import RowCache
from cmvmed.views.view_rows import ViewData, ViewSettings, read_view

NO_VIEW_WARNING = (
    "{} training rows have all views missing; they are not used, and get the class shares as probabilities."
)
MOST = 0.5 + 1e-9  # share of a column's cells from which on it is mostly filled


@dataclass(frozen=True)
class RowWeights:
    """Sample weights of the training rows, their groups, and how they were drawn."""

    sample: Array  # (n,)
    equal: bool  # whether all sample weights are 1 because none were given
    groups: IntArray | None = None  # (n,) the group of each row, if the user gave groups
    random: BoolArray | None = None  # (n,) whether each row was drawn at random, if the user says so


@dataclass(frozen=True)
class TrainingData:
    """The rows that a fit holds in memory."""

    schema: InputSchema
    matrices: list[Matrix]  # per view (n, d_i)
    present: list[BoolArray]  # per view (n,)
    labels: Labels
    partition: RowPartition
    groups: IntArray | None = None  # (n,)
    random: BoolArray | None = None  # (n,) whether a labeled row was drawn at random, not chosen; None if not known
    cache: RowCache = field(default_factory=RowCache)

    def restricted(self, block_L: IntArray, block_U: IntArray) -> "TrainingData":
        """The same table, of which a fit uses the rows of these blocks alone; the others still set scale and bandwidth."""
        return replace(self, partition=replace(self.partition, block_L=block_L, block_U=block_U))

    def views(self, settings: Sequence[ViewSettings], random_state: object) -> list[ViewData]:
        """The views of a fit, each of which does not depend on the others."""
        return self._warned([self.view(i, s, random_state) for i, s in enumerate(settings)])

    def view(self, i: int, settings: ViewSettings, random_state: object) -> ViewData:
        """View i with all its rows, scaled, with its kernel; all that does not depend on labels is kept by the cache."""

        def compute() -> ViewData:
            return self._read(i, settings, generator(random_state))

        return self.cache.get(("view", i, settings.key), compute).with_labels(self.partition)

    def views_of_one_draw(self, settings: Sequence[ViewSettings], random_state: object) -> list[ViewData]:
        """The views of a baseline, which draw from one generator in turn."""
        rng = generator(random_state)
        return self._warned([self._read(i, s, rng).with_labels(self.partition) for i, s in enumerate(settings)])

    def _read(self, i: int, settings: ViewSettings, rng: np.random.Generator) -> ViewData:
        partition = self.partition
        return read_view(settings, self.matrices[i], self.present[i], partition.rows, partition.weights, rng)

    def _warned(self, views: list[ViewData]) -> list[ViewData]:
        """The views, after warnings of columns with many gaps."""
        for view, names in zip(views, self.schema.known_columns, strict=True):
            _warn_of_gaps(view, names)
        return views

    def signed_labels(self, rows: IntArray) -> Array:
        """Labels ±1 of each function, (n, F): of the second class if there are two, of each class otherwise.

        An unlabeled row, which may be there with a weight of zero, counts as of the first class.
        """
        one_hot = np.maximum(self.labels.codes[rows], 0)[:, None] == np.arange(self.labels.n_classes)
        return np.where(one_hot[:, 1:] if self.labels.n_classes == 2 else one_hot, 1.0, -1.0)


def _warn_of_gaps(view: ViewData, names: Sequence[str] | None) -> None:
    """Warn of columns that are NaN in most of the training rows that have the view."""
    if view.imputation is None or view.imputation.empty.all():  # the latter is a view that no row has
        return
    name, empty = view.settings.name, np.flatnonzero(view.imputation.empty)
    if empty.size:
        warn_user(
            f"View {name!r}: {_some_columns(empty, names)} NaN in every training row and will be ignored; remove such "
            "columns, or correct the input."
        )
    mostly = np.flatnonzero((view.imputation.gaps > MOST) & ~view.imputation.empty)
    if mostly.size:
        worst = view.imputation.gaps[mostly].max()
        warn_user(
            f"View {name!r}: {_some_columns(mostly, names)} NaN in most training rows that have the view (up to "
            f"{worst:.0%}); these cells get the mean of their column. If columns are missing together, give them a view of "
            "their own: rows may lack a whole view."
        )


def _some_columns(columns: IntArray, names: Sequence[str] | None) -> str:
    """Columns as the subject of a sentence, with its verb."""
    first, more = column_label(int(columns[0]), names), columns.size - 1
    return f"{first} is" if more == 0 else f"{first} and {more} more are"


def generator(random_state: object) -> np.random.Generator:
    """A generator from whatever scikit-learn takes as random state."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def training_data(
    schema: InputSchema, matrices: list[Matrix], present: list[BoolArray], labels: Labels, weights: RowWeights
) -> TrainingData:
    """Partition the rows; an error if all labeled rows of a class lack all views."""
    partition = partition_rows(labels.codes, labels.n_classes, present, weights.sample)
    if (partition.counts == 0.0).any():
        lost = labels.classes[partition.counts == 0.0].tolist()[0]
        raise ValueError(
            f"Every labeled row of class {lost!r} has all views missing, so the class cannot be learned; label a row that "
            "has a view."
        )
    return TrainingData(schema, matrices, present, labels, partition, weights.groups, weights.random)


def row_content(training: TrainingData, kernel: object, random_state: object, *further: Hashable) -> Hashable:
    """What the results for rows depend on, whatever their labels: the rows, their weights and the random state.

    Rows and weights enter by a checksum of their content. None if a second fit may differ all the same: because a
    kernel is a function, or by the random state.
    """
    kernels = per_view(kernel, training.schema.view_names, "kernel")
    if any(callable(k) for k in kernels) or not isinstance(random_state, Integral):
        return None
    parts = [*training.matrices, *training.present, training.partition.weights]
    return (*(checksum(part) for part in parts), int(random_state), *further)


def read_weights(
    sample_weight: object, labels: Labels, groups: object = None, random_rows: object = None
) -> RowWeights:
    """Check the sample weights, the groups and the marks of random rows.

    An error if all labeled rows of a class have zero weight.
    """
    n_rows = labels.codes.size
    if sample_weight is None:
        weights = np.ones(n_rows)
    else:
        like = np.broadcast_to(0.0, (n_rows, 1))
        weights = np.asarray(_check_sample_weight(_numeric(on_host(sample_weight)), like, ensure_non_negative=True))
    _check_every_class_counts(labels, weights)
    return RowWeights(
        weights,
        sample_weight is None,
        None if groups is None else read_groups(groups, n_rows),
        None if random_rows is None else _read_random_rows(random_rows, n_rows),
    )


def _read_random_rows(random_rows: object, n_rows: int) -> BoolArray:
    given = np.asarray(on_host(random_rows))
    if given.dtype != bool or given.shape != (n_rows,):
        raise ValueError(
            f"random_rows must say True or False for each of the {n_rows} rows, but has the type {given.dtype} and the shape "
            f"{given.shape}; mark the rows of suggest with random_rows[found.rows] = found.random."
        )
    return given


def _numeric(sample_weight: object) -> Array:
    try:
        return np.asarray(sample_weight, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}.") from error


def _check_every_class_counts(labels: Labels, weights: Array) -> None:
    rows = labels.labeled
    counts = np.bincount(labels.codes[rows], weights=weights[rows], minlength=labels.n_classes)
    if (counts > 0.0).sum() < 2:
        raise ValueError("After removing rows of zero sample_weight, labels of fewer than 2 classes are left.")
    if (counts == 0.0).any():
        lost = labels.classes[counts == 0.0].tolist()[0]
        raise ValueError(
            f"All labeled rows of class {lost!r} have zero sample_weight; give one of them weight or drop the class."
        )


def present_in_training(schema: InputSchema, matrices: list[Matrix], kernel: object) -> list[BoolArray]:
    """Per view, which training rows have it; in a precomputed kernel, columns of rows without the view do not matter."""
    kernels = per_view(kernel, schema.view_names, "kernel")
    given = tuple(isinstance(k, str) and k == "precomputed" for k in kernels)
    unused = tuple(
        absent_rows(m) if precomputed and m.shape[0] == m.shape[1] else None
        for m, precomputed in zip(matrices, given, strict=True)
    )
    return RowCheck(schema.view_names, schema.columns_by_view, unused, given).present(0, matrices)
