"""One method on one split: build, choose settings on the labeled rows, fit, predict, score."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED, SemiSupervisedKFold, __version__
from cmvmed.reproduction.methods import Candidate, Method
from cmvmed.reproduction.peak_memory import peak_memory
from cmvmed.reproduction.result_rows import Key, ResultRow
from cmvmed.reproduction.scores import class_scores, score
from cmvmed.reproduction.tasks import Split

N_FOLDS = 5
PROTOCOLS = ("defaults", "tuned")


@cache
def versions() -> Mapping[str, str]:
    """Versions of what the numbers depend on."""
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"cmvmed": __version__, **packages, "python": ".".join(map(str, sys.version_info[:3]))}


def evaluate(key: Key, method: Method, split: Split) -> ResultRow:
    """The result row of one method on one split; an exception becomes a row that tells of it."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = _measure(key, method, split)
        except Exception as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())
            result = {"status": "failed", "error": message}
    return ResultRow(
        **key._asdict(), **result, versions=versions(), finished=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    )


def _measure(key: Key, method: Method, split: Split) -> dict[str, Any]:
    candidate = method.build(split)
    tuned = key.protocol == "tuned" and bool(candidate.grid)
    stages = StageScores(split)
    if isinstance(candidate.estimator, CMVMED) and not tuned:
        candidate.estimator.set_callbacks(stages)
    with peak_memory() as peak:
        start = time.perf_counter()
        estimator = chosen(candidate, split) if tuned else candidate.estimator
        estimator.fit(split.X, split.y)
        fitted = time.perf_counter()
        scores = class_scores(estimator, split.X_test)
        end = time.perf_counter()
    return {
        "status": "done",
        "settings": {
            "chosen": {name: estimator.get_params()[name] for name in candidate.grid},
            **({"folds": labeled_folds(split.y).n_splits} if tuned else {}),
        },
        "fit_seconds": fitted - start - stages.seconds,
        "predict_seconds": end - fitted,
        "peak_mib": peak.mib,
        "n_train": int(split.y.size),
        "annealing": tuple(stages.rows),
        **score(scores, split.y_test),
    }


def labeled_folds(y: Any) -> SemiSupervisedKFold:
    """Folds of the labeled rows, fewer than five if no class has so many; unlabeled rows stay in training."""
    return SemiSupervisedKFold(min(N_FOLDS, int(np.bincount(y[y >= 0]).max())))


def chosen(candidate: Candidate, split: Split) -> Any:
    """The candidate with its settings chosen by cross-validation on the labeled rows, not yet fitted."""
    search = GridSearchCV(
        clone(candidate.estimator).set_params(**candidate.while_searching),
        dict(candidate.grid),
        scoring="accuracy",
        cv=labeled_folds(split.y),
        refit=False,
        error_score="raise",
    )
    search.fit(split.X, split.y)
    return clone(candidate.estimator).set_params(**search.best_params_)


@dataclass
class StageScores:
    """Callback that writes down the held-out accuracy of the consensus and of each view after every stage of a fit.

    It tells the fit nothing. Another pass over the stages replaces the one before, which may have been shorter.
    """

    split: Split
    rows: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0  # spent here, to be taken off the fit's time

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to clean up."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to do when a stage begins."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> None:
        """Score the model as if the fit had ended with this stage."""
        if context.task_name != "stage":
            return
        start = time.perf_counter()
        stage = int(fitted_estimator.history_["stage"].max())
        del self.rows[stage - 1 :]
        consensus = float(accuracy_score(self.split.y_test, fitted_estimator.predict(self.split.X_test)))
        by_view = fitted_estimator.score_by_view(self.split.X_test, self.split.y_test)
        self.rows.append({"stage": stage, "consensus": consensus, **by_view})
        self.seconds += time.perf_counter() - start
