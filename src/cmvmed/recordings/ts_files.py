"""The .ts format of sktime, aeon and the UCR and UEA archives: one row per line, dimensions separated by colons."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cmvmed._file_errors import existing_file
from cmvmed.recordings.container import Recordings
from cmvmed.recordings.row_arrays import ChannelKey, from_array
from cmvmed.recordings.signal_values import Gaps

UNKNOWN = ("?", "NaN", "")


@dataclass(frozen=True)
class TsRows:
    """The content of a .ts file."""

    series: list[list[NDArray[np.float64] | None]]  # dimensions of each row; None where all values are unknown
    labels: list[str] | None
    lines: list[int]  # number of the line of each row


def parse_ts(path: Path) -> TsRows:
    """Read a .ts file; an error names the line."""
    header: dict[str, bool] = {}
    lines: list[tuple[int, str]] = []
    in_data = False
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if in_data:
            lines.append((number, text))
        elif text.startswith("@"):
            key, *values = text[1:].lower().split() or [""]
            header[key] = values[:1] == ["true"]
            in_data = key == "data"
    if not in_data or not lines:
        raise ValueError(f"{path.name} has no rows after a line @data, so it is no .ts file of time series.")
    if header.get("timestamps", False):
        raise ValueError(f"{path.name} has time stamps beside the values, which are not read; save the values alone.")
    has_labels = header.get("classlabel", False)
    rows = [_ts_row(path, number, text, has_labels) for number, text in lines]
    n_dimensions = len(rows[0][0])
    for (number, _), (series, _) in zip(lines, rows, strict=True):
        if len(series) != n_dimensions:
            raise ValueError(
                f"Line {number} of {path.name} has {len(series)} dimensions, but the first row has {n_dimensions}."
            )
    labels = [label for _, label in rows] if has_labels else None
    return TsRows([series for series, _ in rows], labels, [number for number, _ in lines])


def _ts_row(path: Path, number: int, text: str, has_labels: bool) -> tuple[list[NDArray[np.float64] | None], str]:
    """The series of each dimension, and the label."""
    parts = text.split(":")
    label = parts.pop().strip() if has_labels else ""
    series: list[NDArray[np.float64] | None] = []
    for part in parts:
        try:
            values = np.array([np.nan if cell.strip() in UNKNOWN else float(cell) for cell in part.split(",")])
        except ValueError as error:
            raise ValueError(f"Line {number} of {path.name} holds a value that is not a number: {error}.") from error
        series.append(None if np.isnan(values).all() else values)
    return series, label


def read_ts(
    path: str | PathLike[str],
    sampling_rate: float = 1.0,
    *,
    sensors: dict[str, ChannelKey] | list[str] | None = None,
    gaps: Gaps = "missing",
) -> Recordings:
    r"""Read a .ts file.

    Parameters
    ----------
    path : path
    sampling_rate : float
        Samples per second, which the file does not say; with 1.0, times are in samples.
    sensors, gaps
        See :func:`from_array`. The label ``?`` is unlabeled. Dimensions of a row that differ in length are padded as in
        an array.

    Examples
    --------
    >>> from pathlib import Path
    >>> from cmvmed.recordings import read_ts
    >>> lines = ["@problemName small", "@univariate true", "@classLabel true a b", "@data", "1.0,2.0,3.0:a", "3.0,2.0,1.0:b"]
    >>> _ = Path("small.ts").write_text("\n".join(lines))
    >>> rows = read_ts("small.ts", sampling_rate=10.0)
    >>> rows.labels.tolist()
    ['a', 'b']
    """
    content = parse_ts(existing_file(path))
    labels = None if content.labels is None else [None if label in UNKNOWN else label for label in content.labels]
    ids = [f"line {number}" for number in content.lines]
    rows = [_padded(series) for series in content.series]
    return from_array(rows, sampling_rate, sensors=sensors, labels=labels, ids=ids, gaps=gaps)


def _padded(series: list[NDArray[np.float64] | None]) -> NDArray[np.float64]:
    """Dimensions of a row as one array, NaN after the end of the shorter ones and where one is missing."""
    array = np.full((len(series), max((len(values) for values in series if values is not None), default=0)), np.nan)
    for row, values in zip(array, series, strict=True):
        if values is not None:
            row[: len(values)] = values
    return array
