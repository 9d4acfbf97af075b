"""The objective, equation (A) of the theory page, and the record of one sweep.

It is paper eq. (4) made complete. The loops in memory and over chunks of rows use the same functions.

    J = Σ_i π_i { ½‖w_i‖²/σ² + covariance cost + C Σ_L [1 - y m_i]₊ + λ Σ_U w (E A(f_i) - (q - ½) m_i) }
        - λκT Σ_U wψ H(q),         κ = 1 for two classes and 2 for more.

The offset o of the consensus, which meets given class shares, is the multiplier of that constraint and has no term.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.core.consensus import Consensus, divergence, n_functions, positive_probability
from cmvmed.core.posterior import ViewState
from cmvmed.core.problem import Problem
from cmvmed.core.surrogates import Surrogate
from cmvmed.numerics.types import Array


@dataclass(frozen=True)
class Sweep:
    """One row of the fit's history."""

    stage: int
    consensus_weight: float
    temperature: float
    objective: float
    consensus_term: float  # its part that ties the views to the consensus
    kl_by_view: tuple[float, ...]  # mean over unlabeled rows of KL(consensus ‖ view), see :func:`consensus.divergence`
    dual_gap: float
    entropy: float  # mean entropy of the consensus
    class_shares: tuple[float, ...]
    n_rows: int  # unlabeled rows that took part
    seconds: float  # that the sweep took


@dataclass(frozen=True)
class ConsensusSums:
    """Sums over the unlabeled rows with their weights wψ."""

    mass: float  # Σ wψ
    entropy: float  # Σ wψ H(q)
    shares: Array  # (K,) Σ wψ q


@dataclass(frozen=True)
class ViewTerms:
    """The terms of the objective in braces, for one view."""

    divergence: float  # KL(q_i ‖ p_0) = ½‖w‖²/σ² + covariance cost
    hinge: float  # C Σ_L [1 - y m]₊
    agreement: float  # Σ_U w (E A(f) - (q - ½) m)


@dataclass(frozen=True)
class Objective:
    """The objective (A), or its bound, in two parts."""

    views: float  # Σ_i π_i {KL(q_i ‖ p_0) + C Σ_L [1 - y m_i]₊}
    consensus: (
        float  # λ Σ_U w (Σ_i π_i (E A(f_i) - (q - ½) m_i) - κTω H(q)); for T = 1 it is λ Σ_i π_i Σ_U w E KL(q ‖ p_i)
    )

    @property
    def total(self) -> float:
        """The objective."""
        return self.views + self.consensus


def total_objective(
    views: Sequence[ViewTerms], view_weights: Array, sums: ConsensusSums, lam: float, temperature: float
) -> Objective:
    """The objective from the views' terms and the sums over the unlabeled rows."""
    kappa = 1.0 if n_functions(sums.shares.size) == 1 else 2.0
    pairs = list(zip(view_weights, views, strict=True))
    own = sum(weight * (view.divergence + view.hinge) for weight, view in pairs)
    agreement = sum(weight * view.agreement for weight, view in pairs)
    return Objective(float(own), float(lam * (agreement - kappa * temperature * sums.entropy)))


def view_objective(problem: Problem, i: int, surrogate: Surrogate, state: ViewState, q_i: Array, lam: float) -> float:
    """What view i minimizes given the consensus: KL + C Σ_L [1 - y m]₊ + λ Σ_U w (E A(f) - (q - ½) m)."""
    terms = view_terms(problem, i, surrogate, state, q_i)
    return terms.divergence + terms.hinge + lam * terms.agreement


def view_terms(problem: Problem, i: int, surrogate: Surrogate, state: ViewState, q_i: Array) -> ViewTerms:
    """The terms of view i, given the consensus probability q_i (u, F) of each function's positive class on its rows."""
    rows, blocks = problem.rows_L[i], problem.models[i].blocks
    margin = np.maximum(1.0 - problem.Y[rows] * state.m_L, 0.0)
    hinge = float(problem.box[i][rows] @ margin.sum(axis=1))
    agreement = float((blocks.weights @ (surrogate.energy(state.m_U, state.s_U) - (q_i - 0.5) * state.m_U)).sum())
    norm = blocks.squared_norm(state.tau, state.gamma, state.m_L, state.m_U)
    return ViewTerms(0.5 * norm + state.covariance_cost, hinge, agreement)


def consensus_sums(problem: Problem, consensus: Consensus) -> ConsensusSums:
    """The sums of a consensus over unlabeled rows in memory."""
    mass = problem.weights_U * consensus.coverage
    return ConsensusSums(float(mass.sum()), float(mass @ consensus.entropy), mass @ consensus.q)


def view_divergences(
    problem: Problem, states: Sequence[ViewState], consensus: Consensus, temperature: float
) -> tuple[float, ...]:
    """Per view the mean over its unlabeled rows of KL(q ‖ p_i), 0 if it has none."""
    found = []
    for rows, state in zip(problem.rows_U, states, strict=True):
        w = problem.weights_U[rows]
        kl = divergence(consensus.q[rows], consensus.entropy[rows], state.m_U, consensus.offset, temperature)
        found.append(float(w @ kl / w.sum()) if rows.size else 0.0)
    return tuple(found)


def objective(
    problem: Problem,
    surrogate: Surrogate,
    states: Sequence[ViewState],
    view_weights: Array,
    consensus: Consensus,
    lam: float,
    temperature: float,
) -> Objective:
    """The parts of objective (A), or its bound, of a state in memory."""
    q = positive_probability(consensus.q)
    views = [view_terms(problem, i, surrogate, state, q[problem.rows_U[i]]) for i, state in enumerate(states)]
    return total_objective(views, view_weights, consensus_sums(problem, consensus), lam, temperature)


def sweep_record(
    stage: int,
    lam: float,
    temperature: float,
    objective: Objective,
    divergences: tuple[float, ...],
    gaps: Sequence[float],
    view_weights: Array,
    sums: ConsensusSums,
    n_rows: int,
    seconds: float,
) -> Sweep:
    """The history's row for these parts of the objective, divergences of the views, and their duality gaps."""
    mass = sums.mass or 1.0
    return Sweep(
        stage=stage,
        consensus_weight=lam,
        temperature=temperature,
        objective=objective.total,
        consensus_term=objective.consensus,
        kl_by_view=divergences,
        dual_gap=float(sum(weight * gap for weight, gap in zip(view_weights, gaps, strict=True))),
        entropy=sums.entropy / mass,
        class_shares=tuple(float(share) for share in sums.shares / mass),
        n_rows=n_rows,
        seconds=seconds,
    )
