"""Splits depend on task and number only, have disjoint training and test rows, and label every class."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from sklearn.utils import Bunch

from experiments.tasks import TASKS, Task, draw_split


def rows_task(n_rows=60, **numbers):
    """A task whose single feature is the number of the row, so that the rows of a split are known."""
    target = np.repeat(["b", "a", "c"], n_rows // 3)
    data = Bunch(data=np.arange(float(n_rows))[:, None], target=target, views={"only": slice(0, 1)})
    return Task("rows", lambda: data, **({"n_labeled": 6, "n_unlabeled": 20} | numbers))


def rows_of(split):
    return split.X[:, 0].astype(int), split.X_test[:, 0].astype(int)


def check_split(split, task, n_labeled):
    train, test = rows_of(split)
    truth = np.unique(task.load().target, return_inverse=True)[1]
    assert len(set(train) | set(test)) == train.size + test.size
    assert train.size == task.n_train
    assert (split.y >= 0).sum() == n_labeled
    assert set(split.y) == {-1, 0, 1, 2}
    np.testing.assert_array_equal(split.y[split.y >= 0], truth[train[split.y >= 0]])
    np.testing.assert_array_equal(split.y_test, truth[test])


@pytest.mark.parametrize("n_labeled", [None, 3, 12])
def test_rows_are_drawn_once_and_every_class_has_a_label(n_labeled):
    task = rows_task()
    for number in range(20):
        check_split(draw_split(task, number, n_labeled), task, n_labeled or 6)


def test_numbers_of_rows():
    assert draw_split(rows_task(), 0).y_test.size == 34
    assert draw_split(rows_task(n_test=10), 0).y_test.size == 10


def test_the_labels_of_a_smaller_number_are_among_those_of_a_larger():
    task = rows_task()
    for number in range(5):
        few, many = draw_split(task, number, 9), draw_split(task, number, 12)
        np.testing.assert_array_equal(few.X, many.X)
        assert set(np.flatnonzero(few.y >= 0)) < set(np.flatnonzero(many.y >= 0))


def test_splits_differ_by_number_and_repeat():
    task = rows_task()
    np.testing.assert_array_equal(draw_split(task, 4).X, draw_split(task, 4).X)
    assert not np.array_equal(draw_split(task, 4).X, draw_split(task, 5).X)


def test_too_few_labels_for_the_classes():
    with pytest.raises(ValueError, match="2 labels are too few for 3 classes"):
        draw_split(rows_task(), 0, 2)


def test_published_splits_fix_the_labeled_rows():
    published = np.array([[0, 25, 50], [1, 26, 26]])
    task = rows_task(n_labeled=3, n_unlabeled=28, n_published=2)
    task.load().splits = published
    split = draw_split(task, 0)
    train, test = rows_of(split)
    assert set(train[split.y >= 0]) == {0, 25, 50}
    assert sorted([*train, *test]) == list(range(60))
    assert (train.size, test.size) == (3 + 28, 29)
    train, _ = rows_of(draw_split(task, 1))  # contains a row twice
    assert train.size == 2 + 29


def test_stratified_labels_are_proportional_to_the_class_sizes():
    for number in range(5):
        split = draw_split(rows_task(stratified=True), number)
        check_split(split, rows_task(), 6)
        assert np.bincount(split.y[split.y >= 0]).tolist() == [2, 2, 2]
    assert any(np.bincount(s.y[s.y >= 0]).tolist() != [2, 2, 2] for s in (draw_split(rows_task(), k) for k in range(5)))


def test_training_rows_of_equal_class_sizes_leave_the_others_for_the_test():
    target = np.repeat([0, 1], [84, 66])
    data = Bunch(data=np.arange(150.0)[:, None], target=target, views={"only": slice(0, 1)})
    task = Task("rows", lambda: data, 10, 110, n_train_per_class=60)
    for number in range(5):
        split = draw_split(task, number)
        train, test = rows_of(split)
        assert sorted([*train, *test]) == list(range(150))
        assert np.bincount(target[train]).tolist() == [60, 60]
        assert np.bincount(split.y_test).tolist() == [24, 6]
        assert (split.y >= 0).sum() == 10
        more = draw_split(task, number, 20)
        assert set(rows_of(more)[0]) == set(train)
    # labels are a random draw of the training rows: not always 5 of each class
    assert any((draw_split(task, number).y == 0).sum() != 5 for number in range(5))


def test_footsteps_are_divided_as_in_the_paper():
    """600 of each class for training; the remaining 240 and 60 for the test."""
    task = TASKS["footsteps"]
    assert (task.n_labeled, task.n_train, task.n_train_per_class, task.n_test) == (50, 1200, 600, None)


@pytest.mark.parametrize(("stratified", "digest"), [(True, "b96b9ba4443b825f"), (False, "b3179381e9dd0e05")])
def test_the_splits_of_the_published_results_have_not_changed(stratified, digest):
    """Digest of the rows of split 7 of the digits; a different split rule would change the experiment."""
    split = draw_split(replace(TASKS["digits"], stratified=stratified), 7)
    content = b"".join(np.ascontiguousarray(part).tobytes() for part in (split.X, split.y_test.astype(np.int64)))
    assert hashlib.sha256(content).hexdigest()[:16] == digest
