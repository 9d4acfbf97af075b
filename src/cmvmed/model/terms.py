"""The contract of a term: one function of new rows, from which the members of a model are put together.

There are three kinds, each in a file of its own: a kernel expansion (:mod:`cmvmed.model.expansions`), the vote of the nearest
nodes of a graph (:mod:`cmvmed.model.graph_votes`) and that of a forest (:mod:`cmvmed.model.forests`). All that is done with a
model goes through this contract, so that another kind is one more file, and a line in ``TERMS`` of
:mod:`cmvmed.model.saved_types`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.preprocessing import Imputation
from cmvmed.views.view_rows import ViewPreprocessor

if TYPE_CHECKING:
    from cmvmed.model.evaluate import FusedSum
    from cmvmed.model.formulas import Formulas, Tensor

Present: TypeAlias = Sequence[BoolArray]  # per view, which rows have it


@dataclass(frozen=True)
class Centers:
    """Training rows of one view, in the form in which new rows are compared with them."""

    view: int
    preprocessor: ViewPreprocessor
    rows: Matrix  # (m, d); of a precomputed kernel the square matrix, or the lines of landmarks
    numbers: IntArray | None = None  # (m,), which training rows these are; None if they are only some, or none of them

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    def points(self, matrices: Sequence[Matrix], rows: IntArray) -> Matrix:
        """New rows in the same form; ``rows`` are those that have the view."""
        return self.preprocessor.transform(matrices[self.view][rows])

    def chosen(self, rows: IntArray) -> Centers:
        """Some of the rows alone."""
        if self.preprocessor.columns is None:
            return Centers(self.view, self.preprocessor, self.rows[rows])
        columns = self.preprocessor.columns[rows]
        preprocessor = ViewPreprocessor(self.preprocessor.scaling, columns, self.preprocessor.imputation)
        return Centers(self.view, preprocessor, self.rows[np.ix_(rows, rows)])


@dataclass(frozen=True)
class FewerRows:
    """Which training rows a compact model keeps: the same in all terms."""

    n_rows: int  # of each view, and of each graph
    priority: Array  # (n,), of the training rows; those with the smallest come first
    project: bool  # whether expansions are projected on these rows; if not, each keeps the rows it uses

    def landmarks(self, numbers: IntArray) -> IntArray:
        """Which of the rows with these numbers are kept, ascending."""
        return np.sort(np.argsort(self.priority[numbers], kind="stable")[: self.n_rows])


class Term(Protocol):
    """A function of new rows with K values."""

    @property
    def views(self) -> tuple[int, ...]:
        """The views that it depends on."""

    @property
    def needs(self) -> tuple[int, ...]:
        """The views of which a row must have one; none if no training row had any."""

    @property
    def centers(self) -> tuple[Centers, ...]:
        """The training rows that it holds."""

    @property
    def n_compared(self) -> int:
        """Number of rows that all new rows are compared with at a time."""

    @property
    def n_kept(self) -> int:
        """Numbers that :meth:`given_views` keeps for each row and view."""

    @property
    def without_formula(self) -> str | None:
        """Why other programs and array libraries cannot compute it; None if they can."""

    def scores(self, matrices: Sequence[Matrix], present: Present) -> Array:
        """(n, K), of rows given by view; zero for rows that have none of the views."""

    def given_views(self, matrices: Sequence[Matrix], present: Present) -> Callable[[Present], Array]:
        """The scores of these rows as a function of the views that they are taken to have, some of those present."""

    def join(self, sums: FusedSum, factor: float) -> bool:
        """Add the term, times a factor, to a sum of terms that share what they compute; False if it cannot share."""

    def compared(self) -> Iterator[tuple[Matrix, IntArray]]:
        """The tables of training rows, and which of their rows, that its formula compares new rows with."""

    def emit(self, formulas: Formulas) -> Tensor:
        """The scores (n, K) as a formula."""

    def smaller(self, fewer: FewerRows) -> Term:
        """The term through fewer training rows."""

    def check(self, n_classes: int, widths: Sequence[int]) -> None:
        """Raise a ValueError unless its arrays fit together, and a model with these classes and columns of each view."""


class ViewTerm(Term, Protocol):
    """The function of one view."""

    def values(self, points: Matrix) -> Array:
        """(n, K), of rows that have the view, in the form of its training rows."""


def covers(term: Term, present: Present) -> BoolArray:
    """Which rows have one of the views that a term needs, (n,)."""
    if not term.needs:
        return np.zeros(present[0].size, dtype=bool)
    found = present[term.needs[0]]
    for view in term.needs[1:]:
        found = found | present[view]
    return found


def check_that(fits: bool, what: str) -> None:
    """Raise if something does not fit."""
    if not fits:
        raise ValueError(what)


def are_indices(index: IntArray, size: int, *, least: int = 0) -> bool:
    """Whether whole numbers are at least ``least`` and below ``size``."""
    whole = index.ndim == 1 and index.dtype.kind in "iu"
    return whole and (index.size == 0 or bool(least <= index.min() and index.max() < size))


def holds_finite_numbers(part: object) -> bool:
    """Whether all arrays of a part of a model, and of its own parts, are finite, and no number is NaN."""
    if isinstance(part, float):
        return not np.isnan(part)  # a limit may be infinite
    if is_sparse(part):
        return holds_finite_numbers(part.data)  # type: ignore[attr-defined]
    if isinstance(part, np.ndarray):
        return part.dtype.kind != "f" or bool(np.isfinite(part).all())
    if isinstance(part, (tuple, list)):
        return all(map(holds_finite_numbers, part))
    if isinstance(part, Imputation):  # the mean of a column without any number is NaN
        return not np.isinf(part.means).any() and holds_finite_numbers(part.gaps)
    if is_dataclass(part):
        return all(holds_finite_numbers(getattr(part, own.name)) for own in fields(part))
    return True


def are_finite(array: Array, shape: tuple[int, ...]) -> bool:
    """Whether an array of floats has this shape and holds no infinite number or NaN."""
    return array.shape == shape and array.dtype.kind == "f" and bool(np.isfinite(array).all())
