"""Features of the signals of one sensor."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from cmvmed.features.extractors import EXTRACTORS, KINDS, Extractor, ExtractorSettings, fit_extractor
from cmvmed.features.feature_cache import FeatureCache
from cmvmed.features.signal_blocks import (
    FloatArray,
    SensorInput,
    as_sensor_signals,
    blocks_of_equal_length,
    read_signal,
)
from cmvmed.recordings.container import SensorSignals

FIT_SIGNALS = 200  # signals from which levels and biases are learned: aeon takes one bias from one signal


class SignalFeatures(TransformerMixin, BaseEstimator):
    """Features of one kind of the signals of one sensor.

    Parameters
    ----------
    kind : {"minirocket", "multirocket", "hydra", "catch22", "mfcc", "statistics", "ranks"}
        Random convolutions and catch22 are those of aeon, which the extra ``timeseries`` installs; "hydra" also
        needs torch, and "mfcc" the extra ``audio``. Several kinds joined by ``"+"`` are side by side, narrow ones repeated
        until all have about the same number of columns: standardized, each kind then has the same weight in kernels and distances.
    sampling_rate : float, optional
        Samples per second of signals given as arrays; None: 1.
    memory : path or FeatureCache, optional
        Folder of .npy files in which features are kept, or ``FeatureCache()``, which keeps the last ones in memory. They
        are found again by the content of the signals and the settings, so that ``predict`` and ``predict_proba`` on the
        same signals compute them once.
    random_state : int
        Seed of the random convolutions.
    n_jobs : int, optional
        Threads of aeon; -1 for all cores.

    Attributes
    ----------
    sampling_rate_ : float
    channel_names_ : tuple of str
    n_features_out_ : int

    Notes
    -----
    X is a :class:`cmvmed.recordings.SensorSignals`, an array (n_rows, n_channels, n_samples) or (n_rows, n_samples),
    or a list of such signals, which may differ in length. None, or a signal that is all NaN, is a missing sensor and
    becomes a row of NaN. NaN in a part of a signal is an error that names the row.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> signals = [rng.normal(size=(3, 80)), None, rng.normal(size=(3, 120))]
    >>> SignalFeatures("statistics", sampling_rate=50.0).fit_transform(signals).shape
    (3, 60)
    """

    def __init__(
        self,
        kind: str = "minirocket",
        *,
        sampling_rate: float | None = None,
        memory: Any = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.sampling_rate = sampling_rate
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: SensorInput, y: object = None) -> Self:
        """Learn levels of the channels and biases of the convolutions from at most 200 of the signals.

        Parameters
        ----------
        X : signals
            See the notes of the class.
        y : ignored
        """
        kinds = check_kinds(self.kind)
        signals = as_sensor_signals(X, self.sampling_rate)
        rows, sample = _sample(signals, self.random_state)
        settings = ExtractorSettings(
            signals.sampling_rate, tuple(signals.channel_names), self.random_state, self.n_jobs or 1
        )
        self.sampling_rate_, self.channel_names_ = settings.sampling_rate, settings.channel_names
        self._extractors = [_fitted(kind, settings, sample, signals, rows) for kind in kinds]
        self.n_features_out_ = len(self.get_feature_names_out())
        return self

    @property
    def n_features_by_kind(self) -> dict[str, int]:
        """Number of features of each of the kinds, repeated columns not counted."""
        check_is_fitted(self)
        kinds = check_kinds(self.kind)
        return {kind: len(extractor.names()) for kind, extractor in zip(kinds, self._extractors, strict=True)}

    def _join(self, parts: Sequence[SignalFeatures]) -> Self:
        """Take over what was learned for each of the kinds alone, from the same signals."""
        self.sampling_rate_, self.channel_names_ = parts[0].sampling_rate_, parts[0].channel_names_
        self._extractors = [extractor for part in parts for extractor in part._extractors]
        self.n_features_out_ = len(self.get_feature_names_out())
        return self

    def transform(self, X: SensorInput) -> NDArray[np.floating[Any]]:
        """Return the (n_rows, n_features) features, NaN in rows without the sensor."""
        check_is_fitted(self)
        signals = as_sensor_signals(X, self.sampling_rate)
        if signals.sampling_rate != self.sampling_rate_:
            raise ValueError(
                f"Sensor {signals.name!r} has {signals.sampling_rate:g} Hz, but the data of fit had {self.sampling_rate_:g} Hz. "
                "Bring it to this rate with cmvmed.recordings.resample."
            )
        if signals.n_channels != len(self.channel_names_):
            raise ValueError(
                f"Sensor {signals.name!r} has {signals.n_channels} channels, but the data of fit had {len(self.channel_names_)}: "
                f"{', '.join(self.channel_names_)}."
            )
        widths = [len(extractor.names()) for extractor in self._extractors]
        columns = side_by_side(widths)
        if self.memory is None:
            return compute_features(self._extractors, sum(widths), signals)[:, columns]
        cache = self.memory if isinstance(self.memory, FeatureCache) else FeatureCache(self.memory)
        content = content_hash(signals, len(self.channel_names_))
        parts = [
            cache.get(
                f"{extractor_hash([extractor])}-{content}", partial(compute_features, [extractor], width, signals)
            )
            for extractor, width in zip(self._extractors, widths, strict=True)
        ]
        return np.hstack(parts)[:, columns]

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the names of the features."""
        check_is_fitted(self)
        return np.array(side_by_side_names([extractor.names() for extractor in self._extractors]), dtype=object)

    def _from_model_file(self, learned: dict[str, Any]) -> dict[str, Any]:
        """What a model file says was learned; parts that do not fit together are an error."""
        extractors, channels = learned["_extractors"], learned["channel_names_"]
        rate, n_features = learned["sampling_rate_"], learned["n_features_out_"]
        if (
            [type(extractor) for extractor in extractors] != [EXTRACTORS[kind] for kind in check_kinds(self.kind)]
            or not isinstance(channels, tuple)
            or not all(isinstance(name, str) for name in channels)
            or type(n_features) is not int
        ):
            raise ValueError("the parts of its features do not fit together")
        return learned | {"sampling_rate_": float(rate)}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags


def check_kinds(kind: object) -> list[str]:
    """Return the kinds joined by "+"; a ValueError names an unknown one."""
    kinds = kind.split("+") if isinstance(kind, str) else []
    unknown = [name for name in kinds if name not in KINDS]
    if unknown or not kinds:
        wrong = unknown[0] if unknown else kind
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, or several joined by '+', got {wrong!r}.")
    return kinds


def side_by_side(widths: Sequence[int]) -> NDArray[np.intp]:
    """Return the columns of kinds of features of these widths, narrow ones repeated to about the largest width."""
    parts = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
    return np.concatenate([np.tile(part, round(max(widths) / part.size)) for part in parts])


def side_by_side_names(names: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of these columns, repeated ones with a number."""
    every = [name for kind in names for name in kind]
    seen: Counter[str] = Counter()
    result = []
    for column in side_by_side([len(kind) for kind in names]):
        name = every[column]
        result.append(f"{name}_{seen[name] + 1}" if seen[name] else name)
        seen[name] += 1
    return result


def compute_features(
    extractors: Sequence[Extractor], n_features: int, signals: SensorSignals
) -> NDArray[np.floating[Any]]:
    """Return the features of all signals, read in blocks; NaN where the sensor is missing."""
    features = np.full((len(signals), n_features), np.nan, dtype=np.float32)
    for block in blocks_of_equal_length(signals, range(len(signals)), len(signals.channel_names)):
        values = np.hstack([extractor.features(block.signals) for extractor in extractors])
        if not np.isfinite(values).all():
            row = int(block.rows[np.flatnonzero(~np.isfinite(values).all(axis=1))[0]])
            largest = np.abs(block.signals[block.rows == row]).max()
            raise ValueError(
                f"The signal of {signals.place(row)} has values too large for its features: the largest is {largest:.3g}. "
                "Check its unit, or pass None if the sensor is missing in this row."
            )
        features[block.rows] = values
    return features


def content_hash(signals: SensorSignals, n_channels: int) -> str:
    """Return a hash of the samples of all signals, which are read one at a time."""
    digest = hashlib.blake2b(digest_size=16)
    for row in range(len(signals)):
        signal = read_signal(signals, row, n_channels)
        digest.update(
            b"None" if signal is None else str(signal.shape).encode() + np.ascontiguousarray(signal).tobytes()
        )
    return digest.hexdigest()


def _sample(signals: SensorSignals, random_state: int) -> tuple[list[int], list[FloatArray]]:
    """Return up to FIT_SIGNALS present signals and their rows, drawn at random."""
    order = np.random.default_rng(random_state).permutation(len(signals))
    found: dict[int, FloatArray] = {}
    for row in order.tolist():
        signal = read_signal(signals, row, len(signals.channel_names))
        if signal is not None:
            found[row] = signal
        if len(found) == FIT_SIGNALS:
            break
    if not found:
        raise ValueError(f"Sensor {signals.name!r} has no signal in any of {len(signals)} rows: leave it out.")
    rows = sorted(found)
    return rows, [found[row] for row in rows]


def _fitted(
    kind: str,
    settings: ExtractorSettings,
    sample: Sequence[FloatArray],
    signals: SensorSignals,
    rows: Sequence[int],
) -> Extractor:
    try:
        return fit_extractor(kind, settings, sample)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f'Features of kind "{kind}" cannot be made for sensor {signals.name!r} (signals like {signals.place(rows[0])}): '
            f"{error}"
        ) from error


def extractor_hash(extractors: Sequence[Extractor]) -> str:
    """Return a hash of all that the features of signals depend on besides the signals."""
    digest = hashlib.blake2b(digest_size=16)
    for extractor in extractors:
        digest.update(type(extractor).__name__.encode())
        for field in fields(extractor):  # type: ignore[arg-type]
            if field.name != "n_jobs":
                _add(digest, getattr(extractor, field.name))
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, tuple):
        digest.update(f"({len(value)}".encode())
        for item in value:
            _add(digest, item)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    else:
        digest.update(f"{value!r},".encode())
