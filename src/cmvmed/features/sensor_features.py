"""Features of recordings of several sensors: one view per sensor, of kinds that are chosen automatically."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Self

import narwhals
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config  # type: ignore[attr-defined]
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from cmvmed._optional import install_command
from cmvmed._warnings import warn_user
from cmvmed.features.extractors import is_available
from cmvmed.features.feature_choice import KindScore, choose_kinds
from cmvmed.features.signal_blocks import Rates, as_sensors
from cmvmed.features.signal_features import SignalFeatures, check_kinds, side_by_side
from cmvmed.recordings.container import Recordings, SensorSignals, is_missing

MIN_SOUND_RATE = 1000.0  # Hz, from which on a signal is taken to be sound or vibration, and has cepstra
MAX_CHOICE_ROWS = 400  # labeled rows, and others at random, by which kinds are compared
CONTAINERS = ("default", "pandas", "polars")  # of features
WITH_AEON = ("minirocket",)  # further kinds that "auto" compares if aeon is installed

SensorFeatureArrays = dict[str, NDArray[np.floating[Any]]]


class SensorFeatures(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """Features of recordings of several sensors, one array per sensor.

    The result is a dict of sensor name -> features, which the estimators take as one view per sensor:
    ``make_pipeline(SensorFeatures(), CMVMED()).fit(recordings, y)``.

    Parameters
    ----------
    kind : "auto", str or dict of sensor name -> str
        A kind of :class:`SignalFeatures` for all or for each of the sensors. "auto" compares ranks of statistics and
        spectra, random convolutions (MiniRocket, if aeon is installed) and, for sensors of 1000 Hz or more, cepstra, and
        joins for each sensor the kinds that held-out labels do not reject; see ``choices_``.
    candidates : iterable of str, optional
        The kinds that "auto" compares; None: those above.
    sampling_rate : float or dict of sensor name -> float, optional
        Samples per second of signals given as arrays; ``Recordings`` have their own.
    memory : path or FeatureCache, optional
        Folder in which features are kept, by the content of the signals, or ``FeatureCache()`` for those in memory.
    random_state : int
        Seed of random convolutions, and of the rows by which kinds are compared.
    n_jobs : int, optional
        Threads of aeon; -1 for all cores.

    Attributes
    ----------
    kinds_ : dict of sensor name -> str
        The kind of each sensor, or several joined by "+".
    choices_ : dict of str -> list
        Columns ``sensor``, ``kind``, ``held_out_r2``, ``agreement``, ``score``, ``chosen``: how "auto" compared them,
        empty for given kinds. ``pandas.DataFrame(model.choices_)`` shows them as a table.
    features_ : dict of sensor name -> SignalFeatures

    Notes
    -----
    X is a :class:`cmvmed.recordings.Recordings`, or a dict of sensor name -> signals as :class:`SignalFeatures` takes
    them. Sensors may differ in sampling rate, channels and length. A sensor that is missing in a row (None) has a row of
    NaN there, which the estimators take as a missing view.

    y has None, NaN or -1 for unlabeled rows; without y, the labels of ``Recordings`` are used.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = {"left": rng.normal(size=(6, 1, 90)), "right": [rng.normal(size=(2, 40)) for _ in range(6)]}
    >>> features = SensorFeatures("statistics", sampling_rate={"left": 50.0, "right": 20.0}).fit_transform(X)
    >>> {sensor: values.shape for sensor, values in features.items()}
    {'left': (6, 20), 'right': (6, 40)}
    """

    def __init__(
        self,
        kind: str | Mapping[str, str] = "auto",
        *,
        candidates: Iterable[str] | None = None,
        sampling_rate: Rates = None,
        memory: Any = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.candidates = candidates
        self.sampling_rate = sampling_rate
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: object, y: ArrayLike | None = None) -> Self:
        """Choose the kinds, and learn levels and biases from the signals.

        Parameters
        ----------
        X : Recordings or dict of sensor name -> signals
        y : (n_rows,) array-like, optional
            Classes; None, NaN or -1 for unlabeled rows.
        """
        self._fit(X, y, transform=False)
        return self

    @with_callbacks
    def fit_transform(self, X: object, y: ArrayLike | None = None, **params: object) -> SensorFeatureArrays:
        """Fit and return the features of each sensor, (n_rows, n_features)."""
        return self._contained(self._fit(X, y, transform=True))

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set in what the features of each sensor come.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            Arrays, or data frames with the names of the features; None changes nothing.

        Returns
        -------
        self : object
        """
        if transform not in (None, *CONTAINERS):
            raise ValueError(f"transform must be one of {', '.join(CONTAINERS)} or None, but is {transform!r}.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # scikit-learn's name, which its clone knows
        return self

    def _contained(self, features: SensorFeatureArrays) -> SensorFeatureArrays:
        """The features in what ``set_output`` or scikit-learn's configuration asks for."""
        wanted = vars(self).get("_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if wanted == "default":
            return features
        names = {name: list(self.features_[name].get_feature_names_out()) for name in features}
        return {
            name: narwhals.from_numpy(np.asarray(values), names[name], backend=wanted).to_native()
            for name, values in features.items()
        }

    def transform(self, X: object) -> SensorFeatureArrays:
        """Return the features of each sensor, (n_rows, n_features); a sensor that X lacks is missing in all rows."""
        check_is_fitted(self)
        sensors = as_sensors(X, self.sampling_rate)
        unknown = [name for name in sensors if name not in self.features_]
        if unknown:
            raise ValueError(
                f"X has a sensor {unknown[0]!r}, which the data of fit did not have. The sensors are "
                f"{', '.join(map(repr, self.features_))}; those that are missing in all rows can be left out."
            )
        n = len(next(iter(sensors.values())))
        found = {
            name: features.transform(sensors[name])
            if name in sensors
            else np.full((n, features.n_features_out_), np.nan)
            for name, features in self.features_.items()
        }
        return self._contained(found)

    def _fit(self, X: object, y: ArrayLike | None, *, transform: bool) -> SensorFeatureArrays:
        sensors = as_sensors(X, self.sampling_rate)
        kinds = {name: self._candidates(name, signals) for name, signals in sensors.items()}
        self._tell_what_is_missing()
        codes = class_codes(X, y, len(next(iter(sensors.values()))))
        report = self._init_callback_context(max_subtasks=len(sensors) * (1 + transform))
        report.call_on_fit_task_begin(estimator=self, X=X, y=y)
        fitted, rows = {}, self._choice_rows(codes)
        for name, signals in sensors.items():
            task = report.subcontext(task_name=f"compare features of {name}")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            fitted[name] = {kind: self._signal_features(kind).fit(signals) for kind in kinds[name]}
            task.call_on_fit_task_end(estimator=self, X=X, y=y)
        compared = self._compared(fitted, sensors, rows)
        self.kinds_, scores = self._choose(fitted, compared, codes[rows])
        self.choices_ = {
            column: [row[column] for row in map(asdict, scores)] for column in KindScore.__dataclass_fields__
        }
        self.features_ = {name: self._joined(kind, fitted[name]) for name, kind in self.kinds_.items()}
        result: SensorFeatureArrays = {}
        for name, signals in sensors.items() if transform else ():
            task = report.subcontext(task_name=f"features of {name}")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            if compared and len(rows) == len(signals):  # in their order
                parts = [compared[name][kind] for kind in self._parts(self.kinds_[name], fitted[name])]
                result[name] = np.hstack(parts)[:, side_by_side([part.shape[1] for part in parts])]
            else:
                result[name] = self.features_[name].transform(signals)
            task.call_on_fit_task_end(estimator=self, X=X, y=y)
        report.call_on_fit_task_end(estimator=self, X=X, y=y)
        return result

    def _parts(self, kind: str, fitted: Mapping[str, SignalFeatures]) -> list[str]:
        """The candidates that a chosen kind consists of."""
        return [kind] if kind in fitted else kind.split("+")

    def _joined(self, kind: str, fitted: Mapping[str, SignalFeatures]) -> SignalFeatures:
        """The features of a chosen kind, from those of the candidates that it consists of."""
        if kind in fitted:
            return fitted[kind]
        return self._signal_features(kind)._join([fitted[part] for part in self._parts(kind, fitted)])

    def _compared(
        self,
        fitted: Mapping[str, Mapping[str, SignalFeatures]],
        sensors: Mapping[str, SensorSignals],
        rows: NDArray[np.intp],
    ) -> dict[str, dict[str, NDArray[np.floating[Any]]]]:
        """Features of some rows by sensor and kind; none if there is nothing to choose."""
        if all(len(kinds) == 1 for kinds in fitted.values()):
            return {}
        return {
            name: {kind: np.asarray(features.transform(sensors[name][rows])) for kind, features in kinds.items()}
            for name, kinds in fitted.items()
        }

    def _choose(
        self,
        fitted: Mapping[str, Mapping[str, SignalFeatures]],
        compared: Mapping[str, Mapping[str, NDArray[Any]]],
        codes: NDArray[np.intp],
    ) -> tuple[dict[str, str], list[KindScore]]:
        if not compared:
            return {name: next(iter(kinds)) for name, kinds in fitted.items()}, []
        return choose_kinds(compared, codes)

    def _candidates(self, name: str, signals: SensorSignals) -> list[str]:
        """Return the kinds to compare for a sensor."""
        if isinstance(self.kind, Mapping) and name not in self.kind:
            raise ValueError(f"kind has no entry for sensor {name!r}; it has {list(self.kind)}.")
        kind = self.kind[name] if isinstance(self.kind, Mapping) else self.kind
        if kind != "auto":
            check_kinds(kind)
            return [kind]
        if self.candidates is not None:
            kinds = list(self.candidates)
            check_kinds("+".join(kinds))
            return kinds
        is_sound = signals.sampling_rate >= MIN_SOUND_RATE and is_available("mfcc")
        return ["ranks", *filter(is_available, WITH_AEON), *(["mfcc"] if is_sound else [])]

    def _tell_what_is_missing(self) -> None:
        kinds = self.kind.values() if isinstance(self.kind, Mapping) else [self.kind]
        if "auto" in kinds and self.candidates is None and not all(map(is_available, WITH_AEON)):
            warn_user(
                "aeon is not installed, so automatic features are statistics, spectra and cepstra only. Random convolutions "
                f"are often better: {install_command('timeseries')}. To use statistics without this message: "
                'kind="statistics".'
            )

    def _signal_features(self, kind: str) -> SignalFeatures:
        return SignalFeatures(kind, memory=self.memory, random_state=self.random_state, n_jobs=self.n_jobs)

    def _choice_rows(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return all labeled rows up to MAX_CHOICE_ROWS, and others at random up to the same number."""
        order = np.random.default_rng(self.random_state).permutation(codes.size)
        by_label = order[np.argsort(codes[order] < 0, kind="stable")]
        return np.sort(by_label[:MAX_CHOICE_ROWS])


def class_codes(X: object, y: ArrayLike | None, n: int) -> NDArray[np.intp]:
    """Return the classes as 0, 1, ... in the order of their first rows, and -1 for None, NaN and -1."""
    if y is None:
        y = X.labels if isinstance(X, Recordings) else np.full(n, -1)
    labels = list(np.asarray(y, dtype=object).ravel())
    if len(labels) != n:
        raise ValueError(f"y has {len(labels)} labels for {n} rows.")
    codes: dict[Any, int] = {}
    return np.array([-1 if _is_unlabeled(label) else codes.setdefault(label, len(codes)) for label in labels], np.intp)


def _is_unlabeled(label: object) -> bool:
    return is_missing(label) or (
        isinstance(label, (int, float, np.number)) and not isinstance(label, bool) and label == -1
    )
