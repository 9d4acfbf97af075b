"""Step 2(b): a view's Gaussian posterior, from pseudo-data (a, b) on the unlabeled rows and the dual of the labeled ones.

Notation and letters of equations as in ``docs/theory.md``. One contract with three implementations: given a consensus
weight λ and a curvature a, :meth:`ViewModel.condition` returns the Gaussian N(m⁰, S) that the unlabeled rows alone
imply, equation (B); :func:`update_view` then adds the labeled rows through the dual (C), paper eq. (5).

* :class:`cmvmed.core.full_kernel.SpectralView`: the kernel and one curvature for all rows.
* :class:`cmvmed.core.full_kernel.CholeskyView`: the kernel and any curvature.
* :class:`cmvmed.core.low_rank.LowRankView`: one curvature, and features in place of the kernel.

Rows may carry weights: weight w counts an unlabeled row w times, so that a and b are multiplied by w.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from cmvmed.core.box_qp import duality_gap, solve_box_qps
from cmvmed.core.surrogates import Surrogate
from cmvmed.numerics.types import Array

MAX_SCORE = 1e50  # of a fit; larger ones are the result of rounding
KEPT_GAUSSIANS = 2  # per view: short fits have two stages, and all of them the same two values of λ


class Blocks(Protocol):
    """A view's prior N(0, σ²K) on its labeled (l) and unlabeled (u) rows, bias included.

    The weights are w = σ²(Φ_Lᵀτ + Ψᵀγ): with the kernel, Ψ = Φ_U has a line for each unlabeled row; with features, one
    for each feature. g is the number of these lines.
    """

    @property
    def LL(self) -> Array:
        """Kernel over the labeled rows, (l, l)."""

    @property
    def weights(self) -> Array:
        """How often each unlabeled row counts, (u,)."""

    @property
    def prior_variance(self) -> float:
        """σ²."""

    @property
    def view(self) -> str:
        """The view's name, for errors."""

    @property
    def diagonal_U(self) -> Array:
        """k(x, x) of the unlabeled rows, (u,)."""

    @property
    def n_coefficients(self) -> int:
        """The number of lines of Ψ."""

    def prior_mean(self, tau: Array) -> Array:
        """Means of the unlabeled rows that the labeled ones alone imply, σ²K_UL τ, (u, F)."""

    def squared_norm(self, tau: Array, gamma: Array, m_L: Array, m_U: Array) -> float:
        """‖w‖²/σ² = τᵀm_L + γᵀΨw, summed over functions."""


class Conditioned(Protocol):
    """The Gaussian implied by the unlabeled rows at (λ, a): its covariance S and the map from b to its mean m⁰."""

    @property
    def S_LL(self) -> Array:
        """Covariance over the labeled rows, (l, l): σ² times K-tilde of paper eqs. (6) and (7)."""

    @property
    def variance_U(self) -> Array:
        """Diagonal of S over the unlabeled rows, (u,)."""

    def total_variance(self) -> float:
        """Σ_U w s."""

    @property
    def log_det(self) -> float:
        """log |B|."""

    def project_response(self, b: Array) -> Array:
        """The response b (u, F) in the coordinates of the factorization, (g, F)."""

    def labeled_mean(self, projected: Array) -> Array:
        """m⁰_L = λS_LU wb, (l, F)."""

    def unlabeled(self, projected: Array, tau: Array) -> tuple[Array, Array]:
        """γ (g, F) with Ψᵀγ = λΦ_Uᵀw(b - a∘m_U), and m_U = σ²(K_UL τ + Φ_U Ψᵀγ), (u, F).

        γ is from a linear system: the difference loses digits to cancellation.
        """


class ViewModel(Protocol):
    """A view that can be conditioned on curvature."""

    @property
    def blocks(self) -> Blocks:
        """The view's prior on its rows."""

    def condition(self, lam: float, a: Array) -> Conditioned:
        """The Gaussian at consensus weight ``lam`` and curvature ``a`` (u,)."""


@dataclass(frozen=True)
class ViewState:
    """A view's posterior on its own rows: F functions, l labeled and u unlabeled rows.

    The weights are w = σ²(Φ_Lᵀτ + Ψᵀγ), see :class:`Blocks`; with a kernel the mean of any x is m(x) = σ²(k_xL τ + k_xU
    γ).
    """

    tau: Array  # (l, F) y∘α
    gamma: Array  # (g, F) λw(b - a∘m_U) with a kernel
    m_L: Array  # (l, F)
    m_U: Array  # (u, F)
    s_U: Array  # (u, 1 or F); zero where the surrogate plugs in the mean, the mean over rows with one curvature for all
    a: Array  # (u, 1 or F)
    b: Array  # (u, F)
    covariance_cost: float  # ½(log|B| - λΣwas): the part of the KL divergence that belongs to the covariance
    gap: float  # duality gap of the labeled rows' dual, summed over functions


def supervised_state(model: ViewModel, Y: Array, box: Array, near: ViewState | None = None) -> ViewState:
    """The view's MED, paper eq. (1): λ = 0, labeled rows only. The search starts from the dual variables of ``near``."""
    blocks = model.blocks
    alpha = np.zeros_like(Y) if near is None else np.abs(near.tau)
    tau, m_L, gap = solve_dual(blocks.prior_variance * blocks.LL, np.zeros_like(Y), Y, box, alpha)
    gamma, m_U = np.zeros((blocks.n_coefficients, Y.shape[1])), blocks.prior_mean(tau)
    return ViewState(
        tau=tau,
        gamma=gamma,
        m_L=m_L,
        m_U=m_U,
        s_U=(blocks.prior_variance * blocks.diagonal_U)[:, None],
        a=np.zeros((m_U.shape[0], 1)),
        b=np.zeros_like(m_U),
        covariance_cost=0.0,
        gap=gap,
    )


def update_view(
    model: ViewModel,
    surrogate: Surrogate,
    state: ViewState,
    q: Array,
    Y: Array,
    box: Array,
    lam: float,
    length: float = 1.0,
) -> ViewState:
    """Step 2(b): minimize the view's surrogate objective given the consensus, equations (B) to (D).

    Parameters
    ----------
    q : (u, F) consensus probability of each function's positive class
    Y : (l, F) labels ±1
    box : (l,) or (l, F) hinge weight C of each labeled row
    lam : consensus weight λ
    length : 1 for the surrogate's pseudo-data (a, b); less for those between it and the state's
    """
    target = surrogate.curvature(state.m_U, state.s_U)
    a = blend(state.a, target, length)
    b = blend(state.b, surrogate.response(state.m_U, state.s_U, q, target), length)
    columns = [slice(None)] if surrogate.shared_curvature else [slice(c, c + 1) for c in range(Y.shape[1])]
    parts = [
        _update_functions(model, surrogate, a[:, c], b[:, c], Y[:, c], box, lam, np.abs(state.tau[:, c]))
        for c in columns
    ]
    return parts[0] if len(parts) == 1 else join_functions(parts)


def _update_functions(
    model: ViewModel, surrogate: Surrogate, a: Array, b: Array, Y: Array, box: Array, lam: float, alpha: Array
) -> ViewState:
    """Update the functions that share the curvature ``a`` (u, 1)."""
    conditioned = model.condition(lam, a[:, 0])
    projected = conditioned.project_response(b)
    tau, m_L, gap = solve_dual(conditioned.S_LL, conditioned.labeled_mean(projected), Y, box, alpha)
    gamma, m_U = conditioned.unlabeled(projected, tau)
    if not np.abs(m_U).max(initial=0.0) <= MAX_SCORE:
        raise ValueError(
            f"The scores of view {model.blocks.view!r} diverge: its kernel is so large that rounding takes over. Use "
            'scaling="auto", or a smaller gamma or prior_variance.'
        )
    w = model.blocks.weights[:, None]
    s_U, cost = np.zeros((b.shape[0], 1)), 0.0
    if surrogate.uses_variance:
        if surrogate.shared_curvature:  # then variances matter through their sum alone, which takes less to compute
            s_U += conditioned.total_variance() / max(float(w.sum()), np.finfo(float).tiny)
        else:
            s_U = conditioned.variance_U[:, None]
        cost = 0.5 * Y.shape[1] * (conditioned.log_det - lam * float((w * a * s_U).sum()))
    return ViewState(tau, gamma, m_L, m_U, s_U, a, b, cost, gap)


def solve_dual(S_LL: Array, m0_L: Array, Y: Array, box: Array, alpha: Array) -> tuple[Array, Array, float]:
    """Solve the dual (C), paper eq. (5), of each function; hinge weights may be (l,) or (l, F).

    Returns
    -------
    tau : (l, F), y∘α
    m_L : (l, F), means of the labeled rows
    gap : duality gap, summed over functions
    """
    upper = np.broadcast_to(box.T, Y.T.shape).T
    tau = Y * solve_box_qps(S_LL, 1.0 - Y * m0_L, Y, upper, alpha)
    m_L = m0_L + S_LL @ tau
    return tau, m_L, duality_gap(1.0 - Y * m_L, np.abs(tau), upper)


def join_functions(parts: Sequence[ViewState]) -> ViewState:
    """One state with the functions of all parts."""

    def stack(field: str) -> Array:
        return np.hstack([getattr(part, field) for part in parts])

    return ViewState(
        tau=stack("tau"),
        gamma=stack("gamma"),
        m_L=stack("m_L"),
        m_U=stack("m_U"),
        s_U=stack("s_U"),
        a=stack("a"),
        b=stack("b"),
        covariance_cost=sum(part.covariance_cost for part in parts),
        gap=sum(part.gap for part in parts),
    )


def blend(start: Array, end: Array, length: float) -> Array:
    """(1 - length) start + length end."""
    return end if length == 1.0 else (1.0 - length) * start + length * end


def interpolate(start: ViewState, end: ViewState, length: float) -> ViewState:
    """The state at w = (1 - length) start + length end: coefficients and means are linear in w; the rest is the end's."""
    return replace(
        end,
        tau=blend(start.tau, end.tau, length),
        gamma=blend(start.gamma, end.gamma, length),
        m_L=blend(start.m_L, end.m_L, length),
        m_U=blend(start.m_U, end.m_U, length),
    )


def scaled(state: ViewState, factor: float) -> ViewState:
    """The state of the weights ``factor``·w."""
    return replace(
        state,
        tau=factor * state.tau,
        gamma=factor * state.gamma,
        m_L=factor * state.m_L,
        m_U=factor * state.m_U,
    )
