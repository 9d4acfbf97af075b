"""The formulas of a model, written once, for ONNX models and for other array libraries.

Formulas with tensors become nodes of a graph, equal formulas one node. :mod:`cmvmed.model.onnx_model` writes the graph to a file,
:mod:`cmvmed.model.array_program` computes it where the user's arrays are. Numbers are in double precision, as in the library,
whatever the type of inputs and outputs: in single precision, rounding would choose other nearest rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed.data.validation import RowCheck
from cmvmed.model.fitted_model import Member, Model
from cmvmed.numerics.kernels import MIXTURES, Kernel
from cmvmed.numerics.linalg import is_sparse, unit_rows
from cmvmed.numerics.trees import Trees
from cmvmed.numerics.types import Array, BoolArray, IntArray, Matrix
from cmvmed.views.preprocessing import Scaling
from cmvmed.views.view_rows import ViewPreprocessor

FORMULAS = (*MIXTURES, "cosine")  # kernels that have a formula


@dataclass(frozen=True)
class Tensor:
    """A value in the graph, computed from the rows that the user passes."""

    graph: Graph
    name: str

    def __add__(self, other: Operand) -> Tensor:
        return self.graph.apply("Add", self, other)

    def __sub__(self, other: Operand) -> Tensor:
        return self.graph.apply("Sub", self, other)

    def __mul__(self, other: Operand) -> Tensor:
        return self.graph.apply("Mul", self, other)

    def __truediv__(self, other: Operand) -> Tensor:
        return self.graph.apply("Div", self, other)

    def __matmul__(self, other: Operand) -> Tensor:
        return self.graph.apply("MatMul", self, other)

    def __neg__(self) -> Tensor:
        return self.graph.apply("Neg", self)

    def __or__(self, other: Operand) -> Tensor:
        return self.graph.apply("Or", self, other)

    def above(self, bound: Operand) -> Tensor:
        """Whether it is greater."""
        return self.graph.apply("Greater", self, bound)

    def below(self, bound: Operand) -> Tensor:
        """Whether it is less."""
        return self.graph.apply("Less", self, bound)

    def within(self, bound: Operand) -> Tensor:
        """Whether it is less or equal."""
        return self.graph.apply("LessOrEqual", self, bound)

    def where(self, yes: Operand, no: Operand) -> Tensor:
        """``yes`` where this is true, else ``no``."""
        return self.graph.apply("Where", self, yes, no)

    def at_least(self, least: Operand) -> Tensor:
        """The larger of both."""
        return self.graph.apply("Max", self, least)

    def at_most(self, most: Operand) -> Tensor:
        """The smaller of both."""
        return self.graph.apply("Min", self, most)

    def apply(self, operator: str, **attributes: object) -> Tensor:
        """The result of an operator of one argument."""
        return self.graph.apply(operator, self, **attributes)

    def reduce(self, operator: str) -> Tensor:
        """One number for each row, (n, 1)."""
        return self.apply(operator, axes=(1,), keepdims=1)

    def sum(self) -> Tensor:
        """Sums of the rows, (n, 1)."""
        return self.graph.apply("ReduceSum", self, np.array([1]), keepdims=1)

    def log_softmax(self) -> Tensor:
        """Of each row, (n, k)."""
        return self.apply("LogSoftmax", axis=1)

    def as_number(self) -> Tensor:
        """In double precision; 1 and 0 for true and false."""
        return self.cast(np.float64)

    def cast(self, dtype: Any) -> Tensor:
        """In another type of numbers."""
        return self.apply("Cast", to=self.graph.element_type(dtype))


def sum_of(tensors: Sequence[Tensor]) -> Tensor:
    """The sum of some tensors."""
    return tensors[0] if len(tensors) == 1 else tensors[0].graph.apply("Sum", *tensors)


Operand: TypeAlias = Tensor | NDArray[Any] | float | bool


class Graph(ABC):
    """Nodes and constants by name; subclasses say in which form they are kept."""

    def __init__(self) -> None:
        self._names: dict[object, tuple[str, ...]] = {}

    @abstractmethod
    def input(self, name: str, n_columns: int, dtype: Any) -> Tensor:
        """A table (n, n_columns) that the user passes."""

    @abstractmethod
    def element_type(self, dtype: Any) -> Any:
        """A type of numbers as the operator "Cast" needs it."""

    @abstractmethod
    def mean_votes(self, rows: Tensor, trees: Trees) -> Tensor:
        """:meth:`cmvmed.numerics.trees.Trees.mean_votes` of rows (n, d) in single precision, (n, K) in double precision."""

    @abstractmethod
    def _add_node(
        self, operator: str, operands: Sequence[str], results: Sequence[str], attributes: Mapping[str, Any]
    ) -> None:
        """Keep a node."""

    @abstractmethod
    def _add_constant(self, name: str, array: NDArray[Any]) -> None:
        """Keep a constant."""

    def apply(self, operator: str, *operands: Operand, **attributes: object) -> Tensor:
        """The result of an operator."""
        return self.results(operator, 1, *operands, **attributes)[0]

    def results(self, operator: str, n_results: int, *operands: Operand, **attributes: object) -> list[Tensor]:
        """The results of an operator that has several; the first ones, if not all are used."""
        names = [self.tensor(operand).name for operand in operands]
        key = (operator, *names, *sorted(attributes.items()))
        if key not in self._names:
            self._names[key] = tuple(f"/{len(self._names)}/{i}" for i in range(n_results))
            self._add_node(operator, names, self._names[key], attributes)
        return [Tensor(self, name) for name in self._names[key]]

    def concatenate(self, *tensors: Tensor) -> Tensor:
        """Tables side by side."""
        return self.apply("Concat", *tensors, axis=1)

    def tensor(self, value: Operand) -> Tensor:
        """A value itself, or a constant; numbers are in double precision, equal constants are one."""
        if isinstance(value, Tensor):
            return value
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        content = repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes()
        key = (array.dtype.str, array.shape, blake2b(content, digest_size=16).digest())
        if key not in self._names:
            self._names[key] = (f"/constant/{len(self._names)}",)
            self._add_constant(self._names[key][0], array)
        return Tensor(self, self._names[key][0])


@dataclass(frozen=True)
class ViewInput:
    """The rows of one view as the user passes them."""

    n_columns: int  # d
    rows: Tensor  # (n, d), NaN where there is no number
    gaps: Tensor  # (n, d), which those are
    has: Tensor  # (n, 1), whether a row has the view; false for all if no training row had it

    @property
    def mask(self) -> Tensor:
        """1 for rows that have the view and 0 for others, (n, 1)."""
        return self.has.as_number()

    def points(self, preprocessor: ViewPreprocessor) -> Tensor:
        """Rows in the form of the training rows, (n, d); those without the view have arbitrary finite numbers.

        Steps as in :class:`cmvmed.views.preprocessing.Imputation` and :class:`cmvmed.views.preprocessing.Scaling`.
        """
        imputation = preprocessor.imputation
        empty = np.zeros(self.n_columns, dtype=bool) if imputation is None else imputation.empty
        values = np.zeros(self.n_columns) if imputation is None else np.where(empty, 0.0, imputation.means)
        rows = (self.gaps | empty if empty.any() else self.gaps).where(values, self.rows)
        return scaled(rows, preprocessor.scaling, self.n_columns)


def view_input(
    graph: Graph, name: str, n_columns: int, dtype: Any, unused: BoolArray | None, *, usable: bool
) -> ViewInput:
    """A new input; a row whose used columns are all NaN does not have the view.

    Parameters
    ----------
    unused : columns whose values do not matter, (n_columns,); None if all do
    usable : whether training rows had the view
    """
    rows = graph.input(name, n_columns, dtype).as_number()
    gaps = rows.apply("IsNaN")
    missing = gaps if unused is None else gaps | unused
    has = missing.as_number().reduce("ReduceMin").below(1.0)
    return ViewInput(n_columns, rows, gaps, has if usable else graph.apply("And", has, False))


def scaled(rows: Tensor, scaling: Scaling, n_columns: int) -> Tensor:
    """:meth:`cmvmed.views.preprocessing.Scaling.apply` of complete rows (n, d).

    Each column has its own divisor: a scalar one would be moved by onnxruntime into the next product of matrices, in single
    precision.
    """
    if scaling.kind is None:
        return rows
    if scaling.kind == "unit":
        return unit_length(rows)
    rows = rows if scaling.size == 1.0 else rows / np.full(n_columns, scaling.size)
    if scaling.mean is None:
        return rows
    centered = rows - scaling.mean
    if scaling.kind == "center" or scaling.factor is None:
        return centered
    clipped = rows.graph.apply("Clip", centered * scaling.factor, -scaling.clip, scaling.clip)
    return clipped / np.full(n_columns, np.sqrt(n_columns))


def unit_length(rows: Tensor) -> Tensor:
    """Each row divided by its length, in two steps so that squares neither overflow nor vanish; zeros stay."""
    largest = rows.apply("Abs").reduce("ReduceMax")
    rows = rows / largest.above(0.0).where(largest, 1.0)
    length = rows.reduce("ReduceL2")
    return rows / length.above(0.0).where(length, 1.0)


class ComparedRows:
    """Tables of training rows, by the object that holds them."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[Matrix, BoolArray]] = {}
        self._distances: dict[tuple[str, int], Tensor] = {}  # by points and table

    def use(self, train: Matrix, rows: IntArray) -> None:
        """Say that these rows of a table are needed."""
        _, used = self._tables.setdefault(id(train), (train, np.zeros(train.shape[0], dtype=bool)))
        used[rows] = True

    @property
    def n_bytes(self) -> int:
        """Of all tables."""
        return sum(8 * int(used.sum()) * train.shape[1] for train, used in self._tables.values())

    def used(self, train: Matrix) -> IntArray:
        """The rows of a table that are in the graph, ascending."""
        return np.flatnonzero(self._tables[id(train)][1])

    def squared_distances(self, points: Tensor, train: Matrix) -> Tensor:
        """‖x‖² + ‖x'‖² - 2x·x' between points and the used rows of a table, (n, p), not below zero."""
        key = (points.name, id(train))
        if key not in self._distances:
            chosen = train[self.used(train)]
            rows: Array = chosen.toarray() if is_sparse(chosen) else chosen
            norms, others = points.reduce("ReduceSumSquare"), np.asarray(np.einsum("ij,ij->i", rows, rows))
            self._distances[key] = (norms + others + (points * -2.0) @ rows.T).at_least(0.0)
        return self._distances[key]


@dataclass(frozen=True)
class Formulas:
    """The inputs of a model, and the training rows that they are compared with, for the formulas of terms."""

    views: list[ViewInput]
    rows: ComparedRows

    def sum_of(self, tensors: Sequence[Tensor]) -> Tensor:
        """The sum of some tensors."""
        return sum_of(tensors)

    def has_any(self, views: Sequence[int]) -> Tensor:
        """1 for rows that have one of the views and 0 for others, (n, 1)."""
        masks = [self.views[view].mask for view in views]
        if not masks:
            return self.views[0].mask * 0.0
        return masks[0] if len(masks) == 1 else masks[0].graph.apply("Max", *masks)

    def unit_length(self, points: Tensor) -> Tensor:
        """Each row divided by its length."""
        return unit_length(points)


@dataclass(frozen=True)
class ModelFormulas:
    """What the outputs for some rows come from."""

    views: list[ViewInput]
    by_view: list[Tensor]  # per view (n, K), logits of rows that have it
    logits: Tensor  # (n, K), log p up to a constant of each row
    coverage: Tensor  # (n, 1), weight of the views that the row has


def has_formulas(model: Model) -> bool:
    """Whether all terms of a model can be computed by other programs."""
    return all(term.without_formula is None for member in model.members for term in member.terms)


def compared_rows(model: Model) -> ComparedRows:
    """The training rows that the formulas of a model need; an error if a term has no formula."""
    rows = ComparedRows()
    for member in [*(m for m, w in zip(model.members, _weights(model), strict=True) if w), model.consensus]:
        for term in member.terms:
            if term.without_formula is not None:
                raise ValueError(
                    f"{term.without_formula}, which an ONNX model cannot compute; use one of {', '.join(map(repr, FORMULAS))}."
                )
            for train, used in term.compared():
                rows.use(train, used)
    return rows


def _weights(model: Model) -> list[bool]:
    """Which members have a weight in the probabilities."""
    return [True] if model.pool is None else np.asarray(model.pool.weights != 0.0).tolist()


def model_formulas(
    graph: Graph, model: Model, rows: ComparedRows, dtype: Any, check: RowCheck | None = None
) -> ModelFormulas:
    """The formulas of a model for inputs of a type of numbers.

    ``check`` says which columns do not matter; those of the model if it is left out.
    """
    formulas = Formulas(_inputs(graph, model, dtype, model.row_check if check is None else check), rows)
    consensus = model.consensus
    scores = [term.emit(formulas) for term in consensus.terms]
    by_view = [score * consensus.scale + consensus.offset for score in scores[: len(formulas.views)]]
    weighted = [
        formulas.has_any(term.needs) * float(weight)
        for weight, term in zip(consensus.weights, consensus.terms, strict=True)
    ]
    coverage = sum_of(weighted)
    last = _combined(consensus, scores, coverage.above(0.0).where(coverage, 1.0))
    if model.pool is None:
        log_p = last
    else:
        members = zip(model.pool.weights, model.members, strict=True)
        logits = [
            (last if member is consensus else _member_logits(member, formulas)) * float(weight)
            for weight, member in members
            if weight != 0.0
        ]
        log_p = (sum_of(logits) + model.pool.offset).log_softmax()
    return ModelFormulas(formulas.views, by_view, coverage.above(0.0).where(log_p, np.log(model.class_prior)), coverage)


def _inputs(graph: Graph, model: Model, dtype: Any, check: RowCheck) -> list[ViewInput]:
    parts = zip(model.schema.view_names, model.schema.layout.widths, check.unused, model.known_views, strict=True)
    return [view_input(graph, name, width, dtype, columns, usable=known) for name, width, columns, known in parts]


def _combined(member: Member, scores: Sequence[Tensor], divisor: Tensor | None) -> Tensor:
    """z = scale · Σ_t w_t s_t / divisor + offset, (n, K)."""
    weighted = [s if w == 1.0 else s * float(w) for w, s in zip(member.weights, scores, strict=True) if w != 0.0]
    total = sum_of(weighted) if weighted else scores[0] * 0.0
    total = total if divisor is None else total / divisor
    return total * float(member.scale) + member.offset


def _member_logits(member: Member, formulas: Formulas) -> Tensor:
    scores, divisor = [term.emit(formulas) for term in member.terms], None
    if member.rule == "root":
        count = sum_of([formulas.views[term.views[0]].mask for term in member.terms])
        divisor = count.at_least(1.0).apply("Sqrt")
    return _combined(member, scores, divisor)


def kernel_values(kernel: Kernel, points: Tensor, train: Array) -> Tensor:
    """k(x, x') of points and all rows of a table, (n, p)."""
    if kernel.kind == "cosine":
        return unit_length(points) @ np.asarray(unit_rows(train).T)
    mixture, parts = kernel.mixture, []
    if mixture is None:
        raise ValueError(f"The kernel of view {kernel.view!r} has no formula.")
    if mixture.linear:  # -2x·x' is computed once for the distances, too
        parts.append(((points * -2.0) @ train.T) * (-0.5 * mixture.linear))
    if mixture.gaussian:
        rows = ComparedRows()
        rows.use(train, np.arange(train.shape[0]))
        gaussian = (rows.squared_distances(points, train) * -kernel.gamma).apply("Exp")
        parts.append(gaussian if mixture.gaussian == 1.0 else gaussian * mixture.gaussian)
    return sum_of(parts)
