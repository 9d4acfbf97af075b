"""The members that are made of kernels.

==============  ========================================================================================
views           each view alone, with its own kernel; ridge regression
lda             all views together, linear kernels; discriminant analysis
graph           the graph of nearest rows by all views together; ridge regression
view_graphs     the graphs of nearest rows by each view, their kernels together; ridge regression
==============  ========================================================================================

"Together" is the mean of the views' kernels over the views that a row has, D (Σ_v K_v) D with D = 1/√(number of views
of the row), which stays positive semi-definite.

All kernels are centered over the training rows, so scores have the mean zero over them: a member then gives the
classes the labels' shares on average. Where labels were drawn per class these shares say nothing, and a constant of the
size of the kernel, one, is added to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cmvmed.auto.class_prior import empirical_bayes_share
from cmvmed.graphs.kernel import GraphKernel, graph_kernel
from cmvmed.graphs.nodes import Nodes, find_nodes
from cmvmed.members.centered_kernels import CenteredKernel, KernelMean, center, kernel_mean, view_rows
from cmvmed.members.contract import MemberInputs, MemberScores
from cmvmed.members.solvers import discriminant_coefficients, inverse, ridge_coefficients
from cmvmed.model.fitted_model import Member, Rule
from cmvmed.model.graph_votes import graph_vote
from cmvmed.model.terms import Term
from cmvmed.numerics.kernels import Kernel
from cmvmed.numerics.types import Array, BoolArray, IntArray
from cmvmed.views.training_data import generator
from cmvmed.views.view_rows import ViewData


@dataclass(frozen=True)
class SumOfKernels:
    """A kernel between any training row and the labeled ones: a sum of kernels, each times a factor."""

    kernels: tuple[CenteredKernel | GraphKernel, ...]
    labeled: IntArray  # (l,), training rows
    factor: float = 1.0  # of each kernel
    normalized: bool = False  # whether the sum is a mean over the views that a row has
    constant: float = 0.0  # added to the kernel

    @cached_property
    def row_factors(self) -> Array:
        """1/√(number of views of each training row), (n,)."""
        present = [kernel.present for kernel in self.kernels]
        return row_factors(present) if self.normalized else np.ones(present[0].size)

    def gram(self) -> Array:
        """The kernel of the labeled rows, (l, l)."""
        d = self.factor**0.5 * self.row_factors[self.labeled]
        return np.asarray(sum(kernel.gram() for kernel in self.kernels) * np.outer(d, d) + self.constant)

    def scores(self, coefficients: Array) -> Array:
        """Σ_i a_i k(x, x_i) of all training rows, (n, F), for coefficients (l, F)."""
        total = sum(kernel.scores(self._scaled(coefficients)) for kernel in self.kernels) * self.row_factors[:, None]
        return np.asarray(total + self.constant * coefficients.sum(axis=0))

    def member(self, name: str, coefficients: Array, intercept: Array) -> Member:
        """The same on new rows, for coefficients (l, K), and a constant (K,)."""
        terms = tuple(_term(kernel, self._scaled(coefficients)) for kernel in self.kernels)
        rule: Rule = "root" if self.normalized and len(terms) > 1 else "sum"
        offset = intercept + self.constant * coefficients.sum(axis=0)
        return Member(name, terms, np.ones(len(terms)), rule, 1.0, offset)

    def _scaled(self, coefficients: Array) -> Array:
        return np.asarray(self.factor * self.row_factors[self.labeled][:, None] * coefficients)


def row_factors(present: Sequence[BoolArray]) -> Array:
    """1/√(number of views of each row), (n,); 1 for rows without any."""
    return np.asarray(1.0 / np.sqrt(np.maximum(np.sum(present, axis=0), 1)))


def _term(kernel: CenteredKernel | GraphKernel, coefficients: Array) -> Term:
    if isinstance(kernel, CenteredKernel):
        return kernel.term(coefficients)
    return graph_vote(*kernel.node_scores(coefficients))


class KernelMembers:
    """The members of a fit that are made of kernels; what does not depend on labels is kept by the fit's cache."""

    def __init__(self, inputs: MemberInputs) -> None:
        self.inputs, self.tuning, self.labeled = inputs, inputs.tuning, inputs.rows.index
        self.weights = inputs.training.partition.weights[inputs.training.partition.rows]

    def views(self) -> list[MemberScores]:
        """Each view alone; a mean of two kernels has each centered and scaled on its own."""
        found = []
        for i in self.inputs.indices:
            data = self.inputs.views[i]
            parts = [data.kernel]
            if data.settings.kernel == "linear+rbf":
                parts = [Kernel(data.settings.name, kind, data.kernel.gamma) for kind in ("linear", "rbf")]
            kernels = tuple(self._kernel(i, data, kernel) for kernel in parts)
            summed = SumOfKernels(kernels, self.labeled, 1.0 / len(parts), constant=float(self.inputs.per_class))
            found.append(self._ridge("views", f"view {data.settings.name}", summed, self.tuning.kernel_ridge))
        return found

    def lda(self) -> list[MemberScores]:
        """Linear discriminant analysis of all views together."""
        far, rows = self.inputs.features, self.inputs.rows
        kernels = [self._kernel(i, data, Kernel(data.settings.name, "linear")) for i, data in far.items()]
        summed = SumOfKernels(tuple(kernels), self.labeled, normalized=True)
        gram, n_columns = summed.gram(), sum(data.train.shape[1] for data in far.values())
        fits = [
            discriminant_coefficients(gram, rows.codes, rows.weights, rows.n_classes, n_columns, kept)
            for kept in self.inputs.keep
        ]
        coefficients, intercepts = (np.stack(part) for part in zip(*fits, strict=True))
        return [self._scored("lda", "lda", summed, coefficients, intercepts)]

    def graph(self) -> list[MemberScores]:
        """The graph by all views together."""
        return [self._graphs("graph", [self.inputs.features])]

    def view_graphs(self) -> list[MemberScores]:
        """The graphs by each view."""
        return [self._graphs("view_graphs", [{i: data} for i, data in self.inputs.features.items()])]

    def _graphs(self, kind: str, graphs: Sequence[dict[int, ViewData]]) -> MemberScores:
        """Graphs, each by some views, their kernels together."""
        kernels = tuple(self._graph_kernel(views) for views in graphs)
        summed = SumOfKernels(kernels, self.labeled, normalized=True, constant=float(self.inputs.per_class))
        return replace(self._ridge(kind, kind, summed, self.tuning.graph_ridge), uses_unlabeled=True)

    def _ridge(self, kind: str, name: str, kernel: SumOfKernels, ridge: float) -> MemberScores:
        """Ridge regression to the classes, as differences from their shares."""
        rows, keep = self.inputs.rows, self.inputs.keep
        one_hot, A = np.eye(rows.n_classes)[rows.codes], inverse(kernel.gram(), rows.weights, ridge)
        fits = [ridge_coefficients(A, one_hot - empirical_bayes_share(rows.counts(kept)), kept) for kept in keep]
        scored = self._scored(kind, name, kernel, np.stack(fits), np.zeros((len(keep), rows.n_classes)))
        return replace(scored, scale=self.tuning.ridge_scale)

    def _scored(
        self, kind: str, name: str, kernel: SumOfKernels, coefficients: Array, intercepts: Array
    ) -> MemberScores:
        """The scores for the coefficients (1 + S, l, K) and intercepts (1 + S, K) of all fits, the first to all labels."""
        F, n, K = coefficients.shape
        scores = kernel.scores(coefficients.transpose(1, 0, 2).reshape(n, F * K)).reshape(-1, F, K).transpose(1, 0, 2)
        scores = scores + intercepts[:, None]
        return MemberScores(kind, kernel.member(name, coefficients[0], intercepts[0]), scores[0], scores[1:])

    def _kernel(self, i: int, data: ViewData, kernel: Kernel) -> CenteredKernel:
        """A kernel of view i."""
        random_state = self.inputs.random_state

        def compute() -> KernelMean:
            return kernel_mean(data, kernel, self.tuning.median_sample, generator(random_state))

        kind = kernel.kind if isinstance(kernel.kind, str) else id(kernel.kind)
        mean = self.inputs.training.cache.get(("mean", i, data.settings.key, kind, kernel.gamma), compute)
        rows = view_rows(i, data, self.labeled, self.inputs.n_rows)
        return center(rows, data, kernel, mean, self.inputs.rows.weights)

    def _graph_kernel(self, views: dict[int, ViewData]) -> GraphKernel:
        def compute() -> Nodes:
            return find_nodes(list(views.values()), list(views), self.weights, self.tuning.n_neighbors)

        key = ("nodes", tuple(views), *(view.settings.key for view in views.values()))
        cache, regularization = self.inputs.training.cache, self.tuning.graph_regularization
        nodes, found = cache.get(key, compute), cache.get(("columns", *key), dict[int, Array], once=True)
        kernel = graph_kernel(nodes, self.labeled, self.inputs.rows.weights, regularization, found)
        return replace(kernel, compared=self._compared_nodes(nodes))

    def _compared_nodes(self, nodes: Nodes) -> IntArray | None:
        """Nodes that new rows are compared with: those of some rows and of labeled ones; None for all."""
        most = self.inputs.max_compared_nodes
        if most is None or nodes.size <= most:
            return None
        chosen = nodes.node_of_row[self._compared_rows]
        return np.unique(chosen[chosen >= 0])

    @cached_property
    def _compared_rows(self) -> IntArray:
        """Rows drawn at random, the same for all graphs, and the labeled ones."""
        counted = np.flatnonzero(self.weights > 0.0)
        n_drawn = min(self.inputs.max_compared_nodes or 0, counted.size)
        drawn = generator(self.inputs.random_state).choice(counted, n_drawn, replace=False)
        return np.union1d(drawn, self.labeled)
