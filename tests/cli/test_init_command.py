"""``cmvmed init`` on three made jobs: what it says, what it writes, and what it does not overwrite."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cmvmed.cli.main import main
from cmvmed.datasets import load_room
from cmvmed.workbench.project_file import parse_project
from tests.workbench.jobs import write_recordings, write_tickets, write_windows

JOBS = {"windows.csv": write_windows, "recordings": write_recordings, "tickets.csv": write_tickets}


@pytest.fixture(params=list(JOBS))
def job(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    JOBS[request.param](tmp_path)
    return request.param


def run(*arguments):
    return CliRunner().invoke(main, ["init", *map(str, arguments)])


def test_what_was_guessed_is_said_with_its_line(job, tmp_path):
    shown = run(job)
    assert shown.exit_code == 0, shown.output
    text = (tmp_path / "cmvmed.toml").read_text(encoding="utf-8")
    settings = parse_project(text)
    assert "labels" in shown.output
    assert f'labels = "{settings.data.labels}"' in shown.output
    assert settings.views[0].name in shown.output
    assert shown.output.endswith("Next: cmvmed check\n")


def test_dry_run_writes_nothing_and_shows_the_file(job, tmp_path):
    shown = run(job, "--dry-run")
    assert shown.exit_code == 0
    assert not (tmp_path / "cmvmed.toml").exists()
    run(job)
    assert (tmp_path / "cmvmed.toml").read_text(encoding="utf-8") in shown.output


def test_json_holds_guesses_and_text(job, tmp_path):
    shown = json.loads(run(job, "--json", "--project", "p.toml").output)
    assert shown["written"]
    assert shown["text"] == (tmp_path / "p.toml").read_text(encoding="utf-8")
    assert all(set(guess) == {"guess", "line"} for guess in shown["guesses"])
    assert len(shown["guesses"]) >= 2


def test_a_project_file_is_replaced_by_force_only(job, tmp_path):
    (tmp_path / "cmvmed.toml").write_text("mine", encoding="utf-8")
    shown = run(job)
    assert shown.exit_code == 1
    assert "--force replaces it" in shown.output
    assert (tmp_path / "cmvmed.toml").read_text(encoding="utf-8") == "mine"
    assert run(job, "--force").exit_code == 0
    assert (tmp_path / "cmvmed.toml").read_text(encoding="utf-8") != "mine"


def test_the_example_is_written_and_looked_at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = run("--example")
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("room.csv, room_new.csv, cmvmed.toml were written.")
    settings = parse_project((tmp_path / "cmvmed.toml").read_text(encoding="utf-8"))
    assert (settings.data.path, settings.data.labels, settings.data.ignore) == ("room.csv", "people", ("time",))
    assert [view.name for view in settings.views] == list(load_room().views)
    (tmp_path / "cmvmed.toml").unlink()
    (tmp_path / "room.csv").write_text("mine", encoding="utf-8")
    assert "room.csv exists and was not changed" in run("--example").output
    assert (tmp_path / "room.csv").read_text(encoding="utf-8") == "mine"


def test_groups_are_asked_for_unless_a_column_is_named_like_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"2024-01-0{1 + i // 4},{i},{'ab'[i % 2]}" for i in range(12)]
    for name in ("day", "date"):
        (tmp_path / f"{name}.csv").write_text("\n".join([f"{name},x,label", *rows]))
    asked, line = "other persons, days or machines", '# groups = "COLUMN"'
    by_day, by_date = (run(f"{name}.csv", "--dry-run").output for name in ("day", "date"))
    assert 'groups = "day"' in by_day
    assert asked not in by_day
    assert line not in by_day
    assert asked in by_date
    assert line in by_date


def test_a_line_for_several_guesses_is_shown_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{i // 2},2024-05-01 00:{i:02d},7,{i / 7:.2f},{i / 9:.2f},{i / 3:.2f},{i / 5:.2f},{'ab'[i % 2]}"
        for i in range(40)
    ]
    (tmp_path / "x.csv").write_text("\n".join(["id,when,firmware,a_x,a_y,b_x,b_y,label", *lines]), encoding="utf-8")
    shown = run("x.csv").output
    assert "20 rows repeat one" in shown
    assert "constant, or words, and of no sensor" in shown
    assert shown.count('ignore = ["id", "when", "firmware"]') == 1


def test_paths_are_relative_to_the_project_file(tmp_path, monkeypatch):
    write_windows(tmp_path)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "Next: cmvmed check --project sub/p.toml" in run("windows.csv", "--project", "sub/p.toml").output
    text = (tmp_path / "sub" / "p.toml").read_text(encoding="utf-8")
    assert parse_project(text).data.path == "../windows.csv"
    assert CliRunner().invoke(main, ["check", "--project", "sub/p.toml"]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.csv"], 1, "no file or folder"),
        ([], 2, "Give the path of your data, or --example"),
        (["room.csv", "--example"], 2, "Give the path of your data, or --example"),
        (["--example", "--dry-run"], 2, "not --example with --dry-run"),
    ],
)
def test_errors(tmp_path, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    shown = run(*arguments)
    assert shown.exit_code == code
    assert words in shown.output
