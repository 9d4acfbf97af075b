"""The evaluation of a model: the logits of new rows, in which each kernel value and each distance is computed once.

The consensus and the other members compare a row with training rows by kernels, graphs and trees, several of them with the
same rows. For rows that have the same views their logits are one sum of terms, put together once for all members
(:class:`FusedSum`): a block of rows is scaled and compared once for all of them. Sparse rows, given kernels and rows with
views that few others have are scored term by term.

Kernels are in single precision if that is asked for; the nearest nodes of graphs are searched in it first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cmvmed.model.forests import ForestSum
from cmvmed.model.graph_means import GraphMeans
from cmvmed.model.row_forms import RowForms
from cmvmed.model.terms import Centers, Present, Term
from cmvmed.numerics.kernel_expansions import (
    MAX_SUM,
    FormedRows,
    KernelExpansion,
    blocks_of_rows,
    kernel_sum,
)
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix

if TYPE_CHECKING:
    from cmvmed.model.fitted_model import Member, Model
    from cmvmed.model.forests import Forest
    from cmvmed.model.graph_votes import GraphVote

MAX_LOGIT = 1e305  # logits of a temperature near zero are larger than sums of kernels may be; a few can still be added
SCALED_ROWS = 512  # scaled at a time, and led through trees
MAX_UNSURE = (
    0.25  # of rows that are searched twice, above which those that follow are searched in double precision only
)
ROWS_OF_PATTERN = 256  # from which on a sum of their own pays for rows that have the same views
MAX_PATTERNS = 8  # such sums that are kept

Pattern: TypeAlias = tuple[bool, ...]  # which views some rows have


class Evaluator:
    """The logits of a model's pool of members, prepared for many calls."""

    def __init__(self, model: Model, dtype: type = np.float64) -> None:
        weights, offset = np.ones(1), np.zeros(model.n_classes)
        if model.pool is not None:
            weights, offset = model.pool.weights, model.pool.offset
        self.constant = offset + weights @ np.stack([own.offset for own in model.members])
        self._members = [
            (float(weight * own.scale), own)
            for weight, own in zip(weights, model.members, strict=True)
            if weight != 0.0
        ]
        self._dtype = dtype
        self._sums: dict[Pattern, FusedSum] = {}
        self._n_rows: Counter[Pattern] = Counter({tuple(model.known_views): ROWS_OF_PATTERN})  # seen so far

    def logits(self, matrices: Sequence[Matrix], usable: Present) -> Array:
        """(n, K), of rows given by view, with which rows have which view."""
        n = matrices[0].shape[0]
        logits = np.empty((n, self.constant.size))
        if any(is_sparse(matrix) for matrix in matrices):
            logits[:] = self._term_by_term(matrices, usable)
        else:
            others = []
            for pattern, rows in _by_pattern(usable, n):
                fused = self.sum_of(pattern, n if rows is None else rows.size)
                if fused is None:
                    others.append(np.arange(n) if rows is None else rows)
                elif rows is None:
                    logits[:] = fused.values(matrices)
                else:
                    logits[rows] = fused.values([matrix[rows] for matrix in matrices])
            if others:
                left = np.concatenate(others)
                here, has = [matrix[left] for matrix in matrices], [own[left] for own in usable]
                logits[left] = self._term_by_term(here, has)
        logits += self.constant
        return logits

    def sum_of(self, pattern: Pattern, n_rows: int) -> FusedSum | None:
        """The sum for rows that have these views, None unless there were enough of them."""
        self._n_rows[pattern] += n_rows
        if pattern not in self._sums:
            if self._n_rows[pattern] < ROWS_OF_PATTERN or len(self._sums) >= MAX_PATTERNS:
                return None
            self._sums[pattern] = FusedSum(self._terms_of(pattern), pattern, self.constant.size, self._dtype)
        return self._sums[pattern]

    def _terms_of(self, pattern: Pattern) -> list[tuple[float, Term]]:
        """The terms of all members with their factors, for rows that have these views."""
        has = [np.array([own]) for own in pattern]
        return [
            (factor, term)
            for scale, member in self._members
            for factor, term in weighted_terms(member, scale / float(member.divisor(has)[0]))
            if any(pattern[view] for view in term.needs)
        ]

    def _term_by_term(self, matrices: Sequence[Matrix], usable: Present) -> Array:
        return np.asarray(sum(_member_values(own, scale, matrices, usable) for scale, own in self._members))


def member_logits(members: Sequence[Member], matrices: Sequence[Matrix], usable: Present) -> Array:
    """z (members, n, K) of each member alone."""
    return np.stack([_member_values(own, own.scale, matrices, usable) + own.offset for own in members])


def _member_values(member: Member, scale: float, matrices: Sequence[Matrix], usable: Present) -> Array:
    """The sum of a member's terms (n, K), times a factor, over the divisor."""
    values = np.zeros((matrices[0].shape[0], member.offset.size))
    for factor, term in weighted_terms(member, scale):
        values += factor * term.scores(matrices, usable)
    values /= member.divisor(usable)[:, None]
    return values


def weighted_terms(member: Member, factor: float) -> list[tuple[float, Term]]:
    """The terms of a member that have weight and training rows, each with a factor."""
    pairs = zip(member.weights, member.terms, strict=True)
    return [(float(factor * weight), term) for weight, term in pairs if weight != 0.0 and term.needs]


def _by_pattern(present: Present, n: int) -> list[tuple[Pattern, IntArray | None]]:
    """The patterns of views that occur, and the rows of each; None for all rows."""
    if n == 0:
        return []
    first = tuple(bool(own[0]) for own in present)
    if n == 1 or all(own.all() if has else not own.any() for own, has in zip(present, first, strict=True)):
        return [(first, None)]
    patterns, number = np.unique(np.stack(present, axis=1), axis=0, return_inverse=True)
    order = np.argsort(number.ravel(), kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(number.ravel()))[:-1])
    return [(tuple(pattern.tolist()), own) for pattern, own in zip(patterns, rows, strict=True)]


class FusedSum:
    """A sum of terms, each times a factor, over rows that have the same views: each form of the rows is computed once."""

    def __init__(
        self, terms: Sequence[tuple[float, Term]], pattern: Pattern, n_classes: int, dtype: type = np.float64
    ) -> None:
        self.terms, self.n_classes, self._pattern = terms, n_classes, pattern
        self.forms = RowForms()
        self.graphs: list[GraphMeans] = []
        self._expansions: dict[int, list[KernelExpansion]] = {}  # by form
        self._forests: list[tuple[float, Forest, list[int]]] = []
        self._others = [
            (factor, term)
            for factor, term in terms
            if not (all(pattern[view] for view in term.views) and term.join(self, factor))
        ]
        self.kernels = {form: kernel_sum(own, dtype) for form, own in self._expansions.items()}
        for graphs in self.graphs:
            graphs.prepare()
        self._forest = ForestSum(self._forests) if self._forests else None
        self._limit = min(MAX_SUM * max([1.0, *(abs(factor) for factor, _ in terms)]), MAX_LOGIT)

    def add_expansion(self, rows: Centers, expansion: KernelExpansion) -> None:
        """Add a kernel expansion in the form of some rows."""
        self._expansions.setdefault(self.forms.number(rows.view, rows.preprocessor), []).append(expansion)

    def add_graph(self, factor: float, graph: GraphVote) -> None:
        """Add a graph of dense rows, searched together with those of the same size."""
        together = next((known for known in self.graphs if known.fits(graph)), None)
        if together is None:
            together = GraphMeans(graph)
            self.graphs.append(together)
        together.add(factor, graph, self.forms)

    def add_forest(self, factor: float, forest: Forest) -> None:
        """Add a forest."""
        views = zip(forest.views, forest.preprocessors, strict=True)
        self._forests.append((factor, forest, [self.forms.number(view, preprocessor) for view, preprocessor in views]))

    def values(self, matrices: Sequence[Matrix]) -> Array:
        """(n, K), of rows given by view."""
        n = matrices[0].shape[0]
        values, unsure = np.zeros((n, self.n_classes)), np.zeros((len(self.graphs), n), dtype=bool)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by the kernel, with the view's name
            for rows in blocks_of_rows(n, SCALED_ROWS) if self.forms else ():
                unsure[:, rows] = self._add(values[rows], [own[rows] for own in matrices], unsure[:, : rows.start])
            for graphs, doubtful in zip(self.graphs, unsure, strict=True):
                again = np.flatnonzero(doubtful)
                for part in blocks_of_rows(again.size, SCALED_ROWS):
                    formed = [FormedRows(own) for own in self.forms.of([matrix[again[part]] for matrix in matrices])]
                    values[again[part]] += graphs.means(formed)
        present = [np.full(n, own) for own in self._pattern] if self._others else []
        for factor, term in self._others:
            values += factor * term.scores(matrices, present)
        return values

    def _add(self, values: Array, matrices: list[Matrix], before: BoolArray) -> BoolArray:
        """Add to some rows what is computed together; in which graphs (graphs, n) they are to be searched again.

        ``before`` says that of earlier rows, the last of which tell whether single precision pays.
        """
        points, unsure = self.forms.of(matrices), np.zeros((len(self.graphs), len(values)), dtype=bool)
        screen = not before[:, -SCALED_ROWS:].mean() > MAX_UNSURE if before.size else True
        for part in blocks_of_rows(len(values)):
            rows, own = [FormedRows(form[part]) for form in points], values[part]
            for form, kernels in self.kernels.items():
                own += kernels.of_rows(rows[form])
            if not np.abs(own).max(initial=0.0) <= self._limit:  # or NaN
                for form, kernels in self.kernels.items():
                    kernels.checked(kernels.of_rows(rows[form]), self._limit)
            for graphs, doubtful in zip(self.graphs, unsure, strict=True):
                if screen and graphs.can_screen:
                    sums, doubtful[part] = graphs.screened(rows)
                    own += sums
                else:
                    own += graphs.means(rows)
        if self._forest is not None:
            values += self._forest.scores(points)
        return unsure
