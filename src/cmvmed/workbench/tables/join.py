"""The files of a project, for training and of new rows, as one table: rows with the same identifier are one row."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import plural
from cmvmed.workbench.project_file import DataSettings, ProjectSettings
from cmvmed.workbench.tables.columns import Frame, RawTable, Signal, as_text, is_numeric, missing_cells, pandas
from cmvmed.workbench.tables.delimited import DelimitedOptions, NotInParts
from cmvmed.workbench.tables.read import FOLDER_COLUMN, read_sound_folder, read_table, read_table_parts
from cmvmed.workbench.tables.recording_rows import read_windows, rows_of_long_table
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3})+")

NewPaths: TypeAlias = str | PathLike[str] | Mapping[str, str | PathLike[str]]  # of all views, or by name of view


@dataclass(frozen=True)
class SourcePaths:
    """Where the tables of a project are: the common one, and those of single views."""

    common: Path | None
    by_view: Mapping[str, Path]
    annotations: Path | None = None


def training_paths(settings: ProjectSettings, folder: Path) -> SourcePaths:
    """The files that the settings name, relative to a folder."""
    data, views, windows = settings.data, settings.views, settings.windows
    needs_common = any(view.path is None for view in views) or not views
    common = folder / data.path if data.path is not None and needs_common else None
    own = {view.name: folder / view.path for view in views if view.path is not None}
    annotations = None if windows is None or windows.annotations is None else folder / windows.annotations
    return SourcePaths(common, own, annotations)


def new_paths(settings: ProjectSettings, path: NewPaths) -> SourcePaths:
    """The files of new rows, which have the names of the training files if each view has its own."""
    paths = _paths_by_view(settings, path) if isinstance(path, Mapping) else _paths_at(settings, path)
    if not any(view.name in paths.by_view or view.path is None for view in settings.views):
        shown = abbreviate(path.values()) if isinstance(path, Mapping) else repr(str(path))
        raise ProjectError(f"{shown} has none of the files that the views of the project read.")
    return paths


def _paths_by_view(settings: ProjectSettings, paths: Mapping[str, str | PathLike[str]]) -> SourcePaths:
    names = [view.name for view in settings.views]
    for name in paths:
        if name not in names:
            raise ProjectError(f"The project has no view {name!r}.{did_you_mean(name, names)}")
    return SourcePaths(None, {name: Path(file) for name, file in paths.items()})


def _paths_at(settings: ProjectSettings, path: str | PathLike[str]) -> SourcePaths:
    folder = Path(path)
    with_own = {view.name: view.path for view in settings.views if view.path is not None}
    if not with_own:
        return SourcePaths(folder, {})
    if not folder.is_dir():
        raise ProjectError(
            f"Each view of the project has its own file, so new rows need a folder with {abbreviate(with_own.values())}, or "
            f"one path per view; {str(path)!r} is not a folder."
        )
    found = {name: folder / Path(file).name for name, file in with_own.items()}
    common = settings.data.path
    common_file = folder / Path(common).name if common is not None and len(with_own) < len(settings.views) else None
    return SourcePaths(common_file, {name: file for name, file in found.items() if file.exists()})


@dataclass(frozen=True)
class _ViewTable:
    view: str | None  # None: the table of all views without a path of their own
    table: RawTable
    ids: NDArray[np.object_] | None


def qualified(view: str | None, column: str) -> str:
    """Name of a column in the joined table; files of single views often have the same names of columns."""
    return column if view is None else f"{view}.{column}"


def open_parts(settings: ProjectSettings, paths: SourcePaths) -> Iterator[tuple[RawTable, float]]:
    """Rows of new data some at a time, with their identifiers, and the share of the file that is read.

    ``NotInParts`` is raised, also in the middle, for data that must be read as a whole: several tables, signals, and
    identifiers that repeat or that are numbers in some rows only.
    """
    data = settings.data
    if paths.common is None or paths.by_view or settings.windows is not None or data.time is not None:
        raise NotInParts
    if any(view.files is not None for view in settings.views):
        raise NotInParts
    n_rows, kind, hashes = 0, None, []
    for table, share in read_table_parts(paths.common, _delimited_options(data, may_differ=True)):
        part = _view_table(None, table, data.id, is_training=False)
        if part.ids is None:
            keys = [str(row + 1) for row in range(n_rows, n_rows + table.n_rows)]
        else:
            keys, kind_here = list(part.ids), is_numeric(table.frame[data.id])
            hashes.append(pandas().util.hash_array(part.ids))
            if kind not in (None, kind_here):
                raise NotInParts
            kind = kind_here
        n_rows += table.n_rows
        yield replace(part.table, ids=keys, lines=None), share
    if hashes and np.unique(np.concatenate(hashes)).size < n_rows:
        raise NotInParts


def _delimited_options(data: DataSettings, *, may_differ: bool) -> DelimitedOptions:
    names = (data.id, data.labels, data.groups)
    return DelimitedOptions(
        data.separator, data.decimal, data.encoding, data.sampling_rate, may_differ=may_differ, names=names
    )


def open_sources(settings: ProjectSettings, paths: SourcePaths, *, is_training: bool) -> RawTable:
    """Read all files and join their rows; ``ids`` of the result are set."""
    data = settings.data
    options = _delimited_options(data, may_differ=not is_training)
    if settings.windows is not None:
        if paths.common is None:
            raise ProjectError("[windows] cuts the recordings at path in [data]; set path.")
        return read_windows(settings, settings.windows, paths.common, paths.annotations if is_training else None)
    parts = []
    is_flat = not is_training and data.labels == FOLDER_COLUMN  # the folders of new rows name no classes
    sound = [view for view in settings.views if view.files is not None and view.path is None]
    if paths.common is not None:
        opened = read_sound_folder(paths.common, sound, may_be_flat=is_flat) if sound else None
        table = read_table(paths.common, options) if opened is None else opened
        table = table if data.time is None or sound else rows_of_long_table(table, data)
        parts.append(_view_table(None, table, data.id, is_training))
    for view in settings.views:
        if view.name not in paths.by_view:
            continue
        path = paths.by_view[view.name]
        if view.files is not None:
            table = read_sound_folder(path, [view])
            table = replace(table, signals={"sound": table.signals[view.name]})
        else:
            table = read_table(path, options)
        parts.append(_view_table(view.name, table, data.id, is_training))
    return _join(parts)


def _view_table(view: str | None, table: RawTable, id_column: str | None, is_training: bool) -> _ViewTable:
    if table.ids is not None:
        return _ViewTable(view, table, np.array(table.ids, dtype=object))
    if id_column is None:
        return _ViewTable(view, table, None)
    if id_column not in table.frame.columns:
        if is_training:
            raise table.lacks(id_column, "id")
        said = f"{table.source} has no column {id_column!r}, so its rows are numbered."
        return _ViewTable(view, replace(table, messages=(*table.messages, said)), None)
    return _ViewTable(view, table, _identifiers(table, id_column))


def _identifiers(table: RawTable, column: str) -> NDArray[np.object_]:
    """Identifiers as texts, each once."""
    cells = table.frame[column]
    missing = np.flatnonzero(missing_cells(cells, frozenset({""})))
    if len(missing):
        raise ProjectError(
            f"Column {column!r}, which identifies rows, is empty in {table.place(int(missing[0]))} "
            f"({plural(len(missing), 'row')} in all); fill it, or remove id from [data] to number the rows."
        )
    ids = np.array([as_text(cell) for cell in cells.astype(object)], dtype=object)
    first: dict[str, int] = {}
    for row, key in enumerate(ids):
        if key in first:
            n_repeated = len(ids) - len(set(ids))
            raise ProjectError(
                f"The identifier {key!r} occurs in {table.place(first[key])} and again in {table.place(row)} "
                f"({plural(n_repeated, 'repetition')} in all); make {column!r} different for each row, or set id to another column."
            )
        first[key] = row
    return ids


def otherwise_written(some: Iterable[str], others: Iterable[str]) -> str:
    """A sentence if identifiers of two files differ only in leading zeros or signs between thousands; else nothing."""
    numbers = {_as_number(key): key for key in others}
    for key in some:
        other = numbers.get(_as_number(key), key)
        if other != key and _as_number(key) is not None:
            return (
                f" {key!r} and {other!r} may be the same, with and without leading zeros or signs between thousands: a spreadsheet "
                "changes them. Write identifiers alike."
            )
    return ""


def _as_number(key: str) -> str | None:
    """The digits of a whole number without leading zeros and signs between thousands; None for other texts."""
    digits = key.replace(",", "").replace(".", "") if THOUSANDS.fullmatch(key) else key
    return (digits.lstrip("0") or "0") if digits.isascii() and digits.isdigit() else None


def _join(parts: Sequence[_ViewTable]) -> RawTable:
    if len(parts) == 1 and parts[0].view is None:
        part = parts[0]
        return part.table if part.ids is None else replace(part.table, ids=list(part.ids))
    numbered = [part for part in parts if part.ids is None]
    if numbered and len(numbered) < len(parts):
        raise ProjectError(
            f"Rows of {numbered[0].table.source} have no identifier, but those of other files have; add its column to the file and "
            "set id in [data]."
        )
    counts = {part.table.source: part.table.n_rows for part in parts}
    if numbered and len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} ({count})" for name, count in counts.items())
        raise ProjectError(
            f"Without identifiers the files of all views must have the same rows, but their numbers differ: {listed}. Set id in "
            "[data] to the column that identifies a row in each file."
        )
    if numbered:
        _check_order([part.table for part in parts])
    all_ids = [part.ids if part.ids is not None else np.arange(part.table.n_rows) for part in parts]
    ids = list(dict.fromkeys(key for keys in all_ids for key in keys))
    said = (
        "" if numbered else otherwise_written(map(str, all_ids[0]), (str(key) for keys in all_ids[1:] for key in keys))
    )
    frames: list[Frame] = []
    signals: dict[str, Signal] = {}
    messages: list[str] = [f"Identifiers:{said}"] if said else []
    for part, keys in zip(parts, all_ids, strict=True):
        row_of = {key: row for row, key in enumerate(keys)}
        rows = np.array([row_of.get(key, -1) for key in ids], dtype=np.intp)
        frames.append(_taken(part, rows))
        signals |= {qualified(part.view, name): signal.take(rows) for name, signal in part.table.signals.items()}
        messages += part.table.messages
    decimals = {part.table.decimal for part in parts if not part.table.signals}
    if len(decimals) > 1:
        raise ProjectError(
            "Some files have a decimal comma and others a point; write them alike, or set decimal in [data]."
        )
    source = ", ".join(part.table.source for part in parts)
    frame = pandas().concat(frames, axis=1)
    return RawTable(
        source,
        frame,
        signals,
        decimal=decimals.pop() if decimals else ".",
        messages=tuple(dict.fromkeys(messages)),
        ids=None if numbered else [str(key) for key in ids],
    )


def _check_order(tables: Sequence[RawTable]) -> None:
    """Raise if a column of names that the files share shows that their rows are in another order."""
    first = tables[0]
    for table in tables[1:]:
        shared = first.frame.columns.intersection(table.frame.columns)
        for name in (name for name in shared if first.frame[name].dtype.kind != "f"):
            one, other = ([as_text(cell) for cell in own.frame[name].astype(object)] for own in (first, table))
            if one != other and len(set(one)) == len(one) and set(one) == set(other):
                raise ProjectError(
                    f"Without identifiers the files of all views must have their rows in the same order, but the column {name!r} "
                    f"of {first.source} and {table.source} holds the same values in another order. Set id in [data] to the column "
                    "that identifies a row in each file."
                )


def _taken(part: _ViewTable, rows: NDArray[np.intp]) -> Frame:
    """The cells of a part in the order of the joined rows; missing where the part lacks the row."""
    labels = part.table.frame.index.to_numpy()
    positions = [labels[row] if row >= 0 else -1 for row in rows]
    taken = part.table.frame.reindex(positions).reset_index(drop=True)
    return taken.rename(columns={name: qualified(part.view, str(name)) for name in taken.columns})
