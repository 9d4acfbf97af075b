"""Write measured results into the documentation: ``python -m benchmarks.pages``.

README.md and the pages of docs/ contain tables between marks such as ``<!-- accuracy: begin -->`` and
``<!-- accuracy: end -->``. This command fills them from benchmarks/results, which contains the output of the
benchmarks. ``--table1 FILE`` first writes Table 1 and the paper's claims from a file of results of
``cmvmed reproduce table1 --full``.
"""

import argparse
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from cmvmed.reproduction.method_names import MAJORITY_CLASS
from cmvmed.reproduction.report.claims import table_claims
from cmvmed.reproduction.store import ResultStore
from cmvmed.reproduction.summary import format_tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SUITE_COLUMNS = [
    "method",
    "unlabeled %",
    "held out %",
    "rank",
    "to start",
    "worst cell to start",
    "cells < -1",
    "near best peer %",
]


def fill(page: Path, mark: str, text: str) -> None:
    """Write a text between the marks of a page."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, rest = page.read_text().split(begin)
    _, after = rest.split(end)
    _write(page, f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}")


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    os.replace(part, path)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table with a header line; the best mean of each column, except majority class and paper, is bold."""
    head, *rest = lines
    ranked = [line for line in rest if line[0] != MAJORITY_CLASS and "paper" not in line[0]]
    best = [max((_mean(line[c]) for line in ranked), default=0.0) for c in range(len(head))]
    bold = [
        [f"**{cell}**" if c and line in ranked and _mean(cell) == best[c] else cell for c, cell in enumerate(line)]
        for line in rest
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *bold])


def _mean(cell: str) -> float:
    number = re.match(r"\d+\.\d+", cell)
    return float(number[0]) if number else -1.0


def accuracy_grid(text: str) -> list[list[str]]:
    """Accuracy by method and task, as cells, from the output of ``benchmarks.accuracy``."""
    table: dict[str, dict[str, str]] = {}
    tasks: list[str] = []
    in_scores = False  # from a line "| method ..." to the end of its table
    for line in text.splitlines():
        heading = re.match(r"### ([^:]+): (\d+) labels", line)
        if heading:
            tasks.append(f"{heading[1]}, {heading[2]} labels")
        in_scores = line.startswith("| method") or (in_scores and line.startswith("|"))
        if in_scores and not line.startswith(("| method", "| ---")):
            method, accuracy = (cell.strip() for cell in line.strip("| ").split("|")[:2])
            table.setdefault(method, {})[tasks[-1]] = accuracy
    lines = [[method, *(row.get(task, "–") for task in tasks)] for method, row in table.items()]
    return [["method", *tasks], *(line for line in lines if set(line[1:]) != {"–"})]


def wrapped_item(line: str) -> str:
    """An item of a list in lines of at most 120 characters, indented below its text."""
    indent = " " * (line.index("-") + 2)
    return textwrap.fill(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def suite_table(text: str, columns: Sequence[str] = SUITE_COLUMNS) -> str:
    """The main columns of the table over all draws, from the output of ``benchmarks.suite``."""
    lines = text.split("### All draws")[1].strip().split("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in lines)
    shown = [head.index(column) for column in columns]
    cells = [columns, ["---"] * len(shown), *([row[i] for i in shown] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def variants_table(text: str) -> str:
    """Accuracy, difference to the default and worst cell of every variant, from the output of ``benchmarks.suite``."""
    return suite_table(text, ["method", "unlabeled %", "held out %", "to start", "worst cell to start", "cells < -1"])


def fill_table1(results: Path) -> None:
    """Write Table 1 and the paper's claims to docs/reproduction.md."""
    with ResultStore(results, read_only=True) as store:
        rows = store.rows("table1")
    splits = {row.split for row in rows}
    text = format_tables(rows)
    title = f"# cmvmed reproduce table1 --full: {len(splits)} splits, {len(rows)} rows"
    _write(RESULTS / "table1.txt", f"{title}\n\n{text}\n")
    page = ROOT / "docs" / "reproduction.md"
    fill(page, "table1", f"```text\n{text}\n```")
    claims = []
    for claim in table_claims(rows):
        claims.append(f"- **{claim.text}**")
        claims += [f"  - {found.where}: **{found.verdict.label}**; {found.evidence}" for found in claim.findings]
    fill(page, "claims", "\n".join(map(wrapped_item, claims)))


def fill_from_results() -> None:
    """Write the tables that the benchmarks print in their final form."""
    measured = (RESULTS / "accuracy.md").read_text()
    fill(ROOT / "README.md", "accuracy", markdown(accuracy_grid(measured)))
    fill(ROOT / "README.md", "suite", suite_table((RESULTS / "suite.md").read_text()))
    page = ROOT / "docs" / "accuracy.md"
    texts: Mapping[str, str] = {
        "accuracy": markdown(accuracy_grid(measured)),
        "ablation": (RESULTS / "ablation.md").read_text(),
        "calibration": (RESULTS / "calibration.md").read_text(),
        "draws": (RESULTS / "label_draws.md").read_text(),
        "suite_ablation": variants_table((RESULTS / "suite_ablation.md").read_text()),
        "suite": suite_table((RESULTS / "suite.md").read_text()),
    }
    for mark, text in texts.items():
        fill(page, mark, text)
    fill(ROOT / "docs" / "model_file.md", "sizes", (RESULTS / "model_files.md").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table1", type=Path, help="file of results of Table 1")
    arguments = parser.parse_args()
    if arguments.table1:
        fill_table1(arguments.table1)
    fill_from_results()


if __name__ == "__main__":
    main()
