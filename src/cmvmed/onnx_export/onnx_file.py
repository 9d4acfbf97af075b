"""What surrounds the formulas of an ONNX model: class labels, metadata, checks."""

import json
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed import __version__
from cmvmed._optional import import_optional
from cmvmed.onnx_export.graph_builder import IR_VERSION, OPSET, GraphBuilder

DTYPES = ("float32", "float64")  # of inputs and outputs


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
    model = helper.make_model(
        content,
        producer_name="cmvmed",
        producer_version=__version__,
        doc_string=description,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(model, {key: json.dumps(value, default=str) for key, value in properties.items()})
    import_optional("onnx.checker", "onnx", "to_onnx").check_model(model)
    return model
