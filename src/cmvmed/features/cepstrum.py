r"""Mel-frequency cepstra and their normalization: functions of arrays.

For a segment with frames t = 0 .. T - 1, let P be the mel power spectrogram of its short-time Fourier transform:

    L[m, t] = max(10 log10 P[m, t], max 10 log10 P - 80)      log-mel spectrogram, dynamic range 80 dB
    C[c, t] = orthonormal DCT-II over m of L[m, t]            cepstrum, as librosa defines it
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings.audio_files import audio_module
from cmvmed.recordings.signal_checks import Samples

DYNAMIC_RANGE_DB = 80.0  # below the maximum of a segment; librosa's default
DELTA_WIDTH = 9  # frames per time derivative; librosa's default
MIN_CLIPPED_SHARE = 0.01  # share of clipped samples from which a segment is reported


def mel_cepstra(samples: Samples, librosa_arguments: Mapping[str, float]) -> Samples:
    """Return the (n_segments, n_mfcc, n_frames) cepstra of (n_segments, n_samples) waveforms.

    Equal to ``librosa.feature.mfcc(y=segment, **librosa_arguments)`` for each segment separately. In one librosa call
    on all segments the 80 dB would be relative to the maximum of all, and the result of a segment would depend on the
    others.
    """
    librosa = audio_module("librosa")
    spectrum = dict(librosa_arguments)
    n_mfcc, lifter = spectrum.pop("n_mfcc"), spectrum.pop("lifter")
    log_mel = librosa.power_to_db(librosa.feature.melspectrogram(y=samples, **spectrum), top_db=None)
    floor = log_mel.max(axis=(1, 2), keepdims=True) - DYNAMIC_RANGE_DB
    return np.asarray(librosa.feature.mfcc(S=np.maximum(log_mel, floor), n_mfcc=n_mfcc, lifter=lifter))


def append_deltas(cepstra: Samples, n_derivatives: int) -> Samples:
    """Append the first ``n_derivatives`` time derivatives along the coefficient axis."""
    delta = audio_module("librosa").feature.delta
    deltas = [delta(cepstra, width=DELTA_WIDTH, order=k, mode="nearest") for k in range(1, n_derivatives + 1)]
    return np.concatenate([cepstra, *deltas], axis=1)


def fft_length(win_length: int, rate: float, n_mels: int, fmin: float, fmax: float) -> int:
    """Return the smallest power of two that is at least a frame and gives every mel band a frequency.

    Zero-padding interpolates the spectrum. Low sampling rates need it, because their lowest bands are narrower than the
    frequency resolution of a frame.
    """
    librosa = audio_module("librosa")
    edges = librosa.mel_frequencies(n_mels=n_mels + 2, fmin=fmin, fmax=fmax)
    smallest = 1 << (win_length - 1).bit_length()
    for n_fft in (smallest << k for k in range(5)):
        bins = np.append(librosa.fft_frequencies(sr=rate, n_fft=n_fft), np.inf)
        first_inside = bins[np.searchsorted(bins, edges[:-2], side="right")]
        if (first_inside < edges[2:]).all():
            return n_fft
    raise ValueError(
        f"{n_mels} mel bands between {fmin:g} and {fmax:g} Hz are too narrow for frames of {win_length} samples: use "
        "fewer bands (n_mels) or longer frames (frame_seconds)."
    )


def normalize_amplitude(samples: Samples, amplitude: str | None) -> Samples:
    """Divide each row by its "rms" or "peak"; None: no change."""
    if amplitude is None:
        return samples
    tiny = np.finfo(samples.dtype).tiny
    by_peak: Samples = samples / np.maximum(np.abs(samples).max(axis=1, keepdims=True), tiny)
    if amplitude == "peak":
        return by_peak
    # after the division by the peak the squares cannot overflow
    rms: Samples = np.sqrt(np.mean(by_peak**2, axis=1, keepdims=True))
    return np.asarray(by_peak / np.maximum(rms, tiny))


def normalize_cepstra(cepstra: Samples, cepstral: str | None) -> Samples:
    """Subtract each coefficient's "mean" over the frames and, for "mean_variance", divide by its standard deviation."""
    if cepstral is None:
        return cepstra
    centered: Samples = cepstra - cepstra.mean(axis=-1, keepdims=True)
    if cepstral == "mean":
        return centered
    scale = centered.std(axis=-1, keepdims=True)
    return np.asarray(centered / np.where(scale > 0, scale, 1.0))


def average_frames(cepstra: Samples, n_parts: int) -> Samples:
    """Average the last axis in ``n_parts`` consecutive parts whose lengths differ by at most one frame."""
    n_frames = cepstra.shape[-1]
    starts = np.arange(n_parts) * n_frames // n_parts
    lengths = np.diff(np.append(starts, n_frames))
    return np.asarray(np.add.reduceat(cepstra, starts, axis=-1) / lengths.astype(cepstra.dtype))


def is_clipped(samples: Samples) -> NDArray[np.bool_]:
    """Return a mask of the rows with a share of at least MIN_CLIPPED_SHARE of clipped samples.

    Clipped samples are three or more consecutive samples at the maximum or minimum of the row. An extreme closer to the
    median than half the largest deviation is not clipping, but the silent background of an impulse.
    """
    median = np.median(samples, axis=1, keepdims=True)
    deviation = np.abs(samples - median).max(axis=1, keepdims=True)
    share = np.zeros(len(samples))
    for extreme in (samples.max(axis=1, keepdims=True), samples.min(axis=1, keepdims=True)):
        at_extreme = (samples == extreme) & (np.abs(extreme - median) > deviation / 2)
        in_run = at_extreme[:, :-2] & at_extreme[:, 1:-1] & at_extreme[:, 2:]
        share += (in_run.sum(axis=1) + 2 * in_run.any(axis=1)) / samples.shape[1]
    return np.asarray(share >= MIN_CLIPPED_SHARE)
