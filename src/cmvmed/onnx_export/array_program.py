"""A graph of ONNX operators that is computed by an array library with the functions of the array API standard.

The graph is that of an ONNX model, so the formulas of a prediction are written once. Nothing of the package onnx is needed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cmvmed.onnx_export.graph_builder import Graph, Tensor

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
        """All numbers are in double precision; "Cast" turns truth values into them."""
        return np.dtype(dtype).kind

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
        self.xp, self.outputs = xp, [tensor.name for tensor in outputs]
        self.nodes = _needed(program.nodes, self.outputs)
        used = {name for node in self.nodes for name in node.operands}
        self.constants = {
            name: xp.asarray(array, device=device) for name, array in program.constants.items() if name in used
        }
        self._uses = Counter(name for node in self.nodes for name in node.operands)

    @property
    def widest(self) -> int:
        """Columns of the widest table that is computed: one for each row of the longest constant."""
        return max((size for constant in self.constants.values() for size in constant.shape), default=1)

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


OPERATORS: dict[str, Callable[[ArrayRunner, Values, Attributes], Any]] = {
    "Abs": _of_one("abs"),
    "Add": lambda run, x, _: x[0] + x[1],
    "And": _of_all("logical_and"),
    "Cast": lambda run, x, _: run.xp.astype(x[0], run.xp.float64, copy=False),
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
