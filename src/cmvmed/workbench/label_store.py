"""Labels on disk: an append-only table of events in an SQLite file, of which the last event of each row counts.

An event is committed, and flushed to the disk, before :meth:`LabelStore.record` returns. Windows that label the same row
cannot overwrite each other silently: an event names the revision of the row that its author has seen.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from cmvmed.workbench.project_file import DEFAULT_NAME

__all__ = ["ACTIONS", "CHOSEN", "Conflict", "Event", "LabelStore", "StoreError", "labels_path"]

APPLICATION_ID = 0x434D564C  # "CMVL", by which SQLite files of labels are known
SCHEMA_VERSION = 1
ACTIONS = ("label", "unsure", "clear", "reset")  # clear: no class; reset: what the data say
CHOSEN = ("suggest", "unsure", "disagree", "search")  # reasons by which rows are no random sample of all rows
CHOSEN_BY = (*CHOSEN, "random", "review", "doubtful", "import")
TABLES = """
CREATE TABLE events (
    revision INTEGER PRIMARY KEY AUTOINCREMENT,
    item TEXT NOT NULL,
    action TEXT NOT NULL,
    label TEXT,
    chosen_by TEXT NOT NULL,
    window TEXT NOT NULL,
    undoes INTEGER,
    at TEXT NOT NULL
);
CREATE INDEX events_of_item ON events (item, revision);
CREATE TABLE classes (position INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
"""


def labels_path(project_file: Path) -> Path:
    """The file of labels beside a project file: ``cmvmed.labels.sqlite`` for ``cmvmed.toml``."""
    file = project_file / DEFAULT_NAME if project_file.is_dir() else project_file
    return file.with_suffix(".labels.sqlite")


class StoreError(ValueError):
    """A file of labels that cannot be used."""


class Conflict(ValueError):
    """The row was changed by another window since its revision was read."""

    def __init__(self, current: "Event | None") -> None:
        super().__init__("The label of this row was changed in another window.")
        self.current = current


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


class LabelStore:
    """The labels of one project.

    Parameters
    ----------
    path : path of the SQLite file, which is made if there is none
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10.0)
            self._open()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} is not a file of labels: {error}. Move it away, or name another file.") from error

    def _open(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        with self._transaction():
            (n_tables,) = execute("SELECT count(*) FROM sqlite_master").fetchone()
            if n_tables == 0:
                execute(f"PRAGMA application_id = {APPLICATION_ID}")
                execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                for statement in filter(str.strip, TABLES.split(";")):
                    execute(statement)
        (application,) = execute("PRAGMA application_id").fetchone()
        (version,) = execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise StoreError(f"{self.path} is an SQLite file, but not one of labels. Name another file.")
        if version > SCHEMA_VERSION:
            raise StoreError(f"{self.path} was written by a later release of cmvmed; install it to go on.")

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
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def current(self) -> dict[str, Event]:
        """The last event of every row that has one, in the order of their revisions."""
        with self._lock:
            lines = self._connection.execute(
                "SELECT * FROM events WHERE revision IN (SELECT max(revision) FROM events GROUP BY item) ORDER BY revision"
            ).fetchall()
        return {event.item: event for event in (Event(*line) for line in lines)}

    def last(self, item: str) -> Event | None:
        """The last event of a row."""
        with self._lock:
            line = self._connection.execute(
                "SELECT * FROM events WHERE item = ? ORDER BY revision DESC LIMIT 1", (item,)
            ).fetchone()
        return None if line is None else Event(*line)

    @property
    def any_chosen(self) -> bool:
        """Whether a row that has a class got its first one after it was chosen, not drawn at random."""
        marks = ", ".join("?" * len(CHOSEN))
        with self._lock:
            found = self._connection.execute(
                f"SELECT 1 FROM events AS e WHERE action = 'label' AND chosen_by IN ({marks}) AND NOT EXISTS "
                "(SELECT 1 FROM events WHERE item = e.item AND action = 'label' AND revision < e.revision) AND 'label' = "
                "(SELECT action FROM events WHERE item = e.item ORDER BY revision DESC LIMIT 1) LIMIT 1",
                CHOSEN,
            ).fetchone()
        return found is not None

    @property
    def revision(self) -> int:
        """The last revision of all rows; 0 if there is no event."""
        with self._lock:
            (revision,) = self._connection.execute("SELECT coalesce(max(revision), 0) FROM events").fetchone()
        return int(revision)

    def record(
        self, item: str, action: str, label: str | None, *, chosen_by: str, window: str, seen: int | None
    ) -> Event:
        """Append an event.

        Parameters
        ----------
        seen : the revision of the row that the author has seen, None if it had no event; another one is a Conflict
        """
        if action not in ACTIONS or chosen_by not in CHOSEN_BY or (action == "label") != (label is not None):
            raise ValueError(
                f"An event needs one of the actions {ACTIONS} and a reason of {CHOSEN_BY}; a label has a class."
            )
        with self._transaction():
            before = self.last(item)
            if (None if before is None else before.revision) != seen:
                raise Conflict(before)
            return self._append(item, action, label, chosen_by, window, None)

    def undo(self, window: str) -> Event | None:
        """Take back the last event of a window that it has not taken back; None if there is none."""
        with self._transaction():
            line = self._connection.execute(
                "SELECT * FROM events WHERE window = ? AND undoes IS NULL AND revision NOT IN "
                "(SELECT undoes FROM events WHERE undoes IS NOT NULL) ORDER BY revision DESC LIMIT 1",
                (window,),
            ).fetchone()
            if line is None:
                return None
            event = Event(*line)
            last = self.last(event.item)
            if last is not None and last.window != window:
                raise Conflict(last)
            before = self._before(event)
            action, label = ("reset", None) if before is None else (before.action, before.label)
            chosen_by = event.chosen_by if before is None else before.chosen_by
            return self._append(event.item, action, label, chosen_by, window, event.revision)

    def _before(self, event: Event) -> Event | None:
        line = self._connection.execute(
            "SELECT * FROM events WHERE item = ? AND revision < ? ORDER BY revision DESC LIMIT 1",
            (event.item, event.revision),
        ).fetchone()
        return None if line is None else Event(*line)

    def _append(
        self, item: str, action: str, label: str | None, chosen_by: str, window: str, undoes: int | None
    ) -> Event:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        cursor = self._connection.execute(
            "INSERT INTO events (item, action, label, chosen_by, window, undoes, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (item, action, label, chosen_by, window, undoes, at),
        )
        if label is not None:
            self._connection.execute("INSERT OR IGNORE INTO classes (name) VALUES (?)", (label,))
        return Event(int(cursor.lastrowid or 0), item, action, label, chosen_by, window, undoes, at)

    def add_classes(self, names: Sequence[str]) -> None:
        """Add classes that are not there yet, in their order."""
        with self._transaction():
            self._connection.executemany("INSERT OR IGNORE INTO classes (name) VALUES (?)", [(name,) for name in names])

    @property
    def classes(self) -> list[str]:
        """Names of the classes in the order in which they were added."""
        with self._lock:
            return [name for (name,) in self._connection.execute("SELECT name FROM classes ORDER BY position")]

    def events(self) -> list[Event]:
        """Everything that was said, in its order."""
        with self._lock:
            return [Event(*line) for line in self._connection.execute("SELECT * FROM events ORDER BY revision")]
