"""A progress bar with the time left on the error stream, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.callback import CallbackContext

# Rough shares of the time of a training, for the time left; a stage is a share of its own.
STEPS = {"Reading": 5, "Checking": 5, "Encoding": 5, "Setting up": 20, "Fitting": 35, "Holding out labels": 30}

Advance = Callable[[str, float], None]  # label of the step that begins, units that are done


@contextmanager
def progress_bar(total: float) -> Iterator[Advance]:
    """Yields a function that takes the next step's name and the units done since the last call."""
    if not sys.stderr.isatty():
        yield lambda label, units: None
    elif find_spec("rich") is not None:
        yield from _rich_bar(total)
    else:
        yield from _click_bar(total)


def _rich_bar(total: float) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(label: str, units: float) -> None:
            bar.update(task, description=label, advance=units)

        yield advance


def _click_bar(total: float) -> Iterator[Advance]:
    with click.progressbar(length=round(total), file=sys.stderr, item_show_func=lambda item: item) as bar:

        def advance(label: str, units: float) -> None:
            bar.update(round(units), label)

        yield advance


class StageProgress:
    """A callback of scikit-learn that advances a bar when a fit begins and after every stage of its annealing."""

    def __init__(self, advance: Advance, n_stages: int) -> None:
        self._advance, self._left, self._n_stages = advance, n_stages, n_stages

    def setup(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing before the fit."""

    def teardown(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing after the fit."""

    def on_fit_task_begin(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Show that the stages begin."""
        if context.task_name == "stage" and self._left == self._n_stages:
            self._advance("Fitting", STEPS["Setting up"])

    def on_fit_task_end(self, estimator: BaseEstimator, context: CallbackContext, **reported: Any) -> None:
        """Show that a stage ended; a second pass over the stages adds nothing."""
        if context.task_name == "stage" and self._left > 0:
            self._left -= 1
            self._advance("Fitting" if self._left else "Holding out labels", STEPS["Fitting"] / self._n_stages)
