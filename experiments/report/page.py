"""The report as one HTML page, generated from result rows: headline, facts about the run, failures, command lines."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.pages.formatting import join_names, plural
from cmvmed.pages.rendering import render
from experiments.comparison import compare_with_baselines
from experiments.experiment import EXPERIMENTS, PAPER_SOURCE, PROTOCOLS, TABLE_1, Experiment
from experiments.methods import CMV_MED, MAJORITY_CLASS, METHODS, SINGLE_VIEW_PREFIX, each_view_name
from experiments.report.claims import table_claims
from experiments.report.curve_claims import curve_claims
from experiments.report.curves import (
    BAND_CONFIDENCE,
    MIN_BAND_SPLITS,
    MIN_BIN_ROWS,
    annealing_panels,
    calibration_panels,
    curve_panels,
)
from experiments.report.grouping import (
    DATASET_TITLES,
    Setting,
    by_setting,
    dataset_title,
    is_paper_baseline,
    method_position,
    sort_position,
    summaries,
)
from experiments.report.number_text import format_interval, format_points
from experiments.report.projection import LEVELS, N_LABELED, N_ROWS, example, projection_panels
from experiments.report.significance import comparisons, rank_panels, significance_panels, too_few_splits
from experiments.report.tables import accuracy_cards, cost_tables
from experiments.report.versions import VERSIONS, compared_claims, rows_of_version, wins, wins_phrase
from experiments.result_rows import ResultRow

PROGRAM = ("python", "-m", "experiments")
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
            found.setdefault(package, set()).update(version.split(" and "))
    first = ("cmvmed", "python", "numpy", "scipy", "scikit-learn")
    names = sorted(found, key=lambda package: sort_position(package, first))
    return ", ".join(f"{name} {' and '.join(sorted(found[name]))}" for name in names)


def main_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows of Table 1, or if there are none those of Figure 2 at the numbers of labels of Table 1."""
    cells = {(cell.dataset, cell.n_labeled) for cell in TABLE_1.cells}
    of_table = [row for row in rows if row.spec == TABLE_1.name]
    return of_table or [row for row in rows if (row.dataset, row.n_labeled) in cells]


def headline(rows: Sequence[ResultRow]) -> list[str]:
    """On how many data sets each version of the method is ahead of the paper's baselines, under each protocol."""
    return [
        f"{_protocol_phrase(protocol)} CMV-MED has a higher mean accuracy than all of the paper’s baselines: {wins_phrase(found)}."
        for protocol, found in wins(main_rows(rows)).items()
    ]


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
    """The differences in every setting, for each version of the method."""

    versions: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Lead | None, ...]], ...]


def lead_table(rows: Sequence[ResultRow]) -> LeadTable:
    """How far each version is ahead of the strongest of the paper's baselines."""
    cells: dict[str, dict[str, Lead]] = {}
    for version in VERSIONS:
        for setting, members in _settings_with_reference(rows_of_version(rows, version)):
            lead = _lead(members)
            if lead is not None:
                cells.setdefault(setting.title, {})[version] = lead
    lines = tuple((title, tuple(line.get(name) for name in VERSIONS)) for title, line in cells.items())
    return LeadTable(tuple(VERSIONS), lines)


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


def reproduce_command(rows: Sequence[ResultRow], spec: str, results: str) -> str:
    """The command line that reproduces the rows of an experiment.

    Options that equal the definition of the experiment are omitted. If there are no rows, it is the command line of a
    quick run.
    """
    members = [row for row in rows if row.spec == spec]
    experiment = EXPERIMENTS.get(spec)
    if not members or experiment is None:
        return shlex.join([*PROGRAM, spec])
    arguments = [*PROGRAM, spec, "--full", "--splits", str(1 + max(row.split for row in members))]
    for option, names in _restrictions(members, experiment).items():
        for name in names:
            arguments += [option, name]
    return shlex.join([*arguments, "--results", results])


def _restrictions(members: Sequence[ResultRow], experiment: Experiment) -> dict[str, list[str]]:
    """Data sets, protocols and methods of the rows where they differ from those of the experiment."""
    datasets = sorted({row.dataset for row in members}, key=lambda name: sort_position(name, DATASET_TITLES))
    protocols = sorted({row.protocol for row in members}, key=lambda name: sort_position(name, PROTOCOLS))
    methods = sorted({each_view_name(row.method) for row in members}, key=method_position)
    optional = {name for name, method in METHODS.items() if method.package}
    return {
        "--datasets": datasets if set(datasets) != {cell.dataset for cell in experiment.cells} else [],
        "--protocol": protocols if set(protocols) != set(experiment.protocols) else [],
        "--methods": methods if set(experiment.methods) - optional - set(methods) else [],
    }


def report_page(rows: Sequence[ResultRow], results: str = "results.sqlite") -> str:
    """The page as HTML.

    Parameters
    ----------
    rows : sequence of ResultRow
        At least one.
    results : str
        Path of the file of results, for the command lines on the page.
    """
    if not rows:
        raise ValueError("There are no results to report; `python -m experiments table1` creates them.")
    methods = [row for row in rows if row.method != MAJORITY_CLASS]  # shown as a rate, not as a method
    claims = [*compared_claims(methods, table_claims), *compared_claims(methods, curve_claims)]
    sections = {
        "facts": facts(rows),
        "headline": headline(methods),
        "leads": lead_table(methods),
        "warning": too_few_splits(comparisons(methods)),
        "claims": [claim for claim in claims if claim.lines],
        "undecided": [claim for claim in claims if not claim.lines],
        "projection": projection_panels(example()),
        "contour_levels": ", ".join(f"{level:g}" for level in LEVELS),
        "projection_rows": N_ROWS,
        "projection_labels": N_LABELED,
        "accuracy": accuracy_cards(methods),
        "curves": curve_panels(methods),
        "annealing": annealing_panels(methods),
        "calibration": calibration_panels(methods),
        "significance": significance_panels(methods),
        "ranks": rank_panels(methods),
        "costs": cost_tables(methods),
        "failures": failures(rows),
        "retry_commands": [
            f"{reproduce_command(rows, spec, results)} --retry-failed"
            for spec in sorted({row.spec for row in rows if row.status != "done"})
        ],
        "table_command": reproduce_command(methods, "table1", results),
        "curve_command": reproduce_command(methods, "figure2", results),
        "report_command": shlex.join([*PROGRAM, "report", "--results", results]),
        "source": PAPER_SOURCE,
        "majority_class": MAJORITY_CLASS,
        "min_bin_rows": MIN_BIN_ROWS,
        "band_confidence": BAND_CONFIDENCE,
        "min_band_splits": MIN_BAND_SPLITS,
    }
    return render("page.html", "experiments.report", sections)
