"""From settings to a plan: every automatic choice is made once, and given values are used as given."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

from cmvmed.auto.agreement import agreement_weights, auto_consensus_weight, mean_agreement
from cmvmed.auto.class_prior import empirical_bayes_share, label_share
from cmvmed.auto.plan import PlanSettings, choose_plan
from cmvmed.auto.tuning import Tuning
from cmvmed.core.annealing import supervised_start
from cmvmed.core.problem import Problem, RowPartition, build_problem, partition_rows
from cmvmed.core.surrogates import Bohning, Jaakkola, Newton
from cmvmed.data.view_data import ViewData, ViewSettings, read_view
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
    n_neighbors="auto",
)
GIVEN = replace(
    AUTOMATIC,
    consensus_weight=0.37,
    class_prior=np.array([0.3, 0.7]),
    view_weights=np.array([0.2, 0.5, 0.3]),
    n_neighbors=None,
)


@dataclass(frozen=True)
class Training:
    """What a plan is chosen for."""

    problem: Problem
    views: list[ViewData]
    partition: RowPartition
    codes: np.ndarray  # (n_L,)

    def plan(self, settings, tuning=TUNING):
        return choose_plan(self.problem, self.views, self.partition, self.codes, settings, tuning)


def draw_training(seed=0, *, n_classes=2, n_labeled=15, n_unlabeled=120, clusters=False, surrogate=None):
    """Three views of Gaussian classes, or of classes of three distant clusters each."""
    rng = np.random.default_rng(seed)
    n = n_labeled + n_unlabeled
    groups = rng.integers(3 * n_classes if clusters else n_classes, size=n)
    classes = groups % n_classes
    classes[:n_classes] = groups[:n_classes] = np.arange(n_classes)
    distance = 6.0 if clusters else 1.0
    matrices = [distance * rng.normal(size=(groups.max() + 1, 3))[groups] + rng.normal(size=(n, 3)) for _ in range(3)]
    codes, ones, present = np.where(np.arange(n) < n_labeled, classes, -1), np.ones(n), np.full(n, True)
    partition = partition_rows(codes, n_classes, [present] * 3, ones, np.where(codes >= 0, 1.0, 0.0))
    views = []
    for i, matrix in enumerate(matrices):
        settings = ViewSettings(f"view{i}", "rbf", "median", None, 2.0, 1.0, 0.1, 2.0, 0.25, 1000, 2000)
        views.append(read_view(settings, matrix, present, partition.block_L, partition.block_U, ones, rng))
    one_hot = classes[:n_labeled, None] == np.arange(n_classes)
    Y = np.where(one_hot[:, 1:] if n_classes == 2 else one_hot, 1.0, -1.0)
    shared = (Bohning() if surrogate is None else surrogate).shared_curvature
    problem = build_problem(views, partition, Y, n_classes, shared_curvature=shared)
    return Training(problem, views, partition, codes[:n_labeled])


@pytest.fixture(scope="module")
def gaussian():
    return draw_training()


@pytest.fixture(scope="module")
def clustered():
    return draw_training(clusters=True)


def check_decided(plan):
    """No field is a text, and only the class balance may be None."""
    for part in (plan, plan.schedule):
        for field in fields(part):
            value = getattr(part, field.name)
            assert not isinstance(value, str), field.name
            assert value is not None or field.name == "balance", field.name
    assert isinstance(plan.schedule.consensus_weight, float)
    for values, size in ((plan.view_weights, plan.problem.n_views), (plan.class_prior, plan.problem.n_classes)):
        assert values.shape == (size,)
        assert values.dtype == np.float64
        assert values.sum() == pytest.approx(1.0, abs=1e-12)
    assert len(plan.start.states) == plan.problem.n_views


@pytest.mark.parametrize("surrogate", [Bohning(), Jaakkola(), Newton()])
@pytest.mark.parametrize(("n_classes", "clusters"), [(2, False), (2, True), (3, False), (3, True)])
def test_every_automatic_choice_is_decided(n_classes, clusters, surrogate):
    training = draw_training(n_classes=n_classes, clusters=clusters, surrogate=surrogate)
    plan, graph = training.plan(replace(AUTOMATIC, surrogate=surrogate))
    check_decided(plan)
    assert plan.surrogate is surrogate
    assert (graph is not None) == (plan.problem.n_views == 4) == clusters
    np.testing.assert_array_equal(plan.balance.prior, plan.class_prior)


def test_check_rejects_undecided_plans(gaussian):
    plan, _ = gaussian.plan(AUTOMATIC)
    rejects(check_decided, replace(plan, schedule=replace(plan.schedule, consensus_weight="auto")))
    rejects(check_decided, replace(plan, schedule=replace(plan.schedule, consensus_weight=None)))
    rejects(check_decided, replace(plan, class_prior="labels"))


def test_given_values_are_used_as_given(gaussian):
    plan, graph = gaussian.plan(GIVEN)
    assert graph is None
    assert plan.chosen == frozenset()
    assert plan.problem is gaussian.problem
    assert plan.surrogate is GIVEN.surrogate
    assert plan.schedule == GIVEN.schedule(0.37)
    np.testing.assert_array_equal(plan.view_weights, GIVEN.view_weights)
    np.testing.assert_array_equal(plan.class_prior, GIVEN.class_prior)
    np.testing.assert_array_equal(plan.balance.prior, GIVEN.class_prior)
    assert plan.balance.constrained_stages is None


def test_a_given_number_of_neighbors_gets_its_full_weight_beside_a_given_consensus_weight(gaussian):
    plan, graph = gaussian.plan(replace(GIVEN, n_neighbors=7))
    assert graph.n_neighbors == 7
    share = TUNING.neighbor_weight
    np.testing.assert_allclose(plan.view_weights, [*((1.0 - share) * GIVEN.view_weights), share], rtol=1e-14)
    assert plan.schedule.consensus_weight == 0.37


def test_class_prior_of_labels_and_none(gaussian):
    counts = gaussian.partition.counts
    by_labels, _ = gaussian.plan(replace(GIVEN, class_prior="labels"))
    np.testing.assert_array_equal(by_labels.balance.prior, label_share(counts))
    without, _ = gaussian.plan(replace(GIVEN, class_prior=None))
    assert without.balance is None
    np.testing.assert_array_equal(without.class_prior, label_share(counts))


def test_automatic_class_prior_of_many_classes_is_relaxed():
    training = draw_training(n_classes=3)
    plan, _ = training.plan(AUTOMATIC)
    np.testing.assert_array_equal(plan.class_prior, empirical_bayes_share(training.partition.counts))
    assert plan.balance.constrained_stages == 2


def test_nothing_is_imposed_if_less_than_one_row_of_the_rarest_class_is_expected(gaussian):
    for share, imposed in ((0.005, False), (0.01, True)):  # of 120 rows
        plan, _ = gaussian.plan(replace(GIVEN, class_prior=np.array([1.0 - share, share])))
        assert (plan.balance is not None) == imposed


def test_automatic_weights_are_those_of_the_agreement(gaussian):
    plan, _ = gaussian.plan(replace(AUTOMATIC, n_neighbors=None))
    R = supervised_start(gaussian.problem).agreement
    weights = agreement_weights(R, gaussian.problem.known_views, TUNING)
    np.testing.assert_array_equal(plan.view_weights, weights)
    assert plan.schedule.consensus_weight == auto_consensus_weight(mean_agreement(R, weights), TUNING)
    assert plan.chosen == {"consensus_weight"}


def test_neighbors_of_full_weight_replace_the_automatic_consensus_weight(clustered):
    settings = replace(AUTOMATIC, n_neighbors=5)
    plan, _ = clustered.plan(settings, replace(TUNING, neighbor_consensus_weight=0.07))
    assert plan.schedule.consensus_weight == pytest.approx(0.07, rel=1e-12)


def test_tuning_is_taken_from_the_argument(gaussian):
    halved = replace(TUNING, consensus_weight=0.5 * TUNING.consensus_weight)
    lams = [gaussian.plan(AUTOMATIC, tuning)[0].schedule.consensus_weight for tuning in (TUNING, halved)]
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


@pytest.mark.parametrize("settings", [AUTOMATIC, GIVEN, replace(GIVEN, n_neighbors=5)])
@pytest.mark.parametrize("clusters", [False, True])
def test_the_start_and_its_agreement_are_computed_once(clusters, settings, monkeypatch):
    training = draw_training(clusters=clusters)
    starts = counted(monkeypatch, "cmvmed.auto.plan.supervised_start")
    agreements = counted(monkeypatch, "cmvmed.core.annealing.agreement")
    training.plan(settings)
    assert (len(starts), len(agreements)) == (1, 1)
