"""The file of labels: what is recorded is there after a kill, and windows cannot overwrite each other silently."""

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from cmvmed.workbench.label_store import Conflict, LabelStore, StoreError


def record(store, item, label="a", *, seen=None, window="w", action="label", chosen_by="suggest"):
    return store.record(item, action, label, chosen_by=chosen_by, window=window, seen=seen)


@pytest.fixture
def store(tmp_path):
    with LabelStore(tmp_path / "labels.sqlite") as opened:
        yield opened


def test_the_last_event_of_a_row_counts(store):
    first = record(store, "x", "a")
    record(store, "y", "b")
    record(store, "x", "c", seen=first.revision)
    assert {item: event.label for item, event in store.current().items()} == {"x": "c", "y": "b"}
    assert store.classes == ["a", "b", "c"]
    assert [event.label for event in store.events()] == ["a", "b", "c"]


def test_labels_are_there_when_the_file_is_opened_again(tmp_path):
    path = tmp_path / "labels.sqlite"
    with LabelStore(path) as store:
        record(store, "x", "ä <b>")
        store.add_classes(["z", "ä <b>"])
    with LabelStore(path) as store:
        assert store.current()["x"].label == "ä <b>"
        assert store.classes == ["ä <b>", "z"]


@pytest.mark.parametrize("seen", [None, 99])
def test_a_window_that_has_not_seen_the_last_label_gets_a_conflict(store, seen):
    event = record(store, "x", "a", window="one")
    with pytest.raises(Conflict) as caught:
        record(store, "x", "b", seen=seen, window="two")
    assert caught.value.current == event
    assert store.current()["x"].label == "a"


def test_undo_restores_what_was_before_step_by_step(store):
    first = record(store, "x", "a")
    record(store, "x", "b", seen=first.revision)
    record(store, "y", "c")
    assert (store.undo("w").item, store.current()["y"].action) == ("y", "reset")
    assert store.undo("w").label == "a"
    assert store.undo("w").action == "reset"
    assert store.undo("w") is None
    assert len(store.events()) == 6  # nothing is deleted


def test_undo_concerns_the_window_that_asks(store):
    record(store, "x", "a", window="one")
    record(store, "y", "b", window="two")
    assert store.undo("one").item == "x"
    assert store.current()["y"].label == "b"


def test_undo_does_not_undo_what_another_window_said_since(store):
    event = record(store, "x", "a", window="one")
    record(store, "x", "b", window="two", seen=event.revision)
    with pytest.raises(Conflict):
        store.undo("one")
    assert store.current()["x"].label == "b"


def test_undo_twice_does_not_remove_what_another_window_said_between(store):
    first = record(store, "x", "a", window="one")
    second = record(store, "x", "b", window="two", seen=first.revision)
    record(store, "x", "c", window="one", seen=second.revision)
    assert store.undo("one").label == "b"
    with pytest.raises(Conflict, match="Row 'x' was changed in another window"):
        store.undo("one")
    assert store.current()["x"].label == "b"
    assert store.undo("two").label == "a"
    assert store.undo("one").action == "reset"


@pytest.mark.parametrize(
    "event",
    [
        {"action": "erase"},
        {"label": None},
        {"action": "unsure"},
        {"chosen_by": "whim"},
    ],
)
def test_events_that_mean_nothing_are_refused(store, event):
    with pytest.raises(ValueError, match="actions"):
        record(store, "x", **event)
    assert store.revision == 0


def test_files_that_are_not_labels_are_refused_and_not_changed(tmp_path):
    text = tmp_path / "labels.sqlite"
    text.write_text("no database, but long enough to be one" * 50)
    before = text.read_bytes()
    with pytest.raises(StoreError, match="not a file of labels"):
        LabelStore(text)
    assert text.read_bytes() == before
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(StoreError, match="not one of labels"):
        LabelStore(other)


def test_a_file_of_a_later_release_is_refused(tmp_path):
    path = tmp_path / "labels.sqlite"
    LabelStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="later release"):
        LabelStore(path)


WRITER = """
import sys
from pathlib import Path
from cmvmed.workbench.label_store import LabelStore
store = LabelStore(Path(sys.argv[1]))
for i in range(100000):
    store.record(f"{sys.argv[2]}-{i}", "label", "a", chosen_by="random", window="w", seen=None)
    print(i, flush=True)
"""


def test_a_killed_process_loses_no_label_that_it_has_confirmed(tmp_path):
    path = tmp_path / "labels.sqlite"
    LabelStore(path).close()
    confirmed = set()
    for run in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(run)], stdout=subprocess.PIPE, text=True
        ) as process:
            for line in process.stdout:
                confirmed.add(f"{run}-{line.strip()}")
                if int(line) == 5 + 7 * run:
                    os.kill(process.pid, signal.SIGKILL)
                    break
    with LabelStore(path) as store:
        assert confirmed <= store.current().keys()
        assert len(confirmed) == 6 + 13 + 20


@pytest.mark.parametrize(
    ("reasons", "random"),
    [
        (["random"], None),
        (["import", "random"], None),
        (["suggest"], {"y"}),
        (["random", "doubtful"], None),
        (["search", "review"], {"y"}),
    ],
)
def test_the_reason_of_the_first_label_of_a_row_says_how_it_was_drawn(store, reasons, random):
    seen = None
    for reason in reasons:
        seen = record(store, "x", "a", seen=seen, chosen_by=reason).revision
    record(store, "y", "b", chosen_by="random")
    assert store.random_items == random


def test_random_rows_are_known_among_chosen_ones(store):
    record(store, "x", chosen_by="suggest")
    seen = record(store, "y", chosen_by="random").revision
    record(store, "y", "b", chosen_by="doubtful", seen=seen)
    record(store, "z", chosen_by="import")
    assert store.random_items == {"y"}
    record(store, "gone", chosen_by="random")
    store.undo("w")
    assert store.random_items == {"y"}


def test_labels_that_were_taken_back_do_not_count_as_chosen(store):
    record(store, "x", chosen_by="suggest")
    store.undo("w")
    assert store.random_items is None
