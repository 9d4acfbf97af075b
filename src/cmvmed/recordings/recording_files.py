"""One file as a long recording: sound, .npy, HDF5, EDF or BDF, and MiniSEED.

EDF and BDF files are read in parts with pyedflib (BSD license); each of their signals has its own sampling rate. MiniSEED
files of seismic networks, versions 2 and 3, are decoded at once with pymseed (Apache license).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cmvmed._file_errors import existing_file
from cmvmed._optional import import_optional
from cmvmed.recordings.clocks import date_seconds
from cmvmed.recordings.container import SignalArray
from cmvmed.recordings.hdf5_files import HDF5_FORMATS, Hdf5Samples, dataset_channels, dataset_rate, open_hdf5
from cmvmed.recordings.long_recordings import LongRecording
from cmvmed.recordings.row_arrays import chosen_channels, numbered
from cmvmed.recordings.sound_files import SOUND_FORMATS, SoundSamples, sound_rate
from cmvmed.recordings.stretches import (
    ArraySamples,
    ContinuousSignal,
    MappedSamples,
    Samples,
    Stretch,
    check_channels_first,
)

EDF_FORMATS = (".edf", ".bdf")
MSEED_FORMATS = (".mseed", ".miniseed", ".ms", ".mseed3", ".ms3")
RECORDING_FORMATS = (*SOUND_FORMATS, ".npy", *HDF5_FORMATS, *EDF_FORMATS, *MSEED_FORMATS)
Sensors: TypeAlias = Mapping[str, Any] | Sequence[str] | None


def read_recording(
    path: str | PathLike[str],
    sensors: Sensors = None,
    *,
    sampling_rate: float | Mapping[str, float] | None = None,
    name: str | None = None,
    start: Any = None,
    timezone: str | None = None,
    offsets: Mapping[str, float] | None = None,
) -> LongRecording:
    """Open one file as a long recording; samples are read when windows are asked for.

    Parameters
    ----------
    path : path
        wav, flac, ogg or aiff; .npy (n_channels, n_samples); HDF5, with one dataset (n_channels, n_samples) or
        (n_samples,) per sensor; EDF or BDF; MiniSEED, which is decoded at once.
    sensors : mapping of sensor name -> channels, or sequence of names, optional
        Channels are numbers, lists or slices (sound, .npy), names of datasets (HDF5), labels or lists of labels (EDF,
        MiniSEED). None: each channel, dataset or signal is a sensor.
    sampling_rate : float, or mapping of sensor name -> float, optional
        For .npy files, and HDF5 files without the attribute ``sampling_rate``.
    name : str, optional
        Names the recording in annotations; None: the name of the file without its ending.
    start : date, optional
        When the recording started; None: as in the file, if it says so (EDF, MiniSEED, attribute ``start`` of HDF5).
    timezone : str, optional
        Zone of dates without one; None: UTC.
    offsets : mapping of sensor name -> float, optional
        Seconds to add to the times of sensors; see :meth:`LongRecording.with_offsets`.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.recordings import cut_windows, read_recording
    >>> np.save("monday.npy", np.zeros((2, 600)))
    >>> day = read_recording("monday.npy", ["left", "right"], sampling_rate=100.0)
    >>> len(cut_windows(day, length=2.0))
    3
    """
    file = Path(fspath(path))
    suffix = file.suffix.lower()
    if suffix not in RECORDING_FORMATS:
        raise ValueError(f"The ending of '{file}' is not known; recordings end in {', '.join(RECORDING_FORMATS)}.")
    existing_file(file)
    zero: float | None = None
    if suffix in EDF_FORMATS:
        tracks, zero = _edf_tracks(str(file), sensors, timezone)
    elif suffix in MSEED_FORMATS:
        tracks, zero = _mseed_tracks(str(file), sensors)
    elif suffix in HDF5_FORMATS:
        tracks, zero = _hdf5_tracks(str(file), sensors, sampling_rate, timezone)
    else:
        tracks = _channel_tracks(str(file), suffix, sensors, sampling_rate)
    given = zero if start is None else date_seconds(start, "start", timezone)
    return LongRecording(file.stem if name is None else name, tracks, given).with_offsets(offsets or {})


def _track(sensor: str, samples: Samples, rate: float, file: str, channels: Sequence[str] | None = None) -> Any:
    names = tuple(channels or numbered(sensor, samples.n_channels))
    return ContinuousSignal([Stretch(samples, 0.0, file)], rate, names, sensor)


def _channel_tracks(path: str, suffix: str, sensors: Sensors, rates: Any) -> dict[str, ContinuousSignal]:
    """Channels of a sound or .npy file."""
    if suffix == ".npy":
        if rates is None or isinstance(rates, Mapping):
            raise ValueError(f"'{path}' has no sampling rate: pass sampling_rate= in Hz, one number for all channels.")
        mapped = MappedSamples.open(path)
        chosen = chosen_channels(sensors, mapped.n_channels)
        return {
            name: _track(
                name, MappedSamples(path, len(rows), mapped.n_samples, tuple(rows.tolist())), float(rates), path
            )
            for name, rows in chosen.items()
        }
    if rates is not None and rates != sound_rate(path):
        raise ValueError(
            f"sampling_rate is {rates!r}, but '{path}' has {sound_rate(path):g} Hz. Use resample afterwards."
        )
    chosen = chosen_channels(sensors, SoundSamples(path).n_channels)
    return {
        name: _track(name, SoundSamples(path, tuple(rows.tolist())), sound_rate(path), path)
        for name, rows in chosen.items()
    }


def _hdf5_tracks(
    path: str, sensors: Sensors, rates: Any, timezone: str | None
) -> tuple[dict[str, ContinuousSignal], float | None]:
    tracks = {}
    with open_hdf5(path) as file:
        found: list[str] = []
        file.visititems(
            lambda name, item: found.append(name) if hasattr(item, "shape") and item.ndim in (1, 2) else None
        )
        places = _named(sensors, found, path)
        for sensor, (name, *more) in places.items():
            if more:
                raise ValueError(f"Sensor {sensor!r} must be one dataset of '{path}', got {[name, *more]!r}.")
            dataset = file[name]
            shape = dataset.shape if dataset.ndim == 2 else (1, *dataset.shape)
            check_channels_first(shape, f"'{path}', dataset {name!r}")
            rate = dataset_rate(path, sensor, dataset, file, rates)
            channels = dataset_channels(sensor, dataset, shape[0])
            tracks[sensor] = _track(sensor, Hdf5Samples(path, name, *shape), rate, path, channels)
        stamp = file.attrs.get("start")
    stamp = stamp.decode() if isinstance(stamp, bytes) else stamp
    return tracks, None if stamp is None else date_seconds(stamp, f"The attribute start of '{path}'", timezone)


def _edf_tracks(path: str, sensors: Sensors, timezone: str | None) -> tuple[dict[str, ContinuousSignal], float]:
    signals, start = edf_signals(path, timezone)
    by_label = {signal.label: signal for signal in signals}
    if len(by_label) < len(signals):  # labels that occur twice get the number of the signal
        by_label = {f"{signal.label} {signal.number}": signal for signal in signals}
    tracks = {}
    for sensor, labels in _named(sensors, list(by_label), path).items():
        members = [by_label[label] for label in labels]
        rates = {(signal.sampling_rate, signal.n_samples) for signal in members}
        if len(rates) > 1:
            raise ValueError(
                f"The signals {labels!r} of '{path}' have different rates and cannot be one sensor {sensor!r}."
            )
        samples = EdfSamples(path, tuple(signal.number for signal in members), members[0].n_samples)
        tracks[sensor] = _track(sensor, samples, members[0].sampling_rate, path, labels)
    return tracks, start


def _mseed_tracks(path: str, sensors: Sensors) -> tuple[dict[str, ContinuousSignal], float]:
    segments = mseed_segments(path)
    zero = min(segment.start for segment in segments)
    by_source: dict[str, list[MseedSegment]] = {}
    for segment in segments:
        by_source.setdefault(segment.source, []).append(segment)
    tracks = {}
    for sensor, (source, *more) in _named(sensors, list(by_source), path).items():
        if more:
            raise ValueError(f"Sensor {sensor!r} must be one source of '{path}', got {[source, *more]!r}.")
        members = sorted(by_source[source], key=lambda segment: segment.start)
        stretches = [Stretch(ArraySamples(segment.values), segment.start - zero, path) for segment in members]
        tracks[sensor] = ContinuousSignal(stretches, members[0].sampling_rate, (source,), sensor)
    return tracks, zero


def _named(sensors: Sensors, known: Sequence[str], path: str) -> dict[str, list[str]]:
    """Names of datasets or signals of each sensor."""
    if not known:
        raise ValueError(f"'{path}' holds no signals of (n_channels, n_samples).")
    if sensors is None:
        return {name: [name] for name in known}
    pairs = sensors.items() if isinstance(sensors, Mapping) else [(name, name) for name in sensors]
    chosen = {name: [key] if isinstance(key, str) else list(key) for name, key in pairs}
    for sensor, keys in chosen.items():
        unknown = next((key for key in keys if key not in known), None)
        if unknown is not None:
            raise ValueError(
                f"'{path}' has no signal {unknown!r} (sensor {sensor!r}); it has {', '.join(map(repr, known)) or 'none'}."
            )
    return chosen


@contextmanager
def open_edf(path: str | PathLike[str]) -> Iterator[Any]:
    """Open a file for reading."""
    pyedflib = import_optional("pyedflib", "recordings", "Reading EDF files")
    file = existing_file(path)
    try:
        reader = pyedflib.EdfReader(str(file))
    except OSError as error:
        raise ValueError(
            f"'{path}' cannot be read as an EDF or BDF file: {error}. Discontinuous files (EDF+D) must be converted first."
        ) from error
    try:
        yield reader
    finally:
        reader.close()


@dataclass(frozen=True)
class EdfSamples:
    """Some signals of an EDF file with the same rate, in their physical units."""

    path: str
    numbers: tuple[int, ...]
    n_samples: int

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return len(self.numbers)

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop."""
        with open_edf(self.path) as reader:
            return np.array([reader.readSignal(number, start, stop - start) for number in self.numbers])


@dataclass(frozen=True)
class EdfSignal:
    """One signal of a file."""

    label: str
    number: int
    sampling_rate: float
    n_samples: int


def edf_signals(path: str | PathLike[str], timezone: str | None) -> tuple[list[EdfSignal], float]:
    """The signals of a file, and its start in seconds since 1970 UTC."""
    with open_edf(path) as reader:
        labels, counts = reader.getSignalLabels(), reader.getNSamples()
        signals = [
            EdfSignal(label.strip() or f"signal{number}", number, float(reader.getSampleFrequency(number)), int(count))
            for number, (label, count) in enumerate(zip(labels, counts, strict=True))
        ]
        date = reader.getStartdatetime()
    start = date_seconds(date if timezone is not None else date.replace(tzinfo=UTC), f"The start of '{path}'", timezone)
    return signals, start


def read_edf_annotations(
    path: str | PathLike[str], recording: str | None = None
) -> list[tuple[str, float, float, str]]:
    """Annotations in an EDF+ file as (recording, start, end, label), for :func:`cut_windows`.

    Those without a duration are left out. ``recording`` is its name, by default the name of the file without ending.

    Examples
    --------
    >>> import numpy as np, pyedflib
    >>> from cmvmed.recordings import read_edf_annotations
    >>> with pyedflib.EdfWriter("night.edf", 1, file_type=pyedflib.FILETYPE_EDFPLUS) as writer:
    ...     writer.setSamplefrequency(0, 100)
    ...     writer.writeSamples([np.zeros(1000)])
    ...     _ = writer.writeAnnotation(2.0, 3.0, "awake")
    >>> read_edf_annotations("night.edf")
    [('night', 2.0, 5.0, 'awake')]
    """
    name = Path(path).stem if recording is None else recording
    with open_edf(path) as reader:
        onsets, durations, labels = reader.readAnnotations()
    return [
        (name, float(onset), float(onset + duration), str(label))
        for onset, duration, label in zip(onsets, durations, labels, strict=True)
        if duration > 0
    ]


@dataclass(frozen=True, eq=False)
class MseedSegment:
    """Samples of one source without a gap."""

    source: str  # network.station.location.channel
    start: float  # seconds since 1970 UTC
    sampling_rate: float
    values: SignalArray  # (1, n_samples)


def mseed_segments(path: str | PathLike[str]) -> list[MseedSegment]:
    """All segments of a file, decoded."""
    pymseed = import_optional("pymseed", "recordings", "Reading MiniSEED files")
    file = existing_file(path)
    try:
        traces = pymseed.MS3TraceList.from_file(str(file), unpack_data=True)
    except (ValueError, OSError, pymseed.PymseedError) as error:
        raise ValueError(f"'{path}' is empty or damaged and cannot be read as a MiniSEED file: {error}") from error
    found = [
        MseedSegment(
            ".".join(pymseed.sourceid2nslc(trace.sourceid)),
            float(segment.starttime_seconds),
            float(segment.samprate),
            np.array(segment.np_datasamples, dtype=np.float64)[np.newaxis],
        )
        for trace in traces
        for segment in trace
        if segment.sampletype in ("i", "f", "d")
    ]
    if not found:
        raise ValueError(f"'{path}' holds no samples of numbers.")
    return found
