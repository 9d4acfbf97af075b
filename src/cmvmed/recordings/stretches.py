"""One sensor over a long time: stretches without gaps, each with the time of its first sample, read when needed.

Sample i of a stretch that starts at time s is at time s + i / rate. A window of n samples that starts at time t begins
with sample round((t - s) rate), the nearest one. Where a stretch begins within half a sample of the end of the one
before, the samples of both are consecutive; otherwise there is a gap between them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cmvmed._file_errors import NPY_ERRORS, existing_file
from cmvmed.recordings.container import SignalArray
from cmvmed.recordings.signal_values import as_signal, check_sampling_rate

CONTIGUOUS = 0.5  # samples: shorter distances between two stretches are no gap
ROUNDING = 1e-6  # samples


class Samples(Protocol):
    """Consecutive samples in memory or in a file."""

    @property
    def n_channels(self) -> int:
        """Number of channels."""

    @property
    def n_samples(self) -> int:
        """Number of samples of each channel."""

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop, (n_channels, stop - start)."""
        ...


@dataclass(frozen=True, eq=False)
class ArraySamples:
    """Samples in memory; reading gives views."""

    values: SignalArray  # (n_channels, n_samples)

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return int(self.values.shape[0])

    @property
    def n_samples(self) -> int:
        """Number of samples of each channel."""
        return int(self.values.shape[1])

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop."""
        return self.values[:, start:stop]


@dataclass(frozen=True)
class MappedSamples:
    """Samples of an .npy file (n_channels, n_samples) or (n_samples,), of any type of real numbers."""

    path: str
    n_channels: int
    n_samples: int
    channels: tuple[int, ...] | None = None  # None: all

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Self:
        """Look at the shape and type of a file."""
        values = _mapped(path)
        as_signal(values[..., :1], f"'{path}'")
        n_channels, n_samples = values.shape if values.ndim == 2 else (1, len(values))
        check_channels_first((n_channels, n_samples), f"'{path}'")
        return cls(fspath(path), n_channels, n_samples)

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop."""
        values = as_signal(np.array(_mapped(self.path)[..., start:stop]), f"'{self.path}'")
        return values if self.channels is None else values[list(self.channels)]


@dataclass(frozen=True, eq=False)
class Stretch:
    """Samples without a gap."""

    samples: Samples
    start: float  # seconds
    file: str | None = None


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive stretches without a gap between them."""

    stretches: list[Stretch]
    end: float  # seconds

    @property
    def start(self) -> float:
        """Time of the first sample, in seconds."""
        return self.stretches[0].start

    @cached_property
    def offsets(self) -> list[int]:
        """Position in the piece of the first sample of each stretch, and of the end."""
        return [0, *accumulate(stretch.samples.n_samples for stretch in self.stretches)]

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.stretches[0].samples.n_channels

    @property
    def n_samples(self) -> int:
        """Number of samples of each channel."""
        return self.offsets[-1]

    def position(self, time: float, sampling_rate: float) -> float:
        """Position of a time in samples of the piece."""
        number = max(bisect_right(self.stretches, time, key=lambda stretch: stretch.start) - 1, 0)
        return self.offsets[number] + (time - self.stretches[number].start) * sampling_rate

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop."""
        number = bisect_right(self.offsets, start) - 1
        parts: list[SignalArray] = []
        while start < stop:
            offset, until = self.offsets[number], min(stop, self.offsets[number + 1])
            parts.append(self.stretches[number].samples.read(start - offset, until - offset))
            start, number = until, number + 1
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class ContinuousSignal:
    """What one sensor recorded.

    Parameters
    ----------
    stretches : sequence of Stretch
        In the order of time.
    sampling_rate : float
        Samples per second.
    channel_names : tuple of str
    name : str
        Name of the sensor, for error messages.
    """

    stretches: Sequence[Stretch]
    sampling_rate: float
    channel_names: tuple[str, ...]
    name: str = ""

    def __post_init__(self) -> None:
        check_sampling_rate(self.sampling_rate)
        if not self.stretches:
            raise ValueError(f"Sensor {self.name!r} has no samples; leave it out.")
        for stretch in self.stretches:
            if stretch.samples.n_channels != len(self.channel_names):
                raise ValueError(
                    f"Sensor {self.name!r} must have {len(self.channel_names)} channels throughout, but has "
                    f"{stretch.samples.n_channels} from {stretch.start:.3f} s{_in_file(stretch)}."
                )
        for before, after in zip(self.stretches[:-1], self.stretches[1:], strict=True):
            overlap = self._end(before) - after.start
            if overlap * self.sampling_rate > CONTIGUOUS:
                raise ValueError(
                    f"Two stretches of sensor {self.name!r} overlap by {overlap:.4g} s, at {after.start:.3f} s"
                    f"{_in_file(before)}{_in_file(after)}. Check start times, sampling rate, and that no file occurs twice."
                )

    @property
    def start(self) -> float:
        """Time of the first sample, in seconds."""
        return self.stretches[0].start

    @property
    def end(self) -> float:
        """Time after the last sample, in seconds."""
        return self._end(self.stretches[-1])

    @cached_property
    def pieces(self) -> list[Piece]:
        """The parts without gaps."""
        joined: list[list[Stretch]] = []
        for stretch in self.stretches:
            if joined and (stretch.start - self._end(joined[-1][-1])) * self.sampling_rate <= CONTIGUOUS:
                joined[-1].append(stretch)
            else:
                joined.append([stretch])
        return [Piece(stretches, self._end(stretches[-1])) for stretches in joined]

    def n_samples(self, seconds: float) -> int:
        """Number of samples of a window."""
        return round(seconds * self.sampling_rate)

    def covers(self, start: float, n_samples: int) -> bool:
        """Whether all samples of a window were recorded, by the extent of the stretches."""
        return self._locate(start, n_samples) is not None

    def read(self, start: float, n_samples: int) -> SignalArray | None:
        """Return the window of n samples that starts at a time; None if there is a gap in it."""
        located = self._locate(start, n_samples)
        if located is None:
            return None
        piece, first = located
        return piece.read(first, first + n_samples)

    def shifted(self, seconds: float) -> ContinuousSignal:
        """The same samples, all later by some seconds."""
        moved = [Stretch(stretch.samples, stretch.start + seconds, stretch.file) for stretch in self.stretches]
        return ContinuousSignal(moved, self.sampling_rate, self.channel_names, self.name)

    def file_at(self, start: float) -> str | None:
        """The file that a time is in."""
        number = bisect_right(self.stretches, start, key=lambda stretch: stretch.start) - 1
        return self.stretches[max(number, 0)].file

    def _locate(self, start: float, n_samples: int) -> tuple[Piece, int] | None:
        """The piece that holds a window, and the sample of the piece that the window begins with."""
        half = CONTIGUOUS / self.sampling_rate
        number = bisect_right(self.pieces, start + half, key=lambda piece: piece.start) - 1
        if number < 0:
            return None
        piece = self.pieces[number]
        position = piece.position(start, self.sampling_rate)
        first, last_first = max(round(position), 0), piece.n_samples - n_samples
        if first > last_first:
            # a window of a length that is no whole number of samples may end half a sample after the last one
            if last_first < 0 or position > last_first + CONTIGUOUS + ROUNDING:
                return None
            first = last_first
        return piece, first

    def _end(self, stretch: Stretch) -> float:
        return stretch.start + stretch.samples.n_samples / self.sampling_rate


def _in_file(stretch: Stretch) -> str:
    return "" if stretch.file is None else f" ('{stretch.file}')"


def check_channels_first(shape: tuple[int, ...], where: str) -> None:
    """Raise for signals without samples, or that have more channels than samples, which are likely transposed."""
    n_channels, n_samples = shape
    if n_samples == 0 or n_channels == 0:
        raise ValueError(f"The signal of {where} is empty, with {n_channels} channels of {n_samples} samples.")
    if n_channels > n_samples:
        raise ValueError(
            f"The signal of {where} has shape {(n_channels, n_samples)}, more channels than samples: transpose it, channels "
            "come first."
        )


def _mapped(path: str | PathLike[str]) -> NDArray[Any]:
    file = Path(fspath(path))
    if file.suffix.lower() != ".npy":
        raise ValueError(
            f"'{file}' is neither a sound file nor a .npy file; read_recording also reads HDF5, EDF and MiniSEED files."
        )
    try:
        values: NDArray[Any] = np.load(existing_file(file), mmap_mode="r", allow_pickle=False)
    except NPY_ERRORS as error:
        raise ValueError(f"'{file}' is empty or damaged and no .npy file of numbers: {error}") from error
    if values.ndim not in (1, 2):
        raise ValueError(f"'{file}' must hold (n_channels, n_samples) of one recording, but has shape {values.shape}.")
    return values
