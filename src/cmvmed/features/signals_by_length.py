"""The signals of one sensor, read in blocks of equal length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cmvmed.recordings.case_arrays import from_sensors
from cmvmed.recordings.container import Recordings, SensorSignals

FloatArray = NDArray[np.float64]
SensorInput: TypeAlias = SensorSignals | ArrayLike | Sequence[ArrayLike | None]
Rates: TypeAlias = float | Mapping[str, float] | None

BLOCK_SAMPLES = 2**22  # samples in memory at the same time
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
            "cmvmed.recordings.from_array makes Recordings of an (n_cases, n_channels, n_samples) array."
        )
    return dict(from_sensors(X, DEFAULT_RATE if sampling_rate is None else sampling_rate, gaps="error").sensors)


def as_sensor_signals(X: SensorInput, sampling_rate: float | None = None) -> SensorSignals:
    """Return the signals of one sensor: SensorSignals, an array, or a list of signals in which None is missing."""
    return X if isinstance(X, SensorSignals) else as_sensors({SINGLE: X}, sampling_rate)[SINGLE]


def read_signal(signals: SensorSignals, row: int, n_channels: int) -> FloatArray | None:
    """Return one signal as float64, None if it is missing; an error names the case if it cannot be used."""
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
            "interpolate them, or pass None if the sensor is missing in this case."
        )
    return single


def blocks_of_equal_length(
    signals: SensorSignals, rows: Sequence[int], n_channels: int, block_samples: int = BLOCK_SAMPLES
) -> Iterator[SignalBlock]:
    """Read the present signals among ``rows`` in blocks of one length, at most ``block_samples`` samples in memory."""
    waiting: dict[int, list[tuple[int, FloatArray]]] = {}
    n_waiting = 0
    for row in rows:
        signal = read_signal(signals, row, n_channels)
        if signal is None:
            continue
        waiting.setdefault(signal.shape[1], []).append((row, signal))
        n_waiting += signal.size
        if n_waiting >= block_samples:
            yield from _blocks(waiting)
            waiting, n_waiting = {}, 0
    yield from _blocks(waiting)


def _blocks(waiting: Mapping[int, list[tuple[int, FloatArray]]]) -> Iterator[SignalBlock]:
    for members in waiting.values():
        rows = np.array([row for row, _ in members], dtype=np.intp)
        yield SignalBlock(rows, np.stack([signal for _, signal in members]))
