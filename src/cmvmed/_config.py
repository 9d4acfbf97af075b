"""Settings of the process rather than of a model."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MEMORY_LIMIT: ContextVar[int | float | str | None] = ContextVar("memory_limit", default=None)


@contextmanager
def config_context(*, memory_limit: int | float | str | None = None) -> Iterator[None]:
    """Limit the memory that fits and predictions may take within a ``with`` statement.

    Parameters
    ----------
    memory_limit : int, str or None, default=None
        Memory that a fit with low-rank features and predictions may take beside X itself, in bytes or as a text such as
        "1.5GiB". None is half of the free memory. With more than 5000 unlabeled rows (fewer if the limit asks for it)
        the annealing runs on a sample of them, and its last stage is continued on all rows, in chunks.

    Examples
    --------
    >>> from cmvmed import CMVMED, config_context
    >>> with config_context(memory_limit="2GiB"):
    ...     model = CMVMED(views=[10, 20])  # fit here
    """
    token = _MEMORY_LIMIT.set(memory_limit)
    try:
        yield
    finally:
        _MEMORY_LIMIT.reset(token)


def configured_memory_limit() -> int | float | str | None:
    """The memory limit in force, as it was given."""
    return _MEMORY_LIMIT.get()
