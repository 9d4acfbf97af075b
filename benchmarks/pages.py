"""Put measured figures into the pages: ``python -m benchmarks.pages``.

README.md and the pages of docs/ hold tables between marks such as ``<!-- accuracy: begin -->`` and ``<!-- accuracy: end -->``.
This command fills them from benchmarks/results, where the benchmarks' output is kept. ``--table1 FILE`` first writes what there is
to say of Table 1 from a file of results that ``cmvmed reproduce table1 --full`` has made.
"""

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cmvmed.reproduction.report.claims import table_claims
from cmvmed.reproduction.store import ResultStore
from cmvmed.reproduction.summary import MAJORITY, entries, grid, tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
OF_TABLE_1 = ("ads", "footsteps", "sensit", "webkb")  # which have a table of their own in the README


def fill(page: Path, mark: str, text: str) -> None:
    """Put a text between the marks of a page."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, rest = page.read_text().split(begin)
    _, after = rest.split(end)
    _write(page, f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}")


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    os.replace(part, path)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table, its first line the head; the best of each column in bold, majority and the paper's own row aside."""
    head, *rest = lines
    ranked = [line for line in rest if line[0] != MAJORITY and "paper" not in line[0]]
    best = [max((_mean(line[c]) for line in ranked), default=0.0) for c in range(len(head))]
    bold = [
        [f"**{cell}**" if c and line in ranked and _mean(cell) == best[c] else cell for c, cell in enumerate(line)]
        for line in rest
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *bold])


def _mean(cell: str) -> float:
    number = re.match(r"\d+\.\d+", cell)
    return float(number[0]) if number else -1.0


def accuracy_grid(text: str, *, without: Sequence[str] = ()) -> list[list[str]]:
    """Accuracy by method and task, as cells, from the output of ``benchmarks.accuracy``."""
    table: dict[str, dict[str, str]] = {}
    tasks: list[str] = []
    in_scores = False  # from a line "| method ..." to the next that is no line of a table
    for line in text.splitlines():
        heading = re.match(r"### ([^:]+): (\d+) labels", line)
        if heading:
            tasks.append(f"{heading[1]}, {heading[2]} labels")
        in_scores = line.startswith("| method") or (in_scores and line.startswith("|"))
        if in_scores and not line.startswith(("| method", "| ---")):
            method, accuracy = (cell.strip() for cell in line.strip("| ").split("|")[:2])
            table.setdefault(method, {})[tasks[-1]] = accuracy
    shown = [task for task in tasks if task.split(",")[0] not in without]
    lines = [[method, *(row.get(task, "–") for task in shown)] for method, row in table.items()]
    return [["method", *shown], *(line for line in lines if set(line[1:]) != {"–"})]


def fill_table1(results: Path) -> None:
    """Table 1 in the README and on the page of its reproduction, with which of the paper's claims hold."""
    with ResultStore(results, read_only=True) as store:
        rows = store.rows("table1")
    splits = {row.split for row in rows}
    text = tables(rows)
    title = f"# cmvmed reproduce table1 --full: {len(splits)} splits, {len(rows)} rows"
    _write(RESULTS / "table1.txt", f"{title}\n\n{text}\n")
    defaults = [entry for entry in entries(rows) if entry.protocol == "defaults"]
    fill(ROOT / "README.md", "table1", markdown(grid(defaults)))
    page = ROOT / "docs" / "reproduction.md"
    fill(page, "table1", f"```text\n{text}\n```")
    claims = []
    for claim in table_claims(rows):
        claims.append(f"- **{claim.text}**")
        claims += [f"  - {found.where}: **{found.verdict.word}**; {found.evidence}" for found in claim.findings]
    fill(page, "claims", "\n".join(claims))


def fill_from_results() -> None:
    """The tables whose benchmarks write them as they are shown."""
    measured = (RESULTS / "accuracy.md").read_text()
    fill(ROOT / "README.md", "accuracy", markdown(accuracy_grid(measured, without=OF_TABLE_1)))
    page = ROOT / "docs" / "accuracy.md"
    texts: Mapping[str, str] = {
        "accuracy": markdown(accuracy_grid(measured)),
        "ablation": (RESULTS / "ablation.md").read_text(),
        "calibration": (RESULTS / "calibration.md").read_text(),
    }
    for mark, text in texts.items():
        fill(page, mark, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table1", type=Path, help="file of results of Table 1")
    given = parser.parse_args()
    if given.table1:
        fill_table1(given.table1)
    fill_from_results()


if __name__ == "__main__":
    main()
