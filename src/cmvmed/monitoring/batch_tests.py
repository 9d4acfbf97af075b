"""Tests whether a batch of rows has, in one view, the distribution of the training rows, whatever its class shares are.

Three statistics of each view v, given other views o:

* location. The mean h̄ of the bounded features of a healthy batch has about the mean μ and the covariance

      S = (W + B)/m + B,

  W within and B between the classes: W + B is the covariance of a row, and B that of the mean of a batch whose rows are
  all of one class, as far as class shares can be from those of training. The statistic is the squared Mahalanobis
  distance of h̄_v from its expectation given h̄_o, so that a change of class shares, which the other views see too, is no
  fault.
* scale. Logarithms of the mean absolute deviations of the features, without what the classes explain that the other
  views predict; a single row changes them little.
* agreement. Σ_k (p_vk - r_k)(p_ok - r_k), averaged over the rows: how much the class probabilities by the view and by
  the others depart from the class shares r in the same direction.

Their distribution in healthy batches is that in batches drawn from the third part of the kept training rows, with class
shares drawn uniformly from all possible ones. Everything else is learned from the second part. A view's score is the
largest of its statistics in standard deviations, and its p-value the share of healthy batches in which any view has
such a score: then the probability of any false alarm in a batch is at most the level, whatever the dependence between
statistics and views (P. H. Westfall and S. S. Young, "Resampling-based multiple testing", 1993).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import softmax
from sklearn.covariance import ledoit_wolf

from cmvmed.monitoring.reference import Reference, bounded
from cmvmed.numerics.types import Array, BoolArray, IntArray

N_BATCHES = 1000  # healthy batches, so that a level of 1 % is the tenth largest score
CHUNK_NUMBERS = 1 << 21  # features of healthy batches that are compared at a time
SMALLEST = 1e-6  # standard deviation of a statistic that is the same in all healthy batches
MIN_SHARE = 1e-6  # of a class


@dataclass(frozen=True)
class ViewScores:
    """The result for one view."""

    scores: dict[str, float]  # by statistic, in standard deviations of healthy batches
    p_value: float  # of the largest, with respect to all views
    limit: float  # the score that a share ``level`` of healthy batches exceeds

    @property
    def score(self) -> float:
        """The largest score."""
        return max(self.scores.values())


@dataclass(frozen=True)
class ClassModel:
    """Gaussian classes with equal covariances in the bounded features of all views."""

    shares: Array  # r (K,)
    means: Array  # (K, f)
    within: Array  # W (f, f)

    @property
    def mean(self) -> Array:
        """μ (f,)."""
        return np.asarray(self.shares @ self.means)

    @property
    def between(self) -> Array:
        """B (f, f)."""
        deviations = self.means - self.mean
        return np.asarray(deviations.T @ (self.shares[:, None] * deviations))

    def logits(self, h: Array, columns: slice) -> Array:
        """log p(h | class) + constant, (n, K), of the bounded features of one view."""
        means = self.means[:, columns]
        slopes = means @ np.linalg.pinv(self.within[columns, columns], hermitian=True)
        return np.asarray(h @ slopes.T - 0.5 * (slopes * means).sum(axis=1))


def fit_classes(features: Array, probabilities: Array) -> ClassModel:
    """From rows with class probabilities (n, K); NaN for missing views. A class mean counts the mean of all as one row."""
    has = ~np.isnan(features)
    h = np.where(has, bounded(np.where(has, features, 0.0)), 0.0)
    overall = h.sum(axis=0) / np.maximum(has.sum(axis=0), 1)
    means = (probabilities.T @ h + overall) / (probabilities.T @ has + 1.0)
    residuals = np.where(has, h - probabilities @ means, 0.0) / np.sqrt(np.maximum(has.mean(axis=0), 1.0 / len(has)))
    shares = np.maximum(probabilities.mean(axis=0), MIN_SHARE)
    return ClassModel(shares / shares.sum(), means, np.asarray(ledoit_wolf(residuals, assume_centered=True)[0]))


class BatchRows:
    """Rows as the statistics need them: features, bounded features and class logits by view."""

    def __init__(self, features: Array, slices: list[slice], classes: ClassModel) -> None:
        has = [~np.isnan(features[:, own]).any(axis=1) & (own.stop > own.start) for own in slices]
        self.present: BoolArray = np.column_stack(has)
        self.features = np.where(np.isnan(features), 0.0, features.astype(np.float64))
        self.bounded = bounded(self.features)
        self.logits = np.stack([classes.logits(self.bounded[:, own], own) for own in slices], axis=1)  # (n, V, K)
        self.logits *= self.present[:, :, None]
        self.log_shares = np.log(classes.shares)

    def weights(self, index: IntArray, v: int) -> Array:
        """Equal weights of the rows of each batch (b, m) that have a view, of sum 1, or 0 if there are none."""
        present = self.present[index, v]
        return np.asarray(present / np.maximum(present.sum(axis=1, keepdims=True), 1))

    def class_probabilities(self, views: list[int]) -> Array:
        """By some views, independent given the class, (n, K)."""
        return np.asarray(softmax(self.log_shares + self.logits[:, views].sum(axis=1), axis=1))


class BatchTests:
    """Tests of batches with a given number of rows, of which some may lack a view."""

    def __init__(self, reference: Reference, present: BoolArray, level: float) -> None:
        self.slices, self.level = reference.slices, level
        self.counts = np.maximum(present.sum(axis=0), 1)  # rows of the batch with each view
        features, p = reference.features.astype(np.float64), reference.probabilities.astype(np.float64)
        self.classes = fit_classes(features[reference.second], p[reference.second])
        self.batches = draw_batches(p[reference.third], present.shape[0])
        patterns, of_row = np.unique(present, axis=0, return_inverse=True)
        kept = np.vstack([self._lacking(features[reference.third], pattern) for pattern in patterns])
        self.kept = BatchRows(kept, self.slices, self.classes)
        place = np.arange(self.batches.shape[1]) * present.shape[0] // self.batches.shape[1]
        n_kept = kept.shape[0] // patterns.shape[0]
        self.batches = self.batches + n_kept * of_row.ravel()[place]  # healthy batches lack what the batch lacks
        self._healthy: dict[tuple[int, tuple[int, ...]], dict[str, Array]] = {}

    def _lacking(self, features: Array, pattern: BoolArray) -> Array:
        """The features of rows that lack the views where the pattern (V,) is False."""
        widths = [own.stop - own.start for own in self.slices]
        return np.where(np.repeat(pattern, widths), features, np.nan)

    @cached_property
    def covariance(self) -> Array:
        """S (f, f), with the number of rows of each view."""
        m = np.concatenate([np.full(own.stop - own.start, n) for own, n in zip(self.slices, self.counts, strict=True)])
        between = self.classes.between
        return np.asarray((self.classes.within + between) / np.sqrt(np.outer(m, m)) + between)

    def test(self, features: Array, views: list[int]) -> dict[int, ViewScores]:
        """Scores and p-values of some views of a batch with features (m, f), each given the others of them."""
        rows = BatchRows(features, self.slices, self.classes)
        every = np.arange(features.shape[0])[None]
        found, largest = {}, np.full(N_BATCHES, -np.inf)
        for v in views:
            healthy = self._of_healthy(v, views)
            statistics = self._statistics(rows, every, v, views)
            scores = _standardized(statistics, healthy, self.counts[v])
            found[v] = {name: float(score[0]) for name, score in scores.items()}
            null = _standardized(healthy, healthy, self.counts[v])
            largest = np.maximum(largest, np.max(list(null.values()), axis=0))
        largest.sort()
        limit = float(np.quantile(largest, 1.0 - self.level))
        above = {v: N_BATCHES - np.searchsorted(largest, max(scores.values())) for v, scores in found.items()}
        return {v: ViewScores(found[v], float(1 + above[v]) / (1 + N_BATCHES), limit) for v in views}

    def _of_healthy(self, v: int, views: list[int]) -> dict[str, Array]:
        """The statistics of all healthy batches."""
        key = (v, tuple(views))
        if key not in self._healthy:
            size = max(1, CHUNK_NUMBERS // (self.batches.shape[1] * self.kept.features.shape[1]))
            parts = []
            for start in range(0, N_BATCHES, size):
                parts.append(self._statistics(self.kept, self.batches[start : start + size], v, views))
            self._healthy[key] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return self._healthy[key]

    def _statistics(self, rows: BatchRows, index: IntArray, v: int, views: list[int]) -> dict[str, Array]:
        """Location (b,), scale (b, f_v) and agreement (b,) of batches, given as row numbers (b, m)."""
        others = [w for w in views if w != v]
        weights, p_others = rows.weights(index, v), rows.class_probabilities(others)
        found = {
            "location": self._location(rows, index, v, others),
            "scale": self._log_deviations(rows, index, weights, p_others, v),
        }
        if others:
            r = self.classes.shares
            products = ((rows.class_probabilities([v]) - r) * (p_others - r)).sum(axis=1)
            found["agreement"] = (weights * products[index]).sum(axis=1)
        return found

    def _location(self, rows: BatchRows, index: IntArray, v: int, others: list[int]) -> Array:
        """Squared Mahalanobis distance of the mean of v from its expectation given the means of the others, (b,)."""
        mean, S, numbers = self.classes.mean, self.covariance, np.arange(self.covariance.shape[0])
        deviations = {}
        for w in [v, *others]:
            own, weights = self.slices[w], rows.weights(index, w)
            deviation = np.einsum("bm,bmf->bf", weights, rows.bounded[:, own][index]) - mean[own]
            deviations[w] = np.where(weights.any(axis=1, keepdims=True), deviation, 0.0)
        i = numbers[self.slices[v]]
        delta, C = deviations[v], S[np.ix_(i, i)]
        if others:
            j = np.concatenate([numbers[self.slices[w]] for w in others])
            gain = np.linalg.solve(S[np.ix_(j, j)], S[np.ix_(j, i)])
            delta = delta - np.hstack([deviations[w] for w in others]) @ gain
            C = C - S[np.ix_(i, j)] @ gain
        return np.asarray((delta.T * np.linalg.solve(C, delta.T)).sum(axis=0))

    def _log_deviations(self, rows: BatchRows, index: IntArray, weights: Array, p_others: Array, v: int) -> Array:
        """Log mean absolute deviations (b, f_v) of v from the batch's center, without what the predicted classes explain.

        1/m is added, what one row at a standard deviation of training adds, so that a feature that was constant in
        training does not depend on a single row.
        """
        own = self.slices[v]
        center = np.sinh(np.einsum("bm,bmf->bf", weights, rows.bounded[:, own][index]))
        explained = p_others @ self.classes.means[:, own]
        residuals = bounded(rows.features[:, own][index] - center[:, None]) - explained[index]
        mean = np.einsum("bm,bmf->bf", weights, residuals)
        deviations = np.einsum("bm,bmf->bf", weights, np.abs(residuals - mean[:, None]))
        return np.asarray(np.log(deviations + 1.0 / self.counts[v]))


def _standardized(statistics: dict[str, Array], healthy: dict[str, Array], n_rows: int) -> dict[str, Array]:
    """Each statistic as standard deviations above its mean in healthy batches, (b,); sums of squares by their cube roots.

    The cube root of a sum of squares is about Gaussian (E. B. Wilson and M. M. Hilferty, 1931). Log deviations of m rows
    are not known better than those of Gaussian ones, whose variance is (π/2 - 1)/m.
    """
    center, smallest = healthy["scale"].mean(axis=0), np.sqrt((0.5 * np.pi - 1.0) / n_rows)
    deviation = np.maximum(healthy["scale"].std(axis=0), smallest)

    def in_one_number(found: dict[str, Array]) -> dict[str, Array]:
        squares = (((found["scale"] - center) / deviation) ** 2).sum(axis=1)
        numbers = {"location": np.cbrt(found["location"]), "scale": np.cbrt(squares)}
        return numbers | ({"agreement": -found["agreement"]} if "agreement" in found else {})

    null = in_one_number(healthy)
    return {
        name: (value - null[name].mean()) / np.maximum(null[name].std(), SMALLEST)
        for name, value in in_one_number(statistics).items()
    }


def draw_batches(probabilities: Array, n_rows: int) -> IntArray:
    """Row numbers of healthy batches (N_BATCHES, m'), from rows with class probabilities (R, K).

    Rows are drawn with replacement, and m' = mR/(m + R) of them: the mean of such a batch differs from that of the R rows
    as much as that of m new rows does, 1/m' = 1/m + 1/R. Class shares are uniform over all possible ones.
    """
    rng, n_kept = np.random.default_rng(0), probabilities.shape[0]
    size = max(2, round(n_rows * n_kept / (n_rows + n_kept)))
    mass = probabilities.sum(axis=0)
    known = mass >= min(1.0, mass.max())
    by_class = probabilities[:, known] / mass[known]
    shares = rng.dirichlet(np.ones(by_class.shape[1]), N_BATCHES)
    chances = np.cumsum(shares @ by_class.T, axis=1)
    draws = rng.random((N_BATCHES, size)) * chances[:, -1:]
    drawn = [np.searchsorted(line, draw, side="right") for line, draw in zip(chances, draws, strict=True)]
    return np.asarray(np.minimum(np.stack(drawn), n_kept - 1))
