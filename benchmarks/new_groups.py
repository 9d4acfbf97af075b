"""Accuracy interval and prediction sets on rows of new groups: ``python -m benchmarks.new_groups``.

``CMVMED().fit(X, y, groups=...)`` learns from some groups (persons, days), and its 90 % interval of the accuracy and its
prediction sets with alpha=0.1 are compared with what rows of other groups show. In the simulated data every person shifts all
rows of a view ("offset"), and every person also shows each class in an own way ("manner"); both are Gaussian, in standard
deviations of the noise. 40 new persons stand for all. Of the suite's sets the groups are days (room), persons (stress) and
stretches of time (wall), split into halves; a budget of labels per class is drawn at random from the rows of the first.

Interval: share of draws whose interval holds the accuracy on the new groups, and its mean width, in points; unknown: share of
draws whose interval is wider than half. Sets: share of new rows whose set holds the true class, and mean size of the sets.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.suite import sets, splits
from cmvmed import CMVMED
from experiments.datasets import DatasetNotFoundError

ALPHA, LEVEL = 0.1, 0.9
N_NEW, ROWS_PER_PERSON = 40, 30
N_FEATURES = 4  # of each of two views
SUITE_ROWS = 300


@dataclass(frozen=True)
class Draw:
    """Training rows of some groups, and new rows of others."""

    X: Any
    y: Any  # -1 for unlabeled rows
    groups: Any
    views: dict[str, slice]
    X_new: Any
    y_new: Any


def simulated(
    number: int, *, n_groups: int, per_group: int, offset: float, manner: float, n_classes: int = 3, separation: float = 1.6
) -> Draw:
    """Persons of whom each has its own offset and its own way of each class; some rows of each are labeled."""
    rng = np.random.default_rng([17, number])
    n_persons = n_groups + N_NEW
    person, d = np.repeat(np.arange(n_persons), ROWS_PER_PERSON), 2 * N_FEATURES
    truth = rng.integers(n_classes, size=person.size)
    centers = separation * rng.normal(size=(n_classes, d)) / np.sqrt(2.0)
    shifts = offset * rng.normal(size=(n_persons, d))
    manners = manner * rng.normal(size=(n_persons, n_classes, d))
    X = centers[truth] + shifts[person] + manners[person, truth] + rng.normal(size=(person.size, d))
    old, place = person < n_groups, np.tile(np.arange(ROWS_PER_PERSON), n_persons)
    y = np.where(place < per_group, truth, -1)
    views = {"first": slice(0, N_FEATURES), "second": slice(N_FEATURES, d)}
    return Draw(X[old], y[old], person[old], views, X[~old], truth[~old])


@cache
def suite_set(name: str) -> sets.DataSet:
    return sets.load(name)


def of_suite(number: int, *, name: str, budget: int) -> Draw:
    found = splits.draw(suite_set(name), splits.Cell(name, budget, "random"), number, SUITE_ROWS)
    return Draw(found.X, found.y, found.groups, found.views, found.X_test, found.y_test)


TASKS: dict[str, Callable[[int], Draw]] = {
    f"{n_groups} persons, {per_group} labels each, {what}": partial(simulated, n_groups=n_groups, per_group=per_group, offset=offset, manner=manner)
    for n_groups, per_group in ((4, 10), (6, 4), (6, 20), (14, 4), (14, 15), (30, 2), (30, 8))
    for what, offset, manner in (("alike", 0.0, 0.0), ("offset", 0.8, 0.0), ("manner", 0.5, 0.9))
} | {f"{name}, {budget} per class": partial(of_suite, name=name, budget=budget) for name in ("room", "stress", "wall") for budget in (5, 10)}
