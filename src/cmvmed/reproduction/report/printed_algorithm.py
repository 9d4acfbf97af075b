"""The algorithm as the paper prints it beside the complete one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cmvmed.reproduction.report.claims import place
from cmvmed.reproduction.report.formatting import listing, percent, points
from cmvmed.reproduction.report.grouping import COMPLETE, PRINTED, by_setting, is_of_paper, summaries
from cmvmed.reproduction.report.significance import Verdict, comparisons, verdict_of
from cmvmed.reproduction.result_rows import ResultRow


@dataclass(frozen=True)
class PrintedLine:
    """One setting: both accuracies, their difference, and the paper's rivals that the printed algorithm does not beat."""

    where: str
    printed: str
    complete: str
    difference: str
    verdict: Verdict
    unbeaten: str


def printed_lines(rows: Sequence[ResultRow]) -> tuple[PrintedLine, ...]:
    """A line for each setting of Table 1 in which both algorithms ran."""
    members = by_setting(rows, "table1")
    of_printed = comparisons(rows, reference=PRINTED)
    lines = []
    for setting, rivals in comparisons(rows).items():
        against = next((entry for entry in rivals if entry.rival == PRINTED), None)
        if against is None:
            continue
        means = summaries(members[setting], "accuracy")
        unbeaten = [
            entry.rival
            for entry in of_printed.get(setting, [])
            if is_of_paper(entry.rival) and entry.paired.mean_difference <= 0.0
        ]
        lines.append(
            PrintedLine(
                place(setting),
                percent(means[PRINTED]),
                percent(means[COMPLETE]),
                points(against.paired.mean_difference),
                verdict_of(against),
                listing(sorted(unbeaten)),
            )
        )
    return tuple(lines)
