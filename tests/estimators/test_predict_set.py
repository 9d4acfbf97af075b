"""Prediction sets of a fitted model: form, special rows, errors, files, and coverage over draws of labels."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import cmvmed
from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

VIEWS = [3, 2]


@pytest.fixture(scope="module")
def model(partly):
    return CMVMED(views=VIEWS).fit(partly.X, partly.y)


def test_sets_are_columns_of_classes(partly):
    names = np.array(["no", "yes", "?"])
    named = CMVMED(views=VIEWS, unlabeled="?").fit(partly.X, names[partly.y])
    sets, p = named.predict_set(partly.X), named.predict_proba(partly.X)
    assert sets.dtype == bool
    assert sets.shape == (40, 2)
    for c in range(2):  # a threshold separates the members of each class
        assert p[sets[:, c], c].min() > p[~sets[:, c], c].max()


def test_smaller_alpha_gives_larger_sets(model, partly):
    small, large = model.predict_set(partly.X, 0.1), model.predict_set(partly.X, 0.3)
    assert (small >= large).all()
    assert small.sum() > large.sum()


def test_sets_may_hold_the_most_probable_class_always(model, partly):
    some, every = (model.predict_set(partly.X, 0.5, allow_empty=flag) for flag in (True, False))
    assert not some.any(axis=1).all()
    expected = some.copy()
    expected[np.arange(40), model.predict_proba(partly.X).argmax(axis=1)] = True
    np.testing.assert_array_equal(every, expected)


def test_a_row_without_any_view_has_all_classes(model, partly):
    X = partly.X.copy()
    X[0] = np.nan
    with pytest.warns(UserWarning, match="1 of 40 rows have no view present"):
        sets = model.predict_set(X, 0.5)
    assert sets[0].all()
    np.testing.assert_array_equal(sets[1:], model.predict_set(partly.X, 0.5)[1:])


@pytest.mark.parametrize("members", ["auto", "consensus", ["views", "lda"]])
def test_held_out_probabilities_of_all_kinds_of_models(partly_three, members):
    fitted = CMVMED(views=VIEWS, members=members).fit(partly_three.X, partly_three.y)
    scores = fitted._model.held_out
    assert scores.scores.shape == (12,)
    assert ((scores.scores > 0.0) & (scores.scores < 1.0)).all()
    np.testing.assert_array_equal(np.bincount(scores.codes), [4, 4, 4])
    assert fitted.predict_set(partly_three.X, 0.2).any()


def test_held_out_probabilities_are_those_that_the_accuracy_is_estimated_by(model, partly):
    """A label is predicted if its class has more than half of the probability."""
    estimate = model.accuracy_estimate()
    assert estimate.held_out == pytest.approx((model._model.held_out.scores > 0.5).mean())


def test_labels_drawn_per_class_have_the_weights_of_their_classes(partly):
    fitted = CMVMED(views=VIEWS, labels_drawn="per_class", class_prior=[0.6, 0.4]).fit(partly.X, partly.y)
    scores = fitted._model.held_out
    np.testing.assert_allclose(scores.class_weights, [1.2, 0.8])
    np.testing.assert_allclose(scores.weights, scores.class_weights[scores.codes])
    np.testing.assert_allclose(scores.counts, [5, 5])
    drawn = CMVMED(views=VIEWS, labels_drawn="random", class_prior=[0.6, 0.4]).fit(partly.X, partly.y)
    assert (drawn._model.held_out.class_weights == 1.0).all()


def test_too_few_labels_give_all_classes(model, partly):
    with pytest.warns(UserWarning, match=r"10 held-out labels are too few for sets with alpha=0\.05.*at least 19 rows"):
        assert model.predict_set(partly.X, 0.05).all()


def test_too_few_groups_give_all_classes(partly, tmp_path):
    groups = np.arange(40) % 5
    grouped = CMVMED(views=VIEWS).fit(partly.X, partly.y, groups=groups)
    says = r"labels of 5 groups are too few for sets of rows of new groups with alpha=0\.1.*rows of at least 9 groups"
    with pytest.warns(UserWarning, match=says):
        assert grouped.predict_set(partly.X).all()
    sets = grouped.predict_set(partly.X, 0.3)
    assert not sets.all()
    grouped.save(tmp_path / "m.cmvmed")
    np.testing.assert_array_equal(cmvmed.load(tmp_path / "m.cmvmed").predict_set(partly.X, 0.3), sets)
    assert grouped.accuracy_estimate() == cmvmed.load(tmp_path / "m.cmvmed").accuracy_estimate()


@pytest.mark.parametrize("alpha", [0.0, 1.5, -0.1, np.nan, "0.1", None])
def test_alpha_is_checked(model, partly, alpha):
    with pytest.raises(ValueError, match="alpha must be a number greater than 0 and at most 1"):
        model.predict_set(partly.X, alpha)


def test_held_out_labels_are_needed(partly, fresh_rows):
    with pytest.raises(NotFittedError):
        CMVMED().predict_set(fresh_rows)
    with pytest.raises(ValueError, match="members"):
        CMVMED(views=VIEWS, members=None).fit(partly.X, partly.y).predict_set(fresh_rows)
    one_of_each = np.where(np.arange(40) < 2, partly.truth, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = CMVMED(views=VIEWS).fit(partly.X, one_of_each)
    with pytest.raises(ValueError, match="label two rows or more of some class"):
        alone.predict_set(fresh_rows)


def test_files_and_dask_collections(model, partly, tmp_path):
    da = pytest.importorskip("dask.array")
    expected = model.predict_set(partly.X)
    np.save(tmp_path / "rows.npy", partly.X)
    np.testing.assert_array_equal(model.predict_set(tmp_path / "rows.npy"), expected)
    for rows in (partly.X, tmp_path / "rows.npy"):
        sets, probabilities = model.predict_set(rows, return_proba=True)
        np.testing.assert_array_equal(sets, expected)
        np.testing.assert_array_equal(probabilities, model.predict_proba(rows))
    lazy = model.predict_set(da.from_array(np.array(partly.X), chunks=(13, 5)))
    assert lazy.dtype == bool
    np.testing.assert_array_equal(lazy.compute(), expected)


def test_a_saved_model_gives_the_same_sets(model, partly, tmp_path):
    model.save(tmp_path / "m.cmvmed")
    np.testing.assert_array_equal(cmvmed.load(tmp_path / "m.cmvmed").predict_set(partly.X), model.predict_set(partly.X))


def coverage(number, *, per_class=False):
    """Coverage over new rows of two classes, the sets by 20 labels."""
    data = make_multiview_gaussian(360, n_features=4, separation=(1.1, 0.8), random_state=number)
    first = np.concatenate([np.flatnonzero(data.target == c)[:10] for c in range(2)]) if per_class else np.arange(20)
    rows = np.concatenate([first, np.setdiff1d(np.arange(360), first)])
    X, truth = data.data[rows], data.target[rows]
    fitted = CMVMED(views=data.views).fit(X[:80], np.where(np.arange(80) < 20, truth[:80], -1))
    sets = fitted.predict_set(X[80:])
    return sets[np.arange(280), truth[80:]].mean()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("per_class", [False, True])
def test_coverage_over_draws(per_class):
    """Within two points of 1 - α over many draws; a mean over 100 may differ by three of its standard errors more."""
    found = np.array([coverage(number, per_class=per_class) for number in range(100)])
    margin = 0.02 + 3.0 * found.std() / found.size**0.5
    assert found.mean() == pytest.approx(0.9, abs=margin)
    assert margin < 0.05
