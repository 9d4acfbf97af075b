"""Errors of the loaders."""


class DatasetError(ValueError):
    """A data file is truncated, altered, malicious or of another format; the message names it and says what to do."""


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """A data file is neither in a data folder nor in the cache, and could not be downloaded."""
