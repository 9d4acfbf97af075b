"""The end of a fit: its result becomes a :class:`cmvmed.model.fitted_model.Model`, a few arrays that are all that is kept.

Training rows are numbered in the order of the table, whatever their labels, so that terms that use the same rows share them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.auto.class_prior import label_share
from cmvmed.auto.neighbors import NeighborEvidence
from cmvmed.core.annealing import AnnealingResult, Plan
from cmvmed.core.consensus import class_scores
from cmvmed.core.low_rank import LowRankView
from cmvmed.core.posterior import ViewState
from cmvmed.core.problem import Problem
from cmvmed.members.mixture import Combined, held_out_scores
from cmvmed.model.expansions import Expansion
from cmvmed.model.fitted_model import Member, Mixing, Model, RowNumbers
from cmvmed.model.graph_votes import GraphVote, graph_vote
from cmvmed.model.terms import Centers, Term
from cmvmed.model.uncertainty import ViewPosterior
from cmvmed.numerics.nystroem import Basis
from cmvmed.numerics.types import Array, IntArray
from cmvmed.scale.streamed import StreamedView
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_kernel import FitView
from cmvmed.views.view_rows import ViewData, ViewPreprocessor

MIN_REDUCTION = 1e-10  # relative reductions of a variance below this are left out


@dataclass(frozen=True)
class FitViews:
    """The views of a fit in memory and the problem that they make."""

    training: TrainingData
    numbers: IntArray  # (n,), of the training rows in the X of the fit
    views: list[FitView]
    bases: list[Basis] | None  # None if kernels are exact
    problem: Problem  # of the sensors alone

    @property
    def data(self) -> list[ViewData]:
        """The views' training rows, first the labeled ones."""
        return [view.data for view in self.views]

    @property
    def whole(self) -> list[ViewData]:
        """The views' training rows in the order of the table."""
        return [view.whole for view in self.views]


def lower(
    fit: FitViews,
    plan: Plan,
    neighbors: NeighborEvidence | None,
    result: AnnealingResult,
    combined: Combined | None,
    streamed: Sequence[StreamedView] | None = None,
) -> Model:
    """The model of a result; without ``combined`` the consensus alone, uncalibrated.

    ``streamed`` are the views after sweeps over more rows than those in memory, if there were any.
    """
    terms, posteriors = _views(fit, plan, result, streamed)
    if neighbors is not None:
        terms.append(_neighbor_vote(fit.training, neighbors, result.states[-1]))
    scale = 0.5 * (1.0 if combined is None else combined.consensus_scale) / result.temperature
    offset = class_scores(result.consensus.offset[None])[0] * scale
    consensus = Member("consensus", tuple(terms), result.view_weights, "mean", scale, offset)
    members, mixing = _members(consensus, combined)
    rows = RowNumbers(fit.numbers, np.isin(fit.training.rows, fit.training.partition.block_L))
    return Model(
        schema=fit.training.schema,
        classes=fit.training.labels.classes,
        class_prior=plan.class_prior,
        preprocessors=tuple(view.whole.preprocessor for view in fit.views),
        members=members,
        mixing=mixing,
        posteriors=tuple(posteriors),
        held_out=None if combined is None else held_out_scores(combined, plan.class_prior),
        rows=rows,
    )


def _members(consensus: Member, combined: Combined | None) -> tuple[tuple[Member, ...], Mixing | None]:
    """All members, and how they are mixed: the pool of those learned from the labels, and the consensus if it takes part."""
    if combined is None or combined.parts.supervised is None:
        return (consensus,), None
    supervised, mixture = combined.parts.supervised, combined.mixture
    members, K = (*supervised.members(), consensus), consensus.offset.size
    pooling, offsets, scales = np.zeros((2, len(members))), np.zeros((2, K)), np.ones(2)
    pooling[0, :-1], offsets[0], scales[0] = supervised.pool.weights, combined.pool_offset, mixture.scales[0]
    pooling[1, -1] = 1.0  # the logits of the consensus are scaled already
    G = mixture.weights.size
    return members, Mixing(pooling[:G], offsets[:G], mixture.weights, scales[:G], mixture.scale)


def _views(
    fit: FitViews, plan: Plan, result: AnnealingResult, streamed: Sequence[StreamedView] | None
) -> tuple[list[Term], list[ViewPosterior]]:
    """Per view, its term of the consensus and its posterior."""
    terms: list[Term] = []
    posteriors = []
    for i, view in enumerate(fit.views):
        state = result.states[i]
        if fit.bases is None:
            weights = result.consensus_weight * plan.problem.weights_U[view.rows_U]
            term, posterior = exact_view(i, view.whole, view.whole.rows_U, view.order, state, weights)
        elif streamed is None:
            term, posterior = _low_rank_view(i, view.whole, fit.bases[i], plan, result)
        else:
            own = streamed[i]
            term, posterior = _features_view(i, view.whole, own.basis, own.theta, own.gaussian.d)
        terms.append(term)
        posteriors.append(posterior)
    return terms, posteriors


def exact_view(
    i: int, data: ViewData, numbers: IntArray, order: IntArray, state: ViewState, weights: Array
) -> tuple[Expansion, ViewPosterior]:
    """A view with its kernel: m(x) = σ²(k_xL τ + k_xU γ), and its variances from the curvature of the last sweep.

    Parameters
    ----------
    numbers : (m,), which training rows the rows of the view are
    order : (m,), where its labeled rows, and then its unlabeled ones, are in ``data.train``
    weights : (u,), λw of its unlabeled rows
    """
    term = expansion_of(i, data, numbers, order, state.tau, state.gamma)
    posterior = ViewPosterior(
        rows=term.rows,
        index=order[len(state.tau) :],
        kernel=data.kernel,
        bias=data.bias,
        prior_variance=data.settings.prior_variance,
        n_functions=state.tau.shape[1],
        row_weights=weights,
        curvature=state.a,
    )
    return term, posterior


def expansion_of(
    i: int,
    data: ViewData,
    numbers: IntArray,
    order: IntArray,
    tau: Array,
    gamma: Array,
    intercept: Array | None = None,
) -> Expansion:
    """σ²(k_xL τ + k_xU γ) and an unpenalized constant (F,), if there is one, as a term of all classes."""
    rows, sigma2 = Centers(i, data.preprocessor, data.train, numbers), data.settings.prior_variance
    constant = class_scores(np.zeros((1, tau.shape[1])) if intercept is None else intercept[None])[0]
    if not gamma.any():
        index, coefficients = order[: len(tau)], sigma2 * tau
    else:
        index, coefficients = None, np.empty((order.size, tau.shape[1]))
        coefficients[order] = sigma2 * np.concatenate([tau, gamma])
    return Expansion(rows, index, data.kernel, class_scores(coefficients), constant, data.bias)


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


def _neighbor_vote(training: TrainingData, neighbors: NeighborEvidence, state: ViewState) -> GraphVote:
    """The nearest rows as a view of the consensus: nodes have the posterior means of their rows."""
    nodes, means = neighbors.nodes, np.concatenate([state.m_L, state.m_U])
    own = nodes.node_of_row[training.order]
    scores = np.empty((nodes.size, means.shape[1]))
    scores[own[own >= 0]] = means[own >= 0]
    return graph_vote(nodes, class_scores(scores))


def lower_baseline(
    training: TrainingData,
    labeled: IntArray,
    unlabeled: IntArray,
    terms: Sequence[Expansion],
    posteriors: Sequence[ViewPosterior] | None = None,
) -> Model:
    """The model of a fit whose views have equal weights; ``labeled`` and ``unlabeled`` are the numbers of its rows."""
    K = training.labels.n_classes
    member = Member("consensus", tuple(terms), np.ones(len(terms)), "mean", 0.5, np.zeros(K))
    rows = RowNumbers(np.concatenate([labeled, unlabeled]), np.arange(labeled.size + unlabeled.size) < labeled.size)
    return Model(
        schema=training.schema,
        classes=training.labels.classes,
        class_prior=label_share(training.partition.counts),
        preprocessors=tuple(term.rows.preprocessor for term in terms),
        members=(member,),
        posteriors=None if posteriors is None else tuple(posteriors),
        rows=rows,
    )


def baseline_term(
    i: int, data: ViewData, n_labeled: int, tau: Array, gamma: Array, intercept: Array | None = None
) -> Expansion:
    """The function of view i of a baseline, whose training rows are numbered labeled rows first."""
    numbers = np.concatenate([data.rows_L, n_labeled + data.rows_U])
    return expansion_of(i, data, numbers, np.arange(numbers.size), tau, gamma, intercept)
