"""Windows of long recordings: cases with labels from annotations, read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings.annotations import Intervals, read_annotations
from cmvmed.recordings.container import LazySequence, Recordings, SensorSignals, SignalArray, first_repeated
from cmvmed.recordings.long_recordings import LongRecording
from cmvmed.recordings.signal_checks import is_same_rate
from cmvmed.recordings.stretches import ContinuousSignal

ROUNDING = 1e-6  # of a step


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
        One case per window: groups are the names of the recordings, times the start and end in seconds. Windows begin
        at the first sample of any sensor. A sensor with a gap in a window is missing (None) there; windows that no
        sensor covers are left out. Samples are read when a signal is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.recordings import long_recording
    >>> day = long_recording("monday", {"imu": np.zeros((3, 6000)), "mic": np.zeros(480_000)}, {"imu": 100, "mic": 8000})
    >>> windows = cut_windows(day, [("monday", 0, 15, "walk"), ("monday", 30, 45, "rest")], length=10, step=5)
    >>> windows, windows.labels.tolist()[:4]
    (<Recordings: 11 cases, 7 labeled; sensors imu (3 x 100 Hz), mic (1 x 8000 Hz)>, ['walk', 'walk', 'walk', None])
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
    if room < -ROUNDING * step:
        return []
    count = int(np.floor(room / step + ROUNDING)) + 1
    starts = (first + step * np.arange(count)).tolist()
    if end == "shift" and room - step * (count - 1) > ROUNDING * step:
        starts.append(first + room)
    return list(starts)
