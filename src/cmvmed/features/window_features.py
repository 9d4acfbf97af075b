"""Windows of accelerometer-like signals as features: simple statistics and spectral bands per channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.signal import periodogram
from scipy.stats import kurtosis, skew
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

FloatArray = NDArray[np.float64]

STATISTICS = ("mean", "std", "min", "max", "median", "iqr", "skew", "kurtosis", "crossings")
SPECTRAL = ("peak_hz", "centroid_hz", "entropy")
BLOCK_SAMPLES = 2**19  # samples handled at once, so that memory does not grow with the number of windows
POWER_FLOOR = 1e-12  # least share of the window's power that a band counts, so that its logarithm stays finite


class WindowFeatures(TransformerMixin, BaseEstimator):
    """Statistics and spectra of each channel of windows of a multi-channel signal.

    Parameters
    ----------
    sampling_rate : float
        Samples per second; with 1.0 frequencies are in cycles per sample.
    n_bands : int
        Number of equal frequency bands between 0 and half the sampling rate whose log10 share of the power is a
        feature. 0: none.
    statistics : bool
        mean, standard deviation, minimum, maximum, median, interquartile range, skewness, excess kurtosis, and the
        rate at which the signal crosses its mean (per second).
    spectrum : bool
        Frequency of the strongest component, power-weighted mean frequency, spectral entropy (0: one line, 1: flat).
    channel_names : sequence of str, optional
        Names used in the feature names; ``ch0``, ``ch1``, ... if left out.

    Attributes
    ----------
    n_channels_ : int
        Number of channels seen in ``fit``.

    Notes
    -----
    X is (n_windows, n_channels, n_samples), as :func:`segment_windows` returns it, or (n_windows, n_samples) for one
    channel. A channel that is all NaN in a window gives NaN features for it; some NaN are an error. A constant
    channel has zero skewness, kurtosis, frequencies and entropy, and equal bands.

    Examples
    --------
    >>> import numpy as np
    >>> windows = np.random.default_rng(0).normal(size=(5, 3, 100))
    >>> WindowFeatures(50.0).fit_transform(windows).shape
    (5, 60)
    """

    def __init__(
        self,
        sampling_rate: float = 1.0,
        *,
        n_bands: int = 8,
        statistics: bool = True,
        spectrum: bool = True,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.sampling_rate = sampling_rate
        self.n_bands = n_bands
        self.statistics = statistics
        self.spectrum = spectrum
        self.channel_names = channel_names

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the number of channels; nothing is learnt from the values.

        Parameters
        ----------
        X : (n_windows, n_channels, n_samples) or (n_windows, n_samples)
        y : ignored
        """
        if not 0 < self.sampling_rate < np.inf:
            raise ValueError(f"sampling_rate must be a positive number of Hz, got {self.sampling_rate!r}.")
        if self.n_bands < 0:
            raise ValueError(f"n_bands must not be negative, got {self.n_bands!r}.")
        if not (self.statistics or self.spectrum or self.n_bands > 0):
            raise ValueError("Nothing to compute: statistics and spectrum are False and n_bands is 0.")
        n_channels = _as_windows(X).shape[1]
        if self.channel_names is not None and len(self.channel_names) != n_channels:
            raise ValueError(f"channel_names has {len(self.channel_names)} names for {n_channels} channels.")
        self.n_channels_ = n_channels
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the (n_windows, n_channels * features per channel) features, all of one channel side by side."""
        check_is_fitted(self)
        windows = _as_windows(X)
        if windows.shape[1] != self.n_channels_:
            raise ValueError(f"X has {windows.shape[1]} channels, but fit saw {self.n_channels_}.")
        if windows.shape[2] < 2 * self.n_bands:
            raise ValueError(
                f"Windows of {windows.shape[2]} samples are too short for {self.n_bands} frequency bands: at least "
                f"{2 * self.n_bands} samples are needed. Use longer windows or fewer bands."
            )
        flat = windows.reshape(-1, windows.shape[2])
        present = ~np.isnan(flat[:, 0])
        features = np.full((len(flat), len(self._names_of_a_channel())), np.nan)
        rows = np.flatnonzero(present)
        step = max(1, BLOCK_SAMPLES // flat.shape[1])
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            features[block] = self._channel_features(flat[block])
        return features.reshape(len(windows), -1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return ``<channel>_<feature>``."""
        check_is_fitted(self)
        channels = self.channel_names or [f"ch{c}" for c in range(self.n_channels_)]
        return np.array(
            [f"{channel}_{name}" for channel in channels for name in self._names_of_a_channel()], dtype=object
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _names_of_a_channel(self) -> list[str]:
        bands = [f"band{b}" for b in range(self.n_bands)]
        return [*(STATISTICS if self.statistics else ()), *(SPECTRAL if self.spectrum else ()), *bands]

    def _channel_features(self, signals: FloatArray) -> FloatArray:
        """Return the features of (n, n_samples) finite signals."""
        centered = signals - signals.mean(axis=1, keepdims=True)
        # a constant signal leaves rounding noise, which must not be magnified into skewness or a spectrum
        noise = 1e-12 * np.abs(signals).max(axis=1, keepdims=True, initial=0.0)
        centered = np.where(np.abs(centered).max(axis=1, keepdims=True, initial=0.0) <= noise, 0.0, centered)
        frequencies, power = periodogram(centered, fs=self.sampling_rate, window="hann", detrend=False, axis=1)
        columns = []
        if self.statistics:
            columns += _statistics(signals, centered, self.sampling_rate)
        if self.spectrum:
            columns += _spectral(frequencies, power)
        columns += _log_bands(power, self.n_bands)
        return np.column_stack(columns)


def _statistics(signals: FloatArray, centered: FloatArray, sampling_rate: float) -> list[FloatArray]:
    """Return the columns named in STATISTICS."""
    lower, median, upper = np.quantile(signals, [0.25, 0.5, 0.75], axis=1)
    varies = np.ptp(centered, axis=1) > 0
    third, fourth = np.zeros(len(signals)), np.zeros(len(signals))
    third[varies], fourth[varies] = skew(centered[varies], axis=1), kurtosis(centered[varies], axis=1)
    duration = signals.shape[1] / sampling_rate
    crossings = np.count_nonzero(np.diff(np.signbit(centered), axis=1), axis=1) / duration
    return [
        signals.mean(axis=1),
        centered.std(axis=1),
        signals.min(axis=1),
        signals.max(axis=1),
        median,
        upper - lower,
        third,
        fourth,
        crossings,
    ]


def _spectral(frequencies: FloatArray, power: FloatArray) -> list[FloatArray]:
    """Return the columns named in SPECTRAL."""
    share = power / np.maximum(power.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    positive = np.where(share > 0, share, 1.0)
    entropy = -(positive * np.log(positive)).sum(axis=1) / np.log(len(frequencies))
    return [frequencies[power.argmax(axis=1)], share @ frequencies, entropy]


def _log_bands(power: FloatArray, n_bands: int) -> list[FloatArray]:
    """Return log10 of the share of power in each of n_bands equal bands, the mean (frequency 0) left out."""
    if n_bands == 0:
        return []
    audible = power[:, 1:]
    starts = np.arange(n_bands) * audible.shape[1] // n_bands
    bands = np.add.reduceat(audible, starts, axis=1)
    total = bands.sum(axis=1, keepdims=True)
    share = np.where(total > 0, bands / np.maximum(total, np.finfo(float).tiny), 1.0 / n_bands)
    return list(np.log10(np.maximum(share, POWER_FLOOR)).T)


def _as_windows(X: Any) -> FloatArray:
    """Return (n_windows, n_channels, n_samples), each channel of a window either finite or all NaN."""
    windows = check_array(X, dtype=np.float64, allow_nd=True, ensure_all_finite="allow-nan", input_name="X")
    if windows.ndim == 2:
        windows = windows[:, np.newaxis, :]
    if windows.ndim != 3:
        raise ValueError(
            f"Windows must be (n_windows, n_channels, n_samples) or (n_windows, n_samples), got shape {windows.shape}."
        )
    complete = np.isfinite(windows).all(axis=2)
    broken = np.argwhere(~complete & ~np.isnan(windows).all(axis=2))
    if len(broken):
        row, channel = broken[0]
        raise ValueError(
            f"Window {row}, channel {channel} has some NaN samples. Repair or interpolate them, or set the "
            "channel to NaN throughout the window to mark it as missing."
        )
    return np.asarray(windows)
