"""From settings to a plan: every automatic choice is made once, and given values are used as given."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from cmvmed.auto.neighbors import NeighborEvidence

from cmvmed.auto.class_prior import ShareEstimate, empirical_bayes_share, label_share, share_estimate
from cmvmed.auto.consensus_weight import agreement_weights, auto_consensus_weight, mean_agreement
from cmvmed.auto.plan import PlanSettings, choose_plan, with_anchors
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import supervised_start
from cmvmed.core.surrogates import Bohning, Jaakkola, Newton
from tests.auto.factories import draw_training
from tests.core.factories import rejects

TUNING = Tuning()
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


def neighbors_of(training, weight=0.6):
    """The graph of nearest rows with this weight."""
    return NeighborEvidence(training.nodes(), weight)


def chosen_plan(training, settings, tuning=TUNING, **evidence):
    return choose_plan(training.problem, training.views, training.data, settings, tuning, **evidence)


def plan_of(training, settings, tuning=TUNING, **evidence):
    return chosen_plan(training, settings, tuning, **evidence).plan


@pytest.fixture(scope="module")
def gaussian():
    return training_of()


@pytest.fixture(scope="module")
def clustered():
    return training_of(clusters=True)


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
@pytest.mark.parametrize(("n_classes", "with_neighbors"), [(2, False), (2, True), (3, False), (3, True)])
def test_every_automatic_choice_is_decided(n_classes, with_neighbors, surrogate):
    training = training_of(n_classes, clusters=with_neighbors, shared_curvature=surrogate.shared_curvature)
    neighbors = neighbors_of(training) if with_neighbors else None
    plan = plan_of(training, replace(AUTOMATIC, surrogate=surrogate), neighbors=neighbors)
    check_decided(plan)
    assert plan.surrogate is surrogate
    assert plan.problem.n_views == 3 + with_neighbors
    np.testing.assert_array_equal(plan.shares, plan.class_prior)


def test_check_rejects_undecided_plans(gaussian):
    plan = plan_of(gaussian, AUTOMATIC)
    rejects(check_decided, replace(plan, schedule=replace(plan.schedule, consensus_weight="auto")))
    rejects(check_decided, replace(plan, schedule=replace(plan.schedule, consensus_weight=None)))
    rejects(check_decided, replace(plan, class_prior="labels"))


def test_given_values_are_used_as_given(gaussian):
    chosen = chosen_plan(gaussian, GIVEN, inferred=np.array([0.5, 0.5]))
    plan = chosen.plan
    assert chosen.anchors is None
    assert plan.chosen == frozenset()
    assert plan.problem is gaussian.problem
    assert plan.surrogate is GIVEN.surrogate
    assert plan.schedule == GIVEN.schedule(0.37)
    np.testing.assert_array_equal(plan.view_weights, GIVEN.view_weights)
    np.testing.assert_array_equal(plan.class_prior, GIVEN.class_prior)
    np.testing.assert_array_equal(plan.shares, GIVEN.class_prior)


def test_neighbors_get_their_weight_beside_a_given_consensus_weight(gaussian):
    plan = plan_of(gaussian, GIVEN, neighbors=neighbors_of(gaussian, 0.4))
    np.testing.assert_allclose(plan.view_weights, [*(0.6 * GIVEN.view_weights), 0.4], rtol=1e-14)
    assert plan.schedule.consensus_weight == 0.37


def test_neighbors_lower_an_automatic_consensus_weight(clustered):
    tuning = replace(TUNING, neighbor_consensus_weight=0.07)
    before = plan_of(clustered, AUTOMATIC, tuning).schedule.consensus_weight
    with_neighbors = plan_of(clustered, AUTOMATIC, tuning, neighbors=neighbors_of(clustered, 0.6))
    assert with_neighbors.schedule.consensus_weight == pytest.approx(0.4 * before + 0.6 * 0.07, rel=1e-12)


def test_class_prior_of_labels_and_none(gaussian):
    counts, inferred = gaussian.partition.counts, np.array([0.5, 0.5])
    by_labels = plan_of(gaussian, replace(GIVEN, class_prior="labels"), inferred=inferred)
    np.testing.assert_array_equal(by_labels.shares, label_share(counts))
    without = plan_of(gaussian, replace(GIVEN, class_prior=None), inferred=inferred)
    assert without.shares is None
    np.testing.assert_array_equal(without.class_prior, label_share(counts))


def test_automatic_class_prior_of_many_classes_is_inferred_or_that_of_the_labels():
    training, inferred = training_of(3), np.array([0.5, 0.2, 0.3])
    np.testing.assert_array_equal(plan_of(training, AUTOMATIC).shares, empirical_bayes_share(training.partition.counts))
    np.testing.assert_array_equal(plan_of(training, AUTOMATIC, inferred=inferred).shares, inferred)


def check_two_class_shares(prior, known, anchors, counts):
    """What is known and what anchors say, weighted by their precisions."""
    expected = share_estimate(known, counts).combined(anchors)
    np.testing.assert_allclose(prior, [1.0 - expected, expected], rtol=1e-12)


def test_automatic_class_prior_of_two_classes_is_combined_with_anchors(gaussian):
    counts = gaussian.partition.counts
    for inferred in (None, np.array([0.45, 0.55])):
        known = label_share(counts) if inferred is None else inferred
        chosen = chosen_plan(gaussian, AUTOMATIC, inferred=inferred)
        check_two_class_shares(chosen.plan.shares, known, chosen.anchors, counts)
        rejects(check_two_class_shares, known, known, chosen.anchors, counts)
        rejects(check_two_class_shares, chosen.plan.shares, known[::-1], chosen.anchors, counts)


def test_shares_of_other_fits_are_their_own_with_the_same_anchors(gaussian):
    chosen, own, counts = chosen_plan(gaussian, AUTOMATIC), np.array([0.4, 0.6]), np.array([5.0, 6.0])
    np.testing.assert_array_equal(chosen.shares(own, counts), with_anchors(own, counts, chosen.anchors))
    by_labels = with_anchors(label_share(counts), counts, chosen.anchors)
    np.testing.assert_array_equal(chosen.shares(None, counts), by_labels)
    np.testing.assert_array_equal(replace(chosen, anchors=None).shares(own, counts), own)
    nothing_imposed = replace(chosen, plan=replace(chosen.plan, shares=None))
    assert nothing_imposed.shares(own, counts) is None


def test_shares_of_other_fits_are_not_inferred_if_those_of_the_plan_are_not(gaussian):
    own, counts = np.array([0.5, 0.5]), np.array([5.0, 6.0])
    np.testing.assert_array_equal(chosen_plan(gaussian, GIVEN).shares(own, counts), GIVEN.class_prior)
    by_labels = chosen_plan(gaussian, replace(GIVEN, class_prior="labels"))
    np.testing.assert_array_equal(by_labels.shares(own, counts), label_share(counts))
    assert chosen_plan(gaussian, replace(GIVEN, class_prior=None)).shares(own, counts) is None


def test_anchors_move_shares_as_their_precision_allows():
    shares, counts = np.array([0.6, 0.4]), np.array([6.0, 4.0])
    np.testing.assert_allclose(with_anchors(shares, counts, ShareEstimate(0.9, 1e-12)), [0.1, 0.9], atol=1e-6)
    np.testing.assert_allclose(with_anchors(shares, counts, ShareEstimate(0.9, 1e12)), shares, atol=1e-6)


def test_nothing_is_imposed_if_less_than_one_row_of_the_rarest_class_is_expected(gaussian):
    for share, imposed in ((0.005, False), (0.01, True)):  # of 120 rows
        plan = plan_of(gaussian, replace(GIVEN, class_prior=np.array([1.0 - share, share])))
        assert (plan.shares is not None) == imposed


def test_automatic_weights_are_those_of_the_agreement(gaussian):
    plan = plan_of(gaussian, AUTOMATIC)
    R = supervised_start(gaussian.problem).agreement
    weights = agreement_weights(R, gaussian.problem.known_views, TUNING)
    np.testing.assert_array_equal(plan.view_weights, weights)
    assert plan.schedule.consensus_weight == auto_consensus_weight(mean_agreement(R, weights), TUNING)
    assert plan.chosen == {"consensus_weight"}


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
@pytest.mark.parametrize("with_neighbors", [False, True])
def test_the_start_and_its_agreement_are_computed_once(clustered, with_neighbors, settings, monkeypatch):
    starts = counted(monkeypatch, "cmvmed.auto.plan.supervised_start")
    agreements = counted(monkeypatch, "cmvmed.core.annealing.agreement")
    plan_of(clustered, settings, neighbors=neighbors_of(clustered) if with_neighbors else None)
    assert (len(starts), len(agreements)) == (1, 1)
