"""Sound files as arrays: wav, flac and whatever else libsndfile reads. Needs the ``[audio]`` extra."""

from __future__ import annotations

import importlib
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_FILE_SAMPLES = 2**29  # samples times channels, 46 minutes of stereo at 96 kHz; a header that claims more is refused
_RIFF_SIZE_UNKNOWN = (0, 0xFFFFFFFF)  # what a recorder writes that streams to a pipe


def audio_module(name: str) -> ModuleType:
    """Import librosa or soundfile at first use: features of other sensors need neither."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"Audio features need {name}. Install it with: pip install 'cmvmed[audio]'") from error


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
        Full scale of the file's integer format is 1.0.
    sampling_rate : float
        Rate of ``samples`` in Hz.
    """
    header = audio_header(path)
    if header.frames * header.channels > MAX_FILE_SAMPLES:
        raise ValueError(
            f"'{path}' claims {header.frames} samples in {header.channels} channels, more than the {MAX_FILE_SAMPLES} "
            "that are read at once. Cut it into shorter files first."
        )
    soundfile = audio_module("soundfile")
    try:
        samples, rate = soundfile.read(str(path), dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise ValueError(f"'{path}' is damaged and cannot be decoded: {error.error_string}") from error
    if len(samples) == 0 or len(samples) != header.frames or _riff_is_cut(Path(path)):
        raise ValueError(
            f"'{path}' is empty or truncated: its header promises more than the {len(samples)} samples there."
        )
    channels_first = np.ascontiguousarray(samples.T)
    if sampling_rate is None or sampling_rate == rate:
        return channels_first, float(rate)
    resampled = audio_module("librosa").resample(channels_first, orig_sr=rate, target_sr=sampling_rate)
    return resampled, float(sampling_rate)


def audio_header(path: str | PathLike[str]) -> Any:
    """Return soundfile's description of a sound file: ``samplerate``, ``channels``, ``frames``."""
    soundfile = audio_module("soundfile")
    if not Path(path).is_file():
        raise FileNotFoundError(f"No sound file at '{path}'. Check the path; it is relative to '{Path.cwd()}'.")
    try:
        return soundfile.info(str(path))
    except soundfile.LibsndfileError as error:
        raise ValueError(
            f"'{path}' is not a readable sound file (wav, flac, ogg, aiff): {error.error_string}"
        ) from error


def _riff_is_cut(file: Path) -> bool:
    """Tell whether a wav file is shorter than it says; libsndfile silently reads what is left of it."""
    with file.open("rb") as stream:
        magic, size = stream.read(4), int.from_bytes(stream.read(4), "little")
    return magic == b"RIFF" and size not in _RIFF_SIZE_UNKNOWN and file.stat().st_size < size + 8
