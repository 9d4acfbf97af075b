"""Data sets of scikit-learn, split into views; no files are needed."""

from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from cmvmed.datasets.bunch import Dataset, View, to_bunch


def load_digits_views(*, parity: bool = False, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Load scikit-learn's digits with the upper and the lower half of the image as two views.

    Parameters
    ----------
    parity : bool, default=False
        Classify even (0) against odd (1) digits instead of the ten digits.
    as_frame : bool, default=False
        Return ``data`` and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        The Bunch holds ``data`` of shape (1797, 64), ``views`` (name to slice of columns), ``missing`` (n_rows,
        n_views), ``target`` (n_rows,) of indices into ``target_names``, ``feature_names`` (``<view>__<feature>``),
        ``frame`` and ``DESCR``.

    Examples
    --------
    >>> from cmvmed.datasets import load_digits_views
    >>> digits = load_digits_views()
    >>> digits.data.shape, digits.views
    ((1797, 64), {'upper': slice(0, 32, None), 'lower': slice(32, 64, None)})
    """
    digits = load_digits()
    half = digits.data.shape[1] // 2
    names = digits.feature_names
    target = digits.target % 2 if parity else digits.target
    dataset = Dataset(
        views={"upper": View(digits.data[:, :half], names[:half]), "lower": View(digits.data[:, half:], names[half:])},
        target=target.astype(np.int64),
        target_names=["even", "odd"] if parity else [str(digit) for digit in digits.target_names],
        descr=_description("digits_views"),
    )
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def load_breast_cancer_views(*, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Load scikit-learn's breast cancer data with mean, standard error and worst value of ten features as three views.

    Parameters
    ----------
    as_frame : bool, default=False
        Return ``data`` and ``target`` as pandas objects.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch or (data, target)
        A Bunch as :func:`load_digits_views` returns; ``data`` has shape (569, 30).

    Examples
    --------
    >>> from cmvmed.datasets import load_breast_cancer_views
    >>> cancer = load_breast_cancer_views(as_frame=True)
    >>> list(cancer.views), cancer.target_names.tolist()
    (['mean', 'error', 'worst'], ['malignant', 'benign'])
    >>> cancer.data.columns[0]
    'mean__radius'
    """
    cancer = load_breast_cancer()
    # scikit-learn names the columns "mean radius", "radius error" and "worst radius"; here the first word is the view.
    columns = {
        view: [index for index, name in enumerate(cancer.feature_names) if view in name.split()]
        for view in ("mean", "error", "worst")
    }
    views = {
        view: View(cancer.data[:, indices], [_without_word(view, cancer.feature_names[index]) for index in indices])
        for view, indices in columns.items()
    }
    dataset = Dataset(
        views, cancer.target.astype(np.int64), list(cancer.target_names), _description("breast_cancer_views")
    )
    return to_bunch(dataset, as_frame=as_frame, return_X_y=return_X_y)


def _without_word(removed: str, feature: str) -> str:
    return " ".join(word for word in feature.split() if word != removed)


def _description(name: str) -> str:
    return files("cmvmed.datasets").joinpath("descriptions", f"{name}.txt").read_text(encoding="utf-8")
