"""Facts about the run, headline and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.reproduction.method_names import CMV_MED, SINGLE_VIEW_PREFIX
from cmvmed.reproduction.report.accuracy_table import best_methods
from cmvmed.reproduction.report.formatting import join_names, plural
from cmvmed.reproduction.report.grouping import (
    DATASET_TITLES,
    Setting,
    by_setting,
    dataset_title,
    method_position,
    settings_with_score,
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


def headline(rows: Sequence[ResultRow]) -> list[str]:
    """A sentence for each protocol: on how many data sets CMV-MED has the highest mean accuracy."""
    sentences = []
    by_protocol: dict[str, list[str]] = {}
    missed: dict[str, list[str]] = {}
    for setting, members in settings_with_score(rows, "table1", "accuracy").items():
        if CMV_MED in summaries(members, "accuracy"):
            best = best_methods(members)
            name = dataset_title(setting.dataset)
            by_protocol.setdefault(setting.protocol, []).append(name if CMV_MED in best else "")
            if CMV_MED not in best:
                missed.setdefault(setting.protocol, []).append(f"{name} ({join_names(best)})")
    for protocol, names in by_protocol.items():
        won = [name for name in names if name]
        lead = f"{_protocol_phrase(protocol)} {CMV_MED} has the highest mean accuracy on {len(won)} of "
        others = f"; other methods are best on {join_names(missed[protocol])}" if protocol in missed else ""
        sentences.append(f"{lead}{plural(len(names), 'data set')}{others}.")
    return sentences


def _protocol_phrase(protocol: str) -> str:
    phrases = {
        "defaults": "With default parameters,",
        "shares": "With default parameters and thresholds at the class shares of the labels,",
        "tuned": "With parameters selected by cross-validation on the labeled rows,",
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
