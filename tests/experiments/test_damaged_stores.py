"""Damaged, crafted and older files of results, and full disks: one clear message, or the rows as they were written."""

import json
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from click.testing import CliRunner

from cmvmed._sqlite_files import row_checksum
from experiments.commands import main
from experiments.result_rows import COLUMNS, to_record
from experiments.store import _CREATE, APPLICATION_ID, SCHEMA_VERSION, ResultStore, ResultStoreError
from tests.experiments.test_store import ROW, digest

ROWS = [replace(ROW, split=split, accuracy=split / 61) for split in range(40)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "results.sqlite"
    with ResultStore(path) as store:
        for row in ROWS:
            store.add(row)
    return path


def read(path):
    with ResultStore(path, read_only=True) as store:
        return store.rows(), store.done_keys()


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)


def check_flips(path, count, seed):
    """Read the file with one or three bits changed; the rows are those written, or the error names the file."""
    content, rng, n_errors = path.read_bytes(), random.Random(seed), 0
    truth = ROWS, {row.key for row in ROWS}
    damaged = path.with_name("damaged.sqlite")
    for _ in range(count):
        changed = bytearray(content)
        for _ in range(rng.choice([1, 3])):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        damaged.write_bytes(changed)
        found = outcome(damaged)
        assert found == truth or (isinstance(found, ResultStoreError) and str(damaged) in str(found))
        n_errors += found != truth
    return n_errors


def outcome(path):
    try:
        return read(path)
    except ResultStoreError as error:
        return error


def test_changed_bits_are_found_or_harmless(path):
    assert check_flips(path, 150, seed=0) > 75


@pytest.mark.slow
def test_many_changed_bits_are_found_or_harmless(path):
    assert check_flips(path, 3000, seed=1) > 1500


def test_without_checksums_changed_bits_would_not_be_found(path, monkeypatch):
    monkeypatch.setattr("experiments.result_rows.row_checksum", lambda values: None)
    monkeypatch.setattr("experiments.store.CHECKSUM", "NULL")
    with pytest.raises(AssertionError):
        check_flips(path, 150, seed=0)


def test_a_changed_value_is_named_with_its_row(path):
    edit(path, "UPDATE results SET accuracy = 0.5 WHERE split = 7")
    for read_only in (False, True):
        with pytest.raises(ResultStoreError, match=r"row 8 \(spec 'table1', dataset 'webkb', .*split 7") as caught:
            ResultStore(path, read_only=read_only)
        assert "do not have its checksum" in str(caught.value)
        assert "compute its rows again" in str(caught.value)


def make_database(path, *statements, version=SCHEMA_VERSION):
    path.unlink()
    edit(path, *statements, f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {version}")


def insert(path, **changes):
    """Write a record with a right checksum, past the checks of the store."""
    record = {name: value for name, value in to_record(ROW).items() if name in COLUMNS} | changes
    record["checksum"] = row_checksum(record.values())
    marks = ", ".join(f":{name}" for name in record)
    edit(path, (f"INSERT INTO results ({', '.join(record)}) VALUES ({marks})", {"spec": "crafted"} | record))


SCHEMAS = {
    "no table": [],
    "another table": ["CREATE TABLE rows (a)"],
    "missing columns": ["CREATE TABLE results (spec TEXT)"],
    "a view": ["CREATE TABLE t (a)", "CREATE VIEW results AS SELECT * FROM t"],
    "an endless view": [
        "CREATE VIEW results AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS spec FROM n"
    ],
    "a trigger": [
        _CREATE[SCHEMA_VERSION],
        "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END",
    ],
    "a check that calls a function": [
        _CREATE[SCHEMA_VERSION].replace("accuracy REAL", "accuracy REAL CHECK (random())")
    ],
    "the columns of another version": [_CREATE[1]],
}


@pytest.mark.parametrize("statements", SCHEMAS.values(), ids=SCHEMAS)
def test_crafted_schemas_are_refused(path, statements):
    make_database(path, *statements)
    before = digest(path)
    for read_only in (False, True):
        with pytest.raises(ResultStoreError, match="its tables are not those of this version"):
            ResultStore(path, read_only=read_only)
    assert digest(path) == before


VALUES = {
    "a text as number": ({"accuracy": "high"}, "accuracy is 'high', not a number"),
    "bytes as text": ({"method": b"\xff\xfe"}, "method is b'.*not a text"),
    "negative": ({"split": -1}, "split is -1, which is not possible"),
    "infinite": ({"fit_seconds": float("inf")}, "fit_seconds is inf"),
    "more than all": ({"accuracy": 1.5}, "accuracy is 1.5, more than 1"),
    "an unknown status": ({"status": "perhaps"}, "neither 'done' nor 'failed'"),
    "no accuracy": ({"accuracy": None}, "no accuracy"),
    "no JSON": ({"settings": "{"}, "settings is '{'"),
    "deep JSON": ({"settings": "[" * 100_000}, "settings is "),
    "a long number": ({"reliability": f"[[{'9' * 5000}, 1, 1]]"}, "reliability is "),
    "another JSON": ({"versions": "[1]"}, "versions is "),
    "stages without number": ({"annealing": '[{"consensus": 0.5}]'}, "annealing is "),
    "bins of no rows": ({"reliability": "[[0, 0.5, 0.5]]"}, "reliability is "),
    "a huge text": ({"error": "x" * 11_000_000}, "row 1 cannot be read"),
}


@pytest.mark.parametrize(("changes", "message"), VALUES.values(), ids=VALUES)
def test_crafted_values_are_refused_with_file_and_row(path, changes, message):
    insert(path, **{"spec": "a crafted row"} | changes)
    with pytest.raises(ResultStoreError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "row 1 " in str(caught.value)
    shown = CliRunner().invoke(main, ["report", "--results", str(path)])
    assert shown.exit_code == 1
    assert len(shown.output.splitlines()) == 1
    assert len(shown.output) < 1000


def test_a_file_that_is_too_large_is_not_read(path, monkeypatch):
    monkeypatch.setattr("cmvmed._sqlite_files.MAX_FILE_BYTES", 1000)
    with pytest.raises(ResultStoreError, match=r"it has [\d,]+ bytes, at most 1,000"):
        read(path)


def without_checksums(path):
    """The file as the version before wrote it."""
    records = [[value for name, value in to_record(row).items() if name in COLUMNS] for row in ROWS]
    marks = ", ".join("?" * len(COLUMNS))
    inserts = [(f"INSERT INTO results VALUES ({marks})", record) for record in records]
    make_database(path, _CREATE[1], *inserts, version=1)


def test_a_file_without_checksums_is_read_with_a_note(path):
    without_checksums(path)
    before = digest(path)
    with ResultStore(path, read_only=True) as store:
        assert store.rows() == ROWS
        assert "cannot be found" in store.note
    assert digest(path) == before
    shown = CliRunner().invoke(main, ["report", "--results", str(path), "--output", str(path) + ".html"])
    assert shown.exit_code == 0
    assert "without checksums" in shown.stderr


def test_a_file_without_checksums_gets_some_when_it_is_written_to(path):
    without_checksums(path)
    with ResultStore(path) as store:
        assert "were given some" in store.note
        assert store.rows() == ROWS
        store.add(replace(ROW, split=99))
    with ResultStore(path) as store:
        assert store.note == ""
        assert len(store.rows()) == len(ROWS) + 1
    assert check_flips_found(path)


def check_flips_found(path):
    edit(path, "UPDATE results SET n_test = 1 WHERE split = 0")
    with pytest.raises(ResultStoreError, match="checksum"):
        read(path)
    return True


def test_values_of_a_file_without_checksums_are_checked_too(path):
    without_checksums(path)
    edit(path, "UPDATE results SET accuracy = 7.0 WHERE split = 3")
    with pytest.raises(ResultStoreError, match=r"row 4 .*more than 1"):
        ResultStore(path)


def test_numbers_are_read_as_the_checksum_has_them(path):
    odd = replace(ROW, split=77, f1=float("nan"), auc=1, log_loss=-0.0, fit_seconds=5e-324, error="ä\x00\U0001f600")
    with ResultStore(path) as store:
        store.add(odd)
        found = {row.split: row for row in store.rows()}[77]
    assert (found.f1, found.auc, found.log_loss, found.fit_seconds, found.error) == (None, 1.0, 0.0, 5e-324, odd.error)
    assert json.dumps(found.log_loss) == "0.0"


WRITER = """
import resource, signal, sys
from dataclasses import replace
from tests.experiments.test_store import ROW
from experiments.store import ResultStore, ResultStoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with ResultStore(sys.argv[1]) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    for split in range(100, 2000):
        try:
            store.add(replace(ROW, split=split, error="x" * 1000))
        except ResultStoreError as error:
            print(split, error)
            break
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
def test_a_file_that_cannot_grow_is_a_clear_message_and_keeps_its_rows(path):
    limit = 200_000
    done = subprocess.run([sys.executable, "-c", WRITER, str(path), str(limit)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first_lost, message = done.stdout.split(" ", 1)
    assert f"A row cannot be written to {path}" in message
    assert "free some space" in message
    rows, _ = read(path)
    assert [row.split for row in rows] == [*range(40), *range(100, int(first_lost))]
    assert int(first_lost) > 101


@pytest.mark.parametrize(("code", "advice"), [(13, "The disk is full"), (10, "disk or the network"), (5, "locked")])
def test_errors_of_the_disk_say_what_to_do(path, code, advice):
    class Failing:
        def execute(self, *arguments):
            error = sqlite3.OperationalError("it failed")
            error.sqlite_errorcode = code
            raise error

        def close(self):
            pass

    with ResultStore(path) as store:
        inner, store._connection = store._connection, Failing()
        with pytest.raises(ResultStoreError, match=advice):
            store.add(ROW)
        with pytest.raises(ResultStoreError, match=advice):
            store.rows()
        store._connection = inner
