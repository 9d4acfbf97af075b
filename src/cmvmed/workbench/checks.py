"""What ruins results silently: labels, rows, columns, groups and times that look wrong. Nothing is fitted."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from math import lgamma, log
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings import SensorSignals
from cmvmed.recordings.audio_files import audio_header
from cmvmed.workbench.column_kinds import column_kind, missing_cells, read_booleans, read_numbers, read_times
from cmvmed.workbench.encoders import cells_present
from cmvmed.workbench.frames import FloatArray, RawTable, pandas
from cmvmed.workbench.label_values import likely_markers, similar_classes
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.project_rows import ProjectRows
from cmvmed.workbench.recording_rows import RECORDING_COLUMN
from cmvmed.workbench.user_errors import abbreviate, plural

__all__ = ["Finding", "Level", "check_rows", "describe_rows"]

Level: TypeAlias = Literal["error", "warning", "note"]
CHANCE = 0.01  # probability under which a pattern is not called chance, over all columns together
FEW_LABELS = 3  # labels per class below which nothing can be held out from all folds
MANY_CLASSES = 20
HASHED_BYTES = 1 << 16  # of the start of a sound file, to find repeated ones
FULL, NEARLY_NONE = 0.95, 0.05  # shares of rows


@dataclass(frozen=True)
class Finding:
    """Something that looks wrong, and what to do.

    Attributes
    ----------
    level : {"error", "warning", "note"}
        An error makes results meaningless, a warning probably worse; a note is for information.
    code : str
        Name of the check.
    message : str
        One or two sentences with the view, column or row, and what to do.
    """

    level: Level
    code: str
    message: str


def check_rows(rows: ProjectRows, data: DataSettings) -> list[Finding]:
    """All findings about the rows of a project, errors first."""
    findings = [
        *_labels(rows, data),
        *_columns(rows),
        *_sounds(rows),
        *_gaps(rows),
        *_repeated_rows(rows),
        *_leaks(rows),
        *_group_findings(rows, data),
        *_times(rows),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(findings, key=lambda finding: order[finding.level])


def describe_rows(rows: ProjectRows) -> dict[str, Any]:
    """Counts of rows, labels per class, columns and gaps per view."""
    n_rows = rows.table.n_rows
    views = {}
    for name, columns in rows.roles.views.items():
        present = rows.present(name)
        cells = np.array([cells_present(rows.table, column)[present].sum() for column in columns])
        total = int(present.sum()) * len(columns)
        views[name] = {
            "columns": len(columns),
            "kinds": dict(Counter(rows.kinds[column] for column in columns)),
            "rows_absent": int(n_rows - present.sum()),
            "cells_missing": int(total - cells.sum()),
        }
    labeled = int(sum(rows.labels.counts.values()))
    return {
        "rows": n_rows,
        "labeled": labeled,
        "unlabeled": n_rows - labeled,
        "labels_per_class": dict(rows.labels.counts),
        "groups": None if rows.groups is None else len(set(rows.groups)),
        "views": views,
    }


def _labels(rows: ProjectRows, data: DataSettings) -> Iterator[Finding]:
    counts, n_rows = rows.labels.counts, rows.table.n_rows
    n_labeled = sum(counts.values())
    sure, possible = likely_markers(counts, data)
    for label in sure:
        share = f"{plural(counts[label], 'row')}, {100 * counts[label] / n_rows:.0f} %"
        yield Finding(
            "error",
            "marker",
            f"The label {label!r} ({share}) looks like a marker for rows that are not labeled and would be learned as a class. Add "
            f"it to unlabeled in [data], as in unlabeled = {_toml_list([*data.unlabeled, label])}; if it is a class, list all "
            "classes in classes.",
        )
    for label in possible:
        most = counts[label] > n_rows / 2
        yield Finding(
            "error" if most else "warning",
            "marker",
            f"The label {label!r} ({plural(counts[label], 'row')}{', most of all' if most else ''}) may mark rows that are not "
            "labeled. Add it to unlabeled in [data]; if it is a class, list all classes in classes.",
        )
    for group in similar_classes([label for label in counts if label not in data.classes]):
        listed = ", ".join(f"{label!r} ({counts[label]})" for label in group)
        yield Finding(
            "error",
            "similar_classes",
            f"The classes {listed} differ only by case, blanks or hyphens. Write them alike in the data; if they are "
            "different classes, list all classes in classes in [data].",
        )
    yield from _number_of_labels(rows, data, n_labeled)
    left = {label: count for label, count in counts.items() if label not in sure}
    single = [label for label, count in left.items() if count == 1]
    if single and len(left) > 1:
        yield Finding(
            "warning",
            "single_label",
            f"{plural(len(single), 'class has', 'classes have')} a single label: {abbreviate(single)}. How well "
            f"{'it is' if len(single) == 1 else 'they are'} recognized cannot be estimated; label at least {FEW_LABELS} rows of "
            "each class.",
        )


def _number_of_labels(rows: ProjectRows, data: DataSettings, n_labeled: int) -> Iterator[Finding]:
    counts, n_rows = rows.labels.counts, rows.table.n_rows
    if data.labels is None:
        yield Finding(
            "error",
            "no_labels",
            "labels is not set in [data]; set it to the column, or file with id and label, of the labels.",
        )
    elif n_labeled == 0:
        markers = abbreviate(data.unlabeled)
        yield Finding(
            "error",
            "no_labels",
            f"No row is labeled: all {n_rows} labels are empty or one of {markers}. Label some rows of each class, or "
            "correct unlabeled in [data].",
        )
    elif len(counts) == 1:
        yield Finding(
            "error",
            "one_class",
            f"All labeled rows have the class {next(iter(counts))!r}, where at least 2 classes are needed. Label rows of "
            "another class; if the empty cells are the other class, give it a name.",
        )
    elif len(counts) > max(MANY_CLASSES, n_labeled / 2):
        yield Finding(
            "error",
            "many_classes",
            f"The labels have {len(counts)} different values in {n_labeled} rows, as a measured number or an identifier has. Set "
            "labels in [data] to a column of classes, or make classes of ranges of the number.",
        )
    if n_labeled == n_rows and len(counts) > 1:
        yield Finding(
            "note",
            "all_labeled",
            "All rows are labeled, so there is nothing to learn from unlabeled rows. Rows without a label may be in the "
            "data too; they need an empty cell.",
        )


def _columns(rows: ProjectRows) -> Iterator[Finding]:
    for view, columns in rows.roles.views.items():
        empty = [column for column in columns if not cells_present(rows.table, column).any()]
        if empty:
            level: Level = "error" if len(empty) == len(columns) else "warning"
            yield Finding(
                level,
                "empty_column",
                f"View {view!r}: {abbreviate(empty)} {'holds' if len(empty) == 1 else 'hold'} nothing in all rows. Put "
                f"{'it' if len(empty) == 1 else 'them'} into ignore in [data], or check how the file was written.",
            )
        constant = [column for column in columns if column not in empty and _is_constant(rows.table, column)]
        if constant:
            yield Finding(
                "warning",
                "constant_column",
                f"View {view!r}: {abbreviate(constant)} {'has' if len(constant) == 1 else 'have'} the same value in all rows, as a "
                "dead sensor has. Put such columns into ignore in [data], or check the sensor.",
            )
        identifiers = [column for column in columns if rows.kinds[column] == "identifier"]
        if identifiers:
            yield Finding(
                "warning",
                "identifier",
                f"View {view!r}: {abbreviate(identifiers)} differs in every row and is not learned from. If it identifies rows, "
                "set id in [data]; if it holds texts, say so in [columns].",
            )
        for column in columns:
            yield from _cells(rows, view, column)


def _cells(rows: ProjectRows, view: str, column: str) -> Iterator[Finding]:
    """Cells that cannot be read, and numbers with units."""
    kind, table = rows.kinds[column], rows.table
    if kind in ("number", "date", "boolean"):
        series = table.frame[column]
        readers = {"number": lambda s: read_numbers(s, table.decimal), "date": read_times, "boolean": read_booleans}
        bad = np.flatnonzero(readers[kind](series).bad)
        if len(bad):
            yield Finding(
                "warning",
                "bad_cell",
                f"View {view!r}, column {column!r}: {plural(len(bad), 'cell')} cannot be read as a {kind} and count as gaps, first "
                f"{str(series.iloc[bad[0]])!r} in {table.place(int(bad[0]))}. Correct them or leave them empty.",
            )
    if kind in ("category", "identifier"):
        series = table.frame[column]
        texts = pandas().Series(series[~missing_cells(series)].astype(str))
        units = texts.str.fullmatch(r"\s*[+-]?\d+([.,]\d+)?\s*[A-Za-z%°µ/]{1,6}\s*")
        if units.mean() > FULL:
            yield Finding(
                "warning",
                "unit",
                f"View {view!r}, column {column!r} holds numbers with a unit, such as {texts.iloc[0]!r}, and is read as a "
                "category. Remove the unit from the cells.",
            )


def _sounds(rows: ProjectRows) -> Iterator[Finding]:
    """Sound files of different sampling rates."""
    for name, signal in rows.table.signals.items():
        if isinstance(signal.items, SensorSignals) or not signal.is_sound:
            continue
        rates = Counter(audio_header(file).samplerate for file in signal.items if file is not None)
        if len(rates) > 1:
            listed = ", ".join(f"{rate} Hz ({count})" for rate, count in sorted(rates.items()))
            yield Finding(
                "warning",
                "sampling_rates",
                f"View {name!r}: sound files have different sampling rates, {listed}; they are resampled to the lowest. Set "
                "sampling_rate in [data] to choose one, or leave out the odd files.",
            )


def _gaps(rows: ProjectRows) -> Iterator[Finding]:
    n_rows = rows.table.n_rows
    present = {view: rows.present(view) for view in rows.roles.views}
    for view, has in present.items():
        if 0 < has.sum() < NEARLY_NONE * n_rows:
            yield Finding(
                "warning",
                "absent_view",
                f"View {view!r} is present in {plural(int(has.sum()), 'row')} of {n_rows} only. Check how identifiers are "
                "written, or remove the view.",
            )
    nothing = np.flatnonzero(~np.any(list(present.values()), axis=0))
    if len(nothing):
        yield Finding(
            "warning",
            "empty_row",
            f"{plural(len(nothing), 'row has', 'rows have')} no view at all, first {rows.ids[nothing[0]]!r} "
            f"({rows.table.place(int(nothing[0]))}); they say nothing. Remove them from the data.",
        )
    labeled = rows.labels.labeled
    for view, has in present.items():
        if labeled.any() and not (has & labeled).any() and has.any():
            yield Finding(
                "warning",
                "view_without_labels",
                f"View {view!r} is absent in all labeled rows, so it learns from other views only. Label rows that have it.",
            )


def _repeated_rows(rows: ProjectRows) -> Iterator[Finding]:
    keys = _row_hashes(rows)
    first: dict[int, int] = {}
    pairs = [(first[key], row) for row, key in enumerate(keys) if first.setdefault(key, row) != row]
    if not pairs:
        return
    one, other = pairs[0]
    where = f"{rows.ids[other]!r} ({rows.table.place(other)}) equals {rows.ids[one]!r}"
    yield Finding(
        "warning",
        "repeated_rows",
        f"{plural(len(pairs), 'row repeats', 'rows repeat')} another one in all views: {where}. Repeated rows make estimates of "
        "the accuracy too good; keep one of each.",
    )
    labels = rows.labels.values
    conflicts = [(a, b) for a, b in pairs if None not in (labels[a], labels[b]) and labels[a] != labels[b]]
    if conflicts:
        one, other = conflicts[0]
        yield Finding(
            "error",
            "conflicting_labels",
            f"{plural(len(conflicts), 'repeated row has', 'repeated rows have')} different labels: {rows.ids[one]!r} is "
            f"{labels[one]!r} and {rows.ids[other]!r}, with the same values, is {labels[other]!r}. Correct one of them.",
        )
    if rows.groups is not None:
        crossing = [(a, b) for a, b in pairs if rows.groups[a] != rows.groups[b]]
        if crossing:
            one, other = crossing[0]
            yield Finding(
                "warning",
                "crossing_groups",
                f"{plural(len(crossing), 'repeated row is', 'repeated rows are')} in two groups: {rows.ids[one]!r} in "
                f"{rows.groups[one]!r} and {rows.ids[other]!r} in {rows.groups[other]!r}. Splits by groups cannot keep them apart; "
                "correct the groups or remove the copies.",
            )


def _leaks(rows: ProjectRows) -> Iterator[Finding]:
    """Columns that alone determine the class, or are filled only where there is a label."""
    labeled = rows.labels.labeled
    if not labeled.any():
        return
    classes, codes = np.unique(rows.labels.values[labeled].astype(str), return_inverse=True)
    owners = [(view, column) for view, columns in rows.roles.views.items() for column in columns]
    for view, column in owners:
        if column in rows.table.signals:
            continue
        kind = rows.kinds[column]
        if kind in ("number", "boolean", "date", "category") and len(classes) > 1:
            values = _comparable(rows.table, column, kind)[labeled]
            if determines(values, codes, len(owners), ordered=kind in ("number", "date")):
                yield Finding(
                    "warning",
                    "leak",
                    f"View {view!r}, column {column!r} alone determines the class of all "
                    f"{plural(int(labeled.sum()), 'labeled row')}. If it was derived from the label, or is not known for new "
                    "rows, put it into ignore in [data].",
                )
        present = cells_present(rows.table, column)
        if (~labeled).any() and present[labeled].mean() >= FULL and present[~labeled].mean() <= NEARLY_NONE:
            yield Finding(
                "warning",
                "filled_if_labeled",
                f"View {view!r}, column {column!r} is filled in labeled rows only, as something noted together with the label "
                "is. Put it into ignore in [data] unless new rows will have it.",
            )


def determines(values: NDArray[Any], codes: NDArray[np.intp], n_columns: int, *, ordered: bool) -> bool:
    """Whether the values determine the classes, and chance would not do that in one of ``n_columns`` columns.

    Of all n!/Π n_k! orders of the labels, at most K! have each class in one stretch of the sorted values, and at most
    K^V are constant on each of V different values.
    """
    known = np.array([value is not None and value == value for value in values])
    if not known.all():
        return False
    counts = np.bincount(codes)
    log_orders = lgamma(counts.sum() + 1) - sum(lgamma(count + 1) for count in counts)
    pairs = sorted(set(zip(values.tolist(), codes.tolist(), strict=True)))
    if len({value for value, _ in pairs}) < len(pairs):
        return False  # a value with two classes
    n_stretches = 1 + sum(a[1] != b[1] for a, b in pairwise(pairs))
    in_stretches = ordered and n_stretches == len(counts)
    log_ways = min(
        lgamma(len(counts) + 1) if in_stretches else np.inf,
        len(pairs) * log(len(counts)) if len(pairs) < len(codes) else np.inf,
    )
    return bool(log_ways - log_orders + log(n_columns) < log(CHANCE))


def _group_findings(rows: ProjectRows, data: DataSettings) -> Iterator[Finding]:
    if rows.groups is None:
        return
    name, n_groups = data.groups or RECORDING_COLUMN, len(set(rows.groups))
    if n_groups == 1:
        yield Finding(
            "error",
            "one_group",
            f"All rows are in one group ({name!r} = {rows.groups[0]!r}), so no group can be held out. Remove "
            "groups from [data], or set it to another column.",
        )
    elif n_groups == rows.table.n_rows:
        yield Finding(
            "warning",
            "groups_of_one",
            f"Each row is a group of its own in {name!r}, so groups change nothing. Set groups in [data] "
            "to a column that rows share, or remove it.",
        )
    for similar in similar_classes(sorted(set(rows.groups))):
        yield Finding(
            "warning",
            "similar_groups",
            f"The groups {abbreviate(similar)} differ only by case, blanks or hyphens and would sit on both "
            "sides of a split. Write them alike in the data.",
        )
    labeled = rows.labels.labeled
    if 1 < n_groups < rows.table.n_rows and labeled.any():
        yield from _classes_of_groups(rows, labeled, str(name))


def _classes_of_groups(rows: ProjectRows, labeled: NDArray[np.bool_], name: str) -> Iterator[Finding]:
    assert rows.groups is not None
    groups_of: dict[str, set[str]] = {}
    classes_of: dict[str, set[str]] = {}
    for group, label in zip(rows.groups[labeled], rows.labels.values[labeled], strict=True):
        groups_of.setdefault(label, set()).add(group)
        classes_of.setdefault(group, set()).add(label)
    if len(groups_of) > 1 and len(classes_of) > 1 and all(len(classes) == 1 for classes in classes_of.values()):
        if len(classes_of) < labeled.sum():
            yield Finding(
                "warning",
                "group_is_class",
                f"Each group of {name!r} has labels of one class only, so what is learned may be the group "
                "instead of the class. Label rows of several classes in some groups.",
            )
        return
    lonely = [label for label, groups in groups_of.items() if len(groups) == 1]
    if lonely and len(groups_of) > 1:
        yield Finding(
            "warning",
            "class_in_one_group",
            f"The labels of {abbreviate(lonely)} are in one group of {name!r} only, so they cannot be "
            "recognized when that group is held out. Label rows of other groups.",
        )


def _times(rows: ProjectRows) -> Iterator[Finding]:
    """Labels that follow a time: of one class in a stretch, or of one period only."""
    labeled = rows.labels.labeled
    if labeled.sum() < 2:
        return
    codes = np.unique(rows.labels.values[labeled].astype(str), return_inverse=True)[1]
    for column, seconds in _time_columns(rows):
        known = ~np.isnan(seconds)
        both = known & labeled
        n_changes, expected, deviation = class_changes(seconds[both], codes[known[labeled]])
        if deviation > 0 and n_changes < expected - 4 * deviation:
            yield Finding(
                "warning",
                "time_orders_labels",
                f"In the order of {column!r}, labels of one class follow each other ({n_changes} changes of class, {expected:.0f} "
                "expected by chance), so neighbors in time end up on both sides of a split. Set groups in [data] to the "
                "recording or day, and keep the time out of the views.",
            )
        if both.sum() >= 5 and (known & ~labeled).sum() >= 5:
            share_before = float(np.mean(seconds[both][:, None] > seconds[known & ~labeled][None, :][:, :2000]))
            if not NEARLY_NONE < share_before < FULL:
                when = "before" if share_before < 0.5 else "after"
                yield Finding(
                    "warning",
                    "labels_of_one_period",
                    f"By {column!r}, nearly all labeled rows come {when} the unlabeled ones, so the labels may not represent "
                    "them. Label some rows of the whole period.",
                )


def class_changes(times: FloatArray, codes: NDArray[np.intp]) -> tuple[int, float, float]:
    """Changes of class in the order of time, with their mean and standard deviation under a random order.

    With p₂ = Σ (n_k/n)² and p₃ = Σ (n_k/n)³ the mean is about n(1 - p₂) and the variance about n(p₂ + p₂² - 2 p₃).
    """
    n = len(codes)
    if n < 2:
        return 0, 0.0, 0.0
    ordered = codes[np.argsort(times, kind="stable")]
    shares = np.bincount(codes) / n
    p2, p3 = float((shares**2).sum()), float((shares**3).sum())
    return int(np.count_nonzero(np.diff(ordered))), n * (1 - p2), float(np.sqrt(max(n * (p2 + p2**2 - 2 * p3), 0.0)))


def _time_columns(rows: ProjectRows) -> Iterator[tuple[str, FloatArray]]:
    """Columns of dates, in views or not."""
    for column in map(str, rows.table.frame.columns):
        if column in rows.roles.reserved:
            continue
        series = rows.table.frame[column]
        if rows.kinds.get(column, "") == "date" or (column not in rows.kinds and column_kind(series) == "date"):
            yield column, read_times(series).values
        elif column not in rows.kinds and column.casefold() in ("time", "timestamp", "t", "seconds", "epoch"):
            yield column, read_numbers(series, rows.table.decimal).values


def _comparable(table: RawTable, column: str, kind: str) -> NDArray[Any]:
    """The cells of a column as values with an order; None or NaN where there is none."""
    series = table.frame[column]
    if kind in ("number", "boolean"):
        return (read_booleans(series) if kind == "boolean" else read_numbers(series, table.decimal)).values
    if kind == "date":
        return read_times(series).values
    cells = series.astype(object).map(str).to_numpy(dtype=object)
    cells[missing_cells(series)] = None
    return np.asarray(cells)


def _is_constant(table: RawTable, column: str) -> bool:
    if column in table.signals:
        return False
    series = table.frame[column]
    present = series[~missing_cells(series)]
    return len(present) > 1 and column_kind(present, table.decimal) != "unusable" and present.nunique() == 1


def _row_hashes(rows: ProjectRows) -> list[int]:
    """A number per row that is the same for rows with the same cells and signals in all views; unique for empty rows."""
    columns = [column for columns in rows.roles.views.values() for column in columns]
    table = rows.table
    total = np.zeros(table.n_rows, dtype=np.uint64)
    for position, column in enumerate(columns, 1):
        if column in table.signals:
            hashes = np.array([_signal_hash(item) for item in table.signals[column].items], dtype=np.uint64)
        else:
            cells = table.frame[column]
            cells = cells.astype(object).map(str) if cells.dtype == object else cells
            hashes = pandas().util.hash_pandas_object(cells, index=False).to_numpy()
        total = total * np.uint64(6364136223846793005) + hashes * np.uint64(2 * position + 1)
    absent = ~np.any([rows.present(view) for view in rows.roles.views], axis=0)
    return [-row - 1 if absent[row] else int(key) for row, key in enumerate(total)]


def _signal_hash(item: Any) -> int:
    if item is None:
        return 0
    if isinstance(item, str):
        with Path(item).open("rb") as file:
            content = file.read(HASHED_BYTES) + str(Path(item).stat().st_size).encode()
    else:
        content = np.ascontiguousarray(item).tobytes()
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def _toml_list(texts: Sequence[str]) -> str:
    quoted = [f'"{text}"' for text in texts]
    return f"[{', '.join(quoted)}]"
