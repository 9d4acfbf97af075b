"""Whether rows still look like those that a model was trained on: the test of ``sensor_health``, in one line."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from cmvmed import CMVMED
from cmvmed.pages.formatting import join_names, short
from cmvmed.workbench.view_encoders import absent_rows

MAX_TESTED = 200  # rows, evenly spaced: faults of a standard deviation are found within about 50


class EvenRows:
    """About ``MAX_TESTED`` to twice as many rows, evenly spaced, of rows that come some at a time."""

    def __init__(self) -> None:
        self._n_rows, self._step, self._n_kept = 0, 1, 0
        self.views: dict[str, Any] = {}  # the rows by view

    def add(self, views: Mapping[str, Any]) -> None:
        """Take the following rows, by view."""
        n_rows = next(iter(views.values())).shape[0]
        rows = np.arange(-self._n_rows % self._step, n_rows, self._step)
        self._n_rows += n_rows
        for name, own in views.items():
            stack = vstack if issparse(own) else np.concatenate
            self.views[name] = stack([self.views[name], own[rows]]) if name in self.views else own[rows]
        self._n_kept += rows.size
        while self._n_kept > 2 * MAX_TESTED:
            self.views = {name: own[::2] for name, own in self.views.items()}
            self._step, self._n_kept = 2 * self._step, -(-self._n_kept // 2)


def describe_change(model: CMVMED, views: Mapping[str, Any], rows: str) -> str:
    """Which sensor differs from training and what to do, empty if none does.

    Parameters
    ----------
    model : CMVMED
    views : the rows by view; a view that is absent from all of them is no change
    rows : what the rows are, as the subject of the sentence
    """
    n_rows = next(iter(views.values())).shape[0]
    if n_rows == 0:
        return ""
    tested = np.unique(np.linspace(0, n_rows - 1, min(n_rows, MAX_TESTED)).astype(np.intp))
    batch = {name: matrix[tested] for name, matrix in views.items()}
    health = model.sensor_health(batch)
    changed = [name for name, found in health.items() if found.fault not in ("ok", "unknown")]
    changed = [name for name in changed if not absent_rows(batch[name]).all()]
    if not changed:
        return ""
    worst = max(changed, key=lambda name: health[name].score)
    others = [short(name) for name in changed if name != worst]
    more = f" So do {join_names(others)}." if others else ""
    return f"{rows} differ from the training rows: {health[worst].message}{more}"
