"""The groups of rows, such as recordings or subjects, that are held out together."""

import numpy as np

from cmvmed.numerics.types import IntArray


def read_groups(groups: object, n_rows: int) -> IntArray:
    """The groups as numbers from 0, (n,)."""
    given = np.asarray(groups)
    if given.shape != (n_rows,):
        raise ValueError(
            f"groups must have one entry for each of the {n_rows} rows, but has the shape {given.shape}; pass the group of every "
            "row, labeled or not."
        )
    missing = [i for i, group in enumerate(given.tolist()) if group is None or group != group]
    if missing:
        raise ValueError(f"groups has no group for row {missing[0]}; give each such row a group of its own.")
    return np.asarray(np.unique(given.astype(str) if given.dtype == object else given, return_inverse=True)[1])
