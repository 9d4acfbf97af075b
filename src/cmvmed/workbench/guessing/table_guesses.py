"""Tables with one line per row, in a file or a folder of files, or with one line per sample."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cmvmed.pages.formatting import plural
from cmvmed.workbench.guessing.column_guesses import (
    Found,
    Guess,
    guess_groups,
    guess_id,
    guess_ignored,
    guess_labels,
    guess_views,
    read_guessed,
    relative_path,
    repeated_ids,
    view_name,
    with_label_file,
    with_markers,
)
from cmvmed.workbench.guessing.recording_guesses import window_of
from cmvmed.workbench.project_file import AUTO, DataSettings, ProjectSettings, ViewSettings, WindowSettings
from cmvmed.workbench.tables.columns import FloatArray, RawTable, as_text, read_times
from cmvmed.workbench.tables.read import table_files
from cmvmed.workbench.tables.recording_rows import channel_columns
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import abbreviate

ROW_WORDS = ("id", "case", "recording", "trial", "session", "run", "file", "series", "segment", "event", "subject", "user",
              "window", "sample_id")  # fmt: skip
TIME_WORDS = ("time", "timestamp", "datetime", "t", "seconds", "sec", "time_s")
MIN_SAMPLES = 8  # lines per row of a long table
MAX_PERIOD = 0.5  # seconds: rows farther apart are events rather than samples


def guess_file(path: Path, folder: Path) -> Found:
    """A table, with a file of labels beside it if no column holds them."""
    table = read_guessed(path)
    samples = _long_columns(table, guess_id(table))
    if samples is not None:
        return _guess_long_table(table, samples, relative_path(path, folder))
    data, guesses = _guess_data(table, relative_path(path, folder))
    if data.labels is None:
        data, guesses = with_label_file(path.parent, folder, data, guesses, exclude=[path])
    data, views, about_views = guess_views(table, data)
    return ProjectSettings(data, views), [*guesses, *about_views], list(table.messages)


def guess_folder(path: Path, folder: Path) -> Found:
    """A folder of tables: one table, parts of one table, or one table per view."""
    label_files = [file for file in table_files(path) if "label" in file.stem.casefold()]
    files = [file for file in table_files(path) if file not in label_files] or label_files
    tables = [read_guessed(file) for file in files]
    if len(files) == 1:
        data, guesses = _guess_data(tables[0], relative_path(files[0], folder))
        data, views, about_views = guess_views(tables[0], data)
    else:
        data, guesses, views, about_views = _guess_several(path, folder, files, tables)
    if data.labels is None or (label_files and files != label_files):
        data, guesses = with_label_file(path, folder, data, guesses, exclude=files)
    return (
        ProjectSettings(data, views),
        [*guesses, *about_views],
        [said for table in tables for said in table.messages],
    )


def _guess_several(
    path: Path, folder: Path, files: Sequence[Path], tables: Sequence[RawTable]
) -> tuple[DataSettings, list[Guess], tuple[ViewSettings, ...], list[Guess]]:
    first = tables[0]
    ids = [guess_id(table) for table in tables]
    alike = all(table.names == first.names for table in tables)
    same_id = len(set(ids)) == 1 and ids[0] is not None
    keys = [_keys(table, ids[0]) for table in tables] if same_id else []
    overlap = bool(keys) and len(set.intersection(*keys)) > 0
    same_rows = len({table.n_rows for table in tables}) == 1
    if alike and not overlap and not (same_rows and not same_id):
        suffix = files[0].suffix
        together = read_guessed(path / f"*{suffix}")
        data, guesses = _guess_data(together, relative_path(path, folder) + f"/*{suffix}")
        data, views, about = guess_views(together, data)
        what = f"the {len(files)} files have the same columns and different rows: they are one table"
        return data, [Guess(what, toml_line("path", data.path)), *guesses], views, about
    data, guesses = _guess_data(first, None)
    for table in tables[1:]:
        if data.labels is None:
            data = replace(data, labels=guess_labels(table, [data.id or ""]))
    own = tuple(
        ViewSettings(view_name(file.stem), path=relative_path(file, folder), features=AUTO if table.signals else None)
        for file, table in zip(files, tables, strict=True)
    )
    how = f"rows with the same {ids[0]!r} belong together" if overlap else "rows belong together in their order"
    said = Guess(f"each of the {len(files)} files is a view; {how}", toml_line("path", own[0].path))
    if len({(table.separator, table.decimal) for table in tables}) > 1:
        data = replace(data, separator=None, decimal=None)
    return replace(data, ignore=()), guesses, own, [said]


def _keys(table: RawTable, column: str | None) -> set[str]:
    return set(map(as_text, table.frame[column].astype(object)))


def _guess_data(table: RawTable, path: str | None) -> tuple[DataSettings, list[Guess]]:
    guesses: list[Guess] = []
    identifier = guess_id(table)
    labels = guess_labels(table, [identifier or ""])
    groups = guess_groups(table, [identifier or "", labels or ""])
    has_commas = table.separator is None and not table.source.endswith(
        ".tsv"
    )  # beside which a decimal sign is found out
    decimal = None if table.decimal == "." or has_commas else table.decimal
    data = DataSettings(
        path=path, id=identifier, labels=labels, groups=groups, separator=table.separator, decimal=decimal
    )
    if identifier is not None:
        guesses.append(Guess(f"{identifier!r} identifies a row", toml_line("id", identifier)))
    if labels is not None:
        data, about = with_markers(table, replace(data, labels=labels))
        guesses += [Guess(f"{labels!r} holds the labels", toml_line("labels", labels)), *about]
    if groups is not None:
        n_groups = table.frame[groups].nunique()
        guesses.append(Guess(f"{groups!r} holds {plural(n_groups, 'group')} of rows", toml_line("groups", groups)))
    taken = [name for name in (identifier, labels, groups) if name is not None]
    repeated = repeated_ids(table, taken)
    ignored = guess_ignored(table, [*taken, *repeated])
    if ignored:
        what = (
            f"{abbreviate(ignored)} {'is' if len(ignored) == 1 else 'are'} not learned from (a time or an identifier)"
        )
        guesses.append(Guess(what, toml_line("ignore", ignored)))
    return replace(data, ignore=(*repeated, *ignored)), [*guesses, *repeated.values()]


@dataclass(frozen=True)
class LongColumns:
    """The columns of a table with one line per sample."""

    row: str | None  # None: the table is one recording
    time: str
    seconds: FloatArray


def _long_columns(table: RawTable, identifier: str | None) -> LongColumns | None:
    """Columns of row and time, if the lines of a table are samples.

    They are if no column identifies rows, and the time increases within each row, whose lines follow each other, or
    throughout at a rate of several samples per second.
    """
    names = list(map(str, table.frame.columns))
    time = next(
        (name for name in names if name.casefold() in TIME_WORDS and table.kinds[name] in ("number", "date")), None
    )
    if time is None or table.n_rows < MIN_SAMPLES or table.signals:
        return None
    if identifier is not None and identifier != time and not identifier.casefold().startswith("unnamed"):
        return None
    column = table.frame[time]
    seconds = column.to_numpy(dtype=float) if column.dtype.kind in "fiu" else read_times(column, day_first=None).values
    if not np.isfinite(seconds).all():
        return None
    rows = [name for name in names if name.casefold() in ROW_WORDS and _is_row(table, name, seconds)]
    if rows:
        return LongColumns(rows[0], time, seconds)
    steps = np.diff(seconds)
    regular = bool((steps > 0).all()) and float(np.median(np.abs(steps - np.median(steps)))) < 0.25 * np.median(steps)
    return LongColumns(None, time, seconds) if regular and np.median(steps) < MAX_PERIOD else None


def _is_row(table: RawTable, name: str, seconds: FloatArray) -> bool:
    column = table.frame[name]
    if column.isna().any() or table.n_rows < MIN_SAMPLES * column.nunique():
        return False
    positions = [np.asarray(rows) for rows in column.groupby(column, sort=False).indices.values()]
    return all(bool((np.diff(rows) == 1).all() and (np.diff(seconds[rows]) > 0).all()) for rows in positions)


def _guess_long_table(table: RawTable, samples: LongColumns, path: str) -> Found:
    """A table with one line per sample: rows if each has one label, else recordings to be cut into windows."""
    taken = [name for name in (samples.row, samples.time) if name is not None]
    labels = guess_labels(table, taken)
    groups = guess_groups(table, [*taken, labels or ""])
    if labels is None:  # the only column of words beside samples says what happened
        words = [name for name, kind in table.kinds.items() if kind == "category" and name not in (*taken, groups)]
        labels = words[0] if len(words) == 1 else None
    data = DataSettings(path=path, id=samples.row, labels=labels, groups=groups, time=samples.time)
    what = f"each line is a sample at the time {samples.time!r}"
    guesses = [Guess(what, toml_line("time", samples.time))]
    if samples.row is not None:
        guesses.append(Guess(f"{samples.row!r} names what the samples belong to", toml_line("id", samples.row)))
    if labels is not None:
        data, about = with_markers(table, data)
        guesses += [Guess(f"{labels!r} holds the labels", toml_line("labels", labels)), *about]
    windows = _guess_windows(table, samples, data)
    if windows is not None:
        others = [
            str(name)
            for name in table.frame.columns
            if name not in (*channel_columns(table, data, samples.row), *taken, labels, groups)
        ]
        data = replace(data, ignore=tuple(others))
        said = f"rows are windows of {windows.length:g} s, because labels change within recordings"
        said = said if labels is not None and samples.row is not None else f"rows are windows of {windows.length:g} s"
        guesses.append(Guess(said, toml_line("length", windows.length)))
    data, views, about_views = guess_views(table, data)
    return ProjectSettings(data, views, windows=windows), [*guesses, *about_views], list(table.messages)


def _guess_windows(table: RawTable, samples: LongColumns, data: DataSettings) -> WindowSettings | None:
    """Windows, unless each row has one label."""
    period = float(np.median(np.diff(samples.seconds)))
    if data.labels is None:
        return window_of([], period) if samples.row is None else None
    cells = table.frame[data.labels].astype(object).map(as_text)
    row = cells * 0 if samples.row is None else table.frame[samples.row].astype(str)
    if samples.row is not None and cells.groupby(row, sort=False).nunique().max() <= 1:
        return None
    run = ((cells != cells.shift()) | (row != row.shift())).cumsum().to_numpy()
    labeled = ~cells.isin([*data.unlabeled, ""]).to_numpy()
    return window_of((np.bincount(run[labeled]) * period).tolist(), period)
