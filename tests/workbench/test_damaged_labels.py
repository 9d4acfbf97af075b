"""Damaged and crafted files of labels, and full disks: one clear message, or the labels as they were recorded."""

import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from cmvmed.workbench.label_store import SCHEMA_VERSION, LabelStore, StoreError
from tests.workbench.test_label_store import record

N_EVENTS = 60


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "labels.sqlite"
    with LabelStore(path) as store:
        store.add_classes(["walk", "run", "not used"])
        for i in range(N_EVENTS):
            record(store, f"row {i}", ("walk", "run")[i % 2])
    return path


def read(path):
    with LabelStore(path) as store:
        return store.events(), store.classes


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def outcome(path):
    try:
        return read(path)
    except StoreError as error:
        return error


def check_flips(path, count, seed):
    """Read the file with one changed bit; all labels are those recorded, or the error names the file."""
    content, truth, rng, n_errors = path.read_bytes(), read(path), random.Random(seed), 0
    damaged = path.with_name("damaged.sqlite")
    for _ in range(count):
        changed = bytearray(content)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        damaged.write_bytes(changed)
        for ending in ("-wal", "-shm"):
            damaged.with_name(f"{damaged.name}{ending}").unlink(missing_ok=True)
        found = outcome(damaged)
        assert found == truth or (isinstance(found, StoreError) and str(damaged) in str(found))
        n_errors += found != truth
    return n_errors


def test_changed_bits_are_found_or_harmless(path):
    assert check_flips(path, 100, seed=0) > 15


@pytest.mark.slow
def test_many_changed_bits_are_found_or_harmless(path):
    assert check_flips(path, 3000, seed=1) > 450


DAMAGES = {
    "a label": ("UPDATE events SET label = 'run' WHERE revision = 1", r"event 1, of row 'row 0', .*checksum"),
    "a row": ("UPDATE events SET item = 'row 9' WHERE revision = 1", r"event 1, of row 'row 9', .*checksum"),
    "a lost event": ("DELETE FROM events WHERE revision = 5", "event 5 is missing"),
    "a lost last event": (f"DELETE FROM events WHERE revision = {N_EVENTS}", "the last event is 59"),
    "a class": ("UPDATE classes SET name = 'hop' WHERE name = 'not used'", "class 'hop', number 3, .*checksum"),
    "a lost class": ("DELETE FROM classes WHERE name = 'run'", "class 'run' of event 2 is missing"),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END", "its tables are not those"),
    "a view": ("CREATE VIEW v AS SELECT 1", "its tables are not those"),
    "no table": ("DROP TABLE classes", "its tables are not those"),
}


@pytest.mark.parametrize(("statement", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named_with_file_and_event(path, statement, message):
    edit(path, statement)
    with pytest.raises(StoreError, match=message) as caught:
        LabelStore(path)
    assert str(path) in str(caught.value)
    assert "Restore a copy" in str(caught.value)


def test_damage_during_a_session_is_found_when_the_label_is_read(path):
    with LabelStore(path) as store:
        edit(path, "UPDATE events SET label = 'run' WHERE revision = 1")
        with pytest.raises(StoreError, match="event 1"):
            store.current()


def test_a_file_of_another_application_is_not_changed(tmp_path):
    path = tmp_path / "other.sqlite"
    edit(path, "CREATE TABLE t (a)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not one of labels"):
        LabelStore(path)
    assert path.read_bytes() == before


def test_files_are_opened_while_others_write(path):
    errors = []

    def write(number):
        try:
            with LabelStore(path) as store:
                for i in range(5):
                    record(store, f"new {number} {i}", "walk", window=f"w{number}")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(read(path)[0]) == N_EVENTS + 20


WRITER = """
import resource, signal, sys
from pathlib import Path
from cmvmed.workbench.label_store import LabelStore, StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = LabelStore(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
for i in range(5000):
    try:
        store.record(f"{i}" + "x" * 200, "label", "a", chosen_by="random", window="w", seen=None)
    except StoreError as error:
        print(i, error)
        break
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_a_file_that_cannot_grow_is_a_clear_message_and_keeps_its_labels(path):
    done = subprocess.run([sys.executable, "-c", WRITER, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, message = done.stdout.split(" ", 1)
    assert f"{path} cannot be read or written" in message
    assert "free some space" in message
    assert int(count) > 5
    assert len(read(path)[0]) == N_EVENTS + int(count)


def test_the_version_of_the_tests_is_that_of_the_package(path, tmp_path):
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    edit(copy, f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
    with pytest.raises(StoreError, match="its tables are not those"):
        LabelStore(copy)
