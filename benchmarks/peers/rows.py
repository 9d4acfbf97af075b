"""The rows of a measurement: simulated ones, and real ones enlarged beyond their number.

"gauss" draws as many rows as are asked for (``benchmarks.gauss.draw_rows``). A real data set is divided into halves,
training rows and held-out rows, with 10 labels per class on average. If more training rows are asked for than there are, each
further one is a training row x, drawn at random, plus Gaussian noise in the directions of its five nearest training rows,

    x + Σ_j g_j (x_j - x) / √5,   g_j ~ N(0, 1),

so that it is about as far from x as these are. With less noise, the copies of a row would be islands in a graph of nearest rows,
and labels could not pass between them. Classes take no part, so further rows say nothing of them that the others do not.
Held-out rows are real and take no part either.
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks.gauss import N_LABELED, N_TEST, VIEWS, draw_rows, hidden
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
        Training rows without noise that was added here.
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
    """The first ``n`` rows and their classes; beyond their number, rows with noise, of the class of their origin."""
    if n <= len(y):
        return X[:n], y[:n]
    search = NearestNeighbors(n_neighbors=N_NEAREST).fit(StandardScaler().fit_transform(X))
    nearest = search.kneighbors(return_distance=False)
    origin = rng.integers(0, len(y), n - len(y))
    further = X[origin]
    for j in range(N_NEAREST):
        further += rng.normal(size=(origin.size, 1)) / np.sqrt(N_NEAREST) * (X[nearest[origin, j]] - X[origin])
    return np.concatenate([X, further]), np.concatenate([y, y[origin]])
