"""What a fitted model keeps of its training rows to compare new rows with them: each row as a few numbers.

A row becomes, for each view, its coordinates along the leading principal directions of the training rows, its distance
from the space that they span, and its size: the largest deviation of a column from its mean, in standard deviations, or
for views whose rows are scaled to unit length the length before. Nothing is clipped, so that values out of all proportion
remain so, and a column that was constant in training has a scale too. Each number is divided by its standard deviation.

The training rows are drawn into three parts. The first gives these features; of the others the features are kept.
Nothing was fitted to them, so that new rows of the same distribution differ from them by chance alone. Tests of batches
learn class means and covariances from the second part, and what healthy batches are like from the third.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from cmvmed.numerics.linalg import eigen_psd, is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix, Single
from cmvmed.views.preprocessing import Scaling, fit_scaling
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_rows import ViewPreprocessor

N_PARTS = 3
MIN_PART_ROWS = 10  # with fewer rows, all are used for everything
MIN_VIEW_ROWS = 2  # rows with a view that its features need
CHUNK_ROWS = 512  # rows that are centered and scaled at a time
LARGEST = 1e100  # numbers are cut off here, so that their squares are finite
SMALLEST = 1e-9  # standard deviations below this part of the mean are rounding
ROUNDING = 1e-5  # part of a squared length that may be lost to the single precision of the directions


@dataclass(frozen=True)
class ViewProfile:
    """How rows of a view become features."""

    scaling: Scaling
    center: Array  # (d,) mean of the scaled rows
    directions: Single  # (d, q) orthonormal
    mean: Array  # (q + 2,) of the features
    deviation: Array  # (q + 2,)
    columns: IntArray | None = None  # of the rows that are used, all if None

    @property
    def n_features(self) -> int:
        """q + 2."""
        return int(self.mean.size)

    def features(self, rows: Matrix) -> Array:
        """Features (n, q + 2) of rows without gaps."""
        rows = rows if self.columns is None else rows[:, self.columns]
        parts = [
            _raw_features(rows[start : start + CHUNK_ROWS], self.scaling, self.center, self.directions)
            for start in range(0, rows.shape[0], CHUNK_ROWS)
        ]
        raw = np.concatenate(parts) if parts else np.zeros((0, self.n_features))
        return np.asarray((raw - self.mean) / self.deviation)

    @property
    def column_means(self) -> Array | None:
        """Mean of each column (d,), None if rows are scaled to unit length."""
        return None if self.scaling.mean is None else self.scaling.size * self.scaling.mean

    @property
    def column_deviations(self) -> Array | None:
        """Standard deviation of each column (d,), None if rows are scaled to unit length."""
        return None if self.scaling.factor is None else self.scaling.size / self.scaling.factor


@dataclass(frozen=True)
class Reference:
    """Features of training rows; those of all views stand side by side."""

    profiles: tuple[ViewProfile | None, ...]  # None for a view that too few training rows have
    features: Single  # (n, f), NaN where a row lacks the view
    probabilities: Single  # (n, K) of the classes of these rows
    n_second: int  # rows of the second part, which come first

    @property
    def second(self) -> slice:
        """The rows to learn class means and covariances from; all if there are few."""
        return slice(self.n_second or None)

    @property
    def third(self) -> slice:
        """The rows that healthy batches are drawn from."""
        return slice(self.n_second, None)

    @property
    def slices(self) -> list[slice]:
        """The columns of each view's features."""
        return feature_slices(self.profiles)


def feature_slices(profiles: Sequence[ViewProfile | None]) -> list[slice]:
    """The columns of each view among the features of all views."""
    ends = np.cumsum([0] + [0 if p is None else p.n_features for p in profiles]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def bounded(features: Array) -> Array:
    """asinh, about the identity near zero and a logarithm far away, so that a single row does not dominate a mean."""
    return np.asarray(np.arcsinh(features))


def features_of(
    profiles: Sequence[ViewProfile | None],
    preprocessors: Sequence[ViewPreprocessor],
    matrices: Sequence[Matrix],
    present: Sequence[BoolArray],
) -> Array:
    """Features (n, f) of rows given by view, with which rows have which view; NaN for the others."""
    features = np.full((matrices[0].shape[0], feature_slices(profiles)[-1].stop), np.nan)
    for i, (profile, columns) in enumerate(zip(profiles, feature_slices(profiles), strict=True)):
        if profile is not None:
            rows = np.flatnonzero(present[i])
            features[rows, columns] = profile.features(preprocessors[i].complete(matrices[i][rows]))
    return features


@dataclass(frozen=True)
class ReferenceRows:
    """The training rows that a reference is made of when it is first needed: computing it takes longer than drawing them."""

    learned: tuple[Matrix, ...]  # per view, the rows that its features are learned from
    numbers: tuple[IntArray, ...]  # per view, which training rows those are
    kept: tuple[Matrix, ...]  # per view, the rows of the second and third part
    present: tuple[BoolArray, ...]  # per view, which of these have it
    probabilities: Single  # (n, K) of the classes of these rows
    n_second: int
    n_directions: int  # principal directions of each view

    def build(self, preprocessors: Sequence[ViewPreprocessor]) -> Reference:
        """Learn the features of each view, whose gaps are filled by its preprocessor, and compute those of the kept rows."""
        profiles = []
        for matrix, numbers, preprocessor in zip(self.learned, self.numbers, preprocessors, strict=True):
            columns, unit = _columns_of_kernel(preprocessor, numbers), preprocessor.scaling.kind == "unit"
            complete, enough = preprocessor.complete(matrix), numbers.size >= MIN_VIEW_ROWS
            profiles.append(fit_profile(complete, self.n_directions, unit=unit, columns=columns) if enough else None)
        features = features_of(profiles, preprocessors, self.kept, self.present)
        return Reference(tuple(profiles), features.astype(np.float32), self.probabilities, self.n_second)


def reference_rows(training: TrainingData, probabilities: Array, max_rows: int, n_directions: int) -> ReferenceRows:
    """Draw the three parts of a fit's rows in memory; those without weight or without any view have no part in it.

    Parameters
    ----------
    probabilities : (n, K), of the classes of each row
    max_rows : rows of each of the three parts
    n_directions : principal directions of each view
    """
    matrices, present, partition = training.matrices, training.present, training.partition
    rows = partition.rows[partition.weights[partition.rows] > 0.0]
    first, second, third = _three_parts(rows, max_rows)
    numbers = []
    for has in present:
        own = first[has[first]]
        numbers.append(own if own.size >= MIN_VIEW_ROWS else rows[has[rows]][:max_rows])
    kept = np.concatenate([second, third])
    return ReferenceRows(
        learned=tuple(matrix[own] for matrix, own in zip(matrices, numbers, strict=True)),
        numbers=tuple(numbers),
        kept=tuple(matrix[kept] for matrix in matrices),
        present=tuple(has[kept] for has in present),
        probabilities=probabilities[kept].astype(np.float32),
        n_second=second.size,
        n_directions=n_directions,
    )


def _columns_of_kernel(preprocessor: ViewPreprocessor, rows: IntArray) -> IntArray | None:
    """The columns of a given kernel that belong to some rows; None for rows of features, which have no such columns.

    Kept rows are then compared, like new ones, with rows that they are not among.
    """
    return None if preprocessor.columns is None else np.flatnonzero(np.isin(preprocessor.columns, rows))


def _three_parts(rows: IntArray, max_rows: int) -> tuple[IntArray, IntArray, IntArray]:
    """Three random parts of equal size, each of at most ``max_rows``; if rows are few, all are in the first and third."""
    order = np.random.default_rng(0).permutation(rows)
    size = min(rows.size // N_PARTS, max_rows)
    if size < MIN_PART_ROWS:
        return order, order[:0], order
    return order[:size], order[size : 2 * size], order[2 * size : 3 * size]


def fit_profile(rows: Matrix, n_directions: int, *, unit: bool = False, columns: IntArray | None = None) -> ViewProfile:
    """Learn the features from training rows (n, d) without gaps; ``unit`` if rows are scaled to unit length."""
    rows = rows if columns is None else rows[:, columns]
    scaling = Scaling("unit") if unit else _standard_scaling(rows)
    scaled = scaling.apply(rows)
    center = np.asarray(scaled.mean(axis=0)).ravel()
    directions = _principal_directions(scaled, center, n_directions).astype(np.float32)
    raw = _raw_features(rows, scaling, center, directions)
    mean, deviation = raw.mean(axis=0), raw.std(axis=0)
    rounding = deviation <= SMALLEST * np.abs(mean)
    deviation = np.where(rounding, np.where(mean == 0.0, 1.0, np.abs(mean)), deviation)
    return ViewProfile(scaling, center, directions, mean, deviation, columns)


def _standard_scaling(rows: Matrix) -> Scaling:
    """Standard deviations of the columns; a constant column gets its magnitude, one of zeros that of the others."""
    scaling = fit_scaling("standard", rows, np.ones(rows.shape[0]), clip=LARGEST, sparse_density=0.0)
    mean, factor = np.abs(np.asarray(scaling.mean)), np.asarray(scaling.factor)
    varies = factor > 0.0
    typical = float(np.median(factor[varies])) if varies.any() else 1.0
    constant = np.divide(1.0, mean, out=np.full_like(factor, typical), where=mean > 0.0)
    return replace(scaling, factor=np.where(varies, factor, constant))


def _principal_directions(scaled: Matrix, center: Array, n_directions: int) -> Array:
    """The leading eigenvectors (d, q) of the covariance, from those of the Gram matrix G = Z Zᵀ of centered rows.

    If G e = ω e, then Zᵀe/√ω is one of Zᵀ Z; the entries of e add up to zero, so that Z need not be centered.
    """
    products = scaled @ scaled.T
    G = np.asarray(products.toarray() if is_sparse(products) else products)
    G = G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean()
    omega, vectors = eigen_psd(G)
    n = min(n_directions, scaled.shape[0] // 2, scaled.shape[1])
    kept = np.argsort(omega)[::-1][:n]
    kept = kept[omega[kept] > SMALLEST * omega.sum()]
    e = vectors[:, kept]
    return np.asarray((scaled.T @ e - np.outer(center, e.sum(axis=0))) / np.sqrt(omega[kept]))


def _raw_features(rows: Matrix, scaling: Scaling, center: Array, directions: Single) -> Array:
    """Coordinates, distance from the space of the directions, and size, (n, q + 2)."""
    scaled = scaling.apply(rows)
    if scaling.kind == "unit":
        size = np.asarray(
            rows.multiply(scaled).sum(axis=1) if is_sparse(rows) else np.einsum("ij,ij->i", rows, scaled)
        ).ravel()
    else:
        size = np.abs(scaled).max(axis=1, initial=0.0) * np.sqrt(rows.shape[1])
    coordinates = scaled @ directions - center @ directions
    squares = scaled.multiply(scaled).sum(axis=1) if is_sparse(scaled) else (scaled * scaled).sum(axis=1)
    lengths = np.asarray(squares).ravel() - 2.0 * (scaled @ center) + center @ center
    outside = lengths - (coordinates * coordinates).sum(axis=1)
    outside = np.sqrt(np.where(outside > ROUNDING * lengths, outside, 0.0))
    return np.asarray(np.clip(np.column_stack([coordinates, outside, size]), -LARGEST, LARGEST))
