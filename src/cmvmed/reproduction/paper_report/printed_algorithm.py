"""The algorithm as printed in the paper compared with the complete one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.pages.formatting import format_points, join_names
from cmvmed.reproduction.method_names import CMV_MED, CMV_MED_PRINTED
from cmvmed.reproduction.paper_report.claims import setting_label
from cmvmed.reproduction.paper_report.grouping import by_setting, format_percent, is_paper_baseline, summaries
from cmvmed.reproduction.paper_report.significance import comparison_verdict, comparisons
from cmvmed.reproduction.paper_report.verdicts import Verdict
from cmvmed.reproduction.result_rows import ResultRow


@dataclass(frozen=True)
class PrintedLine:
    """One setting: both accuracies, their difference, and the paper's baselines that the printed one does not beat."""

    where: str
    printed: str
    complete: str
    difference: str
    verdict: Verdict
    unbeaten: str


def printed_lines(rows: Sequence[ResultRow]) -> tuple[PrintedLine, ...]:
    """A line for each setting of Table 1 with results of both algorithms."""
    members = by_setting(rows, "table1")
    of_printed = comparisons(rows, reference=CMV_MED_PRINTED)
    lines = []
    for setting, baselines in comparisons(rows).items():
        printed = next((entry for entry in baselines if entry.baseline == CMV_MED_PRINTED), None)
        if printed is None:
            continue
        means = summaries(members[setting], "accuracy")
        unbeaten = [
            entry.baseline
            for entry in of_printed.get(setting, [])
            if is_paper_baseline(entry.baseline) and entry.paired.mean_difference <= 0.0
        ]
        lines.append(
            PrintedLine(
                setting_label(setting),
                format_percent(means[CMV_MED_PRINTED]),
                format_percent(means[CMV_MED]),
                format_points(printed.paired.mean_difference),
                comparison_verdict(printed),
                join_names(sorted(unbeaten)),
            )
        )
    return tuple(lines)
