"""The compared methods: how each is built for a split, and its parameter grid for cross-validation.

The first value of every grid is the default, so that it is selected if several values give the same score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from cmvmed import CMVMED, MED, MVMED, SVM2K, CoRLS
from cmvmed.reproduction.baseline_pipelines import (
    CoTrainingClassifier,
    LabeledOnlyClassifier,
    LateFusionClassifier,
    concatenated_views,
    one_view,
)
from cmvmed.reproduction.method_names import (
    CMV_MED,
    CMV_MED_PRINTED,
    EACH_VIEW,
    MAJORITY_CLASS,
    MV_MED,
    SINGLE_VIEW_PREFIX,
    SVM_2K,
)
from cmvmed.reproduction.tasks import Matrix, Split

Grid = Mapping[str, Sequence[object]]
KERNEL = "linear+rbf"  # of the single-view classifiers, as in CMV-MED


@dataclass(frozen=True)
class Candidate:
    """An unfitted estimator for one split.

    Attributes
    ----------
    estimator : classifier
    grid : mapping of parameter name to values
        Values to select from under the protocol "tuned".
    search_params : mapping of parameter name to value
        Parameters during the search only, which save time and do not change the predicted classes.
    """

    estimator: BaseEstimator
    grid: Grid = field(default_factory=dict)
    search_params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A classification method for partly labeled multi-view data.

    Attributes
    ----------
    name : str
    build : callable
        Builds the candidate for a split from its training rows.
    n_views : int or None
        Required number of views; None for any.
    package : tuple of str or None
        Required optional package, and the extra of cmvmed that installs it.
    """

    name: str
    build: Callable[[Split], Candidate]
    n_views: int | None = None
    package: tuple[str, str] | None = None

    def applies_to(self, n_views: int) -> bool:
        """Whether the method supports data with this number of views."""
        return self.n_views is None or self.n_views == n_views

    def missing_package(self) -> str:
        """The installation command of a missing package in one line; empty if none is missing."""
        if self.package is None or find_spec(self.package[0]) is not None:
            return ""
        return f"{self.name} needs {self.package[0]}: pip install 'cmvmed[{self.package[1]}]'"


def _median_gamma(pipeline: Pipeline, X: Matrix) -> float:
    """One over the median squared distance of the training rows after the scaling of the pipeline."""
    return 1.0 / float(np.median(euclidean_distances(pipeline[:-1].fit_transform(X), squared=True)))


def _majority(split: Split) -> Candidate:
    return Candidate(LabeledOnlyClassifier(DummyClassifier(strategy="prior")))


def _med(split: Split, view: str) -> Candidate:
    return Candidate(
        one_view(split.views[view], MED(kernel=KERNEL)), {"med__prior_variance": ["auto", 0.1, 0.5, 10.0, 50.0]}
    )


def _late_fusion(split: Split) -> Candidate:
    grid = {"estimator__prior_variance": ["auto", 0.1, 0.5, 10.0, 50.0]}
    return Candidate(LateFusionClassifier(split.views, MED(kernel=KERNEL)), grid)


def _svc(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabeledOnlyClassifier(SVC()))
    gamma = _median_gamma(pipeline, split.X)
    grid = {
        "classify__estimator__C": [1.0, 0.1, 10.0, 100.0],
        "classify__estimator__gamma": [gamma, 0.2 * gamma, 5.0 * gamma],
    }
    return Candidate(pipeline.set_params(classify__estimator__gamma=gamma), grid)


def _logistic(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabeledOnlyClassifier(LogisticRegression(max_iter=2000)))
    return Candidate(pipeline, {"classify__estimator__C": [1.0, 0.01, 0.1, 10.0, 100.0]})


def _self_training(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, SelfTrainingClassifier(LogisticRegression(max_iter=2000)))
    return Candidate(pipeline, {"classify__estimator__C": [1.0, 0.1, 10.0], "classify__threshold": [0.75, 0.9]})


def _spreading_rbf(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabelSpreading(max_iter=200))
    # the accuracy depends on gamma: of 1, 4, 10, 20 and 40 times 1 / median squared distance, 20 was the best over all
    # tasks, on other splits
    gamma = _median_gamma(pipeline, split.X)
    grid = {"classify__gamma": [factor * gamma for factor in (20.0, 1.0, 4.0, 10.0, 40.0)]}
    return Candidate(pipeline.set_params(classify__gamma=20.0 * gamma), grid)


def _spreading_knn(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabelSpreading("knn", n_neighbors=7, max_iter=200))
    return Candidate(pipeline, {"classify__n_neighbors": [7, 3, 5, 10, 20]})


def _co_training(split: Split) -> Candidate:
    # no grid: one fit takes longer than the search of any other baseline
    return Candidate(concatenated_views(split.X, CoTrainingClassifier(split.views, LogisticRegression(max_iter=2000))))


def _svm2k(split: Split) -> Candidate:
    return Candidate(SVM2K(views=split.views), {"C": [10.0, 1.0, 100.0], "D": [0.1, 0.01, 1.0]})


def _mvmed(split: Split) -> Candidate:
    grid: Grid = {"prior_variance": ["auto", 0.5, 10.0], "c": [10.0, 3.0, 30.0]}
    return Candidate(MVMED(views=split.views), grid)


def _corls(split: Split) -> Candidate:
    return Candidate(CoRLS(views=split.views), {"regularization": [0.1, 0.01, 1.0], "coupling": [0.01, 0.1]})


def _cmvmed(split: Split) -> Candidate:
    return Candidate(CMVMED(views=split.views), {"prior_variance": ["auto", 0.5, 10.0]}, {"calibrate": False})


def _printed(split: Split) -> Candidate:
    model = CMVMED.paper(algorithm="printed", views=split.views, kernel="linear+rbf")
    return Candidate(model, {"prior_variance": ["auto", 0.5, 10.0]})


METHODS = {
    method.name: method
    for method in (
        Method(MAJORITY_CLASS, _majority),
        Method("SVC, labels only", _svc),
        Method("logistic regression, labels only", _logistic),
        Method("late fusion of MED", _late_fusion),
        Method("LabelSpreading rbf", _spreading_rbf),
        Method("LabelSpreading knn", _spreading_knn),
        Method("SelfTraining (LR)", _self_training),
        Method("co-training (LR)", _co_training, n_views=2, package=("sslearn", "cotraining")),
        Method(SVM_2K, _svm2k, n_views=2, package=("piqp", "baselines")),
        Method(MV_MED, _mvmed),
        Method("CoRLS", _corls),
        Method(CMV_MED_PRINTED, _printed),
        Method(CMV_MED, _cmvmed),
    )
}


def view_method(view: str) -> Method:
    """MED on a single view."""
    return Method(f"{SINGLE_VIEW_PREFIX}{view}", partial(_med, view=view))


def methods_for(names: Sequence[str], views: Sequence[str]) -> list[Method]:
    """The named methods that apply to data with these views; "MED, each view" gives one method per view."""
    chosen = []
    for name in names:
        if name == EACH_VIEW:
            chosen += [view_method(view) for view in views]
        elif METHODS[name].applies_to(len(views)):
            chosen.append(METHODS[name])
    return chosen
