"""The results file: outcomes by campaign, seed and part, from which the table in the documentation is made."""

import json
import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults.campaign import CLEAR_ERROR, FAILURE, HELD, KNOWN, NAMES, NOT_DETECTABLE, SKIPPED, Failure, Tally
from benchmarks.provenance import heading

TITLES = {
    "fits": "fuzzed fits",
    "relations": "relations between fits",
    "certificates": "certificates recomputed",
    "extremes": "extreme fits",
    "exports": "models elsewhere",
    "damaged_files": "damaged files",
    "mutated_models": "mutated model files",
    "tables": "tables in other forms",
    "writers": "files written during a fit",
    "threads": "threads and processes",
    "full_disks": "full disks",
    "dask_workers": "Dask workers",
    "kills": "kills",
    "browsers": "two persons at the page",
}
HEAD = [
    "campaign",
    "kinds",
    "cases",
    "held",
    "clear error",
    "change that no checksum shows",
    "fault of a decoder",
    "failures",
]


@dataclass
class Record:
    """What one run of a campaign has done: cases ``first``, ``first + step``, ... of a seed."""

    campaign: str
    seed: int
    first: int
    step: int
    n_done: int = 0
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)
    commit: str = ""  # of the last run

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What it is a record of."""
        return self.campaign, self.seed, self.first, self.step


def read_records(path: Path) -> list[Record]:
    """The records of a file; none if there is no file."""
    if not path.exists():
        return []
    return [_record(entry) for entry in json.loads(path.read_text(encoding="utf-8"))["records"]]


def _record(entry: dict[str, Any]) -> Record:
    tally = Tally(entry["tally"]["outcomes"], [Failure(**one) for one in entry["tally"]["failures"]])
    return Record(**(entry | {"tally": tally}))


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write a file completely or not at all."""
    part = path.with_name(f"{path.name}.part")
    content = {
        "provenance": heading(),
        "records": [asdict(record) for record in sorted(records, key=lambda record: record.key)],
    }
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path)


def merged(parts: Sequence[Sequence[Record]]) -> list[Record]:
    """The records of several files; of those with the same key, the one with more cases."""
    found: dict[tuple[str, int, int, int], Record] = {}
    for record in (record for records in parts for record in records):
        if record.key not in found or found[record.key].n_done < record.n_done:
            found[record.key] = record
    return list(found.values())


def table_lines(records: Sequence[Record]) -> list[list[str]]:
    """Head and lines of the table, one for each campaign, and a line of totals."""
    lines, totals = [HEAD], [0] * (len(HEAD) - 1)
    for name in NAMES:
        groups = [counts for record in records if record.campaign == name for counts in record.tally.outcomes.items()]
        if groups:
            numbers = [
                len({group for group, _ in groups}),
                *map(sum, zip(*(_numbers(own) for _, own in groups), strict=True)),
            ]
            totals = [total + number for total, number in zip(totals, numbers, strict=True)]
            lines.append([TITLES[name], *(f"{number:,}" for number in numbers)])
    return [*lines, ["all", *(f"{total:,}" for total in totals)]]


def _numbers(counts: dict[str, int]) -> list[int]:
    shown = [counts.get(outcome, 0) for outcome in (HELD, CLEAR_ERROR, NOT_DETECTABLE, KNOWN, FAILURE)]
    return [sum(counts.values()) - counts.get(SKIPPED, 0), *shown]


def table(records: Sequence[Record]) -> str:
    """The table in Markdown."""
    head, *rest = table_lines(records)
    lines = [f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rest]]
    return "\n".join([*lines, "", commits_line(records)])


def commits_line(records: Sequence[Record]) -> str:
    """Which code the campaigns were run on."""
    by_commit: dict[str, list[str]] = {}
    for name in NAMES:
        for commit in sorted({record.commit or "unknown" for record in records if record.campaign == name}):
            by_commit.setdefault(commit, []).append(TITLES[name])
    runs = "; ".join(f"{commit}: {', '.join(names)}" for commit, names in by_commit.items())
    return textwrap.fill(f"Run at commit {runs}.", 120)
