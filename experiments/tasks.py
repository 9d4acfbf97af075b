"""The classification tasks: data, number of labeled, unlabeled and held-out rows, and random splits.

Rows are drawn at random without replacement: first the labeled, then the unlabeled, then the test rows. The draw is
repeated until every class has a label. Test rows are never used in a fit. The seed of a split is a hash of the name of
the task and the number of the split, so that a result does not depend on which other tasks or splits are run. Published
splits fix the labeled rows; a random half of the other rows is unlabeled and the other half is held out. The tasks on
digits and Gaussian data use stratified labeled rows, as the published results for them do. The footsteps have 600
training rows of each class, as in the paper, so that the test rows have other class shares than the training rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from cmvmed.datasets import load_digits_views, make_footsteps, make_multiview_gaussian
from cmvmed.features import MFCC, views_transformer
from experiments.datasets import (
    DatasetNotFoundError,
    fetch_internet_ads,
    fetch_multiple_features,
    fetch_sensit_vehicle,
    fetch_webkb_course,
)

IntArray = NDArray[np.intp]
Matrix = NDArray[np.float64] | sparse.csr_array


@dataclass(frozen=True)
class Task:
    """A data set with its number of labeled, unlabeled and test rows.

    Attributes
    ----------
    name : str
    load : callable
        Returns a bunch with ``data``, ``target`` and ``views``.
    n_labeled, n_unlabeled : int
    n_test : int or None
        None for all remaining rows.
    stratified : bool
        Whether labeled rows are drawn from each class in proportion to its size.
    n_published : int or None
        Number of published selections of labeled rows, which are in ``splits`` of the data; None if there are none.
    n_train_per_class : int or None
        Number of training rows of each class; None for classes as they are drawn.
    """

    name: str
    load: Callable[[], Bunch]
    n_labeled: int
    n_unlabeled: int
    n_test: int | None = None
    stratified: bool = False
    n_published: int | None = None
    n_train_per_class: int | None = None

    @property
    def n_train(self) -> int:
        """Number of training rows, labeled and unlabeled."""
        return self.n_labeled + self.n_unlabeled


@dataclass(frozen=True)
class Split:
    """Training rows, with label -1 for the unlabeled ones, and test rows; classes are numbered from 0."""

    X: Matrix
    y: IntArray
    X_test: Matrix
    y_test: IntArray
    views: dict[str, slice]

    @property
    def n_classes(self) -> int:
        """Number of classes; each has a labeled row."""
        return int(self.y.max()) + 1


def gauss(seed: int) -> Bunch:
    """Two Gaussian views of 20 features, independent given the class; Bayes accuracy 91.3 %."""
    return make_multiview_gaussian(1730, separation=(1.1, 0.8), random_state=seed)


def footsteps() -> Bunch:
    """Simulated footsteps at two acoustic sensors, 200 cepstral coefficients each."""
    steps = make_footsteps(random_state=0)
    sensors = {name: (MFCC(steps.sampling_rate), steps.views[name]) for name in ("sensor1", "sensor2")}
    to_views = views_transformer(sensors, output="default")
    return Bunch(data=to_views.fit_transform(steps.data), target=steps.target, views=to_views.view_slices_)


@cache
def webkb() -> Bunch:
    """The paper's features of the WebKB course pages."""
    return fetch_webkb_course(preprocessed=True)


def webkb_with_splits() -> Bunch:
    """The WebKB course pages with published selections of labeled rows."""
    data = webkb()
    if data.splits is None:
        raise DatasetNotFoundError(
            "PAGELINK.mat, which contains the published splits of the course pages, was not found in any data folder. "
            "Download it from https://github.com/Multiviewdata/dataset4 into the folder of WebKB.mat."
        )
    return data


TASKS = {
    task.name: task
    for task in (
        Task("webkb", webkb, 15, 485),
        Task("webkb12", webkb_with_splits, 12, 519, n_published=100),
        Task("ads", cache(fetch_internet_ads), 50, 550),
        Task("sensit", cache(fetch_sensit_vehicle), 50, 950),
        Task("footsteps", cache(footsteps), 50, 1150, n_train_per_class=600),
        Task("digits-parity", cache(lambda: load_digits_views(parity=True)), 30, 1000, 700, stratified=True),
        Task("gauss", cache(lambda: gauss(0)), 30, 1000, 700, stratified=True),
        Task("digits", cache(load_digits_views), 30, 1000, 700, stratified=True),
        Task("mfeat", cache(fetch_multiple_features), 50, 950, 1000),
    )
}


def draw_split(task: Task, number: int, n_labeled: int | None = None) -> Split:
    """Split ``number`` of a task; ``n_labeled`` changes the number of labels but not the training rows."""
    n_labeled = task.n_labeled if n_labeled is None else n_labeled
    rng = np.random.default_rng([zlib.crc32(task.name.encode()), number])
    data = task.load()
    codes = np.unique(np.asarray(data.target), return_inverse=True)[1]
    if task.n_published is not None:
        labeled, unlabeled, test = _published_rows(data.splits, number, codes.size, rng)
    else:
        order = _order(task, codes, n_labeled, rng)
        end = None if task.n_test is None else task.n_train + task.n_test
        labeled, unlabeled, test = order[:n_labeled], order[n_labeled : task.n_train], order[task.n_train : end]
    train = np.concatenate([labeled, unlabeled])
    y = codes[train]
    y[labeled.size :] = -1
    return Split(data.data[train], y, data.data[test], codes[test], dict(data.views))


def _order(task: Task, codes: IntArray, n_labeled: int, rng: np.random.Generator) -> IntArray:
    """All rows in the random order of the task: labeled, unlabeled, test."""
    if task.n_train_per_class is not None:
        return _equal_classes_order(codes, n_labeled, task.n_train_per_class, rng)
    return (_stratified_order if task.stratified else _random_order)(codes, n_labeled, rng)


def _random_order(codes: IntArray, n_labeled: int, rng: np.random.Generator) -> IntArray:
    """All rows in random order, with every class among the first ``n_labeled``."""
    n_classes = np.unique(codes).size
    if n_labeled < n_classes:
        raise ValueError(f"{n_labeled} labels are too few for {n_classes} classes; every class needs a label.")
    order = rng.permutation(codes.size)
    while np.unique(codes[order[:n_labeled]]).size < n_classes:
        order = rng.permutation(codes.size)
    return order


def _equal_classes_order(codes: IntArray, n_labeled: int, n_per_class: int, rng: np.random.Generator) -> IntArray:
    """``n_per_class`` rows of each class in random order, with every class among the first ``n_labeled``; then all others."""
    by_class = [rng.permutation(np.flatnonzero(codes == k)) for k in range(int(codes.max()) + 1)]
    train = np.concatenate([rows[:n_per_class] for rows in by_class])
    others = np.concatenate([rows[n_per_class:] for rows in by_class])
    return np.concatenate([train[_random_order(codes[train], n_labeled, rng)], rng.permutation(others)])


def _stratified_order(codes: IntArray, n_labeled: int, rng: np.random.Generator) -> IntArray:
    """All rows in random order, the first ``n_labeled`` stratified by class."""
    labeled, others = train_test_split(
        np.arange(codes.size), train_size=n_labeled, stratify=codes, random_state=int(rng.integers(2**31))
    )
    return np.concatenate([labeled, rng.permutation(others)])


def _published_rows(
    splits: IntArray, number: int, n_rows: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Labeled rows as published (without repeated rows), and the others in two random halves."""
    labeled = np.unique(splits[number])
    others = rng.permutation(np.setdiff1d(np.arange(n_rows), labeled))
    half = others.size // 2
    return labeled, others[:half], others[half:]
