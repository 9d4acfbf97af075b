"""Result rows in a file of JSON lines that only grows.

A row is appended by one write, so that a process killed at any moment leaves whole lines, but for perhaps the last. A
line that is not whole is passed over when the file is read, and is closed before the next row is written.
"""

import json
import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.suite.splits import Cell


class Key(NamedTuple):
    """What a row is about."""

    set: str
    budget: int
    draw: str
    n_rows: int  # most training rows
    split: int
    method: str

    @property
    def cell(self) -> Cell:
        """The cell without rows, split and method."""
        return Cell(self.set, self.budget, self.draw)


Row = dict[str, Any]


def key_of(row: Row) -> Key:
    return Key(*(row[name] for name in Key._fields))


class Store:
    """The rows of one file; of rows with the same key the first that did not fail counts, else the last.

    Parameters
    ----------
    path : Path
    borrowed : dict from key to row
        Rows of other files, which count where the file has none.
    """

    def __init__(self, path: Path, borrowed: dict[Key, Row] | None = None) -> None:
        self.path = path
        self.borrowed = borrowed or {}

    def add(self, row: Row) -> None:
        """Append one row."""
        line = (json.dumps(row) + "\n").encode()
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                line = b"\n" + line
            if os.write(file, line) != len(line):
                raise OSError(f"{self.path}: a row could not be written whole; is the disk full?")
        finally:
            os.close(file)

    def rows(self) -> dict[Key, Row]:
        """All rows by their key."""
        found: dict[Key, Row] = {}
        n_broken = 0
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            try:
                row = json.loads(line)
                key = key_of(row)
            except (ValueError, KeyError, TypeError):
                n_broken += bool(line.strip())
                continue
            if key not in found or found[key]["error"]:
                found[key] = row
        if n_broken:
            print(f"{self.path}: {n_broken} broken lines were passed over", file=sys.stderr)
        return self.borrowed | found


def rows_of_methods(paths: Iterable[Path], methods: Collection[str]) -> dict[Key, Row]:
    """The rows of these methods in other files, which are only read; an error if a file is not there."""
    found: dict[Key, Row] = {}
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"{path} does not exist")
        found |= {key: row for key, row in Store(path).rows().items() if key.method in methods}
    return found
