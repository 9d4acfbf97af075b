"""Time and memory of each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cmvmed.pages.formatting import DASH, format_magnitude, plural
from cmvmed.reproduction.experiment import PROTOCOLS
from cmvmed.reproduction.paper_report.grouping import (
    by_dataset,
    dataset_title,
    method_position,
    sort_position,
    values_by_method,
)
from cmvmed.reproduction.paper_report.method_style import method_style
from cmvmed.reproduction.result_rows import ResultRow


@dataclass(frozen=True)
class CostTable:
    """Medians over the splits of one data set: fit under each protocol, prediction and memory under the first."""

    title: str
    headers: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[str, ...]], ...]  # method, style, cells


def cost_tables(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[CostTable, ...]:
    """A table for each data set and number of labels with timed fits."""
    return tuple(
        _table(f"{dataset_title(dataset)}, {plural(n_labeled, 'label')}", by_protocol)
        for (dataset, n_labeled), by_protocol in by_dataset(rows, spec, "fit_seconds").items()
    )


def _table(title: str, by_protocol: dict[str, list[ResultRow]]) -> CostTable:
    protocols = sorted(by_protocol, key=lambda name: sort_position(name, PROTOCOLS))
    first = by_protocol[protocols[0]]
    columns = {f"{protocol}, s": medians(by_protocol[protocol], "fit_seconds") for protocol in protocols}
    columns["predict, ms"] = {method: 1000.0 * value for method, value in medians(first, "predict_seconds").items()}
    columns["memory, MiB"] = medians(first, "peak_mib")
    methods = sorted({method for column in columns.values() for method in column}, key=method_position)
    lines = tuple(
        (method, method_style(method), tuple(_format_cell(column.get(method)) for column in columns.values()))
        for method in methods
    )
    return CostTable(title, tuple(columns), lines)


def medians(rows: Sequence[ResultRow], quantity: str) -> dict[str, float]:
    """Median of a quantity over the splits by method."""
    return {method: median(values) for method, values in values_by_method(rows, quantity).items()}


def _format_cell(value: float | None) -> str:
    return DASH if value is None else format_magnitude(value)
