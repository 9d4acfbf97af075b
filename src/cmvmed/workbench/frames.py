"""The rows of a user's files before they are views: columns of cells, and signals of one waveform per row."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed._optional import import_optional
from cmvmed.recordings import SensorSignals
from cmvmed.recordings.container import LazySequence

__all__ = ["Block", "BoolArray", "FloatArray", "Frame", "Matrix", "RawTable", "Series", "Signal", "pandas"]

Frame: TypeAlias = Any  # pandas.DataFrame; pandas is an extra without types
Series: TypeAlias = Any  # pandas.Series
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
Matrix: TypeAlias = Any  # (n, d): an array or a scipy.sparse.csr_array


def pandas() -> Any:
    """Import pandas."""
    return import_optional("pandas", "workbench", "Reading tables")


@dataclass(frozen=True)
class Block:
    """Features of one column or sensor, and the rows in which it is present."""

    values: Matrix
    present: BoolArray


@dataclass(frozen=True, eq=False)
class RowsOrNone(LazySequence):
    """Items of a sequence at the given positions, read when they are asked for; None at -1."""

    items: Any
    rows: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.rows)

    def item(self, row: int) -> Any:
        """The item at a position."""
        position = int(self.rows[row])
        return None if position < 0 else self.items[position]


@dataclass(frozen=True)
class Signal:
    """One waveform per row: the name of a sound file, an array of samples, or None where there is none.

    Signals of one channel in ``SensorSignals``, which know their sampling rate, are read when they are asked for.
    """

    items: Sequence[Any] | SensorSignals
    is_sound: bool
    channel: int | None = None  # of sound files with several channels

    def take(self, rows: NDArray[np.intp]) -> "Signal":
        """The rows at the given positions; -1 gives None."""
        taken = RowsOrNone(self.items, rows)
        if isinstance(self.items, SensorSignals):
            sensor = SensorSignals(taken, self.items.sampling_rate, self.items.channel_names, name=self.items.name)
            return Signal(sensor, self.is_sound)
        return Signal(list(taken), self.is_sound, self.channel)

    @property
    def present(self) -> BoolArray:
        """Which rows have a waveform, (n,)."""
        return np.array([item is not None for item in self.items], dtype=bool)


@dataclass(frozen=True)
class RawTable:
    """Rows as they stand in the files.

    Attributes
    ----------
    source : name of the file or folder, for messages
    frame : one column of cells per name, all with the index 0, 1, ...
    signals : columns that hold a waveform per row
    decimal : decimal sign of numbers that are text
    separator : of the cells of a line, if it is not the usual one of the format
    lines : number of the line of each row, if the file has lines
    messages : what was assumed when the file was read
    ids : identifiers that the source itself gives, such as the names of sound files
    """

    source: str
    frame: Frame
    signals: dict[str, Signal] = field(default_factory=dict)
    decimal: str = "."
    separator: str | None = None
    lines: NDArray[np.intp] | None = None
    messages: tuple[str, ...] = ()
    ids: Sequence[str] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    @property
    def names(self) -> list[str]:
        """Names of all columns, signals last."""
        return [*map(str, self.frame.columns), *self.signals]

    def place(self, row: int) -> str:
        """Where a row stands: its line if the file has lines."""
        where = f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"
        return f"{where} of {self.source}"
