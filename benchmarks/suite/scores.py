"""Scores of a method's answers, by code in which no method has a hand."""

from typing import Any

import numpy as np

N_BINS = 10


def as_distributions(answers: Any, y: Any) -> Any:
    """Probabilities (n, K); rows about which a method says nothing get the shares of the labels. None for classes."""
    if answers.ndim == 1:
        return None
    counts = np.bincount(y[y >= 0])
    total = answers.sum(axis=1, keepdims=True)
    known = np.isfinite(total) & (total > 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known, answers / total, counts / counts.sum())


def guesses(answers: Any, y: Any) -> Any:
    """Class of each row: the most probable one."""
    return answers if answers.ndim == 1 else as_distributions(answers, y).argmax(axis=1)


def accuracy(answers: Any, y: Any, truth: Any) -> float:
    return float(np.mean(guesses(answers, y) == truth))


def calibration_error(p: Any, truth: Any) -> float:
    """Σ_b n_b |mean confidence - share correct| / n over ten bins b of the largest probability."""
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == truth
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(bins, weights=confidence - correct, minlength=N_BINS)
    return float(np.abs(gaps).sum() / truth.size)
