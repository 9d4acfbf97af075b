"""The small file of results keeps what tables, figures and claims need; docs/reproduction.md shows what is in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.pages import wrapped_paragraph
from benchmarks.provenance import RESULTS, ROOT, body
from benchmarks.reproduction import (
    claim_counts,
    claim_tables,
    complete_splits,
    figure_text,
    figures,
    paper_table,
    read_results,
    write_results,
)
from experiments.report.claims import table_claims
from experiments.report.curve_claims import curve_claims
from experiments.report.number_text import format_points
from experiments.report.versions import compared_claims
from experiments.summary import format_tables
from tests.benchmarks.test_pages import part
from tests.experiments.report.factory import curve_rows, failed_row, table_rows

PATH = RESULTS / "reproduction.csv"
ROWS = read_results(PATH)


def whole(rows):
    """Rows whose accuracies are shares of whole numbers of test rows."""
    return [
        replace(
            row,
            accuracy=round(row.accuracy * row.n_test) / row.n_test,
            majority_rate=round(row.majority_rate * row.n_test) / row.n_test,
        )
        for row in rows
    ]


def tables(rows, decide):
    return claim_tables(compared_claims(rows, decide))


@pytest.mark.slow
def test_tables_and_claims_are_the_same_after_writing_and_reading(tmp_path):
    table, curves = whole(table_rows(11, ("webkb", "ads"))), whole(curve_rows(11))
    write_results(tmp_path / "results.csv", [*table, *curves, failed_row()])
    read = read_results(tmp_path / "results.csv")
    assert {row.key: row.accuracy for row in read} == {row.key: row.accuracy for row in [*table, *curves]}
    assert read[0].versions.items() >= table[0].versions.items()  # and the commit
    of_table = [row for row in read if row.spec == "table1"]
    assert format_tables(sorted(of_table, key=lambda row: row.key)) == format_tables(
        sorted(table, key=lambda row: row.key)
    )
    assert tables(of_table, table_claims) == tables(table, table_claims)
    of_figure = [row for row in read if row.spec == "figure2"]
    assert tables(of_figure, curve_claims) == tables(curves, curve_claims)
    assert figures(of_figure) == figures(curves)


def test_kernels_and_balanced_accuracies_are_kept(tmp_path):
    rows = [
        replace(row, settings={"kernel": "rbf" if row.method == "SVM-2K" else "linear"}, balanced_accuracy=0.1234)
        for row in whole(table_rows(3, ("webkb",)))
    ]
    write_results(tmp_path / "results.csv", rows)
    read = read_results(tmp_path / "results.csv")
    assert {(row.key, row.kernel, row.balanced_accuracy) for row in read} == {
        (row.key, row.kernel, row.balanced_accuracy) for row in rows
    }


def test_other_experiments_and_missing_splits_are_kept(tmp_path):
    path = tmp_path / "results.csv"
    table = whole(table_rows(3, ("webkb",)))
    write_results(path, table)
    curves = [row for row in whole(curve_rows(3)) if row.split != 1]
    write_results(path, curves)
    assert {row.key for row in read_results(path)} == {row.key for row in [*table, *curves]}
    text = path.read_text()
    write_results(path, curves)
    assert path.read_text() == text


def test_splits_of_different_sizes_are_rejected(tmp_path):
    first, *rest = whole(table_rows(2, ("webkb",)))
    with pytest.raises(ValueError, match="different numbers of rows"):
        write_results(tmp_path / "results.csv", [replace(first, n_test=10), *rest])


def test_figures_of_the_documentation_are_those_of_the_results():
    of_figure = [row for row in ROWS if row.spec == "figure2"]
    drawn = figures(of_figure)
    assert set(drawn) == {path.name for path in (ROOT / "docs").glob("figure2*.svg")}
    for name, figure in drawn.items():
        assert (ROOT / "docs" / name).read_text() == figure
    shown = part("docs/reproduction.md", "figure2")
    assert shown == "\n\n".join(map(wrapped_paragraph, figure_text(of_figure)))
    assert all(f"]({name})" in shown for name in drawn)


def test_claims_and_tables_of_table_1_are_those_of_the_results():
    of_table, of_figure = ([row for row in ROWS if row.spec == name] for name in ("table1", "figure2"))
    claims = [compared_claims(of_table, table_claims), compared_claims(of_figure, curve_claims)]
    assert body(RESULTS / "claims.md").strip() == "\n\n".join(map(claim_tables, claims))
    assert part("docs/reproduction.md", "claims") == claim_counts(claims)
    assert part("docs/reproduction.md", "table1") == paper_table(of_table, "tuned")


def test_the_table_of_the_page_has_means_and_the_results_of_the_paper():
    rows = whole(table_rows(3, ("webkb",), ("tuned",)))
    lines = dict(line.strip("| ").split(" | ") for line in paper_table(rows, "tuned").splitlines()[2:])
    printed = [100 * row.accuracy for row in rows if row.method == "CMV-MED as printed"]
    assert lines["CMV-MED as printed"].startswith(f"{sum(printed) / 3:.1f} ± ")
    assert lines["SVM-2K"].endswith("[79.0 ± 10.0]")
    assert lines["majority class"] == "78.6 ± 0.0"
    assert "CMV-MED, our default, rbf" not in lines


def test_a_claim_has_a_line_for_each_setting_and_a_verdict_for_each_version():
    rows = whole(table_rows(11, ("webkb",), ("tuned", "defaults")))
    first = tables(rows, table_claims).split("\n\n")[1].splitlines()
    assert first[0] == "| difference in points | as printed | completed | our default |"
    assert len(first) == 3  # default parameters are left out, since there are enough splits of the paper's protocol
    _, _, finding = compared_claims(rows, table_claims)[0].lines[-1][1]
    assert finding.verdict.kind == "yes"
    ours = f"{format_points(finding.effect)} ✓"
    assert first[2].startswith("| webkb, tuned | ")
    assert first[2].endswith(f" | – | {ours} |")  # the factory has no completed one


def test_verdicts_are_counted_by_claim_and_protocol():
    claims = compared_claims(whole(table_rows(11, ("webkb", "ads"), ("tuned",))), table_claims)
    line = claim_counts([claims]).splitlines()[2]
    kinds = [found[-1].verdict.kind for _, found in claims[0].lines]
    assert sorted(kinds) == ["partial", "yes"]
    assert line.startswith(f"| {claims[0].claim.text.rstrip('.')}, tuned | ")
    assert line.endswith(" | – | 1 ✓, 1 (✓) |")


def test_claims_are_about_the_default_parameters_if_few_splits_are_tuned():
    rows = [*table_rows(11, ("webkb",), ("defaults",)), *table_rows(3, ("webkb",), ("tuned",))]
    lines = tables(rows, table_claims).splitlines()
    assert any(line.startswith("| webkb, defaults | ") for line in lines)
    assert not any(line.startswith("| webkb, tuned | ") for line in lines)


def test_the_last_split_of_a_stopped_run_is_left_out():
    rows = table_rows(3, ("webkb",), ("tuned",))
    stopped = [row for row in rows if row.split < 2 or row.method == "SVM-2K"]
    assert {row.split for row in complete_splits(stopped)} == {0, 1}
    assert complete_splits(rows) == rows


def test_lines_keep_the_commit_that_they_were_measured_with(tmp_path):
    path, rows = tmp_path / "results.csv", whole(table_rows(2, ("webkb",), ("tuned",)))
    write_results(path, [replace(row, versions={**row.versions, "commit": "aaaaaaa"}) for row in rows])
    again = [row for row in rows if row.method == "SVM-2K"]
    write_results(path, [replace(row, versions={**row.versions, "commit": "bbbbbbb"}) for row in again])
    commits = {row.method: row.versions["commit"] for row in read_results(path)}
    assert commits.pop("SVM-2K") == "bbbbbbb"
    assert set(commits.values()) == {"aaaaaaa"}
