"""The methods, each a function from a split to its answers on the unlabeled and on the held-out rows.

Peers keep their defaults, with exceptions that make them stronger: logistic regression may iterate until it has
converged, boosted trees may have leaves of one row, since with their default of 20 they cannot split fewer than 40
labels, and the covariance of linear discriminant analysis is shrunk.
"""

import contextlib
import io
import json
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.suite import tabpfn
from benchmarks.suite.sets import DataSet
from benchmarks.suite.splits import Split
from benchmarks.suite.start import PooledMEDs, label_shares, shrunk_shares
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
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
    suits : callable
        From a data set to whether the method can be fitted to it.
    lacks : callable
        From nothing to one line on what the method needs and is not there; empty if nothing is missing.
    settings : mapping
        Keyword arguments that differ from the defaults.
    """

    name: str
    solve: Callable[[Split], Answer]
    is_peer: bool = True
    suits: Callable[[DataSet], bool] = lambda data: True
    lacks: Callable[[], str] = lambda: ""
    settings: Mapping[str, Any] = field(default_factory=dict)


def package(name: str) -> Callable[[], str]:
    """One line on an optional package, empty if it is installed."""
    return lambda: "" if find_spec(name) is not None else f"it needs {name} (pip install {name})"


def cmvmed(
    split: Split, with_groups: bool = False, tuning: Mapping[str, Any] = MappingProxyType({}), **settings: Any
) -> Answer:
    given = {"groups": split.groups} if with_groups else {}
    with tuning_context(replace(Tuning(), **tuning)):
        model, seconds = _timed_fit(CMVMED(views=split.views, **settings), split, **given)
    known = getattr(model, "label_distributions_", None)
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


def shares_within(split: Split, factor: float, *, off_center: bool = False) -> Answer:
    """CMVMED with ranges of the class shares of the unlabeled rows, up to a factor: what a user may roughly know.

    The true share is the middle of its range or, if ``off_center``, anywhere in it: uniformly distributed in logarithms.
    """
    counts = np.bincount(split.truth[split.unlabeled], minlength=split.n_classes) + 0.5
    middle = counts / counts.sum()
    if off_center:
        rng = np.random.default_rng(zlib.crc32(split.y.tobytes()))
        middle = middle * factor ** rng.uniform(-1.0, 1.0, middle.size)
    return cmvmed(split, class_prior={k: (r / factor, min(r * factor, 1.0)) for k, r in enumerate(middle.tolist())})


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


def random_forest(split: Split) -> Answer:
    return _inductive(concatenated_views(split.X, LabeledOnlyClassifier(RandomForestClassifier(random_state=0))), split)


def lda(split: Split) -> Answer:
    classifier = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return _inductive(concatenated_views(split.X, LabeledOnlyClassifier(classifier)), split)


def tabular_network(split: Split) -> Answer:
    return _inductive(concatenated_views(split.X, tabpfn.TabPFN()), split)


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


def automl(split: Split) -> Answer:
    """AutoGluon's medium preset on all columns side by side, with a limit per fit."""
    import pandas as pd
    from autogluon.tabular import TabularPredictor

    def table(X: Any) -> pd.DataFrame:
        return pd.DataFrame(X.toarray() if sparse.issparse(X) else X.reshape(len(X), -1))

    begin = time.perf_counter()
    labeled = table(split.X[split.labeled]).assign(label=split.y[split.labeled])
    with tempfile.TemporaryDirectory() as folder:
        model = TabularPredictor("label", path=folder, verbosity=0, problem_type=_kind_of_problem(split))
        model.fit(labeled, presets="medium_quality", time_limit=AUTOML_SECONDS, num_cpus=1)
        seconds = time.perf_counter() - begin
        found = [model.predict_proba(table(X)) for X in (split.X[split.unlabeled], split.X_test)]
    unlabeled, held_out = (p.reindex(columns=range(split.n_classes), fill_value=0.0).to_numpy() for p in found)
    return Answer(unlabeled, held_out, seconds)


def _kind_of_problem(split: Split) -> str:
    return "binary" if split.n_classes == 2 else "multiclass"


def factors(split: Split) -> Answer:
    """Factor analysis of all views by iMML, which has no classifier without a deep network, then logistic regression."""
    from imml.decomposition import MOFA

    begin = time.perf_counter()
    views = [(StandardScaler(), columns) for columns in split.views.values()]
    dense = split.X.toarray() if sparse.issparse(split.X) else split.X
    tables = [scaler.fit_transform(dense[:, columns]) for scaler, columns in views]
    with contextlib.redirect_stdout(io.StringIO()):
        model = MOFA(n_components=N_FACTORS, random_state=0).fit(tables)
    scores = np.hstack(model.transform(tables))  # factors by each view
    classifier = _logistic().fit(scores[split.labeled], split.y[split.labeled])
    seconds = time.perf_counter() - begin
    dense = split.X_test.toarray() if sparse.issparse(split.X_test) else split.X_test
    new = np.hstack(model.transform([scaler.transform(dense[:, columns]) for scaler, columns in views]))
    return Answer(classifier.predict_proba(scores[split.unlabeled]), classifier.predict_proba(new), seconds)


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=2000)


def _timed_fit(model: Any, split: Split, **given: Any) -> tuple[Any, float]:
    begin = time.perf_counter()
    model.fit(split.X, split.y, **given)
    return model, time.perf_counter() - begin


def _inductive(model: Any, split: Split) -> Answer:
    """The answer of a model that treats unlabeled training rows as any other row."""
    model, seconds = _timed_fit(model, split)
    predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return Answer(predict(split.X[split.unlabeled]), predict(split.X_test), seconds)


def _has_groups(data: DataSet) -> bool:
    return data.groups is not None


def _has_tables(data: DataSet) -> bool:
    return bool(data.X.ndim == 2)


def _has_two_views(data: DataSet) -> bool:
    return len(data.views) == 2


def _has_few_classes(data: DataSet) -> bool:
    return data.counts.size <= tabpfn.MAX_CLASSES


def _is_narrow(data: DataSet) -> bool:
    return not sparse.issparse(data.X) and data.X.shape[1] <= MAX_LDA_COLUMNS


STARTS = ("start", "start_eb")
ORACLES = ("true_shares", "close_shares", "rough_shares", "shifted_shares")  # which use what no user knows
BEFORE = "before"  # CMVMED of another state of the library, whose rows are read from a file
ON_REQUEST = (*ORACLES, "cmvmed_groups", "autogluon", "imml")
AUTOML_SECONDS = 20  # of a fit of AutoGluon
N_FACTORS = 10  # of iMML, its default
MAX_LDA_COLUMNS = 1000  # its cost grows with their cube
METHODS = {
    method.name: method
    for method in (
        Method("cmvmed", cmvmed, is_peer=False),
        Method("cmvmed_groups", partial(cmvmed, with_groups=True), is_peer=False, suits=_has_groups),
        Method("true_shares", true_shares, is_peer=False),
        Method("close_shares", partial(shares_within, factor=1.25), is_peer=False),
        Method("rough_shares", partial(shares_within, factor=2.0), is_peer=False),
        Method("shifted_shares", partial(shares_within, factor=2.0, off_center=True), is_peer=False),
        Method("start", start, is_peer=False),
        Method("start_eb", start_eb, is_peer=False),
        Method("lr", logistic),
        Method("ridge", ridge),
        Method("lda", lda, suits=_is_narrow),
        Method("boosting", boosting, lacks=package("lightgbm")),
        Method("extra_trees", extra_trees),
        Method("random_forest", random_forest),
        Method("tabpfn", tabular_network, suits=_has_few_classes, lacks=tabpfn.missing),
        Method("autogluon", automl, lacks=package("autogluon")),
        Method("imml", factors, suits=_has_tables, lacks=package("imml")),
        Method("late_fusion", late_fusion),
        Method("self_training", self_training),
        Method("label_spreading", label_spreading),
        Method("poisson", poisson, lacks=package("graphlearning")),
        Method("co_training", co_training, suits=_has_two_views, lacks=package("sslearn")),
    )
}


def variant(text: str) -> Method:
    """CMVMED with other settings, from ``NAME={"keyword": value}``; the keyword "tuning" has tuned numbers by name."""
    name, found, settings = text.partition("=")
    if not found or not name or name in (*METHODS, BEFORE):
        raise ValueError(f'{text!r} is not NAME={{"keyword": value}} with a name of its own')
    given = json.loads(settings)
    if not isinstance(given, dict):
        raise ValueError(f"{settings!r} is not a JSON object of keyword arguments")
    return Method(name, partial(cmvmed, **given), is_peer=False, settings=given)
