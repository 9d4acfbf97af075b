"""Table 1, the accuracy of every method beside the paper's results and the majority rate; time and memory of each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cmvmed.pages.charts import Chart, DotRow, Mark, dot_chart
from cmvmed.pages.formatting import DASH, plural
from experiments.experiment import PROTOCOLS, SAME_DATA, SUBSTITUTES, paper_result
from experiments.methods import MAJORITY_CLASS
from experiments.report.grouping import (
    Summary,
    by_dataset,
    dataset_title,
    format_percent,
    kernels_by_method,
    majority_rate,
    method_position,
    method_style,
    sort_position,
    summaries,
    values_by_method,
)
from experiments.report.number_text import format_magnitude, format_share, slug
from experiments.result_rows import ResultRow

SHAPES = {"defaults": "disc", "shares": "square", "tuned": "ring"}  # of the marks, by protocol


@dataclass(frozen=True)
class TableCell:
    """A cell of the table; ``note`` is the number of splits if some are missing."""

    text: str
    is_best: bool = False
    note: str = ""


@dataclass(frozen=True)
class AccuracyLine:
    """Accuracy of one method under each protocol, and in the paper."""

    method: str
    kernel: str
    style: str
    cells: tuple[TableCell, ...]
    paper: str


@dataclass(frozen=True)
class AccuracyCard:
    """The part of Table 1 for one data set."""

    dataset: str
    n_labeled: int
    title: str
    facts: str
    paper_data: str
    protocols: tuple[str, ...]
    majority: tuple[str, ...]
    lines: tuple[AccuracyLine, ...]
    figure: str

    @property
    def is_in_paper(self) -> bool:
        """Whether the paper has results for these data."""
        return any(line.paper != DASH for line in self.lines)


def accuracy_cards(rows: Sequence[ResultRow], spec: str = "table1") -> tuple[AccuracyCard, ...]:
    """A card for each data set and number of labels that has at least one finished row."""
    groups = by_dataset(rows, spec, "accuracy")
    return tuple(_card(spec, dataset, n_labeled, members) for (dataset, n_labeled), members in groups.items())


def _card(spec: str, dataset: str, n_labeled: int, by_protocol: dict[str, list[ResultRow]]) -> AccuracyCard:
    protocols = tuple(sorted(by_protocol, key=lambda name: sort_position(name, PROTOCOLS)))
    columns = [summaries(by_protocol[protocol], "accuracy") for protocol in protocols]
    methods = sorted({method for column in columns for method in column}, key=method_position)
    kernels = kernels_by_method(row for members in by_protocol.values() for row in members)
    rates = [majority_rate(by_protocol[protocol]) for protocol in protocols]
    title = f"{dataset_title(dataset)}, {plural(n_labeled, 'label')}"
    rate = next((rate for rate in rates if rate is not None), None)
    return AccuracyCard(
        dataset=dataset,
        n_labeled=n_labeled,
        title=title,
        facts=_facts(next(iter(by_protocol.values()))),
        paper_data=_paper_data(dataset),
        protocols=protocols,
        majority=tuple(format_share(rate) for rate in rates),
        lines=tuple(_line(dataset, n_labeled, method, kernels[method], columns) for method in methods),
        figure=dot_chart(
            Chart(
                slug("figure", spec, dataset, n_labeled),
                f"Accuracy on {title}",
                "Mean accuracy in percent of each method with its standard deviation over the splits; "
                "the following table contains the same numbers.",
                "accuracy on held-out rows, %",
            ),
            [_dot_row(dataset, n_labeled, method, dict(zip(protocols, columns, strict=True))) for method in methods],
            None if rate is None else (100.0 * rate, MAJORITY_CLASS),
        ),
    )


def _line(
    dataset: str, n_labeled: int, method: str, kernel: str, columns: Sequence[dict[str, Summary]]
) -> AccuracyLine:
    paper = paper_result(dataset, n_labeled, method)
    return AccuracyLine(
        method=method,
        kernel=kernel or DASH,
        style=method_style(method),
        cells=tuple(_cell(method, column) for column in columns),
        paper=f"{paper.mean:.1f} ± {paper.deviation:.1f}" if paper else DASH,
    )


def _cell(method: str, column: dict[str, Summary]) -> TableCell:
    if method not in column:
        return TableCell(DASH)
    summary, n_splits = column[method], max(entry.n for entry in column.values())
    best = max(round(entry.mean, 3) for entry in column.values())  # rounded as displayed, so that ties are all best
    note = f"{summary.n} of {n_splits} splits" if summary.n < n_splits else ""
    return TableCell(format_percent(summary), round(summary.mean, 3) == best, note)


def _facts(rows: Sequence[ResultRow]) -> str:
    splits = plural(len({row.split for row in rows if row.status == "done"}), "split")
    known = next((row for row in rows if row.n_train and row.n_test), None)
    if known is None:
        return splits
    return f"{splits}; {known.n_train:,} training rows, {known.n_test:,} held out"


def _paper_data(dataset: str) -> str:
    if dataset in SUBSTITUTES:
        return f"Substitute for the paper's {SUBSTITUTES[dataset]}, which is not public."
    if dataset in SAME_DATA:
        return f"The paper's {SAME_DATA[dataset]}."
    return ""


def _dot_row(dataset: str, n_labeled: int, method: str, columns: Mapping[str, dict[str, Summary]]) -> DotRow:
    """Marks of one method: one per protocol, and the paper's result."""
    marks = [
        _mark(100.0 * column[method].mean, 100.0 * (column[method].deviation or 0.0), SHAPES.get(protocol, "disc"))
        for protocol, column in columns.items()
        if method in column
    ]
    paper = paper_result(dataset, n_labeled, method)
    if paper:
        marks.append(_mark(paper.mean, paper.deviation, "diamond"))
    return DotRow(method, method_style(method), tuple(marks))


def _mark(mean: float, deviation: float, shape: str) -> Mark:
    return Mark(mean, (mean - deviation, mean + deviation), shape)


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
