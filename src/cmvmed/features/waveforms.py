"""From what a user holds (array, list of arrays, file names) to blocks of equally long one-channel waveforms.

The rules of this border:

* a segment that is None, NaN, an empty file name or all NaN is an absent sensor; one with some NaN is an error;
* integer samples of 8, 16 or 32 bits are scaled so that their full range is [-1, 1);
* several channels need a choice: an index, or "mean".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from cmvmed.features.audio_files import audio_header, read_audio

Samples: TypeAlias = NDArray[np.floating[Any]]
Channel: TypeAlias = int | Literal["mean"] | None

BLOCK_SAMPLES = 2**19  # waveform samples handled at once; the spectrograms of more do not stay in a processor's cache
BLOCK_FILES = 256  # files held in memory at once


@dataclass(frozen=True)
class WaveformBlock:
    """Some rows of X whose waveforms have the same length."""

    rows: NDArray[np.int64]  # positions in X
    samples: Samples  # (len(rows), n_samples), floating
    name: Callable[[int], str]  # what to call a row in an error: its position, and its file


def as_waveforms(X: Any) -> NDArray[Any] | list[Any]:
    """Return X as a numeric (n, n_samples) or (n, n_channels, n_samples) array, or as a list of one item per row."""
    if isinstance(X, (str, PathLike)):
        raise TypeError(f"Expected several segments, got the single path '{X}'. Pass a list: [{str(X)!r}].")
    if isinstance(X, (list, tuple)):
        return list(X)
    if issparse(X):
        raise TypeError("Waveforms in a sparse matrix are not supported; pass X.toarray().")
    array = np.asarray(X)
    if array.dtype.kind == "O" and array.ndim > 1 and array.shape[1] > 1:
        array = array.astype(float)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: waveforms must be real.")
    if array.dtype.kind in "fiu":
        if array.ndim > 1 and array.shape[-1] == 0:
            raise ValueError(
                f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required: the segments are empty."
            )
        if array.ndim not in (2, 3):
            raise ValueError(
                f"Waveforms must be (n_segments, n_samples) or (n_segments, n_channels, n_samples), got shape "
                f"{array.shape}. Reshape your data; a single waveform is x[np.newaxis, :]."
            )
        return array
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "OUT":
        raise TypeError(
            "Waveforms must be a real array, a list of one-dimensional arrays or a list of file names, got an array of "
            f"dtype {array.dtype} and shape {array.shape}."
        )
    return list(array)


def files_sampling_rate(waveforms: NDArray[Any] | list[Any]) -> float:
    """Return the one sampling rate of all files; arrays do not carry any."""
    if isinstance(waveforms, np.ndarray) or not all(_is_path(item) or is_absent(item) for item in waveforms):
        raise ValueError(
            "Arrays carry no sampling rate: pass sampling_rate= in Hz. Only lists of sound files may omit it."
        )
    rates: dict[float, str] = {}
    for item in waveforms:
        if not is_absent(item):
            rates.setdefault(float(audio_header(item).samplerate), str(item))
    if len(rates) != 1:
        found = ", ".join(f"{rate:g} Hz ('{file}')" for rate, file in rates.items()) or "no file at all"
        raise ValueError(f"The files need one sampling rate, found {found}. Pass sampling_rate= to resample them.")
    return next(iter(rates))


def waveform_blocks(
    waveforms: NDArray[Any] | list[Any], *, sampling_rate: float, channel: Channel
) -> Iterator[WaveformBlock]:
    """Yield the present segments in blocks of equal length; absent ones appear in no block."""
    if isinstance(waveforms, np.ndarray):
        step = max(1, BLOCK_SAMPLES // max(1, waveforms.shape[-1]))
        for start in range(0, len(waveforms), step):
            part = waveforms[start : start + step]
            named = f"rows {start} to {start + len(part) - 1}"
            samples = part if part.ndim == 2 else _choose_channel(np.moveaxis(part, 1, 0), channel, named)
            yield from _present_rows(np.arange(start, start + len(part)), _as_floating(samples), str)
        return
    for start in range(0, len(waveforms), BLOCK_FILES):
        yield from _item_blocks(
            waveforms, range(start, min(start + BLOCK_FILES, len(waveforms))), sampling_rate, channel
        )


def _item_blocks(items: list[Any], rows: range, sampling_rate: float, channel: Channel) -> Iterator[WaveformBlock]:
    alike: dict[tuple[int, Any], dict[int, Samples]] = {}  # by length and precision: rows must not depend on others
    for row in rows:
        if not is_absent(items[row]):
            samples = _item_samples(items[row], row, sampling_rate, channel)
            alike.setdefault((len(samples), samples.dtype), {})[row] = samples
    for (length, _), of_row in alike.items():
        members = list(of_row)
        step = max(1, BLOCK_SAMPLES // max(1, length))
        for start in range(0, len(members), step):
            part = members[start : start + step]
            yield from _present_rows(
                np.array(part), np.stack([of_row[row] for row in part]), lambda row: _row_name(items[row], row)
            )


def _item_samples(item: Any, row: int, sampling_rate: float, channel: Channel) -> Samples:
    name = _row_name(item, row)
    if _is_path(item):
        samples, _ = read_audio(item, sampling_rate=sampling_rate)
        return _as_floating(_choose_channel(samples, channel, name))
    array = np.asarray(item)
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
        raise TypeError(
            f"Segment {name} must be a one-dimensional real array (or n_channels x n_samples) or a file name, got "
            f"{type(item).__name__} of dtype {array.dtype} and shape {array.shape}."
        )
    return _as_floating(array if array.ndim == 1 else _choose_channel(array, channel, name))


def _choose_channel(samples: NDArray[Any], channel: Channel, name: str) -> NDArray[Any]:
    """Take one channel of (n_channels, ...) samples."""
    n_channels = len(samples)
    if channel == "mean":
        return np.asarray(_as_floating(samples).mean(axis=0))
    if channel is None and n_channels == 1:
        return np.asarray(samples[0])
    if channel is None:
        raise ValueError(
            f"Segment {name} has {n_channels} channels: choose one with channel=0 .. channel={n_channels - 1}, or "
            'their average with channel="mean".'
        )
    if not 0 <= channel < n_channels:
        raise ValueError(f"Segment {name} has {n_channels} channels, so that channel={channel} does not exist.")
    return np.asarray(samples[channel])


def _as_floating(samples: NDArray[Any]) -> Samples:
    if samples.dtype.kind == "f":
        return samples if samples.dtype in (np.float32, np.float64) else samples.astype(np.float32)
    if samples.dtype.itemsize == 8:  # no sound format: plain numbers that happen to be whole
        return samples.astype(np.float64)
    half_range = 2.0 ** (8 * samples.dtype.itemsize - 1)
    middle = half_range if samples.dtype.kind == "u" else 0.0  # unsigned sound swings around the middle of its range
    return ((samples.astype(np.float64) - middle) / half_range).astype(np.float32)


def _present_rows(rows: NDArray[np.int64], samples: Samples, name: Callable[[int], str]) -> Iterator[WaveformBlock]:
    finite = np.isfinite(samples)
    complete = finite.all(axis=1)
    absent = ~complete & np.isnan(samples).all(axis=1)
    broken = np.flatnonzero(~complete & ~absent)
    if len(broken):
        first = int(broken[0])
        raise ValueError(
            f"Segment {name(rows[first])} has {np.count_nonzero(~finite[first])} NaN or infinite samples of "
            f"{samples.shape[1]}. Repair or interpolate them, or set the whole segment to NaN: the sensor is missing."
        )
    if complete.any():
        yield WaveformBlock(rows[complete], samples[complete], name)


def _is_path(item: Any) -> bool:
    return isinstance(item, (str, PathLike))


def is_absent(item: Any) -> bool:
    """Tell whether a cell holds nothing: None, NaN, pandas' NA or an empty str."""
    if item is None or (isinstance(item, str) and not item.strip()):
        return True
    if isinstance(item, (float, np.floating)):
        return bool(np.isnan(item))
    return type(item).__name__ == "NAType"  # pandas.NA, which refuses comparison; pandas need not be installed


def _row_name(item: Any, row: int) -> str:
    return f"{row} ('{item}')" if _is_path(item) else str(row)
