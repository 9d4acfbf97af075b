"""Several fits at once that share their views, as those without the labels of one fold each.

A sweep of one fit reads all eigenvectors or features of every view and does little with them. The fits of this module
sweep together, so that one reading serves all of them: the functions of all fits are columns of one matrix. Each fit
has its own consensus, and ends each stage by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from cmvmed.core.annealing import (
    AnnealingResult,
    Plan,
    anneal,
    checked,
    has_converged,
    record_sweep,
    start_result,
)
from cmvmed.core.box_qp import duality_gap
from cmvmed.core.consensus import Consensus, positive_probability, update_consensus
from cmvmed.core.objective import Sweep
from cmvmed.core.posterior import ViewState, join_functions, update_view
from cmvmed.numerics.types import Array


@dataclass(frozen=True)
class _Fit:
    """Where one of the fits is."""

    plan: Plan
    states: tuple[ViewState, ...]
    consensus: Consensus
    history: tuple[Sweep, ...]
    objective: float = np.inf
    converged: bool = False


def anneal_together(plans: Sequence[Plan]) -> list[AnnealingResult]:
    """:func:`cmvmed.core.annealing.anneal` of plans that differ in hinge weights, start and class shares only.

    Fits whose functions have curvatures of their own share no products and run one after the other.
    """
    first = plans[0]
    if not first.surrogate.shared_curvature or len(plans) == 1:
        return [anneal(plan) for plan in plans]
    starts = [start_result(plan) for plan in plans]
    mass = first.problem.weights_U * starts[0].consensus.coverage
    if first.schedule.consensus_weight == 0.0 or not mass.any():
        return starts
    fits = [_Fit(plan, r.states, r.consensus, r.history) for plan, r in zip(plans, starts, strict=True)]
    for s in range(1, first.schedule.n_stages + 1):
        fits = _run_stage([replace(fit, objective=np.inf, converged=False) for fit in fits], s)
    return [_result(fit) for fit in fits]


def _run_stage(fits: list[_Fit], s: int) -> list[_Fit]:
    """Sweeps of all fits at stage s, each until it has converged."""
    schedule = fits[0].plan.schedule
    for _ in range(schedule.max_iter):
        going = [i for i, fit in enumerate(fits) if not fit.converged]
        if not going:
            break
        for i, fit in zip(going, _sweep([fits[i] for i in going], s), strict=True):
            converged = has_converged(fits[i].objective, fit.objective, schedule.tol, descends=True)
            fits[i] = replace(fit, converged=converged)
    _, T = schedule.stage(s)
    return [replace(fit, consensus=_consensus(fit, T)) for fit in fits]


def _sweep(fits: Sequence[_Fit], s: int) -> list[_Fit]:
    """Steps 2(a) and 2(b) of every fit."""
    started, (lam, T) = perf_counter(), fits[0].plan.schedule.stage(s)
    consensus = [_consensus(fit, T) for fit in fits]
    by_view = [_step_view(fits, consensus, i, lam) for i in range(fits[0].plan.problem.n_views)]
    found = []
    for fit, q, *states in zip(fits, consensus, *by_view, strict=True):
        record = checked(record_sweep(fit.plan, tuple(states), q, s, lam, T, started))
        found.append(_Fit(fit.plan, tuple(states), q, (*fit.history, record), record.objective))
    return found


def _consensus(fit: _Fit, temperature: float) -> Consensus:
    plan = fit.plan
    return update_consensus(plan.problem, fit.states, plan.view_weights, plan.shares, temperature, fit.consensus)


def _step_view(fits: Sequence[_Fit], consensus: Sequence[Consensus], i: int, lam: float) -> list[ViewState]:
    """Step 2(b) for view i of every fit."""
    plan, n_fits = fits[0].plan, len(fits)
    problem, rows = plan.problem, plan.problem.rows_L[i]
    Y = problem.Y[rows]
    boxes = [fit.plan.problem.box[i][rows] for fit in fits]
    q = np.hstack([positive_probability(one.q)[problem.rows_U[i]] for one in consensus])
    state = update_view(
        problem.models[i],
        plan.surrogate,
        join_functions([fit.states[i] for fit in fits]),
        q,
        np.tile(Y, n_fits),
        np.column_stack([box for box in boxes for _ in range(Y.shape[1])]),
        lam,
    )
    return [_part(state, j, n_fits, Y, box) for j, box in enumerate(boxes)]


def _part(state: ViewState, j: int, n_fits: int, Y: Array, box: Array) -> ViewState:
    """The functions of fit j; all fits have the same covariance."""
    columns = slice(j * Y.shape[1], (j + 1) * Y.shape[1])
    tau, m_L = state.tau[:, columns], state.m_L[:, columns]
    return replace(
        state,
        tau=tau,
        gamma=state.gamma[:, columns],
        m_L=m_L,
        m_U=state.m_U[:, columns],
        b=state.b[:, columns],
        covariance_cost=state.covariance_cost / n_fits,
        gap=duality_gap(1.0 - Y * m_L, np.abs(tau), box[:, None]),
    )


def _result(fit: _Fit) -> AnnealingResult:
    schedule, plan = fit.plan.schedule, fit.plan
    lam, T = schedule.stage(schedule.n_stages)
    return AnnealingResult(fit.states, plan.view_weights, fit.consensus, lam, T, fit.history, fit.converged)
