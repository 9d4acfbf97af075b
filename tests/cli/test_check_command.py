"""``cmvmed check`` after ``cmvmed init`` on three made jobs: counts, findings, exit codes."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands import run
from tests.workbench.jobs import write_recordings, write_tickets, write_windows

COUNTS = {
    "windows.csv": (200, 10, {"acc": 0, "gyr": 7}),
    "recordings": (10, 4, {"mic_a": 0, "mic_b": 1}),
    "tickets.csv": (120, None, {"numbers": 0, "categories": 0, "comment": 11}),
}


@pytest.fixture(params=list(COUNTS))
def job(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    {"windows.csv": write_windows, "recordings": write_recordings, "tickets.csv": write_tickets}[request.param](
        tmp_path
    )
    assert run("init", request.param).exit_code == 0
    return request.param


def test_counts_as_json(job):
    shown = run("check", "--json")
    assert shown.exit_code == 0, shown.output
    content = json.loads(shown.output)
    n_rows, n_labeled, absent = COUNTS[job]
    counts = content["counts"]
    assert counts["rows"] == n_rows
    assert n_labeled in (None, counts["labeled"])
    assert counts["labeled"] == sum(counts["labels_per_class"].values())
    assert {name: view["rows_absent"] for name, view in counts["views"].items()} == absent
    assert all(finding["level"] != "error" for finding in content["findings"])


def test_sentences(job):
    shown = run("check")
    n_rows, _, absent = COUNTS[job]
    assert shown.exit_code == 0
    assert shown.output.startswith(f"{n_rows} rows, ")
    for name, count in absent.items():
        (line,) = (line for line in shown.output.splitlines() if line.startswith(f"  view {name}: "))
        assert f"absent in {count} row{'' if count == 1 else 's'}, " in line


def test_an_error_gives_exit_code_1(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_windows(tmp_path)
    run("init", "windows.csv")
    text = (tmp_path / "cmvmed.toml").read_text(encoding="utf-8")
    (tmp_path / "cmvmed.toml").write_text(text.replace('unlabeled = ["unknown"]', 'unlabeled = [""]'), encoding="utf-8")
    shown = run("check")
    assert shown.exit_code == 1
    assert "error: The label 'unknown' (190 rows, 95 %) looks like a marker" in shown.output
    assert 'unlabeled = ["", "unknown"]' in shown.output
    assert "1 error" in shown.output


@pytest.mark.parametrize("as_json", [True, False])
def test_unreadable_data_are_a_finding(tmp_path, monkeypatch, as_json):
    monkeypatch.chdir(tmp_path)
    write_windows(tmp_path)
    run("init", "windows.csv")
    (tmp_path / "windows.csv").unlink()
    shown = run("check", *(["--json"] if as_json else []))
    assert shown.exit_code == 1
    assert "There is no file or folder" in shown.output
    assert not as_json or json.loads(shown.output)["findings"][0]["code"] == "unreadable"


def test_without_a_project_file_the_command_line_is_invalid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = run("check")
    assert shown.exit_code == 2
    assert "`cmvmed init DATA` writes one" in shown.output
