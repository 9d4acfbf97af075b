"""Formulas with tensors become the nodes of a graph, such as an ONNX model; equal formulas are computed once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cmvmed._optional import import_optional

OPSET = 13  # of the operators used; runtimes since 2020 have it
IR_VERSION = 7  # of the file format, which belongs to that set
SMALL = 1000  # entries of a constant below which its zeros are kept
MAX_DENSITY = 0.25  # share of nonzero entries up to which they alone are kept: a position takes as much as a number
ROWS = "rows"  # name of the dimension that inputs and outputs have in common


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


class GraphBuilder(Graph):
    """The nodes and constants of an ONNX graph."""

    def __init__(self) -> None:
        super().__init__()
        self.helper = import_optional("onnx.helper", "onnx", "to_onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.sparse_constants: list[Any] = []  # tables of mostly zeros
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def input(self, name: str, n_columns: int, dtype: Any) -> Tensor:
        """A table (n, n_columns) that the user passes."""
        self.inputs.append(self.helper.make_tensor_value_info(name, self.element_type(dtype), [ROWS, int(n_columns)]))
        return Tensor(self, name)

    def output(self, name: str, value: Tensor, dtype: Any, n_columns: int | None = None) -> None:
        """Give a value to the user: (n, n_columns), or (n,)."""
        shape = [ROWS] if n_columns is None else [ROWS, n_columns]
        self.nodes.append(self.helper.make_node("Identity", [value.name], [name]))
        self.outputs.append(self.helper.make_tensor_value_info(name, self.element_type(dtype), shape))

    def element_type(self, dtype: Any) -> int:
        """The number that ONNX gives to a type."""
        return int(self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def _add_node(
        self, operator: str, operands: Sequence[str], results: Sequence[str], attributes: Mapping[str, Any]
    ) -> None:
        self.nodes.append(self.helper.make_node(operator, list(operands), list(results), **attributes))

    def _add_constant(self, name: str, array: NDArray[Any]) -> None:
        if array.dtype.kind == "O":
            encoded = [text.encode() for text in array.ravel().tolist()]
            self.constants.append(self.helper.make_tensor(name, self.element_type(object), array.shape, encoded))
        elif array.size > SMALL and np.count_nonzero(array) <= MAX_DENSITY * array.size:
            self.sparse_constants.append(self._sparse(name, array))
        else:
            self.constants.append(self._dense(name, array))

    def _dense(self, name: str, array: NDArray[Any]) -> Any:
        return self.helper.make_tensor(name, self.element_type(array.dtype), array.shape, array.tobytes(), raw=True)

    def _sparse(self, name: str, array: NDArray[Any]) -> Any:
        """The nonzero entries and their positions in the table read row by row."""
        places = np.flatnonzero(array)
        values, indices = self._dense(name, array.ravel()[places]), self._dense(f"{name}/places", places)
        return self.helper.make_sparse_tensor(values, indices, array.shape)
