"""Shares of the views in a score: they add up to it, and are the Shapley values of the model with absent views."""

from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import cmvmed
from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian
from cmvmed.model import explain as explanation
from cmvmed.model.explain import shapley_weights

WITHOUT_TREES = ["views", "lda", "graph", "view_graphs", "consensus"]
SETTINGS = {
    "default": {},
    "no graphs and trees": {"members": ["views", "lda", "consensus"]},
    "graphs": {"members": ["graph", "view_graphs", "consensus"]},
    "one member": {"members": "views"},
    "consensus": {"members": "consensus"},
    "not calibrated": {"members": None},
    "landmarks": {"approximation": 20},
}
TOLERANCE = 1e-10


@cache
def data(n_views, n_classes, missing_rate=0.0, n_rows=90):
    return make_multiview_gaussian(
        n_rows, n_views, n_features=4, n_classes=n_classes, missing_rate=missing_rate, labeled=24, random_state=n_views
    )


def fitted(bunch, **parameters):
    return CMVMED(views=bunch.views, **parameters).fit(bunch.data, bunch.y)


@cache
def default(n_views, n_classes, missing_rate=0.0):
    return fitted(data(n_views, n_classes, missing_rate))


def total(shares):
    return sum(shares.values())


def assert_adds_up(model, X):
    shares = model.explain(X)
    assert list(shares) == [*model.view_names_, "prior"]
    score = model.decision_function(X)
    assert all(values.shape == score.shape for values in shares.values())
    np.testing.assert_allclose(total(shares), score, atol=TOLERANCE, rtol=0.0)
    return shares


def by_all_orders(model, X, views):
    """Shapley values by their definition: the mean change of the score over all orders in which views are revealed."""
    r, K = model.class_prior_, model.classes_.size
    prior = np.log(r[1] / r[0]) if K == 2 else np.log(r) - np.log(r).mean()
    names = list(views)
    scores = {frozenset(): np.broadcast_to(prior, model.decision_function(X).shape)}

    def score(known):
        if known not in scores:
            hidden = X.copy()
            for name in set(names) - known:
                hidden[:, views[name]] = np.nan
            scores[known] = model.decision_function(hidden)
        return scores[known]

    shares = {name: [] for name in names}
    for order in permutations(names):
        for i, name in enumerate(order):
            shares[name].append(score(frozenset(order[: i + 1])) - score(frozenset(order[:i])))
    return {name: np.mean(changes, axis=0) for name, changes in shares.items()} | {"prior": scores[frozenset()]}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(("n_views", "n_classes"), [(2, 2), (3, 3)])
@pytest.mark.parametrize("missing_rate", [0.0, 0.3])
def test_shares_add_up_to_the_score(settings, n_views, n_classes, missing_rate):
    bunch = data(n_views, n_classes, missing_rate)
    assert_adds_up(fitted(bunch, **settings), bunch.data)


@pytest.mark.parametrize(("n_views", "n_classes"), [(1, 2), (5, 2), (5, 4)])
def test_shares_of_one_and_five_views_add_up(n_views, n_classes):
    assert_adds_up(default(n_views, n_classes, 0.2), data(n_views, n_classes, 0.2).data)


@pytest.mark.filterwarnings("ignore:.*rows have no view present")
@pytest.mark.parametrize(
    ("n_views", "n_classes", "missing_rate"), [(2, 2, 0.0), (2, 3, 0.3), (3, 2, 0.3), (3, 3, 0.2), (5, 2, 0.2)]
)
def test_shapley_values_by_their_definition(n_views, n_classes, missing_rate):
    bunch, model = data(n_views, n_classes, missing_rate), default(n_views, n_classes, missing_rate)
    expected = by_all_orders(model, bunch.data[:30], bunch.views)
    shares = model.explain(bunch.data[:30])
    assert shares.keys() == expected.keys()
    for name, values in shares.items():
        np.testing.assert_allclose(values, expected[name], atol=1e-9, rtol=0.0)


@pytest.mark.parametrize("make", [CMVMED.paper, lambda **views: CMVMED(members="consensus", **views)])
def test_shares_of_the_consensus_are_its_terms(make):
    bunch = data(3, 3, 0.3)
    model = make(views=bunch.views).fit(bunch.data, bunch.y)
    shares, scores = model.explain(bunch.data), model.decision_function_by_view(bunch.data)
    offset = shares["prior"][0]
    present = np.array([~np.isnan(bunch.data[:, columns.start]) for columns in bunch.views.values()])
    weights = model.view_weights_[:, None] * present
    for i, name in enumerate(bunch.views):
        own = (weights[i] / weights.sum(axis=0))[:, None] * (scores[name] - offset)
        np.testing.assert_allclose(shares[name], np.where(present[i][:, None], own, 0.0), atol=1e-12)
    np.testing.assert_allclose(shares["prior"], np.broadcast_to(offset, shares["prior"].shape))


@pytest.mark.parametrize("settings", [{}, {"members": "consensus"}], ids=["members", "consensus"])
def test_an_absent_view_has_no_share(settings):
    bunch = data(3, 3, 0.3)
    model, X = fitted(bunch, **settings), bunch.data.copy()
    X[:2] = np.nan
    with pytest.warns(UserWarning, match="2 of 90 rows have no view present"):
        shares = model.explain(X)
    for name, columns in bunch.views.items():
        absent = np.isnan(X[:, columns.start])
        assert (shares[name][absent] == 0.0).all()
        assert shares[name][~absent].any(axis=1).all()
    with pytest.warns(UserWarning, match="2 of 90"):
        np.testing.assert_allclose(shares["prior"][:2], model.decision_function(X)[:2], atol=1e-12)


@pytest.mark.filterwarnings("ignore:View 'absent' is missing in every training row")
def test_a_view_that_no_row_has_does_not_change_the_others():
    bunch = data(2, 3)
    widened = np.hstack([bunch.data, np.full((90, 2), np.nan)])
    model = fitted(bunch)
    more = CMVMED(views={**bunch.views, "absent": slice(8, 10)}).fit(widened, bunch.y)
    shares, others = model.explain(bunch.data), more.explain(widened)
    assert (others.pop("absent") == 0.0).all()
    for name, values in shares.items():
        np.testing.assert_allclose(others[name], values, atol=1e-6)


def test_a_view_without_weight_has_no_share():
    bunch = data(3, 2)
    shares = assert_adds_up(fitted(bunch, view_weights=[1.0, 0.0, 1.0]), bunch.data)
    assert np.abs(shares["view2"]).max() < 1e-12
    assert np.abs(shares["view1"]).max() > 0.1


@pytest.mark.parametrize("members", [WITHOUT_TREES, "consensus"], ids=["members", "consensus"])
def test_equal_views_have_equal_shares(members):
    """Up to the draws of trees, which choose among equal columns."""
    bunch = data(2, 3)
    X = {"first": bunch.data[:, :4], "other": bunch.data[:, 4:], "again": bunch.data[:, :4]}
    shares = assert_adds_up(CMVMED(members=members).fit(X, bunch.y), X)
    np.testing.assert_allclose(shares["first"], shares["again"], atol=1e-8)
    assert np.abs(shares["first"] - shares["other"]).max() > 0.1


def test_the_order_of_views_does_not_matter():
    bunch = data(3, 3, 0.3)
    X = {name: bunch.data[:, columns] for name, columns in bunch.views.items()}
    reverse = dict(reversed(X.items()))
    model = CMVMED(members=WITHOUT_TREES)
    shares, others = model.fit(X, bunch.y).explain(X), model.fit(reverse, bunch.y).explain(reverse)
    for name, values in shares.items():
        np.testing.assert_allclose(others[name], values, atol=1e-6)


@pytest.mark.parametrize("n_views", [1, 2, 3, 8, 9, 12])
def test_weights_of_sets_of_views(n_views):
    """Shares of any function add up to v(all) - v(none); of a sum of the views' own numbers they are these numbers."""
    weights = shapley_weights(n_views)
    assert len(weights) == 2**n_views if n_views <= 8 else len(weights) < 600
    rng = np.random.default_rng(0)
    any_function = {members: rng.normal() for members in weights}
    shares = sum(w * any_function[members] for members, w in weights.items())
    assert np.sum(shares) == pytest.approx(any_function[(True,) * n_views] - any_function[(False,) * n_views])
    own = rng.normal(size=n_views)
    np.testing.assert_allclose(sum(w * own[list(members)].sum() for members, w in weights.items()), own, atol=1e-12)
    one_and_last = {m: float(m[0] and all(m)) + 3.0 * any(m) for m in weights}  # first and last positions are exact
    shares = sum(w * one_and_last[members] for members, w in weights.items())
    np.testing.assert_allclose(shares, 4.0 / n_views, atol=1e-12)


def test_many_views_are_explained_by_random_orders(monkeypatch):
    bunch = data(9, 2)
    model, X = fitted(bunch, members=["views", "lda"]), bunch.data[:15]
    shares = assert_adds_up(model, X)
    again = model.explain(X)
    assert all((shares[name] == again[name]).all() for name in shares)
    monkeypatch.setattr(explanation, "MAX_EXACT_VIEWS", 9)
    exact = np.stack([model.explain(X)[name] for name in bunch.views])
    error = np.stack([shares[name] for name in bunch.views]) - exact
    assert 0.0 < np.sqrt((error**2).mean()) < 0.2 * np.sqrt((exact**2).mean())


def test_all_forms_of_rows(tmp_path):
    pandas = pytest.importorskip("pandas")
    bunch = data(3, 3)
    model = CMVMED(views={name: list(range(s.start, s.stop)) for name, s in bunch.views.items()})
    model.fit(bunch.data, bunch.y)
    expected = model.explain(bunch.data)
    np.save(tmp_path / "rows.npy", bunch.data)
    forms = {
        "dict": {name: bunch.data[:, columns] for name, columns in bunch.views.items()},
        "frame": pandas.DataFrame(bunch.data).to_numpy(),
        "sparse": sparse.csr_matrix(bunch.data),
        "file": tmp_path / "rows.npy",
    }
    for X in forms.values():
        shares = model.explain(X)
        for name, values in expected.items():
            np.testing.assert_allclose(shares[name], values, atol=1e-9)


def test_columns_of_frames_are_found_by_name():
    pandas = pytest.importorskip("pandas")
    bunch = data(2, 2)
    frame = pandas.DataFrame(bunch.data, columns=[f"a{i}" for i in range(4)] + [f"b{i}" for i in range(4)])
    model = CMVMED(views={"a": "a", "b": "b"}).fit(frame, bunch.y)
    shares, others = model.explain(frame), model.explain(frame[frame.columns[::-1]])
    assert all((shares[name] == others[name]).all() for name in shares)
    with pytest.warns(UserWarning, match="no column of view 'b'"):
        with_a = model.explain(frame[["a0", "a1", "a2", "a3"]])
    assert (with_a["b"] == 0.0).all()


def test_many_rows_in_chunks(monkeypatch, tmp_path):
    bunch = data(2, 3, 0.2)
    model, X = default(2, 3, 0.2), np.tile(bunch.data, (50, 1))
    expected = model.explain(bunch.data)
    np.save(tmp_path / "rows.npy", X)
    monkeypatch.setattr(explanation, "MAX_KEPT_DISTANCES", 10_000)
    with cmvmed.config_context(memory_limit="100MB"):
        for rows in (X, tmp_path / "rows.npy"):
            shares = model.explain(rows)
            for name, values in expected.items():
                np.testing.assert_allclose(shares[name], np.tile(values, (50, 1)), atol=1e-9)


def test_a_saved_model_explains_the_same(tmp_path):
    bunch, model = data(3, 3, 0.2), default(3, 3, 0.2)
    model.save(tmp_path / "m.cmvmed")
    loaded = cmvmed.load(tmp_path / "m.cmvmed").explain(bunch.data)
    assert all((loaded[name] == values).all() for name, values in model.explain(bunch.data).items())


def test_precomputed_kernels():
    bunch = data(2, 2)
    kernels = [X @ X.T for X in (bunch.data[:, :4], bunch.data[:, 4:])]
    assert_adds_up(CMVMED(kernel="precomputed").fit(kernels, bunch.y), kernels)


def test_what_cannot_be_explained():
    bunch = data(2, 2)
    with pytest.raises(NotFittedError):
        CMVMED().explain(bunch.data)
    named = CMVMED(views={"prior": slice(0, 4), "b": slice(4, 8)}).fit(bunch.data, bunch.y)
    with pytest.raises(ValueError, match="A view is named 'prior'"):
        named.explain(bunch.data)
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="explain does not take dask collections"):
        default(2, 2).explain(da.from_array(bunch.data, chunks=30))
