"""The problem of a fit from its views: kernel blocks or features of the labeled and unlabeled rows of each.

Kernels, landmarks and features are computed for all rows of a view, whatever their labels, and
kept in a :class:`cmvmed.views.row_cache.RowCache`. Labels only decide which of their lines are taken.
"""

from collections.abc import Sequence

import numpy as np

from cmvmed.core.full_kernel import CholeskyView, KernelBlocks, SpectralView
from cmvmed.core.low_rank import Features, LowRankView, gather_features
from cmvmed.core.posterior import ViewModel
from cmvmed.core.problem import Problem
from cmvmed.numerics.nystroem import Basis, choose_landmarks, fit_basis
from cmvmed.numerics.threads import Mapper
from cmvmed.numerics.types import Array, IntArray
from cmvmed.views.row_cache import RowCache
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_rows import ViewData

FEATURE_ROWS = 512  # rows whose features are computed at a time
DOUBLE_PRECISION_ROWS = 2000  # up to which features are in double precision; single precision is right to about 1e-6


def build_problem(
    training: TrainingData,
    views: Sequence[ViewData],
    bases: Sequence[Basis] | None = None,
    *,
    shared_curvature: bool,
    map_views: Mapper = map,
) -> Problem:
    """Kernel blocks and factorizations of all views.

    Parameters
    ----------
    bases : per view, the features that approximate its kernel; None for the kernel itself
    shared_curvature : one eigendecomposition per view (constant curvature) instead of a Cholesky factorization per sweep
    """
    partition, cache = training.partition, training.cache

    def model(i: int) -> ViewModel:
        if bases is not None:
            return low_rank_model(views[i], bases[i], cache)
        return exact_model(views[i], cache, shared_curvature=shared_curvature)

    return Problem(
        models=tuple(map_views(model, range(len(views)))),
        rows_L=tuple(view.rows_in(partition.L) for view in views),
        rows_U=tuple(view.rows_in(partition.U) for view in views),
        Y=training.signed_labels(partition.block_L),
        box=tuple(view.settings.C * partition.weights[partition.block_L] for view in views),
        weights_U=partition.weights[partition.block_U],
        n_classes=training.labels.n_classes,
    )


def exact_model(view: ViewData, cache: RowCache, *, shared_curvature: bool) -> SpectralView | CholeskyView:
    """A view with its kernel held whole."""
    s, every = view.settings, np.arange(view.rows.size)
    K = cache.get(("kernel", s.key), lambda: view.kernel_of(every), once=True)
    blocks = kernel_blocks(K, view.L, view.U, view.weights[view.U], s.prior_variance, s.name)
    return SpectralView(blocks) if shared_curvature else CholeskyView(blocks)


def kernel_blocks(
    K: Array, L: IntArray, U: IntArray, weights_U: Array, prior_variance: float, view: str
) -> KernelBlocks:
    """The blocks of a kernel (m, m), bias included, whose rows L are labeled and U unlabeled."""
    K_L, K_U = K.take(L, axis=0), K.take(U, axis=0)  # faster than both indices at once
    return KernelBlocks.of(
        LL=K_L.take(L, axis=1),
        UL=K_U.take(L, axis=1),
        UU=K_U.take(U, axis=1),
        weights=weights_U,
        prior_variance=prior_variance,
        view=view,
    )


def view_basis(view: ViewData, cache: RowCache, n_components: int, seed: int) -> Basis:
    """Low-rank features of a view, with some of its rows as landmarks."""

    def compute() -> Basis:
        rows, rng = view.training_rows, np.random.default_rng(seed)
        chosen = choose_landmarks(rows, view.weights, n_components, rng)
        return fit_basis(rows, chosen, view.bias)

    return cache.get(("basis", view.settings.key, n_components, seed), compute)


def low_rank_model(view: ViewData, basis: Basis, cache: RowCache) -> LowRankView:
    """A view through low-rank features; G of the unlabeled rows is that of all less that of the others."""
    s, L, U = view.settings, view.L, view.U
    features = cache.get(("features", s.key, basis.n_landmarks), lambda: _features(view, basis))
    Z_L, weights_L = basis.features(view.train[L]), view.weights[L]
    G = features.G - Z_L.T @ (weights_L[:, None] * Z_L)
    return LowRankView(Z_L, Features(features.Z, G), U, view.weights[U], s.prior_variance, s.name)


def _features(view: ViewData, basis: Basis) -> Features:
    n = view.rows.size
    parts = (basis.features(view.train[start : start + FEATURE_ROWS]) for start in range(0, n, FEATURE_ROWS))
    return gather_features(parts, view.weights, basis.rank, single=n > DOUBLE_PRECISION_ROWS)
