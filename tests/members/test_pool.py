"""The pool of members: held-out labels decide, and no fold's own labels do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cmvmed.members.candidates import USES_UNLABELED
from scipy.special import log_softmax

from cmvmed.auto.class_prior import empirical_bayes_share, label_share
from cmvmed.members.pool import fit_opinion, fit_supervised
from cmvmed.members.shares import infer_shares
from cmvmed.members.stacking import log_linear_pool
from cmvmed.model.evaluate import member_logits
from tests.auto.factories import TUNING, draw_rows, draw_training, read_training
from tests.core.factories import rejects


def check_refits(left_out, training, candidates, kept):
    """Scores of a label by an member fitted to the kept labels without it, each solved anew."""
    rows = candidates.rows
    targets = np.eye(rows.n_classes)[rows.codes] - empirical_bayes_share(rows.counts(kept))
    for j, member in enumerate(candidates.members):
        matrix = member.gram(candidates.rows.index)
        ridge = np.diag(member.ridge / rows.weights)
        for i in np.flatnonzero(kept):
            others = kept & (rows.groups != rows.groups[i])
            alpha = np.linalg.solve((matrix + ridge)[np.ix_(others, others)], targets[others])
            np.testing.assert_allclose(left_out[j][i], matrix[i, others] @ alpha, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_left_out_scores_are_those_of_refits(n_classes):
    training = draw_training(n_classes=n_classes, missing=0.2, weights=np.random.default_rng(0).uniform(0.5, 2.0, 75))
    candidates = training.candidates()
    everything, without = np.ones(15, dtype=bool), np.arange(15) % 5 != 0
    fits = [
        fit_opinion(candidates, j, [everything, without], training.block.size) for j in range(len(candidates.members))
    ]
    for s, kept in enumerate((everything, without)):
        check_refits([fit.left_out[s] for fit in fits], training, candidates, kept)
    rejects(check_refits, [fit.left_out[0] for fit in fits], training, candidates, without)
    rejects(check_refits, [fit.scores[0][:15] for fit in fits], training, candidates, everything)


def test_equal_rows_and_given_groups_are_left_out_together():
    matrices, codes, _ = draw_rows(n_labeled=12)
    for matrix in matrices:
        matrix[[10, 11]] = matrix[[0, 1]]
    for groups in (None, np.arange(codes.size) // 3):
        training = read_training(matrices, codes, groups=groups)
        candidates = training.candidates(["rbf"])
        fit = fit_opinion(candidates, 0, [np.ones(12, dtype=bool)], training.block.size)
        check_refits(fit.left_out, training, candidates, np.ones(12, dtype=bool))


@pytest.fixture(scope="module")
def fitted():
    training = draw_training(n_classes=3, n_labeled=24, missing=0.2)
    return training, training.supervised()


def test_the_pool_is_made_of_its_parts(fitted):
    """Logits c M + b of the fits' scores, pooled by the weights."""
    training, supervised = fitted
    pool, candidates = supervised.pool, supervised.candidates
    rows, n = candidates.rows, training.block.size
    everything = np.ones(24, dtype=bool)
    fits = [fit_opinion(candidates, j, [everything], n) for j in range(len(candidates.members))]
    every, out = (
        np.stack(
            [
                log_softmax(pool.scales[j] * values[0] + pool.offsets[j], axis=1)
                for j, values in enumerate(getattr(fit, name) for fit in fits)
            ]
        )
        for name in ("scores", "left_out")
    )
    np.testing.assert_allclose(pool.log_p, log_linear_pool(every, pool.weights), atol=1e-9)
    np.testing.assert_allclose(np.exp(pool.log_p).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(pool.likelihood.T, np.exp(out)[:, np.arange(24), rows.codes], atol=1e-9)
    np.testing.assert_array_equal(pool.hits.T, out.argmax(axis=2) == rows.codes)
    np.testing.assert_allclose(pool.weights.sum(), 1.0, rtol=1e-9)
    unlabeled, counts = training.mass > 0.0, rows.counts(everything)
    expected = infer_shares(
        log_linear_pool(out, pool.weights),
        pool.log_p[unlabeled],
        training.mass[unlabeled],
        rows.codes,
        pool.judged,
        counts,
        False,
        TUNING,
    )
    np.testing.assert_allclose(pool.share, expected, rtol=1e-9)


def test_offsets_and_scales_are_those_of_the_prior_if_no_label_can_be_left_out():
    matrices, codes, _ = draw_rows(n_labeled=2)
    supervised = read_training(matrices, codes).supervised()
    assert supervised.folds == []
    pool = supervised.pool
    assert not pool.judged.any()
    np.testing.assert_allclose(pool.scales, TUNING.opinion_scale)
    np.testing.assert_allclose(pool.offsets, np.broadcast_to(np.log(label_share(np.ones(2))), pool.offsets.shape))
    np.testing.assert_allclose(pool.weights, [member.prior for member in supervised.candidates.members])


def test_the_opinions_that_learn_from_labels_alone_ignore_the_graphs():
    training = draw_training()
    whole, without = training.supervised(), training.supervised(["linear", "rbf", "views"])
    np.testing.assert_allclose(whole.pool.labels_only, without.pool.log_p, atol=1e-7)
    assert without.pool.labels_only is without.pool.log_p
    assert np.abs(whole.pool.log_p - whole.pool.labels_only).max() > 1e-3


def check_same_pool(first, second):
    np.testing.assert_allclose(first.log_p, second.log_p, atol=1e-7)
    np.testing.assert_allclose(first.labels_only, second.labels_only, atol=1e-7)
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-8)
    np.testing.assert_allclose(first.share, second.share, atol=1e-8)


def test_a_fold_does_not_use_its_own_labels(fitted):
    """Other classes of the rows in a fold change its pool in nothing, but that of all labels."""
    training, supervised = fitted
    for i, fold in enumerate(supervised.folds):
        rows = supervised.rows
        others = replace(rows, codes=np.where(fold, (rows.codes + 1) % 3, rows.codes))
        changed = fit_supervised(
            replace(supervised.candidates, rows=others), [fold], training.mass, per_class=False, tuning=TUNING
        )
        check_same_pool(changed.fold_pools[0], supervised.fold_pools[i])
        rejects(check_same_pool, changed.pool, supervised.pool)
        rejects(check_same_pool, supervised.pool, supervised.fold_pools[i])


def test_a_fold_judges_only_the_other_labels(fitted):
    _, supervised = fitted
    for fold, pool in zip(supervised.folds, supervised.fold_pools, strict=True):
        np.testing.assert_array_equal(pool.judged, supervised.rows.judged(~fold))
        assert not pool.judged[fold].any()


def check_new_rows(by_opinion, weights, log_p):
    np.testing.assert_allclose(log_linear_pool(np.stack(by_opinion), weights), log_p, atol=1e-7)


def test_new_rows_that_equal_training_rows_have_their_probabilities(fitted):
    training, supervised = fitted
    logits = member_logits(supervised.members(), training.matrices, training.present)
    check_new_rows(log_softmax(logits, axis=2), supervised.pool.weights, supervised.pool.log_p)
    rejects(check_new_rows, log_softmax(logits[::-1], axis=2), supervised.pool.weights, supervised.pool.log_p)


def by_table_row(training, supervised):
    log_p = np.empty_like(supervised.pool.log_p)
    log_p[training.block] = supervised.pool.log_p
    return log_p


def check_same_rows(first, second):
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_a_row_of_weight_two_is_the_row_twice_and_the_order_does_not_matter():
    matrices, codes, _ = draw_rows()
    times = np.random.default_rng(3).integers(1, 3, size=75)
    order = np.random.default_rng(4).permutation(np.repeat(np.arange(75), times))
    weighted = read_training(matrices, codes, weights=times * 1.0)
    repeated = read_training([matrix[order] for matrix in matrices], codes[order])
    expected = by_table_row(weighted, weighted.supervised())
    check_same_rows(by_table_row(repeated, repeated.supervised()), expected[order])
    plain = read_training(matrices, codes)
    rejects(check_same_rows, by_table_row(plain, plain.supervised()), expected)


def test_neighbors_have_the_weight_of_the_graphs_if_it_is_above_their_prior():
    training = draw_training(n_labeled=40, n_unlabeled=160, clusters=True)
    supervised = training.supervised()
    members = supervised.candidates.members
    graphs = np.array([member.kind in USES_UNLABELED for member in members])
    evidence, prior = supervised.neighbor_evidence(), np.array([member.prior for member in members])
    np.testing.assert_allclose(evidence.weight, supervised.pool.weights[graphs].sum())
    assert evidence.weight > prior[graphs].sum()
    (joint,) = (member for member in members if member.kind == "graph")
    assert evidence.nodes is joint.kernels[0].nodes
    for factor, found in ((0.9, False), (1.1, True)):
        weights = np.where(graphs, factor * prior, prior)
        changed = replace(supervised, pool=replace(supervised.pool, weights=weights))
        assert (changed.neighbor_evidence() is not None) == found
    assert training.supervised(["linear", "view_graphs"]).neighbor_evidence() is None


@pytest.mark.parametrize("seed", range(5))
def test_graphs_alone_are_no_evidence_for_neighbors(seed):
    """Their weight is all there is, whatever the rounding of the sum."""
    assert draw_training(seed, clusters=True).supervised(["graph", "view_graphs"]).neighbor_evidence() is None
