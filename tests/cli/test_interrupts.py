"""Ctrl-C and SIGTERM during the longest computation of a fit: the command ends soon, and leaves no files."""

import os
import signal
import subprocess
import sys
import time

import pytest

from cmvmed.cli.main import Terminated, main

pytest.importorskip("pandas", reason="projects need cmvmed[workbench]")

from tests.workbench.jobs import write_windows

PROJECT = """
[data]
path = "windows.csv"
id = "window_id"
labels = "stroke"
unlabeled = ["unknown"]
ignore = ["timestamp", "subject"]

[views.accelerometer]
columns = "acc_*"
[views.gyroscope]
columns = "gyr_*"

[model]
approximation = "exact"
"""
FITTING = """
import signal
import sys
import numpy as np
from cmvmed.cli.main import main

inner = np.linalg.eigh
def eigh(K):
    print(len(K), file=sys.stderr, flush=True)
    found = inner(K)
    print("computed", file=sys.stderr, flush=True)
    return found
np.linalg.eigh = eigh
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have set it to be ignored
sys.argv[1:] = ["train", "--project", sys.argv[1]]
main()
"""


@pytest.fixture
def project(tmp_path):
    """Two views of 3000 rows, 60 of them labeled."""
    write_windows(tmp_path, n=3000, share_labeled=0.02)
    (tmp_path / "cmvmed.toml").write_text(PROJECT)
    return tmp_path / "cmvmed.toml"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals of POSIX")
@pytest.mark.parametrize(("number", "code", "word"), [("SIGINT", 130, b"Interrupted"), ("SIGTERM", 143, b"Terminated")])
def test_a_signal_ends_the_command_before_the_computation_that_it_interrupts(project, number, code, word):
    before = sorted(os.listdir(project.parent))
    process = subprocess.Popen(
        [sys.executable, "-c", FITTING, str(project)], stderr=subprocess.PIPE, cwd=project.parent
    )
    while (line := process.stderr.readline()) and not (line.strip().isdigit() and int(line) > 2900):
        pass
    assert line  # within the eigendecomposition of a view
    time.sleep(0.1)
    process.send_signal(getattr(signal, number))
    said = process.communicate(timeout=120)[1]
    assert process.returncode == code
    assert word in said
    assert b"computed" not in said
    assert sorted(os.listdir(project.parent)) == before


def test_sigterm_is_handled_during_a_command_only(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)

    def terminated(*arguments):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("cmvmed.cli.demo_command.check_extras", terminated)
    with pytest.raises(SystemExit) as caught:
        main(["demo"])
    assert caught.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
    assert issubclass(Terminated, KeyboardInterrupt)  # so that what cleans up after Ctrl-C does so here
