"""What the estimators share: reading X and y, predictions, and the scikit-learn conventions."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from cmvmed._warnings import warn_user
from cmvmed.auto.tuning import current_tuning
from cmvmed.data.array_api import array_place, on_host
from cmvmed.data.labels import check_known_classes, labeled_part
from cmvmed.data.reading import open_training, read_label_column
from cmvmed.estimators._settings import check_choice, read_input_settings
from cmvmed.model.archive import new_file
from cmvmed.model.array_program import predict_arrays
from cmvmed.model.compact import compact_model
from cmvmed.model.file import load, rows_of_compact, save
from cmvmed.model.fitted_model import Model
from cmvmed.model.onnx_model import DTYPES, OutputChoice, onnx_model
from cmvmed.model.predict import OutputKind, output, predict, score_rows
from cmvmed.numerics.linalg import numerical_errors
from cmvmed.numerics.types import Array, IntArray
from cmvmed.views.training_data import TrainingData, present_in_training, read_weights, training_data

OF_ALL_ROWS = ("label_distributions_", "transduction_")  # attributes that a fit to very many rows leaves out


class MultiViewClassifier(ClassifierMixin, BaseEstimator):
    """Base of the classifiers: views of X, labels with unlabeled rows, accuracy over the labeled ones.

    A subclass has the parameters ``views``, ``unlabeled`` and ``random_state``. Its ``fit`` ends with
    ``_set_fitted_attributes``, which stores the fitted model and the public attributes; predictions use nothing else.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"random_state": ["random_state"]}
    views: object
    kernel: object
    unlabeled: object
    classes_: NDArray[Any]
    class_prior_: Array
    n_imputed_cells_: dict[str, int]
    n_features_in_: int
    compaction_: dict[str, float]
    _model: Model
    _has_model_probabilities = False  # whether ``predict_proba`` is that of the fitted model, without more

    def __sklearn_tags__(self) -> Any:
        """Sparse X is accepted, and NaN except for single values of a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.allow_nan = not tags.input_tags.pairwise
        return tags

    def decision_function(self, X: object) -> Any:
        """Score of each row: the weighted mean of its views' posterior means, plus the offset of the class balance.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path, dask collection, or list or dict of them by view
            Rows in the layout of ``fit``, from anywhere that ``fit`` can read. Columns with names are found by them,
            in any order and among others. A view whose values are all NaN in a row is left out of that row's score; a
            row without any view gets the score of the class prior, with a warning. A table may lack all columns of a
            view, and a dict have None for it, if no row has the view; a single NaN is filled as in ``fit``.

        Returns
        -------
        score : ndarray of shape (n_rows,) for two classes, positive for the second; (n_rows, n_classes) for more
            Of a dask collection, a dask array that is not yet computed. With scikit-learn's ``array_api_dispatch``, of
            arrays of another library an array of that library on the same device.
        """
        return self._predict(X, "score")

    def predict(self, X: object) -> Any:
        """Class of each row, the one of highest score; ties go to the first of ``classes_``.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path, dask collection, or list or dict of them by view
            Rows to classify, as in ``decision_function``.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Of a dask collection, a dask array that is not yet computed. With scikit-learn's ``array_api_dispatch``, of
            arrays of another library an array of that library on the same device.
        """
        return self._predict(X, "class")

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Accuracy over the labeled rows of ``y``; unlabeled rows do not count, with a warning.

        Parameters
        ----------
        X : as in ``predict``
        y : array-like of shape (n_rows,), or str
            True classes; rows marked unlabeled are left out. A text is the name of the column of X that holds them. A
            class that ``fit`` did not see counts as a wrong prediction; it is an error if no label is one of
            ``classes_``, or if one differs from them by upper and lower case or surrounding blanks only.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        accuracy : float
        """
        y, rows, truth = self._labeled_truth(X, y)
        predicted = on_host(self.predict(X))
        check_consistent_length(predicted, y, sample_weight)
        n_rows = predicted.shape[0]
        if rows.size < n_rows:
            warn_user(
                f"{n_rows - rows.size} of {n_rows} rows of y are unlabeled and are not scored. To "
                "cross-validate, use cmvmed.model_selection.SemiSupervisedKFold, which keeps them in training. Scorers of "
                "scikit-learn count the marker as a class: use cmvmed.model_selection.labeled_scorer."
            )
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(np.average(predicted[rows] == truth, weights=weights))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False, compact: bool | int = False) -> None:
        """Write the fitted model to a file that :func:`cmvmed.load` reads, and that cannot run code.

        It holds what predictions need, which with exact kernels includes the training rows: docs/model_file.md.

        Parameters
        ----------
        path : path of the file, such as "model.cmvmed"
        overwrite : bool, default=False
            Whether an existing file is replaced.
        compact : bool or int, default=False
            Whether to keep only some training rows of each view, or how many, as in :func:`cmvmed.save`.
        """
        save(self, path, overwrite=overwrite, compact=compact)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model of this class from a file that ``save`` wrote; :func:`cmvmed.load` reads any.

        Parameters
        ----------
        path : path of the file

        Returns
        -------
        model : the fitted model
        """
        model = load(path)
        if type(model) is not cls:
            raise TypeError(
                f"{os.fspath(path)} holds a {type(model).__name__}, not a {cls.__name__}; cmvmed.load reads models of any class."
            )
        return model

    def to_onnx(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        dtype: str = "float32",
        overwrite: bool = False,
        compact: bool | int = False,
    ) -> Any:
        """The fitted model as an ONNX model, for programs without Python; needs the extra ``cmvmed[onnx]``.

        It has one input per view, a table named like the view in which a row of NaN does not have the view and a single
        NaN is filled as in ``predict``. Outputs are ``label`` and, of CMVMED, ``probabilities`` and ``probabilities_VIEW`` of
        each view; of MVMED ``probabilities``; of the others ``scores``, as ``decision_function`` gives them: docs/onnx.md.

        Parameters
        ----------
        path : path of a file to write, such as "model.onnx", default=None
            None writes no file.
        dtype : {"float32", "float64"}, default="float32"
            Type of inputs and outputs. What is between them is computed in double precision.
        overwrite : bool, default=False
            Whether an existing file is replaced.
        compact : bool or int, default=False
            Whether to keep only some training rows of each view, or how many, as in :func:`cmvmed.save`.

        Returns
        -------
        model : onnx.ModelProto
            Its ``SerializeToString()`` is what a runtime such as onnxruntime loads.
        """
        check_is_fitted(self)
        choice = OutputChoice(
            probabilities=self._has_model_probabilities,
            by_view=hasattr(self, "predict_proba_by_view"),
            dtype=check_choice("dtype", dtype, DTYPES),
        )
        with nullcontext() if path is None else new_file(Path(path), overwrite=overwrite) as file:
            model = self._compacted(rows_of_compact(compact)) if compact else self
            proto = onnx_model(model._model, type(self).__name__, choice)
            if file is not None:
                file.write(proto.SerializeToString())
        return proto

    def _compacted(self, n_rows: int | None) -> Self:
        """A copy that keeps ``n_rows`` training rows of each view, with the attribute ``compaction_``."""
        tuning = current_tuning()
        n_rows = tuning.compact_rows if n_rows is None else n_rows
        with numerical_errors():
            found = compact_model(self._model, n_rows)
        smaller = copy(self)
        smaller._model = found.model
        smaller.compaction_ = {
            "n_rows": n_rows,
            "same_class": found.same_class,
            "mean_change": found.mean_change,
        }
        return smaller

    def _check_predictions(self) -> None:
        """Predict one row of zeros, so that a loaded model whose parts do not fit together is found at once."""
        model = self._model
        matrices = [np.zeros((1, width)) for width in model.schema.layout.widths]
        scored = score_rows(model, matrices, model.row_check.present(0, matrices))
        probabilities, predicted = output(model, scored, "probability"), output(model, scored, "class")
        if probabilities.shape != (1, model.classes.size) or predicted.shape != (1,):
            raise ValueError(f"{model.classes.size} classes but {probabilities.shape[1]} probabilities")

    def _predict(self, X: object, kind: OutputKind) -> Any:
        if not hasattr(self, "_model"):  # scikit-learn's own test takes long for one row
            check_is_fitted(self)
        settings, place = read_input_settings(self), array_place(X)
        if place is not None:
            return predict_arrays(self._model, X, kind, settings, place)
        return predict(self._model, X, kind, settings)

    def _labeled_truth(self, X: object, y: object) -> tuple[Any, IntArray, NDArray[Any]]:
        """The labels y, its labeled rows and their classes, which must be ones that ``fit`` saw."""
        check_is_fitted(self)
        y = read_label_column(X, y, self.unlabeled) if isinstance(y, str) else y
        y = on_host(y)
        rows, truth = labeled_part(y, self.unlabeled)
        if rows.size == 0:
            raise ValueError("No row of y is labeled, so there is nothing to score; pass true classes for some rows.")
        check_known_classes(truth, self.classes_)
        return y, rows, truth

    def _read_training(self, X: object, y: object, sample_weight: object) -> TrainingData:
        """Read and check what ``fit`` was given, with all rows in memory."""
        self._validate_params()
        settings = read_input_settings(self)
        data = open_training(X, y, settings)
        weights = read_weights(sample_weight, data.labels)
        matrices = data.load(settings.memory_limit)
        present = present_in_training(data.schema, matrices, self.kernel)
        return training_data(data.schema, matrices, present, data.labels, weights)

    def _set_fitted_attributes(self, fitted: Mapping[str, object]) -> None:
        """Set all that a fit has learned, at its end: a fit that fails before leaves an earlier model as it was."""
        for name, value in fitted.items():
            setattr(self, name, value)
        earlier = ("feature_names_in_", "compaction_", "_row_cache", "_reference", *OF_ALL_ROWS)
        for name in earlier:
            if name not in fitted and hasattr(self, name):
                delattr(self, name)


def model_attributes(model: Model) -> dict[str, Any]:
    """The attributes that every estimator has after a fit, by name."""
    names = model.schema.names
    columns = {} if names is None else {"feature_names_in_": np.asarray(names, dtype=object)}
    imputations = zip(model.schema.view_names, (p.imputation for p in model.preprocessors), strict=True)
    return {
        "n_features_in_": model.schema.n_features,
        **columns,
        "classes_": model.classes,
        "class_prior_": model.class_prior,
        "n_imputed_cells_": {view: 0 if found is None else found.n_cells for view, found in imputations},
        "_model": model,
    }
