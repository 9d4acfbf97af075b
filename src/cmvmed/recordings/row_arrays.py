"""Rows in memory: (n_rows, n_channels, n_timepoints) arrays, lists of unequal lengths, and dicts of sensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cmvmed.recordings.container import Recordings, SensorSignals, SignalArray, is_missing
from cmvmed.recordings.signal_values import (
    Gaps,
    as_signal,
    check_gaps,
    check_sampling_rate,
    with_gaps_treated,
    without_padding,
)

Column: TypeAlias = Sequence[Any] | NDArray[Any]
ChannelKey: TypeAlias = int | str | slice | Sequence[int]
RowSignals: TypeAlias = ArrayLike | Sequence[ArrayLike | None] | Mapping[Any, ArrayLike | None]


def from_array(
    X: ArrayLike | Sequence[ArrayLike | None],
    sampling_rate: float = 1.0,
    *,
    sensors: Mapping[str, ChannelKey] | Sequence[str] | None = None,
    labels: Column | None = None,
    ids: Column | None = None,
    groups: Column | None = None,
    gaps: Gaps = "missing",
) -> Recordings:
    """Rows in one array, or in a list of arrays of different lengths, as in aeon and sktime.

    Parameters
    ----------
    X : (n_rows, n_channels, n_timepoints) or (n_rows, n_timepoints) array, or list of (n_channels, n_timepoints)
        NaN at the end of all channels is padding and removed; a channel that is all NaN, or None for a row, is
        missing.
    sampling_rate : float
        Samples per second; with 1.0, times are in samples.
    sensors : mapping of sensor name -> channel, list or slice of channels; or sequence of names; optional
        None: each channel is a sensor, ``channel0``, ``channel1``, ...; a sequence names them. Channels that are in no
        entry of the mapping are left out; ``{"imu": slice(None)}`` makes one sensor of all.
    labels, ids, groups : sequence of n_rows, optional
        See :class:`Recordings`.
    gaps : {"missing", "interpolate", "error"}
        What is done with NaN inside of a signal: the sensor is missing in the row, with a warning; the gap is filled
        along straight lines; or an error.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(10, 6, 100))
    >>> from_array(X, 50.0, sensors={"acc": [0, 1, 2], "gyr": [3, 4, 5]})
    <Recordings: 10 rows, 0 labeled; sensors acc (3 x 50 Hz), gyr (3 x 50 Hz)>
    """
    if isinstance(X, Mapping):
        raise TypeError("X is a dict of sensors; pass it to from_sensors.")
    check_gaps(gaps)
    check_sampling_rate(sampling_rate)
    names = _row_names(ids, len(_as_rows(X, "X")))
    arrays = [_as_row(item, name) for item, name in zip(_as_rows(X, "X"), names, strict=True)]
    n_channels = _common_channels(arrays, names)
    chosen = chosen_channels(sensors, n_channels)
    signals = {}
    for name, rows in chosen.items():
        parts = [None if array is None else array[rows] for array in arrays]
        signals[name] = _sensor(name, parts, sampling_rate, numbered(name, len(rows)), names, gaps)
    return Recordings(signals, ids=ids, labels=labels, groups=groups)  # type: ignore[arg-type]


def from_sensors(
    signals: Mapping[str, RowSignals],
    sampling_rate: float | Mapping[str, float] = 1.0,
    *,
    channel_names: Mapping[str, Sequence[str]] | None = None,
    labels: Column | Mapping[Any, Any] | None = None,
    ids: Column | None = None,
    groups: Column | Mapping[Any, Any] | None = None,
    gaps: Gaps = "missing",
) -> Recordings:
    """Sensors that differ in sampling rate, channels and lengths.

    Parameters
    ----------
    signals : mapping of sensor name -> array, list, or dict of identifier -> signal
        Arrays and lists have one entry per row, as in :func:`from_array`, with None where the sensor is missing. If
        all sensors are dicts, signals with the same identifier are one row, and a sensor that lacks an identifier is
        missing there.
    sampling_rate : float, or mapping of sensor name -> float
        Samples per second.
    channel_names : mapping of sensor name -> names, optional
    labels, groups : sequence of n_rows, or dict of identifier -> value, optional
    ids : sequence, optional
    gaps : {"missing", "interpolate", "error"}
        See :func:`from_array`.

    Examples
    --------
    >>> import numpy as np
    >>> walk, rest = np.zeros((3, 200)), np.zeros((3, 180))
    >>> from_sensors({"imu": {"a": walk, "b": rest}, "mic": {"b": np.zeros(14400)}}, {"imu": 100, "mic": 8000},
    ...              labels={"a": "walk"})
    <Recordings: 2 rows, 1 labeled; sensors imu (3 x 100 Hz), mic (1 x 8000 Hz)>
    """
    check_gaps(gaps)
    if not isinstance(signals, Mapping) or not signals:
        raise TypeError("signals must be a dict of sensor name -> array, list or dict of signals, with at least one.")
    columns, ids = _aligned(signals, ids)
    counts = {name: len(column) for name, column in columns.items()}
    n = max(counts.values())
    names = _row_names(ids, n) if len(set(counts.values())) == 1 else [f"row {row}" for row in range(n)]
    sensors = {}
    for name, column in columns.items():
        rate = rate_of(name, sampling_rate)
        arrays = [_as_row(item, f"{row}, sensor {name!r}") for item, row in zip(column, names, strict=False)]
        n_channels = _common_channels(arrays, names, name)
        channels = (channel_names or {}).get(name) or numbered(name, n_channels)
        sensors[name] = _sensor(name, arrays, rate, list(channels), names, gaps)
    known: Any = ids
    return Recordings(sensors, ids=known, labels=by_id(labels, ids, n), groups=by_id(groups, ids, n))


def rate_of(sensor: str, sampling_rate: float | Mapping[str, float]) -> float:
    """The sampling rate of a sensor."""
    if isinstance(sampling_rate, Mapping):
        if sensor not in sampling_rate:
            raise ValueError(
                f"sampling_rate has no entry for sensor {sensor!r}; it has {', '.join(map(repr, sampling_rate))}."
            )
        sampling_rate = sampling_rate[sensor]
    check_sampling_rate(sampling_rate)
    return float(sampling_rate)


def by_id(values: Column | Mapping[Any, Any] | None, ids: Column | None, n: int) -> Any:
    """Values of a dict in the order of the rows, None for rows that it lacks; sequences as they are."""
    if values is None or not isinstance(values, Mapping):
        return None if values is None else list(values)
    known = [str(key) for key in (range(n) if ids is None else ids)]
    given = {str(key): value for key, value in values.items()}
    unknown = next((key for key in given if key not in set(known)), None)
    if unknown is not None:
        raise ValueError(
            f"A label or group is given for {unknown!r}, but there is no such row; rows are {', '.join(map(repr, known[:6]))}"
            f"{' ...' if len(known) > 6 else ''}."
        )
    return [given.get(key) for key in known]


def _aligned(signals: Mapping[str, RowSignals], ids: Column | None) -> tuple[dict[str, list[Any]], Column | None]:
    """One list of items per sensor, all in the order of the identifiers if they are dicts."""
    mappings = [isinstance(column, Mapping) for column in signals.values()]
    if any(mappings) and not all(mappings):
        raise TypeError("Either all sensors are dicts of identifier -> signal, or none is.")
    if not any(mappings):
        return {name: _as_rows(column, f"sensor {name!r}") for name, column in signals.items()}, ids
    known: Any = list(dict.fromkeys(str(key) for column in signals.values() for key in column)) if ids is None else ids  # type: ignore[union-attr]
    found = {name: {str(key): item for key, item in column.items()} for name, column in signals.items()}  # type: ignore[union-attr]
    return {name: [column.get(str(key)) for key in known] for name, column in found.items()}, known


def _as_rows(X: Any, where: str) -> list[Any]:
    """One item per row."""
    if isinstance(X, (list, tuple, SensorSignals)):
        items = list(X)
    else:
        array = X if isinstance(X, np.ndarray) else np.asarray(X)
        if array.dtype.kind == "O" and array.ndim == 1:
            items = list(array)
        elif array.ndim not in (2, 3):
            raise ValueError(
                f"{where} must be (n_rows, n_channels, n_timepoints), (n_rows, n_timepoints) or a list of signals, but has "
                f"shape {array.shape}. A single row is X[np.newaxis]."
            )
        else:
            items = list(array)
    if not items:
        raise ValueError(f"{where} has no rows; at least one is needed.")
    return items


def _as_row(item: Any, where: str) -> SignalArray | None:
    if is_missing(item):
        return None
    signal = without_padding(as_signal(item, where))
    return signal if signal.size else None


def _row_names(ids: Column | None, n: int) -> list[str]:
    if ids is None:
        return [f"row {row}" for row in range(n)]
    if len(ids) != n:
        raise ValueError(f"ids has {len(ids)} entries for {n} rows; give one per row.")
    return [f"row {str(key)!r}" for key in ids]


def _common_channels(arrays: Sequence[SignalArray | None], names: Sequence[str], sensor: str | None = None) -> int:
    """The number of channels, which is the same in all rows."""
    of = "" if sensor is None else f" of sensor {sensor!r}"
    first: tuple[int, str] | None = None
    for array, name in zip(arrays, names, strict=False):
        if array is None:
            continue
        if first is None:
            first = (len(array), name)
        elif len(array) != first[0]:
            raise ValueError(
                f"The signals{of} must have the same channels, but {first[1]} has {first[0]} and {name} has {len(array)} (shape "
                f"{array.shape}; channels come first)."
            )
    if first is None:
        raise ValueError(f"No row{of} has a signal: all are None, empty or NaN. Leave the sensor out.")
    return first[0]


def chosen_channels(
    sensors: Mapping[str, ChannelKey] | Sequence[str] | None, n_channels: int
) -> dict[str, NDArray[np.intp]]:
    """Numbers of the channels of each sensor."""
    if sensors is None:
        return {f"channel{c}": np.array([c]) for c in range(n_channels)}
    if not isinstance(sensors, Mapping):
        names = [sensors] if isinstance(sensors, str) else list(sensors)
        if len(names) != n_channels or len(set(names)) != n_channels:
            raise ValueError(
                f"sensors names {len(names)} channels ({', '.join(map(repr, names))}), but X has {n_channels}: give each a "
                "different name, or a dict of sensor name -> channels."
            )
        return {name: np.array([c]) for c, name in enumerate(names)}
    chosen = {}
    for name, key in sensors.items():
        try:
            chosen[name] = np.atleast_1d(np.arange(n_channels)[key])  # type: ignore[index]
        except (IndexError, TypeError) as error:
            raise ValueError(
                f"Sensor {name!r} has the channels {key!r}, but X has the channels 0 to {n_channels - 1}."
            ) from error
        if len(chosen[name]) == 0:
            raise ValueError(f"Sensor {name!r} has no channels; X has the channels 0 to {n_channels - 1}.")
    return chosen


def numbered(sensor: str, n_channels: int) -> list[str]:
    """Names of the channels of a sensor."""
    return [sensor] if n_channels == 1 else [f"{sensor}{c}" for c in range(n_channels)]


def _sensor(
    name: str,
    signals: Sequence[SignalArray | None],
    sampling_rate: float,
    channels: Sequence[str],
    names: Sequence[str],
    gaps: Gaps,
) -> SensorSignals:
    places = [f"{row}, sensor {name!r}" for row in names]
    treated = with_gaps_treated(signals, gaps, places)
    n_channels = next((len(signal) for signal in signals if signal is not None), len(channels))
    if len(channels) != n_channels:
        raise ValueError(
            f"channel_names has {len(channels)} names for sensor {name!r}, which has {n_channels} channels."
        )
    return SensorSignals(treated, sampling_rate, tuple(channels), name=name)
