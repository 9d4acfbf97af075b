"""Cutting a long synchronized recording into segments: fixed windows, or events found by their energy.

All channels are cut at the same instants, so that row n of every sensor's view is the same moment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import find_peaks

FLOOR_OF_PEAK_POWER = 1e-12  # an absolutely silent background counts as 120 dB below the loudest frame


class Segments(NamedTuple):
    """Segments of a recording and when they begin; unpacks as ``signals, start_seconds``."""

    signals: NDArray[Any]  # (n_segments, n_channels, n_samples)
    start_seconds: NDArray[np.float64]  # (n_segments,)


def segment_windows(
    recording: ArrayLike, sampling_rate: float, *, seconds: float, hop_seconds: float | None = None
) -> Segments:
    """Cut a recording into windows of fixed length.

    Parameters
    ----------
    recording : (n_channels, n_samples) or (n_samples,)
        Synchronized channels, as :func:`read_audio` returns them. A missing channel is all NaN.
    sampling_rate : float
        Samples per second.
    seconds : float
        Length of a window.
    hop_seconds : float, optional
        Distance between the starts of two windows; None: ``seconds``, so that windows touch. An incomplete last
        window is left out.

    Returns
    -------
    Segments
        ``signals`` (n_windows, n_channels, n_samples_of_a_window), ``start_seconds`` (n_windows,).

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
    return _cut(channels, starts, length, sampling_rate)


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
    """Cut out the events of a recording, found by their energy in any channel.

    The power of each channel is averaged in frames and expressed in dB above that channel's background, the median
    frame. The largest value over the channels is the detection curve; its peaks above the threshold are the events,
    the higher one first where two are too close.

    Parameters
    ----------
    recording : (n_channels, n_samples) or (n_samples,)
        Synchronized channels, as :func:`read_audio` returns them. A channel that is all NaN is missing and ignored.
    sampling_rate : float
        Samples per second.
    seconds : float
        Length of the segment cut out around each event.
    threshold_db : float
        How far a frame must rise above the background.
    lead_seconds : float, optional
        Where in the segment the peak lies; None: a quarter of ``seconds``, since impacts rise fast and decay slowly.
        Near the ends of the recording the segment is shifted inwards, so that it is complete.
    min_distance_seconds : float, optional
        Least distance between two events; None: ``seconds``, so that segments do not overlap.
    frame_seconds : float
        Resolution of the detection curve.

    Returns
    -------
    Segments
        ``signals`` (n_events, n_channels, n_samples_of_a_segment) in the order of time, ``start_seconds``
        (n_events,). Both are empty (zero rows) if nothing rises above the threshold.
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
    excess = _excess_over_background(channels, frame)
    # a peak is higher than both neighbors: give the first and last frame one, so that an event at the very edge counts
    padded = np.pad(excess, 1, constant_values=-np.inf)
    min_frames = max(1, round(distance * sampling_rate / frame))
    peaks = find_peaks(padded, height=threshold_db, distance=min_frames)[0] - 1
    starts = np.clip(peaks * frame + frame // 2 - round(lead * sampling_rate), 0, channels.shape[1] - length)
    return _cut(channels, starts, length, sampling_rate)


def _excess_over_background(channels: NDArray[Any], frame: int) -> NDArray[np.float64]:
    """Return the largest rise of any channel over its own median frame, in dB; shape (n_frames,)."""
    present = channels[~np.isnan(channels[:, 0])].astype(np.float64)
    n_frames = present.shape[1] // frame
    framed = present[:, : n_frames * frame].reshape(len(present), n_frames, frame)
    power = framed.var(axis=2)  # without the mean: an offset of the sensor is no sound
    loudest = power.max(axis=1, keepdims=True)
    level = 10.0 * np.log10(power + FLOOR_OF_PEAK_POWER * loudest + np.finfo(float).tiny)
    return np.asarray((level - np.median(level, axis=1, keepdims=True)).max(axis=0))


def _as_channels(recording: ArrayLike, sampling_rate: float) -> NDArray[Any]:
    """Return (n_channels, n_samples), each channel either finite or all NaN."""
    if not 0 < sampling_rate < np.inf:
        raise ValueError(f"sampling_rate must be a positive number of Hz, got {sampling_rate!r}.")
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
    partly = np.flatnonzero(~finite.all(axis=1) & ~np.isnan(channels).all(axis=1))
    if len(partly):
        first = int(np.argmin(finite[partly[0]]))
        raise ValueError(
            f"Channel {partly[0]} has NaN or infinite samples, the first at {first / sampling_rate:.3f} s. Repair "
            "them, or set the whole channel to NaN to mark the sensor as missing."
        )
    if not finite.any():
        raise ValueError("All channels of the recording are NaN: there is nothing to segment.")
    return channels


def _n_samples(seconds: float, sampling_rate: float, name: str) -> int:
    if not 0 < seconds < np.inf or round(seconds * sampling_rate) < 1:
        raise ValueError(f"{name} must last at least one sample (1/{sampling_rate:g} s), got {seconds!r}.")
    return round(seconds * sampling_rate)


def _cut(channels: NDArray[Any], starts: NDArray[np.int64], length: int, sampling_rate: float) -> Segments:
    windows = np.lib.stride_tricks.sliding_window_view(channels, length, axis=1)
    return Segments(np.ascontiguousarray(windows[:, starts].swapaxes(0, 1)), starts / sampling_rate)
