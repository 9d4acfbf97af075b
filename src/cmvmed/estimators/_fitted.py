"""What a fit of CMVMED leaves behind: its attributes, and what to say of its fit_warnings."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cmvmed.auto.calibration import Calibration
from cmvmed.core.annealing import AnnealingResult, Problem, Sweep
from cmvmed.core.consensus import class_shares, pool, soft_labels
from cmvmed.core.linalg import Array
from cmvmed.core.problem import RowPartition, view_predictors
from cmvmed.data.labels import Labels
from cmvmed.estimators._base import TrainingData
from cmvmed.estimators._views_of_fit import ViewsOfFit
from cmvmed.scale.sampling import FitRows, consensus_of_all_rows
from cmvmed.scale.streamed import StreamedResult


def fitted_attributes(
    training: TrainingData,
    views: ViewsOfFit,
    annealed: AnnealingResult,
    prior: Array,
    calibration: Calibration | None = None,
) -> dict[str, Any]:
    """All that ``fit`` learns, by attribute name."""
    labels, partition, data, setting = training.labels, training.partition, views.data, views.setting
    scale = 1.0 if calibration is None else calibration.scale
    temperature = annealed.temperature / scale  # softmax(c z) is the consensus at temperature T/c
    distributions = _label_distributions(setting.problem, annealed, prior, temperature, labels, partition)
    history, of_views = annealed.history, annealed.view_weights[: len(data)]
    return training.columns.attributes | {
        "classes_": labels.classes,
        "class_prior_": prior,
        "label_distributions_": distributions,
        "transduction_": labels.classes[distributions.argmax(axis=1)],
        "probability_scale_": scale,
        "consensus_weight_": annealed.consensus_weight,
        "view_names_": [view.settings.name for view in data],
        "view_weights_": of_views / of_views.sum(),
        "neighbor_weight_": float(annealed.view_weights[len(data) :].sum()),
        "n_views_": len(data),
        "n_iter_": len(history),
        "objective_history_": np.array([sweep.objective for sweep in history]),
        "history_": {f.name: np.array([getattr(sweep, f.name) for sweep in history]) for f in fields(Sweep)},
        "dual_gap_": float(sum(w * state.gap for w, state in zip(annealed.view_weights, annealed.states, strict=True))),
        "converged_": annealed.converged,
        "_predictors": view_predictors(data, views.bases, setting.problem, annealed),
        "_neighbors": setting.predictor(annealed),
        "_pool_weights": annealed.view_weights,
        "_offset": annealed.consensus.offset,
        "_temperature": temperature,
        "_calibration": calibration,
    }


def _label_distributions(
    problem: Problem,
    annealed: AnnealingResult,
    prior: Array,
    temperature: float,
    labels: Labels,
    partition: RowPartition,
) -> Array:
    """The probabilities of the classes of every training row, (n, K); certain for labeled rows."""
    table = np.tile(prior, (labels.codes.size, 1))
    consensus = annealed.consensus
    q = soft_labels(consensus.scores, consensus.offset, temperature)
    table[partition.block_U] = np.where(consensus.coverage[:, None] > 0.0, q, prior)
    scores, coverage = pool(
        [state.m_L for state in annealed.states],
        problem.rows_L,
        annealed.view_weights,
        partition.block_L.size,
    )
    riding = (labels.codes[partition.block_L] < 0) & (coverage > 0.0)
    table[partition.block_L[riding]] = soft_labels(scores[riding], consensus.offset, temperature)
    table[labels.labeled] = np.eye(labels.n_classes)[labels.codes[labels.labeled]]
    return table


def attributes_of_all_rows(
    fit_rows: FitRows, streamed: StreamedResult, prior: Array, temperature: float, memory_limit: int
) -> dict[str, Any]:
    """The attributes that sweeps over all rows change."""
    q = consensus_of_all_rows(fit_rows, streamed, prior, temperature, memory_limit)
    return {
        "label_distributions_": q,
        "transduction_": None if q is None else fit_rows.labels.classes[q.argmax(axis=1)],
        "dual_gap_": streamed.dual_gap,
        "_predictors": streamed.predictors,
    }


def fit_warnings(
    annealed: AnnealingResult, settled: bool, max_iter: int, labels: Labels, partition: RowPartition, sampled: bool
) -> Iterator[tuple[str, type[Warning]]]:
    """What a user should know of a fit that went less well than it might, each with the kind of its warning."""
    if not settled:
        yield (
            f"The last stage did not settle within max_iter={max_iter} sweeps; raise max_iter or tol.",
            ConvergenceWarning,
        )
    blind = labels.codes.size - partition.block_L.size - partition.block_U.size
    if blind and not sampled:
        yield f"{blind} training rows have all views missing; they teach nothing and get the class prior.", UserWarning
    if annealed.consensus_weight > 0.0:
        share = class_shares(annealed.consensus.q, partition.weights[partition.block_U] * annealed.consensus.coverage)
        expected = partition.counts / partition.counts.sum()
        lost = share < np.minimum(1.0 / partition.block_U.size, 0.1 * expected)
        if lost.any():
            name = labels.classes[lost].tolist()[0]
            yield (
                f"The consensus has drifted away from class {name!r}: it has {share[lost][0]:.2%} of the "
                f"unlabeled rows, against {expected[lost][0]:.2%} of the labeled ones. "
                'Use class_prior="labels" or give the class prior.',
                UserWarning,
            )
