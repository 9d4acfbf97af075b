"""Evaluate one method on one split: build, select parameters on the labeled rows, fit, predict, score, measure the cost.

The protocol "shares" is here too: any classifier with its decision threshold at the class shares of the labels.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.utils.metaestimators import available_if
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED, SemiSupervisedKFold, __version__
from cmvmed.demo.stage_recorder import StageRecorder
from experiments.methods import Candidate, Method
from experiments.result_rows import Key, ResultRow, failed_row
from experiments.scores import class_scores, compute_scores
from experiments.shared_search import SharedSearch, can_share
from experiments.tasks import IntArray, Matrix, Split

Array = NDArray[np.float64]

N_FOLDS = 5
SMALLEST = float(np.finfo(float).tiny)  # in place of a probability of zero, whose logarithm is not finite
PROCESS = Path("/proc/self")


@cache
def versions() -> Mapping[str, str]:
    """Versions of the packages that the results depend on, and the commit of the code."""
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    python = ".".join(map(str, sys.version_info[:3]))
    return {"cmvmed": __version__, **packages, "python": python, "commit": commit()}


def commit() -> str:
    """The commit of the repository, with "-dirty" if files were changed since; "unknown" outside of one."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=7"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


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
    best, measure = candidate.estimator, held_out_accuracy(candidate.estimator, split)
    accuracy = measure(best)
    for name, values in candidate.grid.items():
        trials = [clone(best).set_params(**{name: value}) for value in values[1:]]
        for trial in trials:
            found = measure(trial)
            if found > accuracy:
                best, accuracy = trial, found
    return clone(best)


def held_out_accuracy(estimator: BaseEstimator, split: Split) -> Callable[[BaseEstimator], float]:
    """What measures trials of an estimator by their held-out labels; those of the paper's method share their kernels."""
    if not can_share(estimator):
        return partial(cross_validated_accuracy, split=split)
    folds = [test for _, test in labeled_folds(split.y).split(split.X, split.y)]
    return SharedSearch(estimator, split, folds).accuracy


def cross_validated_accuracy(estimator: BaseEstimator, split: Split) -> float:
    """Mean accuracy over the folds of the labeled rows."""
    scores = cross_val_score(
        estimator, split.X, split.y, scoring="accuracy", cv=labeled_folds(split.y), error_score="raise"
    )
    return float(scores.mean())


def _has_method(name: str) -> Callable[[LabelSharesClassifier], bool]:
    return lambda wrapper: hasattr(wrapper.estimator, name)


class LabelSharesClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose class scores are shifted so that predictions keep the class shares of the labels.

    The classifier is fitted as it is. Then one offset per class is added to its scores (logarithms of probabilities, or
    decision values if it has no probabilities), so that among the unlabeled training rows each class is predicted as
    often as its share of the labeled rows says, up to ties. For two classes this moves the threshold.

    Parameters
    ----------
    estimator : classifier with ``predict_proba`` or ``decision_function``

    Attributes
    ----------
    estimator_ : the fitted classifier
    offsets_ : ndarray of shape (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit the classifier, then the offsets on the unlabeled rows (-1 in y)."""
        codes = np.asarray(y)
        unlabeled = np.flatnonzero(codes == -1)
        if unlabeled.size == 0:
            raise ValueError("The threshold is set on unlabeled rows, but y has none; mark unlabeled rows by -1.")
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        counts = (codes[:, np.newaxis] == self.classes_).sum(axis=0)
        self.offsets_ = share_offsets(self._scores(X[unlabeled]), counts / counts.sum())
        return self

    def decision_function(self, X: Matrix) -> Array:
        """Shifted score of each class, of shape (n_rows, n_classes); for two classes half their difference, (n_rows,)."""
        scores: Array = self._scores(X) + self.offsets_
        return (scores[:, 1] - scores[:, 0]) / 2.0 if scores.shape[1] == 2 else scores

    def predict(self, X: Matrix) -> IntArray:
        """Class of the highest shifted score."""
        classes: IntArray = self.classes_[(self._scores(X) + self.offsets_).argmax(axis=1)]
        return classes

    @available_if(_has_method("predict_proba"))
    def predict_proba(self, X: Matrix) -> Array:
        """Probabilities with the odds of the classes multiplied by constants, if the classifier has probabilities."""
        return np.asarray(softmax(self._scores(X) + self.offsets_, axis=1))

    def _scores(self, X: Matrix) -> Array:
        """Scores of shape (n_rows, n_classes)."""
        scores = class_scores(self.estimator_, X)
        return np.log(np.maximum(scores, SMALLEST)) if hasattr(self.estimator_, "predict_proba") else scores


def share_offsets(scores: Array, shares: Array) -> Array:
    """Offsets o (K,) of mean zero at which argmax(scores + o) over the rows (n, K) has the shares (K,), rounded to rows.

    Of all assignments of rows to classes with these shares, the one with the highest sum of scores gives row n the class
    c_n. The offsets must then satisfy, for all classes c and k,

        o_k - o_c <= D_ck = min over the rows of class c of (scores_nc - scores_nk).

    Its closure, D_ck <- min_j (D_cj + D_jk), has the solutions o_k = D_rk and o_k = -D_kr for every r, and the mean of
    all of them leaves no tie that can be avoided: for two classes the threshold is midway between two rows.
    """
    n_rows, n_classes = scores.shape
    columns = np.repeat(np.arange(n_classes), _rounded(n_rows * shares))
    assigned = columns[linear_sum_assignment(scores[:, columns], maximize=True)[1]]
    D = np.full((n_classes, n_classes), 3.0 * np.ptp(scores))  # for a class without rows, further than any offset
    for c in np.unique(assigned):
        rows = scores[assigned == c]
        D[c] = (rows[:, [c]] - rows).min(axis=0)
    np.fill_diagonal(D, 0.0)
    for j in range(n_classes):
        D = np.minimum(D, D[:, [j]] + D[[j]])
    return np.asarray(D.mean(axis=0) - D.mean(axis=1)) / 2.0


def _rounded(counts: Array) -> IntArray:
    """Whole numbers of the same sum, by the largest remainders."""
    whole = np.floor(counts).astype(np.intp)
    n_left = round(float(counts.sum())) - int(whole.sum())
    whole[np.argsort(whole - counts, kind="stable")[:n_left]] += 1
    return whole


@dataclass
class Peak:
    """Growth of the peak resident memory of the process in MiB; None if the system does not report it."""

    mib: float | None = None


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the peak resident memory above its value at the start, on Linux.

    Freed memory that the allocator still holds is returned to the system first. All threads of the process count.
    """
    peak = Peak()
    start = _reset_peak()
    yield peak
    peak_value = _status_mib("VmHWM")
    if start is not None and peak_value is not None:
        peak.mib = max(0.0, peak_value - start)


def _reset_peak() -> float | None:
    """Reset the peak to the current resident memory and return it."""
    if not PROCESS.is_dir():
        return None
    _trim_heap()
    try:
        (PROCESS / "clear_refs").write_text("5")  # see proc(5)
    except OSError:
        return None
    return _status_mib("VmRSS")


def _trim_heap() -> None:
    """Return freed memory to the system if the C library supports it (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status_mib(field: str) -> float | None:
    """A field of /proc/self/status in MiB."""
    try:
        lines = (PROCESS / "status").read_text().splitlines()
    except OSError:
        return None
    sizes = [float(line.split()[1]) / 1024.0 for line in lines if line.startswith(f"{field}:")]
    return sizes[0] if sizes else None
