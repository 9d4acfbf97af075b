"""Kernel ridge regression on the labels, with its exact leave-group-out scores.

With targets Y (l, K), weights w and ridge η, A = (K + diag(η/w))⁻¹ gives the coefficients AY. Leaving out a group g of
labeled rows gives them the scores

    M_g = Y_g - (A_gg)⁻¹ (AY)_g,

for a single row M_i = Y_i - (AY)_i/A_ii: no second fit is needed.
"""

from dataclasses import dataclass

import numpy as np

from cmvmed.numerics.types import Array, BoolArray, IntArray


@dataclass(frozen=True)
class RidgeFit:
    """Coefficients of the labeled rows, and their scores by fits without their groups."""

    coefficients: Array  # (l, K), zero for rows that were left out of the fit
    left_out: Array  # (l, K), zero likewise


def inverse(gram: Array, weights: Array, ridge: float) -> Array:
    """A = (K + diag(η/w))⁻¹ for the kernel of the labeled rows (l, l) and their weights (l,)."""
    return np.asarray(np.linalg.inv(gram + np.diag(ridge / weights)), dtype=np.float64)


def without_rows(A: Array, kept: BoolArray) -> Array:
    """The inverse of the kept rows and columns of A⁻¹: A_kk - A_ko (A_oo)⁻¹ A_ok."""
    if kept.all():
        return A
    to_left_out = A[np.ix_(kept, ~kept)]
    return np.asarray(A[np.ix_(kept, kept)] - to_left_out @ np.linalg.solve(A[np.ix_(~kept, ~kept)], to_left_out.T))


def fit_ridge(A: Array, targets: Array, groups: IntArray, kept: BoolArray) -> RidgeFit:
    """Coefficients and leave-group-out scores of the fit on the kept labeled rows.

    Parameters
    ----------
    A : (l, l), the inverse of all labeled rows
    targets : (l, K)
    groups : (l,), the group of each labeled row
    kept : (l,), the labeled rows of this fit
    """
    A = without_rows(A, kept)
    Y, own = targets[kept], groups[kept]
    solution = A @ Y
    left_out = Y - solution / np.diagonal(A)[:, None]
    numbers, count = np.unique(own, return_counts=True)
    for group in numbers[count > 1]:
        rows = np.flatnonzero(own == group)
        left_out[rows] = Y[rows] - np.linalg.solve(A[np.ix_(rows, rows)], solution[rows])
    result = RidgeFit(np.zeros_like(targets), np.zeros_like(targets))
    result.coefficients[kept], result.left_out[kept] = solution, left_out
    return result
