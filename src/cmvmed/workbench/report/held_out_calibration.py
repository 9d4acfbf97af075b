"""Calibration: how often predictions with a given probability are right, on held-out labels."""

from dataclasses import dataclass

import numpy as np

from cmvmed.pages.charts import Chart, Series, line_chart
from cmvmed.pages.formatting import format_percentage, plural
from cmvmed.workbench.report.model_facts import HeldOutLabels, ModelFacts, share_interval

__all__ = ["CalibrationBin", "HeldOutCalibration", "calibration_bins", "held_out_calibration"]

BIN_ROWS = 10  # held-out labels per bin, at least
MAX_BINS = 8


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
        f"{format_percentage(n_right / n)} of {plural(n, 'held-out label')} are predicted, {says}."
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
