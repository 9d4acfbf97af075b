"""The benchmark of new groups: its simulated persons, and a draw from beginning to end."""

import numpy as np
import pytest

from benchmarks.new_groups import N_NEW, ROWS_EACH, TASKS, measure, persons


def accuracy_of_nearest_mean(rows, known):
    """By the class means of all training rows, on rows of known or of new persons."""
    is_labeled = rows.y >= 0
    means = np.stack([rows.X[rows.y == c].mean(axis=0) for c in range(3)])
    X, y = (rows.X[is_labeled], rows.y[is_labeled]) if known else (rows.X_new, rows.y_new)
    return (((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == y).mean()


def test_persons():
    rows = persons(0, n_persons=6, n_labels=4, effect="differ")
    assert rows.X.shape == (6 * ROWS_EACH, 8)
    assert rows.X_new.shape == (N_NEW * ROWS_EACH, 8)
    np.testing.assert_array_equal(np.bincount(rows.groups[rows.y >= 0]), [4] * 6)


def test_persons_who_differ_are_harder_if_they_are_new():
    alike, differ = ([persons(i, 6, 20, effect) for i in range(10)] for effect in ("alike", "differ much"))
    lost = [
        np.mean([accuracy_of_nearest_mean(rows, True) - accuracy_of_nearest_mean(rows, False) for rows in draws])
        for draws in (alike, differ)
    ]
    assert abs(lost[0]) < 0.03
    assert lost[1] > 0.05


def test_a_draw():
    groups, accuracy, expected, holds, width, unknown, covered, size = measure("6 persons, 4 labels each, alike", 0)
    assert groups == 6
    assert 0.0 < accuracy < 100.0
    assert 0.0 < expected < 100.0
    assert holds in (0.0, 100.0)
    assert 0.0 < width < 100.0
    assert unknown == 100.0 * (width > 50.0)
    assert (covered, size) == (100.0, 3.0)  # six groups are too few
    assert len(TASKS) == 24


def test_unknown_effects_are_an_error():
    with pytest.raises(KeyError):
        persons(0, 6, 4, "none")
