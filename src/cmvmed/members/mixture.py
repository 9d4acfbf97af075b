"""The pool of opinions and the consensus put together, each a part of the mixture, and judged by held-out labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed.auto.cross_fitting import consensus_logits, cross_fit
from cmvmed.auto.labeled_rows import LabeledRows, held_out_folds, read_labeled_rows
from cmvmed.auto.neighbors import NeighborEvidence
from cmvmed.auto.plan import ChosenPlan
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult
from cmvmed.core.problem import Problem, RowPartition
from cmvmed.members.accuracy import HeldOut, HeldOutAccuracy, Mixture, fit_mixture, held_out_accuracy, share_offset
from cmvmed.members.candidates import KINDS, build_candidates
from cmvmed.members.pool import SupervisedFit, SupervisedPool, fit_supervised
from cmvmed.members.shares import drawn_per_class
from cmvmed.model.uncertainty import HeldOutScores
from cmvmed.numerics.softmax import softmax
from cmvmed.numerics.threads import Mapper
from cmvmed.numerics.types import Array, BoolArray, IntArray
from cmvmed.views.training_data import TrainingData, generator
from cmvmed.views.view_rows import ViewData


@dataclass(frozen=True)
class MixtureInputs:
    """What takes part in the probabilities, the pool of opinions, the consensus, or both, and the rows that judge it."""

    supervised: SupervisedFit | None
    with_consensus: bool
    rows: LabeledRows
    folds: list[BoolArray]  # which labeled rows each fold holds out
    partition: RowPartition
    per_class: bool  # whether labels are taken to be drawn class by class
    chosen: bool = False  # whether labeled rows were chosen by a rule

    @property
    def shares(self) -> Array | None:
        """The class shares among the unlabeled rows, by the opinions; None without them."""
        return None if self.supervised is None else self.supervised.pool.share

    @property
    def neighbors(self) -> NeighborEvidence | None:
        """The graph of nearest rows as a view of the consensus; None if it has no use there."""
        usable = self.with_consensus and self.partition.unlabeled_weights.any()
        return self.supervised.neighbor_evidence() if usable and self.supervised is not None else None

    @property
    def names(self) -> list[str]:
        """The parts of the mixture in their order."""
        return ["pool"] * (self.supervised is not None) + ["consensus"] * self.with_consensus


def fit_members(
    training: TrainingData,
    problem: Problem,
    views: Sequence[ViewData],
    used: BoolArray,
    opinions: Sequence[str],
    *,
    labels_drawn: str,
    max_compared_nodes: int | None,
    random_state: object,
    tuning: Tuning,
) -> MixtureInputs:
    """Fit the opinions that are learned from the labels.

    Parameters
    ----------
    used : (V,), views that take part
    opinions : names of those that take part, "consensus" included
    max_compared_nodes : as in :func:`cmvmed.members.candidates.build_candidates`
    labels_drawn : how the labeled rows were drawn, as the user says
    """
    partition, rng = training.partition, generator(random_state)
    rows = read_labeled_rows(training, tuning, rng, used)
    folds = held_out_folds(problem, rows, tuning.n_folds, grouped=training.groups is not None, used=used)
    per_class = drawn_per_class(partition.counts, labels_drawn)
    kinds = [name for name in opinions if name in KINDS]
    supervised = None
    if kinds:
        candidates = build_candidates(
            training,
            views,
            rows,
            used,
            kinds,
            max_compared_nodes,
            random_state,
            tuning,
            per_class=per_class,
        )
        if candidates.opinions:
            mass = partition.unlabeled_weights
            supervised = fit_supervised(candidates, folds, mass, per_class=per_class, tuning=tuning)
    with_consensus = "consensus" in opinions or supervised is None
    return MixtureInputs(supervised, with_consensus, rows, folds, partition, per_class, labels_drawn == "chosen")


@dataclass(frozen=True)
class MixtureFit:
    """The parts put together."""

    inputs: MixtureInputs
    mixture: Mixture
    pool_offset: Array  # (K,), which brings the pool to the class shares
    log_p: Array  # (n, K), of the training rows
    accuracy: HeldOutAccuracy | None  # None if no labels were held out
    held_out: HeldOut | None

    @property
    def consensus_scale(self) -> float:
        """By which the logits of the consensus are multiplied."""
        return float(self.mixture.scales[-1]) if self.inputs.with_consensus else 1.0

    def held_out_probabilities(self) -> tuple[IntArray, Array] | None:
        """Numbers of the rows that were held out, (m,), and their probabilities (m, K); None if none were."""
        if self.held_out is None:
            return None
        known = self.held_out.weights > 0.0
        log_p = self.mixture.log_probabilities(self.held_out.logits)
        return self.inputs.partition.block_L[self.inputs.rows.positions[known]], np.exp(log_p[known])


def combine(
    inputs: MixtureInputs,
    chosen: ChosenPlan,
    result: AnnealingResult,
    tuning: Tuning,
    *,
    calibrate: bool,
    map_folds: Mapper = map,
) -> MixtureFit:
    """Put the pool of opinions and the consensus together.

    Parameters
    ----------
    chosen, result : the consensus
    calibrate : whether labels are held out to set weights and scales
    """
    shares = chosen.plan.shares
    consensus, coverage = consensus_logits(chosen.plan, result, inputs.partition)
    mass = inputs.partition.unlabeled_weights * coverage
    offset, logits = np.zeros(inputs.rows.n_classes), []
    if inputs.supervised is not None:
        offset = share_offset(inputs.supervised.pool.log_p, mass, shares)
        logits.append(inputs.supervised.pool.log_p + offset)
    if inputs.with_consensus:
        logits.append(consensus)
    held_out = _held_out(inputs, chosen, result, mass, tuning, map_folds) if calibrate else None
    mixture = fit_mixture(held_out, *_priors(inputs, tuning), tuning)
    log_p = mixture.log_probabilities(np.stack(logits))
    accuracy = None
    if held_out is not None:
        accuracy = held_out_accuracy(
            mixture, held_out, np.exp(log_p), mass, _interval_divisor(inputs, tuning), chosen=inputs.chosen
        )
    return MixtureFit(inputs, mixture, offset, log_p, accuracy, held_out)


def _interval_divisor(inputs: MixtureInputs, tuning: Tuning) -> float:
    """Held-out labels that count as one in the interval of the expected accuracy."""
    if inputs.chosen:
        return tuning.interval_divisor_chosen
    return tuning.interval_divisor_per_class if inputs.per_class else tuning.interval_divisor


def _priors(inputs: MixtureInputs, tuning: Tuning) -> tuple[Array, Array]:
    """Centers of the scales' priors, and prior weights, of the parts.

    The prior weight of the consensus is 1/K: the more classes there are, the more ways the unlabeled rows can be divided
    into K inputs that are not the classes.
    """
    consensus = 1.0 / inputs.rows.n_classes
    centers = {"pool": 1.0, "consensus": tuning.probability_scale}
    weights = {"pool": 1.0 - consensus, "consensus": consensus}
    prior = np.array([weights[name] for name in inputs.names])
    return np.array([centers[name] for name in inputs.names]), prior / prior.sum()


def _held_out(
    inputs: MixtureInputs,
    chosen: ChosenPlan,
    result: AnnealingResult,
    mass: Array,
    tuning: Tuning,
    map_folds: Mapper,
) -> HeldOut:
    """Every labeled row as seen by parts that were fitted, with all decisions, without the labels of its fold."""
    rows, folds = inputs.rows, inputs.folds
    pools: list[SupervisedPool | None] = (
        list(inputs.supervised.fold_pools) if inputs.supervised else [None] * len(folds)
    )
    shares = [
        chosen.shares(None if pool is None else pool.share, rows.counts(~fold))
        for pool, fold in zip(pools, folds, strict=True)
    ]
    by_pool, labels_only = np.zeros((2, rows.codes.size, rows.n_classes))
    weights = np.zeros(rows.codes.size)
    for pool, fold, share in zip(pools, folds, shares, strict=True):
        weights[fold] = rows.weights[fold]
        if pool is not None:
            out = rows.index[fold]
            by_pool[fold] = pool.log_p[out] + share_offset(pool.log_p, mass, share)
            labels_only[fold] = pool.labels_only[out]
    logits = [by_pool] if inputs.supervised is not None else []
    if inputs.with_consensus:
        logits.append(cross_fit(chosen.plan, result, rows, folds, shares, tuning, map_folds))
    return HeldOut(np.stack(logits), labels_only if inputs.supervised else None, rows.codes, weights)


def opinions_table(fit: MixtureFit) -> dict[str, Any]:
    """Name, weight and held-out accuracy and log-loss of every opinion, by column."""
    columns: dict[str, list[Any]] = {"name": [], "weight": [], "accuracy": [], "log_loss": []}
    inputs, mixture = fit.inputs, fit.mixture

    def add(name: str, weight: float, p: Array, hits: BoolArray, w: Array) -> None:
        known = w > 0.0
        columns["name"].append(name)
        columns["weight"].append(weight)
        columns["accuracy"].append(float(np.average(hits[known], weights=w[known])) if known.any() else np.nan)
        loss = -np.log(np.maximum(p[known], np.finfo(float).tiny))
        columns["log_loss"].append(float(np.average(loss, weights=w[known])) if known.any() else np.nan)

    if inputs.supervised is not None:
        pool = inputs.supervised.pool
        for j, opinion in enumerate(inputs.supervised.candidates.opinions):
            weight = float(mixture.weights[0] * pool.weights[j])
            add(opinion.name, weight, pool.likelihood[:, j], pool.hits[:, j], pool.judged)
    if inputs.with_consensus:
        weight, held_out = float(mixture.weights[-1]), fit.held_out
        if held_out is None:
            add("consensus", weight, np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0))
        else:
            p = softmax(mixture.scales[-1] * held_out.logits[-1])
            own = p[np.arange(held_out.codes.size), held_out.codes]
            add("consensus", weight, own, p.argmax(axis=1) == held_out.codes, held_out.weights)
    return {"name": columns["name"], **{k: np.array(v) for k, v in columns.items() if k != "name"}}


def held_out_scores(fit: MixtureFit, class_prior: Array) -> HeldOutScores | None:
    """The scores of the labels that a fit held out, None if it did not hold out any; ``class_prior`` is r, (K,)."""
    held_out, rows = fit.held_out, fit.inputs.rows
    if held_out is None or not held_out.weights.any():
        return None
    p = np.exp(fit.mixture.log_probabilities(held_out.logits))
    used, ratio = held_out.weights > 0.0, np.ones(rows.n_classes)
    if fit.inputs.per_class:
        counts = rows.counts(np.ones(rows.codes.size, dtype=bool))
        ratio = np.where(counts > 0.0, class_prior * counts.sum() / np.where(counts > 0.0, counts, 1.0), 1.0)
    codes = held_out.codes[used]
    return HeldOutScores(p[used, codes], codes, held_out.weights[used] * ratio[codes], ratio)
