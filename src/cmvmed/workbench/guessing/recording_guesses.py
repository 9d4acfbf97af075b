"""Folders of sound files, long recordings, the windows they are cut into, and annotations of what was observed when."""

from collections.abc import Sequence
from dataclasses import replace
from math import floor, log10
from pathlib import Path

import numpy as np

from cmvmed.data.labels import UNLABELED_WORDS
from cmvmed.pages.formatting import plural
from cmvmed.recordings import read_recording
from cmvmed.recordings.recording_files import EDF_FORMATS, MSEED_FORMATS, read_edf_annotations
from cmvmed.recordings.sound_files import SOUND_FORMATS, audio_header, sound_files
from cmvmed.workbench.guessing.column_guesses import MAX_VIEWS, Found, Guess, relative_path, view_name, with_label_file
from cmvmed.workbench.project_file import LABEL_COLUMN, DataSettings, ProjectSettings, ViewSettings, WindowSettings
from cmvmed.workbench.tables.columns import FloatArray, read_times
from cmvmed.workbench.tables.delimited import DelimitedOptions
from cmvmed.workbench.tables.read import FOLDER_COLUMN, TABLE_FORMATS, match_files, read_table
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import ProjectError, abbreviate, as_project_error

ONLY_LONG = (*EDF_FORMATS, *MSEED_FORMATS, ".npy")
ANNOTATION_COLUMNS = {"start", "end", "label"}
DEFAULT_SAMPLES = 100  # of a window, if nothing says how long events are


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
    windows, about = _annotated_windows(place, folder, window_of([], 1 / min(signals.values())))
    durations = _annotations_of_edf(files) if windows.annotations is None else []
    if durations:
        windows = window_of(durations, 1.0, annotations=where)
        said = f"the recordings hold annotations; rows are windows of {windows.length:g} s"
        about = [Guess(said, toml_line("length", windows.length))]
    data = DataSettings(path=where, labels=LABEL_COLUMN if windows.annotations else None)
    return ProjectSettings(data, views, windows=windows), [Guess(what, toml_line("path", where)), *about], []


def guess_sound(path: Path, folder: Path) -> Found:
    """Sub-folders are views or labels; in one folder, words in the names of files or channels are views."""
    files = sound_files(path)
    suffixes = {file.suffix for file in files}
    ending = suffixes.pop() if len(suffixes) == 1 else ""
    subfolders = sorted({file.parent.relative_to(path).as_posix() for file in files})
    stems = {name: {file.stem for file in files if file.parent == path / name} for name in subfolders}
    data = DataSettings(path=relative_path(path, folder))
    guesses: list[Guess] = []
    label_file = next(
        (f for f in sorted(path.iterdir()) if "label" in f.stem.casefold() and f.suffix in TABLE_FORMATS), None
    )
    is_labeled = label_file is not None or _annotation_file(path) is not None
    if len(subfolders) > 1 and (is_labeled or _mostly_shared(list(stems.values()))):
        views = tuple(ViewSettings(view_name(name), files=f"{name}/*{ending}") for name in subfolders)
        row = "row" if _annotation_file(path) is None else "recording"
        what = f"each of the {len(views)} sub-folders is a view; files of the same name are one {row}"
        guesses.append(Guess(what, _files_line(views[0])))
    elif len(subfolders) > 1:
        views = _channels(files[0], f"*/*{ending}")
        data, about = _folders_as_labels(data, stems)
        guesses += about
    else:
        below = "" if subfolders == ["."] else f"{subfolders[0]}/"
        views, about = _flat_views(path / below, below, files, ending)
        guesses += about
    if _annotation_file(path) is not None:
        windows, about = _annotated_windows(path, folder, WindowSettings())
        kept = [guess for guess in guesses if not guess.line.startswith(("labels", "unlabeled"))]
        return ProjectSettings(replace(data, labels=LABEL_COLUMN), views, windows=windows), [*kept, *about], []
    if data.labels is None:
        data, guesses = with_label_file(path, folder, data, guesses, exclude=[])
    return ProjectSettings(data, views), guesses, []


def _folders_as_labels(data: DataSettings, stems: dict[str, set[str]]) -> tuple[DataSettings, list[Guess]]:
    markers = [name for name in stems if name.casefold() in UNLABELED_WORDS]
    data = replace(data, labels=FOLDER_COLUMN, unlabeled=("", *markers))
    said = f"the names of the {len(stems)} sub-folders are the labels, because their files have different names"
    guesses = [Guess(said, toml_line("labels", FOLDER_COLUMN))]
    if markers:
        guesses.append(Guess(f"files in {abbreviate(markers)} are not labeled", toml_line("unlabeled", data.unlabeled)))
    return data, guesses


def _flat_views(
    folder: Path, below: str, files: Sequence[Path], ending: str
) -> tuple[tuple[ViewSettings, ...], list[Guess]]:
    """Files of one folder: a common last or first word of their names is a sensor, or each file is a row."""
    for pattern in ("{below}*_{word}{ending}", "{below}{word}_*{ending}"):
        at = -1 if pattern.startswith("{below}*") else 0
        words = sorted({file.stem.split("_")[at] for file in files if "_" in file.stem})
        if not 2 <= len(words) <= MAX_VIEWS or any("_" not in file.stem for file in files):
            continue
        patterns = {word: pattern.format(below=below, word=word, ending=ending) for word in words}
        base = folder if not below else folder.parent
        rows = [set(match_files(base, one, files)) for one in patterns.values()]
        if _mostly_shared(rows):
            views = tuple(ViewSettings(view_name(word), files=one) for word, one in patterns.items())
            which = "last" if at else "first"
            said = f"{plural(len(views), 'view')} by the {which} word of the names of files: {abbreviate(words)}"
            return views, [Guess(said, _files_line(views[0]))]
    views = _channels(files[0], f"{below}*{ending}")
    what = "each file is a row" + (f", each of its {len(views)} channels a view" if len(views) > 1 else "")
    return views, [Guess(what, _files_line(views[0]))]


def _channels(file: Path, pattern: str) -> tuple[ViewSettings, ...]:
    n_channels = audio_header(file).channels
    if n_channels == 1:
        return (ViewSettings("sound", files=pattern),)
    return tuple(ViewSettings(f"channel_{c}", files=pattern, channel=c) for c in range(n_channels))


def _mostly_shared(rows: Sequence[set[str]]) -> bool:
    """Whether most identifiers occur in at least two of the sets."""
    everything = set.union(*rows)
    return sum(sum(key in one for one in rows) > 1 for key in everything) > len(everything) / 2


def _files_line(view: ViewSettings) -> str:
    return f"[views.{view.name}] {toml_line('files', view.files)}"


def _annotated_windows(place: Path, folder: Path, otherwise: WindowSettings) -> tuple[WindowSettings, list[Guess]]:
    """Windows with the annotations in a folder, if there are any."""
    found = _annotation_file(place)
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


def _annotation_file(folder: Path) -> Path | None:
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


def _annotations_of_edf(files: Sequence[Path]) -> list[float]:
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
