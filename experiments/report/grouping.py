"""Result rows grouped by setting, in the order of the paper, with means and standard deviations; styles of the methods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cmvmed.pages.charts import OTHER
from cmvmed.pages.formatting import DASH
from experiments.experiment import PROTOCOLS
from experiments.methods import (
    CMV_MED,
    CMV_MED_PAPER,
    CMV_MED_PAPER_SHARES,
    CMV_MED_PRINTED,
    MV_MED,
    SINGLE_VIEW_PREFIX,
    SVM_2K,
    without_kernel,
)
from experiments.result_rows import ResultRow

PAPER_BASELINES = (MV_MED, SVM_2K)
METHOD_ORDER = (  # other methods follow
    CMV_MED,
    CMV_MED_PAPER_SHARES,
    CMV_MED_PAPER,
    CMV_MED_PRINTED,
    *PAPER_BASELINES,
    SINGLE_VIEW_PREFIX,
)

DATASET_TITLES = {  # in the order of the paper: footsteps, pages, advertisements
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


class Setting(NamedTuple):
    """What is the same for all compared methods; rows of one setting can be compared split by split."""

    spec: str
    dataset: str
    n_labeled: int
    protocol: str

    @property
    def title(self) -> str:
        """Data set, number of labels and protocol."""
        return f"{dataset_title(self.dataset)}, {self.n_labeled} labels, {self.protocol}"


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation (n - 1) of a score over n splits; the deviation of one split is None."""

    mean: float
    deviation: float | None
    n: int


def dataset_title(dataset: str) -> str:
    """Title of a data set."""
    return DATASET_TITLES.get(dataset, dataset)


def sort_position(name: str, order: Iterable[str]) -> tuple[int, str]:
    """Sort key: names in the given order first, then the others by name."""
    names = list(order)
    return (names.index(name) if name in names else len(names), name)


def method_position(method: str) -> tuple[int, str]:
    """Sort key of methods: CMV-MED, its rows with the paper's settings, the paper's baselines, the others."""
    name = SINGLE_VIEW_PREFIX if method.startswith(SINGLE_VIEW_PREFIX) else without_kernel(method)
    return sort_position(name, METHOD_ORDER)[0], method


def is_paper_baseline(method: str) -> bool:
    """Whether the paper compares CMV-MED with this method, whatever its kernel here."""
    return method.startswith(SINGLE_VIEW_PREFIX) or without_kernel(method) in PAPER_BASELINES


def by_setting(rows: Iterable[ResultRow], spec: str | None = None) -> dict[Setting, list[ResultRow]]:
    """Rows, or those of one experiment, by setting in display order."""
    groups: dict[Setting, list[ResultRow]] = {}
    for row in rows:
        if spec is None or row.spec == spec:
            groups.setdefault(Setting(row.spec, row.dataset, row.n_labeled, row.protocol), []).append(row)
    return {setting: groups[setting] for setting in sorted(groups, key=_setting_position)}


def _setting_position(setting: Setting) -> tuple[object, ...]:
    return (
        setting.spec,
        sort_position(setting.dataset, DATASET_TITLES),
        setting.n_labeled,
        sort_position(setting.protocol, PROTOCOLS),
    )


def settings_with_score(rows: Iterable[ResultRow], spec: str, score: str) -> dict[Setting, list[ResultRow]]:
    """Rows of one experiment by setting; only settings in which a finished row has the score."""
    return {setting: members for setting, members in by_setting(rows, spec).items() if with_score(members, score)}


def by_dataset(rows: Iterable[ResultRow], spec: str, score: str) -> dict[tuple[str, int], dict[str, list[ResultRow]]]:
    """Rows of one experiment by data set and number of labels, then by protocol; only settings with the score."""
    groups: dict[tuple[str, int], dict[str, list[ResultRow]]] = {}
    for setting, members in settings_with_score(rows, spec, score).items():
        groups.setdefault((setting.dataset, setting.n_labeled), {})[setting.protocol] = members
    return groups


def with_score(rows: Iterable[ResultRow], score: str) -> list[ResultRow]:
    """Finished rows that have the score."""
    return [row for row in rows if row.status == "done" and getattr(row, score) is not None]


def values_by_method(rows: Iterable[ResultRow], score: str) -> dict[str, list[float]]:
    """Values of a score over the splits by method, in display order; methods without the score are omitted."""
    values: dict[str, list[float]] = {}
    for row in with_score(rows, score):
        values.setdefault(row.method, []).append(float(getattr(row, score)))
    return {method: values[method] for method in sorted(values, key=method_position)}


def summarize_values(values: Iterable[float]) -> Summary:
    """Mean and standard deviation of at least one value."""
    array = np.fromiter(values, dtype=float)
    deviation = float(array.std(ddof=1)) if array.size > 1 else None
    return Summary(float(array.mean()), deviation, array.size)


def summaries(rows: Iterable[ResultRow], score: str) -> dict[str, Summary]:
    """Mean and standard deviation of a score by method, in display order; methods without the score are omitted."""
    return {method: summarize_values(values) for method, values in values_by_method(rows, score).items()}


def kernels_by_method(rows: Iterable[ResultRow]) -> dict[str, str]:
    """Kernel of each method; empty if no row says it."""
    kernels: dict[str, str] = {}
    for row in rows:
        kernels[row.method] = kernels.get(row.method) or row.kernel
    return kernels


def majority_rate(rows: Iterable[ResultRow]) -> float | None:
    """Share of the majority class among the test rows, mean over the splits."""
    by_split = {row.split: row.majority_rate for row in rows if row.majority_rate is not None}
    return float(np.mean(list(by_split.values()))) if by_split else None


def format_percent(summary: Summary | None) -> str:
    """Mean and standard deviation in percent, such as "94.8 ± 2.3"; a dash for None."""
    if summary is None:
        return DASH
    if summary.deviation is None:
        return f"{100.0 * summary.mean:.1f}"
    return f"{100.0 * summary.mean:.1f} ± {100.0 * summary.deviation:.1f}"


def method_style(method: str) -> str:
    """Style of a method: a color for each of the paper's methods and for our default, gray for the others and other kernels."""
    if method.startswith(SINGLE_VIEW_PREFIX) and method == without_kernel(method):
        return "single"
    styles = {
        CMV_MED: "complete",
        CMV_MED_PAPER: "completed",
        CMV_MED_PRINTED: "printed",
        MV_MED: "mvmed",
        SVM_2K: "svm2k",
    }
    return styles.get(method, OTHER)
