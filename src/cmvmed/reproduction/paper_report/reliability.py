"""Calibration of the probabilities: share of correct predictions against confidence, over the rows of all splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.pages.charts import Chart, Series, line_chart
from cmvmed.pages.formatting import DASH, slug
from cmvmed.reproduction.paper_report.grouping import Setting, by_setting, method_position, summaries
from cmvmed.reproduction.paper_report.label_curves import curve_style
from cmvmed.reproduction.paper_report.method_style import method_style
from cmvmed.reproduction.result_rows import ResultRow
from cmvmed.reproduction.scores import ReliabilityBins, calibration_error, pool_bins

MIN_BIN_ROWS = 20  # bins with fewer test rows over all splits are not drawn


@dataclass(frozen=True)
class CalibrationLine:
    """Calibration error of one method over the test rows of all splits, and mean log-loss."""

    method: str
    style: str
    calibration_error: str
    log_loss: str


@dataclass(frozen=True)
class CalibrationPanel:
    """Figure and table of one setting."""

    title: str
    lines: tuple[CalibrationLine, ...]
    figure: str


def calibration_panels(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[CalibrationPanel, ...]:
    """A panel for each setting in which at least one method has probabilities."""
    panels = []
    for setting, members in by_setting(rows, spec).items():
        bins: dict[str, list[ReliabilityBins]] = {}
        for row in members:
            if row.status == "done" and row.reliability:
                bins.setdefault(row.method, []).append(row.reliability)
        if bins:
            panels.append(
                _panel(setting, members, {method: bins[method] for method in sorted(bins, key=method_position)})
            )
    return tuple(panels)


def _panel(setting: Setting, members: Sequence[ResultRow], bins: dict[str, list[ReliabilityBins]]) -> CalibrationPanel:
    curves = [_series(method, curve_style(method, list(bins)), splits) for method, splits in bins.items()]
    drawn = [curve for curve in curves if curve.points]
    lowest = min((curve.points[0][0] for curve in drawn), default=50.0)
    ticks = [float(value) for value in range(10 * int(min(lowest, 90.0) // 10), 101, 10)]
    chart = Chart(
        slug("figure calibration", *setting),
        f"Calibration on {setting.title}",
        "Share of correct predictions against their confidence, both in percent; calibrated probabilities are on the "
        "dashed diagonal, overconfident ones below it. The following table contains the errors.",
        "confidence, %",
        "correct, %",
    )
    return CalibrationPanel(setting.title, _lines(members, bins), line_chart(chart, drawn, ticks, diagonal=True))


def _series(method: str, style: str, splits: Sequence[ReliabilityBins]) -> Series:
    bins = [entry for entry in pool_bins(splits) if entry[0] >= MIN_BIN_ROWS]
    return Series(method, style, tuple((100.0 * confidence, 100.0 * correct) for _, confidence, correct in bins))


def _lines(members: Sequence[ResultRow], bins: dict[str, list[ReliabilityBins]]) -> tuple[CalibrationLine, ...]:
    losses = summaries(members, "log_loss")
    return tuple(
        CalibrationLine(
            method,
            method_style(method),
            f"{calibration_error(splits):.3f}",
            f"{losses[method].mean:.3f}" if method in losses else DASH,
        )
        for method, splits in bins.items()
    )
