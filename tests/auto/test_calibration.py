"""The scale of the probabilities: its posterior, and the accuracy estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom

from cmvmed import CMVMED
from cmvmed.auto.calibration import (
    LOG_SCALES,
    Calibration,
    expected_accuracy,
    scale_posterior,
)
from cmvmed.auto.cross_fitting import OutOfFoldScores
from cmvmed.auto.tuning import Tuning
from cmvmed.datasets import make_multiview_gaussian
from tests.core.factories import rejects

TUNING = Tuning()


def drawn_rows(true_scale, n_rows, n_classes=3, seed=0):
    """Logits, and classes that are drawn from softmax(true_scale · logits)."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=3.0, size=(n_rows, n_classes))
    cumulated = softmax(true_scale * logits, axis=1).cumsum(axis=1)
    codes = (rng.uniform(size=(n_rows, 1)) > cumulated).sum(axis=1)
    return OutOfFoldScores(logits, codes, np.ones(n_rows))


def scale_of(held_out):
    return float(np.exp(scale_posterior(held_out, TUNING) @ LOG_SCALES))


@pytest.mark.parametrize("true_scale", [0.1, 0.5, 2.0])
def test_many_rows_determine_the_scale(true_scale):
    def check(found):
        np.testing.assert_allclose(found, true_scale, rtol=0.1)

    check(scale_of(drawn_rows(true_scale, 3000)))
    rejects(check, scale_of(drawn_rows(1.5 * true_scale, 3000)))


def test_without_rows_the_posterior_is_the_prior():
    none = OutOfFoldScores(np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros(0))
    posterior = scale_posterior(none, TUNING)
    np.testing.assert_allclose(posterior.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(posterior @ LOG_SCALES), TUNING.probability_scale, rtol=0.02)


def test_a_row_of_weight_two_counts_like_two_rows():
    rows = drawn_rows(0.7, 40)
    twice = OutOfFoldScores(*(np.concatenate([part, part[:10]]) for part in (rows.logits, rows.codes, rows.weights)))
    weighted = replace(rows, weights=np.where(np.arange(40) < 10, 2.0, 1.0))
    np.testing.assert_allclose(scale_posterior(weighted, TUNING), scale_posterior(twice, TUNING), rtol=1e-9)
    assert not np.allclose(scale_posterior(rows, TUNING), scale_posterior(twice, TUNING), rtol=1e-9)


def test_correct_predictions_alone_do_not_give_certainty():
    logits = np.tile([2.0, -2.0], (50, 1))
    scale = scale_of(OutOfFoldScores(logits, np.zeros(50, dtype=int), np.ones(50)))
    assert TUNING.probability_scale < scale < 5.0


def test_expected_accuracy_is_the_mean_of_the_largest_probability():
    rows = drawn_rows(1.0, 30)
    mass = np.arange(1.0, 31.0)
    found = expected_accuracy(rows.logits, mass, np.exp(LOG_SCALES))
    p = softmax(np.exp(LOG_SCALES[50]) * rows.logits, axis=1).max(axis=1)
    np.testing.assert_allclose(found[50], np.average(p, weights=mass), rtol=1e-12)
    assert (np.diff(found) > 0.0).all()


def test_interval_narrows_with_held_out_rows_and_widens_with_the_level():
    few, many = Calibration(1.0, 0.9, 15.0), Calibration(1.0, 0.9, 500.0)
    widths = [
        e.high - e.low for e in (many.accuracy_estimate(0.9), few.accuracy_estimate(0.9), few.accuracy_estimate(0.99))
    ]
    assert widths[0] < widths[1] < widths[2]
    assert Calibration(1.0, 0.8, 0.0).accuracy_estimate(0.9).low < 0.05  # no row was held out
    for accuracy in (0.5, 0.999, 1.0):
        estimate = Calibration(1.0, accuracy, 40.0).accuracy_estimate(0.9)
        assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0


@pytest.fixture(scope="module")
def gaussian():
    return make_multiview_gaussian(230, separation=(1.1, 0.8), labeled=30, random_state=2)


def test_calibration_changes_no_class_and_scales_the_log_odds(gaussian):
    plain, calibrated = (
        CMVMED(views=gaussian.views, calibrate=calibrate).fit(gaussian.data, gaussian.y) for calibrate in (False, True)
    )
    assert plain.probability_scale_ == 1.0 != calibrated.probability_scale_
    np.testing.assert_array_equal(plain.predict(gaussian.data), calibrated.predict(gaussian.data))
    np.testing.assert_array_equal(plain.transduction_, calibrated.transduction_)
    log_odds = [np.log(p[:, 1] / p[:, 0]) for p in (m.predict_proba(gaussian.data) for m in (plain, calibrated))]
    np.testing.assert_allclose(log_odds[1], calibrated.probability_scale_ * log_odds[0], rtol=1e-6)


def test_accuracy_estimate_is_the_mean_largest_probability_of_unlabeled_rows(gaussian):
    model = CMVMED(views=gaussian.views).fit(gaussian.data, gaussian.y)
    estimate = model.accuracy_estimate()
    largest = model.label_distributions_[gaussian.y < 0].max(axis=1).mean()
    assert abs(estimate.mean - largest) < 0.03  # the estimate averages over scales, the probabilities use one
    assert estimate.low < estimate.mean < estimate.high
    assert model.accuracy_estimate(0.5).low > estimate.low


def test_accuracy_estimate_without_unlabeled_rows(gaussian):
    rows = slice(0, 80)
    estimate = CMVMED(views=gaussian.views).fit(gaussian.data[rows], gaussian.target[rows]).accuracy_estimate()
    assert 0.6 < estimate.low < estimate.mean < estimate.high < 1.0


@pytest.mark.parametrize(
    "make",
    [lambda **given: CMVMED(calibrate=False, **given), lambda **given: CMVMED.paper(algorithm="printed", **given)],
)
def test_no_accuracy_estimate_without_a_cross_fit(gaussian, make):
    model = make(views=gaussian.views, n_stages=2).fit(gaussian.data, gaussian.y)
    assert model.probability_scale_ == 1.0
    with pytest.raises(ValueError, match="calibrate=True"):
        model.accuracy_estimate()


def test_bad_settings_are_named_in_errors(gaussian):
    with pytest.raises(ValueError, match="calibrate must be one of True, False, but is 'yes'"):
        CMVMED(views=gaussian.views, calibrate="yes").fit(gaussian.data, gaussian.y)
    model = CMVMED(views=gaussian.views, n_stages=1).fit(gaussian.data, gaussian.y)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1, but is 90"):
        model.accuracy_estimate(90)


def check_coverage(covered, level):
    """At the given level, so few or fewer intervals cover the accuracy with a probability of at least 0.1 %."""
    assert binom.cdf(int(np.sum(covered)), len(covered), level) >= 1e-3, f"{np.sum(covered)} of {len(covered)}"


@pytest.mark.slow
def test_intervals_cover_the_accuracy_of_simulated_data():
    estimates, accuracies = [], []
    for seed in range(40):
        data = make_multiview_gaussian(330, separation=(1.1, 0.8), labeled=30, random_state=seed)
        model = CMVMED(views=data.views).fit(data.data, data.y)
        estimates.append(model.accuracy_estimate())
        accuracies.append(float((model.transduction_ == data.target)[data.y < 0].mean()))
    covered = [e.low <= accuracy <= e.high for e, accuracy in zip(estimates, accuracies, strict=True)]
    check_coverage(covered, 0.9)
    narrow = [
        abs(e.mean - accuracy) < 0.1 * (e.high - e.low) for e, accuracy in zip(estimates, accuracies, strict=True)
    ]
    rejects(check_coverage, narrow, 0.9)
