"""``cmvmed demo``: table, JSON, figure and progress; on a few recordings, and in a slow test on all."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from cmvmed.cli import main as cli

pytest.importorskip("librosa")
pytest.importorskip("matplotlib")
from cmvmed.demo import footsteps_demo

METHODS = 7
# the 20 labels of the small runs are too few for these recordings
pytestmark = pytest.mark.filterwarnings("ignore:The expected accuracy")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the demonstration on 80 recordings, in an empty folder."""
    small = {"N_HUMAN": 40, "N_ANIMAL": 40, "N_RECORDINGS": 80, "N_TRAIN": 50, "N_LABELED": 20}
    for name, value in small.items():
        monkeypatch.setattr(footsteps_demo, name, value)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.main, ["demo", *arguments])


def test_json_has_every_score_and_the_figure_is_written(run, tmp_path):
    shown = run("--splits", "2", "--json", "--output", "mine")
    assert shown.exit_code == 0
    results = json.loads(shown.stdout)
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
    *_, figure, advice = printed.stdout.splitlines()
    assert figure == "Figure: demo-output/demo.png"
    assert advice.startswith("Next: `cmvmed ")


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
    assert "pip install 'cmvmed[audio,plot]'" in shown.stderr


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
