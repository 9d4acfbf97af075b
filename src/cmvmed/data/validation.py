"""One view's array or frame as a float matrix, and the names of its columns."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from cmvmed.core.linalg import Matrix
from cmvmed.data.layout import first_text, layout_of_widths


def column_names(part: Any) -> list[str] | None:
    """Column names of a data frame, if they are text."""
    names = list(getattr(part, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None


def as_table(name: str, part: Any) -> Matrix:
    """One view's array or frame as a float matrix."""
    shape = np.shape(part) if isinstance(part, (list, tuple)) else getattr(part, "shape", ())
    if len(shape) != 2:
        raise ValueError(
            f"View {name!r} must be a two-dimensional array, sparse matrix or data frame, but is {type(part).__name__} of shape "
            f"{tuple(shape)}."
        )
    try:
        return check_array(part, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    except ValueError as error:
        cell = first_text(part)
        if cell is None:
            raise ValueError(f"View {name!r}: {error}") from error
        raise ValueError(cell.message(layout_of_widths([name], [cell.n_columns]), column_names(part))) from error
