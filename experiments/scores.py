"""Scores on the held-out rows, computed from the class scores of a method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss, roc_auc_score

from experiments.tasks import IntArray, Matrix

Array = NDArray[np.float64]
ReliabilityBins = tuple[tuple[int, float, float], ...]
N_BINS = 15  # equal bins of confidence in [0, 1]


class Scores(TypedDict):
    """Scores of one method on the held-out rows of one split, named as in the result rows."""

    accuracy: float
    balanced_accuracy: float
    f1: float
    auc: float | None
    log_loss: float | None
    calibration_error: float | None
    majority_rate: float
    n_test: int
    reliability: ReliabilityBins


def class_scores(estimator: BaseEstimator, X: Matrix) -> Array:
    """Scores of shape (n_rows, n_classes): probabilities if the estimator has them, else decision values."""
    if hasattr(estimator, "predict_proba"):
        return np.nan_to_num(np.asarray(estimator.predict_proba(X), dtype=np.float64))
    decision = np.asarray(estimator.decision_function(X), dtype=np.float64)
    return np.column_stack([-decision, decision]) if decision.ndim == 1 else decision


def compute_scores(scores: Array, truth: IntArray) -> Scores:
    """Compare class scores with the true classes 0, ..., K - 1.

    A row is assigned to the class with the highest score, the first one in case of ties. For more than two classes
    AUC is the one-vs-rest mean and needs probabilities. Log-loss and calibration error always need probabilities.
    """
    predicted = scores.argmax(axis=1)
    n_classes = scores.shape[1]
    has_probabilities = is_distribution(scores)
    bins = reliability_bins(scores.max(axis=1), predicted == truth) if has_probabilities else ()
    return Scores(
        accuracy=float(accuracy_score(truth, predicted)),
        balanced_accuracy=float(balanced_accuracy_score(truth, predicted)),
        f1=float(f1_score(truth, predicted, average="binary" if n_classes == 2 else "macro", zero_division=0.0)),
        auc=_auc(scores, truth) if has_probabilities or n_classes == 2 else None,
        log_loss=float(log_loss(truth, scores, labels=np.arange(n_classes))) if has_probabilities else None,
        calibration_error=calibration_error([bins]) if has_probabilities else None,
        majority_rate=float(np.bincount(truth).max() / truth.size),
        n_test=int(truth.size),
        reliability=bins,
    )


def is_distribution(scores: Array) -> bool:
    """Whether every row is a probability distribution over the classes."""
    return bool((scores >= 0.0).all()) and np.allclose(scores.sum(axis=1), 1.0, atol=1e-6)


def _auc(scores: Array, truth: IntArray) -> float | None:
    if np.unique(truth).size < scores.shape[1]:
        return None  # a class has no held-out row
    if scores.shape[1] == 2:
        return float(roc_auc_score(truth, scores[:, 1]))
    return float(roc_auc_score(truth, scores / scores.sum(axis=1, keepdims=True), multi_class="ovr"))


def reliability_bins(confidence: Array, correct: NDArray[np.bool_]) -> ReliabilityBins:
    """Number of rows, mean confidence and share correct of each nonempty bin of confidence."""
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    members = [bins == b for b in np.unique(bins)]
    return tuple((int(rows.sum()), float(confidence[rows].mean()), float(correct[rows].mean())) for rows in members)


def pool_bins(splits: Iterable[ReliabilityBins]) -> ReliabilityBins:
    """The bins of the rows of all splits together."""
    sums = np.zeros((N_BINS, 3))
    for n_rows, confidence, correct in (entry for bins in splits for entry in bins):
        sums[min(int(confidence * N_BINS), N_BINS - 1)] += n_rows, n_rows * confidence, n_rows * correct
    return tuple((int(n), float(confidence / n), float(correct / n)) for n, confidence, correct in sums if n > 0)


def calibration_error(splits: Iterable[ReliabilityBins]) -> float:
    """Expected calibration error Σ_b n_b |mean confidence - share correct| / Σ_b n_b over the rows of all splits."""
    bins = pool_bins(splits)
    n_rows = sum(n for n, _, _ in bins)
    return sum(n * abs(confidence - correct) for n, confidence, correct in bins) / n_rows if n_rows else float("nan")
