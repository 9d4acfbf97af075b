"""CMVMED with low-rank kernels: agreement with the exact fit, what it reports, and its errors."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from cmvmed import CMVMED, config_context
from cmvmed.auto.approximation import MAX_RESIDUAL, MAX_ROWS_WITHOUT_LOW_RANK, Approximation, choose_approximation
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.data.validation import RowCheck
from cmvmed.datasets import make_multiview_gaussian
from cmvmed.model_selection import hide_labels
from cmvmed.scale import sampling
from cmvmed.views import view_kernel


def draw_task(seed=0, n=260, n_labeled=20, n_classes=2):
    data = make_multiview_gaussian(n, n_classes=n_classes, separation=1.5, random_state=seed)
    y = hide_labels(data.target, n_labeled, random_state=seed)
    return data.data, y, data.target, data.views


def fit_both(X, y, views, *, sample_weight=None, n_components=10_000, **parameters):
    """The consensus by an exact fit and by one through landmarks, by default all rows."""
    parameters = {"members": "consensus", **parameters}
    return (
        CMVMED(views=views, approximation="exact", **parameters).fit(X, y, sample_weight),
        CMVMED(views=views, approximation=n_components, **parameters).fit(X, y, sample_weight),
    )


def check_same(first, second, X, atol):
    np.testing.assert_allclose(first.label_distributions_, second.label_distributions_, rtol=0.0, atol=atol)
    np.testing.assert_allclose(first.decision_function(X), second.decision_function(X), rtol=0.0, atol=10 * atol)
    for name, (score, deviation) in first.decision_function_by_view(X, return_std=True).items():
        other_score, other_deviation = second.decision_function_by_view(X, return_std=True)[name]
        np.testing.assert_allclose(score, other_score, rtol=0.0, atol=10 * atol)
        np.testing.assert_allclose(deviation, other_deviation, rtol=0.0, atol=10 * atol)
    np.testing.assert_allclose(first.objective_history_, second.objective_history_, rtol=atol)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"kernel": "linear"},
        {"kernel": "rbf", "bias_variance": 0.0},
        {"kernel": "cosine", "class_prior": None},
    ],
    ids=["default", "linear", "rbf", "cosine"],
)
def test_all_rows_as_landmarks_give_the_exact_model(n_classes, parameters):
    X, y, _, views = draw_task(n_classes=n_classes)
    new = draw_task(seed=5, n_classes=n_classes)[0]
    exact, low_rank = fit_both(X, y, views, **parameters)
    check_same(low_rank, exact, new, atol=1e-6)
    few = fit_both(X, y, views, n_components=8, **({} if "kernel" not in parameters else {"gamma": 3.0}))[1]
    with pytest.raises(AssertionError):
        check_same(few, exact, new, atol=1e-6)


def test_missing_views_weights_and_sparse_rows_agree_too():
    X, y, _, views = draw_task()
    rng = np.random.default_rng(0)
    gone = rng.uniform(size=(X.shape[0], 2)) < 0.2
    gone[gone.all(axis=1)] = False
    X = X.copy()
    for i, columns in enumerate(views.values()):
        X[np.ix_(gone[:, i], np.arange(X.shape[1])[columns])] = np.nan
    weight = rng.integers(0, 4, X.shape[0]).astype(float)
    weight[y != -1] = 1.0
    exact, low_rank = fit_both(X, y, views, sample_weight=weight)
    check_same(low_rank, exact, X, atol=1e-6)
    filled = sparse.csr_array(np.where(np.isnan(X) | (np.abs(X) < 0.7), 0.0, X))
    exact, low_rank = fit_both(filled, y, views)
    check_same(low_rank, exact, filled, atol=1e-6)


def test_precomputed_and_callable_kernels_agree_too():
    X, y, _, views = draw_task(n=150)

    def laplacian(A, B):
        return np.exp(-0.1 * np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2))

    tables = {name: X[:, columns] for name, columns in views.items()}
    exact, low_rank = fit_both(tables, y, None, kernel=laplacian)
    check_same(low_rank, exact, tables, atol=1e-6)
    kernels = {name: laplacian(table, table) for name, table in tables.items()}
    exact, low_rank = fit_both(kernels, y, None, kernel="precomputed")
    np.testing.assert_allclose(low_rank.decision_function(kernels), exact.decision_function(kernels), atol=1e-5)


def test_few_landmarks_stay_close_and_report_their_error():
    X, y, truth, views = draw_task(n=900, n_labeled=30)
    exact, low_rank = fit_both(X, y, views, n_components=300)
    assert np.abs(exact.label_distributions_ - low_rank.label_distributions_).mean() < 0.02
    assert abs(exact.score(X, truth) - low_rank.score(X, truth)) < 0.01
    coarse = CMVMED(views=views, approximation=60).fit(X, y)
    assert exact.approximation_ == {"kind": "exact"}
    assert low_rank.approximation_["kind"] == "nystroem"
    assert low_rank.approximation_["n_components"] == 300
    assert coarse.approximation_["n_components"] == 60
    for name in views:
        assert low_rank.approximation_["rank"][name] == 301
        assert 0.0 < low_rank.approximation_["residual"][name] < coarse.approximation_["residual"][name] < 1.0


NARROW = {"kernel": "rbf", "gamma": "5*median"}  # a kernel that few landmarks do not span


@pytest.fixture
def few_landmarks():
    """20 landmarks by default, from 100 unlabeled rows on."""
    with tuning_context(replace(Tuning(), max_exact_rows=100, min_components=20, max_components=20)):
        yield


def test_landmarks_double_while_they_miss_too_much_of_a_kernel(few_landmarks):
    X, y, _, views = draw_task()
    smooth = CMVMED(views=views, kernel="linear", members=None).fit(X, y)
    assert smooth.approximation_["n_components"] == 20
    with pytest.warns(UserWarning, match=r"landmarks miss \d\d% of the kernel of view .*approximation=\"exact\""):
        narrow = CMVMED(views=views, members=None, **NARROW).fit(X, y)
    assert narrow.approximation_["n_components"] == 40  # twice the most
    assert min(narrow.approximation_["residual"].values()) > MAX_RESIDUAL


@pytest.mark.filterwarnings("ignore:The landmark rows miss")
def test_landmarks_of_rows_outside_of_memory_grow_to_the_most():
    X, y, _, views = draw_task()
    tuning = replace(Tuning(), max_exact_rows=100, sample_rows=120, min_components=20, max_components=30)
    for settings, n_components in (({"kernel": "linear"}, 20), (NARROW, 30)):
        with tuning_context(tuning):
            model = CMVMED(views=views, members=None, **settings).fit(X, y)
        assert model.approximation_["n_annealed"] == 120
        assert model.approximation_["n_components"] == n_components


def test_all_rows_are_landmarks_if_fewer_miss_too_much(few_landmarks):
    X, y, _, views = draw_task()
    with tuning_context(replace(Tuning(), max_exact_rows=100, min_components=100, max_components=200)):
        grown = CMVMED(views=views, members=None, **NARROW).fit(X, y)
    exact = CMVMED(views=views, members=None, approximation="exact", **NARROW).fit(X, y)
    assert grown.approximation_["n_components"] == len(y)
    np.testing.assert_allclose(grown.label_distributions_, exact.label_distributions_, rtol=0.0, atol=1e-6)


def test_a_given_number_of_landmarks_is_kept_and_not_warned_of(few_landmarks):
    X, y, _, views = draw_task()
    model = CMVMED(views=views, members=None, approximation=20, **NARROW).fit(X, y)
    assert model.approximation_["n_components"] == 20
    assert min(model.approximation_["residual"].values()) > MAX_RESIDUAL


def test_single_precision_changes_no_probability_by_much(monkeypatch):
    X, y, _, views = draw_task(n=500)
    model = CMVMED(views=views, approximation=100)
    double = clone(model).fit(X, y)
    monkeypatch.setattr(view_kernel, "DOUBLE_PRECISION_ROWS", 0)
    single = clone(model).fit(X, y)
    difference = np.abs(single.label_distributions_ - double.label_distributions_).max()
    assert 0.0 < difference < 1e-5
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), rtol=0.0, atol=1e-5)


def test_predictions_on_training_rows_are_the_consensus_found():
    X, y, _, views = draw_task()
    model = CMVMED(views=views, approximation=50).fit(X, y)
    unlabeled = y == -1
    np.testing.assert_allclose(
        model.predict_proba(X)[unlabeled], model.label_distributions_[unlabeled], rtol=0.0, atol=1e-8
    )


def test_rows_far_from_all_landmarks_are_as_uncertain_as_the_prior():
    X, y, _, views = draw_task()
    settings = {"kernel": "rbf", "gamma": 5.0, "prior_variance": 2.0}
    model = CMVMED(views=views, approximation=40, **settings).fit(X, y)
    _, deviation = next(iter(model.decision_function_by_view(X[:1] + 1e3, return_std=True).values()))
    assert 1.3 < deviation[0] <= np.sqrt(2.0 + 0.1)


def test_a_fit_repeats_itself_and_survives_cloning_and_pickling():
    X, y, _, views = draw_task()
    model = CMVMED(views=views, approximation=40).fit(X, y)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict_proba(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    other = clone(model).set_params(random_state=1).fit(X, y).predict_proba(X)
    assert np.abs(other - expected).max() > 1e-9


def test_a_low_rank_model_keeps_its_landmarks_not_its_rows():
    X, y, _, views = draw_task(n=900)
    sizes = {
        kind: len(pickle.dumps(CMVMED(views=views, approximation=kind).fit(X, y)._model.view_terms))
        for kind in ("exact", 30)
    }
    assert sizes[30] < 0.3 * sizes["exact"]


def test_history_has_the_cost_of_each_sweep():
    X, y, _, views = draw_task()
    model = CMVMED(views=views, approximation=40).fit(X, y)
    assert (model.history_["n_rows"] == (y == -1).sum()).all()
    assert (model.history_["seconds"] > 0.0).all()


TUNING = Tuning()


def chosen(approximation, algorithm, n_rows):
    return choose_approximation(approximation, algorithm, n_rows, TUNING)


@pytest.mark.parametrize(
    ("approximation", "algorithm", "n_rows", "kind"),
    [
        ("auto", "bohning", TUNING.max_exact_rows, "exact"),
        ("auto", "bohning", TUNING.max_exact_rows + 1, "nystroem"),
        ("auto", "newton", MAX_ROWS_WITHOUT_LOW_RANK, "exact"),
        ("exact", "bohning", 10**6, "exact"),
        ("exact", "newton", 10**6, "exact"),
        ("nystroem", "bohning", 10, "nystroem"),
        (77, "bohning", 10, "nystroem"),
    ],
)
def test_choice_follows_the_number_of_rows(approximation, algorithm, n_rows, kind):
    assert chosen(approximation, algorithm, n_rows).kind == kind


def test_a_given_number_of_landmarks_may_not_grow():
    for n_rows in (100, 10**7):
        assert chosen("nystroem", "bohning", n_rows) == Approximation(TUNING.min_components, may_grow=True)
        assert chosen(77, "bohning", n_rows) == Approximation(77)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"approximation": "nystrom"}, "approximation"),
        ({"approximation": 0}, "approximation"),
        ({"approximation": 10.0}, "approximation"),
        ({"approximation": 10, "algorithm": "jaakkola"}, "needs algorithm=\"bohning\", not 'jaakkola'"),
        ({"approximation": "nystroem", "algorithm": "jaakkola"}, "needs algorithm=\"bohning\", not 'jaakkola'"),
        ({"approximation": "nystroem", "algorithm": "exact"}, "needs algorithm=\"bohning\", not 'exact'"),
        ({"approximation": "nystroem", "algorithm": "printed"}, "needs algorithm=\"bohning\", not 'printed'"),
    ],
)
def test_bad_choices_are_refused_by_name(parameters, words):
    X, y, _, views = draw_task(n=60)
    with pytest.raises(ValueError, match=words):
        CMVMED(views=views, **parameters).fit(X, y)


def test_too_many_rows_for_a_method_without_low_rank_are_refused():
    with pytest.raises(ValueError, match="too many for algorithm='newton'"):
        chosen("auto", "newton", MAX_ROWS_WITHOUT_LOW_RANK + 1)


@pytest.fixture
def small_sample():
    """Anneal on 600 unlabeled rows."""
    with tuning_context(replace(Tuning(), sample_rows=600)):
        yield


def fit_low_rank(X, y, views, sample_weight=None, **parameters):
    return CMVMED(views=views, approximation=150, **parameters).fit(X, y, sample_weight)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_annealing_on_a_sample_ends_near_annealing_on_all_rows(small_sample, n_classes):
    X, y, truth, views = draw_task(n=2400, n_labeled=30, n_classes=n_classes)
    sampled = fit_low_rank(X, y, views, members="consensus")
    with tuning_context(replace(Tuning(), sample_rows=10_000)):
        whole = fit_low_rank(X, y, views, members="consensus")
    assert sampled.approximation_["n_annealed"] == 600
    assert "n_annealed" not in whole.approximation_
    assert np.abs(sampled.label_distributions_ - whole.label_distributions_).mean() < 0.02
    assert abs(sampled.score(X, truth) - whole.score(X, truth)) < 0.01
    assert set(sampled.history_["n_rows"]) == {600, 2370}
    assert set(whole.history_["n_rows"]) == {2370}
    assert (sampled.history_["seconds"] > 0.0).all()


def test_a_streamed_fit_with_missing_views_and_weights_gives_every_row_its_consensus(small_sample):
    X, y, _, views = draw_task(n=1500)
    X, rng = X.copy(), np.random.default_rng(0)
    first = np.arange(X.shape[1])[next(iter(views.values()))]
    X[np.ix_(rng.uniform(size=1500) < 0.2, first)] = np.nan
    weight = rng.integers(0, 3, 1500).astype(float)
    weight[y != -1] = 1.0
    model = fit_low_rank(X, y, views, weight)
    assert model.approximation_["n_annealed"] == 600
    unlabeled = y == -1
    np.testing.assert_allclose(
        model.predict_proba(X)[unlabeled], model.label_distributions_[unlabeled], rtol=0.0, atol=1e-10
    )
    np.testing.assert_array_equal(model.transduction_[~unlabeled], y[~unlabeled])
    alone = fit_low_rank(X, y, views, weight, members=None)
    mass = weight[unlabeled] * np.where(np.isnan(X[unlabeled][:, first[0]]), alone.view_weights_[1], 1.0)
    shares = mass @ alone.label_distributions_[unlabeled] / mass.sum()
    np.testing.assert_allclose(shares, alone.class_prior_, rtol=0.0, atol=1e-4)


def test_rows_without_any_view_get_the_prior_from_a_streamed_fit(small_sample):
    X, y, _, views = draw_task(n=1500)
    X = X.copy()
    without_views = np.flatnonzero(y == -1)[-3:]
    X[without_views] = np.nan
    with pytest.warns(UserWarning, match="3 training rows have all views missing"):
        model = fit_low_rank(X, y, views)
    expected = np.tile(model.class_prior_, (3, 1))
    np.testing.assert_allclose(model.label_distributions_[without_views], expected, atol=1e-12)


def test_independent_views_need_no_sweeps_over_all_rows(small_sample):
    X, y, _, views = draw_task(n=1500)
    model = fit_low_rank(X, y, views, consensus_weight=0.0)
    exact = CMVMED(views=views, approximation="exact", consensus_weight=0.0, class_prior="labels").fit(X, y)
    assert model.label_distributions_.shape == (1500, 2)
    for name, score in model.decision_function_by_view(X).items():
        assert np.corrcoef(score, exact.decision_function_by_view(X)[name])[0, 1] > 0.98


def test_memory_limits_the_sample_or_refuses_the_fit(monkeypatch):
    X, y, _, views = draw_task(n=2600)
    with config_context(memory_limit="20MiB"):
        model = fit_low_rank(X, y, views)
    assert 1000 <= model.approximation_["n_annealed"] < 2580
    needed = "150 landmarks in 2 views and 20 labeled rows needs at least .* smaller number"
    with config_context(memory_limit="10MiB"), pytest.raises(MemoryError, match=needed):
        fit_low_rank(X, y, views)
    monkeypatch.setattr(sampling, "MAX_LABELED_ROWS", 10)
    with config_context(memory_limit="20MiB"), pytest.raises(MemoryError, match="20 labeled rows"):
        fit_low_rank(X, y, views)


def test_a_row_of_a_sample_is_named_by_its_own_number(small_sample):
    X, y, _, views = draw_task(n=1500)
    X = X.copy()
    X[1234, 1] = np.inf
    with pytest.raises(ValueError, match="row 1234"):
        fit_low_rank(X, y, views)
    check = RowCheck(("one",), (None,), (None,), numbers=np.array([3, 77]))
    with pytest.raises(ValueError, match="row 77"):
        check.present(0, [np.array([[1.0], [np.inf]])])
