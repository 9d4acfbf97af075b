"""Signals and waveforms in blocks of equal length, as features are computed from them.

The signals of a sensor have all its channels (:func:`blocks_of_equal_length`). Waveforms have one
(:func:`waveform_blocks`): arrays, lists of arrays and file names, or the signals of a sensor, of which one channel is
chosen by index, or their mean is used. A segment that is None, NaN, an empty file name or all NaN is a missing sensor; NaN
in a part of it is an error. Integer samples of 8, 16 or 32 bits of a waveform are scaled to the range [-1, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from cmvmed.recordings.container import Recordings, SensorSignals, SignalArray, is_missing
from cmvmed.recordings.row_arrays import from_sensors
from cmvmed.recordings.signal_values import is_same_rate
from cmvmed.recordings.sound_files import audio_header, read_audio

FloatArray = NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.floating[Any])
SensorInput: TypeAlias = SensorSignals | ArrayLike | Sequence[ArrayLike | None]
Rates: TypeAlias = float | Mapping[str, float] | None
Channel: TypeAlias = int | Literal["mean"] | None
Segment: TypeAlias = ArrayLike | str | PathLike[str] | None
SegmentList: TypeAlias = list[Segment] | SensorSignals
Waveforms: TypeAlias = ArrayLike | Sequence[Segment] | SensorSignals

MAX_SAMPLES = 2**22  # of signals in memory at the same time
BLOCK_SAMPLES = 2**19  # per block of waveforms, so that their spectrograms fit into the processor cache
SINGLE = "signal"  # name of the sensor if only one is given
DEFAULT_RATE = 1.0  # of arrays without a sampling rate: frequencies are then in cycles per sample


@dataclass(frozen=True)
class SignalBlock:
    """Signals of the same length."""

    rows: NDArray[np.intp]
    signals: FloatArray  # (n_rows, n_channels, n_samples), finite


def as_sensors(X: object, sampling_rate: Rates) -> dict[str, SensorSignals]:
    """Return the signals of each sensor.

    Parameters
    ----------
    X : Recordings, or dict of sensor name -> signals as :func:`cmvmed.recordings.from_sensors` takes it
    sampling_rate : float or dict of sensor name -> float, optional
        Of arrays; ``Recordings`` have their own. None: 1, frequencies are in cycles per sample.
    """
    if isinstance(X, Recordings):
        return dict(X.sensors)
    if not isinstance(X, Mapping):
        raise TypeError(
            f"Expected Recordings or a dict of sensor name -> signals, got {type(X).__name__}. "
            "cmvmed.recordings.from_array makes Recordings of an (n_rows, n_channels, n_samples) array."
        )
    return dict(from_sensors(X, DEFAULT_RATE if sampling_rate is None else sampling_rate, gaps="error").sensors)


def as_sensor_signals(X: SensorInput, sampling_rate: float | None = None) -> SensorSignals:
    """Return the signals of one sensor: SensorSignals, an array, or a list of signals in which None is missing."""
    return X if isinstance(X, SensorSignals) else as_sensors({SINGLE: X}, sampling_rate)[SINGLE]


def read_signal(signals: SensorSignals, row: int, n_channels: int) -> FloatArray | None:
    """Return one signal as float64, None if it is missing; an error names the row if it cannot be used."""
    signal = signals[row]
    if signal is None or signal.shape[1] == 0:
        return None
    if signal.shape[0] != n_channels:
        raise ValueError(
            f"The signal of {signals.place(row)} has {signal.shape[0]} channels, but the first signals had {n_channels}."
        )
    single: FloatArray = np.ascontiguousarray(signal, dtype=np.float64)
    if not np.isfinite(single).all():
        n_invalid = int(np.count_nonzero(~np.isfinite(single)))
        raise ValueError(
            f"The signal of {signals.place(row)} has {n_invalid} NaN or infinite samples of {single.size}. Repair or "
            "interpolate them, or pass None if the sensor is missing in this row."
        )
    return single


def blocks_of_equal_length(
    signals: SensorSignals, rows: Sequence[int], n_channels: int, block_samples: int = MAX_SAMPLES
) -> Iterator[SignalBlock]:
    """Read the present signals among ``rows`` in blocks of one length, at most ``block_samples`` samples in memory."""
    read = ((row, read_signal(signals, row, n_channels)) for row in rows)
    return (SignalBlock(block, members) for block, members in stacked_by_shape(read, block_samples))


def stacked_by_shape(
    signals: Iterable[tuple[int, NDArray[Scalar] | None]], block_samples: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[Scalar]]]:
    """Rows and signals of one shape and type, stacked, with at most ``block_samples`` samples in memory."""
    waiting: dict[Any, list[tuple[int, NDArray[Scalar]]]] = {}  # by type too, so that no row depends on others
    n_waiting = 0
    for row, signal in signals:
        if signal is None:
            continue
        waiting.setdefault((signal.shape, signal.dtype), []).append((row, signal))
        n_waiting += signal.size
        if n_waiting >= block_samples:
            yield from map(_stacked, waiting.values())
            waiting, n_waiting = {}, 0
    yield from map(_stacked, waiting.values())


def _stacked(members: Sequence[tuple[int, NDArray[Scalar]]]) -> tuple[NDArray[np.intp], NDArray[Scalar]]:
    return np.array([row for row, _ in members], dtype=np.intp), np.stack([signal for _, signal in members])


@dataclass(frozen=True)
class WaveformBlock:
    """Rows of X whose waveforms have the same length."""

    rows: NDArray[np.intp]  # positions in X
    samples: SignalArray  # (len(rows), n_samples), floating
    name: Callable[[int], str]  # name of a row for error messages: its position, and its file


def as_waveforms(X: Waveforms) -> NDArray[Any] | SegmentList:
    """Return X as a numeric (n, n_samples) or (n, n_channels, n_samples) array, or as one segment per row."""
    if isinstance(X, SensorSignals):
        return X
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


def common_sampling_rate(waveforms: NDArray[Any] | SegmentList) -> float:
    """Return the sampling rate of all files, which must be the same; arrays have none."""
    if isinstance(waveforms, SensorSignals):
        return waveforms.sampling_rate
    if isinstance(waveforms, np.ndarray) or not all(_is_path(item) or is_absent(item) for item in waveforms):
        raise ValueError(
            "Arrays have no sampling rate: pass sampling_rate= in Hz. It is optional for lists of sound files only."
        )
    rates: dict[float, str] = {}
    for item in waveforms:
        if _is_path(item) and not is_absent(item):
            rates.setdefault(float(audio_header(item).samplerate), str(item))
    if len(rates) != 1:
        found = ", ".join(f"{rate:g} Hz ('{file}')" for rate, file in rates.items()) or "no file"
        raise ValueError(
            f"The files must have the same sampling rate, found {found}. Pass sampling_rate= to resample them."
        )
    return next(iter(rates))


def waveform_blocks(
    waveforms: NDArray[Any] | SegmentList, *, sampling_rate: float, channel: Channel
) -> Iterator[WaveformBlock]:
    """Yield the segments in blocks of equal length; absent segments are in no block."""
    if isinstance(waveforms, SensorSignals) and not is_same_rate(waveforms.sampling_rate, sampling_rate):
        raise ValueError(
            f"Sensor {waveforms.name!r} has {waveforms.sampling_rate:g} Hz, but the features were made for {sampling_rate:g} Hz. "
            "Bring it to this rate with cmvmed.recordings.resample."
        )

    def name(row: int) -> str:
        return _row_name(waveforms, row)

    read = ((row, _waveform(item, partial(name, row), sampling_rate, channel)) for row, item in enumerate(waveforms))
    return (WaveformBlock(rows, samples, name) for rows, samples in stacked_by_shape(read, BLOCK_SAMPLES))


def _waveform(item: Any, name: Callable[[], str], sampling_rate: float, channel: Channel) -> SignalArray | None:
    """The samples of one segment, None if it is absent."""
    if is_absent(item):
        return None
    samples = read_audio(item, sampling_rate=sampling_rate)[0] if _is_path(item) else np.asarray(item)
    if samples.dtype.kind not in "fiu" or samples.ndim not in (1, 2):
        raise TypeError(
            f"Segment {name()} must be a one-dimensional real array (or n_channels x n_samples) or a file name, got "
            f"{type(item).__name__} of dtype {samples.dtype} and shape {samples.shape}."
        )
    samples = _as_floating(samples if samples.ndim == 1 else _choose_channel(samples, channel, name))
    finite = np.isfinite(samples)
    if finite.all():
        return samples
    if np.isnan(samples).all():
        return None
    raise ValueError(
        f"Segment {name()} has {np.count_nonzero(~finite)} NaN or infinite samples of {samples.size}. Repair or interpolate "
        "them, or set the whole segment to NaN if the sensor is missing."
    )


def _choose_channel(samples: NDArray[Any], channel: Channel, name: Callable[[], str]) -> NDArray[Any]:
    """Take one channel of (n_channels, n_samples)."""
    n_channels = len(samples)
    if channel == "mean":
        return np.asarray(_as_floating(samples).mean(axis=0))
    if channel is None and n_channels == 1:
        return np.asarray(samples[0])
    if channel is None:
        raise ValueError(
            f"Segment {name()} has {n_channels} channels: choose one with channel=0 .. channel={n_channels - 1}, or "
            'their average with channel="mean".'
        )
    if not 0 <= channel < n_channels:
        raise ValueError(f"Segment {name()} has {n_channels} channels, so channel={channel} does not exist.")
    return np.asarray(samples[channel])


def _as_floating(samples: NDArray[Any]) -> SignalArray:
    if samples.dtype.kind == "f":
        return samples if samples.dtype in (np.float32, np.float64) else samples.astype(np.float32)
    if samples.dtype.itemsize == 8:  # not an audio format, but integers as numbers
        return samples.astype(np.float64)
    half_range = 2.0 ** (8 * samples.dtype.itemsize - 1)
    offset = half_range if samples.dtype.kind == "u" else 0.0  # unsigned audio is centered in its range
    return ((samples.astype(np.float64) - offset) / half_range).astype(np.float32)


def _is_path(item: object) -> TypeGuard[str | PathLike[str]]:
    return isinstance(item, (str, PathLike))


def is_absent(item: object) -> bool:
    """Return whether an entry is empty: None, NaN, the NA of pandas or an empty str."""
    return is_missing(item) or (isinstance(item, str) and not item.strip())


def _row_name(items: NDArray[Any] | SegmentList, row: int) -> str:
    if isinstance(items, SensorSignals):
        return items.place(row)
    item = items[row]
    return f"{row} ('{item}')" if _is_path(item) else str(row)
