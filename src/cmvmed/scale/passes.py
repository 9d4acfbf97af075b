"""One pass over the rows, a chunk at a time: functions of chunks that can be sent to where the rows are stored.

The sums are of kernel values, in double precision, and become those of features afterwards: single precision would be magnified.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from cmvmed.core.consensus import divergence, entropy, pool, positive_probability, soft_labels
from cmvmed.core.objective import ConsensusSums
from cmvmed.core.surrogates import log_partition
from cmvmed.data.array_api import ArrayPlace
from cmvmed.data.sources.array_rows import ArrayFunction
from cmvmed.data.sources.base import FLOAT_BYTES, RowSource, Sums, add, checked_sums
from cmvmed.data.validation import RowCheck
from cmvmed.numerics.kernel_expansions import blocks_of_rows
from cmvmed.numerics.nystroem import Landmarks
from cmvmed.numerics.types import Array, IntArray, Matrix
from cmvmed.scale.array_passes import ArraySweep, ArrayViews
from cmvmed.views.view_rows import ViewPreprocessor

SWEPT_ROWS = 256  # at a time, whose kernel values stay in the cache
CURVATURE = 0.25  # of Bohning's bound, whose constant curvature makes sums over rows sufficient


@dataclass(frozen=True)
class StreamedRows:
    """All rows of a fit, where they are stored."""

    source: RowSource
    check: RowCheck
    labeled: IntArray  # numbers of the labeled rows, ascending
    weights: Array | None = None  # (n,) sample weights; None: all 1

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabeled rows that have weight."""
        if self.weights is None:
            return int(self.source.n_rows - self.labeled.size)
        return int(np.count_nonzero(self.weights) - np.count_nonzero(self.weights[self.labeled]))

    @property
    def unlabeled_weight(self) -> float:
        """Sum of their weights."""
        if self.weights is None:
            return float(self.n_unlabeled)
        return float(self.weights.sum() - self.weights[self.labeled].sum())


@dataclass(frozen=True)
class ChunkView:
    """How a view of a chunk becomes kernel values."""

    preprocessor: ViewPreprocessor
    landmarks: Landmarks


@dataclass(frozen=True)
class UnlabeledRows:
    """The unlabeled rows of a chunk, with the weights that they have."""

    check: RowCheck
    labeled: IntArray
    weights: Array | None

    def weights_in(self, first_row: int, n: int) -> Array:
        """Weights (n,) of all rows of a chunk, zero for labeled ones."""
        w = np.ones(n) if self.weights is None else self.weights[first_row : first_row + n].copy()
        begin, end = np.searchsorted(self.labeled, [first_row, first_row + n])
        w[self.labeled[begin:end] - first_row] = 0.0
        return w

    def rows(self, first_row: int, matrices: Sequence[Matrix]) -> tuple[Array, list[IntArray], list[IntArray]]:
        """Weights (u,) of the rows that count, and per view which of them have it and where these are in the chunk."""
        w = self.weights_in(first_row, matrices[0].shape[0])
        counting = np.flatnonzero(w > 0.0)
        present = [seen[counting] for seen in self.check.present(first_row, matrices)]
        having = [np.flatnonzero(seen) for seen in present]
        return w[counting], having, [counting[index] for index in having]


@dataclass(frozen=True)
class SweepPass:
    """One sweep's sums: per view Σ_U w (q - σ(m)) k(x), (p + 1, F); then those of :class:`SweepSums`."""

    unlabeled: UnlabeledRows
    views: tuple[ChunkView, ...]
    coefficients: tuple[Array, ...]  # per view (p + 1, F), of its kernel functions
    view_weights: Array  # (V,)
    offset: Array  # (F,)
    temperature: float

    def __call__(self, first_row: int, matrices: list[Matrix]) -> Sums:
        """The sums over a chunk, some rows at a time."""
        total: Sums | None = None
        for rows in blocks_of_rows(matrices[0].shape[0], SWEPT_ROWS):
            total = add(total, self._block(first_row + rows.start, [matrix[rows] for matrix in matrices]))
        return checked_sums(total)

    def _block(self, first_row: int, matrices: list[Matrix]) -> Sums:
        w, having, places = self.unlabeled.rows(first_row, matrices)
        values = [
            view.landmarks.values(view.preprocessor.transform(matrix[where]))
            for view, matrix, where in zip(self.views, matrices, places, strict=True)
        ]
        means = [own.scores(coefficients) for own, coefficients in zip(values, self.coefficients, strict=True)]
        scores, coverage = pool(means, having, self.view_weights, w.size)
        q = soft_labels(scores, self.offset, self.temperature)
        p, mass, H = positive_probability(q), w * coverage, entropy(q)
        residuals, energies, divergences = [], [], []
        for own, m, index in zip(values, means, having, strict=True):
            weight = w[index][:, None]
            residuals.append(own.sums(weight * (p[index] - expit(m))))
            energies.append(float((weight * (log_partition(m) - (p[index] - 0.5) * m)).sum()))
            divergences.append(float(w[index] @ divergence(q[index], H[index], m, self.offset, self.temperature)))
        masses = np.array([w[index].sum() for index in having])
        scalars = np.array([mass.sum(), mass @ H])
        return (
            *residuals,
            np.array(energies),
            np.array(divergences),
            masses,
            mass @ q,
            (mass[:, None] * q).T @ q,
            scalars,
        )

    def on_device(self, place: ArrayPlace) -> ArrayFunction | None:
        """The same by another library, if it can compute the kernels."""
        preprocessors, landmarks = [view.preprocessor for view in self.views], [view.landmarks for view in self.views]
        views = ArrayViews.of(preprocessors, landmarks, self.unlabeled.weights_in, place)
        if views is None:
            return None
        coefficients = [place.put(own) for own in self.coefficients]
        return ArraySweep(views, coefficients, self.view_weights.tolist(), place.put(self.offset), self.temperature)

    @property
    def bytes_per_row(self) -> int:
        """Kernel values of all views."""
        return FLOAT_BYTES * sum(view.landmarks.n_landmarks + 1 for view in self.views)


@dataclass(frozen=True)
class SweepSums:
    """The sums of a sweep over all rows, named."""

    residuals: tuple[Array, ...]  # per view (p + 1, F)
    energies: Array  # (V,) Σ_U w (A(m) - (q - ½)m), summed over functions
    divergences: Array  # (V,) Σ_U w KL(q ‖ p_i) over the rows that have the view
    masses: Array  # (V,) Σ_U w over them
    shares: Array  # (K,) Σ_U ψw q
    products: Array  # (K, K) Σ_U ψw q qᵀ
    mass: float  # Σ_U ψw
    entropy: float  # Σ_U ψw H(q)

    @classmethod
    def read(cls, sums: Sums) -> "SweepSums":
        """From what :class:`SweepPass` returns."""
        *residuals, energies, divergences, masses, shares, products, scalars = sums
        scalar = (float(value) for value in scalars)
        return cls(tuple(residuals), energies, divergences, masses, shares, products, *scalar)

    @property
    def kl_by_view(self) -> tuple[float, ...]:
        """Per view the mean of KL(q ‖ p_i), 0 if no row has it."""
        return tuple(
            float(kl / mass) if mass > 0.0 else 0.0 for kl, mass in zip(self.divergences, self.masses, strict=True)
        )

    @property
    def consensus(self) -> ConsensusSums:
        """Those that belong to the consensus."""
        return ConsensusSums(self.mass, self.entropy, self.shares)
