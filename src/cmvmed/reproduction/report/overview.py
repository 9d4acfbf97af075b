"""What was run, in a few facts and one sentence, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.reproduction.report.accuracy_table import best_methods, settings_of
from cmvmed.reproduction.report.formatting import listing, plural
from cmvmed.reproduction.report.grouping import (
    COMPLETE,
    DATASETS,
    SINGLE_VIEW,
    by_setting,
    method_position,
    position,
    summaries,
    title_of,
)
from cmvmed.reproduction.result_rows import ResultRow

SPECS = {"table1": "Table 1", "figure2": "Figure 2"}


@dataclass(frozen=True)
class Failure:
    """Rows that failed alike."""

    method: str
    where: str
    splits: str
    error: str


def facts(rows: Sequence[ResultRow]) -> list[tuple[str, str]]:
    """Name and value of each fact of the headline."""
    done = [row for row in rows if row.status == "done"]
    datasets = sorted({row.dataset for row in rows}, key=lambda name: position(name, DATASETS))
    specs = sorted({row.spec for row in rows}, key=lambda name: position(name, SPECS))
    found = [
        ("Experiments", listing([SPECS.get(spec, spec) for spec in specs])),
        ("Data sets", listing([title_of(name) for name in datasets])),
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
    """A method's name; single views are all one method."""
    return SINGLE_VIEW if method.startswith(SINGLE_VIEW) else method


def _splits(rows: Sequence[ResultRow]) -> str:
    """Number of splits by experiment, as a range where settings differ."""
    numbers: dict[str, list[int]] = {}
    for setting, members in by_setting(rows).items():
        numbers.setdefault(setting.spec, []).append(len({row.split for row in members}))
    names = sorted(numbers, key=lambda name: position(name, SPECS))
    ranges = [" to ".join(map(str, sorted({min(numbers[name]), max(numbers[name])}))) for name in names]
    return "; ".join(f"{SPECS.get(name, name)}: {found}" for name, found in zip(names, ranges, strict=True))


def versions(rows: Sequence[ResultRow]) -> str:
    """Versions of all that computed the rows; several of one package are all named."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for package, version in row.versions.items():
            found.setdefault(package, set()).add(version)
    first = ("cmvmed", "python", "numpy", "scipy", "scikit-learn")
    names = sorted(found, key=lambda package: position(package, first))
    return ", ".join(f"{name} {' and '.join(sorted(found[name]))}" for name in names)


def headline(rows: Sequence[ResultRow]) -> list[str]:
    """A sentence for each protocol: on how many data sets the complete method has the highest mean."""
    sentences = []
    by_protocol: dict[str, list[str]] = {}
    missed: dict[str, list[str]] = {}
    for setting, members in settings_of(rows).items():
        if COMPLETE in summaries(members, "accuracy"):
            best = best_methods(members)
            name = title_of(setting.dataset)
            by_protocol.setdefault(setting.protocol, []).append(name if COMPLETE in best else "")
            if COMPLETE not in best:
                missed.setdefault(setting.protocol, []).append(f"{name} ({listing(best)})")
    for protocol, names in by_protocol.items():
        won = [name for name in names if name]
        lead = f"{_protocol_words(protocol)} {COMPLETE} has the highest mean accuracy on {len(won)} of "
        others = f"; others lead on {listing(missed[protocol])}" if protocol in missed else ""
        sentences.append(f"{lead}{plural(len(names), 'data set')}{others}.")
    return sentences


def _protocol_words(protocol: str) -> str:
    words = {
        "defaults": "With every method at its defaults,",
        "tuned": "Tuned by cross-validation on the labeled rows,",
    }
    return words.get(protocol, f"Under the protocol {protocol!r},")


def failures(rows: Sequence[ResultRow]) -> tuple[Failure, ...]:
    """Failed rows, those that differ in their split only put together."""
    groups: dict[tuple[tuple[int, str], str, str, str], list[int]] = {}
    for row in rows:
        if row.status != "done":
            where = f"{SPECS.get(row.spec, row.spec)}, {title_of(row.dataset)}, {row.n_labeled} labels, {row.protocol}"
            groups.setdefault((method_position(row.method), row.method, where, row.error), []).append(row.split)
    return tuple(
        Failure(method, where, ", ".join(map(str, sorted(splits))), error or "no message")
        for (_, method, where, error), splits in sorted(groups.items())
    )
