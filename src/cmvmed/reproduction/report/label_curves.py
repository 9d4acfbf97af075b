"""Figure 2: accuracy against the number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.reproduction.report.charts import OTHER, Chart, Series, line_chart, method_style
from cmvmed.reproduction.report.formatting import percent, plural, slug
from cmvmed.reproduction.report.grouping import Summary, by_setting, method_position, scored, summaries, title_of
from cmvmed.reproduction.result_rows import ResultRow

SPEC = "figure2"


@dataclass(frozen=True)
class CurveLine:
    """One method's accuracy at each number of labels."""

    method: str
    style: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CurvePanel:
    """One data set and protocol: the picture and the same figures as a table."""

    title: str
    facts: str
    numbers: tuple[int, ...]
    lines: tuple[CurveLine, ...]
    figure: str


def curve_panels(rows: Sequence[ResultRow]) -> tuple[CurvePanel, ...]:
    """A panel for each data set and protocol with at least two numbers of labels."""
    groups: dict[tuple[str, str], dict[int, list[ResultRow]]] = {}
    for setting, members in by_setting(rows, SPEC).items():
        if scored(members, "accuracy"):
            groups.setdefault((setting.dataset, setting.protocol), {})[setting.n_labeled] = members
    return tuple(_panel(*names, found) for names, found in groups.items() if len(found) >= 2)


def curve_style(method: str, methods: Sequence[str]) -> str:
    """Style of a curve; a second and later single view is dashed."""
    style = method_style(method)
    singles = [name for name in methods if method_style(name) == "single"]
    return "single second" if style == "single" and singles.index(method) > 0 else style


def _panel(dataset: str, protocol: str, by_number: dict[int, list[ResultRow]]) -> CurvePanel:
    numbers = tuple(sorted(by_number))
    columns = {number: summaries(by_number[number], "accuracy") for number in numbers}
    methods = sorted({method for column in columns.values() for method in column}, key=method_position)
    n_splits = len({row.split for members in by_number.values() for row in members if row.status == "done"})
    title = f"{title_of(dataset)}, {protocol}"
    identity = slug("figure", SPEC, dataset, protocol)
    curves = [_series(method, curve_style(method, methods), columns) for method in methods]
    chart = Chart(
        identity,
        f"Accuracy against the number of labels on {title}",
        f"Mean accuracy in percent over {plural(n_splits, 'split')} at {numbers[0]} to {numbers[-1]} labels, with bands of one "
        "standard deviation; the table that follows holds the same figures.",
        "labeled rows",
        "accuracy on held-out rows, %",
    )
    return CurvePanel(
        title=title,
        facts=plural(n_splits, "split"),
        numbers=numbers,
        lines=tuple(
            CurveLine(method, method_style(method), tuple(percent(columns[n].get(method)) for n in numbers))
            for method in methods
        ),
        figure=line_chart(chart, curves, [float(n) for n in numbers], logarithmic=numbers[-1] >= 4 * numbers[0]),
    )


def _series(method: str, style: str, columns: dict[int, dict[str, Summary]]) -> Series:
    found = [(float(number), column[method]) for number, column in columns.items() if method in column]
    band = tuple(
        (x, 100.0 * (entry.mean - (entry.deviation or 0.0)), 100.0 * (entry.mean + (entry.deviation or 0.0)))
        for x, entry in found
    )
    points = tuple((x, 100.0 * entry.mean) for x, entry in found)
    return Series(method, style, points, band if style != OTHER else ())
