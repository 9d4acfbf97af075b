"""Work off the rows that are wanted and not yet in the store.

Several processes may do so, each with one thread of linear algebra. They load the data sets and draw the splits
themselves.
"""

import json
import random
import sys
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

import cmvmed
from benchmarks.suite.methods import Answer, Method
from benchmarks.suite.scores import accuracy, as_distributions, calibration_error
from benchmarks.suite.sets import load
from benchmarks.suite.splits import Cell, ImpossibleCellError, Split, check_cell, draw
from benchmarks.suite.store import Key, Row, Store
from experiments.datasets import DatasetError

PROGRESS_SECONDS = 10.0


def possible_cells(sets: Iterable[str], budgets: Iterable[int], draws: Iterable[str], n_rows: int) -> list[Cell]:
    """The cells that can be run; the others are named on stderr, with the reason."""
    cells = []
    for name in sets:
        try:
            data = load(name)
        except (DatasetError, ImportError) as error:
            _say(f"{name}: left out. {error}")
            continue
        for cell in (Cell(name, budget, way) for budget in budgets for way in draws):
            try:
                check_cell(cell, data.counts, n_rows, data.groups is not None)
                cells.append(cell)
            except ImpossibleCellError as error:
                _say(f"{name}, {cell.budget} labels per class, {cell.draw}: left out, {error}")
    return cells


def usable_methods(methods: Iterable[Method]) -> list[Method]:
    """The methods whose packages and files are there; the others are named on stderr."""
    usable = []
    for method in methods:
        if reason := method.lacks():
            _say(f"{method.name}: left out, {reason}")
        else:
            usable.append(method)
    return usable


def wanted_keys(cells: Iterable[Cell], methods: Sequence[Method], splits: range, n_rows: int) -> dict[Key, Method]:
    """Every row that is asked for, with its method; a method has no rows on data that do not suit it."""
    return {
        Key(*cell, n_rows, number, method.name): method
        for cell in cells
        for number in splits
        for method in methods
        if method.suits(load(cell.set))
    }


def run(wanted: dict[Key, Method], store: Store, n_jobs: int, retry_failed: bool = False) -> None:
    """Fill the store with what it lacks of the wanted rows."""
    rows = store.rows()
    _check_settings(wanted, rows)
    settled = {key for key, row in rows.items() if not (row["error"] and retry_failed)}
    pending = _shuffled(wanted.keys() - settled)
    progress = Progress(len(pending))
    for row in _execute(((key, wanted[key]) for key in pending), n_jobs):
        store.add(row)
        progress.count(row)


class ChangedSettingsError(ValueError):
    """The store has rows of other settings under the same name."""


def _check_settings(wanted: dict[Key, Method], rows: dict[Key, Row]) -> None:
    """An error if the store has rows of other settings under a wanted name; rows of older code are named on stderr."""
    settings = {row["method"]: row["settings"] for row in rows.values()}
    for method in {method.name: method for method in wanted.values()}.values():
        if settings.get(method.name, method.settings) != method.settings:
            raise ChangedSettingsError(
                f"the results have {method.name} with {json.dumps(settings[method.name])}; give another name or file"
            )
        old = [row for key, row in rows.items() if wanted.get(key) is method and row["code"] != code_checksum()]
        if old and not method.is_peer:
            _say(f"{method.name}: {len(old)} rows were made by other code and are kept; for new ones give another file")


def _shuffled(keys: Iterable[Key]) -> list[Key]:
    """Splits in random order, so that the time left can be told; the methods of one split together."""
    groups = [list(group) for _, group in groupby(sorted(keys), key=lambda key: key[:-1])]
    random.Random(0).shuffle(groups)
    return [key for group in groups for key in group]


def _execute(jobs: Iterator[tuple[Key, Method]], n_jobs: int) -> Iterator[Row]:
    if n_jobs == 1:
        yield from (evaluate(*job) for job in jobs)
        return
    with parallel_config("loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(evaluate)(*job) for job in jobs)


def evaluate(key: Key, method: Method) -> Row:
    """The row of one method on one split; an exception becomes a row that tells of it."""
    row: Row = {**key._asdict(), "settings": dict(method.settings), "code": code_checksum(), "error": ""}
    try:
        split = _split(key[:-1])
        row |= _sizes(split)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row |= measures(split, method.solve(split))
    except (Exception, SystemExit) as error:  # graphlearning exits where others raise
        row["error"] = " ".join(f"{type(error).__name__}: {error}".split())
    return row


@lru_cache(maxsize=2)
def _split(where: tuple[Any, ...]) -> Split:
    name, budget, way, n_rows, number = where
    return draw(load(name), Cell(name, budget, way), number, n_rows)


def _sizes(split: Split) -> Row:
    return {
        "n_labeled": int(split.labeled.size),
        "n_unlabeled": int(split.unlabeled.size),
        "n_held_out": int(split.y_test.size),
        "n_classes": split.n_classes,
    }


def measures(split: Split, answer: Answer) -> Row:
    """Accuracy, calibration, and whether the interval of the accuracy holds."""
    on_unlabeled = accuracy(answer.unlabeled, split.y, split.truth[split.unlabeled])
    on_held_out = accuracy(answer.held_out, split.y, split.y_test)
    p = as_distributions(answer.held_out, split.y)
    row: Row = {
        "unlabeled": on_unlabeled,
        "held_out": on_held_out,
        "ece": None if p is None else calibration_error(p, split.y_test),
        "seconds": answer.seconds,
        "no_estimate": answer.no_estimate,
    }
    if answer.estimate is not None:
        mean, low, high = answer.estimate
        row |= {"estimate": mean, "low": low, "high": high}
        row |= {"holds_unlabeled": low <= on_unlabeled <= high, "holds_held_out": low <= on_held_out <= high}
    return row


@cache
def code_checksum() -> str:
    """A checksum of the library's source, to tell rows of different states of it apart."""
    files = sorted(Path(cmvmed.__file__).parent.rglob("*.py"))
    return f"{zlib.crc32(b''.join(file.read_bytes() for file in files)):08x}"


class Progress:
    """Lines on stderr: failures at once, the state of the run every few seconds.

    Parameters
    ----------
    n_rows : int
        Number of rows to come.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows, self.n_done, self.n_failed = n_rows, 0, 0
        self.begin = self.told = time.monotonic()

    def count(self, row: Row) -> None:
        """Take note of a row."""
        self.n_done += 1
        if row["error"]:
            self.n_failed += 1
            _say(f"{', '.join(map(str, (row['method'], *list(row.values())[:5])))}: failed. {row['error']}")
        now = time.monotonic()
        if now - self.told > PROGRESS_SECONDS or self.n_done == self.n_rows:
            self.told = now
            left = (now - self.begin) / self.n_done * (self.n_rows - self.n_done)
            _say(f"{self.n_done} of {self.n_rows} rows, {self.n_failed} failed, {left / 60.0:.1f} minutes left")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
