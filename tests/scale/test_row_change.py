"""The estimate of what sweeps over all rows would still change."""

import numpy as np
import pytest

from cmvmed.scale.row_change import remaining_change


def draw_probabilities(scores, noise):
    p = 1.0 / (1.0 + np.exp(-(scores + noise)))
    return np.column_stack([1.0 - p, p])


def test_changes_are_scaled_by_the_numbers_of_rows():
    before = np.array([[0.6, 0.4], [0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    after = np.array([[0.4, 0.6], [0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    change = remaining_change(before, after, 1000, 4000, 10**9)
    ratio = (1 / 4000 - 1e-9) / (1 / 1000 - 1 / 4000)
    np.testing.assert_allclose(change.accuracy, np.sqrt(ratio) * 0.2 / 4)
    np.testing.assert_allclose(change.classes, np.sqrt(ratio) / 4)
    np.testing.assert_allclose(change.probability, np.sqrt(ratio) * (0.2 + 0.1) / 4)
    assert change.accuracy < change.accuracy_bound
    assert change.classes < change.classes_bound
    assert change.probability < change.probability_bound


def test_nothing_is_left_to_change_after_all_rows():
    p = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], 50)
    change = remaining_change(p, p[:, [1, 0, 2]], 1000, 4000, 4000)
    assert change.accuracy_bound == change.classes_bound == change.probability_bound == 0.0


def test_equal_predictions_leave_a_bound_above_zero():
    p = np.random.default_rng(0).dirichlet([1.0, 1.0], 300)
    change = remaining_change(p, p, 1000, 4000, 10**6)
    assert change.classes == 0.0
    assert 0.0 < change.classes_bound < 0.03


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_for_a_model_that_learns_its_scores_from_means(seed):
    """Scores x·μ with μ the mean of the rows used: errors are exactly those that the estimate assumes."""
    rng = np.random.default_rng(seed)
    width, held, sizes = 30, rng.normal(size=(2000, 30)), (1000, 4000, 64_000)
    added = np.diff(sizes, prepend=0)[:, None]
    holds = []
    for _ in range(40):
        sums = np.cumsum(np.sqrt(added) * rng.normal(size=(3, width)), axis=0)  # of nested samples of normal rows
        scores = [held @ (np.ones(width) / 3 + 5.0 * total / n) for total, n in zip(sums, sizes, strict=True)]
        small, large, whole = (draw_probabilities(score, 0.0) for score in scores)
        change = remaining_change(small, large, *sizes)
        moved = (large.argmax(axis=1) != whole.argmax(axis=1)).mean()
        lost = (whole.max(axis=1) - whole[np.arange(2000), large.argmax(axis=1)]).mean()
        holds.append([lost <= change.accuracy_bound, moved <= change.classes_bound])
    assert np.mean(holds, axis=0).min() >= 0.9
