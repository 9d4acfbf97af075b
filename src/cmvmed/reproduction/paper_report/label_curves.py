"""Figure 2: accuracy against the number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from cmvmed.pages.charts import OTHER, Chart, Series, line_chart
from cmvmed.pages.formatting import plural, slug
from cmvmed.reproduction.comparison import mean_interval
from cmvmed.reproduction.paper_report.falls import falls, falls_sentence
from cmvmed.reproduction.paper_report.grouping import (
    dataset_title,
    format_percent,
    method_position,
    settings_with_score,
    summaries,
    values_by_method,
)
from cmvmed.reproduction.paper_report.method_style import method_style
from cmvmed.reproduction.result_rows import ResultRow

SPEC = "figure2"
BAND_CONFIDENCE = 0.9  # of the interval of a mean that a band shows, for other splits of the same rows
MIN_BAND_SPLITS = 5  # for a band; the interval of fewer splits is wider than the differences between methods


@dataclass(frozen=True)
class CurveLine:
    """Accuracy of one method at each number of labels."""

    method: str
    style: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CurvePanel:
    """Figure and table of one data set and protocol, and which curves fall."""

    dataset: str
    protocol: str
    title: str
    facts: str
    falls: str
    label_counts: tuple[int, ...]
    lines: tuple[CurveLine, ...]
    figure: str


def curve_panels(rows: Sequence[ResultRow]) -> tuple[CurvePanel, ...]:
    """A panel for each data set and protocol with at least two numbers of labels."""
    groups: dict[tuple[str, str], dict[int, list[ResultRow]]] = {}
    for setting, members in settings_with_score(rows, SPEC, "accuracy").items():
        groups.setdefault((setting.dataset, setting.protocol), {})[setting.n_labeled] = members
    return tuple(_panel(*names, by_count) for names, by_count in groups.items() if len(by_count) >= 2)


def curve_style(method: str, methods: Sequence[str]) -> str:
    """Style of a curve; all single views but the first are dashed."""
    style = method_style(method)
    singles = [name for name in methods if method_style(name) == "single"]
    return "single second" if style == "single" and singles.index(method) > 0 else style


def _panel(dataset: str, protocol: str, by_count: dict[int, list[ResultRow]]) -> CurvePanel:
    counts = tuple(sorted(by_count))
    columns = {count: summaries(by_count[count], "accuracy") for count in counts}
    methods = sorted({method for column in columns.values() for method in column}, key=method_position)
    n_splits = len({row.split for members in by_count.values() for row in members if row.status == "done"})
    title = f"{dataset_title(dataset)}, {protocol}"
    values = {count: values_by_method(by_count[count], "accuracy") for count in counts}
    curves = [_series(method, curve_style(method, methods), values) for method in methods]
    chart = Chart(
        slug("figure", SPEC, dataset, protocol),
        f"Accuracy against the number of labels on {title}",
        f"Mean accuracy in percent over {plural(n_splits, 'split')} at {counts[0]} to {counts[-1]} labels, with bands of "
        f"the {100 * BAND_CONFIDENCE:.0f} % interval of the mean; the following table contains the same numbers.",
        "labeled rows",
        "accuracy on held-out rows, %",
    )
    return CurvePanel(
        dataset=dataset,
        protocol=protocol,
        title=title,
        falls=falls_sentence(falls(by_count)),
        facts=plural(n_splits, "split"),
        label_counts=counts,
        lines=tuple(
            CurveLine(method, method_style(method), tuple(format_percent(columns[n].get(method)) for n in counts))
            for method in methods
        ),
        figure=line_chart(chart, curves, [float(n) for n in counts], logarithmic=counts[-1] >= 4 * counts[0]),
    )


def _series(method: str, style: str, values: dict[int, dict[str, list[float]]]) -> Series:
    found = [
        (float(count), [100.0 * score for score in column[method]])
        for count, column in values.items()
        if method in column
    ]
    band = tuple((x, *mean_interval(scores, BAND_CONFIDENCE)) for x, scores in found if len(scores) >= MIN_BAND_SPLITS)
    points = tuple((x, fmean(scores)) for x, scores in found)
    return Series(method, style, points, band if style != OTHER else ())
