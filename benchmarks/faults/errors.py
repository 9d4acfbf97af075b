"""Which exceptions are clear errors: raised on purpose, by a check of the library or of scikit-learn."""

import linecache
import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.faults.campaign import Fault

CHECKING_PACKAGES = ("cmvmed", "sklearn")  # whose raise statements are checks of what a user gave
MIN_WORDS = 4


def check_clear(error: Exception, kinds: tuple[type[Exception], ...] = (ValueError, TypeError)) -> None:
    """Raise a fault unless an exception is a clear error.

    It must be of a documented kind, be raised by a ``raise`` statement of the library or of scikit-learn (an exception
    of numpy has none there), and have a message of several words.
    """
    place = innermost(error)
    if not isinstance(error, kinds):
        raise Fault(f"{type(error).__name__} at {place}", str(error)) from error
    if not raised_by_check(error):
        raise Fault(f"{type(error).__name__} that no check raised, at {place}", str(error)) from error
    if len(re.findall(r"\w+", str(error))) < MIN_WORDS:
        raise Fault(f"{type(error).__name__} without a reason at {place}", str(error)) from error


def raised_by_check(error: Exception) -> bool:
    """Whether the innermost frame is a ``raise`` statement of a package that checks input."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    package = package_of(frame.filename)
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    return package in CHECKING_PACKAGES and line.startswith("raise")


def innermost(error: Exception) -> str:
    """Where an exception was raised: the last function of the library, by module and name."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if package_of(f.filename) == "cmvmed"]
    return f"{Path(frames[-1].filename).stem}.{frames[-1].name}" if frames else "the caller"


def package_of(filename: str) -> str:
    """The package of a source file: the folder below site-packages or src."""
    parts = Path(filename).parts
    for root in ("site-packages", "src"):
        if root in parts:
            return parts[len(parts) - parts[::-1].index(root)].removesuffix(".py")
    return ""


@contextmanager
def only_user_warnings() -> Iterator[None]:
    """Warnings of the library to its user are ignored; those of numerical code are faults."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if not issubclass(warning.category, UserWarning):
            place = f"{Path(warning.filename).stem}:{warning.lineno}"
            raise Fault(f"{warning.category.__name__} at {place}", str(warning.message))
