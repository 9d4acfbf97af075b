"""Verdicts follow from the rows: a claim holds, does not hold or is not shown, depending on the accuracies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cmvmed.reproduction.comparison import compare_with_baselines, pitman_morgan_p_value
from cmvmed.reproduction.method_names import CMV_MED, CMV_MED_PRINTED
from cmvmed.reproduction.report.claims import table_claims
from cmvmed.reproduction.report.curve_claims import curve_claims
from cmvmed.reproduction.report.formatting import format_p_value, format_points, join_names, slug
from cmvmed.reproduction.report.overview import headline
from cmvmed.reproduction.report.printed_algorithm import printed_lines
from cmvmed.reproduction.report.significance import comparisons, min_splits, significance_panels, too_few_splits
from tests.reproduction.report.factory import curve_rows, table_rows

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
    assert claim.findings[0].evidence.startswith(format_points(entry.paired.mean_difference) + " points, signed-rank p")
    assert claim.tally == ((claim.findings[0].verdict, 1),)


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


def test_paper_accuracy_is_reached_or_not():
    assert verdicts(table_claims(ROWS), "can be reached") == {
        "WebKB course pages": "does not hold",
        "Internet Ads": "does not hold",
    }
    assert set(verdicts(table_claims(shifted(ROWS, 0.07)), "can be reached").values()) == {"holds"}
    elsewhere = table_rows(5, ("footsteps",))
    assert verdicts(table_claims(elsewhere), "can be reached") == {}


CURVES = curve_rows(8, ("webkb",))


def test_curve_claims_follow_the_curves():
    claims = curve_claims(CURVES)
    assert verdicts(claims, "at every number") == {"WebKB course pages": "holds"}
    assert verdicts(claims, "gain is largest")["WebKB course pages"].startswith("holds")
    assert verdicts(claims, "is more accurate with more") == {"WebKB course pages": "holds"}


def test_curve_claims_do_not_hold_for_reversed_curves():
    reversed_rows = [replace(row, n_labeled={10: 100, 25: 50, 50: 25, 100: 10}[row.n_labeled]) for row in CURVES]
    claims = curve_claims(reversed_rows)
    assert verdicts(claims, "gain is largest") == {"WebKB course pages": "does not hold"}
    assert verdicts(claims, "is more accurate with more") == {"WebKB course pages": "does not hold"}
    behind = curve_claims(shifted(CURVES, -0.2))
    assert verdicts(behind, "at every number") == {"WebKB course pages": "does not hold"}


def test_similar_with_many_labels():
    assert verdicts(curve_claims(CURVES), "similar accuracy") == {"WebKB course pages": "does not hold"}
    level = [replace(row, accuracy=0.9) if row.n_labeled == 100 else row for row in CURVES]
    assert verdicts(curve_claims(level), "similar accuracy") == {"WebKB course pages": "holds"}
    assert verdicts(curve_claims(curve_rows(3, ("ads",))), "similar accuracy") == {}


def test_curve_claims_need_two_numbers_of_labels():
    assert all(not claim.findings for claim in curve_claims(curve_rows(3, numbers=(10,))))


def test_headline_names_the_best_methods():
    assert headline(ROWS) == ["With default parameters, CMV-MED has the highest mean accuracy on 2 of 2 data sets."]
    (sentence,) = headline([row for row in shifted(ROWS, -0.3) if row.dataset == "ads" or row.method != CMV_MED])
    assert sentence.endswith("on 0 of 1 data set; other methods are best on Internet Ads (CMV-MED as printed).")


def test_printed_and_complete_algorithm():
    line = printed_lines(ROWS)[0]
    assert line.verdict.label == "better"
    assert line.difference.startswith("+")
    assert line.unbeaten == "none"
    worse = printed_lines(shifted(ROWS, -0.2, CMV_MED_PRINTED))[0]
    assert worse.unbeaten == "MED, view link; MED, view page; MV-MED and SVM-2K"


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
