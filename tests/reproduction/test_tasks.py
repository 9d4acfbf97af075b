"""Splits: fixed by name and number alone, rows of the test set unseen at fit, every class labeled."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from sklearn.utils import Bunch

from cmvmed.reproduction.tasks import TASKS, Task, draw


def rows_task(n_rows=60, **numbers):
    """A task whose single feature is the row's number, so that a split tells which rows it holds."""
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
        check_split(draw(task, number, n_labeled), task, n_labeled or 6)


def test_numbers_of_rows():
    assert draw(rows_task(), 0).y_test.size == 34
    assert draw(rows_task(n_test=10), 0).y_test.size == 10


def test_the_labels_of_a_smaller_number_are_among_those_of_a_larger():
    task = rows_task()
    for number in range(5):
        few, many = draw(task, number, 9), draw(task, number, 12)
        np.testing.assert_array_equal(few.X, many.X)
        assert set(np.flatnonzero(few.y >= 0)) < set(np.flatnonzero(many.y >= 0))


def test_splits_differ_by_number_and_repeat():
    task = rows_task()
    np.testing.assert_array_equal(draw(task, 4).X, draw(task, 4).X)
    assert not np.array_equal(draw(task, 4).X, draw(task, 5).X)


def test_too_few_labels_for_the_classes():
    with pytest.raises(ValueError, match="2 labels are too few for 3 classes"):
        draw(rows_task(), 0, 2)


def test_published_splits_fix_the_labeled_rows():
    published = np.array([[0, 25, 50], [1, 26, 26]])
    task = rows_task(n_labeled=3, n_unlabeled=28, n_published=2)
    task.load().splits = published
    split = draw(task, 0)
    train, test = rows_of(split)
    assert set(train[split.y >= 0]) == {0, 25, 50}
    assert sorted([*train, *test]) == list(range(60))
    assert (train.size, test.size) == (3 + 28, 29)
    train, _ = rows_of(draw(task, 1))  # which names a row twice
    assert train.size == 2 + 29


def test_labels_by_class_are_as_many_as_its_share_says():
    for number in range(5):
        split = draw(rows_task(by_class=True), number)
        check_split(split, rows_task(), 6)
        assert np.bincount(split.y[split.y >= 0]).tolist() == [2, 2, 2]
    assert any(np.bincount(s.y[s.y >= 0]).tolist() != [2, 2, 2] for s in (draw(rows_task(), k) for k in range(5)))


@pytest.mark.parametrize(("by_class", "digest"), [(True, "b96b9ba4443b825f"), (False, "b3179381e9dd0e05")])
def test_the_splits_of_the_published_figures_have_not_changed(by_class, digest):
    """The digest of which rows split 7 of the digits draws; another split rule is another experiment."""
    split = draw(replace(TASKS["digits"], by_class=by_class), 7)
    content = b"".join(np.ascontiguousarray(part).tobytes() for part in (split.X, split.y_test.astype(np.int64)))
    assert hashlib.sha256(content).hexdigest()[:16] == digest
