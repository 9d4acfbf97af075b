"""The fitted attributes of CMVMED."""

from dataclasses import asdict, fields
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from cmvmed.auto.cross_fitting import consensus_logits
from cmvmed.auto.plan import ChosenPlan
from cmvmed.core.annealing import AnnealingResult, Plan
from cmvmed.core.consensus import class_scores, disagreement
from cmvmed.core.objective import Sweep
from cmvmed.data.labels import Labels
from cmvmed.estimators._base import OF_ALL_ROWS, model_attributes
from cmvmed.estimators._fit_reports import solves_duals
from cmvmed.estimators._lowering import FitViews, lower
from cmvmed.members.pool import PoolFit
from cmvmed.model.fitted_model import Model
from cmvmed.numerics.linalg import OVERFLOW_ADVICE
from cmvmed.numerics.nystroem import residual
from cmvmed.numerics.types import Array, IntArray
from cmvmed.scale.continuation import Continued, probabilities_of_all_rows
from cmvmed.scale.passes import StreamedRows
from cmvmed.views.training_data import TrainingData

MIN_DUAL = 1e-9  # of a dual variable's upper bound; smaller ones are zero


def fitted_attributes(
    fit: FitViews,
    chosen: ChosenPlan,
    result: AnnealingResult,
    pool: PoolFit | None = None,
    model: Model | None = None,
) -> dict[str, Any]:
    """All that ``fit`` learns, by attribute name; with the model of the result if it is known."""
    model, plan = lower(fit, chosen, result, pool) if model is None else model, chosen.plan
    distributions = _label_distributions(fit.training, plan, result, pool)
    history = result.history
    support, dual_coef = _support(fit, plan, result)
    of_pool = {} if pool is None else {"members_": pool.table(), "share_sensitivity_": _sensitivity_table(pool)}
    return (
        model_attributes(model)
        | of_pool
        | _held_out_attributes(fit.training, pool)
        | {
            "label_distributions_": distributions,
            "transduction_": model.classes[distributions.argmax(axis=1)],
            "consensus_weight_": result.consensus_weight,
            "view_names_": [view.settings.name for view in fit.views],
            "view_weights_": result.view_weights / result.view_weights.sum(),
            "n_views_": len(fit.views),
            "n_iter_": len(history),
            "objective_history_": np.array([sweep.objective for sweep in history]),
            "history_": _history_table(history),
            "support_": support,
            "dual_coef_": dual_coef,
            "prior_variance_": np.array([view.settings.prior_variance for view in fit.views]),
            "disagreement_": _disagreement_table(fit, plan, result, model.score_offset),
            "dual_gap_": result.dual_gap,
            "converged_": result.converged and solves_duals(result),
            "_accuracy": None if pool is None else pool.accuracy,
        }
    )


def _held_out_attributes(training: TrainingData, pool: PoolFit | None) -> dict[str, Any]:
    """The labeled rows that were held out, and their probabilities by fits without their labels."""
    found = None if pool is None else pool.held_out_probabilities()
    if found is None:
        found = np.empty(0, dtype=np.intp), np.empty((0, training.labels.n_classes))
    return {"held_out_rows_": found[0], "held_out_proba_": found[1]}


def _sensitivity_table(pool: PoolFit) -> dict[str, Any]:
    """How much depends on the class shares, by name."""
    found = pool.sensitivity
    return {
        "low": found.plausible.low,
        "high": found.plausible.high,
        "changed": found.changed,
        "accuracy_low": found.accuracy[0],
        "accuracy_high": found.accuracy[1],
    }


def _history_table(history: tuple[Sweep, ...]) -> dict[str, NDArray[Any]]:
    """The records of all sweeps by column."""
    return {f.name: np.array([getattr(sweep, f.name) for sweep in history]) for f in fields(Sweep)}


def _support(fit: FitViews, plan: Plan, result: AnnealingResult) -> tuple[dict[str, IntArray], dict[str, Array]]:
    """By view, the labeled rows whose dual variables are not all zero, and y∘α of these rows, (F, n_support)."""
    support, dual_coef = {}, {}
    problem = fit.problem
    for view, rows, box, state in zip(fit.views, problem.rows_L, problem.box, result.states, strict=True):
        sigma2 = view.settings.prior_variance if plan.surrogate.drops_prior_variance else 1.0
        tau = sigma2 * state.tau
        kept = (np.abs(tau) > MIN_DUAL * box[rows][:, None]).any(axis=1)
        support[view.settings.name] = fit.training.partition.block_L[rows[kept]]
        dual_coef[view.settings.name] = tau[kept].T
    return support, dual_coef


def _disagreement_table(fit: FitViews, plan: Plan, result: AnnealingResult, offset: Array) -> dict[str, Any]:
    """By column, how often each view disagrees with each other on the unlabeled rows, and the bound that this implies.

    ``offset`` (F,) is that of the views' scores in the model, so that classes are those that it predicts by view.
    """
    problem, names = plan.problem, [view.settings.name for view in fit.views]
    codes = [class_scores(s.m_U + offset).argmax(axis=1) for s in result.states]
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


def _label_distributions(training: TrainingData, plan: Plan, result: AnnealingResult, pool: PoolFit | None) -> Array:
    """The probabilities of the classes of every training row, (n, K); certain for labeled rows."""
    labels, partition = training.labels, training.partition
    table = np.tile(plan.class_prior, (labels.codes.size, 1))
    logits, coverage = consensus_logits(plan, result, partition)
    p = softmax(logits, axis=1) if pool is None else np.exp(pool.log_p)
    table[partition.rows] = np.where(coverage[:, None] > 0.0, p, plan.class_prior)
    table[labels.labeled] = np.eye(labels.n_classes)[labels.codes[labels.labeled]]
    if not np.isfinite(table).all():
        raise ValueError(f"Probabilities of training rows are not finite: {OVERFLOW_ADVICE}")
    return table


def all_rows_attributes(
    fit: FitViews, of_sample: dict[str, Any], rows: StreamedRows, labels: Labels, memory_limit: int
) -> dict[str, Any]:
    """The attributes of a fit to all rows, given those of its sample; without ``OF_ALL_ROWS`` if they are too large."""
    model: Model = of_sample["_model"]
    q = probabilities_of_all_rows(model, rows, labels, memory_limit)
    in_sample = fit.training.labels.labeled  # both ascend

    def in_all_rows(own: IntArray) -> IntArray:
        return rows.labeled[np.searchsorted(in_sample, own)]

    predicted = {} if q is None else {"label_distributions_": q, "transduction_": model.classes[q.argmax(axis=1)]}
    kept = {name: value for name, value in of_sample.items() if name not in OF_ALL_ROWS}
    return (
        kept
        | predicted
        | {
            "support_": {name: in_all_rows(own) for name, own in of_sample["support_"].items()},
            "held_out_rows_": in_all_rows(of_sample["held_out_rows_"]),
        }
    )


def approximation_summary(fit: FitViews, continued: Continued | None) -> dict[str, Any]:
    """How kernels were handled, the error on the unlabeled rows in memory, and how many rows were used, for the user."""
    approximation = fit.approximation
    if fit.bases is None:
        return {"kind": approximation.kind}
    lost = {
        view.settings.name: residual(view.training_rows.diagonal(view.U) + view.bias, model.blocks.diagonal_U)
        for view, model in zip(fit.views, fit.problem.models, strict=True)
    }
    summary = {
        "kind": approximation.kind,
        "n_components": max(basis.n_landmarks for basis in fit.bases),
        "rank": {view.settings.name: basis.rank for view, basis in zip(fit.views, fit.bases, strict=True)},
        "residual": lost,
    }
    if continued is None:
        return summary
    summary |= {"n_annealed": fit.training.partition.block_U.size, "n_swept": continued.n_swept}
    return summary if continued.change is None else summary | {"change": asdict(continued.change)}
