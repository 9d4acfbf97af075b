"""Fitted attributes and warnings of CMVMED."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from cmvmed._warnings import warn_user
from cmvmed.auto.approximation import Approximation
from cmvmed.auto.cross_fitting import consensus_logits
from cmvmed.auto.neighbors import NeighborEvidence
from cmvmed.core.annealing import AnnealingResult, Plan
from cmvmed.core.consensus import class_scores, class_shares, disagreement
from cmvmed.core.objective import Sweep
from cmvmed.data.labels import Labels
from cmvmed.data.sources import ArrayApiRows
from cmvmed.data.sources.base import FLOAT_BYTES
from cmvmed.estimators._base import model_attributes
from cmvmed.estimators._lowering import FitViews, lower
from cmvmed.members.mixture import Combined, opinions_table
from cmvmed.model.array_program import probabilities_of_rows
from cmvmed.model.fitted_model import Model
from cmvmed.model.formulas import has_formulas
from cmvmed.model.predict import RowScorer, probabilities
from cmvmed.numerics.linalg import OVERFLOW_ADVICE
from cmvmed.numerics.nystroem import residual
from cmvmed.numerics.types import Array, IntArray
from cmvmed.scale.passes import StreamedRows
from cmvmed.scale.row_change import RowChange, remaining_change
from cmvmed.scale.sampling import Sample
from cmvmed.scale.streamed import streamed_stages
from cmvmed.views.training_data import TrainingData

CONSENSUS_COPIES = 8  # scores, coverage, probabilities, and some room
MIN_DUAL = 1e-9  # of a dual variable's upper bound; smaller ones are zero
MAX_RELATIVE_GAP = 1e-4  # duality gap, relative to the objective, that passes without a warning
NO_VIEW_WARNING = "{} training rows have all views missing; they are not used, and get the class prior."


def fitted_attributes(
    fit: FitViews,
    plan: Plan,
    neighbors: NeighborEvidence | None,
    result: AnnealingResult,
    combined: Combined | None = None,
    model: Model | None = None,
) -> dict[str, Any]:
    """All that ``fit`` learns, by attribute name; with the model of the result if it is known."""
    model = lower(fit, plan, neighbors, result, combined) if model is None else model
    distributions = _label_distributions(fit.training, plan, result, model, combined)
    history, sensor_weights = result.history, result.view_weights[: len(fit.data)]
    support, dual_coef = _support(fit, plan, result)
    opinions = {} if combined is None else {"opinions_": opinions_table(combined)}
    return (
        model_attributes(model)
        | opinions
        | _held_out_attributes(fit, combined)
        | {
            "label_distributions_": distributions,
            "transduction_": model.classes[distributions.argmax(axis=1)],
            "probability_scale_": 1.0 if combined is None else combined.consensus_scale,
            "consensus_weight_": result.consensus_weight,
            "view_names_": [view.settings.name for view in fit.data],
            "view_weights_": sensor_weights / sensor_weights.sum(),
            "neighbor_weight_": float(result.view_weights[len(fit.data) :].sum()),
            "n_views_": len(fit.data),
            "n_iter_": len(history),
            "objective_history_": np.array([sweep.objective for sweep in history]),
            "history_": _history_table(history, len(fit.data)),
            "support_": support,
            "dual_coef_": dual_coef,
            "prior_variance_": np.array([view.settings.prior_variance for view in fit.data]),
            "disagreement_": _disagreement_table(fit, plan, result),
            "dual_gap_": result.dual_gap,
            "converged_": result.converged and solves_duals(result),
            "_accuracy": None if combined is None else combined.accuracy,
        }
    )


def _held_out_attributes(fit: FitViews, combined: Combined | None) -> dict[str, Any]:
    """The labeled rows that were held out, and their probabilities by fits without their labels."""
    found = None if combined is None else combined.held_out_probabilities()
    if found is None:
        return {"held_out_rows_": None, "held_out_proba_": None}
    positions, probabilities = found
    return {"held_out_rows_": fit.training.partition.block_L[positions], "held_out_proba_": probabilities}


def _history_table(history: tuple[Sweep, ...], n_views: int) -> dict[str, NDArray[Any]]:
    """The records of all sweeps by column; that of the divergences has the sensors alone, not the neighbors."""
    table = {f.name: np.array([getattr(sweep, f.name) for sweep in history]) for f in fields(Sweep)}
    return table | {"kl_by_view": table["kl_by_view"][:, :n_views]}


def _support(fit: FitViews, plan: Plan, result: AnnealingResult) -> tuple[dict[str, IntArray], dict[str, Array]]:
    """By view, the labeled rows whose dual variables are not all zero, and y∘α of these rows, (F, n_support)."""
    support, dual_coef = {}, {}
    for view, box, state in zip(fit.data, fit.problem.box, result.states[: len(fit.data)], strict=True):
        sigma2 = view.settings.prior_variance if plan.surrogate.drops_prior_variance else 1.0
        tau = sigma2 * state.tau
        kept = (np.abs(tau) > MIN_DUAL * box[view.rows_L][:, None]).any(axis=1)
        support[view.settings.name] = fit.training.partition.block_L[view.rows_L[kept]]
        dual_coef[view.settings.name] = tau[kept].T
    return support, dual_coef


def _disagreement_table(fit: FitViews, plan: Plan, result: AnnealingResult) -> dict[str, Any]:
    """By column, how often each view disagrees with each other on the unlabeled rows, and the bound that this implies."""
    problem, names = plan.problem, [view.settings.name for view in fit.data]
    codes = [class_scores(s.m_U + result.consensus.offset).argmax(axis=1) for s in result.states[: len(names)]]
    pairs = list(permutations(range(len(names)), 2))
    found = []
    for i, j in pairs:
        rows, in_i, in_j = np.intersect1d(problem.rows_U[i], problem.rows_U[j], return_indices=True)
        found.append(disagreement(codes[i][in_i], codes[j][in_j], problem.weights_U[rows], plan.class_prior))
    return {
        "view": [names[i] for i, _ in pairs],
        "other": [names[j] for _, j in pairs],
        "rate": np.array([pair.rate for pair in found]),
        "error_bound": np.array([pair.error_bound for pair in found]),
        "rate_by_class": np.array([pair.rate_by_class for pair in found]).reshape(len(pairs), problem.n_classes),
    }


def _label_distributions(
    training: TrainingData, plan: Plan, result: AnnealingResult, model: Model, combined: Combined | None
) -> Array:
    """The probabilities of the classes of every training row, (n, K); certain for labeled rows."""
    labels, partition = training.labels, training.partition
    table = np.tile(plan.class_prior, (labels.codes.size, 1))
    logits, coverage = consensus_logits(plan, result)
    if combined is None or combined.parts.supervised is None:
        p = softmax(logits * (result.temperature / model.temperature), axis=1)
    else:
        p = np.exp(combined.log_p)
    rows = np.concatenate([partition.block_L, partition.block_U])
    table[rows] = np.where(coverage[:, None] > 0.0, p, plan.class_prior)
    table[labels.labeled] = np.eye(labels.n_classes)[labels.codes[labels.labeled]]
    if not np.isfinite(table).all():
        raise ValueError(f"Probabilities of training rows are not finite: {OVERFLOW_ADVICE}")
    return table


@dataclass(frozen=True)
class Continued:
    """Where a fit to a sample ended after sweeps over more rows."""

    result: AnnealingResult
    model: Model
    n_swept: int  # unlabeled rows that were swept over last
    change: RowChange | None = None  # what all rows would still change; None if it was not estimated


def continue_on_more_rows(
    sample: Sample,
    fit: FitViews,
    plan: Plan,
    result: AnnealingResult,
    combined: Combined | None,
    model: Model,
    rows_tol: float | None,
    row_growth: int,
) -> Continued:
    """The last stage continued on larger samples and all rows, where the consensus has weight.

    ``model`` is that of the ``result`` in memory. With ``rows_tol`` it ends after a sample that is expected to cost no more
    than this accuracy.
    """
    if fit.bases is None or sample.all_rows is None:
        raise ValueError("Only a fit on a sample, with low-rank features, can be continued on all rows.")
    at = Continued(result, model, fit.training.partition.block_U.size)
    if result.consensus_weight == 0.0 or result.stopped:
        return at
    preprocessors = [view.preprocessor for view in fit.whole]
    held_out = None if sample.larger is None or rows_tol is None else sample.larger.held_out()
    change: RowChange | None = None

    def samples() -> Iterator[StreamedRows]:
        size = None if sample.larger is None else sample.larger.smallest
        while sample.larger is not None and size is not None:
            yield sample.larger.sample(size)
            ratio = change.accuracy / rows_tol if change is not None and rows_tol else None
            size = sample.larger.next_size(size, ratio, row_growth)
        if sample.all_rows is not None:
            yield sample.all_rows

    for streamed in streamed_stages(samples(), preprocessors, fit.bases, plan, result):
        model = lower(fit, plan, None, streamed.result, combined, streamed.views)
        last, at = at, Continued(streamed.result, model, streamed.n_rows)
        if held_out is not None and rows_tol is not None and streamed.n_rows < sample.all_rows.n_unlabeled:
            before, after = (probabilities(m, *held_out) for m in (last.model, model))
            change = remaining_change(before, after, last.n_swept, at.n_swept, sample.all_rows.n_unlabeled)
            if change.accuracy <= rows_tol:
                return replace(at, change=change)
    return at


def consensus_of_all_rows(model: Model, rows: StreamedRows, labels: Labels, memory_limit: int) -> Array | None:
    """The probabilities of every training row, (n, K), certain for labeled ones; None if too large for the limit."""
    if CONSENSUS_COPIES * FLOAT_BYTES * rows.source.n_rows * labels.n_classes > memory_limit:
        return None
    q, coverage = _probabilities(model, rows)
    without_views = int((coverage == 0.0).sum())
    if without_views:
        warn_user(NO_VIEW_WARNING.format(without_views))
    q[labels.labeled] = np.eye(labels.n_classes)[labels.codes[labels.labeled]]
    return q


def _probabilities(model: Model, rows: StreamedRows) -> tuple[Array, Array]:
    """The probabilities (n, K) of all rows by the model, and the weight of the views that each has, (n,)."""
    if isinstance(rows.source, ArrayApiRows) and has_formulas(model):
        return probabilities_of_rows(model, rows.source, rows.check)
    scored = RowScorer(model, rows.check).of_source(rows.source)  # type: ignore[arg-type]
    return model.probabilities(scored.logits, scored.has_view), scored.coverage


def all_rows_attributes(
    model: Model,
    fit: FitViews,
    of_sample: dict[str, Any],
    rows: StreamedRows,
    labels: Labels,
    memory_limit: int,
) -> dict[str, Any]:
    """The attributes that sweeps over all rows change, by name, given those with numbers of rows of the sample."""
    q = consensus_of_all_rows(model, rows, labels, memory_limit)
    in_sample = fit.training.labels.labeled  # both ascend

    def in_all_rows(own: IntArray) -> IntArray:
        return rows.labeled[np.searchsorted(in_sample, own)]

    held_out = of_sample["held_out_rows_"]
    return model_attributes(model) | {
        "label_distributions_": q,
        "transduction_": None if q is None else model.classes[q.argmax(axis=1)],
        "support_": {name: in_all_rows(own) for name, own in of_sample["support_"].items()},
        "held_out_rows_": None if held_out is None else in_all_rows(held_out),
    }


def approximation_summary(approximation: Approximation, fit: FitViews, continued: Continued | None) -> dict[str, Any]:
    """How kernels were handled, the error on the unlabeled rows in memory, and how many rows were used, for the user."""
    if fit.bases is None:
        return {"kind": approximation.kind}
    lost = {
        view.settings.name: residual(view.training_rows.diagonal(view.index_U) + view.bias, model.blocks.diagonal_U)
        for view, model in zip(fit.data, fit.problem.models, strict=True)
    }
    summary = {
        "kind": approximation.kind,
        "n_components": approximation.n_components,
        "rank": {view.settings.name: basis.rank for view, basis in zip(fit.data, fit.bases, strict=True)},
        "residual": lost,
    }
    if continued is None:
        return summary
    summary |= {"n_annealed": fit.training.partition.block_U.size, "n_swept": continued.n_swept}
    return summary if continued.change is None else summary | {"change": asdict(continued.change)}


def fit_warnings(
    result: AnnealingResult, max_iter: int, training: TrainingData, *, complete: bool
) -> Iterator[tuple[str, type[Warning]]]:
    """What a user should know of a fit, each with the category of its warning; ``complete`` if all rows are in memory."""
    labels, partition = training.labels, training.partition
    if not result.converged:
        yield (
            f"The last stage did not converge within max_iter={max_iter} sweeps; raise max_iter or tol.",
            ConvergenceWarning,
        )
    if not solves_duals(result):
        yield (
            f"The dual problems of the labeled rows are solved only to a gap of {result.dual_gap:.2g}, so predictions are not "
            'reliable. Use a smaller C or prior_variance, or scaling="auto".',
            ConvergenceWarning,
        )
    without_views = labels.codes.size - partition.block_L.size - partition.block_U.size
    if without_views and complete:
        yield NO_VIEW_WARNING.format(without_views), UserWarning
    if result.consensus_weight > 0.0:
        yield from _lost_classes(result, training)


def solves_duals(result: AnnealingResult) -> bool:
    """Whether the duality gap at the end is small compared with the objective."""
    return result.dual_gap <= MAX_RELATIVE_GAP * (1.0 + abs(result.history[-1].objective))


def _lost_classes(result: AnnealingResult, training: TrainingData) -> Iterator[tuple[str, type[Warning]]]:
    """A warning if a class has almost no unlabeled rows in the consensus."""
    labels, partition = training.labels, training.partition
    mass = partition.weights[partition.block_U] * result.consensus.coverage
    share, expected = class_shares(result.consensus.q, mass), partition.counts / partition.counts.sum()
    lost = share < np.minimum(1.0 / partition.block_U.size, 0.1 * expected)
    if lost.any():
        name = labels.classes[lost].tolist()[0]
        yield (
            f"The consensus has drifted away from class {name!r}: it has {share[lost][0]:.2%} of the unlabeled rows, against "
            f'{expected[lost][0]:.2%} of the labeled ones. Use class_prior="labels" or give the class prior.',
            UserWarning,
        )
