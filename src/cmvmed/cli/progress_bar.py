"""How far long work is and how long it still takes: a bar if rich is installed and someone watches, else a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

import click

from cmvmed.reproduction.result_rows import ResultRow

SECONDS_BETWEEN_LINES = 30.0


class Progress:
    """Counts rows as they come.

    Parameters
    ----------
    n_rows : int
        Number of rows to come.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows, self.n_failed = n_rows, 0
        self.start = self.last_line = time.monotonic()
        self.bar = _rich_bar() if n_rows and sys.stderr.isatty() else None

    def __enter__(self) -> Self:
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task("", total=self.n_rows)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, row: ResultRow, n_left: int) -> None:
        """Show that a row has come and so many are left."""
        self.n_failed += row.status == "failed"
        n_done = self.n_rows - n_left
        what = f"{row.dataset}, split {row.split}, {row.method}" + (
            f"; {self.n_failed} failed" if self.n_failed else ""
        )
        if self.bar is not None:
            self.bar.update(self.task, completed=n_done, description=what)
        elif n_left == 0 or time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            left = (self.last_line - self.start) / max(n_done, 1) * n_left
            click.echo(f"{n_done} of {self.n_rows} rows, about {_duration(left)} left ({what})", err=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _rich_bar() -> Any:
    """A progress bar on the error stream, or None without rich."""
    try:
        from rich import console, progress
    except ImportError:
        return None
    return progress.Progress(
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("time left"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False),
        console=console.Console(stderr=True),
    )
