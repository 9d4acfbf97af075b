"""The mixture of pool and consensus, its scales and weights, and the expected accuracy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import beta, norm

from cmvmed.members.accuracy import (
    LOG_SCALES,
    AccuracyEstimate,
    HeldOut,
    HeldOutAccuracy,
    Mixture,
    fit_mixture,
    fit_scale,
    held_out_accuracy,
    mix,
    scale_posterior,
    share_offset,
)
from tests.auto.factories import TUNING
from tests.core.factories import rejects, uneven_prior

SD = TUNING.log_scale_sd


def drawn_rows(true_scale, n_rows, n_classes=3, seed=0):
    """Logits, and classes that are drawn from softmax(true_scale · logits)."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=3.0, size=(n_rows, n_classes))
    cumulated = softmax(true_scale * logits, axis=1).cumsum(axis=1)
    return logits, (rng.uniform(size=(n_rows, 1)) > cumulated).sum(axis=1), np.ones(n_rows)


def drawn_parts(n_rows=60, seed=0, n_classes=3):
    """Two parts of which the first predicts the held-out labels and the second is noise."""
    good, codes, weights = drawn_rows(1.0, n_rows, n_classes, seed)
    noise = np.random.default_rng(seed + 100).normal(scale=3.0, size=good.shape)
    return HeldOut(np.stack([good, noise]), None, codes, weights)


@pytest.mark.parametrize("true_scale", [0.1, 0.5, 2.0])
def test_many_rows_determine_the_scale(true_scale):
    def check(found):
        np.testing.assert_allclose(found, true_scale, rtol=0.1)

    check(fit_scale(*drawn_rows(true_scale, 3000), 0.5, SD, TUNING))
    rejects(check, fit_scale(*drawn_rows(1.5 * true_scale, 3000), 0.5, SD, TUNING))


@pytest.mark.parametrize("center", [0.5, 1.0])
def test_without_rows_the_posterior_is_the_prior(center):
    none = np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros(0)
    posterior = scale_posterior(*none, center, SD, TUNING)
    np.testing.assert_allclose(posterior.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(fit_scale(*none, center, SD, TUNING), center, rtol=0.02)


def check_posterior(posterior, logits, codes, weights, center, sd):
    """Prior times likelihood of smoothed labels, at two scales of the grid."""
    i, j = 30, 45
    e = TUNING.label_smoothing / (weights.sum() + 2.0)
    log_ratio = norm.logpdf(LOG_SCALES[i], np.log(center), sd) - norm.logpdf(LOG_SCALES[j], np.log(center), sd)
    for row, code, weight in zip(logits, codes, weights, strict=True):
        target = (1.0 - e) * np.eye(row.size)[code] + e / row.size
        for position, sign in ((i, 1.0), (j, -1.0)):
            log_ratio += sign * weight * target @ np.log(softmax(np.exp(LOG_SCALES[position]) * row))
    np.testing.assert_allclose(np.log(posterior[i] / posterior[j]), log_ratio, rtol=1e-9)


def test_the_posterior_is_prior_times_likelihood():
    logits, codes, _ = drawn_rows(0.7, 20)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 20)
    posterior = scale_posterior(logits, codes, weights, 0.5, SD, TUNING)
    check_posterior(posterior, logits, codes, weights, 0.5, SD)
    rejects(check_posterior, posterior, logits, codes, weights**0, 0.5, SD)
    rejects(check_posterior, posterior, logits, codes, weights, 1.0, SD)
    rejects(check_posterior, posterior, logits, codes, weights, 0.5, 2.0 * SD)


def test_correct_predictions_alone_do_not_give_certainty():
    logits = np.tile([2.0, -2.0], (50, 1))
    scale = fit_scale(logits, np.zeros(50, dtype=int), np.ones(50), 0.5, SD, TUNING)
    assert 0.5 < scale < 5.0


def check_shares(offset, log_p, mass, share):
    """Weighted means of the probabilities."""
    p = softmax(log_p + offset, axis=1)
    np.testing.assert_allclose(np.average(p, weights=mass, axis=0), share, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_offset_meets_the_shares(n_classes):
    rng = np.random.default_rng(0)
    log_p = log_softmax(2.0 * rng.normal(size=(50, n_classes)), axis=1)
    mass, share = rng.uniform(0.0, 2.0, 50) * (np.arange(50) > 9), uneven_prior(n_classes)
    check_shares(share_offset(log_p, mass, share), log_p, mass, share)
    rejects(check_shares, share_offset(log_p, np.ones(50), share), log_p, mass, share)
    rejects(check_shares, np.zeros(n_classes), log_p, mass, share)
    np.testing.assert_array_equal(share_offset(log_p, mass, None), np.zeros(n_classes))
    np.testing.assert_array_equal(share_offset(log_p, 0.0 * mass, share), np.zeros(n_classes))


def test_parts_are_mixed_by_weight():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 10, 3))
    mixed = mix(np.stack([first, second]), np.array([0.3, 0.7]), np.array([2.0, 0.5]))
    expected = 0.3 * softmax(2.0 * first, axis=1) + 0.7 * softmax(0.5 * second, axis=1)
    np.testing.assert_allclose(np.exp(mixed), expected, rtol=1e-12)
    squared = expected**2 / (expected**2).sum(axis=1, keepdims=True)
    rescaled = Mixture(np.array([0.3, 0.7]), np.array([2.0, 0.5]), 2.0).log_probabilities(np.stack([first, second]))
    np.testing.assert_allclose(np.exp(rescaled), squared, rtol=1e-12)


def test_a_part_without_weight_takes_no_part():
    first, second = np.random.default_rng(0).normal(size=(2, 10, 3))
    mixed = mix(np.stack([first, second]), np.array([1.0, 0.0]), np.ones(2))
    np.testing.assert_allclose(mixed, log_softmax(first, axis=1), rtol=1e-12)


def check_one_part(mixture, held_out):
    """A part that is alone is softmax(c z) with the scale of its held-out labels."""
    z = held_out.logits[0]
    c = fit_scale(z, held_out.codes, held_out.weights, 0.5, SD, TUNING)
    np.testing.assert_allclose(np.exp(mixture.log_probabilities(z[None])), softmax(c * z, axis=1), rtol=1e-9)


def test_one_part_is_calibrated_and_nothing_else():
    both = drawn_parts()
    alone = replace(both, logits=both.logits[:1])
    check_one_part(fit_mixture(alone, np.array([0.5]), np.ones(1), TUNING), alone)
    rejects(check_one_part, fit_mixture(alone, np.array([2.0]), np.ones(1), TUNING), alone)
    np.testing.assert_array_equal(fit_mixture(None, np.array([0.5]), np.ones(1), TUNING).scales, [1.0])


def test_without_held_out_labels_weights_and_scales_are_those_of_the_prior():
    centers, prior = np.array([1.0, 0.5]), np.array([0.4, 0.6])
    none = fit_mixture(None, centers, prior, TUNING)
    unweighted = replace(drawn_parts(), weights=np.zeros(60))
    for mixture in (none, fit_mixture(unweighted, centers, prior, TUNING)):
        np.testing.assert_allclose(mixture.weights, prior, rtol=1e-9)
        np.testing.assert_allclose(mixture.scales, centers, rtol=0.02)
        np.testing.assert_allclose(mixture.scale, 1.0, rtol=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_weight_moves_to_the_part_that_predicts_held_out_labels(seed):
    prior = np.array([0.5, 0.5])
    weights = [fit_mixture(drawn_parts(n_rows, seed), np.ones(2), prior, TUNING).weights[0] for n_rows in (6, 30, 400)]
    assert 0.45 < weights[0] < weights[2]
    assert weights[1] > 0.6
    assert weights[2] > 0.9
    exchanged = drawn_parts(400, seed)
    exchanged = replace(exchanged, logits=exchanged.logits[::-1])
    np.testing.assert_allclose(fit_mixture(exchanged, np.ones(2), prior, TUNING).weights[1], weights[2], rtol=1e-6)


def test_the_last_scale_corrects_a_mixture_that_is_not_certain_enough():
    """Two parts that err independently: where they agree, they are right more often than each alone says."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=2000)
    logits = np.eye(2)[codes] + rng.normal(size=(2, 2000, 2))
    mixture = fit_mixture(HeldOut(logits, None, codes, np.ones(2000)), np.ones(2), np.full(2, 0.5), TUNING)
    assert mixture.scale > 1.1
    p = np.exp(mixture.log_probabilities(logits))
    np.testing.assert_allclose(p.max(axis=1).mean(), (p.argmax(axis=1) == codes).mean(), atol=0.02)


def accuracy(**changes):
    given = {"hits": 0.8, "labels_only": 0.7, "gained": 6.0, "lost": 1.0, "largest": 0.9, "n_held_out": 50.0}
    return HeldOutAccuracy(**(given | {"divisor": 2.0} | changes))


def check_interval(estimate, level, n):
    """The central interval of a share that was seen in n rows, with Jeffreys' prior."""
    posterior = beta(estimate.mean * n + 0.5, (1.0 - estimate.mean) * n + 0.5)
    np.testing.assert_allclose(posterior.cdf([estimate.low, estimate.high]), [0.5 - level / 2, 0.5 + level / 2])


def test_the_estimate_is_the_mean_of_two_and_its_interval_that_of_a_share():
    for level in (0.5, 0.9):
        estimate = accuracy().estimate(level)
        assert estimate.mean == pytest.approx(0.85)
        check_interval(estimate, level, 25.0)
        rejects(check_interval, estimate, level, 50.0)
        rejects(check_interval, estimate, 0.95, 25.0)


def test_held_out_labels_of_chosen_rows_have_no_part_in_the_mean():
    chosen = accuracy(chosen=True).estimate(0.9)
    assert chosen.mean == pytest.approx(0.9)
    assert chosen.held_out == accuracy().estimate(0.9).held_out == 0.8
    check_interval(chosen, 0.9, 25.0)
    assert "labeled rows were chosen" in str(chosen)
    assert "labeled rows were chosen" not in str(accuracy().estimate(0.9))


def width(estimate):
    return estimate.high - estimate.low


def test_the_interval_narrows_with_held_out_labels_and_widens_with_the_level():
    many, few = (accuracy(n_held_out=n) for n in (500.0, 15.0))
    assert width(many.estimate(0.9)) < width(few.estimate(0.9)) < width(few.estimate(0.99))
    assert width(accuracy(divisor=3.0).estimate(0.9)) > width(accuracy().estimate(0.9))
    assert width(accuracy(n_held_out=1e300).estimate(0.9)) < 1e-3


@pytest.mark.parametrize("n_held_out", [0.0, 0.3, 2.0, 40.0, 1e12])
@pytest.mark.parametrize("share", [0.0, 1e-3, 0.5, 0.999, 1.0])
def test_the_interval_contains_the_mean(share, n_held_out):
    estimate = accuracy(hits=share, largest=share, n_held_out=n_held_out).estimate(0.5)
    assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0


def check_held_out_accuracy(found, mixture, held_out, probabilities, mass):
    right = mixture.log_probabilities(held_out.logits).argmax(axis=1) == held_out.codes
    alone = held_out.labels_only.argmax(axis=1) == held_out.codes
    w = held_out.weights
    assert found.hits == pytest.approx(np.average(right, weights=w))
    assert found.labels_only == pytest.approx(np.average(alone, weights=w))
    assert found.gained == pytest.approx(w[right & ~alone].sum())
    assert found.lost == pytest.approx(w[alone & ~right].sum())
    assert found.hits - found.labels_only == pytest.approx((found.gained - found.lost) / w.sum())
    assert found.largest == pytest.approx(np.average(probabilities.max(axis=1), weights=mass))
    assert found.n_held_out == pytest.approx(w.sum())


def test_hits_are_those_of_the_mixture_on_held_out_labels():
    rng = np.random.default_rng(7)
    held_out = replace(
        drawn_parts(), labels_only=rng.normal(size=(60, 3)), weights=rng.integers(0, 3, size=60).astype(float)
    )
    mixture = fit_mixture(held_out, np.ones(2), np.full(2, 0.5), TUNING)
    probabilities, mass = rng.dirichlet(np.ones(3), size=40), rng.uniform(size=40)
    found = held_out_accuracy(mixture, held_out, probabilities, mass, 2.0)
    check_held_out_accuracy(found, mixture, held_out, probabilities, mass)
    assert found.gained > found.lost > 0.0
    swapped = replace(mixture, weights=mixture.weights[::-1])
    rejects(
        check_held_out_accuracy,
        held_out_accuracy(swapped, held_out, probabilities, mass, 2.0),
        mixture,
        held_out,
        probabilities,
        mass,
    )


def test_one_source_stands_in_for_the_other():
    held_out, probabilities = drawn_parts(), np.full((5, 3), 1.0 / 3.0)
    mixture = fit_mixture(held_out, np.ones(2), np.full(2, 0.5), TUNING)
    without_rows = held_out_accuracy(mixture, held_out, probabilities, np.zeros(5), 2.0)
    assert without_rows.largest == without_rows.hits > 0.5
    nothing_held_out = replace(held_out, weights=np.zeros(60))
    without_labels = held_out_accuracy(mixture, nothing_held_out, probabilities, np.ones(5), 2.0)
    assert without_labels.hits == without_labels.largest == pytest.approx(1.0 / 3.0)
    neither = held_out_accuracy(mixture, nothing_held_out, probabilities, np.zeros(5), 2.0)
    assert neither.hits == neither.largest == pytest.approx(1.0 / 3.0)
    assert np.isnan(neither.labels_only)


def estimated(**changes):
    given = {"mean": 0.85, "low": 0.781, "high": 0.92, "level": 0.9, "held_out": 0.8, "n_held_out": 40.0}
    return AccuracyEstimate(**(given | {"labels_only": 0.7, "gained": 5.0, "lost": 1.0} | changes))


def test_the_estimate_as_a_sentence():
    begins = "Expected accuracy 85.0% (90% interval 78.1% to 92.0%)."
    no_label = "No label could be held out, so this rests on the probabilities alone."
    assert str(estimated(n_held_out=0.0)) == f"{begins} {no_label}"
    assert str(estimated(labels_only=np.nan)) == f"{begins} Of 40 held-out labels 80.0% are predicted."
    of_labels = "Of 40 held-out labels 80.0% are predicted, 70.0% by the labels alone:"
    assert str(estimated(gained=8.0)).startswith(f"{begins} {of_labels} the unlabeled rows helped")


@pytest.mark.parametrize(
    ("gained", "lost", "effect"),
    [
        (0.0, 0.0, "made no difference"),
        (3.0, 3.0, "made no difference"),
        (4.0, 2.0, "helped (4 gained, 2 lost), which may be chance (p = 0.69)"),
        (1.0, 0.0, "helped (1 gained, 0 lost), which may be chance (p = 1)"),
        (10.0, 1.0, "helped (10 gained, 1 lost)"),
        (1.0, 10.0, "did harm (1 gained, 10 lost)"),
        (9.6, 0.3, "helped (9.6 gained, 0.3 lost)"),
    ],
)
def test_the_unlabeled_rows_helped_if_a_sign_test_says_so(gained, lost, effect):
    assert str(estimated(gained=gained, lost=lost)).endswith(f"the unlabeled rows {effect}.")
