"""Anneal under a class prior, given or told by labels, ranks and anchors; with less consensus where it leads astray."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from cmvmed.auto.class_prior import (
    MOST_QUESTIONS,
    AnchorEstimate,
    ClassBalance,
    ShareEstimate,
    inferred_share,
    label_share,
    read_anchors,
    relaxed_balance,
)
from cmvmed.auto.ranks import ranked_share
from cmvmed.core.annealing import AnnealingResult, Problem, Schedule, anneal, independent_states
from cmvmed.core.consensus import agreement, agreement_weights, mean_correlation, pool
from cmvmed.core.linalg import Array
from cmvmed.core.posterior import ViewState, cavity_scores
from cmvmed.core.problem import RowPartition
from cmvmed.core.surrogates import Surrogate
from cmvmed.data.labels import Labels

# Correlation with the independent views' opinion below which a consensus has gone astray, and what is left of λ then. Chosen on
# development splits (docs/accuracy.md).
LEAST_LOYALTY = 0.45
CAREFUL = 0.1
ANCHOR_ROWS = 20  # unlabeled rows that two views must share before they can tell the class prior


def given_prior(class_prior: Any, classes: Any) -> Array:
    """The user's class prior (K,): a number for the second of two classes, one number per class, or a dict by class."""
    n_classes = len(classes)
    if isinstance(class_prior, Mapping):
        unknown = [key for key in class_prior if key not in set(classes.tolist())]
        lacking = [name for name in classes.tolist() if name not in class_prior]
        if unknown or lacking:
            raise ValueError(
                f"class_prior must have one entry for each class {classes.tolist()}, but is {class_prior!r}."
            )
        prior = _numbers([class_prior[name] for name in classes.tolist()])
    elif np.ndim(class_prior) == 0:
        if n_classes != 2:
            raise ValueError(
                f"class_prior={class_prior!r} is one number, but there are {n_classes} classes: give one for each."
            )
        share = _numbers([class_prior])
        prior = np.concatenate([1.0 - share, share])
    else:
        prior = _numbers(list(class_prior))
    if prior.shape != (n_classes,) or not (prior > 0.0).all() or abs(prior.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"class_prior must give each of the {n_classes} classes a positive share, summing to 1, in the order of classes_ "
            f"{classes.tolist()}, but is {class_prior!r}."
        )
    return np.asarray(prior / prior.sum())


def _numbers(given: list[Any]) -> Array:
    """The given numbers as an array; NaN, which fits no prior, for what is no number."""
    return np.array([float(value) if isinstance(value, Real) else np.nan for value in given])


def max_stages(class_prior: Any, n_classes: int, schedule: Schedule) -> int:
    """How many stages ``fit_consensus`` may run through: for each share tried, and at the end, and again with less consensus."""
    infers = isinstance(class_prior, str) and class_prior == "auto" and n_classes == 2
    questions = MOST_QUESTIONS * schedule.short().n_stages if infers else 0
    return 2 * (questions + schedule.n_stages)


def fit_consensus(
    problem: Problem,
    surrogate: Surrogate,
    schedule: Schedule,
    class_prior: Any,
    labels: Labels,
    partition: RowPartition,
    view_weights: Array | None,
    *,
    before_stage: Callable[[int, int], None] = lambda stage, n_stages: None,
    on_stage: Callable[[int, AnnealingResult, Array], bool] = lambda stage, annealed, prior: False,
) -> tuple[AnnealingResult, Array]:
    """Anneal under the class prior asked for; return where it ended and the prior used, (K,).

    ``class_prior="auto"`` with two classes infers the share from labels, their ranks and cross-view anchors, which takes up to
    three short fits under shares that are tried, before the fit under the share found. With more classes it imposes an
    empirical-Bayes share in the first half of the stages only.
    """
    from_labels = label_share(partition.counts)
    infer = isinstance(class_prior, str) and class_prior == "auto"
    if class_prior is None:
        balance, prior = None, from_labels
    elif infer and problem.n_classes > 2:
        balance = relaxed_balance(partition.counts, schedule.n_stages)
        prior = balance.prior
    else:
        prior = from_labels if isinstance(class_prior, str) else given_prior(class_prior, labels.classes)
        balance = ClassBalance(prior)
    # not one row of the rarest class is expected: nothing to balance
    if partition.weights[partition.block_U].sum() * prior.min() < 1.0:
        balance = None
    independent = independent_states(problem)

    def run(schedule: Schedule, balance: ClassBalance | None, prior: Array) -> AnnealingResult:
        return anneal_with_safeguard(
            problem,
            surrogate,
            schedule,
            balance,
            view_weights,
            independent,
            before_stage=lambda stage: before_stage(stage, schedule.n_stages),
            on_stage=lambda stage, annealed: on_stage(stage, annealed, prior),
        )

    if not infer or balance is None or problem.n_classes > 2:
        return run(schedule, balance, prior), prior
    L, pi = partition.block_L, view_weights
    if pi is None:
        R = agreement([state.m_U for state in independent], problem.rows_U, problem.weights_U)
        pi = agreement_weights(R, problem.known_views)
    told = ranked_share(problem, pi, labels.codes[L], partition.weights[L], partition.counts)
    witnesses = _witnesses(problem, view_weights) if schedule.consensus_weight != 0.0 else []
    return _fit_under_inferred_share(problem, schedule, partition, told, witnesses, run)


def _witnesses(problem: Problem, view_weights: Array | None) -> list[int]:
    """Views that can tell the class prior by anchors: they have rows enough, and a say."""
    n_sensors = len(problem.models) - problem.n_derived
    has_say = np.ones(n_sensors) if view_weights is None else view_weights
    return [i for i in range(n_sensors) if problem.rows_U[i].size >= ANCHOR_ROWS and has_say[i] > 0.0]


def _fit_under_inferred_share(
    problem: Problem,
    schedule: Schedule,
    partition: RowPartition,
    told: ShareEstimate,
    witnesses: Sequence[int],
    run: Callable[[Schedule, ClassBalance, Array], AnnealingResult],
) -> tuple[AnnealingResult, Array]:
    """Anneal under shares that are tried, then under the one they tell; two classes. A fit that was stopped is the last."""
    fits: list[tuple[AnnealingResult, Array]] = []

    def fit(share: float, schedule: Schedule) -> AnnealingResult:
        prior = np.array([1.0 - share, share])
        fits.append((run(schedule, ClassBalance(prior), prior), prior))
        return fits[-1][0]

    def ask(share: float) -> AnchorEstimate | None:
        annealed = fit(share, schedule.short())
        if annealed.stopped or annealed.consensus_weight == 0.0:
            return None
        lam = annealed.consensus_weight
        scores = [cavity_scores(problem.models[i], annealed.states[i], lam)[:, 0] for i in witnesses]
        anchors = read_anchors(scores, [problem.rows_U[i] for i in witnesses], problem.weights_U, share)
        # views that have clusters in common, which is why neighbors are heard, are no independent witnesses
        own = float(annealed.view_weights[: len(problem.models) - problem.n_derived].sum())
        return anchors and replace(anchors, variance=anchors.variance / own)

    share = told.mean
    if len(witnesses) >= 2:
        share = inferred_share(partition.counts, told, ask)
    if not (fits and fits[-1][0].stopped):
        fit(share, schedule)
    return fits[-1]


def anneal_with_safeguard(
    problem: Problem,
    surrogate: Surrogate,
    schedule: Schedule,
    balance: ClassBalance | None,
    view_weights: Array | None,
    independent: tuple[ViewState, ...],
    **reporting: Any,
) -> AnnealingResult:
    """Anneal; if the views' common opinion has left what they learned from the labels behind, anneal with less consensus.

    A consensus on some other structure of the unlabeled rows hardly correlates with the independent views' opinion. Only where λ
    is the library's choice.
    """
    annealed = anneal(problem, surrogate, schedule, balance, view_weights, independent, **reporting)
    if schedule.consensus_weight is not None or annealed.stopped or annealed.consensus_weight == 0.0:
        return annealed
    if not correlation_with_start(problem, independent, annealed) < LEAST_LOYALTY:  # it is NaN where scores do not vary
        return annealed
    careful = replace(schedule, consensus_weight=CAREFUL * annealed.consensus_weight)
    return anneal(problem, surrogate, careful, balance, view_weights, independent, **reporting)


def correlation_with_start(problem: Problem, independent: Sequence[ViewState], annealed: AnnealingResult) -> float:
    """Correlation over the unlabeled rows of the pooled scores with those of the independent views, mean over functions."""
    n_rows = problem.weights_U.size
    before, _ = pool([state.m_U for state in independent], problem.rows_U, annealed.view_weights, n_rows)
    mass = problem.weights_U * annealed.consensus.coverage
    return mean_correlation(before, annealed.consensus.scores, mass)
