"""Sound files that are read in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np

from cmvmed.recordings.audio_files import AudioHeader, audio_header, audio_module, read_audio, riff_is_truncated
from cmvmed.recordings.container import LazySequence, SignalArray

SOUND_FORMATS = (".wav", ".flac", ".ogg", ".aiff", ".aif")


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


@dataclass(frozen=True, eq=False)
class SoundSignals(LazySequence):
    """One sound file per case, read when it is asked for; None where the sensor is missing."""

    files: Sequence[str | None]
    sampling_rate: float

    def __len__(self) -> int:
        return len(self.files)

    def item(self, row: int) -> SignalArray | None:
        """The item at a position."""
        file = self.files[row]
        return None if file is None else read_audio(file, sampling_rate=self.sampling_rate)[0]
