"""A view of a fit: kernel blocks or features of its labeled and unlabeled rows, taken from those of all its rows.

Kernels, landmarks and features are computed for all rows of the view, whatever their labels, and
kept in a :class:`cmvmed.views.row_cache.RowCache`. Which rows are labeled only decides which lines are taken from them.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from cmvmed.core.full_kernel import CholeskyView, KernelBlocks, SpectralView
from cmvmed.core.low_rank import Features, LowRankView, gather_features
from cmvmed.numerics.nystroem import Basis, choose_landmarks, fit_basis
from cmvmed.numerics.types import Array, IntArray
from cmvmed.views.row_cache import RowCache
from cmvmed.views.view_rows import ViewData

FEATURE_ROWS = 512  # rows whose features are computed at a time


@dataclass(frozen=True)
class KernelOfRows:
    """A kernel of all rows, of which some are labeled and some unlabeled."""

    name: str  # of the view, for errors
    key: Hashable  # of the kernel in the cache
    compute: Callable[[], Array]  # the kernel (m, m), bias included
    weights: Array  # (m,), sample weights
    place_L: IntArray  # which rows are the labeled ones
    place_U: IntArray  # which rows are the unlabeled ones
    prior_variance: float  # σ²
    cache: RowCache

    def exact_model(self, weights_U: Array, *, shared_curvature: bool) -> SpectralView | CholeskyView:
        """The view with its kernel held whole; ``weights_U`` (u,) are those of its unlabeled rows."""
        K, L, U = self.cache.get(("kernel", self.key), self.compute), self.place_L, self.place_U
        K_L, K_U = K.take(L, axis=0), K.take(U, axis=0)
        LL, UL, UU = K_L.take(L, axis=1), K_U.take(L, axis=1), K_U.take(U, axis=1)
        blocks = KernelBlocks(LL, UL, UU, weights_U, self.prior_variance, self.name)
        return SpectralView(blocks) if shared_curvature else CholeskyView(blocks)


@dataclass(frozen=True)
class FitView:
    """One view of a fit."""

    data: ViewData  # the labeled rows, then the unlabeled ones
    whole: ViewData  # all rows in the order of the table, whatever their labels
    order: IntArray  # where each row of ``data`` is in ``whole``
    weights: Array  # (m,), sample weights of the rows of ``whole``
    cache: RowCache

    @property
    def rows_L(self) -> IntArray:
        """Its rows of the labeled block."""
        return self.data.rows_L

    @property
    def rows_U(self) -> IntArray:
        """Its rows of the unlabeled block."""
        return self.data.rows_U

    @property
    def C(self) -> float:
        """Weight of the hinge loss."""
        return self.data.C

    @property
    def place_L(self) -> IntArray:
        """Where the labeled rows are in ``whole``."""
        return self.order[: self.rows_L.size]

    @property
    def place_U(self) -> IntArray:
        """Where the unlabeled rows are in ``whole``."""
        return self.order[self.rows_L.size :]

    def exact_model(self, weights_U: Array, *, shared_curvature: bool) -> SpectralView | CholeskyView:
        """The view with its kernel held whole; ``weights_U`` are those of the unlabeled block."""
        whole, s = self.whole, self.whole.settings

        def compute() -> Array:
            return whole.kernel.gram(whole.train, np.arange(whole.train.shape[0])) + whole.bias

        rows = KernelOfRows(
            s.name, s.key, compute, self.weights, self.place_L, self.place_U, s.prior_variance, self.cache
        )
        return rows.exact_model(weights_U[self.rows_U], shared_curvature=shared_curvature)

    def basis(self, n_components: int, seed: int, *, rounds: int, candidates: int) -> Basis:
        """Low-rank features with some of the rows as landmarks."""

        def compute() -> Basis:
            rows, rng = self.whole.training_rows, np.random.default_rng(seed)
            chosen = choose_landmarks(rows, self.weights, n_components, rng, rounds=rounds, candidates=candidates)
            return fit_basis(rows, chosen, self.whole.bias)

        return self.cache.get(("basis", self.whole.settings.key, n_components, seed), compute)

    def low_rank_model(self, basis: Basis, weights_U: Array) -> LowRankView:
        """The view through low-rank features; G of the unlabeled rows is that of all less that of the others."""
        settings, train = self.whole.settings, self.whole.train
        features = self.cache.get(("features", settings.key, basis.n_landmarks), lambda: self._features(basis))
        Z_L, weights_L = basis.features(train[self.place_L]), self.weights[self.place_L]
        G = features.G - Z_L.T @ (weights_L[:, None] * Z_L)
        return LowRankView(
            Z_L,
            Features(features.Z, G),
            self.place_U,
            weights_U[self.rows_U],
            settings.prior_variance,
            settings.name,
        )

    def _features(self, basis: Basis) -> Features:
        train, n = self.whole.train, self.weights.size
        parts = (basis.features(train[start : start + FEATURE_ROWS]) for start in range(0, n, FEATURE_ROWS))
        return gather_features(parts, self.weights, basis.rank, single=n > self.whole.settings.double_precision_rows)
