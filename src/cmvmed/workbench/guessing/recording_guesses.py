"""Files that are long recordings."""

from collections.abc import Sequence
from pathlib import Path

from cmvmed.recordings import read_recording
from cmvmed.recordings.recording_files import EDF_FORMATS, MSEED_FORMATS
from cmvmed.recordings.sound_files import SOUND_FORMATS
from cmvmed.workbench.guessing.guesses import Found, Guess, relative_path
from cmvmed.workbench.guessing.view_guesses import view_name
from cmvmed.workbench.guessing.window_guesses import annotated_windows, annotations_of_edf, window_of
from cmvmed.workbench.project_file import LABEL_COLUMN, DataSettings, ProjectSettings, ViewSettings
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import as_project_error, plural

__all__ = ["guess_recordings", "recordings_in"]

ONLY_LONG = (*EDF_FORMATS, *MSEED_FORMATS, ".npy")


def recordings_in(path: Path) -> list[Path]:
    """Long recordings at a path: a sound file, or EDF, MiniSEED and .npy files, else those in its sub-folders."""
    if path.is_file():
        return [path] if path.suffix.lower() in (*SOUND_FORMATS, *ONLY_LONG) else []
    for pattern in ("*", "*/*") if path.is_dir() else ():
        found = sorted(file for file in path.glob(pattern) if file.suffix.lower() in ONLY_LONG)
        if found:
            return found
    return []


def _signals_in(files: Sequence[Path]) -> dict[str, float]:
    """The signals of all recordings by name, with their sampling rates; a sensor may be missing in some."""
    rates: dict[str, float] = {}
    for file in files:
        with as_project_error():
            opened = read_recording(file, sampling_rate=1.0 if file.suffix.lower() == ".npy" else None)
        for name, track in opened.sensors.items():
            rates.setdefault(name, track.sampling_rate)
    return rates


def guess_recordings(path: Path, folder: Path) -> Found:
    """Files that are long recordings, with annotations beside or in them if there are any."""
    files = recordings_in(path)
    signals = _signals_in(files)
    suffix, place = files[0].suffix, path if path.is_dir() else path.parent
    below = sorted({file.parent.name for file in files if file.parent != place})
    if below:
        where = relative_path(path, folder)
        views = tuple(ViewSettings(view_name(name), files=f"{name}/*{suffix}") for name in below)
        what = f"each of the {len(below)} sub-folders is a view; recordings of the same name belong together"
    else:
        where = relative_path(path, folder) + (f"/*{suffix}" if path.is_dir() else "")
        views = tuple(ViewSettings(view_name(name), columns=(name,)) for name in signals)
        what = f"{plural(len(files), 'long recording')} with {plural(len(views), 'signal')}, each a view"
    windows, about = annotated_windows(place, folder, window_of([], 1 / min(signals.values())))
    durations = annotations_of_edf(files) if windows.annotations is None else []
    if durations:
        windows = window_of(durations, 1.0, annotations=where)
        said = f"the recordings hold annotations; rows are windows of {windows.length:g} s"
        about = [Guess(said, toml_line("length", windows.length))]
    data = DataSettings(path=where, labels=LABEL_COLUMN if windows.annotations else None)
    return ProjectSettings(data, views, windows=windows), [Guess(what, toml_line("path", where)), *about], []
