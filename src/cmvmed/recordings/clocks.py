"""Times as seconds: numbers, dates with and without zone, texts; and the sampling rate of a column of times.

Numbers are seconds of a clock of the user's choice. Dates become seconds since 1970 UTC: those without a zone are in
the zone ``timezone`` (UTC if None). Of an hour that occurs twice at the end of summer time, the first is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings.container import is_missing

FloatArray: TypeAlias = NDArray[np.float64]
QUARTER = 900  # seconds: zones change their offset at multiples of it
MAX_JITTER = 0.25  # sample periods: samples whose times differ more from a regular clock are interpolated
MAX_GAP_SHARE = 0.25  # of the distances between times; with more gaps the sampling rate or unit is wrong
RATE_DIGITS = 9  # significant ones, without the rounding errors of times
ROUNDING = 1e-6  # sample periods


@dataclass(frozen=True)
class Times:
    """Times in seconds."""

    seconds: FloatArray  # NaN where a time is missing
    are_dates: bool  # seconds since 1970 UTC, else of an unknown clock


def read_times(values: Any, where: str, timezone: str | None = None) -> Times:
    """Times of a column of a DataFrame, an array or a list; ``where`` names them in errors."""
    native = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(native, nw.Series):
        if isinstance(native.dtype, nw.Datetime):
            # timestamp() is in UTC for columns with a zone, and the date as it stands for those without
            stamps = native.dt.timestamp("us").to_numpy().astype(np.float64)
            seconds = stamps / 1e6
            naive = native.dtype.time_zone is None
            return Times(_from_zone(seconds, timezone) if naive else seconds, are_dates=True)
        values = native.to_numpy()
    array = np.asarray(values)
    if array.dtype.kind == "M":
        seconds = np.where(np.isnat(array), np.nan, array.astype("datetime64[us]").astype(np.int64) / 1e6)
        return Times(_from_zone(seconds, timezone), are_dates=True)
    if array.dtype.kind == "m":
        return Times(array / np.timedelta64(1, "s"), are_dates=False)
    if array.dtype.kind in "fiu":
        return Times(array.astype(np.float64), are_dates=False)
    return _read_objects(array.tolist(), where, timezone)


def date_seconds(date: Any, where: str, timezone: str | None = None) -> float:
    """One date as seconds since 1970 UTC."""
    times = read_times([date], where, timezone)
    if not times.are_dates:
        raise ValueError(f'{where} is {date!r}, but must be a date and time, such as "2024-05-01 08:00".')
    return float(times.seconds[0])


def _read_objects(items: Sequence[Any], where: str, timezone: str | None) -> Times:
    """Texts, datetimes and numbers in a list."""
    known = np.array([not is_missing(item) and item != "" for item in items], dtype=bool)
    present = [item for item, is_known in zip(items, known, strict=True) if is_known]
    try:
        seconds = [float(item) for item in present]
        are_dates = False
    except (TypeError, ValueError):
        dates = [_as_datetime(item, where) for item in present]
        with_zone = [date.tzinfo is not None for date in dates]
        if any(with_zone) and not all(with_zone):
            raise ValueError(
                f"{where} mixes times with and without a time zone, such as {present[with_zone.index(True)]!s} and "
                f"{present[with_zone.index(False)]!s}; write all in the same way."
            ) from None
        seconds = [date.replace(tzinfo=date.tzinfo or UTC).timestamp() for date in dates]
        if with_zone and not with_zone[0]:
            seconds = _from_zone(np.array(seconds), timezone).tolist()
        are_dates = True
    filled = np.full(len(items), np.nan)
    filled[known] = seconds
    return Times(filled, are_dates)


def _as_datetime(item: Any, where: str) -> datetime:
    if isinstance(item, datetime):
        return item
    if isinstance(item, np.datetime64):
        return item.astype("datetime64[us]").item()  # type: ignore[no-any-return]
    try:
        return datetime.fromisoformat(str(item).strip())
    except ValueError as error:
        raise ValueError(
            f"{where} has the time {item!r}, which is neither a number of seconds nor a date such as 2024-05-01T08:00:00 "
            "(ISO 8601). Convert the column to dates or numbers first."
        ) from error


def _from_zone(seconds: FloatArray, timezone: str | None) -> FloatArray:
    """Seconds since 1970 UTC of dates in a zone, given as if they were in UTC."""
    if timezone is None:
        return seconds
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"timezone is {timezone!r}, but must be a name such as 'Europe/Paris' or 'UTC'.") from error
    known = np.isfinite(seconds)
    quarters, inverse = np.unique(seconds[known] // QUARTER, return_inverse=True)
    local = [datetime.fromtimestamp(quarter * QUARTER, UTC).replace(tzinfo=zone) for quarter in quarters]
    offsets = np.array([date.utcoffset().total_seconds() for date in local])  # type: ignore[union-attr]
    converted = seconds.copy()
    converted[known] -= offsets[inverse]
    return converted


def rate_of_times(seconds: FloatArray, where: str) -> float:
    """Samples per second of increasing times: the inverse of their median distance."""
    steps = np.diff(seconds)
    if len(steps) == 0:
        raise ValueError(f"{where} has a single time, so its sampling rate is unknown; pass sampling_rate=.")
    median = float(np.median(steps))
    regular = steps[np.abs(steps - median) <= MAX_JITTER * median]  # without gaps; their mean evens rounded times out
    return float(f"{1.0 / float(regular.mean()):.{RATE_DIGITS}g}")


def on_regular_clock(
    seconds: FloatArray, values: FloatArray, sampling_rate: float, *, max_gap: float | None, where: str
) -> list[tuple[float, FloatArray]]:
    """Samples at increasing times as parts without gaps: the time of the first sample and (n_channels, n_samples).

    A gap is a distance of more than ``max_gap`` seconds (None: one and a half sample periods). Between gaps, values at
    times of a regular clock up to jitter are taken as they are; others are interpolated along straight lines at the
    times s, s + 1/rate, s + 2/rate, ... from the first time s of the part.
    """
    longest = 1.5 / sampling_rate if max_gap is None else max_gap
    steps = np.diff(seconds)
    gaps = np.flatnonzero(steps > longest)
    if len(gaps) > MAX_GAP_SHARE * len(steps):
        raise ValueError(
            f"{where}: {len(gaps)} of {len(steps)} distances between times are gaps, longer than {longest:.4g} s (sampling rate "
            f"{sampling_rate:g} Hz, from the times {rate_of_times(seconds, where):.4g} Hz). Check sampling_rate and that times are "
            "in seconds; for samples at irregular times, set max_gap to the longest distance to interpolate, in seconds."
        )
    bounds = [0, *(gaps + 1).tolist(), len(seconds)]
    return [_on_clock(seconds[start:stop], values[start:stop], sampling_rate) for start, stop in pairwise(bounds)]


def _on_clock(seconds: FloatArray, values: FloatArray, sampling_rate: float) -> tuple[float, FloatArray]:
    deviations = seconds - np.arange(len(seconds)) / sampling_rate
    start = float(deviations.mean())
    if np.abs(deviations - start).max() * sampling_rate <= MAX_JITTER:
        return start, np.ascontiguousarray(values.T)
    n_samples = int(np.floor((seconds[-1] - seconds[0]) * sampling_rate + ROUNDING)) + 1
    times = seconds[0] + np.arange(n_samples) / sampling_rate
    return float(seconds[0]), np.array([np.interp(times, seconds, channel) for channel in values.T])
