"""Verdicts follow from the rows: a claim holds, does not hold or is not shown, depending on the accuracies."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from cmvmed.pages.formatting import join_names
from experiments.comparison import (
    compare_with_baselines,
    deviation_ratio_interval,
    pitman_morgan_p_value,
)
from experiments.methods import CMV_MED, CMV_MED_PAPER, CMV_MED_PRINTED, with_kernel
from experiments.report.claims import table_claims
from experiments.report.curve_claims import curve_claims
from experiments.report.curves import curve_panels, falls, falls_sentence
from experiments.report.number_text import format_interval, format_p_value, format_points, slug
from experiments.report.page import headline, lead_table
from experiments.report.significance import (
    MIN_SPLITS,
    comparisons,
    differences,
    min_splits,
    significance_panels,
    too_few_splits,
)
from experiments.report.versions import compared_claims, rows_of_version
from tests.experiments.report.factory import curve_rows, table_rows

ROWS = table_rows(10, ("webkb", "ads"), ("defaults",))


def shifted(rows, by, method=CMV_MED):
    """The same rows with the accuracy of one method changed."""
    return [replace(row, accuracy=row.accuracy + by) if row.method == method else row for row in rows]


def verdicts(claims, words):
    """Verdict by data set of the claim whose text contains the words."""
    (claim,) = [claim for claim in claims if words in claim.text]
    return {finding.where.split(",")[0]: finding.verdict.label for finding in claim.findings}


@pytest.mark.parametrize("baseline", ["SVM-2K", "MV-MED", "MED on either view"])
def test_better_equal_worse(baseline):
    claim = f"more accurate than {baseline}"
    assert verdicts(table_claims(ROWS), claim) == {"WebKB course pages": "holds", "Internet Ads": "holds on these rows"}
    assert set(verdicts(table_claims(shifted(ROWS, -0.3)), claim).values()) == {"does not hold"}


def test_equal_methods_are_not_distinguished():
    copy = [replace(row, method="MV-MED") for row in ROWS if row.method == CMV_MED]
    rows = [row for row in ROWS if row.method != "MV-MED"] + copy
    assert set(verdicts(table_claims(rows), "more accurate than MV-MED").values()) == {"not shown"}


def test_evidence_is_the_paired_comparison():
    rows = [row for row in ROWS if row.dataset == "webkb"]
    (claim,) = [claim for claim in table_claims(rows) if "MV-MED." in claim.text]
    (entry,) = [entry for entry in compare_with_baselines(rows, CMV_MED) if entry.baseline == "MV-MED"]
    (finding,) = claim.findings
    assert finding.evidence.startswith(format_points(entry.paired.mean_difference) + " points, ")
    assert format_interval(entry.paired.split_interval) + " for other splits" in finding.evidence
    assert format_interval(entry.paired.interval) + " for new rows, 10 splits" in finding.evidence
    assert (finding.effect, finding.interval) == (entry.paired.mean_difference, entry.paired.split_interval)
    assert claim.tally == ((finding.verdict, 1),)


def test_sentence_has_verdicts_range_interval_and_splits():
    (claim,) = [claim for claim in table_claims(ROWS) if "than MV-MED" in claim.text]
    low, high = sorted(claim.findings, key=lambda finding: finding.effect)
    ends = [f"{format_points(f.effect)} ({format_interval(f.interval)})" for f in (low, high)]
    assert claim.sentence == (
        f"holds in 1 of 2, holds on these rows in 1 of 2; difference in points from {ends[0]} to {ends[1]}; 10 splits"
    )


@pytest.mark.parametrize("n_splits", [3, 9])
def test_no_claim_is_decided_by_few_splits(n_splits):
    rows = [*table_rows(n_splits, ("webkb", "ads")), *curve_rows(n_splits)]
    claims = [*table_claims(rows), *curve_claims(rows)]
    labels = {finding.verdict.label for claim in claims for finding in claim.findings}
    assert labels == {f"too few splits to say ({n_splits} of at least {MIN_SPLITS})"}
    for claim in claims:
        assert claim.sentence.startswith("so far ")
        assert format_points(max(f.effect for f in claim.findings)) in claim.sentence or "ratio" in claim.effect


def test_claim_is_decided_by_the_method_with_the_fewest_splits():
    rows = [row for row in curve_rows(12, ("webkb",)) if row.method != "SVM-2K" or row.split < 3]
    for claim in curve_claims(rows):
        few = "gain is largest" not in claim.text  # which compares with the strongest baseline only
        assert [finding.verdict.kind == "few" for finding in claim.findings] == [few]
    (claim,) = [claim for claim in curve_claims(curve_rows(1, ("webkb",))) if "at every number" in claim.text]
    assert claim.findings[0].interval == (-1.0, 1.0)  # one split excludes no difference
    assert claim.sentence.endswith("too few splits to say (1 of at least 10)")


def test_settings_with_too_few_splits_are_counted_together():
    rows = [*table_rows(3, ("webkb",), ("defaults",)), *table_rows(5, ("ads",), ("defaults",))]
    (claim,) = [claim for claim in table_claims(rows) if "than MV-MED" in claim.text]
    assert [(verdict.label, count) for verdict, count in claim.tally] == [
        ("too few splits to say (3 to 5 of at least 10)", 2)
    ]


def test_every_claim_is_decided_by_many_splits():
    rows = [*table_rows(20, ("webkb", "ads")), *curve_rows(20)]
    kinds = {finding.verdict.kind for claim in (*table_claims(rows), *curve_claims(rows)) for finding in claim.findings}
    assert "few" not in kinds


def test_claim_is_decided_by_the_strongest_single_view():
    (claim,) = [claim for claim in table_claims(ROWS) if "either view" in claim.text]
    assert "against MED, view page" in claim.findings[0].evidence


def test_claim_is_decided_by_the_kernel_that_is_strongest():
    stronger = [
        replace(row, method="SVM-2K (linear+rbf)", accuracy=row.accuracy + 0.3)
        for row in ROWS
        if row.method == "SVM-2K"
    ]
    (claim,) = [claim for claim in table_claims([*ROWS, *stronger]) if "more accurate than SVM-2K" in claim.text]
    assert {finding.verdict.label for finding in claim.findings} == {"does not hold"}
    assert "against SVM-2K (linear+rbf)" in claim.findings[0].evidence


def spread_rows(spread):
    """Both methods with the same mean, and CMV-MED with a larger deviation."""
    wide = {n: 0.8 + spread * (-1) ** n * (1 + n) for n in range(10)}
    narrow = {n: 0.8 + 0.001 * (n % 3) for n in range(10)}
    base = {row.split: row for row in ROWS if row.method == CMV_MED and row.dataset == "webkb"}
    return [replace(base[n], accuracy=wide[n]) for n in base] + [
        replace(base[n], method="SVM-2K", accuracy=narrow[n]) for n in base
    ]


def test_variability_is_decided_by_the_deviations():
    assert verdicts(table_claims(spread_rows(0.01)), "varies less") == {"WebKB course pages": "does not hold"}
    swapped = [replace(row, method={CMV_MED: "SVM-2K", "SVM-2K": CMV_MED}[row.method]) for row in spread_rows(0.01)]
    assert verdicts(table_claims(swapped), "varies less") == {"WebKB course pages": "holds"}


def test_pitman_morgan_test():
    x, y = [1.0, 2.0, 4.0, 7.0], [2.0, 2.5, 2.0, 3.0]
    assert pitman_morgan_p_value(x, y) == pytest.approx(pitman_morgan_p_value(y, x))
    assert pitman_morgan_p_value(x, [value + 5 for value in x]) == 1.0
    with pytest.raises(ValueError, match="at least three"):
        pitman_morgan_p_value([1.0, 2.0], [1.0, 2.0])


def test_ratios_at_the_ends_of_the_interval_are_just_rejected():
    rng = np.random.default_rng(0)
    x = rng.normal(size=15)
    y = 0.5 * x + rng.normal(size=15)
    for end in deviation_ratio_interval(x, y, 0.95):
        assert pitman_morgan_p_value(x / end, y) == pytest.approx(0.05, abs=1e-9)
    low, high = deviation_ratio_interval(x, y, 0.95)
    assert low < np.std(x) / np.std(y) < high
    assert deviation_ratio_interval(y, x) == pytest.approx((1.0 / high, 1.0 / low))


def test_paper_accuracy_is_reached_or_not():
    assert verdicts(table_claims(ROWS), "can be reached") == {
        "WebKB course pages": "does not hold",
        "Internet Ads": "does not hold",
    }
    assert set(verdicts(table_claims(shifted(ROWS, 0.07)), "can be reached").values()) == {"holds"}
    assert "not shown" in verdicts(table_claims(shifted(ROWS, 0.055)), "can be reached").values()
    elsewhere = table_rows(5, ("footsteps",))
    assert verdicts(table_claims(elsewhere), "can be reached") == {}


CURVES = curve_rows(12, ("webkb",))


def test_curve_claims_follow_the_curves():
    claims = curve_claims(CURVES)
    assert verdicts(claims, "at every number")["WebKB course pages"].startswith("holds")
    assert verdicts(claims, "gain is largest")["WebKB course pages"].startswith("holds")
    assert verdicts(claims, "is more accurate with more")["WebKB course pages"].startswith("holds")


def test_curve_claims_do_not_hold_for_reversed_curves():
    reversed_rows = [replace(row, n_labeled={10: 100, 25: 50, 50: 25, 100: 10}[row.n_labeled]) for row in CURVES]
    claims = curve_claims(reversed_rows)
    assert verdicts(claims, "gain is largest") == {"WebKB course pages": "does not hold"}
    assert verdicts(claims, "is more accurate with more") == {"WebKB course pages": "does not hold"}
    behind = curve_claims(shifted(CURVES, -0.2))
    assert verdicts(behind, "at every number") == {"WebKB course pages": "does not hold"}


def with_lead(by):
    """The curves, with CMV-MED ahead of the strongest baseline at 100 labels by ``by`` on average."""
    (claim,) = [claim for claim in curve_claims(CURVES) if "at every number" in claim.text]
    change = by - claim.findings[0].effect
    return [
        replace(row, accuracy=row.accuracy + change) if (row.method, row.n_labeled) == (CMV_MED, 100) else row
        for row in CURVES
    ]


@pytest.mark.parametrize("lead", [0.001, -0.001])
def test_order_of_two_means_decides_nothing(lead):
    """A lead that is smaller than its interval is neither a win nor a loss, whichever mean is higher."""
    assert verdicts(curve_claims(with_lead(lead)), "at every number") == {"WebKB course pages": "not shown"}


def test_similar_with_many_labels():
    assert verdicts(curve_claims(CURVES), "similar accuracy") == {"WebKB course pages": "does not hold"}
    shared = {row.split: row.accuracy for row in CURVES if row.n_labeled == 100 and row.method == CMV_MED}
    level = [replace(row, accuracy=shared[row.split]) if row.n_labeled == 100 else row for row in CURVES]
    assert verdicts(curve_claims(level), "similar accuracy") == {"WebKB course pages": "holds"}
    assert verdicts(curve_claims(shifted(level, 0.019)), "similar accuracy") == {"WebKB course pages": "holds"}
    noisy = [
        replace(row, accuracy=row.accuracy + 0.03 * (-1) ** row.split) if row.method == "MV-MED" else row
        for row in level
    ]
    assert verdicts(curve_claims(noisy), "similar accuracy") == {"WebKB course pages": "not shown"}
    assert verdicts(curve_claims(curve_rows(3, ("ads",))), "similar accuracy") == {}


def dipping(by, method=CMV_MED):
    """The curves with one method lower at 50 labels."""
    return [
        replace(row, accuracy=row.accuracy - by) if (row.method, row.n_labeled) == (method, 50) else row
        for row in CURVES
    ]


def by_count(rows):
    return {n: [row for row in rows if row.n_labeled == n] for n in sorted({row.n_labeled for row in rows})}


def test_curve_that_dips_is_named():
    assert falls(by_count(CURVES)) == ()
    assert falls_sentence(falls(by_count(CURVES))) == ""
    (fall,) = falls(by_count(dipping(0.1)))
    assert (fall.method, fall.few, fall.many, fall.is_shown) == (CMV_MED, 25, 50, True)
    means = {
        n: fmean(row.accuracy for row in dipping(0.1) if row.method == CMV_MED and row.n_labeled == n) for n in (25, 50)
    }
    assert fall.difference.mean == pytest.approx(means[50] - means[25])
    assert falls_sentence([fall]).startswith("Less accurate with more labels: CMV-MED from 25 to 50 labels (−")
    claims = curve_claims(dipping(0.1))
    assert verdicts(claims, "is more accurate with more") == {"WebKB course pages": "does not hold"}
    (claim,) = [claim for claim in claims if "is more accurate with more" in claim.text]
    assert "falls: CMV-MED from 25 to 50 labels" in claim.findings[0].evidence
    assert panel_falls(dipping(0.1)) == [falls_sentence([fall])]


def panel_falls(rows):
    return [panel.falls for panel in curve_panels(rows)]


def test_dip_within_chance_is_named_but_decides_nothing():
    (increase,) = [fmean(values) for values in [_steps(CURVES, 25, 50)]]
    rows = dipping(increase + 0.001)
    (fall,) = falls(by_count(rows))
    assert not fall.is_shown
    assert "which may be chance: CMV-MED from 25 to 50 labels (−0.1 points" in falls_sentence([fall])
    assert verdicts(curve_claims(rows), "is more accurate with more")["WebKB course pages"].startswith("holds")


def _steps(rows, few, many):
    """Differences of CMV-MED between two numbers of labels, by split."""
    scores = {n: {r.split: r.accuracy for r in rows if r.method == CMV_MED and r.n_labeled == n} for n in (few, many)}
    return [scores[many][split] - scores[few][split] for split in scores[few]]


def test_joint_intervals_are_wider_than_single_ones():
    one, two = ({n: 0.8 + 0.01 * ((n * k) % 7) for n in range(12)} for k in (2, 3))
    (single,) = differences({"a": (one, two)}, 2.0)
    joint = differences(dict.fromkeys("abcdefghij", (one, two)), 2.0)[0]
    values = [one[n] - two[n] for n in one]
    reach = stats.t.ppf(1.0 - 0.05 / 10 / 2.0, 11) * np.std(values, ddof=1) / np.sqrt(12)
    assert joint.same_rows == pytest.approx((np.mean(values) - reach, np.mean(values) + reach))
    assert single.same_rows[1] - single.same_rows[0] < joint.same_rows[1] - joint.same_rows[0]
    assert joint.new_rows[0] < joint.same_rows[0] < joint.mean < joint.same_rows[1] < joint.new_rows[1]


def test_curve_claims_need_two_numbers_of_labels():
    assert all(not claim.findings for claim in curve_claims(curve_rows(3, numbers=(10,))))


START = "With default parameters, CMV-MED has a higher mean accuracy than all of the paper’s baselines: "


def completed(rows, by):
    """The rows, and those of the completed algorithm: CMV-MED with another accuracy."""
    own = [replace(row, method=CMV_MED_PAPER) for row in rows if row.method == CMV_MED]
    return [*rows, *shifted(own, by, CMV_MED_PAPER)]


def test_headline_counts_the_data_sets_on_which_each_version_is_ahead():
    assert headline(completed(ROWS, -0.3)) == [
        f"{START}as printed on 2 of 2 data sets, completed on 0 of 2 data sets and our default on 2 of 2 data sets."
    ]
    assert headline(shifted(ROWS, -0.2, CMV_MED_PRINTED)) == [
        f"{START}as printed on 0 of 2 data sets and our default on 2 of 2 data sets."
    ]


def test_lead_is_that_over_the_strongest_baseline_of_the_paper():
    table = lead_table([*completed(ROWS, -0.3), *table_rows(5, ("webkb",), ("tuned",))])
    assert table.versions == ("as printed", "completed", "our default")
    lines = dict(table.lines)
    printed, behind, lead = lines["WebKB course pages, 15 labels, defaults"]
    compared = compare_with_baselines([row for row in ROWS if row.dataset == "webkb"], CMV_MED)
    strongest = next(e for e in compared if e.baseline in ("SVM-2K", "MV-MED", "MED, view page", "MED, view link"))
    assert lead.difference == format_points(strongest.paired.mean_difference)
    assert lead.details == f"{format_interval(strongest.paired.split_interval)}; {strongest.baseline}; 10 splits"
    assert behind.difference == format_points(strongest.paired.mean_difference - 0.3)
    assert printed.difference != lead.difference
    _, absent, tuned = lines["WebKB course pages, 15 labels, tuned"]
    assert tuned.details.endswith("5 splits")
    assert absent is None


def test_a_version_is_compared_with_the_baselines_of_the_paper_alone():
    found = rows_of_version(completed(ROWS, -0.3), "completed")
    names = {"MED, view page", "MED, view link", "MED, view image", "MED, view context", "SVM-2K", "MV-MED", CMV_MED}
    assert {row.method for row in found} == names
    own = sorted(row.accuracy for row in found if row.method == CMV_MED)
    assert own == pytest.approx(sorted(row.accuracy - 0.3 for row in ROWS if row.method == CMV_MED))


def test_the_method_of_the_paper_is_compared_with_baselines_of_its_kernel():
    other = [replace(row, method="SVM-2K (linear+rbf)") for row in ROWS if row.method == "SVM-2K"]
    rows = completed([*ROWS, *other], 0.0)
    assert "SVM-2K (linear+rbf)" not in {row.method for row in rows_of_version(rows, "completed")}
    assert "SVM-2K (linear+rbf)" in {row.method for row in rows_of_version(rows, "our default")}


def test_our_default_is_that_of_the_kernel_of_the_paper_if_there_is_no_other():
    other = with_kernel(CMV_MED, "rbf")
    renamed = [replace(row, method=other) if row.method == CMV_MED else row for row in ROWS]
    assert rows_of_version(renamed, "our default") == rows_of_version(ROWS, "our default")
    lower = shifted(renamed, -0.3, other)
    both = [*ROWS, *(row for row in lower if row.method == other)]
    assert rows_of_version(both, "our default") == rows_of_version(ROWS, "our default")


def test_verdicts_of_the_versions_are_side_by_side():
    claim = compared_claims(completed(ROWS, -0.3), table_claims)[0]
    for _, (printed, behind, ours) in claim.lines:
        assert behind.verdict.label == "does not hold"
        assert ours.verdict.label.startswith("holds")
        assert printed.effect < ours.effect
    assert "completed: does not hold in 2 of 2; our default: holds" in claim.sentence
    without = compared_claims(ROWS, table_claims)[0]
    assert all(findings[1] is None for _, findings in without.lines)
    assert "completed: no results" in without.sentence


def test_first_screen_of_figure_2_alone_uses_the_numbers_of_labels_of_table_1():
    rows = curve_rows(4, ("ads",), numbers=(25, 50, 100))
    assert [title for title, _ in lead_table(rows).lines] == ["Internet Ads, 50 labels, defaults"]
    assert headline(rows)[0].startswith(START)


def test_significance_lines_contain_the_comparison():
    (panel,) = significance_panels([row for row in ROWS if row.dataset == "webkb"])
    expected = compare_with_baselines([row for row in ROWS if row.dataset == "webkb"], CMV_MED)
    assert [line.baseline for line in panel.lines] == [entry.baseline for entry in expected]
    assert [line.wilcoxon for line in panel.lines] == [format_p_value(entry.wilcoxon_holm) for entry in expected]
    assert [line.record for line in panel.lines] == [
        f"{entry.paired.wins} / {entry.paired.ties} / {entry.paired.losses}" for entry in expected
    ]


@pytest.mark.parametrize(("n_baselines", "n_splits"), [(1, 6), (2, 7), (12, 9), (13, 10)])
def test_smallest_sufficient_number_of_splits(n_baselines, n_splits):
    assert min_splits(n_baselines) == n_splits
    assert n_baselines * 2.0 ** (1 - n_splits) < 0.05 <= n_baselines * 2.0 ** (2 - n_splits)


def test_warning_about_too_few_splits():
    assert too_few_splits(comparisons(ROWS)) == ""
    assert "in any setting" in too_few_splits(comparisons(table_rows(4, ("webkb", "ads"))))
    mixed = [*ROWS, *table_rows(4, ("webkb",), ("tuned",))]
    assert "in 1 of 3 settings" in too_few_splits(comparisons(mixed))


def test_formatting():
    assert [format_points(value) for value in (0.0312, -0.0312, 0.0001, -0.0001)] == ["+3.1", "−3.1", "0.0", "0.0"]
    assert [format_p_value(p) for p in (0.0001, 0.001, 0.5)] == ["< 0.001", "0.001", "0.500"]
    assert [join_names(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "none",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert slug("a b", 3, "<c>") == "a-b-3-c"
