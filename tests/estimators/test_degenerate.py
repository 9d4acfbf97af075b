"""Degenerate but legal input: finite values, whatever the labels, the rows, the scale and the settings."""

import warnings
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cmvmed import CMVMED, MED
from tests.estimators.algorithms import ALGORITHMS, with_algorithm

WIDTHS = [3, 2]
MODELS = {
    **{name: with_algorithm(name, views=WIDTHS, consensus_weight=1.0, n_stages=3) for name in ALGORITHMS},
    "linear": CMVMED(views=WIDTHS, consensus_weight=1.0, n_stages=3, kernel="linear", class_prior=None),
    "default": CMVMED(views=WIDTHS),
    "med": MED(),
}
FAST = ["bohning", "jaakkola", "med"]
parametrize_models = pytest.mark.parametrize(
    "name", [*FAST, *[pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name not in FAST]]
)


@pytest.fixture
def tolerant_fit(fitted):
    """Fit; warnings of the last stage and of labels that say little are allowed, other warnings are errors."""

    def fit(model, X, y, **metadata):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "The consensus has drifted away")
            warnings.filterwarnings("ignore", "Class .* has (one labeled row|labeled rows of one group)")
            warnings.filterwarnings("ignore", "The expected accuracy, .* is not above")
            warnings.filterwarnings("ignore", "The class of .* depends on the class shares")
            warnings.filterwarnings("ignore", "The model learned nothing")
            return fitted(model, X, y, **metadata)

    return fit


def one_label_per_class(truth):
    y = np.full_like(truth, -1)
    first = np.unique(truth, return_index=True)[1]
    y[first] = truth[first]
    return y


def with_columns(X, columns, values):
    X = X.copy()
    X[:, columns] = values
    return X


def with_rows(X, rows, values):
    X = X.copy()
    X[rows] = values
    return X


# Each problem: data -> X, y
PROBLEMS = {
    "no unlabeled row": lambda d: (d.X, d.truth),
    "one unlabeled row": lambda d: (d.X, np.r_[d.truth[:-1], -1]),
    "one label per class": lambda d: (d.X, one_label_per_class(d.truth)),
    "one label per class, nothing else": lambda d: (d.X[:3], d.truth[:3]),
    "one label and one unlabeled row per class": lambda d: (d.X[:6], one_label_per_class(d.truth[:6])),
    "more columns than rows": lambda d: (d.X[:4], d.y[:4]),
    "a constant column": lambda d: (with_columns(d.X, 1, 7.0), d.y),
    "a column of zeros": lambda d: (with_columns(d.X, 1, 0.0), d.y),
    "a constant view": lambda d: (with_columns(d.X, slice(0, 3), 0.1), d.y),
    "all columns constant": lambda d: (np.full_like(d.X, 0.1), d.y),
    "all zeros": lambda d: (np.zeros_like(d.X), d.y),
    "columns that repeat": lambda d: (with_columns(d.X, [1, 4], d.X[:, [0, 3]]), d.y),
    "two equal views": lambda d: (with_columns(d.X, [3, 4], d.X[:, [0, 1]]), d.y),
    "some rows of zeros": lambda d: (with_rows(d.X, slice(6, 18), 0.0), d.y),
    "all rows equal": lambda d: (np.tile(d.X[:1], (len(d.y), 1)), d.y),
    "all unlabeled rows equal": lambda d: (with_rows(d.X, d.hidden, d.X[0]), d.y),
    "every row twice": lambda d: (np.vstack([d.X, d.X]), np.r_[d.y, d.y]),
    "equal rows of opposite labels": lambda d: (
        np.vstack([d.X, d.X[:8]]),
        np.r_[d.y, (d.y[:8] + 1) % (d.y.max() + 1)],
    ),
    "a constant far from zero": lambda d: (d.X + 1e10, d.y),
    "a constant that swallows the digits": lambda d: (d.X + 1e17, d.y),
    "one wild number": lambda d: (with_rows(d.X, 20, 1e150), d.y),
    "columns of very different scale": lambda d: (d.X * 10.0 ** np.array([-150, 0, 150, -150, 150]), d.y),
    "one class with one label": lambda d: (d.X, np.where((d.y == 1) & (np.arange(len(d.y)) > 3), -1, d.y)),
}
parametrize_problems = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


@parametrize_problems
@parametrize_models
def test_finite_values_for_two_classes(name, problem, partly, tolerant_fit, assert_finite):
    X, y = problem(partly)
    assert_finite(tolerant_fit(MODELS[name], X, y), partly.X)


@parametrize_problems
@pytest.mark.parametrize(
    "name", ["bohning", *[pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name != "bohning"]]
)
def test_finite_values_for_three_classes(name, problem, partly_three, tolerant_fit, assert_finite):
    X, y = problem(partly_three)
    assert_finite(tolerant_fit(MODELS[name], X, y), partly_three.X)


@parametrize_models
def test_as_many_classes_as_labels(name, partly, tolerant_fit, assert_finite):
    y = np.where(np.arange(40) < 12, np.arange(40), -1)
    assert_finite(tolerant_fit(MODELS[name], partly.X, y), partly.X)


@pytest.mark.parametrize("model", [*map(with_algorithm, ALGORITHMS), MED()])
def test_one_column(model, partly, tolerant_fit, assert_finite):
    assert_finite(tolerant_fit(model, partly.X[:, :1], partly.y), partly.X[:, :1])


def test_equal_rows_of_opposite_labels_give_equal_probabilities(partly):
    X, y = np.vstack([partly.X[:4], partly.X[:4]]), np.r_[partly.y[:4], 1 - partly.y[:4]]
    for members, atol in ((None, 1e-6), ("auto", 0.01)):  # the folds of the labels treat equal rows unequally
        probability = CMVMED(views=WIDTHS, class_prior=None, members=members).fit(X, y).predict_proba(partly.X)
        np.testing.assert_allclose(probability, 0.5, atol=atol)


def test_without_unlabeled_rows_each_view_is_a_med(partly):
    model = CMVMED(views={"a": 3, "b": 2}, members=None).fit(partly.X, partly.truth)  # without a calibration
    alone = MED(**{name: getattr(model, name) for name in MED().get_params()})
    expected = alone.fit(partly.a, partly.truth).decision_function(partly.a)
    np.testing.assert_allclose(model.decision_function_by_view(partly.X)["a"], expected, atol=1e-8)


KERNELS = ["rbf", "linear", "cosine"]
EXPONENTS = [-150, -75, 75, 150]


@pytest.mark.parametrize("scaling", ["auto", "unit"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_scale_of_the_features_does_not_matter(kernel, scaling, partly):
    model = CMVMED(views=WIDTHS, kernel=kernel, scaling=scaling, consensus_weight=1.0, n_stages=1)
    expected = model.fit(partly.X, partly.y).predict_proba(partly.X)
    for exponent in EXPONENTS:
        X = partly.X * 10.0**exponent
        np.testing.assert_allclose(model.fit(X, partly.y).predict_proba(X), expected, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
def test_the_scale_of_raw_features_does_not_matter_if_the_kernel_adapts_to_it(kernel, partly):
    model = CMVMED(views=WIDTHS, kernel=kernel, scaling=None, consensus_weight=1.0, n_stages=2)
    expected = model.fit(partly.X, partly.y).predict_proba(partly.X)
    for exponent in EXPONENTS:
        X = partly.X * 10.0**exponent
        np.testing.assert_allclose(model.fit(X, partly.y).predict_proba(X), expected, atol=1e-6)


def test_each_view_may_have_a_scale_of_its_own(partly):
    model = CMVMED(views=WIDTHS)
    expected = model.fit(partly.X, partly.y).predict_proba(partly.X)
    X = partly.X * np.repeat([1e150, 1e-150], [3, 2])
    np.testing.assert_allclose(model.fit(X, partly.y).predict_proba(X), expected, atol=1e-6)


@pytest.mark.parametrize(
    "model", [MED(kernel="linear", scaling=None), CMVMED(views=WIDTHS, kernel="linear", scaling=None)]
)
@pytest.mark.parametrize("exponent", [-150, -75, -8, 0, 3])
def test_raw_linear_features_of_small_or_common_scale(exponent, model, partly, tolerant_fit, assert_finite):
    X = partly.X * 10.0**exponent
    assert_finite(tolerant_fit(model, X, partly.y), X)


@pytest.mark.parametrize("exponent", [8, 75, 150])
@pytest.mark.parametrize("name", ["bohning", "jaakkola"])
def test_raw_linear_features_of_large_scale_give_finite_values_or_name_the_view(
    name, exponent, partly, tolerant_fit, assert_finite
):
    model = with_algorithm(name, views=WIDTHS, kernel="linear", scaling=None, consensus_weight=1.0, n_stages=2)
    check_finite_or_named(partial(tolerant_fit, model), partly.X * 10.0**exponent, partly.y, assert_finite)


def test_raw_linear_features_at_the_edge_of_double_precision(partly, tolerant_fit, assert_finite):
    for exponent, variance, algorithm in product((6, 7, 8), (1.0, 100.0), ("bohning", "jaakkola")):
        model = CMVMED(
            views=WIDTHS,
            kernel="linear",
            scaling=None,
            prior_variance=variance,
            consensus_weight=1.0,
            algorithm=algorithm,
        )
        model.set_params(n_stages=2, max_iter=5)
        check_finite_or_named(partial(tolerant_fit, model), partly.X * 10.0**exponent, partly.y, assert_finite)


@pytest.mark.parametrize("name", ["bohning", "jaakkola", "exact", "newton"])
def test_a_large_raw_kernel_scores_the_training_rows_like_the_fit_did(name, partly, tolerant_fit):
    X = 1e3 * partly.X  # readings in the thousands, a kernel of 1e8
    model = with_algorithm(name, views=WIDTHS, kernel="linear", scaling=None, consensus_weight=1.0)
    model = tolerant_fit(model, X, partly.y)
    expected = model.label_distributions_[partly.hidden]
    np.testing.assert_allclose(model.predict_proba(X[partly.hidden]), expected, atol=1e-4)


def check_finite_or_named(fit, X, y, assert_finite):
    """The fit and all answers are finite, or a ValueError names the view."""
    try:
        model = fit(X, y)
        deviations = [deviation for _, deviation in model.decision_function_by_view(X, return_std=True).values()]
    except ValueError as error:
        assert "view 'view" in str(error)  # noqa: PT017 - either ending is right
    else:
        assert_finite(model, X)
        assert np.isfinite(deviations).all()


@pytest.mark.parametrize(
    ("kernel", "gamma"),
    [
        *[("rbf", gamma) for gamma in (1e-12, 1e-6, 1e6, 1e12)],
        *[("linear+rbf", gamma) for gamma in (1e-12, 1e-6, 1e6, 1e12)],
    ],
)
def test_any_gamma_gives_finite_values_or_names_the_view(kernel, gamma, partly, tolerant_fit, assert_finite):
    model = CMVMED(views=WIDTHS, kernel=kernel, gamma=gamma, consensus_weight=1.0, n_stages=2)
    check_finite_or_named(partial(tolerant_fit, model), partly.X, partly.y, assert_finite)


@pytest.mark.parametrize("scaling", ["standard", "unit"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_new_rows_may_have_any_scale(kernel, scaling, partly, assert_finite):
    model = CMVMED(views=WIDTHS, kernel=kernel, scaling=scaling, n_stages=2).fit(partly.X, partly.y)
    for exponent in (-300, -150, 150, 300):
        assert_finite(model, partly.X * 10.0**exponent)


def test_rows_of_very_different_length_keep_their_direction(partly):
    lengths = 10.0 ** np.random.default_rng(0).choice([-150, 0, 150], size=(40, 1))
    model = CMVMED(views=WIDTHS, kernel="linear", scaling="unit", n_stages=2)
    expected = model.fit(partly.X, partly.y).predict_proba(partly.X)
    found = model.fit(partly.X * lengths, partly.y).predict_proba(partly.X)
    np.testing.assert_allclose(found, expected, atol=1e-6)


DECADES = 10.0 ** np.arange(-6, 7)


@pytest.mark.parametrize("sigma2", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("lam", [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_prior_variance_and_consensus_weight_over_twelve_decades(
    name, lam, sigma2, partly, tolerant_fit, assert_finite
):
    model = with_algorithm(name, views=WIDTHS, prior_variance=sigma2, consensus_weight=lam, n_stages=2, max_iter=5)
    assert_finite(tolerant_fit(model, partly.X[:16], partly.y[:16]), partly.X)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["partly", "partly_three"])
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("sigma2", DECADES)
def test_every_decade_of_prior_variance_and_consensus_weight(
    sigma2, name, problem, request, tolerant_fit, assert_finite
):
    """Of all pairs every other one, as the fields of one color of a chessboard."""
    data = request.getfixturevalue(problem)
    for lam in DECADES[int(np.log10(sigma2) % 2 > 0.5) :: 2]:
        model = with_algorithm(name, views=WIDTHS, prior_variance=sigma2, consensus_weight=lam)
        assert_finite(tolerant_fit(model, data.X, data.y), data.X)


@pytest.mark.parametrize("parameter", ["C", "temperature", "bias_variance"])
@pytest.mark.parametrize("value", [1e-6, 1e6])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_other_settings_over_twelve_decades(name, value, parameter, partly, tolerant_fit, assert_finite):
    model = with_algorithm(name, views=WIDTHS, consensus_weight=1.0, n_stages=2, max_iter=5, **{parameter: value})
    assert_finite(tolerant_fit(model, partly.X, partly.y), partly.X)


@pytest.mark.parametrize("prior", [1e-6, 1.0 - 1e-6, [0.999, 0.001], {0: (0.0, 1e-9)}, {1: (0.999, 1.0)}])
@pytest.mark.parametrize("name", ["bohning", "jaakkola", "exact", "newton"])
def test_extreme_class_priors(name, prior, partly, tolerant_fit, assert_finite):
    model = with_algorithm(name, views=WIDTHS, class_prior=prior)
    assert_finite(tolerant_fit(model, partly.X, partly.y), partly.X)


@pytest.mark.parametrize("weight", [1e-12, 1e12])
def test_extreme_weights_of_rows(weight, partly, tolerant_fit, assert_finite):
    weights = np.where(np.arange(40) % 2, weight, 1.0)
    assert_finite(tolerant_fit(CMVMED(views=WIDTHS), partly.X, partly.y, sample_weight=weights), partly.X)
    assert_finite(tolerant_fit(MED(), partly.X, partly.y, sample_weight=weights), partly.X)


def test_the_check_of_finiteness_can_fail(partly, assert_finite):
    """Broken twin of every test above."""
    model = CMVMED(views=WIDTHS, n_stages=1).fit(partly.X, partly.y)
    broken = replace(model._model.consensus, offset=np.full(2, np.nan))
    model._model = replace(model._model, members=(*model._model.members[:-1], broken))
    with pytest.raises(AssertionError):
        assert_finite(model, partly.X)
