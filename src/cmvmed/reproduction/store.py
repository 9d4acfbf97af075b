"""Result rows in an SQLite file.

Each row is written in its own transaction, so that a process that is killed leaves no incomplete rows. Several
processes on one machine may write to the same file at the same time.
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
BUSY_SECONDS = 60.0  # maximum time to wait for the transaction of another process

_COLUMNS = tuple(field.name for field in fields(ResultRow))
_JSON_COLUMNS = ("settings", "versions", "reliability", "annealing")
_INTEGER_COLUMNS = ("n_labeled", "split", "n_train", "n_test")
_TEXT_COLUMNS = ("spec", "dataset", "method", "protocol", "status", "error", "finished", *_JSON_COLUMNS)


def _declaration(column: str) -> str:
    kind = "TEXT" if column in _TEXT_COLUMNS else "INTEGER" if column in _INTEGER_COLUMNS else "REAL"
    return f"{column} {kind}{' NOT NULL' if column in (*Key._fields, *_TEXT_COLUMNS) else ''}"


_CREATE = (
    f"CREATE TABLE results ({', '.join(map(_declaration, _COLUMNS))}, "
    f"PRIMARY KEY ({', '.join(Key._fields)})) WITHOUT ROWID"
)
# A finished row is never replaced; a failed row may be.
_INSERT = (
    f"INSERT INTO results ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) "
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _COLUMNS if c not in Key._fields)} "
    "WHERE results.status = 'failed'"
)


class ResultStoreError(OSError):
    """The file cannot be used as a store of results; the message says why and what to do."""


class ResultStore:
    """The result rows in one file.

    Parameters
    ----------
    path : str or Path
    read_only : bool, default=False
        Whether to read the rows as they are now, without writing to the file or its folder. If False, the file is
        created if it does not exist.

    Raises
    ------
    ResultStoreError
        If the file is damaged, is not a file of results of cmvmed, or does not exist and ``read_only`` is True. The
        file is not changed.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        _check_path(self.path, read_only)
        snapshot = _load_snapshot(self.path)
        if not read_only:
            self._connection = _open_for_writing(self.path, snapshot)
        elif snapshot is None:
            raise ResultStoreError(f"There are no results in {self.path} yet.")
        else:
            self._connection = snapshot

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
        """Write one row, unless the store has a finished row with the same key."""
        self._connection.execute(_INSERT, _to_record(row))

    def rows(self, spec: str | None = None) -> list[ResultRow]:
        """All rows, or those of one experiment, sorted by key."""
        where, values = ("WHERE spec = ?", (spec,)) if spec is not None else ("", ())
        query = f"SELECT {', '.join(_COLUMNS)} FROM results {where} ORDER BY {', '.join(Key._fields)}"
        return [_from_record(record) for record in self._connection.execute(query, values)]

    def done_keys(self, spec: str | None = None) -> set[Key]:
        """Keys of the finished rows."""
        return self._keys("done", spec)

    def failed_keys(self, spec: str | None = None) -> set[Key]:
        """Keys of the failed rows."""
        return self._keys("failed", spec)

    def _keys(self, status: str, spec: str | None) -> set[Key]:
        query = f"SELECT {', '.join(Key._fields)} FROM results WHERE status = ? AND ifnull(spec = ?, TRUE)"
        return {Key(*record) for record in self._connection.execute(query, (status, spec))}


def _check_path(path: Path, read_only: bool) -> None:
    """Raise an error if the path cannot be that of a store."""
    if path.is_dir():
        raise ResultStoreError(f"{path} is a folder; give the path of a file.")
    if read_only and not path.exists():
        raise ResultStoreError(f"There are no results at {path}; `cmvmed reproduce all --results {path}` creates them.")
    if not path.parent.is_dir():
        raise ResultStoreError(f"The folder {path.parent} does not exist; create it or choose another file.")


def _load_snapshot(path: Path) -> sqlite3.Connection | None:
    """A copy of the store in memory; None if there are no data yet. Raises an error if the file is not a store."""
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
            f"{path} is not a file of results, or is damaged ({error}). It was not changed; move it or choose another "
            "file."
        ) from error
    except ResultStoreError:
        copy.close()
        raise
    copy.close()
    return None


def _is_store(copy: sqlite3.Connection, path: Path) -> bool:
    """Whether the database is a store; False if it has no tables yet. Raises an error for other databases."""
    application = copy.execute("PRAGMA application_id").fetchone()[0]
    version = copy.execute("PRAGMA user_version").fetchone()[0]
    n_tables = copy.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    health = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if application == 0 and n_tables == 0:
        return False  # created by a process that was killed before its first transaction
    if application != APPLICATION_ID:
        raise ResultStoreError(f"{path} is a database of another application. It was not changed; choose another file.")
    if version != SCHEMA_VERSION:
        raise ResultStoreError(
            f"{path} was written by another version of cmvmed (format {version}, expected {SCHEMA_VERSION}). "
            "It was not changed; choose another file."
        )
    if health != "ok":
        raise ResultStoreError(f"{path} is damaged ({health}). It was not changed; move it or choose another file.")
    return True


def _snapshot(path: Path, copy: sqlite3.Connection) -> None:
    """Copy the database as it is now.

    SQLite would create a log file even for reading. If there is no log, no process has the database open; it is then
    read as immutable, and read again if it changed in the meantime.
    """
    while True:
        before = _state(path)
        address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if before.is_closed else ''}"
        try:
            with closing(sqlite3.connect(address, timeout=BUSY_SECONDS, uri=True)) as source:
                source.backup(copy)
        except sqlite3.Error:
            if before.is_closed and _state(path) != before:
                continue
            raise
        if not before.is_closed or _state(path) == before:
            return


class _State(NamedTuple):
    """State of the file, which changes when a process opens the database or writes to it."""

    is_closed: bool  # there is neither a log nor a journal
    size: int
    changed: int


def _state(path: Path) -> _State:
    is_closed = not any(Path(f"{path}{ending}").exists() for ending in ("-wal", "-journal"))
    status = path.stat()
    return _State(is_closed, status.st_size, status.st_mtime_ns)


def _open_for_writing(path: Path, snapshot: sqlite3.Connection | None) -> sqlite3.Connection:
    """A connection for writing; creates the table if ``snapshot`` is None."""
    if snapshot is not None:
        snapshot.close()
    try:
        return _connect(path, is_new=snapshot is None)
    except sqlite3.Error as error:
        raise ResultStoreError(f"{path} cannot be written: {error}.") from error


def _connect(path: Path, is_new: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    if is_new:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # otherwise another process created the table
            connection.execute(_CREATE)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    _enable_write_ahead_log(connection)
    return connection


def _enable_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, with which readers and the writer do not block each other."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:  # SQLite does not wait for another process that switches as well
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _to_record(row: ResultRow) -> dict[str, object]:
    record = {name: getattr(row, name) for name in _COLUMNS}
    return record | {name: json.dumps(record[name], sort_keys=True, allow_nan=False) for name in _JSON_COLUMNS}


def _from_record(record: tuple[object, ...]) -> ResultRow:
    values: dict[str, Any] = dict(zip(_COLUMNS, record, strict=True))
    values |= {name: json.loads(values[name]) for name in _JSON_COLUMNS}
    values["reliability"] = tuple((int(n), float(p), float(share)) for n, p, share in values["reliability"])
    values["annealing"] = tuple(values["annealing"])
    return ResultRow(**values)
