"""Confusion of the classes: labels against predictions, both of rows that were held out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import DASH, format_percentage
from cmvmed.workbench.report.model_facts import HeldOutLabels, ModelFacts
from cmvmed.workbench.report.safe_text import short

__all__ = ["ConfusionTable", "DoubtfulLabel", "confusion_counts", "confusion_table", "doubtful_labels"]

MAX_CLASSES = 12  # of a table; of more, those with most labels are shown
MAX_PAIRS, MAX_DOUBTFUL = 5, 8
DOUBTFUL = 0.1  # probability of a label below which it should be checked


@dataclass(frozen=True)
class ConfusionCell:
    """Rows with one label and one prediction."""

    count: int
    share: float  # of the rows with this label
    is_right: bool


@dataclass(frozen=True)
class ConfusionLine:
    """Held-out rows of one class."""

    name: str
    cells: tuple[ConfusionCell, ...]
    recall: str  # share of the class that is recognized
    precision: str  # share of the predictions of the class that are right


@dataclass(frozen=True)
class ConfusionTable:
    """Counts of held-out rows by label and prediction."""

    names: tuple[str, ...]  # of the classes that are shown
    lines: tuple[ConfusionLine, ...]
    n_hidden: int  # classes that are not shown
    pairs: tuple[str, ...]  # most frequent errors, as sentences


@dataclass(frozen=True)
class DoubtfulLabel:
    """A label that the fits without it contradict."""

    row: str
    label: str
    predicted: str
    probability: str  # of the label


def confusion_counts(held_out: HeldOutLabels, n_classes: int) -> NDArray[np.intp]:
    """Number of held-out rows by label and prediction, (K, K)."""
    flat = np.bincount(held_out.codes * n_classes + held_out.predicted, minlength=n_classes**2)
    return np.asarray(flat.reshape(n_classes, n_classes))


def confusion_table(facts: ModelFacts) -> ConfusionTable | None:
    """The table; None if no label was held out."""
    if facts.held_out is None:
        return None
    counts = confusion_counts(facts.held_out, len(facts.class_names))
    by_size = np.lexsort([np.arange(len(counts)), -counts.sum(axis=1)])
    shown = np.sort(by_size[:MAX_CLASSES])
    return ConfusionTable(
        tuple(facts.class_names[k] for k in shown),
        tuple(_line(facts.class_names[k], k, counts, shown) for k in shown),
        len(counts) - len(shown),
        tuple(_pairs(facts, counts)),
    )


def _line(name: str, k: int, counts: NDArray[np.intp], shown: NDArray[np.intp]) -> ConfusionLine:
    n_labels, n_predicted = int(counts[k].sum()), int(counts[:, k].sum())
    return ConfusionLine(
        name,
        tuple(ConfusionCell(int(counts[k, j]), counts[k, j] / max(n_labels, 1), bool(j == k)) for j in shown),
        format_percentage(counts[k, k] / n_labels, 0) if n_labels else DASH,
        format_percentage(counts[k, k] / n_predicted, 0) if n_predicted else DASH,
    )


def _pairs(facts: ModelFacts, counts: NDArray[np.intp]) -> list[str]:
    """The most frequent errors."""
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_PAIRS]
    pairs = [(int(i) // len(counts), int(i) % len(counts)) for i in order]
    return [
        f"{wrong[i, j]} of {counts[i].sum()} rows of {facts.class_names[i]} are taken for {facts.class_names[j]}"
        for i, j in pairs
        if wrong[i, j] > 0
    ]


def doubtful_labels(facts: ModelFacts) -> list[DoubtfulLabel]:
    """Labels with a small probability by fits that did not use them, the smallest first."""
    held_out = facts.held_out
    if held_out is None:
        return []
    own = held_out.probabilities[np.arange(len(held_out.codes)), held_out.codes]
    order = [i for i in np.argsort(own, kind="stable")[:MAX_DOUBTFUL] if own[i] < DOUBTFUL and not held_out.is_right[i]]
    return [
        DoubtfulLabel(
            short(facts.table.ids[held_out.rows[i]]),
            facts.class_names[held_out.codes[i]],
            facts.class_names[held_out.predicted[i]],
            format_percentage(own[i]),
        )
        for i in order
    ]
