"""What the labels, together with the unlabeled rows, say about the share of the second of two classes.

By chance a handful of labeled rows holds too many of one class. It then also has scores that are too high or too low compared
with the unlabeled rows, and that can be seen. With u the rank of a row's score among the unlabeled rows' scores, by views that
did not know its label, the share is

    r = ∫₀¹ σ(a + b logit u) du,   a, b: logistic regression of the labels on logit u,

since the ranks of the unlabeled rows are uniform. Where scores tell nothing, b = 0 and r is the labels' share.
"""

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from cmvmed.auto.class_prior import ShareEstimate, counted_share, without_rounding
from cmvmed.auto.cross_fitting import held_out_folds, without_labels
from cmvmed.core.annealing import Problem, independent_states
from cmvmed.core.consensus import pool
from cmvmed.core.linalg import Array, IntArray

RANK_RANGE = (0.02, 0.98)  # beyond, a rank among some hundred rows is no more certain
GRID = (np.arange(1000) + 0.5) / 1000


def ranked_share(
    problem: Problem, view_weights: Array, codes: IntArray, weights: Array, counts: Array
) -> ShareEstimate:
    """What is known of the share given the labels' counts and the ranks of their rows.

    The variance is that of the counts, less what the ranks explain of the labels.

    Parameters
    ----------
    problem : of two classes
    view_weights : (V,), of the views' pooled opinion
    codes, weights : (n_L,), the class of each row of the labeled block, negative if it has none, and how often it counts
    counts : (2,), labeled rows of each class
    """
    counted = counted_share(counts)
    u = held_out_ranks(problem, view_weights, codes, weights)
    judged = np.isfinite(u)
    if np.unique(codes[judged]).size < 2:
        return counted
    # half a row of each class that is neither high nor low: the Jeffreys prior of the counts
    x = logit(np.clip(np.append(u[judged], [0.5, 0.5]), *RANK_RANGE))[:, None]
    y, w = np.append(codes[judged], [0, 1]), np.append(weights[judged], [0.5, 0.5])
    line = LogisticRegression().fit(x, y, sample_weight=w)
    a, b = float(line.intercept_[0]), float(line.coef_[0, 0])
    share = float(expit(a + b * logit(np.clip(GRID, *RANK_RANGE))).mean())
    p = expit(a + b * x[:, 0])
    unexplained = float(w @ (p * (1.0 - p)) / w.sum() / (counted.mean * (1.0 - counted.mean)))
    return ShareEstimate(share, counted.variance * min(1.0, unexplained))


def held_out_ranks(problem: Problem, view_weights: Array, codes: IntArray, weights: Array) -> Array:
    """Rank of each labeled row among the unlabeled ones, by independent views without its label, (n_L,); NaN if not judged."""
    n_L, n_U = codes.size, problem.weights_U.size
    ranks = np.full(n_L, np.nan)
    for out in held_out_folds(problem, view_weights, codes, weights):
        states = independent_states(without_labels(problem, out))
        scores_L, seen_L = pool([state.m_L for state in states], problem.rows_L, view_weights, n_L)
        scores_U, seen_U = pool([state.m_U for state in states], problem.rows_U, view_weights, n_U)
        judged = out & (seen_L > 0.0) & bool((problem.weights_U * seen_U).any())
        ranks[judged] = _mid_ranks(scores_L[judged, 0], scores_U[:, 0], problem.weights_U * seen_U)
    return ranks


def _mid_ranks(values: Array, among: Array, mass: Array) -> Array:
    """Share of ``mass`` with a lower value, and half of that with the same, (n,)."""
    together = without_rounding(np.concatenate([values, among]))
    values, among = together[: values.size], together[values.size :]
    order = np.argsort(among, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(mass[order])])
    left, right = (np.searchsorted(among[order], values, side=side) for side in ("left", "right"))
    return np.asarray(0.5 * (below[left] + below[right]) / below[-1])
