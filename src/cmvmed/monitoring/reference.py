"""What a fitted model keeps of its training rows to compare new rows with them.

The rows are drawn into three parts. The first gives the features of each view (:mod:`view_profile`); of the others the
features are kept. Nothing was fitted to these, so that new rows of the same distribution differ from them by chance
alone. Tests of batches learn class means and covariances from the second part, and what healthy batches are like from
the third.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cmvmed.monitoring.view_profile import ViewProfile, fit_profile
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix, Single
from cmvmed.views.view_rows import ViewPreprocessor

N_PARTS = 3
MIN_PART_ROWS = 10  # with fewer rows, all are used for everything
MIN_VIEW_ROWS = 2  # rows with a view that its features need


@dataclass(frozen=True)
class Reference:
    """Features of training rows; those of all views stand side by side."""

    profiles: tuple[ViewProfile | None, ...]  # None for a view that too few training rows have
    features: Single  # (n, f), NaN where a row lacks the view
    probabilities: Single  # (n, K) of the classes of these rows
    n_second: int  # rows of the second part, which come first

    @property
    def second(self) -> slice:
        """The rows to learn class means and covariances from; all if there are few."""
        return slice(self.n_second or None)

    @property
    def third(self) -> slice:
        """The rows that healthy batches are drawn from."""
        return slice(self.n_second, None)

    @property
    def slices(self) -> list[slice]:
        """The columns of each view's features."""
        return feature_slices(self.profiles)


def feature_slices(profiles: Sequence[ViewProfile | None]) -> list[slice]:
    """The columns of each view among the features of all views."""
    ends = np.cumsum([0] + [0 if p is None else p.n_features for p in profiles]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def bounded(features: Array) -> Array:
    """asinh, about the identity near zero and a logarithm far away, so that a single row does not dominate a mean."""
    return np.asarray(np.arcsinh(features))


def features_of(
    profiles: Sequence[ViewProfile | None],
    preprocessors: Sequence[ViewPreprocessor],
    matrices: Sequence[Matrix],
    present: Sequence[BoolArray],
) -> Array:
    """Features (n, f) of rows given by view, with which rows have which view; NaN for the others."""
    features = np.full((matrices[0].shape[0], feature_slices(profiles)[-1].stop), np.nan)
    for i, (profile, columns) in enumerate(zip(profiles, feature_slices(profiles), strict=True)):
        if profile is not None:
            rows = np.flatnonzero(present[i])
            features[rows, columns] = profile.features(preprocessors[i].complete(matrices[i][rows]))
    return features


def build_reference(
    matrices: Sequence[Matrix],
    present: Sequence[BoolArray],
    rows: IntArray,
    preprocessors: Sequence[ViewPreprocessor],
    probabilities: Array,
    max_rows: int,
    n_directions: int,
) -> Reference:
    """Summarize training rows.

    Parameters
    ----------
    matrices, present : per view the rows (n, d) and which of them have it
    rows : numbers of the rows to use
    preprocessors : per view, how gaps are filled
    probabilities : (n, K), of the classes of each row
    max_rows : rows of each of the three parts
    n_directions : principal directions of each view
    """
    first, second, third = _three_parts(rows, max_rows)
    profiles = []
    for matrix, has, preprocessor in zip(matrices, present, preprocessors, strict=True):
        own = first[has[first]]
        own = own if own.size >= MIN_VIEW_ROWS else rows[has[rows]][:max_rows]
        columns = _columns_of_kernel(preprocessor, own)
        unit, enough = preprocessor.scaling.kind == "unit", own.size >= MIN_VIEW_ROWS
        complete = preprocessor.complete(matrix[own])
        profiles.append(fit_profile(complete, n_directions, unit=unit, columns=columns) if enough else None)
    kept = np.concatenate([second, third])
    features = features_of(profiles, preprocessors, [m[kept] for m in matrices], [has[kept] for has in present])
    return Reference(tuple(profiles), features.astype(np.float32), probabilities[kept].astype(np.float32), second.size)


def _columns_of_kernel(preprocessor: ViewPreprocessor, rows: IntArray) -> IntArray | None:
    """The columns of a given kernel that belong to some rows; None for rows of features, which have no such columns.

    Kept rows are then compared, like new ones, with rows that they are not among.
    """
    return None if preprocessor.columns is None else np.flatnonzero(np.isin(preprocessor.columns, rows))


def _three_parts(rows: IntArray, max_rows: int) -> tuple[IntArray, IntArray, IntArray]:
    """Three random parts of equal size, each of at most ``max_rows``; if rows are few, all are in the first and third."""
    order = np.random.default_rng(0).permutation(rows)
    size = min(rows.size // N_PARTS, max_rows)
    if size < MIN_PART_ROWS:
        return order, order[:0], order
    return order[:size], order[size : 2 * size], order[2 * size : 3 * size]
