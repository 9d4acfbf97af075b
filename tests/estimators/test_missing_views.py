"""Sensors that are missing in some rows, at fit and at predict; and how rows and classes are weighted."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from cmvmed import CMVMED, MED
from tests.estimators.algorithms import ALGORITHMS, with_algorithm

VIEWS = {"a": slice(0, 3), "b": slice(3, 5)}
COLUMNS = ["a_0", "a_1", "a_2", "b_0", "b_1"]
# What is tested here does not depend on how far the annealing goes, and shows at the paper's consensus weight.
FEW = {"n_stages": 3, "consensus_weight": 1.0}
few_stages = partial(CMVMED, **FEW)
consensus = partial(few_stages, members="consensus")
parametrize_algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


def without(X, rows, columns):
    """A copy of X with the view in these columns missing in these rows."""
    X = X.copy()
    X[rows, columns] = np.nan
    return X


@pytest.fixture(scope="module")
def gappy(partly):
    """Rows 0 and 11-14 lack view a, rows 3 and 20-23 lack view b; rows 0 and 3 are labeled."""
    X = without(partly.X, [0, 11, 12, 13, 14], VIEWS["a"])
    return without(X, [3, 20, 21, 22, 23], VIEWS["b"])


@parametrize_algorithms
def test_a_row_that_lacks_a_view_is_scored_by_the_others(algorithm, partly, gappy, assert_finite):
    model = with_algorithm(algorithm, views=VIEWS, members="consensus", **FEW).fit(gappy, partly.y)
    assert_finite(model, gappy)
    scores, by_view = model.decision_function(gappy), model.decision_function_by_view(gappy)
    np.testing.assert_allclose(scores[[0, 11]], by_view["b"][[0, 11]], atol=1e-12)
    np.testing.assert_allclose(scores[[3, 20]], by_view["a"][[3, 20]], atol=1e-12)
    np.testing.assert_allclose(
        model.label_distributions_[partly.hidden], model.predict_proba(gappy)[partly.hidden], atol=1e-8
    )
    np.testing.assert_array_equal(model.transduction_[:10], partly.y[:10])


@pytest.mark.parametrize("algorithm", ["bohning", "jaakkola", "exact", "newton"])
def test_rows_that_lack_a_view_get_the_same_probabilities_as_training_and_as_new_rows(
    algorithm, partly, gappy, assert_finite
):
    model = with_algorithm(algorithm, views=VIEWS, **FEW).fit(gappy, partly.y)
    assert_finite(model, gappy)
    hidden = partly.hidden
    np.testing.assert_allclose(model.label_distributions_[hidden], model.predict_proba(gappy)[hidden], atol=1e-8)
    np.testing.assert_array_equal(model.transduction_[:10], partly.y[:10])


def test_views_may_be_missing_in_new_rows_only(partly, fresh_rows):
    model = consensus(views=VIEWS).fit(partly.X, partly.y)
    by_view = model.decision_function_by_view(fresh_rows)
    only_a, only_b = fresh_rows.copy(), fresh_rows.copy()
    only_a[:, 3:], only_b[:, :3] = np.nan, np.nan
    np.testing.assert_allclose(model.decision_function(only_a), by_view["a"], atol=1e-12)
    np.testing.assert_allclose(model.decision_function(only_b), by_view["b"], atol=1e-12)


def test_a_missing_view_is_not_an_imputed_number(partly):
    """Broken twin: zeros in place of the missing view give other scores."""
    model = few_stages(views=VIEWS).fit(partly.X, partly.y)
    gaps, zeros = partly.X.copy(), partly.X.copy()
    gaps[:, :3], zeros[:, :3] = np.nan, 0.0
    assert np.abs(model.decision_function(gaps) - model.decision_function(zeros)).max() > 1e-3


def test_the_deviation_of_a_missing_view_is_infinite(partly, gappy):
    model = few_stages(views=VIEWS).fit(partly.X, partly.y)
    deviation = model.decision_function_by_view(gappy, return_std=True)["a"][1]
    np.testing.assert_array_equal(np.flatnonzero(np.isinf(deviation)), [0, 11, 12, 13, 14])


def test_a_missing_view_gives_the_class_prior(partly, gappy):
    model = few_stages(views=VIEWS, class_prior=0.45).fit(partly.X, partly.y)
    np.testing.assert_allclose(model.predict_proba_by_view(gappy)["a"][0], [0.55, 0.45], atol=1e-12)


def test_the_accuracy_of_a_view_counts_the_rows_that_have_it(partly, gappy):
    model = few_stages(views=VIEWS).fit(partly.X, partly.y)
    has_a = ~np.isnan(gappy[:, 0])
    accuracies = model.score_by_view(gappy, partly.truth)
    assert accuracies["a"] == model.score_by_view(partly.X[has_a], partly.truth[has_a])["a"]
    assert "a" not in model.score_by_view(without(partly.X, slice(None), VIEWS["a"]), partly.truth)


def nullable_pandas(X):
    return pd.DataFrame(X, columns=COLUMNS).astype("Float64")


def nulls_in_polars(X):
    return pl.DataFrame(X, schema=COLUMNS).fill_nan(None)


def with_none(X):
    return np.where(np.isnan(X), None, X.astype(object))


FORMS = {
    "pandas": (lambda X: pd.DataFrame(X, columns=COLUMNS), VIEWS),
    "pandas NA": (nullable_pandas, VIEWS),
    "pandas None": (lambda X: pd.DataFrame(with_none(X), columns=COLUMNS), VIEWS),
    "polars NaN": (lambda X: pl.DataFrame(X, schema=COLUMNS), VIEWS),
    "polars null": (nulls_in_polars, VIEWS),
    "array with None": (with_none, VIEWS),
    "float32": (lambda X: X.astype(np.float32), VIEWS),
    "list": (lambda X: [X[:, :3], X[:, 3:]], None),
    "dict": (lambda X: {"a": X[:, :3], "b": pd.DataFrame(X[:, 3:])}, None),
}


@pytest.mark.parametrize(("form", "views"), FORMS.values(), ids=FORMS.keys())
def test_a_view_may_be_missing_in_every_form_of_X(form, views, partly, gappy):
    expected = few_stages(views=VIEWS).fit(gappy, partly.y).predict_proba(gappy)
    model = few_stages(views=views).fit(form(gappy), partly.y)
    np.testing.assert_allclose(model.predict_proba(form(gappy)), expected, atol=1e-8)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_a_view_may_be_missing_in_a_sparse_X(form, partly, gappy):
    model = few_stages(views=VIEWS, scaling="unit")
    expected = clone(model).fit(gappy, partly.y).predict_proba(gappy)
    found = clone(model).fit(form(gappy), partly.y).predict_proba(form(gappy))
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("weights", "weights_of_two"),
    [("agreement", "agreement"), ("uniform", "uniform"), ({"a": 0.3, "b": 0.5, "c": 0.2}, {"a": 0.3, "b": 0.5})],
)
@parametrize_algorithms
def test_a_view_that_no_training_row_has_changes_nothing(algorithm, weights, weights_of_two, partly):
    X = np.hstack([partly.X, np.full((len(partly.y), 2), np.nan)])
    expected = with_algorithm(algorithm, views=VIEWS, view_weights=weights_of_two, **FEW).fit(partly.X, partly.y)
    with pytest.warns(UserWarning, match="View 'c' is missing in every training row"):
        model = with_algorithm(algorithm, views={"a": 3, "b": 2, "c": 2}, view_weights=weights, **FEW).fit(X, partly.y)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(partly.X), atol=1e-8)
    seen_now = np.hstack([partly.X, np.ones((len(partly.y), 2))])
    np.testing.assert_allclose(model.predict_proba(seen_now), expected.predict_proba(partly.X), atol=1e-8)


@parametrize_algorithms
def test_no_labeled_row_has_one_of_the_views(algorithm, partly, assert_finite):
    X = without(partly.X, slice(0, 10), VIEWS["b"])
    assert_finite(with_algorithm(algorithm, views=VIEWS, **FEW).fit(X, partly.y), partly.X)


def test_a_view_that_no_training_row_has_does_not_count_as_disagreement(partly):
    X = partly.X + 12.0 * np.random.default_rng(0).normal(size=partly.X.shape)  # the views agree, but not much
    expected = CMVMED(views=VIEWS).fit(X, partly.y)
    with pytest.warns(UserWarning, match="View 'c' is missing in every training row"):
        model = CMVMED(views={"a": 3, "b": 2, "c": 1}).fit(np.hstack([X, np.full((40, 1), np.nan)]), partly.y)
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-8)


def learned_by_unlabeled_view(partly, **settings):
    """Accuracy of view b, which no labeled row has."""
    X = without(partly.X, slice(0, 10), VIEWS["b"])
    return CMVMED(views=VIEWS, **settings).fit(X, partly.y).score_by_view(partly.X, partly.truth)["b"]


@pytest.mark.parametrize("algorithm", ["bohning", "jaakkola", "exact", "newton"])
def test_a_view_without_labels_learns_from_the_others(algorithm, partly):
    assert learned_by_unlabeled_view(partly, consensus_weight=1.0, algorithm=algorithm) > 0.7
    assert learned_by_unlabeled_view(partly, consensus_weight=0.0, algorithm=algorithm) == 0.5


def test_a_view_without_labels_learns_from_the_others_by_default(partly):
    assert learned_by_unlabeled_view(partly) > 0.7


@parametrize_algorithms
def test_only_labeled_rows_have_one_of_the_views(algorithm, partly, assert_finite):
    X = without(partly.X, slice(10, None), VIEWS["b"])
    assert_finite(with_algorithm(algorithm, views=VIEWS, **FEW).fit(X, partly.y), partly.X)


@parametrize_algorithms
def test_every_row_has_one_view_only(algorithm, partly, assert_finite):
    X = without(without(partly.X, slice(0, None, 4), VIEWS["a"]), slice(1, None, 4), VIEWS["a"])
    X = without(without(X, slice(2, None, 4), VIEWS["b"]), slice(3, None, 4), VIEWS["b"])
    model = with_algorithm(algorithm, views=VIEWS, **FEW).fit(X, partly.y)
    assert_finite(model, X)
    assert model.score(X, partly.truth) > 0.7


@pytest.mark.parametrize("prior", ["labels", 0.4, None])
def test_new_rows_without_any_view_get_the_class_prior_with_a_warning(prior, partly, fresh_rows):
    model = few_stages(views=VIEWS, class_prior=prior).fit(partly.X, partly.y)
    X = without(fresh_rows, [4, 7], slice(None))
    with pytest.warns(UserWarning, match=r"2 of 20 rows have no view present, the first is row 4"):
        found = model.predict_proba(X)
    np.testing.assert_allclose(found[[4, 7]], [model.class_prior_] * 2, atol=1e-12)
    others = np.delete(np.arange(20), [4, 7])
    np.testing.assert_allclose(found[others], model.predict_proba(fresh_rows[others]), rtol=1e-12)


def test_new_rows_without_any_view_of_three_classes(partly_three):
    model = few_stages(views=VIEWS, class_prior=[0.5, 0.3, 0.2]).fit(partly_three.X, partly_three.y)
    with pytest.warns(UserWarning, match="no view"):
        found = model.predict_proba(np.full((1, 5), np.nan))
    np.testing.assert_allclose(found, [[0.5, 0.3, 0.2]], atol=1e-12)


@parametrize_algorithms
def test_training_rows_without_any_view_are_not_used(algorithm, partly):
    keep = np.delete(np.arange(len(partly.y)), [2, 15])  # one labeled, one not
    expected = with_algorithm(algorithm, views=VIEWS, **FEW).fit(partly.X[keep], partly.y[keep])
    with pytest.warns(UserWarning, match="2 training rows have all views missing; they are not used"):
        model = with_algorithm(algorithm, views=VIEWS, **FEW).fit(without(partly.X, [2, 15], slice(None)), partly.y)
    np.testing.assert_allclose(model.predict_proba(partly.X), expected.predict_proba(partly.X), atol=1e-8)
    np.testing.assert_array_equal(model.label_distributions_[2], np.eye(2)[partly.y[2]])
    np.testing.assert_allclose(model.label_distributions_[15], model.class_prior_, atol=1e-12)


def test_med_gives_missing_rows_the_class_prior(partly):
    X = without(partly.X, [2, 15], slice(None))
    model = MED().fit(X, partly.y)
    with pytest.warns(UserWarning, match="2 of 40 rows have no view"):
        found = model.predict_proba(X)
    np.testing.assert_allclose(found[[2, 15]], [model.class_prior_] * 2, atol=1e-12)
    keep = np.delete(np.arange(len(partly.y)), [2, 15])
    np.testing.assert_allclose(
        found[keep], MED().fit(partly.X[keep], partly.y[keep]).predict_proba(partly.X[keep]), atol=1e-10
    )


def test_a_view_of_one_column_is_missing_where_it_is_nan(partly, assert_finite):
    X = without(partly.X, [12, 13], slice(4, 5))
    assert_finite(few_stages(views={"a": 4, "level": 1}).fit(X, partly.y), X)
    model = consensus(views={"a": 4, "level": 1}).fit(X, partly.y)
    assert_finite(model, X)
    only = model.decision_function_by_view(X)["a"]
    np.testing.assert_allclose(model.decision_function(X)[[12, 13]], only[[12, 13]], atol=1e-12)


GIVEN = ["views", "consensus"]  # members that know a view by its given kernel alone


def kernels_of(rows, train):
    return [rows[:, :3] @ train[:, :3].T, rows[:, 3:] @ train[:, 3:].T]


def test_a_row_of_a_given_kernel_may_be_missing(partly):
    K = kernels_of(partly.X, partly.X)
    K[0][[4, 20]] = np.nan
    model = few_stages(kernel="precomputed", members=GIVEN).fit(K, partly.y)
    expected = few_stages(views=[3, 2], kernel="linear", scaling=None, members=GIVEN)
    X = without(partly.X, [4, 20], VIEWS["a"])
    np.testing.assert_allclose(model.predict_proba(K), expected.fit(X, partly.y).predict_proba(X), atol=1e-6)


def test_a_row_and_its_column_of_a_given_kernel_may_be_missing(partly):
    K = kernels_of(partly.X, partly.X)
    K[0][[4, 20]] = np.nan
    K[0][:, [4, 20]] = np.nan
    model = few_stages(kernel="precomputed", members=GIVEN).fit(K, partly.y)
    expected = few_stages(views=[3, 2], kernel="linear", scaling=None, members=GIVEN)
    X = without(partly.X, [4, 20], VIEWS["a"])
    np.testing.assert_allclose(model.predict_proba(K), expected.fit(X, partly.y).predict_proba(X), atol=1e-6)


@parametrize_algorithms
@pytest.mark.parametrize("problem", ["partly", "partly_three"])
def test_a_weight_counts_a_row_that_often(algorithm, problem, request):
    data = request.getfixturevalue(problem)
    counts = np.random.default_rng(0).integers(1, 4, size=len(data.y))
    repeated = np.repeat(np.arange(len(data.y)), counts)
    model = with_algorithm(algorithm, views=VIEWS, class_prior="labels", **FEW)
    weighted = clone(model).fit(data.X, data.y, sample_weight=counts)
    expected = clone(model).fit(data.X[repeated], data.y[repeated])
    unweighted = clone(model).fit(data.X, data.y)
    np.testing.assert_allclose(weighted.predict_proba(data.X), expected.predict_proba(data.X), atol=1e-6)
    assert np.abs(unweighted.predict_proba(data.X) - expected.predict_proba(data.X)).max() > 1e-3


@pytest.mark.parametrize(("labeled", "unlabeled"), [(3, 1), (1, 2)])
def test_weights_of_labeled_and_unlabeled_rows_count_alike(labeled, unlabeled, partly):
    counts = np.where(partly.hidden, unlabeled, labeled)
    repeated = np.repeat(np.arange(len(partly.y)), counts)
    model = few_stages(views=VIEWS, class_prior="labels")
    weighted = clone(model).fit(partly.X, partly.y, sample_weight=counts).predict_proba(partly.X)
    expected = clone(model).fit(partly.X[repeated], partly.y[repeated]).predict_proba(partly.X)
    np.testing.assert_allclose(weighted, expected, atol=1e-6)


def three_views(data):
    """The two views and a third of noise, which agrees less."""
    noise = np.random.default_rng(5).normal(size=(len(data.y), 2))
    return np.hstack([data.X, noise + 0.3 * data.X[:, :2]])


@pytest.mark.parametrize("weighting", ["uniform", "agreement"])
def test_a_weight_counts_a_row_that_often_in_the_weights_of_views(weighting, partly):
    X, counts = three_views(partly), np.where(np.arange(len(partly.y)) % 3 == 0, 5, 1)
    repeated = np.repeat(np.arange(len(partly.y)), counts)
    model = few_stages(views=[3, 2, 2], class_prior="labels", view_weights=weighting)
    weighted = clone(model).fit(X, partly.y, sample_weight=counts)
    expected = clone(model).fit(X[repeated], partly.y[repeated])
    np.testing.assert_allclose(weighted.view_weights_, expected.view_weights_, atol=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(X), expected.predict_proba(X), atol=1e-6)


def test_one_heavy_unlabeled_row_counts_like_many(partly):
    rows = np.r_[:10, 12]
    repeated = np.r_[:10, [12] * 8]
    model = few_stages(views=VIEWS, class_prior=[0.8, 0.2])
    weighted = clone(model).fit(partly.X[rows], partly.y[rows], sample_weight=np.r_[np.ones(10), 8.0])
    expected = clone(model).fit(partly.X[repeated], partly.y[repeated])
    np.testing.assert_allclose(weighted.predict_proba(partly.X), expected.predict_proba(partly.X), atol=1e-6)


@pytest.mark.parametrize("prior", ["labels", "auto"])
@parametrize_algorithms
def test_zero_weight_removes_a_row(algorithm, prior, partly):
    weights = np.ones(len(partly.y))
    weights[[1, 2, 15, 31]] = 0.0
    keep = weights > 0.0
    model = with_algorithm(algorithm, views=VIEWS, class_prior=prior, **FEW)
    weighted = clone(model).fit(partly.X, partly.y, sample_weight=weights)
    expected = clone(model).fit(partly.X[keep], partly.y[keep])
    np.testing.assert_allclose(weighted.predict_proba(partly.X), expected.predict_proba(partly.X), atol=1e-6)
    np.testing.assert_allclose(
        weighted.label_distributions_[[15, 31]], weighted.predict_proba(partly.X[[15, 31]]), atol=1e-8
    )
    np.testing.assert_array_equal(weighted.label_distributions_[[1, 2]], np.eye(2)[partly.y[[1, 2]]])


def test_weights_of_med(partly):
    counts = np.random.default_rng(0).integers(0, 3, size=len(partly.y))
    counts[:2] = 1  # a label of each class
    repeated = np.repeat(np.arange(len(partly.y)), counts)
    weighted = MED().fit(partly.X, partly.y, sample_weight=counts).predict_proba(partly.X)
    expected = MED().fit(partly.X[repeated], partly.y[repeated]).predict_proba(partly.X)
    np.testing.assert_allclose(weighted, expected, atol=1e-8)


RAW = {"kernel": "linear", "scaling": None, "prior_variance": 0.01}  # nothing here is estimated from weighted rows


@pytest.mark.parametrize("model", [MED(**RAW), CMVMED(views=VIEWS, class_prior=0.5, members=None, n_stages=3, **RAW)])
def test_equal_weights_of_labeled_rows_multiply_C(model, partly):
    weights = np.where(partly.y >= 0, 3.0, 1.0)
    weighted = clone(model).fit(partly.X, partly.y, sample_weight=weights)
    expected = clone(model).set_params(C=3.0).fit(partly.X, partly.y)
    np.testing.assert_allclose(weighted.decision_function(partly.X), expected.decision_function(partly.X), atol=1e-6)
    plain = clone(model).fit(partly.X, partly.y)
    assert np.abs(weighted.decision_function(partly.X) - plain.decision_function(partly.X)).max() > 1e-3


def test_weights_of_a_class_move_the_members(partly):
    members = ["views", "lda", "view_graphs", "trees"]
    shares = [
        few_stages(views=VIEWS, class_prior=None, members=members)
        .fit(partly.X, partly.y, sample_weight=np.where(partly.y >= 0, np.take(weights, partly.y), 1.0))
        .label_distributions_[partly.hidden, 1]
        .mean()
        for weights in ((1.0, 0.1), (1.0, 1.0), (0.1, 1.0))
    ]
    assert shares[0] < shares[1] - 0.03 < shares[2] - 0.06


@pytest.mark.parametrize("parameter", ["kernel", "gamma", "prior_variance", "C", "bias_variance", "scaling"])
def test_settings_by_view_may_be_a_list_or_a_dict(parameter, partly):
    first, second = {
        "kernel": ("rbf", "linear"),
        "gamma": (0.5, "median"),
        "prior_variance": (1.0, 5.0),
        "C": (0.5, 2.0),
        "bias_variance": (0.0, 1.0),
        "scaling": ("standard", "unit"),
    }[parameter]
    forms = [[first, second], (first, second), {"a": first, "b": second}, {"b": second, "a": first}]
    scores = [
        few_stages(views=VIEWS, **{parameter: form}).fit(partly.X, partly.y).decision_function(partly.X)
        for form in forms
    ]
    np.testing.assert_array_equal(scores, [scores[0]] * 4)
    exchanged = (
        few_stages(views=VIEWS, **{parameter: [second, first]}).fit(partly.X, partly.y).decision_function(partly.X)
    )
    assert np.abs(exchanged - scores[0]).max() > 1e-4


def test_one_setting_serves_all_views(partly):
    one = few_stages(views=VIEWS, C=2.0, kernel="linear").fit(partly.X, partly.y)
    each = few_stages(views=VIEWS, C=[2.0, 2.0], kernel={"a": "linear", "b": "linear"}).fit(partly.X, partly.y)
    np.testing.assert_array_equal(one.decision_function(partly.X), each.decision_function(partly.X))


@pytest.mark.parametrize("weights", [[1.0, 3.0], (1, 3), np.array([0.25, 0.75]), {"b": 6.0, "a": 2.0}])
def test_view_weights_are_given_up_to_their_sum(weights, partly):
    model = few_stages(views=VIEWS, view_weights=weights).fit(partly.X, partly.y)
    np.testing.assert_allclose(model.view_weights_, [0.25, 0.75], atol=1e-12)


def test_a_view_of_no_weight_does_not_count(partly):
    weights = {"a": 1.0, "b": 0.0}
    model = consensus(views=VIEWS, view_weights=weights).fit(partly.X, partly.y)
    scores = model.decision_function(partly.X)
    np.testing.assert_allclose(scores, model.decision_function_by_view(partly.X)["a"], atol=1e-12)
    for fit in (consensus, few_stages):
        scores = fit(views=VIEWS, view_weights=weights).fit(partly.X, partly.y).decision_function(partly.X)
        np.testing.assert_allclose(scores, fit().fit(partly.a, partly.y).decision_function(partly.a), atol=1e-6)


def test_a_view_of_noise_gets_the_least_weight(partly):
    weights = (
        few_stages(views=[3, 2, 2])
        .fit(np.hstack([partly.X, np.random.default_rng(3).normal(size=(40, 2))]), partly.y)
        .view_weights_
    )
    assert weights.argmin() == 2
