"""The end of a fit: its result becomes a :class:`cmvmed.model.fitted_model.Model`, a few arrays that are all that is kept.

Terms that use the same rows share them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.approximation import Approximation
from cmvmed.auto.class_prior import label_share
from cmvmed.auto.plan import ChosenPlan
from cmvmed.core.annealing import AnnealingResult, Plan
from cmvmed.core.consensus import class_scores
from cmvmed.core.low_rank import LowRankView
from cmvmed.core.posterior import ViewState
from cmvmed.core.problem import Problem, RowPartition
from cmvmed.members.pool import PoolFit
from cmvmed.model.expansions import Expansion
from cmvmed.model.fitted_model import Member, Model, Pool, RowNumbers
from cmvmed.model.terms import Centers, Term
from cmvmed.model.uncertainty import ViewPosterior
from cmvmed.numerics.nystroem import Basis
from cmvmed.numerics.types import Array, BoolArray, IntArray
from cmvmed.scale.streamed import StreamedView
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_rows import ViewData, ViewPreprocessor

MIN_REDUCTION = 1e-10  # relative reductions of a variance below this are left out


@dataclass(frozen=True)
class FitViews:
    """The views of a fit in memory and the problem that they make."""

    training: TrainingData
    numbers: IntArray  # (n,), of the training rows in the X of the fit
    views: list[ViewData]
    approximation: Approximation
    bases: list[Basis] | None  # None if kernels are exact
    problem: Problem


def lower(
    fit: FitViews,
    chosen: ChosenPlan,
    result: AnnealingResult,
    fit_of_pool: PoolFit | None,
    streamed: Sequence[StreamedView] | None = None,
) -> Model:
    """The model of a result; without ``fit_of_pool`` the consensus alone, uncalibrated.

    ``streamed`` are the views after sweeps over more rows than those in memory, if there were any.
    """
    plan = chosen.plan
    terms, posteriors = _views(fit, plan, result, streamed)
    scale = 0.5 / result.temperature
    offset = class_scores(result.consensus.offset[None])[0] * scale
    consensus = Member("consensus", tuple(terms), result.view_weights, "mean", scale, offset)
    members, pool = _pooled(consensus, fit_of_pool)
    rows = RowNumbers(fit.numbers, _is_labeled(fit.training.partition))
    return Model(
        schema=fit.training.schema,
        classes=fit.training.labels.classes,
        class_prior=plan.class_prior,
        preprocessors=tuple(view.preprocessor for view in fit.views),
        members=members,
        pool=pool,
        posteriors=tuple(posteriors),
        held_out=None if fit_of_pool is None else fit_of_pool.held_out_scores(plan.class_prior),
        rows=rows,
    )


def _pooled(consensus: Member, fit: PoolFit | None) -> tuple[tuple[Member, ...], Pool | None]:
    """All members, and how they are pooled; the consensus alone has the scale and offset of the pool in its own."""
    if fit is None:
        return (consensus,), None
    weights = fit.weights
    if fit.of_labels.with_consensus:
        consensus = rescaled(consensus, float(fit.calibrated.scales[-1]), fit.calibrated.offsets[-1])
    else:
        weights = np.append(weights, 0.0)
    if not fit.of_labels.parts:
        return (rescaled(consensus, float(weights[-1]), fit.offset),), None
    return (*fit.members(), consensus), Pool(weights, fit.offset)


def rescaled(member: Member, scale: float, offset: Array) -> Member:
    """The member with the logits c z + b."""
    return replace(member, scale=scale * member.scale, offset=np.asarray(scale * member.offset + offset))


def _views(
    fit: FitViews, plan: Plan, result: AnnealingResult, streamed: Sequence[StreamedView] | None
) -> tuple[list[Term], list[ViewPosterior]]:
    """Per view, its term of the consensus and its posterior."""
    terms: list[Term] = []
    posteriors = []
    for i, view in enumerate(fit.views):
        state = result.states[i]
        if fit.bases is None:
            term, posterior = exact_view(i, view, state, result.consensus_weight)
        elif streamed is None:
            term, posterior = _low_rank_view(i, view, fit.bases[i], plan, result)
        else:
            own = streamed[i]
            term, posterior = _features_view(i, view, own.basis, own.theta, own.gaussian.d)
        terms.append(term)
        posteriors.append(posterior)
    return terms, posteriors


def exact_view(i: int, view: ViewData, state: ViewState, consensus_weight: float) -> tuple[Expansion, ViewPosterior]:
    """A view with its kernel: m(x) = σ²(k_xL τ + k_xU γ), and its variances from the curvature of the last sweep."""
    term = expansion_of(i, view, state.tau, state.gamma)
    posterior = ViewPosterior(
        rows=term.rows,
        index=view.U,
        kernel=view.kernel,
        bias=view.bias,
        prior_variance=view.settings.prior_variance,
        n_functions=state.tau.shape[1],
        row_weights=consensus_weight * view.weights[view.U],
        curvature=state.a,
    )
    return term, posterior


def expansion_of(i: int, view: ViewData, tau: Array, gamma: Array, intercept: Array | None = None) -> Expansion:
    """σ²(k_xL τ + k_xU γ) and an unpenalized constant (F,), if there is one, as a term of all classes."""
    rows, sigma2 = Centers(i, view.preprocessor, view.train, view.rows), view.settings.prior_variance
    constant = class_scores(np.zeros((1, tau.shape[1])) if intercept is None else intercept[None])[0]
    if not gamma.any():
        index, coefficients = view.L, sigma2 * tau
    else:
        index, coefficients = None, np.empty((view.rows.size, tau.shape[1]))
        coefficients[view.L], coefficients[view.U] = sigma2 * tau, sigma2 * gamma
    return Expansion(rows, index, view.kernel, class_scores(coefficients), constant, view.bias)


def _low_rank_view(
    i: int, data: ViewData, basis: Basis, plan: Plan, result: AnnealingResult
) -> tuple[Expansion, ViewPosterior]:
    model, state = plan.problem.models[i], result.states[i]
    if not isinstance(model, LowRankView):
        raise TypeError(f"View {data.settings.name!r} has features but no low-rank model.")
    theta = model.blocks.mean_weights(state.tau, state.gamma)
    d = model.condition(result.consensus_weight, state.a[:, 0]).d
    return _features_view(i, data, basis.rotated(model.rotation), theta, d)


def _features_view(i: int, data: ViewData, basis: Basis, theta: Array, d: Array) -> tuple[Expansion, ViewPosterior]:
    """A view of low rank: m(x) = θᵀz(x), s(x) = σ²(k(x, x) - Σ_k (1 - d_k) z_k(x)²).

    Parameters
    ----------
    basis : features z rotated so that the posterior covariance is diagonal
    theta : (r, F)
    d : (r,), posterior over prior variance of each weight
    """
    preprocessor: ViewPreprocessor = data.preprocessor
    rows, a = Centers(i, preprocessor, basis.landmarks), basis.transform @ theta
    index = basis.columns if basis.kernel.kind == "precomputed" else None
    term = Expansion(rows, index, basis.kernel, class_scores(a[:-1]), class_scores(a[-1:])[0])
    share = 1.0 - d
    reduced = share > MIN_REDUCTION
    posterior = ViewPosterior(
        rows=rows,
        index=index,
        kernel=basis.kernel,
        bias=data.bias,
        prior_variance=data.settings.prior_variance,
        n_functions=theta.shape[1],
        row_weights=np.zeros(0),
        curvature=np.zeros((0, 1)),
        reduction=basis.transform[:, reduced] * np.sqrt(share[reduced]),
    )
    return term, posterior


def lower_baseline(
    training: TrainingData, terms: Sequence[Expansion], posteriors: Sequence[ViewPosterior] | None = None
) -> Model:
    """The model of a fit whose views have equal weights."""
    K = training.labels.n_classes
    member = Member("consensus", tuple(terms), np.ones(len(terms)), "mean", 0.5, np.zeros(K))
    rows = RowNumbers(training.partition.rows, _is_labeled(training.partition))
    return Model(
        schema=training.schema,
        classes=training.labels.classes,
        class_prior=label_share(training.partition.counts),
        preprocessors=tuple(term.rows.preprocessor for term in terms),
        members=(member,),
        posteriors=None if posteriors is None else tuple(posteriors),
        rows=rows,
    )


def _is_labeled(partition: RowPartition) -> BoolArray:
    """Which rows of a fit belong to the labeled block, (m,)."""
    return np.isin(partition.rows, partition.block_L)
