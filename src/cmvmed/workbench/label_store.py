"""Labels on disk: an append-only table of events in an SQLite file, of which the last event of each row counts.

An event is committed, and flushed to the disk, before :meth:`LabelStore.record` returns. Windows that label the same row
cannot overwrite each other silently: an event names the revision of the row that its author has seen. Each line of the
file has a checksum, and a file is checked when it is opened.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from cmvmed._sqlite_files import (
    advice_on,
    check_health,
    check_schema,
    enable_write_ahead_log,
    protect,
    row_checksum,
    shown,
)
from cmvmed.workbench.project_file import DEFAULT_NAME

APPLICATION_ID = 0x434D564C  # "CMVL", by which SQLite files of labels are known
SCHEMA_VERSION = 3
ACTIONS = ("label", "unsure", "clear", "reset")  # clear: no class; reset: what the data say
CHOSEN = ("suggest", "unsure", "disagree", "search")  # reasons by which rows are no random sample of all rows
CHOSEN_BY = (*CHOSEN, "random", "review", "doubtful", "second", "disputed", "import")
BUSY_SECONDS = 10.0  # maximum time to wait for the transaction of another process
COLUMNS = "revision, item, action, label, chosen_by, window, undoes, at, annotator, checksum"
TABLES = (
    """CREATE TABLE events (
    revision INTEGER PRIMARY KEY AUTOINCREMENT,
    item TEXT NOT NULL,
    action TEXT NOT NULL,
    label TEXT,
    chosen_by TEXT NOT NULL,
    window TEXT NOT NULL,
    undoes INTEGER,
    at TEXT NOT NULL,
    annotator TEXT NOT NULL,
    checksum TEXT NOT NULL
)""",
    "CREATE INDEX events_of_item ON events (item, revision)",
    "CREATE TABLE classes (position INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, checksum TEXT NOT NULL)",
)


class StoreError(ValueError):
    """A file of labels that cannot be used."""


@dataclass(frozen=True)
class Event:
    """What was said of a row: its class, that it is not clear, or nothing any more."""

    revision: int
    item: str
    action: str
    label: str | None
    chosen_by: str
    window: str
    undoes: int | None
    at: str
    annotator: str  # name of the person; empty if none was given

    @property
    def checksum(self) -> str:
        """The checksum of all values."""
        return row_checksum(astuple(self))


def _event_of(line: Sequence[object]) -> Event:
    """The event of a line of the table; its last value is the checksum."""
    *values, checksum = line
    if checksum != row_checksum(values):
        raise StoreError(f"event {shown(line[0])}, of row {shown(line[1])}, does not have its checksum")
    event = Event(*values)  # type: ignore[arg-type]
    texts = (event.item, event.action, event.chosen_by, event.window, event.at, event.annotator, event.label or "")
    if not all(isinstance(text, str) for text in texts) or not isinstance(event.undoes, int | None):
        raise StoreError(f"event {shown(line[0])}, of row {shown(line[1])}, has a value of a wrong type")
    if (
        event.action not in ACTIONS
        or event.chosen_by not in CHOSEN_BY
        or (event.action == "label") != bool(event.label)
    ):
        raise StoreError(f"event {shown(line[0])}, of row {shown(line[1])}, is none of the events that are recorded")
    return event


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of checks into one that names the file and says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        what = "is not a file of labels, or is damaged" if _is_damage(error) else "cannot be read or written"
        raise StoreError(f"{path} {what}: {error}. {advice_on(error)}. Labels saved before are not changed.") from error
    except UnicodeDecodeError as error:  # in a message of SQLite that quotes the file
        raise StoreError(f"{path} is damaged: {error}. Restore a copy of it, or move it away.") from error


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise StoreError(
            f"{path} is damaged or not a file of labels: {error}. It was not changed. Restore a copy of it, or move it away."
        ) from error


def _open_labels(path: Path) -> sqlite3.Connection:
    """A connection to a checked file of labels, which is made if there is none."""
    with _store_errors(path):
        connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=BUSY_SECONDS)
        try:
            protect(connection)
            _prepare(connection, path)
            connection.execute("PRAGMA synchronous = FULL")
            enable_write_ahead_log(connection, BUSY_SECONDS)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables if there are none, else check them."""
    with _transaction(connection, "BEGIN"):  # other processes may write meanwhile
        is_empty = _is_empty(connection, path)
    if is_empty:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            if _is_empty(connection, path):  # another process may have made them
                _create(connection)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """All statements or none, and the same state of the file for all."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it itself if the disk is full
            connection.execute("ROLLBACK")
        raise


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether a file has no tables; if it has some, they and their rows are checked."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if n_tables == 0 and application in (0, APPLICATION_ID):
        return True
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file, but not one of labels. Name another file.")
    if version > SCHEMA_VERSION:
        raise StoreError(f"{path} was written by a later release of cmvmed; install it to go on.")
    with _damage(path):
        check_schema(connection, TABLES if version == SCHEMA_VERSION else ())
        check_health(connection)
        _check_rows(connection)
    return False


def _check_rows(connection: sqlite3.Connection) -> None:
    """Raise an error unless all events are there, each with its checksum, and all their classes."""
    names = set()
    for position, name, found in connection.execute("SELECT position, name, checksum FROM classes"):
        if found != _class_checksum(name):
            raise StoreError(f"class {shown(name)}, number {position}, does not have its checksum")
        names.add(name)
    number = 0
    for line in connection.execute(f"SELECT {COLUMNS} FROM events ORDER BY revision"):  # nosec B608 # constants
        number += 1
        event = _event_of(line)
        if event.revision != number:
            raise StoreError(f"event {number} is missing")
        if event.label is not None and event.label not in names:
            raise StoreError(f"class {shown(event.label)} of event {number} is missing")
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    if (0 if last is None else last[0]) != number:
        raise StoreError(f"the last event is {number}, but {shown(last)} was counted")


def _class_checksum(name: object) -> str:
    """The checksum of a class."""
    return row_checksum([name])


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for statement in TABLES:
        connection.execute(statement)


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that a file is no database or malformed."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def labels_path(project_file: Path) -> Path:
    """The file of labels beside a project file: ``cmvmed.labels.sqlite`` for ``cmvmed.toml``."""
    file = project_file / DEFAULT_NAME if project_file.is_dir() else project_file
    return file.with_suffix(".labels.sqlite")


class Conflict(ValueError):
    """The row was changed by another window since its revision was read."""

    def __init__(
        self, current: Event | None, message: str = "The label of this row was changed in another window."
    ) -> None:
        super().__init__(message)
        self.current = current


class LabelStore:
    """The labels of one project.

    Parameters
    ----------
    path : path of the SQLite file, which is made if there is none
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection = _open_labels(path)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All statements or none; other processes wait."""
        with self._lock, _store_errors(self.path), _transaction(self._connection, "BEGIN IMMEDIATE"):
            yield

    def _lines(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """The rows of a query."""
        with self._lock, _store_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _events(self, condition: str, values: Sequence[object] = ()) -> list[Event]:
        """The events that a condition selects, compared with their checksums."""
        lines = self._lines(f"SELECT {COLUMNS} FROM events {condition}", values)  # nosec B608 # constants
        return [_event_of(line) for line in lines]

    def current(self) -> dict[str, Event]:
        """The last event of every row that has one, in the order of their revisions."""
        events = self._events("WHERE revision IN (SELECT max(revision) FROM events GROUP BY item) ORDER BY revision")
        return {event.item: event for event in events}

    def last(self, item: str) -> Event | None:
        """The last event of a row."""
        return next(iter(self._events("WHERE item = ? ORDER BY revision DESC LIMIT 1", (item,))), None)

    @property
    def first_reasons(self) -> dict[str, str]:
        """Why each row with a class was chosen when it got its first one."""
        return dict(
            self._lines(
                "SELECT item, chosen_by FROM events AS e WHERE action = 'label' AND NOT EXISTS "
                "(SELECT 1 FROM events WHERE item = e.item AND action = 'label' AND revision < e.revision) AND 'label' = "
                "(SELECT action FROM events WHERE item = e.item ORDER BY revision DESC LIMIT 1)"
            )
        )

    @property
    def random_items(self) -> set[str] | None:
        """Rows with a class that were drawn at random when they got their first one; None if no row with a class was chosen."""
        first = self.first_reasons
        if not any(chosen_by in CHOSEN for chosen_by in first.values()):
            return None
        return {item for item, chosen_by in first.items() if chosen_by == "random"}

    @property
    def revision(self) -> int:
        """The last revision of all rows; 0 if there is no event."""
        return int(self._lines("SELECT coalesce(max(revision), 0) FROM events")[0][0])

    def record(
        self,
        item: str,
        action: str,
        label: str | None,
        *,
        chosen_by: str,
        window: str,
        seen: int | None,
        annotator: str = "",
    ) -> Event:
        """Append an event.

        Parameters
        ----------
        seen : the revision of the row that the author has seen, None if it had no event; another one is a Conflict
        annotator : name of the author
        """
        if action not in ACTIONS or chosen_by not in CHOSEN_BY or (action == "label") != (label is not None):
            raise ValueError(
                f"An event needs one of the actions {ACTIONS} and a reason of {CHOSEN_BY}; a label has a class."
            )
        with self._transaction():
            before = self.last(item)
            if (None if before is None else before.revision) != seen:
                raise Conflict(before)
            return self._append(item, action, label, chosen_by, window, None, annotator)

    def undo(self, window: str) -> Event | None:
        """Take back the last event of a window that it has not taken back; None if there is none.

        If the row does not show that event any more, because another window changed it, this is a Conflict.
        """
        with self._transaction():
            own = self._events(
                "WHERE window = ? AND undoes IS NULL AND revision NOT IN "
                "(SELECT undoes FROM events WHERE undoes IS NOT NULL) ORDER BY revision DESC LIMIT 1",
                (window,),
            )
            if not own:
                return None
            event = own[0]
            if self._shown(event.item) != event:
                raise Conflict(
                    self.last(event.item),
                    f"Row {event.item!r} was changed in another window since; its label was not undone.",
                )
            before = self._before(event)
            action, label = ("reset", None) if before is None else (before.action, before.label)
            chosen_by = event.chosen_by if before is None else before.chosen_by
            return self._append(event.item, action, label, chosen_by, window, event.revision, event.annotator)

    def _shown(self, item: str) -> Event | None:
        """The event whose label a row has: the last one, or what was there before those that were taken back."""
        event = self.last(item)
        while event is not None and event.undoes is not None:
            event = self._before(self._events("WHERE revision = ?", (event.undoes,))[0])
        return event

    def _before(self, event: Event) -> Event | None:
        condition = "WHERE item = ? AND revision < ? ORDER BY revision DESC LIMIT 1"
        return next(iter(self._events(condition, (event.item, event.revision))), None)

    def _append(
        self, item: str, action: str, label: str | None, chosen_by: str, window: str, undoes: int | None, annotator: str
    ) -> Event:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        event = Event(self.revision + 1, item, action, label, chosen_by, window, undoes, at, annotator)
        marks = ", ".join("?" * len(COLUMNS.split(",")))
        insertion = f"INSERT INTO events ({COLUMNS}) VALUES ({marks})"  # nosec B608 # constants
        self._connection.execute(insertion, (*astuple(event), event.checksum))
        if label is not None:
            self._add_classes([label])
        return event

    def _add_classes(self, names: Sequence[str]) -> None:
        known = set(self.classes)
        self._connection.executemany(
            "INSERT INTO classes (name, checksum) VALUES (?, ?)",
            [(name, _class_checksum(name)) for name in dict.fromkeys(names) if name not in known],
        )

    def add_classes(self, names: Sequence[str]) -> None:
        """Add classes that are not there yet, in their order."""
        with self._transaction():
            self._add_classes(names)

    @property
    def classes(self) -> list[str]:
        """Names of the classes in the order in which they were added."""
        return [name for (name,) in self._lines("SELECT name FROM classes ORDER BY position")]

    def events(self, item: str | None = None) -> list[Event]:
        """Everything that was said, of one row or of all, in its order."""
        return (
            self._events("ORDER BY revision")
            if item is None
            else self._events("WHERE item = ? ORDER BY revision", (item,))
        )
