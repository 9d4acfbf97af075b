"""What looks like long recordings: tables with one row per sample, recordings in files, and annotations beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path

import numpy as np

from cmvmed.recordings import read_recording
from cmvmed.recordings.edf_files import EDF_FORMATS, read_edf_annotations
from cmvmed.recordings.mseed_files import MSEED_FORMATS
from cmvmed.recordings.sound_samples import SOUND_FORMATS
from cmvmed.workbench.column_kinds import read_times
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.frames import FloatArray, RawTable
from cmvmed.workbench.project_file import WindowSettings
from cmvmed.workbench.readers import TABLE_FORMATS, read_table
from cmvmed.workbench.user_errors import ProjectError, as_project_error

__all__ = [
    "LongColumns",
    "annotation_file",
    "annotation_windows",
    "annotations_of_edf",
    "long_columns",
    "recordings_in",
    "signals_in",
    "window_of",
]

CASE_WORDS = ("id", "case", "recording", "trial", "session", "run", "file", "series", "segment", "event", "subject", "user",
              "window", "sample_id")  # fmt: skip
TIME_WORDS = ("time", "timestamp", "datetime", "t", "seconds", "sec", "time_s")
ANNOTATION_COLUMNS = {"start", "end", "label"}
MIN_SAMPLES = 8  # rows per case of a long table
MAX_PERIOD = 0.5  # seconds: rows farther apart are events rather than samples
DEFAULT_SAMPLES = 100  # of a window, if nothing says how long events are
ONLY_LONG = (*EDF_FORMATS, *MSEED_FORMATS, ".npy")


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


def recordings_in(path: Path) -> list[Path]:
    """Long recordings at a path: a sound file, or EDF, MiniSEED and .npy files, else those in its sub-folders."""
    if path.is_file():
        return [path] if path.suffix.lower() in (*SOUND_FORMATS, *ONLY_LONG) else []
    for pattern in ("*", "*/*") if path.is_dir() else ():
        found = sorted(file for file in path.glob(pattern) if file.suffix.lower() in ONLY_LONG)
        if found:
            return found
    return []


def signals_in(files: Sequence[Path]) -> dict[str, float]:
    """The signals of all recordings by name, with their sampling rates; a sensor may be missing in some."""
    rates: dict[str, float] = {}
    for file in files:
        with as_project_error():
            opened = read_recording(file, sampling_rate=1.0 if file.suffix.lower() == ".npy" else None)
        for name, track in opened.sensors.items():
            rates.setdefault(name, track.sampling_rate)
    return rates


def annotations_of_edf(files: Sequence[Path]) -> list[float]:
    """Durations of the annotations in EDF files."""
    found = []
    for file in files:
        if file.suffix.lower() in EDF_FORMATS:
            with as_project_error():
                found += [end - start for _, start, end, _ in read_edf_annotations(file)]
    return found


def annotation_file(folder: Path) -> Path | None:
    """A table with the columns start, end and label in a folder."""
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() not in TABLE_FORMATS[:7] or not file.is_file():
            continue
        try:
            names = read_table(file, DelimitedOptions()).names
        except ProjectError:
            continue
        if {name.strip().lower() for name in names} >= ANNOTATION_COLUMNS:
            return file
    return None


def annotation_windows(file: Path, name: str) -> WindowSettings:
    """Windows half as long as a typical annotation."""
    frame = read_table(file, DelimitedOptions()).frame
    frame.columns = [str(column).strip().lower() for column in frame.columns]
    if frame["start"].dtype.kind in "fiu" and frame["end"].dtype.kind in "fiu":
        durations = frame["end"].to_numpy(dtype=float) - frame["start"].to_numpy(dtype=float)
    else:
        ends, starts = (read_times(frame[column], day_first=None).values for column in ("end", "start"))
        durations = ends - starts
    return window_of(durations, 1.0, annotations=name)


def window_of(durations: Sequence[float] | FloatArray, period: float, annotations: str | None = None) -> WindowSettings:
    """Windows half as long as a typical event, or of a hundred samples; in seconds with one digit that is not zero."""
    known = [duration for duration in durations if np.isfinite(duration) and duration > 0]
    length = _rounded(float(np.median(known)) / 2 if known else DEFAULT_SAMPLES * period)
    return WindowSettings(length=length, step=length / 2, annotations=annotations)


def _rounded(value: float) -> float:
    return float(f"{value:.{max(0, -floor(log10(value)))}f}") if value < 1 else float(f"{value:.1g}")
