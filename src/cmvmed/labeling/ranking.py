"""Orders of rows by what a model says of them."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ranked_rows"]


def ranked_rows(p: NDArray[Any], by_view: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.intp]]:
    """All rows, the least certain first, and those on which views disagree first."""
    return {"unsure": rank_by_margin(p), "disagree": rank_by_disagreement(by_view, len(p))}


def rank_by_margin(p: NDArray[Any]) -> NDArray[np.intp]:
    """Rows by the margin between the two largest probabilities (n, K), smallest first."""
    two = np.partition(p, -2, axis=1)[:, -2:]
    return np.argsort(two[:, 1] - two[:, 0], kind="stable")


def rank_by_disagreement(by_view: Mapping[str, NDArray[Any]], n_rows: int) -> NDArray[np.intp]:
    """Rows by the largest total variation distance ½ Σ_k |p_k - q_k| between two views, largest first."""
    largest = np.zeros(n_rows)
    for p, q in combinations(by_view.values(), 2):
        largest = np.fmax(largest, 0.5 * np.abs(p - q).sum(axis=1))  # NaN where a view is absent
    return np.argsort(-largest, kind="stable")
