"""Features of the graph of nearest rows, in place of its kernel, for fits with landmarks.

The kernel K = (Λ + εI)⁻² is approximated by some of the nodes as the kernels of other views are
(:mod:`cmvmed.core.nystroem`): with the columns C = K[:, Z] of these landmarks and K_ZZ = RᵀR, the features of all nodes
are C R⁻¹. That is exact between a landmark and any node. The labeled nodes are landmarks, so that labels spread along
the graph as they do by the kernel itself; the others are drawn at random.
"""

import numpy as np

from cmvmed.auto.opinions.graph import Nodes
from cmvmed.auto.opinions.inverse_square import inverse_square_product
from cmvmed.core.linalg import whitening
from cmvmed.core.low_rank import LowRankView, gather_features
from cmvmed.core.nystroem import RANK_TOLERANCE
from cmvmed.core.row_cache import RowCache
from cmvmed.core.types import Array, IntArray
from cmvmed.data.contents import checksum
from cmvmed.data.training_data import TrainingData, generator

BLOCK_ROWS = 512  # rows whose features are computed at a time


def low_rank_neighbors(
    nodes: Nodes,
    training: TrainingData,
    n_landmarks: int,
    regularization: float,
    prior_variance: float,
    bias: float,
    random_state: object,
    *,
    single: bool,
) -> LowRankView:
    """The neighbors as a view of low rank, with so many landmarks beside the labeled nodes.

    Parameters
    ----------
    bias : added to the kernel
    single : whether features are kept in single precision
    """
    order, n_L = training.order, training.partition.block_L.size
    sampled = np.sort(generator(random_state).permutation(nodes.size)[:n_landmarks])
    labeled = _labeled_nodes(nodes, training, n_landmarks)
    of_nodes = graph_features(nodes, sampled, np.setdiff1d(labeled, sampled), regularization, training.cache)

    def features_of(rows: IntArray) -> Array:
        own = np.asarray(nodes.row_shares[rows] @ of_nodes)
        return np.column_stack([own, np.full(rows.size, np.sqrt(bias))])

    weights_U = training.partition.weights[training.partition.block_U]
    parts = (
        features_of(order[n_L + start : n_L + start + BLOCK_ROWS]) for start in range(0, weights_U.size, BLOCK_ROWS)
    )
    features = gather_features(parts, weights_U, of_nodes.shape[1] + 1, single=single)
    Z_L = features_of(order[:n_L])
    return LowRankView(Z_L, features, np.arange(weights_U.size), weights_U, prior_variance, "neighbors")


def _labeled_nodes(nodes: Nodes, training: TrainingData, n: int) -> IntArray:
    """The nodes of rows with a label, ascending; at most ``n`` of them, evenly spread over the table."""
    block = training.partition.block_L
    own = nodes.node_of_row[training.order[: block.size][training.partition.hinge[block] > 0.0]]
    labeled = np.unique(own[own >= 0])
    return labeled[np.linspace(0, labeled.size - 1, min(n, labeled.size)).astype(np.intp)]


def graph_features(nodes: Nodes, sampled: IntArray, labeled: IntArray, regularization: float, cache: RowCache) -> Array:
    """Features (m, r) of all nodes whose products approximate the kernel, scaled to a mean diagonal of one.

    Parameters
    ----------
    sampled : (p,), a random sample of the nodes; the mean of the kernel's diagonal is taken over them
    labeled : (q,), other nodes that are landmarks too
    regularization : ε
    """
    key = ("neighbor columns", nodes.indices, nodes.n_neighbors, checksum(nodes.node_of_row), sampled.size)
    of_sampled = cache.get(key, lambda: _kernel_columns(nodes, sampled, regularization))
    columns = np.hstack([of_sampled, _kernel_columns(nodes, labeled, regularization)])
    K_ZZ = columns[np.concatenate([sampled, labeled])]
    scale = float(np.diagonal(K_ZZ)[: sampled.size].mean())
    return np.asarray(columns @ whitening(0.5 * (K_ZZ + K_ZZ.T), RANK_TOLERANCE) / np.sqrt(scale))


def _kernel_columns(nodes: Nodes, chosen: IntArray, regularization: float) -> Array:
    """Columns of (Λ + εI)⁻², (m, p)."""
    unit = np.zeros((nodes.size, chosen.size))
    unit[chosen, np.arange(chosen.size)] = 1.0
    return inverse_square_product(nodes.normalized_adjacency, regularization, unit)
