"""A view's Gaussian posterior given pseudo-data (a, b) on the unlabelled rows and the dual on the labelled ones.

Notation as in ``docs/notation.md``; equation numbers are those of ``docs/theory.md``. One contract, three bodies: given a
consensus weight λ and a curvature a, :meth:`ViewModel.condition` returns the Gaussian N(m⁰, S) that the unlabelled rows
alone imply (equation 3); :func:`update_view` then adds the labelled rows through the dual (equation 4).

* :class:`SpectralView`: one curvature for all rows, so one eigendecomposition serves every λ, σ² and class.
* :class:`CholeskyView`: any curvature, one Cholesky factorisation each.
* :class:`cmvmed.low_rank.LowRankView`: one curvature, and features in place of the kernel.

Rows may carry weights: weight w counts an unlabelled row w times, so that a and b are multiplied by w.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from cmvmed.linalg import (
    Array,
    NotPositiveDefiniteError,
    cholesky,
    eigen_psd,
    inverse_diagonal,
    log_determinant,
    product,
    solve_cholesky,
    solve_lower,
)
from cmvmed.qp import duality_gap, gradient, solve_box_qp
from cmvmed.surrogates import Surrogate

Factors = TypeVar("Factors")

LARGEST_SCORE = 1e50  # no sound fit comes near it
LEAST_INFORMATION = 1e-3  # of a row's consensus term relative to the prior's, for a variance by way of B⁻¹
LEAST_ROOT = 1e-150  # stands in for the root of a curvature of zero


class Blocks(Protocol):
    """What a view's prior N(0, σ²K) says of its labelled (l) and unlabelled (u) rows, bias included.

    The weights are w = σ²(Φ_Lᵀτ + Ψᵀγ): with the kernel, Ψ = Φ_U has a line for each unlabelled row; with features, one for each
    feature. g is the number of these lines.
    """

    @property
    def LL(self) -> Array:
        """Kernel over the labelled rows, (l, l)."""

    @property
    def weights(self) -> Array:
        """How often each unlabelled row counts, (u,)."""

    @property
    def prior_variance(self) -> float:
        """σ²."""

    @property
    def view(self) -> str:
        """The view's name, for errors."""

    @property
    def diagonal_U(self) -> Array:
        """k(x, x) of the unlabelled rows, (u,)."""

    @property
    def n_coefficients(self) -> int:
        """The number of lines of Ψ."""

    def prior_mean(self, tau: Array) -> Array:
        """Means of the unlabelled rows that the labelled ones alone imply, σ²K_UL τ, (u, F)."""

    def paired_mean(self, tau: Array, gamma: Array, m_U: Array) -> Array:
        """Ψw, (g, F): what γ is multiplied with in ‖w‖²/σ² = τᵀm_L + γᵀΨw."""


@dataclass(frozen=True)
class KernelBlocks:
    """One view's kernel on its labelled (l) and unlabelled (u) rows, bias included."""

    LL: Array  # (l, l)
    UL: Array  # (u, l)
    UU: Array  # (u, u)
    weights: Array  # (u,) how often each unlabelled row counts, > 0
    prior_variance: float  # σ²
    view: str = ""  # named in errors

    @property
    def diagonal_U(self) -> Array:
        """k(x, x) of the unlabelled rows, (u,)."""
        return np.diagonal(self.UU)

    @property
    def n_coefficients(self) -> int:
        """One for each unlabelled row."""
        return int(self.UL.shape[0])

    def prior_mean(self, tau: Array) -> Array:
        """σ²K_UL τ."""
        return np.asarray(self.prior_variance * (self.UL @ tau))

    def paired_mean(self, tau: Array, gamma: Array, m_U: Array) -> Array:
        """Φ_U w = m_U."""
        return m_U


class Conditioned(Protocol):
    """The Gaussian implied by the unlabelled rows at (λ, a): its covariance S and the map from b to its mean m⁰."""

    @property
    def S_LL(self) -> Array:
        """Covariance over the labelled rows, (l, l)."""

    @property
    def variance_U(self) -> Array:
        """Diagonal of S over the unlabelled rows, (u,)."""

    @property
    def log_det(self) -> float:
        """Log |B|."""

    def pull(self, b: Array) -> Array:
        """What the response b (u, F) asks for, in the coordinates of the factorisation, (g, F)."""

    def labelled_mean(self, pull: Array) -> Array:
        """m⁰_L = λS_LU wb, (l, F)."""

    def coefficients(self, pull: Array, tau: Array) -> Array:
        """γ with Ψᵀγ = λΦ_Uᵀw(b - a∘m_U), (g, F), solved for: the difference would lose what the kernel then multiplies."""

    def unlabelled_mean(self, tau: Array, gamma: Array) -> Array:
        """m_U = σ²(K_UL τ + Φ_U Ψᵀγ), (u, F)."""


class ViewModel(Protocol):
    """A view that can be conditioned on curvature."""

    @property
    def blocks(self) -> Blocks:
        """What the view's prior says of its rows."""

    def condition(self, lam: float, a: Array) -> Conditioned:
        """The Gaussian at consensus weight ``lam`` and curvature ``a`` (u,)."""


class SpectralView:
    """√w K_UU √w = Q diag(ω) Qᵀ once; conditioning at any λ and any constant a is then diagonal."""

    def __init__(self, blocks: KernelBlocks) -> None:
        self.root = np.sqrt(blocks.weights)
        scaled = blocks.UU * self.root * self.root[:, None] if (blocks.weights != 1.0).any() else blocks.UU
        self.omega, self.Q = _factorised(eigen_psd, scaled, blocks.view)
        self.G = self.Q.T @ (self.root[:, None] * blocks.UL)  # (u, l)
        self.blocks = blocks
        self._last: tuple[tuple[float, float], SpectralConditioned] | None = None

    def condition(self, lam: float, a: Array) -> Conditioned:
        """The Gaussian at ``lam`` and a constant curvature; kept while neither changes."""
        rho = lam * self.blocks.prior_variance * (float(a[0]) if a.size else 0.0)
        if self._last is None or self._last[0] != (lam, rho):
            self._last = ((lam, rho), SpectralConditioned(self, lam, rho))
        return self._last[1]


class SpectralConditioned:
    """With ρ = λσ²a and d = 1/(1 + ρω): S_UU = σ² Q diag(ωd) Qᵀ, S_UL = σ² Q diag(d) G (rows divided by √w)."""

    def __init__(self, view: SpectralView, lam: float, rho: float) -> None:
        self.view, self.lam, self.rho = view, lam, rho
        self.d = 1.0 / (1.0 + rho * view.omega)
        self.sigma2 = view.blocks.prior_variance
        self.S_LL = self.sigma2 * (view.blocks.LL - rho * (view.G.T @ (self.d[:, None] * view.G)))
        self.log_det = float(np.log1p(rho * view.omega).sum())

    @cached_property
    def variance_U(self) -> Array:
        """σ² Σ_k Q²_mk ω_k d_k / w_m."""
        view = self.view
        return np.asarray(self.sigma2 * ((view.Q**2) @ (view.omega * self.d)) / view.blocks.weights)

    def pull(self, b: Array) -> Array:
        """λQᵀ√w b."""
        return np.asarray(self.lam * (self.view.Q.T @ (self.view.root[:, None] * b)))

    def labelled_mean(self, pull: Array) -> Array:
        """σ² Gᵀ d pull."""
        return np.asarray(self.sigma2 * (self.view.G.T @ (self.d[:, None] * pull)))

    def coefficients(self, pull: Array, tau: Array) -> Array:
        """√w Q d (pull - ρGτ)."""
        view = self.view
        return np.asarray(view.root[:, None] * (view.Q @ (self.d[:, None] * (pull - self.rho * (view.G @ tau)))))

    def unlabelled_mean(self, tau: Array, gamma: Array) -> Array:
        """σ²(K_UL τ + K_UU γ)."""
        blocks = self.view.blocks
        return np.asarray(self.sigma2 * (blocks.UL @ tau + blocks.UU @ gamma))


class CholeskyView:
    """B = I + diag(r) K_UU diag(r) with r = √(λσ²wa), factorised for each curvature."""

    def __init__(self, blocks: KernelBlocks) -> None:
        self.blocks = blocks

    def condition(self, lam: float, a: Array) -> Conditioned:
        """The Gaussian at ``lam`` and curvature ``a`` (u,)."""
        return CholeskyConditioned(self.blocks, lam, a)


class CholeskyConditioned:
    """S = σ²(K - WᵀW), W = Λ⁻¹ diag(r) K_{U·}; B >= I, so the factorisation needs no jitter."""

    def __init__(self, blocks: KernelBlocks, lam: float, a: Array) -> None:
        self.blocks, self.lam = blocks, lam
        self.r = np.sqrt(lam * blocks.prior_variance * blocks.weights * a)
        self.factor = factor_B(blocks.UU, self.r, blocks.view)
        self.log_det = log_determinant(self.factor)
        self.W_L = solve_lower(self.factor, np.asfortranarray(self.r[:, None] * blocks.UL))  # (u, l)

    @property
    def S_LL(self) -> Array:
        """σ²(K_LL - W_Lᵀ W_L)."""
        return np.asarray(self.blocks.prior_variance * (self.blocks.LL - product(self.W_L.T, self.W_L)))

    @cached_property
    def variance_U(self) -> Array:
        """σ²(1 - (B⁻¹)_mm)/r²_m; where r²_m K_mm is so small that the difference loses digits, σ²(K_mm - ‖W_m‖²)."""
        K_mm, squared = np.diagonal(self.blocks.UU), self.r**2
        weak = squared * K_mm < LEAST_INFORMATION
        variance = (1.0 - inverse_diagonal(self.factor)) / np.where(weak, 1.0, squared)
        W = solve_lower(self.factor, np.multiply(self.blocks.UU[:, weak], self.r[:, None], order="F"))
        variance[weak] = K_mm[weak] - np.einsum("ij,ij->j", W, W)
        return np.asarray(self.blocks.prior_variance * np.maximum(variance, 0.0))

    def pull(self, b: Array) -> Array:
        """λwb/r."""
        return np.asarray(self.lam * self.blocks.weights[:, None] * b / np.maximum(self.r, LEAST_ROOT)[:, None])

    def labelled_mean(self, pull: Array) -> Array:
        """σ² W_Lᵀ Λ⁻¹ pull."""
        return self.blocks.prior_variance * product(self.W_L.T, solve_lower(self.factor, np.array(pull, order="F")))

    def coefficients(self, pull: Array, tau: Array) -> Array:
        """R B⁻¹(pull - r K_UL τ)."""
        r = np.maximum(self.r, LEAST_ROOT)[:, None]
        return np.asarray(r * solve_cholesky(self.factor, pull - r * product(self.blocks.UL, tau)))

    def unlabelled_mean(self, tau: Array, gamma: Array) -> Array:
        """σ²(K_UL τ + K_UU γ)."""
        blocks = self.blocks
        return blocks.prior_variance * (product(blocks.UL, tau) + product(blocks.UU, gamma))


def factor_B(K_UU: Array, r: Array, view: str = "") -> Array:
    """Lower Cholesky factor of B = I + diag(r) K_UU diag(r)."""
    B = K_UU.T * r  # K_UU is symmetric; its transpose is in Fortran order, so nothing is rearranged
    B *= r[:, None]
    B[np.diag_indices_from(B)] += 1.0
    return _factorised(cholesky, B, view)


def _factorised(factorise: Callable[[Array], Factors], matrix: Array, view: str) -> Factors:
    """A factorisation that names the view if rounding defeats it."""
    try:
        return factorise(matrix)
    except (NotPositiveDefiniteError, np.linalg.LinAlgError) as error:
        largest = float(np.nanmax(np.abs(matrix)))
        raise ValueError(
            f"The kernel of view {view!r} cannot be factorised: its values, times the prior variance, reach {largest:.1e}, where "
            'rounding hides its structure. Use scaling="auto", or a smaller gamma or prior_variance.'
        ) from error


def predictive_variance(
    K_UU: Array, K_Ux: Array, k_xx: Array, r: Array, prior_variance: float, view: str = ""
) -> Array:
    """s(x) = σ²(k(x,x) - ‖Λ⁻¹(r∘k_Ux)‖²) of new rows, (n,); every surrogate's curvature a enters through r."""
    W_x = solve_lower(factor_B(K_UU, r, view), np.multiply(r[:, None], K_Ux, order="F"))
    reduction = np.einsum("ij,ij->j", W_x, W_x)
    return np.asarray(prior_variance * np.maximum(k_xx - reduction, 0.0))


@dataclass(frozen=True)
class ViewState:
    """A view's posterior on its own rows: F functions, l labelled and u unlabelled rows.

    The weights are w = σ²(Φ_Lᵀτ + Ψᵀγ), see :class:`Blocks`; with a kernel the mean of any x is m(x) = σ²(k_xL τ + k_xU γ).
    """

    tau: Array  # (l, F) y∘α
    gamma: Array  # (g, F) λw(b - a∘m_U) with a kernel
    m_L: Array  # (l, F)
    m_U: Array  # (u, F)
    m_gamma: Array  # (g, F) Ψw, which is m_U with a kernel
    s_U: Array  # (u, 1 or F); zero where the surrogate plugs in the mean
    a: Array  # (u, 1 or F)
    b: Array  # (u, F)
    covariance_cost: float  # ½(log|B| - λΣwas): the part of the KL divergence that belongs to the covariance
    gap: float  # duality gap of the labelled rows' dual, summed over functions

    @property
    def squared_norm(self) -> float:
        """‖w‖²/σ² = τᵀm_L + γᵀΨw."""
        return float((self.tau * self.m_L).sum() + (self.gamma * self.m_gamma).sum())


def supervised_state(model: ViewModel, Y: Array, box: Array) -> ViewState:
    """The view's MED (λ = 0): labelled rows only."""
    blocks = model.blocks
    tau, m_L, gap = solve_dual(blocks.prior_variance * blocks.LL, np.zeros_like(Y), Y, box, np.zeros_like(Y))
    gamma, m_U = np.zeros((blocks.n_coefficients, Y.shape[1])), blocks.prior_mean(tau)
    return ViewState(
        tau=tau,
        gamma=gamma,
        m_L=m_L,
        m_U=m_U,
        m_gamma=blocks.paired_mean(tau, gamma, m_U),
        s_U=(blocks.prior_variance * blocks.diagonal_U)[:, None],
        a=np.zeros((m_U.shape[0], 1)),
        b=np.zeros_like(m_U),
        covariance_cost=0.0,
        gap=gap,
    )


def update_view(
    model: ViewModel, surrogate: Surrogate, state: ViewState, q: Array, Y: Array, box: Array, lam: float
) -> ViewState:
    """Minimise the view's surrogate objective given the consensus (equations 3 and 4).

    Parameters
    ----------
    q : (u, F) consensus probability of each function's positive class
    Y : (l, F) labels ±1
    box : (l,) hinge weight C of each labelled row
    lam : consensus weight λ
    """
    a = surrogate.curvature(state.m_U, state.s_U)
    b = surrogate.response(state.m_U, q, a)
    columns = [slice(None)] if surrogate.shared_curvature else [slice(c, c + 1) for c in range(Y.shape[1])]
    parts = [
        _update_functions(model, surrogate.uses_variance, a[:, c], b[:, c], Y[:, c], box, lam, np.abs(state.tau[:, c]))
        for c in columns
    ]
    return parts[0] if len(parts) == 1 else _join(parts)


def _update_functions(
    model: ViewModel, with_variance: bool, a: Array, b: Array, Y: Array, box: Array, lam: float, alpha: Array
) -> ViewState:
    """Update the functions that share the curvature ``a`` (u, 1)."""
    conditioned = model.condition(lam, a[:, 0])
    pull = conditioned.pull(b)
    tau, m_L, gap = solve_dual(conditioned.S_LL, conditioned.labelled_mean(pull), Y, box, alpha)
    gamma = conditioned.coefficients(pull, tau)
    m_U = conditioned.unlabelled_mean(tau, gamma)
    if not np.abs(m_U).max(initial=0.0) <= LARGEST_SCORE:
        raise ValueError(
            f"The scores of view {model.blocks.view!r} diverge: its kernel is so large that rounding takes over. Use "
            'scaling="auto", or a smaller gamma or prior_variance.'
        )
    w = model.blocks.weights[:, None]
    s_U, cost = np.zeros((b.shape[0], 1)), 0.0
    if with_variance:
        s_U = conditioned.variance_U[:, None]
        cost = 0.5 * Y.shape[1] * (conditioned.log_det - lam * float((w * a * s_U).sum()))
    m_gamma = model.blocks.paired_mean(tau, gamma, m_U)
    return ViewState(tau, gamma, m_L, m_U, m_gamma, s_U, a, b, cost, gap)


def solve_dual(S_LL: Array, m0_L: Array, Y: Array, box: Array, alpha: Array) -> tuple[Array, Array, float]:
    """Solve the dual (4) of each function; return τ = y∘α (l, F), the labelled means m_L (l, F) and the summed gap."""
    tau, gap = np.zeros_like(Y), 0.0
    for c in range(Y.shape[1]):
        y = Y[:, c]
        Q, g = S_LL * y * y[:, None], 1.0 - y * m0_L[:, c]
        solution = solve_box_qp(Q, g, box, alpha[:, c])
        gap += duality_gap(gradient(Q, g, solution), solution, box)
        tau[:, c] = y * solution
    return tau, m0_L + S_LL @ tau, gap


def _join(parts: list[ViewState]) -> ViewState:
    """One state from states of single functions."""

    def stack(field: str) -> Array:
        return np.hstack([getattr(part, field) for part in parts])

    return ViewState(
        tau=stack("tau"),
        gamma=stack("gamma"),
        m_L=stack("m_L"),
        m_U=stack("m_U"),
        m_gamma=stack("m_gamma"),
        s_U=stack("s_U"),
        a=stack("a"),
        b=stack("b"),
        covariance_cost=sum(part.covariance_cost for part in parts),
        gap=sum(part.gap for part in parts),
    )


def interpolate(start: ViewState, end: ViewState, length: float) -> ViewState:
    """The state at w = (1 - length) start + length end: coefficients and means are linear in w; the rest is the end's."""

    def between(first: Array, second: Array) -> Array:
        return (1.0 - length) * first + length * second

    return replace(
        end,
        tau=between(start.tau, end.tau),
        gamma=between(start.gamma, end.gamma),
        m_L=between(start.m_L, end.m_L),
        m_U=between(start.m_U, end.m_U),
        m_gamma=between(start.m_gamma, end.m_gamma),
    )


def scaled(state: ViewState, factor: float) -> ViewState:
    """The state of the weights ``factor``·w."""
    return replace(
        state,
        tau=factor * state.tau,
        gamma=factor * state.gamma,
        m_L=factor * state.m_L,
        m_U=factor * state.m_U,
        m_gamma=factor * state.m_gamma,
    )


def cavity_scores(model: ViewModel, state: ViewState, lam: float) -> Array:
    """Means of the unlabelled rows with each row's own consensus term removed, (m/s - λb)/(1/s - λa), (u, F)."""
    own = lam * model.blocks.weights[:, None]
    s = np.column_stack([model.condition(lam, a).variance_U for a in state.a.T])
    s = np.maximum(s, np.finfo(float).tiny)
    return np.asarray((state.m_U - own * s * state.b) / np.maximum(1.0 - own * s * state.a, np.finfo(float).eps))
