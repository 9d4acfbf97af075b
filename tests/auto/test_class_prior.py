"""The class prior: label shares, empirical Bayes, and cross-view anchors that see through few and biased labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, dirichlet_multinomial

from cmvmed.auto.class_prior import (
    ANCHOR_MODEL_SD,
    AnchorEstimate,
    counted_share,
    empirical_bayes_share,
    inferred_share,
    label_interval,
    label_share,
    read_anchors,
    relaxed_balance,
)
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
    evidence = np.array([dirichlet_multinomial(np.full(counts.size, k), int(counts.sum())).pmf(counts) for k in kappas])
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


def check_interval(interval_of):
    """Each share lies below the interval with probability 2.5 % and above it with 2.5 %, given the counts."""
    counts = np.array([2.0, 5.0, 13.0])
    lower, upper = interval_of(counts)
    posterior = beta(counts + 0.5, counts.sum() - counts + 0.5)
    np.testing.assert_allclose(posterior.cdf(lower), 0.025, rtol=1e-9)
    np.testing.assert_allclose(posterior.sf(upper), 0.025, rtol=1e-9)
    assert ((lower < counts / counts.sum()) & (counts / counts.sum() < upper)).all()


def test_label_interval():
    check_interval(label_interval)
    rejects(check_interval, lambda counts: label_interval(counts, 0.9))
    rejects(check_interval, lambda counts: label_interval(counts)[::-1])
    rejects(check_interval, lambda counts: label_interval(counts.sum() - counts))


@pytest.mark.parametrize(("n_stages", "constrained"), [(8, 4), (5, 2), (1, 1)])
def test_balance_is_released_after_half_of_the_stages(n_stages, constrained):
    counts = np.array([2.0, 5.0, 13.0])
    balance = relaxed_balance(counts, n_stages)
    assert balance.constrained_stages == constrained
    np.testing.assert_array_equal(balance.prior, empirical_bayes_share(counts))
    np.testing.assert_array_equal((balance.lower, balance.upper), label_interval(counts))


def independent_scores(seed, share, *, n_rows=600, separation=1.5, n_views=2):
    """Scores of views that are independent given the class, and the share of the second class that was drawn."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=n_rows) < share, 1.0, -1.0)
    return [separation * y + rng.normal(size=n_rows) for _ in range(n_views)], float((y > 0.0).mean())


def by_counts(counts, ask):
    """The share inferred from anchors, and from labels whose scores were not looked at."""
    return inferred_share(counts, counted_share(counts), ask)


def estimate(scores, counts, *, mass=None, rows=None):
    """The share inferred if the views' scores do not depend on the share that is imposed."""
    n_rows = scores[0].size
    rows = [np.arange(n_rows)] * len(scores) if rows is None else rows
    mass = np.ones(n_rows) if mass is None else mass
    return by_counts(np.array(counts, dtype=float), lambda share: read_anchors(scores, rows, mass, share))


def on_a_line(constant, slope, variance=1e-4):
    """AnchorEstimate that answer constant + slope × share, and the shares they were asked for."""
    asked = []

    def ask(share):
        asked.append(share)
        return AnchorEstimate(constant + slope * share, variance)

    return ask, asked


def check_weighs_by_precision(share_of):
    """Labels at their Beta moments, the fixed point c/(1 - b) at precision (1 - b)²/v."""
    counts, constant, slope, variance = np.array([12.0, 3.0]), 0.14, 0.3, 1e-3
    labels = beta(3.5, 12.5)
    precisions = np.array([1.0 / labels.var(), (1.0 - slope) ** 2 / variance])
    truth = precisions @ [labels.mean(), constant / (1.0 - slope)] / precisions.sum()
    np.testing.assert_allclose(share_of(counts, on_a_line(constant, slope, variance)[0]), truth, rtol=1e-9)


def test_labels_and_fixed_point_are_weighed_by_their_precision():
    check_weighs_by_precision(by_counts)
    rejects(check_weighs_by_precision, lambda counts, ask: label_share(counts)[1])
    rejects(check_weighs_by_precision, lambda counts, ask: ask(float(label_share(counts)[1])).share)
    rejects(check_weighs_by_precision, lambda counts, ask: by_counts(counts[::-1], ask))


def test_search_starts_at_the_plausible_share_nearest_to_equal_classes():
    for counts in ([12.0, 3.0], [3.0, 12.0], [6.0, 5.0]):
        ask, asked = on_a_line(0.14, 0.3)
        by_counts(np.array(counts), ask)
        lower, upper = label_interval(np.array(counts))
        assert asked[0] == pytest.approx(np.clip(0.5, lower[1], upper[1]))
    assert asked[0] == 0.5


@pytest.mark.parametrize(("constant", "slope"), [(0.0, 1.0), (0.03, 1.0), (0.2, 0.9)])
def test_anchors_that_follow_the_question_or_lead_out_of_the_labels_interval_tell_nothing(constant, slope):
    counts = np.array([43.0, 7.0])
    ask, asked = on_a_line(constant, slope)
    assert by_counts(counts, ask) == pytest.approx(label_share(counts)[1], abs=1e-12)
    assert len(asked) == (2 if constant == 0.0 else 1)  # a share that is confirmed may be known or merely followed


def test_steep_answers_weigh_little():
    counts = np.array([43.0, 7.0])
    moved = by_counts(counts, on_a_line(0.002, 0.85, 1e-3)[0])
    assert 0.0 < label_share(counts)[1] - moved < 0.01
    assert label_share(counts)[1] - by_counts(counts, on_a_line(0.04, 0.0, 1e-3)[0]) > 0.05


def test_no_more_than_three_questions_and_none_after_silence():
    ask, asked = on_a_line(0.14, 0.3)
    by_counts(np.array([12.0, 3.0]), ask)
    assert len(asked) <= 3
    answers = iter([AnchorEstimate(0.2, 1e-3), None])
    assert by_counts(np.array([12.0, 3.0]), lambda share: next(answers)) == pytest.approx(3.5 / 16.0)


def test_a_share_confirmed_at_once_is_compared_with_the_answer_to_the_labels_share():
    counts, variance = np.array([30.0, 20.0]), 1e-3
    ask, asked = on_a_line(0.25, 0.5, variance)  # a(½) = ½
    labels = beta(20.5, 30.5)
    precisions = np.array([1.0 / labels.var(), 0.25 / variance])
    expected = precisions @ [labels.mean(), 0.5] / precisions.sum()
    assert by_counts(counts, ask) == pytest.approx(expected, rel=1e-9)
    assert asked[:2] == [0.5, pytest.approx(labels.mean())]


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

    def judges_itself(scores, counts):
        return estimate([scores[0], scores[0]], counts)

    def anchors_swapped(scores, counts):
        return estimate([scores[0], -scores[1]], counts)

    def other_class(scores, counts):
        return 1.0 - estimate(scores, counts)

    for twin in (judges_itself, anchors_swapped, other_class):
        rejects(check_recovers_the_share, twin, share, counts, atol)


def test_anchor_estimate_does_not_depend_on_scale_or_location_of_scores():
    scores, _ = independent_scores(0, 0.4)
    moved = [1e6 * scores[0] + 5.0, 1e-6 * scores[1] - 3.0]
    np.testing.assert_allclose(estimate(moved, (8, 2)), estimate(scores, (8, 2)), rtol=1e-6)


def test_anchor_estimate_of_the_other_class_is_the_complement():
    scores, _ = independent_scores(1, 0.4)
    flipped = estimate([-score for score in scores], (2, 8))
    np.testing.assert_allclose(flipped, 1.0 - estimate(scores, (8, 2)), rtol=0.0, atol=1e-3)


def test_many_labels_outweigh_the_anchors_and_no_anchors_leave_the_labels():
    scores, _ = independent_scores(0, 0.4)
    np.testing.assert_allclose(estimate(scores, (80000, 20000)), 0.2, rtol=0.0, atol=5e-3)
    alone = estimate(scores[:1], (8, 2))
    np.testing.assert_allclose(alone, 2.5 / 11.0, rtol=1e-12)
    rows = [np.arange(300), np.arange(295, 595)]
    strangers = estimate([score[:300] for score in scores], (8, 2), mass=np.ones(600), rows=rows)
    np.testing.assert_allclose(strangers, 2.5 / 11.0, rtol=1e-12)


def test_constant_or_uninformative_scores_do_no_harm():
    rng = np.random.default_rng(3)
    flat = estimate([np.ones(100), np.ones(100)], (8, 2))
    assert abs(flat - 0.22) < 0.02
    noise = estimate([rng.normal(size=300), rng.normal(size=300)], (8, 2))
    assert 0.0 < noise < 1.0


def check_order_and_weights(anchors_of):
    """Neither the rows' order matters nor whether a row is there twice or has a weight of two."""
    scores, _ = independent_scores(0, 0.4, n_rows=200)
    rows, ones, twice = [np.arange(200)] * 2, np.ones(200), 1.0 + (np.arange(200) < 60)
    order = np.random.default_rng(1).permutation(200)
    plain, moved = anchors_of(scores, rows, ones, 0.3), anchors_of([s[order] for s in scores], rows, ones, 0.3)
    weighted = anchors_of(scores, rows, twice, 0.3)
    repeated = anchors_of([np.concatenate([s, s[:60]]) for s in scores], [np.arange(260)] * 2, np.ones(260), 0.3)
    for one, other in ((plain, moved), (weighted, repeated)):
        np.testing.assert_allclose((one.share, one.variance), (other.share, other.variance), rtol=0.02)
    assert abs(plain.share - weighted.share) + abs(plain.variance - weighted.variance) > 1e-5


def test_order_does_not_matter_and_a_weight_counts_rows():
    check_order_and_weights(read_anchors)

    def by_place(scores, rows, mass, share):
        anchors = read_anchors(scores, rows, mass, share)
        return AnchorEstimate(anchors.share + 0.1 * scores[0][0], anchors.variance)

    def weightless(scores, rows, mass, share):
        anchors = read_anchors(scores, rows, mass, share)
        return AnchorEstimate(anchors.share, anchors.variance * mass.size)

    rejects(check_order_and_weights, by_place)
    rejects(check_order_and_weights, weightless)


def check_variance(anchors_of):
    """The variance told is that over fresh draws of the rows, within a factor of 1.5."""
    draws = []
    for seed in range(200):
        scores, _ = independent_scores(seed, 0.4, n_rows=400)
        draws.append(anchors_of(scores, [np.arange(400)] * 2, np.ones(400), 0.4))
    told = np.mean([anchors.variance for anchors in draws]) - ANCHOR_MODEL_SD**2
    seen = np.var([anchors.share for anchors in draws])
    assert 1.0 / 1.5 < told / seen < 1.5


def test_the_variance_of_anchors_is_that_of_fresh_draws():
    check_variance(read_anchors)
    rejects(check_variance, lambda *given: replace(read_anchors(*given), variance=ANCHOR_MODEL_SD**2))


def test_heavy_rows_count_more():
    scores, _ = independent_scores(0, 0.4)
    towards_second = np.where(scores[0] + scores[1] > 0.0, 4.0, 1.0)
    assert estimate(scores, (8, 2), mass=towards_second) > estimate(scores, (8, 2)) + 0.1
