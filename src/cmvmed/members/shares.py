"""The share of each class among the unlabeled rows.

Three sources that fail in different ways are combined by their geometric mean: the mean of the pooled predictions; the
share at which the predictions, recalibrated on held-out labels, are consistent (the EM algorithm of Saerens et al.,
2002, regularized); and the labels' share, shrunk towards equal classes. The last says nothing if labels were chosen
class by class, and is then left out. With few labels all of them are uncertain, so the result is shrunk towards equal
shares, like that of a few labels of each class.
"""

import numpy as np

from cmvmed.auto.class_prior import empirical_bayes_share
from cmvmed.auto.tuning import Tuning
from cmvmed.members.stacking import fit_logits
from cmvmed.numerics.softmax import softmax
from cmvmed.numerics.types import Array, IntArray

MIN_SHARE = 1e-9  # of a class, in logarithms
EM_STEPS = 200
EM_TOLERANCE = 1e-9


def drawn_per_class(counts: Array, labels_drawn: str) -> bool:
    """Whether the labels' counts say nothing of the class shares.

    Equal counts, up to one, are what labels chosen class by class have; a random draw of unequal classes rarely has
    them, and one of equal classes loses nothing by the assumption. Rows chosen by a rule, such as uncertain ones, have
    any counts.
    """
    if labels_drawn == "unknown":
        return bool(counts.max() - counts.min() <= 1.0)
    return labels_drawn in ("per_class", "chosen")


def infer_shares(
    left_out: Array,
    log_p_U: Array,
    mass: Array,
    codes: IntArray,
    weights: Array,
    counts: Array,
    per_class: bool,
    tuning: Tuning,
) -> Array:
    """The share of each class, (K,).

    Parameters
    ----------
    left_out : (l, K), pooled log-probabilities of labeled rows whose labels were left out
    log_p_U : (n_U, K), pooled log-probabilities of the unlabeled rows
    mass : (n_U,), their weights
    codes, weights : (l,), class and weight of the labeled rows; zero for those that cannot be left out
    counts : (K,), labeled rows of each class
    per_class : whether labels were drawn class by class
    """
    if mass.sum() == 0.0:
        return empirical_bayes_share(counts)
    predicted = mass @ softmax(log_p_U) / mass.sum()
    estimates = [predicted, consistent_shares(left_out, log_p_U, mass, codes, weights, counts, tuning)]
    if not per_class:
        estimates.append(empirical_bayes_share(counts))
    weight = counts.sum() / (counts.sum() + tuning.share_prior_labels * counts.size)
    return softmax(weight * np.mean(np.log(np.maximum(estimates, MIN_SHARE)), axis=0))


def consistent_shares(
    left_out: Array, log_p_U: Array, mass: Array, codes: IntArray, weights: Array, counts: Array, tuning: Tuning
) -> Array:
    """The share r at which predictions p(y|x) r_y/r_labels, normalized, have the mean r over the unlabeled rows.

    One label of each class, and a fraction ``tuning.share_row_weight`` of each unlabeled row, are counted, because
    predictions are not exact.
    """
    n_classes = counts.size
    sd = tuning.share_scale_sd
    centered = left_out - left_out.mean(axis=1, keepdims=True)
    none = np.zeros(n_classes)
    c, b = fit_logits(centered[None], codes, weights, none, np.ones(1), sd, sd, tuning)
    P = softmax(c[0] * log_p_U + b[0])
    of_labels = (counts + 0.5) / (counts.sum() + 0.5 * n_classes)
    r = of_labels
    for _ in range(EM_STEPS):
        Q = P * (r / of_labels)
        Q /= Q.sum(axis=1, keepdims=True)
        last, r = r, tuning.share_row_weight * (mass @ Q) + 1.0
        r = r / r.sum()
        if np.abs(r - last).max() < EM_TOLERANCE:
            break
    return np.asarray(r)
