"""Long tables: one line per sample, with columns for the row or recording, the time, and the channels.

Lines of a sensor are those where all its channels hold a number, so that sensors of different sampling rates can share a
table. Gaps are found in the times that remain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings.clocks import Times, on_regular_clock, rate_of_times, read_times
from cmvmed.recordings.container import Recordings, SensorSignals, is_missing
from cmvmed.recordings.long_recordings import LongRecording
from cmvmed.recordings.row_arrays import rate_of
from cmvmed.recordings.signal_values import Gaps, check_gaps, with_gaps_treated
from cmvmed.recordings.stretches import ArraySamples, ContinuousSignal, Stretch

FloatArray: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = Mapping[str, str | Sequence[str]] | Sequence[str]
Rates: TypeAlias = float | Mapping[str, float] | None


def from_frame(
    frame: Any,
    *,
    id: str,
    time: str | None = None,
    sensors: Columns | None = None,
    labels: str | None = None,
    groups: str | None = None,
    sampling_rate: Rates = None,
    max_gap: float | None = None,
    gaps: Gaps = "missing",
    timezone: str | None = None,
) -> Recordings:
    """Rows in a long DataFrame of pandas, polars or another library that narwhals reads.

    Parameters
    ----------
    frame : DataFrame
        One line per sample.
    id : str
        Column that says which row a line belongs to.
    time : str, optional
        Column of times: seconds, or dates. Lines are sorted by it. None: lines are in order and without gaps, and
        ``sampling_rate`` is needed.
    sensors : mapping of sensor name -> column or columns, or sequence of columns, optional
        None: all other columns of numbers, each a sensor.
    labels, groups : str, optional
        Columns with one value per row; empty cells are unlabeled.
    sampling_rate : float, or mapping of sensor name -> float, optional
        Samples per second; None: from the times, by sensor.
    max_gap : float, optional
        Distances between times up to this many seconds are interpolated, longer ones are gaps. None: one and a half
        sample periods.
    gaps : {"missing", "interpolate", "error"}
        What is done with a row that has gaps in a sensor; see :func:`from_array`.
    timezone : str, optional
        Zone of dates without one; None: UTC. Matters where clocks are changed.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"id": ["a"] * 3 + ["b"] * 4, "t": [0, 0.5, 1, 0, 0.5, 1, 1.5], "acc_x": range(7)})
    >>> from_frame(table, id="id", time="t", sensors={"acc": ["acc_x"]})
    <Recordings: 2 rows, 0 labeled; sensors acc (1 x 2 Hz)>
    """
    check_gaps(gaps)
    table = _LongTable.read(frame, id, time, sensors, (labels, groups), timezone)
    rates = table.rates(sampling_rate)
    signals = {}
    for sensor, columns in table.sensors.items():
        parts = [table.parts(row, sensor, rates[sensor], max_gap) for row in table.rows]
        places = [f"row {name!r}, sensor {sensor!r}" for name in table.rows]
        joined = [_joined(part, rates[sensor], len(columns)) for part in parts]
        signals[sensor] = SensorSignals(with_gaps_treated(joined, gaps, places), rates[sensor], columns)
    columns_of_rows: dict[str, Any] = {
        "labels": None if labels is None else [table.single(labels, row, "label") for row in table.rows],
        "groups": None if groups is None else [table.single(groups, row, "group") for row in table.rows],
    }
    return Recordings(signals, ids=list(table.rows), **columns_of_rows)  # type: ignore[arg-type]


def long_recordings_from_frame(
    frame: Any,
    *,
    time: str,
    recording: str | None = None,
    sensors: Columns | None = None,
    sampling_rate: Rates = None,
    max_gap: float | None = None,
    timezone: str | None = None,
    offsets: Mapping[str, float] | None = None,
) -> list[LongRecording]:
    """Long recordings in a DataFrame with one line per sample, to be cut by :func:`cut_windows`.

    Parameters
    ----------
    frame : DataFrame
    time : str
        Column of times: seconds from the start of the recording, or dates, of which the first is the start.
    recording : str, optional
        Column with the name of the recording; None: one recording, named ``recording``.
    sensors, sampling_rate, max_gap, timezone
        See :func:`from_frame`. Gaps stay gaps: a sensor is missing in the windows that touch them.
    offsets : mapping of sensor name -> float, optional
        Seconds to add to the times of sensors; see :meth:`LongRecording.with_offsets`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from cmvmed.recordings import cut_windows, long_recordings_from_frame
    >>> frame = pd.DataFrame({"time": np.arange(100) / 10, "acc_x": 0.0, "acc_y": 1.0})
    >>> recordings = long_recordings_from_frame(frame, time="time", sensors={"acc": ["acc_x", "acc_y"]})
    >>> cut_windows(recordings, length=2.0)["acc"][0].shape
    (2, 20)
    """
    table = _LongTable.read(frame, recording, time, sensors, (), timezone)
    rates = table.rates(sampling_rate)
    found = []
    for name, rows in table.rows.items():
        zero = float(table.seconds[rows].min()) if table.are_dates else 0.0
        tracks = {}
        for sensor, columns in table.sensors.items():
            parts = table.parts(name, sensor, rates[sensor], max_gap)
            stretches = [Stretch(ArraySamples(values), start - zero) for start, values in parts]
            if stretches:
                tracks[sensor] = ContinuousSignal(stretches, rates[sensor], columns, sensor)
        if not tracks:
            raise ValueError(f"Recording {name!r} has no samples: all channels are empty.")
        long = LongRecording(name, tracks, zero if table.are_dates else None)
        found.append(long.with_offsets({sensor: s for sensor, s in (offsets or {}).items() if sensor in tracks}))
    return found


def annotations_from_frame(
    frame: Any, *, time: str, label: str, recording: str | None = None, timezone: str | None = None
) -> list[tuple[str, float, float, Any]]:
    """Annotations from a column of labels in a DataFrame with one line per sample, for :func:`cut_windows`.

    Consecutive lines with the same label are one annotation, which ends a sample period after its last line; empty cells
    are not annotated.

    Parameters
    ----------
    frame, time, recording, timezone
        As in :func:`long_recordings_from_frame`.
    label : str
        Column of labels.

    Returns
    -------
    list of (recording, start, end, label)

    Examples
    --------
    >>> import pandas as pd
    >>> from cmvmed.recordings import annotations_from_frame
    >>> frame = pd.DataFrame({"time": [0.0, 0.5, 1.0, 1.5], "activity": ["walk", "walk", "run", "run"]})
    >>> annotations_from_frame(frame, time="time", label="activity")
    [('recording', 0.0, 1.0, 'walk'), ('recording', 1.0, 2.0, 'run')]
    """
    native = nw.from_native(frame, eager_only=True)
    for name in (time, label, *([] if recording is None else [recording])):
        _check_column(native, name)
    names = ["recording"] * len(native) if recording is None else _names(native, recording)
    times = read_times(native[time].to_native(), f"Column {time!r}", timezone)
    labels = native[label].to_list()
    found = []
    for name, rows in _lines_by_row(names, times.seconds, time).items():
        seconds = times.seconds[rows] - (times.seconds[rows[0]] if times.are_dates else 0.0)
        period = float(np.median(np.diff(seconds))) if len(rows) > 1 else 0.0
        values = [None if is_missing(labels[row]) or labels[row] == "" else labels[row] for row in rows]
        first = 0
        for stop in range(1, len(rows) + 1):
            gap = stop < len(rows) and seconds[stop] - seconds[stop - 1] > 1.5 * period
            if stop < len(rows) and values[stop] == values[first] and not gap:
                continue
            if values[first] is not None:
                found.append((name, float(seconds[first]), float(seconds[stop - 1]) + period, values[first]))
            first = stop
    return found


@dataclass(frozen=True, eq=False)
class _LongTable:
    """The columns of a long table, sorted by row and time."""

    rows: dict[str, NDArray[np.intp]]  # lines of each row, in the order of time
    seconds: FloatArray
    are_dates: bool
    sensors: dict[str, tuple[str, ...]]
    channels: dict[str, FloatArray]
    others: dict[str, list[Any]]
    has_times: bool

    @classmethod
    def read(
        cls, native: Any, id: str | None, time: str | None, sensors: Columns | None, others: Any, timezone: str | None
    ) -> _LongTable:
        frame = nw.from_native(native, eager_only=True)
        taken = [name for name in (id, time, *others) if name is not None]
        for name in taken:
            _check_column(frame, name)
        if len(frame) == 0:
            raise ValueError("The table has no lines.")
        chosen = _chosen_columns(frame, sensors, taken)
        channels = {name: _numbers(frame, name) for columns in chosen.values() for name in columns}
        names = ["recording"] * len(frame) if id is None else _names(frame, id)
        times = Times(np.arange(len(frame), dtype=np.float64), are_dates=False)
        if time is not None:
            times = read_times(frame[time].to_native(), f"Column {time!r}", timezone)
        rows = _lines_by_row(names, times.seconds, time)
        columns = {name: frame[name].to_list() for name in others if name is not None}
        return cls(rows, times.seconds, times.are_dates, chosen, channels, columns, time is not None)

    def rates(self, given: Rates) -> dict[str, float]:
        """The sampling rate of each sensor, as given or from the times of all rows."""
        found = {}
        for sensor in self.sensors:
            if given is not None and (not isinstance(given, Mapping) or sensor in given):
                found[sensor] = rate_of(sensor, given)
                continue
            if not self.has_times:
                raise ValueError(
                    "Without a column of times the sampling rate is unknown: pass time= or sampling_rate=."
                )
            rates = [rate_of_times(seconds, sensor) for _, seconds, _ in self._samples(sensor) if len(seconds) > 1]
            if not rates:
                raise ValueError(
                    f"No row has two samples of sensor {sensor!r}, so its sampling rate is unknown: pass sampling_rate=."
                )
            found[sensor] = float(np.median(rates))
        return found

    def parts(self, row: str, sensor: str, rate: float, max_gap: float | None) -> list[tuple[float, FloatArray]]:
        """Samples of a sensor without gaps, with the time of the first one."""
        _, seconds, values = self._samples_of(row, sensor)
        if len(seconds) == 0:
            return []
        if not self.has_times:
            gap = np.flatnonzero(np.diff(seconds) > 1.5)
            bounds = np.split(np.arange(len(seconds)), gap + 1)
            return [(float(seconds[rows[0]]) / rate, np.ascontiguousarray(values[rows].T)) for rows in bounds]
        where = f"Row {row!r}, sensor {sensor!r}"
        return on_regular_clock(seconds, values, rate, max_gap=max_gap, where=where)

    def single(self, column: str, row: str, what: str) -> Any:
        """The value of a column that is the same in all lines of a row."""
        values = [self.others[column][line] for line in self.rows[row]]
        distinct = list(dict.fromkeys(value for value in values if not (is_missing(value) or value == "")))
        if len(distinct) > 1:
            raise ValueError(
                f"Row {row!r} has several {what}s in column {column!r}: {distinct[0]!r} and {distinct[1]!r}. Each row has one; "
                "if the column changes within long recordings, use long_recordings_from_frame and cut_windows with annotations."
            )
        return distinct[0] if distinct else None

    def _samples(self, sensor: str) -> Iterator[tuple[str, FloatArray, FloatArray]]:
        return (self._samples_of(row, sensor) for row in self.rows)

    def _samples_of(self, row: str, sensor: str) -> tuple[str, FloatArray, FloatArray]:
        """Times and (n, channels) values of the lines in which all channels of the sensor hold a number."""
        lines = self.rows[row]
        values = np.column_stack([self.channels[name][lines] for name in self.sensors[sensor]])
        complete = np.isfinite(values).all(axis=1)
        return row, self.seconds[lines][complete], values[complete]


def _joined(parts: Sequence[tuple[float, FloatArray]], rate: float, n_channels: int) -> Any:
    """The parts of a row as one signal on a regular clock, NaN in the gaps between them."""
    if len(parts) <= 1:
        return parts[0][1] if parts else None
    first = parts[0][0]
    places = [round((start - first) * rate) for start, _ in parts]
    signal = np.full((n_channels, places[-1] + parts[-1][1].shape[1]), np.nan)
    for place, (_, values) in zip(places, parts, strict=True):
        signal[:, place : place + values.shape[1]] = values
    return signal


def _check_column(frame: Any, name: str) -> None:
    if name not in frame.columns:
        raise ValueError(f"The table has no column {name!r}; its columns are {', '.join(map(repr, frame.columns))}.")


def _chosen_columns(frame: Any, sensors: Columns | None, taken: Sequence[str]) -> dict[str, tuple[str, ...]]:
    if sensors is None:
        free = [name for name in frame.columns if name not in taken and frame[name].dtype.is_numeric()]
        if not free:
            raise ValueError(
                f"The table has no column of numbers besides {', '.join(map(repr, taken))}; name the channels with sensors=."
            )
        return {str(name): (name,) for name in free}
    pairs = sensors.items() if isinstance(sensors, Mapping) else [(name, name) for name in sensors]
    chosen = {name: (columns,) if isinstance(columns, str) else tuple(columns) for name, columns in pairs}
    for sensor, columns in chosen.items():
        if not columns:
            raise ValueError(f"Sensor {sensor!r} has no columns.")
        for name in columns:
            _check_column(frame, name)
    return chosen


def _numbers(frame: Any, name: str) -> FloatArray:
    series = frame[name]
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise ValueError(f"Column {name!r} must hold numbers, but its type is {series.dtype}; convert it first.")
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _names(frame: Any, column: str) -> list[str]:
    values = frame[column].to_list()
    empty = next((row for row, value in enumerate(values) if is_missing(value) or value == ""), None)
    if empty is not None:
        raise ValueError(f"Column {column!r} is empty in line {empty}, which therefore belongs to no row.")
    return [str(value) for value in values]


def _lines_by_row(names: Sequence[str], seconds: FloatArray, time: str | None) -> dict[str, NDArray[np.intp]]:
    """Lines of each row in the order of time; rows in the order of their first lines."""
    positions: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        positions.setdefault(name, []).append(row)
    ordered_lines = {}
    for name, rows in positions.items():
        members = np.array(rows, dtype=np.intp)
        if not np.isfinite(seconds[members]).all():
            row = members[~np.isfinite(seconds[members])][0]
            raise ValueError(f"Row {name!r} has no time in line {row} (column {time!r}); fill it, or remove the line.")
        ordered = members[np.argsort(seconds[members], kind="stable")]
        repeated = np.flatnonzero(np.diff(seconds[ordered]) <= 0)
        if len(repeated):
            raise ValueError(
                f"Row {name!r} has two lines at the time {seconds[ordered[repeated[0]]]:.6f} s (column {time!r}). Does the table "
                "hold several sensors below each other? Give each its own columns, or make id name the sensor too."
            )
        ordered_lines[name] = ordered
    return ordered_lines
