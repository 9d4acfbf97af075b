"""Samples in .npy files, mapped into memory."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cmvmed._npy_errors import NPY_ERRORS
from cmvmed.recordings.container import SignalArray
from cmvmed.recordings.signal_values import as_signal


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
            f"'{file}' is no sound file and no .npy file; read_recording also reads HDF5, EDF and MiniSEED files."
        )
    if not file.is_file():
        raise FileNotFoundError(f"There is no file '{file}'. Relative paths start at '{Path.cwd()}'.")
    try:
        values: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except NPY_ERRORS as error:
        raise ValueError(f"'{file}' is empty or damaged and no .npy file of numbers: {error}") from error
    if values.ndim not in (1, 2):
        raise ValueError(f"'{file}' must hold (n_channels, n_samples) of one recording, but has shape {values.shape}.")
    return values
