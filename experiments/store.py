"""Result rows in an SQLite file.

Each row is written in its own transaction, so that a process that is killed leaves no incomplete rows. Several
processes on one machine may write to the same file at the same time. Each row has a checksum of its values, which is
compared when it is read; all rows are read once when a file is opened.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from cmvmed._sqlite_files import advice_on, check_health, check_schema, check_size, enable_write_ahead_log, protect
from experiments.result_rows import (
    CHECKSUM,
    COLUMNS,
    INTEGER_COLUMNS,
    REQUIRED,
    TEXT_COLUMNS,
    Key,
    ResultRow,
    describe,
    from_record,
    to_record,
)

APPLICATION_ID = 0x434D564D  # "CMVM", in the file's header
SCHEMA_VERSION = 2
WITHOUT_CHECKSUMS = 1  # the version before, which is read, and converted when it is written to
BUSY_SECONDS = 60.0  # maximum time to wait for the transaction of another process
RECOMPUTE = "It was not changed. Restore a copy of it, or move it away and compute its rows again."


def _create(columns: Sequence[str]) -> str:
    declarations = [
        f"{name} {'TEXT' if name in (*TEXT_COLUMNS, CHECKSUM) else 'INTEGER' if name in INTEGER_COLUMNS else 'REAL'}"
        f"{' NOT NULL' if name in (*REQUIRED, CHECKSUM) else ''}"
        for name in columns
    ]
    return f"CREATE TABLE results ({', '.join(declarations)}, PRIMARY KEY ({', '.join(Key._fields)})) WITHOUT ROWID"


_STORED = (*COLUMNS, CHECKSUM)
_CREATE = {WITHOUT_CHECKSUMS: _create(COLUMNS), SCHEMA_VERSION: _create(_STORED)}
# The names of columns below are constants of this package; all values are passed as parameters.
# A finished row is never replaced; a failed row may be.
_INSERT = (
    f"INSERT INTO results ({', '.join(_STORED)}) VALUES ({', '.join(f':{name}' for name in _STORED)}) "  # nosec B608 # constants
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _STORED if c not in Key._fields)} "
    "WHERE results.status = 'failed'"
)
_ORDER = ", ".join(Key._fields)


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

    Attributes
    ----------
    note : str
        What the user should know of the file; empty if there is nothing.

    Raises
    ------
    ResultStoreError
        If the file or a row of it is damaged, is not a file of results of cmvmed, or does not exist and ``read_only`` is True. The
        file is not changed.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.note = ""
        _check_path(self.path, read_only)
        snapshot = _load_snapshot(self.path)
        if snapshot is not None and _version(snapshot) == WITHOUT_CHECKSUMS:
            self.note = _NOTES[read_only].format(path=self.path)
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
        try:
            self._connection.execute(_INSERT, to_record(row))
        except sqlite3.Error as error:
            raise ResultStoreError(
                f"A row cannot be written to {self.path} ({error}). {advice_on(error)}, and start again: all rows before it "
                "are in the file."
            ) from error

    def rows(self, spec: str | None = None) -> list[ResultRow]:
        """All rows, or those of one experiment, sorted by key."""
        with _read_errors(self.path):
            return [row for row in _read_rows(self._connection, self.path) if spec in (None, row.spec)]

    def done_keys(self, spec: str | None = None) -> set[Key]:
        """Keys of the finished rows."""
        return self._keys("done", spec)

    def failed_keys(self, spec: str | None = None) -> set[Key]:
        """Keys of the failed rows."""
        return self._keys("failed", spec)

    def _keys(self, status: str, spec: str | None) -> set[Key]:
        query = f"SELECT {_ORDER} FROM results WHERE status = ? AND ifnull(spec = ?, TRUE)"  # nosec B608 # constants
        with _read_errors(self.path):
            return {Key(*record) for record in self._connection.execute(query, (status, spec))}


_NOTES = {
    True: "{path} was written without checksums, so that damaged values in it cannot be found; `python -m experiments` adds them.",
    False: "{path} was written without checksums; its rows were given some, from the values that they have now.",
}


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of checks into one that names the file and says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise ResultStoreError(
            f"{path} is not a file of results, or is damaged, or cannot be read ({error}). {advice_on(error)}. It was not "
            "changed."
        ) from error
    except ValueError as error:
        raise ResultStoreError(f"{path} is damaged or not a file of results: {error}. {RECOMPUTE}") from error


def _read_rows(connection: sqlite3.Connection, path: Path) -> Iterator[ResultRow]:
    """All rows in the order of their keys; an error names the row."""
    checksum = CHECKSUM if _version(connection) == SCHEMA_VERSION else "NULL"
    query = f"SELECT {', '.join(COLUMNS)}, {checksum} FROM results ORDER BY {_ORDER}"  # nosec B608 # constants
    number, record = 0, ()
    try:
        for record in connection.execute(query):
            number += 1
            yield from_record(record)
    except sqlite3.Error as error:
        raise ValueError(f"row {number + 1} cannot be read ({error})") from error
    except ValueError as error:
        raise ValueError(f"row {number} ({describe(record)}): {error}") from error


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check_path(path: Path, read_only: bool) -> None:
    """Raise an error if the path cannot be that of a store."""
    if path.is_dir():
        raise ResultStoreError(f"{path} is a folder; give the path of a file.")
    if read_only and not path.exists():
        raise ResultStoreError(
            f"There are no results at {path}; `python -m experiments all --results {path}` creates them."
        )
    if not path.parent.is_dir():
        raise ResultStoreError(f"The folder {path.parent} does not exist; create it or choose another file.")


def _load_snapshot(path: Path) -> sqlite3.Connection | None:
    """A copy of the store in memory; None if there are no data yet. Raises an error if the file is not a store."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    copy = sqlite3.connect(":memory:")
    try:
        with _read_errors(path):
            check_size(path)
            _snapshot(path, copy)
            protect(copy)
            if _is_store(copy, path):
                copy.execute("PRAGMA query_only = TRUE")
                return copy
    except BaseException:
        copy.close()
        raise
    copy.close()
    return None


def _is_store(copy: sqlite3.Connection, path: Path) -> bool:
    """Whether the database is a store; False if it has no tables yet. Raises an error for others and for damaged ones."""
    application = copy.execute("PRAGMA application_id").fetchone()[0]
    version = _version(copy)
    n_tables = copy.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application == 0 and n_tables == 0:
        return False  # created by a process that was killed before its first transaction
    if application != APPLICATION_ID:
        raise ResultStoreError(f"{path} is a database of another application. It was not changed; choose another file.")
    if version not in _CREATE:
        raise ResultStoreError(
            f"{path} was written by another version of cmvmed (format {version}, expected {SCHEMA_VERSION}). "
            "It was not changed; choose another file."
        )
    check_schema(copy, [_CREATE[version]])
    check_health(copy)
    for _ in _read_rows(copy, path):
        pass
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
        raise ResultStoreError(f"{path} cannot be written ({error}). {advice_on(error)}.") from error


def _connect(path: Path, is_new: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    if is_new:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # otherwise another process created the table
            connection.execute(_CREATE[SCHEMA_VERSION])
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    elif _version(connection) == WITHOUT_CHECKSUMS:
        _add_checksums(connection, path)
    enable_write_ahead_log(connection, BUSY_SECONDS)
    return connection


def _add_checksums(connection: sqlite3.Connection, path: Path) -> None:
    """Convert a file of version 1, in one transaction."""
    connection.execute("BEGIN EXCLUSIVE")
    if _version(connection) == WITHOUT_CHECKSUMS:  # otherwise another process has converted it
        rows = list(_read_rows(connection, path))
        connection.execute("ALTER TABLE results RENAME TO results_without_checksums")
        connection.execute(_CREATE[SCHEMA_VERSION])
        connection.executemany(_INSERT, map(to_record, rows))
        connection.execute("DROP TABLE results_without_checksums")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
