"""Time and memory of each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cmvmed.reproduction.report.charts import method_style
from cmvmed.reproduction.report.formatting import DASH, plural, three_digits
from cmvmed.reproduction.report.grouping import PROTOCOLS, by_setting, method_position, position, scored, title_of
from cmvmed.reproduction.result_rows import ResultRow

Medians = dict[str, float]  # by method


@dataclass(frozen=True)
class CostTable:
    """Medians over the splits on one data set: fit under each protocol, prediction and memory under the first."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[str, ...]], ...]  # method, style, cells


def cost_tables(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[CostTable, ...]:
    """A table for each data set and number of labels on which something was timed."""
    groups: dict[tuple[str, int], dict[str, list[ResultRow]]] = {}
    for setting, members in by_setting(rows, spec).items():
        if scored(members, "fit_seconds"):
            groups.setdefault((setting.dataset, setting.n_labeled), {})[setting.protocol] = members
    return tuple(
        _table(f"{title_of(dataset)}, {plural(n_labeled, 'label')}", found)
        for (dataset, n_labeled), found in groups.items()
    )


def _table(title: str, by_protocol: dict[str, list[ResultRow]]) -> CostTable:
    protocols = sorted(by_protocol, key=lambda name: position(name, PROTOCOLS))
    first = by_protocol[protocols[0]]
    columns = {f"{protocol}, s": medians(by_protocol[protocol], "fit_seconds") for protocol in protocols}
    columns["predict, ms"] = {method: 1000.0 * value for method, value in medians(first, "predict_seconds").items()}
    columns["memory, MiB"] = medians(first, "peak_mib")
    methods = sorted({method for column in columns.values() for method in column}, key=method_position)
    lines = tuple(
        (method, method_style(method), tuple(_figure(column.get(method)) for column in columns.values()))
        for method in methods
    )
    return CostTable(title, tuple(columns), lines)


def medians(rows: Sequence[ResultRow], quantity: str) -> Medians:
    """Median of a quantity by method."""
    values: dict[str, list[float]] = {}
    for row in scored(rows, quantity):
        values.setdefault(row.method, []).append(float(getattr(row, quantity)))
    return {method: median(found) for method, found in values.items()}


def _figure(value: float | None) -> str:
    return DASH if value is None else three_digits(value)
