"""Accuracy interval and prediction sets on rows of new groups: ``python -m benchmarks.new_groups --draws 20``.

``CMVMED().fit(X, y, groups=...)`` learns from some groups (persons, days), and its 90 % interval of the accuracy and its
prediction sets with alpha=0.1 are compared with what rows of other groups show. The simulated persons each shift all rows by an
offset and show each class in their own manner, both Gaussian, in standard deviations of the noise within a person: 0 and 0
("alike"), 0.5 and 0.9 ("differ"), or 0.7 and 1.4 ("differ much"). 40 new persons stand for all. Of the suite's sets the groups
are days (room), persons (stress) and stretches of time (wall), split into halves; a budget of labels per class is drawn at
random from the rows of one half.

Columns: groups with labels; accuracy on new groups and its estimate; share of draws whose interval holds the accuracy; mean
width of the interval; share of draws in which it is wider than half, so that the accuracy is unknown; share of new rows whose
set holds the true class; mean number of classes of a set. All but the first and last are in percent.
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

from benchmarks.provenance import heading
from benchmarks.suite import sets, splits
from cmvmed import CMVMED
from experiments.datasets import DatasetNotFoundError

ALPHA, WIDEST = 0.1, 0.5
N_CLASSES, N_FEATURES, SEPARATION = 3, 4, 1.13  # of two views, and the standard deviation of class means
N_NEW, ROWS_EACH, SUITE_ROWS = 40, 30, 300
EFFECTS = {"alike": (0.0, 0.0), "differ": (0.5, 0.9), "differ much": (0.7, 1.4)}  # offset and manner of persons
PERSONS = ((4, 10), (6, 4), (6, 20), (14, 4), (14, 15), (30, 4))  # number, and labels of each


@dataclass(frozen=True)
class Draw:
    """Training rows of some groups, and new rows of others."""

    X: Any
    y: Any  # -1 for unlabeled rows
    groups: Any
    views: dict[str, slice]
    X_new: Any
    y_new: Any


def persons(number: int, n_persons: int, n_labels: int, effect: str) -> Draw:
    """Persons of whom each has an offset and its own manner of each class; some rows of each are labeled."""
    rng, (offset, manner) = np.random.default_rng([17, number]), EFFECTS[effect]
    total, d = n_persons + N_NEW, 2 * N_FEATURES
    person, place = np.repeat(np.arange(total), ROWS_EACH), np.tile(np.arange(ROWS_EACH), total)
    truth = rng.integers(N_CLASSES, size=person.size)
    centers = SEPARATION * rng.normal(size=(N_CLASSES, d))
    offsets, manners = offset * rng.normal(size=(total, d)), manner * rng.normal(size=(total, N_CLASSES, d))
    X = centers[truth] + offsets[person] + manners[person, truth] + rng.normal(size=(person.size, d))
    known = person < n_persons
    y = np.where(place < n_labels, truth, -1)
    views = {"first": slice(0, N_FEATURES), "second": slice(N_FEATURES, d)}
    return Draw(X[known], y[known], person[known], views, X[~known], truth[~known])


load = cache(sets.load)


def suite(number: int, name: str, budget: int) -> Draw:
    """Half of the groups of a set, of which some rows are labeled, and rows of the others."""
    found = splits.draw(load(name), splits.Cell(name, budget, "random"), number, SUITE_ROWS)
    return Draw(found.X, found.y, found.groups, found.views, found.X_test, found.y_test)


TASKS: dict[str, Callable[[int], Draw]] = {
    f"{n} persons, {n_labels} labels each, {effect}": partial(persons, n_persons=n, n_labels=n_labels, effect=effect)
    for n, n_labels in PERSONS
    for effect in EFFECTS
} | {
    f"{name}, {budget} labels per class": partial(suite, name=name, budget=budget)
    for name in ("room", "stress", "wall")
    for budget in (5, 10)
}


def measure(name: str, number: int) -> list[float]:
    """The columns of a draw, after the name."""
    rows = TASKS[name](number)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED(views=rows.views).fit(rows.X, rows.y, groups=rows.groups)
        estimate, chosen = model.accuracy_estimate(), model.predict_set(rows.X_new, ALPHA)
        accuracy = float((model.predict(rows.X_new) == rows.y_new).mean())
    width = estimate.high - estimate.low
    return [
        np.unique(rows.groups[rows.y >= 0]).size,
        100.0 * accuracy,
        100.0 * estimate.mean,
        100.0 * (estimate.low <= accuracy <= estimate.high),
        100.0 * width,
        100.0 * (width > WIDEST),
        100.0 * chosen[np.arange(rows.y_new.size), rows.y_new].mean(),
        chosen.sum(axis=1).mean(),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print(f"{heading()}\n")
    print("| data | groups | accuracy | expected | interval holds | width | unknown | sets hold | size |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with Parallel(options.jobs) as parallel:
        for name in options.tasks:
            try:
                TASKS[name](0)
            except DatasetNotFoundError:
                continue
            mean = np.mean(parallel(delayed(measure)(name, number) for number in range(options.draws)), axis=0)
            print(f"| {name} | {' | '.join(f'{value:.1f}' for value in mean[:-1])} | {mean[-1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
