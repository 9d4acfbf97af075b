"""A primal-dual interior-point method for concave programs with positive variables that share capacities.

    maximize  gᵀx - ½ xᵀQx + Σ_t β_t log r_t   subject to  x >= 0,  r_t = c_t - Σ_{i in t} x_i >= 0

Variable i belongs to the capacity t = ``rows[i]``. With β = 0 and one variable per capacity it is the box-constrained
dual of a view; with β > 0 it is the dual of multi-view MED, whose margin prior is the logarithmic term.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cmvmed.numerics.linalg import solve_semidefinite
from cmvmed.numerics.types import Array, IntArray

MAX_STEPS = 100
CENTERING = 0.1  # factor by which a step aims to reduce the complementarity
BOUNDARY = 0.995  # part of the way to a bound that a step may go


@dataclass(frozen=True)
class Iterate:
    """A point inside the bounds with its multipliers."""

    x: Array  # (n,)
    room: Array  # (m,) r
    z: Array  # (n,) multipliers of x >= 0
    u: Array  # (m,) multipliers of r >= 0
    mu: float  # complementarity that the step aimed at


def interior_point(
    Q: Array, g: Array, rows: IntArray, capacity: Array, barrier: Array | None = None
) -> Iterator[Iterate]:
    """Iterates that approach the optimum; the caller decides when to stop.

    g - Qx - u[rows] + z = 0 with multipliers z of x >= 0 and u of r >= 0. Each step aims at zx = μ → 0, and at ur = μ,
    or at ur = β if there is a barrier.

    Parameters
    ----------
    Q : (n, n), symmetric positive semi-definite
    g, rows : (n,)
    capacity : (m,), positive
    barrier : (m,), β; None for 0
    """
    same = rows[:, None] == rows
    x = 0.5 * (capacity / np.bincount(rows, minlength=capacity.size).clip(1))[rows]
    room = capacity - sums_by_row(rows, x, capacity.size)
    smallest, smallest_room = np.finfo(float).tiny * np.maximum(x, 1.0), np.finfo(float).tiny * np.maximum(room, 1.0)
    start = g - Q @ x - (0.0 if barrier is None else (barrier / room)[rows])
    z = np.maximum(1.0, np.abs(start))
    u = sums_by_row(rows, z, capacity.size) if barrier is None else barrier / room
    for _ in range(MAX_STEPS):
        slack, terms = float(z @ x), x.size
        if barrier is None:
            slack, terms = slack + float(u @ room), x.size + room.size
        mu = CENTERING * slack / terms
        target = mu if barrier is None else barrier
        system = Q + same * (u / room)[rows] + np.diag(z / x)
        dx = solve_semidefinite(system, g - Q @ x - (target / room)[rows] + mu / x)  # equal rows make it singular
        d_room = -sums_by_row(rows, dx, room.size)
        dz, du = mu / x - z - z / x * dx, target / room - u - u / room * d_room
        length = min(_longest_step(x, dx), _longest_step(room, d_room))
        x, room = np.maximum(x + length * dx, smallest), np.maximum(room + length * d_room, smallest_room)
        length = min(_longest_step(z, dz), _longest_step(u, du))
        z, u = z + length * dz, u + length * du
        yield Iterate(x, room, z, u, mu)


def sums_by_row(rows: IntArray, values: Array, n_rows: int) -> Array:
    """Sum of the values that belong to each capacity, (n_rows,)."""
    return np.asarray(np.bincount(rows, weights=values, minlength=n_rows)[:n_rows], dtype=np.float64)


def _longest_step(values: Array, step: Array) -> float:
    """Longest step, up to 1, that keeps positive values positive."""
    shrink = float((-step / values).max(initial=0.0))
    return min(1.0, BOUNDARY / shrink) if shrink > 0.0 else 1.0
