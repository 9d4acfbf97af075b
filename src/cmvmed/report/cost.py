"""Time and memory of each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cmvmed.experiments.rows import ResultRow
from cmvmed.report.charts import method_style
from cmvmed.report.results import by_setting, method_position, scored, title_of
from cmvmed.report.wording import DASH, seconds

QUANTITIES = {
    "fit_seconds": "Fit, seconds",
    "predict_seconds": "Prediction of the held-out rows, milliseconds",
    "peak_mib": "Growth of the largest resident memory, MiB",
}


@dataclass(frozen=True)
class CostTable:
    """Medians over the splits of one quantity under one protocol."""

    title: str
    datasets: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[str, ...]], ...]  # method, style, cells


def cost_tables(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[CostTable, ...]:
    """A table for each protocol and quantity that was measured."""
    settings = by_setting(rows, spec)
    tables = []
    for protocol in sorted({setting.protocol for setting in settings}):
        columns = {
            f"{title_of(setting.dataset)}, {setting.n_labeled}": group
            for setting, group in settings.items()
            if setting.protocol == protocol
        }
        for quantity, title in QUANTITIES.items():
            medians = {name: _medians(group, quantity) for name, group in columns.items()}
            if any(medians.values()):
                tables.append(_table(f"{title} ({protocol})", quantity, medians))
    return tuple(tables)


def _medians(rows: Sequence[ResultRow], quantity: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for row in scored(rows, quantity):
        values.setdefault(row.method, []).append(float(getattr(row, quantity)))
    return {method: median(found) for method, found in values.items()}


def _table(title: str, quantity: str, medians: dict[str, dict[str, float]]) -> CostTable:
    methods = sorted({method for column in medians.values() for method in column}, key=method_position)
    lines = tuple(
        (method, method_style(method), tuple(_figure(column.get(method), quantity) for column in medians.values()))
        for method in methods
    )
    return CostTable(title, tuple(medians), lines)


def _figure(value: float | None, quantity: str) -> str:
    if value is None:
        return DASH
    return seconds(1000.0 * value) if quantity == "predict_seconds" else seconds(value)
