"""Small problems with explicit feature maps, so that textbook formulas can recompute all that the core returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from cmvmed.auto.consensus_weight import agreement_weights
from cmvmed.core.annealing import Plan, Schedule, step_view, supervised_start
from cmvmed.core.consensus import update_consensus
from cmvmed.core.full_kernel import CholeskyView, KernelBlocks, SpectralView
from cmvmed.core.objective import objective
from cmvmed.core.posterior import supervised_state
from cmvmed.core.problem import Problem
from cmvmed.core.surrogates import Bohning

SCHEDULE = Schedule(consensus_weight=1.0, temperature=0.3, n_stages=3, max_iter=25, tol=1e-7)


@dataclass(frozen=True)
class Sensor:
    """One view with its feature map: Phi_L (l, p) and Phi_U (u, p), and the kernel blocks they imply."""

    Phi_L: np.ndarray
    Phi_U: np.ndarray
    blocks: KernelBlocks


def make_sensor(Phi_L, Phi_U, *, prior_variance=1.7, weights=None):
    weights = np.ones(Phi_U.shape[0]) if weights is None else weights
    blocks = KernelBlocks.of(
        LL=Phi_L @ Phi_L.T,
        UL=Phi_U @ Phi_L.T,
        UU=Phi_U @ Phi_U.T,
        weights=weights,
        prior_variance=prior_variance,
    )
    return Sensor(Phi_L, Phi_U, blocks)


def draw_sensor(seed, *, n_labeled=8, n_unlabeled=14, n_features=5, prior_variance=1.7, weighted=False):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.3, 3.0, n_unlabeled) if weighted else None
    Phi = rng.normal(size=(n_labeled + n_unlabeled, n_features))
    return make_sensor(Phi[:n_labeled], Phi[n_labeled:], prior_variance=prior_variance, weights=weights)


def draw_labels(seed, n_labeled, n_functions=1):
    """Labels ±1 (l, F) in which both signs occur."""
    rng = np.random.default_rng(seed)
    Y = rng.choice([-1.0, 1.0], size=(n_labeled, n_functions))
    Y[0], Y[1] = 1.0, -1.0
    return Y


def draw_problem(
    seed,
    *,
    n_classes=2,
    n_views=2,
    n_labeled=12,
    n_unlabeled=24,
    n_features=5,
    missing=0.0,
    weighted=False,
    spectral=True,
    prior_variance=2.0,
    C=1.0,
):
    """A problem of noisy class centers, and the sensors it was built from; a row keeps at least one view."""
    rng = np.random.default_rng(seed)
    codes_L = np.arange(n_labeled) % n_classes
    codes_U = rng.integers(n_classes, size=n_unlabeled)
    weights_U = rng.uniform(0.3, 3.0, n_unlabeled) if weighted else np.ones(n_unlabeled)
    present_L, present_U = (
        _draw_present(rng, n_labeled, n_views, missing),
        _draw_present(rng, n_unlabeled, n_views, missing),
    )
    rows_L = tuple(np.flatnonzero(present_L[:, i]) for i in range(n_views))
    rows_U = tuple(np.flatnonzero(present_U[:, i]) for i in range(n_views))
    sensors = []
    for rows, others in zip(rows_L, rows_U, strict=True):
        centers = rng.normal(size=(n_classes, n_features))
        noise = rng.normal(size=(n_labeled + n_unlabeled, n_features))
        Phi = 0.6 * (centers[np.concatenate([codes_L, codes_U])] + noise)
        sensors.append(
            make_sensor(
                Phi[:n_labeled][rows],
                Phi[n_labeled:][others],
                prior_variance=prior_variance,
                weights=weights_U[others],
            )
        )
    one_hot = codes_L[:, None] == np.arange(n_classes)
    problem = Problem(
        models=tuple((SpectralView if spectral else CholeskyView)(sensor.blocks) for sensor in sensors),
        rows_L=rows_L,
        rows_U=rows_U,
        Y=np.where(one_hot[:, 1:] if n_classes == 2 else one_hot, 1.0, -1.0),
        box=tuple(np.full(n_labeled, C) for _ in range(n_views)),
        weights_U=weights_U,
        n_classes=n_classes,
    )
    return problem, sensors


def _draw_present(rng, n_rows, n_views, missing):
    present = rng.uniform(size=(n_rows, n_views)) >= missing
    present[np.arange(n_rows), rng.integers(n_views, size=n_rows)] = True
    return present


def noisy_scores(seed, n_views, *, n_rows=100, n_functions=1):
    """Scores and rows of views: a common signal with independent noise, except the last view, which is pure noise."""
    rng = np.random.default_rng(seed)
    signal = 2.0 * rng.normal(size=(n_rows, n_functions))
    means = [signal + rng.normal(size=signal.shape) for _ in range(n_views - 1)]
    return [*means, rng.normal(size=signal.shape)], [np.arange(n_rows)] * n_views


def uneven_prior(n_classes):
    """Class shares in the ratio 1 : 2 : 3 ..., (K,)."""
    return np.arange(1.0, n_classes + 1.0) / np.arange(1.0, n_classes + 1.0).sum()


def independent_states(problem):
    """The MED of each view, from which the EM algorithm starts."""
    return [
        supervised_state(model, problem.Y[rows], box[rows])
        for model, rows, box in zip(problem.models, problem.rows_L, problem.box, strict=True)
    ]


def make_plan(
    problem,
    schedule=SCHEDULE,
    *,
    surrogate=None,
    view_weights=None,
    shares=None,
):
    """A plan for a small problem; the views are weighted by their agreement if no weights are given."""
    start = supervised_start(problem)
    if view_weights is None:
        view_weights = agreement_weights(start.agreement, problem.known_views)
    return Plan(
        problem=problem,
        start=start,
        surrogate=Bohning() if surrogate is None else surrogate,
        schedule=schedule,
        view_weights=np.asarray(view_weights, dtype=float),
        class_prior=np.full(problem.n_classes, 1.0 / problem.n_classes) if shares is None else shares,
        shares=shares,
    )


def squared_norm(model, state):
    """‖w‖²/σ² of a view's state, summed over functions."""
    return model.blocks.squared_norm(state.tau, state.gamma, state.m_L, state.m_U)


def objective_value(*arguments):
    """Objective (A) or its bound, as one number."""
    return objective(*arguments).total


def half_steps(
    problem,
    surrogate,
    *,
    lam=0.8,
    temperature=1.0,
    shares=None,
    n_sweeps=8,
    pi=None,
    step=step_view,
    consensus_step=update_consensus,
    value=objective_value,
):
    """The objective after every half-step, that is after each update of the consensus and of a single view."""
    pi = np.full(len(problem.models), 1.0 / len(problem.models)) if pi is None else pi
    states, consensus, values = independent_states(problem), None, []
    for _ in range(n_sweeps):
        consensus = consensus_step(problem, states, pi, shares, temperature, consensus)
        values.append(value(problem, surrogate, states, pi, consensus, lam, temperature))
        for i in range(len(states)):
            states[i] = step(problem, i, surrogate, states[i], consensus.q, lam)
            values.append(value(problem, surrogate, states, pi, consensus, lam, temperature))
    return np.array(values), states, consensus


def rejects(check, *broken, **named):
    """Assert that a check fails for an input that is known to be wrong."""
    with pytest.raises(AssertionError):
        check(*broken, **named)
