"""How many labels ``suggest`` saves: ``python -m benchmarks.active_learning``.

A user who labels rows, ten at a time and starting with none, is simulated on the data sets of the suite. The rows are
chosen

- "suggest": first by ``suggest_first``, then by ``CMVMED.suggest``, without random rows;
- "mixed": the same with every fifth row at random, as is the default;
- "random": at random, three draws;
- "margin": ten at random, then those with the smallest margin by a logistic regression of all views together.

The classifier is always CMVMED, which is told which rows are random. More rows are labeled
until there are two classes, without which nothing can be fitted; nothing is done to find the others, and a class
without labels is not predicted. Accuracies on held-out rows are means over the splits, and rise with the number of
labels by isotonic regression. The table has the labels with which each way reaches the accuracy of so many random
labels; one that does not reach it with the most labels counts as if it did with the last. The most labels are 100, or
half of the training rows if these are fewer.

A further table has what is known of the result with all labels: how often the intervals of the accuracy hold on the
unlabeled rows, that of the model itself and that of the random rows, how wide they are, and the labels at which half of the
width is 5 points, if it falls with the root of their number; and the error of the class shares.

Results are kept in a file of JSON lines, so that a run that was stopped goes on where it was. Splits from 1000 on are
for development.
"""

import argparse
import json
import sys
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from benchmarks.suite.markdown import markdown
from benchmarks.suite.sets import LOADERS, DataSet, load
from benchmarks.suite.splits import draw_rows
from cmvmed import CMVMED, suggest_first
from experiments.baseline_pipelines import LabeledOnlyClassifier, concatenated_views
from experiments.datasets import DatasetError

BATCH, MOST = 10, 100
PARTS = (0.25, 0.5, 1.0)  # of the most labels; as many random ones are to be matched
REPEATS = {"suggest": 1, "mixed": 1, "random": 3, "margin": 1}
INTERVALS = "Intervals and class shares with all labels"  # heading
HALF_WIDTH = 0.05  # of an interval of the accuracy that is narrow enough


@dataclass(frozen=True)
class Task:
    """Training rows, whose classes can be asked for, and held-out rows."""

    X: Any
    truth: Any
    X_test: Any
    y_test: Any
    views: dict[str, slice]
    seed: tuple[int, int]

    @property
    def most(self) -> int:
        """The most labels."""
        return min(MOST, self.truth.size // 2)

    @property
    def targets(self) -> list[int]:
        """Numbers of random labels that are to be matched."""
        return [max(BATCH, round(part * self.most)) for part in PARTS]


@dataclass(frozen=True)
class Way:
    """A way to choose rows: with no labels, and given labels and a fitted CMVMED, if it needs one.

    Each returns the rows, and which of them are random.
    """

    first: Callable[[Task, int, np.random.Generator], Any]
    more: Callable[[Task, Any, int, np.random.Generator, CMVMED | None], Any]
    every_batch: bool = False  # whether CMVMED is fitted after each batch, or at the targets only


def draw_task(data: DataSet, number: int, n_rows: int) -> Task:
    """Split ``number`` of a data set, with the rows of the suite's."""
    name = zlib.crc32(data.name.encode())
    train, test = draw_rows(data, n_rows, np.random.default_rng([name, number]))
    return Task(data.X[train], data.y[train], data.X[test], data.y[test], data.views, (name, number))


def random_rows(task: Task, n: int, rng: np.random.Generator) -> Any:
    rows = rng.permutation(task.truth.size)[:n]
    return rows, np.ones(rows.size, dtype=bool)


def more_random_rows(task: Task, y: Any, n: int, rng: np.random.Generator, model: CMVMED | None) -> Any:
    rows = rng.permutation(np.flatnonzero(y < 0))[:n]
    return rows, np.ones(rows.size, dtype=bool)


def covering_rows(task: Task, n: int, rng: np.random.Generator, random_share: float = 0.0) -> Any:
    found = suggest_first(task.X, n, views=task.views, random_share=random_share)
    return found.rows, found.random


def suggested_rows(
    task: Task, y: Any, n: int, rng: np.random.Generator, model: CMVMED | None, random_share: float = 0.0
) -> Any:
    assert model is not None
    found = model.suggest(n, random_share=random_share)
    return found.rows, found.random


def smallest_margins(task: Task, y: Any, n: int, rng: np.random.Generator, model: CMVMED | None) -> Any:
    classifier = concatenated_views(task.X, LabeledOnlyClassifier(LogisticRegression(max_iter=2000))).fit(task.X, y)
    rows = np.flatnonzero(y < 0)
    p = np.sort(classifier.predict_proba(task.X[rows]), axis=1)
    chosen = rows[np.argsort(p[:, -1] - p[:, -2], kind="stable")[:n]]
    return chosen, np.zeros(chosen.size, dtype=bool)


WAYS = {
    "suggest": Way(covering_rows, suggested_rows, every_batch=True),
    "mixed": Way(partial(covering_rows, random_share=0.2), partial(suggested_rows, random_share=0.2), every_batch=True),
    "random": Way(random_rows, more_random_rows),
    "margin": Way(random_rows, smallest_margins),
}


def simulate(task: Task, way: Way, repeat: int = 0) -> list[dict[str, float]]:
    """What CMVMED reaches with the labels that one user gives."""
    rng = np.random.default_rng([*task.seed, repeat])
    batches = list(range(BATCH, task.most, BATCH))
    fitted = {*(batches if way.every_batch else ()), *task.targets}
    y, is_random = np.full(task.truth.size, -1), np.zeros(task.truth.size, dtype=bool)
    model, curve = None, []
    for count in sorted({*batches, *fitted}):
        n = int((y >= 0).sum())
        if n >= count:  # more rows than asked for were needed to find two classes
            continue
        rows, marks = way.first(task, count, rng) if n == 0 else way.more(task, y, count - n, rng, model)
        y[rows], is_random[rows] = task.truth[rows], marks
        while np.unique(y[y >= 0]).size < 2:
            rows, marks = way.first(task, int((y >= 0).sum()) + BATCH, rng)
            i = int(np.flatnonzero(y[rows] < 0)[0])
            y[rows[i]], is_random[rows[i]] = task.truth[rows[i]], marks[i]
        if count in fitted:
            model = CMVMED(views=task.views).fit(task.X, y, random_rows=is_random)
            curve.append(measure(task, y, model))
    return curve


def measure(task: Task, y: Any, model: CMVMED) -> dict[str, float]:
    """Number of labels, accuracies, and the accuracy that the model expects."""
    estimate = model.accuracy_estimate()
    shares = np.array([(task.truth[y < 0] == k).mean() for k in model.classes_])
    return {
        "labels": int((y >= 0).sum()),
        "held_out": float((model.predict(task.X_test) == task.y_test).mean()),
        "unlabeled": float((model.transduction_ == task.truth)[y < 0].mean()),
        "expected": estimate.mean,
        "low": estimate.low,
        "high": estimate.high,
        "random_expected": estimate.random_mean,
        "random_low": estimate.random_low,
        "random_high": estimate.random_high,
        "share_error": 0.5 * float(np.abs(model.class_prior_ - shares).sum()),
    }


def run(sets: Sequence[str], splits: Iterable[int], n_rows: int, path: Path, ways: Sequence[str] = tuple(WAYS)) -> None:
    """Work off what is not in the file yet, split by split."""
    done = {(row["set"], row["split"], row["rows"], row["way"], row["repeat"]) for row in read(path)}
    for number in splits:
        for name in sets:
            try:
                data = load(name)
            except (DatasetError, ImportError) as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
            task = draw_task(data, number, n_rows)
            for way in ways:
                for repeat in range(REPEATS[way]):
                    if (name, number, n_rows, way, repeat) not in done:
                        with threadpool_limits(1), warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            curve = simulate(task, WAYS[way], repeat)
                        key = {"set": name, "split": number, "rows": n_rows, "way": way, "repeat": repeat}
                        with path.open("a") as file:
                            file.write(json.dumps(key | {"targets": task.targets, "curve": curve}) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def complete(rows: Iterable[dict[str, Any]], ways: Sequence[str] = tuple(WAYS)) -> list[dict[str, Any]]:
    """The rows of the splits for which all ways have been simulated."""
    found = defaultdict(list)
    for row in rows:
        if row["way"] in ways:
            found[row["set"], row["split"]].append(row)
    return [row for own in found.values() if len(own) == sum(REPEATS[way] for way in ways) for row in own]


def mean_curve(rows: Sequence[dict[str, Any]], on: str) -> tuple[Any, Any]:
    """Numbers of labels and the mean accuracy, which rises with them."""
    by_count = defaultdict(list)
    grid = sorted({point["labels"] for row in rows for point in row["curve"]})
    for row in rows:
        x, a = ([point[name] for point in row["curve"]] for name in ("labels", on))
        for count in grid:
            if x[0] <= count <= x[-1]:
                by_count[count].append(np.interp(count, x, a))
    counts = np.array([count for count in grid if len(by_count[count]) == len(rows)])
    return counts, isotonic_regression(np.array([np.mean(by_count[count]) for count in counts]))


def labels_needed(counts: Any, accuracy: Any, target: float) -> float:
    """Labels at which a rising curve, linear between its points, reaches the target; infinite if it does not."""
    reached = np.flatnonzero(accuracy >= target - 1e-12)
    if reached.size == 0:
        return np.inf
    i = int(reached[0])
    if i == 0:
        return float(counts[0])
    step = (target - accuracy[i - 1]) / (accuracy[i] - accuracy[i - 1])
    return float(counts[i - 1] + step * (counts[i] - counts[i - 1]))


def ways_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The ways that were simulated, in their order."""
    return [way for way in WAYS if any(row["way"] == way for row in rows)]


def table(rows: Sequence[dict[str, Any]], on: str) -> str:
    """By set, labels needed by each way for the accuracy of so many random labels; below, means of the ratios."""
    ways, parts = [way for way in ways_of(rows) if way != "random"], [f"{part:.0%}" for part in PARTS]
    head = ["set", "random labels", "their accuracy %", *(f"{way}: labels" for way in ways)]
    head += [f"{way} / random, {part} of the labels" for way in ways for part in parts]
    lines, found = [], []
    for name in dict.fromkeys(row["set"] for row in rows):
        own = {way: [row for row in rows if row["set"] == name and row["way"] == way] for way in ways_of(rows)}
        targets, curves = own["random"][0]["targets"], {way: mean_curve(of, on) for way, of in own.items()}
        goal = {n: float(np.interp(n, *curves["random"])) for n in targets}
        needed = {way: [labels_needed(*curves[way], goal[n]) for n in targets] for way in ways}
        ratios = [min(a / n, 1.0) for way in ways for a, n in zip(needed[way], targets, strict=True)]
        found.append(ratios)
        shown = [f"{needed[way][-1]:.0f}" if needed[way][-1] < np.inf else f"> {targets[-1]}" for way in ways]
        cells = [f"{ratio:.2f}" for ratio in ratios]
        lines.append([name, str(targets[-1]), f"{100 * goal[targets[-1]]:.1f}", *shown, *cells])
    means = [f"{ratio:.2f}" for ratio in np.mean(found, axis=0)]
    lines.append(["**mean ratio**", "", "", *[""] * len(ways), *means])
    return markdown([head, *lines])


def accuracies(rows: Sequence[dict[str, Any]], on: str) -> str:
    """Mean accuracy over the sets by each way, with a part of the most labels."""
    lines = [["rows labeled", *(f"{part:.0%} of the labels" for part in PARTS)]]
    for way in ways_of(rows):
        means = []
        for name in dict.fromkeys(row["set"] for row in rows):
            own = [row for row in rows if row["set"] == name and row["way"] == way]
            if own:
                means.append(np.interp(own[0]["targets"], *mean_curve(own, on)))
        lines.append([way, *(f"{100 * value:.1f}" for value in np.mean(means, axis=0))])
    return markdown(lines)


def estimates(rows: Sequence[dict[str, Any]]) -> str:
    """How the expected accuracy compares with that on the unlabeled rows, by the way in which labels were chosen."""
    head = ["labels", "fits", "expected - true accuracy, points", "90 % interval holds %"]
    lines = []
    for way in ways_of(rows):
        points = [point for row in rows if row["way"] == way for point in row["curve"]]
        for on in ("unlabeled", "held_out"):
            bias = 100 * np.mean([point["expected"] - point[on] for point in points])
            holds = 100 * np.mean([point["low"] <= point[on] <= point["high"] for point in points])
            lines.append([f"{way}, on {on.replace('_', ' ')} rows", str(len(points)), f"{bias:+.1f}", f"{holds:.0f}"])
    return markdown([head, *lines])


def certainty(rows: Sequence[dict[str, Any]]) -> str:
    """What is known with all labels, by each way: intervals of the accuracy on unlabeled rows, and class shares."""
    head = ["labels", "interval of", "expected - true accuracy, points", "holds %", "half width, points"]
    head += ["labels for ± 5 points", "error of class shares, points"]
    lines = []
    for way in ways_of(rows):
        points = [row["curve"][-1] for row in rows if row["way"] == way]
        error = f"{100 * np.mean([point['share_error'] for point in points]):.1f}"
        for who, prefix in (("the model", ""), ("random rows", "random_")):
            known = [point for point in points if np.isfinite(point[f"{prefix}expected"])]
            if known:
                cells = _interval_cells(known, prefix)
                lines.append([way, who, *cells, error])
    return markdown([head, *lines])


def _interval_cells(points: Sequence[dict[str, float]], prefix: str) -> list[str]:
    """Bias, coverage, half width, and labels at which the latter would be small enough (median)."""
    expected, low, high = (np.array([p[f"{prefix}{name}"] for p in points]) for name in ("expected", "low", "high"))
    true, n = (np.array([p[name] for p in points]) for name in ("unlabeled", "labels"))
    half = 0.5 * (high - low)
    cells = [f"{100 * np.mean(expected - true):+.1f}", f"{100 * np.mean((low <= true) & (true <= high)):.0f}"]
    return [*cells, f"{100 * half.mean():.1f}", f"{np.median(n * (half / HALF_WIDTH) ** 2):.0f}"]


def report(rows: Sequence[dict[str, Any]]) -> str:
    """All tables, each after a line that says what it has."""
    splits, n_sets = sorted({row["split"] for row in rows}), len({row["set"] for row in rows})
    parts = [
        f"{n_sets} sets, {len(splits)} splits from {splits[0]} on, at most {rows[0]['rows']} training rows.",
        "### Held-out rows",
        table(rows, "held_out"),
        "### Mean accuracy on held-out rows",
        accuracies(rows, "held_out"),
        "### Unlabeled rows",
        table(rows, "unlabeled"),
        "### Expected accuracy",
        estimates(rows),
        f"### {INTERVALS}",
        certainty(rows),
    ]
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=LOADERS, default=list(LOADERS), metavar="SET")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="number of the first split; 1000 and more for development")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    parser.add_argument("--rows", type=int, default=400, help="most training rows")
    parser.add_argument("--results", type=Path, default=Path("active_learning.jsonl"), help="where rows are kept")
    parser.add_argument("--no-run", action="store_true", help="only report the rows that are there")
    given = parser.parse_args()
    splits = range(given.first, given.first + given.splits)
    if not given.no_run:
        run(given.sets, splits, given.rows, given.results, given.ways)
    rows = [row for row in read(given.results) if row["set"] in given.sets and row["split"] in splits]
    wanted = complete((row for row in rows if row["rows"] == given.rows), given.ways)
    print(f"{heading()}\n\n{report(wanted)}" if wanted else "No split has been finished yet.")


if __name__ == "__main__":
    main()
