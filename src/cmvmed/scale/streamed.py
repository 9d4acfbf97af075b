"""The last stage of the annealing continued on all rows, a chunk at a time.

The stages before it run in memory on a sample of the unlabeled rows, weighted to stand for all of them or, where these are very
many, for some of them (:func:`sample_rows`). One pass over the rows then gives each view's G = Σ_U w z zᵀ. Every sweep is one more
pass: given the weights θ of all views and the offset of the consensus, a chunk computes the views' means, the consensus q and the
responses b of its rows, and returns sums only,

    Σ_U w b k(x) per view,   Σ_U ωw q,   Σ_U ωw q qᵀ,   the terms of objective (1),

from which all views are updated by their duals as in memory. The offset that gives the classes their shares is found on the sample
for the new θ, and moved by what the last pass showed the sample to be off. Nothing as long as the rows leaves a chunk, so the same
passes run over files and on clusters. Where the rows are very many, a larger sample is swept over first: many sweeps over it cost
less than one over all rows, of which fewer are then left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from cmvmed.core.annealing import AnnealingResult, Problem, Schedule, Sweep
from cmvmed.core.consensus import balancing_offset, n_functions, pool
from cmvmed.core.linalg import Array, IntArray, eigen_psd
from cmvmed.core.low_rank import LowRankView, WeightGaussian, WeightSpace
from cmvmed.core.nystroem import Basis
from cmvmed.core.posterior import solve_dual
from cmvmed.data.sources import RowSource
from cmvmed.data.sources.base import RowCheck
from cmvmed.data.view_data import LowRankPredictor, ViewPredictor, ViewPreprocessor
from cmvmed.scale.passes import CURVATURE, ChunkView, GramPass, SweepPass, SweepSums, Unlabeled

# How many rows a row of the sample stands for at most: the features follow a sample of more weight so closely that the sweeps over
# all rows must first unlearn it. Of 1, 3, 10 and no limit, sweeps over 256 000 rows started nearest to their end from 3.
MOST_STOOD_FOR = 3.0
LONGEST_OFFSET_STEP = 2.0  # in units of 2T
SHARE_TOLERANCE = 1e-4  # of the classes' shares at the end


@dataclass(frozen=True)
class StreamedRows:
    """All rows of a fit, where they lie."""

    source: RowSource
    check: RowCheck
    labeled: IntArray  # numbers of the labeled rows, ascending
    weights: Array | None = None  # (n,) how often each row counts; None: once

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabeled rows."""
        return int(self.source.n_rows - self.labeled.size)


@dataclass(frozen=True)
class StreamedView:
    """A view's posterior over the weights of its turned features, given sums over all unlabeled rows."""

    basis: Basis  # turned so that G is diagonal
    turn: Array  # (r, r), from the sample's turned features to these
    gaussian: WeightGaussian
    Y: Array  # (l, F) labels ±1 of its labeled rows
    box: Array  # (l,)
    tau: Array  # (l, F)
    gamma: Array  # (r, F)
    m_L: Array  # (l, F)
    gap: float

    @property
    def theta(self) -> Array:
        """σ²(Z_Lᵀτ + γ), (r, F)."""
        space = self.gaussian.space
        return np.asarray(space.prior_variance * (space.Z_L.T @ self.tau + self.gamma))

    @property
    def coefficients(self) -> Array:
        """Of the kernel functions and the constant, (p + 1, F)."""
        return self.basis.transform @ self.theta

    def updated(self, pull: Array) -> "StreamedView":
        """After one dual, given Σ_U w b k(x) (p + 1, F)."""
        pull = self.gaussian.lam * (self.basis.transform.T @ pull)
        tau, m_L, gap = solve_dual(
            self.gaussian.S_LL, self.gaussian.labeled_mean(pull), self.Y, self.box, np.abs(self.tau)
        )
        return replace(self, tau=tau, gamma=self.gaussian.coefficients(pull, tau), m_L=m_L, gap=gap)

    def objective(self, energy: float) -> float:
        """The bracket of objective (1) given Σ_U w (A(m) - (q - ½)m)."""
        theta, functions = self.theta, self.tau.shape[1]
        lam, total = self.gaussian.lam, self.gaussian.total_variance()
        hinge = self.box @ np.maximum(1.0 - self.Y * self.m_L, 0.0).sum(axis=1)
        norm = float((theta * theta).sum()) / self.gaussian.space.prior_variance
        covariance = functions * (self.gaussian.log_det - lam * CURVATURE * total)
        return float(0.5 * (norm + covariance) + hinge + lam * (energy + functions * total / 8.0))


@dataclass(frozen=True)
class StreamedResult:
    """Where the sweeps over all rows ended."""

    annealed: AnnealingResult  # history, offset and end of the fit; what is told of single rows is of the sample, as its annealing ended
    predictors: tuple[ViewPredictor, ...]
    dual_gap: float


def sample_rows(rows: StreamedRows, n: int, rng: np.random.Generator) -> tuple[IntArray, Array]:
    """The labeled rows and ``n`` unlabeled ones with weight, ascending, and how often each stands for a row of all, (n_sample,).

    A labeled row stands for itself; the unlabeled ones share the weight of all unlabeled rows, up to ``MOST_STOOD_FOR`` times
    their own.
    """
    if rows.weights is None:
        pool_size = min(rows.source.n_rows, n + rows.labeled.size)
        drawn = np.setdiff1d(rng.choice(rows.source.n_rows, pool_size, replace=False), rows.labeled)
        sample = np.sort(rng.choice(drawn, min(n, drawn.size), replace=False))
        total, own = float(rows.n_unlabeled), np.ones(sample.size)
    else:
        counting = rows.weights > 0.0
        counting[rows.labeled] = False
        candidates = np.flatnonzero(counting)
        sample = np.sort(rng.choice(candidates, min(n, candidates.size), replace=False))
        total, own = float(rows.weights[candidates].sum()), rows.weights[sample]
    numbers = np.concatenate([rows.labeled, sample])
    labeled_weights = np.ones(rows.labeled.size) if rows.weights is None else rows.weights[rows.labeled]
    times = min(total / own.sum(), MOST_STOOD_FOR) if sample.size else 1.0
    weights = np.concatenate([labeled_weights, own * times])
    order = np.argsort(numbers)
    return numbers[order], weights[order]


def run_streamed_stage(
    samples: Sequence[StreamedRows],
    readers: Sequence[ViewPreprocessor],
    bases: Sequence[Basis],
    problem: Problem,
    annealed: AnnealingResult,
    schedule: Schedule,
) -> StreamedResult:
    """Continue the last stage, annealed in memory on a sample, by sweeps over larger samples and at last over all rows.

    Parameters
    ----------
    samples : what to sweep over, one after the other; each starts where the one before ended
    readers, bases : per view, how rows become features
    problem, annealed : of the sample in memory, all of whose models are low-rank ones
    schedule : its ``max_iter`` and ``tol`` end the sweeps
    """
    for rows in samples:
        annealed, views = _swept(rows, readers, bases, problem, annealed, schedule)
    predictors = tuple(
        LowRankPredictor(reader, view.basis, view.theta, view.gaussian.d)
        for reader, view in zip(readers, views, strict=True)
    )
    gap = float(sum(weight * view.gap for weight, view in zip(annealed.view_weights, views, strict=True)))
    return StreamedResult(annealed, predictors, gap)


def _swept(
    rows: StreamedRows,
    readers: Sequence[ViewPreprocessor],
    bases: Sequence[Basis],
    problem: Problem,
    annealed: AnnealingResult,
    schedule: Schedule,
) -> tuple[AnnealingResult, tuple[StreamedView, ...]]:
    """Sweep over the rows until the objective stands still: where the fit is then, and the views."""
    unlabeled = Unlabeled(rows.check, rows.labeled, rows.weights)
    chunks = tuple(ChunkView(reader, basis.seen) for reader, basis in zip(readers, bases, strict=True))
    gram_pass = GramPass(unlabeled, chunks)
    started = perf_counter()
    room = {"bytes_per_row": gram_pass.bytes_per_row, "bytes_of_sums": gram_pass.bytes_of_sums}
    *grams, _ = rows.source.reduce(gram_pass, **room)
    views = tuple(_streamed_view(problem, annealed, i, bases[i], grams[i]) for i in range(len(chunks)))
    consensus, history = annealed.consensus, list(annealed.history)
    offset, value, converged = consensus.offset, np.inf, False
    of_sample = _sample_offset(views, problem, annealed, offset)
    for _ in range(schedule.max_iter):
        coefficients = tuple(view.coefficients for view in views)
        sweep = SweepPass(unlabeled, chunks, coefficients, annealed.view_weights, offset, annealed.temperature)
        sums = SweepSums.read(rows.source.reduce(sweep, bytes_per_row=sweep.bytes_per_row))
        last, value = value, _objective(views, sums, annealed, problem.n_classes)
        history.append(_record(views, sums, annealed, schedule, value, rows.n_unlabeled, started))
        started = perf_counter()
        offset, error = _balanced(sums, offset, consensus.shares, annealed.temperature)
        if abs(last - value) <= schedule.tol * abs(value) and error <= SHARE_TOLERANCE:
            converged = True
            break
        views = tuple(view.updated(pull) for view, pull in zip(views, sums.pulls, strict=True))
        before, of_sample = of_sample, _sample_offset(views, problem, annealed, of_sample)
        offset = offset + (of_sample - before)
    states = tuple(
        replace(state, tau=view.tau, gamma=view.turn @ view.gamma, m_L=view.m_L, gap=view.gap)
        for state, view in zip(annealed.states, views, strict=True)
    )
    consensus = replace(consensus, offset=offset)
    return replace(annealed, states=states, consensus=consensus, history=tuple(history), converged=converged), views


def _streamed_view(problem: Problem, annealed: AnnealingResult, i: int, basis: Basis, gram: Array) -> StreamedView:
    """View i as the sample left it, in the coordinates in which G of all rows is diagonal."""
    model, state = problem.models[i], annealed.states[i]
    assert isinstance(model, LowRankView)
    omega, rotation = eigen_psd(basis.transform.T @ gram @ basis.transform)
    turn = model.rotation.T @ rotation
    space = WeightSpace(model.space.Z_L @ turn, omega, model.space.prior_variance)
    labeled = problem.rows_L[i]
    return StreamedView(
        basis=basis.rotated(rotation),
        turn=turn,
        gaussian=WeightGaussian(space, annealed.consensus_weight, CURVATURE),
        Y=problem.Y[labeled],
        box=problem.box[i][labeled],
        tau=state.tau,
        gamma=turn.T @ state.gamma,
        m_L=state.m_L,
        gap=state.gap,
    )


def _objective(views: Sequence[StreamedView], sums: SweepSums, annealed: AnnealingResult, n_classes: int) -> float:
    """Objective (1), or its bound, as in :func:`cmvmed.core.annealing.objective`."""
    parts = zip(annealed.view_weights, views, sums.energies, strict=True)
    kappa = 1.0 if n_functions(n_classes) == 1 else 2.0
    lam = annealed.consensus_weight
    value = sum(weight * view.objective(energy) for weight, view, energy in parts)
    value -= lam * kappa * annealed.temperature * sums.entropy
    return float(value - (lam * sums.tilt if annealed.consensus.shares is None else 0.0))


def _balanced(sums: SweepSums, offset: Array, shares: Array | None, temperature: float) -> tuple[Array, float]:
    """The offset after one Newton step towards the shares asked for, and the largest error of the present ones."""
    if shares is None or sums.mass == 0.0:
        return offset, 0.0
    present = sums.shares / sums.mass
    imbalance = present - shares
    error = float(np.abs(imbalance).max())
    longest = LONGEST_OFFSET_STEP * 2.0 * temperature
    if offset.size == 1:
        slope = float(present[1] - sums.products[1, 1] / sums.mass) / temperature
        step = np.array([-imbalance[1] / max(slope, 1e-12)])
        return offset + np.clip(step, -longest, longest), error
    hessian = (np.diag(present) - sums.products / sums.mass) / (2.0 * temperature)
    hessian[np.diag_indices_from(hessian)] += 1e-12
    step = -np.linalg.solve(hessian, imbalance)
    moved = offset + np.clip(step - step.mean(), -longest, longest)
    return np.asarray(moved - moved.mean()), error


def _sample_offset(views: Sequence[StreamedView], problem: Problem, annealed: AnnealingResult, start: Array) -> Array:
    """The offset at which the sample has the shares asked for, (F,)."""
    shares, n_sample = annealed.consensus.shares, problem.weights_U.size
    if shares is None:
        return start
    means = []
    for view, model in zip(views, problem.models, strict=True):
        assert isinstance(model, LowRankView)
        means.append(model.blocks.scores(view.turn @ view.theta))
    scores, coverage = pool(means, problem.rows_U, annealed.view_weights, n_sample)
    return balancing_offset(scores, problem.weights_U * coverage, shares, annealed.temperature, start)


def _record(
    views: Sequence[StreamedView],
    sums: SweepSums,
    annealed: AnnealingResult,
    schedule: Schedule,
    value: float,
    n_rows: int,
    started: float,
) -> Sweep:
    """The history's row of a sweep over all rows."""
    mass = sums.mass or 1.0
    return Sweep(
        stage=schedule.n_stages,
        consensus_weight=annealed.consensus_weight,
        temperature=annealed.temperature,
        objective=value,
        dual_gap=float(sum(weight * view.gap for weight, view in zip(annealed.view_weights, views, strict=True))),
        entropy=sums.entropy / mass,
        class_shares=tuple(float(share) for share in sums.shares / mass),
        n_rows=n_rows,
        seconds=perf_counter() - started,
    )
