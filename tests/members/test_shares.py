"""The share of each class among the unlabeled rows, and the offset by which predictions follow it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from scipy.stats import beta

from cmvmed.auto.class_prior import ShareBounds, empirical_bayes_share, label_share
from cmvmed.members.shares import drawn_per_class, estimate_shares, share_offset, share_sensitivity
from tests.auto.factories import TUNING
from tests.core.factories import rejects, uneven_prior

TRUE = np.array([0.6, 0.3, 0.1])
UNSHRUNK = replace(TUNING, share_shrinkage=0.0)
TAUS = [0.01, 0.3, 1.0, 10.0, 1e3]


def draw_predictions(seed=0, *, certainty=3.0, n=400, shares=TRUE):
    """Log-probabilities of rows that favor the true class, and their weights."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(shares.size), np.round(shares * n).astype(int))
    scores = certainty * np.eye(shares.size)[truth] + 0.5 * rng.normal(size=(truth.size, shares.size))
    return np.asarray(log_softmax(scores, axis=1)), rng.uniform(0.5, 2.0, truth.size)


def estimate(given, counts, *, per_class=True, tuning=UNSHRUNK):
    return estimate_shares(
        *given,
        np.array(counts, dtype=float),
        np.zeros(len(counts)) if per_class else np.array(counts, dtype=float),
        tuning,
    )


def check_true_shares(shares):
    np.testing.assert_allclose(shares, TRUE, atol=0.03)


def test_perfect_predictions_recover_the_shares():
    """The labels are drawn class by class, so that their own share is wrong."""
    given = draw_predictions(certainty=50.0, n=2000)
    check_true_shares(estimate(given, [10, 10, 10]))
    rejects(check_true_shares, estimate(given, [10, 10, 10], per_class=False))
    rejects(check_true_shares, label_share(np.full(3, 10.0)))
    rejects(check_true_shares, estimate((given[0][:, ::-1], given[1]), [10, 10, 10]))


def test_per_class_leaves_the_labels_own_share_out():
    given = draw_predictions()
    for per_class in (True, False):
        found = [estimate(given, counts, per_class=per_class) for counts in ([10, 10, 10], [10, 10, 60])]
        assert (np.abs(found[0] - found[1]).max() < 1e-12) == per_class


def test_random_labels_among_chosen_ones_count_by_their_part():
    given, counts = draw_predictions(), np.array([40.0, 40.0, 40.0])
    shares = [estimate_shares(*given, counts, part * counts, UNSHRUNK) for part in (0.0, 0.5, 1.0)]
    halfway = np.sqrt(shares[0] * shares[2])
    np.testing.assert_allclose(np.log(shares[1] / shares[1].sum()), np.log(halfway / halfway.sum()), atol=0.02)
    few = [estimate_shares(*given, counts, np.array(drawn), UNSHRUNK)[0] for drawn in ([9.0, 1, 0], [1.0, 9, 0])]
    assert few[0] > few[1]


@pytest.mark.parametrize("per_class", [False, True])
def test_with_many_labels_shares_are_the_geometric_mean_of_their_sources(per_class):
    given, counts = draw_predictions(), np.array([4e7, 5e7, 6e7])
    parts = [np.average(np.exp(given[0]), weights=given[1], axis=0), empirical_bayes_share(counts)][: 2 - per_class]
    product = np.prod(parts, axis=0) ** (1.0 / len(parts))
    found = estimate(given, counts, per_class=per_class, tuning=TUNING)
    np.testing.assert_allclose(found, product / product.sum(), rtol=1e-9)
    other = estimate(given, counts, per_class=not per_class, tuning=TUNING)
    rejects(np.testing.assert_allclose, other, product / product.sum(), rtol=1e-9)


def test_with_few_labels_shares_are_equal_and_between_them_shrunk():
    """log r is 1/(1 + c (K/N)²) of what it would be, up to a constant."""
    given = draw_predictions()
    np.testing.assert_allclose(estimate(given, np.full(3, 1e-6), tuning=TUNING), 1.0 / 3.0, atol=1e-9)
    free = estimate(given, [3, 3, 3])
    for n in (1.0, 5.0, 50.0):
        trust = 1.0 / (1.0 + TUNING.share_shrinkage / n**2)
        shrunk = estimate(given, [n, n, n], tuning=TUNING)
        np.testing.assert_allclose(np.diff(np.log(shrunk)), trust * np.diff(np.log(free)), rtol=1e-9)


def test_rows_count_as_often_as_their_weight():
    log_p, _ = draw_predictions()
    times = np.random.default_rng(0).integers(0, 4, len(log_p))
    repeated = np.repeat(log_p, times, axis=0), np.ones(times.sum())
    weighted = estimate((log_p, times * 1.0), [5, 5, 6])
    np.testing.assert_allclose(weighted, estimate(repeated, [5, 5, 6]), rtol=1e-9)
    assert np.abs(weighted - estimate((log_p, np.ones(len(log_p))), [5, 5, 6])).max() > 1e-4


def test_without_unlabeled_rows_the_labels_decide():
    log_p, mass = draw_predictions()
    for rows in (slice(0), slice(None)):
        found = estimate((log_p[rows], 0.0 * mass[rows]), [3, 4, 9], tuning=TUNING)
        np.testing.assert_array_equal(found, empirical_bayes_share(np.array([3.0, 4.0, 9.0])))


def test_shares_are_positive_even_of_a_class_that_is_predicted_nowhere():
    share = estimate(draw_predictions(shares=np.array([0.5, 0.5, 0.0]), certainty=1000.0), [5, 5, 5])
    assert (share > 0.0).all()
    np.testing.assert_allclose(share.sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("counts", "drawn", "expected"),
    [
        ([5.0, 5.0], "unknown", True),
        ([5.0, 6.0, 5.0], "unknown", True),
        ([5.0, 7.0], "unknown", False),
        ([5.0, 5.0], "random", False),
        ([1.0, 9.0], "per_class", True),
        ([1.0, 9.0], "chosen", True),
    ],
)
def test_equal_counts_are_taken_for_labels_drawn_per_class(counts, drawn, expected):
    assert drawn_per_class(np.array(counts), drawn) is expected


def draw_rows(n_classes, seed=0, *, scale=2.0, shift=0.0):
    """Log-probabilities, weights of which some are zero, and shares; ``shift`` favors the first class."""
    rng = np.random.default_rng(seed)
    log_p = log_softmax(scale * rng.normal(size=(50, n_classes)) + shift * np.eye(n_classes)[0], axis=1)
    return log_p, rng.uniform(0.1, 2.0, 50) * (np.arange(50) > 9), uneven_prior(n_classes)


def mean_of(log_p, mass, offset):
    return np.average(softmax(log_p + offset, axis=1), weights=mass, axis=0)


def check_stationary(offset, log_p, mass, shares, tau):
    """The mean prediction differs from the shares by b/τ, which has the mean zero."""
    np.testing.assert_allclose(mean_of(log_p, mass, offset), shares - offset / tau, rtol=0.0, atol=1e-9)
    assert offset.sum() == pytest.approx(0.0, abs=1e-9 * max(1.0, np.abs(offset).max()))


@pytest.mark.parametrize("case", [{}, {"scale": 1e-2, "shift": 15.0}, {"scale": 30.0}, {"scale": 300.0}])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_offset_solves_its_equation(n_classes, case):
    for seed in range(3):
        log_p, mass, shares = draw_rows(n_classes, seed, **case)
        for tau in (*TAUS, np.inf):
            offset = share_offset(log_p, mass, shares, tau)
            check_stationary(offset, log_p, mass, shares, tau)
            rejects(check_stationary, share_offset(log_p, mass, shares, 1.5 * min(tau, 1e3)), log_p, mass, shares, tau)
        rejects(check_stationary, share_offset(log_p, np.ones(50), shares, np.inf), log_p, mass, shares, np.inf)


@pytest.mark.parametrize("tau", TAUS)
def test_the_offset_is_the_minimum_that_a_general_optimizer_finds(tau):
    log_p, mass, shares = draw_rows(4)

    def value(b):
        return np.average(logsumexp(log_p + b, axis=1), weights=mass) - shares @ b + 0.5 * b @ b / tau

    found = share_offset(log_p, mass, shares, tau)
    best = minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found, best.x, atol=1e-5)


def test_nothing_is_imposed_without_shares_freedom_or_rows():
    log_p, mass, shares = draw_rows(3)
    for given in ((mass, None, np.inf), (mass, shares, 0.0), (0.0 * mass, shares, 1.0), (0.0 * mass, shares, np.inf)):
        np.testing.assert_array_equal(share_offset(log_p, *given), np.zeros(3))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_more_freedom_the_closer_the_shares(n_classes):
    log_p, mass, shares = draw_rows(n_classes, shift=3.0)
    offsets = [share_offset(log_p, mass, shares, tau) for tau in (0.0, *TAUS, np.inf)]
    apart = [np.linalg.norm(mean_of(log_p, mass, offset) - shares) for offset in offsets]
    assert (np.diff(apart) < 0.0).all()
    assert (np.diff([np.linalg.norm(offset) for offset in offsets]) > 0.0).all()
    np.testing.assert_allclose(share_offset(log_p, mass, shares, 1e9), offsets[-1], atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_of_which_all_members_are_sure_do_not_move(n_classes):
    """‖b‖ is at most τ times the difference of the shares, so that certain rows stay; if shares are given, they do not."""
    sure = log_softmax(200.0 * np.eye(n_classes)[np.arange(60) % n_classes], axis=1)
    shares = uneven_prior(n_classes)
    offset = share_offset(sure, np.ones(60), shares, TUNING.share_offset * n_classes)
    assert 0.1 < np.abs(offset).max() <= TUNING.share_offset * n_classes
    np.testing.assert_allclose(softmax(sure + offset, axis=1), np.exp(sure), atol=1e-12)
    given = share_offset(sure, np.ones(60), shares, np.inf)
    assert np.abs(softmax(sure + given, axis=1) - np.exp(sure)).max() > 0.1


@pytest.mark.parametrize("scale", [0.5, 5.0, 100.0])
@pytest.mark.parametrize("n_classes", [2, 6])
def test_small_changes_change_the_offset_by_little(n_classes, scale):
    """By at most τ times the change of a share, and of a mean prediction: the penalty makes it strongly convex."""
    log_p, mass, shares = draw_rows(n_classes, scale=scale)
    for tau in (1.0, 10.0):
        offset = share_offset(log_p, mass, shares, tau)
        step = 0.01 * (np.eye(n_classes)[0] - np.eye(n_classes)[-1])
        moved = share_offset(log_p, mass, shares + step, tau)
        assert 1e-4 < np.linalg.norm(moved - offset) <= tau * np.linalg.norm(step) + 1e-8
        noise = 1e-6 * np.random.default_rng(1).uniform(-1.0, 1.0, log_p.shape)
        assert np.linalg.norm(share_offset(log_p + noise, mass, shares, tau) - offset) <= tau * 1e-6 + 1e-8


def check_within(offset, log_p, mass, bounds):
    mean = mean_of(log_p, mass, offset)
    np.testing.assert_allclose(np.clip(mean, bounds.low, bounds.high), mean, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_bounds_are_met_by_the_nearest_shares_and_only_where_they_are_not_met_anyway(n_classes):
    log_p, mass, shares = draw_rows(n_classes, shift=2.0)
    free = share_offset(log_p, mass, shares, 1.0)
    mean = mean_of(log_p, mass, free)
    around = ShareBounds(0.9 * mean, np.minimum(1.1 * mean, 1.0))
    np.testing.assert_array_equal(share_offset(log_p, mass, shares, 1.0, around), free)
    tight = ShareBounds(np.zeros(n_classes), np.where(np.arange(n_classes) == 0, 0.5 * mean[0], 1.0))
    found = share_offset(log_p, mass, shares, 1.0, tight)
    check_within(found, log_p, mass, tight)
    rejects(check_within, free, log_p, mass, tight)
    np.testing.assert_allclose(mean_of(log_p, mass, found), tight.nearest(mean), atol=1e-9)
    assert found.sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_bounds_that_are_one_number_are_exact_shares_and_nothing_known_is_no_bound(n_classes):
    log_p, mass, shares = draw_rows(n_classes)
    exact = share_offset(log_p, mass, shares, np.inf)
    np.testing.assert_allclose(share_offset(log_p, mass, shares, 1.0, ShareBounds(shares, shares)), exact, atol=1e-7)
    unknown = ShareBounds(np.zeros(n_classes), np.ones(n_classes))
    np.testing.assert_array_equal(
        share_offset(log_p, mass, shares, 1.0, unknown), share_offset(log_p, mass, shares, 1.0)
    )


def test_the_offset_is_continuous_in_the_bounds():
    """Also where a bound begins to bind."""
    log_p, mass, shares = draw_rows(3, shift=2.0)
    mean = mean_of(log_p, mass, share_offset(log_p, mass, shares, 1.0))
    largest = mean[0] + np.linspace(-0.1, 0.02, 241)
    offsets = np.array(
        [share_offset(log_p, mass, shares, 1.0, ShareBounds(np.zeros(3), np.array([h, 1.0, 1.0]))) for h in largest]
    )
    steps = np.abs(np.diff(offsets, axis=0)).max(axis=1)
    assert steps.max() < 0.01
    assert steps[0] > 0.0
    assert steps[-1] == 0.0


def sensitivity(log_p, mass, n_labels=20.0, given=None):
    return share_sensitivity(np.exp(log_p), mass, np.full(log_p.shape[1], 1.0 / log_p.shape[1]), n_labels, given)


def test_plausible_shares_are_those_of_as_many_rows_as_there_are_labels():
    log_p, mass, _ = draw_rows(2)
    found = sensitivity(log_p, mass).plausible
    r = mean_of(log_p, mass, 0.0)
    np.testing.assert_allclose(found.low, beta.ppf(0.05, 20.0 * r + 0.5, 20.0 * r[::-1] + 0.5), rtol=1e-9)
    np.testing.assert_allclose(found.high, 1.0 - found.low[::-1], rtol=1e-9)
    wide, narrow = ((own.high - own.low).max() for own in (sensitivity(log_p, mass, n).plausible for n in (5.0, 1e6)))
    assert narrow < 0.01 < wide


def check_changed(found, log_p, mass):
    """Of two classes only the two ends matter: Bayes' rule with each."""
    p, r, used = np.exp(log_p), mean_of(log_p, mass, 0.0), mass > 0.0
    ends = [np.array([s, 1.0 - s]) for s in (found.plausible.low[0], found.plausible.high[0])]
    q = [p * s / r / (p * s / r).sum(axis=1, keepdims=True) for s in ends]
    own = p.argmax(axis=1)
    changed = np.any([other.argmax(axis=1) != own for other in q], axis=0)
    assert found.changed == pytest.approx(np.average(changed[used], weights=mass[used]))
    differences = [np.average((other - p)[np.arange(own.size), own], weights=mass) for other in q]
    assert found.accuracy == pytest.approx((min(*differences, 0.0), max(*differences, 0.0)))


def test_rows_change_as_by_the_rule_of_bayes():
    log_p, mass, _ = draw_rows(2, scale=0.7)
    found = sensitivity(log_p, mass)
    assert 0.0 < found.changed < 1.0
    check_changed(found, log_p, mass)
    rejects(check_changed, sensitivity(log_p, np.ones(50)), log_p, mass)
    rejects(check_changed, replace(found, changed=0.5 * found.changed), log_p, mass)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_nothing_depends_on_shares_that_are_given_or_that_predictions_are_sure_of(n_classes):
    log_p, mass, _ = draw_rows(n_classes)
    r = mean_of(log_p, mass, 0.0)
    assert sensitivity(log_p, mass, given=ShareBounds(r, r)).changed == 0.0
    assert sensitivity(300.0 * log_p, mass).changed < 0.05 < sensitivity(log_p, mass).changed
    assert sensitivity(log_p, 0.0 * mass).changed == 0.0


def test_the_less_is_known_the_more_rows_change():
    log_p, mass, _ = draw_rows(4)
    changed = [sensitivity(log_p, mass, n).changed for n in (1e6, 100.0, 20.0, 4.0)]
    assert (np.diff(changed) >= 0.0).all()
    assert changed[0] < changed[-1]
    r = mean_of(log_p, mass, 0.0)
    bounded = sensitivity(log_p, mass, 4.0, ShareBounds(0.95 * r, 1.05 * r))
    assert bounded.changed < changed[-1]
    assert (bounded.plausible.low >= 0.95 * r - 1e-12).all()
