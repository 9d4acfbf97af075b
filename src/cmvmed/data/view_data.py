"""A view's kernel predictor: from raw rows to kernel blocks at fit, and to means and variances at prediction."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cmvmed.core.exact import KernelBlocks, predictive_variance
from cmvmed.core.kernels import Kernel, fit_kernel
from cmvmed.core.linalg import Array, BoolArray, IntArray, Matrix, is_sparse
from cmvmed.core.low_rank import LowRankView
from cmvmed.core.nystroem import Basis, TrainingRows
from cmvmed.core.posterior import ViewState
from cmvmed.data.scaling import Scaling, fit_scaling

FEATURE_ROWS = 512  # rows whose features are computed at a time
LEAST_REDUCTION = 1e-10  # shares of a variance below this are left out of it


@dataclass(frozen=True)
class ViewSettings:
    """The user's choices for one view."""

    name: str
    kernel: str | Callable[[Matrix, Matrix], Array]
    gamma: str | float
    degree: int
    coef0: float
    scaling: str | None
    prior_variance: float  # σ²
    C: float
    bias_variance: float  # σ_b²


@dataclass(frozen=True)
class ViewData:
    """One view's training rows, scaled, with its kernel.

    ``rows_L`` and ``rows_U`` say which rows of the labeled and unlabeled block the view has; ``train`` holds those rows, first
    the labeled then the unlabeled ones. With a precomputed kernel ``train`` is their square matrix.
    """

    settings: ViewSettings
    scaling: Scaling
    kernel: Kernel
    train: Matrix
    columns: IntArray | None  # the columns of a precomputed kernel that belong to ``train``
    rows_L: IntArray
    rows_U: IntArray

    @property
    def bias(self) -> float:
        """The constant a Gaussian bias adds to the kernel."""
        return self.reader.bias

    @property
    def index_L(self) -> IntArray:
        """Labeled rows of ``train``."""
        return np.arange(self.rows_L.size)

    @property
    def index_U(self) -> IntArray:
        """Unlabeled rows of ``train``."""
        return np.arange(self.rows_L.size, self.rows_L.size + self.rows_U.size)

    def blocks(self, weights_U: Array) -> KernelBlocks:
        """Kernel blocks with the bias, given how often each row of the unlabeled block counts."""
        L, U = self.index_L, self.index_U
        return KernelBlocks(
            LL=self.kernel.gram(self.train, L) + self.bias,
            UL=self.kernel.cross(self.train[U], self.train, L) + self.bias,
            UU=self.kernel.gram(self.train, U) + self.bias,
            weights=weights_U[self.rows_U],
            prior_variance=self.settings.prior_variance,
            view=self.settings.name,
        )

    @property
    def training_rows(self) -> TrainingRows:
        """The rows as the kernel sees them."""
        return TrainingRows(self.kernel, self.train)

    def low_rank(self, basis: Basis, weights_U: Array) -> LowRankView:
        """The same through low-rank features."""
        starts = range(0, self.rows_U.size, FEATURE_ROWS)
        return LowRankView(
            Z_L=basis.features(self.train[self.index_L]),
            parts_U=(basis.features(self.train[self.index_U[start : start + FEATURE_ROWS]]) for start in starts),
            weights=weights_U[self.rows_U],
            prior_variance=self.settings.prior_variance,
            view=self.settings.name,
        )

    @property
    def reader(self) -> "ViewPreprocessor":
        """How new rows take the form of ``train``."""
        return ViewPreprocessor(self.settings, self.scaling, self.columns)


@dataclass(frozen=True)
class ViewPreprocessor:
    """What a view does to new rows before its kernel sees them."""

    settings: ViewSettings
    scaling: Scaling
    columns: IntArray | None  # of a precomputed kernel, those of rows in use

    def transform(self, rows: Matrix) -> Matrix:
        """Rows of new data in the form of the training rows."""
        if self.columns is None:
            return self.scaling.apply(rows)
        return (rows.toarray() if is_sparse(rows) else rows)[:, self.columns]

    @property
    def bias(self) -> float:
        """σ_b²/σ², the constant a Gaussian bias adds to the kernel."""
        return self.settings.bias_variance / self.settings.prior_variance

    def unused_columns(self, n_columns: int) -> BoolArray | None:
        """Columns of new rows that do not matter, (n_columns,): those of a given kernel that belong to no row in use."""
        return None if self.columns is None else ~np.isin(np.arange(n_columns), self.columns)


def read_view(
    settings: ViewSettings,
    matrix: Matrix,
    present: BoolArray,
    block_L: IntArray,
    block_U: IntArray,
    weights: Array,
    rng: np.random.Generator,
) -> ViewData:
    """Scale a view's rows and fix its kernel.

    Parameters
    ----------
    matrix : (n, d), all rows of the view
    present : (n,), which rows have the view; all of them count in scaling and bandwidth
    block_L, block_U : row numbers of the labeled and unlabeled block
    weights : (n,), how often each row counts
    """
    rows_L, rows_U = np.flatnonzero(present[block_L]), np.flatnonzero(present[block_U])
    used = np.concatenate([block_L[rows_L], block_U[rows_U]])
    s = settings
    if s.kernel == "precomputed":
        train = _square_part(s.name, matrix, used)
        kernel = fit_kernel(s.name, s.kernel, s.gamma, s.degree, s.coef0, train, weights[used], rng, used)
        return ViewData(s, Scaling(None), kernel, train, used, rows_L, rows_U)
    reference = present & (weights > 0.0)
    scaling = fit_scaling(None if callable(s.kernel) else s.scaling, matrix[reference], weights[reference])
    scaled = scaling.apply(matrix[reference])
    numbers = np.flatnonzero(reference)
    kernel = fit_kernel(s.name, s.kernel, s.gamma, s.degree, s.coef0, scaled, weights[reference], rng, numbers)
    return ViewData(s, scaling, kernel, scaling.apply(matrix[used]), None, rows_L, rows_U)


def _square_part(view: str, matrix: Matrix, used: IntArray) -> Array:
    """The used rows and columns of a precomputed kernel."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"View {view!r} has a precomputed kernel, which at fit must be a square matrix with one column per row, but its shape "
            f"is {matrix.shape}."
        )
    dense = matrix.toarray() if is_sparse(matrix) else matrix
    return np.asarray(dense[np.ix_(used, used)])


class ViewPredictor(Protocol):
    """A fitted view, which judges new rows."""

    @property
    def n_functions(self) -> int:
        """F."""

    @property
    def has_training_rows(self) -> bool:
        """Whether any training row had this view."""

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""

    def unused_columns(self, n_columns: int) -> BoolArray | None:
        """Columns of new rows that do not matter, (n_columns,)."""

    def mean(self, rows: Matrix) -> Array:
        """Posterior means (n, F) of rows that have this view."""

    def variance(self, rows: Matrix) -> Array:
        """Posterior variances (n, F) of rows that have this view."""


@dataclass(frozen=True)
class KernelPredictor:
    """A fitted view: m(x) = σ²(k_xL τ + k_xU γ), and s(x) from the curvature of the last sweep."""

    data: ViewData
    tau: Array  # (l, F)
    gamma: Array  # (u, F)
    curvature: Array  # (u, 1 or F), λwa

    @classmethod
    def from_state(cls, data: ViewData, state: ViewState, lam: float, weights_U: Array) -> "KernelPredictor":
        """Keep what prediction needs of a view's posterior."""
        curvature = lam * weights_U[data.rows_U][:, None] * state.a
        return cls(data, state.tau, state.gamma, curvature)

    @property
    def n_functions(self) -> int:
        """F."""
        return int(self.tau.shape[1])

    def unused_columns(self, n_columns: int) -> BoolArray | None:
        """Columns of new rows that do not matter, (n_columns,)."""
        return self.data.reader.unused_columns(n_columns)

    @property
    def has_training_rows(self) -> bool:
        """Whether any training row had this view."""
        return self.n_basis_rows > 0

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""
        return int(self.data.train.shape[0])

    def mean(self, rows: Matrix) -> Array:
        """Posterior means (n, F) of rows that have this view."""
        data = self.data
        points = data.reader.transform(rows)
        if not self.gamma.any():
            return self._combined(data.kernel.cross(points, data.train, data.index_L), self.tau)
        return self._combined(data.kernel.cross(points, data.train), np.concatenate([self.tau, self.gamma]))

    def _combined(self, kernel: Array, coefficients: Array) -> Array:
        """σ²(k + bias) times the coefficients, (n, F)."""
        total = kernel @ coefficients + self.data.bias * coefficients.sum(axis=0)
        return np.asarray(self.data.settings.prior_variance * total)

    def variance(self, rows: Matrix) -> Array:
        """Posterior variances (n, F) of rows that have this view."""
        data, sigma2 = self.data, self.data.settings.prior_variance
        points = data.reader.transform(rows)
        k_xx = data.kernel.diagonal(points) + data.bias
        if not self.curvature.any():
            return np.repeat((sigma2 * k_xx)[:, None], self.n_functions, axis=1)
        K_UU = data.kernel.gram(data.train, data.index_U) + data.bias
        K_Ux = (data.kernel.cross(points, data.train, data.index_U) + data.bias).T
        columns = [
            predictive_variance(K_UU, K_Ux, k_xx, np.sqrt(sigma2 * curvature), sigma2, data.settings.name)
            for curvature in self.curvature.T
        ]
        return np.broadcast_to(np.column_stack(columns), (rows.shape[0], self.n_functions)).copy()


@dataclass(frozen=True)
class LowRankPredictor:
    """A fitted view of low rank: m(x) = θᵀz(x), s(x) = σ²(k(x, x) - Σ_k (1 - d_k) z_k(x)²).

    The part of k(x, x) that the features miss keeps its prior variance, so that rows far from all landmarks are as uncertain as
    they should be.
    """

    reader: ViewPreprocessor
    basis: Basis  # features turned so that the posterior covariance is diagonal
    theta: Array  # (r, F)
    d: Array  # (r,) posterior over prior variance of each weight

    @property
    def n_functions(self) -> int:
        """F."""
        return int(self.theta.shape[1])

    @property
    def has_training_rows(self) -> bool:
        """Whether any training row had this view."""
        return self.basis.n_landmarks > 0

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""
        return self.basis.n_landmarks

    def unused_columns(self, n_columns: int) -> BoolArray | None:
        """Columns of new rows that do not matter, (n_columns,)."""
        return self.reader.unused_columns(n_columns)

    @cached_property
    def coefficients(self) -> Array:
        """(p + 1, F), of the landmarks' kernel functions and the constant."""
        return self.basis.transform @ self.theta

    @cached_property
    def _reductions(self) -> Array:
        """T diag(√(1 - d)), (p + 1, r'), of the weights whose variance the unlabeled rows reduce."""
        share = 1.0 - self.d
        reduced = share > LEAST_REDUCTION
        return self.basis.transform[:, reduced] * np.sqrt(share[reduced])

    def mean(self, rows: Matrix) -> Array:
        """Posterior means (n, F) of rows that have this view."""
        return self.basis.raw(self.reader.transform(rows)) @ self.coefficients

    def variance(self, rows: Matrix) -> Array:
        """Posterior variances (n, F) of rows that have this view."""
        points = self.reader.transform(rows)
        z = self.basis.raw(points) @ self._reductions
        known = np.einsum("ij,ij->i", z, z)
        s = np.maximum(self.basis.kernel.diagonal(points) + self.reader.bias - known, 0.0)
        return np.repeat((self.reader.settings.prior_variance * s)[:, None], self.n_functions, axis=1)
