"""One result: a method on one split of one data set, with its scores and how they came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Key(NamedTuple):
    """What identifies a row; no two rows of a store share it."""

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
        Number of the split; every method sees the same one.
    method : str
    protocol : str
        "defaults", or "tuned" by cross-validation on the labeled rows.
    status : str
        "done" or "failed".
    error : str
        One line, if failed.
    settings : mapping
        What the method was given, including the choice made from its grid.
    versions : mapping
        Of cmvmed, numpy, scipy, scikit-learn and python.
    accuracy, balanced_accuracy, f1, auc, log_loss, calibration_error : float or None
        On the held-out rows; None where the method has no such thing. ``f1`` is that of the second class for two classes and
        the mean over the classes for more.
    fit_seconds, predict_seconds : float or None
        The fit includes the search over the grid.
    peak_mib : float or None
        Growth of the worker's largest resident memory during fit and prediction.
    majority_rate : float or None
        Share of the commonest class among the held-out rows.
    n_train, n_test : int or None
        TrainingData rows, labeled and unlabeled together, and held-out rows.
    finished : str
        When, in UTC, as "2015-04-19T10:30:00Z"; empty if not known.
    reliability : tuple of (rows, mean confidence, share correct)
        One entry per bin of confidence that has rows.
    annealing : tuple of mappings
        CMV-MED only, per stage: "stage", "consensus" (held-out accuracy) and the accuracy of each view by its name.
    """

    spec: str
    dataset: str
    n_labeled: int
    split: int
    method: str
    protocol: str
    status: str
    error: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
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
    def key(self) -> Key:
        """What identifies the row."""
        return Key(self.spec, self.dataset, self.n_labeled, self.split, self.method, self.protocol)
