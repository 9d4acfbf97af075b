"""The vote of a forest of decision trees over the columns of all views together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log1p
from typing import TYPE_CHECKING, Any

import numpy as np

from cmvmed.model.terms import Centers, FewerRows, Present, are_finite, are_indices, check_that
from cmvmed.numerics.kernel_expansions import blocks_of_rows
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.pickled_fields import PickledByFields
from cmvmed.numerics.trees import LARGEST, Trees, joined, trees_of_forest
from cmvmed.numerics.types import Array, IntArray, Matrix, Single
from cmvmed.views.view_rows import ViewPreprocessor

if TYPE_CHECKING:
    from cmvmed.model.evaluate import FusedSum
    from cmvmed.model.formulas import Formulas, Tensor

NUMBERS_AT_A_TIME = 2**21  # of filled rows


@dataclass(frozen=True)
class Forest(PickledByFields):
    """log((v + s/K) / (1 + s)) of the mean vote v of the trees; zero for rows that have none of the views.

    Trees compare scaled columns, in single precision. All columns of a view that a row lacks have their fill value.
    """

    views: tuple[int, ...]
    preprocessors: tuple[ViewPreprocessor, ...]  # per view
    columns: tuple[IntArray, ...]  # per view, those that some tree compares, ascending
    fill: tuple[Array, ...]  # per view, of these columns where the view is missing
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
        n, has = matrices[0].shape[0], [present[view] for view in self.views]
        scores = np.empty((n, self.trees.votes.shape[1]))
        for block in blocks_of_rows(n, max(1, NUMBERS_AT_A_TIME // self.n_kept)):
            here = [own[block] for own in has]
            scores[block] = self.of_points(self._points([matrix[block] for matrix in matrices], here), here)
        return scores

    def _points(self, matrices: Sequence[Matrix], has: Present) -> list[Matrix]:
        """Per view the columns in use of rows that have it, scaled; zero for others."""
        found = []
        for view, preprocessor, columns, own in zip(self.views, self.preprocessors, self.columns, has, strict=True):
            if own.all():
                found.append(_columns_of(preprocessor.transform(matrices[view]), columns))
                continue
            points = np.zeros((own.size, columns.size))
            points[own] = _as_dense(_columns_of(preprocessor.transform(matrices[view][own]), columns))
            found.append(points)
        return found

    def of_points(self, points: Sequence[Matrix], has: Present) -> Array:
        """The scores of rows given by view, scaled, the columns in use alone."""
        if not any(own.any() for own in has):
            return np.zeros((has[0].size, self.trees.votes.shape[1]))
        return self._logs(filled(points, has, self.fill), has)

    def _logs(self, rows: Single, has: Present) -> Array:
        """The scores of filled rows."""
        scores = log_votes(self.trees.mean_votes(rows), self.smoothing)
        scores[~np.logical_or.reduce(has)] = 0.0
        return scores

    def given_views(self, matrices: Sequence[Matrix], present: Present) -> Callable[[Present], Array]:
        """The scores of these rows as a function of the views that they are taken to have."""
        dense = [_as_dense(own) for own in self._points(matrices, [present[view] for view in self.views])]

        def scores(has: Present) -> Array:
            return self.of_points(dense, [has[view] for view in self.views])

        return scores

    def join(self, sums: FusedSum, factor: float) -> bool:
        """Add the term to the forests whose trees are compared together."""
        sums.add_forest(factor, self)
        return True

    def smaller(self, fewer: FewerRows) -> Forest:
        """Itself, since it holds no training rows."""
        return self

    def compared(self) -> Iterator[tuple[Matrix, IntArray]]:
        """No training rows."""
        return iter(())

    def emit(self, formulas: Formulas) -> Tensor:
        """log(v + s/K) - log(1 + s), of rows that are filled as by :func:`filled`."""
        parts: list[Tensor] = []
        for view, preprocessor, columns, fill in self._parts():
            if columns.size:
                own = formulas.views[view]
                points = own.points(preprocessor)
                parts.append(own.has.where(points.graph.apply("Gather", points, columns, axis=1), fill))
        rows = parts[0].graph.concatenate(*parts)
        rows = rows.graph.apply("Clip", rows, -LARGEST, LARGEST).cast(np.float32)
        votes = rows.graph.mean_votes(rows, self.trees)
        smoothed: Tensor = votes + self.smoothing / self.trees.votes.shape[1]
        return (smoothed.apply("Log") - log1p(self.smoothing)) * formulas.has_any(self.needs)

    def _parts(self) -> Iterator[tuple[int, ViewPreprocessor, IntArray, Array]]:
        return zip(self.views, self.preprocessors, self.columns, self.fill, strict=True)

    def check(self, n_classes: int, widths: Sequence[int]) -> None:
        """Raise a ValueError unless its arrays fit together."""
        n_views = {len(own) for own in (self.views, self.preprocessors, self.columns, self.fill)}
        check_that(len(n_views) == 1, "a forest lacks some of its views")
        for view, _, columns, fill in self._parts():
            ascending = are_indices(columns, widths[view]) and bool((np.diff(columns) > 0).all())
            check_that(ascending, "a forest uses columns that its views do not have")
            check_that(are_finite(fill, columns.shape), "a forest cannot fill all columns")
        check_that(
            self.n_kept > 0 and self.trees.is_sound(self.n_kept, n_classes), "the nodes of a forest do not form trees"
        )
        check_that(
            type(self.smoothing) is float and 0.0 < self.smoothing < np.inf,
            "the smoothing of a forest is not a number above 0",
        )


class ForestSum:
    """A sum of forests over rows that have all views, whose trees are compared together."""

    def __init__(self, forests: Sequence[tuple[float, Forest, list[int]]]) -> None:
        """Of factors, forests and the forms of the rows of their views."""
        used: dict[int, IntArray] = {}  # columns by form
        for _, forest, forms in forests:
            for form, own in zip(forms, forest.columns, strict=True):
                used[form] = np.union1d(used[form], own) if form in used else own
        self._used = used
        start = dict(zip(used, np.cumsum([0, *(own.size for own in used.values())]), strict=False))
        columns = [
            np.concatenate(
                [
                    start[form] + np.searchsorted(used[form], own)
                    for form, own in zip(forms, forest.columns, strict=True)
                ]
            )
            for _, forest, forms in forests
        ]
        self._trees = joined([forest.trees for _, forest, _ in forests], columns)
        ends = np.cumsum([0, *(forest.trees.n_trees for _, forest, _ in forests)])
        owners = zip(forests, pairwise(ends), strict=True)
        self._parts = [(factor, forest.smoothing, slice(*part)) for (factor, forest, _), part in owners]

    def scores(self, points: Sequence[Array]) -> Array:
        """(n, K), of rows in each form."""
        rows = [_columns_of(points[form], own).T for form, own in self._used.items()]
        columns = np.minimum(np.maximum(np.concatenate(rows), -LARGEST), LARGEST).astype(np.float32)
        numbers = self._trees.numbers(columns)
        logs = [
            factor * log_votes(self._trees.mean_of(numbers[own]), smoothing) for factor, smoothing, own in self._parts
        ]
        return np.asarray(sum(logs))


def filled(points: Sequence[Matrix], present: Present, fill: Sequence[Array]) -> Single:
    """The columns of views side by side as trees see them, (n, d): absent views filled, in single precision.

    Parameters
    ----------
    points : per view, (n, d_v), dense or sparse
    present : per view, which rows have it, (n,)
    fill : per view, the values of its columns where it is missing, (d_v,)
    """
    rows = np.empty((points[0].shape[0], sum(own.size for own in fill)), dtype=np.float32)
    start = 0
    for own, has, values in zip(points, present, fill, strict=True):
        part = rows[:, start : start + values.size]
        np.clip(_as_dense(own), -LARGEST, LARGEST, out=part, casting="same_kind")
        if not has.all():
            part[~has] = values
        start += values.size
    return rows


def fill_values(preprocessor: ViewPreprocessor, n_columns: int) -> Array:
    """What the scaled columns of a missing view are taken to be: those of the columns' means; zero for rows of unit length."""
    if preprocessor.scaling.kind == "unit":
        return np.zeros(n_columns)
    means = preprocessor.transform(np.full((1, n_columns), np.nan))[0]
    return np.asarray(np.clip(means, -LARGEST, LARGEST).astype(np.float32), dtype=np.float64)


def log_votes(votes: Array, smoothing: float) -> Array:
    """log((v + s/K) / (1 + s)) of votes (..., K)."""
    return np.asarray(np.log((votes + smoothing / votes.shape[-1]) / (1.0 + smoothing)))


def _columns_of(matrix: Matrix, columns: IntArray) -> Matrix:
    return matrix if columns.size == matrix.shape[1] else matrix[:, columns]  # ascending


def _as_dense(matrix: Matrix) -> Array:
    return np.asarray(matrix.toarray()) if is_sparse(matrix) else matrix


def forest_term(
    trees: Sequence[Any],
    codes: Sequence[IntArray],
    views: Sequence[int],
    preprocessors: Sequence[ViewPreprocessor],
    fill: Sequence[Array],
    smoothing: float,
    n_classes: int,
) -> Forest:
    """The term of trees of scikit-learn.

    Parameters
    ----------
    trees : the attributes ``tree_`` of fitted classifiers
    codes : per tree, the classes of its votes among all ``n_classes``
    views, preprocessors : those whose columns, side by side and :func:`filled`, the trees were fitted to
    fill : per view, the value of each of its columns where it is missing, (d_v,)
    """
    grown, used = trees_of_forest(trees, codes, n_classes)
    used = used if used.size else np.zeros(1, dtype=np.intp)  # of trees without inner nodes: any column
    ends = np.cumsum([own.size for own in fill])
    columns = [
        own - start for own, start in zip(np.split(used, np.searchsorted(used, ends[:-1])), [0, *ends], strict=False)
    ]
    kept = tuple(own[chosen] for own, chosen in zip(fill, columns, strict=True))
    return Forest(tuple(views), tuple(preprocessors), tuple(columns), kept, grown, float(smoothing))
