"""The methods that are compared: how each is built for a split, and the settings among which cross-validation may choose.

In every grid the default stands first, so that it is taken where several settings do equally well on the labeled rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from cmvmed import CMVMED, MED, MVMED, SVM2K, CoRLS
from cmvmed.reproduction.baseline_pipelines import CoTrained, LabeledOnly, LateFusion, concatenated_views, one_view
from cmvmed.reproduction.tasks import Split

Grid = Mapping[str, Sequence[Any]]
EACH_VIEW = "MED, each view"  # stands for one method per view
KERNEL = "linear+rbf"  # of a view's own classifier, as in CMV-MED


@dataclass(frozen=True)
class Candidate:
    """An estimator for one split, the settings to choose from when it is tuned, and what only the fit after the choice needs."""

    estimator: Any
    grid: Grid = field(default_factory=dict)
    while_searching: Mapping[str, Any] = field(default_factory=dict)  # settings that change no predicted class


@dataclass(frozen=True)
class Method:
    """A way to learn from partly labeled views.

    Attributes
    ----------
    name : str
    build : callable
        Gives the candidate for a split; sees its training rows but no test row.
    n_views : int or None
        Number of views that it needs; None for any.
    package : str
        Optional package that it needs, with the extra of this library that installs it.
    """

    name: str
    build: Callable[[Split], Candidate]
    n_views: int | None = None
    package: tuple[str, str] | None = None

    def applies_to(self, n_views: int) -> bool:
        """Whether the method can work on data with so many views."""
        return self.n_views is None or self.n_views == n_views

    def missing_package(self) -> str:
        """One line on what to install, empty if nothing is missing."""
        if self.package is None or find_spec(self.package[0]) is not None:
            return ""
        return f"{self.name} needs {self.package[0]}: pip install 'cmvmed[{self.package[1]}]'"


def _median_gamma(pipeline: Any, X: Any) -> float:
    """One over the median squared distance of the training rows, scaled as the pipeline scales them."""
    return 1.0 / float(np.median(euclidean_distances(pipeline[:-1].fit_transform(X), squared=True)))


def _majority(split: Split) -> Candidate:
    return Candidate(LabeledOnly(DummyClassifier(strategy="prior")))


def _med(split: Split, view: str) -> Candidate:
    return Candidate(
        one_view(split.views[view], MED(kernel=KERNEL)), {"med__prior_variance": ["auto", 0.1, 0.5, 10.0, 50.0]}
    )


def _late_fusion(split: Split) -> Candidate:
    grid = {"estimator__prior_variance": ["auto", 0.1, 0.5, 10.0, 50.0]}
    return Candidate(LateFusion(split.views, MED(kernel=KERNEL)), grid)


def _svc(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabeledOnly(SVC()))
    gamma = _median_gamma(pipeline, split.X)
    grid = {
        "classify__estimator__C": [1.0, 0.1, 10.0, 100.0],
        "classify__estimator__gamma": [gamma, 0.2 * gamma, 5.0 * gamma],
    }
    return Candidate(pipeline.set_params(classify__estimator__gamma=gamma), grid)


def _logistic(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabeledOnly(LogisticRegression(max_iter=2000)))
    return Candidate(pipeline, {"classify__estimator__C": [1.0, 0.01, 0.1, 10.0, 100.0]})


def _self_training(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, SelfTrainingClassifier(LogisticRegression(max_iter=2000)))
    return Candidate(pipeline, {"classify__estimator__C": [1.0, 0.1, 10.0], "classify__threshold": [0.75, 0.9]})


def _spreading_rbf(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabelSpreading(max_iter=200))
    # its accuracy hangs on gamma: of 1, 4, 10, 20 and 40 times the median rule, 20 was best over all tasks (on other splits)
    gamma = _median_gamma(pipeline, split.X)
    grid = {"classify__gamma": [factor * gamma for factor in (20.0, 1.0, 4.0, 10.0, 40.0)]}
    return Candidate(pipeline.set_params(classify__gamma=20.0 * gamma), grid)


def _spreading_knn(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabelSpreading("knn", n_neighbors=7, max_iter=200))
    return Candidate(pipeline, {"classify__n_neighbors": [7, 3, 5, 10, 20]})


def _co_training(split: Split) -> Candidate:
    # without a grid: one fit takes longer than the whole search of the other rivals
    return Candidate(concatenated_views(split.X, CoTrained(split.views, LogisticRegression(max_iter=2000))))


def _svm2k(split: Split) -> Candidate:
    return Candidate(SVM2K(views=split.views), {"C": [10.0, 1.0, 100.0], "D": [0.1, 0.01, 1.0]})


def _mvmed(split: Split) -> Candidate:
    grid: Grid = {"prior_variance": ["auto", 0.5, 10.0], "c": [10.0, 3.0, 30.0]}
    return Candidate(MVMED(views=split.views), grid)


def _corls(split: Split) -> Candidate:
    return Candidate(CoRLS(views=split.views), {"regularization": [0.1, 0.01, 1.0], "coupling": [0.01, 0.1]})


def _cmvmed(split: Split, mode: str) -> Candidate:
    grid = {"prior_variance": ["auto", 0.5, 10.0]}
    return Candidate(CMVMED(views=split.views, mode=mode), grid, {"calibrate": False})


METHODS = {
    method.name: method
    for method in (
        Method("majority class", _majority),
        Method("SVC, labels only", _svc),
        Method("logistic regression, labels only", _logistic),
        Method("late fusion of MED", _late_fusion),
        Method("LabelSpreading rbf", _spreading_rbf),
        Method("LabelSpreading knn", _spreading_knn),
        Method("SelfTraining (LR)", _self_training),
        Method("co-training (LR)", _co_training, n_views=2, package=("sslearn", "cotraining")),
        Method("SVM-2K", _svm2k, n_views=2, package=("piqp", "rivals")),
        Method("MV-MED", _mvmed),
        Method("CoRLS", _corls),
        Method("CMV-MED as printed", partial(_cmvmed, mode="literal")),
        Method("CMV-MED", partial(_cmvmed, mode="complete")),
    )
}


def view_method(view: str) -> Method:
    """MED on one view alone."""
    return Method(f"MED, view {view}", partial(_med, view=view))


def methods_for(names: Sequence[str], views: Sequence[str]) -> list[Method]:
    """The methods of these names that apply to data with these views; "MED, each view" becomes one method per view."""
    chosen = []
    for name in names:
        if name == EACH_VIEW:
            chosen += [view_method(view) for view in views]
        elif METHODS[name].applies_to(len(views)):
            chosen.append(METHODS[name])
    return chosen
