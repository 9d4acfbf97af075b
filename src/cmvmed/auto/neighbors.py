"""The nearest training rows as an additional view of the consensus, for data whose rows form clusters.

The kernel (Λ + εI)⁻² of the graph of nearest rows (:mod:`cmvmed.graphs.kernel`) is a view like any other. The score of
a new row is the mean score of its nearest training rows.

Its weight is that of the graphs among the opinions learned from the labels, which held-out labels set; it is left out
where they give graphs no more than their prior weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import Plan
from cmvmed.core.posterior import supervised_state
from cmvmed.graphs.kernel import neighbor_view
from cmvmed.graphs.nodes import Nodes
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_rows import ViewData


@dataclass(frozen=True)
class NeighborEvidence:
    """The graph of nearest rows, and the weight that held-out labels give it."""

    nodes: Nodes  # of rows in the order of the table
    weight: float


def add_neighbor_view(
    plan: Plan, evidence: NeighborEvidence, views: Sequence[ViewData], training: TrainingData, tuning: Tuning
) -> Plan:
    """The plan with the neighbors as its last view."""
    problem, partition, weight = plan.problem, training.partition, evidence.weight
    n_L, n_U = partition.block_L.size, partition.block_U.size
    model = neighbor_view(evidence.nodes, views, training, tuning.graph_regularization).exact_model(
        problem.weights_U, shared_curvature=plan.surrogate.shared_curvature
    )
    hinge = float(np.mean([view.settings.C for view in views])) * partition.weights[partition.block_L]
    joined = replace(
        problem,
        models=(*problem.models, model),
        rows_L=(*problem.rows_L, np.arange(n_L)),
        rows_U=(*problem.rows_U, np.arange(n_U)),
        box=(*problem.box, hinge),
    )
    schedule = plan.schedule
    if "consensus_weight" in plan.chosen:
        lam = (1.0 - weight) * schedule.consensus_weight + weight * tuning.neighbor_consensus_weight
        schedule = replace(schedule, consensus_weight=lam)
    return replace(
        plan,
        problem=joined,
        start=replace(plan.start, states=(*plan.start.states, supervised_state(model, problem.Y, hinge))),
        schedule=schedule,
        view_weights=np.append((1.0 - weight) * plan.view_weights, weight),
    )
