"""What labels have brought so far: fits of a session, what the last labels changed, and whether more of them help.

Of several people who label: what each said of a row, how often they agree, and where they do not.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import plural, share_interval
from cmvmed.workbench.label_store import Event

STABLE_CHANGE = 0.01  # share of rows whose class changes by the last labels, when more labels add little
STABLE_LABELS = 10  # the last labels, or a fifth of all if that is more
UNNAMED = "(no name)"


@dataclass(frozen=True)
class Fitted:
    """A fit in the history of a session."""

    n_labels: int
    estimate: dict[str, float] | None
    predicted: NDArray[np.int32]  # (n,), positions of classes in the file of labels


def last_change(history: Sequence[Fitted]) -> tuple[int, float] | None:
    """The last labels, and the share of rows whose class they changed; None if there are too few fits."""
    if not history:
        return None
    last = history[-1]
    at_most = last.n_labels - max(STABLE_LABELS, last.n_labels // 5)
    before = next((fit for fit in reversed(history) if fit.n_labels <= at_most), None)
    if before is None:
        return None
    return last.n_labels - before.n_labels, float(np.mean(last.predicted != before.predicted))


def shown_estimate(history: Sequence[Fitted]) -> dict[str, Any] | None:
    """The last estimate with the interval of the held-out share, and with the first one if it has clearly grown since."""
    if not history or history[-1].estimate is None:
        return None
    last = history[-1].estimate
    low, high = share_interval(last["held_out"] * last["n_held_out"], last["n_held_out"], last["level"])
    found: dict[str, Any] = {**last, "held_out_low": low, "held_out_high": high}
    first = next(fit for fit in history if fit.estimate is not None)
    if first.estimate is not None and last["low"] > first.estimate["high"]:  # intervals without a common value
        found["first"] = {"n_labels": first.n_labels, "mean": first.estimate["mean"]}
    return found


def why_no_estimate(counts: Mapping[str, int], problem: str | None, *, is_learning: bool) -> str:
    """What is missing for an estimate; a problem of the fit before says nothing while the next one runs."""
    if len(counts) < 2:
        return "needs labels of two classes"
    if is_learning:
        return "learning…"
    if problem is not None:
        return problem
    if max(counts.values()) < 2:
        return "needs two labels of a class"
    return "no label could be held out; label rows of more groups"


def advice(counts: Mapping[str, int], change: tuple[int, float] | None) -> str:
    """What to do next, in one sentence or two; ``change`` is what the last labels changed."""
    if len(counts) < 2:
        return "Label rows of at least two classes; the model starts then."
    rare = [name for name, count in counts.items() if count < 2]
    if rare:
        return f"Label one more row of {rare[0]!r}: a single row of a class cannot be held out to test the model."
    if change is None:
        return "Go on: whether more labels help can be seen after some more."
    n_labels, share = change
    changed = f"The last {plural(n_labels, 'label')} changed the predicted class of {share:.1%} of the rows"
    if share > STABLE_CHANGE:
        return f"{changed}: more labels still help."
    return f"{changed}: more labels will change little. Review doubtful labels, or stop."


@dataclass(frozen=True)
class Agreement:
    """Rows that two annotators labeled without a review.

    ``kappa`` is Cohen's: (p - e)/(1 - e), with the share p of equal labels and e the share expected by chance.
    """

    first: str
    second: str
    n_rows: int
    n_equal: int
    kappa: float | None  # None if both gave all rows the same class


def labels_by_annotator(events: Iterable[Event]) -> dict[str, str]:
    """The last class that each annotator gave a row; what was taken back, and reviews of disagreements, are left out."""
    events = list(events)
    undone = {event.undoes for event in events}
    found: dict[str, str] = {}
    for event in events:
        if event.undoes is not None or event.revision in undone or event.chosen_by == "disputed":
            continue
        name = event.annotator or UNNAMED
        if event.label is None:
            found.pop(name, None)
        else:
            found[name] = event.label
    return found


def agreements(rows: Iterable[Mapping[str, str]]) -> list[Agreement]:
    """Each pair of annotators with rows in common, in the order of their names; ``rows`` are classes by annotator."""
    pairs: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for labels in rows:
        for first, second in combinations(sorted(labels), 2):
            pairs.setdefault((first, second), Counter())[labels[first], labels[second]] += 1
    return [_agreement(*names, counts) for names, counts in sorted(pairs.items())]


def _agreement(first: str, second: str, counts: Counter[tuple[str, str]]) -> Agreement:
    n, n_equal = counts.total(), sum(count for (a, b), count in counts.items() if a == b)
    of_first, of_second = Counter[str](), Counter[str]()
    for (a, b), count in counts.items():
        of_first[a] += count
        of_second[b] += count
    by_chance = sum(of_first[name] * of_second[name] for name in of_first) / n**2
    kappa = None if by_chance == 1.0 else (n_equal / n - by_chance) / (1.0 - by_chance)
    return Agreement(first, second, n, n_equal, kappa)
