"""The classification tasks: data, how many rows are labeled, unlabeled and held out, and how they are drawn.

Split rule: rows are drawn at random without replacement, first the labeled, then the unlabeled, then the test rows; the draw is
repeated until every class has a label. Test rows are never seen at fit. The seed of a split is a hash of the task's name and the
split's number, so a result does not depend on which other tasks or splits were run. Published splits fix the labeled rows; of
the others a random half is unlabeled and half is held out. The tasks on digits and Gauss data take labels from each class in
proportion to its size, which is how the published figures for them arise.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from cmvmed.datasets import (
    DatasetNotFoundError,
    fetch_internet_ads,
    fetch_multiple_features,
    fetch_sensit_vehicle,
    fetch_webkb_course,
    load_digits_views,
    make_footsteps,
    make_multiview_gaussian,
)
from cmvmed.features import MFCC, views_transformer

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Task:
    """A data set with its numbers of labeled, unlabeled and test rows (all the rest if None)."""

    name: str
    load: Callable[[], Any]
    n_labeled: int
    n_unlabeled: int
    n_test: int | None = None
    by_class: bool = False  # labeled rows are drawn from each class in proportion to its size
    n_published: int | None = None  # so many published choices of labeled rows, in the data's ``splits``

    @property
    def n_train(self) -> int:
        """Number of labeled and unlabeled rows together."""
        return self.n_labeled + self.n_unlabeled


@dataclass(frozen=True)
class Split:
    """One draw of a task: training rows with partly hidden labels (-1), and test rows; classes are numbered from 0."""

    X: Any
    y: IntArray
    X_test: Any
    y_test: IntArray
    views: dict[str, slice]

    @property
    def n_classes(self) -> int:
        """Number of classes; each has a label."""
        return int(self.y.max()) + 1


def gauss(seed: int) -> Any:
    """Two views of 20 features, independent given the class; Bayes accuracy 91.3 %."""
    return make_multiview_gaussian(1730, separation=(1.1, 0.8), random_state=seed)


def footsteps() -> Any:
    """Two simulated sensors that hear people walk by, 200 cepstral coefficients each."""
    steps = make_footsteps(random_state=0)
    sensors = {name: (MFCC(steps.sampling_rate), steps.views[name]) for name in ("sensor1", "sensor2")}
    to_views = views_transformer(sensors, output="default")
    return Bunch(data=to_views.fit_transform(steps.data), target=steps.target, views=to_views.view_slices_)


@cache
def webkb() -> Any:
    """The paper's features of the course pages."""
    return fetch_webkb_course(preprocessed=True)


def webkb_with_splits() -> Any:
    """The same with the published choices of labeled rows."""
    data = webkb()
    if data.splits is None:
        raise DatasetNotFoundError(
            "PAGELINK.mat, which holds the published splits of the course pages, is in no data folder. Get it from "
            "https://github.com/Multiviewdata/dataset4 and put it beside WebKB.mat."
        )
    return data


TASKS = {
    task.name: task
    for task in (
        Task("webkb", webkb, 15, 485),
        Task("webkb12", webkb_with_splits, 12, 519, n_published=100),
        Task("ads", cache(fetch_internet_ads), 50, 550),
        Task("sensit", cache(fetch_sensit_vehicle), 50, 950),
        Task("footsteps", cache(footsteps), 50, 1150),
        Task("digits-parity", cache(lambda: load_digits_views(parity=True)), 30, 1000, 700, by_class=True),
        Task("gauss", cache(lambda: gauss(0)), 30, 1000, 700, by_class=True),
        Task("digits", cache(load_digits_views), 30, 1000, 700, by_class=True),
        Task("mfeat", cache(fetch_multiple_features), 50, 950, 1000),
    )
}


def draw(task: Task, number: int, n_labeled: int | None = None) -> Split:
    """Split ``number`` of a task; with another number of labels, the training rows are as many as before."""
    n_labeled = task.n_labeled if n_labeled is None else n_labeled
    rng = np.random.default_rng([zlib.crc32(task.name.encode()), number])
    data = task.load()
    codes = np.unique(np.asarray(data.target), return_inverse=True)[1]
    if task.n_published is not None:
        labeled, unlabeled, test = _published_rows(data.splits, number, codes.size, rng)
    else:
        order = (_order_by_class if task.by_class else _random_order)(codes, n_labeled, rng)
        end = None if task.n_test is None else task.n_train + task.n_test
        labeled, unlabeled, test = order[:n_labeled], order[n_labeled : task.n_train], order[task.n_train : end]
    train = np.concatenate([labeled, unlabeled])
    y = codes[train]
    y[labeled.size :] = -1
    return Split(data.data[train], y, data.data[test], codes[test], dict(data.views))


def _random_order(codes: IntArray, n_labeled: int, rng: np.random.Generator) -> IntArray:
    """All rows in random order, every class among the first ``n_labeled``."""
    n_classes = np.unique(codes).size
    if n_labeled < n_classes:
        raise ValueError(f"{n_labeled} labels are too few for {n_classes} classes; each must have one.")
    order = rng.permutation(codes.size)
    while np.unique(codes[order[:n_labeled]]).size < n_classes:
        order = rng.permutation(codes.size)
    return order


def _order_by_class(codes: IntArray, n_labeled: int, rng: np.random.Generator) -> IntArray:
    """All rows in random order, the first ``n_labeled`` from each class in proportion to its size."""
    labeled, others = train_test_split(
        np.arange(codes.size), train_size=n_labeled, stratify=codes, random_state=int(rng.integers(2**31))
    )
    return np.concatenate([labeled, rng.permutation(others)])


def _published_rows(
    splits: IntArray, number: int, n_rows: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Labeled rows as published (a row named twice counts once), and the others in two random halves."""
    labeled = np.unique(splits[number])
    others = rng.permutation(np.setdiff1d(np.arange(n_rows), labeled))
    half = others.size // 2
    return labeled, others[:half], others[half:]
