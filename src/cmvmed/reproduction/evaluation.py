"""Evaluate one method on one split: build, select parameters on the labeled rows, fit, predict, score."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED, SemiSupervisedKFold, __version__
from cmvmed.reproduction.label_shares import LabelSharesClassifier
from cmvmed.reproduction.methods import Candidate, Method
from cmvmed.reproduction.peak_memory import peak_memory
from cmvmed.reproduction.result_rows import Key, ResultRow, failed_row
from cmvmed.reproduction.scores import class_scores, compute_scores
from cmvmed.reproduction.stage_recorder import StageRecorder
from cmvmed.reproduction.tasks import IntArray, Split

N_FOLDS = 5


@cache
def versions() -> Mapping[str, str]:
    """Versions of the packages that the results depend on."""
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"cmvmed": __version__, **packages, "python": ".".join(map(str, sys.version_info[:3]))}


def evaluate(key: Key, method: Method, split: Split) -> ResultRow:
    """The result row of one method on one split; an exception gives a row with status "failed" and its message."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = _fit_and_score(key, method, split)
        except Exception as error:
            return failed_row(key, error, versions=versions(), finished=_utc_now())
    return ResultRow(**key._asdict(), **result, versions=versions(), finished=_utc_now())


def _utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _fit_and_score(key: Key, method: Method, split: Split) -> dict[str, Any]:
    """The fields of the result row that the fit and the predictions give."""
    candidate = method.build(split)
    tuned = key.protocol == "tuned" and bool(candidate.grid)
    stages = StageRecorder(partial(_stage_accuracy, split))
    if isinstance(candidate.estimator, CMVMED) and key.protocol == "defaults":
        candidate.estimator.set_callbacks(stages)
    with peak_memory() as peak:
        start = time.perf_counter()
        chosen = tuned_estimator(candidate, split) if tuned else candidate.estimator
        estimator = LabelSharesClassifier(chosen) if key.protocol == "shares" else chosen
        estimator.fit(split.X, split.y)
        fitted = time.perf_counter()
        scores = class_scores(estimator, split.X_test)
        end = time.perf_counter()
    return {
        "status": "done",
        "settings": {
            "kernel": method.kernel,
            "chosen": {name: chosen.get_params()[name] for name in candidate.grid},
            **({"folds": labeled_folds(split.y).n_splits} if tuned else {}),
        },
        "fit_seconds": fitted - start - stages.seconds,
        "predict_seconds": end - fitted,
        "peak_mib": peak.mib,
        "n_train": int(split.y.size),
        "annealing": tuple({"stage": stage, **accuracies} for stage, accuracies in enumerate(stages.values, start=1)),
        **compute_scores(scores, split.y_test),
    }


def _stage_accuracy(split: Split, model: CMVMED) -> dict[str, float]:
    """Held-out accuracy of the consensus and of each view."""
    consensus = float(accuracy_score(split.y_test, model.predict(split.X_test)))
    return {"consensus": consensus, **model.score_by_view(split.X_test, split.y_test)}


def labeled_folds(y: IntArray) -> SemiSupervisedKFold:
    """Folds of the labeled rows, fewer than five if no class has five labels; unlabeled rows are always in training."""
    return SemiSupervisedKFold(min(N_FOLDS, int(np.bincount(y[y >= 0]).max())))


def tuned_estimator(candidate: Candidate, split: Split) -> BaseEstimator:
    """The unfitted estimator with the parameters selected by cross-validation on the labeled rows.

    One parameter after the other, in the order of the grid: the value with the highest accuracy, given the parameters
    that are selected already; the default if no value is better. The cost is the sum of the numbers of values.
    """
    best, accuracy = candidate.estimator, cross_validated_accuracy(candidate.estimator, split)
    for name, values in candidate.grid.items():
        trials = [clone(best).set_params(**{name: value}) for value in values[1:]]
        for trial in trials:
            found = cross_validated_accuracy(trial, split)
            if found > accuracy:
                best, accuracy = trial, found
    return clone(best)


def cross_validated_accuracy(estimator: BaseEstimator, split: Split) -> float:
    """Mean accuracy over the folds of the labeled rows."""
    scores = cross_val_score(
        estimator, split.X, split.y, scoring="accuracy", cv=labeled_folds(split.y), error_score="raise"
    )
    return float(scores.mean())
