"""A fit that fails leaves the model as it was: fitted to the earlier rows, or not fitted at all."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cmvmed import CMVMED, MED, MVMED, SVM2K, CoRLS

VIEWS = {"audio": slice(0, 3), "video": slice(3, None)}


def kernel_of_few_columns(A, B):
    """The linear kernel, which fails within a fit to the wider rows of the tests below."""
    if A.shape[1] in (4, 7):
        raise ArithmeticError("too wide")
    return A @ B.T


ESTIMATORS = {
    "CMVMED": CMVMED(views=VIEWS, n_stages=2, kernel=kernel_of_few_columns),
    "CMVMED low rank": CMVMED(views=VIEWS, n_stages=2, kernel=kernel_of_few_columns, approximation=5),
    "MED": MED(kernel=kernel_of_few_columns),
    "SVM2K": SVM2K(views=VIEWS, kernel=kernel_of_few_columns),
    "MVMED": MVMED(views=VIEWS, kernel=kernel_of_few_columns),
    "CoRLS": CoRLS(views=VIEWS, kernel=kernel_of_few_columns),
}
WIDER = np.arange(280.0).reshape(40, 7) % 11.0  # two columns more than the rows of the first fit


def labels(of_the_rest=-1):
    return np.r_[np.arange(10) % 2, np.full(30, of_the_rest)]


def with_value(value):
    X = WIDER.astype(object)
    X[3, 1] = value
    return pd.DataFrame(X, columns=list("abcdefg"))


BAD_FITS = {  # each sees other columns than the first fit did
    "no label": (WIDER, np.full(40, -1)),
    "one class": (WIDER, np.zeros(40, int)),
    "too few labels": (WIDER, labels()[:-1]),
    "no y": (WIDER, None),
    "labels that are measurements": (WIDER, np.linspace(0.0, 1.0, 40)),
    "a frame and one class": (pd.DataFrame(WIDER, columns=list("abcdefg")), np.zeros(40, int)),
    "a gap": (with_value(np.nan), labels()),
    "an infinite value": (with_value(np.inf), labels()),
    "a text": (with_value("loud"), labels()),
    "a table per view": ({"left": WIDER[:, :3], "right": WIDER[:, 3:]}, labels()[:-1]),
    "views of unequal length": ([WIDER[:, :3], WIDER[:-1, 3:]], labels()),
    "one dimension": (WIDER[:, 0], labels()),
    "a kernel that fails": (WIDER, labels()),
}


@pytest.fixture(params=list(ESTIMATORS))
def estimator(request):
    return clone(ESTIMATORS[request.param])


def assert_fit_fails_and_changes_nothing(model, X, y):
    before = copy(vars(model))
    with pytest.raises((ValueError, ArithmeticError)):
        model.fit(X, y)
    after = vars(model)
    assert after.keys() == before.keys()
    assert [name for name, value in after.items() if value is not before[name]] == []


@pytest.mark.parametrize("bad", list(BAD_FITS))
def test_a_failed_refit_leaves_the_earlier_model(bad, estimator, partly):
    model = estimator.fit(partly.X, partly.y)
    scores = model.decision_function(partly.X)
    assert_fit_fails_and_changes_nothing(model, *BAD_FITS[bad])
    np.testing.assert_array_equal(model.decision_function(partly.X), scores)
    with pytest.raises(ValueError, match="7 features"):
        model.predict(WIDER)


@pytest.mark.parametrize("bad", list(BAD_FITS))
def test_a_failed_first_fit_leaves_no_model(bad, estimator, partly):
    assert_fit_fails_and_changes_nothing(estimator, *BAD_FITS[bad])
    with pytest.raises(NotFittedError):
        estimator.predict(WIDER)


def test_a_failed_fit_to_a_file_leaves_the_earlier_model(partly, tmp_path):
    np.save(tmp_path / "wider.npy", WIDER)
    model = clone(ESTIMATORS["CMVMED"]).fit(partly.X, partly.y)
    assert_fit_fails_and_changes_nothing(model, tmp_path / "wider.npy", np.zeros(40, int))
    assert_fit_fails_and_changes_nothing(model, tmp_path / "wider.npy", labels())  # by its kernel


def test_a_refit_that_succeeds_forgets_the_earlier_columns(partly):
    names = ["a_0", "a_1", "a_2", "b_0", "b_1"]
    model = MED().fit(pd.DataFrame(partly.X, columns=names), partly.y)
    assert list(model.feature_names_in_) == names
    model.fit(WIDER, labels())
    assert model.n_features_in_ == 7
    assert not hasattr(model, "feature_names_in_")


class EarlyMED(MED):
    """Sets attributes before all of the input is checked, so that a failed fit leaves half a model."""

    def _read_training(self, X, y, sample_weight):
        self.n_features_in_ = X.shape[1]
        return super()._read_training(X, y, sample_weight)


def test_a_model_that_changes_early_is_noticed(partly):
    with pytest.raises(AssertionError, match="n_features_in_"):
        assert_fit_fails_and_changes_nothing(EarlyMED(), *BAD_FITS["one class"])
    with pytest.raises(AssertionError, match="n_features_in_"):
        assert_fit_fails_and_changes_nothing(EarlyMED().fit(partly.X, partly.y), *BAD_FITS["one class"])
