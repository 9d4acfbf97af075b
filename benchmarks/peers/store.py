"""The results file: where it is from, and one line of JSON for each fit, in the order of data sets, methods, rows and draws."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.provenance import heading


class Key(NamedTuple):
    """What a result is of."""

    data: str
    method: str
    n: int
    draw: int


Results = Mapping[Key, Mapping[str, Any]]


class Store:
    """Results by key, written down after every change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        entries = json.loads(path.read_text())["fits"] if path.exists() else []
        self.results = {Key(*(entry.pop(name) for name in Key._fields)): entry for entry in entries}

    def add(self, key: Key, result: dict[str, Any]) -> None:
        """Keep a result."""
        self.results[key] = result
        self._write()

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop the results of these fits, and that their method was stopped with fewer rows or in other draws."""
        sizes = {(key.data, key.method, key.n) for key in keys}
        self.results = {key: value for key, value in self.results.items() if (key.data, key.method, key.n) not in sizes}
        self._write()

    def was_stopped(self, key: Key) -> bool:
        """Whether the method was stopped on this data set with as many rows or fewer."""
        return any(
            "stopped" in result and other.n <= key.n and (other.data, other.method) == (key.data, key.method)
            for other, result in self.results.items()
        )

    def _write(self) -> None:
        lines = [json.dumps(key._asdict() | self.results[key]) for key in sorted(self.results)]
        part = self.path.with_suffix(".part")
        part.write_text(f'{{"provenance": {json.dumps(heading())}, "fits": [\n' + ",\n".join(lines) + "\n]}\n")
        os.replace(part, self.path)
