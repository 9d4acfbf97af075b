"""Settings of the process rather than of a model."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

PREDICTION_DTYPES = ("float64", "float32")

_PREDICTION_DTYPE: ContextVar[str] = ContextVar("prediction_dtype", default="float64")
_MEMORY_LIMIT: ContextVar[int | float | str | None] = ContextVar("memory_limit", default=None)
_KEEP_ROWS: ContextVar[bool] = ContextVar("keep_rows", default=False)


class _Unchanged:
    def __repr__(self) -> str:
        return "unchanged"


UNCHANGED = _Unchanged()


@contextmanager
def config_context(
    *,
    memory_limit: int | float | str | _Unchanged | None = UNCHANGED,
    prediction_dtype: str | _Unchanged = UNCHANGED,
    keep_rows: bool | _Unchanged = UNCHANGED,
) -> Iterator[None]:
    """Set the memory of fits and predictions, and the precision of predictions, within a ``with`` statement.

    What is not given stays as it is.

    Parameters
    ----------
    memory_limit : int, str or None
        Memory that a fit with low-rank features and predictions may take beside X itself, in bytes or as a text such as
        "1.5GiB". None, as at the start, is half of the free memory. With more than 5000 unlabeled rows (fewer if the
        limit asks for it) the annealing runs on a sample of them, and its last stage is continued on all rows, in chunks.
    prediction_dtype : {"float64", "float32"}
        Precision of the kernels between new rows and training rows; "float64" at the start. "float32" takes less time, and
        probabilities differ by about 1e-6. Rows are scaled, nearest rows found and models fitted in double precision.
    keep_rows : bool
        Whether a fit of :class:`cmvmed.CMVMED` keeps what the next fit of the same estimator to the same X can use: all
        that does not depend on labels, such as kernels, landmarks and graphs; False at the start. The results are the
        same, bit by bit. A fit to other rows, or with other parameters, computes anew what is not the same. What is kept
        takes memory until a fit outside of the context, and is not part of a pickle or a file.

    Examples
    --------
    >>> from cmvmed import CMVMED, config_context
    >>> with config_context(memory_limit="2GiB"):
    ...     model = CMVMED(views=[10, 20])  # fit here
    """
    if not isinstance(prediction_dtype, _Unchanged) and prediction_dtype not in PREDICTION_DTYPES:
        raise ValueError(f"prediction_dtype must be one of {PREDICTION_DTYPES}, but is {prediction_dtype!r}.")
    if not isinstance(keep_rows, bool | _Unchanged):
        raise ValueError(f"keep_rows must be True or False, but is {keep_rows!r}.")
    tokens = (
        _MEMORY_LIMIT.set(_MEMORY_LIMIT.get() if isinstance(memory_limit, _Unchanged) else memory_limit),
        _PREDICTION_DTYPE.set(
            _PREDICTION_DTYPE.get() if isinstance(prediction_dtype, _Unchanged) else prediction_dtype
        ),
        _KEEP_ROWS.set(_KEEP_ROWS.get() if isinstance(keep_rows, _Unchanged) else keep_rows),
    )
    try:
        yield
    finally:
        _MEMORY_LIMIT.reset(tokens[0])
        _PREDICTION_DTYPE.reset(tokens[1])
        _KEEP_ROWS.reset(tokens[2])


def configured_memory_limit() -> int | float | str | None:
    """The memory limit in force, as it was given."""
    return _MEMORY_LIMIT.get()


def configured_prediction_dtype() -> type:
    """The precision of predictions in force."""
    return np.float32 if _PREDICTION_DTYPE.get() == "float32" else np.float64


def keeps_rows() -> bool:
    """Whether fits keep what the next fit to the same rows can use."""
    return _KEEP_ROWS.get()
