"""The windows that recordings are cut into, and the annotations that say what was observed when."""

from collections.abc import Sequence
from math import floor, log10
from pathlib import Path

import numpy as np

from cmvmed.recordings.recording_files import EDF_FORMATS, read_edf_annotations
from cmvmed.workbench.column_kinds import read_times
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.frames import FloatArray
from cmvmed.workbench.guessing.guesses import Guess, relative_path
from cmvmed.workbench.project_file import WindowSettings
from cmvmed.workbench.readers import TABLE_FORMATS, read_table
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import ProjectError, as_project_error

__all__ = ["annotated_windows", "annotation_file", "annotations_of_edf", "window_of"]

ANNOTATION_COLUMNS = {"start", "end", "label"}
DEFAULT_SAMPLES = 100  # of a window, if nothing says how long events are


def annotated_windows(place: Path, folder: Path, otherwise: WindowSettings) -> tuple[WindowSettings, list[Guess]]:
    """Windows with the annotations in a folder, if there are any."""
    found = annotation_file(place)
    if found is None:
        what = "no annotations were found: write annotations.csv with recording, start, end and label"
        return otherwise, [
            Guess(what, toml_line("annotations", "annotations.csv")),
            Guess(f"rows are windows of {otherwise.length:g} s", toml_line("length", otherwise.length)),
        ]
    name = relative_path(found, folder)
    windows = _annotation_windows(found, name)
    return windows, [
        Guess(f"{name} says from when to when what was observed", toml_line("annotations", name)),
        Guess(f"rows are windows of {windows.length:g} s", toml_line("length", windows.length)),
    ]


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


def _annotation_windows(file: Path, name: str) -> WindowSettings:
    """Windows half as long as a typical annotation."""
    frame = read_table(file, DelimitedOptions()).frame
    frame.columns = [str(column).strip().lower() for column in frame.columns]
    if frame["start"].dtype.kind in "fiu" and frame["end"].dtype.kind in "fiu":
        durations = frame["end"].to_numpy(dtype=float) - frame["start"].to_numpy(dtype=float)
    else:
        ends, starts = (read_times(frame[column], day_first=None).values for column in ("end", "start"))
        durations = ends - starts
    return window_of(durations, 1.0, annotations=name)


def annotations_of_edf(files: Sequence[Path]) -> list[float]:
    """Durations of the annotations in EDF files."""
    found = []
    for file in files:
        if file.suffix.lower() in EDF_FORMATS:
            with as_project_error():
                found += [end - start for _, start, end, _ in read_edf_annotations(file)]
    return found


def window_of(durations: Sequence[float] | FloatArray, period: float, annotations: str | None = None) -> WindowSettings:
    """Windows half as long as a typical event, or of a hundred samples; in seconds with one digit that is not zero."""
    known = [duration for duration in durations if np.isfinite(duration) and duration > 0]
    length = _rounded(float(np.median(known)) / 2 if known else DEFAULT_SAMPLES * period)
    return WindowSettings(length=length, step=length / 2, annotations=annotations)


def _rounded(value: float) -> float:
    return float(f"{value:.{max(0, -floor(log10(value)))}f}") if value < 1 else float(f"{value:.1g}")
