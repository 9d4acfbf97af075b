"""A view's posterior in weight space: features z(x) of rank r in place of the kernel, f = θᵀz with θ ~ N(0, σ²I).

With G = Σ_U w z zᵀ = V diag(ω) Vᵀ, the features rotated by V, ρ = λσ²a and d = 1/(1 + ρω), equations (B) to (D) of the
theory page are diagonal for every λ, σ² and class, equation (H):

    S(x, x') = σ² zᵀ diag(d) z',   θ = σ² d (λ Σ_U w b z + Z_Lᵀτ),   log|B| = Σ log(1 + ρω)

G and Σ_U w b z are sums over rows. :class:`LowRankView` keeps the features of all rows; :class:`WeightSpace` needs only
those of the labeled ones, and the sums from elsewhere.

A sweep reads all features twice and does little with them, so its time is that of reading. Of many rows they are kept
in single precision, after G was summed in double, and rotated in single: scores and sums are then right to about 1e-6
of their size.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from cmvmed.core.posterior import KEPT_GAUSSIANS
from cmvmed.numerics.linalg import eigen_psd, narrow_product
from cmvmed.numerics.types import Array, IntArray, Single

ROTATED_ROWS = 512  # rows rotated at a time
SQUARED_ROWS = 128  # rows squared at a time
MAX_SINGLE = 1e15  # feature that may be kept in single precision, whose squares must stay in its range


@dataclass(frozen=True)
class FeatureBlocks:
    """One view's features on its labeled (l) and unlabeled (u) rows, bias included."""

    Z_L: Array  # (l, r)
    Z_U: Array | Single  # (u, r)
    weights: Array  # (u,) how often each unlabeled row counts, > 0
    prior_variance: float  # σ²
    view: str = ""  # named in errors

    @cached_property
    def LL(self) -> Array:
        """Z_L Z_Lᵀ."""
        return self.Z_L @ self.Z_L.T

    @cached_property
    def diagonal_U(self) -> Array:
        """‖z‖² of the unlabeled rows, (u,)."""
        return self.squared_sums(np.ones(self.n_coefficients))

    @property
    def n_coefficients(self) -> int:
        """One for each feature."""
        return int(self.Z_L.shape[1])

    def scores(self, theta: Array) -> Array:
        """Z_U θ, (u, F)."""
        return np.asarray(narrow_product(self.Z_U, theta.astype(self.Z_U.dtype, copy=False)), dtype=np.float64)

    def sums(self, values: Array) -> Array:
        """Z_Uᵀ values, (r, F)."""
        return np.asarray(narrow_product(self.Z_U.T, values.astype(self.Z_U.dtype, copy=False)), dtype=np.float64)

    def squared_sums(self, weights: Array) -> Array:
        """Σ_k weights_k z_k² of the unlabeled rows, (u,), some at a time so that their squares stay in the cache."""
        parts = [self.Z_U[start : start + SQUARED_ROWS] for start in range(0, len(self.Z_U), SQUARED_ROWS)]
        weights = weights.astype(self.Z_U.dtype, copy=False)
        return np.concatenate([np.empty(0), *(np.square(part) @ weights for part in parts)])

    def prior_mean(self, tau: Array) -> Array:
        """σ² Z_U Z_Lᵀτ."""
        return self.scores(self.prior_variance * (self.Z_L.T @ tau))

    def mean_weights(self, tau: Array, gamma: Array) -> Array:
        """θ = σ²(Z_Lᵀτ + γ), (r, F)."""
        return np.asarray(self.prior_variance * (self.Z_L.T @ tau + gamma))

    def squared_norm(self, tau: Array, gamma: Array, m_L: Array, m_U: Array) -> float:
        """τᵀm_L + γᵀθ."""
        return float((tau * m_L).sum() + (gamma * self.mean_weights(tau, gamma)).sum())


@dataclass(frozen=True)
class WeightSpace:
    """The labeled rows' features, rotated by the eigenvectors of G, and its eigenvalues."""

    Z_L: Array  # (l, r)
    omega: Array  # (r,)
    prior_variance: float  # σ²


class WeightGaussian:
    """The Gaussian N(m⁰, S) over θ that the unlabeled rows imply at (λ, a); S_LL as in paper eqs. (6) and (7), times σ²."""

    def __init__(self, space: WeightSpace, lam: float, a: float) -> None:
        self.space, self.lam, self.a = space, lam, a
        self.rho = lam * space.prior_variance * a
        self.d = 1.0 / (1.0 + self.rho * space.omega)
        self.S_LL = space.prior_variance * (space.Z_L @ (self.d[:, None] * space.Z_L.T))
        self.log_det = float(np.log1p(self.rho * space.omega).sum())

    def labeled_mean(self, projected: Array) -> Array:
        """σ² Z_L d projected, with projected = λ Σ_U w b z (r, F)."""
        return np.asarray(self.space.prior_variance * (self.space.Z_L @ (self.d[:, None] * projected)))

    def coefficients(self, projected: Array, tau: Array) -> Array:
        """γ = d(projected - ρω Z_Lᵀτ)."""
        prior_part = (self.rho * self.space.omega)[:, None] * (self.space.Z_L.T @ tau)
        return np.asarray(self.d[:, None] * (projected - prior_part))

    def total_variance(self) -> float:
        """Σ_U w s = σ² Σ ωd."""
        return float(self.space.prior_variance * (self.space.omega @ self.d))


@dataclass(frozen=True)
class Features:
    """The features of rows of a view, and G = Σ w z zᵀ in double precision."""

    Z: Array | Single  # (n, r)
    G: Array  # (r, r)


def gather_features(parts: Iterable[Array], weights: Array, rank: int, *, single: bool) -> Features:
    """The features of all rows from those of some at a time, in single or double precision; weights (n,)."""
    Z = np.zeros((weights.size, rank), dtype=np.float32 if single else np.float64)
    G, root, start = np.zeros((rank, rank)), np.sqrt(weights)[:, None], 0
    for part in parts:
        rows = slice(start, start + len(part))
        weighted = root[rows] * part
        G += weighted.T @ weighted
        if Z.dtype == np.float32 and np.abs(part).max(initial=0.0) > MAX_SINGLE:
            Z = Z.astype(np.float64)
        Z[rows], start = part, rows.stop
    return Features(Z, G)


class LowRankView:
    """G = V diag(ω) Vᵀ once; with the features rotated by V, conditioning at any λ and any constant a is then diagonal.

    Parameters
    ----------
    Z_L : (l, r), features of the labeled rows
    features : those of all rows, with the sum G over the unlabeled ones
    index_U : (u,), which rows are the unlabeled ones
    weights : (u,), how often each unlabeled row counts, > 0
    prior_variance : σ²
    view : its name, for errors
    """

    def __init__(
        self, Z_L: Array, features: Features, index_U: IntArray, weights: Array, prior_variance: float, view: str = ""
    ) -> None:
        omega, self.rotation = eigen_psd(features.G)
        rotation = self.rotation.astype(features.Z.dtype)
        Z_U = np.empty((index_U.size, omega.size), dtype=features.Z.dtype)
        for start in range(0, len(Z_U), ROTATED_ROWS):
            rows = slice(start, start + ROTATED_ROWS)
            np.matmul(features.Z[index_U[rows]], rotation, out=Z_U[rows])
        self.space = WeightSpace(Z_L @ self.rotation, omega, prior_variance)
        self.blocks = FeatureBlocks(self.space.Z_L, Z_U, weights, prior_variance, view)
        self._conditioned = lru_cache(KEPT_GAUSSIANS)(partial(LowRankConditioned, self.space, self.blocks))

    def condition(self, lam: float, a: Array) -> "LowRankConditioned":
        """The Gaussian at ``lam`` and a constant curvature; kept for the fits of a short schedule, which share theirs."""
        return self._conditioned(lam, float(a[0]) if a.size else 0.0)


class LowRankConditioned(WeightGaussian):
    """The Gaussian over θ, and its means and variances of the unlabeled rows."""

    def __init__(self, space: WeightSpace, blocks: FeatureBlocks, lam: float, a: float) -> None:
        super().__init__(space, lam, a)
        self.blocks = blocks

    @cached_property
    def variance_U(self) -> Array:
        """σ² Σ_k d_k z_k²."""
        return self.blocks.squared_sums(self.space.prior_variance * self.d)

    def project_response(self, b: Array) -> Array:
        """λ Z_Uᵀ wb."""
        return self.lam * self.blocks.sums(self.blocks.weights[:, None] * b)

    def unlabeled(self, projected: Array, tau: Array) -> tuple[Array, Array]:
        """γ, and Z_U θ with θ = σ²(Z_Lᵀτ + γ)."""
        gamma = self.coefficients(projected, tau)
        return gamma, self.blocks.scores(self.blocks.mean_weights(tau, gamma))
