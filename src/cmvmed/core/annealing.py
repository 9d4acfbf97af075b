"""The annealed EM algorithm of the paper: schedule (step 2(c)), plan, and the only loop over consensus and views.

Stage t of n uses the consensus weight λ_t = λ(1 - e^{-t/2}) of the paper and the temperature T_t = T^{t/n}. Within a
stage, the consensus (step 2(a)) and the views (step 2(b)) are updated in turn, all views from the same consensus. If
the surrogate is a bound, every update lowers the bound on objective (A), and a stage ends when it changes by less than
a tolerance.

A :class:`Plan` holds every decision; nothing in :func:`anneal` decides anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Protocol, TypeVar

import numpy as np

from cmvmed.core.consensus import (
    Consensus,
    agreement,
    positive_probability,
    update_consensus,
)
from cmvmed.core.objective import Sweep, consensus_sums, objective, sweep_record, view_divergences, view_objective
from cmvmed.core.posterior import ViewState, interpolate, scaled, supervised_state, update_view
from cmvmed.core.problem import Problem
from cmvmed.core.surrogates import Surrogate
from cmvmed.numerics.linalg import OVERFLOW_ADVICE
from cmvmed.numerics.types import Array

Position = TypeVar("Position")
RISE_TOLERANCE = 1e-7  # relative rise of the objective that may be rounding
ROUNDING = 1e-12  # relative rise that a line search accepts
MIN_STEP = 1e-6  # length of a step below which a line search ends


@dataclass(frozen=True)
class Schedule:
    """λ and T over the stages, and when a stage ends."""

    consensus_weight: float  # λ
    temperature: float  # T
    n_stages: int
    max_iter: int  # sweeps per stage
    tol: float  # a stage ends when the objective changes by less than this fraction of its size
    stage_length: float = 1.0  # in stages of the paper, by which λ grows

    def stage(self, t: int) -> tuple[float, float]:
        """(λ_t, T_t) of stage t = 1..n_stages: step 2(c)."""
        return self.consensus_weight * self.lambda_fraction(t), self.temperature ** (t / self.n_stages)

    def lambda_fraction(self, t: int) -> float:
        """λ_t/λ = 1 - e^{-t/2}."""
        return float(-np.expm1(-0.5 * self.stage_length * t))

    def short(self, max_stages: int, max_sweeps: int) -> "Schedule":
        """At most so many longer stages and sweeps per stage, with the same end."""
        n_stages = min(max_stages, self.n_stages)
        length = self.stage_length * self.n_stages / n_stages
        return replace(self, n_stages=n_stages, max_iter=min(max_sweeps, self.max_iter), stage_length=length)

    def ending_at(self, lam: float) -> "Schedule":
        """The schedule whose last stage has the consensus weight ``lam``."""
        return replace(self, consensus_weight=lam / self.lambda_fraction(self.n_stages))


@dataclass(frozen=True)
class Start:
    """The independent classifiers of step 1, each learned from the labeled rows of its view."""

    states: tuple[ViewState, ...]
    agreement: Array  # (V, V) correlations of the views' scores, see :func:`cmvmed.core.consensus.agreement`


def supervised_start(problem: Problem) -> Start:
    """Step 1: the MED of each view, and how well the views agree on the unlabeled rows."""
    states = independent_states(problem)
    return Start(states, agreement([state.m_U for state in states], problem.rows_U, problem.weights_U))


def independent_states(problem: Problem, near: Sequence[ViewState] | None = None) -> tuple[ViewState, ...]:
    """Each view's MED, paper eq. (1), on its labeled rows; ``near`` are those of a similar problem, for a faster search."""
    starts: Sequence[ViewState | None] = [None] * problem.n_views if near is None else near
    parts = zip(problem.models, problem.rows_L, problem.box, starts, strict=True)
    return tuple(supervised_state(model, problem.Y[rows], box[rows], start) for model, rows, box, start in parts)


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the EM algorithm runs."""

    problem: Problem
    start: Start
    surrogate: Surrogate
    schedule: Schedule
    view_weights: Array  # (V,) π
    class_prior: Array  # (K,) class shares that the fit reports
    shares: Array | None  # (K,) those that are imposed on the consensus; None imposes nothing, as in the paper


@dataclass(frozen=True)
class AnnealingResult:
    """Where the algorithm ended."""

    states: tuple[ViewState, ...]
    view_weights: Array  # (V,)
    consensus: Consensus
    consensus_weight: float  # λ of the last stage
    temperature: float  # T of the last stage
    history: tuple[Sweep, ...]
    converged: bool
    stopped: bool = False  # by ``on_stage``

    @property
    def dual_gap(self) -> float:
        """Weighted sum of the views' duality gaps."""
        return float(sum(weight * state.gap for weight, state in zip(self.view_weights, self.states, strict=True)))


def anneal(
    plan: Plan,
    *,
    before_stage: Callable[[int], None] = lambda stage: None,
    on_stage: Callable[[int, AnnealingResult], bool] = lambda stage, result: False,
) -> AnnealingResult:
    """Run all stages, starting from the independent classifiers (λ = 0).

    Parameters
    ----------
    before_stage : called before each stage with its number
    on_stage : called at the end of each stage with its number and the result so far; returning True ends the fit there
    """
    result, schedule = start_result(plan), plan.schedule
    mass = plan.problem.weights_U * result.consensus.coverage
    if schedule.consensus_weight == 0.0 or not mass.any():
        return result
    for s in range(1, schedule.n_stages + 1):
        before_stage(s)
        start = (result.states, result.consensus)
        (states, consensus), history, converged = run_stage(
            _MemoryStep(plan, s), start, schedule.max_iter, schedule.tol
        )
        lam, T = schedule.stage(s)
        final = update_consensus(plan.problem, states, plan.view_weights, plan.shares, T, consensus)
        converged = converged or not plan.surrogate.has_objective
        result = AnnealingResult(states, plan.view_weights, final, lam, T, result.history + history, converged)
        if on_stage(s, result):
            return replace(result, stopped=True)
    return result


def start_result(plan: Plan) -> AnnealingResult:
    """The independent classifiers with their pooled predictions as consensus."""
    started, T = perf_counter(), plan.schedule.temperature
    states = plan.start.states
    consensus = update_consensus(plan.problem, states, plan.view_weights, plan.shares, T, None)
    record = checked(record_sweep(plan, states, consensus, 0, 0.0, T, started))
    return AnnealingResult(states, plan.view_weights, consensus, 0.0, T, (record,), True)


class EMStep(Protocol[Position]):
    """One alternation of consensus and views, wherever the rows are."""

    def sweep(self, position: Position) -> tuple[Position, Sweep]:
        """Update the consensus (step 2(a)) and the views (step 2(b)) once; return where that leads and its record."""

    def is_balanced(self, position: Position) -> bool:
        """Whether the consensus has the imposed class shares."""

    @property
    def descends(self) -> bool:
        """Whether every sweep lowers the objective, up to rounding."""


def run_stage(
    step: EMStep[Position], position: Position, max_iter: int, tol: float
) -> tuple[Position, tuple[Sweep, ...], bool]:
    """The EM loop: sweeps at one (λ, T) until the objective changes by less than ``tol`` of its size, and does not rise.

    Returns
    -------
    position : where the loop ended
    history : one record per sweep
    converged : whether it ended by ``tol``
    """
    history: list[Sweep] = []
    value = np.inf
    for _ in range(max_iter):
        position, record = step.sweep(position)
        history.append(checked(record))
        last, value = value, record.objective
        if has_converged(last, value, tol, descends=step.descends) and step.is_balanced(position):
            return position, tuple(history), True
    return position, tuple(history), False


def has_converged(last: float, value: float, tol: float, *, descends: bool) -> bool:
    """Whether the objective changed by less than ``tol`` of its size and, if it should descend, did not rise."""
    rises = descends and value - last > RISE_TOLERANCE * abs(value)
    return abs(last - value) <= tol * abs(value) and not rises


@dataclass(frozen=True)
class _MemoryStep:
    """Sweeps over rows in memory at stage s; a position is the views' states and the consensus."""

    plan: Plan
    s: int

    def sweep(
        self, position: tuple[tuple[ViewState, ...], Consensus]
    ) -> tuple[tuple[tuple[ViewState, ...], Consensus], Sweep]:
        started = perf_counter()
        plan, (states, consensus) = self.plan, position
        lam, T = plan.schedule.stage(self.s)
        consensus = update_consensus(plan.problem, states, plan.view_weights, plan.shares, T, consensus)
        states = tuple(
            step_view(plan.problem, i, plan.surrogate, state, consensus.q, lam) for i, state in enumerate(states)
        )
        return (states, consensus), record_sweep(plan, states, consensus, self.s, lam, T, started)

    def is_balanced(self, position: tuple[tuple[ViewState, ...], Consensus]) -> bool:
        return True  # the offset of every consensus in memory is exact

    @property
    def descends(self) -> bool:
        return self.plan.surrogate.has_objective


def checked(record: Sweep) -> Sweep:
    """The record itself, or an error if its objective is not a finite number."""
    if not np.isfinite(record.objective):
        raise ValueError(f"The objective became {record.objective} in stage {record.stage}: {OVERFLOW_ADVICE}")
    return record


def step_view(problem: Problem, i: int, surrogate: Surrogate, state: ViewState, q: Array, lam: float) -> ViewState:
    """Step 2(b) for view i, given the consensus q (n_U, K); the step is shortened where the surrogate is no bound."""
    model, rows, q_i = problem.models[i], problem.rows_L[i], positive_probability(q)[problem.rows_U[i]]
    step = partial(update_view, model, surrogate, state, q_i, problem.Y[rows], problem.box[i][rows], lam)
    target = step()
    if surrogate.drops_prior_variance:
        return scaled(target, 1.0 / model.blocks.prior_variance)
    if not surrogate.needs_line_search:
        return target
    start = view_objective(problem, i, surrogate, state, q_i, lam)
    length, candidate = 1.0, target
    while length > MIN_STEP:
        if view_objective(problem, i, surrogate, candidate, q_i, lam) <= start + ROUNDING * abs(start):
            return candidate
        length *= 0.5
        # between two Gaussians of unequal covariance are those of the pseudo-data in between
        candidate = step(length) if surrogate.uses_variance else interpolate(state, target, length)
    return state


def record_sweep(
    plan: Plan,
    states: tuple[ViewState, ...],
    consensus: Consensus,
    stage: int,
    lam: float,
    temperature: float,
    started: float,
) -> Sweep:
    """The history's row of a state in memory, reached since the time ``started``."""
    pi, problem = plan.view_weights, plan.problem
    value = objective(problem, plan.surrogate, states, pi, consensus, lam, temperature)
    divergences = view_divergences(problem, states, consensus, temperature)
    gaps, sums = [state.gap for state in states], consensus_sums(problem, consensus)
    n_rows, seconds = problem.weights_U.size, perf_counter() - started
    return sweep_record(stage, lam, temperature, value, divergences, gaps, pi, sums, n_rows, seconds)
