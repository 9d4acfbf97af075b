"""Single gaps of a view are filled with column means, which weights count as repetitions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.impute import SimpleImputer

from cmvmed.views.preprocessing import fit_imputation
from tests.core.factories import rejects

FORMS = {"dense": np.asarray, "csr array": sparse.csr_array, "csr matrix": sparse.csr_matrix}


def gappy_rows(seed=0, n=30, d=4):
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((n, d)) < 0.3, 0.0, rng.normal(size=(n, d)))
    rows[rng.random((n, d)) < 0.2] = np.nan
    return rows


def as_dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def check_filled(imputation, rows, expected):
    np.testing.assert_allclose(as_dense(imputation.apply(rows)), expected, atol=1e-13)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_gaps_are_filled_as_by_scikit_learn(form):
    train, new = gappy_rows(), gappy_rows(1)
    imputer = SimpleImputer().fit(train)
    imputation = fit_imputation(form(train), np.ones(30))
    check_filled(imputation, form(train), imputer.transform(train))
    check_filled(imputation, form(new), imputer.transform(new))
    rejects(check_filled, imputation, form(new), SimpleImputer(strategy="median").fit(train).transform(new))
    assert imputation.n_cells == np.isnan(train).sum()
    np.testing.assert_allclose(imputation.gaps, np.isnan(train).mean(axis=0))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_weights_are_repetitions(form):
    train, weights = gappy_rows(), np.arange(30) % 3 + 1
    weighted = fit_imputation(form(train), weights.astype(float))
    repeated = fit_imputation(form(np.repeat(train, weights, axis=0)), np.ones(weights.sum()))
    np.testing.assert_allclose(weighted.means, repeated.means, atol=1e-13)
    assert not np.allclose(weighted.means, fit_imputation(form(train), np.ones(30)).means)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_column_without_any_number_is_zero_in_all_rows(form):
    train = gappy_rows()
    train[:, 2] = np.nan
    imputation = fit_imputation(form(train), np.ones(30))
    np.testing.assert_array_equal(imputation.empty, [False, False, True, False])
    assert imputation.n_cells == np.isnan(train[:, [0, 1, 3]]).sum()
    new = gappy_rows(1)
    np.testing.assert_array_equal(as_dense(imputation.apply(form(new)))[:, 2], 0.0)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_rows_without_gaps_are_not_copied_and_others_not_changed(form):
    train = gappy_rows()
    imputation = fit_imputation(form(train), np.ones(30))
    complete, gappy = form(np.nan_to_num(train)), form(train)
    assert imputation.apply(complete) is complete
    imputation.apply(gappy)
    np.testing.assert_array_equal(as_dense(gappy), train)


def test_means_of_huge_numbers_are_finite():
    train = np.array([[1.7e308], [1.7e308], [np.nan], [1.6e308]])
    assert np.isfinite(fit_imputation(train, np.ones(4)).means).all()


def test_no_rows():
    imputation = fit_imputation(np.empty((0, 3)), np.empty(0))
    assert imputation.empty.all()
    assert imputation.n_cells == 0
