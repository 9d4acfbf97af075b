"""The columns of a user's files: cells and signals, one per row, and what kind of cells a column holds.

A column of text is looked at as a whole: it holds numbers if nearly all its cells spell one, and so on. The functions
that read cells as numbers or times are those that decide.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed._optional import import_optional
from cmvmed.recordings import SensorSignals
from cmvmed.recordings.container import Taken
from cmvmed.recordings.sound_files import read_audio
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

Frame: TypeAlias = Any  # pandas.DataFrame; pandas is an extra without types
Series: TypeAlias = Any  # pandas.Series
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
Matrix: TypeAlias = Any  # (n, d): an array or a scipy.sparse.csr_array
Kind: TypeAlias = Literal["number", "boolean", "date", "category", "text", "identifier", "empty", "unusable"]
KINDS = ("number", "boolean", "date", "category", "text")  # those that a project file may set
EMPTY_CELLS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null"})
EMPTY_NUMBERS = EMPTY_CELLS | {
    "-",
    "--",
    "?",
    "none",
    "missing",
    "unknown",
    "n.a.",
    ".",
}
TRUE, FALSE = frozenset({"true", "yes", "y", "t", "on"}), frozenset({"false", "no", "n", "f", "off"})
MAX_BAD_SHARE = 0.1  # cells of a column of numbers or dates that may spell none
HUGE = 1e100  # absolute value from which on squares overflow
TEXT_WORDS, TEXT_DISTINCT = 3.0, 0.2  # words per cell, and share of different cells, of a column of texts
MIN_IDENTIFIERS = 20  # rows from which a column whose cells all differ is taken for an identifier
OTHER_SIGN = {".": ",", ",": "."}
SIGN_NAMES = {".": "point", ",": "comma"}
# A group of thousands does not begin with 0 and has three digits: 0,741 can only have a decimal comma.
_GROUPED = {s: rf"[+-]?[1-9]\d{{0,2}}(?:[{o}]\d{{3}})+(?:[{s}]\d+)?" for s, o in OTHER_SIGN.items()}
_NUMBER = {
    s: rf"{_GROUPED[s]}|[+-]?(?:\d+(?:[{s}]\d*)?|[{s}]\d+)(?:[eE][+-]?\d+)?" for s in OTHER_SIGN
}  # by decimal sign
_DAY_AND_MONTH = r"^(\d{1,2})[/.](\d{1,2})[/.](\d{4})(.*)$"
_CLOCK = r"^(\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)$"
_ZONE = re.compile(r"(?:Z|UTC|:\d{2}(?:\.\d+)? ?[+-]\d{2}:?\d{2})$")
_HAS_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{4}|^\d{1,2}:\d{2}")
_EPOCH = "1970-01-01"
INVISIBLE = "\u200b\u2060\ufeff\u00ad"  # zero-width space and joiner, byte order mark, soft hyphen


def pandas() -> Any:
    """Import pandas."""
    return import_optional("pandas", "workbench", "Reading tables")


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
        taken = Taken(self.items, rows)
        if isinstance(self.items, SensorSignals):
            sensor = SensorSignals(taken, self.items.sampling_rate, self.items.channel_names, name=self.items.name)
            return Signal(sensor, self.is_sound)
        return Signal(list(taken), self.is_sound, self.channel)

    def waveform(self, row: int) -> tuple[FloatArray, float | None]:
        """Samples (n_samples,) of a row that has some, and their rate in Hz if the file says it."""
        item: Any = self.items[row]
        if self.is_sound and not isinstance(self.items, SensorSignals):
            channels, rate = read_audio(item)
            return channels[self.channel or 0].astype(np.float64), rate
        known = self.items.sampling_rate if isinstance(self.items, SensorSignals) else None
        return np.asarray(item, dtype=np.float64).ravel(), known

    @property
    def present(self) -> BoolArray:
        """Which rows have a waveform, (n,)."""
        return np.array([item is not None for item in self.items], dtype=bool)


def envelope(samples: FloatArray, n_points: int) -> tuple[FloatArray, FloatArray]:
    """Positions and values of at most ``n_points`` to draw: the lowest and highest of equal stretches, so no peak is lost."""
    n = samples.size
    if n <= n_points:
        return np.arange(n, dtype=np.float64), samples
    edges = np.linspace(0, n, n_points // 2 + 1).astype(np.intp)
    low, high = np.fmin.reduceat(samples, edges[:-1]), np.fmax.reduceat(samples, edges[:-1])
    return np.repeat((edges[:-1] + edges[1:]) / 2.0, 2), np.stack([low, high], axis=1).ravel()


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

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each column of cells, found from them."""
        return {str(name): column_kind(self.frame[name], self.decimal) for name in self.frame.columns}

    def place(self, row: int) -> str:
        """Where a row stands: its line if the file has lines."""
        where = f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"
        return f"{where} of {self.source}"

    def lacks(self, column: str, key: str) -> ProjectError:
        """The error for a column that a key of [data] names and that is not there."""
        return ProjectError(
            f"{self.source} has no column {column!r}, which {key} in [data] names.{did_you_mean(column, self.names)} Its "
            f"columns are {abbreviate(self.names)}."
        )


@dataclass(frozen=True)
class Cells:
    """A column read as numbers: NaN where a cell is empty or cannot be read.

    ``bad`` marks the cells that are neither empty nor readable, ``clash`` two cells with different decimal signs.
    """

    values: FloatArray
    bad: BoolArray
    note: str = ""  # what was assumed
    decimal: str = "."  # sign of the cells that are text
    day_first: bool | None = None  # of dates such as 3/4/2025, if there are any
    clash: tuple[int, int] | None = None

    @property
    def is_readable(self) -> bool:
        """Whether so few cells are bad that the column is of this kind."""
        n_good = int((~np.isnan(self.values)).sum())
        return n_good > 0 and self.bad.sum() <= MAX_BAD_SHARE * (n_good + self.bad.sum())


def missing_cells(series: Series, empty: frozenset[str] = EMPTY_CELLS) -> BoolArray:
    """Which cells hold nothing, (n,): null, blank, or a word for it such as NA."""
    missing = series.isna().to_numpy(dtype=bool)
    if _is_text(series):
        missing = missing | _folded(series).isin(empty).to_numpy(dtype=bool)
    return np.asarray(missing)


def cells_present(table: RawTable, column: str) -> BoolArray:
    """Which rows have a cell or a signal in a column, (n,)."""
    if column in table.signals:
        return table.signals[column].present
    return np.asarray(~missing_cells(table.frame[column]))


def as_text(cell: object) -> str:
    """A cell as text; 3.0 becomes 3, because a column of integers with gaps is read as floats."""
    if isinstance(cell, (float, np.floating)) and np.isfinite(cell) and float(cell).is_integer():
        return str(int(cell))
    return str(cell).strip()


def clean_name(name: str) -> str:
    """A name of a file in one form of Unicode (NFC), without invisible characters and surrounding blanks."""
    if name.isascii():
        return name.strip("\0 \t\r\n\f\v")
    return unicodedata.normalize("NFC", name).translate(dict.fromkeys(map(ord, INVISIBLE))).strip("\0").strip()


def column_kind(series: Series, decimal: str = ".") -> Kind:
    """The kind of a column, from its type if it has one and else from its cells."""
    if series.dtype.kind == "b" or str(series.dtype) == "boolean":
        return "empty" if bool(series.isna().all()) else "boolean"
    if is_numeric(series):
        return "unusable" if series.dtype.kind == "c" else "empty" if bool(series.isna().all()) else "number"
    if pandas().api.types.is_datetime64_any_dtype(series.dtype):
        return "empty" if bool(series.isna().all()) else "date"
    if str(series.dtype) == "category":
        return "empty" if bool(series.isna().all()) else "category"
    present = series[~missing_cells(series)]
    if len(present) == 0:
        return "empty"
    if not _is_text(series):
        return _kind_of_objects(present, decimal)
    return _kind_of_text(present, decimal)


def is_numeric(series: Series) -> bool:
    """Whether a column has a type of numbers."""
    return bool(pandas().api.types.is_numeric_dtype(series.dtype))


def is_number(text: str) -> bool:
    """Whether a text is a number with a decimal point."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_cells(
    table: RawTable, column: str, kind: str, *, day_first: bool | None = None, usual_decimal: str = "."
) -> Cells:
    """The cells of a column of numbers, booleans or dates; infinite or huge cells and two decimal signs are errors."""
    series = table.frame[column]
    if kind == "date":
        return read_times(series, day_first=day_first)
    cells = read_booleans(series) if kind == "boolean" else read_numbers(series, table.decimal, usual_decimal)
    huge = np.flatnonzero(np.abs(cells.values) > HUGE)
    if len(huge):
        row = int(huge[0])
        what = "infinite" if np.isinf(cells.values[row]) else "too large to be a measurement"
        raise ProjectError(
            f"Column {column!r}, {table.place(row)}: {str(series.iloc[row])!r} is {what}. Leave the cell empty if the value is "
            "unknown, or write a finite number below 1e100."
        )
    if cells.clash is not None:
        point, comma = (f"{str(series.iloc[row])!r} ({table.place(row)})" for row in cells.clash)
        raise ProjectError(
            f"Column {column!r}: {point} has a decimal point, but {comma} a decimal comma. Write all cells of the column alike."
        )
    return cells


def read_numbers(series: Series, decimal: str = ".", usual_decimal: str = ".") -> Cells:
    """The cells as numbers.

    Parameters
    ----------
    decimal : sign of the file, for cells such as 1,234 if no cell of the column shows what the comma is
    usual_decimal : sign of the column in the training data, for a column in which all such cells have commas
    """
    if series.dtype == object and not _is_text(series):  # files below each other, of which some have texts
        series = series.map(lambda cell: str(cell) if type(cell) in (bool, int, float) and cell == cell else cell)
    if not _is_text(series):
        missing = series.isna().to_numpy(dtype=bool)
        if series.dtype.kind in "mMcb":  # times would be nanoseconds, complex numbers lose a part, yes is not 1
            return Cells(np.full(len(series), np.nan), ~missing, decimal=decimal)
        values = pandas().to_numeric(series, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        return Cells(values, np.asarray(np.isnan(values) & ~missing), decimal=decimal)
    missing = missing_cells(series, EMPTY_NUMBERS)
    text = series.astype(object).where(~missing).astype("str" if _has_str_dtype() else object).str.strip()
    sign, clash = _decimal_sign(text.reset_index(drop=True), decimal, usual_decimal)
    values = _as_floats(text, sign)
    if clash is not None:  # a column of numbers all the same
        values = np.where(np.isnan(values), _as_floats(text, OTHER_SIGN[sign]), values)
    note = "" if clash else _thousands_note(text, values, sign, decimal)
    return Cells(values, np.asarray(np.isnan(values) & ~missing), note, sign, clash=clash)


def holds_plain_numbers(table: RawTable, column: str) -> bool:
    """Whether each cell of a column means the same in any part of the table: a number with a point, or none."""
    if column not in table.frame.columns:
        return True
    series = table.frame[column]
    has_comma = _is_text(series) and bool(series.str.contains(",", regex=False).any())
    return not has_comma and not read_numbers(series, table.decimal).bad.any()


def _decimal_sign(text: Series, decimal: str, usual: str) -> tuple[str, tuple[int, int] | None]:
    """The decimal sign that the cells of a column show, and a cell that needs a point beside one that needs a comma."""
    signed = text[text.str.contains("[.,]", regex=True, na=False).to_numpy(dtype=bool)]
    fits = {sign: signed.str.fullmatch(form).to_numpy(dtype=bool) for sign, form in _NUMBER.items()}
    first = {sign: signed.index[fits[sign] & ~fits[OTHER_SIGN[sign]]][:1].tolist() for sign in fits}
    if first["."] and first[","]:
        return decimal, (first["."][0], first[","][0])
    if first["."] or first[","]:
        return ("." if first["."] else ","), None
    if usual == "," and not signed.str.contains(".", regex=False).any():
        return ",", None
    return decimal, None


def _as_floats(text: Series, decimal: str) -> FloatArray:
    """The numbers that texts spell with a decimal sign, perhaps in groups of thousands; NaN for other texts."""
    grouped = text.str.fullmatch(_GROUPED[decimal]).fillna(False).astype(bool)
    if grouped.any():
        text = text.where(~grouped, text.str.replace(OTHER_SIGN[decimal], "", regex=False))
    if decimal == ",":
        plain = ~text.str.contains(".", regex=False, na=False)
        text = text.where(plain, "no number").str.replace(",", ".", regex=False)
    return np.asarray(pandas().to_numeric(text, errors="coerce").to_numpy(dtype=float, na_value=np.nan))


def _thousands_note(text: Series, values: FloatArray, decimal: str, of_file: str) -> str:
    """What is said of cells that could be thousands as well as decimals, such as 1,234."""
    grouped, decimals = (
        text.str.fullmatch(form).fillna(False).to_numpy(dtype=bool)
        for form in (_GROUPED[decimal], _NUMBER[OTHER_SIGN[decimal]])
    )
    signed = np.flatnonzero(text.str.contains(decimal, regex=False, na=False))
    if decimal != of_file and len(signed) and decimals[signed].all():
        row = int(signed[0])
        return f"{text.iloc[row]!r} is read as {values[row]:g}, with a decimal {SIGN_NAMES[decimal]} as in the training data"
    if not grouped.any() or (grouped & ~decimals).any():  # such as 1,234.5
        return ""
    row = int(np.flatnonzero(grouped)[0])
    name = SIGN_NAMES[OTHER_SIGN[decimal]]
    return (
        f"{text.iloc[row]!r} is read as {values[row]:.0f}, with a {name} between thousands; if it is a decimal {name}, write "
        "the column with decimal points"
    )


def read_booleans(series: Series) -> Cells:
    """The cells as 0 and 1."""
    if not _is_text(series):
        cells = read_numbers(series.astype("Float64") if str(series.dtype) == "boolean" else series.astype(float))
        other = ~np.isin(cells.values, (0.0, 1.0)) & ~np.isnan(cells.values)
        return replace(cells, values=np.where(other, np.nan, cells.values), bad=cells.bad | other)
    missing, folded = missing_cells(series), _folded(series)
    true, false = (folded.isin(words).to_numpy(dtype=bool) for words in (TRUE | {"1"}, FALSE | {"0"}))
    return Cells(np.select([true, false], [1.0, 0.0], np.nan), np.asarray(~(true | false | missing)))


def read_times(series: Series, *, day_first: bool | None = None) -> Cells:
    """The cells as seconds since 1970, UTC if they have a zone; a clock time is one of the first day."""
    if pandas().api.types.is_datetime64_any_dtype(series.dtype):
        zoned = getattr(series.dt, "tz", None) is not None
        times = series.dt.tz_convert("UTC") if zoned else series
        note = "times with a zone are converted to UTC" if zoned else ""
        return Cells(_seconds(times), np.zeros(len(series), dtype=bool), note)
    missing = missing_cells(series)
    text = series.astype(object).where(~missing, None).astype("str" if _has_str_dtype() else object).str.strip()
    text, note, day_first = _iso_text(text, day_first)
    zoned = bool(text.dropna().str.contains(_ZONE.pattern, regex=True).any())
    times = pandas().to_datetime(text, format="ISO8601", errors="coerce", utc=True)
    values = _seconds(times)
    if zoned:
        note = "; ".join(filter(None, [note, "times with a zone are converted to UTC"]))
    return Cells(values, np.asarray(np.isnan(values) & ~missing), note, day_first=day_first)


def _kind_of_objects(present: Series, decimal: str) -> Kind:
    """Kind of a column of Python objects that are not all texts."""
    first = present.iloc[0]
    if isinstance(first, (list, dict, set, tuple, bytes, np.ndarray)):
        return "unusable"
    if all(isinstance(cell, (bool, np.bool_)) for cell in present):
        return "boolean"
    if hasattr(first, "isoformat"):
        return "date"
    return _kind_of_text(present.astype(str), decimal)


def _kind_of_text(present: Series, decimal: str) -> Kind:
    distinct = _folded(present).unique()
    if len(distinct) <= 2 and set(distinct) <= TRUE | FALSE:
        return "boolean"
    if read_numbers(present, decimal).is_readable:
        return "number"
    if _HAS_DATE.search(str(present.iloc[0]).strip()) and read_times(present).is_readable:
        return "date"
    n_words = float(present.str.split().str.len().mean())
    share_distinct = len(distinct) / len(present)
    if n_words >= TEXT_WORDS and share_distinct > TEXT_DISTINCT:
        return "text"
    if share_distinct == 1.0 and len(present) >= MIN_IDENTIFIERS:
        return "text" if n_words > 1.5 else "identifier"
    return "category"


def _iso_text(text: Series, day_first: bool | None) -> tuple[Series, str, bool | None]:
    """Dates such as 3/4/2025 and clock times in the form year-month-day, and which of the numbers was taken as the day.

    None if there are no such dates.
    """
    parts = text.str.extract(_DAY_AND_MONTH)
    slashed = parts[0].notna()
    if not slashed.any():
        clock = text.str.extract(_CLOCK)[0]
        padded = _EPOCH + " " + clock.str.replace(r"^(\d):", r"0\1:", regex=True)
        return text.where(clock.isna(), padded), "", None
    first, second = (parts[i][slashed].astype(int) for i in (0, 1))
    note = ""
    if day_first is None:
        day_first = bool((first > 12).any()) or not bool((second > 12).any())
        if not (first > 12).any() and not (second > 12).any():
            note = (
                f"{text[slashed].iloc[0]!r} is read as day, month, year (set day_first = false if the month is first)"
            )
    day, month = (first, second) if day_first else (second, first)
    time = parts[3][slashed].str.strip().str.replace(r"^(\d):", r"0\1:", regex=True)
    padded = [number.astype(str).str.zfill(2) for number in (month, day)]
    iso = parts[2][slashed] + "-" + padded[0] + "-" + padded[1] + (" " + time).where(time != "", "")
    return text.where(~slashed, iso.reindex(text.index)), note, day_first


def _seconds(times: Series) -> FloatArray:
    naive = times.dt.tz_localize(None) if getattr(times.dt, "tz", None) is not None else times
    elapsed = (naive - pandas().Timestamp(_EPOCH)).dt.total_seconds()
    return np.asarray(elapsed.to_numpy(dtype=float, na_value=np.nan))


def _folded(series: Series) -> Series:
    return series.str.strip().str.lower()


def _is_text(series: Series) -> bool:
    """Whether the cells are texts, besides missing ones."""
    if series.dtype == object:
        return bool(series.dropna().map(lambda cell: isinstance(cell, str)).all())
    return bool(pandas().api.types.is_string_dtype(series.dtype)) and str(series.dtype) != "category"


def _has_str_dtype() -> bool:
    return int(pandas().__version__.split(".")[0]) >= 3
