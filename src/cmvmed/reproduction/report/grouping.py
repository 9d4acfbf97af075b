"""Result rows as the report reads them: grouped by what was run, in the order of the paper, with means and deviations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cmvmed.reproduction.result_rows import ResultRow

COMPLETE = "CMV-MED"  # the method of this library
PRINTED = "CMV-MED as printed"
SINGLE_VIEW = "MED, view "  # how the names of the single-view methods begin
PAPER_RIVALS = ("MV-MED", "SVM-2K")
METHODS = (COMPLETE, PRINTED, *PAPER_RIVALS, SINGLE_VIEW)  # the order of reading; others follow

DATASETS = {  # the paper's order: its footsteps first, then the pages, then the advertisements
    "footsteps": "Simulated footsteps",
    "sensit": "SensIT vehicles",
    "webkb": "WebKB course pages",
    "webkb12": "WebKB, published splits",
    "ads": "Internet Ads",
    "digits-parity": "Digits, odd or even",
    "gauss": "Two Gaussian views",
    "digits": "Digits, ten classes",
    "mfeat": "Multiple Features",
}
PROTOCOLS = {"defaults": "defaults", "tuned": "tuned"}


class Setting(NamedTuple):
    """What all methods were given alike: rows of one setting may be compared split by split."""

    spec: str
    dataset: str
    n_labeled: int
    protocol: str


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation (n - 1) of a score over n splits; no deviation for one split."""

    mean: float
    deviation: float | None
    n: int


def title_of(dataset: str) -> str:
    """A data set's name for the reader."""
    return DATASETS.get(dataset, dataset)


def position(name: str, known: Iterable[str]) -> tuple[int, str]:
    """Sort key: known names in their order, then the others by name."""
    names = list(known)
    return (names.index(name) if name in names else len(names), name)


def method_position(method: str) -> tuple[int, str]:
    """Sort key of methods: the complete algorithm, the printed one, the paper's rivals, the others."""
    return position(SINGLE_VIEW if method.startswith(SINGLE_VIEW) else method, METHODS)[0], method


def is_of_paper(method: str) -> bool:
    """Whether the paper compares with this method."""
    return method.startswith(SINGLE_VIEW) or method in PAPER_RIVALS


def by_setting(rows: Iterable[ResultRow], spec: str | None = None) -> dict[Setting, list[ResultRow]]:
    """Rows (of one experiment) by setting, in reading order."""
    groups: dict[Setting, list[ResultRow]] = {}
    for row in rows:
        if spec is None or row.spec == spec:
            groups.setdefault(Setting(row.spec, row.dataset, row.n_labeled, row.protocol), []).append(row)
    return {setting: groups[setting] for setting in sorted(groups, key=_setting_position)}


def _setting_position(setting: Setting) -> tuple[object, ...]:
    return (
        setting.spec,
        position(setting.dataset, DATASETS),
        setting.n_labeled,
        position(setting.protocol, PROTOCOLS),
    )


def scored(rows: Iterable[ResultRow], score: str) -> list[ResultRow]:
    """Rows that finished and have the score."""
    return [row for row in rows if row.status == "done" and getattr(row, score) is not None]


def summarize(values: Iterable[float]) -> Summary:
    """Mean and deviation of at least one value."""
    array = np.fromiter(values, dtype=float)
    deviation = float(array.std(ddof=1)) if array.size > 1 else None
    return Summary(float(array.mean()), deviation, array.size)


def summaries(rows: Iterable[ResultRow], score: str) -> dict[str, Summary]:
    """Mean and deviation of a score by method, in reading order; methods without any score are absent."""
    values: dict[str, list[float]] = {}
    for row in scored(rows, score):
        values.setdefault(row.method, []).append(float(getattr(row, score)))
    return {method: summarize(values[method]) for method in sorted(values, key=method_position)}


def majority_rate(rows: Iterable[ResultRow]) -> float | None:
    """Share of the commonest class among the test rows, mean over the splits."""
    by_split = {row.split: row.majority_rate for row in rows if row.majority_rate is not None}
    return float(np.mean(list(by_split.values()))) if by_split else None
