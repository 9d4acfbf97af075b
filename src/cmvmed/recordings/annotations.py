"""Annotations: which class was observed from when to when, and the label that follows for a window.

Of a window [t, t + L), ``overlap_label`` takes the class that annotations give to the largest part of it, if that is at
least the share ``min_overlap`` of L; ``center_label`` takes the class of the annotation that holds its center
t + L/2. If two classes have equal claims, the window is not labeled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings.clocks import read_times
from cmvmed.recordings.container import is_missing
from cmvmed.recordings.long_recordings import LongRecording

COLUMNS = ("start", "end", "label")
ROUNDING = 1e-9  # seconds


@dataclass(frozen=True)
class Intervals:
    """The annotations of one recording, sorted by start; unlabeled ones are left out."""

    starts: NDArray[np.float64]  # seconds from the start of the recording
    ends: NDArray[np.float64]
    labels: Sequence[Any]

    @cached_property
    def longest(self) -> float:
        """Duration of the longest annotation, in seconds."""
        return float(np.max(self.ends - self.starts, initial=0.0))

    def touching(self, start: float, end: float) -> range:
        """Positions that include all intervals that overlap with [start, end)."""
        return range(bisect_left(self.starts, start - self.longest), bisect_left(self.starts, end))

    def overlap_label(self, start: float, end: float, min_overlap: float) -> Any:
        """The class with the largest part of [start, end), or None."""
        parts: dict[Any, float] = defaultdict(float)
        for i in self.touching(start, end):
            parts[self.labels[i]] += max(0.0, min(end, self.ends[i]) - max(start, self.starts[i]))
        if not parts:
            return None
        ordered = sorted(parts.items(), key=lambda part: -part[1])
        largest = ordered[0][1]
        is_tie = len(ordered) > 1 and largest - ordered[1][1] <= ROUNDING
        enough = largest > 0 and largest >= min_overlap * (end - start) - ROUNDING
        return None if is_tie or not enough else ordered[0][0]

    def center_label(self, start: float, end: float) -> Any:
        """The class of the annotation that holds the center of [start, end), or None."""
        center = (start + end) / 2
        found = {self.labels[i] for i in self.touching(start, end) if self.starts[i] <= center < self.ends[i]}
        return found.pop() if len(found) == 1 else None


def read_annotations(
    annotations: Any, recordings: Sequence[LongRecording], timezone: str | None = None
) -> dict[str, Intervals]:
    """Annotations by the name of the recording.

    ``annotations`` is a DataFrame with the columns start, end, label and, unless there is one recording only,
    recording; or a list of such tuples (recording first) or dicts.
    """
    columns = _columns(annotations, single=len(recordings) == 1)
    by_name = {recording.name: recording for recording in recordings}
    names = columns.get("recording", [next(iter(by_name))] * len(columns["label"]))
    names = [str(name) for name in names]
    unknown = next((name for name in names if name not in by_name), None)
    if unknown is not None:
        raise ValueError(
            f"Annotations name the recording {unknown!r}, but the recordings are {', '.join(map(repr, list(by_name)[:6]))}"
            f"{' ...' if len(by_name) > 6 else ''}."
        )
    starts = _relative_times("start", columns["start"], names, by_name, timezone)
    ends = _relative_times("end", columns["end"], names, by_name, timezone)
    _check_order(names, starts, ends)
    found = {}
    for name in by_name:
        rows = [row for row, other in enumerate(names) if other == name and not _is_unlabeled(columns["label"][row])]
        rows.sort(key=lambda row: starts[row])
        found[name] = Intervals(starts[rows], ends[rows], [columns["label"][row] for row in rows])
    return found


def _is_unlabeled(label: Any) -> bool:
    return is_missing(label) or (isinstance(label, str) and not label.strip())


def _columns(annotations: Any, *, single: bool) -> dict[str, list[Any]]:
    frame = nw.from_native(annotations, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns: dict[str, Any] = {str(name).strip().lower(): frame[name] for name in frame.columns}
        columns = {name: _as_list(series) for name, series in columns.items()}
    elif isinstance(annotations, Mapping):
        columns = {str(name).lower(): list(values) for name, values in annotations.items()}
    else:
        columns = _columns_of_rows(annotations)
    lacking = [name for name in (*COLUMNS, *(() if single else ("recording",))) if name not in columns]
    if lacking:
        needed = "start, end and label" + ("" if single else ", and recording, because there are several recordings")
        raise ValueError(f"The annotations have no column {lacking[0]!r}; they need {needed}.")
    return columns


def _as_list(series: nw.Series[Any]) -> Any:
    """Values of a column; dates stay a Series, which knows its time zone."""
    return series.to_native() if isinstance(series.dtype, nw.Datetime) else series.to_list()


def _columns_of_rows(rows: Any) -> dict[str, list[Any]]:
    if not isinstance(rows, Iterable) or isinstance(rows, str):
        raise TypeError(
            f"annotations must be a DataFrame or a list of (recording, start, end, label), got {type(rows).__name__}."
        )
    columns: dict[str, list[Any]] = {name: [] for name in ("recording", *COLUMNS)}
    for number, row in enumerate(rows):
        entry = row if isinstance(row, Mapping) else dict(zip(("recording", *COLUMNS), row, strict=False))
        if len(entry) != 4 or set(entry) != set(columns):
            raise ValueError(f"Annotation {number} must be (recording, start, end, label), got {row!r}.")
        for name, value in entry.items():
            columns[name].append(value)
    return columns


def _relative_times(
    column: str, values: Any, names: Sequence[str], recordings: Mapping[str, LongRecording], timezone: str | None
) -> NDArray[np.float64]:
    """Seconds from the start of the recording of each annotation."""
    times = read_times(values, f"Column {column!r} of the annotations", timezone)
    missing = np.flatnonzero(~np.isfinite(times.seconds))
    if len(missing):
        raise ValueError(
            f"Annotation {missing[0]} (recording {names[missing[0]]!r}) has no {column}; fill it, or remove the row."
        )
    if not times.are_dates:
        return times.seconds
    without = next((name for name in names if recordings[name].start is None), None)
    if without is not None:
        raise ValueError(
            f"Annotations have dates, but it is not known when recording {without!r} started: pass start= to it, or write "
            "seconds from its start."
        )
    return times.seconds - np.array([recordings[name].start for name in names], dtype=np.float64)


def _check_order(names: Sequence[str], starts: NDArray[np.float64], ends: NDArray[np.float64]) -> None:
    wrong = np.flatnonzero(ends <= starts)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"Annotation {row} of recording {names[row]!r} ends at {ends[row]:.6g} s, not after its start at "
            f"{starts[row]:.6g} s. Give each annotation a duration."
        )
