"""How unlike the training rows a row is, by view: the distance of its features to those of the nearest training rows.

The unit is the 99 % quantile of the same distances of training rows, each to the others, so that one in a hundred rows
of the same distribution is above 1. It is exact for the expected share: the kept rows had no part in the features.
"""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import t as student

from cmvmed.data.reading import InputSettings
from cmvmed.model.fitted_model import Model
from cmvmed.monitoring.reference import Reference
from cmvmed.monitoring.sensor_health import read_batch
from cmvmed.numerics.linalg import numerical_errors
from cmvmed.numerics.types import Array, BoolArray

LEVEL = 0.99
N_NEIGHBORS = 5  # the distance to the fifth nearest row; that to the nearest says little where rows repeat
CHUNK_ROWS = 512  # new rows that are compared at a time
SMALLEST = 1e-3  # standard deviations of the features; closer rows are the same


def novelty(model: Model, reference: Reference, X: object, settings: InputSettings) -> dict[str, Array]:
    """How unlike the training rows each row is, by view."""
    batch = read_batch(model, X, settings)
    with numerical_errors():
        found = novelty_by_view(reference, batch.features(reference))
    return dict(zip(batch.names, found, strict=True))


def novelty_by_view(reference: Reference, features: Array) -> list[Array]:
    """Per view the novelty (n,) of rows with these features (n, f); NaN where the view is missing."""
    return [_novelty(reference.features[:, own].astype(np.float64), features[:, own]) for own in reference.slices]


def _novelty(kept: Array, features: Array) -> Array:
    found = np.full(features.shape[0], np.nan)
    kept = kept[_has(kept)]
    if kept.shape[0] < 2:
        return found
    unit = _quantile(_distances(kept, kept, skip_self=True))
    rows = np.flatnonzero(_has(features))
    for start in range(0, rows.size, CHUNK_ROWS):
        part = rows[start : start + CHUNK_ROWS]
        found[part] = _distances(features[part], kept) / unit
    return found


def _has(features: Array) -> BoolArray:
    """Which rows have the view."""
    return np.asarray(~np.isnan(features).any(axis=1) & (features.shape[1] > 0))


def _distances(rows: Array, kept: Array, *, skip_self: bool = False) -> Array:
    """Distance of each row to the fifth nearest of the kept rows, (n,); ``skip_self`` if rows are the kept ones."""
    k = min(N_NEIGHBORS, kept.shape[0] - 1) - 1 + skip_self
    return np.asarray(np.partition(cdist(rows, kept), k, axis=1)[:, k])


def _quantile(distances: Array) -> float:
    """The distance that a further one exceeds with a probability of 1 %.

    Of n exchangeable ones, the further one is above the r-th with probability 1 - r/(n + 1). Below 99 rows there is no
    such r, and the prediction bound of normal logarithms is taken, if it is above all of them.
    """
    n, distances = distances.size, np.maximum(distances, SMALLEST)
    rank = int(np.ceil(LEVEL * (n + 1)))
    if rank <= n:
        return float(np.sort(distances)[rank - 1])
    logs = np.log(distances)
    bound = logs.mean() + student.ppf(LEVEL, n - 1) * logs.std(ddof=1) * np.sqrt(1.0 + 1.0 / n)
    return float(np.exp(max(bound, logs.max())))
