"""Whether rows still look like those that a model was trained on: the test of ``sensor_health``, in one line."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cmvmed import CMVMED
from cmvmed.pages.formatting import join_names, short
from cmvmed.workbench.view_encoders import absent_rows

MAX_TESTED = 200  # rows, evenly spaced: faults of a standard deviation are found within about 50


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
