"""The signals of a view as features, of a kind that is chosen for each view by held-out labels.

The columns of a view are the channels of one sensor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np

import cmvmed.features  # its modules are imported when they are used
from cmvmed.features.feature_cache import FeatureCache
from cmvmed.recordings import Recordings, SensorSignals
from cmvmed.recordings.container import LazySequence, Mapped, SignalArray, SomeChannels
from cmvmed.recordings.resampling import resampled_signals
from cmvmed.recordings.signal_values import interpolate
from cmvmed.recordings.sound_files import audio_header, sound_signals
from cmvmed.workbench.column_encoders import Block
from cmvmed.workbench.project_file import AUTO, DataSettings, ViewSettings
from cmvmed.workbench.tables.columns import FloatArray, RawTable, Signal
from cmvmed.workbench.user_errors import ProjectError, as_project_error

DEFAULT_RATE = 1.0  # of series whose file has no rate: frequencies are then in cycles per sample


@dataclass(frozen=True, eq=False)
class Channels(LazySequence):
    """Signals of several channels that are stored one by one; None where one of them is missing."""

    columns: tuple[str, ...]
    channels: Sequence[Sequence[Any]]
    table: RawTable

    def __len__(self) -> int:
        return len(self.channels[0])

    def item(self, row: int) -> Any:
        """The (n_channels, n_samples) signal at a position."""
        parts = [channel[row] for channel in self.channels]
        if any(part is None for part in parts):
            return None
        lengths = [part.shape[1] for part in parts]
        if len(set(lengths)) > 1:
            shown = ", ".join(f"{name} ({n})" for name, n in zip(self.columns, lengths, strict=True))
            raise ProjectError(
                f"The channels of a view must have the same number of samples, but in {self.table.place(row)} they have: "
                f"{shown}. Give channels of different lengths views of their own."
            )
        return np.concatenate(parts)


def _channels_by_rate(
    table: RawTable, columns: Sequence[str], rate: float | None, default: float | None
) -> dict[float, tuple[str, ...]]:
    """The columns of a view by their sampling rates; a view may hold signals of several rates.

    Parameters
    ----------
    rate : what the view says, to which all its signals are brought
    default : what [data] says, for sound and for series whose files have no rate
    """
    found: dict[float, list[str]] = {}
    for column in columns:
        own = _rate_of(table.signals[column], default) if rate is None else rate
        found.setdefault(own, []).append(column)
    return {own: tuple(names) for own, names in found.items()}


def _sensor_signals(table: RawTable, columns: tuple[str, ...], rate: float, name: str) -> SensorSignals:
    """Columns of a table as the channels of one sensor, resampled to a rate if they have another one."""
    channels = [_channel(table.signals[column], column, rate) for column in columns]
    ids = list(table.ids) if table.ids is not None else [str(row + 1) for row in range(table.n_rows)]
    signals = channels[0].signals if len(channels) == 1 else _together(columns, channels, table)
    return SensorSignals(signals, rate, columns, files=channels[0].files, name=name, ids=ids)


def _rate_of(signal: Signal, default: float | None) -> float:
    """The rate of the files, the lowest one of sound files."""
    if isinstance(signal.items, SensorSignals):
        return float(signal.items.sampling_rate)
    if default is None and signal.is_sound:
        return float(min(audio_header(file).samplerate for file in signal.items if file is not None))
    return DEFAULT_RATE if default is None else default


def _channel(signal: Signal, column: str, rate: float) -> SensorSignals:
    if isinstance(signal.items, SensorSignals):
        return replace(resampled_signals(signal.items, rate), sampling_rate=rate)
    if not signal.is_sound:
        return SensorSignals(Mapped(signal.items, _filled), rate, (column,))
    sounds = sound_signals(list(signal.items), rate)
    if signal.channel is not None:
        sounds = SomeChannels(sounds, (signal.channel,))
    return SensorSignals(sounds, rate, (column,), files=list(signal.items))


def _together(columns: tuple[str, ...], channels: Sequence[SensorSignals], table: RawTable) -> Sequence[Any]:
    stored = [channel.signals for channel in channels]
    parts = [part for part in stored if isinstance(part, SomeChannels)]
    if len(parts) == len(stored) and all(part.signals is parts[0].signals for part in parts):  # each is read once
        return SomeChannels(parts[0].signals, tuple(number for part in parts for number in part.numbers))
    return Channels(columns, stored, table)


def _filled(series: FloatArray) -> SignalArray | None:
    """The (1, n_samples) signal of a series with gaps filled along straight lines; None if it has no sample."""
    signal = np.asarray(series, dtype=np.float64)[np.newaxis]
    finite = np.isfinite(signal)
    return interpolate(signal, finite) if finite.any() else None


@dataclass(frozen=True)
class SensorEncoder:
    """Features of the signals of a view, whose columns are the channels.

    The last four fields have one entry for each kind of features that was compared, in the order of the comparison, and
    are empty if the project file says the kind: see :class:`cmvmed.features.SensorFeatures`.
    """

    kind: ClassVar[str] = "signals"
    sources: tuple[str, ...]
    features: "cmvmed.features.SignalFeatures"
    compared: tuple[str, ...] = ()
    held_out_r2: tuple[float, ...] = ()
    agreement: tuple[float, ...] = ()
    score: tuple[float, ...] = ()

    @property
    def is_consistent(self) -> bool:
        """Whether a training table can have given these values."""
        counts = {len(values) for values in (self.compared, self.held_out_r2, self.agreement, self.score)}
        return len(counts) == 1 and self.sources == self.features.channel_names_

    @property
    def n_features(self) -> int:
        """Number of columns of the block."""
        return int(self.features.n_features_out_)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the block."""
        own = [str(name) for name in self.features.get_feature_names_out()]
        starts = tuple(f"{source}_" for source in self.sources)
        return [name if name.startswith(starts) else f"{self.sources[0]}.{name}" for name in own]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        """The features of all rows."""
        with as_project_error():
            sensor = _sensor_signals(table, self.sources, self.features.sampling_rate_, self.sources[0])
            values = self.features.transform(sensor)
        return Block(values, ~np.isnan(values).all(axis=1))

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        """The block of a table that lacks a channel."""
        values = np.full((n_rows, self.n_features), np.nan, dtype=np.float32)
        return Block(values, np.zeros(n_rows, dtype=bool))


def fit_sensors(
    table: RawTable,
    columns: Mapping[ViewSettings, Sequence[str]],
    labels: Any,
    data: DataSettings,
    memory: FeatureCache | None,
) -> tuple[dict[str, list[SensorEncoder]], list[str]]:
    """Fit the encoders of the signals of all views together, since the choice of their features compares them.

    Parameters
    ----------
    columns : signals of each view that has some
    labels : (n,) class of each row, None where it is not labeled
    memory : where features are kept

    Returns
    -------
    encoders : dict of view name -> one encoder for each sampling rate
    messages : what was chosen, and why
    """
    sensors: dict[str, Any] = {}
    views: dict[str, str] = {}
    kinds: dict[str, str] = {}
    with as_project_error():
        for view, names in columns.items():
            by_rate = _channels_by_rate(table, names, view.sampling_rate, data.sampling_rate)
            for rate, channels in by_rate.items():
                sensor = view.name if len(by_rate) == 1 else f"{view.name}, {rate:g} Hz"
                sensors[sensor] = _sensor_signals(table, channels, rate, sensor)
                views[sensor], kinds[sensor] = view.name, view.features or AUTO
        if not sensors:
            return {}, []
        first = next(iter(sensors.values()))
        with catch_warnings(record=True) as caught:
            simplefilter("always")
            made = cmvmed.features.SensorFeatures(kinds, memory=memory).fit(Recordings(sensors, ids=first.ids), labels)
    found: dict[str, list[SensorEncoder]] = {}
    said = [str(warning.message) for warning in caught]
    for sensor, features in made.features_.items():
        encoder = SensorEncoder(sensors[sensor].channel_names, features, **_compared(made.choices_, sensor))
        found.setdefault(views[sensor], []).append(encoder)
        said.append(f"View {sensor!r}: {_why_chosen(encoder)}.")
    return found, said


def _compared(choices: Mapping[str, list[Any]], sensor: str) -> dict[str, tuple[Any, ...]]:
    """The columns of a comparison for one sensor."""
    rows = [row for row, name in enumerate(choices["sensor"]) if name == sensor]
    names = {"compared": "kind", "held_out_r2": "held_out_r2", "agreement": "agreement", "score": "score"}
    if len(rows) < 2:
        return {}
    return {field: tuple(choices[column][row] for row in rows) for field, column in names.items()}


def _why_chosen(encoder: SensorEncoder) -> str:
    """The kind of features of a sensor and what decided, as a part of a sentence."""
    kind = f"features of kind {encoder.features.kind!r}"
    if not encoder.compared:
        return f"{kind}, with nothing to choose from"
    joined = "+" in encoder.features.kind
    measure = "held-out labels do not reject" if joined else "predicts held-out labels best"
    measure, values = f"{measure} (R² of this and all views", encoder.score
    if np.isnan(encoder.score).any():
        if np.isnan(encoder.agreement).any():
            return (
                f"{kind}, the first of {', '.join(encoder.compared)}, because there are too few labels to compare them"
            )
        measure, values = "agrees most with the other sensors (correlation", encoder.agreement
    listed = ", ".join(f"{name} {value:.2f}" for name, value in zip(encoder.compared, values, strict=True))
    return f"{kind}, which {measure}: {listed})"
