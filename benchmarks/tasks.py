"""The classification tasks of the accuracy benchmark: data, how many labels, and how rows are split.

Split rule: rows are drawn at random without replacement, first the labelled, then the unlabelled, then the test rows; the
draw is repeated until every class has a label. Test rows are never seen at fit. The seed of a split is a hash of the
task's name and the split's number, so a result does not depend on which other tasks or splits were run.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from cmvmed.datasets import (
    fetch_internet_ads,
    fetch_multiple_features,
    fetch_sensit_vehicle,
    fetch_webkb_course,
    load_digits_views,
    make_footsteps,
    make_multiview_gaussian,
)
from cmvmed.features import MFCC, views_transformer


@dataclass(frozen=True)
class Task:
    """A data set with its numbers of labelled, unlabelled and test rows (all the rest if None)."""

    name: str
    load: Callable[[], Any]
    n_labeled: int
    n_unlabeled: int
    n_test: int | None = None
    paper: str = ""


@dataclass(frozen=True)
class Split:
    """One draw of a task: training rows with partly hidden labels, and test rows."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    views: Any


def gauss(seed: int) -> Any:
    """Two views of 20 features, independent given the class; Bayes accuracy 91.3 %."""
    return make_multiview_gaussian(1730, separation=(1.1, 0.8), random_state=seed)


def footsteps() -> Any:
    """Two simulated sensors that hear people walk by, 200 cepstral coefficients each."""
    steps = make_footsteps(random_state=0)
    sensors = {name: (MFCC(steps.sampling_rate), steps.views[name]) for name in ("sensor1", "sensor2")}
    to_views = views_transformer(sensors, output="default")
    return Bunch(data=to_views.fit_transform(steps.data), target=steps.target, views=to_views.view_slices_)


TASKS = {
    task.name: task
    for task in (
        Task("webkb", cache(lambda: fetch_webkb_course(preprocessed=True)), 15, 485, paper="91.7 ± 5.8"),
        Task("ads", cache(fetch_internet_ads), 50, 550, paper="92.7 ± 0.7"),
        Task("sensit", cache(fetch_sensit_vehicle), 50, 950),
        Task("footsteps", cache(footsteps), 50, 1150),
        Task("digits-parity", cache(lambda: load_digits_views(parity=True)), 30, 1000, 700),
        Task("gauss", cache(lambda: gauss(0)), 30, 1000, 700),
        Task("digits", cache(load_digits_views), 30, 1000, 700),
        Task("mfeat", cache(fetch_multiple_features), 50, 950, 1000),
    )
}


def draw(task: Task, number: int) -> Split:
    """Split ``number`` of a task."""
    rng = np.random.default_rng([zlib.crc32(task.name.encode()), number])
    data = task.load()
    target = np.asarray(data.target)
    order = rng.permutation(target.size)
    while np.unique(target[order[: task.n_labeled]]).size < np.unique(target).size:
        order = rng.permutation(target.size)
    n_train = task.n_labeled + task.n_unlabeled
    train, test = order[:n_train], order[n_train : None if task.n_test is None else n_train + task.n_test]
    codes = np.unique(target, return_inverse=True)[1]
    y = codes[train].copy()
    y[task.n_labeled :] = -1
    return Split(data.data[train], y, data.data[test], codes[test], data.views)
