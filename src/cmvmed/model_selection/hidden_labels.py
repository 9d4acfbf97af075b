"""Labels that are hidden, for experiments with data whose labels are known."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, check_scalar

from cmvmed.data.labels import Labels, read_labels


def hide_labels(
    y: object,
    n_labeled: int | None = None,
    *,
    fraction: float | None = None,
    unlabeled: object = -1,
    random_state: object = None,
) -> NDArray[Any]:
    """Copy y with all but a few labels hidden, for experiments with data whose labels are known.

    The labels that stay are drawn at random within each class, in the proportions of the classes (rounded by the
    method of Sainte-Lague) but at least one for each class. With the same ``random_state``, the labels that stay at a
    smaller ``n_labeled`` also stay at a larger one.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels; rows that are unlabeled already stay so.
    n_labeled : int, optional
        How many labels to keep, at least one per class. Give either this or ``fraction``.
    fraction : float in (0, 1], optional
        Which share of the labels to keep, rounded to the nearest number of rows.
    unlabeled : scalar, default=-1
        Value that marks an unlabeled row, both in y and in the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    y_hidden : ndarray of shape (n,)
        The labels that stay, and ``unlabeled`` in all other rows. Its dtype holds both: a numeric one for numeric
        labels and marker, otherwise object (strings beside the number -1).

    Examples
    --------
    >>> from cmvmed.model_selection import hide_labels
    >>> hide_labels([0, 0, 0, 1, 1, 1], n_labeled=2, random_state=0)
    array([-1, -1,  0, -1, -1,  1])
    """
    labels = read_labels(y, unlabeled)
    kept = _stratified_order(labels, check_random_state(random_state))[: _number_to_keep(labels, n_labeled, fraction)]
    y_hidden = np.full(len(labels.codes), unlabeled, dtype=_common_dtype(labels.classes, unlabeled))
    y_hidden[kept] = labels.classes[labels.codes[kept]]
    return y_hidden


def _stratified_order(labels: Labels, random: np.random.RandomState) -> NDArray[np.intp]:
    """Order the labeled rows so that every beginning of the order holds the classes in proportion, all of them first.

    The j-th row (from 0) of a class with c labels has the place (j + 1/2) / c, after the first row of each class.
    """
    rows = random.permutation(labels.labeled)
    codes = labels.codes[rows]
    place = np.empty(len(rows))
    for k, count in enumerate(labels.counts):
        place[codes == k] = np.concatenate([[0.0], (np.arange(1, count) + 0.5) / count])
    return rows[np.argsort(place, kind="stable")]


def _number_to_keep(labels: Labels, n_labeled: int | None, fraction: float | None) -> int:
    n_given = len(labels.labeled)
    if (n_labeled is None) == (fraction is None):
        raise ValueError(f"Give either n_labeled or fraction; got n_labeled={n_labeled!r} and fraction={fraction!r}.")
    if fraction is None:
        n_kept = int(check_scalar(n_labeled, "n_labeled", Integral))
        came = f"n_labeled={n_labeled} came"
    else:
        n_kept = round(check_scalar(fraction, "fraction", Real, min_val=0, max_val=1) * n_given)
        came = f"fraction={fraction} gives {n_kept}"
    if not labels.n_classes <= n_kept <= n_given:
        raise ValueError(
            f"The number of labels to keep must lie between {labels.n_classes}, one for each class, and {n_given}, the "
            f"number of labels in y; {came}."
        )
    return n_kept


def _common_dtype(classes: NDArray[Any], marker: object) -> np.dtype[Any]:
    """Find a dtype that holds the classes and the marker unchanged."""
    kinds = {classes.dtype.kind, np.asarray(marker).dtype.kind}
    return np.result_type(classes, np.asarray(marker)) if kinds <= set("iuf") or kinds == {"U"} else np.dtype(object)
