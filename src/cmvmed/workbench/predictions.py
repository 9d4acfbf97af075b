"""What a model says of rows, as one table: class, probabilities, prediction set, and what each view contributes."""

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

import cmvmed
from cmvmed.workbench.frames import BoolArray, FloatArray, Frame, pandas
from cmvmed.workbench.project_rows import ProjectTable

__all__ = ["SEPARATOR", "absent_rows", "prediction_frame"]

SEPARATOR = " | "  # between the names of classes or views in a cell


def prediction_frame(model: "cmvmed.CMVMED", rows: ProjectTable, *, id_name: str, alpha: float) -> Frame:
    """One line per row, with the identifiers as index.

    ``share_*`` are the parts of :meth:`CMVMED.explain` in the score of the predicted class: positive ones speak for it.
    """
    X = rows.views
    probabilities = np.asarray(model.predict_proba(X))
    codes = probabilities.argmax(axis=1)  # as in ``predict``, whose scores have the same order
    columns: dict[str, Any] = {"class": model.classes_[codes]}
    columns |= {f"probability_{name}": probabilities[:, k] for k, name in enumerate(model.classes_)}
    if model.held_out_rows_ is not None:  # without held-out labels there are no sets
        columns["prediction_set"] = _joined(model.classes_, np.asarray(model.predict_set(X, alpha=alpha)))
    columns |= {f"share_{name}": _of_class(part, codes) for name, part in model.explain(X).items()}
    absent = np.column_stack([absent_rows(X[name]) for name in model.view_names_])
    columns["missing_views"] = _joined(np.array(model.view_names_, dtype=object), absent)
    columns |= {f"novelty_{name}": values for name, values in model.novelty(X).items()}
    return pandas().DataFrame(columns, index=pandas().Index(rows.ids, name=id_name))


def absent_rows(view: Any) -> BoolArray:
    """Which rows of an encoded view are NaN throughout, (n,)."""
    if not scipy.sparse.issparse(view):
        return np.asarray(np.isnan(view).all(axis=1))
    matrix: Any = view
    counts = np.add.reduceat(np.append(np.isnan(matrix.data), False).astype(np.int64), matrix.indptr[:-1])
    counts[np.diff(matrix.indptr) == 0] = 0
    return np.asarray(counts == matrix.shape[1])


def _of_class(scores: Any, codes: NDArray[np.intp]) -> FloatArray:
    """The part of the score of each row's class; of two classes, one score speaks for the second."""
    values = np.asarray(scores, dtype=float)
    if values.ndim == 1:
        return np.where(codes == 1, values, -values)
    return np.asarray(values[np.arange(len(codes)), codes])


def _joined(names: NDArray[Any], chosen: BoolArray) -> list[str]:
    """The chosen names of each row in one text."""
    texts: dict[bytes, str] = {}
    for row in np.unique(chosen, axis=0):
        texts[row.tobytes()] = SEPARATOR.join(str(name) for name in names[row])
    return [texts[row.tobytes()] for row in chosen]
