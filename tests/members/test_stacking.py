"""From scores to probabilities: both the logits and the weights are the maximum of a penalized likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from cmvmed.members.stacking import fit_logits, log_linear_pool, smoothed_targets, stacking_weights
from tests.auto.factories import TUNING
from tests.core.factories import rejects

SCALE_SD, OFFSET_SD = 0.8, 0.6


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
    return weights @ own - 0.5 * ((t - np.log(center)) / SCALE_SD) ** 2 - 0.5 * b @ b / OFFSET_SD**2


def check_maximum(fit_of, seed, n_classes):
    """As a general optimizer finds it, with a gradient that vanishes."""
    scores, codes, weights, log_prior = draw_scores(seed, n_classes=n_classes)
    center = np.array([0.5, 2.0, 10.0])
    c, b = fit_of(scores, codes, weights, log_prior, center, SCALE_SD, OFFSET_SD, TUNING)
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
        def fit(scores, codes, weights, log_prior, center, scale_sd, offset_sd, tuning):
            given = {"weights": weights, "log_prior": log_prior, "scale_sd": scale_sd, "offset_sd": offset_sd}
            return fit_logits(scores, codes, center=center, tuning=tuning, **(given | others))

        return fit

    for broken in (
        changed(scale_sd=2.0),
        changed(offset_sd=2.0),
        changed(weights=np.ones(25)),
        changed(log_prior=np.zeros(n_classes)),
    ):
        rejects(check_maximum, broken, seed, n_classes)


@pytest.mark.parametrize("signal", [-3.0, 0.0, 8.0])
def test_the_maximum_is_found_for_contradicting_and_for_separating_scores(signal):
    """The likelihood alone would have its maximum at a scale of zero, or of infinity."""
    scores, codes, weights, log_prior = draw_scores(1, signal=signal)
    center = np.full(3, 10.0)
    c, b = fit_logits(scores, codes, weights, log_prior, center, SCALE_SD, OFFSET_SD, TUNING)
    for j, own in enumerate(scores):
        found = np.concatenate([[np.log(c[j])], b[j]])
        best = penalized_likelihood(found, own, codes, weights, log_prior, 10.0)
        for step in 1e-3 * np.concatenate([np.eye(4), -np.eye(4)]):
            assert penalized_likelihood(found + step, own, codes, weights, log_prior, 10.0) < best


def check_opinions_are_independent(fit_of):
    scores, codes, weights, log_prior = draw_scores()
    given = codes, weights, log_prior
    together = fit_of(scores, *given, np.ones(3), SCALE_SD, OFFSET_SD, TUNING)
    alone = fit_of(scores[1:2], *given, np.ones(1), SCALE_SD, OFFSET_SD, TUNING)
    for part, own in zip(together, alone, strict=True):
        np.testing.assert_allclose(part[1], own[0], atol=1e-6)


def test_each_opinion_has_its_own_maximum():
    check_opinions_are_independent(fit_logits)
    rejects(check_opinions_are_independent, lambda scores, *given: fit_logits(scores - scores.mean(axis=0), *given))


def test_rows_of_zero_weight_do_not_count_and_weights_are_repetitions():
    scores, codes, _, log_prior = draw_scores()
    counts = np.random.default_rng(1).integers(0, 3, size=25)

    def fit(rows, weights):
        given = scores[:, rows], codes[rows], weights, log_prior, np.ones(3), SCALE_SD, OFFSET_SD, TUNING
        return np.column_stack(fit_logits(*given))

    weighted, repeated = fit(np.arange(25), counts * 1.0), fit(np.repeat(np.arange(25), counts), np.ones(counts.sum()))
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)
    assert np.abs(weighted - fit(np.arange(25), np.ones(25))).max() > 1e-3


def test_without_labels_the_logits_are_those_of_the_prior():
    scores, codes, weights, log_prior = draw_scores()
    c, b = fit_logits(scores, codes, 0.0 * weights, log_prior, np.array([1.0, 2.0, 3.0]), 1.0, 1.0, TUNING)
    np.testing.assert_allclose(c, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(b, 0.0)


def test_targets_are_smoothed_by_a_fixed_number_of_labels():
    targets = smoothed_targets(np.array([2, 0]), 8.0, 4, replace(TUNING, label_smoothing=0.5))
    np.testing.assert_allclose(targets.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(targets[0], [0.0125, 0.0125, 0.9625, 0.0125], rtol=1e-12)
    assert smoothed_targets(np.array([0]), 1e9, 2, TUNING)[0, 0] > 1.0 - 1e-9


def draw_likelihood(seed=0, n=30):
    """Probabilities of held-out labels by three members of which the second is best, weights, and a prior."""
    rng = np.random.default_rng(seed)
    likelihood = expit(rng.normal(size=(n, 3)) + np.array([0.3, 2.0, 0.0]))
    return likelihood, rng.uniform(0.2, 2.0, n), np.array([0.5, 0.2, 0.3])


def check_weights(weights_of, seed):
    """No other weights have a higher Σ u_i log Σ_j w_j p_ij + aJ Σ_j p_j log w_j."""
    likelihood, u, prior = draw_likelihood(seed)

    def value(w):
        return u @ np.log(likelihood @ w) + 0.7 * 3 * prior @ np.log(w)

    found = weights_of(likelihood, u, prior, 0.7)
    np.testing.assert_allclose(found.sum(), 1.0, rtol=1e-12)
    best = minimize(lambda free: -value(softmax(free)), np.log(prior), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found, softmax(best.x), atol=1e-4)
    rng = np.random.default_rng(seed)
    for other in rng.dirichlet(np.ones(3), size=50):
        assert value(0.99 * found + 0.01 * other) <= value(found) + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_weights_maximize_the_penalized_mixture_likelihood(seed):
    check_weights(stacking_weights, seed)
    rejects(check_weights, lambda likelihood, u, prior, strength: prior, seed)
    rejects(check_weights, lambda likelihood, u, prior, strength: stacking_weights(likelihood, u, prior, 5.0), seed)
    rejects(check_weights, lambda likelihood, u, prior, a: stacking_weights(likelihood, u**0, prior, a), seed)
    rejects(check_weights, lambda likelihood, u, prior, a: stacking_weights(likelihood, u, prior[::-1], a), seed)


def test_weights_are_the_prior_without_labels_or_differences():
    likelihood, u, prior = draw_likelihood()
    np.testing.assert_allclose(stacking_weights(likelihood[:0], u[:0], prior, 0.5), prior, rtol=1e-12)
    np.testing.assert_allclose(stacking_weights(np.full((30, 3), 0.4), u, prior, 0.5), prior, rtol=1e-12)


def test_labels_that_no_opinion_thinks_possible_change_no_weight():
    """Probabilities of zero are rounding; such labels may also have no weight."""
    likelihood, u, prior = draw_likelihood()
    impossible = np.vstack([likelihood, np.zeros(3)])
    expected = stacking_weights(likelihood, u, prior, 0.5)
    np.testing.assert_allclose(stacking_weights(impossible, np.append(u, 0.0), prior, 0.5), expected, atol=1e-9)
    assert np.isfinite(stacking_weights(impossible, np.append(u, 1.0), prior, 0.5)).all()


def check_pool(pool_of):
    """Π_j p_j^{w_j}, normalized."""
    rng = np.random.default_rng(0)
    p, w = rng.dirichlet(np.ones(4), size=(3, 10)), rng.dirichlet(np.ones(3))
    product = p[0] ** w[0] * p[1] ** w[1] * p[2] ** w[2]
    np.testing.assert_allclose(np.exp(pool_of(np.log(p), w)), product / product.sum(axis=1, keepdims=True), rtol=1e-9)


def test_the_pool_is_the_weighted_geometric_mean():
    check_pool(log_linear_pool)
    rejects(check_pool, lambda log_p, w: np.log(np.tensordot(w, np.exp(log_p), 1)))
    rejects(check_pool, lambda log_p, w: np.tensordot(w, log_p, 1))
