"""Extractors of features from blocks of signals, one class per kind of features.

An extractor learns from a sample of the signals (levels of the channels, biases of the convolutions), never from labels,
and then maps signals of any length to vectors of one length.

==============  ========================================================================================
minirocket      share of positive values of 84 fixed convolutions at several dilations and thresholds [1]_
multirocket     four statistics of such convolutions, of the signal and of its differences [2]_
hydra           how often each of some competing random convolutions is the largest [3]_
catch22         22 statistics of shape, dependence and spectrum, with mean and standard deviation [4]_
mfcc            mel-frequency cepstral coefficients (:class:`cmvmed.features.MFCC`)
statistics      statistics and spectral bands (:class:`cmvmed.features.WindowFeatures`)
ranks           the same statistics, each as the normal score of its rank among those of the sample
==============  ========================================================================================

The first four are those of aeon (``pip install 'cmvmed[timeseries]'``); hydra also needs torch.

References
----------
.. [1] Dempster, Schmidt and Webb, MiniRocket, KDD 2021.
.. [2] Tan, Dempster, Bergmeir and Webb, MultiRocket, Data Mining and Knowledge Discovery 2022.
.. [3] Dempster, Schmidt and Webb, Hydra, Data Mining and Knowledge Discovery 2023.
.. [4] Lubba et al., catch22, Data Mining and Knowledge Discovery 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cmvmed._optional import import_optional
from cmvmed.features.mfcc import MFCC
from cmvmed.features.window_features import WindowFeatures

if TYPE_CHECKING:
    from collections.abc import Iterator

FloatArray = NDArray[np.float64]

KINDS = ("minirocket", "multirocket", "hydra", "catch22", "mfcc", "statistics", "ranks")
CONVOLUTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "minirocket": ("MiniRocket", {"n_kernels": 2500}),
    "multirocket": ("MultiRocket", {"n_kernels": 320}),
    "hydra": ("HydraTransformer", {"output_type": "numpy"}),
}
NEEDS = {  # packages and extras; those without an entry need nothing
    "minirocket": (("aeon", "timeseries"),),
    "multirocket": (("aeon", "timeseries"),),
    "hydra": (("aeon", "timeseries"), ("torch", None)),
    "catch22": (("aeon", "timeseries"),),
    "mfcc": (("librosa", "audio"),),
}
MIN_CONVOLUTION_SAMPLES = 10  # convolutions have 9 samples, and are also made of differences
MFCC_PARTS = 2  # parts of a signal over which cepstra are averaged: events can be anywhere in it
MAX_BANDS = 8


class Extractor(Protocol):
    """Features of one kind."""

    def fit(self, sample: Sequence[FloatArray]) -> Extractor: ...  # noqa: D102

    def features(self, signals: FloatArray) -> NDArray[np.floating[Any]]: ...  # noqa: D102

    def names(self) -> list[str]: ...  # noqa: D102


def is_available(kind: str) -> bool:
    """Return whether the packages of a kind are installed."""
    return all(find_spec(package) is not None for package, _ in NEEDS.get(kind, ()))


def make_extractor(
    kind: str, sampling_rate: float, channel_names: Sequence[str], random_state: int, n_jobs: int
) -> Extractor:
    """Return an unfitted extractor; an ImportError says what to install."""
    for package, extra in NEEDS.get(kind, ()):
        import_optional(package, extra, f'Features of kind "{kind}"')
    if kind == "statistics":
        return Statistics(sampling_rate, tuple(channel_names))
    if kind == "ranks":
        return Ranks(Statistics(sampling_rate, tuple(channel_names)))
    if kind == "mfcc":
        return Cepstra(sampling_rate, tuple(channel_names))
    if kind == "catch22":
        return Catch22(tuple(channel_names), n_jobs)
    return Convolutions(kind, random_state, n_jobs)


class Convolutions:
    """Random convolutions of aeon on channels of mean 0 and standard deviation 1 over the sample.

    The convolutions, whose longest is as long as the signal, are made for a length L that nine of ten signals of the
    sample have. A longer signal is covered by the smallest number of windows of length L, and its features are the mean
    over the windows, which suits features that are proportions and means over time; a shorter one is extended by its
    last value.
    """

    def __init__(self, kind: str, random_state: int, n_jobs: int) -> None:
        self.kind, self.random_state, self.n_jobs = kind, random_state, n_jobs

    def fit(self, sample: Sequence[FloatArray]) -> Convolutions:
        """Learn levels of the channels and biases of the convolutions."""
        self.length = reference_length(sample, MIN_CONVOLUTION_SAMPLES)
        everything = np.concatenate(sample, axis=1)
        self.mean = everything.mean(axis=1, keepdims=True)
        deviation = everything.std(axis=1, keepdims=True)
        self.deviation = np.where(deviation > 0.0, deviation, 1.0)
        equal = np.stack([center_part(extend(signal[np.newaxis], self.length)[0], self.length) for signal in sample])
        name, arguments = CONVOLUTIONS[self.kind]
        module = import_optional("aeon.transformations.collection.convolution_based", "timeseries", name)
        transform = getattr(module, name)(random_state=self.random_state, n_jobs=self.n_jobs, **arguments)
        with unchanged_random_state():
            self.transform = transform.fit(self._scaled(np.repeat(equal, 2, axis=0) if len(equal) == 1 else equal))
            self.n_features = self._convolved(equal[:1]).shape[1]
        return self

    def features(self, signals: FloatArray) -> NDArray[np.floating[Any]]:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        with unchanged_random_state():
            parts = windows(extend(signals, self.length), self.length)
            return np.asarray(np.mean([self._convolved(part) for part in parts], axis=0))

    def names(self) -> list[str]:
        """Return ``minirocket0``, ..."""
        return [f"{self.kind}{j}" for j in range(self.n_features)]

    def _convolved(self, signals: FloatArray) -> NDArray[np.floating[Any]]:
        scaled = self._scaled(signals)
        # aeon drops an axis of length one; the first of two equal signals is not affected
        doubled = np.repeat(scaled, 2, axis=0) if len(scaled) == 1 else scaled
        return np.asarray(self.transform.transform(doubled), dtype=np.float32)[: len(scaled)]

    def _scaled(self, signals: FloatArray) -> NDArray[np.float32]:
        return np.asarray((signals - self.mean) / self.deviation, dtype=np.float32)


class Statistics:
    """Statistics and spectral bands of each channel."""

    def __init__(self, sampling_rate: float, channel_names: tuple[str, ...]) -> None:
        self.sampling_rate, self.channel_names = sampling_rate, channel_names

    def fit(self, sample: Sequence[FloatArray]) -> Statistics:
        """Choose the number of bands, at most half the samples of the shorter signals."""
        self.length = reference_length(sample, 2)
        n_bands = min(MAX_BANDS, self.length // 2)
        self.transform = WindowFeatures(self.sampling_rate, n_bands=n_bands, channel_names=self.channel_names)
        self.transform.fit(sample[0][np.newaxis])
        return self

    def features(self, signals: FloatArray) -> FloatArray:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        return self.transform.transform(extend(signals, 2 * self.transform.n_bands))

    def names(self) -> list[str]:
        """Return ``<channel>_<feature>``."""
        return [str(name) for name in self.transform.get_feature_names_out()]


class Ranks:
    """Statistics as normal scores of their ranks among those of the sample.

    Classes of machines and events often differ in whether a statistic passes a threshold, which may lie anywhere in a
    skewed distribution. Like trees, and unlike linear functions and distances of the statistics themselves, scores do
    not depend on the unit or a monotone transform, and no outlier is far from the others.
    """

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics

    def fit(self, sample: Sequence[FloatArray]) -> Ranks:
        """Learn the values of each statistic in the sample."""
        self.statistics.fit(sample)
        self.sorted = np.sort(np.vstack([self.statistics.features(signal[np.newaxis]) for signal in sample]), axis=0)
        return self

    def features(self, signals: FloatArray) -> FloatArray:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        return normal_scores(self.statistics.features(signals), self.sorted)

    def names(self) -> list[str]:
        """Return ``<channel>_<feature>_rank``."""
        return [f"{name}_rank" for name in self.statistics.names()]


def normal_scores(values: FloatArray, reference: FloatArray) -> FloatArray:
    """Return Φ⁻¹(r/(m + 1)) for the rank r, 1 to m, of each value among m sorted reference values of its column.

    The rank is interpolated between reference values; of several equal ones it is the mean.
    """
    share = np.arange(1, len(reference) + 1) / (len(reference) + 1)
    shares = np.empty(values.shape)
    for j, column in enumerate(reference.T):
        of_last = np.interp(values[:, j], column, share)
        of_first = -np.interp(-values[:, j], -column[::-1], -share[::-1])
        shares[:, j] = 0.5 * (of_first + of_last)
    return np.asarray(ndtri(shares), dtype=np.float64)


class Cepstra:
    """Mel-frequency cepstral coefficients of each channel, with the level of the signal in decibels."""

    def __init__(self, sampling_rate: float, channel_names: tuple[str, ...]) -> None:
        self.sampling_rate, self.channel_names = sampling_rate, channel_names

    def fit(self, sample: Sequence[FloatArray]) -> Cepstra:
        """Determine frame lengths."""
        self.transform = MFCC(self.sampling_rate, n_frames=MFCC_PARTS, clipping="ignore", silence="keep")
        self.transform.fit(sample[0][:1])
        self.length = max(int(self.transform.librosa_arguments_[name]) for name in ("n_fft", "hop_length"))
        return self

    def features(self, signals: FloatArray) -> FloatArray:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        extended = extend(signals, self.length)
        return np.hstack([self.transform.transform(extended[:, c]) for c in range(extended.shape[1])])

    def names(self) -> list[str]:
        """Return ``<channel>_mfcc<coefficient>_t<part>``."""
        own = self.transform.get_feature_names_out()
        return [f"{channel}_{name}" for channel in self.channel_names for name in own]


class Catch22:
    """catch22 with mean and standard deviation of each channel, by aeon."""

    def __init__(self, channel_names: tuple[str, ...], n_jobs: int) -> None:
        self.channel_names, self.n_jobs = channel_names, n_jobs

    def fit(self, sample: Sequence[FloatArray]) -> Catch22:
        """Import aeon; nothing is learned."""
        module = import_optional("aeon.transformations.collection.feature_based", "timeseries", "catch22")
        self.transform = module.Catch22(catch24=True, replace_nans=True, n_jobs=self.n_jobs)
        self.transform.fit(extend(sample[0][np.newaxis], 3))
        return self

    def features(self, signals: FloatArray) -> FloatArray:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        return np.asarray(self.transform.transform(extend(signals, 3)), dtype=np.float64)

    def names(self) -> list[str]:
        """Return ``<channel>_catch<number>``."""
        return [f"{channel}_catch{j}" for channel in self.channel_names for j in range(24)]


def reference_length(sample: Sequence[FloatArray], smallest: int) -> int:
    """Return a length that nine of ten signals have, at least ``smallest``."""
    lengths: list[int] = sorted(signal.shape[1] for signal in sample)
    return max(smallest, lengths[len(lengths) // 10])


def extend(signals: FloatArray, length: int) -> FloatArray:
    """Repeat the last sample of (n, n_channels, n_samples) signals up to ``length`` samples."""
    n_missing = length - signals.shape[2]
    return signals if n_missing <= 0 else np.pad(signals, ((0, 0), (0, 0), (0, n_missing)), mode="edge")


def windows(signals: FloatArray, length: int) -> list[FloatArray]:
    """Return the fewest windows that cover (n, n_channels, n_samples) signals, at equal distances."""
    n_samples = signals.shape[2]
    starts = np.linspace(0, n_samples - length, -(-n_samples // length)).round().astype(int)
    return [signals[:, :, start : start + length] for start in starts]


def center_part(signal: FloatArray, length: int) -> FloatArray:
    """Return ``length`` samples in the middle of a (n_channels, n_samples) signal."""
    start = (signal.shape[1] - length) // 2
    return signal[:, start : start + length]


@contextmanager
def unchanged_random_state() -> Iterator[None]:
    """Keep the global random state of NumPy, which aeon seeds."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
