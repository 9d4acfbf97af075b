"""The share of the second of two classes, from the labels and the ranks of their rows among the unlabeled rows.

By chance a handful of labeled rows holds too many of one class. Their scores are then also too high or too low compared
with the unlabeled rows. With u the rank of a row's score among the unlabeled rows' scores, by views that did not use
its label, the share is

    r = ∫₀¹ σ(a + b logit u) du,   a, b: logistic regression of the labels on logit u,

since the ranks of the unlabeled rows are uniform. Where scores carry no information, b = 0 and r is the labels' share.
"""

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from cmvmed.auto.class_prior import ShareEstimate, counted_share
from cmvmed.auto.cross_fitting import held_out_folds, without_labels
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import independent_states
from cmvmed.core.consensus import pool
from cmvmed.core.problem import Problem
from cmvmed.core.types import Array, IntArray

GRID = (np.arange(1000) + 0.5) / 1000  # of the integral over u
TIE_TOLERANCE = 1e-6  # of the range of scores; closer ones are those of equal rows, which rounding must not order


def ranked_share(
    problem: Problem, view_weights: Array, codes: IntArray, weights: Array, counts: Array, tuning: Tuning
) -> ShareEstimate:
    """The share given the labels' counts and the ranks of their rows.

    The variance is that of the counts, less what the ranks explain of the labels.

    Parameters
    ----------
    problem : of two classes
    view_weights : (V,), of the views' pooled scores
    codes, weights : (n_L,), class (negative if it has none) and sample weight of each row of the labeled block
    counts : (2,), labeled rows of each class
    """
    counted = counted_share(counts)
    u = out_of_fold_ranks(problem, view_weights, codes, weights, tuning.n_folds)
    ranked = np.isfinite(u)
    if np.unique(codes[ranked]).size < 2:
        return counted
    # half a row of each class at the middle rank: the Jeffreys prior of the counts
    x = logit(np.clip(np.append(u[ranked], [0.5, 0.5]), *tuning.rank_range))[:, None]
    y, w = np.append(codes[ranked], [0, 1]), np.append(weights[ranked], [0.5, 0.5])
    line = LogisticRegression().fit(x, y, sample_weight=w)
    a, b = float(line.intercept_[0]), float(line.coef_[0, 0])
    share = float(expit(a + b * logit(np.clip(GRID, *tuning.rank_range))).mean())
    p = expit(a + b * x[:, 0])
    unexplained = float(w @ (p * (1.0 - p)) / w.sum() / (counted.mean * (1.0 - counted.mean)))
    return ShareEstimate(share, counted.variance * min(1.0, unexplained))


def out_of_fold_ranks(problem: Problem, view_weights: Array, codes: IntArray, weights: Array, n_folds: int) -> Array:
    """Rank of each labeled row among the unlabeled ones, by independent views without its label, (n_L,); NaN if in no fold."""
    n_L, n_U = codes.size, problem.weights_U.size
    ranks = np.full(n_L, np.nan)
    for out in held_out_folds(problem, view_weights, codes, weights, n_folds):
        states = independent_states(without_labels(problem, out))
        scores_L, coverage_L = pool([state.m_L for state in states], problem.rows_L, view_weights, n_L)
        scores_U, coverage_U = pool([state.m_U for state in states], problem.rows_U, view_weights, n_U)
        mass = problem.weights_U * coverage_U
        scored = out & (coverage_L > 0.0) & bool(mass.any())
        ranks[scored] = _mid_ranks(scores_L[scored, 0], scores_U[:, 0], mass)
    return ranks


def _mid_ranks(values: Array, among: Array, mass: Array) -> Array:
    """Fraction of ``mass`` with a lower value, and half of that with the same, (n,)."""
    together = merge_ties(np.concatenate([values, among]))
    values, among = together[: values.size], together[values.size :]
    order = np.argsort(among, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(mass[order])])
    left, right = (np.searchsorted(among[order], values, side=side) for side in ("left", "right"))
    return np.asarray(0.5 * (below[left] + below[right]) / below[-1])


def merge_ties(z: Array) -> Array:
    """The scores, with those that differ only by rounding made equal."""
    order = np.argsort(z, kind="stable")
    ascending = z[order]
    scale = np.abs(z).max(initial=0.0) or 1.0  # differences of very large scores would overflow
    gaps = np.diff(ascending / scale, prepend=-np.inf)
    differs = gaps > TIE_TOLERANCE * np.ptp(z / scale)
    tied = np.empty_like(z)
    tied[order] = ascending[differs][np.cumsum(differs) - 1]
    return tied
