"""The errors of the loaders: a file that is not there, and a file that is not what it should be."""


class DatasetError(ValueError):
    """A data file is truncated, altered, of another format, or hostile; the message says which and what to do."""


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """A data file is neither in a data folder nor in the cache, and could not be downloaded."""
