"""Other sampling rates, by polyphase filters (``scipy.signal.resample_poly``).

With up / down = new rate / old rate in lowest terms, new sample k is at position k down / up of the old samples. The
filter has 10 max(up, down) coefficients on each side at the rate up times the old one, so that a new sample depends on
old ones at most 10 max(up, down) / up away. A part of a signal is therefore resampled from that part and this margin,
beginning at a multiple of ``down`` old samples, with the same result as from the whole signal. Beyond the ends of the
signal its first and last samples are repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy  # which imports its parts when they are used; scipy.signal is slow to import

from cmvmed.recordings.container import Mapped, Recordings, SensorSignals, SignalArray
from cmvmed.recordings.long_recordings import LongRecording
from cmvmed.recordings.row_arrays import rate_of
from cmvmed.recordings.stretches import ArraySamples, ContinuousSignal, Samples, Stretch

MAX_DENOMINATOR = 1000  # rates such as 49.98 Hz are approximated by ratios of whole numbers up to this
HALF_FILTER = 10  # coefficients on each side, in units of max(up, down); as in resample_poly


@dataclass(frozen=True, eq=False)
class ResampledSamples:
    """Samples at another rate, computed when they are read."""

    samples: Samples
    up: int
    down: int
    n_samples: int

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.samples.n_channels

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop."""
        if stop <= start:
            return np.empty((self.n_channels, 0))
        margin = HALF_FILTER * max(self.up, self.down) // self.up + 1
        first = (start * self.down // self.up - margin) // self.down * self.down  # a multiple, before the window
        last = (stop - 1) * self.down // self.up + 1 + margin
        inside = slice(max(first, 0), min(last, self.samples.n_samples))
        values = self.samples.read(inside.start, inside.stop)
        values = np.pad(values, ((0, 0), (inside.start - first, last - inside.stop)), mode="edge")
        offset = first // self.down * self.up
        return np.asarray(
            scipy.signal.resample_poly(values, self.up, self.down, axis=1)[:, start - offset : stop - offset]
        )


def resample_signal(signal: SignalArray, up: int, down: int) -> SignalArray:
    """Return (n_channels, n_samples) at up / down times the rate."""
    n_samples = -(-signal.shape[1] * up // down)  # all at positions before the end of the old samples
    return ResampledSamples(ArraySamples(signal), up, down, n_samples).read(0, n_samples)


def resample(recordings: Recordings | LongRecording, sampling_rate: float | Mapping[str, float]) -> Any:
    """Bring sensors to a common clock, or to any other sampling rates.

    Parameters
    ----------
    recordings : Recordings or LongRecording
        Signals in files are resampled when they are read. Gaps stay gaps.
    sampling_rate : float, or mapping of sensor name -> float
        New samples per second, of all sensors or of those in the mapping.

    Returns
    -------
    Recordings or LongRecording

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.recordings import from_sensors
    >>> both = from_sensors({"imu": np.zeros((4, 3, 200)), "mic": np.zeros((4, 1, 16000))}, {"imu": 100, "mic": 8000})
    >>> resample(both, {"mic": 4000})["mic"][0].shape
    (1, 8000)
    """
    given = sampling_rate if isinstance(sampling_rate, Mapping) else dict.fromkeys(recordings.sensors, sampling_rate)
    unknown = next((name for name in given if name not in recordings.sensors), None)
    if unknown is not None:
        raise ValueError(f"There is no sensor {unknown!r}; the sensors are {', '.join(map(repr, recordings.sensors))}.")
    rates = {name: rate_of(name, rate) for name, rate in given.items()}
    if isinstance(recordings, LongRecording):
        tracks = {
            name: _resampled_track(track, rates[name]) if name in rates else track
            for name, track in recordings.sensors.items()
        }
        return replace(recordings, sensors=tracks)
    rows = {
        name: resampled_signals(signals, rates[name]) if name in rates else signals
        for name, signals in recordings.sensors.items()
    }
    return replace(recordings, sensors=rows)


def _ratio(new: float, old: float) -> tuple[int, int]:
    """Numbers up and down with up / down = new / old."""
    ratio = Fraction(new / old).limit_denominator(MAX_DENOMINATOR)
    if ratio == 0 or ratio.numerator > MAX_DENOMINATOR:
        raise ValueError(
            f"Signals of {old:g} Hz cannot be resampled to {new:g} Hz: the rates differ by more than a factor of "
            f"{MAX_DENOMINATOR}."
        )
    return ratio.numerator, ratio.denominator


def resampled_signals(signals: SensorSignals, rate: float) -> SensorSignals:
    """The signals of a sensor at another rate, resampled when they are asked for."""
    up, down = _ratio(rate, signals.sampling_rate)
    if up == down:
        return signals
    return replace(
        signals, signals=Mapped(signals.signals, partial(resample_signal, up=up, down=down)), sampling_rate=rate
    )


def _resampled_track(track: ContinuousSignal, rate: float) -> ContinuousSignal:
    up, down = _ratio(rate, track.sampling_rate)
    if up == down:
        return track
    counts = [
        piece.n_samples * up // down for piece in track.pieces
    ]  # whole sample periods, so that pieces do not overlap
    stretches = [
        Stretch(ResampledSamples(piece, up, down, count), piece.start, piece.stretches[0].file)
        for piece, count in zip(track.pieces, counts, strict=True)
        if count > 0
    ]
    return replace(track, stretches=stretches, sampling_rate=rate)
