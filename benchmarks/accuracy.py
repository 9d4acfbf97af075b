"""Accuracy of CMV-MED with its defaults beside its peers: ``python -m benchmarks.accuracy``.

For every task and method: accuracy, balanced accuracy and AUC (one-vs-rest mean for more classes) in percent, mean ± SD over the
splits; expected calibration error over the test rows of all splits together; seconds per fit and prediction. Then CMV-MED
against each other method by paired tests over the splits. No method is tuned; none sees a test label. Tasks with their
split rule, methods, scoring and tests are those of ``cmvmed.experiments``. Data files are looked up as ``cmvmed.datasets``
does (``CMVMED_DATA``); a task whose file is absent is named and left out.
"""

import argparse

import numpy as np
from joblib import Parallel, delayed

from cmvmed.datasets import DatasetError
from cmvmed.experiments.comparison import compare_with_rivals
from cmvmed.experiments.evaluation import evaluate
from cmvmed.experiments.methods import EACH_VIEW, METHODS, methods_for
from cmvmed.experiments.paper import paper_figure
from cmvmed.experiments.rows import Key, ResultRow
from cmvmed.experiments.scoring import calibration_error
from cmvmed.experiments.tasks import TASKS, Task, draw

REFERENCE = "CMV-MED"


def rows_of_split(task: str, methods: list[str], number: int) -> list[ResultRow]:
    """One row per method that applies, all on the same split."""
    split = draw(TASKS[task], number)
    chosen = methods_for(methods, list(split.views))
    n_labeled = TASKS[task].n_labeled
    return [evaluate(Key("accuracy", task, n_labeled, number, m.name, "defaults"), m, split) for m in chosen]


def score_table(task: Task, rows: list[ResultRow], methods: list[str]) -> str:
    lines = ["| method | accuracy | balanced | AUC | calibration error | s |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [f"| {m} | {summary([row for row in rows if row.method == m])} |" for m in methods]
    paper = paper_figure(task.name, task.n_labeled, REFERENCE)
    if paper:
        lines.append(f"| CMV-MED in the paper | {paper.mean} ± {paper.deviation} | – | – | – | – |")
    return "\n".join(lines)


def summary(rows: list[ResultRow]) -> str:
    """The cells of one method; a dash for what does not apply, and a word if a split failed."""
    failed = [row for row in rows if row.status == "failed"]
    if failed:
        return f"{len(failed)} of {len(rows)} splits failed: {failed[0].error} | – | – | – | –"
    if not rows:
        return " | ".join(["–"] * 5)
    figures = [percent([getattr(row, name) for row in rows]) for name in ("accuracy", "balanced_accuracy", "auc")]
    soft = all(row.calibration_error is not None for row in rows)
    error = f"{calibration_error(row.reliability for row in rows):.3f}" if soft else "–"
    seconds = np.mean([row.fit_seconds + row.predict_seconds for row in rows])
    return " | ".join([*figures, error, f"{seconds:.2f}"])


def percent(values: list[float | None]) -> str:
    if None in values:
        return "–"
    return f"{100.0 * np.mean(values):.1f} ± {100.0 * np.std(values, ddof=1):.1f}"


def paired_table(rows: list[ResultRow]) -> str:
    """CMV-MED minus each other method in points of accuracy, strongest rival first; p-values adjusted by Holm's method."""
    lines = [
        "| CMV-MED against | difference | 95 % interval | Wilcoxon p | corrected t p | wins, ties, losses |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for comparison in compare_with_rivals(rows, REFERENCE):
        paired = comparison.paired
        low, high = (100.0 * end for end in paired.interval)
        cells = [
            comparison.rival,
            f"{100.0 * paired.mean_difference:+.1f}",
            f"{low:+.1f} to {high:+.1f}",
            f"{comparison.wilcoxon_holm:.2g}",
            f"{comparison.corrected_t_holm:.2g}",
            f"{paired.wins}, {paired.ties}, {paired.losses}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def report(name: str, methods: list[str], numbers: range, parallel: Parallel) -> None:
    from benchmarks.accuracy import rows_of_split  # by its full name, so that worker processes find it

    task = TASKS[name]
    try:
        views = list(task.load().views)
    except (DatasetError, ImportError) as error:
        print(f"\n### {name}: left out. {error}", flush=True)
        return
    numbers = numbers if task.n_published is None else numbers[: max(0, task.n_published - numbers.start)]
    by_split = parallel(delayed(rows_of_split)(name, methods, number) for number in numbers)
    rows = [row for part in by_split for row in part]
    single_views = [m.name for m in methods_for([EACH_VIEW], views)] if EACH_VIEW in methods else []
    names = [*single_views, *(m for m in methods if m != EACH_VIEW)]
    print(f"\n### {name}: {task.n_labeled} labels, {task.n_unlabeled} unlabelled, {len(numbers)} splits\n")
    print(score_table(task, rows, names), flush=True)
    if REFERENCE in methods and len(methods) > 1 and len(numbers) > 1:
        print(f"\n{paired_table(rows)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=[EACH_VIEW, *METHODS], default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    for method in arguments.methods:
        if method in METHODS and (reason := METHODS[method].missing_package()):
            parser.error(reason)
    numbers = range(arguments.first, arguments.first + arguments.splits)
    with Parallel(arguments.jobs) as parallel:
        for name in arguments.tasks:
            report(name, arguments.methods, numbers, parallel)


if __name__ == "__main__":
    main()
