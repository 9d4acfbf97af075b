"""Facts about the run, headline and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.pages.formatting import format_interval, format_points, join_names, plural
from cmvmed.reproduction.comparison import compare_with_baselines
from cmvmed.reproduction.experiment import PROTOCOLS, TABLE_1
from cmvmed.reproduction.method_names import CMV_MED, SINGLE_VIEW_PREFIX
from cmvmed.reproduction.paper_report.accuracy_table import best_methods
from cmvmed.reproduction.paper_report.grouping import (
    DATASET_TITLES,
    Setting,
    by_setting,
    dataset_title,
    is_paper_baseline,
    method_position,
    sort_position,
    summaries,
)
from cmvmed.reproduction.result_rows import ResultRow

EXPERIMENT_TITLES = {"table1": "Table 1", "figure2": "Figure 2"}


@dataclass(frozen=True)
class Failure:
    """Failed rows with the same method, setting and error."""

    method: str
    where: str
    splits: str
    error: str


def facts(rows: Sequence[ResultRow]) -> list[tuple[str, str]]:
    """Name and value of each fact."""
    done = [row for row in rows if row.status == "done"]
    datasets = sorted({row.dataset for row in rows}, key=lambda name: sort_position(name, DATASET_TITLES))
    specs = sorted({row.spec for row in rows}, key=lambda name: sort_position(name, EXPERIMENT_TITLES))
    found = [
        ("Experiments", join_names([EXPERIMENT_TITLES.get(spec, spec) for spec in specs])),
        ("Data sets", join_names([dataset_title(name) for name in datasets])),
        ("Methods", str(len({_family(row.method) for row in rows}))),
        ("Splits", _splits(rows)),
        ("Results", f"{len(done):,} finished, {len(rows) - len(done):,} failed"),
    ]
    dates = sorted({row.finished[:10] for row in rows if row.finished})
    if dates:
        found.append(("Computed", dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"))
    found.append(("Versions", versions(rows) or "not recorded"))
    return found


def _family(method: str) -> str:
    """Name of a method; all single views count as one method."""
    return SINGLE_VIEW_PREFIX if method.startswith(SINGLE_VIEW_PREFIX) else method


def _splits(rows: Sequence[ResultRow]) -> str:
    """Number of splits by experiment, as a range if it differs between settings."""
    numbers: dict[str, list[int]] = {}
    for setting, members in by_setting(rows).items():
        numbers.setdefault(setting.spec, []).append(len({row.split for row in members}))
    names = sorted(numbers, key=lambda name: sort_position(name, EXPERIMENT_TITLES))
    ranges = [" to ".join(map(str, sorted({min(numbers[name]), max(numbers[name])}))) for name in names]
    return "; ".join(f"{EXPERIMENT_TITLES.get(name, name)}: {found}" for name, found in zip(names, ranges, strict=True))


def versions(rows: Sequence[ResultRow]) -> str:
    """Versions of the packages that computed the rows; all versions if there are several."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for package, version in row.versions.items():
            found.setdefault(package, set()).add(version)
    first = ("cmvmed", "python", "numpy", "scipy", "scikit-learn")
    names = sorted(found, key=lambda package: sort_position(package, first))
    return ", ".join(f"{name} {' and '.join(sorted(found[name]))}" for name in names)


def main_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows of Table 1, or if there are none those of Figure 2 at the numbers of labels of Table 1."""
    cells = {(cell.dataset, cell.n_labeled) for cell in TABLE_1.cells}
    of_table = [row for row in rows if row.spec == TABLE_1.name]
    return of_table or [row for row in rows if (row.dataset, row.n_labeled) in cells]


def headline(rows: Sequence[ResultRow]) -> list[str]:
    """On how many data sets CMV-MED has a higher mean accuracy than other methods, under each protocol."""
    by_protocol: dict[str, list[tuple[str, bool, list[str]]]] = {}  # title, better than the paper's baselines, best
    for setting, members in _settings_with_reference(rows):
        means = {method: entry.mean for method, entry in summaries(members, "accuracy").items()}
        ahead = all(means[CMV_MED] > mean for method, mean in means.items() if is_paper_baseline(method))
        entry = dataset_title(setting.dataset), ahead, best_methods(members)
        by_protocol.setdefault(setting.protocol, []).append(entry)
    return [_sentence(protocol, entries) for protocol, entries in by_protocol.items()]


def _sentence(protocol: str, entries: Sequence[tuple[str, bool, list[str]]]) -> str:
    others = [f"{title} ({join_names(best)})" for title, _, best in entries if CMV_MED not in best]
    return (
        f"{_protocol_phrase(protocol)} {CMV_MED} has a higher mean accuracy than the paper’s baselines on "
        f"{sum(ahead for _, ahead, _ in entries)} of {plural(len(entries), 'data set')}, and the highest of all methods "
        f"on {len(entries) - len(others)}{f'; others are best on {join_names(others)}' if others else ''}."
    )


def _settings_with_reference(rows: Sequence[ResultRow]) -> list[tuple[Setting, list[ResultRow]]]:
    found = main_rows(rows)
    return [
        (setting, members)
        for setting, members in by_setting(found).items()
        if CMV_MED in summaries(members, "accuracy")
    ]


@dataclass(frozen=True)
class Lead:
    """CMV-MED and the strongest of the paper's baselines on one data set: accuracy, difference, interval, splits."""

    accuracy: str
    difference: str
    details: str


@dataclass(frozen=True)
class LeadTable:
    """The differences of all data sets, under each protocol."""

    protocols: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Lead | None, ...]], ...]


def lead_table(rows: Sequence[ResultRow]) -> LeadTable:
    """How far CMV-MED is ahead of the strongest of the paper's baselines."""
    cells: dict[tuple[str, int], dict[str, Lead]] = {}
    for setting, members in _settings_with_reference(rows):
        lead = _lead(members)
        if lead is not None:
            cells.setdefault((setting.dataset, setting.n_labeled), {})[setting.protocol] = lead
    protocols = sorted({name for line in cells.values() for name in line}, key=lambda n: sort_position(n, PROTOCOLS))
    return LeadTable(
        tuple(protocols),
        tuple(
            (f"{dataset_title(dataset)}, {plural(n_labeled, 'label')}", tuple(line.get(name) for name in protocols))
            for (dataset, n_labeled), line in cells.items()
        ),
    )


def _lead(members: Sequence[ResultRow]) -> Lead | None:
    ours = summaries(members, "accuracy")[CMV_MED]
    compared = [entry for entry in compare_with_baselines(members, CMV_MED) if is_paper_baseline(entry.baseline)]
    if not compared:
        return None
    paired = compared[0].paired  # baselines are sorted by mean difference
    return Lead(
        f"{100.0 * ours.mean:.1f}",
        format_points(paired.mean_difference),
        f"{format_interval(paired.split_interval)}; {compared[0].baseline}; {plural(paired.n_splits, 'split')}",
    )


def _protocol_phrase(protocol: str) -> str:
    phrases = {
        "defaults": "With default parameters,",
        "shares": "With default parameters and thresholds at the class shares of the labels,",
        "tuned": "With tuned parameters,",
    }
    return phrases.get(protocol, f"With the protocol {protocol!r},")


def failures(rows: Sequence[ResultRow]) -> tuple[Failure, ...]:
    """Failed rows, grouped if they differ in the split only."""
    groups: dict[tuple[tuple[int, str], str, str, str], list[int]] = {}
    for row in rows:
        if row.status != "done":
            setting = Setting(row.spec, row.dataset, row.n_labeled, row.protocol)
            where = f"{EXPERIMENT_TITLES.get(row.spec, row.spec)}, {setting.title}"
            groups.setdefault((method_position(row.method), row.method, where, row.error), []).append(row.split)
    return tuple(
        Failure(method, where, ", ".join(map(str, sorted(splits))), error or "no message")
        for (_, method, where, error), splits in sorted(groups.items())
    )
