"""Rows of several sensors: the form in which signals pass from readers to features.

A row is one event, window or segment that gets one label. Each sensor has its own sampling rate and channels, and one
signal per row, which may have any length; None where the sensor is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

SignalArray: TypeAlias = NDArray[np.floating[Any]]  # (n_channels, n_samples), finite
SHOWN = 4  # files or sensors that the representation lists


@dataclass(frozen=True, eq=False)
class SensorSignals:
    """The signals of one sensor, one per row.

    Iterating, ``len`` and indexing by a number give the signals; a slice, a mask or an array of numbers gives the
    ``SensorSignals`` of those rows. Signals that are read from files are read when they are asked for and not kept.

    Parameters
    ----------
    signals : sequence of (n_channels, n_samples) float arrays, or None where the sensor is missing
        A list, or an object with ``__len__`` and ``__getitem__`` that reads a signal from its file.
    sampling_rate : float
        Samples per second.
    channel_names : tuple of str
        One name per channel.
    files : sequence of str or None, optional
        Where each signal comes from, for error messages.
    name : str
        Name of the sensor, for error messages.
    ids : sequence of str, optional
        Identifiers of the rows, for error messages; :class:`Recordings` sets them.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.recordings import SensorSignals
    >>> left = SensorSignals([np.zeros((3, 50)), None], 25.0, ("x", "y", "z"))  # the second row lacks the sensor
    >>> len(left), left[0].shape, left[1] is None
    (2, (3, 50), True)
    """

    signals: Sequence[SignalArray | None]
    sampling_rate: float
    channel_names: tuple[str, ...]
    files: Sequence[str | None] | None = None
    name: str = ""
    ids: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.signals)

    @overload
    def __getitem__(self, key: int) -> SignalArray | None: ...

    @overload
    def __getitem__(self, key: slice | NDArray[Any] | list[int]) -> SensorSignals: ...

    def __getitem__(self, key: Any) -> SignalArray | SensorSignals | None:
        if isinstance(key, (int, np.integer)):
            return self.signals[int(key)]
        return self.take(as_positions(key, len(self)))

    def __iter__(self) -> Iterator[SignalArray | None]:
        return (self.signals[row] for row in range(len(self)))

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return len(self.channel_names)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which rows have the sensor, (n,). Signals in files are read for it, one at a time."""
        return np.fromiter((signal is not None for signal in self), dtype=bool, count=len(self))

    def take(self, rows: NDArray[np.intp]) -> SensorSignals:
        """The rows at the given positions."""
        files = None if self.files is None else _taken(self.files, rows)
        ids = None if self.ids is None else [self.ids[row] for row in rows]
        return replace(self, signals=_taken(self.signals, rows), files=files, ids=ids)

    def channel(self, number: int) -> SensorSignals:
        """The signals of one channel, as a sensor of its own."""
        if self.n_channels == 1:
            return self
        return replace(self, signals=SomeChannels(self.signals, (number,)), channel_names=(self.channel_names[number],))

    def to_array(self, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """All signals as one (n_rows, n_channels, n_samples) array, NaN where the sensor is missing.

        They must have the same length.
        """
        lengths = {signal.shape[1]: row for row, signal in enumerate(self) if signal is not None}
        if len(lengths) > 1:
            (one, row), (other, far) = list(lengths.items())[:2]
            raise ValueError(
                f"Signals of different lengths fit no array: {self.place(row)} has {one} samples, {self.place(far)} has {other}. "
                "Take them one by one, or cut windows of one length."
            )
        array = np.full((len(self), self.n_channels, next(iter(lengths), 0)), np.nan, dtype=dtype)
        for row, signal in enumerate(self):
            if signal is not None:
                array[row] = signal
        return array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.to_array(np.float64 if dtype is None else dtype)

    def place(self, row: int) -> str:
        """The row at a position, its sensor and its file, for error messages."""
        file = None if self.files is None else self.files[row]
        name = row if self.ids is None else repr(self.ids[row])
        return f"row {name}, sensor {self.name!r}" + ("" if file is None else f" (file '{file}')")


class LazySequence(Sequence[Any]):
    """Items that are made when they are asked for: subclasses define ``__len__`` and ``item``."""

    def item(self, row: int) -> Any:
        """The item at a position from 0 to n - 1."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return Taken(self, as_positions(key, len(self)))
        row = index(key) + (len(self) if key < 0 else 0)
        if not 0 <= row < len(self):
            raise IndexError(f"There is no item {key}; there are {len(self)}.")
        return self.item(row)


@dataclass(frozen=True, eq=False)
class Taken(LazySequence):
    """Some of the items of another sequence, in another order; None at -1."""

    items: Any
    rows: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.rows)

    def item(self, row: int) -> Any:
        """The item at a position."""
        position = int(self.rows[row])
        return None if position < 0 else self.items[position]


@dataclass(frozen=True, eq=False)
class Mapped(LazySequence):
    """A function of the items of another sequence; None stays None."""

    items: Sequence[Any]
    function: Callable[[Any], Any]

    def __len__(self) -> int:
        return len(self.items)

    def item(self, row: int) -> Any:
        """The item at a position."""
        item = self.items[row]
        return None if item is None else self.function(item)


@dataclass(frozen=True, eq=False)
class SomeChannels(LazySequence):
    """Some channels of signals of several."""

    signals: Sequence[SignalArray | None]
    numbers: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.signals)

    def item(self, row: int) -> Any:
        """The signal at a position."""
        signal = self.signals[row]
        return None if signal is None else signal[list(self.numbers)]


@dataclass(frozen=True, eq=False)
class Recordings:
    """Rows of several sensors with identifiers, labels and groups.

    Like a DataFrame it has rows, and a column for each sensor: ``recordings["left"]`` is a
    :class:`SensorSignals`, and ``recordings[rows]`` with a slice, a mask or an array of numbers is the ``Recordings``
    of those rows, so that scikit-learn can split it.

    Parameters
    ----------
    sensors : dict of sensor name -> SensorSignals
        All with the same number of rows.
    ids : sequence, optional
        Identifiers of the rows, each once; None: ``"0"``, ``"1"``, ...
    labels : sequence, optional
        Class of each row, None where it is not labeled; None: no row is labeled.
    groups : sequence, optional
        The recording, person or day of each row: rows of a group should not be on both sides of a split.
    times : (n_rows, 2) array, optional
        Start and end of each row in seconds, if it was cut from a longer recording.

    Attributes
    ----------
    ids : ndarray of str, shape (n,)
    labels : ndarray of object, shape (n,)
        ``y`` of the estimators.
    groups : ndarray or None, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.recordings import Recordings, SensorSignals
    >>> left = SensorSignals(list(np.zeros((4, 3, 50))), 25.0, ("x", "y", "z"))
    >>> rows = Recordings({"left": left}, labels=["walk", None, "run", None], groups=["ann", "ann", "bob", "bob"])
    >>> len(rows), rows[:2].labels.tolist(), rows["left"].sampling_rate
    (4, ['walk', None], 25.0)
    """

    sensors: Mapping[str, SensorSignals]
    ids: NDArray[np.object_] = None  # type: ignore[assignment]
    labels: NDArray[np.object_] = None  # type: ignore[assignment]
    groups: NDArray[np.object_] | None = None
    times: NDArray[np.float64] | None = None
    n: int = field(init=False)

    def __post_init__(self) -> None:
        if not self.sensors:
            raise ValueError("Recordings need at least one sensor.")
        counts = {name: len(signals) for name, signals in self.sensors.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
            raise ValueError(
                f"All sensors must have the same number of rows, with None where a sensor is missing; they have {listed}."
            )
        n = next(iter(counts.values()))
        ids = np.array([str(row) for row in range(n)] if self.ids is None else list(map(str, self.ids)), dtype=object)
        labels = np.full(n, None, dtype=object) if self.labels is None else as_column("labels", self.labels, n)
        groups = None if self.groups is None else as_column("groups", self.groups, n)
        as_column("ids", ids, n)
        repeated = first_repeated(ids)
        if repeated is not None:
            raise ValueError(f"The identifier {repeated!r} occurs more than once; each row needs its own.")
        named = {name: replace(signals, name=name, ids=ids.tolist()) for name, signals in self.sensors.items()}
        times = None if self.times is None else np.asarray(self.times, dtype=np.float64).reshape(n, 2)
        given = {"n": n, "ids": ids, "labels": labels, "groups": groups, "sensors": named, "times": times}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.n

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of sensors."""
        return self.n, len(self.sensors)

    @property
    def columns(self) -> list[str]:
        """Names of the sensors."""
        return list(self.sensors)

    @property
    def sampling_rates(self) -> dict[str, float]:
        """Samples per second of each sensor."""
        return {name: signals.sampling_rate for name, signals in self.sensors.items()}

    @overload
    def __getitem__(self, key: str) -> SensorSignals: ...

    @overload
    def __getitem__(self, key: slice | NDArray[Any] | list[int] | list[str]) -> Recordings: ...

    def __getitem__(self, key: Any) -> SensorSignals | Recordings:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # how scikit-learn takes rows
            key = key[0]
        if isinstance(key, str):
            return self.sensors[self._known(key)]
        if isinstance(key, list) and key and isinstance(key[0], str):
            return replace(self, sensors={name: self.sensors[self._known(name)] for name in key})
        return self.take(as_positions(key, self.n))

    def take(self, rows: NDArray[np.intp]) -> Recordings:
        """The rows at the given positions."""
        return Recordings(
            {name: signals.take(rows) for name, signals in self.sensors.items()},
            ids=self.ids[rows],
            labels=self.labels[rows],
            groups=None if self.groups is None else self.groups[rows],
            times=None if self.times is None else self.times[rows],
        )

    def __repr__(self) -> str:
        names = list(self.sensors)
        more = "" if len(names) <= SHOWN else f" and {len(names) - SHOWN} more"
        shown = ", ".join(
            f"{name} ({self.sensors[name].n_channels} x {self.sensors[name].sampling_rate:g} Hz)"
            for name in names[:SHOWN]
        )
        n_labeled = sum(label is not None for label in self.labels)
        return f"<Recordings: {self.n} rows, {n_labeled} labeled; sensors {shown}{more}>"

    def _known(self, name: str) -> str:
        if name not in self.sensors:
            raise KeyError(f"There is no sensor {name!r}; the sensors are {', '.join(map(repr, self.sensors))}.")
        return name


def as_positions(key: slice | ArrayLike, n: int) -> NDArray[np.intp]:
    """Positions of a slice, a mask or an array of (possibly negative) numbers."""
    return np.arange(n, dtype=np.intp)[key if isinstance(key, slice) else _as_index(key)]


def _taken(items: Sequence[Any], rows: NDArray[np.intp]) -> Sequence[Any]:
    return [items[row] for row in rows] if isinstance(items, (list, tuple)) else Taken(items, rows)


def _as_index(key: ArrayLike) -> NDArray[Any]:
    array = np.asarray(key)
    return array.astype(np.intp) if array.size == 0 else array


def as_column(name: str, values: Sequence[Any] | NDArray[Any], n: int) -> NDArray[np.object_]:
    """One entry per row as an object array; None, NaN and the NA and NaT of pandas become None."""
    entries = list(values.tolist() if isinstance(values, np.ndarray) else values)
    if len(entries) != n:
        raise ValueError(f"{name} has {len(entries)} entries for {n} rows; give one per row.")
    column = np.empty(n, dtype=object)
    for row, entry in enumerate(entries):
        column[row] = None if is_missing(entry) else entry
    return column


def is_missing(entry: object) -> bool:
    """Whether an entry is None, NaN, or the NA or NaT of pandas."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, (float, np.floating)) and bool(np.isnan(entry))


def first_repeated(values: Sequence[Any] | NDArray[Any]) -> Any:
    """The first value that occurred before, or None."""
    seen = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
