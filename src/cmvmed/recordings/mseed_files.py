"""MiniSEED files of seismic networks, versions 2 and 3, decoded with pymseed (Apache license)."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from cmvmed._optional import import_optional
from cmvmed.recordings.container import SignalArray

MSEED_FORMATS = (".mseed", ".miniseed", ".ms", ".mseed3", ".ms3")


@dataclass(frozen=True, eq=False)
class MseedSegment:
    """Samples of one source without a gap."""

    source: str  # network.station.location.channel
    start: float  # seconds since 1970 UTC
    sampling_rate: float
    values: SignalArray  # (1, n_samples)


def mseed_segments(path: str | PathLike[str]) -> list[MseedSegment]:
    """All segments of a file, decoded."""
    pymseed = import_optional("pymseed", "recordings", "Reading MiniSEED files")
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file '{path}'. Relative paths start at '{Path.cwd()}'.")
    try:
        traces = pymseed.MS3TraceList.from_file(str(path), unpack_data=True)
    except (ValueError, OSError, pymseed.PymseedError) as error:
        raise ValueError(f"'{path}' is empty or damaged and cannot be read as a MiniSEED file: {error}") from error
    found = [
        MseedSegment(
            ".".join(pymseed.sourceid2nslc(trace.sourceid)),
            float(segment.starttime_seconds),
            float(segment.samprate),
            np.array(segment.np_datasamples, dtype=np.float64)[np.newaxis],
        )
        for trace in traces
        for segment in trace
        if segment.sampletype in ("i", "f", "d")
    ]
    if not found:
        raise ValueError(f"'{path}' holds no samples of numbers.")
    return found
