"""A fitted view, applied to new rows: posterior means and variances of their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cmvmed.core.annealing import AnnealingResult
from cmvmed.core.exact import predictive_variance
from cmvmed.core.low_rank import LowRankView
from cmvmed.core.nystroem import Basis
from cmvmed.core.posterior import ViewState
from cmvmed.core.problem import Problem
from cmvmed.core.types import Array, Matrix
from cmvmed.data.view_data import ViewData, ViewPreprocessor

MIN_REDUCTION = 1e-10  # relative reductions of a variance below this are left out


class ViewPredictor(Protocol):
    """A fitted view."""

    @property
    def n_functions(self) -> int:
        """F."""

    @property
    def has_training_rows(self) -> bool:
        """Whether any training row had this view."""

    @property
    def n_basis_rows(self) -> int:
        """Number of rows that a new row is compared with."""

    @property
    def preprocessor(self) -> ViewPreprocessor:
        """What is done to new rows first."""

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

    def mean(self, rows: Matrix) -> Array:
        """Posterior means (n, F) of rows that have this view."""
        data = self.data
        points = data.preprocessor.transform(rows)
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
        points = data.preprocessor.transform(rows)
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
        return self.basis.transform[:, reduced] * np.sqrt(share[reduced])

    def mean(self, rows: Matrix) -> Array:
        """Posterior means (n, F) of rows that have this view."""
        return self.basis.raw(self.preprocessor.transform(rows)) @ self.coefficients

    def variance(self, rows: Matrix) -> Array:
        """Posterior variances (n, F) of rows that have this view."""
        points = self.preprocessor.transform(rows)
        z = self.basis.raw(points) @ self._reductions
        known = np.einsum("ij,ij->i", z, z)
        s = np.maximum(self.basis.kernel.diagonal(points) + self.preprocessor.bias - known, 0.0)
        return np.repeat((self.preprocessor.settings.prior_variance * s)[:, None], self.n_functions, axis=1)


@dataclass(frozen=True)
class InterceptPredictor(KernelPredictor):
    """A view's kernel expansion with an unpenalized constant."""

    intercept: Array  # (F,)

    def mean(self, rows: Matrix) -> Array:
        """Scores (n, F) of rows that have this view."""
        return np.asarray(super().mean(rows) + self.intercept)


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
