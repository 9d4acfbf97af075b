"""Prediction sets from held-out labels: which classes are probable enough.

Let s_(1) ≤ ... ≤ s_(n) be the probabilities that labeled rows have of their classes, by fits that did not use their labels.
Were they by the model itself, and labeled and new rows drawn alike, a new row would be as likely to lie in any of the n + 1
gaps between them: the probability of its class is below s_(k) with probability k/(n + 1). The class c therefore belongs
to the set of a row if the model gives it at least the threshold

    t = s_(k)  with  k = α(n + 1),  interpolated between the two next to it if k is not whole.

This is conformal prediction, except that its usual k, the next lower whole number, meets 1 - α or more, and t meets it on
average; with 15 labels and α = 0.1 it would meet 93.8 %. If k < 1, that is n < 1/α - 1, every class belongs to the set.
The s are by fits to fewer labels than the model's, so 1 - α is no guarantee, but near what is measured
(``python -m benchmarks.prediction_sets``).

If every class has 1/α - 1 held-out labels or more, thresholds are by the labels of each class, and 1 - α is met in each
class, whatever the class shares. Else they are by all labels, and 1 - α is met over all rows. If labels were drawn per
class, each then counts as r_c/a_c labels, where class c has the share r_c of all rows and a_c of the labels, and so does
the new row in n + 1.
"""

from dataclasses import dataclass

import numpy as np

from cmvmed.members.mixture import Combined
from cmvmed.numerics.types import Array, BoolArray, IntArray

ROUNDING = 1e-12  # relative, of sums of weights


@dataclass(frozen=True)
class ClassThresholds:
    """The smallest probability with which each class belongs to a set."""

    values: Array  # (K,), minus infinity for a class that belongs to all sets
    allow_empty: bool = True  # if not, the most probable class belongs to each set

    def sets(self, probabilities: Array, coverage: Array) -> BoolArray:
        """Which classes (n, K) belong to the set of each row; all of a row without any view, whose coverage is zero."""
        sets = (probabilities >= self.values) | (coverage == 0.0)[:, None]
        if not self.allow_empty:
            sets[np.arange(len(sets)), probabilities.argmax(axis=1)] = True
        return np.asarray(sets)


@dataclass(frozen=True)
class HeldOutScores:
    """Probabilities of labels by fits that did not use them."""

    scores: Array  # (l,), s
    codes: IntArray  # (l,), classes
    weights: Array  # (l,), labels that each counts as
    class_weights: Array  # (K,), labels that a new row of each class counts as

    @property
    def counts(self) -> Array:
        """Number of labels of each class, (K,)."""
        K = self.class_weights.size
        return np.bincount(self.codes, weights=self.weights, minlength=K) / self.class_weights

    def thresholds(self, alpha: float) -> Array:
        """(K,), by the labels of each class if all are finite, else by all labels."""
        everything = np.ones(self.codes.size, dtype=bool)
        by_class = [self._threshold(c, self.codes == c, alpha) for c in range(self.class_weights.size)]
        if np.isfinite(by_class).all():
            return np.array(by_class)
        return np.array([self._threshold(c, everything, alpha) for c in range(self.class_weights.size)])

    def _threshold(self, c: int, group: BoolArray, alpha: float) -> float:
        """t of class c by a group of labels."""
        order = np.argsort(self.scores[group])
        scores, n = self.scores[group][order], np.cumsum(self.weights[group][order])
        k = alpha * (n[-1] + self.class_weights[c]) if n.size else 0.0
        return float(np.interp(k, n, scores)) if n.size and k >= n[0] * (1.0 - ROUNDING) else -np.inf


def held_out_scores(combined: Combined, class_prior: Array) -> HeldOutScores | None:
    """The scores of the labels that a fit held out, None if it did not hold out any; ``class_prior`` is r, (K,)."""
    held_out, rows = combined.held_out, combined.parts.rows
    if held_out is None or not held_out.weights.any():
        return None
    p = np.exp(combined.mixture.log_probabilities(held_out.logits))
    used, ratio = held_out.weights > 0.0, np.ones(rows.n_classes)
    if combined.parts.per_class:
        counts = rows.counts(np.ones(rows.codes.size, dtype=bool))
        ratio = np.where(counts > 0.0, class_prior * counts.sum() / np.where(counts > 0.0, counts, 1.0), 1.0)
    codes = held_out.codes[used]
    return HeldOutScores(p[used, codes], codes, held_out.weights[used] * ratio[codes], ratio)
