"""How much the consensus counts: view weights and λ by the agreement of the views."""

import numpy as np

from cmvmed.auto.tuning import Tuning
from cmvmed.numerics.types import Array, BoolArray

MIN_AGREEMENT = 1e-3  # of a correlation between views, which makes the leading eigenvector unique


def agreement_weights(R: Array, known: BoolArray) -> Array:
    """View weights (V,) that sum to 1: the leading eigenvector of the agreement R (V, V) of the ``known`` views.

    A view of pure noise agrees with no other view and gets almost no weight; two views are weighted equally by
    symmetry. A view that no training row has is not known and gets none.
    """
    among = np.maximum(R[np.ix_(known, known)], MIN_AGREEMENT)
    leading = np.zeros(known.size)
    leading[known] = np.abs(np.linalg.eigh(among)[1][:, -1])
    return np.asarray(leading / leading.sum())


def mean_agreement(R: Array, weights: Array) -> float:
    """Weighted mean of R_ij over pairs of different views; 1 for a single view."""
    pairs = np.outer(weights, weights)
    np.fill_diagonal(pairs, 0.0)
    return float((pairs * R).sum() / pairs.sum()) if pairs.any() else 1.0


def auto_consensus_weight(agreement: float, tuning: Tuning) -> float:
    """λ from the mean agreement of the independent views: views that do not agree cannot improve each other."""
    return tuning.consensus_weight * min(1.0, agreement / tuning.full_agreement)
