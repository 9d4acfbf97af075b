"""Warnings that show the line of the user's call, however deep in the library they arise."""

import sys
import warnings

INTERNAL = ("cmvmed", "sklearn", "joblib")  # packages whose frames are skipped


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of the library, and of what calls it for the user."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INTERNAL:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
