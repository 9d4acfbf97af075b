"""A labeling session: the rows of a project, their labels on disk, what was learned, and which row comes next."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cmvmed.labeling.content import RowContent, RowContext, context_columns
from cmvmed.labeling.exchange import LabeledRow
from cmvmed.labeling.learner import Learned, Learner
from cmvmed.labeling.progress import (
    UNNAMED,
    Fitted,
    advice,
    agreements,
    labels_by_annotator,
    last_change,
    shown_estimate,
    why_no_estimate,
)
from cmvmed.pages.formatting import plural
from cmvmed.workbench import Project
from cmvmed.workbench.class_shares import check_ranges, ranges_of, write_ranges
from cmvmed.workbench.label_store import Conflict, Event, LabelStore
from cmvmed.workbench.tables.columns import clean_name
from cmvmed.workbench.tables.row_labels import is_marker, similar_classes
from cmvmed.workbench.user_errors import ProjectError, abbreviate

STRATEGIES = {
    "suggest": "what helps most",
    "unsure": "least certain",
    "disagree": "sensors disagree",
    "random": "at random",
    "review": "review a class",
    "doubtful": "doubtful labels",
    "second": "second opinion",
    "disputed": "annotators disagree",
}
RESERVED_SECONDS = 120.0  # a row that one window shows is not offered to another for so long
FIRST_SECONDS = 3.5  # after the start, until when the first row waits for the choice of rows that cover the data
RANDOM = "at random, to see how accurate the model is"
MAX_CLASS_NAME = 100  # characters
MAX_FOUND = 50  # rows listed by a search
Written = TypeVar("Written", Event, Event | None)


@dataclass(frozen=True)
class Choice:
    """A row to show, why, and by which strategy it was chosen in the end."""

    row: int
    reason: str
    strategy: str


class LabelingSession:
    r"""Everything the page asks for.

    Parameters
    ----------
    project_file : path of the project file
    store : the labels
    learn : whether a model learns in the background
    random_share : part of the labels that are of random rows, also where rows are chosen

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.labeling import LabelingSession
    >>> from cmvmed.workbench import init
    >>> from cmvmed.workbench.label_store import LabelStore
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> session = LabelingSession(Path("cmvmed.toml"), LabelStore(Path("labels.sqlite")), learn=False)
    >>> session.ids
    ['1', '2', '3']
    >>> session.close()
    """

    def __init__(self, project_file: Path, store: LabelStore, *, learn: bool = True, random_share: float = 0.2) -> None:
        self.project_file, self.project = project_file, replace(Project.load(project_file), page_labels=None)
        self.store, self._lock, self._random_share = store, threading.RLock(), random_share
        self._reserved: dict[int, tuple[str, float]] = {}
        self.learned, self.history = Learned(-1), list[Fitted]()
        self._rankings: dict[str, NDArray[np.intp]] = {}
        self._first_result, self._started = threading.Event(), time.monotonic()
        self._learner = Learner(project_file, self._on_result) if learn else None  # reads the data at the same time
        try:
            self._read_rows()
        except BaseException:
            self.close()
            raise
        self._request_fit()

    def _read_rows(self) -> None:
        """The rows of the project, and what the file of labels says of them."""
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
        path = self.project.folder / (self.project.settings.data.path or "")
        columns = context_columns(rows, self.project.settings)
        self.context = RowContext(rows, columns, path if path.is_dir() else path.parent)
        self.store.add_classes([*self.project.settings.data.classes, *rows.labels.counts])
        self._order = np.random.default_rng(0).permutation(len(self.ids))
        self._read_store()

    def close(self) -> None:
        """End the process that learns, and close the file of labels."""
        if self._learner is not None:
            self._learner.close()
        self.store.close()

    # Labels

    def _read_store(self) -> None:
        """What the file of labels says of all rows."""
        with self._lock:
            self._events: dict[int, Event] = {}
            self._labels = list(self.given)
            self._open = np.array([label is None for label in self.given], dtype=bool)
            self._counts = Counter(label for label in self.given if label is not None)
            self._by_annotator: dict[int, dict[str, str]] = {}
            self._by_class: dict[str, NDArray[np.intp]] | None = None
            for item, event in self.store.current().items():
                if item in self.row_of:
                    self._apply(event)
            events: dict[str, list[Event]] = {}
            for event in self.store.events():
                events.setdefault(event.item, []).append(event)
            for item, own in events.items():
                if item in self.row_of:
                    self._by_annotator[self.row_of[item]] = labels_by_annotator(own)

    def _apply(self, event: Event) -> None:
        """Take the last event of a row into account."""
        row = self.row_of[event.item]
        before = self._labels[row]
        label = self.given[row] if event.action == "reset" else event.label
        self._events[row] = event
        self._labels[row] = label
        self._open[row] = label is None and event.action != "unsure"
        self._counts.subtract([before] if before is not None else [])
        self._counts.update([label] if label is not None else [])
        self._by_class = None

    def label_of(self, row: int) -> str | None:
        """The class of a row: the last one given on the page, else that of the data."""
        return self._labels[row]

    def is_open(self, row: int) -> bool:
        """Whether nothing was said of a row yet."""
        return bool(self._open[row])

    def record(
        self,
        row: int,
        action: str,
        label: str | None,
        *,
        chosen_by: str,
        window: str,
        seen: int | None,
        annotator: str = "",
    ) -> Event:
        """Write what a window says of a row; on disk before this returns."""
        self._check_row(row)
        if label is not None:
            label = self.check_class(label)
        name = check_annotator(annotator)
        said = {"chosen_by": chosen_by, "window": window, "annotator": name}
        return self._written(lambda: self.store.record(self.ids[row], action, label, seen=seen, **said))

    def undo(self, window: str) -> Event | None:
        """Take back the last thing that a window said."""
        return self._written(lambda: self.store.undo(window))

    def _written(self, write: Callable[[], Written]) -> Written:
        """What was written, after it was taken into account; other windows may be those of another server."""
        try:
            with self._lock:
                event = write()
                if event is not None:
                    self._apply(event)
                    row = self.row_of[event.item]
                    self._by_annotator[row] = labels_by_annotator(self.store.events(event.item))
                    self._reserved.pop(row, None)
                    if event.undoes is not None:  # the window shows the row again
                        self._reserved[row] = (event.window, time.monotonic())
        except Conflict:
            self._read_store()
            raise
        if event is not None:
            self._request_fit()
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
        name, data = clean_name(name), self.project.settings.data
        if len(name) > MAX_CLASS_NAME:
            raise ValueError(f"The name of a class has at most {MAX_CLASS_NAME} characters.")
        if not name.isprintable():
            raise ValueError("The name of a class has characters that cannot be shown.")
        if is_marker(name, data):
            raise ValueError(f"{name!r} is a word for unlabeled rows, not a class; mark the row as unsure.")
        if data.classes and name not in data.classes:
            raise ValueError("The project file lists all classes; add this one to classes in [data] and start again.")
        known = self.store.classes
        similar = [] if name in known else [other for other in known if similar_classes([other, name])]
        if similar:
            raise ValueError(f"There is a class {similar[0]!r} already; names that look alike are easily confused.")
        return name

    def set_shares(self, given: dict[str, Any]) -> None:
        """Write what a user roughly knows of the class shares, as ranges by class, to the project file."""
        ranges = check_ranges(given, self.store.classes)
        with self._lock:
            write_ranges(self.project_file, ranges)
            settings = self.project.settings
            model = {key: value for key, value in settings.model.items() if key != "class_prior"}
            model |= {"class_prior": ranges} if ranges else {}
            self.project.settings = replace(settings, model=model)
        self._request_fit()

    def labeled_rows(self) -> list[LabeledRow]:
        """Every row of which something was said on the page, in the order of the data, for another tool."""
        found, first = [], self.store.first_reasons
        for row, event in sorted(self._events.items()):
            if event.action in ("label", "unsure"):
                seconds, reason = self.content.seconds(row), first.get(event.item, event.chosen_by)
                found.append(LabeledRow(event.item, event.label, seconds, reason, event.at, event.annotator))
        return found

    def add_rows(self, rows: Iterable[LabeledRow]) -> int:
        """Write labels of another tool; rows that are not in the project are an error. The number of changed rows."""
        rows = [replace(row, label=None if row.label is None else self.check_class(row.label)) for row in rows]
        rows = [replace(row, annotator=check_annotator(row.annotator)) for row in rows]
        unknown = [row.id for row in rows if row.id not in self.row_of]
        if unknown:
            n = plural(len(unknown), "identifier is", "identifiers are")
            raise ProjectError(f"{n} not in the project: {abbreviate(unknown)}.")
        changed = 0
        for row in rows:
            before = self._events.get(self.row_of[row.id])
            action = "unsure" if row.label is None else "label"
            author = row.annotator or (before.annotator if before else "")
            if before is None or (before.action, before.label, before.annotator) != (action, row.label, author):
                seen = None if before is None else before.revision
                said = {"chosen_by": row.chosen_by, "window": "import", "annotator": author}
                self.store.record(row.id, action, row.label, seen=seen, **said)
                changed += 1
        self._read_store()
        self._request_fit()
        return changed

    # The model

    def _request_fit(self) -> None:
        if self._learner is None:
            return
        with self._lock:
            labels, revision = list(self._labels), self.store.revision
        if self._n_labels:
            random = self.store.random_items
            marks = None if random is None else [key in random for key in self.ids]
            self._learner.request(revision, labels, marks, self.project.settings.model.get("class_prior", "auto"))

    @property
    def _n_labels(self) -> int:
        return sum(self._counts.values())

    def _on_result(self, learned: Learned) -> None:
        rankings = learned.rankings()
        fits: list[Fitted] = []
        if learned.probabilities is not None:
            fits = [Fitted(learned.n_labels, learned.estimate, self._positions(learned.classes, learned.probabilities))]
        with self._lock:  # for a moment only, since requests wait for it
            self._first_result.set()
            if learned.problem is not None:  # what was learned before stays
                self.learned = replace(self.learned, problem=learned.problem)
                return
            self.learned = learned
            self._rankings |= rankings
            self.history += fits

    def _positions(self, classes: tuple[str, ...], p: NDArray[np.float32]) -> NDArray[np.int32]:
        """The most probable class of each row, as its position in the file of labels."""
        position = {name: k for k, name in enumerate(self.store.classes)}
        positions = np.array([position.get(name, -1) for name in classes], dtype=np.int32)
        predicted: NDArray[np.int32] = positions[p.argmax(axis=1)]
        return predicted

    # The next row

    def next_row(
        self,
        strategy: str,
        window: str,
        *,
        of_class: str | None = None,
        skip: Iterable[int] = (),
        annotator: str = "",
    ) -> Choice | None:
        """The row to show next by a strategy, which is not shown in another window; None if there is no such row."""
        if strategy == "suggest" and self._learner is not None:
            self._first_result.wait(max(0.0, self._started + FIRST_SECONDS - time.monotonic()))
        with self._lock:
            hidden = {*skip, *(row for row in self._reserved if self._is_reserved(row, window))}
            for choice in self._candidates(strategy, of_class, annotator):
                if choice.row not in hidden:
                    self._reserve(choice.row, window)
                    return choice
        return None

    def _candidates(self, strategy: str, of_class: str | None, annotator: str) -> Iterable[Choice]:
        learned = self.learned
        if strategy in ("second", "disputed"):
            yield from self._second(annotator.strip() or UNNAMED) if strategy == "second" else self._disputed()
            return
        if strategy == "review":
            of = (row for row, label in enumerate(self._labels) if label == of_class)
            yield from (Choice(row, f"labeled {of_class!r}", strategy) for row in of)
            return
        if strategy == "doubtful":
            yield from self._doubtful()
            return
        if strategy in ("suggest", "unsure", "disagree") and self._random_is_next:
            yield from (Choice(int(row), RANDOM, "random") for row in self._order[self._open[self._order]])
        if strategy == "suggest":
            for row, reason in zip(learned.suggested, learned.reasons, strict=True):
                if self._open[row]:
                    yield Choice(row, f"{reason}{self._fit_before()}", strategy)
            strategy = "unsure"
        if strategy not in self._rankings:
            strategy = "random"
        order = self._rankings.get(strategy, self._order)
        yield from (Choice(int(row), STRATEGIES[strategy], strategy) for row in order[self._open[order]])

    @property
    def _random_is_next(self) -> bool:
        """Whether the next label is to be of a random row, which shows the accuracy and the class shares."""
        n, rounding = self._n_labels, 1e-9
        return int(self._random_share * (n + 1) + rounding) > int(self._random_share * n + rounding)

    def _fit_before(self) -> str:
        """Of which fit a reason is, while the next one runs."""
        n = self.learned.n_labels
        is_learning = self._learner is not None and self._learner.busy
        return f" (by the fit to {plural(n, 'label')}; the next one runs)" if is_learning and n else ""

    def _second(self, annotator: str) -> Iterable[Choice]:
        """Rows that somebody else labeled, whose class is not shown, at random."""
        for row in self._order.tolist():
            names = self._by_annotator.get(row, {})
            if names and annotator not in names:
                yield Choice(row, "somebody else labeled it; their class is hidden", "second")

    def _disputed(self) -> Iterable[Choice]:
        """Rows to which annotators gave different classes, unless somebody has reviewed them since."""
        for row, labels in sorted(self._by_annotator.items()):
            if len(set(labels.values())) > 1 and self._events[row].chosen_by != "disputed":
                said = ", ".join(f"{name} says {label!r}" for name, label in sorted(labels.items()))
                yield Choice(row, said, "disputed")

    def _doubtful(self) -> Iterable[Choice]:
        """Labeled rows by the probability of their class, smallest first, where another class is more probable."""
        learned = self.learned
        if learned.probabilities is None:
            return
        column = {name: k for k, name in enumerate(learned.classes)}
        rows = np.array([row for row, label in enumerate(self._labels) if label in column], dtype=np.intp)
        own = np.array([column[str(self._labels[row])] for row in rows], dtype=np.intp)
        p = np.mean([view[rows] for view in learned.by_view.values()] or [learned.probabilities[rows]], axis=0)
        other, given = p.argmax(axis=1), p[np.arange(rows.size), own]
        for k in np.argsort(given, kind="stable"):
            if other[k] != own[k]:
                name = learned.classes[other[k]]
                reason = f"labeled {self._labels[rows[k]]!r}, but the sensors say {name!r}"
                yield Choice(int(rows[k]), reason, "doubtful")

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
        return list(islice(found, MAX_FOUND))

    # What the page shows

    def row(self, row: int) -> dict[str, Any]:
        """Content, label and opinions of a row."""
        self._check_row(row)
        event = self._events.get(row)
        return {
            "row": row,
            "id": self.ids[row],
            "label": self.label_of(row),
            "unsure": event is not None and event.action == "unsure",
            "revision": None if event is None else event.revision,
            "context": self.context.cells(row),
            "panels": self.content.panels(row, self._rows_by_class()),
            "opinions": self._opinions(row),
        }

    def _rows_by_class(self) -> dict[str, NDArray[np.intp]]:
        """The labeled rows of each class that has some, in the order of the classes."""
        if self._by_class is None:
            found: dict[str, list[int]] = {name: [] for name in self.store.classes}
            for row, label in enumerate(list(self._labels)):
                if label is not None:
                    found.setdefault(label, []).append(row)
            self._by_class = {name: np.array(rows, dtype=np.intp) for name, rows in found.items() if rows}
        return self._by_class

    def picture(self, row: int, column: str) -> tuple[bytes, str]:
        """The picture in a column of a row, and its media type."""
        self._check_row(row)
        return self.context.picture(row, column)

    def sound(self, row: int, column: str) -> bytes:
        """A wav file of one sensor of a row."""
        self._check_row(row)
        if not self.content.has_sound(row, column):
            raise ValueError("There is no such sound.")
        return self.content.sound(row, column)

    def _opinions(self, row: int) -> dict[str, Any] | None:
        learned = self.learned
        if learned.probabilities is None:
            return None
        # With one view, what the model says is what the sensor says; its part of the model alone would only confuse.
        by_view = learned.by_view if len(learned.by_view) > 1 else {}
        return {
            "classes": list(learned.classes),
            "consensus": _shares(learned.probabilities[row]),
            "views": {name: _shares(p[row]) for name, p in by_view.items()},
        }

    def status(self) -> dict[str, Any]:
        """Counts, the estimate, and whether more labels are worth while."""
        with self._lock:
            counts, learned = Counter(self._counts), self.learned
            n_unsure = sum(event.action == "unsure" for event in self._events.values())
            history, people = list(self.history), agreements(self._by_annotator.values())
            n_disputed = sum(1 for _ in self._disputed())
        is_learning = self._learner is not None and self._learner.busy
        return {
            "rows": len(self.ids),
            "labeled": sum(counts.values()),
            "unsure": n_unsure,
            "classes": [{"name": name, "count": counts.get(name, 0)} for name in self.store.classes],
            "shares": ranges_of(self.project.settings.model.get("class_prior")),
            "learning": is_learning,
            "agreement": [asdict(pair) for pair in people],
            "disputed": n_disputed,
            "revision": self.store.revision,
            "fitted_revision": learned.revision,
            "fitted_labels": learned.n_labels,
            "estimate": shown_estimate(history),
            "seconds": learned.seconds,
            "processor": learned.processor,
            "problem": None if is_learning else learned.problem,
            "no_estimate": why_no_estimate(+counts, learned.problem, is_learning=is_learning),
            "advice": advice(+counts, last_change(history)),
        }

    def _check_row(self, row: object) -> None:
        if type(row) is not int or not 0 <= row < len(self.ids):
            raise ValueError(f"There is no row {row!r}; rows are 0 to {len(self.ids) - 1}.")


def check_annotator(name: object) -> str:
    """The name of a person without blanks around it; empty if none was given."""
    if not isinstance(name, str) or len(name) > MAX_CLASS_NAME or not name.isprintable():
        raise ValueError(
            f"The name of an annotator is a text of at most {MAX_CLASS_NAME} characters that can be shown."
        )
    return clean_name(name)


def _shares(p: Any) -> list[float] | None:
    """Probabilities for the page; None for a view that a row does not have."""
    return None if np.isnan(p).any() else [round(float(value), 4) for value in p]
