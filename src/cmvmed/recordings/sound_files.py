"""Sound files: wav, flac and other formats of libsndfile. Needs the ``[audio]`` extra.

They are read whole (:func:`read_audio`), in parts (:class:`SoundSamples`), or as rows in a folder (:func:`read_sounds`),
one row per event and one sensor per sub-folder or pattern of names. The pattern of a sensor, such as ``mic_a/*.wav``,
says both which files belong to it and which row each belongs to: what the ``*`` stands for is the identifier of the row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from cmvmed._optional import import_optional
from cmvmed.recordings.container import Mapped, Recordings, SensorSignals, SignalArray
from cmvmed.recordings.row_arrays import Column, by_id, numbered

SOUND_FORMATS = (".wav", ".flac", ".ogg", ".aiff", ".aif")
MAX_FILE_SAMPLES = 2**29  # samples times channels: 46 minutes of stereo at 96 kHz
_RIFF_SIZE_UNKNOWN = (0, 0xFFFFFFFF)  # size in the header of a file that was written as a stream


class AudioHeader(Protocol):
    """Properties of a sound file; ``soundfile.info`` returns such an object."""

    samplerate: int
    channels: int
    frames: int


def audio_module(name: str) -> ModuleType:
    """Import librosa or soundfile, which only audio features need."""
    return import_optional(name, "audio", "The computation of audio features")


def read_audio(path: str | PathLike[str], *, sampling_rate: float | None = None) -> tuple[NDArray[np.float32], float]:
    """Read one sound file.

    Parameters
    ----------
    path : path
        wav, flac, ogg, aiff, ... file.
    sampling_rate : float, optional
        Resample to this rate (Hz); None keeps the rate of the file.

    Returns
    -------
    samples : (n_channels, n_samples) float32
        The full scale of an integer format is 1.0.
    sampling_rate : float
        Rate of ``samples`` in Hz.

    Examples
    --------
    >>> import numpy as np, soundfile
    >>> from cmvmed.features import read_audio
    >>> soundfile.write("two_channels.wav", np.zeros((800, 2)), 4000)
    >>> samples, rate = read_audio("two_channels.wav")
    >>> samples.shape, rate
    ((2, 800), 4000.0)
    """
    header = audio_header(path)
    if header.frames * header.channels > MAX_FILE_SAMPLES:
        raise ValueError(
            f"'{path}' has {header.frames} samples in {header.channels} channels according to its header, more than "
            f"the limit of {MAX_FILE_SAMPLES}. Split it into shorter files first."
        )
    soundfile = audio_module("soundfile")
    try:
        samples, rate = soundfile.read(str(path), dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise ValueError(f"'{path}' is damaged and cannot be decoded: {error.error_string}") from error
    if len(samples) == 0 or len(samples) != header.frames or riff_is_truncated(Path(path)):
        raise ValueError(f"'{path}' is empty or truncated: it has {len(samples)} samples, fewer than its header says.")
    channels_first = np.ascontiguousarray(samples.T)
    if sampling_rate is None or sampling_rate == rate:
        return channels_first, float(rate)
    resampled = audio_module("librosa").resample(channels_first, orig_sr=rate, target_sr=sampling_rate)
    return resampled, float(sampling_rate)


def audio_header(path: str | PathLike[str]) -> AudioHeader:
    """Return sampling rate, number of channels and number of samples (``frames``) of a sound file."""
    soundfile = audio_module("soundfile")
    if not Path(path).is_file():
        raise FileNotFoundError(f"No sound file at '{path}'. Check the path; relative paths start at '{Path.cwd()}'.")
    try:
        return cast(AudioHeader, soundfile.info(str(path)))
    except soundfile.LibsndfileError as error:
        raise ValueError(
            f"'{path}' is not a readable sound file (wav, flac, ogg, aiff): {error.error_string}"
        ) from error


def riff_is_truncated(file: Path) -> bool:
    """Return whether a wav file is shorter than its header says, which libsndfile does not report."""
    with file.open("rb") as stream:
        magic, size = stream.read(4), int.from_bytes(stream.read(4), "little")
    return magic == b"RIFF" and size not in _RIFF_SIZE_UNKNOWN and file.stat().st_size < size + 8


def sound_rate(path: str | PathLike[str]) -> float:
    """Samples per second of a file."""
    return float(audio_header(path).samplerate)


@dataclass(frozen=True)
class SoundSamples:
    """Samples of a sound file; the full scale of integer formats is 1."""

    path: str
    channels: tuple[int, ...] | None = None  # None: all

    @cached_property
    def header(self) -> AudioHeader:
        """Properties of the file."""
        header = audio_header(self.path)
        if header.frames == 0:
            raise ValueError(f"'{self.path}' is empty: its header says 0 samples.")
        if riff_is_truncated(Path(self.path)):
            raise ValueError(
                f"'{self.path}' is truncated: it is shorter than its header says. Copy or record it again."
            )
        return header

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.header.channels if self.channels is None else len(self.channels)

    @property
    def n_samples(self) -> int:
        """Number of samples of each channel."""
        return self.header.frames

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop, float32."""
        soundfile = audio_module("soundfile")
        try:
            samples, _ = soundfile.read(self.path, start=start, stop=stop, dtype="float32", always_2d=True)
        except soundfile.LibsndfileError as error:
            raise ValueError(f"'{self.path}' is damaged and cannot be decoded: {error.error_string}") from error
        if len(samples) != stop - start:
            raise ValueError(
                f"'{self.path}' is truncated: it ends at {start + len(samples)} of the {self.n_samples} samples that its header "
                "says."
            )
        chosen = samples.T if self.channels is None else samples.T[list(self.channels)]
        return np.ascontiguousarray(chosen)


def sound_signals(files: Sequence[str | None], sampling_rate: float) -> Sequence[Any]:
    """One sound file per row, read when it is asked for; None where the sensor is missing."""
    return Mapped(files, partial(_samples, sampling_rate=sampling_rate))


def _samples(file: str, sampling_rate: float) -> SignalArray:
    return read_audio(file, sampling_rate=sampling_rate)[0]


def sound_files(folder: Path) -> list[Path]:
    """All sound files in a folder and its sub-folders."""
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in SOUND_FORMATS and file.is_file())


def match_files(folder: Path, pattern: str, files: Sequence[Path] | None = None) -> dict[str, Path]:
    """Files that match a pattern, by the identifier of their row; None: sound files."""
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
    """Open a folder of wav, flac, ogg or aiff files, one per row and sensor; they are read when asked for.

    Parameters
    ----------
    folder : path
    sensors : mapping of sensor name -> pattern, optional
        Such as ``{"left": "left/*.wav", "right": "right/*.wav"}``: what the ``*`` stands for identifies the row, and a
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
    >>> rows = read_sounds("sounds", labels={"step1": "human"})
    >>> rows.ids.tolist(), rows.labels.tolist(), rows["right"][1] is None
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
    return SensorSignals(sound_signals(paths, rate), rate, channels, files=paths, name=name)
