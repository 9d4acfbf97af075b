"""One column as numbers: an encoder for each kind of column, fitted on the training rows.

An encoder gives a block of features and says in which rows its column is present: ``encode`` for the rows of a table, where
``standardize`` gives numbers the scale of words and categories, and ``absent`` for a table that lacks the column. Single
gaps are filled: by the mean of the training rows, as in the estimators, by no category, by no word.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # its parts are imported when they are used

from cmvmed.workbench.tables.columns import (
    BoolArray,
    Cells,
    FloatArray,
    Matrix,
    RawTable,
    Series,
    as_text,
    missing_cells,
    pandas,
    read_cells,
)
from cmvmed.workbench.user_errors import ProjectError, abbreviate

MAX_CATEGORIES = 50  # of a column; rarer ones, and new ones, have no feature
MAX_TERMS = 5000  # words of a column of texts
DAY, WEEK, YEAR = 86400.0, 7 * 86400.0, 365.2425 * 86400.0
CYCLES = {"day": DAY, "week": WEEK, "year": YEAR}


@dataclass(frozen=True)
class Block:
    """Features of one column or sensor, and the rows in which it is present."""

    values: Matrix
    present: BoolArray


@dataclass(frozen=True)
class OneColumn:
    """What encoders of one column share."""

    column: str

    @property
    def sources(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the block."""
        return [self.column]

    @property
    def n_features(self) -> int:
        """Number of columns of the block."""
        return len(self.feature_names)


@dataclass(frozen=True)
class NumberEncoder(OneColumn):
    """A number, or a truth value as 0 and 1; gaps become the mean, as in the estimators."""

    kind: ClassVar[str] = "number"
    mean: float
    scale: float
    is_boolean: bool = False
    decimal: str = "."  # sign of the training rows

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        """The features of all rows."""
        kind, expected = ("boolean", "yes or no") if self.is_boolean else ("number", "a number")
        read = read_cells(table, self.column, kind, usual_decimal=self.decimal)
        cells = _checked(table, self.column, read, expected)
        present = ~np.isnan(cells.values)
        return Block(self._scaled(np.where(present, cells.values, self.mean), standardize), present)

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        """The block of a table that lacks the column."""
        return Block(self._scaled(np.full(n_rows, self.mean), standardize), np.zeros(n_rows, dtype=bool))

    def _scaled(self, values: FloatArray, standardize: bool) -> FloatArray:
        return ((values - self.mean) / self.scale if standardize else values)[:, np.newaxis]


@dataclass(frozen=True)
class DateEncoder(OneColumn):
    """Days since the first training row, and the phase of the day, week and year where the training rows span them."""

    kind: ClassVar[str] = "date"
    origin: float  # seconds since 1970
    fill: float
    scale: float  # days
    cycles: tuple[str, ...]
    day_first: bool | None = None  # of the training rows

    @property
    def is_consistent(self) -> bool:
        """Whether a training table can have given these values."""
        return set(self.cycles) <= CYCLES.keys()

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the block."""
        phases = [f"{self.column}.{wave}_{cycle}" for cycle in self.cycles for wave in ("sin", "cos")]
        return [f"{self.column}.days", *phases]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        """The features of all rows."""
        read = read_cells(table, self.column, self.kind, day_first=self.day_first)
        cells = _checked(table, self.column, read, "a date")
        present = ~np.isnan(cells.values)
        return Block(self._features(np.where(present, cells.values, self.fill), standardize), present)

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        """The block of a table that lacks the column."""
        return Block(self._features(np.full(n_rows, self.fill), standardize), np.zeros(n_rows, dtype=bool))

    def _features(self, seconds: FloatArray, standardize: bool) -> FloatArray:
        days = (seconds - self.origin) / DAY / (self.scale if standardize else 1.0)
        angles = [2.0 * np.pi * seconds / CYCLES[cycle] for cycle in self.cycles]
        return np.column_stack([days, *(wave(angle) for angle in angles for wave in (np.sin, np.cos))])


@dataclass(frozen=True)
class CategoryEncoder(OneColumn):
    """One feature per category; a category that the training rows did not have gives zeros."""

    kind: ClassVar[str] = "category"
    categories: tuple[str, ...]

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the block."""
        return [f"{self.column}={category}" for category in self.categories]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        """The features of all rows."""
        from sklearn.preprocessing import OneHotEncoder  # slow to import

        series = table.frame[self.column]
        present = ~missing_cells(series)
        one_hot = OneHotEncoder(
            categories=[np.array(self.categories, dtype=object)], handle_unknown="ignore", sparse_output=False
        )
        values = one_hot.fit(np.array(self.categories, dtype=object)[:, None]).transform(
            _category_texts(series)[:, None]
        )
        return Block(np.asarray(values), np.asarray(present))

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        """The block of a table that lacks the column."""
        return Block(np.zeros((n_rows, len(self.categories))), np.zeros(n_rows, dtype=bool))


@dataclass(frozen=True)
class TextEncoder(OneColumn):
    """Bag of words with tf-idf weights; a text without a known word counts as absent."""

    kind: ClassVar[str] = "text"
    terms: tuple[str, ...]
    idf: tuple[float, ...]

    @property
    def is_consistent(self) -> bool:
        """Whether a training table can have given these values."""
        return len(self.terms) == len(self.idf)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the block."""
        return [f"{self.column}: {term}" for term in self.terms]

    def encode(self, table: RawTable, *, standardize: bool) -> Block:
        """The features of all rows."""
        from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

        vectorizer = TfidfVectorizer(vocabulary=list(self.terms))
        vectorizer.idf_ = np.array(self.idf)
        values = scipy.sparse.csr_array(vectorizer.transform(_texts(table.frame[self.column])))
        return Block(values, np.diff(values.indptr) > 0)

    def absent(self, n_rows: int, *, standardize: bool) -> Block:
        """The block of a table that lacks the column."""
        return Block(scipy.sparse.csr_array((n_rows, len(self.terms))), np.zeros(n_rows, dtype=bool))


def fit_column(table: RawTable, column: str, kind: str, *, day_first: bool | None = None) -> OneColumn:
    """Fit the encoder of a column of cells on the training rows; those of signals are fitted by ``fit_sensors``."""
    if kind in ("number", "boolean"):
        return _fit_number(table, column, kind)
    if kind == "date":
        return _fit_date(table, column, day_first)
    if kind == "category":
        texts = _category_texts(table.frame[column])
        counts = pandas().Series(texts[~missing_cells(table.frame[column])]).value_counts(sort=True)
        return CategoryEncoder(column, tuple(sorted(map(str, counts.index[:MAX_CATEGORIES]))))
    return _fit_text(table, column)


def _fit_number(table: RawTable, column: str, kind: str) -> NumberEncoder:
    cells = read_cells(table, column, kind)
    known = cells.values[~np.isnan(cells.values)]
    scale = float(known.std())
    return NumberEncoder(column, float(known.mean()), scale or 1.0, kind == "boolean", cells.decimal)


def _fit_date(table: RawTable, column: str, day_first: bool | None) -> DateEncoder:
    cells = read_cells(table, column, "date", day_first=day_first)
    seconds = cells.values
    known = seconds[~np.isnan(seconds)]
    span = float(np.ptp(known))
    has_time = bool((known % DAY != 0).any())
    spanned = [cycle for cycle in CYCLES if span >= CYCLES[cycle] or (cycle == "day" and span > 0)]
    cycles = tuple(cycle for cycle in spanned if cycle != "day" or has_time)
    day_first = cells.day_first if day_first is None else day_first
    return DateEncoder(column, float(known.min()), float(known.mean()), span / DAY or 1.0, cycles, day_first)


def _fit_text(table: RawTable, column: str) -> TextEncoder:
    from cmvmed.features import TextView

    try:
        fitted = TextView(max_features=MAX_TERMS).fit(_texts(table.frame[column])).vectorizer_
    except ValueError as error:
        raise ProjectError(
            f"Column {column!r} of {table.source} has no words to learn from ({error}); put it into ignore, or say its kind "
            f'in [columns], as in {column} = "category".'
        ) from error
    return TextEncoder(column, tuple(map(str, fitted.get_feature_names_out())), tuple(fitted.idf_.tolist()))


def _checked(table: RawTable, column: str, cells: Cells, expected: str) -> Cells:
    """Raise if the column is of another kind than in training; a few bad cells count as gaps."""
    if cells.bad.any() and not cells.is_readable:
        row = int(np.flatnonzero(cells.bad)[0])
        raise ProjectError(
            f"Column {column!r}, {table.place(row)}: {str(table.frame[column].iloc[row])!r} is not {expected}, which the column "
            "held in the training data; correct the column, leave unknown cells empty, or set decimal or separator."
        )
    return cells


def _category_texts(series: Series) -> Any:
    """The cells of a column of categories as texts without surrounding blanks, object (n,); missing cells are ''."""
    missing = missing_cells(series)
    texts = [as_text(cell) for cell in series.astype(object)]
    return np.where(missing, "", np.array(texts, dtype=object))


def _texts(series: Series) -> list[str]:
    missing = missing_cells(series)
    return ["" if gone else str(cell) for cell, gone in zip(series.astype(object), missing, strict=True)]


def unseen_categories(encoder: CategoryEncoder, table: RawTable) -> str:
    """Categories of a table that have no feature, for a message; '' if there are none."""
    texts = set(_category_texts(table.frame[encoder.column])) - set(encoder.categories) - {""}
    return abbreviate(sorted(texts)) if texts else ""
