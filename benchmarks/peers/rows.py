"""The rows of a measurement: simulated ones, and real ones enlarged beyond their number.

"gauss" draws as many rows as are asked for (``benchmarks.scale_points.draw_rows``). A real data set is divided into halves,
training rows and held-out rows, with 10 labels per class on average. If more training rows are asked for than there are, each
further one lies at a random place between a training row and one of the five training rows nearest to it in its own class:
copies with noise would be islands in a graph of nearest rows, and methods with such graphs could not pass labels on.
Held-out rows are real and take no part in this.
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks.scale_points import N_LABELED, N_TEST, VIEWS, draw_rows, hidden
from benchmarks.suite.sets import load
from benchmarks.suite.splits import Cell, draw

SETS = ("gauss", "sensit", "mnist")
LABELS_PER_CLASS, MOST_REAL_ROWS, N_NEAREST = 10, 1000, 5


@dataclass(frozen=True)
class Rows:
    """Training rows, of which the first have labels and the others -1, and held-out rows.

    Attributes
    ----------
    X, X_test : ndarray
    y, y_test : ndarray
    views : dict from view name to slice of columns
    n_real : int
        Training rows that are not between others.
    """

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    views: dict[str, slice]
    n_real: int


def read_rows(name: str, n: int, number: int) -> Rows:
    """``n`` training rows of draw ``number``."""
    return gaussian_rows(n, number) if name == "gauss" else real_rows(name, n, number)


def gaussian_rows(n: int, number: int) -> Rows:
    rng = np.random.default_rng(number)
    X_test, y_test = draw_rows(N_TEST, rng)
    X, y = draw_rows(n, rng)
    return Rows(X, hidden(y, N_LABELED), X_test, y_test, VIEWS, n)


def real_rows(name: str, n: int, number: int) -> Rows:
    split = draw(load(name), Cell(name, LABELS_PER_CLASS, "random"), number, MOST_REAL_ROWS)
    order = np.concatenate([split.labeled, split.unlabeled])
    rng = np.random.default_rng([zlib.crc32(name.encode()), number, n])
    X, classes = enlarged(split.X[order], split.truth[order], n, rng)
    return Rows(X, hidden(classes, split.labeled.size), split.X_test, split.y_test, split.views, min(n, order.size))


def enlarged(X: Any, y: Any, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """The first ``n`` rows and their classes; beyond their number, rows between neighbors of one class."""
    if n <= len(y):
        return X[:n], y[:n]
    nearest = nearest_of_class(StandardScaler().fit_transform(X), y)
    first = rng.integers(0, len(y), n - len(y))
    second = nearest[first, rng.integers(0, nearest.shape[1], first.size)]
    between = X[second] - X[first]
    between *= rng.random((first.size, 1))
    between += X[first]
    return np.concatenate([X, between]), np.concatenate([y, y[first]])


def nearest_of_class(X: Any, y: Any) -> Any:
    """Numbers of the rows of its own class that are nearest to each row, (n_rows, 5)."""
    nearest = np.empty((len(y), N_NEAREST), dtype=int)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        search = NearestNeighbors(n_neighbors=N_NEAREST).fit(X[members])
        nearest[members] = members[search.kneighbors(return_distance=False)]
    return nearest
