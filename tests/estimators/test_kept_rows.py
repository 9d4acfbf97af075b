"""Fits to the same rows with other labels: equal to cold ones in every bit, and with less work."""

from __future__ import annotations

import pickle
from copy import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import cmvmed
from cmvmed import CMVMED, config_context
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.numerics.kernels import Kernel
from cmvmed.views.row_cache import RowCache
from tests.core.factories import rejects

N = 160
SETTINGS = {
    "exact": {},
    "low rank": {"approximation": 40},
    "cholesky": {"algorithm": "jaakkola", "n_stages": 1, "max_iter": 3, "members": None},
    "consensus": {"members": "consensus"},
    "precomputed": {"kernel": "precomputed"},
}


def draw(seed=0, n_classes=3, missing=0.0):
    """Two views of Gaussian classes, and the classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(n_classes, size=N)
    X = {name: rng.normal(size=(N, 5)) + 2.0 * rng.normal(size=(n_classes, 5))[classes] for name in ("a", "b")}
    for view in X.values():
        view[rng.uniform(size=N) < missing] = np.nan
    return X, classes


def kernels_of(X):
    return {name: view @ view.T for name, view in X.items()}


def label(classes, rows):
    y = np.full(N, -1)
    y[rows] = classes[rows]
    return y


def learned(model, X):
    """All numbers that a fit learns and predicts."""
    found = [model.predict_proba(X), model.label_distributions_, model.objective_history_, model.class_prior_]
    found += [*model.decision_function_by_view(X).values(), *model.predict_proba_by_member(X).values()]
    held_out = model.held_out_proba_
    return found if held_out is None else [*found, held_out]


@config_context(keep_rows=True)
def warm_fit(model, X, y, **given):
    return model.fit(X, y, **given)


def check_bit_equal(first, second, X):
    for one, other in zip(learned(first, X), learned(second, X), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.filterwarnings("ignore")
def test_a_warm_fit_is_a_cold_fit_in_every_bit(name, missing):
    if name == "precomputed" and missing:
        pytest.skip("a given kernel has no gaps")
    X, classes = draw(missing=missing)
    X = kernels_of(X) if name == "precomputed" else X
    rng = np.random.default_rng(1)
    order, warm = rng.permutation(N), CMVMED(**SETTINGS[name])
    for n_labels in (12, 13, 40, 14):  # 40 labels are too many for an eigendecomposition of all rows, 14 are fewer
        y = label(classes, order[:n_labels])
        cold = CMVMED(**SETTINGS[name]).fit(X, y)
        check_bit_equal(warm_fit(warm, X, y), cold, X)
    rejects(check_bit_equal, warm, CMVMED(**SETTINGS[name]).fit(X, label(classes, order[1:15])), X)


def test_weights_groups_and_corrected_labels_make_no_difference():
    X, classes = draw(3)
    rng = np.random.default_rng(2)
    weights, groups = rng.uniform(0.2, 2.0, N) * (rng.uniform(size=N) > 0.1), rng.integers(30, size=N)
    rows = np.concatenate([np.flatnonzero(classes == c)[:4] for c in range(3)])
    weights[rows] = 1.0
    warm, y = CMVMED(), label(classes, rows)
    given = {"sample_weight": weights, "groups": groups}
    check_bit_equal(warm_fit(warm, X, y, **given), CMVMED().fit(X, y, **given), X)
    y[rows[0]] = (y[rows[0]] + 1) % 3
    check_bit_equal(warm_fit(warm, X, y, **given), CMVMED().fit(X, y, **given), X)
    check_bit_equal(warm_fit(warm, X, y), CMVMED().fit(X, y), X)  # other weights


def sizes_of_kernels(monkeypatch):
    """The numbers of rows of the kernels that are computed from now on."""
    sizes, gram = [], Kernel.gram
    monkeypatch.setattr(Kernel, "gram", lambda self, train, rows: (sizes.append(len(rows)), gram(self, train, rows))[1])
    return sizes


def test_kernels_are_computed_once(monkeypatch):
    X, classes = draw()
    model = CMVMED(members="consensus")
    sizes = sizes_of_kernels(monkeypatch)
    warm_fit(model, X, label(classes, np.arange(12)))
    assert sizes.count(N) == 2
    warm_fit(model, X, label(classes, np.arange(14)))
    assert sizes.count(N) == 2
    model.fit(X, label(classes, np.arange(14)))
    assert sizes.count(N) == 4
    assert not hasattr(model, "_row_cache")


CHANGES = {
    "a value": lambda X: X["b"].__setitem__((77, 2), 0.5),
    "a gap": lambda X: X["a"].__setitem__((5, 1), np.nan),
    "two rows": lambda X: X["a"].__setitem__(slice(20, 22), X["a"][[21, 20]].copy()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_are_changed_in_place_are_noticed(change):
    X, classes = draw()
    y, warm = label(classes, np.arange(12)), CMVMED()
    before = warm_fit(warm, X, y).predict_proba(X)
    CHANGES[change](X)
    check_bit_equal(warm_fit(warm, X, y), CMVMED().fit(X, y), X)
    assert np.abs(warm.predict_proba(X) - before).max() > 0.0


@pytest.mark.parametrize(
    "changed",
    [{"gamma": 0.1}, {"scaling": None}, {"random_state": 7}, {"kernel": "linear"}, {"C": 0.5}],
    ids=str,
)
def test_other_parameters_are_noticed(changed):
    X, classes = draw()
    y = label(classes, np.arange(12))
    given = {"approximation": 30}
    warm = warm_fit(CMVMED(**given), X, y)
    check_bit_equal(warm_fit(warm.set_params(**changed), X, y), CMVMED(**(given | changed)).fit(X, y), X)


def test_other_tuned_numbers_are_noticed():
    X, classes = draw()
    y = label(classes, np.arange(12))
    warm = warm_fit(CMVMED(), X, y)
    with tuning_context(Tuning(n_neighbors=3)):
        check_bit_equal(warm_fit(warm, X, y), CMVMED().fit(X, y), X)


def test_a_new_class_and_other_columns_are_noticed():
    X, classes = draw()
    two = np.flatnonzero(classes < 2)[:10]
    warm = warm_fit(CMVMED(), X, label(classes, two))
    assert warm.classes_.tolist() == [0, 1]
    y = label(classes, np.append(two, np.flatnonzero(classes == 2)[:3]))  # three classes have another prior variance
    check_bit_equal(warm_fit(warm, X, y), CMVMED().fit(X, y), X)
    swapped = {"a": X["b"], "b": X["a"]}
    check_bit_equal(warm_fit(warm, swapped, y), CMVMED().fit(swapped, y), swapped)
    fewer = {name: view[:, :3] for name, view in X.items()}
    check_bit_equal(warm_fit(warm, fewer, y), CMVMED().fit(fewer, y), fewer)


class Scaled:
    """A kernel function whose number can change between fits, and that is no key of a dict."""

    __hash__ = None

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, A, B):
        return self.factor * (A @ B.T)


def test_kernel_functions_are_called_again_since_they_may_have_changed():
    X, classes = draw()
    kernel, y = Scaled(1.0), label(classes, np.arange(12))
    warm = warm_fit(CMVMED(kernel=kernel), X, y)
    kernel.factor = 0.2
    check_bit_equal(warm_fit(warm, X, y), CMVMED(kernel=Scaled(0.2)).fit(X, y), X)


def test_random_states_that_cannot_be_repeated_share_nothing():
    X, classes = draw()
    y, state = label(classes, np.arange(12)), np.random.RandomState(0)
    given = {"approximation": 20}
    warm = warm_fit(CMVMED(random_state=state, **given), X, y)
    first = warm.predict_proba(X)
    assert np.abs(warm_fit(warm, X, y).predict_proba(X) - first).max() > 0.0  # other landmarks


def test_sparse_rows():
    X, classes = draw()
    X = {name: sparse.csr_matrix(np.maximum(view, 1.0) - 1.0) for name, view in X.items()}
    warm = warm_fit(CMVMED(), X, label(classes, np.arange(12)))
    y = label(classes, np.arange(14))
    check_bit_equal(warm_fit(warm, X, y), CMVMED().fit(X, y), X)
    X["a"].data[3] += 0.5
    check_bit_equal(warm_fit(warm, X, y), CMVMED().fit(X, y), X)


def test_what_is_kept_is_not_copied_pickled_saved_or_cloned(tmp_path):
    X, classes = draw()
    y = label(classes, np.arange(12))
    model = warm_fit(CMVMED(), X, y)
    assert isinstance(model._row_cache, RowCache)
    sizes = [len(pickle.dumps(one)) for one in (model, CMVMED().fit(X, y))]
    assert abs(sizes[0] - sizes[1]) < 100
    for other in (pickle.loads(pickle.dumps(model)), copy(model)):
        assert not hasattr(other, "_row_cache")
        check_bit_equal(other, model, X)
        check_bit_equal(other.fit(X, y), model, X)  # starts anew
    model.save(tmp_path / "model.cmvmed")
    loaded = cmvmed.load(tmp_path / "model.cmvmed")
    assert not hasattr(loaded, "_row_cache")
    check_bit_equal(loaded, model, X)
    fresh = clone(model)
    assert not hasattr(fresh, "_row_cache")


def test_a_fit_that_fails_leaves_what_was_kept(monkeypatch):
    X, classes = draw()
    model = warm_fit(CMVMED(members="consensus"), X, label(classes, np.arange(12)))
    with pytest.raises(ValueError, match="label"):
        warm_fit(model, X, np.full(N, -1))
    sizes = sizes_of_kernels(monkeypatch)
    warm_fit(model, X, label(classes, np.arange(13)))
    assert sizes.count(N) == 0
