"""The methods, each a function from a split to its answers on the unlabeled and on the held-out rows.

Peers keep their defaults, with two exceptions that make them stronger: logistic regression may iterate until it has
converged, and boosted trees may have leaves of one row, since with their default of 20 they cannot split fewer than
40 labels.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.suite.splits import Split
from benchmarks.suite.start import PooledMEDs, label_shares, shrunk_shares
from cmvmed import CMVMED
from experiments.baseline_pipelines import (
    CoTrainingClassifier,
    LabeledOnlyClassifier,
    LateFusionClassifier,
    concatenated_views,
)


@dataclass(frozen=True)
class Answer:
    """What a method says of a split.

    Attributes
    ----------
    unlabeled, held_out : ndarray
        Probabilities (n, K), or classes (n,) of a method that has none.
    seconds : float
        Time of the fit.
    estimate : tuple (mean, low, high) or None
        The accuracy that the method expects, with its interval.
    no_estimate : str
        Why there is no estimate, if the method should have one.
    """

    unlabeled: Any
    held_out: Any
    seconds: float
    estimate: tuple[float, float, float] | None = None
    no_estimate: str = ""


@dataclass(frozen=True)
class Method:
    """A method that the suite compares.

    Attributes
    ----------
    name : str
    solve : callable
        From a split to its answer.
    is_peer : bool
        Whether it is one of those that the library is measured against; the starts are not.
    n_views : int or None
        Number of views that it needs; None for any.
    package : str
        Optional package that it needs.
    settings : mapping
        Keyword arguments that differ from the defaults.
    """

    name: str
    solve: Callable[[Split], Answer]
    is_peer: bool = True
    n_views: int | None = None
    package: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def missing_package(self) -> str:
        """One line on what to install, empty if nothing is missing."""
        if not self.package or find_spec(self.package) is not None:
            return ""
        return f"it needs {self.package} (pip install {self.package})"


def cmvmed(split: Split, **settings: Any) -> Answer:
    model, seconds = _timed_fit(CMVMED(views=split.views, **settings), split)
    known = model.label_distributions_
    unlabeled = split.unlabeled
    on_unlabeled = model.predict_proba(split.X[unlabeled]) if known is None else known[unlabeled]
    estimate, reason = None, ""
    try:
        found = model.accuracy_estimate()
        estimate = (float(found.mean), float(found.low), float(found.high))
    except ValueError as error:
        reason = str(error)
    return Answer(on_unlabeled, model.predict_proba(split.X_test), seconds, estimate, reason)


def true_shares(split: Split) -> Answer:
    """CMVMED with the class shares of the unlabeled rows, which no user knows: what better shares could give."""
    counts = np.bincount(split.truth[split.unlabeled], minlength=split.n_classes) + 0.5
    return cmvmed(split, class_prior=counts / counts.sum())


def start(split: Split) -> Answer:
    return _inductive(PooledMEDs(split.views, label_shares), split)


def start_eb(split: Split) -> Answer:
    return _inductive(PooledMEDs(split.views, shrunk_shares), split)


def logistic(split: Split) -> Answer:
    return _inductive(concatenated_views(split.X, LabeledOnlyClassifier(_logistic())), split)


def ridge(split: Split) -> Answer:
    return _inductive(concatenated_views(split.X, LabeledOnlyClassifier(RidgeClassifier())), split)


def boosting(split: Split) -> Answer:
    from lightgbm import LGBMClassifier

    trees = LGBMClassifier(min_child_samples=1, min_data_in_bin=1, n_jobs=1, random_state=0, verbose=-1)
    return _inductive(concatenated_views(split.X, LabeledOnlyClassifier(trees)), split)


def extra_trees(split: Split) -> Answer:
    return _inductive(concatenated_views(split.X, LabeledOnlyClassifier(ExtraTreesClassifier(random_state=0))), split)


def late_fusion(split: Split) -> Answer:
    return _inductive(
        LateFusionClassifier(split.views, concatenated_views(split.X, LabeledOnlyClassifier(_logistic()))), split
    )


def self_training(split: Split) -> Answer:
    return _inductive(concatenated_views(split.X, SelfTrainingClassifier(_logistic())), split)


def label_spreading(split: Split) -> Answer:
    model, seconds = _timed_fit(concatenated_views(split.X, LabelSpreading("knn", max_iter=200)), split)
    return Answer(model[-1].label_distributions_[split.unlabeled], model.predict_proba(split.X_test), seconds)


def poisson(split: Split) -> Answer:
    from benchmarks.suite.poisson import PoissonLearning

    model, seconds = _timed_fit(concatenated_views(split.X, PoissonLearning()), split)
    return Answer(model[-1].transduction_[split.unlabeled], model.predict(split.X_test), seconds)


def co_training(split: Split) -> Answer:
    return _inductive(concatenated_views(split.X, CoTrainingClassifier(split.views, _logistic())), split)


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=2000)


def _timed_fit(model: Any, split: Split) -> tuple[Any, float]:
    begin = time.perf_counter()
    model.fit(split.X, split.y)
    return model, time.perf_counter() - begin


def _inductive(model: Any, split: Split) -> Answer:
    """The answer of a model that treats unlabeled training rows as any other row."""
    model, seconds = _timed_fit(model, split)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return Answer(predict(split.X[split.unlabeled]), predict(split.X_test), seconds)


STARTS = ("start", "start_eb")
ORACLES = ("true_shares",)  # which use what no user knows; they run only if asked for
METHODS = {
    method.name: method
    for method in (
        Method("cmvmed", cmvmed, is_peer=False),
        Method("true_shares", true_shares, is_peer=False),
        Method("start", start, is_peer=False),
        Method("start_eb", start_eb, is_peer=False),
        Method("lr", logistic),
        Method("ridge", ridge),
        Method("boosting", boosting, package="lightgbm"),
        Method("extra_trees", extra_trees),
        Method("late_fusion", late_fusion),
        Method("self_training", self_training),
        Method("label_spreading", label_spreading),
        Method("poisson", poisson, package="graphlearning"),
        Method("co_training", co_training, n_views=2, package="sslearn"),
    )
}


def variant(text: str) -> Method:
    """CMVMED with other settings, from ``NAME={"keyword": value}``."""
    name, found, settings = text.partition("=")
    if not found or not name or name in METHODS:
        raise ValueError(f'{text!r} is not NAME={{"keyword": value}} with a name of its own')
    given = json.loads(settings)
    if not isinstance(given, dict):
        raise ValueError(f"{settings!r} is not a JSON object of keyword arguments")
    return Method(name, partial(cmvmed, **given), is_peer=False, settings=given)
