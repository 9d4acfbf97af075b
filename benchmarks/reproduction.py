"""Results of ``python -m experiments`` as a small text file, and the text and figures that docs/reproduction.md shows of them.

``benchmarks/results/reproduction.csv`` has one line for each experiment, data set, number of labels, protocol and
method: its kernel, the number of correctly classified test rows of every split, in the order of the splits (``-`` if a
split is not finished), the balanced accuracy in hundredths of a percent, and the commit of the code that was measured.
The lines of the method "majority class" are the numbers of test rows of the largest class.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.provenance import LINE, heading
from experiments.experiment import paper_result
from experiments.methods import (
    CMV_MED,
    CMV_MED_PAPER,
    CMV_MED_PAPER_SHARES,
    CMV_MED_PRINTED,
    MAJORITY_CLASS,
    MV_MED,
    SINGLE_VIEW_PREFIX,
    SVM_2K,
    with_kernel,
)
from experiments.report.claims import DIFFERENCE, Finding
from experiments.report.curves import BAND_CONFIDENCE, MIN_BAND_SPLITS, CurvePanel, curve_panels, figure_file
from experiments.report.grouping import (
    DATASET_TITLES,
    Summary,
    by_setting,
    dataset_title,
    summaries,
    summarize_values,
    with_score,
)
from experiments.report.page import versions
from experiments.report.versions import ComparedClaim
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
    "commit",
]
MISSING = "-"
VERDICT_SIGNS = {"yes": "✓", "partial": "(✓)", "no": "✗", "open": "○", "few": "…"}
PAGE_METHODS = {  # lines of Table 1 on the page, and their methods by data set
    "MED, first view": [f"{SINGLE_VIEW_PREFIX}{view}" for view in ("sensor1", "acoustic", "page", "image")],
    "MED, second view": [f"{SINGLE_VIEW_PREFIX}{view}" for view in ("sensor2", "seismic", "link", "context")],
    **{name: [name] for name in (SVM_2K, MV_MED, CMV_MED_PRINTED, CMV_MED_PAPER, CMV_MED_PAPER_SHARES)},
    "CMV-MED, our default, rbf": [with_kernel(CMV_MED, "rbf")],
    "CMV-MED, our default": [CMV_MED],
}
BALANCED_UNIT = 10_000

Line = tuple[str, str, int, str, str]  # experiment, data set, number of labels, protocol, method


def write_results(path: Path, rows: Sequence[ResultRow]) -> None:
    """Write finished rows; lines of the file that they do not replace are kept."""
    new = {_line(row) for row in rows}
    kept = [row for row in read_results(path) if _line(row) not in new] if path.exists() else []
    finished = with_score([*kept, *complete_splits(rows)], "accuracy")
    correct: dict[Line, dict[int, int]] = {}
    balanced: dict[Line, dict[int, int]] = {}
    known: dict[Line, tuple[str, str]] = {}  # kernel and commit
    sizes: dict[tuple[str, str], tuple[int, int]] = {}
    for row in finished:
        if row.accuracy is None or row.majority_rate is None or row.n_train is None or row.n_test is None:
            continue  # not finished
        n_train, n_test, line = row.n_train, row.n_test, _line(row)
        if sizes.setdefault((row.spec, row.dataset), (n_train, n_test)) != (n_train, n_test):
            raise ValueError(f"The splits of {row.dataset} have different numbers of rows.")
        correct.setdefault(line, {})[row.split] = round(row.accuracy * n_test)
        known[line] = row.kernel, row.versions.get("commit", "")
        if row.balanced_accuracy is not None:
            balanced.setdefault(line, {})[row.split] = round(row.balanced_accuracy * BALANCED_UNIT)
        correct.setdefault((*line[:-1], MAJORITY_CLASS), {})[row.split] = round(row.majority_rate * n_test)
    with path.open("w", newline="") as file:
        command = "python -m benchmarks.pages --reproduction FILE, of python -m experiments all --results FILE"
        file.write(f"{heading(command)}\n# {versions([_without_commit(row) for row in finished])}\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for line, splits in sorted(correct.items()):
            kernel, commit = known.get(line, ("", ""))
            scores = _joined(splits), _joined(balanced.get(line, {}))
            table.writerow([*line, kernel, *sizes[line[:2]], *scores, commit])


def _line(row: ResultRow) -> Line:
    return row.spec, row.dataset, row.n_labeled, row.protocol, row.method


def _without_commit(row: ResultRow) -> ResultRow:
    return replace(row, versions={name: version for name, version in row.versions.items() if name != "commit"})


def complete_splits(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows of splits that all methods of their setting have finished: those of a stopped run without its last split."""
    found: dict[tuple[str, str, int, str], dict[str, set[int]]] = {}
    for row in with_score(rows, "accuracy"):
        found.setdefault(_line(row)[:-1], {}).setdefault(row.method, set()).add(row.split)
    common = {where: set.intersection(*by_method.values()) for where, by_method in found.items()}
    return [row for row in rows if row.split in common.get(_line(row)[:-1], ())]


def _joined(splits: dict[int, int]) -> str:
    return " ".join(str(splits.get(k, MISSING)) for k in range(max(splits, default=-1) + 1))


def read_results(path: Path) -> list[ResultRow]:
    """The rows of the file, with accuracy, balanced accuracy and majority rate as their only scores."""
    text = path.read_text().splitlines()
    found = dict(re.findall(r"([\w-]+) ([\w.]+(?: and [\w.]+)*)(?:,|$)", text[1].removeprefix("# ")))
    whole = LINE.fullmatch(text[0])  # of lines that do not name a commit of their own
    found |= {"commit": whole["commit"]} if whole else {}
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
                        versions=found | ({"commit": line["commit"]} if line.get("commit") else {}),
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
    counts = sorted({f"{panel.protocol}: {panel.facts}" for panel in curve_panels(rows)})
    paragraphs = [
        f"{'; '.join(counts)} of each data set. Bands, from {MIN_BAND_SPLITS} splits on, are the {100 * BAND_CONFIDENCE:.0f} % "
        "interval of the mean for other splits of the same rows. The paper's method is yellow, solid as completed and dotted "
        "as printed, our default blue; the paper's baselines have colors of their own, all others are gray."
    ]
    for dataset in _by_dataset(curve_panels(rows)):
        paragraphs.append(f"![Accuracy against the number of labels, {dataset_title(dataset)}](figure2-{dataset}.svg)")
    return paragraphs


def paper_table(rows: Sequence[ResultRow], protocol: str) -> str:
    """Table 1 under a protocol with the paper's methods and our default, in Markdown; the paper's results in brackets."""
    columns = {s.dataset: members for s, members in by_setting(rows, "table1").items() if s.protocol == protocol}
    head = ["", *(f"{dataset}, {members[0].n_labeled} labels" for dataset, members in columns.items())]
    lines = {
        MAJORITY_CLASS: [_percent(summarize_values(row.majority_rate for row in group)) for group in columns.values()]
    }
    for title, names in PAGE_METHODS.items():
        cells = [_paper_cell(dataset, group, names) for dataset, group in columns.items()]
        if set(cells) != {"–"}:
            lines[title] = cells
    return _table([head, *([title, *cells] for title, cells in lines.items())])


def _paper_cell(dataset: str, members: Sequence[ResultRow], names: Sequence[str]) -> str:
    found = summaries(members, "accuracy")
    method = next((name for name in names if name in found), None)
    if method is None:
        return "–"
    paper = paper_result(dataset, members[0].n_labeled, method)
    return _percent(found[method]) + (f" [{paper.mean} ± {paper.deviation}]" if paper else "")


def _percent(summary: Summary) -> str:
    return f"{100 * summary.mean:.1f} ± {100 * (summary.deviation or 0.0):.1f}"


def claim_tables(claims: Sequence[ComparedClaim]) -> str:
    """A Markdown table for each claim: a line for each setting, a column for each version, numbers with signs of verdicts."""
    parts = []
    for compared, lines in _shown(claims):
        head = [compared.claim.effect, *compared.versions]
        cells = [[_short(where), *(_verdict_cell(compared, finding) for finding in found)] for where, found in lines]
        parts.append(f"**{compared.claim.text}**\n\n{_table([head, *cells])}")
    return "\n\n".join(parts)


def claim_counts(groups: Iterable[Sequence[ComparedClaim]]) -> str:
    """One Markdown table of all claims, a line for each protocol: how many data sets have which verdict."""
    shown = [found for claims in groups for found in _shown(claims)]
    head = ["claim, protocol", *(shown[0][0].versions if shown else ())]
    cells = []
    for compared, lines in shown:
        for protocol in dict.fromkeys(_protocol(where) for where, _ in lines):
            columns = zip(*(found for where, found in lines if _protocol(where) == protocol), strict=True)
            cells.append([f"{compared.claim.text.rstrip('.')}, {protocol}", *map(_tally, columns)])
    return _table([head, *cells])


def _shown(claims: Sequence[ComparedClaim]) -> list[tuple[ComparedClaim, list[tuple[str, list[Finding | None]]]]]:
    """Claims with their settings of the paper's protocol, or of the default parameters if there are too few splits of it.

    Differences between methods also with all thresholds at the labels' shares.
    """
    kinds = {
        (_protocol(where), finding.verdict.kind)
        for compared in claims
        for where, found in compared.lines
        for finding in found
        if finding is not None
    }
    is_decided = any(protocol == "tuned" and kind != "few" for protocol, kind in kinds)
    main = "tuned" if is_decided else "defaults"
    parts = []
    for compared in claims:
        protocols = (main, "shares") if compared.claim.effect == DIFFERENCE else (main,)
        lines = [line for line in compared.lines if _protocol(line[0]) in protocols]
        if lines:
            parts.append((compared, lines))
    return parts


def _protocol(where: str) -> str:
    return where.rpartition(", ")[2]


def _tally(findings: Iterable[Finding | None]) -> str:
    """How often each verdict was found, such as "1 ✓, 3 ○"."""
    kinds = [finding.verdict.kind for finding in findings if finding is not None]
    return ", ".join(f"{kinds.count(kind)} {sign}" for kind, sign in VERDICT_SIGNS.items() if kind in kinds) or "–"


def _table(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = lines
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rest])


def _short(where: str) -> str:
    """Data set and protocol of a setting."""
    title = where.split(",")[0].split(" (")[0]
    return f"{next(name for name, known in DATASET_TITLES.items() if known == title)}, {_protocol(where)}"


def _verdict_cell(compared: ComparedClaim, finding: Finding | None) -> str:
    if finding is None:
        return "–"
    return f"{compared.claim.format_effect(finding.effect)} {VERDICT_SIGNS[finding.verdict.kind]}"
