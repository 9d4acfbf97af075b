"""The pool of the opinions that are learned from the labels.

Each opinion's scores become probabilities by a scale and offsets, learned from labels that were left out; the same
labels set the opinions' weights. The pool is their weighted geometric mean. Everything is repeated without the labels
of each fold, so that what comes after sees held-out probabilities that no decision was made on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmvmed.auto.class_prior import empirical_bayes_share, label_share
from cmvmed.auto.labeled_rows import LabeledRows
from cmvmed.auto.neighbors import NeighborEvidence
from cmvmed.auto.tuning import Tuning
from cmvmed.graphs.kernel import GraphKernel
from cmvmed.members.candidates import USES_UNLABELED, Candidates
from cmvmed.members.ridge import fit_ridge, inverse
from cmvmed.members.shares import infer_shares
from cmvmed.members.stacking import fit_logits, log_linear_pool, stacking_weights
from cmvmed.model.fitted_model import Member
from cmvmed.numerics.softmax import log_softmax
from cmvmed.numerics.types import Array, BoolArray


@dataclass(frozen=True)
class SupervisedPool:
    """The pool of the opinions fitted to some of the labels."""

    scales: Array  # (J,)
    offsets: Array  # (J, K), with the labels' share
    weights: Array  # (J,)
    likelihood: Array  # (l, J), probability of each label by opinions that left it out
    hits: BoolArray  # (l, J), whether its class was the most probable one
    judged: Array  # (l,) weights of the labels that could be left out
    log_p: Array  # (n, K), pooled log-probabilities of the training rows
    labels_only: Array  # (n, K), those of the opinions that learn from labeled rows alone
    share: Array  # (K,), share of each class among the unlabeled rows, as far as the pool can say


@dataclass(frozen=True)
class OpinionScores:
    """An opinion fitted to several subsets of the labels, S in number."""

    left_out: Array  # (S, l, K), scores of each label by fits that left its group out
    scores: Array  # (S, n, K), scores of all training rows
    member: Member  # on new rows, by the fit to the first subset, not calibrated


@dataclass(frozen=True)
class SupervisedFit:
    """The pool fitted to all labels, and those fitted without the labels of each fold."""

    candidates: Candidates
    folds: list[BoolArray]  # which labeled rows (l,) each fold holds
    uncalibrated: tuple[Member, ...]  # the opinions fitted to all labels, on new rows
    pool: SupervisedPool
    fold_pools: list[SupervisedPool]

    @property
    def rows(self) -> LabeledRows:
        """The labeled rows."""
        return self.candidates.rows

    def members(self) -> tuple[Member, ...]:
        """The opinions on new rows: logits a_j s_j + b_j of scores s_j."""
        pool = zip(self.uncalibrated, self.pool.scales, self.pool.offsets, strict=True)
        return tuple(replace(own, scale=float(a), offset=a * own.offset + b) for own, a, b in pool)

    def neighbor_evidence(self) -> NeighborEvidence | None:
        """The graph of nearest rows and its weight in the pool; None if that is not above its prior weight."""
        graphs = [opinion.kind in USES_UNLABELED for opinion in self.candidates.opinions]
        prior = sum(opinion.prior for opinion in self.candidates.opinions if opinion.kind in USES_UNLABELED)
        weight = float(self.pool.weights[graphs].sum())
        joint = [opinion for opinion in self.candidates.opinions if opinion.kind == "graph"]
        if not joint or all(graphs) or weight <= prior:
            return None
        kernel = joint[0].kernels[0]
        return NeighborEvidence(kernel.nodes, weight) if isinstance(kernel, GraphKernel) else None


def fit_supervised(
    candidates: Candidates, folds: list[BoolArray], mass: Array, *, per_class: bool, tuning: Tuning
) -> SupervisedFit:
    """Fit the pool to all labels, and again without the labels of each fold.

    Parameters
    ----------
    folds : which labeled rows (l,) each fold holds
    mass : (n,), weights of the unlabeled training rows; zero for others
    per_class : whether labels were drawn class by class
    """
    rows = candidates.rows
    keep = [np.ones(rows.codes.size, dtype=bool), *(~fold for fold in folds)]
    fits = [fit_opinion(candidates, j, keep, mass.size) for j in range(len(candidates.opinions))]
    left_out, scores = (np.stack([getattr(fit, name) for fit in fits], axis=1) for name in ("left_out", "scores"))
    pools = [
        _pool(candidates, kept, left_out[i], scores[i], mass, per_class=per_class, tuning=tuning)
        for i, kept in enumerate(keep)
    ]
    return SupervisedFit(candidates, folds, tuple(fit.member for fit in fits), pools[0], pools[1:])


def fit_opinion(candidates: Candidates, j: int, keep: Sequence[BoolArray], n: int) -> OpinionScores:
    """Opinion j, fitted to each of the subsets of the labels."""
    opinion, rows = candidates.opinions[j], candidates.rows
    one_hot = np.eye(rows.n_classes)[rows.codes]
    A = inverse(opinion.gram(rows.index), rows.weights, opinion.ridge)
    fits = [fit_ridge(A, one_hot - empirical_bayes_share(rows.counts(kept)), rows.groups, kept) for kept in keep]
    coefficients = np.concatenate([fit.coefficients for fit in fits], axis=1)  # (l, S K)
    scores = candidates.scores(j, coefficients).reshape(n, len(keep), rows.n_classes).transpose(1, 0, 2)
    return OpinionScores(np.stack([fit.left_out for fit in fits]), scores, candidates.member(j, fits[0].coefficients))


def _pool(
    candidates: Candidates,
    kept: BoolArray,
    left_out: Array,
    scores: Array,
    mass: Array,
    *,
    per_class: bool,
    tuning: Tuning,
) -> SupervisedPool:
    """Scale, weigh and pool the opinions fitted to the kept labels; left_out (J, l, K), scores (J, n, K)."""
    rows = candidates.rows
    counts, judged = rows.counts(kept), rows.judged(kept)
    log_r = np.log(label_share(counts))
    center = np.full(len(left_out), tuning.opinion_scale)
    sd = tuning.opinion_scale_sd
    scales, b = fit_logits(left_out, rows.codes, judged, log_r, center, sd, tuning.opinion_offset_sd, tuning)
    offsets = b + log_r

    def log_probabilities(values: Array) -> Array:
        return log_softmax(scales[:, None, None] * values + offsets[:, None])

    out, every = log_probabilities(left_out), log_probabilities(scores)
    likelihood = np.exp(out[:, np.arange(rows.codes.size), rows.codes]).T
    prior = np.array([opinion.prior for opinion in candidates.opinions])
    weights = stacking_weights(likelihood, judged, prior, tuning.opinion_strength)
    pooled = log_linear_pool(every, weights)
    share = infer_shares(
        log_linear_pool(out, weights),
        pooled[mass > 0.0],
        mass[mass > 0.0],
        rows.codes,
        judged,
        counts,
        per_class,
        tuning,
    )
    supervised = np.array([opinion.kind not in USES_UNLABELED for opinion in candidates.opinions])
    labels_only = pooled
    if supervised.any() and not supervised.all():
        own = stacking_weights(
            likelihood[:, supervised], judged, prior[supervised] / prior[supervised].sum(), tuning.opinion_strength
        )
        labels_only = log_linear_pool(every[supervised], own)
    hits = (out.argmax(axis=2) == rows.codes).T
    return SupervisedPool(scales, offsets, weights, likelihood, hits, judged, pooled, labels_only, share)
