"""Rows that are cut from signals: cases of a long table, and windows of long recordings with labels from annotations."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings import (
    LongRecording,
    annotations_from_frame,
    cut_windows,
    from_frame,
    long_recordings_from_frame,
    read_recording,
    resample,
)
from cmvmed.recordings.recording_files import RECORDING_FORMATS
from cmvmed.recordings.sound_files import sound_files
from cmvmed.recordings.sound_samples import SOUND_FORMATS
from cmvmed.workbench.column_kinds import column_kind, missing_cells, read_numbers, read_times
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.encoders import as_text
from cmvmed.workbench.frames import Frame, RawTable, pandas
from cmvmed.workbench.project_file import LABEL_COLUMN, DataSettings, ProjectSettings, ViewSettings, WindowSettings
from cmvmed.workbench.readers import FILE_COLUMN, is_pattern, read_table, table_of_cases
from cmvmed.workbench.sound_folders import match_files
from cmvmed.workbench.user_errors import ProjectError, abbreviate, as_project_error, did_you_mean, plural

__all__ = [
    "RECORDING_COLUMN",
    "WINDOW_COLUMNS",
    "cases_of_long_table",
    "channel_columns",
    "read_windows",
    "recordings_as_groups",
]

RECORDING_COLUMN = "recording"  # the name of the recording of a window
WINDOW_COLUMNS = (RECORDING_COLUMN, "start", "end")


def cases_of_long_table(table: RawTable, data: DataSettings) -> RawTable:
    """One row per case of a table with one row per sample.

    Columns of numbers that change within a case become signals; all others have one value per case.
    """
    if data.id is None or data.time is None:
        raise ProjectError(f"{table.source} has one row per sample, so id and time in [data] must name its columns.")
    frame = _with_seconds(table, data.time, data.day_first)
    _require(table, data.id, "id")
    channels = channel_columns(table, data, data.id)
    with warnings.catch_warnings(record=True) as caught, as_project_error():
        warnings.simplefilter("always")
        cases = from_frame(frame, id=data.id, time=data.time, sensors=channels, sampling_rate=data.sampling_rate)
    others = [name for name in map(str, table.frame.columns) if name not in (*channels, data.time)]
    rows = _one_row_per_case(table, data.id, others, cases.ids.tolist())
    messages = (*table.messages, *(str(warning.message) for warning in caught))
    signals = table_of_cases(table.source, cases, is_sound=False).signals
    return RawTable(table.source, rows, signals, decimal=table.decimal, messages=messages, ids=cases.ids.tolist())


def read_windows(settings: ProjectSettings, windows: WindowSettings, path: Path, annotations: Path | None) -> RawTable:
    """Windows of the recordings at a path; ``annotations`` is None for new rows."""
    data = settings.data
    options = DelimitedOptions(data.separator, data.decimal, data.encoding)
    table: RawTable | None = None
    if any(view.files is not None for view in settings.views):
        recordings, is_sound = _sound_recordings(path, settings.views), True
    elif files := _recording_files(path):
        with as_project_error():
            recordings = [read_recording(file, sampling_rate=_rate_of(file, data)) for file in files]
        is_sound = all(file.suffix.lower() in SOUND_FORMATS for file in files)
    else:
        table = read_table(path, options)
        recordings, is_sound = _recordings_of_table(table, data), False
    if is_sound and data.sampling_rate is not None:
        recordings = [resample(recording, data.sampling_rate) for recording in recordings]
    label = data.labels or LABEL_COLUMN
    given: Any = None
    if annotations is not None:
        given = _annotation_frame(annotations, options)
    elif table is not None and label in table.frame.columns:
        given = _annotations_in_table(table, data, label)
    with as_project_error():
        cases = cut_windows(
            recordings,
            given,
            length=windows.length,
            step=windows.step,
            label=windows.label,  # type: ignore[arg-type]
            min_overlap=windows.min_overlap,
            end=windows.end,  # type: ignore[arg-type]
            timezone=windows.timezone,
        )
    start, end = np.asarray(cases.times, dtype=np.float64).T
    columns: dict[str, Any] = {RECORDING_COLUMN: cases.groups, "start": start, "end": end}
    if table is not None and data.groups in table.frame.columns:
        columns[str(data.groups)] = _values_of_recordings(table, data, str(data.groups), cases.groups)
    if given is not None:
        columns[label] = np.array(["" if value is None else as_text(value) for value in cases.labels], dtype=object)
    said = f"{path.name}: {plural(len(recordings), 'recording')} cut into {plural(cases.n, 'window')} of {windows.length:g} s."
    return RawTable(
        path.name,
        pandas().DataFrame(columns, index=range(cases.n)),
        table_of_cases(path.name, cases, is_sound=is_sound).signals,
        messages=(*(() if table is None else table.messages), said),
        ids=cases.ids.tolist(),
    )


def recordings_as_groups(table: RawTable) -> NDArray[np.object_] | None:
    """The recordings of windows as groups, if there are several."""
    recordings = table.frame[RECORDING_COLUMN]
    return np.array(recordings.tolist(), dtype=object) if recordings.nunique() > 1 else None


def _recording_files(path: Path) -> list[Path]:
    """The recordings at a path: one file, those of a folder, or those that match a pattern; none if it is a table."""
    if is_pattern(str(path)):
        anchor = Path(path.anchor) if path.is_absolute() else Path()
        found = sorted(anchor.glob(str(path.relative_to(anchor))))
    else:
        found = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in found if file.suffix.lower() in RECORDING_FORMATS and file.is_file()]


def _rate_of(file: Path, data: DataSettings) -> float | None:
    """The sampling rate that the project says, for files that do not say it themselves."""
    return None if file.suffix.lower() in SOUND_FORMATS else data.sampling_rate


def _sound_recordings(path: Path, views: Sequence[ViewSettings]) -> list[LongRecording]:
    """Recordings of sound files: those with the same identifier are one, with a sensor per view."""
    depth = max((view.files or "").count("/") for view in views)
    folder = path.parents[depth] if path.is_file() and depth < len(path.parents) else path
    if not folder.is_dir():
        raise ProjectError(f"There is no folder {str(path)!r}; views with sound files need the folder as path.")
    found = sound_files(folder)
    files = {view.name: match_files(folder, view.files or "", found) for view in views}
    names = sorted({name for by_name in files.values() for name in by_name})
    if path.is_file():
        names = [name for name in names if any(by_name.get(name) == path for by_name in files.values())]
    if not names:
        have = abbreviate(file.relative_to(folder).as_posix() for file in found) or "no sound file"
        raise ProjectError(
            f"No sound file in {str(folder)!r} matches {abbreviate(view.files for view in views)}; it has {have}."
        )
    return [_sound_recording(name, {view: files[view.name].get(name) for view in views}) for name in names]


def _sound_recording(name: str, files: Mapping[ViewSettings, Path | None]) -> LongRecording:
    tracks = {}
    for view, file in files.items():
        if file is None:
            continue
        with as_project_error():
            opened = read_recording(file, None if view.channel is None else {view.name: view.channel})
        if view.channel is None and len(opened.sensors) > 1:
            raise ProjectError(
                f"View {view.name!r}: {file.name} has {len(opened.sensors)} channels; give the view channel = 0 to "
                f"{len(opened.sensors) - 1}, and add a view for each other channel."
            )
        track = next(iter(opened.sensors.values()))
        tracks[view.name] = type(track)(track.stretches, track.sampling_rate, (view.name,), view.name)
    return LongRecording(name, tracks)


def _time_column(table: RawTable, data: DataSettings) -> str:
    if data.time is None:
        raise ProjectError(
            f"[windows] cuts long recordings, but {table.source} is a table without times: set time in [data] to its column of "
            f"times. Its columns are {abbreviate(table.names)}."
        )
    return data.time


def _recordings_of_table(table: RawTable, data: DataSettings) -> list[LongRecording]:
    time = _time_column(table, data)
    frame = _with_seconds(table, time, data.day_first)
    recording = _recording_column(table, data)
    with as_project_error():
        return long_recordings_from_frame(
            frame,
            time=time,
            recording=recording,
            sensors=channel_columns(table, data, recording),
            sampling_rate=data.sampling_rate,
        )


def _recording_column(table: RawTable, data: DataSettings) -> str | None:
    """The column that names the recording: id, else the name of the file if there are several."""
    if data.id is not None:
        _require(table, data.id, "id")
        return data.id
    return FILE_COLUMN if FILE_COLUMN in table.frame.columns else None


def _values_of_recordings(table: RawTable, data: DataSettings, column: str, recordings: Any) -> list[Any]:
    """The value of a column in the recording of each window, which must be one."""
    owner = _recording_column(table, data)
    if owner is None:
        values = dict.fromkeys(set(recordings), table.frame[column])
    else:
        values = {str(key): cells for key, cells in table.frame.groupby(owner, sort=False)[column]}
    for name, cells in values.items():
        if cells.nunique() > 1:
            one, other = cells.dropna().unique()[:2]
            raise ProjectError(
                f"Column {column!r} of {table.source}, which groups in [data] names, has several values in recording {name!r}, "
                f"such as {one!r} and {other!r}; a recording must be in one group. Set id to {column!r} if its values are "
                "recordings of their own."
            )
    return [values[name].iloc[0] for name in recordings]


def _annotations_in_table(table: RawTable, data: DataSettings, label: str) -> Any:
    """Stretches of rows with the same label."""
    frame = _with_seconds(table, _time_column(table, data), data.day_first)
    cells = table.frame[label]
    unlabeled = missing_cells(cells, frozenset(data.unlabeled) | {""})
    texts = [as_text(cell) for cell in cells.astype(object)]
    frame[label] = ["" if empty else text for text, empty in zip(texts, unlabeled, strict=True)]
    recording = _recording_column(table, data)
    with as_project_error():
        return annotations_from_frame(frame, time=_time_column(table, data), label=label, recording=recording)


def _annotation_frame(path: Path, options: DelimitedOptions) -> Frame:
    if not path.is_file():
        raise ProjectError(
            f"There is no file of annotations {str(path)!r}; annotations in [windows] is a file with recording, start, end and "
            "label."
        )
    return read_table(path, options).frame


def _require(table: RawTable, column: str, key: str) -> None:
    if column not in table.frame.columns:
        raise ProjectError(
            f"{table.source} has no column {column!r}, which {key} in [data] names.{did_you_mean(column, table.names)} Its "
            f"columns are {abbreviate(table.names)}."
        )


def _with_seconds(table: RawTable, time: str, day_first: bool | None) -> Frame:
    """The table with its times as seconds: numbers as they are, dates as seconds since 1970."""
    _require(table, time, "time")
    frame = table.frame.copy()
    is_number = column_kind(frame[time], table.decimal) == "number"
    cells = read_numbers(frame[time], table.decimal) if is_number else read_times(frame[time], day_first=day_first)
    wrong = np.flatnonzero(cells.bad | np.isnan(cells.values))
    if len(wrong):
        raise ProjectError(
            f"Column {time!r}, {table.place(int(wrong[0]))}: {str(frame[time].iloc[wrong[0]])!r} is neither a number of seconds "
            "nor a date; correct it or remove the row."
        )
    frame[time] = cells.values
    return frame


def channel_columns(table: RawTable, data: DataSettings, case: str | None) -> list[str]:
    """Columns of numbers that change within a case."""
    taken = {data.time, data.id, data.labels, data.groups, case, FILE_COLUMN, *data.ignore}
    numbers = [str(name) for name in table.frame.columns if name not in taken and table.frame[name].dtype.kind in "fiu"]
    if case is not None and numbers:
        changes = table.frame.groupby(case, sort=False)[numbers].nunique().max() > 1
        numbers = [name for name in numbers if changes[name]]
    if not numbers:
        raise ProjectError(
            f"{table.source} has no column of numbers that changes within a recording; its columns are {abbreviate(table.names)}. "
            "Check id and time in [data], and the decimal sign."
        )
    return numbers


def _one_row_per_case(table: RawTable, id_column: str, columns: Sequence[str], ids: Sequence[str]) -> Frame:
    """The cells of columns that have one value per case."""
    keys = table.frame[id_column].astype(object).map(str)
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    for key, members in table.frame.groupby(keys, sort=False):
        for name in columns:
            cells = members[name]
            known = cells[~missing_cells(cells, frozenset({""}))]
            distinct = known.unique()
            if len(distinct) > 1 and name != id_column:
                raise ProjectError(
                    f"Column {name!r} of {table.source} has several values in case {key!r}, such as {distinct[0]!r} and "
                    f"{distinct[1]!r}, where one per case is expected; add a section [windows] to cut windows, or put the column "
                    "into ignore in [data]."
                )
            rows[name].append(distinct[0] if len(distinct) else None)
    frame = pandas().DataFrame(rows)
    frame.index = frame[id_column].astype(object).map(str)
    return frame.loc[list(ids)].reset_index(drop=True)
