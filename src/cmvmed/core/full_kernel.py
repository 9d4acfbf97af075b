"""A view with its full kernel matrix: two implementations of :class:`cmvmed.core.posterior.ViewModel`.

Notation as in ``docs/notation.md``; letters are the equations of ``docs/theory.md``. Both give the Gaussian N(m⁰, S) of
equation (B), whose S_LL is σ² times K-tilde of paper eqs. (6) and (7).

* :class:`SpectralView`: one curvature for all rows, so one tridiagonal form serves every λ, σ² and class.
* :class:`CholeskyView`: any curvature, one Cholesky factorization each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TypeVar

import numpy as np

from cmvmed.core.posterior import KEPT_GAUSSIANS, Conditioned
from cmvmed.core.tridiagonal import Tridiagonal, tridiagonal_form
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
from cmvmed.numerics.types import Array, IntArray

Factors = TypeVar("Factors")

MIN_INFORMATION = 1e-3  # of a row's consensus term relative to the prior's, for a variance by way of B⁻¹
MIN_ROOT = 1e-150  # stands in for the root of a curvature of zero
MAX_TRIDIAGONAL = 1e8  # of a kernel times its prior variance: half of the digits are then left for B
MIN_PRECISION_GAIN = 1e-6  # of ρK, below which I - B⁻¹ has fewer than ten digits


@dataclass(frozen=True)
class KernelBlocks:
    """One view's kernel on its labeled (l) and unlabeled (u) rows, bias included."""

    LL: Array  # (l, l)
    UL: Array  # (u, l)
    UU: Array  # (u, u)
    weights: Array  # (u,) how often each unlabeled row counts, > 0
    prior_variance: float  # σ²
    view: str = ""  # named in errors

    @property
    def diagonal_U(self) -> Array:
        """k(x, x) of the unlabeled rows, (u,)."""
        return np.diagonal(self.UU)

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
class Spectrum:
    """√w K √w = Q T Qᵀ over rows of a view, with T tridiagonal: functions of the kernel are as cheap as with its eigenvalues."""

    T: Tridiagonal  # (n, n)
    Q: Array  # (n, n)


def fit_spectrum(K: Array, weights: Array, view: str, prior_variance: float = 1.0) -> Spectrum:
    """The tridiagonal form for a kernel (n, n), bias included, and weights (n,) > 0; errors name the view.

    If the kernel times the prior variance is large, T is diagonal: rounding would make I + ρT indefinite, but eigenvalues
    can be clipped at zero.
    """
    root = np.sqrt(weights)
    scaled = K * root * root[:, None] if (weights != 1.0).any() else K
    if prior_variance * np.diagonal(scaled).max(initial=0.0) > MAX_TRIDIAGONAL:
        omega, Q = _factorized(eigen_psd, scaled, view)
        return Spectrum(Tridiagonal(omega, np.zeros(max(omega.size - 1, 0))), Q)
    return Spectrum(*_factorized(tridiagonal_form, scaled, view))


class SpectralView:
    """One tridiagonal form; conditioning at any λ and any constant a then takes few operations.

    It may be that of more rows than the unlabeled ones, so that it does not depend on which of them have labels. With
    M = (I + ρ√wK√w)⁻¹ over all its rows and o those that are not unlabeled, the inverse of the part B that belongs to the
    unlabeled rows is a Schur complement, equation (B″):

        B⁻¹ = M_UU - M_Uo M_oo⁻¹ M_oU,   log|B| = log|I + ρT| + log|M_oo|.

    Parameters
    ----------
    blocks : the kernel of the view's labeled and unlabeled rows
    spectrum : the tridiagonal form, of the unlabeled rows alone if None
    index_U : (u,), which of its rows are the unlabeled ones; all in order if None
    """

    def __init__(self, blocks: KernelBlocks, spectrum: Spectrum | None = None, index_U: IntArray | None = None) -> None:
        spectrum = spectrum or fit_spectrum(blocks.UU, blocks.weights, blocks.view, blocks.prior_variance)
        self.T, self.Q = spectrum.T, spectrum.Q
        self.index_U = np.arange(len(self.Q)) if index_U is None else index_U
        self.Q_o = np.delete(self.Q, self.index_U, axis=0)  # (n - u, n)
        self.root = np.sqrt(blocks.weights)
        self.blocks = blocks
        self.G = self.project(blocks.UL)  # (n, l)
        self._conditioned = lru_cache(KEPT_GAUSSIANS)(partial(SpectralConditioned, self))

    def project(self, values: Array) -> Array:
        """Q_Uᵀ √w values, (n, k), for values (u, k) of the unlabeled rows."""
        padded = np.zeros((len(self.Q), values.shape[1]))
        padded[self.index_U] = self.root[:, None] * values
        return np.asarray(narrow_product(self.Q.T, padded))

    def condition(self, lam: float, a: Array) -> Conditioned:
        """The Gaussian at ``lam`` and a constant curvature; kept for the fits of a short schedule, which share theirs."""
        return self._conditioned(lam, lam * self.blocks.prior_variance * (float(a[0]) if a.size else 0.0))


class SpectralConditioned:
    """Equations (B′) and (B″): with ρ = λσ²a and D = (I + ρT)⁻¹, S_LL = σ²(K_LL - ρGᵀQᵀB⁻¹QG) is σ² times K-tilde.

    K-tilde is that of paper eqs. (6) and (7).
    """

    def __init__(self, view: SpectralView, lam: float, rho: float) -> None:
        self.view, self.lam, self.rho = view, lam, rho
        self.sigma2 = view.blocks.prior_variance
        self.D = _factorized(lambda _: view.T.factorize(rho), rho * view.T.diagonal, view.blocks.view)
        self.D_o = self.D.solve(view.Q_o.T)  # (n, n - u)
        M_oo = product(view.Q_o, self.D_o)
        self.factor = _factorized(cholesky, np.asfortranarray(M_oo), view.blocks.view)
        self.solved = self._inverse(view.G)  # (n, l)
        self.S_LL = self.sigma2 * (view.blocks.LL - rho * (view.G.T @ self.solved))
        self.log_det = self.D.log_determinant + log_determinant(self.factor)

    @property
    def is_weak(self) -> bool:
        """Whether ρK is so small that I - B⁻¹ would lose digits."""
        return self.rho * float(self.view.T.diagonal.max(initial=0.0)) < MIN_PRECISION_GAIN

    def _inverse(self, projected: Array) -> Array:
        """Qᵀ(B⁻¹v, 0) = D(p - Q_oᵀ M_oo⁻¹ Q_o D p) for p = Q_Uᵀv (n, k)."""
        scaled = self.D.solve(projected)
        if self.factor.size == 0:
            return scaled
        inner = solve_cholesky(self.factor, self.D_o.T @ projected)
        return np.asarray(scaled - self.D_o @ inner)

    @cached_property
    def variance_U(self) -> Array:
        """σ²(QTDQᵀ)_mm/w_m + σ²ρ‖M_oo^{-1/2} Q_o TD Qᵀ_m‖²/w_m, where TD = DT commute."""
        view = self.view
        Q_U = view.Q[view.index_U]
        own = np.einsum("ij,ji->i", Q_U, view.T.times(self.D.solve(Q_U.T)))
        if self.factor.size:
            W = solve_lower(self.factor, np.asfortranarray(view.T.times(self.D_o).T @ Q_U.T))
            own = own + self.rho * np.einsum("ij,ij->j", W, W)
        return np.asarray(self.sigma2 * own / view.blocks.weights)

    def total_variance(self) -> float:
        """Σ_U w s = σ² tr √wK_UU√w B⁻¹ = σ²(u - tr B⁻¹)/ρ with tr B⁻¹ = tr D - tr M_oo⁻¹ Q_o D² Q_oᵀ."""
        return self._total_variance

    @cached_property
    def _total_variance(self) -> float:
        blocks = self.view.blocks
        if self.is_weak:
            return float(blocks.weights @ self.variance_U)
        others = solve_cholesky(self.factor, self.D_o.T @ self.D_o)
        trace = self.D.inverse_trace() - float(np.trace(others))
        return self.sigma2 * (blocks.weights.size - trace) / self.rho

    def project_response(self, b: Array) -> Array:
        """λQ_Uᵀ√w b, and below it λb itself."""
        return np.asarray(self.lam * np.concatenate([self.view.project(b), b]))

    def labeled_mean(self, projected: Array) -> Array:
        """σ² (B⁻¹G)ᵀ projected."""
        return np.asarray(self.sigma2 * (self.solved.T @ projected[: len(self.solved)]))

    def unlabeled(self, projected: Array, tau: Array) -> tuple[Array, Array]:
        """γ = √w B⁻¹ Q_U(projected - ρGτ), and m_U from γ = λw(b - a m_U).

        Where the kernel is weak that difference would lose digits, and m_U = σ²(K_UL τ + K_UU γ).
        """
        view, n = self.view, len(self.view.Q)
        p = self._inverse(projected[:n] - self.rho * (view.G @ tau))
        gamma = view.root[:, None] * narrow_product(view.Q, p)[view.index_U]
        if self.is_weak:
            smoothed = narrow_product(view.Q, view.T.times(p))[view.index_U] / view.root[:, None]
            return gamma, view.blocks.prior_mean(tau) + self.sigma2 * smoothed
        return gamma, self.sigma2 / self.rho * (projected[n:] - gamma / view.blocks.weights[:, None])


class CholeskyView:
    """B = I + diag(r) K_UU diag(r) with r = √(λσ²wa), factorized for each curvature."""

    def __init__(self, blocks: KernelBlocks) -> None:
        self.blocks = blocks

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
