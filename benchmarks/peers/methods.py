"""The methods. Peers get standardized columns and keep their defaults, except where other values make them stronger.

Logistic regression may iterate until it has converged. The rows' mean squared distance is twice the number d of columns, so
gamma is 1 / (2 d) for Nyström features; of 1, 3, 10, 30 and 100 / d, LabelSpreading is best with 10 / d, and logistic
regression on Nyström features with C = 1000 of 1, 10, 100 and 1000 (mean accuracy on held-out rows of the three data sets,
1000 rows, draws 1000 to 1002, which the report does not use). Boosted trees may have leaves of one row, since with
their default of 20 they cannot split few labels.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from cmvmed import CMVMED
from experiments.baseline_pipelines import CoTrainingClassifier, LabeledOnlyClassifier

Views = Mapping[str, slice]
N_NEIGHBORS, N_LANDMARKS = 10, 1000


class NystroemLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression of the labeled rows on Nyström features with landmarks from all rows."""

    def fit(self, X: Any, y: Any) -> Self:
        """Draw landmarks from all rows; compute features of the labeled rows only."""
        gamma, n_landmarks = 1.0 / (2 * X.shape[1]), min(N_LANDMARKS, X.shape[0])
        self.features_ = Nystroem(gamma=gamma, n_components=n_landmarks, random_state=0).fit(X)
        labeled = np.flatnonzero(y >= 0)
        self.model_ = LogisticRegression(C=1000.0, max_iter=2000).fit(self.features_.transform(X[labeled]), y[labeled])
        return self

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        return self.model_.predict(self.features_.transform(X))


class PoissonLearning(ClassifierMixin, BaseEstimator):
    """Poisson learning as graphlearning does it by default, with annoy's search; for new rows the mean of the nearest ten."""

    def fit(self, X: Any, y: Any) -> Self:
        """Solve the Poisson equation on the graph of nearest rows."""
        import graphlearning

        labeled = np.flatnonzero(y >= 0)
        self.classes_, codes = np.unique(y[labeled], return_inverse=True)
        graph = joined(graphlearning.weightmatrix.knn(X, N_NEIGHBORS), X)
        self.scores_ = graphlearning.ssl.poisson(graph).fit(labeled, codes)
        self.rows_ = X
        return self

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        nearest = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(self.rows_).kneighbors(X, return_distance=False)
        return self.classes_[self.scores_[nearest].mean(axis=1).argmax(axis=1)]


def joined(weights: Any, X: Any) -> Any:
    """The graph with each part that is apart joined to the nearest row of the largest part, by its smallest weight."""
    n_parts, part = connected_components(weights, directed=False)
    if n_parts == 1:
        return weights
    largest = part == np.bincount(part).argmax()
    inside, outside = np.flatnonzero(largest), np.flatnonzero(~largest)
    distances, nearest = NearestNeighbors(n_neighbors=1).fit(X[inside]).kneighbors(X[outside])
    by_distance = np.argsort(distances[:, 0], kind="stable")
    _, first = np.unique(part[outside][by_distance], return_index=True)
    ends = by_distance[first]  # of each part, its row nearest to the largest part
    pairs = outside[ends], inside[nearest[ends, 0]]
    bridges = sparse.coo_matrix((np.full(ends.size, weights.data.min()), pairs), shape=weights.shape)
    return sparse.csr_matrix(weights + bridges + bridges.T)


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=2000)


def two_views(views: Views) -> dict[str, slice]:
    """The first view, and all others as one: co-training takes two."""
    first, *others = views.values()
    return {"first": first, "others": slice(others[0].start, others[-1].stop)}


def boosted_trees() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(min_child_samples=1, min_data_in_bin=1, n_jobs=1, random_state=0, verbose=-1)


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def n_columns(views: Views) -> int:
    return max(columns.stop for columns in views.values())


METHODS: dict[str, Callable[[Views], Any]] = {
    "CMVMED": lambda views: CMVMED(views=dict(views)),
    "LabelSpreading knn": lambda views: scaled(LabelSpreading("knn", max_iter=200)),
    "LabelSpreading rbf": lambda views: scaled(LabelSpreading(gamma=10.0 / n_columns(views), max_iter=200)),
    "Poisson learning": lambda views: scaled(PoissonLearning()),
    "self-training (LR)": lambda views: scaled(SelfTrainingClassifier(logistic())),
    "co-training (LR)": lambda views: scaled(CoTrainingClassifier(two_views(views), logistic())),
    "Nystroem + LR, labels only": lambda views: scaled(NystroemLogistic()),
    "LightGBM, labels only": lambda views: LabeledOnlyClassifier(boosted_trees()),
}
PACKAGES = {
    "Poisson learning": ("graphlearning", "annoy"),
    "co-training (LR)": ("sslearn",),
    "LightGBM, labels only": ("lightgbm",),
}


def missing_packages(method: str) -> list[str]:
    """Optional packages that a method needs and that are not installed."""
    return [package for package in PACKAGES.get(method, ()) if find_spec(package) is None]
