"""The signals of one sensor, read in blocks of equal length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cmvmed.recordings.container import Recordings, SensorSignals
from cmvmed.recordings.signal_checks import check_sampling_rate

FloatArray = NDArray[np.float64]
SensorInput: TypeAlias = SensorSignals | ArrayLike | Sequence[ArrayLike | None]
Rates: TypeAlias = float | Mapping[str, float] | None

BLOCK_SAMPLES = 2**22  # samples in memory at the same time
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
    X : Recordings, or dict of sensor name -> signals as in :func:`as_sensor_signals`
    sampling_rate : float or dict of sensor name -> float, optional
        Of arrays; ``Recordings`` have their own.
    """
    if isinstance(X, Recordings):
        return dict(X.sensors)
    if not isinstance(X, Mapping):
        raise TypeError(
            f"Expected Recordings or a dict of sensor name -> signals, got {type(X).__name__}. "
            "cmvmed.recordings.from_array makes Recordings of an (n_cases, n_channels, n_samples) array."
        )
    if isinstance(sampling_rate, Mapping) and (unknown := [name for name in X if name not in sampling_rate]):
        raise ValueError(f"sampling_rate has no entry for sensor {unknown[0]!r}; it has {list(sampling_rate)}.")
    sensors = {
        str(name): as_sensor_signals(
            signals, sampling_rate[name] if isinstance(sampling_rate, Mapping) else sampling_rate, name=str(name)
        )
        for name, signals in X.items()
    }
    counts = {name: len(signals) for name, signals in sensors.items()}
    if len(set(counts.values())) != 1:
        raise ValueError(f"All sensors need one signal per case, None where missing; they have {counts or 'none'}.")
    return sensors


def as_sensor_signals(X: SensorInput, sampling_rate: float | None = None, *, name: str = "") -> SensorSignals:
    """Return the signals of one sensor from an array or a list.

    Parameters
    ----------
    X : SensorSignals, (n_cases, n_channels, n_samples) or (n_cases, n_samples) array, or list of such signals
        In a list lengths may differ. None and signals that are all NaN are missing.
    sampling_rate : float, optional
        None: 1, frequencies are in cycles per sample.
    """
    if isinstance(X, SensorSignals):
        return X
    rate = DEFAULT_RATE if sampling_rate is None else float(sampling_rate)
    check_sampling_rate(rate)
    if isinstance(X, np.ndarray) and X.dtype != object and X.ndim not in (2, 3):
        raise ValueError(
            f"Signals of sensor {name!r} must be (n_cases, n_channels, n_samples) or (n_cases, n_samples), got {X.shape}."
        )
    items: Sequence[Any] = X if isinstance(X, (list, tuple, np.ndarray)) else list(X)  # type: ignore[arg-type]
    signals = [_as_signal(item, row, name) for row, item in enumerate(items)]
    counts = {len(signal): row for row, signal in enumerate(signals) if signal is not None}
    if len(counts) > 1:
        (one, row), (other, far) = list(counts.items())[:2]
        raise ValueError(
            f"Sensor {name!r} has {one} channels in case {row}, but {other} in case {far}; all need the same channels."
        )
    channels = tuple(f"ch{c}" for c in range(next(iter(counts), 1)))
    return SensorSignals(signals, rate, channels, name=name)


def _as_signal(item: Any, row: int, name: str) -> NDArray[np.floating[Any]] | None:
    if item is None or (isinstance(item, float) and np.isnan(item)):
        return None
    signal = np.atleast_2d(np.asarray(item))
    if signal.ndim != 2 or signal.dtype.kind not in "fiu":
        raise TypeError(
            f"The signal of case {row}, sensor {name!r} must be a real (n_channels, n_samples) array or None, got dtype "
            f"{signal.dtype} and shape {np.shape(item)}."
        )
    signal = signal if signal.dtype.kind == "f" else signal.astype(np.float64)
    return None if signal.size == 0 or np.isnan(signal).all() else signal


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
