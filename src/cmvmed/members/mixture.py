"""The parts of a fitted model, the pool of opinions and the consensus, put together and judged by held-out labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed.auto.cross_fitting import consensus_logits, cross_fit
from cmvmed.auto.labeled_rows import LabeledRows
from cmvmed.auto.plan import ChosenPlan
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult
from cmvmed.members.accuracy import HeldOut, HeldOutAccuracy, Mixture, fit_mixture, held_out_accuracy, share_offset
from cmvmed.members.pool import SupervisedFit, SupervisedPool
from cmvmed.model.uncertainty import HeldOutScores
from cmvmed.numerics.softmax import softmax
from cmvmed.numerics.threads import Mapper
from cmvmed.numerics.types import Array, BoolArray, IntArray


@dataclass(frozen=True)
class Parts:
    """What takes part in the probabilities, the pool of opinions, the consensus, or both, and the rows that judge it."""

    supervised: SupervisedFit | None
    with_consensus: bool
    rows: LabeledRows
    folds: list[BoolArray]  # which labeled rows each fold holds out
    mass: Array  # (n,), weights of the unlabeled training rows; zero for those of the labeled block
    per_class: bool  # whether labels are taken to be drawn class by class
    chosen: bool = False  # whether labeled rows were chosen by a rule

    @property
    def names(self) -> list[str]:
        """The parts in their order."""
        return ["pool"] * (self.supervised is not None) + ["consensus"] * self.with_consensus


@dataclass(frozen=True)
class Combined:
    """The parts put together."""

    parts: Parts
    mixture: Mixture
    pool_offset: Array  # (K,), which brings the pool to the class shares
    log_p: Array  # (n, K), of the training rows: those of the labeled block, then those of the unlabeled one
    accuracy: HeldOutAccuracy | None  # None if no labels were held out
    held_out: HeldOut | None

    @property
    def consensus_scale(self) -> float:
        """By which the logits of the consensus are multiplied."""
        return float(self.mixture.scales[-1]) if self.parts.with_consensus else 1.0

    def held_out_probabilities(self) -> tuple[IntArray, Array] | None:
        """Rows of the labeled block that were held out, (m,), and their probabilities (m, K); None if none were."""
        if self.held_out is None:
            return None
        known = self.held_out.weights > 0.0
        log_p = self.mixture.log_probabilities(self.held_out.logits)
        return self.parts.rows.positions[known], np.exp(log_p[known])


def combine(
    parts: Parts,
    chosen: ChosenPlan,
    result: AnnealingResult,
    tuning: Tuning,
    *,
    calibrate: bool,
    map_folds: Mapper = map,
) -> Combined:
    """Put the parts together.

    Parameters
    ----------
    chosen, result : the consensus
    calibrate : whether labels are held out to set weights and scales
    """
    shares = chosen.plan.shares
    consensus, coverage = consensus_logits(chosen.plan, result)
    mass = parts.mass * coverage
    offset, logits = np.zeros(parts.rows.n_classes), []
    if parts.supervised is not None:
        offset = share_offset(parts.supervised.pool.log_p, mass, shares)
        logits.append(parts.supervised.pool.log_p + offset)
    if parts.with_consensus:
        logits.append(consensus)
    held_out = _held_out(parts, chosen, result, mass, tuning, map_folds) if calibrate else None
    mixture = fit_mixture(held_out, *_priors(parts, tuning), tuning)
    log_p = mixture.log_probabilities(np.stack(logits))
    accuracy = None
    if held_out is not None:
        accuracy = held_out_accuracy(
            mixture, held_out, np.exp(log_p), mass, _interval_divisor(parts, tuning), chosen=parts.chosen
        )
    return Combined(parts, mixture, offset, log_p, accuracy, held_out)


def _interval_divisor(parts: Parts, tuning: Tuning) -> float:
    """Held-out labels that count as one in the interval of the expected accuracy."""
    if parts.chosen:
        return tuning.interval_divisor_chosen
    return tuning.interval_divisor_per_class if parts.per_class else tuning.interval_divisor


def _priors(parts: Parts, tuning: Tuning) -> tuple[Array, Array]:
    """Centers of the scales' priors, and prior weights, of the parts.

    The prior weight of the consensus is 1/K: the more classes there are, the more ways the unlabeled rows can be divided
    into K parts that are not the classes.
    """
    consensus = 1.0 / parts.rows.n_classes
    centers = {"pool": 1.0, "consensus": tuning.probability_scale}
    weights = {"pool": 1.0 - consensus, "consensus": consensus}
    prior = np.array([weights[name] for name in parts.names])
    return np.array([centers[name] for name in parts.names]), prior / prior.sum()


def _held_out(
    parts: Parts,
    chosen: ChosenPlan,
    result: AnnealingResult,
    mass: Array,
    tuning: Tuning,
    map_folds: Mapper,
) -> HeldOut:
    """Every labeled row as seen by parts that were fitted, with all decisions, without the labels of its fold."""
    rows, folds = parts.rows, parts.folds
    pools: list[SupervisedPool | None] = list(parts.supervised.fold_pools) if parts.supervised else [None] * len(folds)
    shares = [
        chosen.shares(None if pool is None else pool.share, rows.counts(~fold))
        for pool, fold in zip(pools, folds, strict=True)
    ]
    by_pool, labels_only = np.zeros((2, rows.codes.size, rows.n_classes))
    weights = np.zeros(rows.codes.size)
    for pool, fold, share in zip(pools, folds, shares, strict=True):
        weights[fold] = rows.weights[fold]
        if pool is not None:
            out = rows.positions[fold]
            by_pool[fold] = pool.log_p[out] + share_offset(pool.log_p, mass, share)
            labels_only[fold] = pool.labels_only[out]
    logits = [by_pool] if parts.supervised is not None else []
    if parts.with_consensus:
        logits.append(cross_fit(chosen.plan, result, rows, folds, shares, tuning, map_folds))
    return HeldOut(np.stack(logits), labels_only if parts.supervised else None, rows.codes, weights)


def opinions_table(combined: Combined) -> dict[str, Any]:
    """Name, weight and held-out accuracy and log-loss of every opinion, by column."""
    columns: dict[str, list[Any]] = {"name": [], "weight": [], "accuracy": [], "log_loss": []}
    parts, mixture = combined.parts, combined.mixture

    def add(name: str, weight: float, p: Array, hits: BoolArray, w: Array) -> None:
        known = w > 0.0
        columns["name"].append(name)
        columns["weight"].append(weight)
        columns["accuracy"].append(float(np.average(hits[known], weights=w[known])) if known.any() else np.nan)
        loss = -np.log(np.maximum(p[known], np.finfo(float).tiny))
        columns["log_loss"].append(float(np.average(loss, weights=w[known])) if known.any() else np.nan)

    if parts.supervised is not None:
        pool = parts.supervised.pool
        for j, opinion in enumerate(parts.supervised.candidates.opinions):
            weight = float(mixture.weights[0] * pool.weights[j])
            add(opinion.name, weight, pool.likelihood[:, j], pool.hits[:, j], pool.judged)
    if parts.with_consensus:
        weight, held_out = float(mixture.weights[-1]), combined.held_out
        if held_out is None:
            add("consensus", weight, np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0))
        else:
            p = softmax(mixture.scales[-1] * held_out.logits[-1])
            own = p[np.arange(held_out.codes.size), held_out.codes]
            add("consensus", weight, own, p.argmax(axis=1) == held_out.codes, held_out.weights)
    return {"name": columns["name"], **{k: np.array(v) for k, v in columns.items() if k != "name"}}


def held_out_scores(combined: Combined, class_prior: Array) -> HeldOutScores | None:
    """The scores of the labels that a fit held out, None if it did not hold out any; ``class_prior`` is r, (K,)."""
    held_out, rows = combined.held_out, combined.parts.rows
    if held_out is None or not held_out.weights.any():
        return None
    p = np.exp(combined.mixture.log_probabilities(held_out.logits))
    used, ratio = held_out.weights > 0.0, np.ones(rows.n_classes)
    if combined.parts.per_class:
        counts = rows.counts(np.ones(rows.codes.size, dtype=bool))
        ratio = np.where(counts > 0.0, class_prior * counts.sum() / np.where(counts > 0.0, counts, 1.0), 1.0)
    codes = held_out.codes[used]
    return HeldOutScores(p[used, codes], codes, held_out.weights[used] * ratio[codes], ratio)
