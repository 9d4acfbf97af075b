"""Prediction sets of CMVMED."""

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cmvmed._warnings import warn_user
from cmvmed.estimators._parameters import check_number
from cmvmed.estimators._prediction import OutputKind
from cmvmed.members.prediction_sets import ClassThresholds, HeldOutScores


class PredictionSetMixin:
    """The method ``predict_set``."""

    _predict: Callable[[object, OutputKind], Any]  # of the classifier

    def predict_set(self, X: object, alpha: float = 0.1, *, allow_empty: bool = True) -> Any:
        """Classes that may be those of each row: a set that holds the true class with a probability of about 1 - alpha.

        A class belongs to the set if its probability is not below most of those that held-out labels had: the conformal
        method. If every class has 1/alpha - 1 or more held-out labels, 1 - alpha holds for the rows of each class, else
        for all rows together, with the class shares ``class_prior_`` if labels were drawn per class. If all classes
        together have fewer, nothing can be said, and all sets hold all classes, with a warning.

        Parameters
        ----------
        X : as in ``decision_function``
        alpha : float, default=0.1
            Share of the rows whose set may lack the true class.
        allow_empty : bool, default=True
            Whether sets may be empty, which is so where no class is probable enough. A classifier that is right more
            often than 1 - alpha has such sets, since they would else hold the true class more often than asked for. If
            not, the most probable class belongs to each set.

        Returns
        -------
        sets : bool ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``. All classes for a row without any view. Of a dask collection, a dask array that
            is not yet computed.
        """
        check_is_fitted(self)
        alpha = check_number("alpha", alpha, exclusive=True, maximum=1.0)
        scores: HeldOutScores | None = getattr(self, "_held_out_scores", None)  # not in model files of older releases
        if scores is None:
            raise ValueError(
                "Prediction sets need labels that were held out, and this fit has none: use calibrate=True and two labels or "
                "more of some class, and let the fit run to its end. A model file of an older release does not hold them "
                "either; fit again."
            )
        thresholds = scores.thresholds(alpha)
        if not np.isfinite(thresholds).any():
            warn_user(
                f"{scores.counts.sum():g} held-out labels are too few for sets with alpha={alpha:g}, so all sets hold all classes; "
                f"label at least {ceil(1.0 / alpha) - 1} rows, or use a larger alpha."
            )
        return self._predict(X, ClassThresholds(thresholds, bool(allow_empty)))
