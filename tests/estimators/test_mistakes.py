"""Mistakes that users make, each with the message that it gets; none gives a wrong answer without one.

Values of parameters, columns of views, kernels and files are in ``test_bad_input``, ``test_columns`` and
``test_streaming``.
"""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from cmvmed import CMVMED, MED
from cmvmed.model_selection import SemiSupervisedKFold, labeled_scorer

COLUMNS = ["a_0", "a_1", "a_2", "b_0", "b_1"]
SLICES = {"a": slice(0, 3), "b": slice(3, 5)}
PREFIXES = {"a": "a_", "b": "b_"}
ANIMALS = np.array(["cat", "dog"])
DAYS = pd.date_range("2024-01-01", periods=40)


def quick(**settings):
    return CMVMED(**({"n_stages": 1, "members": None} | settings))


def fit(X, y, *, views=SLICES, sample_weight=None, groups=None, **settings):
    return quick(views=views, **settings).fit(X, y, sample_weight=sample_weight, groups=groups)


def fit_frame(d, *, y=None, **columns):
    """Fit a frame with some of its columns replaced."""
    frame = pd.DataFrame(d.X, columns=COLUMNS).assign(**columns)
    return fit(frame, d.y if y is None else y, views=PREFIXES)


def fitted_to_animals(d):
    return fit(d.X, np.where(d.hidden, None, ANIMALS[d.y]))


def changed(X, row, column, value):
    X = X.astype(object if isinstance(value, (str, list, dict)) else X.dtype)
    X[row, column] = value
    return X


def with_cell(d, value):
    cells = d.X.astype(object)
    cells[3, 4] = value
    return fit(pd.DataFrame(cells, columns=COLUMNS), d.y, views=PREFIXES)


def marked(d, marker):
    """Texts as y, with a text in the unlabeled rows."""
    return np.array([*ANIMALS, marker])[d.y]


PLACE = r"view 'b', row \d+, column 'b_1' \(position 1\), but features must be numbers"
REFUSED = {
    # X
    "X and y exchanged": (lambda d: fit(d.y, d.X), "Expected 2D array, got 1D array"),
    "X transposed": (lambda d: fit(d.X.T, d.y), "Views do not cover X: column 5 and 34 further of its 40 columns"),
    "X is None": (lambda d: fit(None, d.y), "Expected 2D array"),
    "X is a number": (lambda d: fit(3.0, d.y), "Expected 2D array"),
    "X is one column of a frame": (lambda d: fit(pd.Series(d.X[:, 0]), d.y), "Expected a 2-dimensional container"),
    "rows of unequal length": (lambda d: fit([[1, 2], [3]], [0, 1]), "inhomogeneous"),
    "a dict of columns instead of views": (
        lambda d: quick().fit({"a_0": d.X[:, 0], "a_1": d.X[:, 1]}, d.y),
        r"View 'a_0' must be a two-dimensional array, sparse matrix or data frame, but is ndarray of shape \(40,\)",
    ),
    "windows of a signal that are no features": (
        lambda d: quick().fit({"a": np.zeros((40, 3, 2)), "b": d.b}, d.y),
        r"View 'a' must be a two-dimensional array.*of shape \(40, 3, 2\)",
    ),
    "numpy.matrix": (lambda d: fit(np.asmatrix(d.X), d.y), "np.matrix is not supported"),
    "no view in any labeled row": (lambda d: fit(np.full((40, 5), np.nan), d.y), "has all views missing"),
    "infinity in a sparse matrix": (
        lambda d: fit(sparse.csr_array(changed(d.X, 3, 4, np.inf)), d.y),
        "contains infinity: view 'b', row 3, column 1",
    ),
    "a decimal comma": (lambda d: with_cell(d, "1,5"), rf"contains the text '1,5': {PLACE}. Correct the cell"),
    "a list in a cell": (lambda d: with_cell(d, [1, 2]), rf"contains \[1, 2\] of type list: {PLACE}. Drop the column"),
    "a dict in a cell": (lambda d: with_cell(d, {"x": 1}), rf"contains \{{'x': 1\}} of type dict: {PLACE}"),
    "a column of dates": (lambda d: fit_frame(d, b_1=DAYS), rf"of type Timestamp: {PLACE}.*such as the hour of a date"),
    "a column of durations": (lambda d: fit_frame(d, b_1=DAYS - DAYS[0]), rf"of type Timedelta: {PLACE}"),
    "a column of periods": (lambda d: fit_frame(d, b_1=DAYS.to_period()), rf"of type Period: {PLACE}"),
    "a column of dates in polars": (
        lambda d: fit(pl.DataFrame(pd.DataFrame(d.X, columns=COLUMNS).assign(b_1=DAYS)), d.y, views=PREFIXES),
        rf"of type datetime: {PLACE}",
    ),
    "an array of dates": (lambda d: fit(d.X.astype("M8[s]"), d.y), "of type datetime64: view 'a', row 0, column 0"),
    "a view of dates": (
        lambda d: quick().fit({"a": pd.DataFrame({"day": DAYS}), "b": d.b}, d.y),
        r"of type Timestamp: view 'a', row 0, column 'day'",
    ),
    "a column of categories": (
        lambda d: fit_frame(d, b_1=pd.Categorical(np.where(d.X[:, 4] > 0, "high", "low"))),
        rf"contains the text '(high|low)': {PLACE}.*OneHotEncoder",
    ),
    "complex numbers": (lambda d: fit_frame(d, b_1=1j), "Complex data not supported"),
    # y
    "probabilities as y": (lambda d: fit(d.X, np.eye(2)[d.truth]), r"y should be a 1d array, got .* \(40, 2\)"),
    "a frame of two columns as y": (
        lambda d: fit(d.X, pd.DataFrame({"a": d.y, "b": d.y})),
        r"y should be a 1d array, got an array of shape \(40, 2\)",
    ),
    "a dict as y": (lambda d: fit(d.X, dict(enumerate(d.y))), "y should be a 1d array"),
    "a number as y": (lambda d: fit(d.X, 1), "y should be a 1d array"),
    "measurements as y": (lambda d: fit(d.X, np.where(d.hidden, np.nan, d.y / 2)), "Unknown label type: continuous"),
    "dates as y": (
        lambda d: fit(d.X, DAYS[d.truth]),
        "of type datetime64, but classes must be texts, whole numbers or",
    ),
    "date objects as y": (
        lambda d: fit(d.X, [datetime.date(2024, 1, 1 + c) for c in d.truth]),
        "of type date, but classes must be texts, whole numbers or booleans",
    ),
    "complex numbers as y": (lambda d: fit(d.X, d.truth + 1j), "Complex data not supported"),
    "one row": (lambda d: fit(d.X[:1], d.y[:1]), "labels of only 1 class"),
    # weights, groups, priors
    "texts as weights": (lambda d: fit(d.X, d.y, sample_weight=["a"] * 40), "sample_weight must hold numbers"),
    "a column of weights": (lambda d: fit(d.X, d.y, sample_weight=np.ones((40, 1))), "must be 1D array"),
    "groups of the labeled rows only": (
        lambda d: fit(d.X, d.y, groups=np.arange(10)),
        r"groups must have one entry for each of the 40 rows, but has the shape \(10,\)",
    ),
    "a row without a group": (
        lambda d: fit(d.X, d.y, groups=np.where(np.arange(40) == 7, None, "x")),
        "groups has no group for row 7",
    ),
    "the name of a column as groups": (lambda d: fit(d.X, d.y, groups="subject"), "groups must have one entry"),
    "a prior for texts that are numbers": (
        lambda d: fit(d.X, d.y, class_prior={"0": 0.5, "1": 0.5}),
        r"class_prior has '0', which is not a class of the labels: they are \[0, 1\]",
    ),
    "a negative share": (
        lambda d: fit(d.X, d.y, class_prior=[-0.5, 1.5]),
        "class_prior must give each of the 2 classes a",
    ),
    "a misspelled member": (
        lambda d: fit(d.X, d.y, members=["consensuss"]),
        "members must be 'auto', None or some of",
    ),
    "a misspelled draw": (lambda d: fit(d.X, d.y, labels_drawn="randomly"), "labels_drawn"),
    "a pattern instead of a prefix": (
        lambda d: fit(pd.DataFrame(d.X, columns=COLUMNS), d.y, views={"a": "a_*", "b": "b_*"}),
        r"View 'a': no column name starts with 'a_\*'",
    ),
    # predictions and scores
    "predict before fit": (lambda d: CMVMED().predict(d.X), "not fitted yet"),
    "score before fit": (lambda d: CMVMED().score(d.X, d.truth), "not fitted yet"),
    "scores by view before fit": (lambda d: CMVMED().score_by_view(d.X, d.truth), "not fitted yet"),
    "one row as a list of numbers": (lambda d: fit(d.X, d.y).predict(d.X[0]), "Expected 2D array, got 1D array"),
    "no rows": (lambda d: fit(d.X, d.y).predict(d.X[:0]), r"0 sample\(s\)"),
    "more columns": (lambda d: fit(d.X, d.y).predict(np.c_[d.X, d.X]), "X has 10 features, but CMVMED is expecting 5"),
    "names scored by numbers": (
        lambda d: fitted_to_animals(d).score(d.X, d.truth),
        "None of the labels to score is a class that fit saw: y holds 0, 1, the classes are 'cat', 'dog'. Give the labels",
    ),
    "numbers scored by names": (
        lambda d: fit(d.X, d.y).score(d.X, ANIMALS[d.truth]),
        "y holds 'cat', 'dog', the classes",
    ),
    "numbers scored by their texts": (lambda d: fit(d.X, d.y).score(d.X, d.truth.astype(str)), "y holds '0', '1', the"),
    "names scored by upper case": (
        lambda d: fitted_to_animals(d).score(d.X, np.char.upper(ANIMALS)[d.truth]),
        "None of the labels to score is a class that fit saw: y holds 'CAT', 'DOG'",
    ),
    "one name with a blank": (
        lambda d: fitted_to_animals(d).score(d.X, np.array(["cat", " dog"])[d.truth]),
        "y holds the label ' dog', but fit saw the class 'dog'; spell them alike",
    ),
    "views scored by other names": (
        lambda d: fitted_to_animals(d).score_by_view(d.X, np.array(["cat", "Dog"])[d.truth]),
        "y holds the label 'Dog', but fit saw the class 'dog'",
    ),
    "probabilities as truth": (lambda d: fit(d.X, d.y).score(d.X, np.eye(2)[d.truth]), "y should be a 1d array"),
}
WARNED = {
    "unknown": (
        lambda d: fit(d.X, marked(d, "unknown")),
        "30 of 40 labels in y are the text 'unknown', which counts as a class of its own.*pass unlabeled='unknown' or put None",
    ),
    "a question mark": (
        lambda d: fit(d.X, marked(d, "?")),
        r"30 of 40 labels in y are the text '\?'.*pass unlabeled='\?'",
    ),
    "NaN that became a text": (lambda d: fit(d.X, marked(d, "nan")), "30 of 40 labels in y are the text 'nan'"),
    "-1.0 that became a text": (lambda d: fit(d.X, marked(d, "-1.0")), "30 of 40 labels in y are the text '-1.0'"),
    "a marker of other case": (
        lambda d: fit(d.X, marked(d, "Unlabeled"), unlabeled="unlabeled"),
        "30 of 40 labels in y are the text 'Unlabeled'",
    ),
    "two markers": (
        lambda d: fit(d.X, np.where(np.arange(40) > 30, "", marked(d, "n/a"))),
        "21 of 40 labels in y are the text 'n/a'.*If it marks unlabeled rows, put None in its place",
    ),
    "the marker as a text": (
        lambda d: fit(d.X, d.y, unlabeled="-1"),
        "30 of 40 labels in y are -1, which counts as a class.*because unlabeled='-1' is not a number.*pass unlabeled=-1",
    ),
    "NaN as the marker of -1": (
        lambda d: fit(d.X, d.y, unlabeled=np.nan),
        "labels in y are -1.*unlabeled=nan is not a number",
    ),
    "classes that differ by case": (
        lambda d: fit(d.X, np.array(["cat", "Cat ", "dog"])[np.arange(40) % 3]),
        "The classes 'Cat ', 'cat' of y differ only by case or surrounding blanks and count as 2 classes",
    ),
    "classes that look alike": (
        lambda d: fit(d.X, np.array(["caf\u00e9", "cafe\u0301", "dog"])[np.arange(40) % 3]),
        r"The classes 'cafe\\u0301', 'caf\\xe9' of y look alike and count as 2 classes",
    ),
    "row numbers as y": (lambda d: fit(d.X, np.arange(40)), "unique classes is greater than 50%"),
    "y of the same index in another order": (
        lambda d: fit_frame(d, y=pd.Series(d.y, index=np.arange(40)[::-1])),
        r"same index in another order. Rows are matched by position; .*pass y.loc\[X.index\]",
    ),
    "a column of y": (lambda d: fit(d.X, d.y[:, None]), "A column-vector y was passed"),
    "equal rows": (lambda d: CMVMED(views=SLICES, n_stages=1).fit(np.ones((40, 5)), d.y), "equal ones"),
    "one group": (lambda d: CMVMED(views=SLICES, n_stages=1).fit(d.X, d.y, groups=np.zeros(40)), "of one group only"),
    "training rows as test rows": (
        lambda d: fit(d.X, d.y).score(d.X, d.y),
        "30 of 40 rows of y are unlabeled and are not scored.*SemiSupervisedKFold.*labeled_scorer",
    ),
    "plain folds": (
        lambda d: cross_val_score(quick(views=SLICES), d.X, d.y, cv=StratifiedKFold(2)),
        "rows of y are unlabeled and are not scored.*SemiSupervisedKFold",
    ),
    "a column of NaN": (
        lambda d: fit(changed(d.X, slice(None), 1, np.nan), d.y),
        "column 1 is NaN in every training row",
    ),
    "an array for a frame": (
        lambda d: fit(pd.DataFrame(d.X, columns=COLUMNS), d.y).predict(d.X),
        "X does not have valid feature names",
    ),
}
HARMLESS = {
    "booleans as y": lambda d: (d.X, d.truth.astype(bool), d.X, d.truth),
    "whole floats as y": lambda d: (d.X, np.where(d.hidden, np.nan, d.y), d.X, d.truth),
    "whole numbers as X": lambda d: (d.X.astype(int), d.y, d.X, d.truth),
    "half precision": lambda d: (d.X.astype(np.float16), d.y, d.X, d.truth),
    "lists": lambda d: (d.X.tolist(), d.y.tolist(), d.X.tolist(), d.truth.tolist()),
    "numbers as column names": lambda d: (pd.DataFrame(d.X), d.y, d.X, d.truth),
    "texts that are numbers": lambda d: (d.X.astype(str).astype(object), d.y, d.X, d.truth),
    "numbers of 1e300": lambda d: (d.X * 1e300, d.y, d.X * 1e300, d.truth),
    "one number of 1e300": lambda d: (changed(d.X, 33, 4, 1e300), d.y, d.X, d.truth),
    "a new number of 1e300": lambda d: (d.X, d.y, changed(d.X, 33, 4, 1e300), d.truth),
    "a constant column": lambda d: (changed(d.X, slice(None), 2, 7.0), d.y, changed(d.X, slice(None), 2, 7.0), d.truth),
    "a NaN in a sparse matrix": lambda d: (sparse.csr_array(changed(d.X, 3, 4, np.nan)), d.y, d.X, d.truth),
    "None in cells": lambda d: (np.where(d.X == 3.0, None, d.X), d.y, d.X, d.truth),
    "a masked array": lambda d: (
        np.ma.masked_array(changed(d.X, 3, 4, 1e6), mask=changed(np.zeros_like(d.X), 3, 4, 1)),
        d.y,
        d.X,
        d.truth,
    ),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(("mistake", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_mistake_is_refused(mistake, message, partly):
    with pytest.raises((ValueError, TypeError), match=message):
        mistake(partly)


@pytest.mark.parametrize(("mistake", "message"), WARNED.values(), ids=WARNED.keys())
def test_a_mistake_is_warned_of(mistake, message, partly):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mistake(partly)
    assert any(re.search(message, str(warning.message)) for warning in caught), [str(w.message) for w in caught]


@pytest.mark.parametrize("case", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_may_look_like_a_mistake_gives_a_right_answer(case, partly):
    X, y, X_new, truth = case(partly)
    assert fit(X, y).score(X_new, truth) >= 0.9


def test_masked_cells_are_gaps(partly):
    masked, gap = np.ma.masked_array(partly.X.copy(), mask=np.zeros((40, 5))), partly.X.copy()
    masked[3, 4], gap[3, 4] = np.ma.masked, np.nan
    model = fit(masked, partly.y)
    assert model.n_imputed_cells_ == {"a": 0, "b": 1}
    np.testing.assert_array_equal(model.predict_proba(masked), fit(gap, partly.y).predict_proba(gap))


@pytest.mark.parametrize(
    "index", [np.arange(40), np.arange(40) + 100, ["x"] * 40, [*range(20), *"abcdefghijklmnopqrst"]]
)
def test_other_indices_give_no_warning(index, partly):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit_frame(partly, y=pd.Series(partly.y, index=index))
    np.testing.assert_array_equal(model.label_distributions_, fit_frame(partly, y=partly.y).label_distributions_)


def test_classes_that_fit_did_not_see_are_wrong_predictions(partly):
    model = fit(partly.X, partly.y)
    truth = np.where(np.arange(40) < 4, 7, partly.truth)
    assert model.score(partly.X, truth) == (model.predict(partly.X) == truth).mean()


def test_numbers_may_be_scored_by_other_kinds_of_numbers(partly):
    model = fit(partly.X, partly.y)
    expected = model.score(partly.X, partly.truth)
    assert model.score(partly.X, partly.truth.astype(float)) == model.score(partly.X, partly.truth == 1) == expected


def test_a_search_by_the_area_under_the_curve(partly):
    """scikit-learn's own scorers see the marker as a class; folds of labeled rows, or the wrapped scorer, do not."""
    X, y = partly.X, partly.y
    for cv, scoring in [
        (SemiSupervisedKFold(2), "roc_auc"),
        ([(np.arange(40), np.arange(0, 40, 3))], labeled_scorer("roc_auc")),
    ]:
        search = GridSearchCV(quick(views=SLICES), {"C": [0.1, 1.0]}, cv=cv, scoring=scoring).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_score_ > 0.5


def test_med_refuses_and_warns_alike(partly):
    with pytest.raises(ValueError, match="None of the labels to score is a class that fit saw"):
        MED().fit(partly.X, partly.y).score(partly.X, ANIMALS[partly.truth])
    with pytest.warns(UserWarning, match="30 of 40 labels in y are the text 'unknown'"):
        MED().fit(partly.X, marked(partly, "unknown"))
