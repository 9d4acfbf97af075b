"""Opens the long recordings of a project: sound, EDF, MiniSEED, HDF5 and .npy files, and tables with one row per sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cmvmed.recordings import LongRecording, long_recordings_from_frame, read_recording, resample
from cmvmed.recordings.recording_files import RECORDING_FORMATS
from cmvmed.recordings.signal_values import is_same_rate
from cmvmed.recordings.sound_files import SOUND_FORMATS
from cmvmed.recordings.stretches import ContinuousSignal
from cmvmed.workbench.column_kinds import column_kind, read_numbers, read_times
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.frames import Frame, RawTable
from cmvmed.workbench.project_file import DataSettings, ProjectSettings, ViewSettings
from cmvmed.workbench.readers import FILE_COLUMN, is_pattern, matching, read_table
from cmvmed.workbench.sound_folders import match_files
from cmvmed.workbench.user_errors import ProjectError, abbreviate, as_project_error, did_you_mean

__all__ = [
    "OpenRecordings",
    "channel_columns",
    "files_of_recordings",
    "open_recordings",
    "recording_column",
    "require_column",
    "with_seconds",
]


@dataclass(frozen=True)
class OpenRecordings:
    """Long recordings, whose samples are read when windows are asked for."""

    recordings: Sequence[LongRecording]
    are_sounds: bool
    table: RawTable | None  # that they are columns of
    messages: tuple[str, ...]


def open_recordings(settings: ProjectSettings, path: Path, options: DelimitedOptions) -> OpenRecordings:
    """The recordings at a path, with clocks corrected and each sensor at one sampling rate."""
    data, table = settings.data, None
    if any(view.files is not None for view in settings.views):
        recordings, are_sounds = _recordings_of_views(path, settings.views, data)
    elif files := files_of_recordings(path):
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


def files_of_recordings(path: Path) -> list[Path]:
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
    if view.channel is None and len(tracks) > 1:
        raise ProjectError(
            f"View {view.name!r}: {file.name} has {len(tracks)} channels; give the view channel = 0 to {len(tracks) - 1}, and "
            "add a view for each other channel."
        )
    if not 0 <= (view.channel or 0) < len(tracks):
        raise ProjectError(
            f"View {view.name!r} has channel = {view.channel}, but {file.name} has {len(tracks)} channels, numbered from 0."
        )
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
    frame = with_seconds(table, time, data.day_first)
    recording = recording_column(table, data)
    with as_project_error():
        return long_recordings_from_frame(
            frame,
            time=time,
            recording=recording,
            sensors=channel_columns(table, data, recording),
            sampling_rate=data.sampling_rate,
        )


def recording_column(table: RawTable, data: DataSettings) -> str | None:
    """The column that names the recording: id, else the name of the file if there are several."""
    if data.id is not None:
        require_column(table, data.id, "id")
        return data.id
    return FILE_COLUMN if FILE_COLUMN in table.frame.columns else None


def require_column(table: RawTable, column: str, key: str) -> None:
    """Raise if a table lacks a column that a key of [data] names."""
    if column not in table.frame.columns:
        raise ProjectError(
            f"{table.source} has no column {column!r}, which {key} in [data] names.{did_you_mean(column, table.names)} Its "
            f"columns are {abbreviate(table.names)}."
        )


def with_seconds(table: RawTable, time: str, day_first: bool | None) -> Frame:
    """The table with its times as seconds: numbers as they are, dates as seconds since 1970."""
    require_column(table, time, "time")
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
