"""Summary of result rows: accuracy by method and data set with the paper's results and the majority rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.reproduction.method_names import MAJORITY_CLASS
from cmvmed.reproduction.methods import METHODS
from cmvmed.reproduction.paper_results import paper_result
from cmvmed.reproduction.result_rows import ResultRow

Group = tuple[str, str, str, int]  # experiment, protocol, data set, number of labels


@dataclass(frozen=True)
class Entry:
    """Accuracy in percent of one method on one data set: mean and standard deviation over the finished splits.

    The entry "majority class" is the share of the largest class in the test rows.
    """

    spec: str
    dataset: str
    n_labeled: int
    protocol: str
    method: str
    kernel: str
    mean: float | None  # None if every split failed
    deviation: float | None  # None for a single split
    n_splits: int
    n_failed: int
    paper_mean: float | None
    paper_deviation: float | None


def summarize(rows: Sequence[ResultRow]) -> list[Entry]:
    """One entry per experiment, protocol, data set, number of labels and method, and one for the majority class."""
    groups: dict[Group, dict[str, list[ResultRow]]] = {}
    for row in rows:
        by_method = groups.setdefault((row.spec, row.protocol, row.dataset, row.n_labeled), {})
        by_method.setdefault(row.method, []).append(row)
    return [entry for group, by_method in groups.items() for entry in _group_entries(group, by_method)]


def _group_entries(group: Group, by_method: dict[str, list[ResultRow]]) -> list[Entry]:
    entries = []
    for method, rows in by_method.items():
        values = [row.accuracy for row in rows if row.accuracy is not None]
        kernel = max(row.kernel for row in rows)  # failed rows do not have it
        entries.append(_entry(group, method, kernel, values, sum(row.status == "failed" for row in rows)))
    rates = {row.split: row.majority_rate for rows in by_method.values() for row in rows}
    values = [rate for rate in rates.values() if rate is not None]
    if values:
        entries.append(_entry(group, MAJORITY_CLASS, "", values, 0))
    return entries


def _entry(group: Group, method: str, kernel: str, values: Sequence[float], n_failed: int) -> Entry:
    spec, protocol, dataset, n_labeled = group
    paper = paper_result(dataset, n_labeled, method)
    return Entry(
        spec=spec,
        dataset=dataset,
        n_labeled=n_labeled,
        protocol=protocol,
        method=method,
        kernel=kernel,
        mean=100.0 * float(np.mean(values)) if values else None,
        deviation=100.0 * float(np.std(values, ddof=1)) if len(values) > 1 else None,
        n_splits=len(values),
        n_failed=n_failed,
        paper_mean=paper.mean if paper else None,
        paper_deviation=paper.deviation if paper else None,
    )


def format_tables(rows: Sequence[ResultRow]) -> str:
    """Text tables, one per experiment and protocol: a line per method, a column per data set and number of labels."""
    entries = summarize(rows)
    parts = sorted({(entry.spec, entry.protocol) for entry in entries})
    return "\n\n".join(
        _format_table(f"{spec}, {protocol}", [e for e in entries if (e.spec, e.protocol) == (spec, protocol)])
        for spec, protocol in parts
    )


def table_cells(entries: Sequence[Entry]) -> list[list[str]]:
    """The entries of one experiment and protocol as lines of cells: methods by data sets, with a header line."""
    columns = list(dict.fromkeys((entry.dataset, entry.n_labeled) for entry in entries))
    methods = sorted({entry.method for entry in entries}, key=_method_position)
    kernels = {entry.method: max(e.kernel for e in entries if e.method == entry.method) for entry in entries}
    cells = {(entry.method, entry.dataset, entry.n_labeled): _format_cell(entry) for entry in entries}
    header = ["method", "kernel", *(f"{dataset}, {n} labels" for dataset, n in columns)]
    lines = [
        [method, kernels[method] or "–", *(cells.get((method, *column), "–") for column in columns)]
        for method in methods
    ]
    return [header, *lines]


def _format_table(title: str, entries: Sequence[Entry]) -> str:
    (_, *header), *body = table_cells(entries)
    lines = [[f"{title}: accuracy in % ± SD [paper]", *header], *body]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([text[0], "─" * len(text[0]), *text[1:]])


def _format_cell(entry: Entry) -> str:
    if entry.mean is None:
        return f"failed ({entry.n_failed})"
    ours = f"{entry.mean:.1f}" + (f" ± {entry.deviation:.1f}" if entry.deviation is not None else "")
    paper = f" [{entry.paper_mean} ± {entry.paper_deviation}]" if entry.paper_mean is not None else ""
    return ours + paper + (f" ({entry.n_failed} failed)" if entry.n_failed else "")


def _method_position(method: str) -> tuple[int, str]:
    """Sort key of the lines: the majority class, single views, then the order of ``METHODS``."""
    if method == MAJORITY_CLASS:
        return -2, ""
    order = list(METHODS)
    return (order.index(method), "") if method in order else (-1, method)
