"""Predictions where the user's arrays are, by any library that follows the array API standard: torch, CuPy and others.

Kernels, sums over landmarks and everything after them are computed by that library in double precision, from the formulas of
:mod:`cmvmed.model.formulas`. Coefficients of landmarks are large and of both signs, so that single precision would lose digits.
What the formulas do not hold is computed by numpy and moved: kernels that are functions or precomputed, sets of classes, and all
on devices without double precision. Nothing of the package onnx is needed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cmvmed.data.array_api import ArrayPlace, on_host
from cmvmed.data.layout import InputSchema, check_equal_counts, check_widths, is_view_collection, parts_by_view
from cmvmed.data.reading import InputSettings
from cmvmed.data.sources.array_rows import ArrayApiRows, rows_at_a_time
from cmvmed.data.validation import RowCheck
from cmvmed.model.fitted_model import Model
from cmvmed.model.formulas import Graph, Tensor, compared_rows, has_formulas, model_formulas
from cmvmed.model.predict import OutputKind, ScoredRows, predict, warn_without_views
from cmvmed.numerics.trees import Trees
from cmvmed.numerics.types import Array

Values = Sequence[Any]  # arrays of the library
Attributes = Mapping[str, Any]


class Node(NamedTuple):
    """An operator with the names of its operands and results."""

    operator: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: Attributes


class ArrayProgram(Graph):
    """The nodes of a graph in the order of computation, and its constants."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def input(self, name: str, n_columns: int, dtype: Any) -> Tensor:
        """A table (n, n_columns) that the user passes."""
        return Tensor(self, name)

    def element_type(self, dtype: Any) -> Any:
        """The name of the type."""
        return np.dtype(dtype).name

    def mean_votes(self, rows: Tensor, trees: Trees) -> Tensor:
        """The mean votes of trees, (n, K)."""
        nodes = (trees.column, trees.bound, trees.child, trees.node_vote)
        roots = np.arange(trees.n_trees)[None]
        return self.apply("MeanVotes", rows, roots, *nodes, trees.votes, depth=trees.depth)

    def _add_node(
        self, operator: str, operands: Sequence[str], results: Sequence[str], attributes: Mapping[str, Any]
    ) -> None:
        self.nodes.append(Node(operator, tuple(operands), tuple(results), attributes))

    def _add_constant(self, name: str, array: NDArray[Any]) -> None:
        self.constants[name] = array


class ArrayRunner:
    """A program with its constants on a device.

    Parameters
    ----------
    program : ArrayProgram
    outputs : tensors that are asked for
    xp : namespace of the array library, as array-api-compat gives it
    device : where its arrays are
    """

    def __init__(self, program: ArrayProgram, outputs: Sequence[Tensor], xp: Any, device: Any) -> None:
        self.xp, self.device, self.outputs = xp, device, [tensor.name for tensor in outputs]
        self.nodes = _needed(program.nodes, self.outputs)
        used = {name for node in self.nodes for name in node.operands}
        self.constants = {
            name: xp.asarray(array, device=device) for name, array in program.constants.items() if name in used
        }
        self._uses = Counter(name for node in self.nodes for name in node.operands)

    @property
    def widest(self) -> int:
        """Columns of the widest table that is computed: one for each row of the longest table among the constants."""
        tables = [constant for constant in self.constants.values() if constant.ndim > 1]
        return max((size for table in tables for size in table.shape), default=1)

    def __call__(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The outputs for tables by name; a value is dropped after its last use."""
        values = {**self.constants, **inputs}
        left = self._uses + Counter(self.outputs)
        for node in self.nodes:
            found = OPERATORS[node.operator](self, [values[name] for name in node.operands], node.attributes)
            values |= zip(node.results, found if isinstance(found, list) else [found], strict=False)
            for name in node.operands:
                left[name] -= 1
                if not left[name]:
                    del values[name]
        return [values[name] for name in self.outputs]


def _needed(nodes: Sequence[Node], outputs: Sequence[str]) -> list[Node]:
    """The nodes on which the outputs depend."""
    wanted, found = set(outputs), []
    for node in reversed(nodes):
        if wanted.intersection(node.results):
            wanted.update(node.operands)
            found.append(node)
    return found[::-1]


def _reduced(name: str) -> Callable[[ArrayRunner, Values, Attributes], Any]:
    """A function of the library over the columns, (n, 1)."""
    return lambda run, x, _: getattr(run.xp, name)(x[0], axis=1, keepdims=True)


def _of_one(name: str) -> Callable[[ArrayRunner, Values, Attributes], Any]:
    return lambda run, x, _: getattr(run.xp, name)(x[0])


def _of_all(name: str) -> Callable[[ArrayRunner, Values, Attributes], Any]:
    """A function of two arrays, applied to all operands in turn."""
    return lambda run, x, _: reduce(getattr(run.xp, name), x)


def _log_softmax(run: ArrayRunner, x: Values, _: Attributes) -> Any:
    shifted = x[0] - run.xp.max(x[0], axis=1, keepdims=True)
    return shifted - run.xp.log(run.xp.sum(run.xp.exp(shifted), axis=1, keepdims=True))


def _smallest(run: ArrayRunner, x: Values, _: Attributes) -> Any:
    """The k smallest values of each row, ascending (n, k); torch need not sort all, for which the standard has no function."""
    k = int(x[1][0])
    if hasattr(run.xp, "topk"):
        return [run.xp.topk(x[0], k, dim=1, largest=False).values]
    return [run.xp.sort(x[0], axis=1)[:, :k]]


def _mean_votes(run: ArrayRunner, x: Values, attributes: Attributes) -> Any:
    """As :meth:`cmvmed.numerics.trees.Trees.mean_votes`; the standard's ``take`` needs vectors of indices."""
    xp, (rows, roots, column, bound, child, vote, votes) = run.xp, x
    n, n_trees = rows.shape[0], roots.shape[1]
    first = xp.reshape(xp.arange(n, dtype=xp.int64, device=run.device), (n, 1))
    values, start = xp.reshape(rows, (-1,)), xp.reshape(first * rows.shape[1] + 0 * roots, (-1,))
    node = xp.reshape(0 * first + roots, (-1,))
    for _ in range(attributes["depth"]):
        above = xp.take(values, start + xp.take(column, node, axis=0), axis=0) > xp.take(bound, node, axis=0)
        node = xp.take(child, node, axis=0) + xp.astype(above, xp.int64)
    given = xp.take(vote, node, axis=0)
    by_class = (xp.reshape(xp.take(votes[:, k], given, axis=0), (n, n_trees)) for k in range(votes.shape[1]))
    return xp.stack([xp.mean(own, axis=1) for own in by_class], axis=1)


OPERATORS: dict[str, Callable[[ArrayRunner, Values, Attributes], Any]] = {
    "Abs": _of_one("abs"),
    "Add": lambda run, x, _: x[0] + x[1],
    "And": _of_all("logical_and"),
    "Cast": lambda run, x, attributes: run.xp.astype(x[0], getattr(run.xp, attributes["to"]), copy=False),
    "Clip": lambda run, x, _: run.xp.minimum(run.xp.maximum(x[0], x[1]), x[2]),
    "Concat": lambda run, x, attributes: run.xp.concat(x, axis=attributes["axis"]),
    "Div": lambda run, x, _: x[0] / x[1],
    "Exp": _of_one("exp"),
    "Gather": lambda run, x, attributes: run.xp.take(x[0], x[1], axis=attributes["axis"]),
    "Greater": lambda run, x, _: x[0] > x[1],
    "IsNaN": _of_one("isnan"),
    "Less": lambda run, x, _: x[0] < x[1],
    "LessOrEqual": lambda run, x, _: x[0] <= x[1],
    "Log": _of_one("log"),
    "LogSoftmax": _log_softmax,
    "MatMul": lambda run, x, _: x[0] @ x[1],
    "Max": _of_all("maximum"),
    "MeanVotes": _mean_votes,
    "Min": _of_all("minimum"),
    "Mul": lambda run, x, _: x[0] * x[1],
    "Neg": lambda run, x, _: -x[0],
    "Or": _of_all("logical_or"),
    "ReduceL2": lambda run, x, _: run.xp.sqrt(run.xp.sum(x[0] * x[0], axis=1, keepdims=True)),
    "ReduceMax": _reduced("max"),
    "ReduceMin": _reduced("min"),
    "ReduceSum": _reduced("sum"),
    "ReduceSumSquare": lambda run, x, _: run.xp.sum(x[0] * x[0], axis=1, keepdims=True),
    "Sqrt": _of_one("sqrt"),
    "Sub": lambda run, x, _: x[0] - x[1],
    "Sum": lambda run, x, _: sum(x[1:], start=x[0]),
    "TopK": _smallest,
    "Where": lambda run, x, _: run.xp.where(x[0], x[1], x[2]),
}


def predict_arrays(model: Model, X: Any, kind: OutputKind, settings: InputSettings, place: ArrayPlace) -> Any:
    """The "score", "class" or "probability" of rows, as an array of their library on their device; texts by numpy."""
    if not has_formulas(model) or not isinstance(kind, str) or not place.has_double_precision:
        return place.put(predict(model, on_host(X), kind, settings))
    logits, coverage = _logits(model, _new_rows(X, model.schema, place), model.row_check)
    _warn_without_views(coverage, place)
    return _output(model, logits, kind, place)


def probabilities_of_rows(model: Model, rows: ArrayApiRows, check: RowCheck) -> tuple[Array, Array]:
    """The probability of each class (n, K) and the coverage (n,), computed where the rows are and moved.

    ``check`` says which columns of rows do not matter.
    """
    logits, coverage = _logits(model, rows, check)
    return on_host(_output(model, logits, "probability", rows.place)), on_host(coverage)[:, 0]


def _new_rows(X: Any, schema: InputSchema, place: ArrayPlace) -> ArrayApiRows:
    """The rows of each view; NaN for a view that is None."""
    if not is_view_collection(X):
        _check_shapes({"X": X.shape})
        if X.shape[1] != schema.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but fit saw {schema.n_features}; pass the same columns.")
        return ArrayApiRows(place, [X], schema.layout)
    parts = parts_by_view(X, schema)
    shapes = {view: part.shape for view, part in zip(schema.view_names, parts, strict=True) if part is not None}
    _check_shapes(shapes)
    n_rows = next(iter(shapes.values()))[0]
    full = [
        place.xp.full((n_rows, width), place.xp.nan, device=place.device) if part is None else part
        for part, width in zip(parts, schema.layout.widths, strict=True)
    ]
    check_widths([part.shape[1] for part in full], schema)
    return ArrayApiRows(place, full)


def _check_shapes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless all tables have two dimensions and as many rows, at least one."""
    for name, shape in shapes.items():
        if len(shape) != 2 or shape[0] == 0:
            raise ValueError(f"{name} must be a two-dimensional array with at least one row, but its shape is {shape}.")
    check_equal_counts({name: shape[0] for name, shape in shapes.items()})


def _logits(model: Model, rows: ArrayApiRows, check: RowCheck) -> list[Any]:
    """Logits (n, K) and coverage (n, 1) of all rows, some at a time; an infinite value is an error that names it."""
    program = ArrayProgram()
    formulas = model_formulas(program, model, compared_rows(model), np.float64, check)
    runner = ArrayRunner(program, [formulas.logits, formulas.coverage], *rows.place)
    found = []
    for first_row, tables in rows.chunks(rows_at_a_time(runner.widest)):
        rows.check_chunk(check, first_row, tables)
        found.append(runner(dict(zip(model.schema.view_names, tables, strict=True))))
    return [rows.place.xp.concat(parts, axis=0) for parts in zip(*found, strict=True)]


def _warn_without_views(coverage: Any, place: ArrayPlace) -> None:
    """The warning of rows without any view, as for other arrays."""
    if bool(place.xp.any(coverage == 0.0)):
        warn_without_views(ScoredRows(np.empty((coverage.shape[0], 0)), on_host(coverage)[:, 0]))


def _output(model: Model, logits: Any, kind: str, place: ArrayPlace) -> Any:
    """What :func:`cmvmed.model.predict.output` gives, from logits (n, K)."""
    xp = place.xp
    if kind == "probability":
        p = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
        return p / xp.sum(p, axis=1, keepdims=True)
    if kind == "class":
        codes = xp.argmax(logits, axis=1)
        if model.classes.dtype.kind not in "biuf":
            return model.classes[on_host(codes)]
        return xp.take(place.put(model.classes), codes, axis=0)
    if model.classes.size == 2:  # log-odds; of the consensus alone, its pooled scores, which are T times as large
        odds = logits[:, 1] - logits[:, 0]
        return odds * model.temperature if model.pool is None else odds
    if model.pool is None:
        return logits * (2.0 * model.temperature)
    return logits - xp.mean(logits, axis=1, keepdims=True)
