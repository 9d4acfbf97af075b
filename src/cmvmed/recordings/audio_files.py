"""Sound files as arrays: wav, flac and other formats of libsndfile. Needs the ``[audio]`` extra."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from cmvmed._optional import import_optional

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
