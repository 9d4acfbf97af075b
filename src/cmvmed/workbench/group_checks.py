"""Groups and times that order the labels."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.workbench.column_kinds import column_kind, read_numbers, read_times
from cmvmed.workbench.findings import FULL, NEARLY_NONE, Finding
from cmvmed.workbench.frames import FloatArray
from cmvmed.workbench.label_values import similar_classes
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.project_rows import ProjectRows
from cmvmed.workbench.recording_rows import RECORDING_COLUMN
from cmvmed.workbench.user_errors import abbreviate

__all__ = ["class_changes", "group_findings", "time_findings"]

NUMBERED = re.compile(r"[^\W\d]+[ _.#-]?\d+")  # letters, then a number
MIN_NAMES = 5  # fewer may be settings or parts


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
            f"The groups {abbreviate(similar)} differ only by case, blanks or hyphens and would sit on both "
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
                    "feature. If they are the units that rows come from, such as animals, devices or days, set groups in "
                    "[data] to this column: otherwise the accuracy is that of units known already.",
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
