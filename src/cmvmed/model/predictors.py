"""A fitted view, applied to new rows: posterior means and variances of their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from cmvmed.core.annealing import AnnealingResult
from cmvmed.core.consensus import class_scores
from cmvmed.core.full_kernel import predictive_covariance, predictive_variance
from cmvmed.core.low_rank import LowRankView
from cmvmed.core.posterior import ViewState
from cmvmed.core.problem import Problem
from cmvmed.core.surrogates import logistic_curvature
from cmvmed.numerics.kernel_expansions import KernelExpansion, KernelSum, can_sum, kernel_sum
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.nystroem import Basis
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.types import Array, BoolArray, Matrix
from cmvmed.views.view_rows import ViewData, ViewPreprocessor

CurvatureKind: TypeAlias = Literal["fitted", "logistic"]  # a of the last sweep, or ν at the posterior means
MIN_REDUCTION = 1e-10  # relative reductions of a variance below this are left out


class MeanPredictor(Protocol):
    """The scores of rows by one view."""

    @property
    def has_training_rows(self) -> bool:
        """Whether any training row had this view."""

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""

    def mean(self, rows: Matrix, dtype: DTypeLike = np.float64) -> Array:
        """Posterior means (n, F) of rows that have this view; ``dtype`` is that of kernels."""


class ViewPredictor(MeanPredictor, Protocol):
    """A fitted view."""

    @property
    def n_functions(self) -> int:
        """F."""

    @property
    def preprocessor(self) -> ViewPreprocessor:
        """What is done to new rows first."""

    def variance(self, rows: Matrix) -> Array:
        """Posterior variances (n, F) of rows that have this view."""

    def covariance(self, rows: Matrix, curvature: CurvatureKind) -> Array:
        """Posterior covariances (F, n, n) of rows that have this view."""


class SummedMeans(PickledByFields):
    """Posterior means as one sum of kernel functions, which is put together once for each precision."""

    @cached_property
    def expansion(self) -> KernelExpansion | None:
        """m(x) as a sum of kernel functions of dense rows, None if it has no such form."""
        return self._expansion()

    def _expansion(self) -> KernelExpansion | None:
        raise NotImplementedError

    @cached_property
    def _sum(self) -> KernelSum:
        return self._as_sum(np.float64)

    @cached_property
    def _single_sum(self) -> KernelSum:
        return self._as_sum(np.float32)

    def _as_sum(self, dtype: type) -> KernelSum:
        if self.expansion is None:
            raise ValueError("These means are not one sum of kernel functions.")
        return kernel_sum([self.expansion], dtype)

    def _sum_in(self, dtype: DTypeLike) -> KernelSum:
        return self._single_sum if dtype == np.float32 else self._sum


@dataclass(frozen=True)
class KernelPredictor(SummedMeans):
    """A fitted view: m(x) = σ²(k_xL τ + k_xU γ), and s(x) from the curvature of the last sweep."""

    data: ViewData
    tau: Array  # (l, F)
    gamma: Array  # (u, F)
    row_weights: Array  # (u,), λw
    curvature: Array  # (u, 1 or F), a

    @classmethod
    def from_state(cls, data: ViewData, state: ViewState, lam: float, weights_U: Array) -> "KernelPredictor":
        """Keep what prediction needs of a view's posterior."""
        return cls(data, state.tau, state.gamma, lam * weights_U[data.rows_U], state.a)

    @property
    def n_functions(self) -> int:
        """F."""
        return int(self.tau.shape[1])

    @property
    def preprocessor(self) -> ViewPreprocessor:
        """What is done to new rows first."""
        return self.data.preprocessor

    @property
    def has_training_rows(self) -> bool:
        """Whether any training row had this view."""
        return self.n_basis_rows > 0

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""
        return int(self.data.train.shape[0])

    def mean(self, rows: Matrix, dtype: DTypeLike = np.float64) -> Array:
        """Posterior means (n, F) of rows that have this view; ``dtype`` is that of kernels."""
        data = self.data
        points = data.preprocessor.transform(rows)
        if self.expansion is not None and not is_sparse(points):
            return self._sum_in(dtype).values(points)
        if not self.gamma.any():
            return self._combined(data.kernel.cross(points, data.train, data.index_L), self.tau)
        return self._combined(data.kernel.cross(points, data.train), np.concatenate([self.tau, self.gamma]))

    def _expansion(self) -> KernelExpansion | None:
        data, n_used = self.data, self.n_basis_rows if self.gamma.any() else len(self.tau)
        if not can_sum(data.kernel, data.train):
            return None
        coefficients = data.settings.prior_variance * np.concatenate([self.tau, self.gamma])[:n_used]
        return KernelExpansion(data.kernel, data.train[:n_used], coefficients, data.bias * coefficients.sum(axis=0))

    def _combined(self, kernel: Array, coefficients: Array) -> Array:
        """σ²(k + bias) times the coefficients, (n, F)."""
        total = kernel @ coefficients + self.data.bias * coefficients.sum(axis=0)
        return np.asarray(self.data.settings.prior_variance * total)

    def variance(self, rows: Matrix) -> Array:
        """Posterior variances (n, F) of rows that have this view."""
        data, sigma2 = self.data, self.data.settings.prior_variance
        points = data.preprocessor.transform(rows)
        k_xx, precision = data.kernel.diagonal(points) + data.bias, self._precision("fitted")
        if not precision.any():
            return np.repeat((sigma2 * k_xx)[:, None], self.n_functions, axis=1)
        K_UU, K_Ux = self._unlabeled_kernels(points)
        columns = [
            predictive_variance(K_UU, K_Ux, k_xx, np.sqrt(sigma2 * own), sigma2, data.settings.name)
            for own in precision.T
        ]
        return np.broadcast_to(np.column_stack(columns), (rows.shape[0], self.n_functions)).copy()

    def covariance(self, rows: Matrix, curvature: CurvatureKind) -> Array:
        """Posterior covariances (F, n, n) of rows that have this view."""
        data, sigma2 = self.data, self.data.settings.prior_variance
        points = data.preprocessor.transform(rows)
        K_xx, precision = data.kernel.among(points) + data.bias, self._precision(curvature)
        if precision.any():
            K_UU, K_Ux = self._unlabeled_kernels(points)
            parts = [
                predictive_covariance(K_UU, K_Ux, K_xx, np.sqrt(sigma2 * own), sigma2, data.settings.name)
                for own in precision.T
            ]
        else:
            parts = [sigma2 * K_xx]
        return np.broadcast_to(np.stack(parts), (self.n_functions, *K_xx.shape))

    def _precision(self, curvature: CurvatureKind) -> Array:
        """λwa of each unlabeled row, (u, 1 or F)."""
        a = self.curvature if curvature == "fitted" else logistic_curvature(self._unlabeled_means())
        return np.asarray(self.row_weights[:, None] * a)

    def _unlabeled_means(self) -> Array:
        """Posterior means (u, F) of the view's unlabeled training rows."""
        data = self.data
        kernel = data.kernel.cross(data.train[data.index_U], data.train)
        return self._combined(kernel, np.concatenate([self.tau, self.gamma]))

    def _unlabeled_kernels(self, points: Matrix) -> tuple[Array, Array]:
        """Kernel of the unlabeled training rows (u, u), and between them and new rows (u, n), with the bias."""
        data = self.data
        K_UU = data.kernel.gram(data.train, data.index_U) + data.bias
        return K_UU, (data.kernel.cross(points, data.train, data.index_U) + data.bias).T


@dataclass(frozen=True)
class LowRankPredictor(SummedMeans):
    """A fitted view of low rank: m(x) = θᵀz(x), s(x) = σ²(k(x, x) - Σ_k (1 - d_k) z_k(x)²).

    The part of k(x, x) that the features miss keeps its prior variance, so that rows far from all landmarks keep their
    prior uncertainty.
    """

    preprocessor: ViewPreprocessor
    basis: Basis  # features rotated so that the posterior covariance is diagonal
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

    @cached_property
    def coefficients(self) -> Array:
        """(p + 1, F), of the landmarks' kernel functions and the constant."""
        return self.basis.transform @ self.theta

    @cached_property
    def _reductions(self) -> Array:
        """T diag(√(1 - d)), (p + 1, r'), of the weights whose variance the unlabeled rows reduce."""
        share = 1.0 - self.d
        reduced = share > MIN_REDUCTION
        return np.asarray(self.basis.transform[:, reduced] * np.sqrt(share[reduced]))

    def mean(self, rows: Matrix, dtype: DTypeLike = np.float64) -> Array:
        """Posterior means (n, F) of rows that have this view; ``dtype`` is that of kernels."""
        points = self.preprocessor.transform(rows)
        if self.expansion is not None and not is_sparse(points):
            return self._sum_in(dtype).values(points)
        return self.basis.raw(points) @ self.coefficients

    def _expansion(self) -> KernelExpansion | None:
        basis, a = self.basis, self.coefficients
        if not can_sum(basis.kernel, basis.landmarks):
            return None
        return KernelExpansion(basis.kernel, basis.landmarks, a[:-1], a[-1])

    def variance(self, rows: Matrix) -> Array:
        """Posterior variances (n, F) of rows that have this view."""
        points = self.preprocessor.transform(rows)
        z = self.basis.raw(points) @ self._reductions
        known = np.einsum("ij,ij->i", z, z)
        s = np.maximum(self.basis.kernel.diagonal(points) + self.preprocessor.bias - known, 0.0)
        return np.repeat((self.preprocessor.settings.prior_variance * s)[:, None], self.n_functions, axis=1)

    def covariance(self, rows: Matrix, curvature: CurvatureKind) -> Array:
        """Posterior covariances (F, n, n) of rows that have this view."""
        settings = self.preprocessor.settings
        if curvature == "logistic":
            raise ValueError(
                f"The features of view {settings.name!r} are of low rank and those of its unlabeled rows are not kept, so that "
                'curvature="logistic" cannot be computed; use curvature="fitted", or fit with approximation="exact".'
            )
        points = self.preprocessor.transform(rows)
        z = self.basis.raw(points) @ self._reductions
        S = settings.prior_variance * (self.basis.kernel.among(points) + self.preprocessor.bias - z @ z.T)
        return np.broadcast_to(S, (self.n_functions, *S.shape))


@dataclass(frozen=True)
class InterceptPredictor(KernelPredictor):
    """A view's kernel expansion with an unpenalized constant."""

    intercept: Array  # (F,)

    def _expansion(self) -> KernelExpansion | None:
        found = super()._expansion()
        return None if found is None else found._replace(constant=found.constant + self.intercept)

    def _combined(self, kernel: Array, coefficients: Array) -> Array:
        return np.asarray(super()._combined(kernel, coefficients) + self.intercept)


@dataclass(frozen=True)
class ViewMeans:
    """A view's part of the consensus: its posterior means, or their class scores, zero for rows without the view."""

    view: int
    predictor: MeanPredictor
    by_class: bool
    dtype: DTypeLike = np.float64  # of kernels

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""
        return self.predictor.n_basis_rows

    @property
    def preprocessor(self) -> ViewPreprocessor:
        """What is done to new rows first, if there is an expansion."""
        return self.predictor.preprocessor  # type: ignore[attr-defined, no-any-return]

    @property
    def expansion(self) -> KernelExpansion | None:
        """The scores as a sum of kernel functions of dense rows, None if they have no such form."""
        found = self.predictor.expansion if isinstance(self.predictor, SummedMeans) else None
        if found is None:
            return None
        kernel, centers, coefficients, constant = found
        return KernelExpansion(kernel, centers, self._columns(coefficients), self._columns(constant[None])[0])

    def scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Scores (n, F) or (n, K) of rows given by view, with which rows have which view."""
        rows = np.flatnonzero(present[self.view])
        own = self._columns(self.predictor.mean(matrices[self.view][rows], self.dtype))
        scores = np.zeros((matrices[self.view].shape[0], own.shape[1]))
        scores[rows] = own
        return scores

    def _columns(self, means: Array) -> Array:
        return class_scores(means) if self.by_class else means


def view_predictors(
    views: Sequence[ViewData], bases: Sequence[Basis] | None, problem: Problem, result: AnnealingResult
) -> tuple[ViewPredictor, ...]:
    """A predictor for each view of a fit; ``bases`` are its low-rank features, None if kernels are exact."""
    lam = result.consensus_weight
    if bases is None:
        return tuple(
            KernelPredictor.from_state(view, state, lam, problem.weights_U)
            for view, state in zip(views, result.states[: len(views)], strict=True)
        )
    predictors: list[ViewPredictor] = []
    for view, basis, model, state in zip(views, bases, problem.models, result.states, strict=True):
        if not isinstance(model, LowRankView):
            raise TypeError(f"View {view.settings.name!r} has features but no low-rank model.")
        gaussian = model.condition(lam, state.a[:, 0])
        theta = model.blocks.mean_weights(state.tau, state.gamma)
        predictors.append(LowRankPredictor(view.preprocessor, basis.rotated(model.rotation), theta, gaussian.d))
    return tuple(predictors)
