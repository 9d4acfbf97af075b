r"""Mel-frequency cepstral coefficients of waveform segments, as vectors of fixed length.

For a segment with frames t = 0 .. T - 1, let P be the mel power spectrogram of its short-time Fourier transform:

    L[m, t] = max(10 log10 P[m, t], max 10 log10 P - 80)      log-mel spectrogram, dynamic range 80 dB
    C[c, t] = orthonormal DCT-II over m of L[m, t]            cepstrum, as librosa defines it
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from cmvmed.features.signal_blocks import (
    Channel,
    WaveformBlock,
    Waveforms,
    as_waveforms,
    common_sampling_rate,
    waveform_blocks,
)
from cmvmed.recordings.container import SignalArray
from cmvmed.recordings.signal_values import check_sampling_rate
from cmvmed.recordings.sound_files import audio_module

FloatArray = NDArray[np.float64]

DYNAMIC_RANGE_DB = 80.0  # below the maximum of a segment; librosa's default
DELTA_WIDTH = 9  # frames per time derivative; librosa's default
MIN_CLIPPED_SHARE = 0.01  # share of clipped samples from which a segment is reported


class MFCC(TransformerMixin, BaseEstimator):
    """Fixed-length vectors of mel-frequency cepstral coefficients, one per waveform segment.

    Parameters
    ----------
    sampling_rate : float, optional
        Samples per second of the waveforms. Sound files of another rate are resampled to it. None: the common rate of
        the sound files.
    n_coefficients : int
        Number of cepstral coefficients per frame.
    n_frames : int
        Number of equal parts of the segment over which the frames are averaged. Segments of all lengths give vectors
        of ``n_coefficients * n_frames * (1 + deltas)`` features: 20 x 10 = 200 by default, as in the paper.
    deltas : {0, 1, 2}
        Append the first, or first and second, time derivatives of the coefficients (estimated over 9 frames).
    drop_energy : bool
        Omit coefficient 0, the mean log power of a frame, so that the features do not depend on the loudness.
    amplitude : {"rms", "peak", None}
        Divide each segment by its root mean square or peak first, so that the features do not depend on the distance
        of the source and the gain of the sensor. None: no normalization; librosa then raises powers below 1e-10 to
        1e-10.
    cepstral : {"mean", "mean_variance", None}
        Subtract the mean of each coefficient over the frames of the segment, which removes a constant filter
        (microphone, ground), and for "mean_variance" divide by the standard deviation. Recommended for segments of
        several seconds only: in short segments the mean represents the timbre of the event.
    unit_length : bool
        Scale each vector to Euclidean length 1, as usual for sparse representations and cosine similarity.
    frame_seconds, hop_seconds : float
        Length of a frame and distance between frames; 25 ms and 10 ms are usual in speech processing.
    n_mels : int
        Number of mel bands.
    fmin, fmax : float
        Frequency range of the bands in Hz; ``fmax=None`` is half the sampling rate.
    lifter : float
        Cepstral liftering, see ``librosa.feature.mfcc``; 0: none.
    channel : int, "mean" or None
        Channel of multi-channel files or (n_segments, n_channels, n_samples) arrays; None: there is only one.
    silence : {"missing", "keep", "error"}
        Treatment of a segment whose samples are all equal, as from a defective sensor: a row of NaN (the sensor is
        missing), finite coefficients of the smallest power, or an error.
    clipping : {"warn", "ignore", "error"}
        Treatment of segments in which 1 % or more of the samples are clipped (three or more consecutive samples at the
        maximum or minimum), which distorts the coefficients.

    Attributes
    ----------
    sampling_rate_ : float
        Rate at which the coefficients are computed.
    librosa_arguments_ : dict
        ``librosa.feature.mfcc(y=segment, **librosa_arguments_)`` gives the frames before averaging.

    Notes
    -----
    X is an array (n_segments, n_samples) or (n_segments, n_channels, n_samples), a list of one-dimensional arrays of
    any lengths, or a list, array or column of file names. An absent segment (None, NaN, empty name or all-NaN samples)
    becomes a row of NaN, which marks a missing sensor. NaN in a part of a segment is an error.

    The scales of the features differ: for kernel methods use ``make_pipeline(MFCC(...), StandardScaler())``.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(size=(3, 8000))
    >>> MFCC(sampling_rate=8000).fit_transform(noise).shape
    (3, 200)
    """

    def __init__(
        self,
        sampling_rate: float | None = None,
        *,
        n_coefficients: int = 20,
        n_frames: int = 10,
        deltas: int = 0,
        drop_energy: bool = False,
        amplitude: Literal["rms", "peak"] | None = "rms",
        cepstral: Literal["mean", "mean_variance"] | None = None,
        unit_length: bool = False,
        frame_seconds: float = 0.025,
        hop_seconds: float = 0.010,
        n_mels: int = 40,
        fmin: float = 0.0,
        fmax: float | None = None,
        lifter: float = 0.0,
        channel: Channel = None,
        silence: Literal["missing", "keep", "error"] = "missing",
        clipping: Literal["warn", "ignore", "error"] = "warn",
    ) -> None:
        self.sampling_rate = sampling_rate
        self.n_coefficients = n_coefficients
        self.n_frames = n_frames
        self.deltas = deltas
        self.drop_energy = drop_energy
        self.amplitude = amplitude
        self.cepstral = cepstral
        self.unit_length = unit_length
        self.frame_seconds = frame_seconds
        self.hop_seconds = hop_seconds
        self.n_mels = n_mels
        self.fmin = fmin
        self.fmax = fmax
        self.lifter = lifter
        self.channel = channel
        self.silence = silence
        self.clipping = clipping

    def fit(self, X: Waveforms, y: object = None) -> Self:
        """Determine the sampling rate and the frame lengths; nothing is learned from the waveforms.

        Parameters
        ----------
        X : waveforms or file names
            See the notes of the class.
        y : ignored
        """
        self._check_parameters()
        waveforms = as_waveforms(X)
        if len(waveforms) == 0:
            raise ValueError("Found 0 segments (shape=(0, ...)) while a minimum of 1 is required.")
        rate = common_sampling_rate(waveforms) if self.sampling_rate is None else float(self.sampling_rate)
        arguments = self._librosa_arguments(rate)
        self.sampling_rate_ = rate
        self.librosa_arguments_ = arguments
        return self

    def transform(self, X: Waveforms) -> FloatArray:
        """Return the (n_segments, n_features) features; absent segments are rows of NaN."""
        check_is_fitted(self)
        waveforms = as_waveforms(X)
        features = np.full((len(waveforms), self._n_features()), np.nan)
        clipped: list[int] = []
        for block in waveform_blocks(waveforms, sampling_rate=self.sampling_rate_, channel=self.channel):
            self._check_length(block)
            included = self._included_rows(block)
            if included.any():
                rows, samples = block.rows[included], block.samples[included]
                clipped += rows[is_clipped(samples)].tolist()
                features[rows] = self._features(samples, rows)
        self._report_clipping(clipped, len(waveforms))
        return features

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return ``mfcc<coefficient>_t<part>``, and ``delta<order>_mfcc...`` for the derivatives."""
        first = int(self.drop_energy)
        return np.array(
            [
                f"{'' if order == 0 else f'delta{order}_'}mfcc{c}_t{t}"
                for order in range(self.deltas + 1)
                for c in range(first, first + self.n_coefficients)
                for t in range(self.n_frames)
            ],
            dtype=object,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        return tags

    def _n_features(self) -> int:
        return self.n_coefficients * self.n_frames * (1 + self.deltas)

    def _check_parameters(self) -> None:
        for name in ("n_coefficients", "n_frames", "n_mels", "frame_seconds", "hop_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}.")
        if self.sampling_rate is not None:
            check_sampling_rate(self.sampling_rate)
        choices: dict[str, tuple[object, ...]] = {
            "deltas": (0, 1, 2),
            "amplitude": ("rms", "peak", None),
            "cepstral": ("mean", "mean_variance", None),
            "silence": ("missing", "keep", "error"),
            "clipping": ("warn", "ignore", "error"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}.")
        if self.n_coefficients + self.drop_energy > self.n_mels:
            raise ValueError(
                f"n_mels={self.n_mels} mel bands give at most that many coefficients: n_coefficients="
                f"{self.n_coefficients}{' after coefficient 0' if self.drop_energy else ''} are too many."
            )
        if self.cepstral is not None and self.n_frames == 1:
            raise ValueError(
                f"cepstral={self.cepstral!r} sets the mean over frames to zero: n_frames=1 would give zeros only."
            )

    def _librosa_arguments(self, rate: float) -> dict[str, float]:
        fmax = rate / 2 if self.fmax is None else float(self.fmax)
        if not 0 <= self.fmin < fmax <= rate / 2:
            raise ValueError(
                f"The mel bands need 0 <= fmin < fmax <= {rate / 2:g} Hz, half the sampling rate; got "
                f"fmin={self.fmin}, fmax={self.fmax}."
            )
        win_length = max(2, round(self.frame_seconds * rate))
        return {
            "sr": rate,
            "n_mfcc": self.n_coefficients + int(self.drop_energy),
            "n_mels": self.n_mels,
            "n_fft": fft_length(win_length, rate, self.n_mels, self.fmin, fmax),
            "win_length": win_length,
            "hop_length": max(1, round(self.hop_seconds * rate)),
            "fmin": self.fmin,
            "fmax": fmax,
            "lifter": self.lifter,
        }

    def _check_length(self, block: WaveformBlock) -> None:
        n_samples = block.samples.shape[1]
        needed = max(self.librosa_arguments_["n_fft"], (self.n_frames - 1) * self.librosa_arguments_["hop_length"])
        if n_samples < needed:
            raise ValueError(
                f"Segment {block.name(block.rows[0])} is too short: {n_samples} samples "
                f"({n_samples / self.sampling_rate_:.3g} s); {self.n_frames} frames need at least {needed} "
                f"({needed / self.sampling_rate_:.3g} s). Use longer segments, or smaller n_frames or frame_seconds."
            )

    def _included_rows(self, block: WaveformBlock) -> NDArray[np.bool_]:
        silent = np.asarray(np.ptp(block.samples, axis=1) == 0)
        if self.silence == "error" and silent.any():
            raise ValueError(
                f"Segment {block.name(block.rows[silent][0])} is silent: all its samples are equal. Remove it, or pass "
                'silence="missing" to mark the sensor as missing in this segment.'
            )
        return np.ones_like(silent) if self.silence == "keep" else ~silent

    def _features(self, samples: SignalArray, rows: NDArray[np.int64]) -> FloatArray:
        cepstra = mel_cepstra(normalize_amplitude(samples, self.amplitude), self.librosa_arguments_)
        cepstra = normalize_cepstra(cepstra[:, int(self.drop_energy) :], self.cepstral)
        parts = average_frames(append_deltas(cepstra, self.deltas), self.n_frames)
        vectors = parts.reshape(len(parts), -1).astype(np.float64)
        overflow = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(overflow):
            raise ValueError(
                f"The power spectrum of segment {rows[overflow[0]]} exceeds the range of {samples.dtype}. Rescale the "
                'waveform, or pass amplitude="rms".'
            )
        if self.unit_length:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(float).tiny)
        return vectors

    def _report_clipping(self, rows: list[int], n_segments: int) -> None:
        if not rows or self.clipping == "ignore":
            return
        message = (
            f"{len(rows)} of {n_segments} segments are clipped (or very coarsely quantized), first segment "
            f"{min(rows)}: their spectra are distorted. Record at a lower gain or omit them; "
            'clipping="ignore" disables this check.'
        )
        if self.clipping == "error":
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=3)


def mel_cepstra(samples: SignalArray, librosa_arguments: Mapping[str, float]) -> SignalArray:
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


def append_deltas(cepstra: SignalArray, n_derivatives: int) -> SignalArray:
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


def normalize_amplitude(samples: SignalArray, amplitude: str | None) -> SignalArray:
    """Divide each row by its "rms" or "peak"; None: no change."""
    if amplitude is None:
        return samples
    tiny = np.finfo(samples.dtype).tiny
    by_peak: SignalArray = samples / np.maximum(np.abs(samples).max(axis=1, keepdims=True), tiny)
    if amplitude == "peak":
        return by_peak
    # after the division by the peak the squares cannot overflow
    rms: SignalArray = np.sqrt(np.mean(by_peak**2, axis=1, keepdims=True))
    return np.asarray(by_peak / np.maximum(rms, tiny))


def normalize_cepstra(cepstra: SignalArray, cepstral: str | None) -> SignalArray:
    """Subtract each coefficient's "mean" over the frames and, for "mean_variance", divide by its standard deviation."""
    if cepstral is None:
        return cepstra
    centered: SignalArray = cepstra - cepstra.mean(axis=-1, keepdims=True)
    if cepstral == "mean":
        return centered
    scale = centered.std(axis=-1, keepdims=True)
    return np.asarray(centered / np.where(scale > 0, scale, 1.0))


def average_frames(cepstra: SignalArray, n_parts: int) -> SignalArray:
    """Average the last axis in ``n_parts`` consecutive parts whose lengths differ by at most one frame."""
    n_frames = cepstra.shape[-1]
    starts = np.arange(n_parts) * n_frames // n_parts
    lengths = np.diff(np.append(starts, n_frames))
    return np.asarray(np.add.reduceat(cepstra, starts, axis=-1) / lengths.astype(cepstra.dtype))


def is_clipped(samples: SignalArray) -> NDArray[np.bool_]:
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
