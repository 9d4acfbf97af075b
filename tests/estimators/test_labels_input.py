"""Labels in every form, and what a fitted model reports about its training rows, its classes and its views."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit, softmax
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

from cmvmed import CMVMED, MED
from tests.estimators.algorithms import ALGORITHMS, with_algorithm

WIDTHS = [3, 2]
NAN = float("nan")
NAMES = np.array(["cat", "dog"])


def relabeled(y, first, second, marker, dtype=object):
    """Write the codes 0, 1, -1 as the given labels and marker."""
    return np.array([{0: first, 1: second, -1: marker}[code] for code in y.tolist()], dtype=dtype)


# Each entry: y with -1 where unlabeled -> (the same y in another form, its two classes)
LABEL_FORMS = {
    "ints": (lambda y: y, [0, 1]),
    "small ints": (lambda y: y.astype(np.int8), [0, 1]),
    "other ints": (lambda y: relabeled(y, 3, 7, -1, int), [3, 7]),
    "list of ints": (lambda y: y.tolist(), [0, 1]),
    "floats with NaN": (lambda y: np.where(y == -1, NAN, y), [0.0, 1.0]),
    "floats with -1": (lambda y: y.astype(float), [0.0, 1.0]),
    "bools with None": (lambda y: relabeled(y, False, True, None), [False, True]),
    "strings with None": (lambda y: relabeled(y, "cat", "dog", None), ["cat", "dog"]),
    "strings with -1": (lambda y: relabeled(y, "cat", "dog", -1), ["cat", "dog"]),
    "strings with '-1'": (lambda y: relabeled(y, "cat", "dog", -1, "U3"), ["cat", "dog"]),
    "list of strings with NaN": (lambda y: relabeled(y, "cat", "dog", NAN).tolist(), ["cat", "dog"]),
    "pandas ints": (lambda y: pd.Series(y, index=np.arange(len(y))[::-1]), [0, 1]),
    "pandas Int64": (lambda y: pd.Series(relabeled(y, 0, 1, None), dtype="Int64"), [0, 1]),
    "pandas boolean": (lambda y: pd.Series(relabeled(y, False, True, None), dtype="boolean"), [False, True]),
    "pandas string": (lambda y: pd.Series(relabeled(y, "cat", "dog", None), dtype="string"), ["cat", "dog"]),
    "pandas category": (lambda y: pd.Series(relabeled(y, "cat", "dog", None), dtype="category"), ["cat", "dog"]),
    "polars ints": (lambda y: pl.Series(relabeled(y, 0, 1, None).tolist()), [0, 1]),
    "polars strings": (lambda y: pl.Series(relabeled(y, "cat", "dog", None).tolist()), ["cat", "dog"]),
    "polars categories": (
        lambda y: pl.Series(relabeled(y, "cat", "dog", None).tolist(), dtype=pl.Categorical),
        ["cat", "dog"],
    ),
}
parametrize_labels = pytest.mark.parametrize(("form", "classes"), LABEL_FORMS.values(), ids=LABEL_FORMS.keys())


@pytest.fixture(scope="module")
def plain(partly):
    return CMVMED(views=WIDTHS, n_stages=2).fit(partly.X, partly.y)


@parametrize_labels
def test_labels_of_every_form_give_the_same_model(form, classes, partly, plain):
    expected, model = plain, CMVMED(views=WIDTHS, n_stages=2).fit(partly.X, form(partly.y))
    assert model.classes_.tolist() == classes
    np.testing.assert_array_equal(model.predict_proba(partly.X), expected.predict_proba(partly.X))
    np.testing.assert_array_equal(model.predict(partly.X), model.classes_[expected.predict(partly.X)])
    np.testing.assert_array_equal(model.transduction_, model.classes_[expected.transduction_])
    labeled = ~partly.hidden
    right = model.predict(partly.X[labeled]) == np.array(classes)[partly.y[labeled]]
    with pytest.warns(UserWarning, match="30 of 40 rows of y are unlabeled and are not scored.*SemiSupervisedKFold"):
        assert model.score(partly.X, form(partly.y)) == right.mean()


@parametrize_labels
def test_labels_of_every_form_give_the_same_med(form, classes, partly):
    model = MED().fit(partly.X, form(partly.y))
    assert model.classes_.tolist() == classes
    expected = MED().fit(partly.X, partly.y).predict_proba(partly.X)
    np.testing.assert_array_equal(model.predict_proba(partly.X), expected)


@pytest.mark.parametrize(
    ("first", "second", "marker"), [("cat", "dog", "?"), (1, 2, 0), (0, 1, 99), ("a", "b", ""), (-1, 1, 0)]
)
@pytest.mark.parametrize("model", [MED(), CMVMED(n_stages=2)])
def test_the_marker_can_be_chosen(model, first, second, marker, partly):
    y = relabeled(partly.y, first, second, marker)
    fitted = clone(model).set_params(unlabeled=marker).fit(partly.X, y)
    assert fitted.classes_.tolist() == [first, second]
    expected = clone(model).fit(partly.X, partly.y).predict_proba(partly.X)
    np.testing.assert_array_equal(fitted.predict_proba(partly.X), expected)


def test_minus_one_can_be_a_class_of_its_own(partly):
    y = relabeled(partly.y, -1, 1, None)
    model = CMVMED(views=WIDTHS, unlabeled=None).fit(partly.X, y)
    assert model.classes_.tolist() == [-1, 1]
    expected = CMVMED(views=WIDTHS).fit(partly.X, partly.y)
    np.testing.assert_array_equal(model.transduction_, np.array([-1, 1])[expected.transduction_])


def test_with_a_marker_of_its_own_minus_one_counts_in_the_score(partly):
    model = CMVMED(views=WIDTHS, unlabeled=None).fit(partly.X, relabeled(partly.y, -1, 1, None))
    truth = np.array([-1, 1])[partly.truth]
    assert model.score(partly.X, truth) == accuracy_score(truth, model.predict(partly.X))


@pytest.mark.parametrize("names", [["x", "y", "z"], [10, 20, 30], [1.0, 2.0, 3.0]])
def test_more_than_two_classes(names, partly_three):
    names = np.array(names)
    y = names[partly_three.y].astype(object)
    y[partly_three.hidden] = None
    model = CMVMED(views=WIDTHS, n_stages=3).fit(partly_three.X, y)
    assert model.classes_.tolist() == names.tolist()
    assert model.predict_proba(partly_three.X).shape == (42, 3)
    assert model.decision_function(partly_three.X).shape == (42, 3)
    assert model.score(partly_three.X, names[partly_three.truth]) > 0.7


def test_renaming_classes_so_that_they_sort_otherwise_permutes_the_columns(partly_three):
    names = np.array(["c", "a", "b"])
    y = np.where(partly_three.hidden, None, names[partly_three.y].astype(object))
    expected = CMVMED(views=WIDTHS).fit(partly_three.X, partly_three.y).predict_proba(partly_three.X)
    found = CMVMED(views=WIDTHS).fit(partly_three.X, y).predict_proba(partly_three.X)
    np.testing.assert_allclose(found[:, [2, 0, 1]], expected, atol=1e-6)
    assert np.abs(found - expected).max() > 0.1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_exchanging_two_classes_exchanges_their_probabilities(algorithm, partly):
    model = with_algorithm(algorithm, views=WIDTHS, class_prior="labels")
    straight = model.fit(partly.X, partly.y).predict_proba(partly.X)
    exchanged = model.fit(partly.X, np.where(partly.hidden, -1, 1 - partly.y)).predict_proba(partly.X)
    np.testing.assert_allclose(exchanged[:, ::-1], straight, atol=1e-8)


MODELS = {
    "default": CMVMED(views=WIDTHS),
    "labels' prior": CMVMED(views=WIDTHS, class_prior="labels"),
    "no prior": CMVMED(views=WIDTHS, class_prior=None),
    "jaakkola": CMVMED(views=WIDTHS, algorithm="jaakkola"),
    "newton": CMVMED(views=WIDTHS, algorithm="newton"),
    "printed": with_algorithm("printed", views=WIDTHS),
    "independent views": CMVMED(views=WIDTHS, consensus_weight=0.0),
    "linear": CMVMED(views=WIDTHS, kernel="linear"),
}
parametrize_models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS.keys())
def two_classes(request, partly):
    """The consensus alone."""
    return clone(request.param).set_params(members="consensus").fit(partly.X, partly.y), partly


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS.keys())
def three_classes(request, partly_three):
    """The consensus alone."""
    return clone(request.param).set_params(members="consensus").fit(partly_three.X, partly_three.y), partly_three


def check_consensus(model, data):
    consensus, labeled = model.label_distributions_, ~data.hidden
    assert consensus.shape == (len(data.y), len(model.classes_))
    np.testing.assert_array_equal(consensus[labeled], np.eye(len(model.classes_))[data.y[labeled]])
    np.testing.assert_allclose(consensus[data.hidden], model.predict_proba(data.X[data.hidden]), atol=1e-8)
    np.testing.assert_array_equal(model.transduction_, model.classes_[consensus.argmax(axis=1)])
    np.testing.assert_array_equal(model.transduction_[labeled], data.y[labeled])
    np.testing.assert_array_equal(model.transduction_[data.hidden], model.predict(data.X[data.hidden]))


def test_the_consensus_on_the_training_rows_of_two_classes(two_classes):
    check_consensus(*two_classes)


def test_the_consensus_on_the_training_rows_of_three_classes(three_classes):
    check_consensus(*three_classes)


@parametrize_models
@pytest.mark.parametrize("problem", ["partly", "partly_three"])
def test_probabilities_of_training_rows_with_members(model, problem, request):
    data = request.getfixturevalue(problem)
    check_consensus(clone(model).fit(data.X, data.y), data)


@parametrize_models
def test_scores_with_members_are_logarithms_of_probabilities(model, partly, partly_three):
    if model.members in ("consensus", None):
        pytest.skip("the scores of the consensus alone are those of its views")
    two, three = (clone(model).fit(data.X, data.y) for data in (partly, partly_three))
    odds = np.log(two.predict_proba(partly.X))
    np.testing.assert_allclose(two.decision_function(partly.X), odds[:, 1] - odds[:, 0], atol=1e-8)
    centered = np.log(three.predict_proba(partly_three.X))
    centered -= centered.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(three.decision_function(partly_three.X), centered, atol=1e-8)


def test_the_consensus_also_holds_with_weights_and_missing_views(partly):
    X = partly.X.copy()
    X[12:16, :3], X[20:24, 3:] = np.nan, np.nan
    weights = np.linspace(0.5, 2.0, len(X))
    weights[[13, 30]] = 0.0
    model = CMVMED(views=WIDTHS).fit(X, partly.y, sample_weight=weights)
    expected = model.predict_proba(X[partly.hidden])
    np.testing.assert_allclose(model.label_distributions_[partly.hidden], expected, atol=1e-8)


def test_the_attributes_that_users_rely_on(two_classes):
    model, _ = two_classes
    assert model.classes_.shape == (2,)
    assert model.transduction_.shape == (40,)
    assert model.label_distributions_.shape == (40, 2)
    assert (model.n_views_, model.view_names_) == (2, ["view0", "view1"])
    assert model.view_weights_.shape == (2,)
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert model.class_prior_.shape == (2,)
    assert model.class_prior_.sum() == pytest.approx(1.0)
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ >= 1
    assert model.objective_history_.shape == (model.n_iter_,)
    assert isinstance(model.dual_gap_, float)
    assert isinstance(model.converged_, bool)
    assert model.n_features_in_ == 5
    assert {values.shape[0] for values in model.history_.values()} == {model.n_iter_}


def test_the_dual_is_solved(partly):
    model = CMVMED(views=WIDTHS).fit(partly.X, partly.y)
    assert -1e-12 <= model.dual_gap_ < 1e-6
    assert MED().fit(partly.X, partly.y).dual_gap_ < 1e-6


@pytest.mark.parametrize("algorithm", ["bohning", "jaakkola", "exact"])
def test_the_objective_falls_within_a_stage(algorithm, partly):
    model = CMVMED(views=WIDTHS, algorithm=algorithm, class_prior="labels").fit(partly.X, partly.y)
    within = np.diff(model.history_["stage"]) == 0
    steps = np.diff(model.objective_history_)[within]
    assert steps.size > 0
    assert steps.max() <= 1e-9


@pytest.mark.parametrize("prior", [0.3, [0.7, 0.3], np.array([0.7, 0.3]), {0: 0.7, 1: 0.3}, {1: 0.3, 0: 0.7}])
def test_a_class_prior_can_be_given_as_number_array_or_dict(prior, partly):
    model = CMVMED(views=WIDTHS, class_prior=prior, members=None).fit(partly.X, partly.y)
    np.testing.assert_allclose(model.class_prior_, [0.7, 0.3], atol=1e-12)
    np.testing.assert_allclose(model.label_distributions_[partly.hidden].mean(axis=0), [0.7, 0.3], atol=1e-6)


def test_a_class_prior_for_three_named_classes(partly_three):
    y = np.where(partly_three.hidden, None, np.array(["x", "y", "z"])[partly_three.y].astype(object))
    prior = {"z": 0.2, "x": 0.5, "y": 0.3}
    model = CMVMED(views=WIDTHS, class_prior=prior, members=None).fit(partly_three.X, y)
    shares = model.label_distributions_[partly_three.hidden].mean(axis=0)
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2], atol=1e-6)


def test_the_labels_prior_is_their_smoothed_share(partly):
    y = partly.y.copy()
    y[0] = -1  # nine labels are left, four of class 0
    model = CMVMED(views=WIDTHS, class_prior="labels", members=None).fit(partly.X, y)
    np.testing.assert_allclose(model.class_prior_, [4.5 / 10, 5.5 / 10], atol=1e-12)
    np.testing.assert_allclose(model.label_distributions_[y == -1].mean(axis=0), [0.45, 0.55], atol=1e-6)


def check_pooling(model, data):
    by_view = model.decision_function_by_view(data.X)
    assert list(by_view) == model.view_names_
    pooled = sum(weight * by_view[name] for name, weight in zip(model.view_names_, model.view_weights_, strict=True))
    np.testing.assert_allclose(pooled, model.decision_function(data.X), atol=1e-10)


def test_the_score_of_two_classes_is_the_weighted_mean_of_the_views_scores(two_classes):
    check_pooling(*two_classes)


def test_the_scores_of_three_classes_are_the_weighted_means_of_the_views_scores(three_classes):
    check_pooling(*three_classes)


def test_probabilities_of_two_classes_follow_from_scores_and_temperature(two_classes):
    model, partly = two_classes
    temperature = model._model.temperature
    positive = expit(model.decision_function(partly.X) / temperature)
    np.testing.assert_allclose(model.predict_proba(partly.X)[:, 1], positive, atol=1e-12)
    by_view, scores = model.predict_proba_by_view(partly.X), model.decision_function_by_view(partly.X)
    for name in model.view_names_:
        np.testing.assert_allclose(by_view[name][:, 1], expit(scores[name] / temperature), atol=1e-12)


def test_probabilities_of_many_classes_follow_from_scores_and_temperature(three_classes):
    model, partly_three = three_classes
    scale = 2.0 * model._model.temperature
    expected = softmax(model.decision_function(partly_three.X) / scale, axis=1)
    np.testing.assert_allclose(model.predict_proba(partly_three.X), expected, atol=1e-12)
    by_view, scores = model.predict_proba_by_view(partly_three.X), model.decision_function_by_view(partly_three.X)
    for name in model.view_names_:
        assert by_view[name].shape == (42, 3)
        np.testing.assert_allclose(by_view[name], softmax(scores[name] / scale, axis=1), atol=1e-12)


@pytest.mark.parametrize("problem", ["partly", "partly_three"])
def test_the_accuracy_of_each_view(problem, request):
    data = request.getfixturevalue(problem)
    model = CMVMED(views={"a": 3, "b": 2}).fit(data.X, data.y)
    accuracies = model.score_by_view(data.X, data.truth)
    guesses = model.predict_proba_by_view(data.X)
    expected = {name: (model.classes_[guesses[name].argmax(axis=1)] == data.truth).mean() for name in ("a", "b")}
    assert accuracies == expected
    partial = model.score_by_view(data.X, data.y)
    assert partial == model.score_by_view(data.X[~data.hidden], data.y[~data.hidden])


@pytest.mark.parametrize("problem", ["partly", "partly_three"])
@pytest.mark.parametrize("settings", [{}, {"algorithm": "jaakkola"}, {"algorithm": "newton"}, {"kernel": "linear"}])
def test_the_deviation_of_a_views_score_is_at_most_that_of_the_prior(settings, problem, request):
    data = request.getfixturevalue(problem)
    model = CMVMED(views=WIDTHS, prior_variance=4.0, bias_variance=0.5, **settings).fit(data.X, data.y)
    prior_only = CMVMED(views=WIDTHS, prior_variance=4.0, bias_variance=0.5, consensus_weight=0.0, **settings)
    without_unlabeled = prior_only.fit(data.X, data.y).decision_function_by_view(data.X, return_std=True)
    for name, (score, deviation) in model.decision_function_by_view(data.X, return_std=True).items():
        assert deviation.shape == score.shape
        assert (deviation > 0.0).all()
        assert (deviation <= without_unlabeled[name][1] + 1e-12).all()
        assert (deviation < 0.9 * without_unlabeled[name][1]).any()


def test_far_from_all_rows_an_rbf_view_gives_the_prior(partly):
    model = CMVMED(views=WIDTHS, kernel="rbf", prior_variance=4.0, bias_variance=0.0, scaling=None).fit(
        partly.X, partly.y
    )
    far = np.full((1, 5), 1e6)
    (_, deviation), _ = model.decision_function_by_view(far, return_std=True).values()
    assert deviation[0] == pytest.approx(2.0)
    near = model.decision_function_by_view(partly.X, return_std=True)["view0"][1]
    assert near.max() < 2.0


# k(x, x) is the same for all rows; where it is not, the probability of a row far away is drawn towards one half
@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_the_probabilities_of_med_rank_rows_like_its_scores(kernel):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(100, 2)) * [1.0, 5.0], np.arange(100) % 2
    X[:, 0] += 1.5 * y
    model = MED(kernel=kernel, scaling=None).fit(X, y)
    ranks = [rankdata(model.predict_proba(X)[:, 1].round(10)), rankdata(model.decision_function(X).round(10))]
    np.testing.assert_array_equal(*ranks)


def test_scores_can_be_weighted(partly):
    model = CMVMED(views=WIDTHS).fit(partly.X, partly.y)
    right = model.predict(partly.X) == partly.truth
    weights = np.where(right, 1.0, 3.0)
    assert model.score(partly.X, partly.truth, sample_weight=weights) == np.average(right, weights=weights)
    assert model.score(partly.X, partly.truth, sample_weight=right.astype(float)) == 1.0


def test_scores_by_view_can_be_weighted(partly):
    model = CMVMED(views=WIDTHS, n_stages=1).fit(partly.X, partly.y)
    weights = np.linspace(1.0, 2.0, 40)
    found = model.score_by_view(partly.X, partly.truth, sample_weight=weights)
    right = model.predict_proba_by_view(partly.X)["view0"].argmax(axis=1) == partly.truth
    assert found["view0"] == pytest.approx(np.average(right, weights=weights))


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "decision_function", "predict_proba_by_view", "decision_function_by_view"]
)
def test_an_unfitted_model_is_an_error(method, partly):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(CMVMED(), method)(partly.X)


def test_fitting_again_forgets_the_first_fit(partly, partly_three):
    model = CMVMED(views=WIDTHS).fit(partly_three.X, partly_three.y)
    again = model.fit(partly.X, partly.y).predict_proba(partly.X)
    np.testing.assert_array_equal(again, CMVMED(views=WIDTHS).fit(partly.X, partly.y).predict_proba(partly.X))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_reproduces_every_bit(seed, partly):
    fits = [CMVMED(views=WIDTHS, random_state=seed).fit(partly.X, partly.y) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].label_distributions_, fits[1].label_distributions_)
    np.testing.assert_array_equal(fits[0].objective_history_, fits[1].objective_history_)
