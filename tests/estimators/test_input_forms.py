"""X in every form: containers, number types, memory layouts, and the ways to say which columns are which view."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from cmvmed import CMVMED, MED
from tests.estimators.algorithms import with_algorithm

COLUMNS = ["a_0", "a_1", "a_2", "b_0", "b_1"]
WIDTHS = [3, 2]

one_stage = partial(CMVMED, n_stages=1)  # the form of X matters at the border, not along the annealing


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def every_second_column(X):
    """The same columns as a view of a wider array, so that neither axis is contiguous."""
    wide = np.full((2 * X.shape[0], 2 * X.shape[1]), np.pi)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def backwards_in_memory(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def mixed_pandas(X):
    """One column per number type, nullable ones among them."""
    types = dict(zip(COLUMNS, ["int8", "float32", "Int64", "Float64", "int64"], strict=True))
    return pd.DataFrame(X, columns=COLUMNS).astype(types)


DENSE_FORMS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "not contiguous": every_second_column,
    "negative strides": backwards_in_memory,
    "big-endian": lambda X: X.astype(">f8"),
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "objects": lambda X: X.astype(object),
    "nested lists": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=COLUMNS),
    "pandas, numbered columns": pd.DataFrame,
    "pandas, rows shuffled by index": lambda X: pd.DataFrame(X, columns=COLUMNS, index=np.arange(len(X))[::-1] % 7),
    "pandas, mixed types": mixed_pandas,
    "pandas, pyarrow types": lambda X: pd.DataFrame(X, columns=COLUMNS).astype("double[pyarrow]"),
    "polars": lambda X: pl.DataFrame(X, schema=COLUMNS),
    "polars integers": lambda X: pl.DataFrame(X.astype(np.int64), schema=COLUMNS),
    "polars float32": lambda X: pl.DataFrame(X.astype(np.float32), schema=COLUMNS),
}

SPARSE_FORMS = {
    f"{kind} {container}": getattr(sparse, f"{kind}_{container}")
    for kind in ("csr", "csc", "coo", "dok", "lil", "bsr")
    for container in ("matrix", "array")
}

COLLECTIONS = {
    "list of arrays": lambda X: [X[:, :3], X[:, 3:]],
    "tuple of arrays": lambda X: (X[:, :3], X[:, 3:]),
    "list of mixed layouts": lambda X: [np.asfortranarray(X[:, :3]), read_only(X[:, 3:].astype(np.int16))],
    "dict of arrays": lambda X: {"a": X[:, :3], "b": X[:, 3:]},
    "dict of a list and an array": lambda X: {"a": X[:, :3].tolist(), "b": X[:, 3:]},
    "list of pandas": lambda X: [pd.DataFrame(X[:, :3]), pd.DataFrame(X[:, 3:])],
    "dict of pandas and polars": lambda X: {
        "a": pd.DataFrame(X[:, :3], columns=COLUMNS[:3]),
        "b": pl.DataFrame(X[:, 3:], schema=COLUMNS[3:]),
    },
    "dict of polars and array": lambda X: {"a": pl.DataFrame(X[:, :3], schema=COLUMNS[:3]), "b": X[:, 3:]},
}

MIXED_COLLECTIONS = {
    "list, sparse and dense": lambda X: [sparse.csr_array(X[:, :3]), X[:, 3:]],
    "list, dense and sparse": lambda X: [X[:, :3], sparse.csc_matrix(X[:, 3:])],
    "dict, sparse and frame": lambda X: {
        "a": sparse.coo_array(X[:, :3]),
        "b": pd.DataFrame(X[:, 3:], columns=COLUMNS[3:]),
    },
    "dict, sparse of two kinds": lambda X: {"a": sparse.csr_matrix(X[:, :3]), "b": sparse.dok_array(X[:, 3:])},
}

parametrize_dense = pytest.mark.parametrize("form", DENSE_FORMS.values(), ids=DENSE_FORMS.keys())
parametrize_sparse = pytest.mark.parametrize("form", SPARSE_FORMS.values(), ids=SPARSE_FORMS.keys())
parametrize_collections = pytest.mark.parametrize("form", COLLECTIONS.values(), ids=COLLECTIONS.keys())
parametrize_mixed = pytest.mark.parametrize("form", MIXED_COLLECTIONS.values(), ids=MIXED_COLLECTIONS.keys())


@pytest.fixture(scope="module")
def reference(partly):
    """The model of the plain array, which every other form must reproduce."""
    return one_stage(views=WIDTHS).fit(partly.X, partly.y)


@pytest.fixture(scope="module")
def unit_reference(partly):
    """The same with rows of unit length, a scaling that sparse and dense views share."""
    return one_stage(views=WIDTHS, scaling="unit").fit(partly.X, partly.y)


@parametrize_dense
def test_dense_forms_of_one_X_give_the_same_model(form, partly, reference, assert_same_model):
    model = one_stage(views=WIDTHS).fit(form(partly.X), partly.y)
    assert_same_model(model, form(partly.X), reference, partly.X)
    np.testing.assert_allclose(model.label_distributions_, reference.label_distributions_, atol=1e-8)


@parametrize_dense
def test_dense_forms_give_the_same_med(form, partly, assert_same_model):
    reference = MED().fit(partly.X, partly.y)
    assert_same_model(MED().fit(form(partly.X), partly.y), form(partly.X), reference, partly.X)


@parametrize_sparse
def test_sparse_formats_give_the_same_model_as_dense(form, partly, unit_reference, assert_same_model):
    model = one_stage(views=WIDTHS, scaling="unit").fit(form(partly.X), partly.y)
    assert_same_model(model, form(partly.X), unit_reference, partly.X)
    assert_same_model(unit_reference, form(partly.X), unit_reference, partly.X)


def test_the_content_and_not_the_container_decides_the_scaling(partly, reference, assert_same_model):
    stored = sparse.csr_array(partly.X)
    assert_same_model(one_stage(views=WIDTHS).fit(stored, partly.y), stored, reference, partly.X)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "cosine"])
def test_sparse_views_can_be_standardized(form, kernel, partly, assert_same_model):
    model = one_stage(views=WIDTHS, scaling="standard", kernel=kernel)
    reference = clone(model).fit(partly.X, partly.y)
    assert_same_model(clone(model).fit(form(partly.X), partly.y), form(partly.X), reference, partly.X)


@pytest.mark.filterwarnings("ignore:The expected accuracy")  # the counts say little
def test_counts_give_the_same_model_sparse_or_dense_by_default(partly, assert_same_model):
    counts = np.where(np.quantile(partly.X, 0.85) < partly.X, partly.X, 0.0)
    X = np.hstack([counts, np.ones((len(counts), 1))])  # no row is empty
    X = np.hstack([X, np.zeros((len(X), 4))])
    reference = one_stage().fit(X, partly.y)
    assert_same_model(one_stage().fit(sparse.csr_array(X), partly.y), sparse.csr_array(X), reference, X)


@pytest.mark.parametrize("scaling", ["auto", None])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "cosine"])
def test_a_model_fitted_to_sparse_rows_scores_dense_ones_and_the_reverse(kernel, scaling, partly, assert_same_model):
    model, stored = one_stage(views=WIDTHS, kernel=kernel, scaling=scaling), sparse.csr_array(partly.X)
    fitted_dense, fitted_sparse = clone(model).fit(partly.X, partly.y), clone(model).fit(stored, partly.y)
    assert_same_model(fitted_dense, stored, fitted_dense, partly.X)
    assert_same_model(fitted_sparse, stored, fitted_sparse, partly.X)


@parametrize_collections
def test_lists_and_dicts_give_the_same_model_as_one_X(form, partly, reference, assert_same_model):
    assert_same_model(one_stage().fit(form(partly.X), partly.y), form(partly.X), reference, partly.X)


@parametrize_mixed
def test_views_may_be_sparse_and_dense_side_by_side(form, partly, unit_reference, assert_same_model):
    model = one_stage(scaling="unit").fit(form(partly.X), partly.y)
    assert_same_model(model, form(partly.X), unit_reference, partly.X)


@parametrize_collections
def test_fit_on_one_X_and_predict_on_a_collection_and_the_reverse(form, partly, fresh_rows):
    by_columns = one_stage(views={"a": 3, "b": 2}).fit(partly.X, partly.y)
    by_parts = one_stage().fit(form(partly.X), partly.y)
    expected = by_columns.predict_proba(fresh_rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        found = [by_columns.predict_proba(form(fresh_rows)), by_parts.predict_proba(fresh_rows)]
    np.testing.assert_allclose(found, [expected, expected], atol=1e-8)


def test_the_order_of_a_dict_at_predict_does_not_matter(partly):
    model = one_stage().fit({"a": partly.a, "b": partly.b}, partly.y)
    ordered = model.predict_proba({"a": partly.a, "b": partly.b})
    np.testing.assert_array_equal(model.predict_proba({"b": partly.b, "a": partly.a}), ordered)


def test_a_single_array_in_a_list_is_one_view(partly, assert_same_model):
    model = one_stage().fit([partly.X], partly.y)
    assert model.n_views_ == 1
    assert_same_model(model, [partly.X], one_stage().fit(partly.X, partly.y), partly.X)


def test_float32_features_are_safe(partly, assert_same_model):
    X = partly.X / 3.0  # not whole, so float32 rounds
    reference = one_stage(views=WIDTHS).fit(X, partly.y)
    model = one_stage(views=WIDTHS).fit(X.astype(np.float32), partly.y)
    assert_same_model(model, X.astype(np.float32), reference, X, atol=1e-4)
    assert not np.array_equal(model.decision_function(X.astype(np.float32)), reference.decision_function(X))


def interleaved(X):
    """Columns in the order a_0, b_0, a_1, b_1, a_2."""
    return X[:, [0, 3, 1, 4, 2]]


LAYOUTS = {
    "widths": [3, 2],
    "tuple of widths": (3, 2),
    "numpy widths": [np.int64(3), np.int32(2)],
    "slices": [slice(0, 3), slice(3, 5)],
    "open slices": [slice(None, 3), slice(3, None)],
    "slices from the end": [slice(0, -2), slice(-2, None)],
    "width and slice": [3, slice(3, 5)],
    "dict of widths": {"a": 3, "b": 2},
    "dict of slices": {"a": slice(0, 3), "b": slice(3, 5)},
    "dict of positions": {"a": [0, 1, 2], "b": [3, 4]},
    "dict of arrays of positions": {"a": np.arange(3), "b": np.array([3, 4])},
    "dict of ranges": {"a": range(3), "b": range(3, 5)},
    "positions from the end": {"a": [0, 1, 2], "b": [-2, -1]},
    "masks": {"a": [True, True, True, False, False], "b": np.arange(5) >= 3},
    "position and slice": [[0, 1, 2], slice(3, None)],
}

NAMED_LAYOUTS = {
    "widths": [3, 2],
    "prefixes": {"a": "a_", "b": "b_"},
    "list of prefixes": ["a_", "b_"],
    "names": {"a": ["a_0", "a_1", "a_2"], "b": ["b_0", "b_1"]},
    "array of names": {"a": np.array(["a_0", "a_1", "a_2"]), "b": pd.Index(["b_0", "b_1"])},
    "prefix, then a width": {"a": "a_", "b": 2},
    "names and positions": {"a": ["a_0", "a_1", "a_2"], "b": [3, 4]},
}


@pytest.mark.parametrize("views", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_way_to_name_the_columns_of_an_array_gives_the_same_model(views, partly, reference, assert_same_model):
    assert_same_model(one_stage(views=views).fit(partly.X, partly.y), partly.X, reference, partly.X, atol=0.0)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("views", NAMED_LAYOUTS.values(), ids=NAMED_LAYOUTS.keys())
def test_every_way_to_name_the_columns_of_a_frame_gives_the_same_model(
    views, frame, partly, reference, assert_same_model
):
    X = frame({name: partly.X[:, i] for i, name in enumerate(COLUMNS)})
    assert_same_model(one_stage(views=views).fit(X, partly.y), X, reference, partly.X, atol=0.0)


@pytest.mark.parametrize(
    "views",
    [
        {"a": "a_", "b": "b_"},
        {"a": ["a_0", "a_1", "a_2"], "b": ["b_0", "b_1"]},
        {"a": [0, 2, 4], "b": [1, 3]},
        {"a": slice(0, None, 2), "b": slice(1, None, 2)},
        {"a": [True, False, True, False, True], "b": [False, True, False, True, False]},
    ],
)
def test_the_columns_of_a_view_need_not_be_neighbors(views, partly, reference, assert_same_model):
    X = pd.DataFrame(interleaved(partly.X), columns=["a_0", "b_0", "a_1", "b_1", "a_2"])
    assert_same_model(one_stage(views=views).fit(X, partly.y), X, reference, partly.X, atol=1e-12)


def test_views_none_treats_all_columns_as_one_view(partly):
    model = one_stage().fit(partly.X, partly.y)
    assert model.view_names_ == ["view0"]
    np.testing.assert_array_equal(model.view_weights_, [1.0])


@pytest.mark.parametrize("views", [WIDTHS, {"a": slice(0, 3), "b": slice(3, 5)}, None])
def test_the_choice_of_views_changes_the_model(views, partly):
    """Broken twin of the comparisons above: other views give other scores, so equal scores mean something."""
    reference = one_stage(views=[2, 3]).fit(partly.X, partly.y).decision_function(partly.X)
    scores = one_stage(views=views).fit(partly.X, partly.y).decision_function(partly.X)
    assert np.abs(scores - reference).max() > 1e-3


def contents(X):
    """The bytes that make up an array, sparse matrix, frame or collection of them."""
    if isinstance(X, dict):
        return {name: contents(part) for name, part in X.items()}
    if isinstance(X, (list, tuple)):
        return [contents(part) for part in X]
    if sparse.issparse(X):
        stored = X.tocsr()
        return [part.tobytes() for part in (stored.data, stored.indices, stored.indptr)]
    if hasattr(X, "columns"):
        return [list(X.columns), [str(dtype) for dtype in X.dtypes], X.to_numpy().tolist()]
    return np.asarray(X).tobytes()


ALL_FORMS = {**DENSE_FORMS, **SPARSE_FORMS, **COLLECTIONS, **MIXED_COLLECTIONS}


@pytest.mark.parametrize("scaling", ["auto", None])
@pytest.mark.parametrize(
    "name", ["C order", "Fortran order", "pandas", "polars", "csr matrix", "csc array", "list of arrays"]
)
def test_inputs_are_never_changed(name, scaling, partly):
    X, y, weights = ALL_FORMS[name](partly.X), partly.y.copy(), np.linspace(0.5, 1.5, len(partly.y))
    before = contents(X), y.tobytes(), weights.tobytes()
    model = one_stage(scaling=scaling).fit(X, y, sample_weight=weights)
    model.predict_proba(X)
    model.decision_function_by_view(X, return_std=True)
    model.score(X, partly.truth, sample_weight=weights)
    assert (contents(X), y.tobytes(), weights.tobytes()) == before


def test_given_kernel_matrices_are_never_changed(partly):
    K = [partly.a @ partly.a.T, partly.b @ partly.b.T]
    before = contents(K)
    one_stage(kernel="precomputed").fit(K, partly.y).predict(K)
    assert contents(K) == before


@pytest.mark.parametrize("scaling", ["auto", None])
def test_a_fitted_model_does_not_follow_later_changes_of_the_data(scaling, partly, fresh_rows):
    X, y = partly.X.copy(), partly.y.copy()
    model = one_stage(views=WIDTHS, scaling=scaling).fit(X, y)
    before = model.predict_proba(fresh_rows)
    X[:], y[:] = 0.0, 0
    np.testing.assert_array_equal(model.predict_proba(fresh_rows), before)


@pytest.mark.parametrize(
    ("algorithm", "class_prior"),
    [
        ("bohning", "labels"),
        ("bohning", "auto"),
        ("bohning", None),
        ("jaakkola", "labels"),
        ("newton", "labels"),
        ("printed", None),
    ],
)
def test_the_order_of_training_rows_does_not_matter(algorithm, class_prior, partly, fresh_rows):
    model = with_algorithm(algorithm, views=WIDTHS, n_stages=1, class_prior=class_prior)
    order = np.random.default_rng(0).permutation(len(partly.y))
    straight = clone(model).fit(partly.X, partly.y)
    shuffled = clone(model).fit(partly.X[order], partly.y[order])
    np.testing.assert_allclose(shuffled.label_distributions_, straight.label_distributions_[order], atol=1e-8)
    np.testing.assert_allclose(shuffled.predict_proba(fresh_rows), straight.predict_proba(fresh_rows), atol=1e-8)


@pytest.mark.parametrize("model", [MED(), one_stage(views=WIDTHS)])
def test_each_row_is_scored_by_itself(model, partly, fitted):
    model, order = fitted(model, partly.X, partly.y), np.random.default_rng(0).permutation(len(partly.y))
    together = model.predict_proba(partly.X)
    np.testing.assert_allclose(model.predict_proba(partly.X[order]), together[order], atol=1e-12)
    one_by_one = np.vstack([model.predict_proba(row[None]) for row in partly.X])
    np.testing.assert_allclose(one_by_one, together, atol=1e-12)


def test_columns_and_names_are_remembered(partly):
    X = pd.DataFrame(partly.X, columns=COLUMNS)
    model = one_stage(views={"a": "a_", "b": "b_"}).fit(X, partly.y)
    assert model.n_features_in_ == 5
    np.testing.assert_array_equal(model.feature_names_in_, np.array(COLUMNS, dtype=object))
    model.set_params(views=WIDTHS).fit(partly.X, partly.y)
    assert not hasattr(model, "feature_names_in_")


def test_a_collection_of_frames_remembers_its_columns(partly):
    parts = {"a": pd.DataFrame(partly.a, columns=COLUMNS[:3]), "b": pl.DataFrame(partly.b, schema=COLUMNS[3:])}
    model = one_stage().fit(parts, partly.y)
    assert (model.n_features_in_, model.view_names_) == (5, ["a", "b"])
    assert list(model.feature_names_in_) == COLUMNS
    model.fit([partly.a, partly.b], partly.y)
    assert (model.n_features_in_, model.view_names_) == (5, ["view0", "view1"])
    assert not hasattr(model, "feature_names_in_")


def test_views_with_numbers_for_names_take_settings_by_number(partly):
    model = one_stage(views={1: 3, 2: 2}, C={1: 1.0, 2: 2.0}, view_weights={1: 0.25, 2: 0.75}).fit(partly.X, partly.y)
    assert model.view_names_ == ["1", "2"]


def test_parameters_are_kept_as_they_were_given(partly):
    views, C, kernel = {"a": [0, 1, 2], "b": slice(3, 5)}, {"a": 1.0, "b": 0.5}, ["rbf", "linear"]
    model = CMVMED(views=views, C=C, kernel=kernel).fit(partly.X, partly.y)
    kept = model.get_params()
    assert kept["views"] is views
    assert kept["C"] is C
    assert kept["kernel"] is kernel
    assert (views, C, kernel) == ({"a": [0, 1, 2], "b": slice(3, 5)}, {"a": 1.0, "b": 0.5}, ["rbf", "linear"])


def test_the_parameter_names_users_rely_on():
    promised = {
        *("views", "kernel", "gamma", "prior_variance", "C", "bias_variance", "consensus_weight", "temperature"),
        *("class_prior", "view_weights", "members", "labels_drawn", "algorithm", "n_stages", "max_iter", "tol"),
        *("scaling", "unlabeled", "approximation", "rows_tol", "n_jobs", "random_state"),
    }
    assert promised == CMVMED().get_params().keys()
    assert len(promised) == 22
    assert {"kernel", "gamma", "prior_variance", "C", "bias_variance"} <= MED().get_params().keys()


def test_the_text_form_shows_what_was_changed():
    assert repr(CMVMED()) == "CMVMED()"
    assert repr(CMVMED(views=[3, 2], C=2.0)) == "CMVMED(C=2.0, views=[3, 2])"
    assert repr(MED(kernel="linear")) == "MED(kernel='linear')"


def test_frames_beside_files_are_matched_by_the_names_of_their_columns(tmp_path):
    rng = np.random.default_rng(0)
    file, frame = rng.normal(size=(60, 3)), pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    y = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
    np.save(tmp_path / "first.npy", file)
    X = {"first": str(tmp_path / "first.npy"), "second": frame}
    model = CMVMED().fit(X, y)
    reordered = X | {"second": frame[["c", "a", "b"]]}
    np.testing.assert_array_equal(model.decision_function(reordered), model.decision_function(X))
    with pytest.raises(ValueError, match=r"X lacks 1 of the 3 columns of view 'second' that fit saw: \['b'\]"):
        model.predict(X | {"second": frame[["a", "c"]]})
    labeled = CMVMED().fit(X | {"second": frame.assign(label=y)}, "label")
    np.testing.assert_array_equal(labeled.decision_function(X), model.decision_function(X))


def test_a_list_is_not_taken_for_views_that_have_names():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    views = {name: rng.normal(size=(30, 2)) + y[:, None] for name in ("acc", "gyr")}
    fitted = one_stage().fit(views, y)
    expected = fitted.predict_proba(views)
    np.testing.assert_array_equal(fitted.predict_proba(dict(reversed(views.items()))), expected)
    with pytest.raises(ValueError, match=r"X is a list, but fit saw named views.*\['acc', 'gyr'\].*Pass a dict"):
        fitted.predict_proba([views["gyr"], views["acc"]])
