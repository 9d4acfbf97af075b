"""SQLite files: checksums of rows, checks of files whose author is not known, and use by several processes."""

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

MAX_VALUE_BYTES = 10_000_000  # of one text; longer ones are refused before they are read
MAX_FILE_BYTES = 2**31  # of a file that is read into memory as a whole
MAX_SHOWN = 60  # characters of a text of the file in a message
_CANNOT_OPEN, _FULL, _IO_ERROR, _READ_ONLY, _BUSY = (
    14,
    13,
    10,
    8,
    5,
)  # primary result codes of SQLite, the lowest byte of a code


def row_checksum(values: Iterable[object]) -> str:
    """The checksum of a row's values in the order of its columns, as they are read from the file."""
    try:
        text = json.dumps(list(values), separators=(",", ":"))
    except (TypeError, ValueError):  # a column holds bytes
        return ""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def protect(connection: sqlite3.Connection) -> None:
    """Let a file neither run functions by its schema nor fill the memory with one value."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def enable_write_ahead_log(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch to the write-ahead log, with which readers and the writer do not block each other.

    Parameters
    ----------
    seconds : how long to try, since SQLite does not wait for another process that switches as well
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def check_size(path: Path) -> None:
    """Raise an error if a file is larger than any that this package writes."""
    if (size := path.stat().st_size) > MAX_FILE_BYTES:
        raise ValueError(f"it has {size:,} bytes, at most {MAX_FILE_BYTES:,} are read")


def check_schema(connection: sqlite3.Connection, statements: Sequence[str]) -> None:
    """Raise an error unless a database consists of what these statements create; no view and no trigger, for example.

    To be called before any other statement, since a crafted schema can change what a statement does.
    """
    found = sorted(
        str(sql) for name, sql in connection.execute("SELECT name, sql FROM sqlite_master") if not _is_internal(name)
    )
    if found != sorted(statements):
        raise ValueError("its tables are not those of this version of cmvmed")


def check_health(connection: sqlite3.Connection) -> None:
    """Raise an error if the structure of the file is damaged, so that rows may be missing or repeated."""
    (health,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if health != "ok":
        raise ValueError(" ".join(str(health).split()))


def shown(value: object) -> str:
    """A value of a file for a message, without control characters and not long."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def advice_on(error: sqlite3.Error) -> str:
    """What to do about an error of writing or reading."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return {
        _CANNOT_OPEN: "Its folder does not exist or is read-only: allow writing there, or copy the project to another folder",
        _FULL: "The disk is full: free some space",
        _IO_ERROR: "The disk or the network folder reports an error: free some space, or use another folder",
        _READ_ONLY: "The file or its folder is read-only: allow writing, or use another file",
        _BUSY: "Another process keeps the file locked: wait for it or end it",
    }.get(code, "Restore a copy of the file, or move it away")


def _is_internal(name: object) -> bool:
    """Whether SQLite made a table by itself: the counters of AUTOINCREMENT, the index of a UNIQUE column."""
    return name == "sqlite_sequence" or str(name).startswith("sqlite_autoindex_")
