"""The protocol "shares": offsets that give predictions the class shares of the labels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from cmvmed.datasets import make_multiview_gaussian
from experiments.baseline_pipelines import LabeledOnlyClassifier, concatenated_views
from experiments.evaluation import LabelSharesClassifier, evaluate, share_offsets
from experiments.methods import ALL_METHODS, METHODS, methods_for
from experiments.result_rows import Key
from experiments.tasks import Task, draw_split
from tests.core.factories import rejects

TWO = make_multiview_gaussian(200, separation=(3.0, 2.5), random_state=1)
THREE = make_multiview_gaussian(240, n_classes=3, separation=(3.0, 2.5), random_state=2)
SPLITS = {2: draw_split(Task("two", lambda: TWO, 20, 80), 0), 3: draw_split(Task("three", lambda: THREE, 25, 95), 0)}


def label_counts(split, n_rows):
    """The labels' shares of ``n_rows``."""
    counts = np.bincount(split.y[split.y >= 0])
    return n_rows * counts / counts.sum()


def logistic(split):
    return concatenated_views(split.X, LabeledOnlyClassifier(LogisticRegression()))


def support_vectors(split):
    return concatenated_views(split.X, LabeledOnlyClassifier(SVC()))


def check_shares(scores, offsets, shares):
    predicted = np.bincount((scores + offsets).argmax(axis=1), minlength=shares.size)
    assert np.abs(predicted - len(scores) * shares).max() < 1.0


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 6), n_rows=st.integers(1, 60), scale=st.floats(1e-3, 1e3)
)
def test_predictions_have_the_shares_and_the_highest_sum_of_scores(seed, n_classes, n_rows, scale):
    rng = np.random.default_rng(seed)
    scores, shares = scale * rng.normal(size=(n_rows, n_classes)), rng.dirichlet(np.ones(n_classes))
    offsets = share_offsets(scores, shares)
    check_shares(scores, offsets, shares)
    predicted = (scores + offsets).argmax(axis=1)
    counts = np.bincount(predicted, minlength=n_classes)
    total = scores[np.arange(n_rows), predicted].sum()
    assert total == pytest.approx(best_sum(scores, counts), rel=1e-7, abs=1e-7 * scale)


def best_sum(scores, counts):
    """Highest sum of scores of an assignment with these numbers of rows by class: a linear program."""
    n_rows, n_classes = scores.shape
    constraints = np.vstack([np.kron(np.eye(n_rows), np.ones(n_classes)), np.tile(np.eye(n_classes), n_rows)])
    return -linprog(-scores.ravel(), A_eq=constraints, b_eq=np.concatenate([np.ones(n_rows), counts])).fun


def test_check_of_the_shares_can_fail():
    scores, shares = np.random.default_rng(0).normal(size=(50, 3)), np.array([0.6, 0.3, 0.1])
    check_shares(scores, share_offsets(scores, shares), shares)
    rejects(check_shares, scores, np.zeros(3), shares)


def test_the_threshold_of_two_classes_is_midway_between_two_rows():
    margins = np.array([-4.0, -1.0, 0.5, 2.0, 7.0])
    offsets = share_offsets(np.column_stack([-margins, margins]), np.array([0.6, 0.4]))
    assert (offsets[0] - offsets[1]) / 2.0 == pytest.approx((0.5 + 2.0) / 2.0)


@pytest.mark.parametrize("n_classes", SPLITS)
@pytest.mark.parametrize("build", [logistic, support_vectors], ids=["probabilities", "decision values"])
def test_a_fitted_classifier_keeps_the_shares_of_the_labels(n_classes, build):
    split = SPLITS[n_classes]
    unlabeled = split.X[split.y < 0]
    model = LabelSharesClassifier(build(split)).fit(split.X, split.y)
    predicted = np.bincount(model.predict(unlabeled), minlength=n_classes)
    assert np.abs(predicted - label_counts(split, len(unlabeled))).max() < 1.0
    base = build(split).fit(split.X, split.y)
    assert hasattr(model, "predict_proba") == hasattr(base, "predict_proba")
    decision = model.decision_function(unlabeled)
    classes = (decision > 0.0).astype(int) if n_classes == 2 else decision.argmax(axis=1)
    np.testing.assert_array_equal(classes, model.predict(unlabeled))


def test_the_order_of_two_classes_is_that_of_the_classifier():
    split = SPLITS[2]
    base = support_vectors(split).fit(split.X, split.y)
    shifted = LabelSharesClassifier(support_vectors(split)).fit(split.X, split.y)
    difference = shifted.decision_function(split.X_test) - base.decision_function(split.X_test)
    np.testing.assert_allclose(difference, difference[0], atol=1e-12)
    assert abs(difference[0]) > 1e-3


def test_odds_are_multiplied_by_constants():
    split = SPLITS[3]
    base = logistic(split).fit(split.X, split.y).predict_proba(split.X_test)
    shifted = LabelSharesClassifier(logistic(split)).fit(split.X, split.y).predict_proba(split.X_test)
    np.testing.assert_allclose(shifted.sum(axis=1), 1.0)
    ratio = np.log(shifted / base)
    np.testing.assert_allclose(ratio - ratio[:, :1], (ratio - ratio[:, :1])[[0]].repeat(len(ratio), axis=0), atol=1e-9)


def test_unlabeled_rows_are_required():
    split = SPLITS[2]
    labeled = split.y >= 0
    with pytest.raises(ValueError, match="y has none; mark unlabeled rows by -1"):
        LabelSharesClassifier(logistic(split)).fit(split.X[labeled], split.y[labeled])


@pytest.mark.slow
@pytest.mark.parametrize("method", methods_for(ALL_METHODS, list(TWO.views)), ids=lambda method: method.name)
def test_every_method_has_the_protocol(method):
    split = SPLITS[2]
    key = Key("spec", "two", 20, 0, method.name, "shares")
    row = evaluate(key, method, split)
    assert (row.status, row.error) == ("done", "")
    assert row.accuracy > row.majority_rate + 0.1
    model = LabelSharesClassifier(method.build(split).estimator).fit(split.X, split.y)
    assert row.accuracy == pytest.approx((model.predict(split.X_test) == split.y_test).mean())


def test_the_protocol_does_not_use_test_rows():
    split, method = SPLITS[2], METHODS["logistic regression, labels only"]
    key = Key("spec", "two", 20, 0, method.name, "shares")
    flipped = replace(split, y_test=1 - split.y_test)
    assert evaluate(key, method, split).accuracy == pytest.approx(1.0 - evaluate(key, method, flipped).accuracy)
