"""The columns of a table that are no features: identifiers, labels, groups, and those that are ignored."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cmvmed.data.labels import UNLABELED_WORDS
from cmvmed.workbench.column_kinds import as_text, column_kind, missing_cells
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.frames import RawTable
from cmvmed.workbench.label_values import LABEL_NAMES
from cmvmed.workbench.readers import read_table

__all__ = ["TableWithKinds", "guess_groups", "guess_id", "guess_ignored", "guess_labels", "read_with_kinds"]

MAX_CLASSES = 50
SEPARATED = re.compile(r"[_.\-/: ]+")
ID_WORDS = ("id", "uuid", "key", "index", "idx", "name", "filename", "file", "sample", "window")
GROUP_WORDS = ("subject", "participant", "patient", "person", "user", "session", "recording", "group", "animal", "speaker",
               "site", "day", "batch", "device", "run", "trial")  # fmt: skip
TIME_WORDS = ("time", "timestamp", "datetime", "date", "t", "epoch")


@dataclass(frozen=True)
class TableWithKinds:
    """A table and the kinds of its columns."""

    table: RawTable
    kinds: Mapping[str, str]


def read_with_kinds(path: Path) -> TableWithKinds:
    """Read a table, and find the kinds of its columns."""
    table = read_table(path, DelimitedOptions())
    kinds = {str(name): column_kind(table.frame[name], table.decimal) for name in table.frame.columns}
    return TableWithKinds(table, kinds)


def guess_id(rows: TableWithKinds) -> str | None:
    """The column whose cells are all different, and that is named like an identifier or counts the rows."""
    table = rows.table
    candidates = []
    for position, column in enumerate(map(str, table.frame.columns)):
        series = table.frame[column]
        if missing_cells(series).any() or series.nunique() < table.n_rows:
            continue
        kind = rows.kinds[column]
        words = SEPARATED.split(column.casefold())
        named = words[-1] in ID_WORDS or column.casefold() in ID_WORDS or column.startswith("unnamed_")
        whole = kind == "number" and bool(series.astype(str).str.fullmatch(r"\s*\d+\s*").all())
        counted = whole and np.ptp(series.astype(int)) == table.n_rows - 1
        first = position == 0 and (kind == "identifier" or counted)
        if first or (named and (whole or kind in ("identifier", "category", "text"))):
            candidates.append((not named, position, column))
    return min(candidates)[2] if candidates else None


def guess_labels(rows: TableWithKinds, taken: Sequence[str]) -> str | None:
    """The column that is named like a label, or that looks like one: few values, and markers or many empty cells."""
    table = rows.table
    best: tuple[float, str] | None = None
    for column in map(str, table.frame.columns):
        if column in taken:
            continue
        series = table.frame[column]
        if rows.kinds[column] == "unusable" or series.nunique() > MAX_CLASSES + 1:
            continue
        texts = series.astype(object).map(as_text).where(~missing_cells(series, frozenset({""})), "")
        distinct = set(texts) - {""}
        words = SEPARATED.split(column.casefold())
        named = column.casefold() in LABEL_NAMES or any(word in LABEL_NAMES for word in words if len(word) > 1)
        if not 1 <= len(distinct) <= min(MAX_CLASSES, max(2, table.n_rows // 2)):
            continue
        markers = {text for text in distinct if text.casefold() in UNLABELED_WORDS}
        n_unlabeled = int((texts == "").sum()) + int(texts.isin(markers).sum())
        is_word = rows.kinds[column] in ("category", "boolean", "text")
        score = 3.0 * named + 1.0 * (bool(markers) and is_word) + 1.0 * (n_unlabeled > table.n_rows / 2 and is_word)
        if score > 0 and (best is None or score > best[0]):
            best = (score, column)
    return None if best is None else best[1]


def guess_groups(rows: TableWithKinds, taken: Sequence[str]) -> str | None:
    """The column that is named like a group, and whose values repeat."""
    table = rows.table
    for column in map(str, table.frame.columns):
        words = SEPARATED.split(column.casefold())
        if column in taken or not any(word in GROUP_WORDS for word in (words[0], words[-1])) or len(words) > 2:
            continue
        if 2 <= table.frame[column].nunique() <= table.n_rows / 2 and rows.kinds[column] != "date":
            return column
    return None


def guess_ignored(rows: TableWithKinds, taken: Sequence[str]) -> list[str]:
    """Times, which order rows, further identifiers, and empty columns."""
    table = rows.table
    ignored = []
    for column in map(str, table.frame.columns):
        if column in taken:
            continue
        kind = rows.kinds[column]
        is_time = kind == "date" or (kind == "number" and column.casefold() in TIME_WORDS)
        if is_time or kind in ("identifier", "empty", "unusable"):
            ignored.append(column)
    return ignored
