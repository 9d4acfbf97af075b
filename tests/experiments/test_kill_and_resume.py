"""Interrupted and continued, or run in two processes, ``python -m experiments`` gives the same table."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.store import ResultStore

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
METHODS = ["SVC, labels only", "logistic regression, labels only", "MED, each view", "LabelSpreading knn", "MV-MED"]
WORK = ["table1", "--datasets", "gauss", "--datasets", "digits-parity", "--splits", "4", "--protocol", "defaults"]
WORK += [argument for method in METHODS for argument in ("--methods", method)]
N_ROWS = 2 * 4 * (len(METHODS) + 1)  # two views


def start(results, *, jobs=1, log=subprocess.DEVNULL):
    command = [sys.executable, "-m", "experiments", *WORK, "--jobs", str(jobs), "--results", str(results)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=log)


def table(path):
    """The rows without times and memory, which differ between runs."""
    with ResultStore(path, read_only=True) as store:
        rows = store.rows()
    return [replace(row, fit_seconds=None, predict_seconds=None, peak_mib=None, finished="") for row in rows]


def check_same(rows, reference):
    assert len(reference) == N_ROWS
    assert {row.status for row in rows} == {"done"}
    assert rows == reference


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("reference") / "results.sqlite"
    assert start(path).wait(600) == 0
    return table(path)


def kill_at_random(process, path, rng):
    """Send SIGKILL, which allows no cleanup, during the start or shortly after some more rows are finished."""
    wanted = n_rows(path) + int(rng.integers(7))
    while process.poll() is None and n_rows(path) < wanted:
        time.sleep(0.001)
    time.sleep(float(rng.uniform(0.0, 0.3)))
    process.kill()
    return process.wait()


def test_killed_at_random_times(reference, tmp_path):
    path = tmp_path / "results.sqlite"
    rng = np.random.default_rng()
    counts = [0]
    while kill_at_random(start(path, jobs=1 + len(counts) % 2), path, rng) != 0:
        counts.append(n_rows(path))
    assert counts == sorted(counts)  # no row is ever lost
    assert len(counts) > 5
    check_same(table(path), reference)
    with pytest.raises(AssertionError):
        check_same(table(path)[1:], reference)


def n_rows(path):
    if not path.exists() or not path.stat().st_size:
        return 0
    with ResultStore(path) as store:
        return len(store.done_keys())


def test_two_processes_share_the_work(reference, tmp_path):
    path = tmp_path / "results.sqlite"
    processes = [start(path), start(path)]
    assert [process.wait(600) for process in processes] == [0, 0]
    check_same(table(path), reference)


def test_other_file_is_not_changed(tmp_path):
    path = tmp_path / "results.sqlite"
    path.write_bytes(b"not a database " * 500)
    process = start(path, log=subprocess.PIPE)
    message = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 1
    assert len(message.strip().splitlines()) == 1
    assert path.read_bytes() == b"not a database " * 500
