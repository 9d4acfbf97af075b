"""Results of ``python -m experiments`` as a small text file, and the text and figures that docs/reproduction.md shows of them.

``benchmarks/results/reproduction.csv`` has one line for each experiment, data set, number of labels, protocol and
method: its kernel, the number of correctly classified test rows of every split, in the order of the splits (``-`` if a
split is not finished), and the balanced accuracy in hundredths of a percent. The lines of the method "majority class"
are the numbers of test rows of the largest class.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.methods import MAJORITY_CLASS
from experiments.report.claims import Claim
from experiments.report.curves import BAND_CONFIDENCE, MIN_BAND_SPLITS, CurvePanel, curve_panels, figure_file
from experiments.report.grouping import dataset_title, with_score
from experiments.report.page import versions
from experiments.result_rows import ResultRow

COLUMNS = [
    "experiment",
    "dataset",
    "n_labeled",
    "protocol",
    "method",
    "kernel",
    "n_train",
    "n_test",
    "correct",
    "balanced",
]
MISSING = "-"
BALANCED_UNIT = 10_000

Line = tuple[str, str, int, str, str]  # experiment, data set, number of labels, protocol, method


def write_results(path: Path, rows: Sequence[ResultRow]) -> None:
    """Write finished rows; lines of experiments that are not among them are kept."""
    experiments = {row.spec for row in rows}
    kept = [row for row in read_results(path) if row.spec not in experiments] if path.exists() else []
    finished = with_score([*kept, *rows], "accuracy")
    correct: dict[Line, dict[int, int]] = {}
    balanced: dict[Line, dict[int, int]] = {}
    kernels: dict[Line, str] = {}
    sizes: dict[tuple[str, str], tuple[int, int]] = {}
    for row in finished:
        if row.accuracy is None or row.majority_rate is None or row.n_train is None or row.n_test is None:
            continue  # not finished
        n_train, n_test = row.n_train, row.n_test
        if sizes.setdefault((row.spec, row.dataset), (n_train, n_test)) != (n_train, n_test):
            raise ValueError(f"The splits of {row.dataset} have different numbers of rows.")
        where = (row.spec, row.dataset, row.n_labeled, row.protocol)
        correct.setdefault((*where, row.method), {})[row.split] = round(row.accuracy * n_test)
        kernels[(*where, row.method)] = row.kernel
        if row.balanced_accuracy is not None:
            balanced.setdefault((*where, row.method), {})[row.split] = round(row.balanced_accuracy * BALANCED_UNIT)
        correct.setdefault((*where, MAJORITY_CLASS), {})[row.split] = round(row.majority_rate * n_test)
    with path.open("w", newline="") as file:
        file.write("# python -m benchmarks.pages --reproduction FILE, of python -m experiments all --results FILE\n")
        file.write(f"# {versions(finished)}\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for line, splits in sorted(correct.items()):
            table.writerow(
                [*line, kernels.get(line, ""), *sizes[line[:2]], _joined(splits), _joined(balanced.get(line, {}))]
            )


def _joined(splits: dict[int, int]) -> str:
    return " ".join(str(splits.get(k, MISSING)) for k in range(max(splits, default=-1) + 1))


def read_results(path: Path) -> list[ResultRow]:
    """The rows of the file, with accuracy, balanced accuracy and majority rate as their only scores."""
    text = path.read_text().splitlines()
    found = dict(re.findall(r"([\w-]+) ([\w.]+)(?:,|$)", text[1].removeprefix("# ")))
    lines = list(csv.DictReader(line for line in text if not line.startswith("#")))
    majority = {_where(line): line["correct"].split() for line in lines if line["method"] == MAJORITY_CLASS}
    rows = []
    for line in lines:
        if line["method"] == MAJORITY_CLASS:
            continue
        n_test = int(line["n_test"])
        balanced = line["balanced"].split()
        for split, count in enumerate(line["correct"].split()):
            if count != MISSING:
                rows.append(
                    ResultRow(
                        *_where(line)[:3],
                        split=split,
                        method=line["method"],
                        protocol=line["protocol"],
                        status="done",
                        versions=found,
                        settings={"kernel": line["kernel"]},
                        accuracy=int(count) / n_test,
                        balanced_accuracy=int(balanced[split]) / BALANCED_UNIT if balanced else None,
                        majority_rate=int(majority[_where(line)][split]) / n_test,
                        n_train=int(line["n_train"]),
                        n_test=n_test,
                    )
                )
    return rows


def _where(line: dict[str, str]) -> tuple[str, str, int, str]:
    return line["experiment"], line["dataset"], int(line["n_labeled"]), line["protocol"]


def figures(rows: Sequence[ResultRow]) -> dict[str, str]:
    """Figure 2 by file name: an SVG file for each data set, the protocols side by side."""
    return {
        f"figure2-{dataset}.svg": figure_file(
            f"Accuracy against the number of labels, {dataset_title(dataset)}",
            [(panel.title, panel.figure) for panel in panels],
        )
        for dataset, panels in _by_dataset(curve_panels(rows)).items()
    }


def _by_dataset(panels: Iterable[CurvePanel]) -> dict[str, list[CurvePanel]]:
    groups: dict[str, list[CurvePanel]] = {}
    for panel in panels:
        groups.setdefault(panel.dataset, []).append(panel)
    return groups


def figure_text(rows: Sequence[ResultRow]) -> list[str]:
    """Paragraphs with the figures, and which curves fall."""
    counts = sorted({panel.facts for panel in curve_panels(rows)})
    paragraphs = [
        f"{' or '.join(counts)} of each data set; bands, from {MIN_BAND_SPLITS} splits on, are the "
        f"{100 * BAND_CONFIDENCE:.0f} % interval of the mean for other splits of the same rows. The paper's methods are in "
        "color, the others in gray."
    ]
    for dataset, panels in _by_dataset(curve_panels(rows)).items():
        paragraphs.append(f"![Accuracy against the number of labels, {dataset_title(dataset)}](figure2-{dataset}.svg)")
        paragraphs += [f"{panel.title}. {panel.falls or 'No mean falls.'}" for panel in panels]
    return paragraphs


def claim_list(claims: Iterable[Claim]) -> list[str]:
    """Items of a Markdown list: each claim with its verdicts, then every setting."""
    items = []
    for claim in claims:
        if claim.findings:
            items.append(f"- **{claim.text}** {claim.sentence}.")
            items += [f"  - {found.where}: **{found.verdict.label}**; {found.evidence}" for found in claim.findings]
    return items
