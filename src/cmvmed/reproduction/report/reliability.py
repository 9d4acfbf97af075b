"""Do probabilities mean what they say? Share of correct predictions against confidence, pooled over the splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.reproduction.report.charts import Chart, Series, line_chart, method_style
from cmvmed.reproduction.report.formatting import DASH, slug
from cmvmed.reproduction.report.grouping import by_setting, method_position, summaries, title_of
from cmvmed.reproduction.report.label_curves import curve_style
from cmvmed.reproduction.result_rows import ResultRow
from cmvmed.reproduction.scores import N_BINS, calibration_error

FEWEST_ROWS = 20  # a bin with fewer test rows, over all splits, is noise and is not drawn

Bin = tuple[int, float, float]


@dataclass(frozen=True)
class CalibrationLine:
    """One method's calibration error, of the test rows of all splits together, and mean log-loss."""

    method: str
    style: str
    calibration_error: str
    log_loss: str


@dataclass(frozen=True)
class CalibrationPanel:
    """One setting: the curves and the errors."""

    title: str
    lines: tuple[CalibrationLine, ...]
    figure: str


def calibration_panels(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[CalibrationPanel, ...]:
    """A panel for each setting in which some method has probabilities."""
    panels = []
    for setting, members in by_setting(rows, spec).items():
        if any(row.reliability for row in members if row.status == "done"):
            title = f"{title_of(setting.dataset)}, {setting.n_labeled} labels, {setting.protocol}"
            identity = slug("figure calibration", *setting)
            panels.append(_panel(identity, title, members))
    return tuple(panels)


def pooled_bins(reliabilities: Sequence[Sequence[Bin]], n_bins: int = N_BINS) -> list[Bin]:
    """Bins of several splits put together: rows, mean confidence and share correct of each bin that has rows."""
    sums = np.zeros((n_bins, 3))
    for n_rows, confidence, correct in (entry for reliability in reliabilities for entry in reliability):
        place = min(int(confidence * n_bins), n_bins - 1)
        sums[place] += n_rows, n_rows * confidence, n_rows * correct
    return [(int(n), float(confidence / n), float(correct / n)) for n, confidence, correct in sums if n > 0]


def _panel(identity: str, title: str, members: Sequence[ResultRow]) -> CalibrationPanel:
    reliabilities: dict[str, list[Sequence[Bin]]] = {}
    for row in members:
        if row.status == "done" and row.reliability:
            reliabilities.setdefault(row.method, []).append(row.reliability)
    methods = sorted(reliabilities, key=method_position)
    curves = [_series(method, curve_style(method, methods), reliabilities[method]) for method in methods]
    drawn = [curve for curve in curves if curve.points]
    lowest = min((curve.points[0][0] for curve in drawn), default=50.0)
    ticks = [float(value) for value in range(10 * int(lowest // 10), 101, 10)]
    chart = Chart(
        identity,
        f"Calibration on {title}",
        "Share of correct predictions against the confidence they were made with, both in percent; on the dashed diagonal a "
        "probability means what it says, below it is too sure. The table that follows holds the errors.",
        "confidence, %",
        "correct, %",
    )
    return CalibrationPanel(title, _lines(members, reliabilities), line_chart(chart, drawn, ticks, diagonal=True))


def _series(method: str, style: str, reliabilities: Sequence[Sequence[Bin]]) -> Series:
    bins = [entry for entry in pooled_bins(reliabilities) if entry[0] >= FEWEST_ROWS]
    return Series(method, style, tuple((100.0 * confidence, 100.0 * correct) for _, confidence, correct in bins))


def _lines(members: Sequence[ResultRow], reliabilities: dict[str, list[Sequence[Bin]]]) -> tuple[CalibrationLine, ...]:
    losses = summaries(members, "log_loss")
    return tuple(
        CalibrationLine(
            method,
            method_style(method),
            f"{calibration_error(tuple(map(tuple, reliabilities[method]))):.3f}",
            f"{losses[method].mean:.3f}" if method in losses else DASH,
        )
        for method in sorted(reliabilities, key=method_position)
    )
