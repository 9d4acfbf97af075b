"""Campaigns of faults about files and processes: they pass on the library, and fail on one that is broken on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import ANY

import numpy as np
import pytest

import cmvmed
from benchmarks.faults import damaged_files, dask_workers, full_disks, killed_commands, kills, mutated_models, threads
from benchmarks.faults.campaign import CLEAR_ERROR, HELD, NOT_DETECTABLE, Fault, campaign, run_case
from benchmarks.faults.formats import FORMATS
from tests.benchmarks.test_faults import found_by

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="campaigns use /proc and resource limits"),
    pytest.mark.filterwarnings("ignore:The class of .* depends on the class shares"),
]


# Damaged files


class LocalReader:
    """Reads in this process, so that the library can be broken."""

    read = staticmethod(damaged_files.read_content)


@pytest.fixture
def local_reader(monkeypatch):
    monkeypatch.setattr(damaged_files, "reader", LocalReader)
    damaged_files.whole_content.cache_clear()
    yield
    damaged_files.whole_content.cache_clear()


STORES = ("result store", "label store")


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in STORES])
def test_damaged_files_of_each_format(name, local_reader):
    cases = [
        damaged_files.Case(name, damage, 0.5, seed=1) for damage in ("flip", "truncate", "zeros", "remove", "empty")
    ]
    outcomes = [damaged_files.check(case) for case in cases]
    assert outcomes[-1] == CLEAR_ERROR or FORMATS[name].empty_is_new
    assert NOT_DETECTABLE not in outcomes or not FORMATS[name].protected


def test_a_reader_without_its_checksum_is_found(monkeypatch, local_reader):
    cases = [damaged_files.Case("model file", "flip", place, seed=3) for place in np.linspace(0.3, 0.9, 25)]
    assert {damaged_files.check(case) for case in cases} <= {CLEAR_ERROR, HELD}
    monkeypatch.setattr(zipfile.ZipExtFile, "_update_crc", lambda self, data: None)
    monkeypatch.setattr("cmvmed.model.file.digest", lambda document, arrays: ANY)
    found = [run_case(campaign("damaged_files"), case) for case in cases]
    assert any("values changed silently" in str(one) for one in found)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(KeyError("x"), "csv: KeyError"), (ValueError("line 3 is bad"), "csv: ValueError does not name the file")],
)
def test_raw_errors_of_readers_are_found(monkeypatch, local_reader, error, kind):
    damaged_files.whole_content("csv")

    def read(path):
        raise error

    monkeypatch.setitem(FORMATS, "csv", replace(FORMATS["csv"], read=read))
    with pytest.raises(Fault, match=kind):
        damaged_files.check(damaged_files.Case())


@pytest.mark.slow
def test_a_crash_of_the_reading_process_is_found(tmp_path):
    reader = damaged_files.Reader()
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    assert "values" in reader.read("csv", tmp_path / "rows.csv")
    reader._process.kill()
    with pytest.raises(Fault, match="died"):
        reader.read("csv", tmp_path / "rows.csv")
    assert "values" in reader.read("csv", tmp_path / "rows.csv")
    reader._end()


@pytest.mark.parametrize("damage", sorted(set(damaged_files.DAMAGES)))
def test_every_damage_changes_the_bytes(damage):
    content = bytes(range(256)) * 8
    changed = damaged_files.damaged(content, damage, 0.4, seed=0)
    assert changed != content
    assert changed == damaged_files.damaged(content, damage, 0.4, seed=0)
    assert damaged_files.damaged(b"", damage, 0.4, seed=0) == b""


# Mutated models


def test_mutated_models_run_no_code():
    assert found_by("mutated_models", range(15)) == []


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (lambda path: os.system("true"), "loading did os.system"),
        (lambda path: __import__("this_module_is_not_there"), "loading did import|ModuleNotFoundError"),
        (lambda path: open(f"{path}.written", "w").close(), "loading did open for writing"),
    ],
)
def test_a_loader_that_acts_is_found(monkeypatch, act, kind):
    case = mutated_models.Case(seed=1)
    mutated_models.check(case)

    def load(path):
        act(path)
        raise ValueError(f"{path} is damaged")

    monkeypatch.setattr(cmvmed, "load", load)
    with pytest.raises(Fault, match=kind):
        mutated_models.check(case)


# Threads and disks


def test_predictions_in_threads():
    assert threads.check(threads.Case()) == HELD
    assert threads.check(threads.Case(kind="fit in threads", model="MVMED")) == HELD


@pytest.mark.slow
def test_predictions_in_processes():
    assert found_by("threads", range(len(threads.KINDS))) == []


def test_a_model_that_threads_disturb_is_found(monkeypatch):
    honest = threads.predict

    def disturbed(model, views):
        return honest(model, views) + 1e-15 * (threading.current_thread() is not threading.main_thread())

    monkeypatch.setattr(threads, "predict", disturbed)
    with pytest.raises(Fault, match="results differ"):
        threads.check(threads.Case())


OUTPUTS = [name for name in full_disks.OUTPUTS if name not in STORES]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("replaces", [False, True])
def test_full_disks(output, replaces):
    assert full_disks.check(full_disks.Case(output, "file size", 0.5, replaces)) == CLEAR_ERROR
    assert full_disks.check(full_disks.Case(output, "file size", 1.2, replaces)) == HELD


@contextmanager
def without_care(path, *, overwrite):
    with open(path, "wb") as file:
        yield file


@pytest.mark.parametrize(("store", "kind"), [(without_care, "does not name the file|half-written")])
def test_a_half_written_file_is_found(monkeypatch, store, kind):
    full_disks.whole_size("model file")
    monkeypatch.setattr("cmvmed.model.file.new_file", store)
    with pytest.raises(Fault, match=kind):
        full_disks.check(full_disks.Case("model file", "file size", 0.5))


# Dask workers and kills


@pytest.mark.slow
def test_dask_workers():
    assert found_by("dask_workers", range(2)) == []


def test_a_fit_that_lost_blocks_is_found(monkeypatch):
    monkeypatch.setattr(dask_workers, "reference", lambda: (np.zeros((3, 2)), 0.0))
    monkeypatch.setattr(dask_workers, "restore", lambda: None)
    monkeypatch.setitem(dask_workers.EVENTS, "killed", (lambda: None, lambda: None))
    monkeypatch.setattr(dask_workers, "_fit", lambda X: np.zeros((3, 2)))
    assert dask_workers.check(dask_workers.Case()) == HELD
    monkeypatch.setattr(dask_workers, "_fit", lambda X: np.full((3, 2), 1e-3))
    with pytest.raises(Fault, match="killed: predictions differ"):
        dask_workers.check(dask_workers.Case())


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "streamed fit", "label"])
def test_kills(command):
    assert kills.check(kills.Case(command, 0.5)) == HELD


FORGETFUL = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
time.sleep(60)
"""


def test_a_process_that_is_left_is_found_and_ended():
    process = subprocess.Popen([sys.executable, "-c", FORGETFUL], start_new_session=True)
    while len(kills.session_processes(process.pid)) < 2:
        assert process.poll() is None
    kills.end_by_kill(process)
    with pytest.raises(Fault, match=r"processes are left after a kill: .*time.sleep\(60\)"):
        kills.check_no_orphans(process.pid, seconds=0.2)
    kills.check_no_orphans(process.pid)


SIMPLE = killed_commands.Command(
    lambda folder: (folder / "model.cmvmed").write_bytes(b"half"),
    lambda folder: ["-c", "import time; time.sleep(0.2)"],
    lambda folder: "results",
    killed_commands._check_complete,
)


def test_half_a_file_and_other_results_are_found(monkeypatch):
    kills.reference.cache_clear()
    monkeypatch.setitem(kills.COMMANDS, "train", SIMPLE)
    found = run_case(campaign("kills"), kills.Case())
    assert isinstance(found, Fault)
    assert "not a cmvmed model file" in str(found)
    results = iter(["one", "another"])
    monkeypatch.setitem(
        kills.COMMANDS, "train", replace(SIMPLE, prepare=lambda _: None, results=lambda _: next(results))
    )
    kills.reference.cache_clear()
    with pytest.raises(Fault, match="other results after a kill: 'another' instead of 'one'"):
        kills.check(kills.Case())
    kills.reference.cache_clear()


def test_a_lost_label_is_found(tmp_path):
    from cmvmed.workbench.label_store import LabelStore

    with LabelStore(tmp_path / "cmvmed.labels.sqlite") as store:
        store.record("w000", "label", "crawl", chosen_by="random", window="w", seen=None)
    killed_commands._check_labels(tmp_path, {"w000": "crawl"})
    with pytest.raises(Fault, match="a confirmed label is lost"):
        killed_commands._check_labels(tmp_path, {"w000": "crawl", "w001": "back"})
