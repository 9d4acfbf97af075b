"""Tests of batches: identities of the location statistic, and false alarms in healthy batches of any class shares."""

from itertools import pairwise

import numpy as np

from cmvmed.monitoring.batch_tests import N_BATCHES, BatchTests, draw_batches, fit_classes
from cmvmed.monitoring.reference import Reference, bounded, fit_profile

WIDTHS = (4, 5, 3)
ENDS = np.cumsum((0, *WIDTHS))
SLICES = [slice(a, b) for a, b in pairwise(ENDS.tolist())]


def draw_rows(n, rng, shares=(0.6, 0.4)):
    """Features of three views whose means depend on two classes, and the classes."""
    centers = np.random.default_rng(5).normal(size=(2, ENDS[-1]))
    y = rng.choice(2, n, p=shares)
    noise = rng.normal(size=(n, ENDS[-1]))
    return centers[y] + noise + 0.5 * noise[:, ::-1], y  # views depend on each other within classes too


def make_reference(n=600, seed=0):
    rng = np.random.default_rng(seed)
    features, y = draw_rows(n, rng)
    profiles = tuple(fit_profile(rng.normal(size=(20, w - 2)), w - 2) for w in WIDTHS)
    return Reference(profiles, features.astype(np.float32), np.eye(2, dtype=np.float32)[y], n // 2)


def make_tests(m=50, level=0.01, **parameters):
    return BatchTests(make_reference(**parameters), np.ones((m, len(WIDTHS)), dtype=bool), level)


def test_location_is_the_part_of_the_joint_distance_that_the_other_views_do_not_have():
    """δᵀS⁻¹δ of all views is that of the others plus the statistic of v given the others."""
    tests = make_tests()
    batch, _ = draw_rows(50, np.random.default_rng(1))
    S, delta = tests.covariance, bounded(batch).mean(axis=0) - tests.classes.mean
    rows_of = np.arange(ENDS[-1])
    found = {}
    original = tests._statistics

    def record(rows, index, v, views):
        statistics = original(rows, index, v, views)
        if index.shape[0] == 1:
            found[v] = statistics["location"][0]
        return statistics

    tests._statistics = record
    tests.test(batch, [0, 1, 2])
    joint = delta @ np.linalg.solve(S, delta)
    for v, own in enumerate(SLICES):
        others = np.setdiff1d(rows_of, rows_of[own])
        rest = delta[others] @ np.linalg.solve(S[np.ix_(others, others)], delta[others])
        np.testing.assert_allclose(found[v], joint - rest, rtol=1e-8)


def test_classes_are_estimated_from_the_rows_that_have_a_view():
    rng = np.random.default_rng(3)
    features, y = draw_rows(4000, rng)
    p = np.eye(2)[y]
    whole = fit_classes(features, p)
    for k in (0, 1):
        np.testing.assert_allclose(whole.means[k], bounded(features)[y == k].mean(axis=0), atol=5e-3)
    residuals = bounded(features) - whole.means[y]
    np.testing.assert_allclose(whole.within, residuals.T @ residuals / len(y), atol=0.02)
    gaps = features.copy()
    gaps[rng.random(len(y)) < 0.3, SLICES[1]] = np.nan
    partial = fit_classes(gaps, p)
    np.testing.assert_allclose(partial.means, whole.means, atol=0.05)
    np.testing.assert_allclose(np.diag(partial.within), np.diag(whole.within), rtol=0.1)


def test_healthy_batches_have_the_variance_of_new_ones_and_all_class_shares():
    p = np.eye(2)[np.random.default_rng(0).integers(0, 2, 200)]
    batches = draw_batches(p, 50)
    assert batches.shape == (N_BATCHES, 40)  # 1/40 = 1/50 + 1/200
    shares = p[batches, 0].mean(axis=1)
    assert abs(shares.mean() - 0.5) < 0.03
    assert (
        abs(shares.std() - np.sqrt(1 / 12 + 1 / (6 * 40))) < 0.02
    )  # of uniform shares, and of 40 rows given the share


def alarms(tests, shares, n=200, m=50, seed=10):
    rng = np.random.default_rng(seed)
    p_values = []
    for _ in range(n):
        features, _ = draw_rows(m, rng, shares)
        p_values.append(min(found.p_value for found in tests.test(features, [0, 1, 2]).values()))
    return np.mean(np.array(p_values) <= tests.level)


def test_healthy_batches_rarely_have_small_p_values():
    """At a level of 5 %, so that 200 batches show it: at most 10 expected, 20 is beyond three standard errors."""
    tests = make_tests(level=0.05)
    for shares in ((0.6, 0.4), (0.1, 0.9), (1.0, 0.0)):
        assert alarms(tests, shares) <= 0.10


def test_without_the_term_for_class_shares_there_would_be_alarms():
    """Broken twin: the location of a batch of one class is far from the mean of training."""
    tests = make_tests(level=0.05)
    between = tests.classes.between
    tests.__dict__["covariance"] = (tests.classes.within + between) / 50
    rng = np.random.default_rng(0)
    tests.batches = rng.integers(0, 300, tests.batches.shape)  # and healthy batches of the class shares of training
    assert alarms(tests, (1.0, 0.0), n=40) > 0.2


def test_faults_have_small_p_values_and_other_views_do_not():
    tests, rng = make_tests(), np.random.default_rng(4)
    features, _ = draw_rows(50, rng)
    features[:, SLICES[1]] += 1.0
    found = tests.test(features, [0, 1, 2])
    assert found[1].p_value <= 0.01
    assert max(found, key=lambda v: found[v].score) == 1
    rest = tests.test(features, [0, 2])
    assert min(rest[v].p_value for v in (0, 2)) > 0.01


def test_a_view_whose_classes_contradict_the_others_is_found_by_agreement():
    tests, rng = make_tests(n=900), np.random.default_rng(6)
    features, y = draw_rows(80, rng, (0.5, 0.5))
    other, other_y = draw_rows(400, rng, (0.5, 0.5))
    for k in (0, 1):  # view 0 of rows of the other class: its distribution is the same
        features[y == k, SLICES[0]] = other[other_y == 1 - k][: (y == k).sum(), SLICES[0]]
    scores = tests.test(features, [0, 1, 2])[0].scores
    assert scores["agreement"] > max(scores["location"], scores["scale"])
    assert scores["agreement"] > 3.0


def test_batches_that_lack_a_view_in_some_rows():
    present = np.ones((60, 3), dtype=bool)
    present[:40, 1] = False
    tests = BatchTests(make_reference(), present, 0.05)
    rng, p_values = np.random.default_rng(7), []
    for _ in range(100):
        features, _ = draw_rows(60, rng)
        features[:40, SLICES[1]] = np.nan
        p_values.append(min(found.p_value for found in tests.test(features, [0, 1, 2]).values()))
    assert np.mean(np.array(p_values) <= 0.05) <= 0.12
