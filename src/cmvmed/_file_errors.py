"""Errors about files that a user names: missing ones, and damaged .npy files."""

from os import PathLike, fspath
from pathlib import Path
from tokenize import TokenError

HEADER_ERRORS = (SyntaxError, TokenError)  # of Python's tokenizer, by which numpy reads headers
NPY_ERRORS = (ValueError, EOFError, *HEADER_ERRORS)  # what numpy raises for a damaged .npy file


def existing_file(path: str | PathLike[str]) -> Path:
    """The path of a file, or an error that says where relative paths start."""
    file = Path(fspath(path))
    if not file.is_file():
        raise FileNotFoundError(f"There is no file '{file}'. Relative paths start at '{Path.cwd()}'.")
    return file
