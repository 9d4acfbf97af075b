"""Rows that are cut from signals: those of a long table, and windows of long recordings with labels from annotations."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.pages.formatting import plural
from cmvmed.recordings import (
    LongRecording,
    annotations_from_frame,
    cut_windows,
    from_frame,
    long_recordings_from_frame,
    read_recording,
    resample,
)
from cmvmed.recordings.recording_files import EDF_FORMATS, RECORDING_FORMATS, read_edf_annotations
from cmvmed.recordings.signal_values import is_same_rate
from cmvmed.recordings.sound_files import SOUND_FORMATS
from cmvmed.recordings.stretches import ContinuousSignal
from cmvmed.workbench.project_file import LABEL_COLUMN, DataSettings, ProjectSettings, ViewSettings, WindowSettings
from cmvmed.workbench.tables.columns import (
    Frame,
    RawTable,
    as_text,
    column_kind,
    missing_cells,
    pandas,
    read_cells,
)
from cmvmed.workbench.tables.delimited import DelimitedOptions
from cmvmed.workbench.tables.read import (
    FILE_COLUMN,
    check_channel,
    is_pattern,
    match_files,
    matching,
    matching_files,
    read_table,
    table_of_recordings,
)
from cmvmed.workbench.user_errors import ProjectError, abbreviate, as_project_error

RECORDING_COLUMN = "recording"  # the name of the recording of a window
WINDOW_COLUMNS = (RECORDING_COLUMN, "start", "end")


@dataclass(frozen=True)
class OpenRecordings:
    """Long recordings, whose samples are read when windows are asked for."""

    recordings: Sequence[LongRecording]
    are_sounds: bool
    table: RawTable | None  # that they are columns of
    messages: tuple[str, ...]


def _open_recordings(settings: ProjectSettings, path: Path, options: DelimitedOptions) -> OpenRecordings:
    """The recordings at a path, with clocks corrected and each sensor at one sampling rate."""
    data, table = settings.data, None
    if any(view.files is not None for view in settings.views):
        recordings, are_sounds = _recordings_of_views(path, settings.views, data)
    elif files := _files_of_recordings(path):
        with as_project_error():
            recordings = [read_recording(file, sampling_rate=_rate_of(file, data)) for file in files]
        are_sounds = all(file.suffix.lower() in SOUND_FORMATS for file in files)
    else:
        table = read_table(path, options)
        recordings, are_sounds = _recordings_of_table(table, data), False
    rates, said = _rates(recordings, settings, data.sampling_rate if are_sounds else None)
    offsets = _by_sensor({view: view.offset for view in settings.views if view.offset}, recordings)
    with as_project_error():
        recordings = [_corrected(recording, rates, offsets) for recording in recordings]
    return OpenRecordings(recordings, are_sounds, table, (*(() if table is None else table.messages), *said))


def _files_of_recordings(path: Path) -> list[Path]:
    """The recordings at a path: one file, those of a folder, or those that match a pattern; none if it is a table."""
    inside = sorted(path.iterdir()) if path.is_dir() else [path]
    found = matching_files(path) if is_pattern(str(path)) else inside
    return [file for file in found if file.suffix.lower() in RECORDING_FORMATS and file.is_file()]


def _rate_of(file: Path, data: DataSettings) -> float | None:
    """The sampling rate that the project says, for files that do not say it themselves."""
    return None if file.suffix.lower() in SOUND_FORMATS else data.sampling_rate


def _by_sensor(values: Mapping[ViewSettings, float], recordings: Sequence[LongRecording]) -> dict[str, float]:
    """Values of views by the names of their sensors in the recordings."""
    sensors = list(dict.fromkeys(name for recording in recordings for name in recording.sensors))
    return {
        sensor: value
        for view, value in values.items()
        for pattern in ((view.name,) if view.files is not None else view.columns)
        for sensor in matching(pattern, sensors)
    }


def _rates(
    recordings: Sequence[LongRecording], settings: ProjectSettings, default: float | None
) -> tuple[dict[str, float], list[str]]:
    """The rate of each sensor to which it is resampled: as the view says, else the lowest one if there are several."""
    said: list[str] = []
    tracks: dict[str, list[ContinuousSignal]] = {}
    for recording in recordings:
        for name, track in recording.sensors.items():
            tracks.setdefault(name, []).append(track)
    rates = {} if default is None else dict.fromkeys(tracks, default)
    for name, members in tracks.items():
        lowest = min(track.sampling_rate for track in members)
        if name not in rates and not all(is_same_rate(track.sampling_rate, lowest) for track in members):
            rates[name] = lowest
            said.append(f"Sensor {name!r} has several sampling rates; all recordings are resampled to {lowest:g} Hz.")
    given = {view: view.sampling_rate for view in settings.views if view.sampling_rate is not None}
    return rates | _by_sensor(given, recordings), said


def _corrected(recording: LongRecording, rates: Mapping[str, float], offsets: Mapping[str, float]) -> LongRecording:
    own = recording.sensors
    moved = recording.with_offsets({name: seconds for name, seconds in offsets.items() if name in own})
    corrected: LongRecording = resample(moved, {name: rate for name, rate in rates.items() if name in own})
    return corrected


def _recordings_of_views(
    path: Path, views: Sequence[ViewSettings], data: DataSettings
) -> tuple[list[LongRecording], bool]:
    """Recordings of which each view has its own files: those with the same identifier are one."""
    depth = max((view.files or "").count("/") for view in views)
    folder = path.parents[depth] if path.is_file() and depth < len(path.parents) else path
    if not folder.is_dir():
        raise ProjectError(f"There is no folder {str(path)!r}; views with files need the folder as path.")
    found = sorted(file for file in folder.rglob("*") if file.suffix.lower() in RECORDING_FORMATS and file.is_file())
    files = {view.name: match_files(folder, view.files or "", found) for view in views}
    names = sorted({name for by_name in files.values() for name in by_name})
    if path.is_file():
        names = [name for name in names if any(by_name.get(name) == path for by_name in files.values())]
    if not names:
        have = abbreviate(file.relative_to(folder).as_posix() for file in found) or "no recording"
        raise ProjectError(
            f"No file in {str(folder)!r} matches {abbreviate(view.files for view in views)}; it has {have}."
        )
    are_sounds = all(file.suffix.lower() in SOUND_FORMATS for by_name in files.values() for file in by_name.values())
    by_view = {name: {view: files[view.name].get(name) for view in views} for name in names}
    return [_one_recording(name, own, data) for name, own in by_view.items()], are_sounds


def _one_recording(name: str, files: Mapping[ViewSettings, Path | None], data: DataSettings) -> LongRecording:
    """The files of one recording; those that say when they start are placed in time by it."""
    tracks: dict[str, ContinuousSignal] = {}
    starts: dict[str, float] = {}
    for view, file in files.items():
        if file is None:
            continue
        with as_project_error():
            opened = read_recording(file, sampling_rate=_rate_of(file, data))
        track = _track_of(view, file, opened)
        tracks[view.name] = replace(track, channel_names=(view.name,), name=view.name)
        if opened.start is not None:
            starts[view.name] = opened.start
    zero = min(starts.values(), default=None)
    if zero is not None:
        tracks = {view: track.shifted(starts.get(view, zero) - zero) for view, track in tracks.items()}
    return LongRecording(name, tracks, zero)


def _track_of(view: ViewSettings, file: Path, opened: LongRecording) -> ContinuousSignal:
    tracks = list(opened.sensors.values())
    check_channel(view, file, len(tracks))
    return tracks[view.channel or 0]


def time_column(table: RawTable, data: DataSettings) -> str:
    """The column of times, which a table of long recordings must have."""
    if data.time is None:
        raise ProjectError(
            f"[windows] cuts long recordings, but {table.source} is a table without times: set time in [data] to its column of "
            f"times. Its columns are {abbreviate(table.names)}."
        )
    return data.time


def _recordings_of_table(table: RawTable, data: DataSettings) -> list[LongRecording]:
    time = time_column(table, data)
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
        _require_column(table, data.id, "id")
        return data.id
    return FILE_COLUMN if FILE_COLUMN in table.frame.columns else None


def _require_column(table: RawTable, column: str, key: str) -> None:
    """Raise if a table lacks a column that a key of [data] names."""
    if column not in table.frame.columns:
        raise table.lacks(column, key)


def _with_seconds(table: RawTable, time: str, day_first: bool | None) -> Frame:
    """The table with its times as seconds: numbers as they are, dates as seconds since 1970."""
    _require_column(table, time, "time")
    frame = table.frame.copy()
    is_number = column_kind(frame[time], table.decimal) == "number"
    cells = read_cells(table, time, "number" if is_number else "date", day_first=day_first)
    wrong = np.flatnonzero(cells.bad | np.isnan(cells.values))
    if len(wrong):
        raise ProjectError(
            f"Column {time!r}, {table.place(int(wrong[0]))}: {str(frame[time].iloc[wrong[0]])!r} is neither a number of seconds "
            "nor a date; correct it or remove the row."
        )
    frame[time] = cells.values
    return frame


def channel_columns(table: RawTable, data: DataSettings, row: str | None) -> list[str]:
    """Columns of numbers that change within a row."""
    taken = {data.time, data.id, data.labels, data.groups, row, FILE_COLUMN, *data.ignore}
    numbers = [str(name) for name in table.frame.columns if name not in taken and table.frame[name].dtype.kind in "fiu"]
    if row is not None and numbers:
        changes = table.frame.groupby(row, sort=False)[numbers].nunique().max() > 1
        numbers = [name for name in numbers if changes[name]]
    if not numbers:
        raise ProjectError(
            f"{table.source} has no column of numbers that changes within a recording; its columns are {abbreviate(table.names)}. "
            "Check id and time in [data], and the decimal sign."
        )
    return numbers


def rows_of_long_table(table: RawTable, data: DataSettings) -> RawTable:
    """The rows of a table with one line per sample.

    Columns of numbers that change within a row become signals; all others have one value per row.
    """
    if data.id is None or data.time is None:
        raise ProjectError(f"{table.source} has one line per sample, so id and time in [data] must name its columns.")
    frame = _with_seconds(table, data.time, data.day_first)
    _require_column(table, data.id, "id")
    channels = channel_columns(table, data, data.id)
    with warnings.catch_warnings(record=True) as caught, as_project_error():
        warnings.simplefilter("always")
        recordings = from_frame(frame, id=data.id, time=data.time, sensors=channels, sampling_rate=data.sampling_rate)
    others = [name for name in map(str, table.frame.columns) if name not in (*channels, data.time)]
    rows = _one_line_per_row(table, data.id, others, recordings.ids.tolist())
    messages = (*table.messages, *(str(warning.message) for warning in caught))
    signals = table_of_recordings(table.source, recordings, is_sound=False).signals
    return RawTable(table.source, rows, signals, decimal=table.decimal, messages=messages, ids=recordings.ids.tolist())


def read_windows(settings: ProjectSettings, windows: WindowSettings, path: Path, annotations: Path | None) -> RawTable:
    """Windows of the recordings at a path; ``annotations`` is None for new rows."""
    data = settings.data
    options = DelimitedOptions(data.separator, data.decimal, data.encoding)
    opened = _open_recordings(settings, path, options)
    table, recordings = opened.table, opened.recordings
    label = data.labels or LABEL_COLUMN
    given: Any = None
    if annotations is not None:
        given = _annotation_frame(annotations, options)
    elif table is not None and label in table.frame.columns:
        given = _annotations_in_table(table, data, label)
    with as_project_error():
        cut = cut_windows(
            recordings,
            given,
            length=windows.length,
            step=windows.step,
            label=windows.label,  # type: ignore[arg-type]
            min_overlap=windows.min_overlap,
            end=windows.end,  # type: ignore[arg-type]
            timezone=windows.timezone,
        )
    start, end = np.asarray(cut.times, dtype=np.float64).T
    columns: dict[str, Any] = {RECORDING_COLUMN: cut.groups, "start": start, "end": end}
    if table is not None and data.groups in table.frame.columns:
        columns[str(data.groups)] = _values_of_recordings(table, data, str(data.groups), cut.groups)
    if given is not None:
        columns[label] = np.array(["" if value is None else as_text(value) for value in cut.labels], dtype=object)
    said = f"{path.name}: {plural(len(recordings), 'recording')} cut into {plural(cut.n, 'window')} of {windows.length:g} s."
    return RawTable(
        path.name,
        pandas().DataFrame(columns, index=range(cut.n)),
        table_of_recordings(path.name, cut, is_sound=opened.are_sounds).signals,
        messages=(*opened.messages, said),
        ids=cut.ids.tolist(),
    )


def recordings_as_groups(table: RawTable) -> NDArray[np.object_] | None:
    """The recordings of windows as groups, if there are several."""
    recordings = table.frame[RECORDING_COLUMN]
    return np.array(recordings.tolist(), dtype=object) if recordings.nunique() > 1 else None


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
    frame = _with_seconds(table, time_column(table, data), data.day_first)
    cells = table.frame[label]
    unlabeled = missing_cells(cells, frozenset(data.unlabeled) | {""})
    texts = [as_text(cell) for cell in cells.astype(object)]
    frame[label] = ["" if empty else text for text, empty in zip(texts, unlabeled, strict=True)]
    recording = _recording_column(table, data)
    with as_project_error():
        return annotations_from_frame(frame, time=time_column(table, data), label=label, recording=recording)


def _annotation_frame(path: Path, options: DelimitedOptions) -> Any:
    """The annotations in a table, or in EDF+ files themselves."""
    edf = [file for file in _files_of_recordings(path) if file.suffix.lower() in EDF_FORMATS]
    if edf:
        with as_project_error():
            return [entry for file in edf for entry in read_edf_annotations(file)]
    if not path.is_file():
        raise ProjectError(
            f"There is no file of annotations {str(path)!r}; annotations in [windows] is a file with recording, start, end and "
            "label."
        )
    return read_table(path, options).frame


def _one_line_per_row(table: RawTable, id_column: str, columns: Sequence[str], ids: Sequence[str]) -> Frame:
    """The cells of columns that have one value per row."""
    keys = table.frame[id_column].astype(object).map(str)
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    for key, members in table.frame.groupby(keys, sort=False):
        for name in columns:
            cells = members[name]
            known = cells[~missing_cells(cells, frozenset({""}))]
            distinct = known.unique()
            if len(distinct) > 1 and name != id_column:
                raise ProjectError(
                    f"Column {name!r} of {table.source} has several values in row {key!r}, such as {distinct[0]!r} and "
                    f"{distinct[1]!r}, where one per row is expected; add a section [windows] to cut windows, or put the column "
                    "into ignore in [data]."
                )
            rows[name].append(distinct[0] if len(distinct) else None)
    frame = pandas().DataFrame(rows)
    frame.index = frame[id_column].astype(object).map(str)
    return frame.loc[list(ids)].reset_index(drop=True)
