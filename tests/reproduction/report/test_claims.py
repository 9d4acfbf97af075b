"""Verdicts follow from the numbers: the same claim holds, does not hold or stays open as the rows change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cmvmed.reproduction.comparison import compare_with_rivals, spread_p_value
from cmvmed.reproduction.report.claims import table_claims
from cmvmed.reproduction.report.curve_claims import curve_claims
from cmvmed.reproduction.report.formatting import listing, p_value, points, slug
from cmvmed.reproduction.report.grouping import COMPLETE, PRINTED
from cmvmed.reproduction.report.overview import headline
from cmvmed.reproduction.report.printed_algorithm import printed_lines
from cmvmed.reproduction.report.reliability import pooled_bins
from cmvmed.reproduction.report.significance import comparisons, significance_panels, splits_needed, too_few_splits
from tests.reproduction.report.factory import curve_rows, table_rows

ROWS = table_rows(10, ("webkb", "ads"), ("defaults",))


def shifted(rows, by, method=COMPLETE):
    """The same rows with one method's accuracy moved."""
    return [replace(row, accuracy=row.accuracy + by) if row.method == method else row for row in rows]


def verdicts(claims, words):
    """Data set to verdict of the claim whose text holds the words."""
    (claim,) = [claim for claim in claims if words in claim.text]
    return {finding.where.split(",")[0]: finding.verdict.word for finding in claim.findings}


@pytest.mark.parametrize("rival", ["SVM-2K", "MV-MED", "MED on either view"])
def test_better_equal_worse(rival):
    claim = f"more accurate than {rival}"
    assert verdicts(table_claims(ROWS), claim) == {"WebKB course pages": "holds", "Internet Ads": "holds on these rows"}
    assert set(verdicts(table_claims(shifted(ROWS, -0.3)), claim).values()) == {"does not hold"}


def test_equal_methods_are_not_told_apart():
    twin = [replace(row, method="MV-MED") for row in ROWS if row.method == COMPLETE]
    rows = [row for row in ROWS if row.method != "MV-MED"] + twin
    assert set(verdicts(table_claims(rows), "more accurate than MV-MED").values()) == {"not shown"}


def test_evidence_is_the_paired_comparison():
    rows = [row for row in ROWS if row.dataset == "webkb"]
    (claim,) = [claim for claim in table_claims(rows) if "MV-MED." in claim.text]
    (entry,) = [entry for entry in compare_with_rivals(rows, COMPLETE) if entry.rival == "MV-MED"]
    assert claim.findings[0].evidence.startswith(points(entry.paired.mean_difference) + " points, signed-rank p")
    assert claim.tally == ((claim.findings[0].verdict, 1),)


def test_the_strongest_single_view_decides():
    (claim,) = [claim for claim in table_claims(ROWS) if "either view" in claim.text]
    assert "against MED, view page" in claim.findings[0].evidence


def spread_rows(spread):
    """Both methods centered alike, the complete one so much wider."""
    wide = {n: 0.8 + spread * (-1) ** n * (1 + n) for n in range(10)}
    narrow = {n: 0.8 + 0.001 * (n % 3) for n in range(10)}
    base = {row.split: row for row in ROWS if row.method == COMPLETE and row.dataset == "webkb"}
    return [replace(base[n], accuracy=wide[n]) for n in base] + [
        replace(base[n], method="SVM-2K", accuracy=narrow[n]) for n in base
    ]


def test_steadiness_is_decided_by_the_spreads():
    assert verdicts(table_claims(spread_rows(0.01)), "varies less") == {"WebKB course pages": "does not hold"}
    swapped = [replace(row, method={COMPLETE: "SVM-2K", "SVM-2K": COMPLETE}[row.method]) for row in spread_rows(0.01)]
    assert verdicts(table_claims(swapped), "varies less") == {"WebKB course pages": "holds"}


def test_spread_test_by_hand():
    x, y = [1.0, 2.0, 4.0, 7.0], [2.0, 2.5, 2.0, 3.0]
    assert spread_p_value(x, y) == pytest.approx(spread_p_value(y, x))
    assert spread_p_value(x, [value + 5 for value in x]) == 1.0
    with pytest.raises(ValueError, match="at least three"):
        spread_p_value([1.0, 2.0], [1.0, 2.0])


def test_paper_figure_is_reached_or_not():
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
    assert verdicts(claims, "gains most")["WebKB course pages"].startswith("holds")
    assert verdicts(claims, "grows more accurate") == {"WebKB course pages": "holds"}


def test_curve_claims_fail_when_the_curves_are_turned_round():
    turned = [replace(row, n_labeled={10: 100, 25: 50, 50: 25, 100: 10}[row.n_labeled]) for row in CURVES]
    claims = curve_claims(turned)
    assert verdicts(claims, "gains most") == {"WebKB course pages": "does not hold"}
    assert verdicts(claims, "grows more accurate") == {"WebKB course pages": "does not hold"}
    behind = curve_claims(shifted(CURVES, -0.2))
    assert verdicts(behind, "at every number") == {"WebKB course pages": "does not hold"}


def test_similar_with_many_labels():
    assert verdicts(curve_claims(CURVES), "similarly good") == {"WebKB course pages": "does not hold"}
    level = [replace(row, accuracy=0.9) if row.n_labeled == 100 else row for row in CURVES]
    assert verdicts(curve_claims(level), "similarly good") == {"WebKB course pages": "holds"}
    assert verdicts(curve_claims(curve_rows(3, ("ads",))), "similarly good") == {}


def test_curve_claims_need_two_numbers_of_labels():
    assert all(not claim.findings for claim in curve_claims(curve_rows(3, numbers=(10,))))


def test_headline_names_who_leads():
    assert headline(ROWS) == [
        "With every method at its defaults, CMV-MED has the highest mean accuracy on 2 of 2 data sets."
    ]
    (sentence,) = headline([row for row in shifted(ROWS, -0.3) if row.dataset == "ads" or row.method != COMPLETE])
    assert sentence.endswith("on 0 of 1 data set; others lead on Internet Ads (CMV-MED as printed).")


def test_printed_beside_complete():
    line = printed_lines(ROWS)[0]
    assert line.verdict.word == "better"
    assert line.difference.startswith("+")
    assert line.unbeaten == "none"
    worse = printed_lines(shifted(ROWS, -0.2, PRINTED))[0]
    assert worse.unbeaten == "MED, view link; MED, view page; MV-MED and SVM-2K"


def test_significance_lines_hold_the_comparison():
    (panel,) = significance_panels([row for row in ROWS if row.dataset == "webkb"])
    expected = compare_with_rivals([row for row in ROWS if row.dataset == "webkb"], COMPLETE)
    assert [line.rival for line in panel.lines] == [entry.rival for entry in expected]
    assert [line.wilcoxon for line in panel.lines] == [p_value(entry.wilcoxon_holm) for entry in expected]
    assert [line.record for line in panel.lines] == [
        f"{entry.paired.wins} / {entry.paired.ties} / {entry.paired.losses}" for entry in expected
    ]


@pytest.mark.parametrize(("n_rivals", "n_splits"), [(1, 6), (2, 7), (12, 9), (13, 10)])
def test_fewest_splits_that_can_pass(n_rivals, n_splits):
    assert splits_needed(n_rivals) == n_splits
    assert n_rivals * 2.0 ** (1 - n_splits) < 0.05 <= n_rivals * 2.0 ** (2 - n_splits)


def test_too_few_splits_are_said():
    assert too_few_splits(comparisons(ROWS)) == ""
    assert "in any setting" in too_few_splits(comparisons(table_rows(4, ("webkb", "ads"))))
    mixed = [*ROWS, *table_rows(4, ("webkb",), ("tuned",))]
    assert "in 1 of 3 settings" in too_few_splits(comparisons(mixed))


def test_bins_are_pooled_by_their_rows():
    pooled = pooled_bins([[(10, 0.55, 0.5)], [(30, 0.57, 0.7), (5, 1.0, 1.0)]])
    assert pooled == [(40, pytest.approx(0.565), pytest.approx(0.65)), (5, 1.0, 1.0)]


def test_wording():
    assert [points(value) for value in (0.0312, -0.0312, 0.0001, -0.0001)] == ["+3.1", "−3.1", "0.0", "0.0"]
    assert [p_value(p) for p in (0.0001, 0.001, 0.5)] == ["< 0.001", "0.001", "0.500"]
    assert [listing(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "none",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert slug("a b", 3, "<c>") == "a-b-3-c"
