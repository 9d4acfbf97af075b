"""``cmvmed train``: checks first, files written completely or not at all, the same in Python, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cmvmed import CMVMED
from cmvmed.cli import train_command
from cmvmed.cli.train_command import STEPS, StageProgress, progress_bar
from cmvmed.workbench import TrainedProject
from tests.cli.commands import run
from tests.workbench.jobs import write_windows

FILES = ["model.cmvmed", "report.html"]
QUICK = ["--set", "model.n_stages=2"]


@pytest.fixture
def windows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_windows(tmp_path)
    assert run("init", "windows.csv").exit_code == 0
    return tmp_path


def written(folder):
    return sorted(path.name for path in folder.iterdir() if path.name not in ("windows.csv", "cmvmed.toml"))


def test_model_and_report_are_written_and_the_accuracy_is_shown(windows):
    shown = run("train", *QUICK)
    assert shown.exit_code == 0, shown.output
    assert written(windows) == FILES
    model = TrainedProject.load("model.cmvmed").model
    assert model.n_stages == 2
    assert "200 rows, 10 of them labeled; classes: back, crawl; views: acc, gyr" in shown.stdout
    for sentence in str(model.accuracy_estimate()).split(". "):
        assert sentence.rstrip(".") in shown.stdout
    assert "by the labels alone: the unlabeled rows" in shown.stdout
    assert "Next: cmvmed predict NEW_DATA -o predictions.csv" in shown.stdout


def test_one_label_per_class_leaves_the_accuracy_unknown(windows):
    frame = pd.read_csv("windows.csv")
    first = frame.drop_duplicates("stroke").index
    frame.loc[~frame.index.isin(first), "stroke"] = "unknown"
    frame.to_csv("windows.csv", index=False)
    shown = run("train", *QUICK, "--no-report")
    assert shown.exit_code == 0, shown.output
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("Expected accuracy")]
    assert line == "Expected accuracy unknown: no label could be held out."
    assert "%" not in line


def test_standard_output_is_json_only(windows):
    shown = run("train", *QUICK, "--no-report", "--json", "-o", "other.cmvmed")
    content = json.loads(shown.stdout)
    assert content["model"] == "other.cmvmed"
    assert (content["rows"], content["labeled"], content["views"]) == (200, 10, ["acc", "gyr"])
    estimate = TrainedProject.load("other.cmvmed").model.accuracy_estimate()
    assert (content["accuracy"]["mean"], content["accuracy"]["is_known"]) == (estimate.mean, estimate.is_known)


def test_errors_in_the_data_stop_the_training_with_the_advice(windows):
    text = Path("cmvmed.toml").read_text().replace('unlabeled = ["unknown"]', 'unlabeled = [""]')
    Path("cmvmed.toml").write_text(text)
    shown = run("train", *QUICK)
    assert shown.exit_code == 1
    assert 'as in unlabeled = ["", "unknown"]' in shown.stderr
    assert "The data have an error, so nothing was trained" in shown.stderr
    assert written(windows) == []
    content = json.loads(run("train", *QUICK, "--json").stdout)
    assert content["findings"][0]["code"] == "marker"


def test_warnings_in_the_data_are_shown(windows):
    text = Path("windows.csv").read_text().splitlines()
    Path("windows.csv").write_text("\n".join([*text, text[-1].replace("w199", "w200")]))
    shown = run("train", *QUICK, "--no-report")
    assert shown.exit_code == 0
    assert "warning: 1 row repeats another one" in shown.stderr


@pytest.mark.parametrize("name", FILES)
def test_existing_files_are_noticed_before_the_work(windows, name, monkeypatch):
    Path(name).write_text("precious")
    monkeypatch.setattr(CMVMED, "fit", lambda *arguments, **more: pytest.fail("the work was done"))
    shown = run("train", *QUICK)
    assert (shown.exit_code, shown.stderr) == (1, f"Error: {name} exists and was not changed; --force replaces it.\n")
    assert Path(name).read_text() == "precious"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("nowhere/m", "The folder nowhere does not exist; create it first."),
        (".", ". is a folder; give the name of the"),
    ],
)
def test_files_that_cannot_be_written_are_noticed_before_the_work(windows, output, message, monkeypatch):
    monkeypatch.setattr(CMVMED, "fit", lambda *arguments, **more: pytest.fail("the work was done"))
    shown = run("train", *QUICK, "-o", output)
    assert shown.exit_code == 1
    assert message in shown.stderr


def test_a_folder_that_cannot_be_written_to(windows, monkeypatch):
    def no_file(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("cmvmed.cli.project_options.TemporaryFile", no_file)
    shown = run("train", *QUICK)
    assert (shown.exit_code, shown.stderr) == (1, "Error: The folder . cannot be written to: Permission denied.\n")


@pytest.mark.usefixtures("no_refits")
def test_force_replaces(windows):
    for name in FILES:
        Path(name).write_text("old")
    assert run("train", *QUICK, "--force").exit_code == 0
    assert Path("model.cmvmed").read_bytes()[:2] == b"PK"
    assert written(windows) == FILES


def test_dry_run_fits_and_writes_nothing(windows, monkeypatch):
    monkeypatch.setattr(CMVMED, "fit", lambda *arguments, **more: pytest.fail("the work was done"))
    shown = run("train", *QUICK, "--dry-run")
    assert shown.exit_code == 0
    assert "Would learn from 200 rows, 10 of them labeled, and write:\n  model.cmvmed\n" in shown.stdout
    assert json.loads(run("train", *QUICK, "--dry-run", "--json").stdout)["would_write"] == FILES
    assert written(windows) == []


def test_nothing_is_left_after_an_interruption(windows, monkeypatch):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(CMVMED, "fit", interrupted)
    shown = run("train", *QUICK)
    assert shown.exit_code == 130
    assert written(windows) == []


@pytest.mark.usefixtures("no_refits")
def test_a_quick_look_takes_some_rows_and_draws_no_curve(windows, monkeypatch):
    monkeypatch.setattr(train_command, "QUICK_ROWS", 60)
    monkeypatch.setattr("cmvmed.workbench.report.learning_curve._refit", lambda *_: pytest.fail("refits"))
    shown = run("train", "--quick", "--json", *QUICK)
    assert shown.exit_code == 0, shown.output
    results = json.loads(shown.stdout)
    assert 55 <= results["rows"] <= 65
    assert f"A quick look: {results['rows']} of 200 rows." in results["messages"]
    assert "rows.part(60)" in run("train", "--quick", "--print-python").output


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0, "some seconds."), (20.0, "about 24 s; --quick"), (1000.0, "about 20 minutes; --quick")]
)
def test_the_expected_time_is_said(monkeypatch, capsys, seconds, said):
    table = SimpleNamespace(ids=np.arange(9000))
    project = SimpleNamespace(expected_seconds=lambda table: seconds)
    train_command._show_time(project, table, with_curve=True)
    assert capsys.readouterr().err.startswith(f"Expected time: {said}")


@pytest.mark.filterwarnings("ignore:Held-out labels of . groups are too few")  # for sets
def test_the_printed_python_does_the_same(windows):
    Path("more.csv").write_text("window_id,label\nw000,crawl\n")
    options = [*QUICK, "--labels", "more.csv", "--set", "data.labels_drawn=random"]
    assert run("train", *options, "--no-report").exit_code == 0
    first = TrainedProject.load("model.cmvmed").predict("windows.csv")
    printed = run("train", *options, "--print-python", "--force")
    assert printed.exit_code == 0
    Path("model.cmvmed").unlink()
    exec(compile(printed.stdout, "train.py", "exec"), {})
    again = TrainedProject.load("model.cmvmed")
    assert again.predict("windows.csv").equals(first)
    assert (again.model.labels_drawn, again.model.n_stages) == ("random", 2)


def test_labels_of_the_command_line_come_after_those_of_the_file(windows):
    Path("a.csv").write_text("window_id,label\nw000,crawl\nw001,crawl\n")
    (windows / "folder").mkdir()
    Path("folder/b.csv").write_text("window_id,label\nw001,back\n")
    text = Path("cmvmed.toml").read_text().replace("[views.acc]", 'label_files = "a.csv"\n[views.acc]')
    Path("cmvmed.toml").write_text(text)
    shown = run("train", *QUICK, "--labels", "folder/b.csv", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "note: 2 labels of a.csv were taken." in shown.stderr
    assert "note: 1 label of b.csv replaces another label" in shown.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--set", "model.temperature"], 2, "has no value; write KEY=VALUE"),
        (["--set", "model.temperatur=1"], 1, "Did you mean 'temperature'?"),
        (["--set", "model.temperature=warm"], 1, "temperature"),
        (["--set", "model.kernel=[1"], 1, "kernel"),
        (["--labels", "none.csv"], 2, "'none.csv' does not exist"),
        (["--project", "none.toml"], 2, "`cmvmed init DATA` writes one"),
    ],
)
def test_mistakes(windows, options, code, message):
    shown = run("train", *QUICK, *options)
    assert shown.exit_code == code
    assert message in shown.stderr


# --- progress ----------------------------------------------------------------------------------------------------------


def test_nothing_is_drawn_where_there_is_no_terminal(capsys):
    with progress_bar(10) as advance:
        advance("Reading", 5)
    assert capsys.readouterr() == ("", "")


def test_the_bar_of_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_bar(10) as advance:
        advance("Reading", 0)
        advance("Fitting", 5)
    assert "Fitting" in capsys.readouterr().err


def test_stages_advance_the_bar_to_the_end(windows):
    from cmvmed.workbench import Project

    calls = []
    progress = StageProgress(lambda label, units: calls.append((label, units)), 3)
    Project.load().train(callbacks=[progress], n_stages=3)
    assert [label for label, _ in calls] == ["Fitting"] * 3 + ["Holding out labels"]
    assert sum(units for _, units in calls) == pytest.approx(STEPS["Setting up"] + STEPS["Fitting"])
