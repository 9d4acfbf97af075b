"""The methods of a fitted CMVMED beside its predictions, each with what its results must be."""

import os
from typing import Any

import numpy as np

import cmvmed
from benchmarks.faults.campaign import Fault, workspace


def call(name: str, model: Any, X: Any) -> None:
    """Call a method on the training rows; a fault if its results are not finite, or not what they must be."""
    if name == "save":
        _save_and_load(model, X)
    elif name == "suggest":
        rows = np.asarray(model.suggest(2).rows)
        if len(set(rows.tolist())) != rows.size:
            raise Fault("suggest returns a row twice", repr(rows))
    elif name == "accuracy_estimate":
        estimate = model.accuracy_estimate()
        _check_finite(name, [estimate.mean, estimate.low, estimate.high])
        if not 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0:
            raise Fault("accuracy estimate outside its interval", repr(estimate))
    elif name == "predict_set":
        sets = np.asarray(model.predict_set(X))
        if sets.dtype != bool:
            raise Fault("prediction sets that are not booleans", repr(sets.dtype))
    elif name == "explain":
        _check_shares(model, X)
    elif name == "decision_function_by_view":
        for scores, deviations in model.decision_function_by_view(X, return_std=True).values():
            _check_finite(name, scores)
            if np.isnan(deviations).any() or np.min(deviations, initial=0.0) < 0.0:
                raise Fault("standard deviations that are negative or NaN", repr(deviations))
    elif name == "predict_proba_by_member":
        for probabilities in model.predict_proba_by_member(X).values():
            _check_finite(name, probabilities)
    else:
        getattr(model, name)(X)


def _check_finite(name: str, values: Any) -> None:
    if not np.isfinite(np.asarray(values, dtype=float)).all():
        raise Fault(f"{name} is not finite", repr(values))


def _check_shares(model: Any, X: Any) -> None:
    """Shares of the views and of the prior add up to the score."""
    scores = np.asarray(model.decision_function(X))
    total = sum(np.asarray(share) for share in model.explain(X).values())
    error = np.abs(total - scores).max(initial=0.0)
    if not error <= 1e-6 * (1.0 + np.abs(scores).max(initial=0.0)):
        raise Fault("shares of the views do not add up to the score", f"{error:.3g}")


def _save_and_load(model: Any, X: Any) -> None:
    path = workspace() / f"{os.getpid()}.cmvmed"
    model.save(path, overwrite=True)
    loaded = cmvmed.load(path)
    if not np.array_equal(np.asarray(model.predict_proba(X)), np.asarray(loaded.predict_proba(X))):
        raise Fault("a loaded model predicts otherwise", repr(model))
