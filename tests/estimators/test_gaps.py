"""Single NaN in a view are filled with column means; a view without any number in a row is missing there."""

import warnings
from dataclasses import replace

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from cmvmed import CMVMED, MED, MVMED, CoRLS
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.datasets import make_multiview_gaussian
from tests.core.factories import rejects

VIEWS = {"a": slice(0, 3), "b": slice(3, 5)}
COLUMNS = ["a_0", "a_1", "a_2", "b_0", "b_1"]
GAPS = [(12, 0), (12, 1), (3, 4), (20, 3), (31, 2)]  # (row, column)
ABSENT = [(5, slice(0, 3)), (17, slice(0, 3)), (25, slice(3, 5))]


@pytest.fixture(scope="module")
def gappy(partly):
    X = partly.X.copy()
    for row, column in GAPS + ABSENT:
        X[row, column] = np.nan
    return X


@pytest.fixture(scope="module")
def filled(gappy):
    """The gaps filled by hand, before the library sees them; absent views stay NaN."""
    X = gappy.copy()
    means = np.nanmean(X, axis=0)
    for row, column in GAPS:
        X[row, column] = means[column]
    return X


def check_same(model, X, other, other_X):
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(other_X), atol=1e-9)
    np.testing.assert_allclose(model.label_distributions_, other.label_distributions_, atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"scaling": None}, {"kernel": "rbf", "scaling": "unit"}])
@pytest.mark.parametrize("algorithm", ["bohning", "jaakkola"])
def test_a_fit_with_gaps_is_that_of_rows_filled_with_column_means(settings, algorithm, partly, gappy, filled):
    model = CMVMED(views=VIEWS, n_stages=2, algorithm=algorithm, **settings).fit(gappy, partly.y)
    expected = CMVMED(views=VIEWS, n_stages=2, algorithm=algorithm, **settings).fit(filled, partly.y)
    check_same(model, gappy, expected, filled)
    assert model.n_imputed_cells_ == {"a": 3, "b": 2}
    assert expected.n_imputed_cells_ == {"a": 0, "b": 0}
    zeros = np.where(np.isnan(gappy) & ~np.isnan(filled), 0.0, gappy)
    rejects(check_same, model, gappy, CMVMED(views=VIEWS, n_stages=2, **settings).fit(zeros, partly.y), zeros)


FORMS = {
    "frame": lambda X: pd.DataFrame(X, columns=COLUMNS),
    "polars": lambda X: pl.DataFrame(X, schema=COLUMNS, nan_to_null=True),
    "csr": sparse.csr_array,
    "dask array": lambda X: da.from_array(X, chunks=(9, -1)),
    "dask frame": lambda X: dd.from_pandas(pd.DataFrame(X, columns=COLUMNS), npartitions=3),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_gaps_in_every_form_of_X(form, partly, gappy):
    settings = {"views": VIEWS, "n_stages": 2, "scaling": "standard"}
    expected = CMVMED(**settings).fit(gappy, partly.y).predict_proba(gappy)
    model = CMVMED(**settings).fit(form(gappy), partly.y)
    assert model.n_imputed_cells_ == {"a": 3, "b": 2}
    np.testing.assert_allclose(np.asarray(model.predict_proba(form(gappy))), expected, atol=1e-8)


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv"])
def test_gaps_in_files(suffix, tmp_path, partly, gappy):
    path, frame = tmp_path / f"rows.{suffix}", pd.DataFrame(gappy, columns=COLUMNS)
    {"parquet": frame.to_parquet, "feather": frame.to_feather, "csv": lambda p: frame.to_csv(p, index=False)}[suffix](
        path
    )
    model = CMVMED(views=VIEWS, n_stages=2).fit(path, partly.y)
    expected = CMVMED(views=VIEWS, n_stages=2).fit(gappy, partly.y)
    assert model.n_imputed_cells_ == {"a": 3, "b": 2}
    check_same(model, path, expected, gappy)


@pytest.mark.parametrize("model", [MVMED(views=VIEWS), CoRLS(views=VIEWS)])
def test_gaps_in_the_baselines(model, partly, gappy, filled, fitted):
    found = fitted(model, gappy, partly.y)
    expected = fitted(model, filled, partly.y).decision_function(filled)
    np.testing.assert_allclose(found.decision_function(gappy), expected, atol=1e-9)
    assert found.n_imputed_cells_ == {"a": 3, "b": 2}


def test_gaps_of_med(partly, gappy):
    model = MED().fit(gappy, partly.y)
    filled = np.where(np.isnan(gappy), np.nanmean(gappy, axis=0), gappy)
    np.testing.assert_allclose(model.predict_proba(gappy), MED().fit(filled, partly.y).predict_proba(filled), atol=1e-9)
    assert model.n_imputed_cells_ == {"view0": int(np.isnan(gappy).sum())}


def test_gaps_in_new_rows_only(partly, fresh_rows):
    model = CMVMED(views=VIEWS, n_stages=2).fit(partly.X, partly.y)
    gappy, filled = fresh_rows.copy(), fresh_rows.copy()
    gappy[4, 1], filled[4, 1] = np.nan, partly.a[:, 1].mean()
    np.testing.assert_allclose(model.predict_proba(gappy), model.predict_proba(filled), atol=1e-12)
    scores, deviations = model.decision_function_by_view(gappy, return_std=True)["a"]
    expected = model.decision_function_by_view(filled, return_std=True)["a"]
    np.testing.assert_allclose([scores, deviations], expected, atol=1e-12)
    assert np.abs(model.predict_proba(gappy) - model.predict_proba(fresh_rows)).max() > 1e-4


def test_rows_of_no_weight_do_not_count_in_the_means(partly, gappy):
    weights = (np.arange(40) != 39).astype(float)
    far = gappy.copy()
    far[39] = 1e6
    model = CMVMED(views=VIEWS, n_stages=2).fit(far, partly.y, sample_weight=weights)
    expected = CMVMED(views=VIEWS, n_stages=2).fit(gappy[:39], partly.y[:39])
    np.testing.assert_allclose(model.predict_proba(gappy), expected.predict_proba(gappy), atol=1e-8)


@pytest.mark.parametrize("scaling", ["auto", "unit", None])
def test_a_column_without_any_number_is_ignored(scaling, partly, fresh_rows):
    X = np.hstack([partly.X, np.full((40, 1), np.nan)])
    views = {"a": slice(0, 3), "b": slice(3, 6)}
    with pytest.warns(UserWarning, match=r"View 'b': column 2 is NaN in every training row and will be ignored"):
        model = CMVMED(views=views, n_stages=2, scaling=scaling, kernel="rbf").fit(X, partly.y)
    assert model.n_imputed_cells_ == {"a": 0, "b": 0}
    absent, found = np.full(20, np.nan), np.linspace(-50, 50, 20)
    expected = model.predict_proba(np.c_[fresh_rows, absent])
    np.testing.assert_array_equal(model.predict_proba(np.c_[fresh_rows, found]), expected)
    only_this = np.c_[
        fresh_rows[:, :3], np.full((20, 2), np.nan), found
    ]  # a number there does not make the view present
    without = np.c_[fresh_rows[:, :3], np.full((20, 3), np.nan)]
    np.testing.assert_array_equal(model.predict_proba(only_this), model.predict_proba(without))


def test_columns_that_are_mostly_filled_are_named(partly):
    X = pd.DataFrame(partly.X, columns=COLUMNS)
    X.loc[:25, ["a_1", "a_2"]] = np.nan
    message = (
        r"View 'a': column 'a_1' \(position 1\) and 1 more are NaN in most training rows that have the view \(up to 65%\)"
        r".*give them a view of their own"
    )
    with pytest.warns(UserWarning, match=message):
        CMVMED(views={"a": "a_", "b": "b_"}, n_stages=1).fit(X, partly.y)


def test_few_gaps_give_no_warning(partly, gappy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CMVMED(views=VIEWS, n_stages=1).fit(gappy, partly.y)
        assert np.isfinite(model.predict_proba(gappy)).all()
    assert sum(model.n_imputed_cells_.values()) > 0


@pytest.fixture(scope="module")
def many():
    data = make_multiview_gaussian(1500, n_features=4, separation=(2.0, 1.5), labeled=30, random_state=0)
    X, rng = data.data.copy(), np.random.default_rng(0)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[100:130, :4] = np.nan
    return X, data.y, data.target


SMALL_SAMPLE = replace(Tuning(), sample_rows=300)
STREAMED = {"views": [4, 4], "approximation": 40, "n_stages": 2, "random_state": 0}


def streamed_fit(X, y):
    with tuning_context(SMALL_SAMPLE):
        return CMVMED(**STREAMED).fit(X, y)


def test_gaps_in_a_streamed_fit(many, tmp_path):
    """Means are those of the sample that is annealed; filled by hand with them, all rows give the same fit."""
    X, y, target = many
    model = streamed_fit(X, y)
    assert "n_annealed" in model.approximation_
    means = np.concatenate([p.imputation.means for p in model._model.preprocessors])
    np.testing.assert_allclose(means, np.nanmean(X, axis=0), atol=0.2)
    missing = np.isnan(X)
    absent = np.repeat(np.c_[missing[:, :4].all(axis=1), missing[:, 4:].all(axis=1)], 4, axis=1)
    filled = np.where(missing & ~absent, means, X)
    check_same(model, X, streamed_fit(filled, y), filled)
    assert (model.transduction_ == target).mean() > 0.8
    np.save(tmp_path / "rows.npy", X)
    check_same(model, X, streamed_fit(tmp_path / "rows.npy", y), tmp_path / "rows.npy")
    collection = da.from_array(X, chunks=(400, -1))
    with tuning_context(SMALL_SAMPLE):
        in_dask = CMVMED(**STREAMED).fit(collection, y)
    np.testing.assert_allclose(np.asarray(in_dask.predict_proba(collection)), model.predict_proba(X), atol=1e-6)
