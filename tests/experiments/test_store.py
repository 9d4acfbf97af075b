"""The file of results: rows are read as written, none is lost or duplicated, other files are not changed."""

import hashlib
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from experiments.result_rows import ResultRow
from experiments.store import SCHEMA_VERSION, ResultStore, ResultStoreError

ROW = ResultRow(
    spec="table1",
    dataset="webkb",
    n_labeled=15,
    split=3,
    method="MED, view page",
    protocol="tuned",
    status="done",
    settings={"chosen": {"C": 1.0, "kernel": "rbf", "weights": [0.5, None]}},
    versions={"numpy": "2.0.1"},
    accuracy=0.1 + 0.2,  # not exactly 0.3
    n_test=551,
    reliability=((10, 0.625, 0.5), (3, 0.97, 1.0)),
    annealing=({"stage": 1, "consensus": 0.5, "page": 0.4},),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_rows_are_read_as_written(path):
    with ResultStore(path) as store:
        store.add(ROW)
        assert store.rows() == [ROW]
    with ResultStore(path, read_only=True) as store:
        (row,) = store.rows()
    assert row == ROW
    assert row != replace(ROW, accuracy=0.3)


def test_rows_are_sorted_by_key_and_chosen_by_spec(path):
    rows = [replace(ROW, split=split, spec=spec) for spec in ("b", "a") for split in (10, 2, 0)]
    with ResultStore(path) as store:
        for row in rows:
            store.add(row)
        assert store.rows() == sorted(rows, key=lambda row: row.key)
        assert {row.spec for row in store.rows("a")} == {"a"}
        assert store.done_keys("a") == {row.key for row in rows if row.spec == "a"}


def test_failed_rows_are_replaced_and_finished_ones_are_not(path):
    failed = replace(ROW, status="failed", error="ValueError: no", accuracy=None)
    with ResultStore(path) as store:
        store.add(failed)
        assert (store.failed_keys(), store.done_keys()) == ({ROW.key}, set())
        store.add(ROW)
        assert (store.failed_keys(), store.done_keys()) == (set(), {ROW.key})
        store.add(replace(ROW, accuracy=0.9))
        store.add(failed)
        assert store.rows() == [ROW]


def test_numbers_that_are_none_or_not_finite(path):
    with ResultStore(path) as store:
        with pytest.raises(ValueError, match="JSON"):
            store.add(replace(ROW, settings={"C": float("nan")}))
        assert store.rows() == []


def test_concurrent_writers(path):
    def write(number):
        with ResultStore(path) as store:
            for split in range(20):
                store.add(replace(ROW, split=split, error=str(number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    with ResultStore(path) as store:
        assert [row.split for row in store.rows()] == list(range(20))


def test_reading_during_concurrent_writes_gives_complete_rows(path):
    def write_and_read(split):
        with ResultStore(path) as store:
            store.add(replace(ROW, split=split))
        with ResultStore(path, read_only=True) as store:
            return {row.split for row in store.rows()}

    with ThreadPoolExecutor(3) as pool:
        reads = list(pool.map(write_and_read, range(40)))
    assert all(split in read for split, read in enumerate(reads))
    assert set().union(*reads) == set(range(40))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_reading_changes_no_file(path):
    with ResultStore(path) as store:
        store.add(ROW)
    before, changed = digest(path), path.parent.stat().st_mtime_ns
    with ResultStore(path, read_only=True) as store:
        assert names(path.parent) == [path.name]
        assert store.rows() == [ROW]
        with pytest.raises(ResultStoreError, match=r"cannot be written.*read-only"):
            store.add(replace(ROW, split=4))
    assert (names(path.parent), digest(path), path.parent.stat().st_mtime_ns) == ([path.name], before, changed)


def test_reading_with_plain_sqlite_creates_files(path):
    ResultStore(path).close()
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("SELECT count(*) FROM results").fetchone()
    assert names(path.parent) != [path.name]


def test_reader_has_the_rows_at_the_time_of_opening(path):
    with ResultStore(path) as writer:
        writer.add(ROW)
        with ResultStore(path, read_only=True) as reader:
            writer.add(replace(ROW, split=4))
            assert reader.rows() == [ROW]
            assert len(writer.rows()) == 2


def test_reading_from_a_read_only_folder(path):
    with ResultStore(path) as store:
        store.add(ROW)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        with ResultStore(path, read_only=True) as store:
            assert store.rows() == [ROW]
    finally:
        path.parent.chmod(0o755)


def other_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (title TEXT)")
    connection.close()


def other_version(path):
    ResultStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()


def no_database(path):
    path.write_text("accuracy,split\n0.9,1\n" * 100)


def damaged(path):
    with ResultStore(path) as store:
        for split in range(50):
            store.add(replace(ROW, split=split))
    content = bytearray(path.read_bytes())
    content[5000:15000] = os.urandom(10000)
    path.write_bytes(content)


def cut_short(path):
    with ResultStore(path) as store:
        for split in range(50):
            store.add(replace(ROW, split=split))
    path.write_bytes(path.read_bytes()[:6000])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (other_database, "database of another application"),
        (other_version, "another version of cmvmed"),
        (no_database, "not a file of results, or is damaged"),
        (damaged, "damaged"),
        (cut_short, "damaged"),
    ],
)
def test_other_files_are_rejected_and_not_changed(path, make, message):
    make(path)
    before = digest(path)
    for read_only in (False, True):
        with pytest.raises(ResultStoreError, match=message) as caught:
            ResultStore(path, read_only=read_only)
        assert str(path) in str(caught.value)
    assert digest(path) == before
    assert names(path.parent) == [path.name]


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ResultStoreError, match="python -m experiments"):
        ResultStore(tmp_path / "none.sqlite", read_only=True)
    with pytest.raises(ResultStoreError, match="does not exist"):
        ResultStore(tmp_path / "no" / "results.sqlite")
    with pytest.raises(ResultStoreError, match="is a folder"):
        ResultStore(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    with pytest.raises(ResultStoreError, match="There are no results in"):
        ResultStore(path, read_only=True)
    with ResultStore(path) as store:
        store.add(ROW)
    with ResultStore(path, read_only=True) as store:
        assert store.rows() == [ROW]
