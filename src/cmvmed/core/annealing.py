"""The annealed loop between the consensus and the views: schedule, step, objective, ending.

Stage s of S uses the consensus weight λ_s = λ(1 - e^{-s/2}) of the paper and the temperature T_s = T^{s/S}. Within a stage,
consensus and views are updated in turn; with a bound for a surrogate, the objective (1) of the theory page falls with
every update, so a stage ends when it falls no more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from cmvmed.auto.class_prior import ClassBalance
from cmvmed.core.consensus import (
    agreement,
    agreement_weights,
    balancing_offset,
    class_shares,
    entropy,
    mean_agreement,
    n_functions,
    pool,
    positive_probability,
    soft_labels,
)
from cmvmed.core.linalg import Array, BoolArray, IntArray
from cmvmed.core.posterior import ViewModel, ViewState, interpolate, scaled, supervised_state, update_view
from cmvmed.core.surrogates import Surrogate

# λ where none is given, and the mean correlation of the independent views' scores from which on it is taken in full: views
# that do not agree on the unlabeled rows at all have nothing to teach each other. Chosen on development splits
# (docs/accuracy.md).
AUTO_CONSENSUS_WEIGHT = 0.5
FULL_AGREEMENT = 0.25
# Of a fit that only has to answer a question: its class shares and how sure it is are those of a whole fit; docs/accuracy.md.
SHORT_STAGES = 2
SHORT_SWEEPS = 6


@dataclass(frozen=True)
class Problem:
    """What the loop works on: V views of the same n_L labeled and n_U unlabeled rows."""

    models: tuple[ViewModel, ...]
    rows_L: tuple[IntArray, ...]  # per view, its rows of the labeled block
    rows_U: tuple[IntArray, ...]  # per view, its rows of the unlabeled block
    Y: Array  # (n_L, F) labels ±1
    box: tuple[Array, ...]  # per view (n_L,), hinge weight of each labeled row
    weights_U: Array  # (n_U,) how often each unlabeled row counts
    n_classes: int
    n_derived: int = 0  # how many of the views, at the end, are made of the others and no witnesses of their own

    @property
    def known_views(self) -> BoolArray:
        """Which views any training row has, (V,)."""
        return np.array([lab.size + unlab.size > 0 for lab, unlab in zip(self.rows_L, self.rows_U, strict=True)])


@dataclass(frozen=True)
class Schedule:
    """λ and T over the stages, and when a stage ends."""

    consensus_weight: float | None  # None: from the agreement of the views
    temperature: float
    n_stages: int
    max_iter: int  # sweeps in a stage
    tol: float  # a stage ends when the objective falls by less than this share of its size
    stage_length: float = 1.0  # in stages of the paper, by which λ grows

    def stage(self, s: int) -> tuple[float, float]:
        """(λ_s, T_s) of stage s = 1..S."""
        return (self.consensus_weight or 0.0) * self.lambda_fraction(s), self.temperature ** (s / self.n_stages)

    def short(self) -> "Schedule":
        """Fewer, longer stages and fewer sweeps in each, with the same end."""
        n_stages = min(SHORT_STAGES, self.n_stages)
        length = self.stage_length * self.n_stages / n_stages
        return replace(self, n_stages=n_stages, max_iter=min(SHORT_SWEEPS, self.max_iter), stage_length=length)

    def ending_at(self, lam: float) -> "Schedule":
        """The schedule whose last stage has the consensus weight ``lam``."""
        return replace(self, consensus_weight=lam / self.lambda_fraction(self.n_stages))

    def lambda_fraction(self, s: int) -> float:
        """The share of λ that stage s has."""
        return float(-np.expm1(-0.5 * self.stage_length * s))


@dataclass(frozen=True)
class Consensus:
    """q over the unlabeled rows, the pooled scores it comes from, and the offset between the two."""

    q: Array  # (n_U, K)
    scores: Array  # (n_U, F)
    coverage: Array  # (n_U,) weight of the views a row has
    offset: Array  # (F,)
    shares: Array | None  # (K,) shares that the offset was chosen to meet; None: it is a fixed term of the objective
    stage: int

    @cached_property
    def entropy(self) -> Array:
        """H(q) of each row, (n_U,)."""
        return entropy(self.q)


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
class AnnealingResult:
    """Where the loop ended."""

    states: tuple[ViewState, ...]
    view_weights: Array  # (V,)
    consensus: Consensus
    consensus_weight: float  # λ of the last stage
    temperature: float  # T of the last stage
    history: tuple[Sweep, ...]
    converged: bool
    stopped: bool = False  # by ``on_stage``


def anneal(
    problem: Problem,
    surrogate: Surrogate,
    schedule: Schedule,
    balance: ClassBalance | None,
    view_weights: Array | None,
    independent: tuple[ViewState, ...] | None = None,
    *,
    before_stage: Callable[[int], None] = lambda stage: None,
    on_stage: Callable[[int, AnnealingResult], bool] = lambda stage, annealed: False,
) -> AnnealingResult:
    """Run all stages from the independent MEDs (λ = 0) on.

    Parameters
    ----------
    balance : how the consensus is tied to a class prior; None leaves it alone, as the paper does
    view_weights : (V,), π; None weights the views by their agreement
    independent : the independent MEDs, if they are known already
    before_stage : called before each stage with its number
    on_stage : called at the end of each stage with its number and the state; returning True ends the fit there
    """
    started = perf_counter()
    states = independent_states(problem) if independent is None else independent
    R = agreement([state.m_U for state in states], problem.rows_U, problem.weights_U)
    if view_weights is None:
        view_weights = agreement_weights(R, problem.known_views)
    if schedule.consensus_weight is None:
        schedule = replace(schedule, consensus_weight=auto_consensus_weight(mean_agreement(R, view_weights)))
    final = pooled_consensus(problem, states, view_weights, balance, 1, schedule.temperature, None)
    start = _record(problem, surrogate, states, view_weights, final, 0, 0.0, schedule.temperature, started)
    result = AnnealingResult(states, view_weights, final, 0.0, schedule.temperature, (start,), True)
    if schedule.consensus_weight == 0.0 or not (problem.weights_U * final.coverage).any():
        return result
    for s in range(1, schedule.n_stages + 1):
        before_stage(s)
        result = _run_stage(problem, surrogate, schedule, balance, s, result)
        if on_stage(s, result):
            return replace(result, stopped=True)
    return result


def _run_stage(
    problem: Problem,
    surrogate: Surrogate,
    schedule: Schedule,
    balance: ClassBalance | None,
    s: int,
    result: AnnealingResult,
) -> AnnealingResult:
    """Alternate consensus and views at λ_s, T_s until the objective stands still."""
    lam, temperature = schedule.stage(s)
    states, pi, consensus = result.states, result.view_weights, result.consensus
    history = list(result.history)
    value, converged = np.inf, False
    for _ in range(schedule.max_iter):
        started = perf_counter()
        consensus = pooled_consensus(problem, states, pi, balance, s, temperature, consensus)
        states = tuple(step_view(problem, i, surrogate, state, consensus.q, lam) for i, state in enumerate(states))
        history.append(_record(problem, surrogate, states, pi, consensus, s, lam, temperature, started))
        last, value = value, history[-1].objective
        if abs(last - value) <= schedule.tol * abs(value):
            converged = True
            break
    final = pooled_consensus(problem, states, pi, balance, s, temperature, consensus)
    return AnnealingResult(states, pi, final, lam, temperature, tuple(history), converged)


def independent_states(problem: Problem) -> tuple[ViewState, ...]:
    """Each view's MED on its labeled rows."""
    parts = zip(problem.models, problem.rows_L, problem.box, strict=True)
    return tuple(supervised_state(model, problem.Y[rows], box[rows]) for model, rows, box in parts)


def auto_consensus_weight(mean_correlation: float) -> float:
    """λ where none is given, from the mean correlation of the independent views' scores."""
    return AUTO_CONSENSUS_WEIGHT * min(1.0, mean_correlation / FULL_AGREEMENT)


def step_view(problem: Problem, i: int, surrogate: Surrogate, state: ViewState, q: Array, lam: float) -> ViewState:
    """Update view i given the consensus q (n_U, K); shorten the step where the surrogate is no bound."""
    rows = problem.rows_L[i]
    q_i = positive_probability(q)[problem.rows_U[i]]
    target = update_view(problem.models[i], surrogate, state, q_i, problem.Y[rows], problem.box[i][rows], lam)
    if surrogate.drops_prior_variance:
        return scaled(target, 1.0 / problem.models[i].blocks.prior_variance)
    if not surrogate.needs_line_search:
        return target
    start = view_objective(problem, i, surrogate, state, q_i, lam)
    length = 1.0
    while length > 1e-6:
        candidate = interpolate(state, target, length)
        if view_objective(problem, i, surrogate, candidate, q_i, lam) <= start:
            return candidate
        length *= 0.5
    return state


def view_objective(problem: Problem, i: int, surrogate: Surrogate, state: ViewState, q_i: Array, lam: float) -> float:
    """The bracket of objective (1): KL + C Σ_L [1 - y m]₊ + λ Σ_U w (E A(f) - (q - ½) m)."""
    rows = problem.rows_L[i]
    margin = np.maximum(1.0 - problem.Y[rows] * state.m_L, 0.0)
    hinge = problem.box[i][rows] @ margin.sum(axis=1)
    w = problem.models[i].blocks.weights
    agreement = (w @ (surrogate.energy(state.m_U, state.s_U) - (q_i - 0.5) * state.m_U)).sum()
    return float(0.5 * state.squared_norm + state.covariance_cost + hinge + lam * agreement)


def objective(
    problem: Problem,
    surrogate: Surrogate,
    states: Sequence[ViewState],
    view_weights: Array,
    consensus: Consensus,
    lam: float,
    temperature: float,
) -> float:
    """Objective (1), or its bound: Σ π_i {bracket of view i} - λ κT Σ_U w ω H(q), κ = 1 for F = 1 and 2 for F = K.

    A fixed offset o is part of the model: it adds -λ Σ_U w ω (q - ½)·o.
    """
    q = positive_probability(consensus.q)
    views = sum(
        weight * view_objective(problem, i, surrogate, state, q[problem.rows_U[i]], lam)
        for i, (weight, state) in enumerate(zip(view_weights, states, strict=True))
    )
    mass = problem.weights_U * consensus.coverage
    kappa = 1.0 if n_functions(problem.n_classes) == 1 else 2.0
    value = views - lam * kappa * temperature * float(mass @ consensus.entropy)
    if consensus.shares is None:
        value -= lam * float(mass @ ((q - 0.5) @ consensus.offset))
    return float(value)


def pooled_consensus(
    problem: Problem,
    states: Sequence[ViewState],
    view_weights: Array,
    balance: ClassBalance | None,
    stage: int,
    temperature: float,
    last: Consensus | None,
) -> Consensus:
    """The exact minimizer of objective (1) in q, with the class balance asked for at this stage."""
    n_rows = problem.weights_U.size
    scores, coverage = pool([state.m_U for state in states], problem.rows_U, view_weights, n_rows)
    mass = problem.weights_U * coverage
    offset, shares = np.zeros(scores.shape[1]) if last is None else last.offset, None
    if balance is not None and mass.sum() > 0.0:
        shares = _imposed_shares(balance, stage, scores, mass, temperature, last)
    if shares is not None:
        offset = balancing_offset(scores, mass, shares, temperature, offset)
    q = soft_labels(scores, offset, temperature)
    if balance is not None:
        q[coverage == 0.0] = balance.prior
    return Consensus(q, scores, coverage, offset, shares, stage)


def _imposed_shares(
    balance: ClassBalance, stage: int, scores: Array, mass: Array, temperature: float, last: Consensus | None
) -> Array | None:
    """The classes' shares to impose now, (K,), or None to keep the last offset.

    Shares that had to be brought back into their interval are held for the rest of the stage, so that the objective keeps
    its meaning.
    """
    if last is None or balance.constrained_stages is None or stage <= balance.constrained_stages:
        return balance.prior
    if last.stage == stage and last.shares is not None:
        return last.shares
    shares = class_shares(soft_labels(scores, last.offset, temperature), mass)
    nearest = np.clip(shares, balance.lower, balance.upper)
    return None if np.array_equal(nearest, shares) else np.asarray(nearest / nearest.sum())


def _record(
    problem: Problem,
    surrogate: Surrogate,
    states: Sequence[ViewState],
    view_weights: Array,
    consensus: Consensus,
    stage: int,
    lam: float,
    temperature: float,
    started: float,
) -> Sweep:
    """The history's row of the present state, reached since the time ``started``."""
    mass = problem.weights_U * consensus.coverage
    total = float(mass.sum()) or 1.0
    return Sweep(
        stage=stage,
        consensus_weight=lam,
        temperature=temperature,
        objective=objective(problem, surrogate, states, view_weights, consensus, lam, temperature),
        dual_gap=float(sum(weight * state.gap for weight, state in zip(view_weights, states, strict=True))),
        entropy=float(mass @ consensus.entropy) / total,
        class_shares=tuple(float(share) for share in mass @ consensus.q / total),
        n_rows=problem.weights_U.size,
        seconds=perf_counter() - started,
    )
