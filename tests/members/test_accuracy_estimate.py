"""The expected accuracy of fitted models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian
from tests.core.factories import rejects


@pytest.fixture(scope="module")
def gaussian():
    return make_multiview_gaussian(230, separation=(1.1, 0.8), labeled=30, random_state=2)


def check_mean(estimate, model, unlabeled):
    """Half the share of held-out labels that are predicted, half the mean largest probability of unlabeled rows."""
    largest = model.label_distributions_[unlabeled].max(axis=1).mean()
    np.testing.assert_allclose(estimate.mean, 0.5 * (estimate.held_out + largest), rtol=1e-6)


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
    """With labels drawn per class the predictions are the same; the interval is wider."""
    chosen, per_class = (
        CMVMED(views=gaussian.views, labels_drawn=drawn).fit(gaussian.data, gaussian.y)
        for drawn in ("chosen", "per_class")
    )
    np.testing.assert_array_equal(chosen.label_distributions_, per_class.label_distributions_)
    unlabeled = chosen.label_distributions_[gaussian.y < 0]
    assert chosen.accuracy_estimate().mean == pytest.approx(unlabeled.max(axis=1).mean())
    assert per_class.accuracy_estimate().mean == pytest.approx(
        0.5 * (unlabeled.max(axis=1).mean() + chosen.accuracy_estimate().held_out)
    )
    widths = [e.high - e.low for e in (chosen.accuracy_estimate(), per_class.accuracy_estimate())]
    assert widths[0] > widths[1]


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
