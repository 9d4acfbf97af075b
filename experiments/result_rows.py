"""Result rows: one method on one split of one data set, with its scores, parameters, time and memory.

A row is also a record of an SQLite file: its columns, types, checksum, and the checks of what is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from cmvmed._sqlite_files import row_checksum, shown


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


COLUMNS = tuple(field.name for field in fields(ResultRow))
CHECKSUM = "checksum"
JSON_COLUMNS = ("settings", "versions", "reliability", "annealing")
INTEGER_COLUMNS = ("n_labeled", "split", "n_train", "n_test")
TEXT_COLUMNS = ("spec", "dataset", "method", "protocol", "status", "error", "finished", *JSON_COLUMNS)
REAL_COLUMNS = tuple(name for name in COLUMNS if name not in (*INTEGER_COLUMNS, *TEXT_COLUMNS))
SHARES = ("accuracy", "balanced_accuracy", "f1", "auc", "calibration_error", "majority_rate")  # in [0, 1]
MAX_INTEGER, MAX_REAL = 2**62, 1e12  # of seconds, for example
MAX_STAGE = 10_000  # of the annealing
REQUIRED = (*Key._fields, *TEXT_COLUMNS)


def to_record(row: ResultRow) -> dict[str, object]:
    """The values of the columns as SQLite returns them, and their checksum."""
    record: dict[str, Any] = {name: getattr(row, name) for name in COLUMNS}
    record |= {name: json.dumps(record[name], sort_keys=True, allow_nan=False) for name in JSON_COLUMNS}
    record |= {name: _stored_float(record[name]) for name in REAL_COLUMNS}
    return record | {CHECKSUM: row_checksum(record.values())}


def _stored_float(value: float | None) -> float | None:
    """SQLite has no NaN and no negative zero."""
    return None if value is None or value != value else float(value) + 0.0


def from_record(record: Sequence[object]) -> ResultRow:
    """The row of a record; its last value is the checksum, None in files of version 1.

    Raises
    ------
    ValueError
        If the checksum or the type or range of a value is wrong; the message says which.
    """
    *values, checksum = record
    if checksum is not None and checksum != row_checksum(values):
        raise ValueError("its values do not have its checksum")
    found: dict[str, Any] = dict(zip(COLUMNS, values, strict=True))
    for name, value in found.items():
        _check_value(name, value)
    found |= {name: _read_json(name, found[name]) for name in JSON_COLUMNS}
    row = ResultRow(**found)
    if row.status == "done" and row.accuracy is None:
        raise ValueError("it is finished and has no accuracy")
    return row


def describe(record: Sequence[object]) -> str:
    """The key of a record for a message; its values may be of any type."""
    return ", ".join(f"{name} {shown(value)}" for name, value in zip(Key._fields, record, strict=False))


def _check_value(name: str, value: object) -> None:
    """Raise an error if a value has not the type and range of its column."""
    if value is None and name not in REQUIRED:
        return
    kind = str if name in TEXT_COLUMNS else int if name in INTEGER_COLUMNS else float
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {shown(value)}, not {'a text' if kind is str else 'a number'}")
    if isinstance(value, (int, float)) and not 0 <= value <= (MAX_INTEGER if kind is int else MAX_REAL):
        raise ValueError(f"{name} is {shown(value)}, which is not possible")
    if name in SHARES and isinstance(value, float) and value > 1.0:
        raise ValueError(f"{name} is {shown(value)}, more than 1")
    if name == "status" and value not in ("done", "failed"):
        raise ValueError(f"status is {shown(value)}, neither 'done' nor 'failed'")


def _read_json(name: str, text: str) -> object:
    try:
        return _READERS[name](json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{name} is {shown(text)}, which is not what the column holds") from error


def _read_mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _read_texts(value: object) -> dict[str, str]:
    found = _read_mapping(value)
    if not all(isinstance(text, str) for text in found.values()):
        raise TypeError
    return {name: str(text) for name, text in found.items()}


def _read_bins(value: Any) -> tuple[tuple[int, float, float], ...]:
    bins = tuple((int(n), _share(confidence), _share(correct)) for n, confidence, correct in value)
    if any(n <= 0 for n, _, _ in bins):
        raise ValueError
    return bins


def _read_stages(value: Any) -> tuple[dict[str, float], ...]:
    """Stages with their number and the accuracy of the consensus and of the same views in each."""
    stages = tuple(
        {name: (_stage if name == "stage" else _share)(number) for name, number in one.items()} for one in value
    )
    if (
        any("stage" not in one or "consensus" not in one for one in stages)
        or len({frozenset(one) for one in stages}) > 1
    ):
        raise ValueError
    return stages


def _stage(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= MAX_STAGE:
        raise ValueError
    return value


def _share(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0.0 <= value <= 1.0:
        raise ValueError
    return float(value)


_READERS: dict[str, Callable[[Any], object]] = {
    "settings": _read_mapping,
    "versions": _read_texts,
    "reliability": _read_bins,
    "annealing": _read_stages,
}
