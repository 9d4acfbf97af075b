"""What a fit of CMVMED leaves behind: its attributes, and what to say of its doubts."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cmvmed.annealing import Annealed, Problem, Sweep
from cmvmed.calibration import Calibration
from cmvmed.consensus import class_shares, pool, soft_labels
from cmvmed.estimators.base import Training
from cmvmed.estimators.fit_rows import FitRows, consensus_of_all_rows
from cmvmed.estimators.views_of_fit import ViewsOfFit
from cmvmed.labels import Labels
from cmvmed.linalg import Array
from cmvmed.streamed_training import Streamed
from cmvmed.training import RowRoles, view_machines


def fitted_attributes(
    training: Training,
    views: ViewsOfFit,
    annealed: Annealed,
    prior: Array,
    calibration: Calibration | None = None,
) -> dict[str, Any]:
    """All that ``fit`` learns, by attribute name."""
    labels, roles, data, setting = training.labels, training.roles, views.data, views.setting
    scale = 1.0 if calibration is None else calibration.scale
    temperature = annealed.temperature / scale  # softmax(c z) is the consensus at temperature T/c
    distributions = _label_distributions(setting.problem, annealed, prior, temperature, labels, roles)
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
        "_machines": view_machines(data, views.bases, setting.problem, annealed),
        "_neighbours": setting.machine(annealed),
        "_pool_weights": annealed.view_weights,
        "_offset": annealed.consensus.offset,
        "_temperature": temperature,
        "_calibration": calibration,
    }


def _label_distributions(
    problem: Problem, annealed: Annealed, prior: Array, temperature: float, labels: Labels, roles: RowRoles
) -> Array:
    """The probabilities of the classes of every training row, (n, K); certain for labelled rows."""
    table = np.tile(prior, (labels.codes.size, 1))
    consensus = annealed.consensus
    q = soft_labels(consensus.scores, consensus.offset, temperature)
    table[roles.block_U] = np.where(consensus.coverage[:, None] > 0.0, q, prior)
    scores, coverage = pool(
        [state.m_L for state in annealed.states],
        problem.rows_L,
        annealed.view_weights,
        roles.block_L.size,
    )
    riding = (labels.codes[roles.block_L] < 0) & (coverage > 0.0)
    table[roles.block_L[riding]] = soft_labels(scores[riding], consensus.offset, temperature)
    table[labels.labeled] = np.eye(labels.n_classes)[labels.codes[labels.labeled]]
    return table


def attributes_of_all_rows(
    fit_rows: FitRows, streamed: Streamed, prior: Array, temperature: float, memory_limit: int
) -> dict[str, Any]:
    """The attributes that sweeps over all rows change."""
    q = consensus_of_all_rows(fit_rows, streamed, prior, temperature, memory_limit)
    return {
        "label_distributions_": q,
        "transduction_": None if q is None else fit_rows.labels.classes[q.argmax(axis=1)],
        "dual_gap_": streamed.dual_gap,
        "_machines": streamed.machines,
    }


def doubts(
    annealed: Annealed, settled: bool, max_iter: int, labels: Labels, roles: RowRoles, sampled: bool
) -> Iterator[tuple[str, type[Warning]]]:
    """What a user should know of a fit that went less well than it might, each with the kind of its warning."""
    if not settled:
        yield (
            f"The last stage did not settle within max_iter={max_iter} sweeps; raise max_iter or tol.",
            ConvergenceWarning,
        )
    blind = labels.codes.size - roles.block_L.size - roles.block_U.size
    if blind and not sampled:
        yield f"{blind} training rows have all views missing; they teach nothing and get the class prior.", UserWarning
    if annealed.consensus_weight > 0.0:
        share = class_shares(annealed.consensus.q, roles.weights[roles.block_U] * annealed.consensus.coverage)
        expected = roles.counts / roles.counts.sum()
        lost = share < np.minimum(1.0 / roles.block_U.size, 0.1 * expected)
        if lost.any():
            name = labels.classes[lost].tolist()[0]
            yield (
                f"The consensus has drifted away from class {name!r}: it has {share[lost][0]:.2%} of the "
                f"unlabelled rows, against {expected[lost][0]:.2%} of the labelled ones. "
                'Use class_prior="labels" or give the class prior.',
                UserWarning,
            )
