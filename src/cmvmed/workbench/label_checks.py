"""Labels that look wrong: by themselves, beside a column that gives them away, and beside groups and times."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import plural
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.tables.columns import (
    FloatArray,
    RawTable,
    cells_present,
    column_kind,
    missing_cells,
    read_cells,
    read_numbers,
    read_times,
)
from cmvmed.workbench.tables.recording_rows import RECORDING_COLUMN
from cmvmed.workbench.tables.row_labels import likely_markers, misspelt_classes, similar_classes
from cmvmed.workbench.tables.rows import ProjectRows
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import FULL, NEARLY_NONE, Finding, ProjectError, abbreviate

FEW_LABELS = 3  # labels per class below which nothing can be held out from all folds
MANY_CLASSES = 20
CHANCE = 0.01  # probability under which a pattern is not called chance, over all columns together
NUMBERED = re.compile(r"[^\W\d]+[ _.#-]?\d+")  # letters, then a number
MIN_NAMES = 5  # fewer may be settings or parts


def _differ_by_case(names: Sequence[str]) -> bool:
    return len({re.sub(r"[ _\t-]", "", name.casefold()) for name in names}) == 1


def _difference(names: Sequence[str]) -> str:
    """How names of one appearance differ."""
    return "differ only by case, blanks or hyphens" if _differ_by_case(names) else "look alike"


def _quoted(name: str, names: Sequence[str]) -> str:
    """A name in quotes, with the codes of its letters if it looks like another one of the names."""
    return repr(name) if _differ_by_case(names) else ascii(name)


def label_findings(rows: ProjectRows, data: DataSettings) -> Iterator[Finding]:
    """Labels that are no classes, classes that are written differently, and classes with few labels."""
    counts, n_rows = rows.labels.counts, rows.table.n_rows
    n_labeled = sum(counts.values())
    sure, possible = likely_markers(counts, data)
    for label in sure:
        share = f"{plural(counts[label], 'row')}, {100 * counts[label] / n_rows:.0f} %"
        yield Finding(
            "error",
            "marker",
            f"The label {label!r} ({share}) looks like a marker for rows that are not labeled and would be learned as a class. Add "
            f"it to unlabeled in [data], as in {toml_line('unlabeled', [*data.unlabeled, label])}; if it is a class, list all "
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
        listed = ", ".join(f"{_quoted(label, group)} ({counts[label]})" for label in group)
        yield Finding(
            "error",
            "similar_classes",
            f"The classes {listed} {_difference(group)}. Write them alike in the data; if they are "
            "different classes, list all classes in classes in [data].",
        )
    misspelt = misspelt_classes(counts, data.classes)
    for label, name in misspelt.items():
        yield Finding(
            "warning",
            "misspelt_class",
            f"The class {label!r} ({plural(counts[label], 'row')}) may be {name!r} ({plural(counts[name], 'row')}) misspelt. "
            f"Correct it in the data, or rename it in a section [classes] of the project file, by {toml_line(label, name)}; if it "
            "is a class of its own, list all classes in classes in [data].",
        )
    yield from _number_of_labels(rows, data, n_labeled)
    left = {label: count for label, count in counts.items() if label not in (*sure, *misspelt)}
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


def leak_findings(rows: ProjectRows) -> Iterator[Finding]:
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
            try:
                values = _comparable(rows.table, column, kind)[labeled]
            except ProjectError:  # cells that are an error of their own
                continue
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


def _comparable(table: RawTable, column: str, kind: str) -> NDArray[Any]:
    """The cells of a column as values with an order; None or NaN where there is none."""
    if kind in ("number", "boolean", "date"):
        return read_cells(table, column, kind).values
    series = table.frame[column]
    cells = series.astype(object).map(str).to_numpy(dtype=object)
    cells[missing_cells(series)] = None
    return np.asarray(cells)


def group_findings(rows: ProjectRows, data: DataSettings) -> Iterator[Finding]:
    """Groups that share rows, differ by case, or determine the class; a column that may hold groups if there are none."""
    if rows.groups is None:
        yield from _possible_groups(rows)
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
            f"The groups {abbreviate(similar)} {_difference(similar)} and would sit on both "
            "sides of a split. Write them alike in the data.",
        )
    labeled = rows.labels.labeled
    if 1 < n_groups < rows.table.n_rows and labeled.any():
        yield from _classes_of_groups(rows.groups[labeled], rows.labels.values[labeled], str(name))


def _possible_groups(rows: ProjectRows) -> Iterator[Finding]:
    """Columns of a view with names such as H01 or bird-7, of which each is that of several rows."""
    for view, columns in rows.roles.views.items():
        for column in (column for column in columns if rows.kinds[column] == "category"):
            names = rows.table.frame[column].dropna().astype(str).str.strip()
            numbered = {name for name in set(names) if NUMBERED.fullmatch(name)}
            if len(numbered) >= MIN_NAMES and names.isin(numbered).mean() > FULL and len(names) >= 2 * len(numbered):
                yield Finding(
                    "warning",
                    "possible_groups",
                    f"View {view!r}, column {column!r} holds {len(numbered)} names such as {min(numbered)!r} as a "
                    "feature. If they name the animals, devices or days that rows come from, set groups in [data] to this "
                    "column: otherwise the expected accuracy holds for known ones only.",
                )


def _classes_of_groups(groups: NDArray[Any], labels: NDArray[Any], name: str) -> Iterator[Finding]:
    """What the groups and classes of the labeled rows have to do with each other."""
    groups_of: dict[str, set[str]] = {}
    classes_of: dict[str, set[str]] = {}
    for group, label in zip(groups, labels, strict=True):
        groups_of.setdefault(label, set()).add(group)
        classes_of.setdefault(group, set()).add(label)
    if len(groups_of) > 1 and len(classes_of) > 1 and all(len(classes) == 1 for classes in classes_of.values()):
        if len(classes_of) < labels.size:
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


def time_findings(rows: ProjectRows) -> Iterator[Finding]:
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
