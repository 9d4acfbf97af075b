"""The protocol "shares": any classifier with its decision threshold at the class shares of the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if

from cmvmed.reproduction.scores import class_scores
from cmvmed.reproduction.tasks import IntArray, Matrix

Array = NDArray[np.float64]
SMALLEST = float(np.finfo(float).tiny)  # in place of a probability of zero, whose logarithm is not finite


def _has_method(name: str) -> Callable[[LabelSharesClassifier], bool]:
    return lambda wrapper: hasattr(wrapper.estimator, name)


class LabelSharesClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose class scores are shifted so that predictions keep the class shares of the labels.

    The classifier is fitted as it is. Then one offset per class is added to its scores (logarithms of probabilities, or
    decision values if it has no probabilities), so that among the unlabeled training rows each class is predicted as
    often as its share of the labeled rows says, up to ties. For two classes this moves the threshold.

    Parameters
    ----------
    estimator : classifier with ``predict_proba`` or ``decision_function``

    Attributes
    ----------
    estimator_ : the fitted classifier
    offsets_ : ndarray of shape (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit the classifier, then the offsets on the unlabeled rows (-1 in y)."""
        codes = np.asarray(y)
        unlabeled = np.flatnonzero(codes == -1)
        if unlabeled.size == 0:
            raise ValueError("The threshold is set on unlabeled rows, but y has none; mark unlabeled rows by -1.")
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        counts = (codes[:, np.newaxis] == self.classes_).sum(axis=0)
        self.offsets_ = share_offsets(self._scores(X[unlabeled]), counts / counts.sum())
        return self

    def decision_function(self, X: Matrix) -> Array:
        """Shifted score of each class, of shape (n_rows, n_classes); for two classes half their difference, (n_rows,)."""
        scores: Array = self._scores(X) + self.offsets_
        return (scores[:, 1] - scores[:, 0]) / 2.0 if scores.shape[1] == 2 else scores

    def predict(self, X: Matrix) -> IntArray:
        """Class of the highest shifted score."""
        classes: IntArray = self.classes_[(self._scores(X) + self.offsets_).argmax(axis=1)]
        return classes

    @available_if(_has_method("predict_proba"))
    def predict_proba(self, X: Matrix) -> Array:
        """Probabilities with the odds of the classes multiplied by constants, if the classifier has probabilities."""
        return np.asarray(softmax(self._scores(X) + self.offsets_, axis=1))

    def _scores(self, X: Matrix) -> Array:
        """Scores of shape (n_rows, n_classes)."""
        scores = class_scores(self.estimator_, X)
        return np.log(np.maximum(scores, SMALLEST)) if hasattr(self.estimator_, "predict_proba") else scores


def share_offsets(scores: Array, shares: Array) -> Array:
    """Offsets o (K,) of mean zero at which argmax(scores + o) over the rows (n, K) has the shares (K,), rounded to rows.

    Of all assignments of rows to classes with these shares, the one with the highest sum of scores gives row n the class
    c_n. The offsets must then satisfy, for all classes c and k,

        o_k - o_c <= D_ck = min over the rows of class c of (scores_nc - scores_nk).

    Its closure, D_ck <- min_j (D_cj + D_jk), has the solutions o_k = D_rk and o_k = -D_kr for every r, and the mean of
    all of them leaves no tie that can be avoided: for two classes the threshold is midway between two rows.
    """
    n_rows, n_classes = scores.shape
    columns = np.repeat(np.arange(n_classes), _rounded(n_rows * shares))
    assigned = columns[linear_sum_assignment(scores[:, columns], maximize=True)[1]]
    D = np.full((n_classes, n_classes), 3.0 * np.ptp(scores))  # for a class without rows, further than any offset
    for c in np.unique(assigned):
        rows = scores[assigned == c]
        D[c] = (rows[:, [c]] - rows).min(axis=0)
    np.fill_diagonal(D, 0.0)
    for j in range(n_classes):
        D = np.minimum(D, D[:, [j]] + D[[j]])
    return np.asarray(D.mean(axis=0) - D.mean(axis=1)) / 2.0


def _rounded(counts: Array) -> IntArray:
    """Whole numbers of the same sum, by the largest remainders."""
    whole = np.floor(counts).astype(np.intp)
    n_left = round(float(counts.sum())) - int(whole.sum())
    whole[np.argsort(whole - counts, kind="stable")[:n_left]] += 1
    return whole
