"""Bad input: one clear error that names the view or the parameter, and what to do."""

import re
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from cmvmed import CMVMED, MED
from cmvmed._optional import install_command

VIEWS = {"audio": slice(0, 3), "video": slice(3, 5)}
COLUMNS = ["a_0", "a_1", "a_2", "b_0", "b_1"]


@pytest.fixture(scope="module")
def model(partly):
    return CMVMED(views=VIEWS, n_stages=2).fit(partly.X, partly.y)


@pytest.fixture(scope="module")
def model_of_parts(partly):
    return CMVMED(n_stages=2).fit({"audio": partly.a, "video": partly.b}, partly.y)


def changed(X, row, column, value):
    X = X.copy()
    X[row, column] = value
    return X


@pytest.mark.parametrize("estimator", [MED(), CMVMED()])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            np.r_[np.ones(10, int), np.full(30, -1)],
            r"only the values -1 and 1, and -1 marks unlabeled rows.*unlabeled=None",
        ),
        (
            np.where(np.arange(40) % 2, 1, -1),
            r"only the values -1 and 1.*relabel the classes as 0 and 1, or pass unlabeled",
        ),
        (
            np.array(["cat"] * 10 + [None] * 30, dtype=object),
            r"labels of only 1 class \('cat'\).*Label a row of a second class",
        ),
        (np.full(40, -1), r"y has no labels: all 40 rows are unlabeled.*Label rows of 2 classes or more"),
        (np.full(40, np.nan), r"y has no labels: all 40 rows are unlabeled"),
        (np.arange(39) % 2, r"X has 40 rows, y 39"),
        (np.linspace(0.0, 1.0, 40), "Unknown label type: continuous"),
        (np.array([0, "a", 1.5] + [None] * 37, dtype=object), "y mixes labels of different types"),
        (np.r_[0.0, 1.0, np.inf, np.full(37, np.nan)], "y contains infinity, which is not a class"),
        (np.zeros((40, 2), int), r"y should be a 1d array, got an array of shape \(40, 2\)"),
        (None, "requires y to be passed, but the target y is None: give the classes"),
        ([], "y is empty"),
    ],
)
def test_labels_that_cannot_be_learned(y, message, estimator, partly, fitted):
    with pytest.raises(ValueError, match=message):
        fitted(estimator, partly.X, y)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (
            [3, 1],
            r"Views do not cover X: column 4 and 0 further of its 5 columns belong to no view.*Add them to a view or",
        ),
        ({"a": [0, 1], "b": [4]}, r"Views do not cover X: column 2 and 1 further"),
        ([3, 3], r"View 'view1' asks for column 5 but X has 5 columns; check the widths"),
        (
            {"a": [0, 1, 2], "b": [2, 3, 4]},
            r"Views overlap: column 2 belongs to 'a' and to 'b'; give each column to one view",
        ),
        ({"a": slice(0, 4), "b": slice(3, 5)}, r"Views overlap: column 3 belongs to 'a' and to 'b'"),
        ({"a": slice(0, 3), "b": [3, 4, 9]}, r"View 'b' asks for column 9 but X has 5 columns"),
        ({"a": slice(0, 3), "b": [3, 4, -9]}, r"View 'b' asks for column -9"),
        ({"a": 5, "b": 0}, r"View 'b' has no columns: views gives it 0"),
        ({"a": 5, "b": -1}, r"View 'b' has no columns: views gives it -1"),
        ({"a": 5, "b": []}, r"View 'b' has no columns"),
        ({"a": 5, "b": slice(7, 9)}, r"View 'b' has no columns: views gives it slice\(7, 9, None\)"),
        ({"a": "a_", "b": "b_"}, r"View 'a' is given by the column prefix 'a_', which needs a data frame"),
        (
            {"a": ["a_0"], "b": ["b_0"]},
            r"View 'a' asks for column 'a_0', which X does not have; its columns are not named",
        ),
        ({"a": [True, False], "b": 2}, r"View 'a' has a mask of length 2 but X has 5 columns"),
        ({"a": slice("a", "b"), "b": 2}, r"View 'a' has the slice .*use whole numbers"),
        ({"a": 3.0, "b": 2.0}, r"View 'a' is given as 3.0; use a width, a slice, a column prefix, or a list"),
        ({"a": None, "b": 2}, r"View 'a' is given as None; use a width"),
        ({"a": [0, "a_1"], "b": 2}, r"View 'a' is given as \[0, 'a_1'\]; use a width"),
        ([], "views is empty: give one entry per view, or None"),
        ({}, "views is empty: give one entry per view, or None"),
        (5, "views must be None, a list or a dict with one entry per view, but is 5"),
        ("audio", "views must be None, a list or a dict with one entry per view, but is 'audio'"),
    ],
)
def test_views_that_do_not_fit_the_columns_of_an_array(views, message, partly):
    with pytest.raises(ValueError, match=message):
        CMVMED(views=views).fit(partly.X, partly.y)


def test_a_column_that_is_twice_in_a_view_is_named(partly):
    with pytest.raises(ValueError, match=r"column 2 .*'a'"):
        CMVMED(views={"a": [0, 1, 2, 2], "b": [3, 4]}).fit(partly.X, partly.y)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ({"a": "a_", "b": "c_"}, r"View 'b': no column name starts with 'c_'; the columns are \['a_0', 'a_1'"),
        ({"a": "a_"}, r"Views do not cover X: column 'b_0' \(position 3\) and 1 further"),
        ({"a": "a_", "b": ""}, r"Views overlap: column 'a_0' \(position 0\) belongs to 'a' and to 'b'"),
        (
            {"a": "a_", "b": ["b_0", "b_2"]},
            r"View 'b' asks for column 'b_2', which X does not have; its columns are \['a_0'",
        ),
    ],
)
def test_views_that_do_not_fit_the_columns_of_a_frame(views, message, partly):
    with pytest.raises(ValueError, match=message):
        CMVMED(views=views).fit(pd.DataFrame(partly.X, columns=COLUMNS), partly.y)


def test_prefixes_need_names_that_are_strings(partly):
    with pytest.raises(ValueError, match=r"needs a data frame with string column names; for an array use widths"):
        CMVMED(views={"a": "1"}).fit(pd.DataFrame(partly.X), partly.y)


def test_views_describe_the_columns_of_one_X_only(partly):
    with pytest.raises(
        ValueError, match=r"views= describes the columns of one X, but X is a list or dict.*leave views=None"
    ):
        CMVMED(views=VIEWS).fit([partly.a, partly.b], partly.y)


UNEQUAL = r"unequal numbers of rows: \{'audio': 40, 'video': 39\}; align them first"


def test_views_of_unequal_length_at_fit(partly):
    with pytest.raises(ValueError, match=UNEQUAL):
        CMVMED().fit({"audio": partly.a, "video": partly.b[1:]}, partly.y)


@pytest.mark.parametrize("fixture", ["model", "model_of_parts"])
def test_views_of_unequal_length_at_predict(fixture, partly, request):
    with pytest.raises(ValueError, match=UNEQUAL):
        request.getfixturevalue(fixture).predict({"audio": partly.a, "video": partly.b[1:]})


@pytest.mark.parametrize("fixture", ["model", "model_of_parts"])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (lambda d: {"audio": d.a}, r"X has the views \['audio'\] but fit saw \['audio', 'video'\]"),
        (
            lambda d: {"audio": d.a, "radar": d.b},
            r"X has the views \['audio', 'radar'\] but fit saw \['audio', 'video'\]",
        ),
        (lambda d: {"audio": d.a, "video": d.a}, r"View 'video' has 3 features, but fit saw 2; pass the same columns"),
        (lambda d: [d.a], r"X has 1 views but fit saw 2: \['audio', 'video'\]"),
        (lambda d: [d.b, d.a], r"View 'audio' has 2 features, but fit saw 3"),
        (lambda d: d.a, r"X has 3 features, but CMVMED is expecting 5 features"),
    ],
)
def test_other_views_at_predict_than_at_fit(parts, message, fixture, partly, request):
    with pytest.raises(ValueError, match=message):
        request.getfixturevalue(fixture).predict(parts(partly))


@pytest.mark.parametrize("X", [{}, []])
def test_no_view_at_all(X, partly, model):
    with pytest.raises(ValueError, match=r"X is an empty dict|Expected 2D array"):
        CMVMED().fit(X, partly.y)
    with pytest.raises(ValueError, match=r"X is an empty dict|Expected 2D array"):
        model.predict(X)


def test_a_list_of_views_with_one_that_is_no_table(partly):
    with pytest.raises(ValueError, match=r"'view1'.*(2D|two-dimensional)"):
        CMVMED().fit([partly.a, partly.X[:, 3]], partly.y)


def test_a_list_of_an_array_and_nested_lists(partly):
    assert CMVMED(n_stages=1).fit([partly.a, partly.b.tolist()], partly.y).n_views_ == 2


@pytest.mark.parametrize(
    "second",
    [lambda d: d.X[:, 3], lambda d: None, lambda d: d.b.astype(str)[:, :1] + "x"],
    ids=["1-D array", "None", "text"],
)
def test_a_dict_of_views_with_one_that_is_no_table(second, partly):
    with pytest.raises(ValueError, match=r"'video'"):
        CMVMED().fit({"audio": partly.a, "video": second(partly)}, partly.y)


def test_med_takes_one_view_only(partly):
    with pytest.raises(ValueError, match=r"one view.*CMVMED"):
        MED().fit([partly.a, partly.b], partly.y)


INFINITE = r"contains infinity: view 'video', row 12, column 1.*Replace it by a number, or set the whole view to NaN"
FORMS = {
    "array": (lambda X: X, VIEWS),
    "float32": (lambda X: X.astype(np.float32), VIEWS),
    "csr matrix": (sparse.csr_matrix, VIEWS),
    "csr array": (sparse.csr_array, VIEWS),
    "csc array": (sparse.csc_array, VIEWS),
    "dict": (lambda X: {"audio": X[:, :3], "video": X[:, 3:]}, None),
}


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize(("form", "views"), FORMS.values(), ids=FORMS.keys())
def test_an_infinite_number(form, views, value, partly, model, model_of_parts):
    X = form(changed(partly.X, 12, 4, value))
    with pytest.raises(ValueError, match=INFINITE):
        CMVMED(views=views).fit(X, partly.y)
    with pytest.raises(ValueError, match=INFINITE):
        model.predict(X)
    with pytest.raises(ValueError, match=INFINITE):
        model_of_parts.predict_proba(X)


def test_a_column_of_a_frame_is_named(partly):
    X = pd.DataFrame(changed(partly.X, 12, 4, np.inf), columns=COLUMNS)
    with pytest.raises(ValueError, match=r"view 'video', row 12, column 'b_1' \(position 1\)"):
        CMVMED(views={"audio": "a_", "video": "b_"}).fit(X, partly.y)


def test_med_refuses_infinite_numbers(partly):
    with pytest.raises(ValueError, match=r"view 'view0', row 12, column 4"):
        MED().fit(changed(partly.X, 12, 4, np.inf), partly.y)


def grams(partly):
    return {"audio": partly.a @ partly.a.T, "video": partly.b @ partly.b.T}


def test_a_given_kernel_must_be_square(partly):
    K = grams(partly)
    with pytest.raises(
        ValueError, match=r"View 'video' has a precomputed kernel.*square matrix.*its shape is \(40, 30\)"
    ):
        CMVMED(kernel="precomputed").fit({**K, "video": K["video"][:, :30]}, partly.y)


def test_a_given_kernel_must_be_complete(partly):
    K = grams(partly)
    broken = {**K, "video": changed(K["video"], 12, 5, np.nan)}
    message = (
        r"contains NaN: view 'video', row 12, column 5, beside values.*cannot be filled.*kernel: compute it, or set all"
    )
    with pytest.raises(ValueError, match=message):
        CMVMED(kernel="precomputed").fit(broken, partly.y)
    model = CMVMED(kernel="precomputed", n_stages=2).fit(K, partly.y)
    with pytest.raises(ValueError, match=message):
        model.predict(broken)


def test_a_given_kernel_must_be_symmetric(partly):
    K = grams(partly)
    K["video"][3, 7] += 1.0
    with pytest.raises(
        ValueError, match=r"kernel matrix of view 'video' is not symmetric: entry \(\d+, \d+\) is.*symmetrize"
    ):
        CMVMED(kernel="precomputed").fit(K, partly.y)


def test_a_given_kernel_must_be_positive_semidefinite(partly):
    K = grams(partly)
    K["video"] -= 0.5 * np.trace(K["video"]) / 40 * np.eye(40)
    with pytest.raises(
        ValueError, match=r"view 'video' is not positive semi-definite \(smallest eigenvalue -.*clip its neg"
    ):
        CMVMED(kernel="precomputed").fit(K, partly.y)


def test_rounding_does_not_make_a_given_kernel_bad(partly):
    K = {name: gram * (1.0 + 1e-12 * np.triu(np.ones((40, 40)))) for name, gram in grams(partly).items()}
    exact = CMVMED(kernel="precomputed", n_stages=2).fit(grams(partly), partly.y)
    rounded = CMVMED(kernel="precomputed", n_stages=2).fit(K, partly.y)
    np.testing.assert_allclose(rounded.label_distributions_, exact.label_distributions_, atol=1e-6)


def test_the_rows_and_columns_that_a_message_names_are_the_users(partly):
    K = grams(partly)
    K["video"][12, 25] = 1e9
    with pytest.raises(ValueError, match=r"entry \((12, 25|25, 12)\)"):
        CMVMED(kernel="precomputed").fit(K, partly.y[::-1])


def test_a_given_kernel_at_predict_has_a_column_per_training_row(partly):
    K = grams(partly)
    model = CMVMED(kernel="precomputed", n_stages=2).fit(K, partly.y)
    assert model.predict({name: gram[:7] for name, gram in K.items()}).shape == (7,)
    with pytest.raises(ValueError, match=r"View 'audio' has 7 features, but fit saw 40"):
        model.predict({name: gram[:, :7] for name, gram in K.items()})


def test_a_given_kernel_has_no_deviations(partly):
    model = CMVMED(kernel="precomputed", n_stages=2).fit(grams(partly), partly.y)
    with pytest.raises(ValueError, match=r"View 'audio' has a precomputed kernel.*no standard deviation.*means only"):
        model.decision_function_by_view(grams(partly), return_std=True)


def test_a_given_kernel_may_be_sparse(partly):
    K = {name: sparse.csr_array(gram) for name, gram in grams(partly).items()}
    expected = CMVMED(kernel="precomputed").fit(grams(partly), partly.y).predict_proba(grams(partly))
    np.testing.assert_allclose(CMVMED(kernel="precomputed").fit(K, partly.y).predict_proba(K), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: A @ B.T - 1e3, "view 'video' is not positive semi-definite"),
        (lambda A, B: A @ B.T + np.arange(len(B)), "view 'video' is not symmetric"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "kernel of view 'video' gave values that are NaN or infinite"),
    ],
)
def test_a_callable_that_is_no_kernel(kernel, message, partly):
    with pytest.raises(ValueError, match=message):
        CMVMED(views=VIEWS, kernel={"audio": "rbf", "video": kernel}).fit(partly.X, partly.y)


def test_a_callable_that_returns_another_shape(partly):
    def diagonal_only(A, B):
        return np.ones(len(A))

    with pytest.raises(ValueError, match=r"'video'"):
        CMVMED(views=VIEWS, kernel={"audio": "rbf", "video": diagonal_only}).fit(partly.X, partly.y)


@pytest.mark.parametrize("estimator", [MED(), CMVMED()])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 3)), r"Found array with 0 sample\(s\)"),
        (np.empty((40, 0)), r"(0 feature\(s\)|0 features)"),
        (np.zeros(40), "Expected 2D array, got 1D array instead"),
        (np.zeros((40, 2, 2)), "dim 3|3D"),
        (
            np.array([["a", "b"]] * 40),
            r"contains the text 'a': view 'view0', row 0, column 0, but features must be numbers",
        ),
        (np.full((40, 2), 1j), "Complex data not supported"),
    ],
)
def test_tables_that_are_no_features(X, message, estimator, partly, fitted):
    with pytest.raises(ValueError, match=message):
        fitted(estimator, X, partly.y)


def framed(X, row, column, value):
    """The two views in one frame with a single cell that is not a number, the columns of the views mixed."""
    frame = pd.DataFrame(changed(X.astype(object), row, column, value), columns=COLUMNS)
    return frame[["b_0", "a_0", "a_1", "b_1", "a_2"]]


LOUD = (
    r"X contains the text 'loud': view '{}', row 4, column '{}' \(position {}\), but features must be numbers\. "
    "Correct the cell"
)
PREFIXES = {"audio": "a_", "video": "b_"}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize(("column", "view", "place"), [(2, "audio", 2), (4, "video", 1)])
def test_a_text_among_the_features_is_named(column, view, place, kind, partly):
    message = LOUD.format(view, COLUMNS[column], place)
    frame = framed(partly.X, 4, column, "loud").astype({COLUMNS[column]: str})
    with pytest.raises(ValueError, match=message):
        CMVMED(views=PREFIXES).fit(kind(frame), partly.y)
    model = CMVMED(views=PREFIXES, n_stages=1).fit(kind(framed(partly.X, 4, column, 0.0).astype(float)), partly.y)
    with pytest.raises(ValueError, match=message):
        model.predict(kind(frame))


def test_a_text_in_the_table_of_a_view_is_named(partly, model_of_parts):
    frame = pd.DataFrame(changed(partly.b.astype(object), 4, 1, "loud"), columns=COLUMNS[3:])
    with pytest.raises(ValueError, match=LOUD.format("video", "b_1", 1)):
        CMVMED().fit({"audio": partly.a, "video": frame}, partly.y)
    with pytest.raises(ValueError, match=r"contains the text 'loud': view 'video', row 4, column 1, but"):
        model_of_parts.predict({"audio": partly.a, "video": frame.to_numpy()})


def test_texts_that_spell_numbers_are_numbers(partly):
    spelled = pd.DataFrame(partly.X, columns=COLUMNS).astype(str)
    with pytest.raises(ValueError, match=LOUD.format("video", "b_0", 0)):
        CMVMED(views=PREFIXES).fit(framed(spelled.to_numpy(), 4, 3, "loud"), partly.y)
    expected = MED().fit(partly.X, partly.y).decision_function(partly.X)
    found = MED().fit(spelled.to_numpy(dtype=object), partly.y).decision_function(partly.X)
    np.testing.assert_array_equal(found, expected)


def test_a_missing_file_is_reported_also_without_pyarrow(model, partly, monkeypatch, tmp_path):
    for module in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nowhere.parquet"):
        model.predict(str(tmp_path / "nowhere.parquet"))
    (tmp_path / "here.parquet").touch()
    with pytest.raises(ImportError, match=re.escape(f"needs pyarrow. Install it with: {install_command('files')}")):
        model.predict(str(tmp_path / "here.parquet"))


@pytest.mark.parametrize("estimator", [MED(), CMVMED()])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(39), r"sample_weight.shape == \(39,\), expected \(40,\)"),
        (-np.ones(40), "Negative values in data passed to `sample_weight`"),
        (np.full(40, np.nan), "sample_weight contains NaN"),
        (np.full(40, np.inf), "sample_weight contains infinity"),
        (np.zeros(40), "zero"),
        (
            np.r_[np.zeros(10), np.ones(30)],
            "After removing rows of zero sample_weight, labels of fewer than 2 classes are left",
        ),
        (np.arange(40) % 2, "After removing rows of zero sample_weight, labels of fewer than 2 classes are left"),
    ],
)
def test_weights_that_are_none(weights, message, estimator, partly, fitted):
    with pytest.raises(ValueError, match=message):
        fitted(estimator, partly.X, partly.y, sample_weight=weights)


def test_a_class_of_zero_weight_is_named(partly_three):
    weights = (partly_three.y != 2).astype(float)
    with pytest.raises(
        ValueError, match=r"All labeled rows of class 2 have zero sample_weight; give one of them weight"
    ):
        CMVMED().fit(partly_three.X, partly_three.y, sample_weight=weights)


def test_a_class_whose_labeled_rows_are_all_missing_is_named(partly):
    X = partly.X.copy()
    X[partly.y == 1] = np.nan
    with pytest.raises(
        ValueError, match=r"Every labeled row of class 1 has all views missing.*label a row that has a view"
    ):
        CMVMED(views=VIEWS).fit(X, partly.y)


UNKNOWN_VALUES = [
    (
        "kernel",
        "gauss",
        "kernel of view 'audio' must be one of 'auto', 'linear[+]rbf', 'rbf', 'linear', 'cosine', 'precomputed', but",
    ),
    ("kernel", None, "kernel of view 'audio' must be one of"),
    ("kernel", ["rbf", "gauss"], "kernel of view 'video' must be one of"),
    ("gamma", "scale", "gamma of view 'audio' must be .*'median'.* but is 'scale'"),
    ("gamma", "-2*median", "gamma of view 'audio' must be .*'0.5\\*median'.* but is '-2\\*median'"),
    ("gamma", 0.0, "gamma of view 'audio' must be .*a number greater than 0"),
    ("gamma", -1.0, "gamma of view 'audio' must be .*a number greater than 0"),
    ("gamma", np.nan, "gamma of view 'audio' must be .*a number greater than 0"),
    ("gamma", None, "gamma of view 'audio' must be .*a number greater than 0, but is None"),
    ("scaling", "minmax", "scaling of view 'audio' must be one of 'auto', 'standard', 'unit', None, but is 'minmax'"),
    ("scaling", ["auto", 3], "scaling of view 'video' must be one of"),
    ("prior_variance", 0.0, "prior_variance of view 'audio' must be a number greater than 0"),
    ("prior_variance", "big", "prior_variance of view 'audio' must be .* but is 'big'"),
    ("prior_variance", [1.0, np.inf], "prior_variance of view 'video' must be a number greater than 0, but is inf"),
    ("C", -1.0, "C of view 'audio' must be a number greater than 0"),
    ("C", {"audio": 1.0, "video": 0}, "C of view 'video' must be a number greater than 0, but is 0"),
    ("C", True, "C of view 'audio' must be a number greater than 0, but is True"),
    ("bias_variance", -0.1, "bias_variance of view 'audio' must be a number at least 0"),
    ("unlabeled", [0, 1], r"unlabeled must be one value that marks unlabeled rows, or None; got \[0, 1\]"),
    ("random_state", "seed", "random_state"),
]
CONSENSUS_UNKNOWN_VALUES = [
    *(("consensus_weight", value, "consensus_weight") for value in (-1.0, None, "big", np.nan)),
    *(("temperature", value, "temperature") for value in (0.0, np.inf)),
    *(("class_prior", value, "class_prior") for value in ("balanced", 1j)),
    ("class_prior", ["a", "b"], "class_prior must"),
    ("class_prior", 0.0, "class_prior must give each of the 2 classes a positive share, summing to 1"),
    ("class_prior", 1.5, "class_prior must give each of the 2 classes a positive share"),
    (
        "class_prior",
        [0.5, 0.6],
        r"class_prior must give each of the 2 classes.*in the order of classes_ \[0, 1\], but is \[0.5",
    ),
    ("class_prior", [0.2, 0.3, 0.5], "class_prior must give each of the 2 classes a positive share"),
    ("class_prior", [[0.5, 0.5]], "class_prior must give each of the 2 classes a positive share"),
    ("class_prior", {0: 0.5, 2: 0.5}, r"class_prior has 2, which is not a class of the labels: they are \[0, 1\]"),
    *(("view_weights", value, "view_weights") for value in ("entropy", None, -1.0)),
    ("view_weights", [1.0, -1.0], "view_weights of view 'video' must be .*a number at least 0, but is -1.0"),
    ("view_weights", [0.0, 0.0], r"view_weights \[0.0, 0.0\] leave no view with a positive weight"),
    *(("members", value, "members") for value in ("word", [], ["lda", "word"], "linear", ["rbf"], 3)),
    *(("labels_drawn", value, "labels_drawn") for value in ("some", None)),
    *(("algorithm", value, "algorithm") for value in ("fast", None)),
    *(("n_stages", value, "n_stages") for value in (0, 2.0, "many")),
    *(("max_iter", value, "max_iter") for value in (0, 1.5)),
    *(("tol", value, "tol") for value in (-1e-3, "small", np.inf)),
    *(("approximation", value, "approximation") for value in ("nystrom", 0, 10.0, None)),
    *(("rows_tol", value, "rows_tol") for value in (-1.0, "all")),
    *(("n_jobs", value, "n_jobs") for value in (0, "two", 1.5)),
]


@pytest.mark.parametrize(("parameter", "value", "message"), UNKNOWN_VALUES + CONSENSUS_UNKNOWN_VALUES)
def test_unknown_values_of_parameters(parameter, value, message, partly):
    with pytest.raises(ValueError, match=message):
        CMVMED(views=VIEWS, **{parameter: value}).fit(partly.X, partly.y)


MED_UNKNOWN_VALUES = [
    (parameter, value, message.replace("'audio'", "'view0'"))
    for parameter, value, message in UNKNOWN_VALUES
    if not isinstance(value, list) and value != {"audio": 1.0, "video": 0}
]


@pytest.mark.parametrize(("parameter", "value", "message"), MED_UNKNOWN_VALUES)
def test_unknown_values_of_parameters_of_med(parameter, value, message, partly):
    with pytest.raises(ValueError, match=message):
        MED(**{parameter: value}).fit(partly.X, partly.y)


@pytest.mark.parametrize("parameter", ["kernel", "gamma", "scaling", "prior_variance", "C", "bias_variance"])
@pytest.mark.parametrize(
    ("form", "message"),
    [
        (lambda v: [v], r"{} has 1 entries but there are 2 views: \['audio', 'video'\]"),
        (lambda v: [v] * 3, r"{} has 3 entries but there are 2 views: \['audio', 'video'\]"),
        (lambda v: {"audio": v}, r"{} has no entry for view 'video'; the views are \['audio', 'video'\]"),
        (
            lambda v: {"audio": v, "video": v, "radar": v},
            r"{} has an entry for 'radar', which is not a view; the views are",
        ),
    ],
)
def test_settings_by_view_that_do_not_match_the_views(parameter, form, message, partly):
    value = getattr(CMVMED(), parameter)
    with pytest.raises(ValueError, match=message.format(parameter)):
        CMVMED(views=VIEWS, **{parameter: form(value)}).fit(partly.X, partly.y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"view_weights has 1 entries but there are 2 views"),
        ({"audio": 1.0}, r"view_weights has no entry for view 'video'"),
        ({"audio": 1.0, "video": 1.0, "x": 1.0}, r"view_weights has an entry for 'x', which is not a view"),
    ],
)
def test_view_weights_that_do_not_match_the_views(weights, message, partly):
    with pytest.raises(ValueError, match=message):
        CMVMED(views=VIEWS, view_weights=weights).fit(partly.X, partly.y)


def test_one_number_is_no_prior_of_three_classes(partly_three):
    with pytest.raises(ValueError, match=r"class_prior=0.3 is one number, but there are 3 classes: give one for each"):
        CMVMED(views=VIEWS, class_prior=0.3).fit(partly_three.X, partly_three.y)


def test_unknown_parameters_are_refused_by_name():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'sigma'"):
        CMVMED(sigma=1.0)
    with pytest.raises(ValueError, match=r"Invalid parameter 'sigma' for estimator CMVMED"):
        CMVMED().set_params(sigma=1.0)


def test_nothing_can_be_scored_without_labels(partly, model):
    with pytest.raises(ValueError, match=r"No row of y is labeled, so there is nothing to score; pass true classes"):
        model.score(partly.X, np.full(40, -1))
    with pytest.raises(ValueError, match=r"No row of y is labeled"):
        model.score_by_view(partly.X, np.full(40, None))


def test_scores_need_a_label_per_row(partly, model):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples"):
        model.score(partly.X, partly.truth[:-1])


def test_scores_need_a_weight_per_row(partly, model):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(partly.X, partly.truth, sample_weight=np.ones(39))


def test_two_views_of_the_same_name_are_refused(partly):
    with pytest.raises(ValueError, match="'1'"):
        CMVMED(views={1: slice(0, 3), "1": slice(3, 5)}, n_stages=1).fit(partly.X, partly.y)


def test_two_parts_of_the_same_name_are_refused(partly):
    with pytest.raises(ValueError, match="'1'"):
        CMVMED(n_stages=1).fit({1: partly.a, "1": partly.b}, partly.y)


def test_a_failed_fit_leaves_a_fitted_model_usable(partly):
    model = CMVMED(views=VIEWS, n_stages=2).fit(partly.X, partly.y)
    before = model.predict_proba(partly.X)
    with pytest.raises(ValueError, match=r"y has no labels"):
        model.fit(partly.X, np.full(40, -1))
    np.testing.assert_array_equal(model.predict_proba(partly.X), before)


def test_out_of_iterations_warns_and_names_what_to_raise(partly):
    with pytest.warns(
        UserWarning, match=r"The last stage did not converge within max_iter=1 sweeps; raise max_iter or tol"
    ):
        model = CMVMED(views=VIEWS, tol=0.0, max_iter=1).fit(partly.X, partly.y)
    assert not model.converged_


def test_a_lost_class_is_reported(partly):
    X = np.where(partly.hidden[:, None], partly.X[0], partly.X)  # every unlabeled row is a copy of a row of class 0
    with pytest.warns(
        UserWarning, match=r"drifted away from class 1: .*class_prior=\"labels\" or give the class shares"
    ):
        CMVMED(views=VIEWS, class_prior=None, temperature=0.01).fit(X, partly.y)


def test_clean_input_gives_no_warning(partly):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = CMVMED(views=VIEWS).fit(partly.X, partly.y).predict(partly.X)
    assert predicted.shape == partly.y.shape
