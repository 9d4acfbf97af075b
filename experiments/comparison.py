"""Statistical comparison of methods: paired tests over splits, and average ranks over data sets.

Two methods are compared by the differences d_1, ..., d_n of their scores on the same splits. Splits of one data set
share rows, so the differences are not independent. There are therefore two tests:

* The Wilcoxon signed-rank test ignores the dependence. It answers for other splits of the same rows.
* The corrected resampled t-test of Nadeau and Bengio (2003) adds n_test/n_train to the factor 1/n of the variance. It
  answers for new rows from the same distribution and is the stricter test. The confidence interval of the mean
  difference is based on it.

Intervals of a mean difference exist for both readings, with the plain variance s²/n and with the corrected one.

With several baselines the p-values are adjusted by Holm's method. Over at least five data sets, methods are compared by
their average ranks (Friedman's test, Nemenyi's critical difference; Demšar 2006).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from experiments.result_rows import ResultRow

MIN_DATASETS = 5  # for average ranks


@dataclass(frozen=True)
class PairedComparison:
    """Differences reference - baseline over the same splits; positive if the reference is better.

    Attributes
    ----------
    n_splits : int
        Number of splits that both methods completed.
    mean_difference : float
        Mean of the differences d.
    interval : tuple of two floats
        Confidence interval of the mean difference with the corrected variance, for new rows.
    split_interval : tuple of two floats
        The same with the plain variance, for other splits of the same rows.
    wilcoxon_p, corrected_t_p : float
        Two-sided p-values of the signed-rank test and of the corrected resampled t-test.
    wins, ties, losses : int
        Number of splits with d > 0, d = 0 and d < 0.
    """

    n_splits: int
    mean_difference: float
    interval: tuple[float, float]
    split_interval: tuple[float, float]
    wilcoxon_p: float
    corrected_t_p: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class BaselineComparison:
    """Comparison of the reference method with one baseline; p-values adjusted for the number of baselines."""

    baseline: str
    paired: PairedComparison
    wilcoxon_holm: float
    corrected_t_holm: float


@dataclass(frozen=True)
class RankComparison:
    """Average ranks of methods over data sets; rank 1 is the best.

    Two methods differ significantly if their average ranks differ by more than ``critical_difference``.
    """

    methods: tuple[str, ...]
    average_ranks: tuple[float, ...]
    n_datasets: int
    friedman_p: float
    critical_difference: float


def paired_comparison(
    reference: Sequence[float], baseline: Sequence[float], train_test_ratio: float, confidence: float = 0.95
) -> PairedComparison:
    """Compare two methods by their scores on the same splits.

    Parameters
    ----------
    reference, baseline : sequences of n floats
        Scores by split, in the same order.
    train_test_ratio : float
        Number of training rows, labeled or not, divided by the number of test rows.
    confidence : float, default=0.95
        Confidence level of the interval.
    """
    if len(reference) != len(baseline):
        raise ValueError(
            f"The methods must have the same splits; the reference has {len(reference)}, the baseline {len(baseline)}."
        )
    if len(reference) < 2:
        raise ValueError("A paired comparison needs at least two splits.")
    if not train_test_ratio > 0.0:
        raise ValueError(f"train_test_ratio must be positive, got {train_test_ratio!r}.")
    differences = np.asarray(reference, dtype=float) - np.asarray(baseline, dtype=float)
    if not np.isfinite(differences).all():
        raise ValueError("Scores must be finite; omit the splits on which a method failed.")
    standard_error = corrected_standard_error(differences, train_test_ratio)
    mean = float(differences.mean())
    return PairedComparison(
        n_splits=differences.size,
        mean_difference=mean,
        interval=mean_interval(differences, confidence, train_test_ratio),
        split_interval=mean_interval(differences, confidence),
        wilcoxon_p=wilcoxon_p_value(differences),
        corrected_t_p=t_p_value(mean, standard_error, differences.size - 1),
        wins=int((differences > 0.0).sum()),
        ties=int((differences == 0.0).sum()),
        losses=int((differences < 0.0).sum()),
    )


def mean_interval(values: ArrayLike, confidence: float, train_test_ratio: float = np.inf) -> tuple[float, float]:
    """Interval mean ± t √((1/n + n_test/n_train) s²) of n ≥ 2 values; for other splits of the same rows by default."""
    array = np.asarray(values, dtype=float)
    quantile = float(stats.t.ppf(0.5 + confidence / 2.0, array.size - 1))
    half_width = quantile * corrected_standard_error(array, train_test_ratio)
    return float(array.mean()) - half_width, float(array.mean()) + half_width


def joint_confidence(confidence: float, n_comparisons: int) -> float:
    """Confidence of each of several intervals that together hold with the given confidence (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / n_comparisons


def corrected_standard_error(differences: NDArray[np.float64], train_test_ratio: float) -> float:
    """Standard error √((1/n + n_test/n_train) s²) of the mean of n differences with sample variance s²."""
    return float(np.sqrt((1.0 / differences.size + 1.0 / train_test_ratio) * differences.var(ddof=1)))


def t_p_value(mean: float, standard_error: float, degrees_of_freedom: int) -> float:
    """Two-sided p-value of t = mean / standard error; without variation, 1 if the mean is zero and 0 otherwise."""
    if standard_error == 0.0:
        return float(mean == 0.0)
    return float(2.0 * stats.t.sf(abs(mean) / standard_error, degrees_of_freedom))


def wilcoxon_p_value(differences: NDArray[np.float64]) -> float:
    """Two-sided p-value of the signed-rank test; differences of zero are omitted."""
    nonzero = differences[differences != 0.0]
    if nonzero.size == 0:
        return 1.0
    return float(stats.wilcoxon(nonzero).pvalue)


def pitman_morgan_p_value(reference: Sequence[float], baseline: Sequence[float]) -> float:
    """Two-sided p-value of equal variances of two methods on the same n ≥ 3 splits (Pitman and Morgan, 1939).

    Var(x) = Var(y) if and only if x + y and x - y are uncorrelated, so their correlation is tested.
    """
    x, y = np.asarray(reference, dtype=float), np.asarray(baseline, dtype=float)
    if x.size != y.size or x.size < 3:
        raise ValueError("Variances can be compared on at least three splits that both methods completed.")
    if np.ptp(x + y) == 0.0 or np.ptp(x - y) == 0.0:
        return 1.0
    return float(stats.pearsonr(x + y, x - y).pvalue)


def deviation_ratio_interval(
    reference: Sequence[float], baseline: Sequence[float], confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of the ratio of the standard deviations of two methods on the same splits.

    The ratios that the test of Pitman and Morgan does not reject: with ω = s_x²/s_y², the correlation r of x and y and
    k = 1 + 2(1 - r²)t²/(n - 2), the squared ratio is between ω(k - √(k² - 1)) and ω(k + √(k² - 1)).
    """
    x, y = np.asarray(reference, dtype=float), np.asarray(baseline, dtype=float)
    if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return 0.0, np.inf
    omega, r = float(x.var() / y.var()), float(stats.pearsonr(x, y).statistic)
    t = float(stats.t.ppf(0.5 + confidence / 2.0, x.size - 2))
    k = 1.0 + 2.0 * (1.0 - r * r) * t * t / (x.size - 2)
    root = float(np.sqrt(max(k * k - 1.0, 0.0)))
    return float(np.sqrt(omega * (k - root))), float(np.sqrt(omega * (k + root)))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values adjusted for their number by Holm's step-down method.

    With p_(1) ≤ ... ≤ p_(m), the adjusted value of p_(j) is max over i ≤ j of min(1, (m - i + 1) p_(i)).
    """
    p = np.asarray(p_values, dtype=float)
    order = p.argsort(kind="stable")
    stepped = np.minimum(1.0, p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(stepped)
    return adjusted


def compare_with_baselines(
    rows: Iterable[ResultRow], reference: str, score: str = "accuracy"
) -> list[BaselineComparison]:
    """Compare one method with every other, given the rows of one data set, number of labels and protocol.

    A baseline is compared on the splits that both methods completed, and omitted if there are fewer than two. Baselines
    are sorted by mean difference, the strongest first.
    """
    completed = [row for row in rows if row.status == "done" and getattr(row, score) is not None]
    by_method = scores_by_split(completed, score)
    own = by_method.pop(reference, {})
    ratio = train_test_ratio(completed)
    paired = {}
    for baseline, theirs in by_method.items():
        shared = sorted(own.keys() & theirs.keys())
        if len(shared) >= 2:
            paired[baseline] = paired_comparison([own[n] for n in shared], [theirs[n] for n in shared], ratio)
    wilcoxon = holm([result.wilcoxon_p for result in paired.values()])
    corrected_t = holm([result.corrected_t_p for result in paired.values()])
    comparisons = [
        BaselineComparison(baseline, result, float(wilcoxon[k]), float(corrected_t[k]))
        for k, (baseline, result) in enumerate(paired.items())
    ]
    return sorted(comparisons, key=lambda comparison: (comparison.paired.mean_difference, comparison.baseline))


def scores_by_split(rows: Iterable[ResultRow], score: str) -> dict[str, dict[int, float]]:
    """Scores by method and split; raises an error for rows of several data sets, numbers of labels or protocols."""
    by_method: dict[str, dict[int, float]] = {}
    for row in rows:
        splits = by_method.setdefault(row.method, {})
        if row.split in splits:
            raise ValueError(
                f"{row.method!r} has several rows for split {row.split}; pass the rows of one experiment, data set, "
                "number of labels and protocol."
            )
        splits[row.split] = float(getattr(row, score))
    return by_method


def train_test_ratio(rows: Sequence[ResultRow]) -> float:
    """Mean of n_train / n_test over the rows; 1 if no row has these numbers."""
    ratios = [row.n_train / row.n_test for row in rows if row.n_train and row.n_test]
    return float(np.mean(ratios)) if ratios else 1.0


def rank_comparison(scores: Mapping[str, Sequence[float]], level: float = 0.05) -> RankComparison:
    """Average ranks over N data sets of k methods, with CD = q √(k(k + 1)/(6N)).

    Parameters
    ----------
    scores : mapping
        Scores by method, one per data set in the same order for all methods; higher is better.
    level : float, default=0.05
        Level of the critical difference; q is the upper quantile of the studentized range divided by √2.
    """
    table = np.array(list(scores.values()), dtype=float)
    if table.ndim != 2 or table.shape[0] < 3 or table.shape[1] < MIN_DATASETS:
        raise ValueError(
            f"Average ranks need at least 3 methods on the same data sets, and at least {MIN_DATASETS} data sets; "
            f"got an array of shape {table.shape}."
        )
    k, n_datasets = table.shape
    average = stats.rankdata(-table, axis=0).mean(axis=1)
    q = float(stats.studentized_range.ppf(1.0 - level, k, np.inf)) / np.sqrt(2.0)
    order = average.argsort(kind="stable")
    methods = list(scores)
    return RankComparison(
        methods=tuple(methods[k] for k in order),
        average_ranks=tuple(float(average[k]) for k in order),
        n_datasets=n_datasets,
        friedman_p=friedman_p_value(table),
        critical_difference=float(q * np.sqrt(k * (k + 1) / (6.0 * n_datasets))),
    )


def friedman_p_value(table: NDArray[np.float64]) -> float:
    """p-value of Friedman's test on scores of shape (k, N); 1 if all methods are equal on every data set."""
    if (table == table[0]).all():
        return 1.0
    return float(stats.friedmanchisquare(*table).pvalue)
