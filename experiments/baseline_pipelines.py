"""Baselines composed of existing classifiers; each takes all views in one X, and -1 in y for unlabeled rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils.metaestimators import available_if

from experiments.tasks import IntArray, Matrix

Array = NDArray[np.float64]


def concatenated_views(X: Matrix, classifier: BaseEstimator | None) -> Pipeline:
    """A single-view classifier on the concatenation of all views, with the usual scaling.

    Rows of a sparse ``X`` are scaled to unit norm, columns of a dense one are standardized. A missing view (NaN) is
    replaced by zeros, since these classifiers do not support missing values.
    """
    scaler = Normalizer() if sparse.issparse(X) else StandardScaler()
    return Pipeline([("fill", FunctionTransformer(_fill_missing)), ("scale", scaler), ("classify", classifier)])


def _fill_missing(X: Matrix) -> Array | sparse.csr_matrix:
    if isinstance(X, np.ndarray):
        return np.nan_to_num(X)
    filled = sparse.csr_matrix(X, copy=True)  # with 32-bit indices, which SVC requires
    filled.data = np.nan_to_num(filled.data)
    return filled


def one_view(columns: slice, classifier: BaseEstimator) -> Pipeline:
    """A classifier on the columns of one view."""
    return make_pipeline(FunctionTransformer(_select_columns, kw_args={"columns": columns}), classifier)


def _select_columns(X: Matrix, columns: slice) -> Matrix:
    return X[:, columns]


def _has_method(name: str) -> Callable[[LabeledOnlyClassifier], bool]:
    return lambda wrapper: hasattr(wrapper.estimator, name)


class LabeledOnlyClassifier(ClassifierMixin, BaseEstimator):
    """A classifier fitted to the labeled rows only.

    Parameters
    ----------
    estimator : classifier
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit the classifier to the labeled rows."""
        labeled = np.flatnonzero(np.asarray(y) >= 0)
        self.estimator_ = clone(self.estimator).fit(X[labeled], np.asarray(y)[labeled])
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Matrix) -> IntArray:
        """Predict the class of each row."""
        classes: IntArray = self.estimator_.predict(X)
        return classes

    @available_if(_has_method("predict_proba"))
    def predict_proba(self, X: Matrix) -> Array:
        """Predict the probability of each class, if the classifier supports it."""
        probabilities: Array = self.estimator_.predict_proba(X)
        return probabilities

    @available_if(_has_method("decision_function"))
    def decision_function(self, X: Matrix) -> Array:
        """Compute decision values, if the classifier supports it."""
        decision: Array = self.estimator_.decision_function(X)
        return decision


class LateFusionClassifier(ClassifierMixin, BaseEstimator):
    """One classifier per view; predicts from the mean of their probabilities.

    Parameters
    ----------
    views : mapping of view name to slice of columns
    estimator : classifier with ``predict_proba``, cloned for each view
    """

    def __init__(self, views: Mapping[str, slice], estimator: BaseEstimator) -> None:
        self.views = views
        self.estimator = estimator

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit a classifier to each view."""
        self.estimators_ = [one_view(columns, clone(self.estimator)).fit(X, y) for columns in self.views.values()]
        self.classes_ = self.estimators_[0].classes_
        return self

    def predict_proba(self, X: Matrix) -> Array:
        """Average the predicted probability of each class over the views."""
        mean: Array = np.mean([estimator.predict_proba(X) for estimator in self.estimators_], axis=0)
        return mean

    def predict(self, X: Matrix) -> IntArray:
        """Predict the class of each row."""
        classes: IntArray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return classes


class CoTrainingClassifier(ClassifierMixin, BaseEstimator):
    """Co-training of two views (Blum and Mitchell, 1998) as implemented by sslearn.

    Parameters
    ----------
    views : mapping of two view names to slices of columns
    estimator : classifier with ``predict_proba``, cloned for each view
    random_state : int, default=0
        Seed of the selection of the pool of unlabeled rows.
    """

    def __init__(self, views: Mapping[str, slice], estimator: BaseEstimator, random_state: int = 0) -> None:
        self.views = views
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit both classifiers to the labeled rows and to the rows that they label for each other."""
        from sslearn.wrapper import CoTraining

        columns = [np.arange(view.start, view.stop) for view in self.views.values()]
        model = CoTraining(clone(self.estimator), random_state=self.random_state)
        self.model_ = model.fit(_dense(X), y, features=columns)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Matrix) -> Array:
        """Average the predicted probability of each class over the views."""
        probabilities: Array = self.model_.predict_proba(_dense(X))
        return probabilities

    def predict(self, X: Matrix) -> IntArray:
        """Predict the class of each row."""
        classes: IntArray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return classes


def _dense(X: Matrix) -> Array:
    return X if isinstance(X, np.ndarray) else X.toarray()
