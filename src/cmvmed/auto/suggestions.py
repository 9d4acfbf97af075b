"""Which rows to label next: those that stand for the most rows whose class is uncertain.

Labels are worth most where they say something of many rows, and of rows that are not yet known. With s_ij the similarity
of two rows, u_j the uncertainty of row j, and L the labeled rows, the rows C are chosen one after the other so that

    Σ_j u_j max_{i ∈ L ∪ C} s_ij

grows most. A row in a dense region counts for its neighbors, an outlier only for itself, and a copy of a labeled or
chosen row for nothing. Without labels all u_j are 1, and the choice is of typical rows that cover the data. The sum is
submodular, so that choosing one row at a time comes within 1 - 1/e of the best choice (Nemhauser et al., 1978).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from cmvmed.auto.tuning import Tuning
from cmvmed.numerics.kernels import Kernel, squared_distances
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix

ROUNDING = 1e-9  # of a number of rows
MIN_SCALE = 1e-12  # of a squared distance, in units of the mean


@dataclass(frozen=True)
class ViewPoints:
    """Rows that have one view, in the form that its kernel takes."""

    kernel: Kernel
    points: Matrix  # (m, d)
    rows: IntArray  # (m,) which of all rows those are


def uncertainty(p: Array) -> Array:
    """Entropy of probabilities (n, K) in units of the largest, (n,): 0 for a certain class, 1 for equal probabilities."""
    return np.asarray(-xlogy(p, p).sum(axis=1) / np.log(max(p.shape[1], 2)))


def similarities(views: Sequence[ViewPoints], n_rows: int, n_labels: int, tuning: Tuning) -> Array:
    """s_ij = exp(-(d_ij/√(h_i h_j))²), (n, n), with d the distance by all views and h_i that to the k-th nearest row.

    By the scales h_i a region of few rows is as wide as one of many (Zelnik-Manor and Perona, 2004). k is the part of the
    rows for which one of ``n_labels`` labels stands, but not less than a fixed part: with many labels rows are told
    apart by their classes, not by their distances.
    """
    D = joint_distances(views, n_rows)
    k = min(math.ceil(n_rows / min(n_labels, tuning.suggestion_parts)), n_rows - 1)
    scale = np.partition(D, k, axis=1)[:, k]  # the nearest is the row itself
    if not np.isfinite(scale).all():
        scale = np.where(np.isfinite(scale), scale, np.max(D, axis=1, where=np.isfinite(D), initial=0.0))
    root = np.sqrt(np.maximum(scale, MIN_SCALE))
    D /= root[:, None]
    D /= root
    return np.asarray(np.exp(-np.square(D, out=D), out=D))


def joint_distances(views: Sequence[ViewPoints], n_rows: int) -> Array:
    """Mean over the views that both rows have of ‖x - x'‖² in units of its mean, (n, n); infinite if they have none."""
    whole = bool(views) and all(view.rows.size == n_rows for view in views)
    total, count = np.zeros((n_rows, n_rows)), np.zeros((0, 0) if whole else (n_rows, n_rows))
    for view in views:
        D = view_distances(view.kernel, view.points)
        mean = float(D.mean()) if D.size else 0.0
        D /= mean if mean > 0.0 else 1.0
        if whole:
            total += D
        else:
            own = np.ix_(view.rows, view.rows)
            total[own] += D
            count[own] += 1.0
    if whole:
        total /= len(views)
        return total
    return np.divide(total, count, out=np.full_like(total, np.inf), where=count > 0.0)


def view_distances(kernel: Kernel, points: Matrix) -> Array:
    """Squared distances of rows by one view, (m, m).

    They are those of the features, or, for kernels of other kinds, ‖φ(x) - φ(x')‖² = k(x, x) + k(x', x') - 2k(x, x').
    Values of a given kernel with the training rows are taken as features.
    """
    if kernel.mixture is not None or kernel.kind == "precomputed":
        return squared_distances(points, points)
    K = kernel.among(points)
    own = np.diagonal(K)
    return np.asarray(np.maximum(own[:, None] + own - 2.0 * K, 0.0))


def random_positions(n: int, share: float, n_before: int) -> BoolArray:
    """Which of ``n`` rows to label next are random, (n,), after ``n_before``: every fifth of all for a share of 1/5."""
    counts = np.floor(share * np.arange(n_before, n_before + n + 1) + ROUNDING)
    return np.asarray(np.diff(counts) > 0.0)


def choose_rows(S: Array, u: Array, labeled: IntArray, candidates: IntArray, n: int) -> tuple[IntArray, Array]:
    """The ``n`` candidates to choose, best first, and what each adds to Σ_j u_j max_i s_ij.

    Parameters
    ----------
    S : (m, m), similarities
    u : (m,), uncertainties
    labeled, candidates : numbers of rows
    """
    covered = S[:, labeled].max(axis=1, initial=0.0)
    gains = np.full(u.size, -np.inf)
    for i in candidates:
        gains[i] = _gain(S[i], u, covered)
    chosen, added = [], []
    for _ in range(n):
        i = int(gains.argmax())
        while (gain := _gain(S[i], u, covered)) < gains[i]:  # gains only fall, so those not computed again are bounds
            gains[i] = gain
            i = int(gains.argmax())
        chosen.append(i)
        added.append(gain)
        gains[i] = -np.inf
        covered = np.maximum(covered, S[i])
    return np.array(chosen, dtype=np.intp), np.array(added)


def _gain(similarity: Array, u: Array, covered: Array) -> float:
    return float(u @ np.maximum(similarity - covered, 0.0))
