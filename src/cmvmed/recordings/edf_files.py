"""EDF and BDF files, read in parts with pyedflib (BSD license); each signal has its own sampling rate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cmvmed._optional import import_optional
from cmvmed.recordings.clocks import date_seconds
from cmvmed.recordings.container import SignalArray

EDF_FORMATS = (".edf", ".bdf")


@contextmanager
def open_edf(path: str | PathLike[str]) -> Iterator[Any]:
    """Open a file for reading."""
    pyedflib = import_optional("pyedflib", "recordings", "Reading EDF files")
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file '{path}'. Relative paths start at '{Path.cwd()}'.")
    try:
        reader = pyedflib.EdfReader(str(path))
    except OSError as error:
        raise ValueError(
            f"'{path}' cannot be read as an EDF or BDF file: {error}. Discontinuous files (EDF+D) must be converted first."
        ) from error
    try:
        yield reader
    finally:
        reader.close()


@dataclass(frozen=True)
class EdfSamples:
    """Some signals of an EDF file with the same rate, in their physical units."""

    path: str
    numbers: tuple[int, ...]
    n_samples: int

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return len(self.numbers)

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop."""
        with open_edf(self.path) as reader:
            return np.array([reader.readSignal(number, start, stop - start) for number in self.numbers])


@dataclass(frozen=True)
class EdfSignal:
    """One signal of a file."""

    label: str
    number: int
    sampling_rate: float
    n_samples: int


def edf_signals(path: str | PathLike[str], timezone: str | None) -> tuple[list[EdfSignal], float]:
    """The signals of a file, and its start in seconds since 1970 UTC."""
    with open_edf(path) as reader:
        labels, counts = reader.getSignalLabels(), reader.getNSamples()
        signals = [
            EdfSignal(label.strip() or f"signal{number}", number, float(reader.getSampleFrequency(number)), int(count))
            for number, (label, count) in enumerate(zip(labels, counts, strict=True))
        ]
        date = reader.getStartdatetime()
    start = date_seconds(date if timezone is not None else date.replace(tzinfo=UTC), f"The start of '{path}'", timezone)
    return signals, start


def read_edf_annotations(
    path: str | PathLike[str], recording: str | None = None
) -> list[tuple[str, float, float, str]]:
    """Annotations in an EDF+ file as (recording, start, end, label), for :func:`cut_windows`.

    Those without a duration are left out. ``recording`` is its name, by default the name of the file without ending.

    Examples
    --------
    >>> import numpy as np, pyedflib
    >>> from cmvmed.recordings import read_edf_annotations
    >>> with pyedflib.EdfWriter("night.edf", 1, file_type=pyedflib.FILETYPE_EDFPLUS) as writer:
    ...     writer.setSamplefrequency(0, 100)
    ...     writer.writeSamples([np.zeros(1000)])
    ...     _ = writer.writeAnnotation(2.0, 3.0, "awake")
    >>> read_edf_annotations("night.edf")
    [('night', 2.0, 5.0, 'awake')]
    """
    name = Path(path).stem if recording is None else recording
    with open_edf(path) as reader:
        onsets, durations, labels = reader.readAnnotations()
    return [
        (name, float(onset), float(onset + duration), str(label))
        for onset, duration, label in zip(onsets, durations, labels, strict=True)
        if duration > 0
    ]
