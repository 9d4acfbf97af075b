"""Windows of long recordings: rows with labels from annotations, read when they are asked for.

An annotation says which class was observed from when to when. Of a window [t, t + L), ``overlap_label`` takes the class
that annotations give to the largest part of it, if that is at least the share ``min_overlap`` of L; ``center_label``
takes the class of the annotation that holds its center t + L/2. If two classes have equal claims, the window is not
labeled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings.clocks import read_times
from cmvmed.recordings.container import (
    LazySequence,
    Recordings,
    SensorSignals,
    SignalArray,
    first_repeated,
    is_missing,
)
from cmvmed.recordings.long_recordings import LongRecording
from cmvmed.recordings.signal_values import is_same_rate
from cmvmed.recordings.stretches import ContinuousSignal

ANNOTATION_COLUMNS = ("start", "end", "label")
SAME_TIME = 1e-9  # seconds: shorter differences are rounding errors
SAME_STEP = 1e-6  # of a step


@dataclass(frozen=True, eq=False)
class WindowSignals(LazySequence):
    """The windows of one sensor, read when they are asked for; None where there is a gap or the sensor is missing."""

    tracks: Sequence[ContinuousSignal | None]  # one per recording
    recording: NDArray[np.intp]  # of each window
    starts: NDArray[np.float64]  # seconds
    n_samples: int

    def __len__(self) -> int:
        return len(self.starts)

    def item(self, row: int) -> SignalArray | None:
        """The item at a position."""
        track = self.tracks[self.recording[row]]
        window = None if track is None else track.read(float(self.starts[row]), self.n_samples)
        return None if window is None or not np.isfinite(window).all() else window


@dataclass(frozen=True, eq=False)
class WindowFiles(LazySequence):
    """The file that each window begins in."""

    windows: WindowSignals

    def __len__(self) -> int:
        return len(self.windows)

    def item(self, row: int) -> str | None:
        """The item at a position."""
        track = self.windows.tracks[self.windows.recording[row]]
        return None if track is None else track.file_at(float(self.windows.starts[row]))


def cut_windows(
    recordings: LongRecording | Sequence[LongRecording],
    annotations: Any = None,
    *,
    length: float,
    step: float | None = None,
    label: Literal["majority", "center"] = "majority",
    min_overlap: float = 0.5,
    end: Literal["drop", "shift"] = "drop",
    timezone: str | None = None,
) -> Recordings:
    """Cut long recordings into windows, with labels from annotations.

    Parameters
    ----------
    recordings : LongRecording or sequence of them
        A sensor may be missing in some recordings.
    annotations : DataFrame, or list of (recording, start, end, label), optional
        Columns recording, start, end and label. Times are seconds from the start of the recording, or dates if the
        recordings have a start. Empty labels are unlabeled. A single recording needs no column recording.
    length : float
        Length of a window in seconds; at a sensor with rate r it has round(length r) samples.
    step : float, optional
        Distance between the starts of two windows in seconds; None: ``length``.
    label : {"majority", "center"}
        "majority": the class with the largest part of the window, if at least ``min_overlap`` of it is annotated with
        the class. "center": the class at the center of the window. Windows without such a class are kept, unlabeled,
        and so are those with two classes of equal claim.
    min_overlap : float
        Smallest share of the window that its class has, for "majority".
    end : {"drop", "shift"}
        The last samples of a recording that fill no window: left out, or cut as a last window that overlaps more with
        the one before.
    timezone : str, optional
        Zone of dates in annotations without one; None: UTC.

    Returns
    -------
    Recordings
        One row per window: groups are the names of the recordings, times the start and end in seconds. Windows begin
        at the first sample of any sensor. A sensor with a gap in a window is missing (None) there; windows that no
        sensor covers are left out. Samples are read when a signal is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.recordings import long_recording
    >>> day = long_recording("monday", {"imu": np.zeros((3, 6000)), "mic": np.zeros(480_000)}, {"imu": 100, "mic": 8000})
    >>> windows = cut_windows(day, [("monday", 0, 15, "walk"), ("monday", 30, 45, "rest")], length=10, step=5)
    >>> windows, windows.labels.tolist()[:4]
    (<Recordings: 11 rows, 7 labeled; sensors imu (3 x 100 Hz), mic (1 x 8000 Hz)>, ['walk', 'walk', 'walk', None])
    """
    several = [recordings] if isinstance(recordings, LongRecording) else list(recordings)
    _check_parameters(several, length, step, label, min_overlap, end)
    rates = _common_rates(several)
    counts = {name: round(length * rate) for name, rate in rates.items()}
    for name, count in counts.items():
        if count < 1:
            raise ValueError(
                f"A window of {length:g} s is shorter than one sample of sensor {name!r} ({rates[name]:g} Hz)."
            )
    starts, owners = _covered_windows(several, length, length if step is None else step, end, counts)
    if len(starts) == 0:
        longest = max(recording.span[1] - recording.span[0] for recording in several)
        raise ValueError(
            f"No window of {length:g} s fits: the longest recording lasts {longest:.6g} s, or each has gaps. Is the sampling "
            "rate right?"
        )
    sensors = {}
    for name, rate in rates.items():
        tracks = [recording.sensors.get(name) for recording in several]
        windows = WindowSignals(tracks, owners, starts, counts[name])
        channels = next(track.channel_names for track in tracks if track is not None)
        sensors[name] = SensorSignals(windows, rate, channels, files=WindowFiles(windows), name=name)
    ends = starts + length
    names = [several[owner].name for owner in owners]
    labels = None
    if annotations is not None:
        intervals = read_annotations(annotations, several, timezone)
        labels = [
            _label(intervals[name], a, b, label, min_overlap)
            for name, a, b in zip(names, starts.tolist(), ends.tolist(), strict=True)
        ]
    ids: Any = [f"{name}@{_shown(start)}" for name, start in zip(names, starts.tolist(), strict=True)]
    return Recordings(
        sensors,
        ids=ids,
        labels=labels,  # type: ignore[arg-type]
        groups=names,  # type: ignore[arg-type]
        times=np.column_stack([starts, ends]),
    )


def _label(intervals: Intervals, start: float, end: float, rule: str, min_overlap: float) -> Any:
    if rule == "center":
        return intervals.center_label(start, end)
    return intervals.overlap_label(start, end, min_overlap)


def _shown(seconds: float) -> str:
    return np.format_float_positional(seconds, precision=6, trim="-")


def _check_parameters(
    recordings: Sequence[LongRecording], length: float, step: float | None, label: str, min_overlap: float, end: str
) -> None:
    if not recordings:
        raise ValueError("There are no recordings to cut.")
    repeated = first_repeated([recording.name for recording in recordings])
    if repeated is not None:
        raise ValueError(
            f"Two recordings have the name {repeated!r}; give each its own, which annotations can refer to."
        )
    for name, value in (("length", length), ("step", length if step is None else step)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number of seconds, got {value!r}.")
    if label not in ("majority", "center"):
        raise ValueError(f'label must be "majority" or "center", got {label!r}.')
    if not 0 <= min_overlap <= 1:
        raise ValueError(f"min_overlap must be between 0 and 1, got {min_overlap!r}.")
    if end not in ("drop", "shift"):
        raise ValueError(f'end must be "drop" or "shift", got {end!r}.')


def _common_rates(recordings: Sequence[LongRecording]) -> dict[str, float]:
    """The sampling rate of each sensor, which is the same in all recordings up to the tolerance of clocks."""
    first: dict[str, tuple[str, ContinuousSignal]] = {}
    for recording in recordings:
        for name, track in recording.sensors.items():
            where, other = first.setdefault(name, (recording.name, track))
            if not is_same_rate(track.sampling_rate, other.sampling_rate):
                raise ValueError(
                    f"Sensor {name!r} has {other.sampling_rate:g} Hz in recording {where!r} and {track.sampling_rate:g} Hz in "
                    f"{recording.name!r}. Bring both to one rate with resample, or give the sensors different names."
                )
            if len(track.channel_names) != len(other.channel_names):
                raise ValueError(
                    f"Sensor {name!r} has {len(other.channel_names)} channels in recording {where!r} and "
                    f"{len(track.channel_names)} in {recording.name!r}."
                )
    return {name: track.sampling_rate for name, (_, track) in first.items()}


def _covered_windows(
    recordings: Sequence[LongRecording], length: float, step: float, end: str, counts: dict[str, int]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Starts of the windows that at least one sensor covers, and the number of their recording."""
    starts: list[float] = []
    owners: list[int] = []
    for number, recording in enumerate(recordings):
        tracks = [(track, counts[name]) for name, track in recording.sensors.items()]
        for start in window_starts(*recording.span, length, step, end):
            if any(track.covers(start, count) for track, count in tracks):
                starts.append(start)
                owners.append(number)
    return np.array(starts, dtype=np.float64), np.array(owners, dtype=np.intp)


def window_starts(first: float, last: float, length: float, step: float, end: str) -> list[float]:
    """Starts of windows within [first, last)."""
    room = last - first - length
    if room < -SAME_STEP * step:
        return []
    count = int(np.floor(room / step + SAME_STEP)) + 1
    starts = (first + step * np.arange(count)).tolist()
    if end == "shift" and room - step * (count - 1) > SAME_STEP * step:
        starts.append(first + room)
    return list(starts)


@dataclass(frozen=True)
class Intervals:
    """The annotations of one recording, sorted by start; unlabeled ones are left out."""

    starts: NDArray[np.float64]  # seconds from the start of the recording
    ends: NDArray[np.float64]
    labels: Sequence[Any]

    @cached_property
    def longest(self) -> float:
        """Duration of the longest annotation, in seconds."""
        return float(np.max(self.ends - self.starts, initial=0.0))

    def touching(self, start: float, end: float) -> range:
        """Positions that include all intervals that overlap with [start, end)."""
        return range(bisect_left(self.starts, start - self.longest), bisect_left(self.starts, end))

    def overlap_label(self, start: float, end: float, min_overlap: float) -> Any:
        """The class with the largest part of [start, end), or None."""
        parts: dict[Any, float] = defaultdict(float)
        for i in self.touching(start, end):
            parts[self.labels[i]] += max(0.0, min(end, self.ends[i]) - max(start, self.starts[i]))
        if not parts:
            return None
        ordered = sorted(parts.items(), key=lambda part: -part[1])
        largest = ordered[0][1]
        is_tie = len(ordered) > 1 and largest - ordered[1][1] <= SAME_TIME
        enough = largest > 0 and largest >= min_overlap * (end - start) - SAME_TIME
        return None if is_tie or not enough else ordered[0][0]

    def center_label(self, start: float, end: float) -> Any:
        """The class of the annotation that holds the center of [start, end), or None."""
        center = (start + end) / 2
        found = {self.labels[i] for i in self.touching(start, end) if self.starts[i] <= center < self.ends[i]}
        return found.pop() if len(found) == 1 else None


def read_annotations(
    annotations: Any, recordings: Sequence[LongRecording], timezone: str | None = None
) -> dict[str, Intervals]:
    """Annotations by the name of the recording.

    ``annotations`` is a DataFrame with the columns start, end, label and, unless there is one recording only,
    recording; or a list of such tuples (recording first) or dicts.
    """
    columns = _columns(annotations, single=len(recordings) == 1)
    by_name = {recording.name: recording for recording in recordings}
    names = columns.get("recording", [next(iter(by_name))] * len(columns["label"]))
    names = [str(name) for name in names]
    unknown = next((name for name in names if name not in by_name), None)
    if unknown is not None:
        raise ValueError(
            f"Annotations name the recording {unknown!r}, but the recordings are {', '.join(map(repr, list(by_name)[:6]))}"
            f"{' ...' if len(by_name) > 6 else ''}."
        )
    starts = _relative_times("start", columns["start"], names, by_name, timezone)
    ends = _relative_times("end", columns["end"], names, by_name, timezone)
    _check_order(names, starts, ends)
    found = {}
    for name in by_name:
        rows = [row for row, other in enumerate(names) if other == name and not _is_unlabeled(columns["label"][row])]
        rows.sort(key=lambda row: starts[row])
        found[name] = Intervals(starts[rows], ends[rows], [columns["label"][row] for row in rows])
    return found


def _is_unlabeled(label: Any) -> bool:
    return is_missing(label) or (isinstance(label, str) and not label.strip())


def _columns(annotations: Any, *, single: bool) -> dict[str, list[Any]]:
    frame = nw.from_native(annotations, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns: dict[str, Any] = {str(name).strip().lower(): frame[name] for name in frame.columns}
        columns = {name: _as_list(series) for name, series in columns.items()}
    elif isinstance(annotations, Mapping):
        columns = {str(name).lower(): list(values) for name, values in annotations.items()}
    else:
        columns = _columns_of_rows(annotations)
    lacking = [name for name in (*ANNOTATION_COLUMNS, *(() if single else ("recording",))) if name not in columns]
    if lacking:
        needed = "start, end and label" + ("" if single else ", and recording, because there are several recordings")
        raise ValueError(f"The annotations have no column {lacking[0]!r}; they need {needed}.")
    return columns


def _as_list(series: nw.Series[Any]) -> Any:
    """Values of a column; dates stay a Series, which knows its time zone."""
    return series.to_native() if isinstance(series.dtype, nw.Datetime) else series.to_list()


def _columns_of_rows(rows: Any) -> dict[str, list[Any]]:
    if not isinstance(rows, Iterable) or isinstance(rows, str):
        raise TypeError(
            f"annotations must be a DataFrame or a list of (recording, start, end, label), got {type(rows).__name__}."
        )
    columns: dict[str, list[Any]] = {name: [] for name in ("recording", *ANNOTATION_COLUMNS)}
    for number, row in enumerate(rows):
        entry = row if isinstance(row, Mapping) else dict(zip(("recording", *ANNOTATION_COLUMNS), row, strict=False))
        if len(entry) != 4 or set(entry) != set(columns):
            raise ValueError(f"Annotation {number} must be (recording, start, end, label), got {row!r}.")
        for name, value in entry.items():
            columns[name].append(value)
    return columns


def _relative_times(
    column: str, values: Any, names: Sequence[str], recordings: Mapping[str, LongRecording], timezone: str | None
) -> NDArray[np.float64]:
    """Seconds from the start of the recording of each annotation."""
    times = read_times(values, f"Column {column!r} of the annotations", timezone)
    missing = np.flatnonzero(~np.isfinite(times.seconds))
    if len(missing):
        raise ValueError(
            f"Annotation {missing[0]} (recording {names[missing[0]]!r}) has no {column}; fill it, or remove the row."
        )
    if not times.are_dates:
        return times.seconds
    without = next((name for name in names if recordings[name].start is None), None)
    if without is not None:
        raise ValueError(
            f"Annotations have dates, but it is not known when recording {without!r} started: pass start= to it, or write "
            "seconds from its start."
        )
    return times.seconds - np.array([recordings[name].start for name in names], dtype=np.float64)


def _check_order(names: Sequence[str], starts: NDArray[np.float64], ends: NDArray[np.float64]) -> None:
    wrong = np.flatnonzero(ends <= starts)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"Annotation {row} of recording {names[row]!r} ends at {ends[row]:.6g} s, not after its start at "
            f"{starts[row]:.6g} s. Give each annotation a duration."
        )
