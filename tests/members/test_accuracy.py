"""The accuracy to expect: its formulas and limits, and that of fitted models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, binom, binomtest

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian
from cmvmed.members.accuracy import AccuracyEstimate, HeldOutAccuracy, held_out_accuracy, labels_between_groups
from tests.auto.factories import TUNING
from tests.core.factories import rejects


def accuracy(**changes):
    given = {"hits": 0.8, "labels_only": 0.7, "gained": 6.0, "lost": 1.0, "largest": 0.9, "n_held_out": 50.0}
    return HeldOutAccuracy(**(given | {"confidence_labels": 20.0, "interval_labels": (0.3, 4.0)} | changes))


def check_interval(estimate, level, n):
    """The central interval of a share that was seen in n rows, with Jeffreys' prior."""
    posterior = beta(estimate.mean * n + 0.5, (1.0 - estimate.mean) * n + 0.5)
    np.testing.assert_allclose(posterior.cdf([estimate.low, estimate.high]), [0.5 - level / 2, 0.5 + level / 2])


def test_the_estimate_is_a_weighted_mean_and_its_interval_that_of_a_share():
    for level in (0.5, 0.9):
        estimate = accuracy().estimate(level)
        assert estimate.mean == pytest.approx((50.0 * 0.8 + 20.0 * 0.9) / 70.0)
        check_interval(estimate, level, 0.3 * 50.0 + 4.0)
        rejects(check_interval, estimate, level, 50.0)
        rejects(check_interval, estimate, 0.95, 19.0)


def test_limits_of_the_mean():
    assert accuracy(n_held_out=0.0).estimate(0.9).mean == pytest.approx(0.9)
    assert accuracy(n_held_out=1e12).estimate(0.9).mean == pytest.approx(0.8)
    assert accuracy(confidence_labels=1e12).estimate(0.9).mean == pytest.approx(0.9)


def test_held_out_labels_of_chosen_rows_have_no_part_in_the_mean():
    chosen = accuracy(chosen=True).estimate(0.9)
    assert chosen.mean == pytest.approx(0.9)
    assert chosen.held_out == accuracy().estimate(0.9).held_out == 0.8
    assert "labeled rows were chosen" in str(chosen)
    assert "labeled rows were chosen" not in str(accuracy().estimate(0.9))


def width(estimate):
    return estimate.high - estimate.low


def test_the_interval_narrows_with_held_out_labels_and_widens_with_the_level():
    many, few = (accuracy(n_held_out=n) for n in (500.0, 15.0))
    assert width(many.estimate(0.9)) < width(few.estimate(0.9)) < width(few.estimate(0.99))
    assert width(accuracy(interval_labels=(0.2, 4.0)).estimate(0.9)) > width(accuracy().estimate(0.9))
    assert width(accuracy(n_held_out=1e300).estimate(0.9)) < 1e-3


@pytest.mark.parametrize("n_held_out", [0.0, 0.3, 2.0, 40.0, 1e12])
@pytest.mark.parametrize("share", [0.0, 1e-3, 0.5, 0.999, 1.0])
def test_the_interval_contains_the_mean(share, n_held_out):
    estimate = accuracy(hits=share, largest=share, n_held_out=n_held_out).estimate(0.5)
    assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0


def check_exact(estimate, n_right, n):
    exact = binomtest(n_right, n).proportion_ci(0.9, method="exact")  # Clopper and Pearson
    np.testing.assert_allclose([estimate.low, estimate.high], [exact.low, exact.high], rtol=1e-9)


@pytest.mark.parametrize("n_right", [0, 13, 20])
def test_probabilities_alone_have_the_exact_interval_of_as_many_rows_as_they_count_for(n_right):
    n = int(TUNING.confidence_labels)
    chosen = accuracy(largest=n_right / n, chosen=True)
    check_exact(chosen.estimate(0.9), n_right, n)
    rejects(check_exact, replace(chosen, chosen=False).estimate(0.9), n_right, n)
    for fewer in ("group_labels", "n_held_out"):  # new groups are less certain, and so is what few labels calibrate
        rejects(check_exact, replace(chosen, **{fewer: 5.0}).estimate(0.9), n_right, n)
    assert width(replace(chosen, group_labels=0.0).estimate(0.9)) == 1.0


def draw_predictions(n=60):
    """Held-out log-probabilities by two ways, classes, and weights of which some are zero."""
    rng = np.random.default_rng(7)
    codes = rng.integers(3, size=n)
    better, worse = (np.log(rng.dirichlet(np.ones(3), size=n) + own * np.eye(3)[codes]) for own in (0.4, 0.0))
    return better, worse, codes, rng.integers(0, 3, size=n).astype(float)


def check_held_out_accuracy(found, log_p, labels_only, codes, w):
    right, alone = log_p.argmax(axis=1) == codes, labels_only.argmax(axis=1) == codes
    assert found.hits == pytest.approx(np.average(right, weights=w))
    assert found.labels_only == pytest.approx(np.average(alone, weights=w))
    assert found.gained == pytest.approx(w[right & ~alone].sum())
    assert found.lost == pytest.approx(w[alone & ~right].sum())
    assert found.hits - found.labels_only == pytest.approx((found.gained - found.lost) / w.sum())
    assert found.n_held_out == pytest.approx(w.sum())
    assert found.largest == 0.7
    assert (found.confidence_labels, found.interval_labels) == (TUNING.confidence_labels, TUNING.interval_labels)


def test_hits_are_those_on_held_out_labels():
    given = draw_predictions()
    found = held_out_accuracy(*given, 0.7, TUNING)
    check_held_out_accuracy(found, *given)
    assert found.gained > found.lost > 0.0
    better, worse, codes, w = given
    rejects(check_held_out_accuracy, held_out_accuracy(worse, better, codes, w, 0.7, TUNING), *given)
    rejects(check_held_out_accuracy, held_out_accuracy(better, worse, codes, w**0, 0.7, TUNING), *given)


def test_one_source_stands_in_for_the_other():
    log_p, worse, codes, w = draw_predictions()
    without_rows = held_out_accuracy(log_p, worse, codes, w, np.nan, TUNING)
    assert without_rows.largest == without_rows.hits > 0.5
    without_labels = held_out_accuracy(log_p, worse, codes, 0.0 * w, 0.7, TUNING)
    assert without_labels.hits == without_labels.largest == 0.7
    neither = held_out_accuracy(log_p, worse, codes, 0.0 * w, np.nan, TUNING)
    assert neither.hits == neither.largest == pytest.approx(1.0 / 3.0)
    assert np.isnan(neither.labels_only)
    alone = held_out_accuracy(log_p, None, codes, w, 0.7, TUNING)
    assert np.isnan(alone.labels_only)
    assert alone.gained == alone.lost == 0.0


def estimated(**changes):
    given = {"mean": 0.85, "low": 0.781, "high": 0.92, "level": 0.9, "held_out": 0.8, "n_held_out": 40.0}
    return AccuracyEstimate(**(given | {"labels_only": 0.7, "gained": 5.0, "lost": 1.0} | changes))


def test_the_estimate_as_a_sentence():
    begins = "Expected accuracy 85.0% (90% interval 78.1% to 92.0%)."
    no_label = "no label could be held out. Label two rows or more of each class."
    assert str(estimated(n_held_out=0.0)) == f"Expected accuracy unknown: {no_label}"
    assert str(estimated(labels_only=np.nan)) == f"{begins} Of 40 held-out labels 80.0% are predicted correctly."
    of_labels = "Of 40 held-out labels 80.0% are predicted correctly, 70.0% by the labels alone:"
    assert str(estimated(gained=8.0)).startswith(f"{begins} {of_labels} the unlabeled rows helped")


def test_random_rows_that_are_too_few_say_nothing():
    said = {"n_random": 7.0, "random_mean": 0.8, "random_low": 0.4}
    assert (
        estimated(**said, random_high=0.9).of_random_rows() == "The 7 labels of random rows say 80.0% (40.0% to 90.0%)."
    )
    assert "say nothing yet (40.0% to 91.0%)" in str(estimated(**said, random_high=0.91))


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


@pytest.fixture(scope="module")
def gaussian():
    return make_multiview_gaussian(230, separation=(1.1, 0.8), labeled=30, random_state=2)


def check_mean(estimate, model, unlabeled):
    """Held-out labels and, as a fixed number of them, the mean largest probability of unlabeled rows."""
    largest, n = model.label_distributions_[unlabeled].max(axis=1).mean(), TUNING.confidence_labels
    mean = (estimate.n_held_out * estimate.held_out + n * largest) / (estimate.n_held_out + n)
    np.testing.assert_allclose(estimate.mean, mean, rtol=1e-6)


def test_the_mean_is_that_of_held_out_labels_and_probabilities(gaussian):
    unlabeled = gaussian.y < 0
    model = CMVMED(views=gaussian.views).fit(gaussian.data, gaussian.y)
    estimate = model.accuracy_estimate()
    check_mean(estimate, model, unlabeled)
    rejects(check_mean, estimate, model, ~unlabeled)
    assert estimate.low < estimate.mean < estimate.high
    assert model.accuracy_estimate(0.5).low > estimate.low
    assert estimate.n_held_out == 30.0
    assert 0.0 < estimate.labels_only <= 1.0


def test_the_consensus_alone_has_no_accuracy_by_the_labels_alone(gaussian):
    estimate = CMVMED(views=gaussian.views, members="consensus").fit(gaussian.data, gaussian.y).accuracy_estimate()
    assert np.isnan(estimate.labels_only)
    assert "by the labels alone" not in str(estimate)


def test_without_unlabeled_rows_held_out_labels_alone_decide(gaussian):
    rows = slice(0, 80)
    estimate = CMVMED(views=gaussian.views).fit(gaussian.data[rows], gaussian.target[rows]).accuracy_estimate()
    assert estimate.mean == pytest.approx(estimate.held_out)
    assert 0.6 < estimate.low < estimate.mean < estimate.high < 1.0


@pytest.mark.filterwarnings("ignore:The expected accuracy")
def test_groups_are_held_out_together(gaussian):
    """Copies of a row with little noise are one group; held out one by one, they would give each other away."""
    rng = np.random.default_rng(0)
    labeled = np.flatnonzero(gaussian.y >= 0)
    order = np.concatenate([np.repeat(labeled, 5), np.flatnonzero(gaussian.y < 0)])
    X = gaussian.data[order] + 1e-3 * rng.normal(size=(order.size, gaussian.data.shape[1]))
    y = gaussian.y[order].copy()
    flipped = np.isin(order, labeled[::6])
    y[flipped] = 1 - y[flipped]  # which only a copy can know
    model = CMVMED(views=gaussian.views, labels_drawn="per_class")
    alone, grouped = (model.fit(X, y, groups=groups).accuracy_estimate() for groups in (None, order))
    assert alone.held_out > grouped.held_out + 0.1


def test_the_estimate_from_chosen_rows_is_that_of_the_probabilities(gaussian):
    """With labels drawn per class the predictions are the same."""
    unlabeled = gaussian.y < 0
    chosen, per_class = (
        CMVMED(views=gaussian.views, labels_drawn=drawn).fit(gaussian.data, gaussian.y)
        for drawn in ("chosen", "per_class")
    )
    np.testing.assert_array_equal(chosen.label_distributions_, per_class.label_distributions_)
    largest = chosen.label_distributions_[unlabeled].max(axis=1).mean()
    assert chosen.accuracy_estimate().mean == pytest.approx(largest)
    check_mean(per_class.accuracy_estimate(), per_class, unlabeled)


@pytest.mark.parametrize(
    "make",
    [lambda **given: CMVMED(members=None, **given), lambda **given: CMVMED.paper(algorithm="printed", **given)],
)
def test_no_accuracy_estimate_without_held_out_labels(gaussian, make):
    model = make(views=gaussian.views, n_stages=2).fit(gaussian.data, gaussian.y)
    with pytest.raises(ValueError, match="members"):
        model.accuracy_estimate()


def test_bad_settings_are_named_in_errors(gaussian):
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


def grouped(hits, n_labels):
    """Which labels are hits, and their groups, for the hits of each group among its labels."""
    groups = np.repeat(np.arange(len(hits)), n_labels)
    return np.concatenate([np.arange(n_labels) < count for count in hits]), groups, np.ones(groups.size)


def check_independent(right, groups, weights):
    """The labels count in full, as they do in a binomial distribution."""
    assert labels_between_groups(right, groups, weights) == pytest.approx(groups.size, rel=0.02)


def test_labels_of_groups_of_their_own_count_in_full():
    right, groups, weights = grouped([1] * 30 + [0] * 12, 1)
    check_independent(right, groups, weights)
    rejects(check_independent, right, groups // 7, weights)
    no_weight = np.append(weights, 0.0)  # a label that was not held out, of one more group
    assert labels_between_groups(np.append(right, False), np.append(groups, 99), no_weight) == pytest.approx(
        labels_between_groups(right, groups, weights)
    )


def test_groups_that_differ_or_are_few_count_as_fewer_labels():
    alike, unlike, few = (labels_between_groups(*grouped(*given)) for given in ALIKE_UNLIKE_FEW)
    assert few < unlike < alike < 200.0
    assert unlike < 60.0  # ten groups of 20 labels
    assert few < 12.0  # two groups of 20 labels
    assert labels_between_groups(*grouped([9] * 10, 10)) < labels_between_groups(*grouped([90] * 10, 100))
    assert labels_between_groups(*grouped([3, 4], 5)[:2], np.zeros(10)) == 0.0


ALIKE_UNLIKE_FEW = [([16] * 10, 20), ([8, 20] * 5, 20), ([16] * 2, 20)]


def new_group_coverage(count):
    """Share of draws whose interval, of a share seen in so many rows, holds the mean accuracy of all groups."""
    rng, held = np.random.default_rng(3), []
    for _ in range(200):
        right, groups, weights = grouped(rng.binomial(15, rng.beta(7.2, 1.8, size=8)), 15)
        found = accuracy(hits=right.mean(), labels_only=np.nan, confidence_labels=0.0, interval_labels=(1.0, 0.0))
        found = replace(found, n_held_out=120.0, group_labels=count(right, groups, weights))
        estimate = found.estimate(0.9)
        held.append(estimate.low <= 0.8 <= estimate.high)
    return np.mean(held)


def check_new_group_coverage(count):
    assert 0.85 <= new_group_coverage(count) <= 0.97


def test_intervals_cover_the_accuracy_of_new_groups():
    check_new_group_coverage(labels_between_groups)
    rejects(check_new_group_coverage, lambda right, groups, weights: 120.0)


def test_what_unlabeled_rows_of_the_same_groups_add_is_not_expected_of_new_groups():
    log_p, worse, codes, w = draw_predictions()
    groups = np.arange(codes.size) % 8
    found = held_out_accuracy(log_p, worse, codes, w, 0.7, TUNING, groups=groups)
    assert found.n_groups == 8
    assert found.largest == pytest.approx(np.average(np.exp(log_p).max(axis=1), weights=w))
    n = found.confidence_labels
    expected = (found.n_held_out * found.labels_only + n * found.largest) / (found.n_held_out + n)
    assert found.labels_only < found.hits
    assert found.estimate(0.9).mean == pytest.approx(expected)
    assert found.estimate(0.9).held_out == found.hits
    chosen = held_out_accuracy(log_p, worse, codes, w, 0.7, TUNING, chosen=True, groups=groups)
    assert chosen.estimate(0.9).mean == pytest.approx(0.7)


def test_an_accuracy_that_is_not_known_is_not_stated():
    for low, n_held_out, is_known in [(0.42, 40.0, True), (0.41, 40.0, False), (0.781, 0.0, False)]:
        estimate = estimated(low=low, n_held_out=n_held_out)
        assert estimate.is_known is is_known
        assert ("85.0%" in str(estimate)) is is_known
        assert str(estimate).startswith("Expected accuracy unknown") is not is_known
    assert "(90% interval 41.0% to 92.0%). Label more rows." in str(estimated(low=0.41))


def test_new_groups_are_named_and_few_of_them_are_said_to_widen_the_interval():
    begins = "Expected accuracy on rows of new groups 85.0% (90% interval 78.1% to 92.0%). "
    assert str(estimated(n_groups=5)).startswith(f"{begins}Of 40 held-out")
    few = "The interval is wide because only 4 groups have labels: label rows of more groups."
    assert str(estimated(n_groups=4)).startswith(f"{begins}{few} Of 40 held-out")
    assert few in str(estimated(n_groups=4, low=0.2))
    assert str(estimated(n_groups=2, n_held_out=0.0)).endswith("of each class, in two groups or more.")


def test_the_estimate_of_a_fit_with_groups_is_one_for_new_groups(gaussian):
    model = CMVMED(views=gaussian.views)
    alone, by_group = (model.fit(gaussian.data, gaussian.y, groups=g).accuracy_estimate() for g in GROUPS)
    assert (alone.n_groups, by_group.n_groups) == (0, 6)
    assert width(by_group) > width(alone)


GROUPS = (None, np.arange(230) % 6)


def test_labels_are_counted_as_they_were_drawn():
    """Weights that balance the classes give shares; whole labels are what is said of them."""
    log_p = np.log(np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]))
    alone = log_p[:, ::-1]
    codes, weights = np.array([0, 0, 1, 1]), np.array([0.5, 0.7, 1.2, 0.0])
    found = held_out_accuracy(log_p, alone, codes, weights, 0.7, TUNING, drawn=np.ones(4))
    assert (found.n_held_out, found.gained, found.lost) == (3.0, 3.0, 0.0)
    assert held_out_accuracy(log_p, alone, codes, weights, 0.7, TUNING).n_held_out == pytest.approx(2.4)
