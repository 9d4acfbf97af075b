"""Result rows in one SQLite file.

Each row is written in a transaction of its own, so a process killed at any moment leaves a file with whole rows only. Any number of
processes on one machine may write to the same file at once.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from cmvmed.reproduction.result_rows import Key, ResultRow

APPLICATION_ID = 0x434D564D  # "CMVM", in the file's header
SCHEMA_VERSION = 1
BUSY_SECONDS = 60.0  # how long to wait for another process's transaction

_COLUMNS = tuple(field.name for field in fields(ResultRow))
_JSON_COLUMNS = ("settings", "versions", "reliability", "annealing")
_INTEGER_COLUMNS = ("n_labeled", "split", "n_train", "n_test")
_TEXT_COLUMNS = ("spec", "dataset", "method", "protocol", "status", "error", "finished", *_JSON_COLUMNS)


def _declaration(column: str) -> str:
    kind = "TEXT" if column in _TEXT_COLUMNS else "INTEGER" if column in _INTEGER_COLUMNS else "REAL"
    return f"{column} {kind}{' NOT NULL' if column in (*Key._fields, *_TEXT_COLUMNS) else ''}"


_CREATE = f"CREATE TABLE results ({', '.join(map(_declaration, _COLUMNS))}, PRIMARY KEY ({', '.join(Key._fields)})) WITHOUT ROWID"
# A finished row is never replaced: of two processes that did the same work the first counts. A failed one may be retried.
_INSERT = (
    f"INSERT INTO results ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) "
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _COLUMNS if c not in Key._fields)} "
    "WHERE results.status = 'failed'"
)


class ResultStoreError(OSError):
    """A file that cannot be used as a store of results; the message says why and what to do."""


class ResultStore:
    """The result rows of one file.

    Parameters
    ----------
    path : str or Path
    read_only : bool, default=False
        Whether to take the rows as they are now and write nothing, neither to the file nor beside it. Otherwise the file is made if
        it is absent.

    Raises
    ------
    ResultStoreError
        If the file is absent and only to be read, damaged, or something else than results of this library. It is then left as it
        is.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        _check_path(self.path, read_only)
        present = _present(self.path)
        if not read_only:
            self._connection = _writing(self.path, present)
        elif present is None:
            raise ResultStoreError(f"There are no results in {self.path} yet.")
        else:
            self._connection = present

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, row: ResultRow) -> None:
        """Write one row, unless a finished one with the same key is there already."""
        self._connection.execute(_INSERT, _to_record(row))

    def rows(self, spec: str | None = None) -> list[ResultRow]:
        """All rows (of one experiment), sorted by their key."""
        where, values = ("WHERE spec = ?", (spec,)) if spec is not None else ("", ())
        query = f"SELECT {', '.join(_COLUMNS)} FROM results {where} ORDER BY {', '.join(Key._fields)}"
        return [_from_record(record) for record in self._connection.execute(query, values)]

    def done_keys(self, spec: str | None = None) -> set[Key]:
        """Keys of the rows that finished."""
        return self._keys("done", spec)

    def failed_keys(self, spec: str | None = None) -> set[Key]:
        """Keys of the rows that failed."""
        return self._keys("failed", spec)

    def _keys(self, status: str, spec: str | None) -> set[Key]:
        query = f"SELECT {', '.join(Key._fields)} FROM results WHERE status = ? AND ifnull(spec = ?, TRUE)"
        return {Key(*record) for record in self._connection.execute(query, (status, spec))}


def _check_path(path: Path, read_only: bool) -> None:
    """An error if no file can be at the path."""
    if path.is_dir():
        raise ResultStoreError(f"{path} is a folder; give the name of a file.")
    if read_only and not path.exists():
        raise ResultStoreError(f"There are no results at {path}; `cmvmed reproduce --results {path}` makes them.")
    if not path.parent.is_dir():
        raise ResultStoreError(f"The folder {path.parent} does not exist; make it or give another file.")


def _present(path: Path) -> sqlite3.Connection | None:
    """A copy in memory of the store at the path, None if there is nothing yet; an error if what is there is no store."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    copy = sqlite3.connect(":memory:")
    try:
        _snapshot(path, copy)
        if _is_store(copy, path):
            copy.execute("PRAGMA query_only = TRUE")
            return copy
    except sqlite3.Error as error:
        copy.close()
        raise ResultStoreError(
            f"{path} is not a file of results, or is damaged ({error}). It was left as it is; move it away or give another file."
        ) from error
    except ResultStoreError:
        copy.close()
        raise
    copy.close()
    return None


def _is_store(copy: sqlite3.Connection, path: Path) -> bool:
    """Whether the database is a store, and not still without a table; an error if it is anything else."""
    application = copy.execute("PRAGMA application_id").fetchone()[0]
    version = copy.execute("PRAGMA user_version").fetchone()[0]
    n_tables = copy.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    health = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if application == 0 and n_tables == 0:
        return False  # made by a process that was killed before its first transaction
    if application != APPLICATION_ID:
        raise ResultStoreError(f"{path} is a database of something else. It was left as it is; give another file.")
    if version != SCHEMA_VERSION:
        raise ResultStoreError(
            f"{path} was written by another version of cmvmed (format {version}, here {SCHEMA_VERSION}). "
            "It was left as it is; give another file."
        )
    if health != "ok":
        raise ResultStoreError(
            f"{path} is damaged ({health}). It was left as it is; move it away or give another file."
        )
    return True


def _snapshot(path: Path, copy: sqlite3.Connection) -> None:
    """Copy the file as it is now.

    Even to read, SQLite would put its log beside a database that has none. Without a log nobody has the file open, so it is
    then read as it stands, and once more if somebody changed it meanwhile.
    """
    while True:
        before = _state(path)
        address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if before.at_rest else ''}"
        try:
            with closing(sqlite3.connect(address, timeout=BUSY_SECONDS, uri=True)) as source:
                source.backup(copy)
        except sqlite3.Error:
            if before.at_rest and _state(path) != before:
                continue
            raise
        if not before.at_rest or _state(path) == before:
            return


class _State(NamedTuple):
    """What changes when a process opens a database or writes to it."""

    at_rest: bool  # neither a log nor a journal is there
    size: int
    changed: int


def _state(path: Path) -> _State:
    at_rest = not any(Path(f"{path}{ending}").exists() for ending in ("-wal", "-journal"))
    status = path.stat()
    return _State(at_rest, status.st_size, status.st_mtime_ns)


def _writing(path: Path, present: sqlite3.Connection | None) -> sqlite3.Connection:
    """A connection to write with; the table is made if there is none at ``present``."""
    if present is not None:
        present.close()
    try:
        return _connect(path, is_new=present is None)
    except sqlite3.Error as error:
        raise ResultStoreError(f"{path} cannot be written: {error}.") from error


def _connect(path: Path, is_new: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    if is_new:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # else another process came first
            connection.execute(_CREATE)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    _write_ahead(connection)
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, in which readers and a writer do not wait for each other."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:  # SQLite does not wait by itself while another process switches too
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _to_record(row: ResultRow) -> dict[str, Any]:
    record = {name: getattr(row, name) for name in _COLUMNS}
    return record | {name: json.dumps(record[name], sort_keys=True, allow_nan=False) for name in _JSON_COLUMNS}


def _from_record(record: tuple[Any, ...]) -> ResultRow:
    values = dict(zip(_COLUMNS, record, strict=True))
    values |= {name: json.loads(values[name]) for name in _JSON_COLUMNS}
    values["reliability"] = tuple((int(n), float(p), float(share)) for n, p, share in values["reliability"])
    values["annealing"] = tuple(values["annealing"])
    return ResultRow(**values)
