"""From settings to a plan: every automatic choice is made once, and given values are used as given."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from cmvmed.auto.class_prior import ShareBounds, empirical_bayes_share, label_share
from cmvmed.auto.consensus_weight import agreement_weights, auto_consensus_weight, mean_agreement
from cmvmed.auto.plan import PlanSettings, choose_plan
from cmvmed.core.annealing import supervised_start
from cmvmed.core.surrogates import Bohning, Jaakkola, Newton
from tests.auto.factories import TUNING, draw_training
from tests.core.factories import rejects

AUTOMATIC = PlanSettings(
    surrogate=Bohning(),
    consensus_weight="auto",
    temperature=0.2,
    n_stages=4,
    max_iter=30,
    tol=1e-3,
    class_prior="auto",
    view_weights="agreement",
)
GIVEN = replace(
    AUTOMATIC,
    consensus_weight=0.37,
    class_prior=np.array([0.3, 0.7]),
    view_weights=np.array([0.2, 0.5, 0.3]),
)


def training_of(n_classes=2, **drawn):
    return draw_training(n_classes=n_classes, n_views=3, n_unlabeled=120, **drawn)


def chosen_plan(training, settings, tuning=TUNING, inferred=None):
    return choose_plan(training.problem, training.data, settings, tuning, inferred)


def plan_of(training, settings, tuning=TUNING, inferred=None):
    return chosen_plan(training, settings, tuning, inferred).plan


@pytest.fixture(scope="module")
def gaussian():
    return training_of()


def check_decided(plan):
    """No field is a text, and only the imposed shares may be None."""
    for part in (plan, plan.schedule):
        for field in fields(part):
            value = getattr(part, field.name)
            assert not isinstance(value, str), field.name
            assert value is not None or field.name == "shares", field.name
    assert isinstance(plan.schedule.consensus_weight, float)
    for values, size in ((plan.view_weights, plan.problem.n_views), (plan.class_prior, plan.problem.n_classes)):
        assert values.shape == (size,)
        assert values.dtype == np.float64
        assert values.sum() == pytest.approx(1.0, abs=1e-12)
    assert len(plan.start.states) == plan.problem.n_views


@pytest.mark.parametrize("surrogate", [Bohning(), Jaakkola(), Newton()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_automatic_choice_is_decided(n_classes, surrogate):
    training = training_of(n_classes, shared_curvature=surrogate.shared_curvature)
    plan = plan_of(training, replace(AUTOMATIC, surrogate=surrogate))
    check_decided(plan)
    assert plan.surrogate is surrogate
    np.testing.assert_array_equal(plan.shares, plan.class_prior)


def test_check_rejects_undecided_plans(gaussian):
    plan = plan_of(gaussian, AUTOMATIC)
    rejects(check_decided, replace(plan, schedule=replace(plan.schedule, consensus_weight="auto")))
    rejects(check_decided, replace(plan, schedule=replace(plan.schedule, consensus_weight=None)))
    rejects(check_decided, replace(plan, class_prior="labels"))


def test_given_values_are_used_as_given(gaussian):
    plan = plan_of(gaussian, GIVEN, inferred=np.array([0.5, 0.5]))
    assert plan.problem is gaussian.problem
    assert plan.surrogate is GIVEN.surrogate
    assert plan.schedule == GIVEN.schedule(0.37)
    np.testing.assert_array_equal(plan.view_weights, GIVEN.view_weights)
    np.testing.assert_array_equal(plan.class_prior, GIVEN.class_prior)
    np.testing.assert_array_equal(plan.shares, GIVEN.class_prior)


def test_class_prior_of_labels_and_none(gaussian):
    counts, inferred = gaussian.partition.counts, np.array([0.5, 0.5])
    by_labels = plan_of(gaussian, replace(GIVEN, class_prior="labels"), inferred=inferred)
    np.testing.assert_array_equal(by_labels.shares, label_share(counts))
    without = plan_of(gaussian, replace(GIVEN, class_prior=None), inferred=inferred)
    assert without.shares is None
    np.testing.assert_array_equal(without.class_prior, label_share(counts))


@pytest.mark.parametrize("inferred", [np.array([0.4, 0.6]), np.array([0.5, 0.2, 0.3])])
def test_an_automatic_class_prior_is_inferred_or_that_of_the_labels(inferred):
    training = training_of(inferred.size)
    np.testing.assert_array_equal(plan_of(training, AUTOMATIC).shares, empirical_bayes_share(training.partition.counts))
    np.testing.assert_array_equal(plan_of(training, AUTOMATIC, inferred=inferred).shares, inferred)


def test_shares_within_bounds_combine_them_with_what_is_inferred(gaussian):
    """Also those of other fits, and of the labels if nothing else is inferred."""
    counts, bounds = gaussian.partition.counts, ShareBounds(np.array([0.1, 0.65]), np.array([0.35, 0.9]))
    chosen = chosen_plan(gaussian, replace(AUTOMATIC, class_prior=bounds), inferred=np.array([0.2, 0.8]))
    np.testing.assert_array_equal(chosen.plan.shares, bounds.combined(np.array([0.2, 0.8]), counts.sum()))
    for inferred in ([0.5, 0.5], [0.01, 0.99]):
        fewer = bounds.combined(np.array(inferred), 7.0)
        np.testing.assert_array_equal(chosen.shares(np.array(inferred), np.array([3.0, 4.0])), fewer)
    by_labels = chosen_plan(gaussian, replace(AUTOMATIC, class_prior=bounds)).plan
    np.testing.assert_array_equal(by_labels.shares, bounds.combined(empirical_bayes_share(counts), counts.sum()))
    np.testing.assert_array_equal(by_labels.class_prior, by_labels.shares)
    automatic = chosen_plan(gaussian, AUTOMATIC)
    assert chosen.tau(7.0, 3, TUNING) == automatic.tau(7.0, 3, TUNING)


def test_shares_of_other_fits_are_their_own_only_if_those_of_the_plan_are_inferred(gaussian):
    own, counts = np.array([0.4, 0.6]), np.array([5.0, 6.0])
    automatic = chosen_plan(gaussian, AUTOMATIC)
    np.testing.assert_array_equal(automatic.shares(own, counts), own)
    np.testing.assert_array_equal(automatic.shares(None, counts), empirical_bayes_share(counts))
    np.testing.assert_array_equal(chosen_plan(gaussian, GIVEN).shares(own, counts), GIVEN.class_prior)
    by_labels = chosen_plan(gaussian, replace(GIVEN, class_prior="labels"))
    np.testing.assert_array_equal(by_labels.shares(own, counts), label_share(counts))
    assert chosen_plan(gaussian, replace(GIVEN, class_prior=None)).shares(own, counts) is None


def test_only_inferred_shares_are_not_met_exactly(gaussian):
    """Those of few rows, which differ from the shares by chance, less than those of many."""
    tuning, automatic = replace(TUNING, share_offset=7.0), chosen_plan(gaussian, AUTOMATIC)
    assert [automatic.tau(n, 3, tuning) for n in (0.0, 3.0, 1e12)] == pytest.approx([0.0, 10.5, 21.0])
    for class_prior in (GIVEN.class_prior, "labels"):
        assert chosen_plan(gaussian, replace(GIVEN, class_prior=class_prior)).tau(3.0, 3, tuning) == np.inf


def test_given_shares_are_not_imposed_if_less_than_one_row_of_the_rarest_class_is_expected(gaussian):
    for share, imposed in ((0.005, False), (0.01, True)):  # of 120 rows
        rare = np.array([1.0 - share, share])
        assert (plan_of(gaussian, replace(GIVEN, class_prior=rare)).shares is not None) == imposed
        np.testing.assert_array_equal(plan_of(gaussian, AUTOMATIC, inferred=rare).shares, rare)


def test_automatic_weights_are_those_of_the_agreement(gaussian):
    plan = plan_of(gaussian, AUTOMATIC)
    R = supervised_start(gaussian.problem).agreement
    weights = agreement_weights(R, gaussian.problem.known_views)
    np.testing.assert_array_equal(plan.view_weights, weights)
    assert plan.schedule.consensus_weight == auto_consensus_weight(mean_agreement(R, weights), TUNING)


def test_tuning_is_taken_from_the_argument(gaussian):
    halved = replace(TUNING, consensus_weight=0.5 * TUNING.consensus_weight)
    lams = [plan_of(gaussian, AUTOMATIC, tuning).schedule.consensus_weight for tuning in (TUNING, halved)]
    assert lams[1] == pytest.approx(0.5 * lams[0], rel=1e-12)


def counted(monkeypatch, target):
    """Replace a function by one that counts its calls in the returned list."""
    module, _, name = target.rpartition(".")
    original, calls = getattr(__import__(module, fromlist=[name]), name), []

    def call(*args, **named):
        calls.append(name)
        return original(*args, **named)

    monkeypatch.setattr(target, call)
    return calls


@pytest.mark.parametrize("settings", [AUTOMATIC, GIVEN])
def test_the_start_and_its_agreement_are_computed_once(gaussian, settings, monkeypatch):
    starts = counted(monkeypatch, "cmvmed.auto.plan.supervised_start")
    agreements = counted(monkeypatch, "cmvmed.core.annealing.agreement")
    plan_of(gaussian, settings)
    assert (len(starts), len(agreements)) == (1, 1)
