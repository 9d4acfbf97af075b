"""The scale of the probabilities: its posterior, the folds it is learned from, and the accuracy that is expected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom

from cmvmed import CMVMED
from cmvmed.auto.calibration import (
    LOG_SCALES,
    USUAL_SCALE,
    Calibration,
    OutOfFoldScores,
    cross_fit,
    expected_accuracy,
    scale_posterior,
)
from cmvmed.auto.class_prior import ClassBalance
from cmvmed.auto.cross_fitting import N_FOLDS, assign_folds
from cmvmed.core.annealing import Schedule, anneal
from cmvmed.core.surrogates import Bohning
from cmvmed.datasets import make_multiview_gaussian
from tests.core.factories import draw_problem, rejects


def drawn_rows(true_scale, n_rows, n_classes=3, seed=0):
    """Logits, and classes that are drawn from softmax(true_scale · logits)."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=3.0, size=(n_rows, n_classes))
    cumulated = softmax(true_scale * logits, axis=1).cumsum(axis=1)
    codes = (rng.uniform(size=(n_rows, 1)) > cumulated).sum(axis=1)
    return OutOfFoldScores(logits, codes, np.ones(n_rows))


def scale_of(held_out):
    return float(np.exp(scale_posterior(held_out) @ LOG_SCALES))


@pytest.mark.parametrize("true_scale", [0.1, 0.5, 2.0])
def test_many_rows_show_the_scale(true_scale):
    def check(found):
        np.testing.assert_allclose(found, true_scale, rtol=0.1)

    check(scale_of(drawn_rows(true_scale, 3000)))
    rejects(check, scale_of(drawn_rows(1.5 * true_scale, 3000)))


def test_without_rows_the_prior_is_left():
    nothing = OutOfFoldScores(np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros(0))
    posterior = scale_posterior(nothing)
    np.testing.assert_allclose(posterior.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(posterior @ LOG_SCALES), USUAL_SCALE, rtol=0.02)


def test_weight_two_is_the_row_twice():
    rows = drawn_rows(0.7, 40)
    twice = OutOfFoldScores(*(np.concatenate([part, part[:10]]) for part in (rows.logits, rows.codes, rows.weights)))
    weighted = replace(rows, weights=np.where(np.arange(40) < 10, 2.0, 1.0))
    np.testing.assert_allclose(scale_posterior(weighted), scale_posterior(twice), rtol=1e-9)
    assert not np.allclose(scale_posterior(rows), scale_posterior(twice), rtol=1e-9)


def test_right_answers_do_not_prove_certainty():
    logits = np.tile([2.0, -2.0], (50, 1))
    scale = scale_of(OutOfFoldScores(logits, np.zeros(50, dtype=int), np.ones(50)))
    assert USUAL_SCALE < scale < 5.0


def test_expected_accuracy_is_the_mean_of_the_largest_probability():
    rows = drawn_rows(1.0, 30)
    mass = np.arange(1.0, 31.0)
    found = expected_accuracy(rows.logits, mass, np.exp(LOG_SCALES))
    p = softmax(np.exp(LOG_SCALES[50]) * rows.logits, axis=1).max(axis=1)
    np.testing.assert_allclose(found[50], np.average(p, weights=mass), rtol=1e-12)
    assert (np.diff(found) > 0.0).all()


def check_folds(folds, codes):
    """Every row of a class with two labels or more is held out once, and each class keeps a label in every fold."""
    single = np.bincount(codes)[codes] == 1
    np.testing.assert_array_equal(folds < 0, single)
    for fold in range(N_FOLDS):
        assert set(codes[folds != fold]) == set(codes)
    sizes = np.bincount(folds[folds >= 0], minlength=N_FOLDS)
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("counts", [(10, 10), (2, 13), (1, 9), (3, 3, 3, 3), (2, 2), (1, 1), (6, 1, 2)])
def test_folds_keep_every_class(counts):
    codes = np.repeat(np.arange(len(counts)), counts)
    order = np.random.default_rng(0).normal(size=codes.size)
    check_folds(assign_folds(codes, order), codes)


def test_folds_that_lose_a_class_are_rejected():
    codes = np.repeat([0, 1], [8, 2])
    folds = assign_folds(codes, np.arange(10.0))
    check_folds(folds, codes)
    rejects(check_folds, np.where(codes == 1, 0, folds), codes)


def test_equal_rows_stay_together():
    codes, order = np.zeros(12, dtype=int), np.repeat(np.arange(6.0), 2)
    folds = assign_folds(codes, order)
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    np.testing.assert_array_equal(folds[::2], assign_folds(codes[::2], order[::2]))
    assert (assign_folds(np.zeros(3, dtype=int), np.ones(3)) == -1).all()


def test_folds_follow_the_rows_and_not_their_places_or_names():
    rng = np.random.default_rng(1)
    codes, order, places = rng.integers(3, size=20), rng.normal(size=20), rng.permutation(20)
    folds = assign_folds(codes, order)
    np.testing.assert_array_equal(assign_folds(codes[places], order[places]), folds[places])
    np.testing.assert_array_equal(assign_folds(2 - codes, order), folds)
    assert (assign_folds(codes, rng.normal(size=20)) != folds).any()


def fitted_problem(n_classes=2):
    problem, _ = draw_problem(3, n_classes=n_classes, n_labeled=12, n_unlabeled=30)
    schedule = Schedule(0.5, 0.2, 8, 100, 1e-3)
    balance = ClassBalance(np.full(n_classes, 1.0 / n_classes))
    annealed = anneal(problem, Bohning(), schedule, balance, np.array([0.5, 0.5]))
    return problem, schedule, annealed, np.arange(12) % n_classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_rows_do_not_see_their_own_label(n_classes):
    """With a row's label changed, its own judgement stays, if the folds do; those of rows in other folds do not."""
    problem, schedule, annealed, codes = fitted_problem(n_classes)
    weights = np.ones(12)
    before = cross_fit(problem, Bohning(), schedule, annealed, codes, weights)
    assert before.codes.size == 12
    Y = problem.Y.copy()
    Y[5] = -Y[5]
    after = cross_fit(replace(problem, Y=Y), Bohning(), schedule, annealed, codes, weights)
    np.testing.assert_allclose(after.logits[5], before.logits[5], rtol=0.0, atol=1e-9)
    assert np.abs(after.logits - before.logits).max() > 1e-3


def test_rows_without_label_or_weight_are_not_judged():
    problem, schedule, annealed, codes = fitted_problem()
    weights = np.where(np.arange(12) == 4, 0.0, 1.0)
    riding = np.where(np.arange(12) == 7, -1, codes)
    held_out = cross_fit(problem, Bohning(), schedule, annealed, riding, weights)
    np.testing.assert_array_equal(held_out.codes, np.delete(codes, [4, 7]))


def test_interval_narrows_with_held_out_rows_and_widens_with_the_level():
    few, many = Calibration(1.0, 0.9, 15.0), Calibration(1.0, 0.9, 500.0)
    widths = [
        e.high - e.low for e in (many.accuracy_estimate(0.9), few.accuracy_estimate(0.9), few.accuracy_estimate(0.99))
    ]
    assert widths[0] < widths[1] < widths[2]
    assert Calibration(1.0, 0.8, 0.0).accuracy_estimate(0.9).low < 0.05  # nothing was seen
    for accuracy in (0.5, 0.999, 1.0):
        estimate = Calibration(1.0, accuracy, 40.0).accuracy_estimate(0.9)
        assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0


@pytest.fixture(scope="module")
def gaussian():
    return make_multiview_gaussian(230, separation=(1.1, 0.8), labeled=30, random_state=2)


def test_calibration_changes_no_class_and_scales_the_log_odds(gaussian):
    plain, calibrated = (
        CMVMED(views=gaussian.views, calibrate=wanted).fit(gaussian.data, gaussian.y) for wanted in (False, True)
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
    assert abs(estimate.mean - largest) < 0.03  # a mean over scales there, one scale here
    assert estimate.low < estimate.mean < estimate.high
    assert model.accuracy_estimate(0.5).low > estimate.low


def test_accuracy_estimate_without_unlabeled_rows(gaussian):
    rows = slice(0, 80)
    estimate = CMVMED(views=gaussian.views).fit(gaussian.data[rows], gaussian.target[rows]).accuracy_estimate()
    assert 0.6 < estimate.low < estimate.mean < estimate.high < 1.0


@pytest.mark.parametrize("settings", [{"calibrate": False}, {"mode": "literal"}])
def test_no_accuracy_estimate_without_a_cross_fit(gaussian, settings):
    model = CMVMED(views=gaussian.views, n_stages=2, **settings).fit(gaussian.data, gaussian.y)
    assert model.probability_scale_ == 1.0
    with pytest.raises(ValueError, match="calibrate=True"):
        model.accuracy_estimate()


def test_bad_settings_are_named(gaussian):
    with pytest.raises(ValueError, match="calibrate must be one of True, False, but is 'yes'"):
        CMVMED(views=gaussian.views, calibrate="yes").fit(gaussian.data, gaussian.y)
    model = CMVMED(views=gaussian.views, n_stages=1).fit(gaussian.data, gaussian.y)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1, but is 90"):
        model.accuracy_estimate(90)


def check_coverage(held, level):
    """The number of intervals that hold the accuracy is not too small for the level: it has a chance of 0.1 % or more."""
    assert binom.cdf(int(np.sum(held)), len(held), level) >= 1e-3, f"{np.sum(held)} of {len(held)}"


@pytest.mark.slow
def test_intervals_hold_the_accuracy_of_simulated_data():
    estimates, accuracies = [], []
    for seed in range(40):
        data = make_multiview_gaussian(330, separation=(1.1, 0.8), labeled=30, random_state=seed)
        model = CMVMED(views=data.views).fit(data.data, data.y)
        estimates.append(model.accuracy_estimate())
        accuracies.append(float((model.transduction_ == data.target)[data.y < 0].mean()))
    held = [e.low <= accuracy <= e.high for e, accuracy in zip(estimates, accuracies, strict=True)]
    check_coverage(held, 0.9)
    narrow = [
        abs(e.mean - accuracy) < 0.1 * (e.high - e.low) for e, accuracy in zip(estimates, accuracies, strict=True)
    ]
    rejects(check_coverage, narrow, 0.9)
