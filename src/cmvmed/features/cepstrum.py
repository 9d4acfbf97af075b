r"""The mathematics of mel-frequency cepstra: pure functions of arrays.

For a segment with frames t = 0 .. T - 1, let P be the Mel power spectrogram of its short-time Fourier transform:

    L[m, t] = max(10 log10 P[m, t], max 10 log10 P - 80)      log-Mel spectrogram, 80 dB of range
    C[c, t] = orthonormal DCT-II over m of L[m, t]            cepstrum, as librosa defines it
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed.features.audio_files import audio_module

Samples: TypeAlias = NDArray[np.floating[Any]]

DYNAMIC_RANGE_DB = 80.0  # librosa's default floor below the loudest point of a segment
DELTA_WIDTH = 9  # frames of the local slope, librosa's default
CLIPPED_SHARE = 0.01  # a segment counts as clipped from this share of samples on a flat top


def mel_cepstra(samples: Samples, librosa_arguments: dict[str, Any]) -> Samples:
    """Return the (n_segments, n_mfcc, n_frames) cepstra of (n_segments, n_samples) waveforms.

    Equal to ``librosa.feature.mfcc(y=segment, **librosa_arguments)`` of each segment by itself. One librosa call on all
    of them would take the 80 dB below the loudest point of all, so that a segment's result would depend on the others.
    """
    librosa = audio_module("librosa")
    spectrum = dict(librosa_arguments)
    n_mfcc, lifter = spectrum.pop("n_mfcc"), spectrum.pop("lifter")
    log_mel = librosa.power_to_db(librosa.feature.melspectrogram(y=samples, **spectrum), top_db=None)
    floor = log_mel.max(axis=(1, 2), keepdims=True) - DYNAMIC_RANGE_DB
    return np.asarray(librosa.feature.mfcc(S=np.maximum(log_mel, floor), n_mfcc=n_mfcc, lifter=lifter))


def append_slopes(cepstra: Samples, n_derivatives: int) -> Samples:
    """Append the first ``n_derivatives`` local time derivatives along the coefficient axis."""
    delta = audio_module("librosa").feature.delta
    slopes = [delta(cepstra, width=DELTA_WIDTH, order=k, mode="nearest") for k in range(1, n_derivatives + 1)]
    return np.concatenate([cepstra, *slopes], axis=1)


def fft_length(win_length: int, rate: float, n_mels: int, fmin: float, fmax: float) -> int:
    """Return the shortest power of two that holds a frame and leaves no Mel band without a frequency.

    Zero-padding interpolates the spectrum, which low sampling rates need: their low bands are narrower than one
    over the frame length.
    """
    librosa = audio_module("librosa")
    edges = librosa.mel_frequencies(n_mels=n_mels + 2, fmin=fmin, fmax=fmax)
    shortest = 1 << (win_length - 1).bit_length()
    for n_fft in (shortest << k for k in range(5)):
        bins = np.append(librosa.fft_frequencies(sr=rate, n_fft=n_fft), np.inf)
        first_inside = bins[np.searchsorted(bins, edges[:-2], side="right")]
        if (first_inside < edges[2:]).all():
            return n_fft
    raise ValueError(
        f"{n_mels} Mel bands between {fmin:g} and {fmax:g} Hz are too narrow for frames of {win_length} samples: use "
        "fewer bands (n_mels) or longer frames (frame_seconds)."
    )


def normalize_amplitude(samples: Samples, amplitude: str | None) -> Samples:
    """Divide each row by its "rms" or "peak"; None leaves it."""
    if amplitude is None:
        return samples
    tiny = np.finfo(samples.dtype).tiny
    by_peak: Samples = samples / np.maximum(np.abs(samples).max(axis=1, keepdims=True), tiny)
    if amplitude == "peak":
        return by_peak
    # after the division by the peak no square can overflow
    rms: Samples = np.sqrt(np.mean(by_peak**2, axis=1, keepdims=True))
    return by_peak / np.maximum(rms, tiny)


def normalize_cepstra(cepstra: Samples, cepstral: str | None) -> Samples:
    """Subtract each coefficient's "mean" over the frames and, for "mean_variance", divide by its deviation."""
    if cepstral is None:
        return cepstra
    centered: Samples = cepstra - cepstra.mean(axis=-1, keepdims=True)
    if cepstral == "mean":
        return centered
    scale = centered.std(axis=-1, keepdims=True)
    return centered / np.where(scale > 0, scale, 1.0)


def average_frames(cepstra: Samples, n_parts: int) -> Samples:
    """Average the last axis in ``n_parts`` consecutive parts whose lengths differ by at most one frame."""
    n_frames = cepstra.shape[-1]
    starts = np.arange(n_parts) * n_frames // n_parts
    lengths = np.diff(np.append(starts, n_frames))
    return np.asarray(np.add.reduceat(cepstra, starts, axis=-1) / lengths.astype(cepstra.dtype))


def has_flat_tops(samples: Samples) -> NDArray[np.bool_]:
    """Tell which rows have CLIPPED_SHARE or more of their samples in runs of three or more at the same extreme.

    An extreme nearer to the median than half the largest deviation is the quiet background of an impulse, not a top.
    """
    median = np.median(samples, axis=1, keepdims=True)
    deviation = np.abs(samples - median).max(axis=1, keepdims=True)
    share = np.zeros(len(samples))
    for extreme in (samples.max(axis=1, keepdims=True), samples.min(axis=1, keepdims=True)):
        on_top = (samples == extreme) & (np.abs(extreme - median) > deviation / 2)
        in_run = on_top[:, :-2] & on_top[:, 1:-1] & on_top[:, 2:]
        share += (in_run.sum(axis=1) + 2 * in_run.any(axis=1)) / samples.shape[1]
    return np.asarray(share >= CLIPPED_SHARE)
