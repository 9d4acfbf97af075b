"""Features of windows of multi-channel signals: statistics and spectral bands per channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import periodogram
from scipy.stats import kurtosis, skew
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from cmvmed.features.signal_blocks import stacked_by_shape
from cmvmed.recordings.container import SensorSignals
from cmvmed.recordings.signal_values import check_sampling_rate, is_partly_invalid, is_same_rate

FloatArray = NDArray[np.float64]

STATISTIC_NAMES = ("mean", "std", "min", "max", "median", "iqr", "skew", "kurtosis", "crossings")
SPECTRUM_NAMES = ("peak_hz", "centroid_hz", "entropy")
BLOCK_SAMPLES = 2**19  # samples per block, so that memory does not grow with the number of windows
MIN_POWER_SHARE = 1e-12  # lower bound of the share of a band, so that its logarithm is finite


class WindowFeatures(TransformerMixin, BaseEstimator):
    """Statistics and spectral features of each channel in windows of a multi-channel signal.

    Parameters
    ----------
    sampling_rate : float
        Samples per second; with 1.0, frequencies are in cycles per sample.
    n_bands : int
        Number of equal frequency bands between 0 and half the sampling rate; the log10 of the share of the power in
        each is a feature. 0: none.
    statistics : bool
        Compute mean, standard deviation, minimum, maximum, median, interquartile range, skewness, excess kurtosis,
        and the rate at which the signal crosses its mean (per second).
    spectrum : bool
        Compute the frequency of the strongest component, the power-weighted mean frequency, and the spectral entropy
        (0: one frequency, 1: flat).
    channel_names : sequence of str, optional
        Names used in the feature names; None: ``ch0``, ``ch1``, ...

    Attributes
    ----------
    n_channels_ : int
        Number of channels seen in ``fit``.

    Notes
    -----
    X is (n_windows, n_channels, n_samples), as :func:`segment_windows` returns it, (n_windows, n_samples) for one
    channel, or the signals of a sensor in :class:`cmvmed.recordings.Recordings`, which may differ in length. A channel
    that is all NaN in a window has NaN features; NaN in a part of it is an error. A constant channel has zero skewness,
    kurtosis, frequencies and entropy, and equal bands.

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

    def fit(self, X: ArrayLike | SensorSignals, y: object = None) -> Self:
        """Store the number of channels; nothing is learned from the values.

        Parameters
        ----------
        X : (n_windows, n_channels, n_samples) or (n_windows, n_samples)
        y : ignored
        """
        check_sampling_rate(self.sampling_rate)
        if self.n_bands < 0:
            raise ValueError(f"n_bands must not be negative, got {self.n_bands!r}.")
        if not (self.statistics or self.spectrum or self.n_bands > 0):
            raise ValueError("Nothing to compute: statistics and spectrum are False and n_bands is 0.")
        n_channels = X.n_channels if isinstance(X, SensorSignals) else _as_windows(X).shape[1]
        if self.channel_names is not None and len(self.channel_names) != n_channels:
            raise ValueError(f"channel_names has {len(self.channel_names)} names for {n_channels} channels.")
        self.n_channels_ = n_channels
        return self

    def transform(self, X: ArrayLike | SensorSignals) -> FloatArray:
        """Return the (n_windows, n_channels * n_features_per_channel) features, channel after channel."""
        check_is_fitted(self)
        if isinstance(X, SensorSignals) and not is_same_rate(X.sampling_rate, self.sampling_rate):
            raise ValueError(
                f"Sensor {X.name!r} has {X.sampling_rate:g} Hz, but sampling_rate is {self.sampling_rate:g} Hz. "
                "Correct sampling_rate, or bring the sensor to this rate with cmvmed.recordings.resample."
            )
        signals = X if isinstance(X, SensorSignals) else _as_windows(X)
        n_features = len(self._channel_feature_names())
        features = np.full((len(signals), self.n_channels_, n_features), np.nan)
        for rows, stacked in stacked_by_shape(enumerate(signals), BLOCK_SAMPLES):
            windows = _as_windows(stacked)
            if windows.shape[1] != self.n_channels_:
                raise ValueError(f"X has {windows.shape[1]} channels, but the data of fit had {self.n_channels_}.")
            if windows.shape[2] < 2 * self.n_bands:
                where = signals.place(int(rows[0])) if isinstance(signals, SensorSignals) else f"window {rows[0]}"
                raise ValueError(
                    f"The signal of {where} has {windows.shape[2]} samples, too short for {self.n_bands} frequency bands: at "
                    f"least {2 * self.n_bands} are needed. Leave it out, use longer windows, or fewer bands."
                )
            found = np.full((*windows.shape[:2], n_features), np.nan)
            present = ~np.isnan(windows[:, :, 0])
            found[present] = self._channel_features(windows[present])
            features[rows] = found
        return features.reshape(len(signals), -1)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return ``<channel>_<feature>``."""
        check_is_fitted(self)
        channels = self.channel_names or [f"ch{c}" for c in range(self.n_channels_)]
        return np.array(
            [f"{channel}_{name}" for channel in channels for name in self._channel_feature_names()], dtype=object
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _channel_feature_names(self) -> list[str]:
        bands = [f"band{b}" for b in range(self.n_bands)]
        return [*(STATISTIC_NAMES if self.statistics else ()), *(SPECTRUM_NAMES if self.spectrum else ()), *bands]

    def _channel_features(self, signals: FloatArray) -> FloatArray:
        """Return the features of (n, n_samples) finite signals."""
        centered = signals - signals.mean(axis=1, keepdims=True)
        # rounding errors of a constant signal must not become skewness or a spectrum
        tolerance = 1e-12 * np.abs(signals).max(axis=1, keepdims=True, initial=0.0)
        centered = np.where(np.abs(centered).max(axis=1, keepdims=True, initial=0.0) <= tolerance, 0.0, centered)
        frequencies, power = periodogram(centered, fs=self.sampling_rate, window="hann", detrend=False, axis=1)
        columns = []
        if self.statistics:
            columns += _statistics(signals, centered, self.sampling_rate)
        if self.spectrum:
            columns += _spectral(frequencies, power)
        columns += _log_bands(power, self.n_bands)
        return np.column_stack(columns)


def _statistics(signals: FloatArray, centered: FloatArray, sampling_rate: float) -> list[FloatArray]:
    """Return the columns named in STATISTIC_NAMES."""
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
    """Return the columns named in SPECTRUM_NAMES."""
    share = power / np.maximum(power.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    positive = np.where(share > 0, share, 1.0)
    entropy = -(positive * np.log(positive)).sum(axis=1) / np.log(len(frequencies))
    return [frequencies[power.argmax(axis=1)], share @ frequencies, entropy]


def _log_bands(power: FloatArray, n_bands: int) -> list[FloatArray]:
    """Return log10 of the share of power in each of n_bands equal bands, without the mean (frequency 0)."""
    if n_bands == 0:
        return []
    without_mean = power[:, 1:]
    starts = np.arange(n_bands) * without_mean.shape[1] // n_bands
    bands = np.add.reduceat(without_mean, starts, axis=1)
    total = bands.sum(axis=1, keepdims=True)
    share = np.where(total > 0, bands / np.maximum(total, np.finfo(float).tiny), 1.0 / n_bands)
    return list(np.log10(np.maximum(share, MIN_POWER_SHARE)).T)


def _as_windows(X: ArrayLike) -> FloatArray:
    """Return (n_windows, n_channels, n_samples), each channel of a window either finite or all NaN."""
    windows = check_array(X, dtype=np.float64, allow_nd=True, ensure_all_finite="allow-nan", input_name="X")
    if windows.ndim == 2:
        windows = windows[:, np.newaxis, :]
    if windows.ndim != 3:
        raise ValueError(
            f"Windows must be (n_windows, n_channels, n_samples) or (n_windows, n_samples), got shape {windows.shape}."
        )
    invalid = np.argwhere(is_partly_invalid(windows))
    if len(invalid):
        row, channel = invalid[0]
        raise ValueError(
            f"Window {row}, channel {channel} has some NaN samples. Repair or interpolate them, or set the "
            "channel to NaN throughout the window to mark it as missing."
        )
    return np.asarray(windows)
