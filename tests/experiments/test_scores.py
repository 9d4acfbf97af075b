"""Scores of held-out rows compared with their definitions."""

import numpy as np
import pytest

from experiments.evaluation import peak_memory
from experiments.scores import calibration_error, class_scores, compute_scores, pool_bins, reliability_bins
from tests.core.factories import rejects

TRUTH = np.array([0, 0, 1, 1, 1])
PROBABILITIES = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3], [0.1, 0.9]])


def test_two_classes_by_hand():
    scores = compute_scores(PROBABILITIES, TRUTH)
    assert scores["accuracy"] == pytest.approx(3 / 5)
    assert scores["balanced_accuracy"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert scores["f1"] == pytest.approx(
        2 * 2 / (2 * 2 + 1 + 1)
    )  # of the second class: two hits, one false, one missed
    assert scores["auc"] == pytest.approx(5 / 6)  # of six pairs, (0.6, 0.3) has the wrong order
    assert scores["log_loss"] == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.3, 0.9]).mean())
    assert scores["majority_rate"] == pytest.approx(3 / 5)
    assert scores["n_test"] == 5


def test_scores_that_are_not_probabilities():
    scores = compute_scores(np.column_stack([-PROBABILITIES[:, 1], PROBABILITIES[:, 1]]) * 4.0, TRUTH)
    assert (scores["log_loss"], scores["calibration_error"], scores["reliability"]) == (None, None, ())
    assert scores["auc"] == pytest.approx(5 / 6)


def test_more_classes():
    probabilities = np.eye(3)[[0, 1, 2, 2]] * 0.7 + 0.1
    scores = compute_scores(probabilities, np.array([0, 1, 2, 0]))
    assert scores["f1"] == pytest.approx((2 / 3 + 1.0 + 2 / 3) / 3)
    assert scores["auc"] is not None
    assert compute_scores(probabilities * 2.0, np.array([0, 1, 2, 0]))["auc"] is None


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_a_class_without_test_rows_cannot_be_ranked():
    probabilities = np.eye(3)[[0, 1, 2, 2]] * 0.7 + 0.1
    assert compute_scores(probabilities, np.array([0, 1, 1, 0]))["auc"] is None


def test_calibration_error_is_that_of_the_pooled_rows():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.34, 1.0, 500)
    correct = rng.uniform(size=500) < confidence**2

    def check(parts):
        bins = np.minimum((confidence * 15).astype(int), 14)
        gaps = [abs((confidence - correct)[bins == b].sum()) for b in range(15)]
        pooled = calibration_error([reliability_bins(confidence[part], correct[part]) for part in parts])
        np.testing.assert_allclose(pooled, sum(gaps) / 500, atol=1e-12)

    check([slice(None)])
    check([slice(0, 100), slice(100, 350), slice(350, None)])
    rejects(check, [slice(0, 100), slice(100, 350)])


def test_reliability_counts_every_row_once():
    bins = reliability_bins(np.array([0.5, 0.51, 1.0, 0.999]), np.array([True, False, True, False]))
    assert bins == ((2, pytest.approx(0.505), 0.5), (2, pytest.approx(0.9995), 0.5))


def test_bins_are_pooled_by_their_rows():
    pooled = pool_bins([((10, 0.55, 0.5),), ((30, 0.57, 0.7), (5, 1.0, 1.0))])
    assert pooled == ((40, pytest.approx(0.565), pytest.approx(0.65)), (5, 1.0, 1.0))


class DecisionOnly:
    def __init__(self, values):
        self.values = np.asarray(values)

    def decision_function(self, X):
        return self.values


class ProbabilityOnly:
    def predict_proba(self, X):
        return np.array([[np.nan, np.nan], [0.2, 0.8]])


def test_class_scores():
    np.testing.assert_array_equal(class_scores(DecisionOnly([2.0, -1.0]), None), [[-2.0, 2.0], [1.0, -1.0]])
    np.testing.assert_array_equal(class_scores(DecisionOnly(np.eye(3)), None), np.eye(3))
    np.testing.assert_array_equal(class_scores(ProbabilityOnly(), None), [[0.0, 0.0], [0.2, 0.8]])


def test_peak_memory_includes_freed_memory():
    with peak_memory() as before:
        pass
    with peak_memory() as peak:
        np.ones(20 * 2**17)  # 20 MiB
    if before.mib is None:
        pytest.skip("the system does not report the peak memory")
    assert 15.0 < peak.mib < 60.0
    assert before.mib < 15.0
