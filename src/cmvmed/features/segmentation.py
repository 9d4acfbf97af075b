"""Segmentation of a long synchronized recording: fixed windows, or events detected by their energy.

All channels are split at the same times, so that row n of every view is the same segment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import find_peaks

from cmvmed.recordings.signal_values import check_sampling_rate, is_partly_invalid

MIN_RELATIVE_POWER = 1e-12  # power of a silent background, relative to the loudest frame (-120 dB)


class Segments(NamedTuple):
    """Segments of a recording and their start times; unpacks as ``signals, start_seconds``.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.features import segment_windows
    >>> segments = segment_windows(np.zeros((2, 100)), 10.0, seconds=5.0)
    >>> signals, start_seconds = segments
    >>> signals.shape, start_seconds.tolist()
    ((2, 2, 50), [0.0, 5.0])
    """

    signals: NDArray[Any]  # (n_segments, n_channels, n_samples)
    start_seconds: NDArray[np.float64]  # (n_segments,)


def segment_windows(
    recording: ArrayLike, sampling_rate: float, *, seconds: float, hop_seconds: float | None = None
) -> Segments:
    """Split a recording into windows of fixed length.

    Parameters
    ----------
    recording : (n_channels, n_samples) or (n_samples,)
        Synchronized channels, as :func:`read_audio` returns them. A missing channel is all NaN.
    sampling_rate : float
        Samples per second.
    seconds : float
        Length of a window.
    hop_seconds : float, optional
        Distance between the starts of two windows; None: ``seconds``, without gaps and overlap. An incomplete last
        window is omitted.

    Returns
    -------
    Segments
        ``signals`` (n_windows, n_channels, n_samples of a window), ``start_seconds`` (n_windows,).

    Examples
    --------
    >>> import numpy as np
    >>> signals, starts = segment_windows(np.zeros((2, 1000)), 100, seconds=3, hop_seconds=2)
    >>> signals.shape, starts.tolist()
    ((4, 2, 300), [0.0, 2.0, 4.0, 6.0])
    """
    channels = _as_channels(recording, sampling_rate)
    length = _n_samples(seconds, sampling_rate, "seconds")
    hop = length if hop_seconds is None else _n_samples(hop_seconds, sampling_rate, "hop_seconds")
    if channels.shape[1] < length:
        raise ValueError(
            f"The recording lasts {channels.shape[1] / sampling_rate:.3g} s, shorter than one window of {seconds} s. "
            f"Is the sampling rate {sampling_rate:g} Hz right?"
        )
    starts = np.arange(0, channels.shape[1] - length + 1, hop)
    return _extract(channels, starts, length, sampling_rate)


def segment_events(
    recording: ArrayLike,
    sampling_rate: float,
    *,
    seconds: float = 1.0,
    threshold_db: float = 6.0,
    lead_seconds: float | None = None,
    min_distance_seconds: float | None = None,
    frame_seconds: float = 0.02,
) -> Segments:
    """Extract the events of a recording, detected by their energy in any channel.

    The power of each channel is averaged in frames and expressed in dB above the background of the channel, the median
    frame. The maximum over the channels is the detection curve. Its peaks above the threshold are the events; of two
    peaks that are too close, the higher one is kept.

    Parameters
    ----------
    recording : (n_channels, n_samples) or (n_samples,)
        Synchronized channels, as :func:`read_audio` returns them. A channel that is all NaN is missing and ignored.
    sampling_rate : float
        Samples per second.
    seconds : float
        Length of the segment around each event.
    threshold_db : float
        Detection threshold above the background.
    lead_seconds : float, optional
        Time from the start of the segment to the peak; None: a quarter of ``seconds``, because impacts rise fast and
        decay slowly. Near the ends of the recording the segment is shifted to be complete.
    min_distance_seconds : float, optional
        Smallest distance between two events; None: ``seconds``, so that segments do not overlap.
    frame_seconds : float
        Resolution of the detection curve.

    Returns
    -------
    Segments
        ``signals`` (n_events, n_channels, n_samples of a segment) in the order of time, ``start_seconds``
        (n_events,). Both are empty (zero rows) if there is no event.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.features import segment_events
    >>> recording = 0.01 * np.random.default_rng(0).normal(size=4000)
    >>> recording[2000:2050] *= 100.0  # a bang after two seconds, at 1000 samples per second
    >>> segments = segment_events(recording, 1000.0, seconds=0.4)
    >>> segments.signals.shape, segments.start_seconds.round(1).tolist()
    ((1, 1, 400), [1.9])
    """
    channels = _as_channels(recording, sampling_rate)
    length = _n_samples(seconds, sampling_rate, "seconds")
    frame = _n_samples(frame_seconds, sampling_rate, "frame_seconds")
    lead = seconds / 4 if lead_seconds is None else lead_seconds
    distance = seconds if min_distance_seconds is None else min_distance_seconds
    if channels.shape[1] < max(length, 3 * frame):
        raise ValueError(
            f"The recording lasts {channels.shape[1] / sampling_rate:.3g} s, shorter than one segment of {seconds} s "
            f"(or three frames of {frame_seconds} s). Is the sampling rate {sampling_rate:g} Hz right?"
        )
    detection_curve = _db_over_background(channels, frame)
    # find_peaks needs a lower value on both sides; the padding makes events in the first and last frame peaks
    padded = np.pad(detection_curve, 1, constant_values=-np.inf)
    min_frames = max(1, round(distance * sampling_rate / frame))
    peaks = find_peaks(padded, height=threshold_db, distance=min_frames)[0] - 1
    starts = np.clip(peaks * frame + frame // 2 - round(lead * sampling_rate), 0, channels.shape[1] - length)
    return _extract(channels, starts, length, sampling_rate)


def _db_over_background(channels: NDArray[Any], frame: int) -> NDArray[np.float64]:
    """Return the maximum over the channels of the power above the median frame, in dB; shape (n_frames,)."""
    present = channels[~np.isnan(channels[:, 0])].astype(np.float64)
    n_frames = present.shape[1] // frame
    framed = present[:, : n_frames * frame].reshape(len(present), n_frames, frame)
    power = framed.var(axis=2)  # without the mean, an offset of the sensor
    loudest = power.max(axis=1, keepdims=True)
    level = 10.0 * np.log10(power + MIN_RELATIVE_POWER * loudest + np.finfo(float).tiny)
    return np.asarray((level - np.median(level, axis=1, keepdims=True)).max(axis=0))


def _as_channels(recording: ArrayLike, sampling_rate: float) -> NDArray[Any]:
    """Return (n_channels, n_samples), each channel either finite or all NaN."""
    check_sampling_rate(sampling_rate)
    channels = np.atleast_2d(np.asarray(recording))
    if channels.dtype.kind not in "fiu" or channels.ndim != 2 or channels.size == 0:
        raise ValueError(
            f"A recording must be real (n_channels, n_samples), got dtype {channels.dtype} and shape {channels.shape}."
        )
    if channels.shape[0] > channels.shape[1]:
        raise ValueError(
            f"A recording must be (n_channels, n_samples), got shape {channels.shape} with more channels than samples: "
            "transpose it (soundfile and scipy return samples first)."
        )
    finite = np.isfinite(channels)
    invalid = np.flatnonzero(is_partly_invalid(channels))
    if len(invalid):
        first = int(np.argmin(finite[invalid[0]]))
        raise ValueError(
            f"Channel {invalid[0]} has NaN or infinite samples, the first at {first / sampling_rate:.3f} s. Repair "
            "them, or set the whole channel to NaN to mark the sensor as missing."
        )
    if not finite.any():
        raise ValueError("All channels of the recording are NaN: there is nothing to segment.")
    return channels


def _n_samples(seconds: float, sampling_rate: float, name: str) -> int:
    if not 0 < seconds < np.inf or round(seconds * sampling_rate) < 1:
        raise ValueError(f"{name} must last at least one sample (1/{sampling_rate:g} s), got {seconds!r}.")
    return round(seconds * sampling_rate)


def _extract(channels: NDArray[Any], starts: NDArray[np.int64], length: int, sampling_rate: float) -> Segments:
    windows = np.lib.stride_tricks.sliding_window_view(channels, length, axis=1)
    return Segments(np.ascontiguousarray(windows[:, starts].swapaxes(0, 1)), starts / sampling_rate)
