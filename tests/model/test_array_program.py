"""Graphs computed by an array library: parts of predictions beside numpy's functions."""

from __future__ import annotations

import numpy as np
import pytest

from cmvmed.graphs.search import nearest_shares
from cmvmed.model.array_program import ArrayProgram, ArrayRunner
from cmvmed.model.formulas import scaled, unit_length
from cmvmed.model.graph_votes import nearest_mean
from cmvmed.numerics.linalg import unit_rows
from cmvmed.views.preprocessing import fit_scaling

xp = pytest.importorskip("array_api_strict")


def applied(formula, X):
    """The value of a formula for a table."""
    program = ArrayProgram()
    value = formula(program.input("x", X.shape[1], np.float64))
    (found,) = ArrayRunner(program, [value], xp, xp.Device("CPU_DEVICE"))({"x": xp.asarray(X)})
    return np.asarray(found)


@pytest.mark.parametrize(("n_nodes", "n_neighbors"), [(30, 5), (3, 5), (1, 5)])
def test_nearest_nodes_with_ties_and_equal_rows(n_nodes, n_neighbors):
    rng = np.random.default_rng(n_nodes)
    distances, scores = rng.integers(0, 8, size=(200, n_nodes)).astype(float), rng.normal(size=(n_nodes, 3))
    distances[rng.random(distances.shape) < 0.3] = np.inf
    expected = nearest_shares(distances, n_neighbors) @ scores
    np.testing.assert_allclose(applied(lambda x: nearest_mean(x, scores, n_neighbors), distances), expected, atol=1e-14)


@pytest.mark.parametrize("kind", ["standard", "center", "unit", None])
def test_scaling(kind):
    X = 3.0 + np.random.default_rng(0).normal(size=(50, 4)) * [1.0, 10.0, 0.0, 0.1]
    scaling = fit_scaling(kind, X, np.ones(50), clip=2.0, sparse_density=0.25)
    np.testing.assert_allclose(applied(lambda x: scaled(x, scaling, 4), 1.5 * X), scaling.apply(1.5 * X), rtol=1e-13)


def test_unit_length_of_rows_of_any_size():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 1e200], [1e-200, 0.0]])
    np.testing.assert_allclose(applied(unit_length, X), unit_rows(X), rtol=1e-15)


def test_only_what_is_asked_for_is_computed():
    program = ArrayProgram()
    x = program.input("x", 2, np.float64)
    value, other = (x * 2.0).apply("Exp"), x @ np.ones((2, 3))
    runner = ArrayRunner(program, [value], xp, xp.Device("CPU_DEVICE"))
    assert [node.operator for node in runner.nodes] == ["Mul", "Exp"]
    assert runner.widest == 1
    assert ArrayRunner(program, [value, other], xp, xp.Device("CPU_DEVICE")).widest == 3
