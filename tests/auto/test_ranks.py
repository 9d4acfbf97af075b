"""The share of a class from the ranks of labeled rows among the unlabeled ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.svm import LinearSVC

from cmvmed.auto.class_prior import ShareEstimate, counted_share
from cmvmed.auto.cross_fitting import held_out_folds
from cmvmed.auto.ranks import out_of_fold_ranks, ranked_share
from cmvmed.auto.tuning import Tuning
from cmvmed.core.exact import KernelBlocks, SpectralView
from cmvmed.core.problem import Problem
from tests.core.factories import make_sensor, rejects

EQUAL = np.full(2, 0.5)
TUNING = Tuning()
N_FOLDS = TUNING.n_folds


def draw(seed, *, share=0.3, n_labeled=40, n_unlabeled=300, separation=1.0, weights_U=None):
    """Two Gaussian views and random labels: problem, codes of the labels, features, share among the unlabeled rows."""
    rng = np.random.default_rng(seed)
    codes = (rng.uniform(size=n_labeled + n_unlabeled) < share).astype(int)
    codes[:2] = 0, 1
    weights_U = np.ones(n_unlabeled) if weights_U is None else weights_U
    features = [rng.normal(size=(codes.size, 3)) + separation * (2 * codes[:, None] - 1) for _ in range(2)]
    sensors = [make_sensor(Phi[:n_labeled], Phi[n_labeled:], weights=weights_U) for Phi in features]
    problem = Problem(
        models=tuple(SpectralView(sensor.blocks) for sensor in sensors),
        rows_L=(np.arange(n_labeled),) * 2,
        rows_U=(np.arange(n_unlabeled),) * 2,
        Y=np.where(codes[:n_labeled, None] == 1, 1.0, -1.0),
        box=(np.ones(n_labeled),) * 2,
        weights_U=weights_U,
        n_classes=2,
    )
    return problem, codes[:n_labeled], features, float(codes[n_labeled:].mean())


def counts_of(codes):
    return np.bincount(codes, minlength=2).astype(float)


def by_ranks(problem, codes):
    return ranked_share(problem, EQUAL, codes, np.ones(codes.size), counts_of(codes), TUNING)


def check_nearer_than_counts(share_of):
    """Over 40 draws the squared error is at most 0.6 times that of the counts, and near the variance that is stated."""
    errors, stated = [], []
    for seed in range(40):
        problem, codes, _, truth = draw(seed)
        estimate = share_of(problem, codes)
        errors.append((estimate.mean - truth, counted_share(counts_of(codes)).mean - truth))
        stated.append(estimate.variance)
    by_rank, by_count = np.mean(np.square(errors), axis=0)
    assert by_rank < 0.6 * by_count
    assert 0.4 < by_rank / np.mean(stated) < 2.5


def test_ranks_estimate_the_share_better_than_counts():
    check_nearer_than_counts(by_ranks)
    rejects(check_nearer_than_counts, lambda problem, codes: counted_share(counts_of(codes)))

    def other_class(problem, codes):
        estimate = by_ranks(problem, codes)
        return ShareEstimate(1.0 - estimate.mean, estimate.variance)

    rejects(check_nearer_than_counts, other_class)


def check_ranks(ranks, problem, codes, features):
    """Against a support vector machine without intercept, fitted to the other folds' rows alone."""
    n_L = codes.size
    for out in held_out_folds(problem, EQUAL, codes, np.ones(n_L), N_FOLDS):
        scores = np.zeros(features[0].shape[0])
        for Phi, model in zip(features, problem.models, strict=True):
            root = np.sqrt(model.blocks.prior_variance)
            svm = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=1e-10, max_iter=10**6)
            svm.fit(root * Phi[:n_L][~out], codes[~out])
            scores += 0.5 * svm.decision_function(root * Phi)
        direct = (scores[n_L:] < scores[:n_L][out][:, None]).mean(axis=1)
        np.testing.assert_allclose(ranks[out], direct, atol=0.011)  # a row or three of 300 may be nearly tied


def test_a_row_is_ranked_by_classifiers_trained_without_its_label():
    problem, codes, features, _ = draw(1)

    def ranks(view_weights):
        return out_of_fold_ranks(problem, view_weights, codes, np.ones(codes.size), N_FOLDS)

    check_ranks(ranks(EQUAL), problem, codes, features)
    rejects(check_ranks, ranks(np.array([1.0, 0.0])), problem, codes, features)
    rejects(check_ranks, 1.0 - ranks(EQUAL), problem, codes, features)


def test_with_only_one_row_of_a_class_the_counts_decide():
    problem, _, _, _ = draw(2, n_labeled=12)
    codes = np.zeros(12, dtype=int)
    codes[3] = 1
    problem = replace(problem, Y=np.where(codes[:, None] == 1, 1.0, -1.0))
    assert by_ranks(problem, codes) == counted_share(counts_of(codes))


def test_without_unlabeled_rows_in_a_weighted_view_the_counts_decide():
    problem, codes, _, _ = draw(4, n_labeled=12)
    partial = replace(problem, rows_U=(problem.rows_U[0], np.empty(0, dtype=int)))
    partial = replace(partial, models=(problem.models[0], SpectralView(_without_unlabeled(problem.models[1].blocks))))
    counts = counts_of(codes)
    assert ranked_share(partial, np.array([0.0, 1.0]), codes, np.ones(12), counts, TUNING) == counted_share(counts)
    assert ranked_share(partial, np.array([1.0, 0.0]), codes, np.ones(12), counts, TUNING) != counted_share(counts)


def _without_unlabeled(blocks):
    return KernelBlocks(blocks.LL, blocks.UL[:0], blocks.UU[:0, :0], blocks.weights[:0], blocks.prior_variance)


def test_a_row_of_weight_two_counts_like_two_rows():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, 60).astype(float)
    problem, codes, features, _ = draw(3, n_unlabeled=60, weights_U=weights)
    repeated = np.concatenate([np.arange(40), 40 + np.repeat(np.arange(60), weights.astype(int))])
    sensors = [make_sensor(Phi[repeated][:40], Phi[repeated][40:]) for Phi in features]
    n_rows = int(weights.sum())
    unweighted = replace(
        problem,
        models=tuple(SpectralView(sensor.blocks) for sensor in sensors),
        rows_U=(np.arange(n_rows),) * 2,
        weights_U=np.ones(n_rows),
    )
    weighted, plain = by_ranks(problem, codes), by_ranks(unweighted, codes)
    np.testing.assert_allclose((weighted.mean, weighted.variance), (plain.mean, plain.variance), rtol=1e-9)
    ignored = by_ranks(replace(problem, weights_U=np.ones(60)), codes)
    assert abs(ignored.mean - plain.mean) > 1e-4
