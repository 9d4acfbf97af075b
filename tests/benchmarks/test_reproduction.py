"""The small file of results keeps what tables, figures and claims need; docs/reproduction.md shows what is in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.pages import wrapped_item, wrapped_paragraph
from benchmarks.provenance import RESULTS, ROOT
from benchmarks.reproduction import claim_list, figure_text, figures, read_results, write_results
from experiments.report.claims import table_claims
from experiments.report.curve_claims import curve_claims
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


@pytest.mark.slow
def test_tables_and_claims_are_the_same_after_writing_and_reading(tmp_path):
    table, curves = whole(table_rows(11, ("webkb", "ads"))), whole(curve_rows(11))
    write_results(tmp_path / "results.csv", [*table, *curves, failed_row()])
    read = read_results(tmp_path / "results.csv")
    assert {row.key: row.accuracy for row in read} == {row.key: row.accuracy for row in [*table, *curves]}
    assert read[0].versions == table[0].versions
    of_table = [row for row in read if row.spec == "table1"]
    assert format_tables(sorted(of_table, key=lambda row: row.key)) == format_tables(
        sorted(table, key=lambda row: row.key)
    )
    assert claim_list(table_claims(of_table)) == claim_list(table_claims(table))
    of_figure = [row for row in read if row.spec == "figure2"]
    assert claim_list(curve_claims(of_figure)) == claim_list(curve_claims(curves))
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
    claims = "\n".join(map(wrapped_item, claim_list(curve_claims(of_figure))))
    assert part("docs/reproduction.md", "curve_claims") == claims


def test_claims_of_table_1_are_those_of_the_results():
    of_table = [row for row in ROWS if row.spec == "table1"]
    if not of_table:
        pytest.skip("the result file has no rows of Table 1")
    assert part("docs/reproduction.md", "claims") == "\n".join(map(wrapped_item, claim_list(table_claims(of_table))))
