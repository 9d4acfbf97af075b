"""Is one method better than another? Paired tests over the same splits, and ranks over data sets.

Two methods that saw the same splits are compared by their differences d_1, ..., d_n, one per split. Splits of one data set share
rows, so the differences are not independent. Two tests are offered for that reason:

* the Wilcoxon signed-rank test, which takes the splits as they are: would other splits *of these rows* say the same?
* the corrected resampled t-test of Nadeau and Bengio (2003), which adds the share of test rows to the variance: would new rows
  *of this kind* say the same? It is the stricter one, and the interval of the mean difference is its interval.

With several rivals the p-values are adjusted by Holm's method. Over at least five data sets, methods are compared by their average
ranks (Friedman's test, Nemenyi's critical difference; Demšar 2006).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from cmvmed.reproduction.result_rows import ResultRow

FEWEST_DATASETS = 5  # below, average ranks say next to nothing


@dataclass(frozen=True)
class PairedComparison:
    """Differences reference - rival over the same splits; above zero means that the reference is better.

    Attributes
    ----------
    n_splits : int
        Number of splits that both methods finished.
    mean_difference : float
        Mean of the differences d.
    interval : tuple of two floats
        Confidence interval of the mean difference, with the corrected variance.
    wilcoxon_p, corrected_t_p : float
        Two-sided p-values of the signed-rank test and of the corrected resampled t-test.
    wins, ties, losses : int
        Number of splits with d > 0, d = 0 and d < 0.
    """

    n_splits: int
    mean_difference: float
    interval: tuple[float, float]
    wilcoxon_p: float
    corrected_t_p: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class RivalComparison:
    """A rival beside the reference method on one data set; p-values adjusted over all rivals there."""

    rival: str
    paired: PairedComparison
    wilcoxon_holm: float
    corrected_t_holm: float


@dataclass(frozen=True)
class RankComparison:
    """Average ranks of methods over data sets; rank 1 is the best.

    Two methods differ, at the given level, if their average ranks differ by more than ``critical_difference``.
    """

    methods: tuple[str, ...]
    average_ranks: tuple[float, ...]
    n_datasets: int
    friedman_p: float
    critical_difference: float


def paired_comparison(
    reference: Sequence[float], rival: Sequence[float], train_test_ratio: float, confidence: float = 0.95
) -> PairedComparison:
    """Compare two methods by their scores on the same splits.

    Parameters
    ----------
    reference, rival : sequences of n floats
        Scores by split, in the same order.
    train_test_ratio : float
        Number of training rows, labeled or not, divided by the number of test rows.
    confidence : float, default=0.95
        Level of the interval.
    """
    if len(reference) != len(rival):
        raise ValueError(
            f"The methods must have seen the same splits; the reference has {len(reference)}, the rival {len(rival)}."
        )
    if len(reference) < 2:
        raise ValueError("A paired comparison needs at least two splits; run more of them.")
    if not train_test_ratio > 0.0:
        raise ValueError(f"train_test_ratio must be above zero, got {train_test_ratio!r}.")
    differences = np.asarray(reference, dtype=float) - np.asarray(rival, dtype=float)
    if not np.isfinite(differences).all():
        raise ValueError("Scores must be finite; leave out the splits on which a method failed.")
    standard_error = corrected_standard_error(differences, train_test_ratio)
    mean = float(differences.mean())
    reach = float(stats.t.ppf(0.5 + confidence / 2.0, differences.size - 1)) * standard_error
    return PairedComparison(
        n_splits=differences.size,
        mean_difference=mean,
        interval=(mean - reach, mean + reach),
        wilcoxon_p=wilcoxon_p_value(differences),
        corrected_t_p=t_p_value(mean, standard_error, differences.size - 1),
        wins=int((differences > 0.0).sum()),
        ties=int((differences == 0.0).sum()),
        losses=int((differences < 0.0).sum()),
    )


def corrected_standard_error(differences: NDArray[np.float64], train_test_ratio: float) -> float:
    """Standard error √((1/n + n_test/n_train) s²) of the mean of n differences with sample variance s²."""
    return float(np.sqrt((1.0 / differences.size + 1.0 / train_test_ratio) * differences.var(ddof=1)))


def t_p_value(mean: float, standard_error: float, degrees_of_freedom: int) -> float:
    """Two-sided p-value of t = mean / standard error; without any spread, 1 for a mean of zero and 0 else."""
    if standard_error == 0.0:
        return float(mean == 0.0)
    return float(2.0 * stats.t.sf(abs(mean) / standard_error, degrees_of_freedom))


def wilcoxon_p_value(differences: NDArray[np.float64]) -> float:
    """Two-sided p-value of the signed-rank test; splits without a difference say nothing and are left out."""
    telling = differences[differences != 0.0]
    if telling.size == 0:
        return 1.0
    return float(stats.wilcoxon(telling).pvalue)


def spread_p_value(reference: Sequence[float], rival: Sequence[float]) -> float:
    """Two-sided p-value for equal variance of two methods' scores on the same n ≥ 3 splits (Pitman and Morgan, 1939).

    Var(x) = Var(y) if and only if x + y and x - y are uncorrelated, so the test is that of their correlation.
    """
    x, y = np.asarray(reference, dtype=float), np.asarray(rival, dtype=float)
    if x.size != y.size or x.size < 3:
        raise ValueError("Spreads can be compared on at least three splits that both methods finished.")
    if np.ptp(x + y) == 0.0 or np.ptp(x - y) == 0.0:
        return 1.0
    return float(stats.pearsonr(x + y, x - y).pvalue)


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


def compare_with_rivals(rows: Iterable[ResultRow], reference: str, score: str = "accuracy") -> list[RivalComparison]:
    """Compare one method with every other, given the rows of one data set, number of labels and protocol.

    A rival is compared on the splits that both finished; one with fewer than two of them is left out. Rivals stand in the order of
    their mean difference, the strongest first.
    """
    finished = [row for row in rows if row.status == "done" and getattr(row, score) is not None]
    by_method = scores_by_split(finished, score)
    own = by_method.pop(reference, {})
    ratio = train_test_ratio(finished)
    paired = {}
    for rival, theirs in by_method.items():
        shared = sorted(own.keys() & theirs.keys())
        if len(shared) >= 2:
            paired[rival] = paired_comparison([own[n] for n in shared], [theirs[n] for n in shared], ratio)
    wilcoxon = holm([result.wilcoxon_p for result in paired.values()])
    corrected_t = holm([result.corrected_t_p for result in paired.values()])
    comparisons = [
        RivalComparison(rival, result, float(wilcoxon[k]), float(corrected_t[k]))
        for k, (rival, result) in enumerate(paired.items())
    ]
    return sorted(comparisons, key=lambda comparison: (comparison.paired.mean_difference, comparison.rival))


def scores_by_split(rows: Iterable[ResultRow], score: str) -> dict[str, dict[int, float]]:
    """Scores by method and number of the split; rows of several data sets, numbers of labels or protocols are refused."""
    by_method: dict[str, dict[int, float]] = {}
    for row in rows:
        splits = by_method.setdefault(row.method, {})
        if row.split in splits:
            raise ValueError(
                f"{row.method!r} has several rows for split {row.split}; give the rows of one spec, data set, number of "
                "labels and protocol."
            )
        splits[row.split] = float(getattr(row, score))
    return by_method


def train_test_ratio(rows: Sequence[ResultRow]) -> float:
    """TrainingData rows divided by test rows, as the rows tell; equal numbers where they do not."""
    ratios = [row.n_train / row.n_test for row in rows if row.n_train and row.n_test]
    return float(np.mean(ratios)) if ratios else 1.0


def rank_comparison(scores: Mapping[str, Sequence[float]], level: float = 0.05) -> RankComparison:
    """Average ranks over N data sets of k methods, with CD = q √(k(k + 1)/(6N)).

    Parameters
    ----------
    scores : mapping
        Method to its scores, one per data set in the same order for all methods; higher is better.
    level : float, default=0.05
        Level of the critical difference; q is the upper quantile of the studentised range, divided by √2.
    """
    table = np.array(list(scores.values()), dtype=float)
    if table.ndim != 2 or table.shape[0] < 3 or table.shape[1] < FEWEST_DATASETS:
        raise ValueError(
            f"Average ranks need at least 3 methods, all on the same data sets, and at least {FEWEST_DATASETS} data sets; "
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
    """p-value of Friedman's test on scores of shape (k, N); 1 if every data set sees all methods equal."""
    if (table == table[0]).all():
        return 1.0
    return float(stats.friedmanchisquare(*table).pvalue)
