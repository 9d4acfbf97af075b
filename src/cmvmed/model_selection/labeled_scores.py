"""Scores of the labeled rows, for data with unlabeled ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any

from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metadata_routing import get_routing_for_object

from cmvmed.data.labels import labeled_part


def labeled_scorer(scoring: object = "accuracy", unlabeled: object = -1) -> Callable[..., Any]:
    """Make a scorer that leaves the unlabeled rows out.

    Parameters
    ----------
    scoring : str, callable, or collection of these, default="accuracy"
        What to compute on the labeled rows: a name from ``sklearn.metrics.get_scorer_names()``, a scorer with the
        signature ``scorer(estimator, X, y)``, or a list of names or dict of scorers, which gives a dict of scores.
    unlabeled : scalar, default=-1
        Value of y that marks an unlabeled row. None and NaN always count as unlabeled.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)``, and ``sample_weight=`` where ``scoring`` takes it; for the argument ``scoring`` of
        GridSearchCV, cross_val_score and the like. It can be pickled. X may be an array, a sparse matrix, a data frame
        or a list of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.model_selection import labeled_scorer
    >>> from sklearn.semi_supervised import LabelSpreading
    >>> X, y = np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, -1, 1, -1])
    >>> model = LabelSpreading().fit(X, y)
    >>> model.score(X, y), labeled_scorer("accuracy")(model, X, y)
    (0.5, 1.0)
    """
    if scoring is None:
        raise ValueError("scoring must be the name of a scorer such as 'accuracy', or a scorer; got None.")
    return _LabeledScorer(scorer=check_scoring(scoring=scoring), unlabeled=unlabeled)


@dataclass(frozen=True)
class _LabeledScorer:
    """A scorer that leaves unlabeled rows out; see :func:`labeled_scorer`."""

    scorer: Callable[..., Any]
    unlabeled: Any

    def __call__(self, estimator: object, X: object, y: Sized, **metadata: object) -> Any:
        """Score the estimator on the labeled rows of (X, y); metadata such as sample_weight has one entry per row."""
        X, y = indexable(X, y)
        rows, labels = labeled_part(y, self.unlabeled)
        if not len(rows):
            raise ValueError(
                f"There is nothing to score: none of the {len(y)} rows is labeled. Use a splitter that keeps labeled "
                "rows in every test set, such as SemiSupervisedKFold."
            )
        given = {name: value for name, value in metadata.items() if value is not None}
        kept = {
            name: _safe_indexing(value, rows) if _is_per_row(value, len(y)) else value for name, value in given.items()
        }
        return self.scorer(estimator, _safe_indexing(X, rows), labels, **kept)

    def __repr__(self) -> str:
        return f"labeled_scorer({self.scorer!r}, unlabeled={self.unlabeled!r})"

    def _accept_sample_weight(self) -> bool:
        """Tell scikit-learn's searches, which ask by this name, whether the wrapped scorer takes weights."""
        if hasattr(self.scorer, "_accept_sample_weight"):
            return bool(self.scorer._accept_sample_weight())
        return "sample_weight" in inspect.signature(self.scorer).parameters

    def get_metadata_routing(self) -> Any:
        """Get the metadata that the wrapped scorer requests."""
        return get_routing_for_object(self.scorer)


def _is_per_row(value: object, n_rows: int) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | dict) and len(value) == n_rows
