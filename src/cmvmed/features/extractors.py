"""Extractors of features from blocks of signals, one class per kind of features.

An extractor learns from a sample of the signals (levels of the channels, biases of the convolutions), never from labels,
and then maps signals of any length to vectors of one length. What it has learned are numbers, texts and arrays, so that a
model file can hold it; objects of other packages are made again from them.

==============  ========================================================================================
minirocket      share of positive values of 84 fixed convolutions at several dilations and thresholds [1]_
multirocket     four statistics of such convolutions, of the signal and of its differences [2]_
hydra           how often each of some competing random convolutions is the largest [3]_
catch22         22 statistics of shape, dependence and spectrum, with mean and standard deviation [4]_
mfcc            mel-frequency cepstral coefficients (:class:`cmvmed.features.MFCC`)
statistics      statistics and spectral bands (:class:`cmvmed.features.WindowFeatures`)
ranks           the same statistics, each as the normal score of its rank among those of the sample
==============  ========================================================================================

The first four are those of aeon (extra ``timeseries``); hydra also needs torch.

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
from dataclasses import dataclass
from functools import cached_property
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
LEARNED = {  # fitted attributes of these classes: tuples of arrays, of which the last are biases, the only ones from signals
    "minirocket": ("parameters",),
    "multirocket": ("parameter", "parameter1"),
    "hydra": (),
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
MAX_LENGTH = 2**31  # samples of a signal


class Extractor(Protocol):
    """Features of one kind."""

    def features(self, signals: FloatArray) -> NDArray[np.floating[Any]]:
        """The features of signals (n, n_channels, n_samples)."""

    def names(self) -> list[str]:
        """The names of the features."""


@dataclass(frozen=True)
class ExtractorSettings:
    """What extractors do not learn from signals."""

    sampling_rate: float
    channel_names: tuple[str, ...]
    random_state: int
    n_jobs: int


def is_available(kind: str) -> bool:
    """Return whether the packages of a kind are installed."""
    return all(find_spec(package) is not None for package, _ in NEEDS.get(kind, ()))


def fit_extractor(kind: str, settings: ExtractorSettings, sample: Sequence[FloatArray]) -> Extractor:
    """Return the extractor of a kind, learned from (n_channels, n_samples) signals.

    An ImportError says what to install.
    """
    for package, extra in NEEDS.get(kind, ()):
        import_optional(package, extra, f'Features of kind "{kind}"')
    if kind == "statistics":
        return fit_statistics(settings, sample)
    if kind == "ranks":
        return fit_ranks(settings, sample)
    if kind == "mfcc":
        return Cepstra(settings.sampling_rate, settings.channel_names)
    if kind == "catch22":
        return Catch22(settings.channel_names, settings.n_jobs)
    return fit_convolutions(kind, settings, sample)


@dataclass(frozen=True, eq=False)
class Convolutions:
    """Random convolutions of aeon on channels of mean 0 and standard deviation 1 over the sample.

    The convolutions, whose longest is as long as the signal, are made for a length L that nine of ten signals of the
    sample have. A longer signal is covered by the smallest number of windows of length L, and its features are the mean
    over the windows, which suits features that are proportions and means over time; a shorter one is extended by its
    last value.
    """

    kind: str
    random_state: int
    n_jobs: int
    length: int  # L
    mean: FloatArray  # (n_channels, 1)
    deviation: FloatArray  # (n_channels, 1)
    learned: tuple[tuple[NDArray[Any], ...], ...]  # by the names of LEARNED
    n_features: int

    def __post_init__(self) -> None:
        shape = (len(self.mean), 1)
        if self.kind not in CONVOLUTIONS or not MIN_CONVOLUTION_SAMPLES <= self.length < MAX_LENGTH:
            raise ValueError(f"Random convolutions cannot be of kind {self.kind!r:.40} and length {self.length!r:.40}.")
        if self.mean.shape != shape or self.deviation.shape != shape or len(self.learned) != len(LEARNED[self.kind]):
            raise ValueError("Random convolutions need one level per channel, and the biases of their kind.")

    @cached_property
    def transform(self) -> Any:
        """The transform of aeon.

        A fit to zeros gives all that depends on length, channels and seed; the biases are those that were learned. Arrays
        that differ otherwise are those of another release of aeon, or not from aeon: compiled code reads at any index
        that it finds in them.
        """
        with unchanged_random_state():
            transform = new_transform(self.kind, self.random_state, self.n_jobs)
            transform.fit(np.zeros((2, len(self.mean), self.length), dtype=np.float32))
        for name, arrays in zip(LEARNED[self.kind], self.learned, strict=True):
            if not _differ_in_biases_only(getattr(transform, name), arrays):
                raise ValueError(
                    f"The convolutions of kind {self.kind!r} were made by another release of aeon than the installed one; "
                    "install that release, or train again."
                )
            setattr(transform, name, tuple(arrays))
        return transform

    def features(self, signals: FloatArray) -> NDArray[np.floating[Any]]:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        parts = windows(extend(signals, self.length), self.length)
        return np.asarray(np.mean([self._convolved(part) for part in parts], axis=0))

    def names(self) -> list[str]:
        """Return ``minirocket0``, ..."""
        return [f"{self.kind}{j}" for j in range(self.n_features)]

    def _convolved(self, signals: FloatArray) -> NDArray[np.floating[Any]]:
        return convolved(self.transform, scaled(signals, self.mean, self.deviation))


def fit_convolutions(kind: str, settings: ExtractorSettings, sample: Sequence[FloatArray]) -> Convolutions:
    """Learn levels of the channels and biases of the convolutions."""
    length = reference_length(sample, MIN_CONVOLUTION_SAMPLES)
    everything = np.concatenate(sample, axis=1)
    mean, deviation = everything.mean(axis=1, keepdims=True), everything.std(axis=1, keepdims=True)
    deviation = np.where(deviation > 0.0, deviation, 1.0)
    equal = np.stack([center_part(extend(signal[np.newaxis], length)[0], length) for signal in sample])
    inputs = scaled(equal, mean, deviation)
    with unchanged_random_state():
        transform = new_transform(kind, settings.random_state, settings.n_jobs)
        transform.fit(np.repeat(inputs, 2, axis=0) if len(inputs) == 1 else inputs)
    learned = tuple(tuple(getattr(transform, name)) for name in LEARNED[kind])
    n_features = convolved(transform, inputs[:1]).shape[1]
    return Convolutions(kind, settings.random_state, settings.n_jobs, length, mean, deviation, learned, n_features)


def new_transform(kind: str, random_state: int, n_jobs: int) -> Any:
    """Return an unfitted transform of aeon."""
    name, arguments = CONVOLUTIONS[kind]
    module = import_optional("aeon.transformations.collection.convolution_based", "timeseries", name)
    return getattr(module, name)(random_state=random_state, n_jobs=n_jobs, **arguments)


def convolved(transform: Any, signals: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the (n, n_features) output of a transform of aeon."""
    # aeon drops an axis of length one; the first of two equal signals is not affected
    doubled = np.repeat(signals, 2, axis=0) if len(signals) == 1 else signals
    with unchanged_random_state():
        return np.asarray(transform.transform(doubled), dtype=np.float32)[: len(signals)]


def scaled(signals: FloatArray, mean: FloatArray, deviation: FloatArray) -> NDArray[np.float32]:
    """Return signals with the levels of the sample."""
    return np.asarray((signals - mean) / deviation, dtype=np.float32)


def _differ_in_biases_only(own: Sequence[NDArray[Any]], given: Sequence[NDArray[Any]]) -> bool:
    same_types = [(a.shape, a.dtype) for a in own] == [(np.shape(b), getattr(b, "dtype", None)) for b in given]
    return same_types and all(np.array_equal(a, b) for a, b in zip(own[:-1], given[:-1], strict=True))


@dataclass(frozen=True)
class Statistics:
    """Statistics and spectral bands of each channel."""

    sampling_rate: float
    channel_names: tuple[str, ...]
    n_bands: int

    def __post_init__(self) -> None:
        if not 0 <= self.n_bands <= MAX_BANDS:
            raise ValueError(f"Statistics have 0 to {MAX_BANDS} bands, not {self.n_bands!r:.40}.")

    @cached_property
    def transform(self) -> WindowFeatures:
        """The transformer, which learns nothing from signals."""
        made = WindowFeatures(self.sampling_rate, n_bands=self.n_bands, channel_names=self.channel_names)
        made.set_output(transform="default")  # arrays, whatever scikit-learn is configured to return
        return made.fit(np.zeros((1, len(self.channel_names), 2 * MAX_BANDS)))

    def features(self, signals: FloatArray) -> FloatArray:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        return self.transform.transform(extend(signals, 2 * self.n_bands))

    def names(self) -> list[str]:
        """Return ``<channel>_<feature>``."""
        return [str(name) for name in self.transform.get_feature_names_out()]


@dataclass(frozen=True, eq=False)
class Ranks:
    """Statistics as normal scores of their ranks among those of the sample.

    Classes of machines and events often differ in whether a statistic passes a threshold, which may lie anywhere in a
    skewed distribution. Like trees, and unlike linear functions and distances of the statistics themselves, scores do
    not depend on the unit or a monotone transform, and no outlier is far from the others.
    """

    statistics: Statistics
    reference: FloatArray  # (m, n_features), the sorted values of each statistic in the sample

    def __post_init__(self) -> None:
        if not isinstance(self.statistics, Statistics) or np.shape(self.reference)[1:] != (
            len(self.statistics.names()),
        ):
            raise ValueError("Ranks need statistics and a column of reference values for each of them.")

    def features(self, signals: FloatArray) -> FloatArray:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        return normal_scores(self.statistics.features(signals), self.reference)

    def names(self) -> list[str]:
        """Return ``<channel>_<feature>_rank``."""
        return [f"{name}_rank" for name in self.statistics.names()]


def fit_statistics(settings: ExtractorSettings, sample: Sequence[FloatArray]) -> Statistics:
    """Return the statistics with as many bands as the signals of the sample allow."""
    n_bands = min(MAX_BANDS, reference_length(sample, 2) // 2)  # at most half the samples of the shorter signals
    return Statistics(settings.sampling_rate, settings.channel_names, n_bands)


def fit_ranks(settings: ExtractorSettings, sample: Sequence[FloatArray]) -> Ranks:
    """Return the ranks among the statistics of the sample."""
    statistics = fit_statistics(settings, sample)
    values = [np.asarray(statistics.features(signal[np.newaxis]), dtype=np.float64) for signal in sample]
    return Ranks(statistics, np.sort(np.vstack(values), axis=0))


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


@dataclass(frozen=True)
class Cepstra:
    """Mel-frequency cepstral coefficients of each channel, with the level of the signal in decibels."""

    sampling_rate: float
    channel_names: tuple[str, ...]

    @cached_property
    def transform(self) -> MFCC:
        """The transformer, which learns nothing from signals."""
        return MFCC(self.sampling_rate, n_frames=MFCC_PARTS, clipping="ignore", silence="keep").fit(np.zeros((1, 2)))

    def features(self, signals: FloatArray) -> FloatArray:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        length = max(int(self.transform.librosa_arguments_[name]) for name in ("n_fft", "hop_length"))
        extended = extend(signals, length)
        return np.hstack([self.transform.transform(extended[:, c]) for c in range(extended.shape[1])])

    def names(self) -> list[str]:
        """Return ``<channel>_mfcc<coefficient>_t<part>``."""
        own = self.transform.get_feature_names_out()
        return [f"{channel}_{name}" for channel in self.channel_names for name in own]


@dataclass(frozen=True)
class Catch22:
    """catch22 with mean and standard deviation of each channel, by aeon."""

    channel_names: tuple[str, ...]
    n_jobs: int

    @cached_property
    def transform(self) -> Any:
        """The transform of aeon, which learns nothing from signals."""
        module = import_optional("aeon.transformations.collection.feature_based", "timeseries", "catch22")
        made = module.Catch22(catch24=True, replace_nans=True, n_jobs=self.n_jobs)
        return made.fit(np.zeros((1, len(self.channel_names), 3)))

    def features(self, signals: FloatArray) -> FloatArray:
        """Return the (n, n_features) features of (n, n_channels, n_samples) signals."""
        return np.asarray(self.transform.transform(extend(signals, 3)), dtype=np.float64)

    def names(self) -> list[str]:
        """Return ``<channel>_catch<number>``."""
        return [f"{channel}_catch{j}" for channel in self.channel_names for j in range(24)]


EXTRACTORS: dict[str, type[Any]] = {
    **dict.fromkeys(CONVOLUTIONS, Convolutions),
    "catch22": Catch22,
    "mfcc": Cepstra,
    "ranks": Ranks,
    "statistics": Statistics,
}


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
