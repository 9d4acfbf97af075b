"""The rows of an experiment in one table: accuracy by method and data set, the paper's figures and the majority rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmvmed.reproduction.methods import METHODS
from cmvmed.reproduction.paper_results import paper_figure
from cmvmed.reproduction.result_rows import ResultRow

MAJORITY = "commonest class"  # its share among the test rows


@dataclass(frozen=True)
class Entry:
    """Accuracy in percent of one method on one data set: mean and standard deviation over its finished splits."""

    spec: str
    dataset: str
    n_labeled: int
    protocol: str
    method: str
    mean: float | None  # None if every split failed
    deviation: float | None  # None for a single split
    n_splits: int
    n_failed: int
    paper_mean: float | None
    paper_deviation: float | None


def entries(rows: Sequence[ResultRow]) -> list[Entry]:
    """One entry per experiment, protocol, data set, number of labels and method, and one for the majority rate."""
    groups: dict[tuple[str, str, str, int, str], list[ResultRow]] = {}
    for row in rows:
        groups.setdefault((row.spec, row.protocol, row.dataset, row.n_labeled, row.method), []).append(row)
        if row.majority_rate is not None:
            groups.setdefault((row.spec, row.protocol, row.dataset, row.n_labeled, MAJORITY), [])
    return [_entry(key, group, rows) for key, group in groups.items()]


def _entry(key: tuple[str, str, str, int, str], group: list[ResultRow], rows: Sequence[ResultRow]) -> Entry:
    spec, protocol, dataset, n_labeled, method = key
    if method == MAJORITY:
        cell = (spec, protocol, dataset, n_labeled)
        rates = {r.split: r.majority_rate for r in rows if (r.spec, r.protocol, r.dataset, r.n_labeled) == cell}
        values, n_failed = [rate for rate in rates.values() if rate is not None], 0
    else:
        values = [row.accuracy for row in group if row.accuracy is not None]
        n_failed = sum(row.status == "failed" for row in group)
    figure = paper_figure(dataset, n_labeled, method)
    return Entry(
        spec=spec,
        dataset=dataset,
        n_labeled=n_labeled,
        protocol=protocol,
        method=method,
        mean=100.0 * float(np.mean(values)) if values else None,
        deviation=100.0 * float(np.std(values, ddof=1)) if len(values) > 1 else None,
        n_splits=len(values),
        n_failed=n_failed,
        paper_mean=figure.mean if figure else None,
        paper_deviation=figure.deviation if figure else None,
    )


def tables(rows: Sequence[ResultRow]) -> str:
    """Text tables, one per experiment and protocol: a line per method, a column per data set and number of labels."""
    everything = entries(rows)
    parts = sorted({(entry.spec, entry.protocol) for entry in everything})
    return "\n\n".join(
        _table(f"{spec}, {protocol}", [e for e in everything if (e.spec, e.protocol) == (spec, protocol)])
        for spec, protocol in parts
    )


def grid(chosen: Sequence[Entry]) -> list[list[str]]:
    """The entries of one experiment and protocol as cells: data sets across, methods down, names first."""
    columns = list(dict.fromkeys((entry.dataset, entry.n_labeled) for entry in chosen))
    methods = sorted({entry.method for entry in chosen}, key=_rank)
    cells = {(entry.method, entry.dataset, entry.n_labeled): _cell(entry) for entry in chosen}
    head = ["method", *(f"{dataset}, {n} labels" for dataset, n in columns)]
    return [head, *([method, *(cells.get((method, *column), "–") for column in columns)] for method in methods)]


def _table(title: str, chosen: list[Entry]) -> str:
    (_, *head), *rest = grid(chosen)
    lines = [[f"{title}: accuracy in % ± SD [paper]", *head], *rest]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([text[0], "─" * len(text[0]), *text[1:]])


def _cell(entry: Entry) -> str:
    if entry.mean is None:
        return f"failed ({entry.n_failed})"
    ours = f"{entry.mean:.1f}" + (f" ± {entry.deviation:.1f}" if entry.deviation is not None else "")
    paper = f" [{entry.paper_mean} ± {entry.paper_deviation}]" if entry.paper_mean is not None else ""
    return ours + paper + (f" ({entry.n_failed} failed)" if entry.n_failed else "")


def _rank(method: str) -> tuple[int, str]:
    """Order of the lines: the majority rate, single views, then the order of the methods."""
    order = list(METHODS)
    return (order.index(method), "") if method in order else (-2 + (method != MAJORITY), method)
