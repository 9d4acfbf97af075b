"""An ONNX model, run by onnxruntime, beside the library's own predictions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from cmvmed import CMVMED, MVMED

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

TOLERANCE = {
    "float32": 1e-7,
    "float64": 1e-10,
}  # of probabilities; half a unit in the last place of a float32 near 1 is 3e-8


def tables(model: Any, X: Any, dtype: str = "float64") -> dict[str, np.ndarray]:
    """By view the dense table of its columns, in a type of numbers."""
    layout = model._model.schema.layout
    if isinstance(X, (list, tuple)):
        parts = list(X)
    else:
        whole = np.asarray(X)
        parts = [whole[:, columns] for columns in layout.columns]
    dense = [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in parts]
    return {name: part.astype(dtype) for name, part in zip(layout.names, dense, strict=True)}


def run(proto: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All outputs, by name."""
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def library(model: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the library gives for the same numbers, under the names of the outputs."""
    schema = model._model.schema
    if schema.table_columns is None:  # one table with the columns of all views
        X: Any = np.empty((len(next(iter(inputs.values()))), schema.n_features))
        for name, columns in zip(schema.view_names, schema.layout.columns, strict=True):
            X[:, columns] = inputs[name]
    else:
        X = [inputs[name].astype(np.float64) for name in schema.view_names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without any view, and columns without names
        found = {"label": model.predict(X)}
        if not isinstance(model, (CMVMED, MVMED)):
            scores = model.decision_function(X)
            return found | {"scores": scores.reshape(len(scores), -1)}
        found["probabilities"] = model.predict_proba(X)
        if isinstance(model, CMVMED):
            found |= {f"probabilities_{name}": p for name, p in model.predict_proba_by_view(X).items()}
    return found


def check_same(model: Any, X: Any, *, dtype: str = "float32", proto: Any = None) -> dict[str, np.ndarray]:
    """Assert that all outputs are those of the library for the same numbers; the outputs."""
    inputs = tables(model, X, dtype)
    outputs = run(model.to_onnx(dtype=dtype) if proto is None else proto, inputs)
    expected = library(model, inputs)
    assert list(outputs) == list(expected)
    for name, values in expected.items():
        if name == "label":
            assert outputs[name].tolist() == values.tolist()
        else:
            assert outputs[name].dtype == dtype
            size = max(1.0, np.abs(values).max(initial=0.0))  # scores are not bounded
            np.testing.assert_allclose(outputs[name], values, rtol=0.0, atol=TOLERANCE[dtype] * size)
    return outputs
