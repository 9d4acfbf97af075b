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

from benchmarks import comparison
from benchmarks.accuracy import IN_THE_PAPER
from benchmarks.active_learning import INTERVALS
from benchmarks.faults.results import read_records, table
from benchmarks.provenance import RESULTS, ROOT, body, missing, outdated
from benchmarks.reproduction import (
    claim_counts,
    claim_tables,
    figure_text,
    figures,
    paper_table,
    read_results,
    write_results,
)
from experiments.methods import CMV_MED_PRINTED, KERNELS, MAJORITY_CLASS, MV_MED, SVM_2K
from experiments.report.claims import table_claims
from experiments.report.curve_claims import curve_claims
from experiments.report.versions import compared_claims
from experiments.store import ResultStore
from experiments.summary import format_tables

SUITE_COLUMNS = ["method", "unlabeled %", "held out %"]
SPEED_ELSEWHERE = ("help", "train-text", "train-sounds")  # in the result file alone
SPEED_COLUMNS = ["what", "CMVMED", "ExtraTrees", "LogisticRegression", "LabelSpreading knn"]
FAULT_COLUMNS = ["campaign", "cases", "held", "clear error", "failures"]
VARIANTS_ELSEWHERE = (  # in the table of the suite, or without effect
    "extra_trees",
    "lr",
    "best peer per cell",
    "shares of the consensus alone",
    "no shrinkage of shares",
    "ten trees per fold",
)
GROUP_COLUMNS = ["data", "accuracy", "expected", "interval holds", "width", "unknown", "sets hold"]
GROUP_LINES = ("4 persons, 10 ", "14 persons, 15 ", "30 persons, 4 ")  # simulated ones on the page
DETAILS = ("start_eb", "ridge", "lda", "random_forest", "late_fusion", "self_training", "poisson")  # not in README.md
METHOD_WORDS = {
    "cmvmed": "**`CMVMED()`**",
    "start": "start: mean of the views' `MED`, labels only",
    "lr": "logistic regression, labels only",
    "lda": "linear discriminant analysis, shrunk, labels only",
    "extra_trees": "extra trees, labels only",
    "random_forest": "random forest, labels only",
    "tabpfn": "TabPFN v1, labels only",
    "label_spreading": "`LabelSpreading`",
    "poisson": "Poisson learning",
    "autogluon": "AutoGluon 1.6, labels only",
    "imml": "iMML 0.6, MOFA factors and logistic regression",
    "best peer per cell": "the best other method of each case, known only afterwards",
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


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split("|")]


def coverage_sentence(text: str) -> str:
    """How often prediction sets hold, from the output of ``benchmarks.prediction_sets``."""
    rows = [_cells(line) for line in text.splitlines() if "| CMVMED |" in line]
    shares = [float(cell.split()[0]) for row in rows for cell in row[3:5]]
    return wrapped_paragraph(
        f"In {len(rows)} settings with 20 labels and α = 0.1, sets hold the true class of {min(shares):.0f} to "
        f"{max(shares):.0f} % of the rows, on average over draws of labels."
    )


def calibration_sentence(text: str) -> str:
    """How far off estimates and probabilities are, from the output of ``benchmarks.calibration``."""
    head, _, *rows = (_cells(line) for line in text.strip().splitlines() if line.startswith("|"))
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    held, fits = (sum(int(cell.split(" of ")[i]) for cell in columns["intervals that hold"]) for i in (0, 1))
    errors = sorted(100 * float(cell) for cell in columns["its error"])
    calibration = sorted(map(float, columns["calibrated"]))
    return wrapped_paragraph(
        f"The 90 % interval held in {held} of {fits} fits to {len(rows)} tasks. By task, the estimate was off by "
        f"{errors[0]:.0f} to {errors[-1]:.0f} points (root mean square), and the calibration error was "
        f"{calibration[0]:.3f} to {calibration[-1]:.3f}."
    )


def mean_rows(text: str) -> str:
    """The first table of a text, of its rows the means alone."""
    table = text[text.index("| set |") :].split("\n\n")[0].splitlines()
    means = [line.removeprefix("| mean ") for line in table if line.startswith("| mean |")]
    return "\n".join([table[0].removeprefix("| set "), table[1].removeprefix("| --- "), *means])


def fault_sentence(text: str) -> str:
    """How often planted faults are found, from the output of ``benchmarks.sensor_health``."""
    lines = text.split("\n\n")[0].strip().splitlines()
    mean = dict(zip(_cells(lines[0]), _cells(lines[-1]), strict=True))
    return wrapped_paragraph(
        f"On average over {len(lines) - 3} data sets, {mean['found %']} % of the faults are found. Another view raises an "
        f"alarm in {mean['others %']} % of the faulty batches. Of healthy batches {mean['false alarms %']} % raise an alarm, "
        f"and {mean['other class shares %']} % of those with other class shares."
    )


def wrapped_paragraph(text: str) -> str:
    """A paragraph in lines of at most 120 characters."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def section(text: str, heading: str) -> str:
    """What follows a heading of the third level, up to the next one."""
    return text.split(f"### {heading}\n")[1].split("\n### ")[0].strip()


def suite_table(text: str, columns: Sequence[str] = SUITE_COLUMNS, heading: str = "All draws") -> str:
    """Some columns of the table with a heading, from the output of ``benchmarks.suite``."""
    return table_columns(text.split(f"### {heading}\n")[1].strip().split("\n\n")[0], columns)


def table_columns(text: str, columns: Sequence[str]) -> str:
    """Some columns of the lines of a table; text without a table stays."""
    lines = text.strip().splitlines()
    rows = [_cells(line) for line in lines if line.startswith("|")]
    shown = [i for column in columns for i in _positions(rows[0], column)]
    kept = iter(f"| {' | '.join(row[i] for i in shown)} |" for row in rows)
    return "\n".join(next(kept) if line.startswith("|") else line for line in lines)


def without_deviations(text: str) -> str:
    """Means alone, of cells with their standard deviations."""
    return re.sub(r" ± [\d.]+", "", text)


def _positions(head: Sequence[str], column: str) -> list[int]:
    """Where a column is, or the columns that it is divided into: of sensors and other sets, or of a number of labels."""
    found = [i for i, name in enumerate(head) if name == column or name.startswith((f"{column}: ", f"{column}, "))]
    if not found:
        raise ValueError(f"the table has no column {column!r}")
    return found


def headline_table(text: str) -> str:
    """The table of README.md: mean accuracy on held-out rows of sensors and of other sets."""
    rows = [_cells(line) for line in suite_table(text, ["method", "held out %"]).splitlines()[2:]]
    named = [[METHOD_WORDS.get(method, method), *cells] for method, *cells in rows if method not in DETAILS]
    lines = [["held-out rows, %", "sensors", "others"], ["---"] * 3, *named]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def named_peers_table(text: str) -> str:
    """Accuracy on held-out rows by method and set, from the output of ``benchmarks.suite``; the best of a set is bold."""
    lines: dict[str, list[str]] = {}
    for kind in ("sensors", "others"):
        head, _, *sets = section(text, f"By set: {kind}, held out rows").split("\n\n")[0].splitlines()
        columns = zip(*([cell.strip() for cell in line.strip("| ").split("|")] for line in [head, *sets]), strict=True)
        for name, *cells in columns:
            lines.setdefault(name, []).extend(cells)
    del lines["best peer per cell"]
    return markdown([["method" if name == "set" else METHOD_WORDS[name], *cells] for name, cells in lines.items()])


def variants_table(text: str) -> str:
    """Accuracy of every variant, from the output of ``benchmarks.suite``."""
    lines = suite_table(text, ["method", "unlabeled %"]).splitlines()
    return "\n".join(line for line in lines if not line.startswith(tuple(f"| {name} |" for name in VARIANTS_ELSEWHERE)))


def main_methods(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """The grid of ``accuracy_grid`` without deviations, second kernels, methods of docs/reproduction.md and weak ones."""
    elsewhere = (SVM_2K, MV_MED, CMV_MED_PRINTED, IN_THE_PAPER, "SVC, labels only", "co-training (LR)")
    kernels = tuple(f"({kernel})" for kernel in KERNELS)
    kept = [line for line in lines if line[0] not in elsewhere and not line[0].endswith(kernels)]
    return [[cell.split(" ±")[0] for i, cell in enumerate(line) if i != 1] for line in kept]


def groups_that_differ(text: str) -> str:
    """Lines of ``benchmarks.new_groups`` for some persons that differ and for real data."""
    head, rule, *rows = text.strip().splitlines()
    persons = tuple(f"| {line}" for line in GROUP_LINES)
    kept = [row for row in rows if (row.startswith(persons) and ", differ |" in row) or "per class" in row]
    return table_columns("\n".join([head, rule, *kept]), GROUP_COLUMNS)


def ingredients(text: str) -> str:
    """What each ingredient changes, over all data sets of ``benchmarks.from_paper``."""
    return table_columns(text, ["ingredient", "mean"])


def faults_table() -> str:
    """Outcomes of ``benchmarks.faults`` by campaign."""
    return table_columns(table(read_records(RESULTS / "faults.json")).split("\n\n")[0], FAULT_COLUMNS)


def speed_table(text: str) -> str:
    """The table of ``benchmarks.speed`` without names, goals, commits, and what few wait for."""
    elsewhere = tuple(f"| {name} |" for name in SPEED_ELSEWHERE)
    return table_columns("\n".join(x for x in text.splitlines() if not x.startswith(elsewhere)), SPEED_COLUMNS)


def label_ratios(text: str) -> str:
    """Labels by ``suggest`` and by margins for each random one, from the output of ``benchmarks.active_learning``."""
    cells = [["judged on", "suggest, 25% of the labels", "50%", "100%", "margin, 100%"], ["---"] * 5]
    for heading in ("Held-out rows", "Unlabeled rows"):
        *_, margin, suggest, quarter, half = (
            cell.strip() for cell in section(text, heading).splitlines()[-1].strip("| ").split("|")
        )
        cells.append([heading.lower(), quarter, half, suggest, margin])
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def onnx_sentences(text: str) -> str:
    """ONNX models beside the library on rows with missing views and cells, from the output of ``benchmarks.onnx``."""
    head, _, *lines = map(_cells, text.strip().splitlines())
    rows = [row for row in (dict(zip(head, line, strict=True)) for line in lines) if row["missing"] == "yes"]
    low_high = {
        name: "{:g} to {:g}".format(*(pick(float(row[name]) for row in rows) for pick in (min, max)))
        for name in ("MB", "one row ms", "library ms")
    }
    return wrapped_paragraph(
        f"{len(rows)} default models predict 10,000 rows with 20 % of the views and 2 % of the cells missing. "
        f"{max(int(row['other class']) for row in rows)} rows get a class other than the library's, and probabilities of the "
        f"same numbers differ by at most {max(float(row['largest difference']) for row in rows):g}. Files have "
        f"{low_high['MB']} MB. One row takes {low_high['one row ms']} ms, in the library {low_high['library ms']} ms."
    )


def size_sentences(text: str) -> str:
    """How large model files are, from the output of ``benchmarks.model_files``."""
    head, _, *lines = map(_cells, text.strip().splitlines())
    *rows, compact = (dict(zip(head, line, strict=True)) for line in lines)
    files, loads = ([float(row[name]) for row in rows] for name in ("model file MB", "load s"))
    return wrapped_paragraph(
        f"Files of two views of 2000 rows have {min(files):g} to {max(files):g} MB and load in {min(loads):g} to "
        f"{max(loads):g} s. A compact file has {compact['model file MB']} MB and gives "
        f"{compact['same class on new rows %']} % of new rows the same class."
    )


def interval_table(text: str) -> str:
    """How often the intervals of the accuracy hold, from the output of ``benchmarks.active_learning``."""
    rows = [_cells(line)[:5] for line in section(text, INTERVALS).splitlines()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def fill_reproduction() -> None:
    """Write Table 1, Figure 2 and the paper's claims to docs/reproduction.md and to files beside the experiments' results."""
    rows = read_results(RESULTS / "reproduction.csv")
    of_table = [row for row in rows if row.spec == "table1"]
    of_figure = [row for row in rows if row.spec == "figure2"]
    page = ROOT / "docs" / "reproduction.md"
    first = (RESULTS / "reproduction.csv").read_text().partition("\n")[0]
    claims = [compared_claims(of_table, table_claims), compared_claims(of_figure, curve_claims)]
    _write(RESULTS / "claims.md", "\n\n".join([first, *map(claim_tables, claims)]) + "\n")
    fill(page, "claims", claim_counts(claims))
    if of_table:
        _write(RESULTS / "table1.txt", f"{first}\n\n{format_tables(of_table)}\n")
        fill(page, "table1", paper_table(of_table, "tuned"))
    if of_figure:
        for name, figure in figures(of_figure).items():
            _write(ROOT / "docs" / name, figure)
        fill(page, "figure2", "\n\n".join(map(wrapped_paragraph, figure_text(of_figure))))


def fill_from_results() -> None:
    """Write the tables that the benchmarks print in their final form."""
    measured = body(RESULTS / "accuracy.md")
    fill(ROOT / "README.md", "suite", headline_table(body(RESULTS / "suite.md")))
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        fill(page, "python_lines", body(RESULTS / "python_lines.md"))
    page = ROOT / "docs" / "accuracy.md"
    texts: Mapping[str, str] = {
        "accuracy": markdown(main_methods(accuracy_grid(measured))),
        "calibration": calibration_sentence(body(RESULTS / "calibration.md")),
        "draws": without_deviations(body(RESULTS / "label_draws.md")),
        "new_groups": groups_that_differ(body(RESULTS / "new_groups.md")),
        "suite_ablation": variants_table(body(RESULTS / "suite_ablation.md")),
        "suite": suite_table(body(RESULTS / "suite.md")),
    }
    for mark, text in texts.items():
        fill(page, mark, text)
    fill(ROOT / "docs" / "reproduction.md", "from_paper", ingredients(body(RESULTS / "from_paper.md")))
    raw_recordings = mean_rows(body(RESULTS / "raw_recordings.md"))
    fill(ROOT / "docs" / "features.md", "raw_recordings", raw_recordings)
    fill(ROOT / "docs" / "inspection.md", "sensor_health", fault_sentence(body(RESULTS / "sensor_health.md")))
    coverage = coverage_sentence(body(RESULTS / "prediction_sets.md"))
    fill(ROOT / "docs" / "inspection.md", "prediction_sets", coverage)
    fill(ROOT / "docs" / "model_file.md", "sizes", size_sentences(body(RESULTS / "model_files.md")))
    walkthrough = f"```text\n{body(RESULTS / 'walkthrough.txt').strip()}\n```"
    fill(ROOT / "docs" / "guides" / "sensor_table.md", "walkthrough", walkthrough)
    fill(ROOT / "docs" / "robustness.md", "faults", faults_table())
    fill(ROOT / "docs" / "scaling.md", "speed", speed_table(body(RESULTS / "speed.md")))
    fill(ROOT / "docs" / "onnx.md", "onnx", onnx_sentences(body(RESULTS / "onnx.md")))
    fill(ROOT / "docs" / "comparison.md", "comparison", comparison.table())
    named = body(RESULTS / "suite_named_peers.md")
    fill(ROOT / "docs" / "comparison.md", "named_peers", named_peers_table(named))
    labeling = body(RESULTS / "active_learning.md")
    fill(ROOT / "docs" / "labeling.md", "active_runs", labeling.split("###")[0])
    fill(ROOT / "docs" / "labeling.md", "active_ratios", label_ratios(labeling))
    random_rows = body(RESULTS / "random_rows.md")
    fill(ROOT / "docs" / "labeling.md", "random_runs", random_rows.split("###")[0])
    fill(ROOT / "docs" / "labeling.md", "random_intervals", interval_table(random_rows))


def check(paths: Sequence[Path]) -> int:
    """Print which files are without a heading, and which are older than the code; 1 if one has no heading."""
    for line in outdated(paths):
        print(f"Older than the code: {line}")
    without = missing(paths)
    for name in without:
        print(f"Without commit, date and command: {name}")
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
