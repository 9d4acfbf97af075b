"""What ruins results silently: labels, rows, columns, groups and times that look wrong. Nothing is fitted."""

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import plural
from cmvmed.recordings import SensorSignals
from cmvmed.recordings.sound_files import audio_header
from cmvmed.workbench.label_checks import group_findings, label_findings, leak_findings, time_findings
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.tables.columns import (
    RawTable,
    cells_present,
    column_kind,
    missing_cells,
    pandas,
    read_cells,
    read_numbers,
)
from cmvmed.workbench.tables.rows import ProjectRows
from cmvmed.workbench.user_errors import FULL, NEARLY_NONE, Finding, Findings, Level, ProjectError, abbreviate

NINES = re.compile(r"99+(\.9+)?")  # digits of a marker for gaps
FAR, MIN_ROWS = 1e6, 20  # times the usual distance from the median, in columns of so many numbers
MIN_NUMBERS = 10  # different numbers from which on a column with texts is not one of numbered categories
KIND_NAMES = {"category": "categories", "identifier": "an identifier", "text": "texts"}
HASHED_BYTES = 1 << 16  # of the start of a sound file, to find repeated ones


def check_rows(rows: ProjectRows, data: DataSettings) -> Findings:
    r"""All findings about the rows of a project, errors first.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import Project, check_rows, init
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> project = Project.load("cmvmed.toml")
    >>> findings = check_rows(project.rows(), project.settings.data)
    >>> all(finding.message for finding in findings)
    True
    """
    findings = [
        *label_findings(rows, data),
        *_id_findings(rows, data),
        *_column_findings(rows),
        *_sound_findings(rows),
        *_gap_findings(rows),
        *_repeated_row_findings(rows),
        *leak_findings(rows),
        *group_findings(rows, data),
        *time_findings(rows),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return Findings(sorted(findings, key=lambda finding: order[finding.level]))


def describe_rows(rows: ProjectRows) -> dict[str, Any]:
    r"""Counts of rows, labels per class, columns and gaps per view.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("windows.csv").write_text("id,acc_x,gyr_x,label\n1,0.1,3.0,a\n2,0.4,1.0,b\n3,0.3,2.0,\n")
    >>> from cmvmed.workbench import Project, describe_rows, init
    >>> _ = Path("cmvmed.toml").write_text(init("windows.csv").text)
    >>> project = Project.load("cmvmed.toml")
    >>> facts = describe_rows(project.rows())
    >>> facts["rows"], facts["labeled"], facts["labels_per_class"]
    (3, 2, {'a': 1, 'b': 1})
    """
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


def _column_findings(rows: ProjectRows) -> Iterator[Finding]:
    """Columns that are empty, constant, or hold cells that cannot be read or mark gaps by a number."""
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
                f"View {view!r}: {abbreviate(identifiers)} {'differs' if len(identifiers) == 1 else 'differ'} in every row and "
                f"{'is' if len(identifiers) == 1 else 'are'} not learned from. Set id in [data] to a column that identifies rows; "
                "if a column holds texts, say so in [columns].",
            )
        for column in columns:
            yield from _cells(rows, view, column)


def _id_findings(rows: ProjectRows, data: DataSettings) -> Iterator[Finding]:
    """Identifiers with leading zeros, which other programs remove."""
    ids = [] if data.id is None else [str(key) for key in rows.ids]
    zeros = [key for key in ids if key.startswith("0") and key.isdigit() and len(key) > 1]
    same = {key.lstrip("0") for key in zeros} & set(ids)
    if same:
        key = min(same)
        other = next(name for name in zeros if name.lstrip("0") == key)
        yield Finding(
            "warning",
            "leading_zeros",
            f"The identifiers {other!r} and {key!r} differ only in leading zeros ({plural(len(same), 'pair')} in all). If they are "
            "the same row, write them alike.",
        )
    elif zeros:
        yield Finding(
            "note",
            "leading_zeros",
            f"Identifiers such as {zeros[0]!r} keep their leading zeros, which a spreadsheet removes: files of labels and of other "
            "views must have them too.",
        )


def _cells(rows: ProjectRows, view: str, column: str) -> Iterator[Finding]:
    """Cells that cannot be read, numbers that mark gaps, and numbers with units."""
    kind, table = rows.kinds[column], rows.table
    if kind in ("number", "date", "boolean"):
        series = table.frame[column]
        try:
            cells = read_cells(table, column, kind)
        except ProjectError as error:  # infinite or huge cells, or two decimal signs
            yield Finding("error", "bad_column", f"View {view!r}. {error}")
            return
        bad = np.flatnonzero(cells.bad)
        if len(bad):
            yield Finding(
                "warning",
                "bad_cell",
                f"View {view!r}, column {column!r}: {plural(len(bad), 'cell')} cannot be read as a {kind} and "
                f"{'counts as a gap,' if len(bad) == 1 else 'count as gaps, first'} {str(series.iloc[bad[0]])!r} in "
                f"{table.place(int(bad[0]))}. Correct {'it or leave it' if len(bad) == 1 else 'them or leave them'} empty.",
            )
    if kind == "number":
        if (far := far_cells(cells.values)).size:
            row = int(far[0])
            yield Finding(
                "warning",
                "outlier",
                f"View {view!r}, column {column!r}, {table.place(row)}: {str(series.iloc[row])!r} is a million times farther from "
                f"the median than nearly all other values ({plural(far.size, 'cell')} in all), so these become alike. Correct "
                "it, or leave the cell empty.",
            )
        if _are_dates(cells.values):
            yield Finding(
                "warning",
                "date_as_number",
                f"View {view!r}, column {column!r} holds dates without separators, such as {np.nanmin(cells.values):.0f}, which "
                "are read as numbers. Write them as in 2025-01-31, or put the column into ignore in [data].",
            )
        if cells.note:
            yield Finding("warning", "thousands", f"View {view!r}, column {column!r}: {cells.note}.")
        marker, count = gap_marker(cells.values)
        if count:
            yield Finding(
                "warning",
                "gap_marker",
                f"View {view!r}, column {column!r}: {marker:g} in {plural(count, 'cell')} is far from all other values, as a "
                "marker for gaps is. Leave such cells empty.",
            )
    if kind in KIND_NAMES and column not in rows.declared:
        yield from _mixed_column(table, view, column, KIND_NAMES[kind])
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


def _mixed_column(table: RawTable, view: str, column: str, what: str) -> Iterator[Finding]:
    """A column of numbers that some texts make one of categories."""
    cells = read_numbers(table.frame[column], table.decimal)
    numbers, bad = cells.values[~np.isnan(cells.values)], np.flatnonzero(cells.bad)
    if 0 < len(bad) < len(numbers) and np.unique(numbers).size > MIN_NUMBERS:
        first = f"{str(table.frame[column].iloc[bad[0]])!r} in {table.place(int(bad[0]))}"
        yield Finding(
            "warning",
            "mixed_column",
            f"View {view!r}, column {column!r}: {plural(len(numbers), 'cell')} hold numbers, but {plural(len(bad), 'cell')} not, "
            f"first {first}, so it is read as {what}. Correct these cells or leave them empty; if it is right, say so in "
            "[columns].",
        )


def _are_dates(values: NDArray[np.float64]) -> bool:
    """Whether all numbers are days such as 20250131, not all the same."""
    known = values[np.isfinite(values)]
    months, days = known // 100 % 100, known % 100
    is_date = (known >= 19000101) & (known < 21000000) & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    return known.size > 1 and np.ptp(known) > 0.0 and bool((is_date & (known == np.floor(known))).all())


def far_cells(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows whose distance from the median is more than ``FAR`` times that which 95 % of the rows do not exceed."""
    known = values[np.isfinite(values)]
    if known.size < MIN_ROWS:
        return np.empty(0, dtype=np.intp)
    distance = np.abs(values - np.median(known))
    usual = float(np.nanquantile(distance, FULL))
    return np.flatnonzero(distance > FAR * usual) if usual > 0.0 else np.empty(0, dtype=np.intp)


def gap_marker(values: NDArray[np.float64]) -> tuple[float, int]:
    """The smallest or largest number and how often it occurs, if it looks like a marker for gaps; otherwise NaN and 0.

    Such as -999 or 9999: nines only, several times, and farther from the other numbers than these are from each other; or
    any number that is a million times farther.
    """
    values = values[np.isfinite(values)]
    for marker in () if not values.size else (values.min(), values.max()):
        others = values[values != marker]
        repeated = values.size - others.size
        distance, span = (np.abs(others - marker).min(), np.ptp(others)) if others.size else (0.0, 0.0)
        is_marker = (distance > span and NINES.fullmatch(f"{abs(marker):g}")) or distance > FAR * span > 0.0
        if repeated > 1 and is_marker:
            return float(marker), repeated
    return np.nan, 0


def _sound_findings(rows: ProjectRows) -> Iterator[Finding]:
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


def _gap_findings(rows: ProjectRows) -> Iterator[Finding]:
    """Views that are absent in nearly all rows or in all labeled ones, and rows without any view."""
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


def _repeated_row_findings(rows: ProjectRows) -> Iterator[Finding]:
    """Rows that are equal, with equal or different labels."""
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
