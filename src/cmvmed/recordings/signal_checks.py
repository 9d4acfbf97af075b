"""Type of signals, and checks of signals and sampling rates."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.floating[Any]]
CLOCK_TOLERANCE = 0.01  # relative difference of two sampling rates that are meant to be the same


def check_sampling_rate(sampling_rate: float) -> None:
    """Raise a ValueError unless the sampling rate is positive and finite."""
    if not 0 < sampling_rate < np.inf:
        raise ValueError(f"sampling_rate must be a positive number of Hz, got {sampling_rate!r}.")


def is_same_rate(one: float, other: float) -> bool:
    """Whether two sampling rates are the same up to the tolerance of clocks, as rates that come from times are."""
    return abs(one / other - 1) <= CLOCK_TOLERANCE


def is_partly_invalid(signals: NDArray[np.floating[Any] | np.integer[Any]]) -> NDArray[np.bool_]:
    """Return a mask of the signals (last axis: samples) that are neither finite throughout nor all NaN.

    A signal of NaN only is missing, which is allowed.
    """
    return np.asarray(~np.isfinite(signals).all(axis=-1) & ~np.isnan(signals).all(axis=-1))
