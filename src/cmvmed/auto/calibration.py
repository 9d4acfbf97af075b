"""Calibrated probabilities and the accuracy to expect, from a cross-fit on the labeled rows.

The consensus q = softmax(z), z = class_scores(m̄ + o)/2T, is made for learning and often overconfident. From the
out-of-fold scores z_n of the labeled rows one scale c for p = softmax(c z) is learned,

    log p(c | labels) = Σ_n w_n log softmax(c z_n)[y_n] - (log c - log c_0)² / 2s² + constant.

The scale used is the exponential of the posterior mean of log c. It changes no predicted class. The expected accuracy
on the unlabeled rows is the posterior mean of their mean largest probability.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax
from scipy.stats import beta

from cmvmed.auto.cross_fitting import OutOfFoldScores, cross_fit
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult, Plan
from cmvmed.core.consensus import class_scores
from cmvmed.core.threads import Mapper
from cmvmed.core.types import Array, IntArray

LOG_SCALES = np.linspace(np.log(0.01), np.log(25.0), 80)  # grid of the posterior of log c
NEGLIGIBLE = 1e-9  # posterior weight of a scale
MAX_HELD_OUT = 1e9  # weighted number of rows beyond which the interval is a point


@dataclass(frozen=True)
class AccuracyEstimate:
    """The accuracy to expect on rows like the unlabeled training rows.

    Attributes
    ----------
    mean : float
    low, high : float
        The central interval that holds the accuracy with probability ``level``.
    level : float
    """

    mean: float
    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Calibration:
    """Result of the cross-fit."""

    scale: float  # c
    accuracy: float  # expected on the unlabeled rows
    n_held_out: float  # weighted number of labeled rows that were scored out of fold

    def accuracy_estimate(self, level: float) -> AccuracyEstimate:
        """With the interval of a share that was seen in as many rows as were held out (Jeffreys prior)."""
        n, tail = min(self.n_held_out, MAX_HELD_OUT), 0.5 * (1.0 - level)
        right, wrong = self.accuracy * n + 0.5, (1.0 - self.accuracy) * n + 0.5
        low, high = float(beta.ppf(tail, right, wrong)), float(beta.isf(tail, right, wrong))
        return AccuracyEstimate(self.accuracy, min(low, self.accuracy), max(high, self.accuracy), level)


def calibrate(
    plan: Plan,
    result: AnnealingResult,
    codes: IntArray,
    weights: Array,
    tuning: Tuning,
    map_folds: Mapper = map,
) -> Calibration:
    """Learn the scale of the probabilities by a cross-fit.

    Parameters
    ----------
    plan, result : the fit on all labels
    codes, weights : (n_L,), class (negative if it has none) and sample weight of each row of the labeled block
    map_folds : ``map``, or a parallel one
    """
    held_out = cross_fit(plan, result, codes, weights, tuning, map_folds)
    posterior = scale_posterior(held_out, tuning)
    likely = posterior > NEGLIGIBLE
    consensus = result.consensus
    mass = plan.problem.weights_U * consensus.coverage
    logits = class_scores(consensus.scores + consensus.offset) / (2.0 * result.temperature)
    if mass.sum() == 0.0:  # no unlabeled rows that count
        logits, mass = held_out.logits, held_out.weights
    return Calibration(
        scale=float(np.exp(posterior @ LOG_SCALES)),
        accuracy=min(1.0, float(posterior[likely] @ expected_accuracy(logits, mass, np.exp(LOG_SCALES[likely])))),
        n_held_out=float(held_out.weights.sum()),
    )


def scale_posterior(held_out: OutOfFoldScores, tuning: Tuning) -> Array:
    """Posterior weight of each of ``LOG_SCALES``, given held-out rows; the prior's if there are none."""
    n_rows, total = held_out.codes.size, float(held_out.weights.sum())
    smoothing = tuning.label_smoothing / (total + 2.0)
    log_posterior = -0.5 * ((LOG_SCALES - np.log(tuning.probability_scale)) / tuning.log_scale_sd) ** 2
    for i, log_scale in enumerate(LOG_SCALES):
        log_p = log_softmax(np.exp(log_scale) * held_out.logits, axis=1)
        fit = (1.0 - smoothing) * log_p[np.arange(n_rows), held_out.codes] + smoothing * log_p.mean(axis=1)
        log_posterior[i] += held_out.weights @ fit
    return np.asarray(softmax(log_posterior))


def expected_accuracy(logits: Array, mass: Array, scales: Array) -> Array:
    """Mean of the largest probability over rows with weights ``mass`` (n,), at each of the scales c."""
    if mass.sum() == 0.0:  # nothing is known
        return np.full(scales.size, 1.0 / logits.shape[1])
    share, behind = mass / mass.sum(), logits - logits.max(axis=1, keepdims=True)
    return np.array([share @ (1.0 / np.exp(scale * behind).sum(axis=1)) for scale in scales])
