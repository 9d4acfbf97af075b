"""Small training sets, as a fit reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmvmed.auto.labeled_rows import held_out_folds, read_labeled_rows
from cmvmed.auto.tuning import Tuning
from cmvmed.core.problem import Problem, partition_rows
from cmvmed.data.labels import Labels
from cmvmed.graphs.nodes import find_nodes
from cmvmed.members.contract import MemberInputs
from cmvmed.members.pool import CONSENSUS, KINDS, fit_label_members
from cmvmed.views.training_data import TrainingData
from cmvmed.views.view_kernel import build_problem
from cmvmed.views.view_rows import ViewData, ViewSettings

TUNING = Tuning()


@dataclass(frozen=True)
class Training:
    """What the automatic choices are made for."""

    data: TrainingData
    views: list[ViewData]
    problem: Problem

    @property
    def partition(self):
        return self.data.partition

    @property
    def block(self):
        """The rows of the table that are used."""
        return self.partition.rows

    @property
    def matrices(self):
        """The views of the training rows, as they were given."""
        return [matrix[self.block] for matrix in self.data.matrices]

    @property
    def present(self):
        return [present[self.block] for present in self.data.present]

    @property
    def weights(self):
        return self.partition.weights[self.block]

    def nodes(self, n_neighbors=5):
        """The nodes of the graph by all views together."""
        return view_nodes(self.views, self.weights, n_neighbors)

    def labeled_rows(self, tuning=TUNING):
        return read_labeled_rows(self.data, tuning, np.random.default_rng(0))

    def folds(self, rows, n_folds=TUNING.n_folds):
        return held_out_folds(self.problem, rows, n_folds, grouped=self.data.groups is not None)

    def inputs(self, tuning=TUNING, used=None, *, per_class=False, max_compared_nodes=None, random_state=0):
        """What members are fitted to."""
        used, rows = self.used(used), self.labeled_rows(tuning)
        folds = self.folds(rows, tuning.n_folds)
        return MemberInputs(
            self.data, self.views, used, rows, folds, per_class, max_compared_nodes, random_state, tuning
        )

    def label_members(self, kinds=(*KINDS, CONSENSUS), tuning=TUNING, used=None, *, labels_drawn="unknown"):
        return fit_label_members(
            self.data,
            self.problem,
            self.views,
            self.used(used),
            kinds,
            labels_drawn=labels_drawn,
            max_compared_nodes=None,
            random_state=0,
            tuning=tuning,
        )

    def used(self, used=None):
        """Which views take part, all if it is left out."""
        return np.ones(len(self.views), dtype=bool) if used is None else np.asarray(used)


def view_nodes(views, weights, n_neighbors):
    """The nodes of the graph by some views together."""
    return find_nodes(views, range(len(views)), weights, n_neighbors)


def read_training(
    matrices, codes, *, weights=None, groups=None, kernel="linear+rbf", scaling="standard", shared_curvature=True
):
    """A training set from one matrix per view, with NaN where a row lacks it, and class codes, -1 for no label."""
    n, n_classes = codes.size, int(codes.max()) + 1
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    present = [
        np.ones(n, dtype=bool) if not isinstance(matrix, np.ndarray) else ~np.isnan(matrix).all(axis=1)
        for matrix in matrices
    ]
    partition = partition_rows(codes, n_classes, present, weights)
    data = TrainingData(None, list(matrices), present, Labels(np.arange(n_classes), codes), partition, groups)
    views = [
        data.view(i, ViewSettings(f"view{i}", kernel, "median", scaling, 2.0, 1.0, 0.1, 2.0, 0.25, 1000), 0)
        for i in range(len(matrices))
    ]
    return Training(data, views, build_problem(data, views, shared_curvature=shared_curvature))


def draw_rows(seed=0, *, n_classes=2, n_labeled=15, n_unlabeled=60, n_views=2, clusters=False, missing=0.0):
    """Views of Gaussian classes, or of classes of three distant clusters each; class codes; and all rows' classes."""
    rng = np.random.default_rng(seed)
    n = n_labeled + n_unlabeled
    parts = rng.integers(3 * n_classes if clusters else n_classes, size=n)
    parts[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes
    distance, truth = 6.0 if clusters else 1.5, parts % n_classes
    matrices = [
        distance * rng.normal(size=(parts.max() + 1, 3))[parts] + rng.normal(size=(n, 3)) for _ in range(n_views)
    ]
    present = rng.uniform(size=(n, n_views)) >= missing
    present[np.arange(n), rng.integers(n_views, size=n)] = True
    for matrix, own in zip(matrices, present.T, strict=True):
        matrix[~own] = np.nan
    return matrices, np.where(np.arange(n) < n_labeled, truth, -1), truth


def draw_training(seed=0, *, weights=None, groups=None, kernel="linear+rbf", shared_curvature=True, **drawn):
    """A training set of :func:`draw_rows`."""
    matrices, codes, _ = draw_rows(seed, **drawn)
    return read_training(
        matrices, codes, weights=weights, groups=groups, kernel=kernel, shared_curvature=shared_curvature
    )
