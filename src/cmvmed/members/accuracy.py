"""The pool of the labels' opinions and the consensus together: probabilities and the expected accuracy.

Each meets the class shares on its own. The probabilities are softmax(c log Σ_k w_k softmax(c_k z_k)): a mixture,
rescaled. The scales c_k, the weights w_k and the last scale c are learned from labels that were held out of every
decision, with priors as strong as a few labels.

The expected accuracy is the mean of two estimates that err in opposite ways: the share of hits among held-out labels,
which is unbiased but has a large variance, and the mean largest probability of the unlabeled rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binomtest

from cmvmed.auto.tuning import Tuning
from cmvmed.core.consensus import balancing_offset
from cmvmed.members.stacking import stacking_weights
from cmvmed.model.fitted_model import mix
from cmvmed.numerics.softmax import log_softmax, softmax
from cmvmed.numerics.types import Array, IntArray

CHANCE = 0.1  # probability above which a difference may be chance
MAX_HELD_OUT = 1e9  # weighted number of rows beyond which the interval is a point
LOG_SCALES = np.linspace(np.log(0.01), np.log(25.0), 80)  # grid of the posterior of log c


@dataclass(frozen=True)
class HeldOut:
    """Labeled rows as seen by fits that did not use their labels."""

    logits: Array  # (P, l, K), of each part
    labels_only: Array | None  # (l, K), by the opinions that learn from labeled rows alone
    codes: IntArray  # (l,)
    weights: Array  # (l,), zero for labels that could not be held out


@dataclass(frozen=True)
class Mixture:
    """How the parts are put together."""

    weights: Array  # (P,)
    scales: Array  # (P,)
    scale: float

    def log_probabilities(self, logits: Array) -> Array:
        """log p (n, K), of the logits (P, n, K) of the parts, which need not be normalized."""
        return log_softmax(self.scale * mix(logits, self.weights, self.scales))


def scale_posterior(logits: Array, codes: IntArray, weights: Array, center: float, sd: float, tuning: Tuning) -> Array:
    """Posterior weight of each of ``LOG_SCALES`` for p = softmax(c z), given labeled rows with logits z (n, K).

    The prior of log c is normal around log ``center``.
    """
    log_posterior = -0.5 * ((LOG_SCALES - np.log(center)) / sd) ** 2
    used = weights > 0.0
    z, y, w = logits[used], codes[used], weights[used]
    smoothing = tuning.label_smoothing / (float(w.sum()) + 2.0)
    for i, log_scale in enumerate(LOG_SCALES):
        log_p = log_softmax(np.exp(log_scale) * z)
        log_posterior[i] += w @ ((1.0 - smoothing) * log_p[np.arange(y.size), y] + smoothing * log_p.mean(axis=1))
    return softmax(log_posterior)


def fit_scale(logits: Array, codes: IntArray, weights: Array, center: float, sd: float, tuning: Tuning) -> float:
    """The exponential of the posterior mean of log c."""
    return float(np.exp(scale_posterior(logits, codes, weights, center, sd, tuning) @ LOG_SCALES))


def share_offset(log_p: Array, mass: Array, share: Array | None) -> Array:
    """The offset (K,) at which softmax(log_p + offset) has these class shares over rows with weights ``mass``; 0 for None."""
    n_classes = log_p.shape[1]
    if share is None or mass.sum() == 0.0:
        return np.zeros(n_classes)
    used = mass > 0.0
    log_p, mass = log_p[used], mass[used]
    if n_classes == 2:
        odds = (log_p[:, 1] - log_p[:, 0])[:, None]
        half = 0.5 * balancing_offset(odds, mass, share, 1.0, np.zeros(1))[0]
        return np.array([-half, half])
    return balancing_offset(log_p, mass, share, 0.5, np.zeros(n_classes))


def fit_mixture(held_out: HeldOut | None, centers: Array, prior: Array, tuning: Tuning) -> Mixture:
    """Learn scales and weights of the parts from held-out labels.

    Where there are none they are those of the prior, but a part that is alone is left as it is.

    Parameters
    ----------
    centers : (P,), the center of the prior of each part's scale
    prior : (P,), weights of the parts before any label was held out
    """
    if held_out is None:
        return Mixture(prior, centers if centers.size > 1 else np.ones(1), 1.0)
    z, y, w = held_out.logits, held_out.codes, held_out.weights
    scales = np.array(
        [fit_scale(part, y, w, c, tuning.log_scale_sd, tuning) for part, c in zip(z, centers, strict=True)]
    )
    if len(z) == 1:
        return Mixture(prior, scales, 1.0)
    p = np.stack([softmax(c * part)[np.arange(y.size), y] for c, part in zip(scales, z, strict=True)], axis=1)
    weights = stacking_weights(p, w, prior, tuning.mixture_strength)
    scale = fit_scale(mix(z, weights, scales), y, w, 1.0, tuning.last_scale_sd, tuning)
    return Mixture(weights, scales, scale)


@dataclass(frozen=True)
class AccuracyEstimate:
    """The accuracy to expect on rows like the unlabeled training rows.

    Attributes
    ----------
    mean : float
    low, high : float
        The central interval that holds the accuracy with probability ``level``.
    level : float
    held_out : float
        Share of held-out labels that are predicted, by fits that repeat every decision without them.
    n_held_out : float
        Weighted number of labels that were held out.
    labels_only : float
        The same share for the classifiers that learn from labeled rows alone; NaN if there are none.
    gained, lost : float
        Weighted number of held-out labels that are predicted only with, and only without, the unlabeled rows.
    chosen : bool
        Whether the labeled rows were chosen (``labels_drawn="chosen"``), so that ``held_out`` is not the share to expect
        of other rows and has no part in ``mean``.
    """

    mean: float
    low: float
    high: float
    level: float
    held_out: float
    n_held_out: float
    labels_only: float
    gained: float
    lost: float
    chosen: bool = False

    def __str__(self) -> str:
        interval = f"{self.level:.0%} interval {self.low:.1%} to {self.high:.1%}"
        estimate = f"Expected accuracy {self.mean:.1%} ({interval})."
        if self.n_held_out == 0.0:
            return f"{estimate} No label could be held out, so this rests on the probabilities alone."
        if self.chosen:
            estimate += (
                " It rests on the probabilities alone, since the labeled rows were chosen and are not like the others."
            )
        if np.isnan(self.labels_only):
            return f"{estimate} Of {self.n_held_out:g} held-out labels {self.held_out:.1%} are predicted."
        return (
            f"{estimate} Of {self.n_held_out:g} held-out labels {self.held_out:.1%} are predicted, {self.labels_only:.1%} by the "
            f"labels alone: the unlabeled rows {self.effect()}."
        )

    def effect(self) -> str:
        """Whether the unlabeled rows helped, in a few words, by a sign test on the labels that they changed."""
        changed = round(self.gained + self.lost)
        if self.gained == self.lost or changed == 0:
            return "made no difference"
        p = binomtest(round(self.gained), changed).pvalue
        effect = f"{'helped' if self.gained > self.lost else 'did harm'} ({self.gained:g} gained, {self.lost:g} lost)"
        return effect if p <= CHANCE else f"{effect}, which may be chance (p = {p:.2g})"


@dataclass(frozen=True)
class HeldOutAccuracy:
    """What held-out labels and unlabeled rows say of the accuracy."""

    hits: float  # share of held-out labels that are predicted
    labels_only: float  # the same without the unlabeled rows
    gained: float  # weighted number of labels predicted only with the unlabeled rows
    lost: float  # and only without
    largest: float  # mean largest probability of the unlabeled rows
    n_held_out: float
    divisor: float  # held-out labels that count as one
    chosen: bool = False  # whether labeled rows were chosen by a rule, so that other rows are not like them

    def estimate(self, level: float) -> AccuracyEstimate:
        """With the interval of a share that was seen in a fraction of the rows that were held out.

        The fraction is less than one because the classifier was chosen with the same labels, and because labels drawn
        per class have other class shares than the rows it is for. Rows that were chosen because they are uncertain say
        too little of the accuracy on others, so that the mean is that of the probabilities alone.
        """
        mean = self.largest if self.chosen else 0.5 * (self.hits + self.largest)
        n, tail = min(max(self.n_held_out, 1.0) / self.divisor, MAX_HELD_OUT), 0.5 * (1.0 - level)
        right, wrong = mean * n + 0.5, (1.0 - mean) * n + 0.5
        low, high = float(beta.ppf(tail, right, wrong)), float(beta.isf(tail, right, wrong))
        return AccuracyEstimate(
            mean=mean,
            low=min(low, mean),
            high=max(high, mean),
            level=level,
            held_out=self.hits,
            n_held_out=self.n_held_out,
            labels_only=self.labels_only,
            gained=self.gained,
            lost=self.lost,
            chosen=self.chosen,
        )


def held_out_accuracy(
    mixture: Mixture, held_out: HeldOut, probabilities: Array, mass: Array, divisor: float, *, chosen: bool = False
) -> HeldOutAccuracy:
    """What can be said of the accuracy; ``probabilities`` (n, K) are those of training rows with weights ``mass``."""
    y, w = held_out.codes, held_out.weights
    total, n_classes = float(w.sum()), probabilities.shape[1]
    right = mixture.log_probabilities(held_out.logits).argmax(axis=1) == y
    alone = right if held_out.labels_only is None else held_out.labels_only.argmax(axis=1) == y
    hits = float(w @ right) / total if total > 0.0 else np.nan
    largest = float(mass @ probabilities.max(axis=1) / mass.sum()) if mass.sum() > 0.0 else np.nan
    if np.isnan(largest):
        largest = 1.0 / n_classes if np.isnan(hits) else hits
    if np.isnan(hits):
        hits = largest
    known = held_out.labels_only is not None and total > 0.0
    return HeldOutAccuracy(
        hits=hits,
        labels_only=float(w @ alone) / total if known else np.nan,
        gained=float(w @ (right & ~alone)),
        lost=float(w @ (alone & ~right)),
        largest=largest,
        n_held_out=total,
        divisor=divisor,
        chosen=chosen,
    )
