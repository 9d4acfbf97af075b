"""Write measured results into the documentation: ``python -m benchmarks.pages``.

README.md and the pages of docs/ contain tables between marks such as ``<!-- accuracy: begin -->`` and
``<!-- accuracy: end -->``. This command fills them from benchmarks/results, which contains the output of the
benchmarks. ``--reproduction FILE`` first writes benchmarks/results/reproduction.csv from a file of results of
``python -m experiments``; Table 1, Figure 2 and the paper's claims in docs/reproduction.md come from it. ``--check`` writes
nothing: it fails if a result file does not say which commit, day and command it is from (``benchmarks.provenance``), and
lists the files that are older than the code that they measure.
"""

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import comparison, tuned_numbers
from benchmarks.accuracy import IN_THE_PAPER
from benchmarks.active_learning import INTERVALS
from benchmarks.faults.results import read_records, table
from benchmarks.provenance import RESULTS, ROOT, body, missing, outdated
from benchmarks.reproduction import claim_tables, figure_text, figures, paper_table, read_results, write_results
from experiments.methods import MAJORITY_CLASS
from experiments.report.claims import table_claims
from experiments.report.curve_claims import curve_claims
from experiments.report.versions import compared_claims
from experiments.store import ResultStore
from experiments.summary import format_tables

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
HEADLINE = {
    "method": "method",
    "unlabeled %": "unlabeled rows",
    "held out %": "held-out rows",
    "rank": "rank",
    "cells < -1": "cells below start",
}  # columns of README.md
DETAILS = ("ridge", "late_fusion", "self_training")  # methods that README.md leaves to docs/accuracy.md
METHOD_WORDS = {
    "cmvmed": "**`CMVMED()`**",
    "start": "start: mean of the views' `MED`, labels only",
    "start_eb": "the same, learned class shares",
    "lr": "logistic regression, labels only",
    "lda": "linear discriminant analysis, shrunk, labels only",
    "extra_trees": "extra trees, labels only",
    "random_forest": "random forest, labels only",
    "tabpfn": "TabPFN v1, labels only",
    "label_spreading": "`LabelSpreading`",
    "poisson": "Poisson learning",
}


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
    ranked = [line for line in rest if line[0] not in (MAJORITY_CLASS, IN_THE_PAPER)]
    best = [max((_mean(line[c]) for line in ranked), default=0.0) for c in range(len(head))]
    bold = [
        [f"**{cell}**" if line in ranked and 0.0 <= _mean(cell) == best[c] else cell for c, cell in enumerate(line)]
        for line in rest
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *bold])


def _mean(cell: str) -> float:
    number = re.match(r"\d+\.\d+", cell)
    return float(number[0]) if number else -1.0


def accuracy_grid(text: str) -> list[list[str]]:
    """Accuracy by method and task, as cells, with kernels if the output of ``benchmarks.accuracy`` has them."""
    table: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    head: list[str] = []  # of a table of scores, from its line "| method ..." to its end
    for line in text.splitlines():
        heading = re.match(r"### ([^:]+): (\d+) labels", line)
        if heading:
            columns.append(f"{heading[1]}, {heading[2]} labels")
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        head = cells if line.startswith("| method") else head if line.startswith("|") else []
        if head and cells != head and set(cells[0]) != {"-"}:
            scores = dict(zip(head, cells, strict=True))
            row = table.setdefault(scores["method"], {})
            row[columns[-1]] = scores["accuracy"]
            row |= {"kernel": scores["kernel"]} if "kernel" in scores else {}
    shown = (["kernel"] if any("kernel" in row for row in table.values()) else []) + columns
    lines = [[method, *(row.get(column, "–") for column in shown)] for method, row in table.items()]
    return [["method", *shown], *(line for line in lines if set(line[-len(columns) :]) != {"–"})]


def wrapped_paragraph(text: str) -> str:
    """A paragraph in lines of at most 120 characters."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def section(text: str, heading: str) -> str:
    """What follows a heading of the third level, up to the next one."""
    return text.split(f"### {heading}\n")[1].split("\n### ")[0].strip()


def suite_table(text: str, columns: Sequence[str] = SUITE_COLUMNS) -> str:
    """The main columns of the table over all draws, from the output of ``benchmarks.suite``."""
    lines = text.split("### All draws")[1].strip().split("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in lines)
    shown = [i for column in columns for i in _positions(head, column)]
    cells = [[head[i] for i in shown], ["---"] * len(shown), *([row[i] for i in shown] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _positions(head: Sequence[str], column: str) -> list[int]:
    """Where a column is, or the columns of sensors and of other sets that it is divided into."""
    found = [i for i, name in enumerate(head) if name == column or name.startswith(f"{column}: ")]
    if not found:
        raise ValueError(f"the table has no column {column!r}")
    return found


def headline_table(text: str) -> str:
    """The table of README.md: fewer columns and methods, and those in words."""
    head, rule, *rows = suite_table(text, list(HEADLINE)).splitlines()
    for column, words in HEADLINE.items():
        head = re.sub(rf"\| {re.escape(column)}(?= \||:)", f"| {words}", head)
    named = []
    for row in rows:
        method, rest = row.removeprefix("| ").split(" | ", 1)
        if method not in DETAILS:
            named.append(f"| {METHOD_WORDS.get(method, method)} | {rest}")
    return "\n".join([head, rule, *named])


def variants_table(text: str) -> str:
    """Accuracy, difference to the default and worst cell of every variant, from the output of ``benchmarks.suite``."""
    return suite_table(text, ["method", "unlabeled %", "held out %", "to start", "worst cell to start", "cells < -1"])


def fill_reproduction() -> None:
    """Write Table 1, Figure 2 and the paper's claims to docs/reproduction.md, from the experiments in the result file."""
    rows = read_results(RESULTS / "reproduction.csv")
    of_table = [row for row in rows if row.spec == "table1"]
    of_figure = [row for row in rows if row.spec == "figure2"]
    page = ROOT / "docs" / "reproduction.md"
    if of_table:
        text = format_tables(of_table)
        first = (RESULTS / "reproduction.csv").read_text().partition("\n")[0]
        _write(RESULTS / "table1.txt", f"{first}\n\n{text}\n")
        fill(page, "table1", paper_table(of_table, "tuned"))
        fill(page, "claims", claim_tables(compared_claims(of_table, table_claims)))
    if of_figure:
        for name, figure in figures(of_figure).items():
            _write(ROOT / "docs" / name, figure)
        fill(page, "figure2", "\n\n".join(map(wrapped_paragraph, figure_text(of_figure))))
        fill(page, "curve_claims", claim_tables(compared_claims(of_figure, curve_claims)))


def fill_from_results() -> None:
    """Write the tables that the benchmarks print in their final form."""
    measured = body(RESULTS / "accuracy.md")
    fill(ROOT / "README.md", "suite", headline_table(body(RESULTS / "suite.md")))
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        fill(page, "python_lines", body(RESULTS / "python_lines.md"))
    fill(ROOT / "docs" / "installation.md", "import_time", body(RESULTS / "import_time.md"))
    page = ROOT / "docs" / "accuracy.md"
    texts: Mapping[str, str] = {
        "accuracy": markdown(accuracy_grid(measured)),
        "ablation": body(RESULTS / "ablation.md"),
        "calibration": body(RESULTS / "calibration.md"),
        "draws": body(RESULTS / "label_draws.md"),
        "new_groups": body(RESULTS / "new_groups.md"),
        "suite_ablation": variants_table(body(RESULTS / "suite_ablation.md")),
        "suite": suite_table(body(RESULTS / "suite.md")),
    }
    for mark, text in texts.items():
        fill(page, mark, text)
    fill(ROOT / "docs" / "reproduction.md", "from_paper", body(RESULTS / "from_paper.md"))
    fill(ROOT / "docs" / "simulators.md", "difficulty", body(RESULTS / "difficulty.md"))
    for mark in ("recordings", "raw_recordings", "feature_cost"):
        fill(ROOT / "docs" / "features.md", mark, body(RESULTS / f"{mark}.md"))
    for mark in ("figure1", "bounds"):
        fill(ROOT / "docs" / "theory.md", mark, body(RESULTS / f"{mark}.md"))
    fill(ROOT / "docs" / "inspection.md", "sensor_health", body(RESULTS / "sensor_health.md"))
    fill(ROOT / "docs" / "inspection.md", "prediction_sets", body(RESULTS / "prediction_sets.md"))
    fill(ROOT / "docs" / "model_file.md", "sizes", body(RESULTS / "model_files.md"))
    fill(ROOT / "docs" / "workbench.md", "costs", body(RESULTS / "workbench.md"))
    walkthrough = f"```text\n{body(RESULTS / 'walkthrough.txt').strip()}\n```"
    fill(ROOT / "docs" / "guides" / "sensor_table.md", "walkthrough", walkthrough)
    fill(ROOT / "docs" / "robustness.md", "faults", table(read_records(RESULTS / "faults.json")))
    fill(ROOT / "docs" / "scaling.md", "peers", body(RESULTS / "peers.md"))
    fill(ROOT / "docs" / "onnx.md", "onnx", body(RESULTS / "onnx.md"))
    fill(ROOT / "docs" / "labeling_page.md", "labeling", body(RESULTS / "labeling.md"))
    fill(ROOT / "docs" / "labeling_page.md", "labeling_user", body(RESULTS / "labeling_user.md"))
    fill(ROOT / "docs" / "comparison.md", "comparison", comparison.table())
    fill(ROOT / "docs" / "defaults.md", "tuning", tuned_numbers.table())
    labeling = body(RESULTS / "active_learning.md")
    fill(ROOT / "docs" / "labeling.md", "active_runs", labeling.split("###")[0])
    headings = {
        "active_learning": "Held-out rows",
        "active_accuracy": "Mean accuracy on held-out rows",
        "active_unlabeled": "Unlabeled rows",
        "active_estimates": "Expected accuracy",
    }
    for mark, heading in headings.items():
        fill(ROOT / "docs" / "labeling.md", mark, section(labeling, heading))
    random_rows = body(RESULTS / "random_rows.md")
    fill(ROOT / "docs" / "labeling.md", "random_runs", random_rows.split("###")[0])
    for mark, heading in {"random_labels": "Held-out rows", "random_intervals": INTERVALS}.items():
        fill(ROOT / "docs" / "labeling.md", mark, section(random_rows, heading))


def check(paths: Sequence[Path]) -> int:
    """Print which files are without a heading, and which are older than the code; 1 if one has no heading."""
    older, without = outdated(paths), missing(paths)
    print(*[f"Older than the code: {line}" for line in older], sep="\n")
    print(*[f"Without commit, date and command: {name}" for name in without], sep="\n")
    return int(bool(without))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reproduction", type=Path, help="file of results of python -m experiments")
    parser.add_argument("--check", action="store_true", help="whether result files say what they are from")
    arguments = parser.parse_args()
    if arguments.check:
        sys.exit(check(sorted(RESULTS.iterdir())))
    if arguments.reproduction:
        with ResultStore(arguments.reproduction, read_only=True) as store:
            write_results(RESULTS / "reproduction.csv", store.rows())
    fill_reproduction()
    fill_from_results()


if __name__ == "__main__":
    main()
