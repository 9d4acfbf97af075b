"""Construction of the Bunch that every loader returns from one matrix per view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from cmvmed._optional import import_optional

Matrix: TypeAlias = NDArray[np.float64] | sp.csr_array


@dataclass(frozen=True)
class View:
    """One view of a data set.

    Attributes
    ----------
    values : array or CSR array, shape (n_rows, n_features)
        The features.
    feature_names : sequence of str, length n_features
        Their names, without the name of the view.
    missing : bool array, shape (n_rows,), or None
        Rows in which the view is missing; their values become NaN. None: the view is complete.
    """

    values: Matrix
    feature_names: Sequence[str]
    missing: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Dataset:
    """A loaded data set; `extras` become further attributes of the Bunch."""

    views: Mapping[str, View]
    target: NDArray[np.int64]
    target_names: Sequence[str]
    descr: str
    extras: Mapping[str, object] = field(default_factory=dict)


def to_bunch(dataset: Dataset, *, as_frame: bool, return_X_y: bool) -> Any:
    """Return the data set as a Bunch, or as the pair (data, target).

    The Bunch holds ``data`` (n_rows, n_columns), ``views`` (name to slice of columns), ``missing`` (n_rows, n_views),
    ``target`` (n_rows,) of indices into ``target_names``, ``feature_names`` (``<view>__<feature>``), ``frame`` and
    ``DESCR``.
    """
    names = [f"{name}__{feature}" for name, view in dataset.views.items() for feature in view.feature_names]
    missing = np.column_stack([missing_rows(view) for view in dataset.views.values()])
    data: Any = concatenate_views([with_nan_rows(view) for view in dataset.views.values()])
    target: Any = dataset.target
    frame = None
    if as_frame:
        frame = to_frame(data, target, names)
        data, target = frame.drop(columns="target"), frame["target"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        views=column_slices({name: view.values.shape[1] for name, view in dataset.views.items()}),
        missing=missing,
        target_names=np.array(dataset.target_names),
        feature_names=names,
        DESCR=dataset.descr,
        **dataset.extras,
    )


def column_slices(widths: Mapping[str, int]) -> dict[str, slice]:
    """Return the slice of the columns of X for each view, in order."""
    stops = np.cumsum(list(widths.values())).tolist()
    return {view: slice(stop - width, stop) for (view, width), stop in zip(widths.items(), stops, strict=True)}


def missing_rows(view: View) -> NDArray[np.bool_]:
    """Return a mask of the rows in which the view is missing, shape (n_rows,)."""
    return np.zeros(view.values.shape[0], dtype=np.bool_) if view.missing is None else view.missing


def with_nan_rows(view: View) -> Matrix:
    """Return the values with NaN in every column of the missing rows.

    In a sparse view these NaN are stored explicitly: an entry that is not stored is a zero, which is a value.
    """
    rows, width = np.flatnonzero(missing_rows(view)), view.values.shape[1]
    if not sp.issparse(view.values):
        values = np.array(view.values, dtype=np.float64)
        values[rows] = np.nan
        return values
    cells = (np.repeat(rows, width), np.tile(np.arange(width), len(rows)))
    nan_rows = sp.csr_array((np.full(len(rows) * width, np.nan), cells), shape=view.values.shape)
    return sp.csr_array(view.values + nan_rows)


def concatenate_views(blocks: Sequence[Matrix]) -> Matrix:
    """Concatenate the columns of the views: a CSR array if any view is sparse, else a dense array."""
    if any(sp.issparse(block) for block in blocks):
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))
    return np.hstack([np.asarray(block) for block in blocks])


def to_frame(data: Matrix, target: ArrayLike, names: Sequence[str]) -> Any:
    """Return a dense DataFrame of all features, with the target as its last column."""
    pd = import_optional("pandas", None, "as_frame=True")
    frame = pd.DataFrame(data.toarray() if sp.issparse(data) else data, columns=pd.Index(names))
    return pd.concat([frame, pd.Series(target, name="target")], axis=1)
