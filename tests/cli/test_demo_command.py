"""``cmvmed demo``: the bundled room; table, JSON, figure and progress of a few recordings, and in a slow test of all."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from cmvmed._optional import install_command
from cmvmed.cli import main as cli

pytest.importorskip("librosa")
pytest.importorskip("matplotlib")
from cmvmed.cli import demo_command
from cmvmed.datasets import load_room
from cmvmed.demo import footsteps_demo
from cmvmed.demo.room_demo import RoomScores, score_room

METHODS = 7
# the 20 labels of the small runs are too few for these recordings
pytestmark = pytest.mark.filterwarnings("ignore:The expected accuracy")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the demonstration on 80 recordings and without the room, in an empty folder."""
    monkeypatch.setattr(demo_command, "run_room", lambda folder, hidden: RoomScores(1, 4, 0.5, {"trees": 0.25}, 0.75))
    small = {"N_HUMAN": 40, "N_ANIMAL": 40, "N_RECORDINGS": 80, "N_TRAIN": 50, "N_LABELED": 20}
    for name, value in small.items():
        monkeypatch.setattr(footsteps_demo, name, value)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.main, ["demo", *arguments])


def test_json_has_every_score_and_the_figure_is_written(run, tmp_path):
    shown = run("--splits", "2", "--json", "--output", "mine")
    assert shown.exit_code == 0
    results = json.loads(shown.stdout)
    assert results["room"]["accuracy"] == 0.5
    assert (results["n_labeled"], results["n_unlabeled"], results["n_test"]) == (20, 30, 30)
    assert len(results["methods"]) == METHODS
    assert all(len(method["accuracy"]) == 2 for method in results["methods"])
    assert (tmp_path / results["picture"]).read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["demo.png"]


def test_table_equals_the_json(run):
    results = json.loads(run("--splits", "2", "--json", "--quiet").stdout)
    printed = run("--splits", "2", "--quiet")
    assert printed.stderr == ""
    for method in results["methods"]:
        line = next(line for line in printed.stdout.splitlines() if line.startswith(method["method"]))
        mean, deviation = 100 * np.mean(method["accuracy"]), 100 * np.std(method["accuracy"], ddof=1)
        assert f"{mean:.1f} ± {deviation:4.1f}" in line
    *_, figure, _, own, init, train = printed.stdout.splitlines()
    assert figure == "Figure: demo-output/demo.png"
    assert own.startswith("Your own file")
    assert [line.split()[:2] for line in (init, train)] == [["cmvmed", "init"], ["cmvmed", "train"]]


def test_the_room_goes_from_table_to_report_and_is_scored_by_the_hidden_labels(tmp_path, capsys):
    pytest.importorskip("pandas")
    scores = demo_command.run_room(tmp_path / "room", hidden=False)
    demo_command.print_room(scores, tmp_path / "room")
    shown = capsys.readouterr().out
    commands = [line.split()[2] for line in shown.splitlines() if line.startswith("$")]
    assert commands == ["init", "check", "train", "predict"]
    assert {path.name for path in (tmp_path / "room").iterdir()} >= {"report.html", "predictions.csv", "model.cmvmed"}
    assert f"predicts {100 * scores.accuracy:.1f}% of these 395 correctly." in " ".join(shown.split())
    assert f"{tmp_path}/room/report.html\n" in shown
    assert scores.accuracy > scores.majority
    again = demo_command.run_room(tmp_path / "room", hidden=True)
    assert (again, capsys.readouterr().out) == (scores, "")


def test_the_score_of_the_room_is_that_of_the_hidden_labels():
    room = load_room()
    truth = room.target_names[room.target]
    hidden = np.array([label is None for label in room.labels])
    assert score_room(truth).accuracy == 1.0
    assert score_room(np.where(hidden, "", truth)).accuracy == 0.0
    always = score_room(np.full(len(truth), "nobody"))
    assert always.accuracy == always.majority == np.mean(truth[hidden] == "nobody")
    assert len(always.labels_only) == 3


def test_a_program_outside_of_the_path_is_named_as_it_was_called(monkeypatch):
    monkeypatch.setattr(sys, "argv", [".venv/bin/cmvmed", "demo"])
    monkeypatch.setattr(demo_command, "which", lambda name: None)
    assert demo_command.program() == ".venv/bin/cmvmed"
    monkeypatch.setattr(demo_command, "which", lambda name: "/usr/bin/cmvmed")
    assert demo_command.program() == "cmvmed"


def test_progress_is_on_the_error_stream(run):
    shown = run("--splits", "1")
    assert "Simulating" in shown.stderr
    assert "Simulating" not in shown.stdout
    assert "over 1 random split\n" in shown.stdout


def test_missing_extra_is_reported_first(run, monkeypatch):
    monkeypatch.setattr("cmvmed.cli.demo_command.find_spec", lambda module: None)
    monkeypatch.setattr(footsteps_demo, "simulate", lambda: pytest.fail("computation started"))
    shown = run()
    assert shown.exit_code == 1
    assert install_command("audio,plot,workbench") in shown.stderr


def test_output_that_is_a_file_is_rejected(run, tmp_path):
    (tmp_path / "taken").write_text("")
    assert run("--output", "taken").exit_code == 2


def test_recorder_keeps_the_last_pass_only(run):
    recordings = footsteps_demo.featurize(footsteps_demo.simulate())
    recorder = footsteps_demo.make_recorder(recordings, 0)
    list(footsteps_demo.run_split(recordings, 0, recorder))
    n_stages = 8
    assert len(recorder.values) == n_stages
    assert recorder.values[0].by_view.keys() == recordings.views.keys()
    sharpness = [np.abs(stage.consensus - 0.5).mean() for stage in recorder.values]
    assert sharpness[-1] > sharpness[0]


@pytest.mark.slow
def test_demo_in_a_subprocess(tmp_path):
    command = [sys.executable, "-W", "error", "-m", "cmvmed", "demo", "--splits", "2", "--json"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    results = json.loads(shown.stdout)
    accuracy = {method["method"]: np.mean(method["accuracy"]) for method in results["methods"]}
    assert max(accuracy, key=accuracy.get) == footsteps_demo.CONSENSUS
    assert (tmp_path / results["picture"]).stat().st_size > 50_000
