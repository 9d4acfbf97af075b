"""Sums of the parts of a model, in which each kernel value and each distance is computed once.

The consensus and the opinions compare a row with training rows by kernels and graphs, several of them with the same rows.
Their coefficients are put side by side, so that a block of rows is scaled and compared once for all of them. What has no
such form, as sparse rows or given kernels, is scored part by part.

In single precision only kernels are: the distances of the nearest of many rows often differ by less than it resolves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cmvmed.graphs.nodes import GraphScorer
from cmvmed.members.candidates import PartScorer, row_factors
from cmvmed.members.centered_kernels import KernelScorer
from cmvmed.members.graph_means import GraphMeans, has_whole_nodes
from cmvmed.members.row_forms import RowForms, same_arrays
from cmvmed.model.predictors import ViewMeans
from cmvmed.numerics.kernel_expansions import (
    BLOCK_ROWS,
    MAX_SUM,
    KernelExpansion,
    KernelSum,
    blocks_of_rows,
    kernel_sum,
)
from cmvmed.numerics.linalg import is_sparse
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix


@dataclass(frozen=True)
class WeightedParts:
    """A function with K values: a sum of parts, each times a factor.

    With ``views`` it is a mean over those of them that a row has, D (Σ_v K_v) D of :mod:`cmvmed.members.candidates`: the
    sum is divided by the square root of their number.
    """

    parts: tuple[tuple[float, PartScorer], ...]
    views: tuple[int, ...] = ()


class _Term(NamedTuple):
    """A part of a function."""

    function: int
    factor: float
    part: PartScorer


class _FormSum(NamedTuple):
    """All kernel expansions in rows of one form, as one sum with K columns for each of the functions."""

    form: int
    functions: list[int]
    sum: KernelSum


class PartSums:
    """Functions of rows, prepared for many calls."""

    def __init__(self, functions: Sequence[WeightedParts], n_classes: int, dtype: type = np.float64) -> None:
        self.functions, self.n_classes = functions, n_classes
        self.forms = RowForms()
        self.graphs: list[GraphMeans] = []
        self._graph_terms: list[_Term] = []
        self._others: list[_Term] = []
        self._factors = np.array([1.0 / np.sqrt(max(len(own.views), 1)) for own in functions])[:, None, None]
        kernels: dict[int, list[tuple[int, KernelExpansion]]] = {}  # by form, those of each function
        for term in self._terms():
            function, factor, part = term
            if isinstance(part, (KernelScorer, ViewMeans)) and (expansion := part.expansion) is not None:
                form = self.forms.number(part.view, part.preprocessor)
                kernels.setdefault(form, []).append((function, _scaled(expansion, factor)))
            elif isinstance(part, GraphScorer) and has_whole_nodes(part):
                self._graphs_like(part).add(function, factor, part, self.forms)
                self._graph_terms.append(term)
            else:
                self._others.append(term)
        self.kernels = [_form_sum(form, own, dtype) for form, own in kernels.items()]
        for graphs in self.graphs:
            graphs.prepare()
        self._views = sorted({*self.forms.views, *(view for own in functions for view in own.views)})

    def _terms(self) -> list[_Term]:
        return [_Term(j, *own) for j, function in enumerate(self.functions) for own in function.parts]

    def _graphs_like(self, part: GraphScorer) -> GraphMeans:
        """The graphs of the size of this one."""
        for known in self.graphs:
            if known.fits(part.nodes):
                return known
        self.graphs.append(GraphMeans(part.nodes))
        return self.graphs[-1]

    def values(self, matrices: list[Matrix], present: list[BoolArray]) -> Array:
        """Values (functions, n, K) of rows given by view, with which rows have which view."""
        n = matrices[0].shape[0]
        values = np.zeros((len(self.functions), n, self.n_classes))
        complete = self._are_complete(present)
        others = self._others
        if any(is_sparse(matrix) for matrix in matrices):
            others = self._terms()
        elif self.kernels or self.graphs:
            work = [graphs.workspace(min(n, BLOCK_ROWS)) for graphs in self.graphs]
            with np.errstate(over="ignore", invalid="ignore"):  # reported by the kernel, with the view's name
                for rows, are_complete in self._blocks(present, n):
                    here, has = [matrix[rows] for matrix in matrices], [own[rows] for own in present]
                    values[:, rows] = self._block(here, has, work, complete=are_complete)
        for function, factor, part in others:
            values[function] += factor * part.scores(matrices, present)
        values *= self._factors if complete else self._row_factors(present)
        return values

    def _blocks(self, present: Sequence[BoolArray], n: int) -> Iterator[tuple[slice | IntArray, bool]]:
        """Some rows at a time, and whether they have all views: first those that do, which are compared faster."""
        if self._are_complete(present):
            yield from ((rows, True) for rows in blocks_of_rows(n))
            return
        has_all = np.logical_and.reduce([present[view] for view in self._views])
        for chosen, complete in ((np.flatnonzero(has_all), True), (np.flatnonzero(~has_all), False)):
            yield from ((chosen[rows], complete) for rows in blocks_of_rows(chosen.size))

    def _are_complete(self, present: Sequence[BoolArray]) -> bool:
        return all(present[view].all() for view in self._views)

    def _row_factors(self, present: Sequence[BoolArray]) -> Array:
        """1/√(number of the function's views that the row has), (functions, n, 1)."""
        one = np.ones(present[0].size)
        factors = [row_factors([present[view] for view in own.views]) if own.views else one for own in self.functions]
        return np.stack(factors)[:, :, None]

    def _block(self, matrices: list[Matrix], present: list[BoolArray], work: list[Array], *, complete: bool) -> Array:
        """The sums over kernels and graphs, (functions, n, K)."""
        n, K = matrices[0].shape[0], self.n_classes
        index = None if complete else {view: np.flatnonzero(present[view]) for view in self.forms.views}
        rows, values = self.forms.of(matrices, index), np.zeros((len(self.functions), n, K))
        for form, functions, summed in self.kernels:
            chosen = slice(None) if index is None else index[self.forms.view(form)]
            self._add(values, functions, summed.of_rows(rows[form]), chosen)
        if not np.abs(values).max(initial=0.0) <= MAX_SUM:  # or NaN
            for form, _, summed in self.kernels:
                summed.checked(summed.of_rows(rows[form]))
        if complete:
            for graphs, room in zip(self.graphs, work, strict=True):
                self._add(values, graphs.functions, graphs.means(rows, n, room), slice(None))
        else:
            for function, factor, graph in self._graph_terms:
                values[function] += factor * graph.scores(matrices, present)
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


def _scaled(expansion: KernelExpansion, factor: float) -> KernelExpansion:
    return expansion._replace(coefficients=factor * expansion.coefficients, constant=factor * expansion.constant)


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
