"""Result rows: one method on one split of one data set, with its scores, parameters, time and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Key(NamedTuple):
    """The primary key of a result row."""

    spec: str
    dataset: str
    n_labeled: int
    split: int
    method: str
    protocol: str


@dataclass(frozen=True)
class ResultRow:
    """One row per (spec, data set, number of labels, split, method, protocol).

    Attributes
    ----------
    spec : str
        Name of the experiment, such as "table1" or "figure2".
    dataset : str
    n_labeled : int
    split : int
        Number of the split; the same for all methods.
    method : str
    protocol : str
        "defaults"; "shares": default parameters, with the threshold at the class shares of the labels; "tuned":
        parameters selected by cross-validation on the labeled rows.
    status : str
        "done" or "failed".
    error : str
        The exception in one line, if failed.
    settings : mapping
        "kernel": that of the method; "chosen": the parameters that are in the method's grid; "folds": number of folds
        of the search, if tuned.
    versions : mapping
        Of cmvmed, numpy, scipy, scikit-learn and python.
    accuracy, balanced_accuracy, f1, auc, log_loss, calibration_error : float or None
        Scores on the held-out rows; None where a score is not defined for the method. ``f1`` is that of the second
        class for two classes and the macro average for more.
    fit_seconds, predict_seconds : float or None
        Wall time; the fit includes the parameter search.
    peak_mib : float or None
        Growth of the peak resident memory of the worker during fit and prediction.
    majority_rate : float or None
        Share of the majority class among the held-out rows.
    n_train, n_test : int or None
        Number of training rows, labeled and unlabeled, and of held-out rows.
    finished : str
        Time of completion in UTC, such as "2015-04-19T10:30:00Z"; empty if unknown.
    reliability : tuple of (number of rows, mean confidence, share correct)
        One entry per nonempty bin of confidence.
    annealing : tuple of mappings
        CMV-MED only, one per stage: "stage", "consensus" (held-out accuracy), and the accuracy of each view by name.
    """

    spec: str
    dataset: str
    n_labeled: int
    split: int
    method: str
    protocol: str
    status: str
    error: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    f1: float | None = None
    auc: float | None = None
    log_loss: float | None = None
    calibration_error: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    peak_mib: float | None = None
    majority_rate: float | None = None
    n_train: int | None = None
    n_test: int | None = None
    finished: str = ""
    reliability: tuple[tuple[int, float, float], ...] = ()
    annealing: tuple[Mapping[str, float], ...] = ()

    @property
    def kernel(self) -> str:
        """Kernel of the method; empty if the row does not say."""
        return str(self.settings.get("kernel", ""))

    @property
    def key(self) -> Key:
        """The primary key of the row."""
        return Key(self.spec, self.dataset, self.n_labeled, self.split, self.method, self.protocol)


def failed_row(
    key: Key, error: BaseException, *, versions: Mapping[str, str] | None = None, finished: str = ""
) -> ResultRow:
    """The row of a failure, with the exception in one line."""
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return ResultRow(**key._asdict(), status="failed", error=message, versions=versions or {}, finished=finished)
