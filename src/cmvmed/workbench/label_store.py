"""Labels on disk: an append-only table of events in an SQLite file, of which the last event of each row counts.

An event is committed, and flushed to the disk, before :meth:`LabelStore.record` returns. Windows that label the same row
cannot overwrite each other silently: an event names the revision of the row that its author has seen.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from cmvmed.workbench.project_file import DEFAULT_NAME
from cmvmed.workbench.stored_labels import (
    ACTIONS,
    CHOSEN,
    CHOSEN_BY,
    COLUMNS,
    Event,
    StoreError,
    add_events,
    class_checksum,
    event_of,
    open_labels,
    store_errors,
    transaction,
)

__all__ = ["ACTIONS", "CHOSEN", "Conflict", "Event", "LabelStore", "StoreError", "labels_path"]


def labels_path(project_file: Path) -> Path:
    """The file of labels beside a project file: ``cmvmed.labels.sqlite`` for ``cmvmed.toml``."""
    file = project_file / DEFAULT_NAME if project_file.is_dir() else project_file
    return file.with_suffix(".labels.sqlite")


class Conflict(ValueError):
    """The row was changed by another window since its revision was read."""

    def __init__(self, current: Event | None) -> None:
        super().__init__("The label of this row was changed in another window.")
        self.current = current


class LabelStore:
    """The labels of one project.

    Parameters
    ----------
    path : path of the SQLite file, which is made if there is none

    Attributes
    ----------
    note : what the user should know of the file; empty if there is nothing
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection, self.note = open_labels(path)

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
        with self._lock, store_errors(self.path), transaction(self._connection, "BEGIN IMMEDIATE"):
            yield

    def _lines(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """The rows of a query."""
        with self._lock, store_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _events(self, condition: str, values: Sequence[object] = ()) -> list[Event]:
        """The events that a condition selects, compared with their checksums."""
        lines = self._lines(f"SELECT {COLUMNS} FROM events {condition}", values)  # nosec B608 # constants
        return [event_of(line) for line in lines]

    def current(self) -> dict[str, Event]:
        """The last event of every row that has one, in the order of their revisions."""
        events = self._events("WHERE revision IN (SELECT max(revision) FROM events GROUP BY item) ORDER BY revision")
        return {event.item: event for event in events}

    def last(self, item: str) -> Event | None:
        """The last event of a row."""
        return next(iter(self._events("WHERE item = ? ORDER BY revision DESC LIMIT 1", (item,))), None)

    @property
    def any_chosen(self) -> bool:
        """Whether a row that has a class got its first one after it was chosen, not drawn at random."""
        marks = ", ".join("?" * len(CHOSEN))
        found = self._lines(
            f"SELECT 1 FROM events AS e WHERE action = 'label' AND chosen_by IN ({marks}) AND NOT EXISTS "  # nosec B608 # constants
            "(SELECT 1 FROM events WHERE item = e.item AND action = 'label' AND revision < e.revision) AND 'label' = "
            "(SELECT action FROM events WHERE item = e.item ORDER BY revision DESC LIMIT 1) LIMIT 1",
            CHOSEN,
        )
        return bool(found)

    @property
    def revision(self) -> int:
        """The last revision of all rows; 0 if there is no event."""
        return int(self._lines("SELECT coalesce(max(revision), 0) FROM events")[0][0])

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
            own = self._events(
                "WHERE window = ? AND undoes IS NULL AND revision NOT IN "
                "(SELECT undoes FROM events WHERE undoes IS NOT NULL) ORDER BY revision DESC LIMIT 1",
                (window,),
            )
            if not own:
                return None
            event = own[0]
            last = self.last(event.item)
            if last is not None and last.window != window:
                raise Conflict(last)
            before = self._before(event)
            action, label = ("reset", None) if before is None else (before.action, before.label)
            chosen_by = event.chosen_by if before is None else before.chosen_by
            return self._append(event.item, action, label, chosen_by, window, event.revision)

    def _before(self, event: Event) -> Event | None:
        condition = "WHERE item = ? AND revision < ? ORDER BY revision DESC LIMIT 1"
        return next(iter(self._events(condition, (event.item, event.revision))), None)

    def _append(
        self, item: str, action: str, label: str | None, chosen_by: str, window: str, undoes: int | None
    ) -> Event:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        event = Event(self.revision + 1, item, action, label, chosen_by, window, undoes, at)
        add_events(self._connection.executemany, iter([event]))
        if label is not None:
            self._add_classes([label])
        return event

    def _add_classes(self, names: Sequence[str]) -> None:
        known = set(self.classes)
        self._connection.executemany(
            "INSERT INTO classes (name, checksum) VALUES (?, ?)",
            [(name, class_checksum(name)) for name in dict.fromkeys(names) if name not in known],
        )

    def add_classes(self, names: Sequence[str]) -> None:
        """Add classes that are not there yet, in their order."""
        with self._transaction():
            self._add_classes(names)

    @property
    def classes(self) -> list[str]:
        """Names of the classes in the order in which they were added."""
        return [name for (name,) in self._lines("SELECT name FROM classes ORDER BY position")]

    def events(self) -> list[Event]:
        """Everything that was said, in its order."""
        return self._events("ORDER BY revision")
