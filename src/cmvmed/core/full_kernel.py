"""A view with its full kernel matrix: two implementations of :class:`cmvmed.core.posterior.ViewModel`.

Notation and letters of equations as in ``docs/theory.md``. Both give the Gaussian N(m⁰, S) of equation (B), whose S_LL
is σ² times K-tilde of paper eqs. (6) and (7).

* :class:`SpectralView`: one curvature for all rows, so one eigendecomposition serves every λ, σ² and class.
* :class:`CholeskyView`: any curvature, one Cholesky factorization each.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TypeVar

import numpy as np

from cmvmed.core.posterior import KEPT_GAUSSIANS, Conditioned
from cmvmed.numerics.linalg import (
    NotPositiveDefiniteError,
    cholesky,
    eigen_psd,
    inverse_diagonal,
    log_determinant,
    narrow_product,
    product,
    solve_cholesky,
    solve_lower,
)
from cmvmed.numerics.types import Array

Factors = TypeVar("Factors")

MIN_INFORMATION = 1e-3  # of a row's consensus term relative to the prior's, for a variance by way of B⁻¹
MIN_ROOT = 1e-150  # stands in for the root of a curvature of zero
MIN_PRECISION_GAIN = 1e-6  # of ρK, below which I - B⁻¹ has fewer than ten digits


@dataclass(frozen=True)
class LabeledBlocks:
    """One view's kernel between its rows and the labeled (l) ones, bias included, and its diagonal."""

    LL: Array  # (l, l)
    UL: Array  # (u, l)
    diagonal_U: Array  # (u,) k(x, x) of the unlabeled rows
    weights: Array  # (u,) how often each unlabeled row counts, > 0
    prior_variance: float  # σ²
    view: str  # named in errors

    @property
    def n_coefficients(self) -> int:
        """One for each unlabeled row."""
        return int(self.UL.shape[0])

    def prior_mean(self, tau: Array) -> Array:
        """σ²K_UL τ."""
        return np.asarray(self.prior_variance * (self.UL @ tau))

    def squared_norm(self, tau: Array, gamma: Array, m_L: Array, m_U: Array) -> float:
        """τᵀm_L + γᵀm_U."""
        return float((tau * m_L).sum() + (gamma * m_U).sum())


@dataclass(frozen=True)
class KernelBlocks(LabeledBlocks):
    """The same with the kernel between the unlabeled (u) rows."""

    UU: Array  # (u, u)

    @classmethod
    def of(
        cls, LL: Array, UL: Array, UU: Array, weights: Array, prior_variance: float, view: str = ""
    ) -> "KernelBlocks":
        """From the kernel between all rows."""
        return cls(LL, UL, np.diagonal(UU).copy(), weights, prior_variance, view, UU)

    def without_UU(self) -> LabeledBlocks:
        """Those with the labeled rows alone, which take less memory."""
        return LabeledBlocks(self.LL, self.UL, self.diagonal_U, self.weights, self.prior_variance, self.view)


class SpectralView:
    """√w K_UU √w = Q diag(ω) Qᵀ once; conditioning at any λ and any constant a is then diagonal."""

    def __init__(self, blocks: KernelBlocks) -> None:
        self.blocks = blocks.without_UU()
        self.root = np.sqrt(blocks.weights)[:, None]
        is_weighted = (blocks.weights != 1.0).any()
        scaled = self.root * blocks.UU * self.root.T if is_weighted else blocks.UU
        self.omega, self.Q = _factorized(eigen_psd, scaled, blocks.view)
        self.G = narrow_product(self.Q.T, self.root * blocks.UL)  # (u, l)
        self._keep_gaussians()

    def with_prior_variance(self, prior_variance: float) -> "SpectralView":
        """The same view with another σ², and the same eigendecomposition."""
        other = copy(self)
        other.blocks = replace(self.blocks, prior_variance=prior_variance)
        other._keep_gaussians()
        return other

    def _keep_gaussians(self) -> None:
        self._conditioned = lru_cache(KEPT_GAUSSIANS)(partial(SpectralConditioned, self))

    def condition(self, lam: float, a: Array) -> Conditioned:
        """The Gaussian at ``lam`` and a constant curvature; kept for the fits of a short schedule, which share theirs."""
        return self._conditioned(lam, lam * self.blocks.prior_variance * (float(a[0]) if a.size else 0.0))


class SpectralConditioned:
    """Equation (B′): with ρ = λσ²a and d = 1/(1 + ρω), S_LL = σ²(K_LL - ρGᵀ diag(d) G) is σ² times K-tilde.

    K-tilde is that of paper eqs. (6) and (7).
    """

    def __init__(self, view: SpectralView, lam: float, rho: float) -> None:
        self.view, self.lam, self.rho = view, lam, rho
        self.sigma2 = view.blocks.prior_variance
        self.d = 1.0 / (1.0 + rho * view.omega)[:, None]  # (u, 1)
        half = np.sqrt(rho * self.d) * view.G
        self.S_LL = self.sigma2 * (view.blocks.LL - half.T @ half)  # symmetric products take half of the time
        self.log_det = float(np.log1p(rho * view.omega).sum())

    @cached_property
    def variance_U(self) -> Array:
        """σ²(Q diag(ωd) Qᵀ)_mm/w_m."""
        return np.asarray(self.sigma2 * (self.view.Q**2 @ self._gain) / self.view.blocks.weights)

    @property
    def _gain(self) -> Array:
        """ωd, (u,)."""
        return self.view.omega * self.d[:, 0]

    def total_variance(self) -> float:
        """Σ_U w s = σ² Σ ωd."""
        return float(self.sigma2 * self._gain.sum())

    def project_response(self, b: Array) -> Array:
        """λQᵀ√w b, and below it λb itself."""
        return np.asarray(self.lam * np.concatenate([narrow_product(self.view.Q.T, self.view.root * b), b]))

    def labeled_mean(self, projected: Array) -> Array:
        """σ²Gᵀ d projected."""
        return np.asarray(self.sigma2 * (self.view.G.T @ (self.d * projected[: len(self.d)])))

    def unlabeled(self, projected: Array, tau: Array) -> tuple[Array, Array]:
        """γ = √w Q d(projected - ρGτ), and m_U from γ = λw(b - a m_U).

        Where the kernel is weak that difference would lose digits, and m_U = σ²Q d(Gτ + ω projected)/√w.
        """
        view, by_labels, (p, response) = self.view, self.view.G @ tau, np.split(projected, 2)
        gamma = view.root * narrow_product(view.Q, self.d * (p - self.rho * by_labels))
        if self.rho * view.omega.max(initial=0.0) < MIN_PRECISION_GAIN:
            smoothed = narrow_product(view.Q, self.d * (by_labels + view.omega[:, None] * p))
            return gamma, self.sigma2 * smoothed / view.root
        return gamma, self.sigma2 / self.rho * (response - gamma / view.root**2)


class CholeskyView:
    """B = I + diag(r) K_UU diag(r) with r = √(λσ²wa), factorized for each curvature."""

    def __init__(self, blocks: KernelBlocks) -> None:
        self.blocks = blocks

    def with_prior_variance(self, prior_variance: float) -> "CholeskyView":
        """The same view with another σ²."""
        return CholeskyView(replace(self.blocks, prior_variance=prior_variance))

    def condition(self, lam: float, a: Array) -> Conditioned:
        """The Gaussian at ``lam`` and curvature ``a`` (u,)."""
        return CholeskyConditioned(self.blocks, lam, a)


class CholeskyConditioned:
    """Equation (B): S = σ²(K - WᵀW), W = Λ⁻¹ diag(r) K_{U·}; B >= I, so the factorization needs no jitter."""

    def __init__(self, blocks: KernelBlocks, lam: float, a: Array) -> None:
        self.blocks, self.lam = blocks, lam
        self.r = np.sqrt(lam * blocks.prior_variance * blocks.weights * a)
        self.factor = factor_B(blocks.UU, self.r, blocks.view)
        self.log_det = log_determinant(self.factor)
        self.W_L = solve_lower(self.factor, np.asfortranarray(self.r[:, None] * blocks.UL))  # (u, l)

    @property
    def S_LL(self) -> Array:
        """σ²(K_LL - W_Lᵀ W_L): σ² times K-tilde of paper eqs. (6) and (7)."""
        return np.asarray(self.blocks.prior_variance * (self.blocks.LL - product(self.W_L.T, self.W_L)))

    @cached_property
    def variance_U(self) -> Array:
        """σ²(1 - (B⁻¹)_mm)/r²_m; where r²_m K_mm is so small that the difference loses digits, σ²(K_mm - ‖W_m‖²)."""
        K_mm, squared = np.diagonal(self.blocks.UU), self.r**2
        weak = squared * K_mm < MIN_INFORMATION
        variance = (1.0 - inverse_diagonal(self.factor)) / np.where(weak, 1.0, squared)
        W = solve_lower(self.factor, np.multiply(self.blocks.UU[:, weak], self.r[:, None], order="F"))
        variance[weak] = K_mm[weak] - np.einsum("ij,ij->j", W, W)
        return np.asarray(self.blocks.prior_variance * np.maximum(variance, 0.0))

    def total_variance(self) -> float:
        """Σ_U w s."""
        return float(self.blocks.weights @ self.variance_U)

    def project_response(self, b: Array) -> Array:
        """λwb/r."""
        return np.asarray(self.lam * self.blocks.weights[:, None] * b / np.maximum(self.r, MIN_ROOT)[:, None])

    def labeled_mean(self, projected: Array) -> Array:
        """σ² W_Lᵀ Λ⁻¹ projected."""
        return self.blocks.prior_variance * product(
            self.W_L.T, solve_lower(self.factor, np.array(projected, order="F"))
        )

    def unlabeled(self, projected: Array, tau: Array) -> tuple[Array, Array]:
        """γ = r B⁻¹(projected - r K_UL τ), and σ²(K_UL τ + K_UU γ)."""
        blocks, r = self.blocks, np.maximum(self.r, MIN_ROOT)[:, None]
        by_labels = product(blocks.UL, tau)
        gamma = np.asarray(r * solve_cholesky(self.factor, projected - r * by_labels))
        return gamma, blocks.prior_variance * (by_labels + product(blocks.UU, gamma))


def factor_B(K_UU: Array, r: Array, view: str = "") -> Array:
    """Lower Cholesky factor of B = I + diag(r) K_UU diag(r)."""
    B = K_UU.T * r  # K_UU is symmetric; its transpose is in Fortran order, so nothing is rearranged
    B *= r[:, None]
    B[np.diag_indices_from(B)] += 1.0
    return _factorized(cholesky, B, view)


def _factorized(factorize: Callable[[Array], Factors], matrix: Array, view: str) -> Factors:
    """A factorization whose error names the view if it fails by rounding."""
    try:
        return factorize(matrix)
    except (NotPositiveDefiniteError, np.linalg.LinAlgError) as error:
        largest = float(np.nanmax(np.abs(matrix), initial=0.0))
        raise ValueError(
            f"The kernel of view {view!r} cannot be factorized: its values, times the prior variance, reach {largest:.1e}, where "
            'rounding hides its structure. Use scaling="auto", or a smaller gamma or prior_variance.'
        ) from error


def predictive_variance(
    K_UU: Array, K_Ux: Array, k_xx: Array, r: Array, prior_variance: float, view: str = ""
) -> Array:
    """s(x) = σ²(k(x,x) - ‖Λ⁻¹(r∘k_Ux)‖²) of new rows, (n,); every surrogate's curvature a enters through r."""
    W_x = _projected(K_UU, K_Ux, r, view)
    reduction = np.einsum("ij,ij->j", W_x, W_x)
    return np.asarray(prior_variance * np.maximum(k_xx - reduction, 0.0))


def predictive_covariance(
    K_UU: Array, K_Ux: Array, K_xx: Array, r: Array, prior_variance: float, view: str = ""
) -> Array:
    """S(x, x') = σ²(k(x, x') - W_xᵀW_x') of new rows, (n, n): on the labeled rows σ² times K-tilde, paper eqs. (6), (7)."""
    W_x = _projected(K_UU, K_Ux, r, view)
    return np.asarray(prior_variance * (K_xx - product(W_x.T, W_x)))


def _projected(K_UU: Array, K_Ux: Array, r: Array, view: str) -> Array:
    """W_x = Λ⁻¹(r∘k_Ux), (u, n)."""
    return solve_lower(factor_B(K_UU, r, view), np.multiply(r[:, None], K_Ux, order="F"))
