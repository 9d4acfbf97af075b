"""Three jobs from files to predictions of new rows, each in at most five commands and without Python.

A sensor table with 5 % labels, a folder of sound files, and texts with numbers and categories with gaps. The first also
runs through the installed script, in processes of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import cmvmed
from cmvmed.cli.main import main
from tests.workbench.jobs import write_recordings, write_tickets, write_windows

MIN_ACCURACY = 0.85


@dataclass(frozen=True)
class Job:
    """A job: how its files are made, and what the commands are given."""

    data: str
    write: Callable[[Path, int], np.ndarray]  # true classes of the rows in the order of their identifiers
    missing: str  # a view that some rows lack
    identifier: str


def windows(folder, seed):
    return write_windows(folder, n=400, share_labeled=0.05, seed=seed)


def recordings(folder, seed):
    write_recordings(folder, n=24, seed=seed, n_labeled=12)
    return np.array(["low" if i % 2 else "high" for i in range(24)])


def tickets(folder, seed):
    return write_tickets(folder, n=240, seed=seed)


JOBS = [
    Job("windows.csv", windows, "gyr", "window_id"),
    Job("recordings", recordings, "mic_b", "id"),
    Job("tickets.csv", tickets, "comment", "ticket"),
]


def commands(job):
    """The command lines of a job, on new data in the folder ``new``."""
    lines = [
        ["init", job.data],
        ["check"],
        ["train"],
        ["predict", f"new/{job.data}", "-o", "predictions.csv"],
    ]
    return [*lines, ["suggest", "-n", "5", "-o", "next.csv"]]


def check_results(job, truth):
    predictions = pd.read_csv("predictions.csv", dtype={job.identifier: str})
    assert predictions.columns[0] == job.identifier
    assert len(predictions) == len(truth)
    assert np.mean(predictions["class"] == truth) > MIN_ACCURACY
    assert predictions["missing_views"].eq(job.missing).any()
    probabilities = predictions.filter(like="probability_")
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    assert Path("model.cmvmed").exists()
    assert Path("report.html").exists()
    assert len(pd.read_csv("next.csv")) == 5
    assert not [path for path in Path().iterdir() if path.name.startswith(".")]


@pytest.fixture(params=JOBS, ids=lambda job: job.data)
def job(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new").mkdir()
    request.param.write(tmp_path, 0)
    return request.param, request.param.write(tmp_path / "new", 1)


@pytest.mark.usefixtures("no_refits")
def test_at_most_five_commands(job):
    task, truth = job
    lines = commands(task)
    assert len(lines) <= 5
    for line in lines:
        shown = CliRunner().invoke(main, line)
        assert shown.exit_code == 0, (line, shown.output)
    check_results(task, truth)


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS[:1], ids=["windows.csv"], indirect=True)
def test_the_installed_script(job):
    task, truth = job
    script = Path(sys.executable).with_name("cmvmed")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "cmvmed"]
    env = os.environ | {"PYTHONPATH": str(Path(cmvmed.__file__).parents[1])}
    for line in commands(task):
        done = subprocess.run([*start, *line], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (line, done.stderr)
        assert "Traceback" not in done.stderr
    check_results(task, truth)
    done = subprocess.run([*start, "train"], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
