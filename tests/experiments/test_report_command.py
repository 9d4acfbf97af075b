"""``python -m experiments report``: output, files and exit codes."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from experiments.commands import main
from experiments.store import ResultStore
from tests.experiments.report.factory import failed_row, table_rows


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.sqlite"
    with ResultStore(path) as store:
        for row in [*table_rows(2, ("webkb",)), failed_row()]:
            store.add(row)
    return path


def run(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_page_is_written(results, tmp_path):
    output = tmp_path / "page.html"
    shown = run("--results", results, "--output", output)
    assert shown.exit_code == 0
    assert shown.output == f"{output}: 52 results, 1 failure\n"
    assert "WebKB course pages" in output.read_text(encoding="utf-8")


def test_missing_file_is_reported_with_the_command_that_creates_it(tmp_path):
    shown = run("--results", tmp_path / "none.sqlite")
    assert shown.exit_code == 1
    assert "python -m experiments" in shown.output
    assert not (tmp_path / "none.sqlite").exists()


def test_empty_file_of_results(tmp_path):
    ResultStore(tmp_path / "empty.sqlite").close()
    shown = run("--results", tmp_path / "empty.sqlite", "--output", tmp_path / "page.html")
    assert shown.exit_code == 1
    assert "There are no results to report" in shown.output
    assert not (tmp_path / "page.html").exists()


def test_other_files_are_rejected(tmp_path):
    (tmp_path / "text").write_text("not a database, but longer than the header of one\n" * 20)
    shown = run("--results", tmp_path / "text")
    assert shown.exit_code == 1
    assert "not a file of results" in shown.output


@pytest.mark.parametrize("opened", [True, False])
def test_page_is_opened_on_request(results, tmp_path, monkeypatch, opened):
    addresses = []
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or opened)
    output = tmp_path / "page.html"
    shown = run("--results", results, "--output", output, "--open")
    assert addresses == [output.as_uri()]
    assert shown.exit_code == (0 if opened else 1)
