"""Tables of numbers in text files."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cmvmed.datasets.errors import DatasetError


def parse_table(lines: Sequence[str], *, name: str, delimiter: str | None = None) -> NDArray[np.float64]:
    """Return lines of equally many numbers as an array (n_rows, n_columns); no lines give shape (0, 0)."""
    if not any(lines):
        return np.empty((0, 0))
    try:
        return np.loadtxt(lines, delimiter=delimiter, ndmin=2, comments=None)
    except ValueError as error:
        raise DatasetError(f"{name} is not a table of numbers ({error}). Get it again.") from error
