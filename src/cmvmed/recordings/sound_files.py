"""Folders of sound files: one case per event, one sensor per sub-folder or pattern of names.

The pattern of a sensor, such as ``mic_a/*.wav``, says both which files belong to it and which case each belongs to: what
the ``*`` stands for is the identifier of the case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from cmvmed.recordings.audio_files import audio_header
from cmvmed.recordings.case_arrays import Column, by_id, numbered
from cmvmed.recordings.container import Recordings, SensorSignals
from cmvmed.recordings.sound_samples import SOUND_FORMATS, SoundSignals


def sound_files(folder: Path) -> list[Path]:
    """All sound files in a folder and its sub-folders."""
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in SOUND_FORMATS and file.is_file())


def match_files(folder: Path, pattern: str, files: Sequence[Path] | None = None) -> dict[str, Path]:
    """Files that match a pattern, by the identifier of their case; None: sound files."""
    if "*" not in pattern:
        raise ValueError(f"The pattern {pattern!r} of files needs a *, which stands for the identifier of a row.")
    expression = re.compile("([^/]*)".join(map(re.escape, pattern.split("*"))))
    rows: dict[str, Path] = {}
    for file in sound_files(folder) if files is None else files:
        found = expression.fullmatch(file.relative_to(folder).as_posix())
        if found is None:
            continue
        row = "/".join(part for part in found.groups() if part and f".{part.lower()}" != file.suffix.lower())
        row = str(Path(row).with_suffix("")) if Path(row).suffix.lower() == file.suffix.lower() else row
        if row in rows:
            raise ValueError(
                f"{rows[row].name} and {file.name} both match {pattern!r} as row {row!r}; rename one of them or use a narrower "
                "pattern."
            )
        rows[row] = file
    return rows


def read_sounds(
    folder: str | PathLike[str],
    sensors: Mapping[str, str] | None = None,
    *,
    sampling_rate: float | None = None,
    labels: Column | Mapping[Any, Any] | Literal["folder"] | None = None,
    groups: Mapping[Any, Any] | None = None,
) -> Recordings:
    """Open a folder of wav, flac, ogg or aiff files, one per case and sensor; they are read when asked for.

    Parameters
    ----------
    folder : path
    sensors : mapping of sensor name -> pattern, optional
        Such as ``{"left": "left/*.wav", "right": "right/*.wav"}``: what the ``*`` stands for identifies the case, and a
        sensor without a file of that name is missing in it. All channels of the files are channels of the sensor.
        None: each sub-folder is a sensor; without sub-folders all files are one sensor, ``sound``.
    sampling_rate : float, optional
        Files of other rates are resampled to it. None: the files of a sensor must have the same rate.
    labels : dict of identifier -> label, sequence, or "folder", optional
        "folder": the name of the folder that holds the file.
    groups : dict of identifier -> group, optional

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np, soundfile
    >>> from cmvmed.recordings import read_sounds
    >>> for name in ("left/step1.wav", "right/step1.wav", "left/step2.wav"):
    ...     Path("sounds", name).parent.mkdir(parents=True, exist_ok=True)
    ...     soundfile.write(Path("sounds", name), np.zeros(400), 4000)
    >>> cases = read_sounds("sounds", labels={"step1": "human"})
    >>> cases.ids.tolist(), cases.labels.tolist(), cases["right"][1] is None
    (['step1', 'step2'], ['human', None], True)
    """
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"There is no folder '{place}'. Relative paths start at '{Path.cwd()}'.")
    found = sound_files(place)
    if not found:
        raise ValueError(f"The folder '{place}' has no sound files ({', '.join(SOUND_FORMATS)}).")
    patterns = _guessed(place, found, labels) if sensors is None else sensors
    files = {name: _match(place, pattern, found) for name, pattern in patterns.items()}
    for name, by_row in files.items():
        if not by_row:
            shown = ", ".join(file.relative_to(place).as_posix() for file in found[:4])
            raise ValueError(f"No file in '{place}' matches {patterns[name]!r} of sensor {name!r}; it has {shown} ...")
    ids = sorted({row for by_row in files.values() for row in by_row})
    signals = {name: _sensor(name, [by_row.get(row) for row in ids], sampling_rate) for name, by_row in files.items()}
    first = [next(by_row[row] for by_row in files.values() if row in by_row) for row in ids]
    values: Any = [file.parent.name for file in first] if labels == "folder" else by_id(labels, ids, len(ids))
    return Recordings(signals, ids=ids, labels=values, groups=by_id(groups, ids, len(ids)))  # type: ignore[arg-type]


def _guessed(folder: Path, files: Sequence[Path], labels: object) -> dict[str, str]:
    below = sorted({file.relative_to(folder).parts[0] for file in files if file.parent != folder})
    if not below or labels == "folder":
        return {"sound": "**"}
    return {name: f"{name}/**" for name in below}


def _match(folder: Path, pattern: str, files: Sequence[Path]) -> dict[str, Path]:
    """Files by identifier; a pattern that ends in ** takes all files below, named by their paths."""
    if not pattern.endswith("**"):
        return match_files(folder, pattern, files)
    below = folder / pattern.removesuffix("**")
    inside = [file for file in files if file.is_relative_to(below)]
    rows: dict[str, Path] = {}
    for file in inside:
        row = file.relative_to(below).with_suffix("").as_posix()
        if row in rows:
            raise ValueError(f"{rows[row].name} and {file.name} are both {row!r}; rename one of them.")
        rows[row] = file
    return rows


def _sensor(name: str, files: Sequence[Path | None], sampling_rate: float | None) -> SensorSignals:
    headers = {file: audio_header(file) for file in files if file is not None}
    first = next(iter(headers))
    for file, header in headers.items():
        if header.frames == 0:
            raise ValueError(f"'{file}' is empty: its header says 0 samples.")
        if header.channels != headers[first].channels:
            raise ValueError(
                f"The files of sensor {name!r} must have the same channels, but '{first}' has {headers[first].channels} and "
                f"'{file}' has {header.channels}."
            )
        if sampling_rate is None and header.samplerate != headers[first].samplerate:
            raise ValueError(
                f"The files of sensor {name!r} have different sampling rates: {headers[first].samplerate} Hz ('{first}') and "
                f"{header.samplerate} Hz ('{file}'). Pass sampling_rate= to resample them."
            )
    rate = float(headers[first].samplerate if sampling_rate is None else sampling_rate)
    channels = tuple(numbered(name, headers[first].channels))
    paths = [None if file is None else str(file) for file in files]
    return SensorSignals(SoundSignals(paths, rate), rate, channels, files=paths, name=name)
