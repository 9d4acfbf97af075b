"""Scores of held-out rows, computed from a method's class scores by code that no method has a hand in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss, roc_auc_score

Array = NDArray[np.float64]
Reliability = tuple[tuple[int, float, float], ...]
N_BINS = 15  # of confidence


class Scores(TypedDict):
    """The scores of one method on the held-out rows of one split; named as in the result rows."""

    accuracy: float
    balanced_accuracy: float
    f1: float
    auc: float | None
    log_loss: float | None
    calibration_error: float | None
    majority_rate: float
    n_test: int
    reliability: Reliability


def class_scores(estimator: Any, X: Any) -> Array:
    """Scores of shape (n_rows, n_classes): probabilities if the estimator has them, else its decision function."""
    if hasattr(estimator, "predict_proba"):
        return np.nan_to_num(np.asarray(estimator.predict_proba(X), dtype=np.float64))
    decision = np.asarray(estimator.decision_function(X), dtype=np.float64)
    return np.column_stack([-decision, decision]) if decision.ndim == 1 else decision


def score(scores: Array, truth: NDArray[np.intp]) -> Scores:
    """Compare class scores with the true classes 0, ..., K - 1.

    A row goes to its highest score, to the first of several. AUC is the mean over one class against the rest for more than two
    classes, and needs probabilities then. Log-loss and calibration need them always.
    """
    guess = scores.argmax(axis=1)
    n_classes = scores.shape[1]
    soft = is_distribution(scores)
    bins = reliability(scores.max(axis=1), guess == truth) if soft else ()
    return Scores(
        accuracy=float(accuracy_score(truth, guess)),
        balanced_accuracy=float(balanced_accuracy_score(truth, guess)),
        f1=float(f1_score(truth, guess, average="binary" if n_classes == 2 else "macro", zero_division=0.0)),
        auc=_auc(scores, truth) if soft or n_classes == 2 else None,
        log_loss=float(log_loss(truth, scores, labels=np.arange(n_classes))) if soft else None,
        calibration_error=calibration_error([bins]) if soft else None,
        majority_rate=float(np.bincount(truth).max() / truth.size),
        n_test=int(truth.size),
        reliability=bins,
    )


def is_distribution(scores: Array) -> bool:
    """Whether every row is a distribution over the classes."""
    return bool((scores >= 0.0).all()) and np.allclose(scores.sum(axis=1), 1.0, atol=1e-6)


def _auc(scores: Array, truth: NDArray[np.intp]) -> float | None:
    if np.unique(truth).size < scores.shape[1]:
        return None  # a class is absent among the held-out rows
    if scores.shape[1] == 2:
        return float(roc_auc_score(truth, scores[:, 1]))
    return float(roc_auc_score(truth, scores / scores.sum(axis=1, keepdims=True), multi_class="ovr"))


def reliability(confidence: Array, correct: NDArray[np.bool_]) -> Reliability:
    """Per bin of confidence that has rows: their number, mean confidence and share correct; N_BINS equal bins of [0, 1]."""
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    inside = [bins == b for b in np.unique(bins)]
    return tuple((int(rows.sum()), float(confidence[rows].mean()), float(correct[rows].mean())) for rows in inside)


def calibration_error(splits: Iterable[Reliability]) -> float:
    """Expected calibration error Σ_b n_b |mean confidence - share correct| / Σ_b n_b, with the rows of all splits in one pool."""
    gaps: dict[int, float] = {}
    n_rows = 0
    for bins in splits:
        for n, confidence, correct in bins:
            b = min(int(confidence * N_BINS), N_BINS - 1)
            gaps[b] = gaps.get(b, 0.0) + n * (confidence - correct)
            n_rows += n
    return sum(abs(gap) for gap in gaps.values()) / n_rows if n_rows else float("nan")
