"""The share of a class from cross-view anchors: they correct few and biased labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from cmvmed.auto.anchors import anchor_estimate, anchor_evidence, anchor_views, infer_share
from cmvmed.auto.class_prior import ShareEstimate, label_interval, label_share, share_estimate
from cmvmed.auto.tuning import Tuning
from tests.core.factories import SCHEDULE, draw_problem, make_plan, rejects

TUNING = Tuning()


def independent_scores(seed, share, *, n_rows=600, separation=1.5, n_views=2):
    """Scores of views that are independent given the class, and the share of the second class that was drawn."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=n_rows) < share, 1.0, -1.0)
    return [separation * y + rng.normal(size=n_rows) for _ in range(n_views)], float((y > 0.0).mean())


def by_counts(counts, evaluate, tuning=TUNING):
    """The share inferred from anchors and from the counts of the labels."""
    labels = share_estimate(label_share(counts), counts)
    anchors = infer_share(counts, labels, evaluate, tuning)
    return labels.mean if anchors is None else labels.combined(anchors)


def read_anchors(scores, rows, mass, share):
    return anchor_estimate(scores, rows, mass, share, TUNING)


def estimate(scores, counts, *, mass=None, rows=None):
    """The share inferred if the views' scores do not depend on the share that is imposed."""
    n_rows = scores[0].size
    rows = [np.arange(n_rows)] * len(scores) if rows is None else rows
    mass = np.ones(n_rows) if mass is None else mass
    return by_counts(np.array(counts, dtype=float), lambda share: read_anchors(scores, rows, mass, share))


def on_a_line(constant, slope, variance=1e-4):
    """A function that observes constant + slope × share, and the list of shares that it was called with."""
    imposed = []

    def evaluate(share):
        imposed.append(share)
        return ShareEstimate(constant + slope * share, variance)

    return evaluate, imposed


def check_weighted_by_precision(share_of):
    """Labels at their Beta moments, the fixed point c/(1 - b) at precision (1 - b)²/v."""
    counts, constant, slope, variance = np.array([12.0, 3.0]), 0.14, 0.3, 1e-3
    labels = beta(3.5, 12.5)
    precisions = np.array([1.0 / labels.var(), (1.0 - slope) ** 2 / variance])
    truth = precisions @ [labels.mean(), constant / (1.0 - slope)] / precisions.sum()
    np.testing.assert_allclose(share_of(counts, on_a_line(constant, slope, variance)[0]), truth, rtol=1e-9)


def test_labels_and_fixed_point_are_weighted_by_their_precision():
    check_weighted_by_precision(by_counts)
    rejects(check_weighted_by_precision, lambda counts, evaluate: label_share(counts)[1])
    rejects(check_weighted_by_precision, lambda counts, evaluate: evaluate(float(label_share(counts)[1])).mean)
    rejects(check_weighted_by_precision, lambda counts, evaluate: by_counts(counts[::-1], evaluate))


def test_search_starts_at_the_plausible_share_nearest_to_equal_classes():
    for counts in ([12.0, 3.0], [3.0, 12.0], [6.0, 5.0]):
        evaluate, imposed = on_a_line(0.14, 0.3)
        by_counts(np.array(counts), evaluate)
        lower, upper = label_interval(np.array(counts), TUNING.interval_level)
        assert imposed[0] == pytest.approx(np.clip(0.5, lower[1], upper[1]))
    assert imposed[0] == 0.5


@pytest.mark.parametrize(("constant", "slope"), [(0.0, 1.0), (0.03, 1.0), (0.2, 0.9)])
def test_anchors_that_follow_the_imposed_share_or_move_beyond_equal_classes_are_ignored(constant, slope):
    counts = np.array([43.0, 7.0])
    evaluate, imposed = on_a_line(constant, slope)
    assert by_counts(counts, evaluate) == pytest.approx(label_share(counts)[1], abs=1e-12)
    # an observed share that equals the imposed one needs a second evaluation, which gives the slope
    assert len(imposed) == (2 if constant == 0.0 else 1)


def test_steep_observations_have_little_weight():
    counts = np.array([43.0, 7.0])
    moved = by_counts(counts, on_a_line(0.002, 0.85, 1e-3)[0])
    assert 0.0 < label_share(counts)[1] - moved < 0.01
    assert label_share(counts)[1] - by_counts(counts, on_a_line(0.04, 0.0, 1e-3)[0]) > 0.05


def test_at_most_three_evaluations_and_none_after_a_missing_estimate():
    evaluate, imposed = on_a_line(0.14, 0.3)
    by_counts(np.array([12.0, 3.0]), evaluate)
    assert len(imposed) <= 3
    by_counts(np.array([12.0, 3.0]), evaluate, replace(TUNING, max_evaluations=1))
    assert len(imposed) <= 4
    estimates = iter([ShareEstimate(0.2, 1e-3), None])
    assert by_counts(np.array([12.0, 3.0]), lambda share: next(estimates)) == pytest.approx(3.5 / 16.0)


def test_a_share_observed_as_imposed_is_compared_with_that_of_the_labels():
    counts, variance = np.array([30.0, 20.0]), 1e-3
    evaluate, imposed = on_a_line(0.25, 0.5, variance)  # a(½) = ½
    labels = beta(20.5, 30.5)
    precisions = np.array([1.0 / labels.var(), 0.25 / variance])
    expected = precisions @ [labels.mean(), 0.5] / precisions.sum()
    assert by_counts(counts, evaluate) == pytest.approx(expected, rel=1e-9)
    assert imposed[:2] == [0.5, pytest.approx(labels.mean())]


BIASED_LABELS = [
    (0.4, (8, 2), 0.045),
    (0.6, (2, 8), 0.045),
    (0.4, (5, 5), 0.045),
    (0.75, (5, 5), 0.06),
]


def check_recovers_the_share(share_of, share, counts, atol):
    """The estimate is within ``atol`` of the truth and has at most 60 % of the labels' error, on each of six draws."""
    for seed in range(6):
        scores, truth = independent_scores(seed, share)
        error = abs(share_of(scores, counts) - truth)
        assert error < atol
        assert error < 0.6 * abs(float(label_share(np.array(counts, dtype=float))[1]) - truth)


@pytest.mark.parametrize(("share", "counts", "atol"), BIASED_LABELS)
def test_anchors_recover_the_share_behind_few_and_biased_labels(share, counts, atol):
    check_recovers_the_share(estimate, share, counts, atol)

    def same_view_twice(scores, counts):
        return estimate([scores[0], scores[0]], counts)

    def anchors_swapped(scores, counts):
        return estimate([scores[0], -scores[1]], counts)

    def other_class(scores, counts):
        return 1.0 - estimate(scores, counts)

    for broken in (same_view_twice, anchors_swapped, other_class):
        rejects(check_recovers_the_share, broken, share, counts, atol)


def test_anchor_estimate_does_not_depend_on_scale_or_location_of_scores():
    scores, _ = independent_scores(0, 0.4)
    moved = [1e6 * scores[0] + 5.0, 1e-6 * scores[1] - 3.0]
    np.testing.assert_allclose(estimate(moved, (8, 2)), estimate(scores, (8, 2)), rtol=1e-6)


def test_anchor_estimate_of_the_other_class_is_the_complement():
    scores, _ = independent_scores(1, 0.4)
    flipped = estimate([-score for score in scores], (2, 8))
    np.testing.assert_allclose(flipped, 1.0 - estimate(scores, (8, 2)), rtol=0.0, atol=1e-3)


def test_many_labels_outweigh_the_anchors_and_without_anchors_the_labels_decide():
    scores, _ = independent_scores(0, 0.4)
    np.testing.assert_allclose(estimate(scores, (80000, 20000)), 0.2, rtol=0.0, atol=5e-3)
    alone = estimate(scores[:1], (8, 2))
    np.testing.assert_allclose(alone, 2.5 / 11.0, rtol=1e-12)
    rows = [np.arange(300), np.arange(295, 595)]
    few_common_rows = estimate([score[:300] for score in scores], (8, 2), mass=np.ones(600), rows=rows)
    np.testing.assert_allclose(few_common_rows, 2.5 / 11.0, rtol=1e-12)


def test_constant_or_uninformative_scores_change_little():
    rng = np.random.default_rng(3)
    flat = estimate([np.ones(100), np.ones(100)], (8, 2))
    assert abs(flat - 0.22) < 0.02
    noise = estimate([rng.normal(size=300), rng.normal(size=300)], (8, 2))
    assert 0.0 < noise < 1.0


def check_order_and_weights(anchors_of):
    """The order of rows does not matter, and a row of weight two counts like two rows."""
    scores, _ = independent_scores(0, 0.4, n_rows=200)
    rows, ones, twice = [np.arange(200)] * 2, np.ones(200), 1.0 + (np.arange(200) < 60)
    order = np.random.default_rng(1).permutation(200)
    plain, moved = anchors_of(scores, rows, ones, 0.3), anchors_of([s[order] for s in scores], rows, ones, 0.3)
    weighted = anchors_of(scores, rows, twice, 0.3)
    repeated = anchors_of([np.concatenate([s, s[:60]]) for s in scores], [np.arange(260)] * 2, np.ones(260), 0.3)
    for one, other in ((plain, moved), (weighted, repeated)):
        np.testing.assert_allclose((one.mean, one.variance), (other.mean, other.variance), rtol=0.02)
    assert abs(plain.mean - weighted.mean) + abs(plain.variance - weighted.variance) > 1e-5


def test_order_does_not_matter_and_a_weight_counts_rows():
    check_order_and_weights(read_anchors)

    def by_position(scores, rows, mass, share):
        anchors = read_anchors(scores, rows, mass, share)
        return ShareEstimate(anchors.mean + 0.1 * scores[0][0], anchors.variance)

    def weightless(scores, rows, mass, share):
        anchors = read_anchors(scores, rows, mass, share)
        return ShareEstimate(anchors.mean, anchors.variance * mass.size)

    rejects(check_order_and_weights, by_position)
    rejects(check_order_and_weights, weightless)


def check_variance(anchors_of):
    """The mean stated variance is that over new draws of the rows, within a factor of 1.5."""
    draws = []
    for seed in range(200):
        scores, _ = independent_scores(seed, 0.4, n_rows=400)
        draws.append(anchors_of(scores, [np.arange(400)] * 2, np.ones(400), 0.4))
    stated = np.mean([anchors.variance for anchors in draws]) - TUNING.anchor_model_sd**2
    observed = np.var([anchors.mean for anchors in draws])
    assert 1.0 / 1.5 < stated / observed < 1.5


def test_the_variance_of_anchors_is_that_of_new_draws():
    check_variance(read_anchors)
    rejects(check_variance, lambda *given: replace(read_anchors(*given), variance=TUNING.anchor_model_sd**2))


def test_rows_of_larger_weight_count_more():
    scores, _ = independent_scores(0, 0.4)
    more_of_second = np.where(scores[0] + scores[1] > 0.0, 4.0, 1.0)
    assert estimate(scores, (8, 2), mass=more_of_second) > estimate(scores, (8, 2)) + 0.1


def test_anchor_views_are_sensors_with_weight_and_enough_rows():
    problem, _ = draw_problem(0, n_views=4, n_unlabeled=24)
    problem = replace(problem, rows_U=(*problem.rows_U[:2], problem.rows_U[2][:19], problem.rows_U[3]))
    plan = replace(
        make_plan(draw_problem(0, n_views=4)[0]), problem=problem, view_weights=np.array([0.4, 0.0, 0.3, 0.3])
    )
    assert anchor_views(plan, 4, TUNING) == [0, 3]
    assert anchor_views(plan, 3, TUNING) == [0]
    assert anchor_views(plan, 4, replace(TUNING, min_anchor_rows=19)) == [0, 2, 3]


def test_without_two_anchor_views_or_consensus_weight_there_is_no_evidence():
    problem, _ = draw_problem(1, n_unlabeled=60)
    counts = np.array([6.0, 6.0])
    known = share_estimate(label_share(counts), counts)
    plan = make_plan(problem, replace(SCHEDULE, consensus_weight=0.5))
    with_anchors = anchor_evidence(plan, 2, counts, known, TUNING)
    assert abs(with_anchors.mean - known.mean) > 1e-4
    assert with_anchors.variance > TUNING.anchor_model_sd**2
    assert anchor_evidence(plan, 1, counts, known, TUNING) is None
    without_weight = replace(plan, schedule=replace(SCHEDULE, consensus_weight=0.0))
    assert anchor_evidence(without_weight, 2, counts, known, TUNING) is None
