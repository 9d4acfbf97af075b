"""Probabilities that are right, and how good the predictions are, from a cross-fit on the labeled rows.

The consensus q = softmax(z), z = class_scores(m̄ + o)/2T, ranks the classes of a row but is often too sure. Each labeled row is therefore
judged by a fit that did not know its label, and one scale c for p = softmax(c z) is learned from how right these judgements are:

    log p(c | labels) = Σ_n w_n log softmax(c z_n)[y_n] - (log c - log c_0)² / 2s² + constant.

The scale used is the exponential of the posterior mean of log c. It changes no predicted class. The same posterior tells what share
of the unlabeled rows is expected to be right, the mean over it of their largest probability.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax
from scipy.stats import beta

from cmvmed.auto.class_prior import ClassBalance, relaxed_balance
from cmvmed.auto.cross_fitting import held_out_folds, without_labels
from cmvmed.core.annealing import AnnealingResult, Problem, Schedule, anneal
from cmvmed.core.consensus import class_scores, pool
from cmvmed.core.linalg import Array, BoolArray, IntArray
from cmvmed.core.surrogates import Surrogate
from cmvmed.core.threads import Mapper

# Center c_0 and deviation s of the prior of log c, chosen on development splits (docs/accuracy.md).
USUAL_SCALE = 0.5
LOG_SCALE_DEVIATION = 1.2
LOG_SCALES = np.linspace(np.log(0.01), np.log(25.0), 80)
NEGLIGIBLE = 1e-9  # posterior weight of a scale
SMOOTHING = 0.25  # of a label in all: no number of right answers proves certainty


@dataclass(frozen=True)
class OutOfFoldScores:
    """Labeled rows as seen by fits that did not know their labels."""

    logits: Array  # (n, K), z
    codes: IntArray  # (n,), their classes
    weights: Array  # (n,), how often each counts


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
    """What the cross-fit has shown."""

    scale: float  # c
    accuracy: float  # expected on the unlabeled rows
    n_held_out: float  # labeled rows that were judged, counted by weight

    def accuracy_estimate(self, level: float) -> AccuracyEstimate:
        """With the interval of a share that was seen in as many rows as were held out (Jeffreys prior)."""
        right, tail = self.accuracy * self.n_held_out + 0.5, 0.5 * (1.0 - level)
        wrong = self.n_held_out + 1.0 - right
        low, high = float(beta.ppf(tail, right, wrong)), float(beta.isf(tail, right, wrong))
        return AccuracyEstimate(self.accuracy, min(low, self.accuracy), max(high, self.accuracy), level)


def calibrate(
    problem: Problem,
    surrogate: Surrogate,
    schedule: Schedule,
    annealed: AnnealingResult,
    codes: IntArray,
    weights: Array,
    map_folds: Mapper = map,
) -> Calibration:
    """Learn the scale of the probabilities by a cross-fit.

    Parameters
    ----------
    problem, surrogate, schedule, annealed : the fit on all labels
    codes, weights : (n_L,), the class of each row of the labeled block, negative if it has none, and how often it counts
    map_folds : ``map``, or a parallel one
    """
    held_out = cross_fit(problem, surrogate, schedule, annealed, codes, weights, map_folds)
    posterior = scale_posterior(held_out)
    likely = posterior > NEGLIGIBLE
    consensus = annealed.consensus
    mass = problem.weights_U * consensus.coverage
    logits = class_scores(consensus.scores + consensus.offset) / (2.0 * annealed.temperature)
    if mass.sum() == 0.0:  # no unlabeled rows to speak of
        logits, mass = held_out.logits, held_out.weights
    return Calibration(
        scale=float(np.exp(posterior @ LOG_SCALES)),
        accuracy=float(posterior[likely] @ expected_accuracy(logits, mass, np.exp(LOG_SCALES[likely]))),
        n_held_out=float(held_out.weights.sum()),
    )


def cross_fit(
    problem: Problem,
    surrogate: Surrogate,
    schedule: Schedule,
    annealed: AnnealingResult,
    codes: IntArray,
    weights: Array,
    map_folds: Mapper = map,
) -> OutOfFoldScores:
    """Judge each labeled row by a fit in which its label has no weight.

    The weights of the views, λ and the classes' shares are those of the fit on all labels.
    """
    short = schedule.short().ending_at(annealed.consensus_weight)
    pi = annealed.view_weights

    def judge(out: BoolArray) -> tuple[Array, Array]:
        kept = (codes >= 0) & (weights > 0.0) & ~out
        counts = np.bincount(codes[kept], weights=weights[kept], minlength=problem.n_classes).astype(np.float64)
        balance = _balance(annealed, counts, short.n_stages)
        end = anneal(without_labels(problem, out), surrogate, short, balance, pi)
        pooled, coverage = pool([state.m_L for state in end.states], problem.rows_L, pi, codes.size)
        return pooled + end.consensus.offset, coverage

    folds = list(held_out_folds(problem, pi, codes, weights))
    scores, judged = np.zeros_like(problem.Y), np.zeros(codes.size, dtype=bool)
    for out, (opinion, coverage) in zip(folds, map_folds(judge, folds), strict=True):
        scores[out] = opinion[out]
        judged |= out & (coverage > 0.0)
    return OutOfFoldScores(class_scores(scores[judged]) / (2.0 * annealed.temperature), codes[judged], weights[judged])


def _balance(annealed: AnnealingResult, counts: Array, n_stages: int) -> ClassBalance | None:
    """The balance of the whole fit's end, for a fit of ``n_stages`` on labels with these counts (K,)."""
    consensus = annealed.consensus
    if not consensus.offset.any():  # nothing was imposed
        return None
    return relaxed_balance(counts, n_stages) if consensus.shares is None else ClassBalance(consensus.shares)


def scale_posterior(held_out: OutOfFoldScores) -> Array:
    """Posterior weight of each of ``LOG_SCALES``, given held-out rows; the prior's if there are none."""
    n_rows, total = held_out.codes.size, float(held_out.weights.sum())
    smoothing = SMOOTHING / (total + 2.0)
    log_posterior = -0.5 * ((LOG_SCALES - np.log(USUAL_SCALE)) / LOG_SCALE_DEVIATION) ** 2
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
