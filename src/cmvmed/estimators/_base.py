"""What the estimators share: labels, weights, predictions and the scikit-learn conventions."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from cmvmed.auto.class_prior import label_share
from cmvmed.auto.neighbors import NeighborPredictor
from cmvmed.core.consensus import prior_scores
from cmvmed.core.linalg import Array, BoolArray, IntArray, Matrix
from cmvmed.core.problem import RowPartition, partition_rows
from cmvmed.data.labels import Labels, labeled_part, read_labels
from cmvmed.data.sources.opening import is_external
from cmvmed.data.view_data import ViewData, ViewPredictor, ViewSettings, read_view
from cmvmed.estimators._parameters import check_choice
from cmvmed.estimators._prediction import BlockTask, OutputKind, PooledPredictor, filled, predict_dask
from cmvmed.estimators._reading import InputSchema, ViewReader

MISSING_CHOICES = ("ignore", "error")


@dataclass(frozen=True)
class TrainingData:
    """What ``fit`` was given, read and checked."""

    columns: InputSchema
    matrices: list[Matrix]  # per view (n, d_i)
    present: list[BoolArray]  # per view (n,)
    labels: Labels
    partition: RowPartition

    def view_data(
        self, settings: Sequence[ViewSettings], block_L: IntArray, block_U: IntArray, random_state: Any
    ) -> list[ViewData]:
        """The views' training rows, scaled, with their kernels."""
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        return [
            read_view(s, matrix, seen, block_L, block_U, self.partition.weights, rng)
            for s, matrix, seen in zip(settings, self.matrices, self.present, strict=True)
        ]

    def signed_labels(self, rows: IntArray) -> Array:
        """Labels ±1 of each function, (n, F): of the second class if there are two, of each class else.

        An unlabeled row, which may ride along with a hinge of zero, counts as of the first class.
        """
        one_hot = np.maximum(self.labels.codes[rows], 0)[:, None] == np.arange(self.labels.n_classes)
        return np.where(one_hot[:, 1:] if self.labels.n_classes == 2 else one_hot, 1.0, -1.0)

    def fitted(self, predictors: Sequence[ViewPredictor], **more: Any) -> dict[str, Any]:
        """The attributes of a fit whose views have an equal say, and ``more`` of them, by name."""
        return self.columns.attributes | {
            "classes_": self.labels.classes,
            "class_prior_": label_share(self.partition.counts),
            "_predictors": tuple(predictors),
            "_pool_weights": np.ones(len(predictors)),
            "_offset": np.zeros(predictors[0].n_functions),
            "_temperature": 1.0,
            **more,
        }


class MultiViewClassifier(ClassifierMixin, ViewReader):
    """Base of the classifiers: views of X, labels with unlabeled rows, accuracy over the labeled ones.

    A subclass has the parameters ``views``, ``missing``, ``unlabeled`` and ``class_weight``; its ``fit`` ends with ``_set_fitted_attributes``,
    which sets the attributes of the columns of X, ``classes_``, ``class_prior_`` and the private attributes below, from which
    all predictions follow.
    """

    class_weight: Any
    classes_: Any
    class_prior_: Array
    _predictors: tuple[ViewPredictor, ...]
    _neighbors: NeighborPredictor | None = None
    _pool_weights: Array  # (V,), and the neighbors' if they are heard
    _offset: Array  # (F,)
    _temperature: float

    def __sklearn_tags__(self) -> Any:
        """Sparse X is welcome. A NaN is so only where a whole view is missing, which the tag for NaN cannot say."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        return tags

    def decision_function(self, X: Any) -> Any:
        """Score of each row: the weighted mean of its views' posterior means, plus the offset of the class balance.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path, dask collection, or list or dict of them by view
            Rows in the layout of ``fit``, from anywhere that ``fit`` can read. A view whose values are all NaN in a row is left
            out of that row's score; a row without any view gets the score of the class prior, with a warning.

        Returns
        -------
        score : ndarray of shape (n_rows,) for two classes, positive for the second; (n_rows, n_classes) for more
            Of a dask collection, a dask array that is not yet computed.
        """
        return self._predict(X, "score")

    def predict(self, X: Any) -> Any:
        """Class of each row, the one of highest score; ties go to the first of ``classes_``.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path, dask collection, or list or dict of them by view
            Rows to classify, in the layout of ``fit``, from anywhere that ``fit`` can read.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Of a dask collection, a dask array that is not yet computed.
        """
        return self._predict(X, "class")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy over the labeled rows of ``y``; unlabeled rows do not count.

        Parameters
        ----------
        X : as in ``predict``
        y : array-like of shape (n_rows,)
            True classes; rows marked unlabeled are left out.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        accuracy : float
        """
        rows, truth = self._labeled_truth(y)
        guess = self.predict(X)
        check_consistent_length(guess, y, sample_weight)
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(np.average(guess[rows] == truth, weights=weights))

    def _predict(self, X: Any, kind: str) -> Any:
        """The "score", "class" or "probability" of each row; lazily for dask collections, in chunks for many rows."""
        check_is_fitted(self)
        answer = OutputKind(kind, self.classes_, self._temperature, prior_scores(self.class_prior_, self._temperature))
        scorer = self._scorer()
        if not is_external(X):
            return answer(_warned_of_blind(scorer.of_matrices(self._read_new(X))))
        opened = self._open_new(X)
        if opened.in_dask:
            layout = self._columns.layout if opened.names is None else None
            return predict_dask(opened.dask_arrays(), BlockTask(scorer, answer, layout))
        return answer(_warned_of_blind(scorer.of_source(self._rows(opened, self._columns))))

    def _scorer(self) -> PooledPredictor:
        widths = self._columns.layout.widths
        unused = [predictor.unused_columns(width) for predictor, width in zip(self._predictors, widths, strict=True)]
        check = self._row_check(self._columns, unused)
        return PooledPredictor(self._predictors, self._pool_weights, self._offset, check, self._neighbors)

    def _means_by_view(self, matrices: list[Matrix], present: list[BoolArray]) -> tuple[list[IntArray], list[Array]]:
        """Per view, the rows that it can judge and their posterior means (n_i, F)."""
        return self._scorer().means(matrices, present)

    def _scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Pooled scores with the offset, (n, F)."""
        scored = _warned_of_blind(self._scorer().pooled(matrices, present))
        return filled(scored, prior_scores(self.class_prior_, self._temperature))

    def _labeled_truth(self, y: Any) -> tuple[Any, Any]:
        rows, truth = labeled_part(y, self.unlabeled)
        if rows.size == 0:
            raise ValueError("No row of y is labeled, so there is nothing to score; pass true classes for some rows.")
        return rows, truth

    def _read_training(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Read and check what ``fit`` was given."""
        check_choice("missing", self.missing, MISSING_CHOICES)
        columns, matrices, y = self._read_training_parts(X, y)
        present = self._present_in_training(columns, matrices)
        labels = self._read_labels(y, matrices[0].shape[0])
        weights = self._read_sample_weight(sample_weight, labels.codes.size, matrices[0])
        partition = partition_rows(labels, present, weights, self._hinge_weights(labels, weights))
        return TrainingData(columns, matrices, present, labels, partition)

    def _read_labels(self, y: Any, n_rows: int) -> Labels:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None: give the classes "
                f"of the labeled rows and {self.unlabeled!r} for the others."
            )
        labels = y if isinstance(y, Labels) else read_labels(y, self.unlabeled)
        if labels.codes.size != n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y {labels.codes.size}."
            )
        return labels

    def _read_sample_weight(self, sample_weight: Any, n_rows: int, like: Matrix) -> Array:
        if sample_weight is None:
            return np.ones(n_rows)
        return np.asarray(_check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True))

    def _hinge_weights(self, labels: Labels, weights: Array) -> Array:
        """Relative hinge weight of each row, (n,): its sample weight times its class's weight, 0 if unlabeled."""
        rows = labels.labeled
        seen = np.bincount(labels.codes[rows], weights=weights[rows], minlength=labels.n_classes)
        if (seen > 0.0).sum() < 2:
            raise ValueError("After removing rows of zero sample_weight, labels of fewer than 2 classes are left.")
        if (seen == 0.0).any():
            lost = labels.classes[seen == 0.0].tolist()[0]
            raise ValueError(
                f"All labeled rows of class {lost!r} have zero sample_weight; give one of them weight or drop the class."
            )
        by_class = compute_class_weight(
            self.class_weight, classes=labels.classes, y=labels.classes[labels.codes[rows]], sample_weight=weights[rows]
        )
        if not (np.isfinite(by_class) & (by_class >= 0.0)).all():
            raise ValueError(f"class_weight must give each class a number of at least 0, but is {self.class_weight!r}.")
        hinge = np.zeros(weights.size)
        hinge[rows] = weights[rows] * by_class[labels.codes[rows]]
        return hinge


def _warned_of_blind(scored: Array) -> Array:
    """The same scores and coverage, with a warning if some rows have no view."""
    blind = np.flatnonzero(scored[:, -1] == 0.0)
    if blind.size:
        warnings.warn(
            f"{blind.size} of {len(scored)} rows have no view to judge them by, the first is row {blind[0]}; they get the class "
            "prior.",
            stacklevel=4,
        )
    return scored
