"""The objective, equation (A) of the theory page, and the record of one sweep.

It is paper eq. (4) made complete. The loops in memory and over chunks of rows use the same functions.

    J = Σ_i π_i { ½‖w_i‖²/σ² + covariance cost + C Σ_L [1 - y m_i]₊ + λ Σ_U w (E A(f_i) - (q - ½) m_i) }
        - λκT Σ_U wψ H(q),         κ = 1 for two classes and 2 for more.

The offset o of the consensus, which meets given class shares, is the multiplier of that constraint and has no term.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.core.consensus import Consensus, n_functions, positive_probability
from cmvmed.core.posterior import ViewState
from cmvmed.core.problem import Problem
from cmvmed.core.surrogates import Surrogate
from cmvmed.core.types import Array


@dataclass(frozen=True)
class Sweep:
    """One row of the fit's history."""

    stage: int
    consensus_weight: float
    temperature: float
    objective: float
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


def bracket(squared_norm: float, covariance_cost: float, hinge: float, agreement: float, lam: float) -> float:
    """The part of the objective in braces, for one view; ``agreement`` is Σ_U w (E A(f) - (q - ½) m)."""
    return 0.5 * squared_norm + covariance_cost + hinge + lam * agreement


def total_objective(
    brackets: Sequence[float],
    view_weights: Array,
    sums: ConsensusSums,
    lam: float,
    temperature: float,
    *,
    n_classes: int,
) -> float:
    """Objective (A), or its bound, from the views' brackets and the sums over the unlabeled rows."""
    kappa = 1.0 if n_functions(n_classes) == 1 else 2.0
    views = sum(weight * value for weight, value in zip(view_weights, brackets, strict=True))
    return float(views - lam * kappa * temperature * sums.entropy)


def view_objective(problem: Problem, i: int, surrogate: Surrogate, state: ViewState, q_i: Array, lam: float) -> float:
    """The bracket of view i: KL + C Σ_L [1 - y m]₊ + λ Σ_U w (E A(f) - (q - ½) m)."""
    rows, blocks = problem.rows_L[i], problem.models[i].blocks
    margin = np.maximum(1.0 - problem.Y[rows] * state.m_L, 0.0)
    hinge = float(problem.box[i][rows] @ margin.sum(axis=1))
    agreement = float((blocks.weights @ (surrogate.energy(state.m_U, state.s_U) - (q_i - 0.5) * state.m_U)).sum())
    norm = blocks.squared_norm(state.tau, state.gamma, state.m_L, state.m_U)
    return bracket(norm, state.covariance_cost, hinge, agreement, lam)


def consensus_sums(problem: Problem, consensus: Consensus) -> ConsensusSums:
    """The sums of a consensus over unlabeled rows in memory."""
    mass = problem.weights_U * consensus.coverage
    return ConsensusSums(float(mass.sum()), float(mass @ consensus.entropy), mass @ consensus.q)


def objective(
    problem: Problem,
    surrogate: Surrogate,
    states: Sequence[ViewState],
    view_weights: Array,
    consensus: Consensus,
    lam: float,
    temperature: float,
) -> float:
    """Objective (A), or its bound, of a state in memory."""
    q = positive_probability(consensus.q)
    brackets = [
        view_objective(problem, i, surrogate, state, q[problem.rows_U[i]], lam) for i, state in enumerate(states)
    ]
    sums = consensus_sums(problem, consensus)
    return total_objective(brackets, view_weights, sums, lam, temperature, n_classes=problem.n_classes)


def sweep_record(
    stage: int,
    lam: float,
    temperature: float,
    value: float,
    gaps: Sequence[float],
    view_weights: Array,
    sums: ConsensusSums,
    n_rows: int,
    seconds: float,
) -> Sweep:
    """The history's row for an objective of ``value`` and the views' duality gaps."""
    mass = sums.mass or 1.0
    return Sweep(
        stage=stage,
        consensus_weight=lam,
        temperature=temperature,
        objective=value,
        dual_gap=float(sum(weight * gap for weight, gap in zip(view_weights, gaps, strict=True))),
        entropy=sums.entropy / mass,
        class_shares=tuple(float(share) for share in sums.shares / mass),
        n_rows=n_rows,
        seconds=seconds,
    )
