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
from cmvmed.core.full_kernel import CholeskyView, SpectralView
from cmvmed.core.posterior import supervised_state
from cmvmed.data.row_hashes import checksum
from cmvmed.graphs.kernel import neighbor_kernel
from cmvmed.graphs.nodes import Nodes
from cmvmed.numerics.types import Array
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_kernel import kernel_blocks
from cmvmed.views.view_rows import ViewData


@dataclass(frozen=True)
class NeighborEvidence:
    """The graph of nearest rows, and the weight that held-out labels give it."""

    nodes: Nodes
    weight: float


def add_neighbor_view(
    plan: Plan, evidence: NeighborEvidence, views: Sequence[ViewData], training: TrainingData, tuning: Tuning
) -> Plan:
    """The plan with the neighbors as its last view."""
    problem, partition, weight = plan.problem, training.partition, evidence.weight
    n_L, n_U = partition.block_L.size, partition.block_U.size
    shared_curvature = plan.surrogate.shared_curvature
    model = neighbor_model(evidence.nodes, views, training, tuning, shared_curvature=shared_curvature)
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


def neighbor_model(
    nodes: Nodes, views: Sequence[ViewData], training: TrainingData, tuning: Tuning, *, shared_curvature: bool
) -> SpectralView | CholeskyView:
    """The graph as a view of a fit, with the mean settings of the other views."""
    prior_variance = float(np.mean([view.settings.prior_variance for view in views]))
    bias = float(np.mean([view.settings.bias_variance for view in views])) / prior_variance

    def compute() -> Array:
        return neighbor_kernel(nodes, tuning.graph_regularization) + bias

    key = ("neighbors", nodes.indices, nodes.n_neighbors, checksum(nodes.node_of_row), prior_variance, bias)
    K, partition = training.cache.get(("kernel", key), compute), training.partition
    weights_U = partition.weights[partition.block_U]
    blocks = kernel_blocks(K, partition.L, partition.U, weights_U, prior_variance, "neighbors")
    return SpectralView(blocks) if shared_curvature else CholeskyView(blocks)
