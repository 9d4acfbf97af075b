"""The class prior: label shares, empirical Bayes, and shares or bounds that a user gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit, rel_entr
from scipy.stats import beta, dirichlet_multinomial

from cmvmed.auto.class_prior import ShareBounds, empirical_bayes_share, given_prior, label_share
from tests.core.factories import rejects

COUNTS = st.lists(st.integers(0, 30), min_size=2, max_size=6).map(lambda counts: np.array(counts, dtype=float))


def check_label_share(share_of):
    """(n_c + ½)/(N + K/2), the mean of the Jeffreys posterior."""
    np.testing.assert_allclose(share_of(np.array([3.0, 12.0])), [3.5 / 16.0, 12.5 / 16.0], rtol=1e-15)
    np.testing.assert_allclose(share_of(np.array([0.0, 4.0, 6.0])), [0.5 / 11.5, 4.5 / 11.5, 6.5 / 11.5], rtol=1e-15)
    np.testing.assert_allclose(share_of(np.array([3.0, 12.0]))[1], beta(12.5, 3.5).mean(), rtol=1e-14)


def test_label_share():
    check_label_share(label_share)
    rejects(check_label_share, lambda counts: counts / counts.sum())
    rejects(check_label_share, lambda counts: (counts + 1.0) / (counts.sum() + counts.size))


@settings(derandomize=True, max_examples=30, deadline=None)
@given(counts=COUNTS)
def test_shares_are_positive_and_sum_to_one(counts):
    for share in (label_share(counts), empirical_bayes_share(counts)):
        np.testing.assert_allclose(share.sum(), 1.0, rtol=1e-12)
        assert share.min() > 0.0


def check_empirical_bayes(share_of, counts):
    """An average over concentrations κ, weighted by the Dirichlet-multinomial probability of the counts."""
    kappas = np.logspace(-0.5, 3.0, 40)
    evidence = np.ones(len(kappas))  # no counts are certain; older scipy does not say so
    if counts.any():
        evidence[:] = [dirichlet_multinomial(np.full(counts.size, k), int(counts.sum())).pmf(counts) for k in kappas]
    means = np.array([(counts + k) / (counts.sum() + counts.size * k) for k in kappas])
    np.testing.assert_allclose(share_of(counts.astype(float)), evidence @ means / evidence.sum(), rtol=1e-9)


@settings(derandomize=True, max_examples=20, deadline=None)
@given(counts=COUNTS)
def test_empirical_bayes_is_the_evidence_weighted_average(counts):
    check_empirical_bayes(empirical_bayes_share, counts.astype(int))


def test_empirical_bayes_check_rejects_other_shares():
    counts = np.array([1, 4, 9])
    rejects(check_empirical_bayes, label_share, counts)
    rejects(check_empirical_bayes, lambda n: empirical_bayes_share(n + 1.0), counts)
    rejects(check_empirical_bayes, lambda n: empirical_bayes_share(n)[::-1], counts)


def test_empirical_bayes_shrinks_towards_equal_classes_as_much_as_the_counts_allow():
    alike = empirical_bayes_share(np.array([5.0, 6.0, 4.0, 5.0]))
    assert np.abs(alike - 0.25).max() < 0.5 * np.abs(np.array([5.0, 6.0, 4.0, 5.0]) / 20.0 - 0.25).max()
    apart = empirical_bayes_share(np.array([170.0, 10.0, 10.0, 10.0]))
    np.testing.assert_allclose(apart, [0.85, 0.05, 0.05, 0.05], rtol=0.0, atol=0.02)


def draw_bounds(seed, n_classes=4):
    """Bounds around one point of the simplex, some of them not binding, and other shares."""
    rng = np.random.default_rng(seed)
    inside, shares = rng.dirichlet(np.ones(n_classes), 2)
    low, high = inside * rng.uniform(0.0, 1.0, n_classes), inside + (1.0 - inside) * rng.uniform(0.0, 0.5, n_classes)
    unknown = rng.random(n_classes) < 0.3
    return ShareBounds(np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)), shares


def check_nearest(found, bounds, shares):
    """The minimum of KL(s ‖ r) within the bounds, by its conditions: log s/r is one number, larger where s is low."""
    np.testing.assert_allclose(found.sum(), 1.0, rtol=1e-12)
    assert (found >= bounds.low - 1e-12).all()
    assert (found <= bounds.high + 1e-12).all()
    multiplier = np.log(found / shares)
    at_low, at_high = found < bounds.low + 1e-9, found > bounds.high - 1e-9
    between = ~at_low & ~at_high
    assert multiplier[at_low].min(initial=np.inf) >= multiplier[between | at_high].max(initial=-np.inf) - 1e-9
    assert multiplier[at_high].max(initial=-np.inf) <= multiplier[between | at_low].min(initial=np.inf) + 1e-9
    assert multiplier[between].max(initial=-np.inf) - multiplier[between].min(initial=np.inf) < 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_the_nearest_shares_meet_the_conditions_of_the_minimum(seed):
    bounds, shares = draw_bounds(seed)
    check_nearest(bounds.nearest(shares), bounds, shares)


def test_the_check_of_the_nearest_shares_rejects_others():
    bounds, shares = ShareBounds(np.array([0.5, 0.0, 0.0]), np.ones(3)), np.array([0.2, 0.5, 0.3])
    rejects(check_nearest, shares, bounds, shares)
    rejects(check_nearest, np.array([0.5, 0.35, 0.15]), bounds, shares)  # the Euclidean one
    rejects(check_nearest, np.array([0.5, 0.5, 0.3]) / 1.3, bounds, shares)


def test_the_nearest_shares_are_those_that_a_general_optimizer_finds():
    for seed in range(5):
        bounds, shares = draw_bounds(seed)
        best = minimize(
            lambda s, r=shares: rel_entr(np.maximum(s, 0.0), r).sum(),
            0.5 * (bounds.low + bounds.high),
            bounds=list(zip(bounds.low, bounds.high, strict=True)),
            constraints={"type": "eq", "fun": lambda s: s.sum() - 1.0},
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(bounds.nearest(shares), best.x, atol=1e-5)


@pytest.mark.parametrize("shares", [[0.0, 0.4, 0.6], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
def test_classes_of_which_nothing_was_estimated_get_what_the_bounds_ask_for(shares):
    bounds = ShareBounds(np.array([0.1, 0.0, 0.2]), np.array([0.6, 0.3, 0.4]))
    found = bounds.nearest(np.array(shares))
    assert found.sum() == pytest.approx(1.0)
    assert bounds.hold(np.round(found, 12))


def test_shares_within_the_bounds_stay_as_they_are():
    r = np.array([0.2, 0.3, 0.5])
    for low, high in (([0.0] * 3, [1.0] * 3), (r, r), (0.9 * r, 1.1 * r)):
        np.testing.assert_array_equal(ShareBounds(np.array(low), np.array(high)).nearest(r), r)


def test_small_changes_of_bounds_and_shares_change_the_nearest_by_little():
    for seed in range(20):
        bounds, shares = draw_bounds(seed)
        moved = ShareBounds(np.maximum(bounds.low - 1e-6, 0.0), np.minimum(bounds.high + 1e-6, 1.0))
        other = np.abs(shares + 1e-6 * np.array([1.0, -1.0, 1.0, -1.0]))
        for found in (moved.nearest(shares), bounds.nearest(other / other.sum())):
            np.testing.assert_allclose(found, bounds.nearest(shares), atol=2e-5)


def check_combined(found, r, n, low, high):
    """Of two classes: the mean of two normal distributions of the logit, each weighted by the inverse of its variance."""
    middle, variance = 0.5 * (logit(low) + logit(high)), (0.25 * (logit(high) - logit(low))) ** 2
    of_labels = n * r * (1.0 - r)
    mean = (middle / variance + of_labels * logit(r)) / (1.0 / variance + of_labels)
    np.testing.assert_allclose(found, [1.0 - expit(mean), expit(mean)], rtol=1e-9)


def test_a_range_and_an_estimate_are_weighted_by_their_precision():
    low, high, r = 0.2, 0.5, 0.3
    bounds = ShareBounds(np.array([1.0 - high, low]), np.array([1.0 - low, high]))
    for n in (1.0, 10.0, 1000.0):
        found = bounds.combined(np.array([1.0 - r, r]), n)
        check_combined(found, r, n, low, high)
        rejects(check_combined, found, r, n, low, 1.01 * high)
    rejects(check_combined, bounds.combined(np.array([1.0 - r, r]), 20.0), r, 10.0, low, high)
    np.testing.assert_allclose(bounds.combined(np.array([1.0 - r, r]), 1e12), [1.0 - r, r], rtol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_combined_shares_are_within_the_bounds_whatever_the_estimate(seed):
    bounds, shares = draw_bounds(seed)
    for n in (0.5, 20.0, 1e9):
        found = bounds.combined(shares, n)
        assert found.sum() == pytest.approx(1.0)
        assert (found >= bounds.low - 1e-12).all()
        assert (found <= bounds.high + 1e-12).all()


def test_no_bounds_leave_the_estimate_and_equal_ones_are_the_shares():
    r, given = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    np.testing.assert_array_equal(ShareBounds(np.zeros(3), np.ones(3)).combined(r, 9.0), r)
    np.testing.assert_allclose(ShareBounds(given, given).combined(r, 9.0), given, rtol=1e-12)
    upper = ShareBounds(np.zeros(3), np.array([1.0, 0.35, 0.6]))  # a bound only
    np.testing.assert_array_equal(upper.combined(r, 9.0), r)


CLASSES = np.array(["fall", "run", "walk"])


def check_bounds(class_prior, low, high):
    found = given_prior(class_prior, CLASSES)
    assert isinstance(found, ShareBounds)
    np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-12)


def test_bounds_of_a_dict_are_tightened_by_what_other_classes_leave():
    check_bounds({"walk": (0.3, 0.6), "fall": (0, 0.02)}, [0.0, 0.38, 0.3], [0.02, 0.7, 0.6])
    check_bounds({"fall": [0.0, 0.02]}, [0.0, 0.0, 0.0], [0.02, 1.0, 1.0])
    check_bounds({"fall": 0.01}, [0.01, 0.0, 0.0], [0.01, 0.99, 0.99])
    check_bounds({}, [0.0] * 3, [1.0] * 3)
    rejects(check_bounds, {"fall": 0.01}, [0.01, 0.0, 0.0], [0.01, 1.0, 1.0])


@pytest.mark.parametrize(
    "class_prior",
    [
        {"fall": 0.1, "run": 0.3, "walk": 0.6},
        {"fall": (0.1, 0.1), "run": (0.3, 0.3), "walk": (0.6, 0.6)},
        {"fall": 0.1, "run": 0.3},
        [0.1, 0.3, 0.6],
    ],
)
def test_shares_that_leave_no_freedom_are_numbers(class_prior):
    np.testing.assert_allclose(given_prior(class_prior, CLASSES), [0.1, 0.3, 0.6], rtol=1e-12)


@pytest.mark.parametrize(
    ("class_prior", "message"),
    [
        (
            {"fal": 0.1},
            r"class_prior has 'fal', which is not a class of the labels: they are \['fall', 'run', 'walk'\]",
        ),
        ({"run": (0.6, 0.3)}, r"of class 'run' is \(0.6, 0.3\), whose first number is larger: give the smallest"),
        (
            {"run": (-0.1, 0.3)},
            "of class 'run' must be a share between 0 and 1 or a pair of them, smallest and largest",
        ),
        ({"run": 1.5}, "of class 'run' must be a share between 0 and 1"),
        ({"run": "half"}, "of class 'run' must be a share between 0 and 1 or a pair of them, .*, but is 'half'"),
        ({"run": (0.1, 0.2, 0.3)}, "of class 'run' must be a share between 0 and 1 or a pair"),
        ({"run": (0.1, np.nan)}, "of class 'run' must be a share between 0 and 1"),
        ({"run": (0, 0)}, "of class 'run' is .*, but the class has labels: allow it a share above 0, or remove them"),
        ({"run": (0.6, 1), "walk": (0.5, 1)}, "smallest shares that it allows sum to 1.1. Lower that of 'run'"),
        ({"fall": (0, 0.2), "run": 0.1, "walk": 0.3}, "largest shares that it allows sum to 0.6. Raise that of 'walk'"),
        ({"run": 0.5, "walk": 0.5}, "leaves nothing for class 'fall', which has labels: .* Lower them"),
    ],
)
def test_each_mistake_in_a_dict_names_the_class_and_what_to_do(class_prior, message):
    with pytest.raises(ValueError, match=message):
        given_prior(class_prior, CLASSES)
