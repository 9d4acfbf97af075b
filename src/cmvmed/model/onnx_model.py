"""A fitted model as an ONNX model, a graph of standard operators, for programs without Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed import __version__
from cmvmed._optional import import_optional
from cmvmed.model.fitted_model import Model
from cmvmed.model.formulas import ComparedRows, Graph, Tensor, compared_rows, model_formulas
from cmvmed.numerics.trees import Trees
from cmvmed.numerics.types import Array

OPSET = 13  # of the operators used; runtimes since 2020 have it
TREE_DOMAIN, TREE_OPSET = "ai.onnx.ml", 2  # of the operator of trees, which models without trees do not need
SINGLE_BITS = 24  # up to 2**24, whole numbers are exact in single precision
IR_VERSION = 7  # of the file format, which belongs to that set
SMALL = 1000  # entries of a constant below which its zeros are kept
MAX_DENSITY = 0.25  # share of nonzero entries up to which they alone are kept: a position takes as much as a number
MAX_BYTES = 2**28  # of the tables; a file of the ONNX format ends at 2**31
ROWS = "rows"  # name of the dimension that inputs and outputs have in common
DTYPES = ("float32", "float64")  # of inputs and outputs
LABEL, PROBABILITIES, SCORES, BY_VIEW = "label", "probabilities", "scores", "probabilities_{}"  # outputs
DESCRIPTION = (
    "Inputs: one table per view, columns as in the metadata; a row of NaN does not have the view, a single NaN is filled. "
    "Outputs: the class of each row, and the probability of each class in the order of the metadata."
)


@dataclass(frozen=True)
class OutputChoice:
    """What an ONNX model returns beside the labels."""

    probabilities: bool  # else scores
    by_view: bool  # probabilities by each view too
    dtype: str  # of numbers


def onnx_model(model: Model, estimator: str, choice: OutputChoice) -> Any:
    """The ``onnx.ModelProto``; ``estimator`` is the name of the class."""
    names, graph = model.schema.view_names, GraphBuilder()
    _check_names(names, choice)
    rows = compared_rows(model)
    check_size(rows)
    found = model_formulas(graph, model, rows, choice.dtype)
    _add_labels(graph, model, found.logits)
    if choice.probabilities:
        _add_probabilities(graph, PROBABILITIES, found.logits, model, choice)
    else:
        scores = _decision_scores(model, found.logits)
        graph.output(SCORES, scores.cast(choice.dtype), choice.dtype, model.prior_scores.size)
    for name, view, logits in zip(names, found.views, found.by_view, strict=True):
        if choice.by_view:
            own = view.has.where(logits, np.log(model.class_prior))
            _add_probabilities(graph, BY_VIEW.format(name), own, model, choice)
    properties = {
        "estimator": estimator,
        "classes": model.classes.tolist(),
        "views": list(names),
        "columns": model.schema.known_columns,
    }
    return finished_model(graph, estimator, DESCRIPTION, properties)


def _add_labels(graph: GraphBuilder, model: Model, logits: Tensor) -> None:
    """The class of the largest logit; the first of equal ones, as in ``predict``."""
    labels = label_values(model.classes)
    graph.output(LABEL, graph.apply("Gather", labels, logits.apply("ArgMax", axis=1, keepdims=0), axis=0), labels.dtype)


def _add_probabilities(graph: GraphBuilder, name: str, logits: Tensor, model: Model, choice: OutputChoice) -> None:
    graph.output(name, logits.apply("Softmax", axis=1).cast(choice.dtype), choice.dtype, model.n_classes)


def _decision_scores(model: Model, logits: Tensor) -> Tensor:
    """The scores (n, F) whose logits these are, of one member alone."""
    if model.n_classes == 2:
        return logits @ (model.temperature * np.array([[-1.0], [1.0]]))
    return logits * (2.0 * model.temperature)


def _check_names(views: Sequence[str], choice: OutputChoice) -> None:
    outputs = [LABEL, PROBABILITIES if choice.probabilities else SCORES]
    outputs += [BY_VIEW.format(name) for name in views] if choice.by_view else []
    taken = [name for name in views if name in outputs or not name or name.startswith("/")]
    if taken:
        raise ValueError(
            f"A view is named {taken[0]!r}. The inputs of an ONNX model have the names of the views, which must not be empty, "
            f"begin with a slash, or be the name of an output ({', '.join(outputs)}); give the view another name."
        )


def check_size(rows: ComparedRows) -> None:
    """Raise if the training rows are too many for a file."""
    if rows.n_bytes > MAX_BYTES:
        raise ValueError(
            f"The ONNX model would hold {rows.n_bytes / 2**20:.0f} MiB of training rows, more than {MAX_BYTES / 2**20:.0f} MiB, "
            "because it stores sparse views as dense ones. Use fewer columns (for texts TextView(max_features=...)), fit with "
            "members that are not graphs, such as ['views', 'lda', 'trees', 'consensus'], or pass a smaller number of landmarks "
            "as approximation."
        )


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

    def mean_votes(self, rows: Tensor, trees: Trees) -> Tensor:
        """The mean votes of trees, (n, K).

        The operator of trees adds in single precision. Votes are therefore written as digits of so many bits that their sums
        over all trees are exact.
        """
        bits = max(1, SINGLE_BITS - (trees.n_trees - 1).bit_length())
        digits = _digits(trees.votes, bits)
        sums = self.apply("TreeEnsembleRegressor", rows, domain=TREE_DOMAIN, **_tree_attributes(trees, digits))
        places = np.exp2(-bits * np.arange(1.0, 1.0 + len(digits))) / trees.n_trees
        return sums.as_number() @ np.kron(places[:, None], np.eye(trees.votes.shape[1]))

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


def _digits(shares: Array, bits: int) -> list[Array]:
    """Whole numbers d_i with shares = Σ_i d_i 2^(-bits i), i = 1, 2, ..., as far as double precision goes."""
    digits: list[Array] = []
    rest = shares
    while not digits or (rest.any() and bits * len(digits) < np.finfo(np.float64).nmant):
        rest = rest * 2.0**bits
        digits.append(np.floor(rest))
        rest = rest - digits[-1]
    return digits


def _tree_attributes(trees: Trees, digits: Sequence[Array]) -> dict[str, Any]:
    """The nodes of trees as attributes of the operator of ONNX; a leaf adds its digits of each class."""
    owner, number = trees.numbers_by_tree()
    inner = trees.inner
    weights = np.hstack(digits)[trees.node_vote] * ~inner[:, None]
    nodes, targets = np.nonzero(weights)
    columns: dict[str, NDArray[Any]] = {
        "nodes_treeids": owner,
        "nodes_nodeids": number,
        "nodes_featureids": trees.column,
        "nodes_modes": np.where(inner, "BRANCH_LEQ", "LEAF"),
        "nodes_values": np.where(inner, trees.bound, 0.0),
        "nodes_truenodeids": np.where(inner, number[trees.child], 0),
        "nodes_falsenodeids": np.where(inner, number[trees.child + inner], 0),
        "target_treeids": owner[nodes],
        "target_nodeids": number[nodes],
        "target_ids": targets,
        "target_weights": weights[nodes, targets],
    }
    order, of_target = np.lexsort((number, owner)), np.lexsort((number[nodes], owner[nodes]))
    lists = {name: own[order if name.startswith("nodes") else of_target] for name, own in columns.items()}
    return {"n_targets": weights.shape[1]} | {name: tuple(own.tolist()) for name, own in lists.items()}


def label_values(classes: NDArray[Any]) -> NDArray[Any]:
    """The classes as a type that a tensor can have: texts, truth values, whole numbers, floats; else their numbers."""
    values = classes.tolist()
    if all(isinstance(value, str) for value in values):
        return np.asarray(values, dtype=object)
    if all(isinstance(value, bool) for value in values):
        return np.asarray(values, dtype=bool)
    if all(isinstance(value, Integral) and abs(int(value)) < 2**63 for value in values):
        return np.asarray(values, dtype=np.int64)
    if all(isinstance(value, float) for value in values):
        return np.asarray(values, dtype=np.float64)
    return np.arange(len(values))


def finished_model(graph: GraphBuilder, name: str, description: str, properties: Mapping[str, Any]) -> Any:
    """The ``onnx.ModelProto`` of a graph, checked.

    Parameters
    ----------
    name : of the graph
    properties : metadata, each written as JSON
    """
    helper = graph.helper
    content = helper.make_graph(
        graph.nodes,
        name,
        graph.inputs,
        graph.outputs,
        graph.constants,
        sparse_initializer=graph.sparse_constants,
    )
    used = {node.domain for node in graph.nodes}
    opsets = [own for own in (("", OPSET), (TREE_DOMAIN, TREE_OPSET)) if own[0] in used]
    model = helper.make_model(
        content,
        producer_name="cmvmed",
        producer_version=__version__,
        doc_string=description,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(model, {key: json.dumps(value, default=str) for key, value in properties.items()})
    import_optional("onnx.checker", "onnx", "to_onnx").check_model(model)
    return model
