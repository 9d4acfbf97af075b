"""Workers of a killed process end, whatever they were doing, and close the output that they had from it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

psutil = pytest.importorskip("psutil", reason="lists the processes; comes with cmvmed[dask]")

ROOT = Path(__file__).parents[1]
SECONDS = 15.0  # a worker that is still importing modules watches its parent when it has them
PARENT = """
import os, time
from joblib import Parallel, delayed
from cmvmed._parent_process import exit_with_parent

def work(seconds):
    time.sleep(seconds)

watched = dict(initializer=exit_with_parent, initargs=(os.getpid(),)) if {watched} else {{}}
parallel = Parallel(3, batch_size=1, **watched)
parallel(delayed(work)(0.0) for _ in range(3))
print("ready", flush=True)
parallel(delayed(work)({seconds}) for _ in range({n_tasks}))
time.sleep(60.0)
"""


def start(code):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def kill_and_wait(process, seconds):
    """Kill a process; return which of its children live on and whether its output is still open after some seconds."""
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    os.kill(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=seconds)
        is_open = False
    except subprocess.TimeoutExpired:
        is_open = True
    deadline = time.monotonic() + 3.0  # a process that has closed its output may need a moment to end
    while any(map(is_running, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [child for child in children if is_running(child)], is_open


def is_running(process):
    """Whether a process has not ended; one that has may be listed until the process that adopted it asks for its end."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("n_tasks", [0, 1, 3], ids=["idle", "one of three busy", "all busy"])
def test_workers_end_with_their_killed_parent(n_tasks):
    process = start(PARENT.format(watched=True, seconds=600.0, n_tasks=n_tasks))
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.2)
    assert kill_and_wait(process, 5.0) == ([], False)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.slow
def test_without_the_watch_workers_live_on():
    process = start(PARENT.format(watched=False, seconds=600.0, n_tasks=3))
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.2)
    alive, is_open = kill_and_wait(process, 3.0)
    for child in alive:
        child.kill()
    process.communicate()
    assert alive
    assert is_open


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("delay", [0.0, 0.5, 1.0, 2.0, 4.0])
def test_no_worker_of_a_killed_reproduction_lives_on(tmp_path, delay):
    arguments = ["table1", "--full", "--datasets", "gauss", "--jobs", "2", "--results", str(tmp_path / "r.sqlite")]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT
    )
    while process.poll() is None and len(psutil.Process(process.pid).children(recursive=True)) < 2:
        time.sleep(0.01)
    time.sleep(delay)  # from importing modules to fitting
    assert process.poll() is None
    assert kill_and_wait(process, SECONDS) == ([], False)
