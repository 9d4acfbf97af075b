"""Which opinions there are, and of which kernels each is made.

==============  ========================================================================================
linear          all views together, linear kernels; features clipped only far out
rbf             all views together, RBF kernels
views           each view alone, with its own kernel
graph           the graph of nearest rows by all views together
view_graphs     the graphs of nearest rows by each view, their kernels together
==============  ========================================================================================

"Together" is the mean of the views' kernels over the views that a row has, D (Σ_v K_v) D with D = 1/√(number of views
of the row), which stays positive semi-definite. Views with a callable or precomputed kernel have no features to compare;
the first two are then one opinion, ``joint``, with the given kernels, and there are no graphs.

All kernels are centered over the training rows, so scores have the mean zero over them: an opinion then gives the
classes the labels' shares on average. Where labels were drawn per class these shares say nothing, and a constant of the
size of the kernel, one, is added to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cmvmed.auto.labeled_rows import LabeledRows
from cmvmed.auto.tuning import Tuning
from cmvmed.graphs.kernel import GraphKernel, graph_kernel
from cmvmed.graphs.nodes import Nodes, find_nodes
from cmvmed.members.centered_kernels import (
    CenteredKernel,
    KernelMean,
    ViewRows,
    center,
    kernel_mean,
    view_rows,
)
from cmvmed.model.fitted_model import Member, Rule
from cmvmed.model.graph_votes import graph_vote
from cmvmed.model.terms import Term
from cmvmed.numerics.kernels import DISTANCE_KERNELS, Kernel
from cmvmed.numerics.types import Array, BoolArray, IntArray
from cmvmed.views.training_data import TrainingData, generator
from cmvmed.views.view_rows import ViewData

KINDS = ("linear", "rbf", "views", "graph", "view_graphs")
USES_UNLABELED = ("graph", "view_graphs")  # kinds that learn from unlabeled rows


@dataclass(frozen=True)
class Opinion:
    """One opinion: a sum of kernels, each times a factor, and the ridge of its regression."""

    name: str
    kind: str
    kernels: tuple[CenteredKernel | GraphKernel, ...]
    factor: float  # of each kernel
    normalized: bool  # whether the sum is a mean over the views that a row has
    ridge: float
    prior: float  # weight before any label was held out
    constant: float = 0.0  # added to the kernel

    def row_factors(self) -> Array:
        """1/√(number of views of each training row), (n,)."""
        if not self.normalized:
            return np.ones(self.kernels[0].present.size)
        return row_factors([kernel.present for kernel in self.kernels])

    def gram(self, labeled: IntArray) -> Array:
        """The kernel of the labeled rows, (l, l)."""
        d = self.factor**0.5 * self.row_factors()[labeled]
        return np.asarray(sum(kernel.gram() for kernel in self.kernels) * np.outer(d, d) + self.constant)


def row_factors(present: Sequence[BoolArray]) -> Array:
    """1/√(number of views of each row), (n,); 1 for rows without any."""
    return np.asarray(1.0 / np.sqrt(np.maximum(np.sum(present, axis=0), 1)))


@dataclass(frozen=True)
class Candidates:
    """The opinions of a fit, of which all that they share does not depend on labels."""

    opinions: tuple[Opinion, ...]
    rows: LabeledRows

    def scores(self, j: int, coefficients: Array) -> Array:
        """Scores (n, F) of all training rows by opinion j, for coefficients (l, F)."""
        opinion = self.opinions[j]
        d = opinion.row_factors()
        scaled = opinion.factor * d[self.rows.index][:, None] * coefficients
        total = sum(kernel.scores(scaled) for kernel in opinion.kernels) * d[:, None]
        return np.asarray(total + opinion.constant * coefficients.sum(axis=0))

    def member(self, j: int, coefficients: Array) -> Member:
        """Opinion j on new rows, not calibrated, for coefficients (l, K)."""
        opinion = self.opinions[j]
        scaled = opinion.factor * opinion.row_factors()[self.rows.index][:, None] * coefficients
        terms = tuple(_term(kernel, scaled) for kernel in opinion.kernels)
        intercept = opinion.constant * coefficients.sum(axis=0)
        rule: Rule = "root" if opinion.normalized else "sum"
        return Member(opinion.name, terms, np.ones(len(terms)), rule, 1.0, intercept)


def build_candidates(
    training: TrainingData,
    views: Sequence[ViewData],
    rows: LabeledRows,
    used: BoolArray,
    kinds: Sequence[str],
    max_compared_nodes: int | None,
    random_state: object,
    tuning: Tuning,
    *,
    per_class: bool = False,
) -> Candidates:
    """The opinions that a fit's views allow.

    Parameters
    ----------
    views : the views with the user's scaling and kernels
    used : (V,), views that take part
    kinds : some of ``KINDS``
    max_compared_nodes : new rows are compared with so many nodes of a graph at most, and the labeled ones; None for all
    per_class : whether labels were drawn class by class
    """
    build = _Builder(training, list(views), used, rows, max_compared_nodes, random_state, tuning)
    has_features = all(isinstance(views[i].settings.kernel, str) for i in build.indices) and all(
        views[i].settings.kernel != "precomputed" for i in build.indices
    )
    opinions: list[Opinion] = []
    if has_features:
        near, far = build.with_bandwidth(), build.widely_clipped()
        if "linear" in kinds:
            kernels = [build.kernel(i, far[i], Kernel(far[i].settings.name, "linear")) for i in build.indices]
            opinions.append(build.joint("linear", kernels, tuning.linear_ridge))
        if "rbf" in kinds:
            kernels = [build.kernel(i, near[i], _rbf(near[i])) for i in build.indices]
            opinions.append(build.joint("rbf", kernels, tuning.kernel_ridge))
    elif "linear" in kinds or "rbf" in kinds:
        kernels = [build.kernel(i, views[i], views[i].kernel) for i in build.indices]
        opinions.append(build.joint("joint", kernels, tuning.kernel_ridge))
    if "views" in kinds:
        opinions.extend(build.single(i) for i in build.indices)
    if has_features:
        if "graph" in kinds:
            opinions.append(build.graph(far))
        if "view_graphs" in kinds and len(build.indices) > 1:
            opinions.append(build.view_graphs(far))
    total, constant = sum(opinion.prior for opinion in opinions), float(per_class)
    every = tuple(replace(opinion, prior=opinion.prior / total, constant=constant) for opinion in opinions)
    return Candidates(every, rows)


class _Builder:
    """The kernels and opinions of a fit, one at a time; what does not depend on labels is kept by its cache."""

    def __init__(
        self,
        training: TrainingData,
        views: list[ViewData],
        used: BoolArray,
        rows: LabeledRows,
        max_compared_nodes: int | None,
        random_state: object,
        tuning: Tuning,
    ) -> None:
        self.training, self.views, self.tuning = training, views, tuning
        self.random_state, self.max_compared_nodes = random_state, max_compared_nodes
        self.indices = [i for i, view in enumerate(views) if used[i] and view.rows.size]
        self.weights = training.partition.weights[training.partition.rows]
        self.labeled, self.weights_L = rows.index, rows.weights
        n_rows = self.weights.size
        self.rows: dict[int, ViewRows] = {i: view_rows(i, views[i], self.labeled, n_rows) for i in self.indices}

    def with_bandwidth(self) -> dict[int, ViewData]:
        """The views with a bandwidth."""
        return {
            i: self.views[i]
            if self.views[i].settings.kernel in DISTANCE_KERNELS
            else self._read(i, self.views[i].settings.clip)
            for i in self.indices
        }

    def widely_clipped(self) -> dict[int, ViewData]:
        """The views with features clipped only far out, and a bandwidth."""
        return {
            i: self.views[i]
            if self.views[i].scaling.kind == "unit" and self.views[i].settings.kernel in DISTANCE_KERNELS
            else self._read(i, self.tuning.wide_clip)
            for i in self.indices
        }

    def _read(self, i: int, clip: float) -> ViewData:
        """View i with another clip and a bandwidth; raw features are only brought to a magnitude that can be squared."""
        settings = replace(self.views[i].settings, clip=clip, kernel="linear+rbf", gamma="median")
        if settings.scaling is None:
            settings = replace(settings, scaling="magnitude")
        return self.training.view(i, settings, self.random_state)

    def kernel(self, i: int, data: ViewData, kernel: Kernel) -> CenteredKernel:
        """A kernel of view i."""

        def compute() -> KernelMean:
            rng = generator(self.random_state)
            return kernel_mean(data, kernel, self.tuning.median_sample, rng)

        kind = kernel.kind if isinstance(kernel.kind, str) else id(kernel.kind)
        mean = self.training.cache.get(("mean", i, data.settings.key, kind, kernel.gamma), compute)
        return center(self.rows[i], data, kernel, mean, self.weights_L)

    def joint(self, kind: str, kernels: list[CenteredKernel], ridge: float) -> Opinion:
        """The mean of one kernel per view."""
        return Opinion(kind, kind, tuple(kernels), 1.0, True, ridge, 1.0)

    def single(self, i: int) -> Opinion:
        """View i alone; a mean of two kernels has each centered and scaled on its own."""
        data = self.views[i]
        parts = [data.kernel]
        if data.settings.kernel == "linear+rbf":
            parts = [Kernel(data.settings.name, "linear"), _rbf(data)]
        kernels = tuple(self.kernel(i, data, kernel) for kernel in parts)
        name, prior = f"view {data.settings.name}", 1.0 / len(self.indices)
        return Opinion(name, "views", kernels, 1.0 / len(parts), False, self.tuning.kernel_ridge, prior)

    def graph(self, far: dict[int, ViewData]) -> Opinion:
        """The graph by all views together."""
        kernel = self._graph_kernel([far[i] for i in self.indices], self.indices)
        return Opinion("graph", "graph", (kernel,), 1.0, False, self.tuning.graph_ridge, 1.0)

    def view_graphs(self, far: dict[int, ViewData]) -> Opinion:
        """The graphs by each view."""
        kernels = tuple(self._graph_kernel([far[i]], [i]) for i in self.indices)
        return Opinion("view_graphs", "view_graphs", kernels, 1.0, True, self.tuning.graph_ridge, 1.0)

    def _graph_kernel(self, views: list[ViewData], indices: list[int]) -> GraphKernel:
        def compute() -> Nodes:
            return find_nodes(views, indices, self.weights, self.tuning.n_neighbors)

        key = ("nodes", tuple(indices), *(view.settings.key for view in views))
        nodes = self.training.cache.get(key, compute)
        kernel = graph_kernel(nodes, self.labeled, self.weights_L, self.tuning.graph_regularization)
        return replace(kernel, compared=self._compared_nodes(nodes))

    def _compared_nodes(self, nodes: Nodes) -> IntArray | None:
        """Nodes that new rows are compared with: those of some rows and of labeled ones; None for all."""
        if self.max_compared_nodes is None or nodes.size <= self.max_compared_nodes:
            return None
        chosen = nodes.node_of_row[self._compared_rows]
        return np.unique(chosen[chosen >= 0])

    @cached_property
    def _compared_rows(self) -> IntArray:
        """Rows drawn at random, the same for all graphs, and the labeled ones."""
        counted = np.flatnonzero(self.weights > 0.0)
        n_drawn = min(self.max_compared_nodes or 0, counted.size)
        drawn = generator(self.random_state).choice(counted, n_drawn, replace=False)
        return np.union1d(drawn, self.labeled)


def _rbf(data: ViewData) -> Kernel:
    return Kernel(data.settings.name, "rbf", data.kernel.gamma)


def _term(kernel: CenteredKernel | GraphKernel, coefficients: Array) -> Term:
    """A kernel of an opinion on new rows, for coefficients (l, K)."""
    if isinstance(kernel, CenteredKernel):
        return kernel.term(coefficients)
    return graph_vote(*kernel.node_scores(coefficients))
