"""A labeling session: the rows of a project, their labels on disk, what was learned, and which row comes next."""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmvmed.labeling.content import RowContent
from cmvmed.labeling.exchange import LabeledRow
from cmvmed.labeling.learner import Learned, Learner
from cmvmed.labeling.store import Event, LabelStore
from cmvmed.workbench import Project
from cmvmed.workbench.user_errors import ProjectError, abbreviate

__all__ = ["STRATEGIES", "LabelingSession"]

STRATEGIES = {
    "suggest": "what helps most",
    "unsure": "least certain",
    "disagree": "sensors disagree",
    "random": "at random",
    "review": "review a class",
    "doubtful": "doubtful labels",
}
RESERVED_SECONDS = 120.0  # a row that one window shows is not offered to another for so long
MAX_CLASS_NAME = 100  # characters
STABLE_CHANGE, STABLE_FITS = (
    0.01,
    3,
)  # share of rows that change their class, in so many fits, when more labels add little
MAX_FOUND = 50  # rows listed by a search


@dataclass(frozen=True)
class Choice:
    """A row to show, and why."""

    row: int
    reason: str


class LabelingSession:
    """Everything the page asks for.

    Parameters
    ----------
    project_file : path of the project file
    store : the labels; by default beside the project file
    learner : whether a model learns in the background
    """

    def __init__(self, project_file: Path, store: LabelStore, *, learn: bool = True, seed: int = 0) -> None:
        self.project = Project.load(project_file)
        rows = self.project.rows()
        if len(rows.ids) == 0:
            raise ProjectError("The project has no rows to label.")
        self.ids = [str(item) for item in rows.ids]
        self.row_of = {item: row for row, item in enumerate(self.ids)}
        if len(self.row_of) < len(self.ids):
            repeated = Counter(self.ids).most_common(1)[0][0]
            raise ProjectError(
                f"The identifier {repeated!r} occurs more than once; labels need identifiers that differ."
            )
        self.given: list[str | None] = [None if value is None else str(value) for value in rows.labels.values]
        self.content = RowContent(rows, self.project.settings.data.sampling_rate)
        self.store = store
        store.add_classes([*self.project.settings.data.classes, *rows.labels.counts])
        self._order = np.random.default_rng(seed).permutation(len(self.ids))
        self._lock = threading.RLock()
        self._reserved: dict[int, tuple[str, float]] = {}
        self._current = store.current()
        self.learned = Learned(-1)
        self.history: list[Learned] = []
        self._learner = Learner(project_file, self._on_result) if learn else None
        self._request_fit()

    def close(self) -> None:
        """End the process that learns, and close the file of labels."""
        if self._learner is not None:
            self._learner.close()
        self.store.close()

    # Labels

    def label_of(self, row: int) -> str | None:
        """The class of a row: the last one given on the page, else that of the data."""
        event = self._event(row)
        if event is None:
            return self.given[row]
        return event.label if event.action == "label" else None

    def _event(self, row: int) -> Event | None:
        """What was said of a row on the page, None if nothing."""
        event = self._current.get(self.ids[row])
        return None if event is None or event.action == "reset" else event

    def is_open(self, row: int) -> bool:
        """Whether nothing was said of a row yet."""
        event = self._event(row)
        return self.given[row] is None if event is None else event.action == "clear"

    def record(
        self, row: int, action: str, label: str | None, *, chosen_by: str, window: str, seen: int | None
    ) -> Event:
        """Write what a window says of a row; on disk before this returns."""
        self._check_row(row)
        if label is not None:
            label = self.check_class(label)
        event = self.store.record(self.ids[row], action, label, chosen_by=chosen_by, window=window, seen=seen)
        self._after(event)
        return event

    def undo(self, window: str) -> Event | None:
        """Take back the last thing that a window said."""
        event = self.store.undo(window)
        if event is not None:
            self._after(event)
        return event

    def add_class(self, name: str) -> str:
        """Add a class."""
        name = self.check_class(name)
        self.store.add_classes([name])
        return name

    def check_class(self, name: object) -> str:
        """The name of a class without blanks around it."""
        if not isinstance(name, str) or not name.strip():
            raise ValueError("A class needs a name.")
        name = name.strip()
        if len(name) > MAX_CLASS_NAME:
            raise ValueError(f"The name of a class has at most {MAX_CLASS_NAME} characters.")
        if not name.isprintable():
            raise ValueError("The name of a class has characters that cannot be shown.")
        similar = [known for known in self.store.classes if known != name and known.casefold() == name.casefold()]
        if similar:
            raise ValueError(
                f"There is a class {similar[0]!r} already; names that differ by case only are easily confused."
            )
        return name

    def labeled_rows(self) -> list[LabeledRow]:
        """Every row of which something was said on the page, in the order of the data, for another tool."""
        found = []
        for row, item in enumerate(self.ids):
            event = self._event(row)
            if event is not None and event.action != "clear":
                seconds = self.content.seconds(row)
                found.append(LabeledRow(item, event.label, seconds, event.chosen_by, event.at))
        return found

    def add_rows(self, rows: Iterable[LabeledRow]) -> int:
        """Write labels of another tool; rows that are not in the project are an error. The number of changed rows."""
        rows = list(rows)
        unknown = [row.id for row in rows if row.id not in self.row_of]
        if unknown:
            raise ProjectError(f"{len(unknown)} identifiers are not in the project: {abbreviate(unknown)}.")
        changed = 0
        for row in rows:
            before = self._current.get(row.id)
            action = "unsure" if row.label is None else "label"
            if before is None or (before.action, before.label) != (action, row.label):
                seen = None if before is None else before.revision
                label = None if row.label is None else self.check_class(row.label)
                event = self.store.record(row.id, action, label, chosen_by="import", window="import", seen=seen)
                self._current[row.id] = event
                changed += 1
        self._request_fit()
        return changed

    def _after(self, event: Event) -> None:
        with self._lock:
            self._current[event.item] = event
            self._reserved.pop(self.row_of.get(event.item, -1), None)
        self._request_fit()

    def _request_fit(self) -> None:
        if self._learner is None:
            return
        with self._lock:
            labels = [self.label_of(row) for row in range(len(self.ids))]
            chosen = any(event.chosen_by not in ("random", "import") for event in self._current.values())
            revision = self.store.revision
        if any(label is not None for label in labels):
            self._learner.request(revision, labels, chosen=chosen)

    def _on_result(self, learned: Learned) -> None:
        with self._lock:
            if learned.probabilities is None and self.learned.probabilities is not None:
                return
            self.learned = learned
            if learned.probabilities is not None:
                self.history.append(learned)

    # The next row

    def next_row(
        self, strategy: str, window: str, *, of_class: str | None = None, skip: Iterable[int] = ()
    ) -> Choice | None:
        """The row to show next by a strategy, which is not shown in another window; None if there is no such row."""
        with self._lock:
            skipped = set(skip)
            for choice in self._candidates(strategy, of_class):
                if choice.row not in skipped and not self._is_reserved(choice.row, window):
                    self._reserve(choice.row, window)
                    return choice
        return None

    def _candidates(self, strategy: str, of_class: str | None) -> Iterable[Choice]:
        learned, n_rows = self.learned, len(self.ids)
        if strategy == "review":
            yield from (Choice(r, f"labeled {of_class!r}") for r in range(n_rows) if self.label_of(r) == of_class)
            return
        if strategy == "doubtful":
            yield from self._doubtful()
            return
        if strategy == "suggest":
            for row, reason in zip(learned.suggested, learned.reasons, strict=True):
                if self.is_open(row):
                    yield Choice(row, reason)
        if strategy in ("suggest", "unsure", "disagree") and learned.probabilities is not None:
            ranked = self._uncertainty() if strategy != "disagree" else self._disagreement()
            reason = STRATEGIES["unsure" if strategy != "disagree" else "disagree"]
            yield from (Choice(int(row), reason) for row in ranked if self.is_open(int(row)))
            return
        yield from (Choice(int(row), STRATEGIES["random"]) for row in self._order if self.is_open(int(row)))

    def _uncertainty(self) -> Any:
        """Rows by the margin between the two largest probabilities, smallest first."""
        assert self.learned.probabilities is not None
        two = np.sort(self.learned.probabilities, axis=1)[:, -2:]
        return np.argsort(two[:, 1] - two[:, 0], kind="stable")

    def _disagreement(self) -> Any:
        """Rows by the largest total variation distance between two views, largest first."""
        views = list(self.learned.by_view.values())
        largest = np.zeros(len(self.ids))
        for i, p in enumerate(views):
            for q in views[:i]:
                largest = np.maximum(largest, 0.5 * np.abs(p - q).sum(axis=1))
        return np.argsort(-largest, kind="stable")

    def _doubtful(self) -> Iterable[Choice]:
        """Labeled rows by the probability of their class, smallest first, where another class is more probable."""
        learned = self.learned
        if learned.probabilities is None:
            return
        column = {name: k for k, name in enumerate(learned.classes)}
        found = []
        for row in range(len(self.ids)):
            label = self.label_of(row)
            if label in column:
                views = [p[row] for p in learned.by_view.values()] or [learned.probabilities[row]]
                by_views = np.mean(views, axis=0)
                other = learned.classes[int(by_views.argmax())]
                if other != label:
                    found.append((float(by_views[column[label]]), row, other))
        for _, row, other in sorted(found):
            yield Choice(row, f"labeled {self.label_of(row)!r}, but the sensors say {other!r}")

    def _is_reserved(self, row: int, window: str) -> bool:
        holder = self._reserved.get(row)
        return holder is not None and holder[0] != window and time.monotonic() - holder[1] < RESERVED_SECONDS

    def _reserve(self, row: int, window: str) -> None:
        self._reserved = {r: h for r, h in self._reserved.items() if h[0] != window}
        self._reserved[row] = (window, time.monotonic())

    def search(self, text: str) -> list[int]:
        """Rows whose identifier contains a text."""
        wanted = text.casefold()
        found = (row for row, item in enumerate(self.ids) if wanted in item.casefold())
        return [row for row, _ in zip(found, range(MAX_FOUND), strict=False)]

    # What the page shows

    def row(self, row: int) -> dict[str, Any]:
        """Content, label and opinions of a row."""
        self._check_row(row)
        event = self._current.get(self.ids[row])
        return {
            "row": row,
            "id": self.ids[row],
            "label": self.label_of(row),
            "unsure": event is not None and event.action == "unsure",
            "revision": None if event is None else event.revision,
            "panels": self.content.panels(row),
            "opinions": self._opinions(row),
        }

    def _opinions(self, row: int) -> dict[str, Any] | None:
        learned = self.learned
        if learned.probabilities is None:
            return None
        return {
            "classes": list(learned.classes),
            "consensus": _shares(learned.probabilities[row]),
            "views": {name: _shares(p[row]) for name, p in learned.by_view.items()},
        }

    def status(self) -> dict[str, Any]:
        """Counts, the estimate, and whether more labels are worth while."""
        with self._lock:
            labels = [self.label_of(row) for row in range(len(self.ids))]
            counts = Counter(label for label in labels if label is not None)
            learned, n_unsure = self.learned, sum(e.action == "unsure" for e in self._current.values())
            first = self.history[0].estimate if self.history else None
        return {
            "rows": len(self.ids),
            "labeled": sum(counts.values()),
            "unsure": n_unsure,
            "classes": [{"name": name, "count": counts.get(name, 0)} for name in self.store.classes],
            "learning": self._learner is not None and self._learner.busy,
            "fitted_revision": learned.revision,
            "revision": self.store.revision,
            "estimate": learned.estimate,
            "first_estimate": first,
            "seconds": learned.seconds,
            "problem": learned.problem,
            "advice": self._advice(counts),
        }

    def _advice(self, counts: Counter[str]) -> str:
        """What to do next, in one sentence."""
        if len(counts) < 2:
            return "Label rows of at least two classes; the model starts then."
        rare = [name for name, count in counts.items() if count < 2]
        if rare:
            return f"Label one more row of {rare[0]!r}: a single row of a class cannot be held out to test the model."
        changes = [learned.changed for learned in self.history[-STABLE_FITS:]]
        if len(changes) == STABLE_FITS and max(changes, default=1.0) <= STABLE_CHANGE:
            return (
                f"The last {STABLE_FITS} fits changed the class of at most {max(changes):.1%} of the rows: more labels like "
                "these will change little. Review doubtful labels, or stop."
            )
        return "More labels still change the predictions."

    def _check_row(self, row: object) -> None:
        if type(row) is not int or not 0 <= row < len(self.ids):
            raise ValueError(f"There is no row {row!r}; rows are 0 to {len(self.ids) - 1}.")


def _shares(p: Any) -> list[float]:
    return [round(float(value), 4) for value in p]
