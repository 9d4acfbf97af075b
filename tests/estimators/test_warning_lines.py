"""Warnings show the line of the user's call, by whatever path through the library they arise."""

import warnings
from dataclasses import replace
from functools import partial
from inspect import currentframe

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cmvmed import CMVMED, MED, MVMED, SVM2K, CoRLS, SemiSupervisedKFold
from cmvmed.auto.tuning import Tuning, tuning_context

VIEWS = {"a": slice(0, 3), "b": slice(3, 5)}


def without_rows(X, rows):
    X = X.copy()
    X[rows] = np.nan
    return X


def check_line(call, message):
    """The call gives one warning with this message, which shows the line of the call below."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = currentframe().f_lineno + 1
        call()
    assert [warning for warning in caught if message in str(warning.message)] == caught
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


def test_a_stage_that_does_not_converge(partly):
    fit = CMVMED(views=VIEWS, tol=0.0, max_iter=1).fit
    check_line(partial(fit, partly.X, partly.y), "did not converge within max_iter")


def test_training_rows_without_any_view(partly):
    X = without_rows(partly.X, [2, 15])
    check_line(partial(CMVMED(views=VIEWS).fit, X, partly.y), "2 training rows have all views missing")


def test_training_rows_without_any_view_in_a_streamed_fit(partly):
    X, y = np.tile(partly.X, (30, 1)), np.full(1200, -1)
    y[:10] = partly.y[:10]
    fit = CMVMED(views=VIEWS, approximation=20, n_stages=2, tol=0.1).fit
    with tuning_context(replace(Tuning(), sample_rows=300)):
        check_line(partial(fit, without_rows(X, [600, 601]), y), "2 training rows have all views missing")


def test_a_view_that_no_training_row_has(partly):
    X = np.hstack([partly.X, np.full((40, 1), np.nan)])
    check_line(partial(CMVMED(views={"a": 3, "b": 2, "c": 1}).fit, X, partly.y), "View 'c' is missing")


def test_a_lost_class(partly):
    X = np.where(partly.hidden[:, None], partly.X[0], partly.X)
    fit = CMVMED(views=VIEWS, class_prior=None, temperature=0.01).fit
    check_line(partial(fit, X, partly.y), "drifted away from class 1")


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("model", [CMVMED(views=VIEWS, n_stages=1), MED(), MVMED(views=VIEWS)])
def test_new_rows_without_any_view(model, method, partly):
    predict = getattr(model.fit(partly.X, partly.y), method)
    check_line(partial(predict, without_rows(partly.X, [4])), "1 of 40 rows have no view present")


@pytest.mark.parametrize("model", [CMVMED(views=VIEWS, n_stages=1), SVM2K(views=VIEWS), CoRLS(views=VIEWS)])
def test_new_rows_without_any_view_in_a_score(model, partly):
    score = model.fit(partly.X, partly.y).score
    check_line(partial(score, without_rows(partly.X, [4]), partly.truth), "1 of 40 rows have no view present")


def test_new_rows_without_any_view_in_a_file(partly, tmp_path):
    np.save(tmp_path / "new.npy", without_rows(partly.X, [4]))
    model = CMVMED(views=VIEWS, n_stages=1).fit(partly.X, partly.y)
    check_line(partial(model.predict, tmp_path / "new.npy"), "1 of 40 rows have no view present")


def test_new_rows_without_any_view_in_a_pipeline(partly):
    model = make_pipeline(FunctionTransformer(), CMVMED(views=VIEWS, n_stages=1)).fit(partly.X, partly.y)
    check_line(partial(model.predict, without_rows(partly.X, [4])), "1 of 40 rows have no view present")


BLANK = "labels in y are the blank text ''"


def with_blank(y):
    return pd.Series(np.array(["one", "two", ""])[y])


@pytest.mark.parametrize("model", [CMVMED(views=VIEWS, n_stages=1), MED()])
def test_a_blank_class(model, partly):
    check_line(partial(model.fit, partly.X, with_blank(partly.y)), BLANK)


def test_a_blank_class_in_folds(partly):
    folds = SemiSupervisedKFold(2).split(partly.X, with_blank(partly.y))
    check_line(partial(next, folds), BLANK)


def test_a_dual_that_is_not_solved(partly, monkeypatch):
    monkeypatch.setattr("cmvmed.numerics.interior_point.MAX_STEPS", 2)
    check_line(partial(MVMED(views=VIEWS).fit, partly.X, partly.y), "violates the optimality conditions")


def test_the_check_of_lines_can_fail():
    def wrong_level():
        warnings.warn("deep", stacklevel=1)  # the line of this function

    with pytest.raises(AssertionError):
        check_line(wrong_level, "deep")
    with pytest.raises(AssertionError):
        check_line(lambda: None, "deep")
