"""HDF5 files, read in parts with h5py: rows in one dataset per sensor or in one group per row, and long recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from cmvmed._file_errors import existing_file
from cmvmed._optional import import_optional
from cmvmed.recordings.container import LazySequence, Recordings, SensorSignals, SignalArray, is_missing
from cmvmed.recordings.row_arrays import numbered, rate_of
from cmvmed.recordings.signal_values import as_signal

HDF5_FORMATS = (".h5", ".hdf5", ".hdf")
RATE_NAMES = ("sampling_rate", "sample_rate", "samplerate", "sampling_frequency", "sfreq", "fs", "rate")
LABEL_NAMES = ("labels", "label", "y", "target", "class", "classes")
ID_NAMES = ("ids", "id", "names")
GROUP_NAMES = ("groups", "group", "subject", "subjects", "recording", "recordings")


@contextmanager
def open_hdf5(path: str | PathLike[str]) -> Iterator[Any]:
    """Open a file for reading; errors of HDF5 while it is read name the file."""
    h5py = import_optional("h5py", "recordings", "Reading HDF5 files")
    existing_file(path)
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"'{path}' is empty or damaged and cannot be read as an HDF5 file: {error}") from error
    with file:
        try:
            yield file
        except Exception as error:  # of any kind, if the file is damaged
            if isinstance(error, ValueError) and str(path) in str(error):  # a check of this library
                raise
            raise ValueError(f"'{path}' is damaged and cannot be read as an HDF5 file: {error}") from error


@dataclass(frozen=True)
class Hdf5Samples:
    """Samples of a dataset (n_channels, n_samples) or (n_samples,)."""

    path: str
    dataset: str
    n_channels: int
    n_samples: int

    def read(self, start: int, stop: int) -> SignalArray:
        """Return the samples from start to stop."""
        with open_hdf5(self.path) as file:
            values = file[self.dataset][..., start:stop]
        return as_signal(values, f"'{self.path}', dataset {self.dataset!r}")


@dataclass(frozen=True, eq=False)
class Hdf5Signals(LazySequence):
    """Signals that are read when they are asked for: rows of one dataset, or one dataset per row.

    A signal with NaN or infinite samples is None: the sensor is missing in the row.
    """

    path: str
    datasets: Sequence[tuple[str, int | None] | None]  # name, and row if the dataset holds all rows

    def __len__(self) -> int:
        return len(self.datasets)

    def item(self, row: int) -> SignalArray | None:
        """The item at a position."""
        place = self.datasets[row]
        if place is None:
            return None
        name, position = place
        with open_hdf5(self.path) as file:
            values = file[name][()] if position is None else file[name][position]
        signal = as_signal(values, f"'{self.path}', dataset {name!r}")
        return signal if signal.size and np.isfinite(signal).all() else None


def read_hdf5(
    path: str | PathLike[str],
    sampling_rate: float | Mapping[str, float] | None = None,
    *,
    sensors: Mapping[str, str] | None = None,
) -> Recordings:
    """Open an HDF5 file of rows; signals are read when they are asked for.

    Two layouts are known. *Datasets of all rows*: each dataset (n_rows, n_channels, n_samples) or (n_rows,
    n_samples) is a sensor, and one-dimensional datasets named ``labels``, ``ids`` or ``groups`` hold one entry per
    row. *A group per row*: each group holds one dataset (n_channels, n_samples) or (n_samples,) per sensor, which may
    differ in length or be absent, and may have the attributes ``label`` and ``group``.

    Parameters
    ----------
    path : path
    sampling_rate : float, or mapping of sensor name -> float, optional
        None: the attribute ``sampling_rate`` (or ``fs``, ``sfreq``, ...) of the dataset, its group or the file.
    sensors : mapping of sensor name -> dataset, optional
        Names of datasets; None: all that hold signals.

    Notes
    -----
    A signal with NaN in it makes the sensor missing in that row. Empty labels (``""``, NaN) are unlabeled.

    Examples
    --------
    >>> import h5py, numpy as np
    >>> from cmvmed.recordings import read_hdf5
    >>> with h5py.File("rows.h5", "w") as file:
    ...     file["wrist"] = np.zeros((5, 3, 100))
    ...     file["labels"] = ["walk", "run", "", "", ""]
    ...     file.attrs["sampling_rate"] = 50.0
    >>> rows = read_hdf5("rows.h5")
    >>> len(rows), rows["wrist"].sampling_rate, rows.labels.tolist()
    (5, 50.0, ['walk', 'run', None, None, None])
    """
    with open_hdf5(path) as file:
        names = list(file)
        groups = [name for name in names if hasattr(file[name], "keys")]
        tables = [name for name in names if getattr(file[name], "ndim", 0) in (2, 3)]
        if tables:
            return _rows_of_tables(str(path), file, tables, sampling_rate, sensors)
        if groups:
            return _rows_of_groups(str(path), file, groups, sampling_rate, sensors)
    raise ValueError(
        f"'{path}' holds no signals: expected datasets (n_rows, n_channels, n_samples), or one group per row with a dataset "
        f"per sensor; it has {', '.join(map(repr, names)) or 'nothing'}."
    )


def _rows_of_tables(path: str, file: Any, tables: Sequence[str], rates: Any, chosen: Any) -> Recordings:
    places = {name: name for name in tables} if chosen is None else dict(chosen)
    for sensor, name in places.items():
        if name not in file:
            raise ValueError(
                f"'{path}' has no dataset {name!r} (sensor {sensor!r}); it has {', '.join(map(repr, file))}."
            )
    counts = {name: file[name].shape[0] for name in places.values()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
        raise ValueError(f"The datasets of '{path}' must have the same number of rows, but have {listed}.")
    n = next(iter(counts.values()))
    sensors = {}
    for sensor, name in places.items():
        dataset = file[name]
        n_channels = dataset.shape[1] if dataset.ndim == 3 else 1
        signals = Hdf5Signals(path, [(name, row) for row in range(n)])
        rate = dataset_rate(path, sensor, dataset, file, rates)
        sensors[sensor] = SensorSignals(signals, rate, dataset_channels(sensor, dataset, n_channels), files=[path] * n)
    columns = {key: _column(file, known, n) for key, known in _COLUMNS.items()}
    return Recordings(sensors, **columns)  # type: ignore[arg-type]


def _rows_of_groups(path: str, file: Any, rows: Sequence[str], rates: Any, chosen: Any) -> Recordings:
    found = list(dict.fromkeys(name for row in rows for name in file[row] if hasattr(file[row][name], "shape")))
    places = {name: name for name in found} if chosen is None else dict(chosen)
    if not places:
        raise ValueError(f"The groups of '{path}' hold no datasets; expected one per sensor, (n_channels, n_samples).")
    sensors = {}
    for sensor, name in places.items():
        having = [row for row in rows if name in file[row]]
        if not having:
            raise ValueError(
                f"No group of '{path}' has a dataset {name!r} (sensor {sensor!r}); they have {', '.join(found)}."
            )
        first = file[having[0]][name]
        n_channels = _n_channels(first)
        rate = dataset_rate(path, sensor, first, file, rates)
        for row in having:
            other = file[row][name]
            if (
                _n_channels(other) != n_channels
                or abs(dataset_rate(path, sensor, other, file, rates) / rate - 1) > 1e-9
            ):
                raise ValueError(
                    f"Sensor {sensor!r} of '{path}' must have the same channels and sampling rate in all groups, but "
                    f"{having[0]!r} has {n_channels} channels at {rate:g} Hz and {row!r} has {_n_channels(other)} at "
                    f"{dataset_rate(path, sensor, other, file, rates):g} Hz."
                )
        signals = Hdf5Signals(path, [(f"{row}/{name}", None) if name in file[row] else None for row in rows])
        files = [f"{path}:{row}" for row in rows]
        sensors[sensor] = SensorSignals(signals, rate, dataset_channels(sensor, first, n_channels), files=files)
    columns: dict[str, Any] = {
        "labels": [_attribute(file[row], LABEL_NAMES) for row in rows],
        "groups": [_attribute(file[row], GROUP_NAMES) for row in rows],
    }
    columns["groups"] = None if all(value is None for value in columns["groups"]) else columns["groups"]
    return Recordings(sensors, ids=list(rows), **columns)  # type: ignore[arg-type]


_COLUMNS = {"labels": LABEL_NAMES, "ids": ID_NAMES, "groups": GROUP_NAMES}


def _column(file: Any, names: Sequence[str], n: int) -> list[Any] | None:
    """A one-dimensional dataset with one entry per row."""
    found = next((file[name] for name in names if name in file and file[name].shape == (n,)), None)
    return None if found is None else [_plain(value) for value in found[()].tolist()]


def _plain(value: Any) -> Any:
    """Text of bytes; None for values that mean nothing."""
    text = value.decode("utf-8") if isinstance(value, bytes) else value
    return None if is_missing(text) or text == "" else text


def _attribute(holder: Any, names: Sequence[str]) -> Any:
    found = next((holder.attrs[name] for name in names if name in holder.attrs), None)
    return None if found is None else _plain(found.item() if isinstance(found, np.generic) else found)


def dataset_rate(path: str, sensor: str, dataset: Any, file: Any, rates: Any) -> float:
    """The sampling rate of a dataset: as given, or an attribute of the dataset, its group or the file."""
    if rates is not None and (not isinstance(rates, Mapping) or sensor in rates):
        return rate_of(sensor, rates)
    for holder in (dataset, dataset.parent, file):
        found = _attribute(holder, RATE_NAMES)
        if found is not None:
            return rate_of(sensor, float(found))
    raise ValueError(
        f"The sampling rate of sensor {sensor!r} is unknown: '{path}' has no attribute 'sampling_rate' of the dataset, its group "
        "or the file. Pass sampling_rate= in Hz."
    )


def _n_channels(dataset: Any) -> int:
    return int(dataset.shape[0]) if dataset.ndim == 2 else 1


def dataset_channels(sensor: str, dataset: Any, n_channels: int) -> tuple[str, ...]:
    """Names of the channels of a dataset: its attribute ``channel_names``, or numbers."""
    names = dataset.attrs.get("channel_names")
    if names is not None and len(names) == n_channels:
        return tuple(str(_plain(name)) for name in names)
    return tuple(numbered(sensor, n_channels))
