"""Matrices of views, dense or sparse, for the report."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from cmvmed.workbench.frames import BoolArray, FloatArray

__all__ = ["absent_rows", "column_statistics", "dense_rows", "is_sparse"]


def is_sparse(matrix: Any) -> bool:
    """Whether a view is a sparse matrix, as one with words is."""
    return bool(issparse(matrix))


def absent_rows(matrix: Any) -> BoolArray:
    """Rows in which a view is absent, which are NaN, (n,)."""
    if is_sparse(matrix):
        absent = np.zeros(matrix.shape[0], dtype=np.bool_)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        absent[rows[np.isnan(matrix.data)]] = True
        return absent
    return np.asarray(np.isnan(matrix).all(axis=1))


def dense_rows(matrix: Any, rows: Any) -> FloatArray:
    """Some rows of a view as an array."""
    taken = matrix[rows]
    return np.asarray(taken.toarray() if is_sparse(taken) else taken, dtype=np.float64)


def column_statistics(matrix: Any) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column over the rows that have the view, (d,) each."""
    present = np.flatnonzero(~absent_rows(matrix))
    if not len(present):
        return np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
    taken = matrix[present]
    if is_sparse(taken):
        mean = np.asarray(taken.mean(axis=0)).ravel()
        return mean, np.sqrt(np.maximum(np.asarray((taken * taken).mean(axis=0)).ravel() - mean**2, 0.0))
    return np.asarray(np.nanmean(taken, axis=0)), np.asarray(np.nanstd(taken, axis=0))
