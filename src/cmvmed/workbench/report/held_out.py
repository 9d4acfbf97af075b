"""What held-out labels say: confusion of the classes, groups, labels to check, and calibration of the probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.charts import Chart, Series, line_chart
from cmvmed.pages.formatting import format_percentage, plural, share_interval, short
from cmvmed.workbench.report.model_facts import HeldOutLabels, ModelFacts, with_interval

MAX_CLASSES = 12  # of a table; of more, those with most labels are shown
MAX_PAIRS, MAX_DOUBTFUL, MAX_GROUPS = 5, 8, 12
DOUBTFUL = 0.1  # probability of a label below which it should be checked
BIN_ROWS = 10  # held-out labels per bin, at least
MAX_BINS = 8


# Rows with a label and a prediction, their share of those with the label, whether it is right
Cell = tuple[int, float, bool]


@dataclass(frozen=True)
class ConfusionTable:
    """Counts of held-out rows by label and prediction."""

    names: tuple[str, ...]  # of the classes that are shown
    lines: tuple[tuple[str, list[Cell], str, str], ...]  # label, cells, shares recognized and of right predictions
    n_hidden: int  # classes that are not shown
    pairs: tuple[str, ...]  # most frequent errors, as sentences


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


def _line(name: str, k: int, counts: NDArray[np.intp], shown: NDArray[np.intp]) -> tuple[str, list[Cell], str, str]:
    n_labels, n_predicted, n_right = int(counts[k].sum()), int(counts[:, k].sum()), int(counts[k, k])
    cells = [(int(counts[k, j]), counts[k, j] / max(n_labels, 1), bool(j == k)) for j in shown]
    return name, cells, with_interval(n_right, n_labels), with_interval(n_right, n_predicted)


def _pairs(facts: ModelFacts, counts: NDArray[np.intp]) -> list[str]:
    """The most frequent errors."""
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_PAIRS]
    pairs = [(int(i) // len(counts), int(i) % len(counts)) for i in order]
    return [
        f"{wrong[i, j]} of {plural(int(counts[i].sum()), 'row')} of {facts.class_names[i]} {'is' if wrong[i, j] == 1 else 'are'} "
        f"taken for {facts.class_names[j]}"
        for i, j in pairs
        if wrong[i, j] > 0
    ]


def group_lines(facts: ModelFacts) -> tuple[list[tuple[str, ...]], int]:
    """Groups, those with most errors first, and how many more there are; none if the rows have no groups.

    Of each its name, rows, labels, held-out labels, and the share of these that is predicted correctly.
    """
    if facts.table.groups is None:
        return [], 0
    names, of_row = np.unique(facts.table.groups.astype(str), return_inverse=True)
    held_out = facts.held_out
    out = np.empty(0, dtype=np.intp) if held_out is None else of_row[held_out.rows]
    right = np.empty(0) if held_out is None else held_out.is_right
    n_rows, n_labels, n_out, n_right = (
        np.bincount(of, weights=weights, minlength=len(names)).astype(np.intp)
        for of, weights in ((of_row, None), (of_row[facts.codes >= 0], None), (out, None), (out, right))
    )
    order = np.lexsort([np.arange(len(names)), -n_labels, n_right - n_out])
    lines: list[tuple[str, ...]] = [
        (short(names[g]), f"{n_rows[g]:,}", f"{n_labels[g]:,}", f"{n_out[g]:,}", with_interval(n_right[g], n_out[g]))
        for g in order[:MAX_GROUPS]
    ]
    return lines, max(len(names) - MAX_GROUPS, 0)


def doubtful_labels(facts: ModelFacts) -> list[tuple[str, str, str, str]]:
    """Labels with a small probability by fits that did not use them, the smallest first.

    Of each the row, the label, the prediction, and the probability of the label.
    """
    held_out = facts.held_out
    if held_out is None:
        return []
    own = held_out.probabilities[np.arange(len(held_out.codes)), held_out.codes]
    order = [i for i in np.argsort(own, kind="stable")[:MAX_DOUBTFUL] if own[i] < DOUBTFUL and not held_out.is_right[i]]
    return [
        (
            short(facts.table.ids[held_out.rows[i]]),
            facts.class_names[held_out.codes[i]],
            facts.class_names[held_out.predicted[i]],
            format_percentage(own[i]),
        )
        for i in order
    ]


@dataclass(frozen=True)
class CalibrationBin:
    """Held-out labels with similar largest probabilities."""

    n_rows: int
    confidence: float  # mean largest probability
    correct: float  # share that is right
    interval: tuple[float, float]


@dataclass(frozen=True)
class HeldOutCalibration:
    """Figure, table and sentence."""

    sentence: str
    lines: tuple[tuple[str, str, str, str], ...]  # rows, confidence, correct, interval
    figure: str  # empty if there are too few labels


def calibration_bins(held_out: HeldOutLabels) -> list[CalibrationBin]:
    """Bins of equal numbers of rows, by largest probability; rows with equal probabilities share a bin."""
    confidence, right = held_out.probabilities.max(axis=1), held_out.is_right
    n_bins = min(MAX_BINS, len(confidence) // BIN_ROWS)
    if n_bins < 1:
        return []
    edges = np.unique(np.quantile(confidence, np.linspace(0.0, 1.0, n_bins + 1))[1:-1])
    bins = np.searchsorted(edges, confidence, side="left")
    found = []
    for number in np.unique(bins):
        own = bins == number
        n, n_right = int(own.sum()), int(right[own].sum())
        found.append(CalibrationBin(n, float(confidence[own].mean()), n_right / n, share_interval(n_right, n)))
    return found


def held_out_calibration(facts: ModelFacts) -> HeldOutCalibration | None:
    """None if no label was held out."""
    if facts.held_out is None:
        return None
    confidence = float(facts.held_out.probabilities.max(axis=1).mean())
    n, n_right = len(facts.held_out.codes), int(facts.held_out.is_right.sum())
    low, high = share_interval(n_right, n)
    if low <= confidence <= high:
        says = "a difference that may be chance"
    else:
        says = "so probabilities are too high" if confidence > high else "so probabilities are too low"
    sentence = (
        f"On average the most probable class has a probability of {format_percentage(confidence)}, and "
        f"{format_percentage(n_right / n)} of {plural(n, 'held-out label')} are predicted correctly, {says}."
    )
    bins = calibration_bins(facts.held_out)
    lines = tuple(
        (
            f"{entry.n_rows}",
            format_percentage(entry.confidence),
            format_percentage(entry.correct),
            f"{format_percentage(entry.interval[0], 0)} to {format_percentage(entry.interval[1], 0)}",
        )
        for entry in bins
    )
    return HeldOutCalibration(sentence, lines, _figure(bins) if len(bins) > 1 else "")


def _figure(bins: list[CalibrationBin]) -> str:
    lowest = 10.0 * np.floor(10.0 * min(entry.confidence for entry in bins))
    ticks = [float(tick) for tick in np.arange(min(lowest, 90.0), 101.0, 10.0)]
    curve = Series(
        "held-out labels",
        "complete",
        tuple((100.0 * entry.confidence, 100.0 * entry.correct) for entry in bins),
        tuple((100.0 * entry.confidence, 100.0 * entry.interval[0], 100.0 * entry.interval[1]) for entry in bins),
    )
    chart = Chart(
        "figure-calibration",
        "Calibration on held-out labels",
        "Share of correct predictions against their probability, both in percent, with 90 % intervals; calibrated "
        "probabilities are on the dashed diagonal. The table below has the numbers.",
        "probability of the predicted class, %",
        "correct, %",
    )
    return line_chart(chart, [curve], ticks, diagonal=True)
