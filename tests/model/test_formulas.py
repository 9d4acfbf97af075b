"""Parts of an ONNX graph beside the library's functions: nearest nodes, scaling, and formulas that are computed once."""

from __future__ import annotations

import numpy as np
import pytest

from cmvmed.graphs.search import SAME_POINT, TIE_TOLERANCE, nearest_shares
from cmvmed.model.formulas import scaled, unit_length
from cmvmed.model.graph_votes import nearest_mean
from cmvmed.model.onnx_model import GraphBuilder, finished_model, label_values
from cmvmed.numerics.linalg import unit_rows
from cmvmed.views.preprocessing import Scaling, fit_scaling
from tests.model.onnx_comparison import run


def applied(function, X, n_columns):
    """The value of a formula for a table."""
    graph = GraphBuilder()
    value = function(graph.input("x", X.shape[1], np.float64))
    graph.output("y", value, np.float64, n_columns)
    return run(finished_model(graph, "test", "", {}), {"x": X})["y"]


def distances_with_ties(rng, n_rows, n_nodes):
    """Squared distances of which many are equal, some differ by less than the tolerance, are zero or infinite."""
    distances = rng.integers(1, 8, size=(n_rows, n_nodes)).astype(float)
    distances *= 1.0 + 0.4 * TIE_TOLERANCE * rng.integers(-1, 2, size=distances.shape)
    distances[rng.random(distances.shape) < 0.02] = 0.5 * SAME_POINT
    distances[rng.random(distances.shape) < 0.3] = np.inf
    distances[: n_rows // 10] = np.inf
    distances[n_rows // 10 : n_rows // 5, 1:] = np.inf
    return distances


@pytest.mark.parametrize(("n_nodes", "n_neighbors"), [(30, 5), (30, 1), (3, 5), (1, 5)])
def test_nearest_nodes_with_ties_and_equal_rows(n_nodes, n_neighbors):
    rng = np.random.default_rng(n_nodes)
    distances, scores = distances_with_ties(rng, 200, n_nodes), rng.normal(size=(n_nodes, 3))
    expected = nearest_shares(distances, n_neighbors) @ scores
    found = applied(lambda x: nearest_mean(x, scores, n_neighbors), distances, 3)
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("kind", ["standard", "center", "magnitude", "unit", None])
@pytest.mark.parametrize("size", [1.0, 1e150, 1e-150])
def test_scaling(kind, size):
    rng = np.random.default_rng(0)
    X = size * (3.0 + rng.normal(size=(50, 4)) * [1.0, 10.0, 0.0, 0.1])
    scaling = fit_scaling(kind, X, np.ones(50), clip=2.0, sparse_density=0.25)
    new = 1.5 * X + 0.1 * size
    expected = scaling.apply(new)
    found = applied(lambda x: scaled(x, scaling, 4), new, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())


def test_scaling_of_sparse_rows_has_no_mean():
    X = np.arange(12.0).reshape(3, 4)
    assert applied(lambda x: scaled(x, Scaling("center", 4.0), 4), X, 4).tolist() == (X / 4.0).tolist()


def test_unit_length_of_rows_of_any_size():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 1e200], [1e-200, 0.0]])
    np.testing.assert_allclose(applied(unit_length, X, 2), unit_rows(X), rtol=1e-15)


def test_equal_formulas_and_constants_are_computed_once():
    graph = GraphBuilder()
    x = graph.input("x", 2, np.float64)
    first = (x * np.array([1.0, 2.0])).apply("Exp") + 1.0
    again = (x * np.array([1.0, 2.0])).apply("Exp") + 1.0
    assert first == again
    assert (len(graph.nodes), len(graph.constants)) == (3, 2)
    other = (x * np.array([1.0, 3.0])).apply("Exp") + 1.0
    assert first != other
    assert (len(graph.nodes), len(graph.constants)) == (6, 3)


def test_constants_of_mostly_zeros_are_stored_as_their_entries():
    rng = np.random.default_rng(0)
    dense, zeros = rng.normal(size=(40, 50)), np.zeros((40, 50))
    zeros[rng.random(zeros.shape) < 0.1] = 1.5
    graph = GraphBuilder()
    x = graph.input("x", 40, np.float64)
    graph.output("y", x @ dense + x @ zeros, np.float64, 50)
    assert (len(graph.constants), len(graph.sparse_constants)) == (1, 1)
    X = rng.normal(size=(5, 40))
    np.testing.assert_allclose(run(finished_model(graph, "t", "", {}), {"x": X})["y"], X @ (dense + zeros), atol=1e-12)


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (np.array(["a", "b"]), object),
        (np.array(["a", "b"], dtype=object), object),
        (np.array([3, 5], dtype=np.int8), np.int64),
        (np.array([False, True]), bool),
        (np.array([0.0, 1.0], dtype=np.float32), np.float64),
    ],
)
def test_labels_are_classes_where_a_tensor_can_hold_them(classes, dtype):
    values = label_values(classes)
    assert values.dtype == dtype
    assert values.tolist() == classes.tolist()


def test_other_classes_are_numbered():
    assert label_values(np.array([(1, 2), "a"], dtype=object)).tolist() == [0, 1]
    assert label_values(np.array([2**63, 5], dtype=np.uint64)).tolist() == [0, 1]
