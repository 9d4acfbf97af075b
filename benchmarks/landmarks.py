"""What is lost where landmarks take the place of exact kernels: ``python -m benchmarks.landmarks``.

Set CMVMED_DATA to the folder of the data files. All rows of the sets of the suite that have at least a thousand, and of
two Gaussian views, are fitted in several ways; labels are drawn at random, three per class but at least 30, and every
class has one. Splits from 1000 on are for development, those from 0 on for reports. Rows are kept in a file as they
come, so that a run that was stopped goes on where it was.

- exact: exact kernels, as up to 1000 unlabeled rows; left out for more than 2500 rows, since its
  cost grows with their cube
- landmarks: the default beyond
- poisson: Poisson learning on all views side by side (needs graphlearning)

The table has the accuracy on the unlabeled rows in percent, mean over splits ± standard deviation, and in brackets the
number of splits and the processor seconds relative to those of "landmarks". A run that was stopped leaves cells with
fewer splits than others; the lines below the table are differences on the same splits, means over sets.
"""

import argparse
import json
import time
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.suite.sets import LOADERS, DataSet, load
from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

MIN_ROWS = 1000
MAX_EXACT_ROWS = 2500
MIN_LABELS = 30
LABELS_PER_CLASS = 3
REFERENCE = "landmarks"


@cache
def load_set(name: str) -> DataSet:
    """A set of the suite, or two Gaussian views."""
    if name != "gauss":
        return load(name)
    data = make_multiview_gaussian(2000, separation=(1.1, 0.8), random_state=0)
    return DataSet(name, data.data, dict(data.views), data.target)


def draw_labels(data: DataSet, split: int) -> Any:
    """The classes of some rows, -1 for all others, (n,)."""
    rng, n_classes = np.random.default_rng([zlib.crc32(data.name.encode()), split]), data.counts.size
    n_labeled = max(MIN_LABELS, LABELS_PER_CLASS * n_classes)
    while True:
        labeled = rng.permutation(data.y.size)[:n_labeled]
        if np.unique(data.y[labeled]).size == n_classes:
            break
    y = np.full(data.y.size, -1)
    y[labeled] = data.y[labeled]
    return y


def fitted(data: DataSet, y: Any, approximation: str) -> Any:
    """CMVMED with all other defaults."""
    return CMVMED(views=data.views, approximation=approximation).fit(data.X, y)


def poisson(data: DataSet, y: Any) -> Any:
    from benchmarks.suite.methods import concatenated_views
    from benchmarks.suite.poisson import PoissonLearning

    return concatenated_views(data.X, PoissonLearning()).fit(data.X, y)[-1]


METHODS: dict[str, Callable[[DataSet, Any], Any]] = {
    "exact": lambda data, y: fitted(data, y, "exact"),
    "landmarks": lambda data, y: fitted(data, y, "nystroem"),
    "poisson": poisson,
}


def measure(name: str, split: int, method: str) -> dict[str, Any]:
    """Accuracy and processor seconds of one fit."""
    data = load_set(name)
    y = draw_labels(data, split)
    started = time.process_time()
    model = METHODS[method](data, y)
    seconds, hidden = time.process_time() - started, y < 0
    accuracy = 100.0 * float(np.mean(model.transduction_[hidden] == data.y[hidden]))
    return {"set": name, "split": split, "method": method, "accuracy": accuracy, "seconds": seconds}


def is_possible(name: str, method: str) -> bool:
    """Whether the fit is not too expensive."""
    return method != "exact" or load_set(name).y.size <= MAX_EXACT_ROWS


def read_rows(path: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    """The rows of earlier runs by set, split and method."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {(row["set"], row["split"], row["method"]): row for row in map(json.loads, lines)}


def run(sets: list[str], splits: range, methods: list[str], path: Path) -> None:
    """Measure what is not in the file yet, one split of all sets after the other."""
    known = read_rows(path)
    for split in splits:
        for name in sets:
            for method in methods:
                if (name, split, method) not in known and is_possible(name, method):
                    row = measure(name, split, method)
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


def report(sets: list[str], splits: range, methods: list[str], path: Path) -> str:
    """The table in Markdown."""
    rows = read_rows(path)
    found = {
        (name, method): [rows[key] for split in splits if (key := (name, split, method)) in rows]
        for name in sets
        for method in methods
    }
    lines = [f"| set | rows | labels | {' | '.join(methods)} |", "| --- " * (3 + len(methods)) + "|"]
    for name in sets:
        data = load_set(name)
        cells = [_cell(found[name, method], found.get((name, REFERENCE), [])) for method in methods]
        n_labels = max(MIN_LABELS, LABELS_PER_CLASS * data.counts.size)
        lines.append(f"| {name} | {data.y.size} | {n_labels} | {' | '.join(cells)} |")
    differences = [_difference(found, sets, method, REFERENCE) for method in methods if method != REFERENCE]
    return "\n".join([*lines, "", *differences])


def _cell(rows: list[dict[str, Any]], reference: list[dict[str, Any]]) -> str:
    if not rows:
        return "–"
    accuracy = [row["accuracy"] for row in rows]
    text = f"{np.mean(accuracy):.1f} ± {np.std(accuracy):.1f} ({len(rows)} splits"
    seconds = {row["split"]: row["seconds"] for row in reference}
    ratios = [row["seconds"] / seconds[row["split"]] for row in rows if row["split"] in seconds]
    return f"{text}, {np.median(ratios):.1f}x)" if ratios else f"{text})"


def _difference(found: dict[tuple[str, str], list[dict[str, Any]]], sets: list[str], first: str, second: str) -> str:
    """Mean over sets of the difference of accuracy on the same splits, and the worst set."""
    points = {}
    for name in sets:
        other = {row["split"]: row["accuracy"] for row in found.get((name, second), [])}
        pairs = [row["accuracy"] - other[row["split"]] for row in found[name, first] if row["split"] in other]
        if pairs:
            points[name] = float(np.mean(pairs))
    if not points:
        return f"- {first} - {second}: not measured"
    worst = min(points, key=points.__getitem__)
    return (
        f"- {first} - {second}: {np.mean(list(points.values())):+.2f} points, mean over {len(points)} sets; "
        f"least {points[worst]:+.2f} ({worst}), most {max(points.values()):+.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=[*LOADERS, "gauss"], metavar="SET")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["exact", "landmarks"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="number of the first split; 1000 and more for development")
    parser.add_argument("--results", type=Path, default=Path("landmarks.jsonl"), help="where rows are kept")
    parser.add_argument("--no-run", action="store_true", help="only report the rows that are there")
    given = parser.parse_args()
    sets = given.sets or [name for name in [*LOADERS, "gauss"] if load_set(name).y.size >= MIN_ROWS]
    splits = range(given.first, given.first + given.splits)
    warnings.filterwarnings("ignore", category=UserWarning)
    if not given.no_run:
        run(sets, splits, given.methods, given.results)
    print(report(sets, splits, given.methods, given.results))


if __name__ == "__main__":
    main()
