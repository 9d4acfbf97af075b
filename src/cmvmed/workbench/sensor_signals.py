"""The signals of a view as those of one sensor: its columns are the channels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cmvmed.recordings import SensorSignals
from cmvmed.recordings.container import LazySequence, OneChannel
from cmvmed.recordings.resampling import resampled_signals
from cmvmed.recordings.sound_files import SoundSignals, audio_header
from cmvmed.workbench.frames import FloatArray, RawTable, Signal
from cmvmed.workbench.user_errors import ProjectError

__all__ = ["channels_by_rate", "interpolated", "sensor_signals"]

DEFAULT_RATE = 1.0  # of series whose file has no rate: frequencies are then in cycles per sample


@dataclass(frozen=True, eq=False)
class Series(LazySequence):
    """Series of one channel, with gaps filled along straight lines."""

    items: Sequence[Any]

    def __len__(self) -> int:
        return len(self.items)

    def item(self, row: int) -> FloatArray | None:
        """The (1, n_samples) signal at a position."""
        item = self.items[row]
        values = np.empty(0) if item is None else np.asarray(item, dtype=np.float64)
        return interpolated(values)[np.newaxis] if np.isfinite(values).any() else None


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


@dataclass(frozen=True, eq=False)
class SomeChannels(LazySequence):
    """Some channels of signals that are stored together, so that each is read once."""

    signals: Sequence[Any]
    numbers: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.signals)

    def item(self, row: int) -> Any:
        """The (n_channels, n_samples) signal at a position."""
        signal = self.signals[row]
        return None if signal is None else signal[list(self.numbers)]


def channels_by_rate(
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


def sensor_signals(table: RawTable, columns: tuple[str, ...], rate: float, name: str) -> SensorSignals:
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
        return SensorSignals(Series(signal.items), rate, (column,))
    sounds: Sequence[Any] = SoundSignals(list(signal.items), rate)
    if signal.channel is not None:
        sounds = OneChannel(sounds, signal.channel)
    return SensorSignals(sounds, rate, (column,), files=list(signal.items))


def _together(columns: tuple[str, ...], channels: Sequence[SensorSignals], table: RawTable) -> Sequence[Any]:
    stored = [channel.signals for channel in channels]
    parts = [part for part in stored if isinstance(part, OneChannel)]
    if len(parts) == len(stored) and all(part.signals is parts[0].signals for part in parts):
        return SomeChannels(parts[0].signals, tuple(part.number for part in parts))
    return Channels(columns, stored, table)


def interpolated(series: FloatArray) -> FloatArray:
    """The series with gaps filled along straight lines."""
    values = np.asarray(series, dtype=float)
    known = np.isfinite(values)
    return values if known.all() else np.interp(np.arange(len(values)), np.flatnonzero(known), values[known])
