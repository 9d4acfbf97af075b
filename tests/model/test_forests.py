"""Forests as terms: the votes of scikit-learn's trees, in every form in which a model is used."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier

import cmvmed
from cmvmed import ModelFileError
from cmvmed.data.array_api import on_host
from cmvmed.model.evaluate import member_logits
from cmvmed.model.fitted_model import Member
from cmvmed.model.forests import filled, forest_term
from cmvmed.numerics import trees as decision_trees
from cmvmed.numerics.trees import rounded_down
from cmvmed.views.preprocessing import Imputation, Scaling
from cmvmed.views.view_rows import ViewPreprocessor
from tests.array_libraries import put
from tests.core.factories import rejects
from tests.model.models import K, labels, of_cmvmed, sparse_views, two_views

SMOOTHING = 0.3
FILL = (np.full(5, 0.25), np.linspace(-1.0, 1.0, 7))
RAW = [ViewPreprocessor(Scaling(None), None, Imputation(fill, np.zeros(fill.size), 0)) for fill in FILL]


def split(X):
    return [X[:, :5], X[:, 5:]]


def present(matrices):
    return [~np.isnan(own).all(axis=1) for own in matrices]


def with_gaps(X):
    """Rows of which some lack one view, the other, both, or single cells."""
    X = X.copy()
    X[3], X[5:9, :5], X[8:14, 5:], X[20:30, 1] = np.nan, np.nan, np.nan, np.nan
    return X


def logs(p, smoothing=SMOOTHING):
    return np.log((p + smoothing / p.shape[1]) / (1.0 + smoothing))


def term_of(forest, *given):
    trees = [own.tree_ for own in forest.estimators_]
    return forest_term(trees, [forest.classes_] * len(trees), *given)


@cache
def fitted(n_trees=20, **settings):
    """A forest over both views, and its term."""
    forest = ExtraTreesClassifier(n_trees, random_state=0, **settings).fit(two_views(), labels()[0])
    return forest, term_of(forest, (0, 1), RAW, FILL, SMOOTHING, K)


IMPURE = {"min_samples_leaf": 4, "class_weight": "balanced", "bootstrap": True}


@pytest.mark.parametrize("many_nodes", [-1, 1 << 30])
@pytest.mark.parametrize("settings", [{}, IMPURE, {"n_trees": 1}, {"max_depth": 1}])
def test_scores_are_logs_of_the_smoothed_votes(settings, many_nodes, monkeypatch):
    monkeypatch.setattr(decision_trees, "MANY_NODES", many_nodes)
    forest, term = fitted(**settings)
    X = two_views(seed=1)
    found, expected = term.scores(split(X), present(split(X))), logs(forest.predict_proba(X))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)
    rejects(np.testing.assert_allclose, found[:, ::-1], expected, rtol=0.0, atol=1e-12)
    term.check(K, [5, 7])


def at_thresholds(term, X):
    """Rows of which one cell is a threshold, the next number of single precision, or a number between both."""
    columns = np.concatenate([term.columns[0], 5 + term.columns[1]])[term.trees.feature[term.trees.inner]]
    threshold = term.trees.threshold
    following, found = np.nextafter(threshold, np.float32(np.inf)), []
    for values in (threshold, following, 0.5 * threshold.astype(np.float64) + 0.5 * following):
        rows = X[np.random.default_rng(0).integers(0, len(X), columns.size)]
        rows[np.arange(columns.size), columns] = values
        found.append(rows)
    return np.vstack(found)


def test_leaves_are_those_of_scikit_learn_also_at_thresholds():
    forest, term = fitted()
    X = at_thresholds(term, two_views(seed=2))
    used = np.concatenate([term.columns[0], 5 + term.columns[1]])
    assert used.tolist() == list(range(12))
    own = term.trees.leaves(X.astype(np.float32))
    for found, expected in zip(own.T, forest.apply(X).T, strict=True):
        pairs = np.unique(np.column_stack([found, expected]), axis=0)
        assert len(pairs) == len(np.unique(found)) == len(np.unique(expected))
    nearest = replace(term.trees, threshold=np.nextafter(term.trees.threshold, np.float32(-np.inf)))
    assert (nearest.leaves(X.astype(np.float32)) != own).any()  # so that thresholds are met


def test_thresholds_are_rounded_down():
    values = np.random.default_rng(0).normal(size=1000)
    down = rounded_down(values).astype(np.float64)
    assert (down <= values).all()
    assert (np.nextafter(rounded_down(values), np.float32(np.inf)) > values).all()
    np.testing.assert_array_equal(rounded_down(down), down)


def test_missing_cells_and_views_have_the_fill_values():
    forest, term = fitted()
    X = with_gaps(two_views(seed=3))
    matrices = split(X)
    expected = logs(forest.predict_proba(np.where(np.isnan(X), np.concatenate(FILL), X)))
    expected[np.isnan(X).all(axis=1)] = 0.0
    found = term.scores(matrices, present(matrices))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found[3] == 0.0).all()
    whole = split(two_views(seed=3))  # a view that is not to be used, though the row has numbers in it
    np.testing.assert_allclose(
        term.scores(whole, [np.ones(60, dtype=bool), np.zeros(60, dtype=bool)])[10:13], found[10:13]
    )


def test_huge_numbers_stay_finite():
    forest, term = fitted()
    X = two_views()
    X[:, 2], X[:, 7] = 1e300, -1e300
    clipped = np.clip(X, np.finfo(np.float32).min, np.finfo(np.float32).max)
    with np.errstate(all="ignore"):  # of the sums by which scikit-learn looks for NaN
        expected = logs(forest.predict_proba(clipped))
    np.testing.assert_allclose(term.scores(split(X), present(split(X))), expected, atol=1e-12)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_views_use_only_the_columns_of_the_trees(form):
    matrices = [form(own) for own in sparse_views()]
    dense = np.hstack([own.toarray() for own in matrices])
    forest = ExtraTreesClassifier(5, max_leaf_nodes=4, random_state=0).fit(dense, labels()[0])
    term = term_of(forest, (0, 1), [ViewPreprocessor(Scaling(None), None)] * 2, [np.zeros(40)] * 2, SMOOTHING, K)
    assert term.n_kept < 20
    term.check(K, [40, 40])
    has = [np.ones(60, dtype=bool)] * 2
    np.testing.assert_allclose(term.scores(matrices, has), logs(forest.predict_proba(dense)), atol=1e-12)
    np.testing.assert_array_equal(term.given_views(matrices, has)(has), term.scores(matrices, has))


def test_many_rows_in_blocks(monkeypatch):
    _, term = fitted()
    matrices = split(two_views(seed=4))
    whole = term.scores(matrices, present(matrices))
    monkeypatch.setattr("cmvmed.model.forests.NUMBERS_AT_A_TIME", 17 * term.n_kept)
    monkeypatch.setattr("cmvmed.numerics.trees.row_blocks", lambda n, m: (slice(i, i + 7) for i in range(0, n, 7)))
    np.testing.assert_allclose(term.scores(matrices, present(matrices)), whole, rtol=1e-14)


def test_a_class_that_the_forest_has_not_seen_gets_no_votes():
    X, y = two_views(), labels()[0]
    forest = ExtraTreesClassifier(10, random_state=0).fit(X[y != 1], y[y != 1])
    term = term_of(forest, (0, 1), RAW, FILL, SMOOTHING, K)
    p = np.zeros((60, K))
    p[:, [0, 2]] = forest.predict_proba(X)
    np.testing.assert_allclose(term.scores(split(X), present(split(X))), logs(p), atol=1e-12)
    term.check(K, [5, 7])


def test_trees_without_inner_nodes():
    X = two_views()
    forest = ExtraTreesClassifier(3, random_state=0).fit(X, np.full(60, 2))
    term = term_of(forest, (0, 1), RAW, FILL, SMOOTHING, K)
    term.check(K, [5, 7])
    expected = logs(np.tile([0.0, 0.0, 1.0], (60, 1)))
    np.testing.assert_allclose(term.scores(split(X), present(split(X))), expected, atol=1e-12)


def test_scores_given_some_of_the_views_are_those_of_rows_that_have_them():
    _, term = fitted()
    matrices = split(with_gaps(two_views(seed=5)))
    known = present(matrices)
    score = term.given_views(matrices, known)
    for views in ((True, True), (True, False), (False, True), (False, False)):
        has = [own & kept for own, kept in zip(known, views, strict=True)]
        hidden = [np.where(own[:, None], matrix, np.nan) for own, matrix in zip(has, matrices, strict=True)]
        np.testing.assert_array_equal(score(has), term.scores(hidden, has))


def test_pickles_hold_the_fields_alone():
    _, term = fitted()
    matrices = split(two_views())
    expected, size = term.scores(matrices, present(matrices)), len(pickle.dumps(term))
    assert size == len(pickle.dumps(fitted.__wrapped__()[1]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(term)).scores(matrices, present(matrices)), expected)


# --- tampered terms --------------------------------------------------------------------------------------------------


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


TREES = {
    "a circle": lambda t: {"feature": t.feature[::-1].copy()},
    "too few nodes": lambda t: {"feature": t.feature[:-1]},
    "another number of trees": lambda t: {"n_trees": t.n_trees - 2},
    "no trees": lambda t: {"n_trees": 0},
    "a column that is not there": lambda t: {"feature": changed(t.feature, 0, 12)},
    "a negative column": lambda t: {"feature": changed(t.feature, -1, -2)},
    "columns as floats": lambda t: {"feature": t.feature.astype(np.float32)},
    "NaN as a threshold": lambda t: {"threshold": changed(t.threshold, 3, np.nan)},
    "thresholds in double precision": lambda t: {"threshold": t.threshold.astype(np.float64)},
    "too few thresholds": lambda t: {"threshold": t.threshold[1:]},
    "a vote that is not there": lambda t: {"vote": changed(t.vote, 3, K)},
    "a negative vote": lambda t: {"vote": changed(t.vote, 3, -1)},
    "too few votes": lambda t: {"vote": t.vote[1:]},
    "no votes": lambda t: {"votes": t.votes[:0]},
    "votes of another sum": lambda t: {"votes": t.votes * 1.1},
    "negative shares": lambda t: {"votes": t.votes + np.array([0.5, -0.5, 0.0])},
    "NaN as a share": lambda t: {"votes": changed(t.votes, (0, 0), np.nan)},
    "votes of fewer classes": lambda t: {"votes": np.ones((K, 1))},
}
TERMS = {
    "columns that are not there": lambda t: {"columns": (t.columns[0] + 1, t.columns[1])},
    "negative columns": lambda t: {"columns": (t.columns[0] - 1, t.columns[1])},
    "columns in another order": lambda t: {"columns": (t.columns[0][::-1].copy(), t.columns[1])},
    "columns of one view": lambda t: {"columns": t.columns[:1]},
    "a fill value that is not finite": lambda t: {"fill": (changed(t.fill[0], 1, np.inf), t.fill[1])},
    "too few fill values": lambda t: {"fill": (t.fill[0][1:], t.fill[1])},
    "no view": lambda t: {"views": (), "preprocessors": (), "columns": (), "fill": ()},
    "preprocessors of one view": lambda t: {"preprocessors": t.preprocessors[:1]},
    "no smoothing": lambda t: {"smoothing": 0.0},
    "NaN as smoothing": lambda t: {"smoothing": float("nan")},
    "infinite smoothing": lambda t: {"smoothing": float("inf")},
}


@pytest.mark.parametrize("change", [*TREES, *TERMS])
def test_tampered_arrays_are_refused(change):
    _, term = fitted()
    term.check(K, [5, 7])
    broken = replace(term, trees=replace(term.trees, **TREES[change](term.trees))) if change in TREES else term
    broken = replace(broken, **TERMS[change](term)) if change in TERMS else broken
    with pytest.raises(ValueError, match="forest"):
        broken.check(K, [5, 7])


# --- a model with a forest -------------------------------------------------------------------------------------------


@cache
def with_forest(n_classes=K, n_trees=20, members=("views", "lda", "view_graphs", "consensus"), **settings):
    """A fitted CMVMED whose members have a forest beside them."""
    X = two_views(n_classes)
    estimator = copy(of_cmvmed(X, labels(n_classes)[1], members=list(members)).model)
    forest = ExtraTreesClassifier(n_trees, random_state=0, **settings).fit(X, labels(n_classes)[0])
    term = term_of(forest, (0, 1), RAW, FILL, SMOOTHING, n_classes)
    member = Member("forest", (term,), np.ones(1), "sum", 1.0, np.zeros(n_classes))
    model = estimator._model
    pool = replace(model.pool, weights=np.append(0.7, model.pool.weights))
    estimator._model = replace(model, members=(member, *model.members), pool=pool)
    estimator._model.check()
    return estimator, X


FORESTS = {
    "three classes": {},
    "two classes": {"n_classes": 2},
    "impure leaves": IMPURE,
    "many": {"n_trees": 150},
    "single leaves": {"min_samples_leaf": 40},
}
quiet = pytest.mark.filterwarnings("ignore:.*no view present")


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_evaluation_adds_the_forest_to_the_other_terms(form):
    model, X = with_forest()[0]._model, two_views(seed=6)
    matrices = split(X) if form == "dense" else [sparse.csr_matrix(own) for own in split(X)]
    together = member_logits(model.members, matrices, present(split(X)))
    np.testing.assert_allclose(together[0], model.members[0].terms[0].scores(matrices, present(split(X))), rtol=1e-14)
    apart = [
        own.logits([t.scores(matrices, present(split(X))) for t in own.terms], present(split(X)))
        for own in model.members
    ]
    pooled = np.tensordot(model.pool.weights, np.stack(apart), 1) + model.pool.offset
    np.testing.assert_allclose(model.evaluator().logits(matrices, present(split(X))), pooled, rtol=1e-9, atol=1e-10)


@quiet
@pytest.mark.parametrize("settings", FORESTS.values(), ids=FORESTS)
def test_a_loaded_model_is_the_same_bit_by_bit(settings, tmp_path):
    model, X = with_forest(**settings)
    model.save(tmp_path / "m")
    loaded = cmvmed.load(tmp_path / "m")
    rows = with_gaps(X)
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    cmvmed.save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("change", ["a circle", "a vote that is not there", "a column that is not there"])
def test_a_file_with_a_tampered_forest_is_refused(change, tmp_path):
    model = copy(with_forest()[0])
    member = model._model.members[0]
    trees = replace(member.terms[0].trees, **TREES[change](member.terms[0].trees))
    broken = replace(member, terms=(replace(member.terms[0], trees=trees),))
    model._model = replace(model._model, members=(broken, *model._model.members[1:]))
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="forest"):
        cmvmed.load(tmp_path / "m")


def test_compact_files_keep_the_forest(tmp_path):
    model, X = with_forest(members=("views", "lda", "consensus"))
    model.save(tmp_path / "m", compact=50)
    kept, whole = (own._model.members[0].terms[0] for own in (cmvmed.load(tmp_path / "m"), model))
    matrices = split(X)
    np.testing.assert_array_equal(kept.scores(matrices, present(matrices)), whole.scores(matrices, present(matrices)))


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
def test_shapley_values_add_up_to_the_score(n_classes):
    model, X = with_forest(n_classes)
    rows = with_gaps(X)
    shares, score = model.explain(rows), model.decision_function(rows)
    np.testing.assert_allclose(sum(shares.values()), score, atol=1e-10, rtol=0.0)
    both = ~np.isnan(rows).any(axis=1)
    only_a, only_b = rows.copy(), rows.copy()
    only_a[:, 5:], only_b[:, :5] = np.nan, np.nan
    first = 0.5 * (model.decision_function(only_a) - shares["prior"] + score - model.decision_function(only_b))
    np.testing.assert_allclose(shares["a"][both], first[both], atol=1e-10)


@quiet
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("settings", FORESTS.values(), ids=FORESTS)
def test_onnx_models_have_the_same_probabilities(settings, dtype):
    comparison = pytest.importorskip("tests.model.onnx_comparison")
    model, X = with_forest(**settings)
    term = model._model.members[0].terms[0]
    comparison.check_same(model, np.vstack([with_gaps(X), at_thresholds(term, X)[::7]]), dtype=dtype)


def test_only_onnx_models_with_trees_need_their_operators():
    pytest.importorskip("onnx")
    domains = [
        [own.domain for own in model.to_onnx().opset_import]
        for model in (with_forest()[0], of_cmvmed(members="lda").model)
    ]
    assert domains == [["", "ai.onnx.ml"], [""]]


@pytest.mark.parametrize("n_trees", [1, 100, 1000])
def test_votes_as_digits_are_exact(n_trees):
    onnx_model = pytest.importorskip("cmvmed.model.onnx_model")
    shares = np.random.default_rng(0).dirichlet(np.ones(4), size=200)
    bits = 24 - (n_trees - 1).bit_length()
    digits = onnx_model._digits(shares, bits)
    assert n_trees * max(own.max() for own in digits) <= 2**24
    value = sum(own * 2.0 ** (-bits * (i + 1)) for i, own in enumerate(digits))
    np.testing.assert_allclose(value, shares, rtol=0.0, atol=2.0**-51)
    assert len(onnx_model._digits(np.eye(3), bits)) == 1


@quiet
@pytest.mark.usefixtures("array_api_dispatch")
@pytest.mark.parametrize("settings", FORESTS.values(), ids=FORESTS)
def test_array_libraries_give_the_same_probabilities(xp, settings):
    model, X = with_forest(**settings)
    rows = np.vstack([with_gaps(X), at_thresholds(model._model.members[0].terms[0], X)[::7]])
    found = model.predict_proba(put(xp, rows))
    assert type(found) is type(put(xp, rows))
    np.testing.assert_allclose(on_host(found), model.predict_proba(rows), rtol=1e-10, atol=1e-12)


def test_filled_rows_are_those_that_a_forest_is_fitted_to():
    X = with_gaps(two_views())
    has = present(split(X))
    points = [np.where(h[:, None], raw.transform(v), 0.0) for h, raw, v in zip(has, RAW, split(X), strict=True)]
    rows = filled(points, has, FILL)
    expected = np.where(np.isnan(X), np.concatenate(FILL), X).astype(np.float32)
    np.testing.assert_array_equal(rows, expected)
    assert rows.dtype == np.float32
