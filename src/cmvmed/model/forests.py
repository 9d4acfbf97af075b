"""The vote of a forest of decision trees over the columns of all views together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING, Any

import numpy as np

from cmvmed.model.terms import Centers, FewerRows, Present, are_finite, are_indices, check_that
from cmvmed.numerics.kernel_expansions import blocks_of_rows
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.trees import LARGEST, Trees, trees_of_forest
from cmvmed.numerics.types import Array, IntArray, Matrix, Single

if TYPE_CHECKING:
    from cmvmed.model.evaluate import FusedSums
    from cmvmed.model.formulas import Formulas, Tensor

NUMBERS_AT_A_TIME = 2**21  # of filled rows


@dataclass(frozen=True)
class Forest(PickledByFields):
    """log((v + s/K) / (1 + s)) of the mean vote v of the trees; zero for rows that have none of the views.

    Trees compare columns as the user gave them, not scaled, in single precision. A missing cell, and all cells of a view that
    a row lacks, have the fill value of their column.
    """

    views: tuple[int, ...]
    columns: tuple[IntArray, ...]  # per view, those that some tree compares, ascending
    fill: tuple[Array, ...]  # per view, of these columns
    trees: Trees  # over the columns of the views side by side
    smoothing: float  # s, of a uniform vote beside the trees' mean vote

    @property
    def needs(self) -> tuple[int, ...]:
        """The views of which a row must have one."""
        return self.views

    @property
    def centers(self) -> tuple[Centers, ...]:
        """None: trees hold no training rows."""
        return ()

    @property
    def n_compared(self) -> int:
        """None: rows are scored some at a time."""
        return 0

    @property
    def n_kept(self) -> int:
        """The columns that trees compare."""
        return sum(own.size for own in self.columns)

    @property
    def without_formula(self) -> str | None:
        """Trees have a formula."""
        return None

    def scores(self, matrices: Sequence[Matrix], present: Present) -> Array:
        """(n, K), of rows given by view; zero for rows that have none of the views."""
        n, scores = matrices[0].shape[0], np.empty((matrices[0].shape[0], self.trees.votes.shape[1]))
        for block in blocks_of_rows(n, max(1, NUMBERS_AT_A_TIME // self.n_kept)):
            used, has = self._used(matrices, block), [present[view][block] for view in self.views]
            scores[block] = self._logs(filled(used, has, self.fill), has)
        return scores

    def _used(self, matrices: Sequence[Matrix], rows: slice) -> list[Matrix]:
        """Per view the columns that trees compare, of some rows."""
        own = [(matrices[view][rows], columns) for view, columns in zip(self.views, self.columns, strict=True)]
        return [matrix if columns.size == matrix.shape[1] else matrix[:, columns] for matrix, columns in own]

    def _logs(self, rows: Single, has: Present) -> Array:
        """The scores of filled rows."""
        votes, s = self.trees.mean_votes(rows), self.smoothing
        votes += s / votes.shape[1]
        votes /= 1.0 + s
        np.log(votes, out=votes)
        votes[~np.logical_or.reduce(has)] = 0.0
        return votes

    def given_views(self, matrices: Sequence[Matrix], present: Present) -> Callable[[Present], Array]:
        """The scores of these rows as a function of the views that they are taken to have."""
        dense = [_as_dense(own) for own in self._used(matrices, slice(None))]

        def scores(has: Present) -> Array:
            own = [has[view] for view in self.views]
            return self._logs(filled(dense, own, self.fill), own)

        return scores

    def join(self, sums: FusedSums, function: int, factor: float) -> bool:
        """False: trees share nothing with kernels and graphs."""
        return False

    def smaller(self, fewer: FewerRows) -> Forest:
        """Itself, since it holds no training rows."""
        return self

    def compared(self) -> Iterator[tuple[Matrix, IntArray]]:
        """No training rows."""
        return iter(())

    def emit(self, formulas: Formulas) -> Tensor:
        """log(v + s/K) - log(1 + s), of rows that are filled as by :func:`filled`."""
        parts: list[Tensor] = []
        for view, columns, fill in zip(self.views, self.columns, self.fill, strict=True):
            if columns.size:
                own = formulas.views[view]
                rows = own.rows.graph.apply("Gather", own.rows, columns, axis=1)
                parts.append(own.has.where(rows.apply("IsNaN").where(fill, rows), fill))
        rows = parts[0].graph.concatenate(*parts)
        rows = rows.graph.apply("Clip", rows, -LARGEST, LARGEST).cast(np.float32)
        votes = rows.graph.mean_votes(rows, self.trees)
        smoothed: Tensor = votes + self.smoothing / self.trees.votes.shape[1]
        return (smoothed.apply("Log") - log1p(self.smoothing)) * formulas.has_any(self.needs)

    def check(self, n_classes: int, widths: Sequence[int]) -> None:
        """Raise a ValueError unless its arrays fit together."""
        check_that(len(self.views) == len(self.columns) == len(self.fill), "a forest lacks some of its views")
        for view, columns, fill in zip(self.views, self.columns, self.fill, strict=True):
            ascending = are_indices(columns, widths[view]) and bool((np.diff(columns) > 0).all())
            check_that(ascending, "a forest uses columns that its views do not have")
            check_that(are_finite(fill, columns.shape), "a forest cannot fill all columns")
        check_that(
            self.n_kept > 0 and self.trees.is_sound(self.n_kept, n_classes), "the nodes of a forest are no trees"
        )
        check_that(
            type(self.smoothing) is float and 0.0 < self.smoothing < np.inf,
            "the smoothing of a forest is no number above 0",
        )


def filled(matrices: Sequence[Matrix], present: Present, fill: Sequence[Array]) -> Single:
    """The columns of views side by side as trees see them, (n, d): gaps and absent views filled, in single precision.

    Parameters
    ----------
    matrices : per view, (n, d_v), dense or sparse
    present : per view, which rows have it, (n,)
    fill : per view, the values of its columns where they are missing, (d_v,)
    """
    rows = np.empty((matrices[0].shape[0], sum(own.size for own in fill)), dtype=np.float32)
    start = 0
    for matrix, has, values in zip(matrices, present, fill, strict=True):
        part = rows[:, start : start + values.size]
        np.clip(_as_dense(matrix), -LARGEST, LARGEST, out=part, casting="same_kind")
        missing = np.isnan(part)
        missing[~has] = True
        np.copyto(part, np.clip(values, -LARGEST, LARGEST).astype(np.float32), where=missing)
        start += values.size
    return rows


def _as_dense(matrix: Matrix) -> Array:
    return np.asarray(matrix.toarray()) if is_sparse(matrix) else matrix


def forest_term(forest: Any, views: Sequence[int], fill: Sequence[Array], smoothing: float, n_classes: int) -> Forest:
    """The term of a fitted forest of scikit-learn, such as ``ExtraTreesClassifier``, whose classes are codes below ``n_classes``.

    Parameters
    ----------
    views : the views whose columns, side by side and :func:`filled`, the forest was fitted to
    fill : per view, the value of each of its columns where it is missing, (d_v,)
    """
    codes = np.asarray(forest.classes_, dtype=np.intp)
    trees, used = trees_of_forest([own.tree_ for own in forest.estimators_], codes, n_classes)
    used = used if used.size else np.zeros(1, dtype=np.intp)  # of trees without inner nodes: any column
    ends = np.cumsum([own.size for own in fill])
    columns = [
        own - start for own, start in zip(np.split(used, np.searchsorted(used, ends[:-1])), [0, *ends], strict=False)
    ]
    kept = tuple(own[chosen] for own, chosen in zip(fill, columns, strict=True))
    return Forest(tuple(views), tuple(columns), kept, trees, float(smoothing))
