"""From scores to probabilities: both the logits and the weights are the maximum of a penalized likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from cmvmed.members.stacking import fit_logits, pool, pool_weights, prior_weights, smoothed_targets
from tests.auto.factories import TUNING
from tests.core.factories import rejects

KINDS = ["a", "b", "b", "c"]  # of members


def draw_scores(seed=0, *, n_members=3, n=25, n_classes=3, signal=1.0):
    """Scores of members that favor the true class, classes, weights, and log shares."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    scores = rng.normal(size=(n_members, n, n_classes)) + signal * np.eye(n_classes)[codes]
    return scores, codes, rng.uniform(0.2, 2.0, n), np.log(rng.dirichlet(np.full(n_classes, 5.0)))


def penalized_likelihood(parameters, scores, codes, weights, log_prior, center, tuning=TUNING):
    """Of one member, at (log c, b); labels are smoothed."""
    t, b = parameters[0], parameters[1:]
    log_p = log_softmax(np.exp(t) * scores + log_prior + b, axis=1)
    e = tuning.label_smoothing / (weights.sum() + 2.0)
    own = (1.0 - e) * log_p[np.arange(codes.size), codes] + e * log_p.mean(axis=1)
    return weights @ own - 0.5 * (t - np.log(center)) ** 2 - 0.5 * b @ b


def check_maximum(fit_of, seed, n_classes):
    """As a general optimizer finds it, with a gradient that vanishes."""
    scores, codes, weights, log_prior = draw_scores(seed, n_classes=n_classes)
    center = np.array([0.5, 2.0, 10.0])
    c, b = fit_of(scores, codes, weights, log_prior, center, TUNING)
    for j, own in enumerate(scores):
        found = np.concatenate([[np.log(c[j])], b[j]])

        def loss(parameters, own=own, center=center[j]):
            return -penalized_likelihood(parameters, own, codes, weights, log_prior, center)

        start = np.concatenate([[np.log(center[j])], np.zeros(n_classes)])
        best = minimize(loss, start, method="BFGS", options={"gtol": 1e-8})
        np.testing.assert_allclose(found, best.x, atol=1e-4)
        steps = 1e-4 * np.eye(found.size)
        gradient = [(loss(found + step) - loss(found - step)) / 2e-4 for step in steps]
        np.testing.assert_allclose(gradient, 0.0, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_logits_maximize_the_penalized_likelihood(seed, n_classes):
    check_maximum(fit_logits, seed, n_classes)

    def changed(**others):
        def fit(scores, codes, weights, log_prior, center, tuning):
            given = {"weights": weights, "log_prior": log_prior, "center": center, "tuning": tuning}
            return fit_logits(scores, codes, **(given | others))

        return fit

    for broken in (
        changed(center=np.ones(3)),
        changed(weights=np.ones(25)),
        changed(log_prior=np.zeros(n_classes)),
        changed(tuning=replace(TUNING, label_smoothing=5.0)),
    ):
        rejects(check_maximum, broken, seed, n_classes)


@pytest.mark.parametrize("signal", [-3.0, 0.0, 8.0])
def test_the_maximum_is_found_for_contradicting_and_for_separating_scores(signal):
    """The likelihood alone would have its maximum at a scale of zero, or of infinity."""
    scores, codes, weights, log_prior = draw_scores(1, signal=signal)
    center = np.full(3, 10.0)
    c, b = fit_logits(scores, codes, weights, log_prior, center, TUNING)
    for j, own in enumerate(scores):
        found = np.concatenate([[np.log(c[j])], b[j]])
        best = penalized_likelihood(found, own, codes, weights, log_prior, 10.0)
        for step in 1e-3 * np.concatenate([np.eye(4), -np.eye(4)]):
            assert penalized_likelihood(found + step, own, codes, weights, log_prior, 10.0) < best


def check_members_are_independent(fit_of):
    scores, codes, weights, log_prior = draw_scores()
    given = codes, weights, log_prior
    together = fit_of(scores, *given, np.ones(3), TUNING)
    alone = fit_of(scores[1:2], *given, np.ones(1), TUNING)
    for part, own in zip(together, alone, strict=True):
        np.testing.assert_allclose(part[1], own[0], atol=1e-6)


def test_each_member_has_its_own_maximum():
    check_members_are_independent(fit_logits)
    rejects(check_members_are_independent, lambda scores, *given: fit_logits(scores - scores.mean(axis=0), *given))


def test_rows_of_zero_weight_do_not_count_and_weights_are_repetitions():
    scores, codes, _, log_prior = draw_scores()
    counts = np.random.default_rng(1).integers(0, 3, size=25)

    def fit(rows, weights):
        given = scores[:, rows], codes[rows], weights, log_prior, np.ones(3), TUNING
        return np.column_stack(fit_logits(*given))

    weighted, repeated = fit(np.arange(25), counts * 1.0), fit(np.repeat(np.arange(25), counts), np.ones(counts.sum()))
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)
    assert np.abs(weighted - fit(np.arange(25), np.ones(25))).max() > 1e-3


def test_without_labels_the_logits_are_those_of_the_prior():
    scores, codes, weights, log_prior = draw_scores()
    c, b = fit_logits(scores, codes, 0.0 * weights, log_prior, np.array([1.0, 2.0, 3.0]), TUNING)
    np.testing.assert_allclose(c, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(b, 0.0)


def test_targets_are_smoothed_by_a_fixed_number_of_labels():
    targets = smoothed_targets(np.array([2, 0]), 8.0, 4, replace(TUNING, label_smoothing=0.5))
    np.testing.assert_allclose(targets.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(targets[0], [0.0125, 0.0125, 0.9625, 0.0125], rtol=1e-12)
    assert smoothed_targets(np.array([0]), 1e9, 2, TUNING)[0, 0] > 1.0 - 1e-9


def draw_log_p(seed=0, *, n=30, n_classes=3, signal=(0.3, 2.0, 0.0, 1.0)):
    """Held-out log-probabilities of members of the kinds above, classes, and weights; the second member is best."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    favored = np.array(signal)[:, None, None] * np.eye(n_classes)[codes]
    log_p = log_softmax(favored + 0.7 * rng.normal(size=(len(signal), n, n_classes)), axis=2)
    return log_p, codes, rng.uniform(0.2, 2.0, n)


def pooled_likelihood(v, log_p, codes, weights, kinds, tuning=TUNING):
    """Σ_i w_i log pool_i[y_i] + a Σ_j (u_j log v_j - v_j) with smoothed labels, one label for each of a kinds."""
    e = tuning.label_smoothing / (weights.sum() + 2.0)
    pooled = log_softmax(np.tensordot(v, log_p, 1), axis=1)
    own = (1.0 - e) * pooled[np.arange(codes.size), codes] + e * pooled.mean(axis=1)
    n_kinds = len(set(kinds))
    prior = np.array([1.0 / (n_kinds * kinds.count(kind)) for kind in kinds])
    return weights @ own + n_kinds * (prior @ np.log(v) - v.sum())


def check_pool_weights(weights_of, seed, n_classes=3):
    """As a general optimizer finds them; no other weights near or far are better."""
    log_p, codes, u = draw_log_p(seed, n_classes=n_classes)
    found = weights_of(log_p, codes, u, KINDS, TUNING)

    def value(v):
        return pooled_likelihood(v, log_p, codes, u, KINDS)

    best = minimize(lambda free: -value(np.exp(free)), np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(np.log(found), best.x, atol=1e-5)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1, 1.0):
        for step in rng.normal(scale=size, size=(20, 4)):
            assert value(found * np.exp(step)) < value(found)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_pool_weights_maximize_the_penalized_likelihood(seed, n_classes):
    check_pool_weights(pool_weights, seed, n_classes)
    for broken in (
        lambda log_p, codes, u, kinds, tuning: prior_weights(kinds),
        lambda log_p, codes, u, kinds, tuning: pool_weights(log_p, codes, u**0, kinds, tuning),
        lambda log_p, codes, u, kinds, tuning: pool_weights(log_p, codes, u, list("abcd"), tuning),
        lambda log_p, codes, u, kinds, tuning: pool_weights(log_p[:, ::-1], codes, u, kinds, tuning),
    ):
        rejects(check_pool_weights, broken, seed, n_classes)


@pytest.mark.parametrize("seed", range(5))
def test_weights_of_certain_members_are_a_stationary_point_too(seed):
    """Of members that are certain and wrong the weights become tiny, and of separating ones large."""
    signal = np.random.default_rng(seed).normal(scale=60.0, size=4)
    log_p, codes, u = draw_log_p(seed, signal=signal)
    log_p = log_softmax(10.0 * log_p, axis=2)
    v = pool_weights(log_p, codes, u, KINDS, TUNING)
    assert np.isfinite(v).all()
    for j in range(4):
        step = np.where(np.arange(4) == j, 1e-5, 0.0)
        up, down = (pooled_likelihood(v * np.exp(s), log_p, codes, u, KINDS) for s in (step, -step))
        assert up - down == pytest.approx(0.0, abs=2e-5 * 1e-4)


def test_prior_weights_are_equal_among_kinds_and_among_those_of_one_kind():
    np.testing.assert_allclose(prior_weights(KINDS), [1 / 3, 1 / 6, 1 / 6, 1 / 3], rtol=1e-15)
    np.testing.assert_array_equal(prior_weights(["a"]), [1.0])


def test_weights_are_the_prior_if_no_label_was_held_out_or_members_say_nothing():
    log_p, codes, u = draw_log_p()
    np.testing.assert_array_equal(pool_weights(log_p, codes, 0.0 * u, KINDS, TUNING), prior_weights(KINDS))
    np.testing.assert_array_equal(pool_weights(log_p[:, :0], codes[:0], u[:0], KINDS, TUNING), prior_weights(KINDS))
    equal = np.full_like(log_p, -np.log(3.0))
    np.testing.assert_allclose(pool_weights(equal, codes, u, KINDS, TUNING), prior_weights(KINDS), rtol=1e-12)


def test_weights_follow_the_order_of_members_rows_and_classes():
    log_p, codes, u = draw_log_p()
    v = pool_weights(log_p, codes, u, KINDS, TUNING)
    order, rows, classes = [2, 0, 3, 1], np.random.default_rng(0).permutation(30), np.array([2, 0, 1])
    moved = pool_weights(log_p[order], codes, u, [KINDS[j] for j in order], TUNING)
    np.testing.assert_allclose(moved, v[order], rtol=1e-8)
    np.testing.assert_allclose(pool_weights(log_p[:, rows], codes[rows], u[rows], KINDS, TUNING), v, rtol=1e-8)
    renamed = pool_weights(log_p[:, :, classes], np.argsort(classes)[codes], u, KINDS, TUNING)
    np.testing.assert_allclose(renamed, v, rtol=1e-8)


def test_weights_of_rows_are_repetitions():
    log_p, codes, _ = draw_log_p()
    counts = np.random.default_rng(1).integers(0, 3, size=30)
    rows = np.repeat(np.arange(30), counts)
    weighted = pool_weights(log_p, codes, counts * 1.0, KINDS, TUNING)
    np.testing.assert_allclose(pool_weights(log_p[:, rows], codes[rows], np.ones(rows.size), KINDS, TUNING), weighted)
    assert np.abs(weighted - pool_weights(log_p, codes, np.ones(30), KINDS, TUNING)).max() > 1e-3


def test_copies_of_a_member_that_are_of_its_kind_change_nothing():
    """They share its weight; a copy of another kind has a prior of its own."""
    log_p, codes, u = draw_log_p(signal=(1.0, 1.5))
    v = pool_weights(log_p, codes, u, ["a", "b"], TUNING)
    copied = pool_weights(log_p[[0, 1, 1]], codes, u, ["a", "b", "b"], TUNING)
    np.testing.assert_allclose(copied, [v[0], 0.5 * v[1], 0.5 * v[1]], rtol=1e-7)
    other = pool_weights(log_p[[0, 1, 1]], codes, u, ["a", "b", "c"], TUNING)
    assert other[1] == pytest.approx(other[2], rel=1e-9)
    assert np.abs(other - copied).max() > 1e-3


def test_weight_moves_to_the_member_that_predicts_held_out_labels():
    for seed in range(5):
        shares = []
        for n in (5, 50, 1000):
            log_p, codes, u = draw_log_p(seed, n=n, signal=(0.0, 2.0))
            v = pool_weights(log_p, codes, u**0, ["a", "b"], TUNING)
            shares.append(v[1] / v.sum())
        assert 0.5 < shares[0] < shares[2]
        assert shares[2] > 0.9


def test_the_sum_of_weights_corrects_the_certainty_of_the_pool():
    """Members whose errors are independent are more certain together: each has the weight of one."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=4000)
    log_p = log_softmax(np.eye(2)[codes] + rng.normal(size=(3, 4000, 2)), axis=2)
    v = pool_weights(log_p, codes, np.ones(4000), ["a", "b", "c"], TUNING)
    np.testing.assert_allclose(v, 1.0, atol=0.1)
    p = np.exp(pool(log_p, v))
    np.testing.assert_allclose(p.max(axis=1).mean(), (p.argmax(axis=1) == codes).mean(), atol=0.02)


def check_pool(pool_of):
    """Π_j p_j^{w_j}, normalized."""
    rng = np.random.default_rng(0)
    p, w = rng.dirichlet(np.ones(4), size=(3, 10)), rng.uniform(0.2, 2.0, 3)
    product = p[0] ** w[0] * p[1] ** w[1] * p[2] ** w[2]
    np.testing.assert_allclose(np.exp(pool_of(np.log(p), w)), product / product.sum(axis=1, keepdims=True), rtol=1e-9)


def test_the_pool_is_the_product_of_powers():
    check_pool(pool)
    rejects(check_pool, lambda log_p, w: np.log(np.tensordot(w, np.exp(log_p), 1)))
    rejects(check_pool, lambda log_p, w: np.tensordot(w, log_p, 1))
