"""The accuracy that labels of random rows show: its formula, its reference intervals, and how often it holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from scipy.stats import t as student

from cmvmed.members.random_labels import RandomLabels, random_labels
from tests.core.factories import rejects

LEVEL = 0.9


def draw(rng, n, *, n_unlabeled=120, spread=1.0, bias=0.0):
    """Held-out labels and unlabeled rows, with probabilities that are right on average if ``bias`` is zero, and the accuracy."""
    p = 0.5 + 0.5 * rng.beta(3.0 * spread, 1.0 * spread, size=n + n_unlabeled)
    right = rng.random(p.size) < p
    f = np.clip(p + bias, 0.5, 1.0)
    found = random_labels(right[:n], f[:n], np.ones(n), f[n:], np.ones(n_unlabeled))
    return found, right[:n], right[n:].mean()


def of_constant_confidence(n_right, n, f=0.8):
    right = np.arange(n) < n_right
    return random_labels(right, np.full(n, f), np.ones(n), np.full(50, f), np.zeros(50))


def check_agresti_coull(found, n_right, n):
    z = norm.ppf(0.5 + LEVEL / 2)
    p = (n_right + z**2 / 2) / (n + z**2)
    half = student.ppf(0.5 + LEVEL / 2, n - 1) * np.sqrt(p * (1 - p) / (n + z**2))
    np.testing.assert_allclose(found.interval(LEVEL), [max(p - half, 0.0), min(p + half, 1.0)], atol=1e-12)


@pytest.mark.parametrize(("n_right", "n"), [(8, 10), (20, 25), (3, 40), (77, 90)])
def test_a_constant_confidence_gives_the_share_of_hits_and_an_interval_around_wilsons(n_right, n):
    found = of_constant_confidence(n_right, n)
    assert found.mean == pytest.approx(n_right / n)
    check_agresti_coull(found, n_right, n)
    rejects(check_agresti_coull, of_constant_confidence(n_right, n + 5), n_right, n)
    low, high = found.interval(LEVEL)
    wilson = binomtest(n_right, n).proportion_ci(LEVEL, method="wilson")
    exact = binomtest(n_right, n).proportion_ci(LEVEL, method="exact")  # Clopper and Pearson
    assert low <= wilson.low
    assert high >= wilson.high
    np.testing.assert_allclose([low, high], [exact.low, exact.high], atol=0.06)


@pytest.mark.parametrize("n", [1, 10])
def test_labels_that_are_all_right_do_not_make_the_accuracy_certain(n):
    """The residuals then have next to no variance; without the added labels the interval would be a point."""
    found = random_labels(np.ones(n, bool), np.full(n, 0.99), np.ones(n), np.full(50, 0.99), np.ones(50))
    low, high = found.interval(LEVEL)
    assert low <= binomtest(n, n).proportion_ci(LEVEL, method="wilson").low
    assert high == 1.0 == pytest.approx(found.mean)


def check_holds(accuracies, intervals):
    held = np.mean([low <= a <= high for a, (low, high) in zip(accuracies, intervals, strict=True)])
    assert LEVEL - 0.02 <= held <= 0.995


@pytest.mark.parametrize("bias", [-0.15, 0.0, 0.15])
@pytest.mark.parametrize("n", [8, 20, 60])
def test_the_interval_holds_whatever_the_probabilities_are_worth(n, bias):
    rng = np.random.default_rng(0)
    drawn = [draw(rng, n, bias=bias) for _ in range(1000)]
    truth = [accuracy for *_, accuracy in drawn]
    check_holds(truth, [found.interval(LEVEL) for found, *_ in drawn])
    rejects(check_holds, truth, [found.interval(0.5) for found, *_ in drawn])
    rejects(check_holds, [a - 0.3 for a in truth], [found.interval(LEVEL) for found, *_ in drawn])


def test_probabilities_that_tell_right_from_wrong_narrow_the_interval():
    rng = np.random.default_rng(0)
    drawn = [draw(rng, 60, spread=0.1, n_unlabeled=5000) for _ in range(200)]
    widths = [np.diff(found.interval(LEVEL))[0] for found, *_ in drawn]
    by_hits = [np.diff(of_constant_confidence(right.sum(), 60).interval(LEVEL))[0] for _, right, _ in drawn]
    assert np.mean(widths) < 0.9 * np.mean(by_hits)


def test_the_estimate_is_the_confidence_corrected_by_the_residuals_of_the_random_labels():
    right, f = np.array([True, False, True, True]), np.array([0.9, 0.6, 0.8, 0.7])
    others, mass = np.array([0.5, 0.7, 0.9, 1.0]), np.array([1.0, 2.0, 1.0, 0.0])
    found = random_labels(right, f, np.array([1.0, 1.0, 1.0, 0.0]), others, mass)  # the last was chosen
    assert found.n == found.n_labels == pytest.approx(3.0)
    assert found.confidence == pytest.approx(0.7)
    assert found.mean == pytest.approx(0.7 + (0.1 - 0.6 + 0.2) / 3)
    assert found.squared_residual == pytest.approx((0.01 + 0.36 + 0.04) / 3)
    assert found.variance == pytest.approx((0.25**2 + 0.25**2) * 0.2**2)
    assert found.n_unlabeled == pytest.approx(1.0 / (0.25**2 + 0.5**2 + 0.25**2))


def test_without_unlabeled_rows_it_is_the_share_of_hits_and_without_random_labels_nothing():
    right, f = np.array([True, False, True]), np.array([0.9, 0.6, 0.8])
    assert random_labels(right, f, np.ones(3), f, np.zeros(3)).mean == pytest.approx(2 / 3)
    assert random_labels(right, f, np.zeros(3), f, np.ones(3)) is None


def test_weights_that_differ_count_as_fewer_labels():
    found = random_labels(
        np.ones(4, bool), np.full(4, 0.8), np.array([1.0, 1.0, 1.0, 3.0]), np.full(9, 0.8), np.ones(9)
    )
    assert found.n == pytest.approx(36 / 12)


def test_the_mean_stays_within_its_limits():
    found = RandomLabels(
        n_labels=2.0, n=2.0, residual=0.3, squared_residual=0.09, confidence=0.9, variance=0.0, n_unlabeled=9.0
    )
    assert found.mean == found.interval(LEVEL)[1] == 1.0


def draw_groups(rng, n_groups, *, by_row=False):
    """Labels of groups whose accuracies differ, and the mean accuracy of as many new groups as there are unlabeled ones."""
    accuracy, n_labels = rng.beta(4.0, 1.5, size=n_groups + 20), 10
    labels, rows = np.repeat(np.arange(n_groups), n_labels), np.repeat(np.arange(20), 30)
    right = rng.random(labels.size) < accuracy[labels]
    f = np.full(rows.size, 0.8)
    groups = None if by_row else (labels, rows)
    found = random_labels(right, f[: labels.size], np.ones(labels.size), f, np.ones(rows.size), groups)
    assert found.n_labels == labels.size
    return accuracy[n_groups:].mean(), found.interval(LEVEL)


@pytest.mark.parametrize("n_groups", [8, 20])
def test_the_interval_holds_on_new_groups_that_differ_if_groups_are_the_unit(n_groups):
    rng = np.random.default_rng(0)
    check_holds(*zip(*(draw_groups(rng, n_groups) for _ in range(500)), strict=True))
    rejects(check_holds, *zip(*(draw_groups(rng, n_groups, by_row=True) for _ in range(500)), strict=True))


def test_groups_of_one_row_are_the_same_as_no_groups():
    rng = np.random.default_rng(0)
    right, f, weights, others, mass = rng.random(9) < 0.8, rng.random(9), rng.random(9), rng.random(30), rng.random(30)
    by_row = random_labels(right, f, weights, others, mass)
    by_group = random_labels(right, f, weights, others, mass, (rng.permutation(9), rng.permutation(30)))
    np.testing.assert_allclose(list(vars(by_group).values()), list(vars(by_row).values()), rtol=1e-12)
