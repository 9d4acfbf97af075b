"""The server is killed while labels are sent: a label that was confirmed is on disk, and no process is left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from http.client import HTTPException
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the labeling page needs cmvmed[label]")

from cmvmed.workbench.label_store import LabelStore
from tests.labeling.driven import Server, write_table

N_ROWS = 150


def send_until_killed(server, seen, confirmed, rng, seconds):
    """Send labels one after the other, kill the server meanwhile; what it confirmed goes into ``confirmed``."""
    server.request("/api/status")
    killer = threading.Timer(seconds, server.process.kill)
    killer.start()
    count = 0
    while server.process.poll() is None:
        row, label = int(rng.integers(N_ROWS)), str(rng.choice(["crawl", "back"]))
        try:
            answer = server.request(
                "/api/labels",
                {
                    "row": row,
                    "action": "label",
                    "label": label,
                    "seen": seen.get(row),
                    "window": "w",
                    "chosen_by": "random",
                },
                timeout=20,
            )
        except (OSError, ValueError, HTTPException):
            break  # no answer, or half of one
        seen[row], confirmed[row] = answer["revision"], (answer["revision"], label)
        count += 1
    killer.join()
    server.kill()
    return count


def revisions(folder):
    """What the file has of each row: the revision of its last event, and all its labels by revision."""
    with LabelStore(folder / "cmvmed.labels.sqlite") as store:
        events = store.events()
    return {event.item: event.revision for event in events}, {
        event.revision: (event.item, event.label) for event in events
    }


def check_kills(folder, n_kills):
    write_table(folder)
    rng, confirmed, total = np.random.default_rng(0), {}, 0
    last = {}
    for _ in range(n_kills):
        server = Server(folder)
        seen = {row: last[f"w{row:03d}"] for row in range(N_ROWS) if f"w{row:03d}" in last}
        total += send_until_killed(server, seen, confirmed, rng, float(rng.uniform(0.0, 1.5)))
        last, on_disk = revisions(folder)
        lost = [row for row, (revision, label) in confirmed.items() if on_disk.get(revision) != (f"w{row:03d}", label)]
        assert lost == []
    assert total > n_kills  # the kills came while labels were written


def test_no_confirmed_label_is_lost_in_a_kill(tmp_path):
    check_kills(tmp_path, 1)


@pytest.mark.slow
def test_no_confirmed_label_is_lost_in_fifteen_kills(tmp_path):
    check_kills(tmp_path, 15)


def children(pid):
    """Processes whose parent is ``pid``, by /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("n_labels", [0, 12])  # killed while it reads, and while it fits
def test_the_learner_ends_with_a_killed_server(tmp_path, n_labels):
    write_table(tmp_path)
    server = Server(tmp_path)
    learners = children(server.process.pid)
    assert len(learners) >= 1
    for row in range(n_labels):
        assert server.try_label(row, ("crawl", "back")[row % 2]) == 200
    if n_labels:
        server.wait_until(lambda s: s["learning"] or s["fitted_labels"])
    server.kill()
    wait_for_end(learners)


def wait_for_end(processes):
    end = time.monotonic() + 30.0  # about a second on an idle machine
    while any(_is_alive(pid) for pid in processes):
        assert time.monotonic() < end
        time.sleep(0.1)


def _is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ctrl_c_ends_the_server_and_the_learner(tmp_path):
    write_table(tmp_path)
    server = Server(tmp_path)
    learners = children(server.process.pid)
    assert server.stop() in (130, -signal.SIGINT)  # by the command line, or by the signal itself
    wait_for_end(learners)
    assert os.path.getsize(tmp_path / "cmvmed.labels.sqlite") > 0
