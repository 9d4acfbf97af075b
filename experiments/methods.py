"""The compared methods: their names, how each is built for a split, its kernel, and its grid for cross-validation.

Methods with a kernel are compared with both of ``KERNELS``: that of the paper and the default of CMV-MED. The name of a
method without a kernel in it has the default kernel of its class. The first value of every grid is the default, so that
it is selected if several values give the same score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from cmvmed import CMVMED, MED, MVMED, SVM2K, CoRLS
from experiments.baseline_pipelines import (
    CoTrainingClassifier,
    LabeledOnlyClassifier,
    LateFusionClassifier,
    concatenated_views,
    one_view,
)
from experiments.tasks import Matrix, Split

MAJORITY_CLASS = "majority class"  # a line of tables, not a method: the share of the largest class of the test rows
EACH_VIEW = "MED, each view"  # on the command line: one method per view
SINGLE_VIEW_PREFIX = "MED, view "  # followed by the name of the view
EXTRA_TREES = "extra trees, labels only"
LATE_FUSION = "late fusion of MED"
SVM_2K = "SVM-2K"
MV_MED = "MV-MED"
CO_RLS = "CoRLS"
CMV_MED_PRINTED = "CMV-MED as printed"
CMV_MED_PAPER = "CMVMED.paper()"
CMV_MED_PAPER_SHARES = "CMVMED.paper() + shares, T = 1/V"
CMV_MED = "CMV-MED"
KERNELS = ("rbf", "linear+rbf")  # of the paper, and the default of CMV-MED


def with_kernel(method: str, kernel: str) -> str:
    """Name of a method with another kernel than its default."""
    return f"{method} ({kernel})"


def without_kernel(method: str) -> str:
    """Name of the method with its default kernel."""
    for kernel in KERNELS:
        method = method.removesuffix(f" ({kernel})")
    return method


Grid = Mapping[str, Sequence[object]]

# Grids of the parameters that several methods have.
BANDWIDTHS = ("median", "0.2*median", "5*median")
PRIOR_VARIANCES = ("auto", 0.5, 10.0)
CONSENSUS_WEIGHTS = (1.0, 0.1, 0.3)
LOGISTIC_C = (1.0, 0.01, 0.1, 10.0, 100.0)


@dataclass(frozen=True)
class Candidate:
    """An unfitted estimator for one split.

    Attributes
    ----------
    estimator : classifier
    grid : mapping of parameter name to values
        Values to select from under the protocol "tuned", in the order of selection.
    """

    estimator: BaseEstimator
    grid: Grid = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A classification method for partly labeled multi-view data.

    Attributes
    ----------
    name : str
    build : callable
        Builds the candidate for a split from its training rows.
    kernel : str
        Kernel of the classifier, "linear" for a linear one.
    n_views : int or None
        Required number of views; None for any.
    package : str or None
        Required optional package.
    """

    name: str
    build: Callable[[Split], Candidate]
    kernel: str = ""
    n_views: int | None = None
    package: str | None = None

    def applies_to(self, n_views: int) -> bool:
        """Whether the method supports data with this number of views."""
        return self.n_views is None or self.n_views == n_views

    def missing_package(self) -> str:
        """The installation command of a missing package in one line; empty if none is missing."""
        if self.package is None or find_spec(self.package) is not None:
            return ""
        return f"{self.name} needs {self.package}: pip install {self.package}"


def _median_gamma(pipeline: Pipeline, X: Matrix) -> float:
    """One over the median squared distance of the training rows after the scaling of the pipeline."""
    return 1.0 / float(np.median(euclidean_distances(pipeline[:-1].fit_transform(X), squared=True)))


def _med_grid(prefix: str = "") -> Grid:
    """Bandwidth and σ²; not C: apart from the bias, MED depends on Cσ² alone, and the paper's dual has C = 1."""
    grid = {"gamma": BANDWIDTHS, "prior_variance": PRIOR_VARIANCES}
    return {f"{prefix}{name}": values for name, values in grid.items()}


def _med(split: Split, view: str, kernel: str) -> Candidate:
    return Candidate(one_view(split.views[view], MED(kernel=kernel)), _med_grid("med__"))


def _late_fusion(split: Split, kernel: str) -> Candidate:
    return Candidate(LateFusionClassifier(split.views, MED(kernel=kernel)), _med_grid("estimator__"))


def _svc(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabeledOnlyClassifier(SVC()))
    gamma = _median_gamma(pipeline, split.X)
    grid = {
        "classify__estimator__gamma": [gamma, 0.2 * gamma, 5.0 * gamma],
        "classify__estimator__C": [1.0, 0.1, 10.0, 100.0],
    }
    return Candidate(pipeline.set_params(classify__estimator__gamma=gamma), grid)


def _logistic(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, LabeledOnlyClassifier(LogisticRegression(max_iter=2000)))
    return Candidate(pipeline, {"classify__estimator__C": LOGISTIC_C})


def _extra_trees(split: Split) -> Candidate:
    trees = ExtraTreesClassifier(random_state=0)
    return Candidate(
        concatenated_views(split.X, LabeledOnlyClassifier(trees)), {"classify__estimator__min_samples_leaf": [1, 2, 5]}
    )


def _self_training(split: Split) -> Candidate:
    pipeline = concatenated_views(split.X, SelfTrainingClassifier(LogisticRegression(max_iter=2000)))
    return Candidate(pipeline, {"classify__estimator__C": LOGISTIC_C, "classify__threshold": [0.75, 0.9]})


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
    pipeline = concatenated_views(split.X, CoTrainingClassifier(split.views, LogisticRegression(max_iter=2000)))
    return Candidate(pipeline, {"classify__estimator__C": LOGISTIC_C})


def _svm2k(split: Split, kernel: str) -> Candidate:
    grid: Grid = {"gamma": BANDWIDTHS, "C": [10.0, 1.0, 100.0], "D": [0.1, 0.01, 1.0]}
    return Candidate(SVM2K(views=split.views, kernel=kernel), grid)


def _mvmed(split: Split, kernel: str) -> Candidate:
    grid: Grid = {"gamma": BANDWIDTHS, "prior_variance": PRIOR_VARIANCES, "c": [10.0, 3.0, 30.0]}
    return Candidate(MVMED(views=split.views, kernel=kernel), grid)


def _corls(split: Split, kernel: str) -> Candidate:
    grid: Grid = {"gamma": BANDWIDTHS, "regularization": [0.1, 0.01, 1.0], "coupling": [0.01, 0.1, 0.001]}
    return Candidate(CoRLS(views=split.views, kernel=kernel), grid)


def _cmvmed(split: Split, kernel: str) -> Candidate:
    # "auto", the default, is "linear+rbf" unless a view has more columns than training rows. There is no grid: the fit
    # holds labels out by itself, and a search over it took most of the time and gave no better accuracy.
    return Candidate(CMVMED(views=split.views, kernel="auto" if kernel == "linear+rbf" else kernel))


def _paper(split: Split, kernel: str, **settings: Any) -> Candidate:
    model = CMVMED.paper(views=split.views, kernel=kernel, **settings)
    return Candidate(model, {**_med_grid(), "consensus_weight": CONSENSUS_WEIGHTS})


def _paper_with_shares(split: Split) -> Candidate:
    return _paper(split, "rbf", class_prior="labels", temperature=1.0 / len(split.views))


def _both_kernels(
    name: str, build: Callable[..., Candidate], default: str = "rbf", **requirements: Any
) -> list[Method]:
    """The method with each of ``KERNELS``, its default kernel first."""
    return [
        Method(
            name if kernel == default else with_kernel(name, kernel),
            partial(build, kernel=kernel),
            kernel,
            **requirements,
        )
        for kernel in sorted(KERNELS, key=lambda kernel: kernel != default)
    ]


METHODS = {
    method.name: method
    for method in (
        Method("SVC, labels only", _svc, "rbf"),
        Method("logistic regression, labels only", _logistic, "linear"),
        Method(EXTRA_TREES, _extra_trees, "–"),
        *_both_kernels(LATE_FUSION, _late_fusion),
        Method("LabelSpreading rbf", _spreading_rbf, "rbf"),
        Method("LabelSpreading knn", _spreading_knn, "knn"),
        Method("SelfTraining (LR)", _self_training, "linear"),
        Method("co-training (LR)", _co_training, "linear", n_views=2, package="sslearn"),
        *_both_kernels(SVM_2K, _svm2k, n_views=2, package="piqp"),
        *_both_kernels(MV_MED, _mvmed),
        *_both_kernels(CO_RLS, _corls),
        *_both_kernels(CMV_MED_PRINTED, partial(_paper, algorithm="printed")),
        *_both_kernels(CMV_MED_PAPER, _paper),
        Method(CMV_MED_PAPER_SHARES, _paper_with_shares, "rbf"),
        *_both_kernels(CMV_MED, _cmvmed, default="linear+rbf"),
    )
}
EACH_VIEW_NAMES = {kernel: EACH_VIEW if kernel == "rbf" else with_kernel(EACH_VIEW, kernel) for kernel in KERNELS}
ALL_METHODS = (*EACH_VIEW_NAMES.values(), *METHODS)

# Groups that can be selected by one name: the paper's methods with the paper's kernel, and all methods with a kernel.
GROUPS = {
    "paper": (EACH_VIEW, SVM_2K, MV_MED, CMV_MED_PRINTED, CMV_MED_PAPER),
    **{
        kernel: (each_view, *(name for name, method in METHODS.items() if method.kernel == kernel))
        for kernel, each_view in EACH_VIEW_NAMES.items()
    },
}


def view_methods(view: str) -> list[Method]:
    """MED on a single view."""
    return _both_kernels(f"{SINGLE_VIEW_PREFIX}{view}", partial(_med, view=view))


def each_view_name(method: str) -> str:
    """The name that selects a method on single views; other names are returned as they are."""
    if not method.startswith(SINGLE_VIEW_PREFIX):
        return method
    return EACH_VIEW + method.removeprefix(without_kernel(method))


def expand_groups(names: Sequence[str]) -> tuple[str, ...]:
    """The names with groups replaced by their methods, each once."""
    return tuple(dict.fromkeys(member for name in names for member in GROUPS.get(name, (name,))))


def methods_for(names: Sequence[str], views: Sequence[str]) -> list[Method]:
    """The named methods that apply to data with these views; "MED, each view" gives one method per view."""
    chosen: list[Method] = []
    for name in names:
        if name in EACH_VIEW_NAMES.values():
            chosen += [method for view in views for method in view_methods(view) if each_view_name(method.name) == name]
        elif METHODS[name].applies_to(len(views)):
            chosen.append(METHODS[name])
    return chosen
