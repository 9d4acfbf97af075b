"""Which rows are for training, which are held out, and which training rows have labels.

The training part has the same share of each class as all rows: half of them, or ``n_rows`` if that is fewer. Of the
rest at most 1000 rows are held out. Where rows belong to groups (persons, days), groups are drawn for training until
they have about half of the rows, the others are held out, and the training part has the shares of the classes within
its groups. They are drawn again until every class has at least three quarters of the training rows that it would have
without groups, and is held out too. A budget of b gives b labels per class on average, b K in all, drawn in one of
three ways:

- "random": at random from the training rows, drawn again until every class has a label;
- "per_class": b of each class;
- "biased": half of the classes, which the seed chooses, get three times as many as the others.

Seeds are hashes of names, so a split does not depend on which others were drawn. All budgets and draws of one split
number share their training and held-out rows.
"""

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.suite.sets import DataSet

BUDGETS = (2, 5, 10)
DRAWS = ("random", "per_class", "biased")
BIAS = 3.0
MAX_HELD_OUT = 1000
MIN_UNLABELED = 50  # or half of the training rows, if that is fewer
MIN_OF_CLASS = 0.75  # of its training rows without groups
MAX_TRIES = 100_000


class Cell(NamedTuple):
    """A data set with a number of labels per class and a way to draw them."""

    set: str
    budget: int
    draw: str


class ImpossibleCellError(ValueError):
    """The data set has too few rows for the cell."""


@dataclass(frozen=True)
class Split:
    """Training rows with partly hidden labels (-1), and held-out rows.

    Attributes
    ----------
    X, X_test : array or CSR matrix
    y : ndarray of shape (n_train,)
        What a method may see: class codes, -1 for unlabeled rows.
    truth : ndarray of shape (n_train,)
        The classes of all training rows.
    y_test : ndarray of shape (n_test,)
    views : dict from view name to slice of columns or channels
    groups : ndarray of shape (n_train,) or None
    """

    X: Any
    y: Any
    truth: Any
    X_test: Any
    y_test: Any
    views: dict[str, slice]
    groups: Any = None

    @property
    def labeled(self) -> Any:
        """Positions of the labeled rows."""
        return np.flatnonzero(self.y >= 0)

    @property
    def unlabeled(self) -> Any:
        """Positions of the unlabeled rows."""
        return np.flatnonzero(self.y < 0)

    @property
    def n_classes(self) -> int:
        """Number of classes; each has a label."""
        return int(self.y.max()) + 1


def train_counts(counts: Any, n_rows: int) -> Any:
    """Training rows of each class: in proportion to its size, at most half of all rows and at most ``n_rows``."""
    return apportion(counts, min(int(counts.sum()) // 2, n_rows))


def label_counts(cell: Cell, n_classes: int, rng: np.random.Generator) -> Any:
    """Labels of each class for the draws that fix them; at least one."""
    if cell.draw == "per_class":
        return np.full(n_classes, cell.budget)
    weights = np.where(rng.permutation(n_classes) < n_classes // 2, BIAS, 1.0)
    return np.maximum(apportion(weights, cell.budget * n_classes), 1)


def apportion(weights: Any, total: int) -> Any:
    """Whole numbers of this sum in proportion to the weights, by largest remainders."""
    quotas = total * np.asarray(weights, dtype=np.float64) / np.sum(weights)
    whole = np.floor(quotas + 1e-9).astype(int)
    whole[np.argsort(whole - quotas, kind="stable")[: total - whole.sum()]] += 1
    return whole


def check_cell(cell: Cell, counts: Any, n_rows: int, in_groups: bool = False) -> None:
    """Raise ImpossibleCellError if not every split of the cell can be drawn from classes of these sizes."""
    available = train_counts(counts, n_rows)
    n_classes, n_labeled = counts.size, cell.budget * counts.size
    if available.sum() - n_labeled < min(MIN_UNLABELED, available.sum() / 2):
        raise ImpossibleCellError(
            f"{n_labeled} labels leave {available.sum() - n_labeled} of {available.sum()} rows unlabeled"
        )
    needed = 1
    if cell.draw != "random":
        needed = int(label_counts(cell, n_classes, np.random.default_rng(0)).max())
    smallest = int(np.ceil(MIN_OF_CLASS * available.min())) if in_groups else int(available.min())
    if smallest < needed:
        raise ImpossibleCellError(f"a class has {smallest} training rows and may need {needed} labels")


def draw(data: DataSet, cell: Cell, number: int, n_rows: int) -> Split:
    """Split ``number`` of a cell."""
    check_cell(cell, data.counts, n_rows, data.groups is not None)
    name = zlib.crc32(data.name.encode())
    train, test = draw_rows(data, n_rows, np.random.default_rng([name, number]))
    rng = np.random.default_rng([name, number, zlib.crc32(cell.draw.encode()), cell.budget])
    truth = data.y[train]
    y = np.full(truth.size, -1)
    labeled = _draw_labeled(cell, truth, data.counts.size, rng)
    y[labeled] = truth[labeled]
    groups = None if data.groups is None else data.groups[train]
    return Split(data.X[train], y, truth, data.X[test], data.y[test], data.views, groups)


def draw_rows(data: DataSet, n_rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Numbers of the training rows and of the held-out rows."""
    if data.groups is not None:
        return _draw_rows_of_groups(data, n_rows, rng)
    order = rng.permutation(data.y.size)
    train = rng.permutation(_first_of_each_class(order, data.y, train_counts(data.counts, n_rows)))
    return train, np.setdiff1d(order, train)[rng.permutation(order.size - train.size)[:MAX_HELD_OUT]]


def _draw_rows_of_groups(data: DataSet, n_rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """The same with training rows of some groups and held-out rows of the others."""
    usual = train_counts(data.counts, n_rows)
    for _ in range(MAX_TRIES):
        inside = np.isin(data.groups, draw_groups(data.groups, rng))
        counts = np.bincount(data.y[inside], minlength=usual.size)
        wanted = apportion(counts, min(int(usual.sum()), int(counts.sum())))
        if (wanted >= MIN_OF_CLASS * usual).all() and (counts < data.counts).all():
            order = rng.permutation(np.flatnonzero(inside))
            train = rng.permutation(_first_of_each_class(order, data.y, wanted))
            return train, rng.permutation(np.flatnonzero(~inside))[:MAX_HELD_OUT]
    raise ImpossibleCellError(f"no draw of groups in {MAX_TRIES} had enough rows of every class")


def draw_groups(groups: Any, rng: np.random.Generator) -> Any:
    """Groups in random order as far as they come nearest to half of the rows; at least one, and never all."""
    names, sizes = np.unique(groups, return_counts=True)
    order = rng.permutation(names.size)
    reached = np.cumsum(sizes[order])[:-1]
    return names[order[: np.abs(reached - groups.size / 2).argmin() + 1]]


def _draw_labeled(cell: Cell, truth: Any, n_classes: int, rng: np.random.Generator) -> Any:
    if cell.draw != "random":
        return _first_of_each_class(rng.permutation(truth.size), truth, label_counts(cell, n_classes, rng))
    for _ in range(MAX_TRIES):
        labeled = rng.permutation(truth.size)[: cell.budget * n_classes]
        if np.unique(truth[labeled]).size == n_classes:
            return labeled
    raise ImpossibleCellError(f"no draw in {MAX_TRIES} had every class")


def _first_of_each_class(order: Any, codes: Any, counts: Any) -> Any:
    return np.concatenate([order[codes[order] == c][:count] for c, count in enumerate(counts)])
