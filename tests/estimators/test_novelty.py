"""Rows unlike the training rows are flagged, by every form of model; one in a hundred of the others is."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import cmvmed
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context

FAST = {"members": None}
VIEWS = {"a": slice(0, 6), "b": slice(6, 10)}


def table(n, seed):
    """Ten columns: one constant, one rare one-hot, the others Gaussian by class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.random.default_rng(50).normal(size=(3, 10))[y] + rng.normal(size=(n, 10))
    X[:, 2] = 7.0
    X[:, 3] = rng.random(n) < 0.02
    return X, y


def partly(y, n_labeled=18):
    return np.where(np.arange(y.size) < n_labeled, y, -1)


def fitted(n=300, **parameters):
    X, y = table(n, 0)
    return CMVMED(views=VIEWS, **FAST | parameters).fit(X, partly(y))


FORMS = {
    "exact": {},
    "landmarks": {"approximation": 60},
    "callable": {"kernel": lambda A, B: A @ B.T},
    "unscaled": {"scaling": None, "kernel": "rbf"},
    "unit rows": {"scaling": "unit"},
}


@pytest.mark.parametrize("form", FORMS)
def test_columns_at_a_million_are_flagged_in_all_rows(form):
    model, X = fitted(**FORMS[form]), table(40, 1)[0]
    before = model.novelty(X)
    for column in range(10):
        changed = X.copy()
        changed[:, column] = 1e6
        view, other = ("a", "b") if column < 6 else ("b", "a")
        found = model.novelty(changed)
        assert (found[view] > 1.0).all()
        np.testing.assert_array_equal(found[other], before[other])


@pytest.mark.parametrize("form", FORMS)
def test_few_rows_of_the_same_distribution_are_flagged(form):
    """1 % is expected; of 200 kept rows, the share above their 99 % quantile varies by about 0.7 %."""
    found = fitted(**FORMS[form]).novelty(table(2000, 2)[0])
    for values in found.values():
        assert (values > 1.0).mean() <= 0.035


def test_the_expected_share_is_one_percent():
    """The mean over twelve models: within half a point."""
    shares = []
    for seed in range(12):
        X, y = table(240, seed)
        model = CMVMED(views=VIEWS, **FAST).fit(X, partly(y))
        shares += [(values > 1.0).mean() for values in model.novelty(table(1000, 100 + seed)[0]).values()]
    assert 0.005 <= np.mean(shares) <= 0.015


def test_real_rows():
    X, y = load_digits(return_X_y=True)
    views = {"upper": slice(0, 32), "lower": slice(32, 64)}
    model = CMVMED(views=views, **FAST).fit(X[::2], partly(y[::2], 40))
    for values in model.novelty(X[1::2]).values():
        assert 0.0 < (values > 1.0).mean() <= 0.03
    for values in model.novelty(X[1::2] + 40.0).values():
        assert (values > 1.0).all()


def test_exchanged_columns_are_more_remote():
    model, X = fitted(), table(200, 3)[0]
    swapped = X.copy()
    swapped[:, :2] += 3.0
    swapped[:, [0, 1, 2]] = swapped[:, [2, 0, 1]]
    assert (model.novelty(swapped)["a"] > model.novelty(X)["a"]).mean() > 0.95


def test_missing_views_are_nan_and_single_gaps_are_filled():
    model, X = fitted(), table(30, 4)[0]
    X[:10, :6] = np.nan
    X[10:20, 7] = np.nan
    found = model.novelty(X)
    np.testing.assert_array_equal(np.isnan(found["a"]), np.arange(30) < 10)
    assert np.isfinite(found["b"]).all()
    filled = X.copy()
    filled[10:20, 7] = model._model.preprocessors[1].imputation.means[1]
    np.testing.assert_allclose(model.novelty(filled)["b"], found["b"])


def test_a_view_that_no_training_row_has():
    X, y = table(60, 0)
    X[:, 6:] = np.nan
    with pytest.warns(UserWarning, match="missing in every training row"):
        model = CMVMED(views=VIEWS, **FAST).fit(X, partly(y))
    found = model.novelty(table(25, 1)[0])
    assert np.isnan(found["b"]).all()
    assert np.isfinite(found["a"]).all()
    assert model.sensor_health(table(25, 1)[0])["b"].fault == "unknown"


@pytest.mark.parametrize("n", [4, 8, 20])
def test_tiny_training_sets(n):
    X, y = table(n, 0)
    y = np.arange(n) % 2
    model = CMVMED(views=VIEWS, **FAST).fit(X, np.where(np.arange(n) < 4, y, -1))
    new = table(50, 1)[0]
    assert all(np.isfinite(values).all() for values in model.novelty(new).values())
    if n > 4:
        assert all((values <= 1.0).mean() > 0.3 for values in model.novelty(new).values())
    assert all((values > 1.0).all() for values in model.novelty(new + 1e6).values())
    assert set(model.sensor_health(new)) == {"a", "b"}


def test_sparse_text_views_and_precomputed_kernels():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    counts = sparse.csr_matrix(rng.poisson(rng.gamma(0.2, 1.0, size=(2, 300))[y]).astype(float))
    model = CMVMED(**FAST).fit({"words": counts[:150]}, partly(y[:150]))
    assert (model.novelty({"words": counts[150:]})["words"] > 1.0).mean() <= 0.1
    loud = counts[150:].tolil()
    loud[:, 7] = 1e6
    assert (model.novelty({"words": loud.tocsr()})["words"] > 1.0).all()
    dense = counts.toarray()
    given = CMVMED(**FAST, kernel="precomputed").fit({"k": dense[:150] @ dense[:150].T}, partly(y[:150]))
    kernel = dense[150:] @ dense[:150].T
    assert (given.novelty({"k": kernel})["k"] > 1.0).mean() <= 0.1
    assert (given.novelty({"k": 1e6 * kernel})["k"] > 1.0).all()


def test_a_fit_on_a_sample_of_the_rows():
    with tuning_context(Tuning(sample_rows=120)):
        model = fitted(n=400, approximation=40)
    assert model.approximation_["n_annealed"] == 120
    X = table(300, 5)[0]
    assert all((values > 1.0).mean() <= 0.05 for values in model.novelty(X).values())
    assert all((values > 1.0).all() for values in model.novelty(X + 1e6).values())


def test_rows_without_weight_have_no_part():
    X, y = table(200, 0)
    X[150:] += 1e6
    weights = (np.arange(200) < 150).astype(float)
    model = CMVMED(views=VIEWS, **FAST).fit(X, partly(y), sample_weight=weights)
    assert all((values > 1.0).all() for values in model.novelty(X[150:]).values())


def test_what_is_kept_is_small_and_the_same_after_loading(tmp_path):
    model = fitted(n=2000)
    kept = model._drift_reference()
    assert kept.features.nbytes + kept.probabilities.nbytes < 200_000
    X = table(20, 6)[0]
    model.save(tmp_path / "m")
    for name, values in cmvmed.load(tmp_path / "m").novelty(X).items():
        np.testing.assert_array_equal(values, model.novelty(X)[name])


def test_an_unfitted_model_says_so():
    for method in (CMVMED().novelty, CMVMED().sensor_health):
        with pytest.raises(NotFittedError):
            method(np.zeros((30, 3)))
