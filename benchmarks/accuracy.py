"""Accuracy of CMV-MED and the baselines with default parameters: ``python -m benchmarks.accuracy``.

For every task and method: accuracy, balanced accuracy and AUC (one-vs-rest mean for more than two classes) in percent,
mean ± SD over the splits; expected calibration error over the test rows of all splits; seconds per fit and prediction.
Then paired tests of CMV-MED and each baseline over the splits. No method is tuned; with ``--protocol shares`` every
method has its threshold at the class shares of the labels. The majority class is the largest class of the test rows.
Tasks, splits, methods, scores and tests are those of ``experiments``. Data files are found as by
``cmvmed.datasets`` (``CMVMED_DATA``); tasks without data are reported and skipped. Rows are written to a file when they
are finished, so that an interrupted run can be continued.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from benchmarks.provenance import heading
from experiments.comparison import compare_with_baselines
from experiments.experiment import Cell, Experiment, paper_result
from experiments.methods import ALL_METHODS, MAJORITY_CLASS, METHODS
from experiments.result_rows import ResultRow
from experiments.runner import local_executor, plan, run
from experiments.scores import calibration_error
from experiments.store import ResultStore
from experiments.tasks import TASKS, Task

REFERENCE = "CMV-MED"
IN_THE_PAPER = "CMV-MED in the paper"


def score_table(task: Task, rows: list[ResultRow], methods: list[str]) -> str:
    lines = ["| method | kernel | accuracy | balanced | AUC | calibration error | s |", f"|{' --- |' * 7}"]
    rates = {row.split: row.majority_rate for row in rows if row.majority_rate is not None}
    lines.append(f"| {MAJORITY_CLASS} | – | {percent(list(rates.values()))} | – | – | – | – |")
    for method in methods:
        members = [row for row in rows if row.method == method]
        kernel = max(row.kernel for row in members) or "–"  # failed rows do not have it
        lines.append(f"| {method} | {kernel} | {summary(members, n_splits=len({row.split for row in rows}))} |")
    paper = paper_result(task.name, task.n_labeled, REFERENCE)
    if paper:
        lines.append(f"| {IN_THE_PAPER} | rbf | {paper.mean} ± {paper.deviation} | – | – | – | – |")
    return "\n".join(lines)


def summary(rows: list[ResultRow], n_splits: int) -> str:
    """The cells of one method; a dash for scores that are not defined, and a note if splits failed or are missing."""
    failed = [row for row in rows if row.status == "failed"]
    if failed:
        return f"{len(failed)} of {len(rows)} splits failed: {failed[0].error} | – | – | – | –"
    figures = [percent([getattr(row, name) for row in rows]) for name in ("accuracy", "balanced_accuracy", "auc")]
    if len(rows) < n_splits:
        figures[0] += f" ({len(rows)} splits)"
    has_probabilities = all(row.calibration_error is not None for row in rows)
    error = f"{calibration_error(row.reliability for row in rows):.3f}" if has_probabilities else "–"
    seconds = np.mean([row.fit_seconds + row.predict_seconds for row in rows])
    return " | ".join([*figures, error, f"{seconds:.2f}"])


def percent(values: list[float | None]) -> str:
    if None in values:
        return "–"
    return f"{100.0 * np.mean(values):.1f} ± {100.0 * np.std(values, ddof=1):.1f}"


def paired_table(rows: list[ResultRow]) -> str:
    """Differences of CMV-MED and each baseline in points of accuracy, strongest baseline first; p-values after Holm."""
    lines = [
        "| CMV-MED against | difference | 95 % interval | Wilcoxon p | corrected t p | wins, ties, losses |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for comparison in compare_with_baselines(rows, REFERENCE):
        paired = comparison.paired
        low, high = (100.0 * end for end in paired.interval)
        cells = [
            comparison.baseline,
            f"{100.0 * paired.mean_difference:+.1f}",
            f"{low:+.1f} to {high:+.1f}",
            f"{comparison.wilcoxon_holm:.2g}",
            f"{comparison.corrected_t_holm:.2g}",
            f"{paired.wins}, {paired.ties}, {paired.losses}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def report(task: Task, rows: list[ResultRow]) -> str:
    """Both tables of one task, methods in the order of ``METHODS``, single views before them."""
    found = {row.method for row in rows}
    methods = [*sorted(found - set(METHODS)), *(name for name in METHODS if name in found)]
    n_splits = len({row.split for row in rows})
    title = f"### {task.name}: {task.n_labeled} labels, {task.n_unlabeled} unlabeled, {n_splits} splits"
    parts = [title, score_table(task, rows, methods)]
    if REFERENCE in methods and len(methods) > 1 and n_splits > 1:
        parts.append(paired_table(rows))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=ALL_METHODS, default=list(METHODS), metavar="METHOD")
    parser.add_argument("--protocol", choices=("defaults", "shares"), default="defaults")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("accuracy.sqlite"), help="file of the result rows")
    parser.add_argument("--no-run", action="store_true", help="only print the tables of the existing rows")
    arguments = parser.parse_args()
    experiment = Experiment(
        name="accuracy",
        title="Accuracy without tuning",
        cells=tuple(Cell(name, TASKS[name].n_labeled) for name in arguments.tasks),
        methods=tuple(arguments.methods),
        protocols=(arguments.protocol,),
        n_splits=arguments.splits,
        first_split=arguments.first,
    )
    wanted = plan(experiment)
    for name, reason in (*wanted.missing_datasets.items(), *wanted.missing_methods.items()):
        print(f"{name}: skipped. {reason}", file=sys.stderr)
    with ResultStore(arguments.results) as store:
        if not arguments.no_run:
            run(wanted.methods, store, local_executor(arguments.jobs))
        rows = [row for row in store.rows("accuracy") if row.key in wanted.methods]
    by_task = {name: [row for row in rows if row.dataset == name] for name in arguments.tasks}
    print(heading(), end="\n\n")
    print("\n\n".join(report(TASKS[name], found) for name, found in by_task.items() if found))


if __name__ == "__main__":
    main()
