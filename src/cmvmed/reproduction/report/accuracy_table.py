"""Table 1: accuracy of every method on every data set, beside the paper's figures and the majority rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.reproduction.paper_results import SAME_DATA, STAND_INS, PaperFigure, paper_figure
from cmvmed.reproduction.report.charts import Chart, DotRow, Mark, dot_chart, method_style
from cmvmed.reproduction.report.formatting import DASH, percent, plural, share, slug
from cmvmed.reproduction.report.grouping import (
    PROTOCOLS,
    SINGLE_VIEW,
    Setting,
    Summary,
    by_setting,
    majority_rate,
    method_position,
    position,
    scored,
    summaries,
    title_of,
)
from cmvmed.reproduction.result_rows import ResultRow

SPEC = "table1"
PAPER_VIEWS = {
    "webkb": ("page", "link"),
    "ads": ("image", "context"),
}  # which view is the paper's first, which its second
SHAPES = ("disc", "ring")  # of the protocols


@dataclass(frozen=True)
class Cell:
    """A table's entry; ``note`` says on how many splits it rests where these are not all."""

    text: str
    is_best: bool = False
    note: str = ""


@dataclass(frozen=True)
class AccuracyLine:
    """One method's accuracy under each protocol, and in the paper."""

    method: str
    style: str
    cells: tuple[Cell, ...]
    paper: str


@dataclass(frozen=True)
class AccuracyCard:
    """One data set's part of Table 1."""

    dataset: str
    n_labeled: int
    title: str
    facts: str
    stands_for: str
    protocols: tuple[str, ...]
    majority: tuple[str, ...]
    lines: tuple[AccuracyLine, ...]
    figure: str

    @property
    def is_in_paper(self) -> bool:
        """Whether the paper has figures for these data."""
        return any(line.paper != DASH for line in self.lines)


def accuracy_cards(rows: Sequence[ResultRow], spec: str = SPEC) -> tuple[AccuracyCard, ...]:
    """A card for each data set and number of labels that has at least one finished row."""
    groups: dict[tuple[str, int], dict[str, list[ResultRow]]] = {}
    for setting, members in by_setting(rows, spec).items():
        if scored(members, "accuracy"):
            groups.setdefault((setting.dataset, setting.n_labeled), {})[setting.protocol] = members
    return tuple(_card(spec, dataset, n_labeled, found) for (dataset, n_labeled), found in groups.items())


def paper_entry(dataset: str, n_labeled: int, method: str) -> PaperFigure | None:
    """The paper's figure of a method, a single view being the paper's first or second."""
    views = PAPER_VIEWS.get(dataset, ())
    view = method.removeprefix(SINGLE_VIEW)
    if method.startswith(SINGLE_VIEW) and view in views:
        method = f"{SINGLE_VIEW}{views.index(view) + 1}"
    return paper_figure(dataset, n_labeled, method)


def _card(spec: str, dataset: str, n_labeled: int, by_protocol: dict[str, list[ResultRow]]) -> AccuracyCard:
    protocols = tuple(sorted(by_protocol, key=lambda name: position(name, PROTOCOLS)))
    columns = [summaries(by_protocol[protocol], "accuracy") for protocol in protocols]
    methods = sorted({method for column in columns for method in column}, key=method_position)
    lines = tuple(_line(dataset, n_labeled, method, columns) for method in methods)
    rates = [majority_rate(by_protocol[protocol]) for protocol in protocols]
    identity = slug("figure", spec, dataset, n_labeled)
    title = f"{title_of(dataset)}, {plural(n_labeled, 'label')}"
    return AccuracyCard(
        dataset=dataset,
        n_labeled=n_labeled,
        title=title,
        facts=_facts(next(iter(by_protocol.values()))),
        stands_for=_stands_for(dataset),
        protocols=protocols,
        majority=tuple(share(rate) for rate in rates),
        lines=lines,
        figure=_figure(identity, title, dataset, n_labeled, methods, columns, rates),
    )


def _line(dataset: str, n_labeled: int, method: str, columns: Sequence[dict[str, Summary]]) -> AccuracyLine:
    paper = paper_entry(dataset, n_labeled, method)
    return AccuracyLine(
        method=method,
        style=method_style(method),
        cells=tuple(_cell(method, column) for column in columns),
        paper=f"{paper.mean:.1f} ± {paper.deviation:.1f}" if paper else DASH,
    )


def _cell(method: str, column: dict[str, Summary]) -> Cell:
    if method not in column:
        return Cell(DASH)
    summary, most = column[method], max(entry.n for entry in column.values())
    best = max(
        round(entry.mean, 3) for entry in column.values()
    )  # to the shown decimal, so that equals share the place
    note = f"{summary.n} of {most} splits" if summary.n < most else ""
    return Cell(percent(summary), round(summary.mean, 3) == best, note)


def _facts(rows: Sequence[ResultRow]) -> str:
    splits = plural(len({row.split for row in rows if row.status == "done"}), "split")
    known = next((row for row in rows if row.n_train and row.n_test), None)
    if known is None:
        return splits
    return f"{splits}; {known.n_train:,} training rows, {known.n_test:,} held out"


def _stands_for(dataset: str) -> str:
    if dataset in STAND_INS:
        return f"Stands in for the paper's {STAND_INS[dataset]}, which is not public."
    if dataset in SAME_DATA:
        return f"The paper's {SAME_DATA[dataset]}."
    return ""


def _figure(
    identity: str,
    title: str,
    dataset: str,
    n_labeled: int,
    methods: Sequence[str],
    columns: Sequence[dict[str, Summary]],
    rates: Sequence[float | None],
) -> str:
    """Dots of both protocols and the paper, with a line at the majority rate; the best methods on top."""
    dot_rows = []
    for method in methods:
        marks = [
            _mark(column[method], shape)
            for column, shape in zip(columns, (*SHAPES, "square"), strict=False)
            if method in column
        ]
        paper = paper_entry(dataset, n_labeled, method)
        if paper:
            marks.append(Mark(paper.mean, (paper.mean - paper.deviation, paper.mean + paper.deviation), "diamond"))
        dot_rows.append(DotRow(method, method_style(method), tuple(marks)))
    rate = next((rate for rate in rates if rate is not None), None)
    chart = Chart(
        identity,
        f"Accuracy on {title}",
        "Mean accuracy in percent of each method with its standard deviation over the splits; "
        "the table that follows holds the same figures.",
        "accuracy on held-out rows, %",
    )
    return dot_chart(chart, dot_rows, None if rate is None else (100.0 * rate, "majority class"))


def _mark(summary: Summary, shape: str) -> Mark:
    mean, deviation = 100.0 * summary.mean, 100.0 * (summary.deviation or 0.0)
    return Mark(mean, (mean - deviation, mean + deviation), shape)


def best_methods(members: Sequence[ResultRow]) -> list[str]:
    """Methods with the highest mean accuracy, to the shown decimal."""
    means = {method: round(entry.mean, 3) for method, entry in summaries(members, "accuracy").items()}
    return [method for method, mean in means.items() if mean == max(means.values())]


def settings_of(rows: Sequence[ResultRow], spec: str = SPEC) -> dict[Setting, list[ResultRow]]:
    """Settings of Table 1 with at least one finished row."""
    return {setting: members for setting, members in by_setting(rows, spec).items() if scored(members, "accuracy")}
