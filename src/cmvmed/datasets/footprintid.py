"""FootprintID: vibrations of a floor, caused by the footsteps of ten people, at up to five geophones.

The layout is that of a reading script in public code (github.com/Dan-dsp/Proyecto_dsp_reconocimiento_pisadas):
``people{person}.Sen{sensor}.S{speed}{trace, amplification}`` in ``People.mat``, with 10 people, 5 sensors of which some
are empty, 8 speeds, 10 to 13 traces and 3 amplifications. People, speeds and geophones agree with what is published
about the record (Zenodo 4691144). The following is not certain, and is stated here alone: that the file of the record
has this name and layout; that the traces of all sensors with the same number are the same walk; and the sampling rate,
which is a parameter, because the script says 25,600 Hz and another description of the record 1000 Hz.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from cmvmed.datasets.descriptions import describe
from cmvmed.datasets.errors import DatasetError
from cmvmed.datasets.locations import DataFile, FetchOptions, read_file
from cmvmed.datasets.mat5_reader import read_variable
from cmvmed.datasets.segment_bunch import Float32Array, check_numbers, to_recordings

N_PEOPLE, N_SENSORS, N_SPEEDS = 10, 5, 8
AMPLIFICATIONS = (6000, 4000, 2000)
MIN_WALK_SECONDS = 1.0  # of the longest trace; shorter ones mean that the sampling rate is wrong
MAX_BYTES = 8_000_000_000
MAT_FILE = DataFile(
    name="People.mat",
    folder="footprintid",
    url="",
    homepage="https://zenodo.org/records/4691144 (FootprintID, license CC BY 4.0)",
    max_bytes=1_000_000_000,
)


class Walk(NamedTuple):
    """One walk: the trace of each sensor, empty where the sensor has none."""

    person: int
    speed: int
    number: int
    traces: tuple[NDArray[np.float64], ...]


def fetch_footprintid(
    *,
    people: Sequence[int] = tuple(range(1, N_PEOPLE + 1)),
    speeds: Sequence[int] = tuple(range(1, N_SPEEDS + 1)),
    amplification: int = 6000,
    sampling_rate: int = 25_600,
    seconds: float | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch:
    """Load FootprintID: walks of ten people, recorded by geophones on the floor.

    Parameters
    ----------
    people : sequence of int, default=(1, ..., 10)
        Numbers of the people; they are the classes.
    speeds : sequence of int, default=(1, ..., 8)
        Speeds of walking: with mu and sigma of a person's step frequency, mu, mu + sigma, mu + 2 sigma, mu + 3 sigma,
        mu - sigma, mu - 2 sigma, mu - 3 sigma, and the speed that the person chose.
    amplification : {6000, 4000, 2000}, default=6000
        Amplification of the signals.
    sampling_rate : int, default=25600
        Samples per second, by which ``seconds`` are counted; it is not in the file.
    seconds : float, optional
        Duration of the segments, cut from the middle of each trace; zeros surround a shorter trace. None: the duration
        of the shortest trace.
    data_home : path, optional
        Folder with ``People.mat``, in its subfolder ``footprintid`` or directly; searched before the folder in the
        environment variable ``CMVMED_DATA``.
    download_if_missing : bool, default=True
        No effect: the file is not downloaded. Error messages name its page.

    Returns
    -------
    Bunch
        data : (n_walks, 5, n_samples) float32, NaN for a sensor without trace; missing : (n_walks, 5) bool.
        target : (n_walks,) index into target_names. views : dict of geophone -> channel. sampling_rate : int.
        speed, walk : (n_walks,), numbers in the file. DESCR : str.

    Raises
    ------
    DatasetError
        If the file is damaged or its content is not as described.
    DatasetNotFoundError
        If the file is not found.

    Examples
    --------
    >>> from cmvmed.datasets import DatasetNotFoundError, fetch_footprintid
    >>> try:
    ...     found = fetch_footprintid(people=[1], download_if_missing=False).target_names.size
    ... except DatasetNotFoundError:  # the files are not on this machine
    ...     found = 1
    >>> found
    1
    """
    check_numbers("people", people, N_PEOPLE)
    check_numbers("speeds", speeds, N_SPEEDS)
    if amplification not in AMPLIFICATIONS:
        raise ValueError(f"amplification must be one of {AMPLIFICATIONS}, got {amplification!r}.")
    if sampling_rate <= 0 or (seconds is not None and seconds <= 0):
        raise ValueError(f"sampling_rate and seconds must be positive, got {sampling_rate!r} and {seconds!r}.")
    data = read_file(MAT_FILE, FetchOptions(data_home, download_if_missing))
    content = read_variable(data, "people", name=MAT_FILE.name, max_bytes=MAX_BYTES)
    walks = list(_walks(content, people, speeds, AMPLIFICATIONS.index(amplification)))
    lengths = [trace.size for walk in walks for trace in walk.traces if trace.size]
    _check_lengths(lengths, sampling_rate)
    n_samples = min(lengths) if seconds is None else round(seconds * sampling_rate)
    segments = np.stack([_segment(walk, n_samples) for walk in walks])
    return to_recordings(
        segments,
        np.array([list(people).index(walk.person) for walk in walks]),
        [f"person {person}" for person in people],
        [f"geophone{sensor + 1}" for sensor in range(N_SENSORS)],
        sampling_rate,
        describe("footprintid", rows=len(walks), people=len(people)),
        {
            "missing": np.isnan(segments).any(axis=2),
            "speed": np.array([walk.speed for walk in walks]),
            "walk": np.array([walk.number for walk in walks]),
        },
    )


def _check_lengths(lengths: Sequence[int], sampling_rate: int) -> None:
    if not lengths:
        raise DatasetError(f"{MAT_FILE.name} has no traces of these people, speeds and this amplification.")
    if max(lengths) < MIN_WALK_SECONDS * sampling_rate:
        raise ValueError(
            f"At {sampling_rate} Hz the longest trace would last {max(lengths) / sampling_rate:.2f} s, too short for a "
            "walk. Pass the sampling rate of the file; 25600 and 1000 Hz are reported."
        )


def _walks(content: Any, people: Sequence[int], speeds: Sequence[int], column: int) -> Iterator[Walk]:
    """Yield the walks that at least one sensor has recorded."""
    for person in people:
        sensors = [_sensor(content, person, sensor) for sensor in range(1, N_SENSORS + 1)]
        for speed in speeds:
            tables = [_table(sensor, speed) for sensor in sensors]
            for row in range(max(len(table) for table in tables)):
                traces = tuple(_trace(table, row, column) for table in tables)
                if any(trace.size for trace in traces):
                    yield Walk(person, speed, row + 1, traces)


def _sensor(content: Any, person: int, sensor: int) -> Any:
    """Return the cell array ``people{person}.Sen{sensor}.S``, or None if the sensor is empty."""
    entry = _cell(content, person, "people")
    if not (isinstance(entry, dict) and "Sen" in entry):
        raise _other_layout(f"people{{{person}}} has no field Sen")
    found = _cell(entry["Sen"], sensor, f"people{{{person}}}.Sen")
    if isinstance(found, dict) and "S" in found:
        return found["S"]
    if found is None or (isinstance(found, np.ndarray) and found.size == 0):
        return None
    raise _other_layout(f"people{{{person}}}.Sen{{{sensor}}} has no field S")


def _cell(array: Any, number: int, name: str) -> Any:
    """Return an element of a MATLAB cell array, counted from 1; None after its end."""
    if not (isinstance(array, np.ndarray) and array.dtype == object):
        raise _other_layout(f"{name} is not a cell array")
    return array.ravel(order="F")[number - 1] if number <= array.size else None


def _table(sensor: Any, speed: int) -> Any:
    """Return the (n_traces, n_amplifications) cell array of a speed, which has no rows if it is empty."""
    found = None if sensor is None else _cell(sensor, speed, "S")
    if found is None or found.size == 0:
        return np.empty((0, len(AMPLIFICATIONS)), dtype=object)
    if found.dtype != object or found.ndim != 2:
        raise _other_layout(f"S{{{speed}}} is not a cell array of traces by amplifications")
    return found


def _trace(table: Any, row: int, column: int) -> NDArray[np.float64]:
    found = table[row, column] if row < len(table) and column < table.shape[1] else None
    if found is None:
        return np.empty(0)
    if found.dtype == object or not np.isfinite(found).all():
        raise _other_layout("a trace is not an array of finite numbers")
    return np.asarray(found, dtype=np.float64).ravel()


def _segment(walk: Walk, n_samples: int) -> Float32Array:
    """Return (5, n_samples) from the middle of the traces; NaN without trace, zeros around a short one."""
    segment = np.full((N_SENSORS, n_samples), np.nan, dtype=np.float32)
    for sensor, trace in enumerate(walk.traces):
        if trace.size:
            first = max((trace.size - n_samples) // 2, 0)
            middle = trace[first : first + n_samples]
            before = (n_samples - middle.size) // 2
            segment[sensor] = np.pad(middle, (before, n_samples - middle.size - before))
    return segment


def _other_layout(what: str) -> DatasetError:
    return DatasetError(
        f"{MAT_FILE.name} is not as expected: {what}, but people{{person}}.Sen{{sensor}}.S{{speed}}{{trace, "
        f"amplification}} is expected. It is a different file or version; get it from {MAT_FILE.homepage}."
    )
