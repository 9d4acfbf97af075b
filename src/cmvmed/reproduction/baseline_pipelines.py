"""Simple rivals put together from existing classifiers; each takes all views as one X and -1 for unlabeled rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils.metaestimators import available_if


def concatenated_views(X: Any, classifier: Any) -> Pipeline:
    """Let a classifier of one view see all of them, scaled as is customary.

    Rows get unit length if ``X`` is sparse, else columns are standardized. A missing view (NaN) is filled with zeros, since none
    of these classifiers can leave it out.
    """
    scaler = Normalizer() if sparse.issparse(X) else StandardScaler()
    return Pipeline([("fill", FunctionTransformer(_fill_missing)), ("scale", scaler), ("classify", classifier)])


def _fill_missing(X: Any) -> Any:
    if isinstance(X, np.ndarray):
        return np.nan_to_num(X)
    filled = sparse.csr_matrix(X, copy=True)  # with 32-bit indices, which scikit-learn's SVC wants
    filled.data = np.nan_to_num(filled.data)
    return filled


def one_view(columns: slice, classifier: Any) -> Pipeline:
    """Let a classifier see one view only."""
    return make_pipeline(FunctionTransformer(_take_columns, kw_args={"columns": columns}), classifier)


def _take_columns(X: Any, columns: slice) -> Any:
    return X[:, columns]


def _has(name: str) -> Callable[[Any], bool]:
    return lambda wrapper: hasattr(wrapper.estimator, name)


class LabeledOnly(ClassifierMixin, BaseEstimator):
    """A classifier trained on the labeled rows alone.

    Parameters
    ----------
    estimator : classifier
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to the labeled rows."""
        labeled = np.flatnonzero(np.asarray(y) >= 0)
        self.estimator_ = clone(self.estimator).fit(X[labeled], np.asarray(y)[labeled])
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        return self.estimator_.predict(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Probability of each class, if the classifier has it."""
        return self.estimator_.predict_proba(X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Scores of the rows, if the classifier has them."""
        return self.estimator_.decision_function(X)


class LateFusion(ClassifierMixin, BaseEstimator):
    """One classifier per view; the mean of their probabilities decides.

    Parameters
    ----------
    views : mapping of view name to slice of columns
    estimator : classifier with probabilities, cloned for each view
    """

    def __init__(self, views: Mapping[str, slice], estimator: Any) -> None:
        self.views = views
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a classifier to each view."""
        self.estimators_ = [one_view(columns, clone(self.estimator)).fit(X, y) for columns in self.views.values()]
        self.classes_ = self.estimators_[0].classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Mean over the views of the probability of each class."""
        return np.mean([estimator.predict_proba(X) for estimator in self.estimators_], axis=0)

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class CoTrained(ClassifierMixin, BaseEstimator):
    """Co-training of two views (Blum and Mitchell, 1998) as sslearn implements it.

    Parameters
    ----------
    views : mapping of two view names to slices of columns
    estimator : classifier with probabilities, one for each view
    random_state : int, default=0
        Chooses the pool of unlabeled rows.
    """

    def __init__(self, views: Mapping[str, slice], estimator: Any, random_state: int = 0) -> None:
        self.views = views
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit both classifiers to the labeled rows and to those that they label for each other."""
        from sslearn.wrapper import CoTraining

        columns = [np.arange(view.start, view.stop) for view in self.views.values()]
        model = CoTraining(clone(self.estimator), random_state=self.random_state)
        self.model_ = model.fit(_dense(X), y, features=columns)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Mean over the views of the probability of each class."""
        return self.model_.predict_proba(_dense(X))

    def predict(self, X: Any) -> Any:
        """Class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _dense(X: Any) -> Any:
    return X if isinstance(X, np.ndarray) else X.toarray()
