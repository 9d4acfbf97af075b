"""Killed at any moment and started again, or run twice at once, ``cmvmed reproduce`` ends with the same table."""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from cmvmed.experiments.store import ResultStore

pytestmark = pytest.mark.slow

METHODS = ["majority class", "logistic regression, labels only", "MED, each view", "LabelSpreading knn", "MV-MED"]
WORK = ["table1", "--datasets", "gauss", "--datasets", "digits-parity", "--splits", "4"]
WORK += [argument for method in METHODS for argument in ("--methods", method)]
N_ROWS = 2 * 4 * (len(METHODS) + 1)  # two views


def start(results, *, jobs=1, log=subprocess.DEVNULL):
    command = [sys.executable, "-m", "cmvmed", "reproduce", *WORK, "--jobs", str(jobs), "--results", str(results)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)


def table(path):
    """What must not depend on interruptions: everything but times and memory."""
    with ResultStore(path, create=False) as store:
        rows = store.rows()
    return [replace(row, fit_seconds=None, predict_seconds=None, peak_mib=None, finished="") for row in rows]


def check_same(rows, reference):
    assert len(reference) == N_ROWS
    assert {row.status for row in rows} == {"done"}
    assert rows == reference


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("reference") / "results.sqlite"
    began = time.monotonic()
    assert start(path).wait(600) == 0
    return table(path), time.monotonic() - began


def test_killed_at_random_moments(uninterrupted, tmp_path):
    reference, seconds = uninterrupted
    path = tmp_path / "results.sqlite"
    rng = np.random.default_rng()
    counts = []
    for attempt in range(200):
        process = start(path, jobs=1 + attempt % 3 // 2)
        try:
            code = process.wait(float(rng.uniform(0.15, 0.6) * seconds))
        except subprocess.TimeoutExpired:
            process.kill()  # SIGKILL: nothing is tidied up
            process.wait()
            counts.append(len(table(path)) if path.exists() and path.stat().st_size else 0)
            continue
        assert code == 0
        break
    assert counts == sorted(counts)  # no row is ever lost
    assert len(set(counts)) > 1, "never killed at work; the moments were badly chosen"
    check_same(table(path), reference)
    with pytest.raises(AssertionError):
        check_same(table(path)[1:], reference)


def test_killed_again_and_again_while_rows_are_written(uninterrupted, tmp_path):
    """The kill comes as soon as a new row is seen, so it falls close to a transaction."""
    reference, _ = uninterrupted
    path = tmp_path / "results.sqlite"
    for _ in range(12):
        process, before = start(path), n_rows(path)
        while process.poll() is None and n_rows(path) == before:
            time.sleep(0.001)
        process.kill()
        process.wait()
    assert n_rows(path) >= 12
    assert start(path).wait(600) == 0
    check_same(table(path), reference)


def n_rows(path):
    if not path.exists() or not path.stat().st_size:
        return 0
    with ResultStore(path) as store:
        return len(store.done_keys())


def test_two_at_once_share_the_work(uninterrupted, tmp_path):
    reference, _ = uninterrupted
    path = tmp_path / "results.sqlite"
    processes = [start(path), start(path)]
    assert [process.wait(600) for process in processes] == [0, 0]
    check_same(table(path), reference)


def test_a_foreign_file_is_left_alone(tmp_path):
    path = tmp_path / "results.sqlite"
    path.write_bytes(b"not a database " * 500)
    process = start(path, log=subprocess.PIPE)
    message = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 1
    assert len(message.strip().splitlines()) == 1
    assert path.read_bytes() == b"not a database " * 500
