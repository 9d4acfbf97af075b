"""Thresholds of prediction sets: coverage of scores drawn alike, class weights, and MAPIE as the reference."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cmvmed.model.uncertainty import ClassThresholds, HeldOutScores, between_groups
from tests.core.factories import rejects

DRAWS = 4000


def held_out(scores, codes=None, n_classes=2, weights=None, class_weights=None, groups=None):
    """Scores of one class, if no classes are given."""
    codes = np.zeros(len(scores), dtype=int) if codes is None else np.asarray(codes)
    class_weights = np.ones(n_classes) if class_weights is None else np.asarray(class_weights)
    weights = class_weights[codes] if weights is None else np.asarray(weights)
    return HeldOutScores(np.asarray(scores), codes, weights, class_weights, groups)


def mean_coverage(n, alpha, threshold):
    """Mean probability that a score drawn like n others, of the uniform distribution, is not below their threshold."""
    rng = np.random.default_rng(n)
    return np.mean([1.0 - max(threshold(rng.random(n), alpha), 0.0) for _ in range(DRAWS)])


def interpolated(scores, alpha):
    return held_out(scores).thresholds(alpha)[0]


def next_lower(scores, alpha):
    return np.sort(scores)[int(alpha * (scores.size + 1) + 1e-9) - 1]


@pytest.mark.parametrize(("n", "alpha"), [(9, 0.1), (10, 0.1), (15, 0.1), (18, 0.1), (19, 0.1), (20, 0.1), (20, 0.25)])
def test_coverage_of_scores_drawn_alike(n, alpha):
    """t is chosen so that its expected rank is α(n + 1); the next lower whole rank is not, for 15 scores."""
    assert mean_coverage(n, alpha, interpolated) == pytest.approx(1.0 - alpha, abs=0.005)
    if n == 15:
        assert mean_coverage(n, alpha, next_lower) == pytest.approx(15 / 16, abs=0.005)


@pytest.mark.parametrize("n", [19, 29, 49])
def test_same_sets_as_mapie_where_ranks_are_whole(n):
    mapie = pytest.importorskip("mapie.classification")
    rng = np.random.default_rng(n)
    y = np.arange(40 + n) % 3
    X = rng.normal(size=(y.size, 3)) + 1.2 * np.eye(3)[y]
    model = LogisticRegression().fit(X[:40], y[:40])
    reference = mapie.SplitConformalClassifier(model, confidence_level=0.9, conformity_score="lac", prefit=True)
    new = rng.normal(size=(300, 3))
    _, expected = reference.conformalize(X[40:], y[40:]).predict_set(new)
    scores = model.predict_proba(X[40:])[np.arange(n), y[40:]]
    one_group = HeldOutScores(scores, np.zeros(n, dtype=int), np.ones(n), np.ones(3))  # no label of other classes
    found = ClassThresholds(one_group.thresholds(0.1)).sets(model.predict_proba(new), np.ones(300))
    assert 0 < found.sum() < found.size
    np.testing.assert_array_equal(found, expected[:, :, 0])


def test_thresholds_by_class_need_enough_labels_of_each():
    rng = np.random.default_rng(0)
    scores = rng.random(18)
    both = held_out(scores, np.arange(18) % 2)  # nine of each
    expected = [np.sort(scores[::2])[0], np.sort(scores[1::2])[0]]
    np.testing.assert_allclose(both.thresholds(0.1), expected)
    unequal = held_out(scores, (np.arange(18) < 8).astype(int))
    assert len(set(unequal.thresholds(0.1))) == 1
    assert len(set(unequal.thresholds(0.12))) == 2
    assert np.isneginf(held_out(scores[:8]).thresholds(0.1)).all()
    np.testing.assert_allclose(held_out(scores, np.arange(18) % 2, class_weights=[5.0, 0.2]).thresholds(0.1), expected)


def test_labels_drawn_per_class_count_by_the_shares_of_their_classes():
    """Seven labels of each of two classes that are 80 and 20 % of the rows, the rare one with lower scores."""
    rng = np.random.default_rng(1)
    shares, covered = np.array([0.8, 0.2]), {"weighted": [], "equal": []}
    for _ in range(DRAWS):
        codes = np.arange(14) % 2
        scores = rng.random(14) * np.where(codes == 1, 0.3, 1.0)
        for name, ratio in (("weighted", 2.0 * shares), ("equal", np.ones(2))):
            t = held_out(scores, codes, class_weights=ratio).thresholds(0.1)
            covered[name].append(shares @ (1.0 - np.clip(t / [1.0, 0.3], 0.0, 1.0)))
    assert np.mean(covered["weighted"]) == pytest.approx(0.9, abs=0.01)
    assert np.mean(covered["equal"]) > 0.92


def test_sets_of_rows():
    p, coverage = np.array([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [0.2, 0.2, 0.6]]), np.array([1.0, 1.0, 0.0])
    thresholds = np.array([0.95, 0.3, -np.inf])
    expected = [[0, 1, 1], [0, 0, 1], [1, 1, 1]]
    np.testing.assert_array_equal(ClassThresholds(thresholds).sets(p, coverage), expected)
    empty = ClassThresholds(np.ones(3)).sets(p[:2], coverage[:2])
    assert not empty.any()
    with_one = ClassThresholds(np.ones(3), allow_empty=False).sets(p[:2], coverage[:2])
    np.testing.assert_array_equal(with_one, [[1, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.9])
def test_the_threshold_between_groups_is_the_mean_over_draws_of_one_label_each(alpha):
    rng = np.random.default_rng(4)
    scores, groups, weights = np.sort(rng.random(70)), rng.integers(12, size=70), rng.integers(1, 4, size=70)
    drawn = [
        rng.choice(scores[own], DRAWS, p=weights[own] / weights[own].sum())
        for own in (groups == np.arange(12)[:, None])
    ]
    k = int(alpha * 13)
    expected = np.sort(drawn, axis=0)[k - 1]
    assert between_groups(scores, weights, groups, alpha) == pytest.approx(
        expected.mean(), abs=5 * expected.std() / DRAWS**0.5
    )


def test_groups_of_one_label_are_labels():
    scores = np.random.default_rng(5).random(19)
    each, none = (held_out(scores, groups=groups).thresholds(0.1) for groups in (np.arange(19), None))
    np.testing.assert_allclose(each, none)


def test_thresholds_between_groups_need_enough_groups():
    rng = np.random.default_rng(6)
    scores, groups = rng.random(90), np.arange(90) % 9
    assert np.isfinite(held_out(scores, groups=groups).thresholds(0.1)).all()
    assert np.isneginf(held_out(scores, groups=groups % 8).thresholds(0.1)).all()
    assert np.isfinite(held_out(scores, groups=groups % 8).thresholds(0.12)).all()
    both = held_out(scores, (np.arange(90) < 45).astype(int), groups=groups)
    assert len(set(both.thresholds(0.1))) == 2
    one_group_less = held_out(scores, ((np.arange(90) < 45) & (groups > 0)).astype(int), groups=groups)
    assert len(set(one_group_less.thresholds(0.1))) == 1


def check_new_groups_are_covered(with_groups):
    """Scores of 10 to 18 groups with 20 labels each, which differ by the logarithm of the score, and of one new group."""
    rng, covered = np.random.default_rng(7), []
    for _ in range(1000):
        G = int(rng.integers(10, 19))
        levels = rng.normal(size=G + 1)
        scores, new = levels[:-1, None] + 0.3 * rng.normal(size=(G, 20)), levels[-1] + 0.3 * rng.normal(size=100)
        groups = np.repeat(np.arange(G), 20) if with_groups else None
        covered.append((new >= held_out(scores.ravel(), groups=groups).thresholds(0.1)[0]).mean())
    assert np.mean(covered) >= 0.9


def test_new_groups_are_covered():
    check_new_groups_are_covered(True)
    rejects(check_new_groups_are_covered, False)
