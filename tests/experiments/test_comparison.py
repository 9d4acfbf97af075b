"""Paired tests, Holm's adjustment and average ranks, compared with values computed by hand and by scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from experiments.comparison import (
    compare_with_baselines,
    corrected_standard_error,
    holm,
    paired_comparison,
    rank_comparison,
    train_test_ratio,
)
from experiments.result_rows import ResultRow

REFERENCE = [0.90, 0.92, 0.88, 0.95, 0.91]
BASELINE = [0.85, 0.90, 0.89, 0.90, 0.88]
DIFFERENCES = np.subtract(REFERENCE, BASELINE)  # 0.05, 0.02, -0.01, 0.05, 0.03


def row(method, split, accuracy, **fields):
    base = {"spec": "table1", "dataset": "webkb", "n_labeled": 15, "protocol": "defaults", "status": "done"}
    base |= {"n_train": 500, "n_test": 250}
    return ResultRow(method=method, split=split, accuracy=accuracy, **(base | fields))


def test_corrected_t_by_hand():
    # mean 0.028; squared deviations 0.000484, 0.000064, 0.001444, 0.000484, 0.000004 sum to 0.00248, so s² = 0.00062
    result = paired_comparison(REFERENCE, BASELINE, train_test_ratio=2.0)
    standard_error = np.sqrt((1 / 5 + 1 / 2) * 0.00062)
    assert result.mean_difference == pytest.approx(0.028, abs=1e-12)
    assert result.corrected_t_p == pytest.approx(2 * stats.t.sf(0.028 / standard_error, 4), abs=1e-12)
    reach = stats.t.ppf(0.975, 4) * standard_error
    assert result.interval == pytest.approx((0.028 - reach, 0.028 + reach), abs=1e-12)
    assert (result.wins, result.ties, result.losses, result.n_splits) == (4, 0, 1, 5)


def test_correction_vanishes_for_a_small_test_set_only():
    plain = stats.ttest_rel(REFERENCE, BASELINE).pvalue
    assert paired_comparison(REFERENCE, BASELINE, train_test_ratio=1e12).corrected_t_p == pytest.approx(plain, rel=1e-9)
    corrected = paired_comparison(REFERENCE, BASELINE, train_test_ratio=2.0).corrected_t_p
    assert corrected > 1.5 * plain  # without n_test/n_train it would be the plain test


def test_correction_has_the_test_rows_in_the_numerator():
    correct = corrected_standard_error(DIFFERENCES, train_test_ratio=4.0)
    inverted = corrected_standard_error(DIFFERENCES, train_test_ratio=1 / 4.0)
    assert correct**2 == pytest.approx((1 / 5 + 1 / 4) * 0.00062)
    assert inverted**2 == pytest.approx((1 / 5 + 4) * 0.00062)


def signed_rank_p(differences):
    """Exact two-sided p-value by enumeration of all signs."""
    ranks = stats.rankdata(np.abs(differences))
    seen = ranks[differences > 0].sum()
    sums = [ranks[list(signs)].sum() for signs in itertools.product([False, True], repeat=ranks.size)]
    center = ranks.sum() / 2
    return np.mean(np.abs(np.array(sums) - center) >= abs(seen - center) - 1e-12)


def test_wilcoxon_is_the_exact_signed_rank_test():
    rng = np.random.default_rng(0)
    reference, baseline = rng.normal(0.3, 1.0, 9), rng.normal(size=9)
    result = paired_comparison(reference, baseline, 1.0)
    assert result.wilcoxon_p == pytest.approx(signed_rank_p(reference - baseline), abs=1e-12)
    unpaired = paired_comparison(reference, baseline[::-1], 1.0)  # the pairing matters
    assert abs(unpaired.wilcoxon_p - result.wilcoxon_p) > 1e-3


def test_splits_without_difference_count_as_ties_only():
    result = paired_comparison([*REFERENCE, 0.5, 0.5], [*BASELINE, 0.5, 0.5], 1.0)
    assert result.ties == 2
    assert result.wilcoxon_p == paired_comparison(REFERENCE, BASELINE, 1.0).wilcoxon_p


def test_equal_methods_and_constant_differences():
    same = paired_comparison(REFERENCE, REFERENCE, 1.0)
    assert (same.wilcoxon_p, same.corrected_t_p, same.interval) == (1.0, 1.0, (0.0, 0.0))
    always_one_more = paired_comparison([2.0, 3.0, 5.0], [1.0, 2.0, 4.0], 1.0)
    assert always_one_more.corrected_t_p == 0.0
    assert always_one_more.interval == (1.0, 1.0)


def test_swapped_methods_give_opposite_differences():
    forward, backward = paired_comparison(REFERENCE, BASELINE, 2.0), paired_comparison(BASELINE, REFERENCE, 2.0)
    assert backward.mean_difference == -forward.mean_difference
    assert backward.interval == pytest.approx((-forward.interval[1], -forward.interval[0]))
    assert (backward.wilcoxon_p, backward.corrected_t_p) == (forward.wilcoxon_p, forward.corrected_t_p)


@pytest.mark.parametrize(
    ("reference", "baseline", "ratio", "message"),
    [
        ([0.1, 0.2], [0.1], 1.0, "same splits"),
        ([0.1], [0.2], 1.0, "at least two splits"),
        ([0.1, 0.2], [0.1, float("nan")], 1.0, "finite"),
        ([0.1, 0.2], [0.1, 0.3], 0.0, "train_test_ratio"),
        ([0.1, 0.2], [0.1, 0.3], float("nan"), "train_test_ratio"),
    ],
)
def test_invalid_input_raises(reference, baseline, ratio, message):
    with pytest.raises(ValueError, match=message):
        paired_comparison(reference, baseline, ratio)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.4, 0.9]) == pytest.approx([1.0, 1.0, 1.0])
    assert holm([]).size == 0


def test_holm_lies_between_no_adjustment_and_bonferroni():
    p = np.random.default_rng(1).uniform(size=12) ** 3
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1.0, p.size * p)).all()
    assert (np.diff(adjusted[p.argsort()]) >= 0).all()
    unstepped = np.minimum(1.0, np.sort(p) * np.arange(p.size, 0, -1))  # without the running maximum
    assert (np.diff(unstepped) < 0).any()


def test_baselines_are_paired_by_split_number():
    rows = [row("CMV-MED", n, a) for n, a in enumerate(REFERENCE)]
    rows += [row("MV-MED", n, a) for n, a in reversed(list(enumerate(BASELINE)))]
    rows += [row("SVM-2K", n, a) for n, a in ((1, 0.81), (3, 0.83), (4, 0.84))]
    rows += [row("one split", 0, 0.7), row("MV-MED", 5, None, status="failed"), row("no score", 0, None)]
    strongest, weakest = compare_with_baselines(rows, "CMV-MED")
    assert strongest.baseline == "MV-MED"
    assert strongest.paired == paired_comparison(REFERENCE, BASELINE, train_test_ratio=2.0)
    assert weakest.paired == paired_comparison([0.92, 0.95, 0.91], [0.81, 0.83, 0.84], train_test_ratio=2.0)
    p = [strongest.paired.corrected_t_p, weakest.paired.corrected_t_p]
    assert [strongest.corrected_t_holm, weakest.corrected_t_holm] == pytest.approx(holm(p))
    p = [strongest.paired.wilcoxon_p, weakest.paired.wilcoxon_p]
    assert [strongest.wilcoxon_holm, weakest.wilcoxon_holm] == pytest.approx(holm(p))


def test_without_the_reference_there_are_no_comparisons():
    assert compare_with_baselines([row("MV-MED", n, 0.8) for n in range(3)], "CMV-MED") == []
    assert compare_with_baselines([], "CMV-MED") == []


def test_rows_of_two_data_sets_raise():
    rows = [row("CMV-MED", 0, 0.9), row("CMV-MED", 0, 0.8, dataset="ads")]
    with pytest.raises(ValueError, match="several rows for split 0"):
        compare_with_baselines(rows, "CMV-MED")


def test_ratio_comes_from_the_rows():
    assert train_test_ratio([row("a", 0, 0.5)]) == 2.0
    assert train_test_ratio([row("a", 0, 0.5, n_train=None)]) == 1.0


SCORES = {
    "second": [0.8, 0.7, 0.9, 0.6, 0.8, 0.7],
    "best": [0.9, 0.8, 0.95, 0.7, 0.9, 0.6],
    "last": [0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
}


def test_average_ranks_by_hand():
    result = rank_comparison(SCORES)
    assert result.methods == ("best", "second", "last")
    assert result.average_ranks == pytest.approx((7 / 6, 11 / 6, 3.0))
    assert result.friedman_p == pytest.approx(stats.friedmanchisquare(*SCORES.values()).pvalue)
    # Demšar 2006, Table 5: q_0.05 is 2.343 for three methods
    assert result.critical_difference == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 6)), abs=1e-3)


@pytest.mark.parametrize(("k", "q"), [(3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_difference_has_the_tabled_quantiles(k, q):
    scores = {f"method {j}": list(np.random.default_rng(j).uniform(size=8)) for j in range(k)}
    expected = q * np.sqrt(k * (k + 1) / 48)
    assert rank_comparison(scores).critical_difference == pytest.approx(expected, rel=1e-3)
    assert rank_comparison(scores).critical_difference * np.sqrt(2) != pytest.approx(expected, rel=1e-3)


def test_ties_share_ranks():
    result = rank_comparison({"a": [1.0] * 5, "b": [1.0] * 5, "c": [1.0] * 5})
    assert result.average_ranks == (2.0, 2.0, 2.0)
    assert result.friedman_p == 1.0


@pytest.mark.parametrize(
    "scores", [{"a": [1.0] * 5, "b": [0.5] * 5}, {"a": [1.0] * 4, "b": [2.0] * 4, "c": [0.0] * 4}, {}]
)
def test_too_few_methods_or_data_sets_raise(scores):
    with pytest.raises(ValueError, match="at least 5 data sets"):
        rank_comparison(scores)
