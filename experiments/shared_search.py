"""5-fold selection for the paper's method, whose folds and trials share kernels and factorizations.

A label that is held out keeps its row in the labeled block, with a hinge weight of zero: all folds then have the same
unlabeled rows. The kernel depends on ``gamma`` alone, and so does the eigendecomposition of algorithm "bohning", which
serves every fold, σ², C and λ. Algorithm "printed" shares kernels only, since its curvature is another in each sweep.
Scale and median distance are those of all training rows, held out or not; labels have no part in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from cmvmed import CMVMED
from cmvmed.auto.cross_fitting import labeled_logits, without_labels
from cmvmed.core.annealing import Plan, Schedule, anneal, supervised_start
from cmvmed.core.full_kernel import CholeskyView, SpectralView
from cmvmed.core.problem import Problem
from cmvmed.estimators._settings import FitSettings
from cmvmed.views.view_kernel import build_problem
from experiments.tasks import IntArray, Split


def can_share(estimator: object) -> bool:
    """Whether the search can be shared: the paper's method, without class shares, held-out labels, landmarks or bias."""
    return (
        isinstance(estimator, CMVMED)
        and estimator.members is None
        and estimator.class_prior is None
        and estimator.approximation == "exact"
        and estimator.view_weights == "uniform"
        and estimator.bias_variance == 0.0  # else the kernel depends on σ²
    )


class SharedSearch:
    """Accuracy on held-out labels of models that differ in ``gamma``, ``prior_variance``, ``C`` and ``consensus_weight``.

    Parameters
    ----------
    model : CMVMED for which ``can_share`` holds
    split : Split
    folds : per fold, the numbers of the rows whose labels are held out
    """

    def __init__(self, model: CMVMED, split: Split, folds: Sequence[IntArray]) -> None:
        self.training = model._read_training(split.X, split.y, None)
        labeled = self.training.partition.block_L
        self.truth = split.y[labeled]
        self.held_out = [np.isin(labeled, fold) for fold in folds]
        self._problems: dict[object, Problem] = {}

    def accuracy(self, model: CMVMED) -> float:
        """Mean over the folds of the accuracy on their labels, which the fit does not use."""
        settings = FitSettings.read(model)
        problem = self._problem(model.gamma, settings)
        return float(np.mean([self._fold_accuracy(problem, settings, out) for out in self.held_out if out.any()]))

    def _fold_accuracy(self, problem: Problem, settings: FitSettings, out: NDArray[np.bool_]) -> float:
        fold = without_labels(problem, out)
        s, counts = settings, self.training.partition.counts
        plan = Plan(
            problem=fold,
            start=supervised_start(fold),
            surrogate=s.surrogate,
            schedule=Schedule(float(s.consensus_weight), s.temperature, s.n_stages, s.max_iter, s.tol),
            view_weights=np.full(fold.n_views, 1.0 / fold.n_views),
            class_prior=counts / counts.sum(),  # reported only
            shares=None,
        )
        predicted = labeled_logits(plan, anneal(plan)).argmax(axis=1)
        return float(np.mean(predicted[out] == self.truth[out]))

    def _problem(self, gamma: object, settings: FitSettings) -> Problem:
        """The problem of this ``gamma`` with the σ² and C of the settings."""
        training = self.training
        by_view = settings.views.by_view(training.schema.view_names, training.labels.n_classes, settings.tuning)
        if gamma not in self._problems:
            views = training.views(by_view, settings.random_state)
            shared = settings.surrogate.shared_curvature
            self._problems[gamma] = build_problem(training, views, shared_curvature=shared)
        problem = self._problems[gamma]
        models = cast("tuple[SpectralView | CholeskyView, ...]", problem.models)
        weights = training.partition.weights[training.partition.block_L]
        return replace(
            problem,
            models=tuple(m.with_prior_variance(s.prior_variance) for m, s in zip(models, by_view, strict=True)),
            box=tuple(s.C * weights for s in by_view),
        )
