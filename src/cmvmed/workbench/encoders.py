"""Columns and signals as numbers: one encoder per column, fitted on the training rows, with plain fields only.

An encoder gives a block of features and says in which rows its column is present. Single gaps are filled: by the mean of
the training rows, as in the estimators, by no category, by no word. A row in which no column of a view is present is NaN
throughout, which is how the estimators know that the sensor was absent. Fields are texts, numbers and tuples of them, so
that :func:`encoder_state` can be written to any file and :func:`encoder_from_state` reads it again.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import NoneType, UnionType
from typing import Any, ClassVar, Protocol, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

from cmvmed.features import MFCC, TextView, WindowFeatures
from cmvmed.recordings import SensorSignals
from cmvmed.recordings.audio_files import audio_header
from cmvmed.recordings.resampling import resampled_signals
from cmvmed.workbench.column_kinds import Cells, missing_cells, read_booleans, read_numbers, read_times
from cmvmed.workbench.frames import BoolArray, FloatArray, RawTable, Series, Signal, pandas
from cmvmed.workbench.user_errors import ProjectError, abbreviate, as_project_error, plural

__all__ = ["ViewEncoder", "encoder_from_state", "encoder_state", "fit_column"]

Matrix: TypeAlias = Any  # (n, d): an array or a scipy.sparse.csr_array

MAX_CATEGORIES = 50  # of a column; rarer ones, and new ones, have no feature
MAX_TERMS = 5000  # words of a column of texts
MAX_BANDS = 8  # frequency bands of a series
DAY, WEEK, YEAR = 86400.0, 7 * 86400.0, 365.2425 * 86400.0
CYCLES = {"day": DAY, "week": WEEK, "year": YEAR}


@dataclass(frozen=True)
class Block:
    """Features of one column, and the rows in which it is present."""

    values: Matrix
    present: BoolArray


class ColumnEncoder(Protocol):
    """Encoder of one column."""

    kind: ClassVar[str]

    @property
    def column(self) -> str:
        """Name of the column in the user's data."""

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the block."""

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        """The features of all rows; ``standardize`` gives numbers the scale of words and categories."""

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        """The block of a table that lacks the column."""


@dataclass(frozen=True)
class NumberEncoder:
    """A number, or a truth value as 0 and 1; gaps become the mean, as in the estimators."""

    kind: ClassVar[str] = "number"
    column: str
    mean: float
    scale: float
    is_boolean: bool = False

    @property
    def feature_names(self) -> list[str]:
        return [self.column]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        cells = _read_as(table, self.column, "boolean" if self.is_boolean else "number")
        present = ~np.isnan(cells.values)
        return Block(self._scaled(np.where(present, cells.values, self.mean), standardize), present)

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        return Block(self._scaled(np.full(n_rows, self.mean), standardize), np.zeros(n_rows, dtype=bool))

    def _scaled(self, values: FloatArray, standardize: bool) -> FloatArray:
        return ((values - self.mean) / self.scale if standardize else values)[:, np.newaxis]


@dataclass(frozen=True)
class DateEncoder:
    """Days since the first training row, and the phase of the day, week and year where the training rows span them."""

    kind: ClassVar[str] = "date"
    column: str
    origin: float  # seconds since 1970
    fill: float
    scale: float  # days
    cycles: tuple[str, ...]
    day_first: bool | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether a training table can have given these values."""
        return set(self.cycles) <= CYCLES.keys()

    @property
    def feature_names(self) -> list[str]:
        phases = [f"{self.column}.{wave}_{cycle}" for cycle in self.cycles for wave in ("sin", "cos")]
        return [f"{self.column}.days", *phases]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        cells = _checked(table, self.column, read_times(table.frame[self.column], day_first=self.day_first), "a date")
        present = ~np.isnan(cells.values)
        return Block(self._features(np.where(present, cells.values, self.fill), standardize), present)

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        return Block(self._features(np.full(n_rows, self.fill), standardize), np.zeros(n_rows, dtype=bool))

    def _features(self, seconds: FloatArray, standardize: bool) -> FloatArray:
        days = (seconds - self.origin) / DAY / (self.scale if standardize else 1.0)
        angles = [2.0 * np.pi * seconds / CYCLES[cycle] for cycle in self.cycles]
        return np.column_stack([days, *(wave(angle) for angle in angles for wave in (np.sin, np.cos))])


@dataclass(frozen=True)
class CategoryEncoder:
    """One feature per category; a category that the training rows did not have gives zeros."""

    kind: ClassVar[str] = "category"
    column: str
    categories: tuple[str, ...]

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.column}={category}" for category in self.categories]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        series = table.frame[self.column]
        present = ~missing_cells(series)
        one_hot = OneHotEncoder(
            categories=[np.array(self.categories, dtype=object)], handle_unknown="ignore", sparse_output=False
        )
        values = one_hot.fit(np.array(self.categories, dtype=object)[:, None]).transform(
            category_texts(series)[:, None]
        )
        return Block(np.asarray(values), np.asarray(present))

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        return Block(np.zeros((n_rows, len(self.categories))), np.zeros(n_rows, dtype=bool))


@dataclass(frozen=True)
class TextEncoder:
    """Bag of words with tf-idf weights; a text without a known word counts as absent."""

    kind: ClassVar[str] = "text"
    column: str
    terms: tuple[str, ...]
    idf: tuple[float, ...]

    @property
    def is_consistent(self) -> bool:
        """Whether a training table can have given these values."""
        return len(self.terms) == len(self.idf)

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.column}: {term}" for term in self.terms]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        vectorizer = TfidfVectorizer(vocabulary=list(self.terms))
        vectorizer.idf_ = np.array(self.idf)
        values = csr_array(vectorizer.transform(_texts(table.frame[self.column])))
        return Block(values, np.diff(values.indptr) > 0)

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        return Block(csr_array((n_rows, len(self.terms))), np.zeros(n_rows, dtype=bool))


@dataclass(frozen=True)
class SoundEncoder:
    """Cepstral coefficients of sound files."""

    kind: ClassVar[str] = "sound"
    column: str
    sampling_rate: float
    channel: int | None = None

    @property
    def _mfcc(self) -> MFCC:
        return MFCC(self.sampling_rate, channel=self.channel, clipping="ignore")

    @property
    def feature_names(self) -> list[str]:
        return [f"{self.column}.{name}" for name in self._mfcc.get_feature_names_out()]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        items = table.signals[self.column].items
        sensor = _at_rate(items, self.sampling_rate)
        values = self._mfcc.fit_transform(list(items) if sensor is None else sensor)
        return Block(values, ~np.isnan(values).all(axis=1))

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        return Block(np.full((n_rows, len(self.feature_names)), np.nan), np.zeros(n_rows, dtype=bool))


@dataclass(frozen=True)
class SeriesEncoder:
    """Statistics and spectral bands of time series, which may differ in length; gaps are interpolated."""

    kind: ClassVar[str] = "series"
    column: str
    sampling_rate: float
    n_bands: int

    @property
    def is_consistent(self) -> bool:
        """Whether a training table can have given these values."""
        return 0 <= self.n_bands <= MAX_BANDS

    @property
    def _features(self) -> WindowFeatures:
        return WindowFeatures(self.sampling_rate, n_bands=self.n_bands, channel_names=[self.column])

    @property
    def feature_names(self) -> list[str]:
        return list(self._features.fit(np.zeros((1, 1, 2))).get_feature_names_out())

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        items: Any = table.signals[self.column].items
        sensor = _at_rate(items, self.sampling_rate)
        if sensor is not None:
            with as_project_error():
                values = self._features.fit_transform(sensor)
            return Block(values, ~np.isnan(values).all(axis=1))
        values = np.full((len(items), len(self.feature_names)), np.nan)
        for length, rows in _rows_by_length(items).items():
            if length < max(2, 2 * self.n_bands):
                raise ProjectError(
                    f"Column {self.column!r}, {table.place(rows[0])}: a series of {plural(length, 'value')} is too short; the "
                    f"shortest training series allows {max(2, 2 * self.n_bands)}."
                )
            block = np.stack([interpolated(items[row]) for row in rows])
            values[rows] = self._features.fit_transform(block)
        return Block(values, ~np.isnan(values).all(axis=1))

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        return Block(np.full((n_rows, len(self.feature_names)), np.nan), np.zeros(n_rows, dtype=bool))


ENCODERS: dict[str, type[Any]] = {
    encoder.kind: encoder
    for encoder in (NumberEncoder, DateEncoder, CategoryEncoder, TextEncoder, SoundEncoder, SeriesEncoder)
}


@dataclass(frozen=True)
class ViewEncoder:
    """The encoders of the columns of a view."""

    name: str
    columns: tuple[Any, ...]  # ColumnEncoder

    @property
    def column_names(self) -> list[str]:
        """Names of the columns in the user's data."""
        return [column.column for column in self.columns]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return [name for column in self.columns for name in column.feature_names]

    def encode(self, table: RawTable) -> Matrix:
        """Features (n, d) of a table; NaN throughout in rows where the view is absent."""
        has_text = any(column.kind == "text" for column in self.columns)
        blocks = [
            column.encode(table, standardize=has_text)
            if column.column in table.names
            else column.absent(table.n_rows, standardize=has_text)
            for column in self.columns
        ]
        present = np.any([block.present for block in blocks], axis=0)
        if has_text:
            sparse: list[Any] = [
                block.values if issparse(block.values) else csr_array(_filled(block)) for block in blocks
            ]
            return with_absent_rows(csr_array(hstack(sparse, format="csr")), ~present)
        values = np.hstack([_filled(block) for block in blocks])
        values[~present] = np.nan
        return values


def cells_present(table: RawTable, column: str) -> BoolArray:
    """Which rows have a cell or a signal in a column, (n,)."""
    if column in table.signals:
        return table.signals[column].present
    return np.asarray(~missing_cells(table.frame[column]))


def fit_column(
    table: RawTable, column: str, kind: str, *, day_first: bool | None = None, sampling_rate: float | None = None
) -> ColumnEncoder:
    """Fit the encoder of a column on the training rows."""
    if kind in ("sound", "series"):
        signal = table.signals[column]
        return (
            _fit_sound(column, signal, sampling_rate) if signal.is_sound else _fit_series(column, signal, sampling_rate)
        )
    if kind in ("number", "boolean"):
        return _fit_number(table, column, kind)
    if kind == "date":
        return _fit_date(table, column, day_first)
    if kind == "category":
        texts = category_texts(table.frame[column])
        counts = pandas().Series(texts[~missing_cells(table.frame[column])]).value_counts(sort=True)
        return CategoryEncoder(column, tuple(sorted(map(str, counts.index[:MAX_CATEGORIES]))))
    return _fit_text(table, column)


def encoder_state(encoder: ViewEncoder) -> dict[str, Any]:
    """The encoder as texts, numbers and lists of them."""
    return {"name": encoder.name, "columns": [{"kind": column.kind, **asdict(column)} for column in encoder.columns]}


def encoder_from_state(state: Mapping[str, Any]) -> ViewEncoder:
    """The encoder that :func:`encoder_state` described; a state that no encoder can have is an error."""
    return ViewEncoder(
        _typed(state["name"], str, "name"), tuple(_column_from_state(entry) for entry in state["columns"])
    )


def _column_from_state(entry: Mapping[str, Any]) -> Any:
    encoder, types = ENCODERS[entry["kind"]], get_type_hints(ENCODERS[entry["kind"]])
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items() if name != "kind"
    }
    column = encoder(**{name: _typed(value, types[name], name) for name, value in given.items()})
    if not getattr(column, "is_consistent", True):
        raise ProjectError(f"the encoder of column {column.column!r:.100} holds values that do not fit together")
    return column


def _typed(value: Any, kind: Any, name: str) -> Any:
    """The value, if it is of the type that a field is declared with."""
    alternatives = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    for one in alternatives:
        if get_origin(one) is tuple and isinstance(value, tuple):
            if all(type(item) is get_args(one)[0] for item in value):
                return value
        elif type(value) is one or (value is None and one is NoneType):
            return value
        elif one is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    raise ProjectError(f"an encoder has {name} = {value!r:.100}")


def _fit_number(table: RawTable, column: str, kind: str) -> NumberEncoder:
    values = _read_as(table, column, kind, strict=False).values
    known = values[~np.isnan(values)]
    scale = float(known.std())
    return NumberEncoder(column, float(known.mean()), scale or 1.0, kind == "boolean")


def _fit_date(table: RawTable, column: str, day_first: bool | None) -> DateEncoder:
    seconds = read_times(table.frame[column], day_first=day_first).values
    known = seconds[~np.isnan(seconds)]
    span = float(np.ptp(known))
    has_time = bool((known % DAY != 0).any())
    spanned = [cycle for cycle in CYCLES if span >= CYCLES[cycle] or (cycle == "day" and span > 0)]
    cycles = tuple(cycle for cycle in spanned if cycle != "day" or has_time)
    return DateEncoder(column, float(known.min()), float(known.mean()), span / DAY or 1.0, cycles, day_first)


def _fit_text(table: RawTable, column: str) -> TextEncoder:
    try:
        fitted = TextView(max_features=MAX_TERMS).fit(_texts(table.frame[column])).vectorizer_
    except ValueError as error:
        raise ProjectError(
            f"Column {column!r} of {table.source} has no words to learn from ({error}); put it into ignore, or say its kind "
            f'in [columns], as in {column} = "category".'
        ) from error
    return TextEncoder(column, tuple(map(str, fitted.get_feature_names_out())), tuple(fitted.idf_.tolist()))


def _fit_sound(column: str, signal: Signal, sampling_rate: float | None) -> SoundEncoder:
    if isinstance(signal.items, SensorSignals):
        return SoundEncoder(column, sampling_rate or signal.items.sampling_rate)
    files = [item for item in signal.items if item is not None]
    if sampling_rate is None:
        sampling_rate = float(min(audio_header(file).samplerate for file in files))
    return SoundEncoder(column, sampling_rate, signal.channel)


def _fit_series(column: str, signal: Signal, sampling_rate: float | None) -> SeriesEncoder:
    if isinstance(signal.items, SensorSignals):
        shortest = min(item.shape[1] for item in signal.items if item is not None)
        return SeriesEncoder(column, signal.items.sampling_rate, min(MAX_BANDS, shortest // 2))
    shortest = min(len(item) for item in signal.items if item is not None)
    return SeriesEncoder(column, sampling_rate or 1.0, min(MAX_BANDS, shortest // 2))


def _read_as(table: RawTable, column: str, kind: str, *, strict: bool = True) -> Cells:
    series = table.frame[column]
    cells = read_booleans(series) if kind == "boolean" else read_numbers(series, table.decimal)
    expected = "yes or no" if kind == "boolean" else "a number"
    return _checked(table, column, cells, expected) if strict else cells


def _checked(table: RawTable, column: str, cells: Cells, expected: str) -> Cells:
    """Raise if the column is of another kind than in training; a few bad cells count as gaps."""
    if cells.bad.any() and not cells.is_readable:
        row = int(np.flatnonzero(cells.bad)[0])
        raise ProjectError(
            f"Column {column!r}, {table.place(row)}: {str(table.frame[column].iloc[row])!r} is not {expected}, which the column "
            "held in the training data; correct the column, leave unknown cells empty, or set decimal or separator."
        )
    return cells


def category_texts(series: Series) -> Any:
    """The cells of a column of categories as texts without surrounding blanks, object (n,); missing cells are ''."""
    missing = missing_cells(series)
    texts = [as_text(cell) for cell in series.astype(object)]
    return np.where(missing, "", np.array(texts, dtype=object))


def as_text(cell: object) -> str:
    """A cell as text; 3.0 becomes 3, because a column of integers with gaps is read as floats."""
    if isinstance(cell, (float, np.floating)) and np.isfinite(cell) and float(cell).is_integer():
        return str(int(cell))
    return str(cell).strip()


def _texts(series: Series) -> list[str]:
    missing = missing_cells(series)
    return ["" if gone else str(cell) for cell, gone in zip(series.astype(object), missing, strict=True)]


def _rows_by_length(items: Any) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for row, item in enumerate(items):
        if item is not None and not np.isnan(item).all():
            groups.setdefault(len(item), []).append(row)
    return groups


def _at_rate(items: Any, sampling_rate: float) -> SensorSignals | None:
    """Signals that know their sampling rate at the rate of the training rows; None for other items."""
    if not isinstance(items, SensorSignals):
        return None
    return resampled_signals(items, sampling_rate)


def interpolated(series: FloatArray) -> FloatArray:
    """The series with gaps filled along straight lines."""
    values = np.asarray(series, dtype=float)
    known = np.isfinite(values)
    return values if known.all() else np.interp(np.arange(len(values)), np.flatnonzero(known), values[known])


def _filled(block: Block) -> FloatArray:
    """The block with zeros for signals that are absent beside other columns of the view."""
    return np.where(np.isnan(block.values), 0.0, block.values)


def with_absent_rows(matrix: "csr_array[Any]", absent: BoolArray) -> "csr_array[Any]":
    """The matrix with NaN stored in all columns of the absent rows."""
    if not absent.any():
        return matrix
    n_rows, n_columns = matrix.shape
    keep = csr_array((np.where(absent, 0.0, 1.0), (np.arange(n_rows), np.arange(n_rows))), shape=(n_rows, n_rows))
    rows = np.repeat(np.flatnonzero(absent), n_columns)
    columns = np.tile(np.arange(n_columns), int(absent.sum()))
    nan = csr_array((np.full(len(rows), np.nan), (rows, columns)), shape=matrix.shape)
    return csr_array(keep @ matrix + nan)


def unseen_categories(encoder: CategoryEncoder, table: RawTable) -> str:
    """Categories of a table that have no feature, for a message; '' if there are none."""
    texts = set(category_texts(table.frame[encoder.column])) - set(encoder.categories) - {""}
    return abbreviate(sorted(texts)) if texts else ""
