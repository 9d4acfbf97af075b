"""The interior-point method: against a second solver, and by the optimality conditions of its last iterate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from cmvmed.numerics.interior_point import Iterate, interior_point, sums_by_row
from tests.core.factories import rejects
from tests.core.reference import clarabel_box_qp


def draw_program(seed, *, n=12, rank=12):
    """A concave program in n variables: Q (n, n) of the given rank and g (n,)."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, rank))
    return Phi @ Phi.T, 1.0 + rng.normal(size=n)


def last_iterate(points):
    """The point at which the complementarity is negligible."""
    for point in points:
        if point.mu <= 1e-13:
            return point
    raise AssertionError("the steps did not converge")


def check_box_optimum(Q, g, upper, x):
    """The objective is as large as that of the second solver, and the gradient, which is unique, is the same."""
    other = clarabel_box_qp(Q, g, upper)
    value, best = (g @ point - 0.5 * point @ Q @ point for point in (x, other))
    assert value >= best - 1e-8 * abs(best)
    np.testing.assert_allclose(Q @ x, Q @ other, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("rank", [12, 4])
def test_one_variable_per_capacity_is_a_box(rank, C):
    Q, g = draw_program(0, rank=rank)
    upper = C * np.random.default_rng(1).uniform(0.5, 2.0, g.size)
    point = last_iterate(interior_point(Q, g, np.arange(g.size), upper))
    assert (point.x > 0.0).all()
    assert (point.room > 0.0).all()
    check_box_optimum(Q, g, upper, point.x)
    rejects(check_box_optimum, Q, g, upper, 0.99 * point.x)


def check_conditions(Q, g, rows, capacity, barrier, point, *, atol=1e-7):
    """g - Qx - u[rows] + z = 0, r = c - Σx, zx = 0 and ur = β, with positive x, r, z and u."""
    np.testing.assert_allclose(g - Q @ point.x - point.u[rows] + point.z, 0.0, rtol=0.0, atol=atol)
    sums = np.array([point.x[rows == t].sum() for t in range(capacity.size)])
    np.testing.assert_allclose(point.room, capacity - sums, rtol=0.0, atol=atol)
    np.testing.assert_allclose(point.z * point.x, 0.0, rtol=0.0, atol=atol)
    np.testing.assert_allclose(point.u * point.room, barrier, rtol=0.0, atol=atol)
    assert min(values.min() for values in (point.x, point.room, point.z, point.u)) > 0.0


ROWS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3])


@pytest.mark.parametrize("barrier", [np.zeros(4), np.array([0.3, 1.0, 2.0, 0.1])], ids=["no barrier", "barrier"])
@pytest.mark.parametrize("rank", [12, 4])
def test_optimality_conditions_with_shared_capacities(rank, barrier):
    (Q, g), capacity = draw_program(2, rank=rank), np.array([0.5, 1.0, 2.0, 4.0])
    point = last_iterate(interior_point(Q, g, ROWS, capacity, barrier if barrier.any() else None))
    check_conditions(Q, g, ROWS, capacity, barrier, point)
    for broken in (
        replace(point, x=1.01 * point.x),
        replace(point, room=1.01 * point.room),
        replace(point, z=point.z + 0.01),
        replace(point, u=point.u + 0.01),
    ):
        rejects(check_conditions, Q, g, ROWS, capacity, barrier, broken)


def test_barrier_optimum_is_that_of_a_general_solver():
    (Q, g), capacity, barrier = draw_program(3), np.array([0.5, 1.0, 2.0, 4.0]), np.array([0.3, 1.0, 2.0, 0.1])

    def value(x):
        room = capacity - sums_by_row(ROWS, x, 4)
        return g @ x - 0.5 * x @ Q @ x + barrier @ np.log(np.maximum(room, 1e-12))

    x = last_iterate(interior_point(Q, g, ROWS, capacity, barrier)).x
    start = 0.5 * (capacity / np.bincount(ROWS))[ROWS]
    room = {"type": "ineq", "fun": lambda x: capacity - sums_by_row(ROWS, x, 4) - 1e-9}
    other = minimize(
        lambda x: -value(x),
        start,
        method="SLSQP",
        bounds=[(0.0, None)] * g.size,
        constraints=[room],
        options={"maxiter": 1000, "ftol": 1e-14},
    ).x
    assert value(x) >= value(other) - 1e-9
    np.testing.assert_allclose(x, other, rtol=0.0, atol=1e-4)


def test_equal_rows_make_the_system_singular_but_not_the_answer():
    Q, g = draw_program(4, n=4, rank=2)
    Q, g = np.repeat(np.repeat(Q, 3, axis=0), 3, axis=1), np.repeat(g, 3)
    upper = np.ones(12)
    check_box_optimum(Q, g, upper, last_iterate(interior_point(Q, g, np.arange(12), upper)).x)


def test_iterates_stay_inside_the_bounds():
    (Q, g), capacity = draw_program(5), np.array([0.5, 1.0, 2.0, 4.0])
    for point in interior_point(Q, g, ROWS, capacity):
        assert isinstance(point, Iterate)
        assert min(values.min() for values in (point.x, point.room, point.z, point.u)) > 0.0


def test_sums_by_row():
    np.testing.assert_array_equal(sums_by_row(np.array([2, 0, 2]), np.array([1.0, 2.0, 4.0]), 4), [2.0, 0.0, 5.0, 0.0])
    assert sums_by_row(np.empty(0, dtype=int), np.empty(0), 2).tolist() == [0.0, 0.0]
