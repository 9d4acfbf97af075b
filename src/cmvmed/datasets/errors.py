"""Errors of the loaders."""


class DatasetError(ValueError):
    """A data file is truncated, altered, malicious or of another format; the message names it and says what to do.

    Examples
    --------
    >>> from cmvmed.datasets import DatasetError, DatasetNotFoundError
    >>> issubclass(DatasetNotFoundError, DatasetError), issubclass(DatasetError, ValueError)
    (True, True)
    """


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """A data file is neither in a data folder nor in the cache, and could not be downloaded.

    Examples
    --------
    >>> from cmvmed.datasets import DatasetNotFoundError
    >>> issubclass(DatasetNotFoundError, FileNotFoundError)
    True
    """
