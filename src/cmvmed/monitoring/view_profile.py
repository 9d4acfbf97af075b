"""The rows of a view as a few numbers each, on which new rows are compared with training rows.

A row becomes its coordinates along the leading principal directions of the training rows, its distance from the space
that they span, and its size: the largest deviation of a column from its mean, in standard deviations, or for views
whose rows are scaled to unit length the length before. Nothing is clipped, so that values out of all proportion remain
so, and a column that was constant in training has a scale too. Each number is divided by its standard deviation.
"""

from dataclasses import dataclass, replace

import numpy as np

from cmvmed.numerics.linalg import eigen_psd, is_sparse
from cmvmed.numerics.types import Array, IntArray, Matrix, Single
from cmvmed.views.scaling import Scaling, fit_scaling

CHUNK_ROWS = 512  # rows that are centered and scaled at a time
LARGEST = 1e100  # numbers are cut off here, so that their squares are finite
SMALLEST = 1e-9  # standard deviations below this part of the mean are rounding
ROUNDING = 1e-5  # part of a squared length that may be lost to the single precision of the directions


@dataclass(frozen=True)
class ViewProfile:
    """How rows of a view become features; see the module."""

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
