"""The last stage of the annealing continued on more rows, a chunk at a time.

The stages before it run in memory on a sample of the unlabeled rows, weighted to represent all of them or, where these
are very many, some of them. Every sweep is then one pass over the rows: given the weights θ of all views and the offset
of the consensus, a chunk computes the views' means, the consensus q and the residuals q - σ(m) of its rows, and returns
sums only,

    Σ_U w (q - σ(m)) k(x) per view,   Σ_U ψw q,   Σ_U ψw q qᵀ,   the terms of the objective,

from which all views are updated by their duals as in memory, with Σ_U w b z = Σ_U w (q - σ(m)) z + a G θ. G is that of
the sample, times the ratio of the weights: where the sweeps end, the residuals alone decide, Z_Lᵀτ + λ Σ_U w (q - σ(m)) z
= θ/σ², and G is only the metric of their steps. The offset that gives the classes their shares is computed on the sample
for the new θ, and moved by the difference that the last pass showed. Nothing as long as the rows leaves a chunk, so the
same passes run over files and on clusters.

Where the rows are very many, larger samples are swept over first, of which the last may be enough
(:mod:`cmvmed.scale.row_change`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from cmvmed.core.annealing import AnnealingResult, Plan, run_stage
from cmvmed.core.consensus import balancing_offset, pool
from cmvmed.core.low_rank import LowRankView, WeightGaussian
from cmvmed.core.objective import Sweep, ViewTerms, sweep_record, total_objective
from cmvmed.core.posterior import solve_dual
from cmvmed.numerics.nystroem import Basis
from cmvmed.numerics.types import Array
from cmvmed.scale.passes import CURVATURE, ChunkView, StreamedRows, SweepPass, SweepSums, UnlabeledRows
from cmvmed.views.view_rows import ViewPreprocessor

MAX_OFFSET_STEP = 2.0  # in units of 2T
SHARE_TOLERANCE = 1e-4  # of the class shares at the end


@dataclass(frozen=True)
class StreamedView:
    """A view's posterior over the weights of its rotated features, given sums over all unlabeled rows."""

    basis: Basis  # rotated so that G is diagonal
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

    def updated(self, residual: Array) -> "StreamedView":
        """Step 2(b): after one dual, given Σ_U w (q - σ(m)) k(x) (p + 1, F)."""
        curvature = CURVATURE * self.gaussian.space.omega[:, None] * self.theta  # Σ_U w m z / 4
        projected = self.gaussian.lam * (self.basis.transform.T @ residual + curvature)
        tau, m_L, gap = solve_dual(
            self.gaussian.S_LL, self.gaussian.labeled_mean(projected), self.Y, self.box, np.abs(self.tau)
        )
        return replace(self, tau=tau, gamma=self.gaussian.coefficients(projected, tau), m_L=m_L, gap=gap)

    def terms(self, energy: float) -> ViewTerms:
        """The view's terms of the objective, given Σ_U w (A(m) - (q - ½)m)."""
        theta, functions = self.theta, self.tau.shape[1]
        lam, total = self.gaussian.lam, self.gaussian.total_variance()
        hinge = float(self.box @ np.maximum(1.0 - self.Y * self.m_L, 0.0).sum(axis=1))
        norm = float((theta * theta).sum()) / self.gaussian.space.prior_variance
        covariance = 0.5 * functions * (self.gaussian.log_det - lam * CURVATURE * total)
        return ViewTerms(0.5 * norm + covariance, hinge, energy + functions * total / 8.0)


@dataclass(frozen=True)
class StreamedResult:
    """Where the sweeps over some rows ended."""

    result: AnnealingResult  # history, offset and end of the fit; its states and consensus are of the sample
    views: tuple[StreamedView, ...]
    n_rows: int  # unlabeled rows that were swept over


def streamed_stages(
    samples: Iterable[StreamedRows],
    preprocessors: Sequence[ViewPreprocessor],
    bases: Sequence[Basis],
    plan: Plan,
    result: AnnealingResult,
) -> Iterator[StreamedResult]:
    """Continue the last stage, annealed in memory on a sample, by sweeps over larger samples and at last over all rows.

    Parameters
    ----------
    samples : what to sweep over, one after the other; each starts where the one before ended
    preprocessors, bases : per view, how rows become features
    plan, result : of the sample in memory, all of whose models are low-rank ones

    Yields
    ------
    streamed : where the sweeps over each of the samples ended
    """
    chunks = tuple(ChunkView(p, basis.landmark_set) for p, basis in zip(preprocessors, bases, strict=True))
    for rows in samples:
        unlabeled = UnlabeledRows(rows.check, rows.labeled, rows.weights)
        times = rows.unlabeled_weight / plan.problem.weights_U.sum()
        views = tuple(_streamed_view(plan, result, i, basis, times) for i, basis in enumerate(bases))
        result, views = _sweep_over(_StreamedStep(rows, unlabeled, chunks, plan, result), views)
        yield StreamedResult(result, views, rows.n_unlabeled)


@dataclass(frozen=True)
class _Position:
    """The views, the offset of the consensus over all rows, and the last pass."""

    views: tuple[StreamedView, ...]
    offset: Array  # (F,)
    sample_offset: Array  # (F,) at which the sample has the imposed shares
    sums: SweepSums | None = None  # of the last pass, with these views; None before the first
    share_error: float = np.inf


@dataclass(frozen=True)
class _StreamedStep:
    """Sweeps over rows in chunks, see :class:`cmvmed.core.annealing.EMStep`."""

    rows: StreamedRows
    unlabeled: UnlabeledRows
    chunks: tuple[ChunkView, ...]
    plan: Plan
    result: AnnealingResult  # of the sample

    def sweep(self, position: _Position) -> tuple[_Position, Sweep]:
        started = perf_counter()
        position = self._updated(position)
        views, end = position.views, self.result
        coefficients = tuple(view.coefficients for view in views)
        sweep = SweepPass(self.unlabeled, self.chunks, coefficients, end.view_weights, position.offset, end.temperature)
        sums = SweepSums.read(self.rows.source.reduce(sweep, bytes_per_row=sweep.bytes_per_row))
        record = self._record(views, sums, perf_counter() - started)
        offset, error = _newton_offset(sums, position.offset, end.consensus.shares, end.temperature)
        return replace(position, offset=offset, sums=sums, share_error=error), record

    def is_balanced(self, position: _Position) -> bool:
        return position.share_error <= SHARE_TOLERANCE

    @property
    def descends(self) -> bool:
        return False  # the offset is exact only at the end

    def _updated(self, position: _Position) -> _Position:
        """The views updated by the sums of the last pass, and the offset moved as the sample's is."""
        if position.sums is None:
            return position
        views = tuple(view.updated(sums) for view, sums in zip(position.views, position.sums.residuals, strict=True))
        sample_offset = _sample_offset(views, self.plan, self.result, position.sample_offset)
        return _Position(views, position.offset + (sample_offset - position.sample_offset), sample_offset)

    def _record(self, views: tuple[StreamedView, ...], sums: SweepSums, seconds: float) -> Sweep:
        end, consensus = self.result, sums.consensus
        lam, T = end.consensus_weight, end.temperature
        terms = [view.terms(energy) for view, energy in zip(views, sums.energies, strict=True)]
        value = total_objective(terms, end.view_weights, consensus, lam, T)
        gaps, stage, n_rows = [view.gap for view in views], self.plan.schedule.n_stages, self.rows.n_unlabeled
        return sweep_record(stage, lam, T, value, sums.kl_by_view, gaps, end.view_weights, consensus, n_rows, seconds)


def _sweep_over(
    step: _StreamedStep, views: tuple[StreamedView, ...]
) -> tuple[AnnealingResult, tuple[StreamedView, ...]]:
    """Sweep over the rows until the stage has converged: where the fit is then, and the views."""
    plan, result = step.plan, step.result
    offset = result.consensus.offset
    start = _Position(views, offset, _sample_offset(views, plan, result, offset))
    end, history, converged = run_stage(step, start, plan.schedule.max_iter, plan.schedule.tol)
    means = _sample_means(end.views, plan)
    states = tuple(
        replace(state, tau=view.tau, gamma=view.gamma, m_L=view.m_L, m_U=m_U, gap=view.gap)
        for state, view, m_U in zip(result.states, end.views, means, strict=True)
    )
    consensus = replace(result.consensus, offset=end.offset)
    history = result.history + history
    return replace(result, states=states, consensus=consensus, history=history, converged=converged), end.views


def _low_rank_model(plan: Plan, i: int) -> LowRankView:
    model = plan.problem.models[i]
    if not isinstance(model, LowRankView):
        raise TypeError("Only views with low-rank features can be continued on rows in chunks.")
    return model


def _streamed_view(plan: Plan, result: AnnealingResult, i: int, basis: Basis, times: float) -> StreamedView:
    """View i as the sample left it; rows of ``times`` the weight of the sample have as many times its G."""
    problem, model, state = plan.problem, _low_rank_model(plan, i), result.states[i]
    labeled = problem.rows_L[i]
    return StreamedView(
        basis=basis.rotated(model.rotation),
        gaussian=WeightGaussian(
            replace(model.space, omega=times * model.space.omega), result.consensus_weight, CURVATURE
        ),
        Y=problem.Y[labeled],
        box=problem.box[i][labeled],
        tau=state.tau,
        gamma=state.gamma,
        m_L=state.m_L,
        gap=state.gap,
    )


def _newton_offset(sums: SweepSums, offset: Array, shares: Array | None, temperature: float) -> tuple[Array, float]:
    """The offset after one Newton step towards the imposed shares, and the largest error of the present ones."""
    if shares is None or sums.mass == 0.0:
        return offset, 0.0
    present = sums.shares / sums.mass
    imbalance = present - shares
    error = float(np.abs(imbalance).max())
    longest = MAX_OFFSET_STEP * 2.0 * temperature
    if offset.size == 1:
        slope = float(present[1] - sums.products[1, 1] / sums.mass) / temperature
        step = np.array([-imbalance[1] / max(slope, 1e-12)])
        return offset + np.clip(step, -longest, longest), error
    hessian = (np.diag(present) - sums.products / sums.mass) / (2.0 * temperature)
    hessian[np.diag_indices_from(hessian)] += 1e-12
    step = -np.linalg.solve(hessian, imbalance)
    moved = offset + np.clip(step - step.mean(), -longest, longest)
    return np.asarray(moved - moved.mean()), error


def _sample_means(views: Sequence[StreamedView], plan: Plan) -> list[Array]:
    """Per view the means (u, F) of the sample's unlabeled rows."""
    return [_low_rank_model(plan, i).blocks.scores(view.theta) for i, view in enumerate(views)]


def _sample_offset(views: Sequence[StreamedView], plan: Plan, result: AnnealingResult, start: Array) -> Array:
    """The offset at which the sample has the imposed shares, (F,)."""
    shares, problem = result.consensus.shares, plan.problem
    if shares is None:
        return start
    scores, coverage = pool(_sample_means(views, plan), problem.rows_U, result.view_weights, problem.weights_U.size)
    return balancing_offset(scores, problem.weights_U * coverage, shares, result.temperature, start)
