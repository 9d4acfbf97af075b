"""A view's posterior in weight space: features z(x) of rank r in place of the kernel, f = θᵀz with θ ~ N(0, σ²I).

With G = Σ_U w z zᵀ = V diag(ω) Vᵀ, the features turned by V, ρ = λσ²a and d = 1/(1 + ρω), equations (3) to (5) of the theory
page are diagonal for every λ, σ² and class:

    S(x, x') = σ² zᵀ diag(d) z',   θ = σ² d (λ Σ_U w b z + Z_Lᵀτ),   log|B| = Σ log(1 + ρω)

G and Σ_U w b z are sums over rows. :class:`LowRankView` keeps the features of all rows; :class:`WeightSpace` needs only those of
the labelled ones, and the sums from elsewhere.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cmvmed.linalg import Array, eigen_psd

TURNED_ROWS = 2048  # rows weighted or turned at a time
SQUARED_ROWS = 128  # rows squared at a time


@dataclass(frozen=True)
class FeatureBlocks:
    """One view's features on its labelled (l) and unlabelled (u) rows, bias included."""

    Z_L: Array  # (l, r)
    Z_U: Array  # (u, r)
    weights: Array  # (u,) how often each unlabelled row counts, > 0
    prior_variance: float  # σ²
    view: str = ""  # named in errors

    @cached_property
    def LL(self) -> Array:
        """Z_L Z_Lᵀ."""
        return self.Z_L @ self.Z_L.T

    @cached_property
    def diagonal_U(self) -> Array:
        """‖z‖² of the unlabelled rows, (u,)."""
        return np.asarray(np.einsum("ij,ij->i", self.Z_U, self.Z_U))

    @property
    def n_coefficients(self) -> int:
        """One for each feature."""
        return int(self.Z_L.shape[1])

    def prior_mean(self, tau: Array) -> Array:
        """σ² Z_U Z_Lᵀτ."""
        return self.Z_U @ (self.prior_variance * (self.Z_L.T @ tau))

    def paired_mean(self, tau: Array, gamma: Array, m_U: Array) -> Array:
        """θ = σ²(Z_Lᵀτ + γ)."""
        return np.asarray(self.prior_variance * (self.Z_L.T @ tau + gamma))


@dataclass(frozen=True)
class WeightSpace:
    """The labelled rows' features, turned by the eigenvectors of G, and its eigenvalues."""

    Z_L: Array  # (l, r)
    omega: Array  # (r,)
    prior_variance: float  # σ²


class WeightGaussian:
    """The Gaussian N(m⁰, S) over θ that the unlabelled rows imply at (λ, a)."""

    def __init__(self, space: WeightSpace, lam: float, a: float) -> None:
        self.space, self.lam, self.a = space, lam, a
        self.rho = lam * space.prior_variance * a
        self.d = 1.0 / (1.0 + self.rho * space.omega)
        self.S_LL = space.prior_variance * (space.Z_L @ (self.d[:, None] * space.Z_L.T))
        self.log_det = float(np.log1p(self.rho * space.omega).sum())

    def labelled_mean(self, pull: Array) -> Array:
        """σ² Z_L d pull, with pull = λ Σ_U w b z (r, F)."""
        return np.asarray(self.space.prior_variance * (self.space.Z_L @ (self.d[:, None] * pull)))

    def coefficients(self, pull: Array, tau: Array) -> Array:
        """γ = d(pull - ρω Z_Lᵀτ)."""
        resisted = (self.rho * self.space.omega)[:, None] * (self.space.Z_L.T @ tau)
        return np.asarray(self.d[:, None] * (pull - resisted))

    def total_variance(self) -> float:
        """Σ_U w s = σ² Σ ωd."""
        return float(self.space.prior_variance * (self.space.omega @ self.d))


class LowRankView:
    """G = V diag(ω) Vᵀ once; conditioning at any λ and any constant a is then diagonal.

    ``blocks.Z_L`` and ``blocks.Z_U`` are replaced by Z_L V and, in place, Z_U V.
    """

    def __init__(self, blocks: FeatureBlocks) -> None:
        parts = [slice(start, start + TURNED_ROWS) for start in range(0, blocks.Z_U.shape[0], TURNED_ROWS)]
        G, root = np.zeros((blocks.n_coefficients, blocks.n_coefficients)), np.sqrt(blocks.weights)[:, None]
        for rows in parts:
            weighted = root[rows] * blocks.Z_U[rows]
            G += weighted.T @ weighted
        omega, self.rotation = eigen_psd(G)
        for rows in parts:
            blocks.Z_U[rows] = blocks.Z_U[rows] @ self.rotation
        self.space = WeightSpace(blocks.Z_L @ self.rotation, omega, blocks.prior_variance)
        self.blocks = FeatureBlocks(self.space.Z_L, blocks.Z_U, blocks.weights, blocks.prior_variance, blocks.view)
        self._last: tuple[tuple[float, float], LowRankConditioned] | None = None

    def condition(self, lam: float, a: Array) -> "LowRankConditioned":
        """The Gaussian at ``lam`` and a constant curvature; kept while neither changes."""
        curvature = float(a[0]) if a.size else 0.0
        if self._last is None or self._last[0] != (lam, curvature):
            self._last = ((lam, curvature), LowRankConditioned(self, lam, curvature))
        return self._last[1]


class LowRankConditioned(WeightGaussian):
    """The Gaussian over θ, and what it says of the unlabelled rows."""

    def __init__(self, view: LowRankView, lam: float, a: float) -> None:
        super().__init__(view.space, lam, a)
        self.blocks = view.blocks

    @cached_property
    def variance_U(self) -> Array:
        """σ² Σ_k d_k z_k², some rows at a time so that their squares stay in the cache."""
        Z_U, weights = self.blocks.Z_U, self.space.prior_variance * self.d
        parts = [np.square(Z_U[start : start + SQUARED_ROWS]) @ weights for start in range(0, len(Z_U), SQUARED_ROWS)]
        return np.concatenate(parts) if parts else np.empty(0)

    def pull(self, b: Array) -> Array:
        """λ Z_Uᵀ wb."""
        return np.asarray(self.lam * (self.blocks.Z_U.T @ (self.blocks.weights[:, None] * b)))

    def unlabelled_mean(self, tau: Array, gamma: Array) -> Array:
        """Z_U θ with θ = σ²(Z_Lᵀτ + γ)."""
        return self.blocks.Z_U @ (self.space.prior_variance * (self.space.Z_L.T @ tau + gamma))
