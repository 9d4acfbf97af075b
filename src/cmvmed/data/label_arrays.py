"""The labels y as an array, and which of its entries are unlabeled.

This module alone decides what "unlabeled" means. Missing values (None, NaN, NaT, pandas.NA, nulls of a polars
series, masked entries) are unlabeled in every case; rows that equal the marker ``unlabeled`` (-1 as in scikit-learn
unless the user says otherwise) are unlabeled as well.
"""

from __future__ import annotations

import numbers
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = ["as_label_array", "equal_to_marker", "is_missing", "label_family", "narrowed", "unlabeled_mask"]

# Names instead of classes, so that pandas need not be imported to recognize its missing values.
_MISSING_TYPE_NAMES = frozenset({"NoneType", "NAType", "NaTType", "MaskedConstant"})


def unlabeled_mask(y: object, unlabeled: object = -1) -> NDArray[np.bool_]:
    """Tell which rows of y carry no label.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels: a list, an array of any dtype, or a pandas, polars or pyarrow series. A column of shape (n, 1) is
        raveled with scikit-learn's ``DataConversionWarning``.
    unlabeled : scalar, default=-1
        Value that marks an unlabeled row, besides the missing values (None, NaN, NaT, pandas.NA, polars null), which
        always count. None: only the missing values count.

    Returns
    -------
    mask : ndarray of bool, shape (n,)
        True where the row is unlabeled.

    Notes
    -----
    ``numpy.array(["a", "b", -1])`` silently turns -1 into the string "-1". A label that is a string is therefore
    unlabeled when it equals ``str(unlabeled)``. Booleans are not numbers here: ``unlabeled=1`` does not match True.
    """
    labels = as_label_array(y)
    return _missing(labels) | equal_to_marker(labels, unlabeled)


def as_label_array(y: object) -> NDArray[Any]:
    """Bring y to a numpy array of shape (n,) without losing types or missing entries."""
    from sklearn.utils.validation import column_or_1d  # slow to import

    if y is None:
        raise ValueError(
            "A semi-supervised classifier requires y to be passed, but the target y is None. "
            "Give one entry per row, with the unlabeled marker where the label is unknown."
        )
    native = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        untyped = _series_to_numpy(native)
    elif isinstance(native, nw.DataFrame) and native.shape[1] == 1:
        untyped = _series_to_numpy(native[:, 0])[:, np.newaxis]
    elif isinstance(y, np.ma.MaskedArray):
        untyped = np.array(y.tolist(), dtype=object)  # tolist writes None for a masked entry
    else:
        # numpy would make strings of the list ["a", nan]; as objects the entries stay what they are.
        untyped = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    labels: NDArray[Any] = column_or_1d(untyped, warn=True)
    return labels


def _series_to_numpy(series: nw.Series[Any]) -> NDArray[Any]:
    """Convert a data-frame column, keeping the integers beside nulls integers: objects then, with None for a null."""
    null = series.is_null()
    if not null.any():
        return series.to_numpy()
    present = ~null.to_numpy()
    labels = np.full(len(series), None, dtype=object)
    labels[present] = series.filter(~null).to_numpy()
    return labels


def _missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of None, NaN, NaT and pandas.NA, shape (n,)."""
    if labels.dtype.kind in "biuU":
        return np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.asarray(np.isnat(labels))
    return np.fromiter(map(is_missing, labels.astype(object)), dtype=bool, count=len(labels))


def is_missing(label: object) -> bool:
    """Tell whether a label is None, NaN, NaT or pandas.NA."""
    if type(label).__name__ in _MISSING_TYPE_NAMES:
        return True
    # NaN, in all its types, and NaT are the scalars that differ from themselves.
    return isinstance(label, numbers.Number | np.datetime64 | np.timedelta64) and bool(label != label)


def equal_to_marker(labels: NDArray[Any], marker: object) -> NDArray[np.bool_]:
    """Mask of the labels that equal the unlabeled marker, shape (n,)."""
    if np.ndim(np.asarray(marker, dtype=object)) != 0:
        raise ValueError(f"unlabeled must be one value that marks unlabeled rows, or None; got {marker!r}.")
    if marker is None or labels.dtype.kind in "mM":
        return np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "U":
        return np.asarray(labels == str(marker))
    if labels.dtype.kind in "biuf":
        comparable = label_family(marker) == ("boolean" if labels.dtype.kind == "b" else "number")
        return np.asarray(labels == marker) if comparable else np.zeros(len(labels), dtype=bool)
    equal = (_is_marker(label, marker) for label in labels.astype(object))
    return np.fromiter(equal, dtype=bool, count=len(labels))


def _is_marker(label: object, marker: object) -> bool:
    if isinstance(label, str):
        return label == str(marker)
    return label_family(label) == label_family(marker) and not is_missing(label) and bool(label == marker)


def label_family(label: object) -> str:
    """Kind of a label; labels of one family can be compared and sorted."""
    if isinstance(label, bool | np.bool_):
        return "boolean"
    if isinstance(label, numbers.Number):
        return "number"
    return "string" if isinstance(label, str) else type(label).__name__


def narrowed(given: NDArray[Any]) -> NDArray[Any]:
    """Give labels that came as objects the dtype they would have had by themselves."""
    if given.dtype.kind in "biufUmM":  # as objects, times in nanoseconds would be whole numbers
        return given
    example_of = {label_family(label): label for label in given[::-1].astype(object)}
    if len(example_of) > 1:
        came = ", ".join(f"{family} ({example!r})" for family, example in sorted(example_of.items()))
        raise ValueError(
            f"y mixes labels of different types, which have no common order: {came}. "
            "Convert the labels to one type; a missing label is None, NaN or the marker given as unlabeled."
        )
    if example_of.keys() <= {"boolean", "number", "string"}:
        return np.array(given.tolist())
    return given  # of a type that is no class
