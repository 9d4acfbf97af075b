"""Scores of held-out rows against their definitions."""

import numpy as np
import pytest

from cmvmed.reproduction.peak_memory import peak_memory
from cmvmed.reproduction.scores import calibration_error, class_scores, reliability, score
from tests.core.factories import rejects

TRUTH = np.array([0, 0, 1, 1, 1])
SOFT = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3], [0.1, 0.9]])


def test_two_classes_by_hand():
    scores = score(SOFT, TRUTH)
    assert scores["accuracy"] == pytest.approx(3 / 5)
    assert scores["balanced_accuracy"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert scores["f1"] == pytest.approx(
        2 * 2 / (2 * 2 + 1 + 1)
    )  # of the second class: two hits, one false, one missed
    assert scores["auc"] == pytest.approx(5 / 6)  # of six pairs, (0.6, 0.3) stands the wrong way round
    assert scores["log_loss"] == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.3, 0.9]).mean())
    assert scores["majority_rate"] == pytest.approx(3 / 5)
    assert scores["n_test"] == 5


def test_scores_that_are_no_probabilities():
    scores = score(np.column_stack([-SOFT[:, 1], SOFT[:, 1]]) * 4.0, TRUTH)
    assert (scores["log_loss"], scores["calibration_error"], scores["reliability"]) == (None, None, ())
    assert scores["auc"] == pytest.approx(5 / 6)


def test_more_classes():
    soft = np.eye(3)[[0, 1, 2, 2]] * 0.7 + 0.1
    scores = score(soft, np.array([0, 1, 2, 0]))
    assert scores["f1"] == pytest.approx((2 / 3 + 1.0 + 2 / 3) / 3)
    assert scores["auc"] is not None
    assert score(soft * 2.0, np.array([0, 1, 2, 0]))["auc"] is None


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_a_class_without_test_rows_cannot_be_ranked():
    soft = np.eye(3)[[0, 1, 2, 2]] * 0.7 + 0.1
    assert score(soft, np.array([0, 1, 1, 0]))["auc"] is None


def test_calibration_error_is_that_of_the_pooled_rows():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.34, 1.0, 500)
    correct = rng.uniform(size=500) < confidence**2

    def check(parts):
        bins = np.minimum((confidence * 15).astype(int), 14)
        gaps = [abs((confidence - correct)[bins == b].sum()) for b in range(15)]
        pooled = calibration_error([reliability(confidence[part], correct[part]) for part in parts])
        np.testing.assert_allclose(pooled, sum(gaps) / 500, atol=1e-12)

    check([slice(None)])
    check([slice(0, 100), slice(100, 350), slice(350, None)])
    rejects(check, [slice(0, 100), slice(100, 350)])


def test_reliability_counts_every_row_once():
    bins = reliability(np.array([0.5, 0.51, 1.0, 0.999]), np.array([True, False, True, False]))
    assert bins == ((2, pytest.approx(0.505), 0.5), (2, pytest.approx(0.9995), 0.5))


class Decides:
    def __init__(self, values):
        self.values = np.asarray(values)

    def decision_function(self, X):
        return self.values


class Guesses:
    def predict_proba(self, X):
        return np.array([[np.nan, np.nan], [0.2, 0.8]])


def test_class_scores():
    np.testing.assert_array_equal(class_scores(Decides([2.0, -1.0]), None), [[-2.0, 2.0], [1.0, -1.0]])
    np.testing.assert_array_equal(class_scores(Decides(np.eye(3)), None), np.eye(3))
    np.testing.assert_array_equal(class_scores(Guesses(), None), [[0.0, 0.0], [0.2, 0.8]])


def test_peak_memory_sees_what_is_freed_again():
    with peak_memory() as before:
        pass
    with peak_memory() as peak:
        np.ones(20 * 2**17)  # 20 MiB
    if before.mib is None:
        pytest.skip("the system does not tell the highest memory")
    assert 15.0 < peak.mib < 60.0
    assert before.mib < 15.0
