"""Long recordings: several sensors on one clock, from arrays, files, or stretches of them with gaps between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cmvmed.recordings.clocks import date_seconds
from cmvmed.recordings.row_arrays import numbered, rate_of
from cmvmed.recordings.signal_values import as_signal
from cmvmed.recordings.sound_files import SOUND_FORMATS, SoundSamples, sound_rate
from cmvmed.recordings.stretches import (
    ArraySamples,
    ContinuousSignal,
    MappedSamples,
    Samples,
    Stretch,
    check_channels_first,
)

Source: TypeAlias = ArrayLike | str | PathLike[str] | Samples
Track: TypeAlias = Source | Sequence[tuple[Any, Source]]


@dataclass(frozen=True, eq=False)
class LongRecording:
    """Several sensors on one clock, made by :func:`long_recording` or a reader.

    Parameters
    ----------
    name : str
        Names the recording in annotations and is the group of its windows.
    sensors : dict of sensor name -> ContinuousSignal
        Times are in seconds from the start of the recording.
    start : float, optional
        Start of the recording in seconds since 1970 UTC, if it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.recordings import long_recording
    >>> day = long_recording("monday", {"wrist": np.zeros((3, 1000))}, 50.0)
    >>> day.name, list(day.sensors)
    ('monday', ['wrist'])
    """

    name: str
    sensors: Mapping[str, ContinuousSignal]
    start: float | None = None

    def __post_init__(self) -> None:
        if not self.sensors:
            raise ValueError(f"Recording {self.name!r} has no sensors.")
        named = {name: replace(track, name=name) for name, track in self.sensors.items()}
        object.__setattr__(self, "sensors", named)

    @property
    def span(self) -> tuple[float, float]:
        """Time of the first sample and after the last one of all sensors, in seconds."""
        return min(t.start for t in self.sensors.values()), max(t.end for t in self.sensors.values())

    def with_offsets(self, seconds: Mapping[str, float]) -> LongRecording:
        """Correct clocks of sensors: the seconds to add to the times of each.

        A sensor whose clock is 0.4 s late, so that it stamps an event at 10 s with 10.4, has the offset -0.4.
        """
        for name, offset in seconds.items():
            if name not in self.sensors:
                raise ValueError(f"There is no sensor {name!r}; the sensors are {', '.join(map(repr, self.sensors))}.")
            if not np.isfinite(offset):
                raise ValueError(f"The offset of sensor {name!r} must be a number of seconds, got {offset!r}.")
        moved = {name: track.shifted(seconds.get(name, 0.0)) for name, track in self.sensors.items()}
        return replace(self, sensors=moved)

    def __repr__(self) -> str:
        start, end = self.span
        shown = ", ".join(
            f"{name} ({len(track.channel_names)} x {track.sampling_rate:g} Hz)" for name, track in self.sensors.items()
        )
        return f"<LongRecording {self.name!r}: {end - start:.6g} s; sensors {shown}>"


def long_recording(
    name: str,
    sensors: Mapping[str, Track],
    sampling_rate: float | Mapping[str, float] | None = None,
    *,
    start: Any = None,
    timezone: str | None = None,
    offsets: Mapping[str, float] | None = None,
) -> LongRecording:
    """Make a recording of several sensors from arrays and sound files.

    Parameters
    ----------
    name : str
        Names the recording in annotations.
    sensors : mapping of sensor name -> track
        A track is an array (n_channels, n_samples) or (n_samples,), NaN where samples are missing; the path of a sound
        file or of an .npy file, read when needed; or, if the sensor was not recorded throughout, a list of pairs
        (time, array or path) with the time of the first sample: seconds from the start of the recording, or a date.
    sampling_rate : float, or mapping of sensor name -> float, optional
        Samples per second; None: that of the sound files.
    start : date, optional
        When the recording started, for annotations with dates: datetime, datetime64, or text in ISO 8601. Needed if the
        times of stretches are dates.
    timezone : str, optional
        Zone of dates without one, such as ``"Europe/Paris"``; None: UTC.
    offsets : mapping of sensor name -> float, optional
        Seconds to add to the times of sensors with another clock; see :meth:`LongRecording.with_offsets`.

    Examples
    --------
    >>> import numpy as np
    >>> one_hour = np.zeros((3, 360_000))
    >>> long_recording("monday", {"imu": one_hour, "belt": [(0, np.zeros(50_000)), (1800, np.zeros(90_000))]},
    ...                {"imu": 100, "belt": 50}, offsets={"belt": -0.4})
    <LongRecording 'monday': 3600.4 s; sensors imu (3 x 100 Hz), belt (1 x 50 Hz)>
    """
    if not isinstance(sensors, Mapping) or not sensors:
        raise TypeError("sensors must be a dict of sensor name -> array, path or list of (time, array or path).")
    zero = None if start is None else date_seconds(start, "start", timezone)
    tracks = {}
    for sensor, track in sensors.items():
        parts: Any = track if _is_list_of_pairs(track) else [(0.0, track)]
        rate = _track_rate(sensor, parts, sampling_rate)
        stretches = [
            stretch
            for time, source in parts
            for stretch in _stretches(
                source, _relative(time, zero, sensor, timezone), rate, f"{name!r}, sensor {sensor!r}"
            )
        ]
        if not stretches:
            raise ValueError(f"Sensor {sensor!r} of recording {name!r} has no samples; leave it out.")
        stretches.sort(key=lambda stretch: stretch.start)
        channels = tuple(numbered(sensor, stretches[0].samples.n_channels))
        tracks[sensor] = ContinuousSignal(stretches, rate, channels, sensor)
    return LongRecording(name, tracks, zero).with_offsets(offsets or {})


def _is_list_of_pairs(track: Any) -> bool:
    return (
        isinstance(track, (list, tuple))
        and len(track) > 0
        and all(isinstance(entry, tuple) and len(entry) == 2 for entry in track)
    )


def _track_rate(sensor: str, parts: Sequence[tuple[Any, Any]], rates: float | Mapping[str, float] | None) -> float:
    is_given = rates is not None and (not isinstance(rates, Mapping) or sensor in rates)
    given = rate_of(sensor, rates) if is_given else None  # type: ignore[arg-type]
    found = {sound_rate(source): source for _, source in parts if _is_sound(source)}
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise ValueError(
            f"The files of sensor {sensor!r} have different sampling rates: {one:g} Hz ('{first}') and {other:g} Hz "
            f"('{second}'). Convert them to one rate, or make them different sensors."
        )
    if given is None and not found:
        raise ValueError(f"The sampling rate of sensor {sensor!r} is unknown: pass sampling_rate= in Hz.")
    if given is not None and found and given not in found:
        rate, file = next(iter(found.items()))
        raise ValueError(
            f"sampling_rate says {given:g} Hz for sensor {sensor!r}, but '{file}' has {rate:g} Hz. Leave it out, and use "
            "resample afterwards."
        )
    return next(iter(found)) if given is None else given


def _is_sound(source: Any) -> bool:
    return isinstance(source, (str, PathLike)) and Path(fspath(source)).suffix.lower() in SOUND_FORMATS


def _relative(time: Any, zero: float | None, sensor: str, timezone: str | None) -> float:
    """Seconds from the start of the recording."""
    if isinstance(time, (int, float, np.integer, np.floating)):
        return float(time)
    if zero is None:
        raise ValueError(f"Stretches of sensor {sensor!r} have dates, so the recording needs one too: pass start=.")
    return date_seconds(time, f"The time of a stretch of sensor {sensor!r}", timezone) - zero


def _stretches(source: Any, start: float, rate: float, where: str) -> list[Stretch]:
    """An array or file as stretches without gaps."""
    if _is_sound(source):
        return [Stretch(SoundSamples(str(source)), start, str(source))]
    if isinstance(source, (str, PathLike)):
        return [Stretch(MappedSamples.open(source), start, str(source))]
    if hasattr(source, "read") and hasattr(source, "n_samples"):
        return [Stretch(source, start)]
    return stretches_of_array(source, start, rate, where)


def stretches_of_array(
    values: ArrayLike, start: float, rate: float, where: str, file: str | None = None
) -> list[Stretch]:
    """The parts of (n_channels, n_samples) between samples that are NaN or infinite in any channel."""
    signal = as_signal(values, where)
    check_channels_first(signal.shape, where)
    finite = np.isfinite(signal).all(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], finite, [False]]).astype(np.int8)))
    return [
        Stretch(ArraySamples(signal[:, first:stop]), start + first / rate, file)
        for first, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    ]
