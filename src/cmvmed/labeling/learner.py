"""A model that learns beside the page: a process of its own, so that a fit never delays the next row."""

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Learned", "Learner"]

N_SUGGESTED = 40  # rows suggested by each fit; the page asks for the next fit long before they are used up


@dataclass(frozen=True)
class Learned:
    """What a fit says of the rows.

    Attributes
    ----------
    revision : of the labels that it was fitted to
    classes : names, in the order of the columns of the probabilities; none before there are two
    probabilities : (n, K)
    by_view : (n, K) by view
    suggested : rows to label next, best first, and why
    estimate : accuracy estimate: mean, low, high, held_out, labels_only; None if it means nothing yet
    changed : share of the rows whose predicted class is not that of the fit before; NaN for the first
    problem : why there is no fit
    """

    revision: int
    classes: tuple[str, ...] = ()
    probabilities: NDArray[np.float32] | None = None
    by_view: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    suggested: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    estimate: dict[str, float] | None = None
    changed: float = float("nan")
    seconds: float = 0.0
    problem: str | None = None


class Learner:
    """Fits in the background; the labels of the last request count.

    Parameters
    ----------
    project_file : the project, which the process reads by itself
    on_result : called with each result, in a thread
    """

    def __init__(self, project_file: Path, on_result: Callable[[Learned], None]) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        self._process = context.Process(target=_work, args=(child, str(project_file)), daemon=True)
        self._on_result = on_result
        self._lock = threading.Lock()
        self._busy = True  # with reading the data at first
        self._waiting: tuple[int, list[str | None], bool] | None = None
        self._process.start()
        child.close()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def request(self, revision: int, labels: Sequence[str | None], *, chosen: bool) -> None:
        """Ask for a fit to the labels of all rows; ``chosen`` if some were not drawn at random."""
        with self._lock:
            message = (revision, list(labels), chosen)
            if self._busy:
                self._waiting = message
            else:
                self._send(message)

    @property
    def busy(self) -> bool:
        """Whether a fit is running or waiting."""
        return self._busy

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join(timeout=5.0)
        self._connection.close()

    def _send(self, message: tuple[int, list[str | None], bool]) -> None:
        self._busy = True
        self._connection.send(message)

    def _receive(self) -> None:
        while True:
            try:
                result: Learned = self._connection.recv()
            except (EOFError, OSError):
                return
            self._on_result(result)
            with self._lock:
                self._busy = False
                if self._waiting is not None:
                    self._send(self._waiting)
                    self._waiting = None


def _work(connection: Connection, project_file: str) -> None:
    """The process: read the data, then fit whenever labels arrive."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    warnings.simplefilter("ignore")
    try:
        worker = _Worker(project_file)
        connection.send(worker.first())
        while True:
            connection.send(worker.fit(*connection.recv()))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _end_with_parent(parent: int) -> None:
    """End this process within a second of its parent's end, even in the middle of a fit."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


class _Worker:
    """The encoded rows of a project, and the last fit."""

    def __init__(self, project_file: str) -> None:
        from cmvmed.workbench import Project

        project = Project.load(project_file)
        self.parameters = project.model_parameters
        try:
            table = project.read()
            self.views, self.groups, self.problem = table.views, table.groups, None
        except (ValueError, OSError, ImportError) as error:
            self.views, self.groups, self.problem = {}, None, str(error)
        self.predicted: NDArray[np.object_] | None = None

    def first(self) -> Learned:
        """Rows that cover the data, before there are labels."""
        try:
            from cmvmed import suggest_first
        except ImportError:  # SHIM
            suggest_first = lambda views, n: np.random.default_rng(0).permutation(next(iter(views.values())).shape[0])[
                :n
            ]

        if self.problem is not None:
            return Learned(0, problem=self.problem)
        n_rows = next(iter(self.views.values())).shape[0]
        rows = suggest_first(self.views, min(N_SUGGESTED, n_rows))
        return Learned(0, suggested=tuple(map(int, rows)), reasons=("typical of rows like it",) * len(rows))

    def fit(self, revision: int, labels: list[str | None], chosen: bool) -> Learned:
        """Fit to the labels."""
        from cmvmed import CMVMED

        if self.problem is not None:
            return Learned(revision, problem=self.problem)
        y = np.array(labels, dtype=object)
        present = {label for label in labels if label is not None}
        if len(present) < 2:
            return Learned(revision, problem="A first fit needs labels of two classes.")
        start = time.perf_counter()
        drawn = {"labels_drawn": "unknown"} if chosen else {}
        try:
            model = CMVMED(**(self.parameters | drawn)).fit(self.views, y, groups=self.groups)
            return self._result(revision, model, start)
        except ValueError as error:
            return Learned(revision, problem=str(error))

    def _result(self, revision: int, model: Any, start: float) -> Learned:
        probabilities = model.predict_proba(self.views)
        by_view = model.predict_proba_by_view(self.views)
        predicted = model.classes_[probabilities.argmax(axis=1)]
        changed = float("nan") if self.predicted is None else float(np.mean(predicted != self.predicted))
        self.predicted = predicted
        n_unlabeled = int(model.n_unlabeled_) if hasattr(model, "n_unlabeled_") else N_SUGGESTED
        if not hasattr(model, "suggest"):  # SHIM
            n_unlabeled = 0
        found = model.suggest(min(N_SUGGESTED, n_unlabeled)) if n_unlabeled else None
        return Learned(
            revision,
            tuple(map(str, model.classes_)),
            probabilities.astype(np.float32),
            {name: values.astype(np.float32) for name, values in by_view.items()},
            () if found is None else tuple(map(int, found.rows)),
            () if found is None else tuple(found.reasons),
            _estimate(model),
            changed,
            time.perf_counter() - start,
        )


def _estimate(model: Any) -> dict[str, float] | None:
    """The accuracy estimate, unless no label could be held out."""
    try:
        found = model.accuracy_estimate()
    except ValueError:
        return None
    if not found.n_held_out:
        return None
    names = ("mean", "low", "high", "level", "held_out", "n_held_out", "labels_only")
    return {name: float(getattr(found, name)) for name in names}
