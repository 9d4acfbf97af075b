"""Labels as the pool predicts them without their help.

Held-out labels set the scales and weights of the pool, which therefore predicts them better than other rows: the less, the more
labels there are. Where the accuracy has to be right, as that of random rows, or on new groups, whose labels are few independent
ones, scales and weights are set once more without those of each fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cmvmed.auto.class_prior import label_share
from cmvmed.members.random_labels import RandomLabels, random_labels
from cmvmed.members.stacking import fit_logits, pool, pool_weights
from cmvmed.numerics.softmax import log_softmax
from cmvmed.numerics.types import Array

if TYPE_CHECKING:
    from cmvmed.members.pool import PoolFit


@dataclass(frozen=True)
class JudgedLabels:
    """Labels by fits, scales and weights without those of their fold."""

    log_p: Array  # (l, K), log-probabilities; zero for labels in no fold
    labels_only: Array | None  # the same by the members that learn from labeled rows alone; None if there are none
    confidence: (
        Array  # (S, n), largest probability of each row without the labels of a fold, by the pool without the consensus
    )


def judge_labels(fit: PoolFit) -> JudgedLabels:
    """Each label, without those of its fold."""
    of, found, n = fit.of_labels, fit.calibrated, len(fit.of_labels.parts)
    codes, K = of.rows.codes, of.rows.n_classes
    scores = (found.held_out - found.offsets[:, None]) / found.scales[:, None, None]  # up to a constant of each row
    log_r = np.log(label_share(of.rows.counts(np.ones(codes.size, dtype=bool))))
    log_prior = np.concatenate([np.tile(log_r, (n, 1)), np.zeros((len(scores) - n, K))])[:, None]
    center = np.array([*(part.scale for part in of.parts), *[1.0] * of.with_consensus])
    alone = np.array([*(not part.uses_unlabeled for part in of.parts), *[False] * of.with_consensus])
    kinds_alone = [kind for kind, own in zip(fit.kinds, alone, strict=True) if own]
    held, labels_only = np.zeros((2, codes.size, K))
    confidence = np.full((len(of.folds), found.log_p.shape[1]), 0.5)
    for i, fold in enumerate(of.folds):
        seen = np.where(fold, 0.0, of.judged)
        scales, offsets = fit_logits(scores, codes, seen, log_prior, center, of.tuning)
        offsets, scales = offsets[:, None] + log_prior, scales[:, None, None]
        log_p = log_softmax(scales * scores + offsets)
        weights = pool_weights(log_p, codes, seen, fit.kinds, of.tuning)
        held[fold] = log_softmax(pool(log_p[:, fold], weights) + fit.offset)
        if kinds_alone:
            of_alone = pool_weights(log_p[alone], codes, seen, kinds_alone, of.tuning)
            labels_only[fold] = pool(log_p[alone][:, fold], of_alone)
        if n:
            of_all = np.stack([part.fold_scores[i] for part in of.parts])
            log_p = log_softmax(scales[:n] * of_all + offsets[:n])
            confidence[i] = np.exp(pool(log_p, weights[:n]).max(axis=1))
    return JudgedLabels(held, labels_only if kinds_alone else None, confidence)


def judge_random_labels(fit: PoolFit, judged: JudgedLabels, mass: Array) -> RandomLabels | None:
    """What labels of random rows say of the accuracy; ``mass`` (n,) are the weights of the unlabeled rows.

    The confidence is by the same fits for labeled and unlabeled rows, without the labels of a fold; for new groups, without
    those of the row's group. A label whose class has no other, or none in other groups, counts as wrong: no fit without it
    knows the class, and about as many rows are of classes without labels (Good and Turing).
    """
    of, held = fit.of_labels, fit.of_labels.judged > 0.0
    weights = np.where(held, of.random, 0.0)
    if not weights.any():
        return None
    by_fold = np.array([weights[fold].sum() for fold in of.folds]) / weights.sum()
    others, own = by_fold @ judged.confidence, np.zeros(weights.size)
    for fold, confidence in zip(of.folds, judged.confidence, strict=True):
        own[fold] = confidence[of.rows.index[fold]]
        if of.groups is not None:
            of_groups = np.isin(of.groups, of.groups[of.rows.index[fold]])
            others[of_groups] = confidence[of_groups]
    right = held & (judged.log_p.argmax(axis=1) == of.rows.codes)
    alone = of.rows.judged(np.ones(held.size, dtype=bool)) == 0.0
    own[alone] = float(weights @ own) / float(weights.sum())
    random = np.where(held | alone, of.random, 0.0)
    groups = None if of.groups is None else (of.groups[of.rows.index], of.groups)
    return random_labels(right, own, random, others, mass if of.parts else np.zeros_like(mass), groups)
