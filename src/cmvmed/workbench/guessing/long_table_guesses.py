"""Tables with one row per sample."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.workbench.column_kinds import as_text, read_times
from cmvmed.workbench.frames import FloatArray, RawTable
from cmvmed.workbench.guessing.column_guesses import TableWithKinds, guess_groups, guess_labels
from cmvmed.workbench.guessing.guesses import Found, Guess
from cmvmed.workbench.guessing.label_guesses import with_markers
from cmvmed.workbench.guessing.view_guesses import guess_views
from cmvmed.workbench.guessing.window_guesses import window_of
from cmvmed.workbench.project_file import DataSettings, ProjectSettings, WindowSettings
from cmvmed.workbench.recording_sources import channel_columns
from cmvmed.workbench.toml_text import toml_line

__all__ = ["LongColumns", "guess_long_table", "long_columns"]

CASE_WORDS = ("id", "case", "recording", "trial", "session", "run", "file", "series", "segment", "event", "subject", "user",
              "window", "sample_id")  # fmt: skip
TIME_WORDS = ("time", "timestamp", "datetime", "t", "seconds", "sec", "time_s")
MIN_SAMPLES = 8  # rows per case of a long table
MAX_PERIOD = 0.5  # seconds: rows farther apart are events rather than samples


@dataclass(frozen=True)
class LongColumns:
    """The columns of a table with one row per sample."""

    case: str | None  # None: the table is one recording
    time: str
    seconds: FloatArray


def long_columns(table: RawTable, kinds: Mapping[str, str], identifier: str | None) -> LongColumns | None:
    """Columns of case and time, if the rows of a table are samples.

    They are if no column identifies rows, and the time increases within each case, whose rows follow each other, or
    throughout at a rate of several samples per second.
    """
    names = list(map(str, table.frame.columns))
    time = next((name for name in names if name.casefold() in TIME_WORDS and kinds[name] in ("number", "date")), None)
    if time is None or table.n_rows < MIN_SAMPLES or table.signals:
        return None
    if identifier is not None and identifier != time and not identifier.casefold().startswith("unnamed"):
        return None
    column = table.frame[time]
    seconds = column.to_numpy(dtype=float) if column.dtype.kind in "fiu" else read_times(column, day_first=None).values
    if not np.isfinite(seconds).all():
        return None
    cases = [name for name in names if name.casefold() in CASE_WORDS and _is_case(table, name, seconds)]
    if cases:
        return LongColumns(cases[0], time, seconds)
    steps = np.diff(seconds)
    regular = bool((steps > 0).all()) and float(np.median(np.abs(steps - np.median(steps)))) < 0.25 * np.median(steps)
    return LongColumns(None, time, seconds) if regular and np.median(steps) < MAX_PERIOD else None


def _is_case(table: RawTable, name: str, seconds: FloatArray) -> bool:
    column = table.frame[name]
    if column.isna().any() or table.n_rows < MIN_SAMPLES * column.nunique():
        return False
    positions = [np.asarray(rows) for rows in column.groupby(column, sort=False).indices.values()]
    return all(bool((np.diff(rows) == 1).all() and (np.diff(seconds[rows]) > 0).all()) for rows in positions)


def guess_long_table(rows: TableWithKinds, samples: LongColumns, path: str) -> Found:
    """A table with one row per sample: cases if each has one label, else recordings to be cut into windows."""
    table = rows.table
    taken = [name for name in (samples.case, samples.time) if name is not None]
    labels = guess_labels(rows, taken)
    groups = guess_groups(rows, [*taken, labels or ""])
    if labels is None:  # the only column of words beside samples says what happened
        words = [name for name, kind in rows.kinds.items() if kind == "category" and name not in (*taken, groups)]
        labels = words[0] if len(words) == 1 else None
    data = DataSettings(path=path, id=samples.case, labels=labels, groups=groups, time=samples.time)
    what = f"each row is a sample at the time {samples.time!r}"
    guesses = [Guess(what, toml_line("time", samples.time))]
    if samples.case is not None:
        guesses.append(Guess(f"{samples.case!r} names what the samples belong to", toml_line("id", samples.case)))
    if labels is not None:
        data, about = with_markers(table, data)
        guesses += [Guess(f"{labels!r} holds the labels", toml_line("labels", labels)), *about]
    windows = _guess_windows(table, samples, data)
    if windows is not None:
        others = [
            str(name)
            for name in table.frame.columns
            if name not in (*channel_columns(table, data, samples.case), *taken, labels, groups)
        ]
        data = replace(data, ignore=tuple(others))
        said = f"rows are windows of {windows.length:g} s, because labels change within recordings"
        said = said if labels is not None and samples.case is not None else f"rows are windows of {windows.length:g} s"
        guesses.append(Guess(said, toml_line("length", windows.length)))
    views, about_views = guess_views(rows, data)
    return ProjectSettings(data, views, windows=windows), [*guesses, *about_views], list(table.messages)


def _guess_windows(table: RawTable, samples: LongColumns, data: DataSettings) -> WindowSettings | None:
    """Windows, unless each case has one label."""
    period = float(np.median(np.diff(samples.seconds)))
    if data.labels is None:
        return window_of([], period) if samples.case is None else None
    cells = table.frame[data.labels].astype(object).map(as_text)
    case = cells * 0 if samples.case is None else table.frame[samples.case].astype(str)
    if samples.case is not None and cells.groupby(case, sort=False).nunique().max() <= 1:
        return None
    run = ((cells != cells.shift()) | (case != case.shift())).cumsum().to_numpy()
    labeled = ~cells.isin([*data.unlabeled, ""]).to_numpy()
    return window_of((np.bincount(run[labeled]) * period).tolist(), period)
