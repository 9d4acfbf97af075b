"""What the estimators share: reading X, y and weights at the border, and the scikit-learn conventions."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from cmvmed.consensus import pool, prior_scores
from cmvmed.estimators.parameters import check_choice
from cmvmed.labels import Labels, labeled_part, read_labels
from cmvmed.linalg import Array, BoolArray, IntArray, Matrix
from cmvmed.machines import Machine, ViewData, ViewSettings, read_view
from cmvmed.training import RowRoles, assign_roles
from cmvmed.views import (
    ViewLayout,
    absent_rows,
    collection_items,
    is_view_collection,
    layout_of_widths,
    per_view,
    present_rows,
    resolve_views,
)

MISSING_CHOICES = ("ignore", "error")


@dataclass(frozen=True)
class Training:
    """What ``fit`` was given, read and checked."""

    matrices: list[Matrix]  # per view (n, d_i)
    present: list[BoolArray]  # per view (n,)
    labels: Labels
    roles: RowRoles

    def view_data(
        self, settings: Sequence[ViewSettings], block_L: IntArray, block_U: IntArray, random_state: Any
    ) -> list[ViewData]:
        """The views' training rows, scaled, with their kernels."""
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        return [
            read_view(s, matrix, seen, block_L, block_U, self.roles.weights, rng)
            for s, matrix, seen in zip(settings, self.matrices, self.present, strict=True)
        ]

    def signed_labels(self, rows: IntArray) -> Array:
        """Labels ±1 of each function, (n, F): of the second class if there are two, of each class else.

        An unlabelled row, which may ride along with a hinge of zero, counts as of the first class.
        """
        one_hot = np.maximum(self.labels.codes[rows], 0)[:, None] == np.arange(self.labels.n_classes)
        return np.where(one_hot[:, 1:] if self.labels.n_classes == 2 else one_hot, 1.0, -1.0)


class MultiViewClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers: views of X, labels with unlabelled rows, accuracy over the labelled ones.

    A subclass has the parameters ``views``, ``missing``, ``unlabeled`` and ``class_weight``; its ``fit`` sets ``classes_``,
    ``class_prior_`` and the private attributes below, from which all predictions follow.
    """

    views: Any
    kernel: Any
    missing: str
    unlabeled: Any
    class_weight: Any
    classes_: Any
    class_prior_: Array
    feature_names_in_: Any
    _layout: ViewLayout
    _view_columns: list[list[str] | None] | None  # if fit saw one table per view, the column names of its frames
    _machines: tuple[Machine, ...]
    _pool_weights: Array  # (V,)
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
        X : array, sparse matrix, data frame, or list or dict of them by view
            Rows in the layout of ``fit``. A view whose values are all NaN in a row is left out of that row's score; a row
            without any view gets the score of the class prior, with a warning.

        Returns
        -------
        score : ndarray of shape (n_rows,) for two classes, positive for the second; (n_rows, n_classes) for more
        """
        scores = self._scores(*self._read_views(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """Class of each row, the one of highest score; ties go to the first of ``classes_``.

        Parameters
        ----------
        X : array, sparse matrix, data frame, or list or dict of them by view
            Rows to classify, in the layout of ``fit``.

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        decision = self.decision_function(X)
        codes = decision.argmax(axis=1) if decision.ndim == 2 else (decision > 0.0).astype(np.intp)
        return self.classes_[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy over the labelled rows of ``y``; unlabelled rows do not count.

        Parameters
        ----------
        X : as in ``predict``
        y : array-like of shape (n_rows,)
            True classes; rows marked unlabelled are left out.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        accuracy : float
        """
        rows, truth = self._labelled_truth(y)
        guess = self.predict(X)
        check_consistent_length(guess, y, sample_weight)
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(np.average(guess[rows] == truth, weights=weights))

    def _means_by_view(self, matrices: list[Matrix], present: list[BoolArray]) -> tuple[list[IntArray], list[Array]]:
        """Per view, the rows that it can judge and their posterior means (n_i, F)."""
        rows = [
            np.flatnonzero(seen & machine.knows_rows) for seen, machine in zip(present, self._machines, strict=True)
        ]
        means = [
            machine.mean(matrix[index]) for machine, matrix, index in zip(self._machines, matrices, rows, strict=True)
        ]
        return rows, means

    def _scores(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Pooled scores with the offset, (n, F)."""
        rows, means = self._means_by_view(matrices, present)
        scores, coverage = pool(means, rows, self._pool_weights, matrices[0].shape[0])
        scores += self._offset
        blind = coverage == 0.0
        if blind.any():
            warnings.warn(
                f"{int(blind.sum())} of {blind.size} rows have no view to judge them by, the first is row "
                f"{int(np.flatnonzero(blind)[0])}; they get the class prior.",
                stacklevel=3,
            )
            scores[blind] = prior_scores(self.class_prior_, self._temperature)
        return scores

    def _labelled_truth(self, y: Any) -> tuple[Any, Any]:
        rows, truth = labeled_part(y, self.unlabeled)
        if rows.size == 0:
            raise ValueError("No row of y is labelled, so there is nothing to score; pass true classes for some rows.")
        return rows, truth

    def _read_training(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Read and check what ``fit`` was given; sets the layout of the views."""
        check_choice("missing", self.missing, MISSING_CHOICES)
        matrices, present = self._read_training_views(X)
        labels = self._read_labels(y, matrices[0].shape[0])
        weights = self._read_sample_weight(sample_weight, labels.codes.size, matrices[0])
        roles = assign_roles(labels, present, weights, self._hinge_weights(labels, weights))
        return Training(matrices, present, labels, roles)

    def _read_training_views(self, X: Any) -> tuple[list[Matrix], list[BoolArray]]:
        """Validated matrices of the views and which rows have them; sets the layout and feature attributes."""
        matrices = self._split(X, reset=True)
        kernels = per_view(self.kernel, self._layout.names, "kernel")
        unused = [
            absent_rows(m) if isinstance(kernel, str) and kernel == "precomputed" and m.shape[0] == m.shape[1] else None
            for kernel, m in zip(kernels, matrices, strict=True)
        ]
        return matrices, self._present(matrices, unused)

    def _read_views(self, X: Any) -> tuple[list[Matrix], list[BoolArray]]:
        """The same for new rows, which must have the layout of ``fit``."""
        check_is_fitted(self)
        matrices = self._split(X, reset=False)
        unused = [machine.unused_columns(m.shape[1]) for machine, m in zip(self._machines, matrices, strict=True)]
        return matrices, self._present(matrices, unused)

    def _split(self, X: Any, *, reset: bool) -> list[Matrix]:
        return self._split_collection(X, reset=reset) if is_view_collection(X) else self._split_columns(X, reset=reset)

    def _split_columns(self, X: Any, *, reset: bool) -> list[Matrix]:
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1
        )
        if reset:
            self._layout = resolve_views(self.views, X.shape[1], self._feature_names())
            self._view_columns = None
        return self._layout.split(X)

    def _split_collection(self, X: Any, *, reset: bool) -> list[Matrix]:
        items = collection_items(X)
        matrices = [_as_table(name, part) for name, part in items]
        names = [name for name, _ in items]
        rows = [matrix.shape[0] for matrix in matrices]
        if len(set(rows)) > 1:
            raise ValueError(
                f"The views have unequal numbers of rows: {dict(zip(names, rows, strict=True))}; align them first."
            )
        if reset:
            self._set_collection_layout(items, matrices)
            return matrices
        parts = [part for _, part in items]
        if isinstance(X, Mapping):
            parts = self._in_layout_order(dict(items))
            matrices = self._in_layout_order(dict(zip(names, matrices, strict=True)))
        self._check_widths(matrices)
        self._check_columns(parts)
        return matrices

    def _set_collection_layout(self, items: list[tuple[str, Any]], matrices: list[Matrix]) -> None:
        if self.views is not None:
            raise ValueError(
                "views= describes the columns of one X, but X is a list or dict with one array per view; leave views=None."
            )
        self._layout = layout_of_widths([name for name, _ in items], [matrix.shape[1] for matrix in matrices])
        self.n_features_in_ = sum(self._layout.widths)
        self._view_columns = [_column_names(part) for _, part in items]
        columns = [name for names in self._view_columns if names is not None for name in names]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if None not in self._view_columns:
            self.feature_names_in_ = np.asarray(columns, dtype=object)

    def _check_columns(self, parts: list[Any]) -> None:
        """Compare the column names of frames with those of fit."""
        for view, expected, part in zip(self._layout.names, self._expected_columns(), parts, strict=True):
            given = _column_names(part)
            if given is not None and expected is not None and given != expected:
                raise ValueError(
                    f"View {view!r} has the columns {given[:6]}, but fit saw {expected[:6]}; pass the same columns in the same "
                    "order."
                )

    def _expected_columns(self) -> list[list[str] | None]:
        """Per view, the column names that fit saw, None where it saw none."""
        if self._view_columns is not None:
            return self._view_columns
        names = self._feature_names()
        return [None if names is None else [names[c] for c in columns] for columns in self._layout.columns]

    def _in_layout_order(self, by_name: dict[str, Any]) -> list[Any]:
        expected = self._layout.names
        if set(by_name) != set(expected):
            raise ValueError(f"X has the views {sorted(by_name)} but fit saw {sorted(expected)}; pass the same views.")
        return [by_name[name] for name in expected]

    def _check_widths(self, matrices: list[Matrix]) -> None:
        names, widths = self._layout.names, self._layout.widths
        if len(matrices) != len(names):
            raise ValueError(f"X has {len(matrices)} views but fit saw {len(names)}: {list(names)}.")
        for name, width, matrix in zip(names, widths, matrices, strict=True):
            if matrix.shape[1] != width:
                raise ValueError(
                    f"View {name!r} has {matrix.shape[1]} features, but fit saw {width}; pass the same columns."
                )

    def _present(self, matrices: list[Matrix], unused: Sequence[BoolArray | None]) -> list[BoolArray]:
        names = self._feature_names()
        return [
            present_rows(matrix, name, self.missing, None if names is None else [names[c] for c in columns], ignore)
            for matrix, name, columns, ignore in zip(
                matrices, self._layout.names, self._layout.columns, unused, strict=True
            )
        ]

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _read_labels(self, y: Any, n_rows: int) -> Labels:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None: give the classes "
                f"of the labelled rows and {self.unlabeled!r} for the others."
            )
        labels = read_labels(y, self.unlabeled)
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
        """Relative hinge weight of each row, (n,): its sample weight times its class's weight, 0 if unlabelled."""
        rows = labels.labeled
        seen = np.bincount(labels.codes[rows], weights=weights[rows], minlength=labels.n_classes)
        if (seen > 0.0).sum() < 2:
            raise ValueError("After removing rows of zero sample_weight, labels of fewer than 2 classes are left.")
        if (seen == 0.0).any():
            lost = labels.classes[seen == 0.0].tolist()[0]
            raise ValueError(
                f"All labelled rows of class {lost!r} have zero sample_weight; give one of them weight or drop the class."
            )
        by_class = compute_class_weight(
            self.class_weight, classes=labels.classes, y=labels.classes[labels.codes[rows]], sample_weight=weights[rows]
        )
        if not (np.isfinite(by_class) & (by_class >= 0.0)).all():
            raise ValueError(f"class_weight must give each class a number of at least 0, but is {self.class_weight!r}.")
        hinge = np.zeros(weights.size)
        hinge[rows] = weights[rows] * by_class[labels.codes[rows]]
        return hinge


def _column_names(part: Any) -> list[str] | None:
    """Column names of a data frame, if they are text."""
    names = list(getattr(part, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None


def _as_table(name: str, part: Any) -> Matrix:
    """One view's array or frame as a float matrix."""
    shape = np.shape(part) if isinstance(part, (list, tuple)) else getattr(part, "shape", ())
    if len(shape) != 2:
        raise ValueError(
            f"View {name!r} must be a two-dimensional array, sparse matrix or data frame, but is {type(part).__name__} of shape "
            f"{tuple(shape)}."
        )
    try:
        return check_array(part, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    except ValueError as error:
        raise ValueError(f"View {name!r}: {error}") from error
