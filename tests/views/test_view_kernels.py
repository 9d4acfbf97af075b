"""The kernel "auto": linear for standardized views of more columns than rows, else the mean of linear and RBF."""

import numpy as np
import pytest
from scipy import sparse

from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning
from cmvmed.estimators._settings import ViewParameters
from cmvmed.views.view_rows import read_view

TUNING = Tuning()


def read(matrix, kernel="auto", weights=None, **given):
    n = matrix.shape[0]
    settings = ViewParameters(kernel, **given).by_view(["v"], 2, TUNING)[0]
    weights = np.ones(n) if weights is None else weights
    return read_view(settings, matrix, np.ones(n, dtype=bool), np.arange(n), weights, np.random.default_rng(0))


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(("n", "d", "kernel"), [(30, 31, "linear"), (30, 30, "linear+rbf"), (30, 5, "linear+rbf")])
def test_more_columns_than_rows_have_a_linear_kernel(n, d, kernel):
    view = read(rows(n, d))
    assert view.kernel.kind == view.settings.kernel == kernel
    assert view.scaling.clip == view.settings.clip == (TUNING.wide_clip if kernel == "linear" else TUNING.clip)


def test_it_is_the_named_kernel_otherwise():
    wide, narrow = rows(30, 60), rows(30, 6)
    assert read(wide, "linear+rbf").kernel.kind == "linear+rbf"
    np.testing.assert_array_equal(read(narrow).train, read(narrow, "linear+rbf").train)
    some = np.arange(4, 30)
    np.testing.assert_array_equal(read(narrow).kernel_of(some), read(narrow, "linear+rbf").kernel_of(some))


def test_far_values_are_clipped_later_in_wide_views():
    wide = rows(30, 60)
    wide[3, 0] = 1e3
    largest = np.sqrt(60) * np.abs(read(wide).train).max()
    assert TUNING.clip < largest <= TUNING.wide_clip + 1e-12
    assert np.sqrt(60) * np.abs(read(wide, "linear").train).max() == pytest.approx(TUNING.clip)


def test_texts_and_unscaled_views_keep_both_kernels():
    counts = sparse.random(30, 200, density=0.05, random_state=0, format="csr")
    assert read(counts).kernel.kind == "linear+rbf"
    assert read(rows(30, 60), scaling="unit").kernel.kind == "linear+rbf"
    assert read(rows(30, 60), scaling=None).kernel.kind == "linear+rbf"


def test_rows_without_weight_do_not_count():
    matrix, weights = rows(60, 40), np.ones(60)
    assert read(matrix, weights=weights).kernel.kind == "linear+rbf"
    weights[30:] = 0.0
    assert read(matrix, weights=weights).kernel.kind == "linear"


def test_a_fit_decides_for_each_view():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
    X = {"wide": rng.normal(size=(60, 90)), "narrow": rng.normal(size=(60, 4))}
    for values in X.values():
        values[:, :2] += np.arange(60)[:, None] % 2
    model = CMVMED(random_state=0).fit(X, y)
    explicit = CMVMED(kernel={"wide": "linear+rbf", "narrow": "linear+rbf"}, random_state=0).fit(X, y)
    assert not np.allclose(model.predict_proba(X), explicit.predict_proba(X))
    same = CMVMED(random_state=0).fit({"narrow": X["narrow"]}, y)
    named = CMVMED(kernel="linear+rbf", random_state=0).fit({"narrow": X["narrow"]}, y)
    np.testing.assert_array_equal(
        same.predict_proba({"narrow": X["narrow"]}), named.predict_proba({"narrow": X["narrow"]})
    )
