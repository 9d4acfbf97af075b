"""One file as a long recording: sound, .npy, HDF5, EDF and MiniSEED."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from cmvmed.recordings.case_arrays import chosen_channels, numbered
from cmvmed.recordings.clocks import date_seconds
from cmvmed.recordings.edf_files import EDF_FORMATS, EdfSamples, edf_signals
from cmvmed.recordings.hdf5_files import HDF5_FORMATS, Hdf5Samples, dataset_channels, dataset_rate, open_hdf5
from cmvmed.recordings.long_recordings import LongRecording
from cmvmed.recordings.mapped_samples import MappedSamples, check_channels_first
from cmvmed.recordings.mseed_files import MSEED_FORMATS, MseedSegment, mseed_segments
from cmvmed.recordings.sound_samples import SOUND_FORMATS, SoundSamples, sound_rate
from cmvmed.recordings.stretches import ArraySamples, ContinuousSignal, Samples, Stretch

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
    if not file.is_file():
        raise FileNotFoundError(f"There is no file '{file}'. Relative paths start at '{Path.cwd()}'.")
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
