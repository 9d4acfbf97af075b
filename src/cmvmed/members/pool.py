"""The default of the library: several members, pooled by one rule that held-out labels set.

1. The members that learn from the labels are fitted to all labels, and without the labels of each fold.
2. Held-out labels give each a scale and offsets that turn its scores into probabilities p_j.
3. They also give the weights v_j of the pool, log p = Σ_j v_j log p_j + b, normalized over the classes.
4. The pool estimates the class shares among the unlabeled rows, which the consensus keeps.
5. The consensus is one more member. The weights are learned again with it.
6. The offset b brings the pool towards the class shares.
7. Held-out labels and the unlabeled rows say which accuracy to expect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from cmvmed.auto.class_prior import label_share
from cmvmed.auto.cross_fitting import consensus_logits, cross_fit
from cmvmed.auto.labeled_rows import LabeledRows, held_out_folds, read_labeled_rows
from cmvmed.auto.plan import ChosenPlan
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import AnnealingResult
from cmvmed.core.problem import Problem, RowPartition
from cmvmed.members.accuracy import HeldOutAccuracy, held_out_accuracy
from cmvmed.members.contract import MemberInputs, MemberScores
from cmvmed.members.forest_members import fit_forest
from cmvmed.members.judged_labels import JudgedLabels, judge_labels, judge_random_labels
from cmvmed.members.kernel_members import KernelMembers
from cmvmed.members.shares import (
    ShareSensitivity,
    drawn_per_class,
    estimate_shares,
    share_offset,
    share_sensitivity,
)
from cmvmed.members.stacking import fit_logits, pool, pool_weights
from cmvmed.model.fitted_model import Member
from cmvmed.model.uncertainty import HeldOutScores
from cmvmed.numerics.softmax import log_softmax
from cmvmed.numerics.threads import Mapper
from cmvmed.numerics.types import Array, BoolArray, IntArray
from cmvmed.views.training_data import TrainingData, generator
from cmvmed.views.view_rows import ViewData

CONSENSUS = "consensus"
KINDS = ("views", "lda", "graph", "view_graphs", "trees", "trees_all")  # of members that are learned from the labels
GIVEN_KERNELS = ("views",)  # those that views with callable or precomputed kernels have


@dataclass(frozen=True)
class Calibrated:
    """Members as probabilities: log softmax(c_j s_j + b_j) of their scores s_j."""

    scales: Array  # (J,), c
    offsets: Array  # (J, K), b
    log_p: Array  # (J, n, K), of the training rows
    held_out: Array  # (J, l, K), of the labeled rows by fits without their labels


def calibrate(
    scores: Array, held_out: Array, rows: LabeledRows, judged: Array, log_prior: Array, center: Array, tuning: Tuning
) -> Calibrated:
    """Turn scores (J, n, K) into probabilities; ``held_out`` (J, l, K), ``judged`` (l,) weights of the held-out labels."""
    scales, offsets = fit_logits(held_out, rows.codes, judged, log_prior, center, tuning)
    offsets = offsets + log_prior
    log_p, held = (log_softmax(scales[:, None, None] * values + offsets[:, None]) for values in (scores, held_out))
    return Calibrated(scales, offsets, log_p, held)


@dataclass(frozen=True)
class LabelMembers:
    """The members that learn from the labels, and the rows that judge them."""

    parts: tuple[MemberScores, ...]
    with_consensus: bool
    rows: LabeledRows
    folds: list[BoolArray]  # which labeled rows (l,) each fold holds out
    partition: RowPartition
    per_class: bool  # whether labels are taken to be drawn class by class
    chosen: bool  # whether labeled rows were chosen by a rule
    random: Array  # (l,), sample weights of labels that are known to be of random rows; zero for others
    groups: IntArray | None  # (n,), numbers of the groups of all rows, if the user gave groups
    tuning: Tuning

    @cached_property
    def judged(self) -> Array:
        """Weights (l,) of the labels that a fold holds out; zero for others."""
        out = np.any(self.folds, axis=0) if self.folds else np.zeros(self.rows.codes.size, dtype=bool)
        return np.where(out, self.rows.weights, 0.0)

    @property
    def kinds(self) -> list[str]:
        """Of each member."""
        return [part.kind for part in self.parts]

    @cached_property
    def calibrated(self) -> Calibrated:
        """The members as probabilities."""
        rows = self.rows
        log_r = np.log(label_share(rows.counts(np.ones(rows.codes.size, dtype=bool))))
        scores = np.stack([part.scores for part in self.parts])
        held = np.stack([part.held_out(rows, self.folds) for part in self.parts])
        center = np.array([part.scale for part in self.parts])
        return calibrate(scores, held, rows, self.judged, log_r, center, self.tuning)

    def weights(self, chosen: Sequence[bool] | None = None) -> Array:
        """Weights (J,) of the pool of the members, or of some of them."""
        used = np.ones(len(self.parts), dtype=bool) if chosen is None else np.asarray(chosen)
        kinds = [kind for kind, own in zip(self.kinds, used, strict=True) if own]
        return pool_weights(self.calibrated.held_out[used], self.rows.codes, self.judged, kinds, self.tuning)

    @cached_property
    def shares(self) -> tuple[Array | None, list[Array | None]]:
        """The class shares among the unlabeled rows, by the pool of these members, and by fits without each fold's labels."""
        if not self.parts:
            return None, [None] * len(self.folds)
        found, weights, mass = self.calibrated, self.weights(), self.partition.unlabeled_weights

        def of(log_p: Array, kept: BoolArray) -> Array:
            counts = self.rows.counts(kept)
            random = np.bincount(self.rows.codes[kept], self.random[kept], self.rows.n_classes).astype(np.float64)
            drawn = random if self.per_class else counts
            return estimate_shares(pool(log_p, weights), mass, counts, drawn, self.tuning)

        by_fold: list[Array | None] = []
        for i, fold in enumerate(self.folds):
            scores = np.stack([part.fold_scores[i] for part in self.parts])
            log_p = log_softmax(found.scales[:, None, None] * scores + found.offsets[:, None])
            by_fold.append(of(log_p, ~fold))
        return of(found.log_p, np.ones(self.rows.codes.size, dtype=bool)), by_fold

    def labels_only(self) -> Array | None:
        """Held-out log-probabilities (l, K) by the members that learn from labeled rows alone; None if there are none."""
        alone = [not part.uses_unlabeled for part in self.parts]
        if not any(alone):
            return None
        return pool(self.calibrated.held_out[np.array(alone)], self.weights(alone))


def fit_label_members(
    training: TrainingData,
    problem: Problem,
    views: Sequence[ViewData],
    used: BoolArray,
    kinds: Sequence[str],
    *,
    labels_drawn: str,
    max_compared_nodes: int | None,
    random_state: object,
    tuning: Tuning,
) -> LabelMembers:
    """Fit the members that are learned from the labels.

    Parameters
    ----------
    used : (V,), views that take part
    kinds : of members that take part, "consensus" included
    labels_drawn : how the labeled rows were drawn, as the user says; "chosen" if some were
    max_compared_nodes : nodes of a graph that new rows are compared with at most, beside labeled ones; None for all
    """
    rows = read_labeled_rows(training, tuning, generator(random_state), used)
    groups = None if training.groups is None else training.groups[training.partition.rows]
    folds = held_out_folds(problem, rows, tuning.n_folds, grouped=groups is not None, used=used)
    per_class = drawn_per_class(training.partition.counts, labels_drawn)
    given_weights = rows.weights
    rows = rows.balanced() if per_class else rows
    inputs = MemberInputs(training, views, used, rows, folds, per_class, max_compared_nodes, random_state, tuning)
    possible = set(KINDS if inputs.have_features else GIVEN_KERNELS if inputs.indices else ())
    if len(inputs.indices) == 1 and "graph" in kinds:
        possible.discard("view_graphs")  # of one view it is the same
    parts = [part for kind in kinds if kind in possible for part in fit_kind(inputs, kind)]
    with_consensus = CONSENSUS in kinds or not parts
    random = np.full(rows.codes.size, labels_drawn == "random")
    if training.random is not None:
        random = training.random[training.partition.block_L[rows.positions]]
    return LabelMembers(
        parts=tuple(parts),
        with_consensus=with_consensus,
        rows=rows,
        folds=folds,
        partition=training.partition,
        per_class=per_class,
        chosen=labels_drawn == "chosen",
        random=np.where(random, given_weights, 0.0),
        groups=None if groups is None else np.unique(groups, return_inverse=True)[1],
        tuning=tuning,
    )


def fit_kind(inputs: MemberInputs, kind: str) -> list[MemberScores]:
    """The members of a kind."""
    if kind in ("trees", "trees_all"):
        return [fit_forest(inputs, kind)]
    of_kind: list[MemberScores] = getattr(KernelMembers(inputs), kind)()
    return of_kind


@dataclass(frozen=True)
class PoolFit:
    """All members put together; the last is the consensus, if it takes part."""

    of_labels: LabelMembers
    kinds: list[str]  # of each member
    calibrated: Calibrated
    weights: Array  # (J,)
    offset: Array  # (K,), b
    judged: bool  # whether labels were held out
    sensitivity: ShareSensitivity
    judgment: JudgedLabels | None = None  # None if nothing needs it
    accuracy: HeldOutAccuracy | None = None  # None if no labels were held out

    @property
    def log_p(self) -> Array:
        """Log-probabilities (n, K) of the training rows."""
        return _pooled(self.calibrated.log_p, self.weights, self.offset)

    @property
    def held_out(self) -> Array:
        """Those of the labeled rows by fits without their labels, (l, K); if there are groups, without their help to the pool."""
        if self.of_labels.groups is not None and self.judgment is not None:
            return self.judgment.log_p
        return _pooled(self.calibrated.held_out, self.weights, self.offset)

    @property
    def labels_only(self) -> Array | None:
        """The same by the members that learn from labeled rows alone; None if there are none."""
        if self.of_labels.groups is not None and self.judgment is not None:
            return self.judgment.labels_only
        return self.of_labels.labels_only()

    def members(self) -> list[Member]:
        """The members that learn from the labels, on new rows: logits c_j s_j + b_j of scores s_j."""
        found = zip(self.of_labels.parts, self.calibrated.scales, self.calibrated.offsets, strict=False)
        return [
            replace(part.member, scale=float(c), offset=np.asarray(c * part.member.offset + b)) for part, c, b in found
        ]

    def held_out_probabilities(self) -> tuple[IntArray, Array] | None:
        """Numbers of the rows that were held out, (m,), and their probabilities (m, K); None if none were."""
        if not self.judged:
            return None
        known = self.of_labels.judged > 0.0
        rows = self.of_labels.partition.block_L[self.of_labels.rows.positions[known]]
        return rows, np.exp(self.held_out[known])

    def held_out_scores(self, class_prior: Array) -> HeldOutScores | None:
        """The scores of the labels that were held out, None if there are none; ``class_prior`` is r, (K,)."""
        of, used = self.of_labels, self.of_labels.judged > 0.0
        if not self.judged or not used.any():
            return None
        ratio = np.ones(of.rows.n_classes)
        if of.per_class:
            counts = of.rows.counts(np.ones(of.rows.codes.size, dtype=bool))
            ratio = np.where(counts > 0.0, class_prior * counts.sum() / np.where(counts > 0.0, counts, 1.0), 1.0)
        codes = of.rows.codes[used]
        p = np.exp(self.held_out[used, codes])
        groups = None if of.groups is None else of.rows.groups[used]
        return HeldOutScores(p, codes, of.judged[used] * ratio[codes], ratio, groups)

    def table(self) -> dict[str, Any]:
        """Name, share of the weight, held-out accuracy and log-loss, and worth of every member, by column.

        The worth is the probability, given the held-out labels, of the member against the labels' class shares alone, if both
        are as probable before.
        """
        names = [*(part.name for part in self.of_labels.parts), *[CONSENSUS] * self.of_labels.with_consensus]
        rows, w = self.of_labels.rows, self.of_labels.judged
        own = self.calibrated.held_out[:, np.arange(rows.codes.size), rows.codes]
        hits = self.calibrated.held_out.argmax(axis=2) == rows.codes
        known = self.judged and w.any()
        unknown = np.full(len(names), np.nan)
        log_r = np.log(label_share(rows.counts(np.ones(rows.codes.size, dtype=bool))))
        return {
            "name": names,
            "weight": self.weights / self.weights.sum(),
            "accuracy": hits @ w / w.sum() if known else unknown,
            "log_loss": -own @ w / w.sum() if known else unknown,
            "worth": expit((own - log_r[rows.codes]) @ w) if known else unknown,
        }


def fit_pool(
    of_labels: LabelMembers,
    chosen: ChosenPlan,
    result: AnnealingResult,
    *,
    judge: bool,
    map_folds: Mapper = map,
) -> PoolFit:
    """Put the members and the consensus together.

    Parameters
    ----------
    chosen, result : the consensus
    judge : whether labels are held out to set scales and weights
    """
    rows, tuning, judged = of_labels.rows, of_labels.tuning, of_labels.judged
    K = rows.n_classes
    consensus, coverage = consensus_logits(chosen.plan, result, of_labels.partition)
    parts = [of_labels.calibrated] if of_labels.parts else []
    seen = judged if judge else np.zeros_like(judged)
    if of_labels.with_consensus:
        held = np.zeros((rows.codes.size, K))
        if judge:
            counts = [rows.counts(~fold) for fold in of_labels.folds]
            shares = [chosen.shares(s, n) for s, n in zip(of_labels.shares[1], counts, strict=True)]
            held = cross_fit(chosen.plan, result, rows, of_labels.folds, shares, tuning, map_folds)
        parts.append(calibrate(consensus[None], held[None], rows, seen, np.zeros(K), np.ones(1), tuning))
    found = Calibrated(
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([part.log_p for part in parts]),
        np.concatenate([part.held_out for part in parts]),
    )
    kinds = [*of_labels.kinds, *[CONSENSUS] * of_labels.with_consensus]
    weights = pool_weights(found.held_out, rows.codes, seen, kinds, tuning)
    mass = of_labels.partition.unlabeled_weights * coverage
    offset = np.zeros(K)
    if judge or of_labels.parts:  # the consensus alone keeps the shares already
        tau = chosen.tau(float(mass.sum()), K, tuning)
        offset = share_offset(pool(found.log_p, weights), mass, chosen.plan.shares, tau, chosen.settings.bounds)
    n_labels = float(rows.counts(np.ones(rows.codes.size, dtype=bool)).sum())
    p, known = np.exp(_pooled(found.log_p, weights, offset)), chosen.settings.bounds
    sensitivity = share_sensitivity(p, mass, chosen.plan.class_prior, n_labels, known)
    fit = PoolFit(of_labels, kinds, found, weights, offset, judge, sensitivity)
    if judge and (of_labels.groups is not None or of_labels.random.any()):
        fit = replace(fit, judgment=judge_labels(fit))
    return replace(fit, accuracy=_accuracy(fit, mass)) if judge else fit


def _pooled(log_p: Array, weights: Array, offset: Array) -> Array:
    return log_softmax(pool(log_p, weights) + offset)


def _accuracy(fit: PoolFit, mass: Array) -> HeldOutAccuracy:
    of = fit.of_labels
    largest = np.nan
    if mass.sum() > 0.0:
        largest = float(mass @ np.exp(fit.log_p).max(axis=1) / mass.sum())
    return held_out_accuracy(
        fit.held_out,
        fit.labels_only,
        of.rows.codes,
        of.judged,
        largest,
        of.tuning,
        drawn=of.rows.as_drawn.weights,
        chosen=of.chosen,
        random=None if fit.judgment is None else judge_random_labels(fit, fit.judgment, mass),
        groups=None if of.groups is None else of.rows.groups,
    )
