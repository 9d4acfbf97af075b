"""Nyström features: a kernel approximated by p landmark rows, K ≈ Z Zᵀ with features z(x) of rank r <= p + 1.

With K_ZZ = RᵀR the kernel of the landmarks and k(x) the kernel between x and them,

    z(x) = Tᵀ (k(x), 1),   T = [R⁻¹, 0; 0, √β],   z(x)ᵀz(x') = k(x)ᵀ K_ZZ⁻¹ k(x') + β,

where β is the constant that a Gaussian bias adds to the kernel; landmarks that others explain, up to rounding, have no
part in R. The approximation is exact between landmarks, and between a landmark and any row. The part of k(x, x) that it
misses, k(x, x) + β - ‖z(x)‖² >= 0, is its error in x.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cmvmed.numerics.kernel_expansions import BLOCK_ROWS, FormedRows, can_sum, extended_centers
from cmvmed.numerics.kernels import Kernel, Mixture
from cmvmed.numerics.linalg import is_sparse, whitening
from cmvmed.numerics.types import Array, IntArray, Matrix

RANK_TOLERANCE = 1e-10  # what is left of K_ZZ below this share of its trace is rounding
ROUNDS = 10  # in which landmarks are drawn, each with those before it known
CANDIDATES = 20  # rows for each landmark, among which it is drawn


@dataclass(frozen=True)
class Landmarks:
    """Rows that others are compared with."""

    kernel: Kernel
    landmarks: Matrix  # (p, d); for a precomputed kernel (p, n_train), the landmarks' lines of it
    columns: IntArray  # (p,) which columns of a precomputed kernel are the landmarks; 0, 1, ... else

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks, p."""
        return int(self.columns.size)

    def raw(self, points: Matrix, weights: Array | None = None) -> Array:
        """√w (k(x), 1) of each row, (n, p + 1); ``weights`` (n,) are 1 if left out."""
        n = points.shape[0]
        weights = np.ones(n) if weights is None else weights
        values = np.empty((n, self.n_landmarks + 1))
        mixture = self._gaussian_mixture(points)
        if mixture is not None:
            for start in range(0, n, BLOCK_ROWS):
                rows = slice(start, start + BLOCK_ROWS)
                self._compare(mixture, points[rows], weights[rows], values[rows, :-1])
        else:
            values[:, :-1] = self.kernel.cross(points, self.landmarks, self.columns)
            values[:, :-1] *= np.sqrt(weights)[:, None]
        values[:, -1] = np.sqrt(weights)
        return values

    def _gaussian_mixture(self, points: Matrix) -> Mixture | None:
        """The kernel's formula if it has a Gaussian part and all rows are dense."""
        mixture, has_sparse = self.kernel.mixture, is_sparse(self.landmarks) or is_sparse(points)
        return mixture if mixture is not None and mixture.gaussian and not has_sparse else None

    def _compare(self, mixture: Mixture, points: Array, weights: Array, values: Array) -> None:
        """Write √w k(x) of dense rows (n, d) into ``values`` (n, p): one product and one exponential.

        √w g exp(-γ‖x - z‖²) = exp(2γ x·z - γ‖z‖² - γ‖x‖² + log g + ½ log w) for the factor g of the Gaussian part.
        """
        gamma, root = self.kernel.gamma, np.sqrt(weights)[:, None]
        products = (root * points) @ self.landmarks.T
        exponents = products * (2.0 * gamma / root)
        exponents += self._of_landmarks + np.log(mixture.gaussian)
        exponents += np.log(root) - gamma * np.einsum("ij,ij->i", points, points)[:, None]
        np.exp(exponents, out=values)
        if mixture.linear:
            products *= mixture.linear
            values += products

    def values(self, points: Matrix) -> "LandmarkValues":
        """(k(x), 1) of each row in parts, which is faster where only products with them are needed."""
        mixture = self._gaussian_mixture(points)
        if mixture is None or not can_sum(self.kernel, self.landmarks):
            return LandmarkValues(self, self.kernel.cross(points, self.landmarks, self.columns), None, 0.0)
        values = np.asarray(FormedRows(points).gaussian_kernel(self.kernel.gamma, self._extended), dtype=np.float64)
        return LandmarkValues(self, values, points if mixture.linear else None, mixture.linear)

    @cached_property
    def _extended(self) -> Array:
        """The landmarks as :class:`GaussianSum` needs them, with the factor of the Gaussian part, (d + 2, p)."""
        extended = extended_centers(self.kernel.gamma, self.landmarks)
        if self.kernel.mixture is not None:
            extended[-1] += np.log(self.kernel.mixture.gaussian)
        return extended

    @cached_property
    def _of_landmarks(self) -> Array:
        """-γ‖z‖² of each landmark, (p,)."""
        return np.asarray(-self.kernel.gamma * np.einsum("ij,ij->i", self.landmarks, self.landmarks))


@dataclass(frozen=True)
class LandmarkValues:
    """(k(x), 1) of some rows: ``kernel`` (n, p), and in addition c x·z with the landmarks if ``points`` are given."""

    landmarks: Landmarks
    kernel: Array
    points: Array | None  # (n, d)
    linear: float  # c

    def scores(self, coefficients: Array) -> Array:
        """Their products with coefficients (p + 1, F), (n, F)."""
        scores = self.kernel @ coefficients[:-1] + coefficients[-1]
        if self.points is not None:
            scores += self.points @ (self.linear * (self.landmarks.landmarks.T @ coefficients[:-1]))
        return np.asarray(scores)

    def sums(self, values: Array) -> Array:
        """Σ values (k(x), 1) over the rows, (p + 1, F), for values (n, F)."""
        sums = self.kernel.T @ values
        if self.points is not None:
            sums += self.linear * (self.landmarks.landmarks @ (self.points.T @ values))
        return np.vstack([sums, values.sum(axis=0)])


@dataclass(frozen=True)
class Basis(Landmarks):
    """The map from rows of a view, scaled, to features: z(x) = Tᵀ (k(x), 1)."""

    transform: Array  # (p + 1, r), T

    @property
    def rank(self) -> int:
        """Number of features, r."""
        return int(self.transform.shape[1])

    @property
    def landmark_set(self) -> Landmarks:
        """The landmarks alone, all that a pass over rows needs."""
        return Landmarks(self.kernel, self.landmarks, self.columns)

    def rotated(self, rotation: Array) -> "Basis":
        """The basis of the features z(x)ᵀ V for V (r, r')."""
        return replace(self, transform=self.transform @ rotation)

    def features(self, points: Matrix) -> Array:
        """z(x) of each row, (n, r)."""
        return self.raw(points) @ self.transform


@dataclass(frozen=True)
class TrainingRows:
    """A view's training rows, scaled, as its kernel sees them; a precomputed kernel is their square matrix."""

    kernel: Kernel
    train: Matrix

    def cross(self, rows: IntArray, columns: IntArray) -> Array:
        """Kernel between two sets of the rows."""
        return self.kernel.cross(self.train[rows], self.train, columns)

    def diagonal(self, rows: IntArray) -> Array:
        """k(x, x) of the given rows."""
        if self.kernel.kind == "precomputed":
            return np.asarray(np.diagonal(self.train)[rows])
        return self.kernel.diagonal(self.train[rows])


def fit_basis(rows: TrainingRows, landmarks: IntArray, bias: float) -> Basis:
    """The whitened features of the given landmark rows, and a constant one for the bias β."""
    R_inverse = whitening(rows.kernel.gram(rows.train, landmarks), RANK_TOLERANCE)
    p, r = R_inverse.shape
    transform = np.zeros((p + 1, r + (bias > 0.0)))
    transform[:p, :r] = R_inverse
    if bias > 0.0:
        transform[p, r] = np.sqrt(bias)
    columns = landmarks if rows.kernel.kind == "precomputed" else np.arange(p)
    return Basis(rows.kernel, rows.train[landmarks], columns, transform)


def residual(diagonal: Array, kept: Array) -> float:
    """The share of the kernel that is lost: 1 - Σ‖z(x)‖² / Σ(k(x, x) + β), given both (n,) of some rows."""
    whole = float(diagonal.sum())
    return max(whole - float(kept.sum()), 0.0) / whole if whole > 0.0 else 0.0


def choose_landmarks(rows: TrainingRows, weights: Array, n_components: int, rng: np.random.Generator) -> IntArray:
    """Numbers of the landmark rows, at most ``n_components``, ascending.

    They are drawn in rounds among some candidates, each as often as its weight says, and rows far from those already
    chosen rather than others, as in k-means++.

    Parameters
    ----------
    weights : (n,), sample weight of each row of the view
    """
    every = np.flatnonzero(weights > 0.0)
    if every.size <= n_components:
        return every
    possible = weighted_sample(every, weights[every], CANDIDATES * n_components, rng)
    return _kmeans_pp(rows, possible, weights[possible], n_components, rng)


def weighted_sample(rows: IntArray, mass: Array, n: int, rng: np.random.Generator) -> IntArray:
    """At most ``n`` of the rows, drawn without replacement with probabilities in the ratio of ``mass``, in their order."""
    possible = mass > 0.0
    if possible.sum() <= n:
        return rows[possible]
    chosen = rng.choice(rows.size, n, replace=False, p=mass / mass.sum())
    return rows[np.sort(chosen)]


def _kmeans_pp(rows: TrainingRows, possible: IntArray, mass: Array, n: int, rng: np.random.Generator) -> IntArray:
    """Rows drawn in rounds, with probabilities in the ratio of their squared distance to the nearest landmark so far."""
    own = rows.diagonal(possible)
    distance = np.full(possible.size, np.inf)
    chosen, batch = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    for left in range(ROUNDS, 0, -1):
        if batch.size:
            to_batch = own[:, None] + rows.diagonal(batch) - 2.0 * rows.cross(possible, batch)
            distance = np.minimum(distance, np.maximum(to_batch.min(axis=1), 0.0))
        distance[np.isin(possible, batch)] = 0.0
        likely = mass * (distance if np.isfinite(distance).all() else 1.0)
        batch = weighted_sample(possible, likely, -(-(n - chosen.size) // left), rng)
        chosen = np.concatenate([chosen, batch])
    return np.sort(chosen)
