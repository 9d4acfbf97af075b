"""Splitters whose test folds hold labeled rows only, and whose training sets hold every class."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseShuffleSplit, StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import check_consistent_length, check_random_state

from cmvmed._warnings import warn_user
from cmvmed.data.groups import read_groups
from cmvmed.data.labels import Labels, read_labels

Split = tuple[NDArray[np.intp], NDArray[np.intp]]

_DEFAULT_TEST_FRACTION = 0.1  # as in scikit-learn's ShuffleSplit


class SemiSupervisedKFold(StratifiedKFold):
    """Stratified k-fold whose test folds hold labeled rows only.

    Every training set consists of all rows outside the test fold: the other labeled rows and all unlabeled rows. A
    labeled row is in exactly one test fold, unless it is the only one of its class: that row stays in every training
    set, because the class would otherwise be unknown to the model that is tested on it, and a UserWarning names the
    class. The test folds are those of :class:`sklearn.model_selection.StratifiedKFold` on the rows that can be tested.

    With ``groups``, such as the subjects or recordings that rows come from, rows of one group are never on both sides:
    the test folds are those of :class:`sklearn.model_selection.StratifiedGroupKFold`, and the unlabeled rows of the
    groups that a fold tests are left out of its training set, since a new group has no rows there either. Groups
    without labels are in every training set. So is a group that alone has labels of a class, and one of those that
    together would take all labels of a class into a test fold; a UserWarning says so, as they are never tested.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2. At least one class must have this many labels.
    shuffle : bool, default=False
        Whether to shuffle the rows of each class before they are split.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling; only with ``shuffle=True``.
    unlabeled : scalar, default=-1
        Value of y that marks an unlabeled row. None and NaN always count as unlabeled.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.model_selection import SemiSupervisedKFold
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> for train, test in SemiSupervisedKFold(n_splits=2).split(np.zeros((6, 1)), y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    __metadata_request__split = {"groups": True}  # noqa: RUF012 (as in scikit-learn's splitters of groups)

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: object = None, unlabeled: object = -1
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        self.unlabeled = unlabeled

    def split(self, X: object, y: object, groups: object = None) -> Iterator[Split]:
        """Generate the indices of training and test rows.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Only its number of rows matters.
        y : array-like of shape (n,)
            Labels, with the marker (or None, NaN) in unlabeled rows.
        groups : array-like of shape (n,), default=None
            The group of each row, labeled or not.

        Yields
        ------
        train : ndarray of intp
            All rows outside the test fold, ascending; with groups, all rows of other groups.
        test : ndarray of intp
            Labeled rows, ascending.
        """
        labels = _labels_of_rows(X, y, self.unlabeled)
        if groups is not None:
            splitter = StratifiedGroupKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
            yield from _group_folds(labels, read_groups(groups, len(labels.codes)), splitter)
            return
        testable = _testable_rows(labels)
        if labels.counts.max() < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} is more than any class has labels: the largest number of labels in a class "
                f"is {labels.counts.max()}. Take n_splits={labels.counts.max()} or fewer, or label more rows."
            )
        all_rows = np.arange(len(labels.codes))
        for _, fold in super().split(testable, labels.codes[testable]):
            test = testable[fold]
            yield np.setdiff1d(all_rows, test, assume_unique=True), test


class SemiSupervisedShuffleSplit(BaseShuffleSplit):
    """Stratified random splits whose test sets hold labeled rows only.

    Every training set holds all unlabeled rows and at least one row of each class. The only labeled row of a class
    stays in every training set, and a UserWarning names the class; the other labeled rows are split by
    :class:`sklearn.model_selection.StratifiedShuffleSplit`. Where that leaves a rare class without a training row, one
    row of that class is moved into the training set.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    test_size : float or int, default=None
        Share (float) or number (int) of test rows among the labeled rows of classes with at least two labels. None:
        all that ``train_size`` leaves; if that is None too, a tenth, but at least one row per class.
    train_size : float or int, default=None
        Share or number of training rows among the same rows. None: all that ``test_size`` leaves.
    random_state : int, RandomState instance or None, default=None
        Seed of the splits.
    unlabeled : scalar, default=-1
        Value of y that marks an unlabeled row. None and NaN always count as unlabeled.

    Examples
    --------
    >>> import numpy as np
    >>> from cmvmed.model_selection import SemiSupervisedShuffleSplit
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> splitter = SemiSupervisedShuffleSplit(n_splits=3, random_state=0)
    >>> for train, test in splitter.split(np.zeros((6, 1)), y):
    ...     print(np.sort(y[train]), np.sort(y[test]))
    [-1 -1  0  1] [0 1]
    [-1 -1  0  1] [0 1]
    [-1 -1  0  1] [0 1]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float | None = None,
        train_size: float | None = None,
        random_state: object = None,
        unlabeled: object = -1,
    ) -> None:
        super().__init__(n_splits, test_size=test_size, train_size=train_size, random_state=random_state)
        self.unlabeled = unlabeled

    def split(self, X: object, y: object, groups: object = None) -> Iterator[Split]:
        """Generate the indices of training and test rows.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Only its number of rows matters.
        y : array-like of shape (n,)
            Labels, with the marker (or None, NaN) in unlabeled rows.
        groups : object
            Ignored with a warning, exists for API compatibility.

        Yields
        ------
        train : ndarray of intp
            Labeled training rows in random order, then the rows that are in every training set, ascending.
        test : ndarray of intp
            Labeled rows in random order.
        """
        if groups is not None:
            warnings.warn(f"The groups parameter is ignored by {type(self).__name__}", UserWarning, stacklevel=2)
        labels = _labels_of_rows(X, y, self.unlabeled)
        testable = _testable_rows(labels)
        always_in_training = np.setdiff1d(np.arange(len(labels.codes)), testable, assume_unique=True)
        codes = labels.codes[testable]
        random = check_random_state(self.random_state)
        splitter = StratifiedShuffleSplit(
            self.n_splits, test_size=self._test_size(codes), train_size=self.train_size, random_state=random
        )
        for train, test in splitter.split(testable, codes):
            train, test = _with_every_class_in_training(train, test, codes, random)
            yield np.concatenate([testable[train], always_in_training]), testable[test]

    def _test_size(self, codes: NDArray[np.intp]) -> float | None:
        """Give the test size; by default enough rows for one of each class, which scikit-learn asks for."""
        test_size: float | None = self.test_size
        if test_size is not None or self.train_size is not None:
            return test_size
        return max(int(np.ceil(_DEFAULT_TEST_FRACTION * len(codes))), len(np.unique(codes)))


def _labels_of_rows(X: object, y: object, unlabeled: object) -> Labels:
    """Read y, and check that it has one entry per row of X."""
    labels = read_labels(y, unlabeled)
    check_consistent_length(X, labels.codes)
    return labels


def _group_folds(labels: Labels, groups: NDArray[np.intp], splitter: StratifiedGroupKFold) -> Iterator[Split]:
    """Generate training and test rows such that no group is in both and every class in each training set."""
    table = np.zeros((int(groups.max()) + 1, labels.n_classes), dtype=np.intp)  # labels by group and class
    np.add.at(table, (groups[labels.labeled], labels.codes[labels.labeled]), 1)
    in_one_group = np.count_nonzero(table, axis=0) == 1
    may_be_tested = np.asarray(table.any(axis=1) & ~table[:, in_one_group].any(axis=1))
    n_tested = int(may_be_tested.sum())
    if n_tested < splitter.n_splits:
        raise ValueError(
            f"n_splits={splitter.n_splits} is too large: of the groups with labels, only {n_tested} can be held out, because a "
            "group that alone has the labels of a class must stay in training. Take fewer splits, or label rows in more groups."
        )
    testable = labels.labeled[may_be_tested[groups[labels.labeled]]]
    folds = splitter.split(testable, labels.codes[testable], groups[testable])
    held_out = [_leaving_every_class(np.unique(groups[testable[fold]]), table) for _, fold in folds]
    if any(held.size == 0 for held in held_out):
        raise ValueError(
            f"With n_splits={splitter.n_splits} a test fold would have no groups, because every class must keep labels in "
            "training. Take fewer splits, or label rows in more groups."
        )
    never = int(table.any(axis=1).sum()) - sum(held.size for held in held_out)
    if never:
        warn_user(
            f"{never} groups with labels stay in every training set and are never tested, because the labels of a class are in "
            "too few groups; label rows of every class in several groups."
        )
    for held in held_out:
        inside = np.isin(groups, held)
        yield np.flatnonzero(~inside), np.flatnonzero(inside & (labels.codes >= 0))


def _leaving_every_class(held: NDArray[np.intp], table: NDArray[np.intp]) -> NDArray[np.intp]:
    """Give back groups of a test fold, those with the fewest labels first, until every class has labels outside of it."""
    while (lost := table[held].sum(axis=0) == table.sum(axis=0)).any():
        with_class = held[table[held][:, lost.argmax()] > 0]
        held = held[held != with_class[table[with_class].sum(axis=1).argmin()]]
    return held


def _testable_rows(labels: Labels) -> NDArray[np.intp]:
    """Find the labeled rows, ascending, whose class keeps a label when the row is held out."""
    single = labels.counts == 1
    if single.all():
        raise ValueError(
            f"Each of the {labels.n_classes} classes has only one label, so no row can be tested: its class would be missing "
            "in training. Label at least two rows of a class."
        )
    if single.any():
        warnings.warn(
            f"The classes {labels.classes[single].tolist()} have one label each. These rows stay in every training set "
            "and are never tested, so the score says nothing about these classes.",
            UserWarning,
            stacklevel=3,
        )
    rows: NDArray[np.intp] = labels.labeled
    return np.compress(~single[labels.codes[rows]], rows)


def _with_every_class_in_training(
    train: NDArray[np.intp], test: NDArray[np.intp], codes: NDArray[np.intp], random: np.random.RandomState
) -> Split:
    """Move one random row of each class that has no training row into the training set.

    Proportional shares round down to no row at all where a class is rare and the training set small. The test set
    cannot become empty: it has at least as many rows as there are classes, and at least one class is in training.
    """
    absent = np.setdiff1d(codes, codes[train])
    moved = np.array([random.choice(np.flatnonzero(codes == k)) for k in absent], dtype=np.intp)
    return np.concatenate([train, moved]), test[~np.isin(test, moved)]
