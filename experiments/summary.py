"""Result rows as text: accuracy by method and data set beside the paper's results, and the expected time of other rows.

Where the test rows have other class shares than the training rows, the balanced accuracy, the mean of the accuracies
of the classes, has a column of its own: it does not depend on the shares.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from experiments.experiment import paper_result
from experiments.methods import MAJORITY_CLASS, METHODS
from experiments.result_rows import Key, ResultRow
from experiments.tasks import TASKS

Group = tuple[str, str, str, int]  # experiment, protocol, data set, number of labels


@dataclass(frozen=True)
class Entry:
    """Accuracy in percent of one method on one data set: mean and standard deviation over the finished splits.

    The entry "majority class" is the share of the largest class in the test rows; it has no balanced accuracy.
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
    balanced_mean: float | None = None
    balanced_deviation: float | None = None


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
        balanced = [row.balanced_accuracy for row in rows if row.balanced_accuracy is not None]
        kernel = max(row.kernel for row in rows)  # failed rows do not have it
        n_failed = sum(row.status == "failed" for row in rows)
        entries.append(_entry(group, method, values, balanced, kernel=kernel, n_failed=n_failed))
    rates = {row.split: row.majority_rate for rows in by_method.values() for row in rows}
    values = [rate for rate in rates.values() if rate is not None]
    if values:
        entries.append(_entry(group, MAJORITY_CLASS, values))
    return entries


def _entry(
    group: Group,
    method: str,
    values: Sequence[float],
    balanced: Sequence[float] = (),
    *,
    kernel: str = "",
    n_failed: int = 0,
) -> Entry:
    spec, protocol, dataset, n_labeled = group
    paper = paper_result(dataset, n_labeled, method)
    return Entry(
        spec=spec,
        dataset=dataset,
        n_labeled=n_labeled,
        protocol=protocol,
        method=method,
        kernel=kernel,
        mean=_percent_mean(values),
        deviation=_percent_deviation(values),
        n_splits=len(values),
        n_failed=n_failed,
        paper_mean=paper.mean if paper else None,
        paper_deviation=paper.deviation if paper else None,
        balanced_mean=_percent_mean(balanced),
        balanced_deviation=_percent_deviation(balanced),
    )


def _percent_mean(values: Sequence[float]) -> float | None:
    return 100.0 * float(np.mean(values)) if values else None


def _percent_deviation(values: Sequence[float]) -> float | None:
    return 100.0 * float(np.std(values, ddof=1)) if len(values) > 1 else None


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
    groups = list(dict.fromkeys((entry.dataset, entry.n_labeled) for entry in entries))
    columns = [(group, score) for group in groups for score in _scores_shown(group[0])]
    methods = sorted({entry.method for entry in entries}, key=_method_position)
    kernels = {entry.method: max(e.kernel for e in entries if e.method == entry.method) for entry in entries}
    found = {(entry.method, (entry.dataset, entry.n_labeled)): entry for entry in entries}
    header = [f"{dataset}, {n} labels{'' if score == 'accuracy' else ', balanced'}" for (dataset, n), score in columns]
    lines = [
        [
            method,
            kernels[method] or "–",
            *(_format_score(found.get((method, group)), score) for group, score in columns),
        ]
        for method in methods
    ]
    return [["method", "kernel", *header], *lines]


def _scores_shown(dataset: str) -> tuple[str, ...]:
    """The balanced accuracy too if the task's test rows have other class shares than its training rows."""
    task = TASKS.get(dataset)
    return ("accuracy", "balanced") if task is not None and task.n_train_per_class is not None else ("accuracy",)


def _format_table(title: str, entries: Sequence[Entry]) -> str:
    (_, *header), *body = table_cells(entries)
    lines = [[f"{title}: accuracy in % ± SD [paper]", *header], *body]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([text[0], "─" * len(text[0]), *text[1:]])


def _format_score(entry: Entry | None, score: str) -> str:
    if entry is None or (score == "balanced" and entry.balanced_mean is None):
        return "–"
    if score == "balanced":
        return _mean_and_deviation(entry.balanced_mean, entry.balanced_deviation)
    return _format_cell(entry)


def _mean_and_deviation(mean: float | None, deviation: float | None) -> str:
    return f"{mean:.1f}" + (f" ± {deviation:.1f}" if deviation is not None else "")


def _format_cell(entry: Entry) -> str:
    if entry.mean is None:
        return f"failed ({entry.n_failed})"
    ours = _mean_and_deviation(entry.mean, entry.deviation)
    paper = f" [{entry.paper_mean} ± {entry.paper_deviation}]" if entry.paper_mean is not None else ""
    return ours + paper + (f" ({entry.n_failed} failed)" if entry.n_failed else "")


def _method_position(method: str) -> tuple[int, str]:
    """Sort key of the lines: the majority class, single views, then the order of ``METHODS``."""
    if method == MAJORITY_CLASS:
        return -2, ""
    order = list(METHODS)
    return (order.index(method), "") if method in order else (-1, method)


@dataclass(frozen=True)
class MethodTime:
    """Remaining rows of a method under a protocol, and their expected time on one processor core.

    ``n_unknown`` rows are of data sets for which the method has no finished row; they are not in ``seconds``.
    """

    method: str
    protocol: str
    n_rows: int
    seconds: float
    n_unknown: int


def expected_times(remaining: Collection[Key], rows: Sequence[ResultRow]) -> list[MethodTime]:
    """Expected times by method and protocol, the longest first.

    A row is expected to take the mean time of the finished rows of the same data set, method and protocol with the
    nearest number of labels.
    """
    seconds: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    for row in rows:
        if row.fit_seconds is not None:
            by_labels = seconds.setdefault((row.dataset, row.method, row.protocol), {})
            by_labels.setdefault(row.n_labeled, []).append(row.fit_seconds + (row.predict_seconds or 0.0))
    groups: dict[tuple[str, str], list[float | None]] = {}
    for key in remaining:
        known = seconds.get((key.dataset, key.method, key.protocol), {})
        groups.setdefault((key.method, key.protocol), []).append(_nearest_mean(known, key.n_labeled))
    times = [
        MethodTime(*names, len(values), sum(value or 0.0 for value in values), values.count(None))
        for names, values in groups.items()
    ]
    return sorted(times, key=lambda time: (-time.seconds, time.method, time.protocol))


def _nearest_mean(known: Mapping[int, Sequence[float]], n_labeled: int) -> float | None:
    """Mean of the values at the nearest number of labels; None if there are none."""
    return fmean(known[min(known, key=lambda n: abs(n - n_labeled))]) if known else None


def format_times(times: Sequence[MethodTime], n_jobs: int) -> str:
    """A line per method and protocol with its share of the total, and the total on a number of processes."""
    total = sum(time.seconds for time in times)
    lines = [f"{'method':34}  {'protocol':8}  {'rows':>6}  {'minutes':>8}  share"]
    for time in times:
        unknown = f"  ({time.n_unknown} rows of unknown time)" if time.n_unknown else ""
        share = time.seconds / total if total else 0.0
        lines.append(
            f"{time.method:34}  {time.protocol:8}  {time.n_rows:6}  {time.seconds / 60.0:8.1f}  {share:5.0%}{unknown}"
        )
    n_rows, n_unknown = sum(time.n_rows for time in times), sum(time.n_unknown for time in times)
    lines.append(
        f"{n_rows} rows, {total / 60.0:.0f} minutes on one core, {total / 60.0 / n_jobs:.0f} in {n_jobs} processes"
        + (f", and {n_unknown} rows of unknown time: finish one split first" if n_unknown else "")
    )
    return "\n".join(lines)
