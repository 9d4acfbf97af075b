"""A model that learns beside the page: a process of its own, so that a fit never delays the next row."""

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed._parent_process import exit_with_parent

N_SUGGESTED = 40  # rows suggested by each fit; the page asks for the next fit long before they are used up
Request: TypeAlias = tuple[
    int, list[str | None], list[bool] | None, object
]  # revision, labels, random rows, class prior


@dataclass(frozen=True)
class Learned:
    """What a fit says of the rows.

    Attributes
    ----------
    revision : of the labels that it was fitted to
    classes : names, in the order of the columns of the probabilities; none before there are two
    probabilities : (n, K)
    by_view : (n, K) by view, calibrated by held-out labels
    worths : of the views: near 0 for one without signal
    suggested : rows to label next, best first, and why
    estimate : of the accuracy: mean, low, high, level, held_out, n_held_out and, if known, labels_only; None if no label
        could be held out; what random rows say, if there are some
    n_labels : labels that it was fitted to
    seconds, processor : duration of the fit, by the clock and on the processor
    problem : why there is no fit
    """

    revision: int
    classes: tuple[str, ...] = ()
    probabilities: NDArray[np.float32] | None = None
    by_view: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    suggested: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    estimate: dict[str, float] | None = None
    n_labels: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    problem: str | None = None
    worths: dict[str, float] = field(default_factory=dict)

    def rankings(self) -> dict[str, NDArray[np.intp]]:
        """All rows, the least certain first, and those on which views disagree first; nothing before a fit."""
        if self.probabilities is None:
            return {}
        return {
            "unsure": rank_by_margin(self.probabilities),
            "disagree": rank_by_disagreement(self.by_view, self.worths, len(self.probabilities)),
        }


def rank_by_margin(p: NDArray[Any]) -> NDArray[np.intp]:
    """Rows by the margin between the two largest probabilities (n, K), smallest first."""
    two = np.partition(p, -2, axis=1)[:, -2:]
    return np.argsort(two[:, 1] - two[:, 0], kind="stable")


def rank_by_disagreement(
    by_view: Mapping[str, NDArray[Any]], worths: Mapping[str, float], n_rows: int
) -> NDArray[np.intp]:
    """Rows by the largest total variation distance ½ Σ_k |p_k - q_k| between two views times what both are worth."""
    largest = np.zeros(n_rows)
    for (one, p), (other, q) in combinations(by_view.items(), 2):
        distance = 0.5 * np.abs(p - q).sum(axis=1)  # NaN where a view is absent
        largest = np.fmax(largest, worths.get(one, 1.0) * worths.get(other, 1.0) * distance)
    return np.argsort(-largest, kind="stable")


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
        self._process = context.Process(target=_work, args=(child, str(project_file), os.getpid()), daemon=True)
        self._on_result = on_result
        self._lock = threading.Lock()
        self._busy = True  # with reading the data at first
        self._waiting: Request | None = None
        self._process.start()
        child.close()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def request(
        self, revision: int, labels: Sequence[str | None], random: Sequence[bool] | None, class_prior: object
    ) -> None:
        """Ask for a fit to the labels of all rows; ``random`` says which were drawn at random, None if none was chosen."""
        with self._lock:
            message = (revision, list(labels), None if random is None else list(random), class_prior)
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

    def _send(self, message: Request) -> None:
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


def _work(connection: Connection, project_file: str, parent: int) -> None:
    """The process: read the data, then fit whenever labels arrive."""
    exit_with_parent(parent)
    warnings.simplefilter("ignore")
    try:
        worker = _Worker(project_file)
        connection.send(worker.first())
        while True:
            connection.send(worker.fit(*connection.recv()))
    except (EOFError, OSError, KeyboardInterrupt):
        return


class _Worker:
    """The encoded rows of a project, and a model that keeps what its fits to them have in common."""

    def __init__(self, project_file: str) -> None:
        from threadpoolctl import threadpool_limits

        from cmvmed import CMVMED
        from cmvmed.workbench import Project

        threadpool_limits(1)  # a second thread gains nothing in fits of this size, and the page needs a processor too
        project = replace(Project.load(project_file), page_labels=None)
        self.model = CMVMED(**project.model_parameters)
        self.drawn = self.model.labels_drawn
        self.views: dict[str, Any] = {}
        self.groups, self.problem = None, None
        try:
            table = project.read()
            self.views, self.groups = table.views, table.groups
        except (ValueError, OSError, ImportError) as error:
            self.problem = str(error)

    def first(self) -> Learned:
        """Rows that cover the data, before there are labels."""
        from cmvmed import suggest_first

        if self.problem is not None:
            return Learned(0, problem=self.problem)
        found = suggest_first(self.views, N_SUGGESTED, random_share=0.0)  # the session adds random rows
        return Learned(0, suggested=tuple(found.rows.tolist()), reasons=tuple(found.reasons))

    def fit(self, revision: int, labels: list[str | None], random: list[bool] | None, class_prior: object) -> Learned:
        """Fit to the labels."""
        if self.problem is not None:
            return Learned(revision, problem=self.problem)
        if len(set(labels) - {None}) < 2:
            return Learned(revision, problem="A first fit needs labels of two classes.")
        marks = np.array(random, dtype=bool) if random is not None and self.drawn == "unknown" else None
        from cmvmed import config_context
        from cmvmed.workbench.class_shares import prior_of_labeled

        self.model.class_prior = prior_of_labeled(class_prior, labels)

        start = time.perf_counter(), time.process_time()
        try:
            with config_context(keep_rows=True):
                y = np.array(labels, dtype=object)
                self.model.fit(self.views, y, groups=self.groups, random_rows=marks)
            return self._result(revision, labels, self.model, start)
        except ValueError as error:
            return Learned(revision, problem=str(error))

    def _result(self, revision: int, labels: list[str | None], model: Any, start: tuple[float, float]) -> Learned:
        labeled = np.array([label is not None for label in labels])
        by_view = model.predict_proba_by_view(self.views, calibrated=True)
        rows, reasons = self._suggestions(model, np.flatnonzero(~labeled))
        return Learned(
            revision,
            tuple(map(str, model.classes_)),
            self._probabilities(model, labeled).astype(np.float32),
            {name: values.astype(np.float32) for name, values in by_view.items()},
            tuple(rows.tolist()),
            tuple(reasons),
            _estimate(model),
            int(labeled.sum()),
            time.perf_counter() - start[0],
            time.process_time() - start[1],
            worths=_worths(model),
        )

    def _probabilities(self, model: Any, labeled: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What the model says of all rows; it knows this of unlabeled training rows if it has seen them all."""
        known = getattr(model, "label_distributions_", None)
        if known is None:
            return np.asarray(model.predict_proba(self.views))
        found = np.array(known)
        found[labeled] = model.predict_proba(self._rows(labeled))
        return found

    def _suggestions(self, model: Any, unlabeled: NDArray[np.intp]) -> tuple[NDArray[np.intp], list[str]]:
        """Rows to label next and why; a model that does not hold all its rows is given the unlabeled ones."""
        if unlabeled.size == 0:
            return unlabeled, []
        try:
            found = model.suggest(N_SUGGESTED, random_share=0.0)
            return found.rows, found.reasons
        except ValueError:
            found = model.suggest(N_SUGGESTED, self._rows(unlabeled), random_share=0.0)
            return unlabeled[found.rows], found.reasons

    def _rows(self, rows: NDArray[Any]) -> dict[str, Any]:
        return {name: view[rows] for name, view in self.views.items()}


def _worths(model: Any) -> dict[str, float]:
    """What the views are worth by held-out labels, as far as it is known."""
    of = dict(zip(model.members_["name"], model.members_["worth"], strict=True))
    found = {name: float(of.get(f"view {name}", np.nan)) for name in model.view_names_}
    return {name: worth for name, worth in found.items() if np.isfinite(worth)}


def _estimate(model: Any) -> dict[str, float] | None:
    """The accuracy estimate, unless no label could be held out."""
    try:
        found = model.accuracy_estimate()
    except ValueError:
        return None
    if not found.n_held_out:
        return None
    of_random = ("random_mean", "random_low", "random_high", "n_random")
    names = ("mean", "low", "high", "level", "held_out", "n_held_out", "labels_only", *of_random)
    values = {name: float(getattr(found, name)) for name in names} | {"is_known": found.is_known}
    return {name: value for name, value in values.items() if np.isfinite(value)}
