"""Values and sampling rates of signals: real numbers in native floating point, and what to do with gaps (NaN)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cmvmed._warnings import warn_user
from cmvmed.recordings.container import SignalArray

Gaps: TypeAlias = Literal["missing", "interpolate", "error"]
CLOCK_TOLERANCE = 0.01  # relative difference of two sampling rates that are meant to be the same


def check_gaps(gaps: str) -> None:
    """Raise for an unknown treatment of gaps."""
    if gaps not in get_args(Gaps):
        raise ValueError(f"gaps must be one of {', '.join(map(repr, get_args(Gaps)))}, got {gaps!r}.")


def as_signal(values: ArrayLike, where: str) -> SignalArray:
    """Return (n_channels, n_samples) in native float32 or float64; one dimension is one channel.

    Integers become float64 with the same values, masked entries NaN.
    """
    masked = isinstance(values, np.ma.MaskedArray)
    array: NDArray[Any] = values if masked else np.asarray(values)  # type: ignore[assignment]
    if array.dtype.kind == "O":
        try:
            array = np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The signal of {where} holds values that are not numbers: {error}.") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"The signal of {where} must hold real numbers, but its dtype is {array.dtype}.")
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise ValueError(
            f"The signal of {where} must be (n_channels, n_samples), but its shape is {array.shape}. One row per entry "
            "is expected."
        )
    floating = array.astype(_native_float(array.dtype), copy=False)
    return np.ma.filled(floating, np.nan) if masked else np.asarray(floating)


def _native_float(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Native float32 for half and single precision, float64 for all other numbers."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def without_padding(signal: SignalArray) -> SignalArray:
    """The signal without trailing samples that are NaN in all channels, which make unequal lengths equal in an array."""
    used = np.flatnonzero(~np.isnan(signal).all(axis=0))
    return signal[:, : used[-1] + 1 if len(used) else 0]


def with_gaps_treated(signals: Sequence[SignalArray | None], gaps: Gaps, places: Sequence[str]) -> list[Any]:
    """Signals without NaN and infinite samples.

    A signal that has none of its samples is None. In others, gaps are filled along straight lines
    (``gaps="interpolate"``), or make the sensor missing in the row (``"missing"``, with a warning), or are an error.
    """
    treated: list[SignalArray | None] = []
    missing: list[int] = []
    for row, signal in enumerate(signals):
        finite = None if signal is None else np.isfinite(signal)
        if signal is None or finite is None or not finite.any():
            treated.append(None)
            continue
        if finite.all():
            treated.append(signal)
            continue
        if gaps == "error":
            raise ValueError(
                f"The signal of {places[row]} has {np.count_nonzero(~finite)} NaN or infinite samples of {finite.size}. "
                'Repair them, or pass gaps="interpolate" to fill them or gaps="missing" to leave the sensor out there.'
            )
        filled = interpolate(signal, finite) if gaps == "interpolate" and finite.any(axis=1).all() else None
        treated.append(filled)
        missing += [row] if filled is None else []
    if missing:
        warn_user(
            f"The signal of {places[missing[0]]} has gaps"
            + (f", and so have {len(missing) - 1} other rows of the sensor" if len(missing) > 1 else "")
            + ': the sensor counts as missing there. gaps="interpolate" fills gaps.'
        )
    return treated


def interpolate(signal: SignalArray, finite: NDArray[np.bool_]) -> SignalArray:
    """The signal with gaps of each channel filled along straight lines; beyond its ends the next sample is repeated."""
    filled = signal.copy()
    positions = np.arange(signal.shape[1])
    for channel, known in zip(filled, finite, strict=True):
        channel[~known] = np.interp(positions[~known], positions[known], channel[known])
    return filled


def check_sampling_rate(sampling_rate: float) -> None:
    """Raise a ValueError unless the sampling rate is positive and finite."""
    if not 0 < sampling_rate < np.inf:
        raise ValueError(f"sampling_rate must be a positive number of Hz, got {sampling_rate!r}.")


def is_same_rate(one: float, other: float) -> bool:
    """Whether two sampling rates are the same up to the tolerance of clocks, as rates that come from times are."""
    return abs(one / other - 1) <= CLOCK_TOLERANCE


def is_partly_invalid(signals: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the signals (last axis: samples) that are neither finite throughout nor all NaN.

    A signal of NaN only is missing, which is allowed.
    """
    return np.asarray(~np.isfinite(signals).all(axis=-1) & ~np.isnan(signals).all(axis=-1))
