"""The evaluation of a model: the members' logits of new rows, in which each kernel value and each distance is computed once.

The consensus and the other members compare a row with training rows by kernels and graphs, several of them with the same rows.
Their coefficients are put side by side, so that a block of rows is scaled and compared once for all of them. What has no
such form, as sparse rows or given kernels, is scored term by term.

In single precision only kernels are: the distances of the nearest of many rows often differ by less than it resolves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmvmed.model.graph_means import GraphMeans
from cmvmed.model.row_forms import RowForms, same_arrays
from cmvmed.model.terms import Centers, Present, Term
from cmvmed.numerics.kernel_expansions import (
    BLOCK_ROWS,
    MAX_SUM,
    FormedRows,
    KernelExpansion,
    KernelSum,
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


class Evaluator:
    """The logits of a model's pool of members, prepared for many calls."""

    def __init__(self, model: Model, dtype: type = np.float64) -> None:
        weights, offset = np.ones(1), np.zeros(model.n_classes)
        if model.pool is not None:
            weights, offset = model.pool.weights, model.pool.offset
        self.constant = offset + weights @ np.stack([own.offset for own in model.members])
        found: dict[tuple[Any, ...], Function] = {}  # members with the same divisor become one function
        for j, (weight, member) in enumerate(zip(weights, model.members, strict=True)):
            if weight != 0.0:
                views = tuple(term.views for term in member.terms)
                key = (member.rule, {"sum": (), "root": views, "mean": j}[member.rule])
                function = found.setdefault(key, Function([], member))
                function.terms.extend(weighted_terms(member, weight * member.scale))
        self._sums = FusedSums(list(found.values()), model.n_classes, dtype)

    def logits(self, matrices: Sequence[Matrix], usable: Present) -> Array:
        """(n, K), of rows given by view, with which rows have which view."""
        return np.asarray(self._sums.values(matrices, usable).sum(axis=0) + self.constant)


def member_logits(members: Sequence[Member], matrices: Sequence[Matrix], usable: Present) -> Array:
    """z (members, n, K) of each member alone."""
    functions = [Function(weighted_terms(own, own.scale), own) for own in members]
    values = FusedSums(functions, members[0].offset.size).values(matrices, usable)
    return values + np.stack([own.offset for own in members])[:, None]


def weighted_terms(member: Member, factor: float) -> list[tuple[float, Term]]:
    """The terms of a member that have weight and training rows, each with a factor."""
    pairs = zip(member.weights, member.terms, strict=True)
    return [(float(factor * weight), term) for weight, term in pairs if weight != 0.0 and term.needs]


class Function(NamedTuple):
    """K values: a sum of terms, each times a factor, over the divisor of a member."""

    terms: list[tuple[float, Term]]
    member: Member

    def views(self) -> set[int]:
        """Of all terms of the member."""
        return {view for term in self.member.terms for view in term.views}

    def divisor_views(self) -> set[int]:
        """The views on which the divisor depends."""
        if self.member.rule == "mean":
            return {view for _, term in self.terms for view in term.views}
        return self.views() if self.member.rule == "root" else set()


class _Part(NamedTuple):
    """A term of a function."""

    function: int
    factor: float
    term: Term


class _FormSum(NamedTuple):
    """All kernel expansions in rows of one form, as one sum with K columns for each of the functions."""

    form: int
    functions: list[int]
    sum: KernelSum


class _FormedForest(NamedTuple):
    """A forest of a function, with the form of the rows of each of its views."""

    function: int
    factor: float
    term: Forest
    forms: list[int]

    def scores(self, rows: Sequence[FormedRows], n: int) -> Array:
        """(n, K), of rows that have all views."""
        points = [rows[form].points for form in self.forms]
        used = [
            own if columns.size == own.shape[1] else own[:, columns]
            for own, columns in zip(points, self.term.columns, strict=True)
        ]
        return self.term.of_points(used, [np.ones(n, dtype=bool)] * len(used))


class FusedSums:
    """Functions of rows that share what they compute."""

    def __init__(self, functions: Sequence[Function], n_classes: int, dtype: type = np.float64) -> None:
        self.functions, self.n_classes = functions, n_classes
        self.forms = RowForms()
        self.graphs: list[GraphMeans] = []
        self._expansions: dict[int, list[tuple[int, KernelExpansion]]] = {}  # by form, those of each function
        self._graph_parts: list[_Part] = []
        self._forests: list[_FormedForest] = []
        self._parts = [_Part(i, *own) for i, function in enumerate(functions) for own in function.terms]
        self._others = [part for part in self._parts if not part.term.join(self, part.function, part.factor)]
        self.kernels = [_form_sum(form, own, dtype) for form, own in self._expansions.items()]
        for graphs in self.graphs:
            graphs.prepare()
        self._views = sorted(self.forms.views | {view for own in functions for view in own.divisor_views()})
        everything = [np.ones(1, dtype=bool)] * (
            1 + max((view for own in functions for view in own.views()), default=0)
        )
        self._divisors = np.stack([own.member.divisor(everything) for own in functions])[:, :, None]
        largest = max((abs(factor) for own in functions for factor, _ in own.terms), default=1.0)
        self._limit = min(MAX_SUM * max(largest, 1.0), MAX_LOGIT)

    def add_expansion(self, function: int, rows: Centers, expansion: KernelExpansion) -> None:
        """Add a kernel expansion in the form of some rows to a function."""
        form = self.forms.number(rows.view, rows.preprocessor)
        self._expansions.setdefault(form, []).append((function, expansion))

    def add_graph(self, function: int, factor: float, graph: GraphVote) -> None:
        """Add a graph of dense rows to a function, searched together with those of the same size."""
        together = next((known for known in self.graphs if known.fits(graph)), None)
        if together is None:
            together = GraphMeans(graph)
            self.graphs.append(together)
        together.add(function, factor, graph, self.forms)
        self._graph_parts.append(_Part(function, factor, graph))

    def add_forest(self, function: int, factor: float, forest: Forest) -> None:
        """Add a forest to a function."""
        views = zip(forest.views, forest.preprocessors, strict=True)
        forms = [self.forms.number(view, preprocessor) for view, preprocessor in views]
        self._forests.append(_FormedForest(function, factor, forest, forms))

    def values(self, matrices: Sequence[Matrix], present: Present) -> Array:
        """Values (functions, n, K) of rows given by view, with which rows have which view."""
        n = matrices[0].shape[0]
        values = np.zeros((len(self.functions), n, self.n_classes))
        complete = self._are_complete(present)
        others = self._others
        if any(is_sparse(matrix) for matrix in matrices):
            others = self._parts
        elif self.kernels or self.graphs or self._forests:
            work = [graphs.workspace(min(n, BLOCK_ROWS)) for graphs in self.graphs]
            with np.errstate(over="ignore", invalid="ignore"):  # reported by the kernel, with the view's name
                for rows, are_complete in self._blocks(present, n):
                    here, has = [matrix[rows] for matrix in matrices], [own[rows] for own in present]
                    values[:, rows] = self._block(here, has, work, complete=are_complete)
        for function, factor, term in others:
            values[function] += factor * term.scores(matrices, present)
        values /= self._divisors if complete else self._divisors_of(present)
        return values

    def _blocks(self, present: Present, n: int) -> Iterator[tuple[slice | IntArray, bool]]:
        """Some rows at a time, and whether they have all views: first those that do, which are compared faster."""
        if self._are_complete(present):
            yield from ((rows, True) for rows in blocks_of_rows(n))
            return
        has_all = np.logical_and.reduce([present[view] for view in self._views])
        for chosen, complete in ((np.flatnonzero(has_all), True), (np.flatnonzero(~has_all), False)):
            yield from ((chosen[rows], complete) for rows in blocks_of_rows(chosen.size))

    def _are_complete(self, present: Present) -> bool:
        return all(present[view].all() for view in self._views)

    def _divisors_of(self, present: Present) -> Array:
        """(functions, n, 1)."""
        return np.stack([own.member.divisor(present) for own in self.functions])[:, :, None]

    def _block(self, matrices: list[Matrix], present: list[BoolArray], work: list[Array], *, complete: bool) -> Array:
        """The sums over kernels and graphs, (functions, n, K)."""
        n, K = matrices[0].shape[0], self.n_classes
        index = None if complete else {view: np.flatnonzero(present[view]) for view in self.forms.views}
        rows, values = self.forms.of(matrices, index), np.zeros((len(self.functions), n, K))
        for form, functions, summed in self.kernels:
            chosen = slice(None) if index is None else index[self.forms.view(form)]
            self._add(values, functions, summed.of_rows(rows[form]), chosen)
        if not np.abs(values).max(initial=0.0) <= self._limit:  # or NaN
            for form, _, summed in self.kernels:
                summed.checked(summed.of_rows(rows[form]), self._limit)
        if complete:
            for graphs, room in zip(self.graphs, work, strict=True):
                self._add(values, graphs.functions, graphs.means(rows, n, room), slice(None))
            for forest in self._forests:
                values[forest.function] += forest.factor * forest.scores(rows, n)
        else:
            for function, factor, term in [*self._graph_parts, *(forest[:3] for forest in self._forests)]:
                values[function] += factor * term.scores(matrices, present)
        return values

    def _add(self, values: Array, functions: Sequence[int], own: Array, rows: IntArray | slice) -> None:
        """Add to the functions of some rows what has K columns for each of them."""
        for i, function in enumerate(functions):
            values[function, rows] += own[:, i * self.n_classes : (i + 1) * self.n_classes]


def _form_sum(form: int, expansions: Sequence[tuple[int, KernelExpansion]], dtype: type) -> _FormSum:
    """The functions side by side, those of the same kernel functions with one expansion."""
    functions = sorted({function for function, _ in expansions})
    merged: list[KernelExpansion] = []
    for function, expansion in expansions:
        wide = _at_column(functions.index(function), len(functions), expansion)
        same = next((i for i, known in enumerate(merged) if _same_kernel_functions(known, wide)), None)
        if same is None:
            merged.append(wide)
        else:
            known = merged[same]
            coefficients, constant = known.coefficients + wide.coefficients, known.constant + wide.constant
            merged[same] = known._replace(coefficients=coefficients, constant=constant)
    return _FormSum(form, functions, kernel_sum(merged, dtype))


def _at_column(position: int, n: int, expansion: KernelExpansion) -> KernelExpansion:
    """An expansion of K functions as one of n K functions, of which the others are zero."""
    kernel, centers, coefficients, constant = expansion
    p, K = coefficients.shape
    wide, constants = np.zeros((p, n, K)), np.zeros((n, K))
    wide[:, position], constants[position] = coefficients, constant
    return KernelExpansion(kernel, centers, wide.reshape(p, n * K), constants.ravel())


def _same_kernel_functions(first: KernelExpansion, second: KernelExpansion) -> bool:
    return (first.kernel.kind, first.kernel.gamma) == (second.kernel.kind, second.kernel.gamma) and same_arrays(
        first.centers, second.centers
    )
