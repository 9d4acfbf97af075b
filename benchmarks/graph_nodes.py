"""How many nodes graphs of nearest rows need: ``python -m benchmarks.graph_nodes``.

Set CMVMED_DATA to the folder of the data files. Labels are drawn as in ``benchmarks.landmarks``, a quarter of the other rows is
left out of the fit, and the default with landmarks is fitted with graphs

- of a fifth of the rows and the labeled ones, as if memory or time had no room for more,
- of all rows, new rows compared with a fifth of the nodes and the labeled ones, as in fits on a sample,
- of all rows, new rows compared with all nodes, as in fits in memory.

The table has the accuracy on unlabeled rows and on rows that were left out, in percent, means over splits, and is written to
``benchmarks/results/graph_nodes.md``.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.landmarks import draw_labels, load_set
from cmvmed import CMVMED
from cmvmed.members import candidates, mixture

SETS = ("digits", "aloi", "sensit", "webkb", "footsteps", "mnist", "hyd_accu", "mfeat", "hyd_pump", "gauss")
PART, LEFT_OUT = 5, 4  # a fifth of the nodes, a quarter of the rows
REPORT = Path(__file__).parent / "results" / "graph_nodes.md"


@contextmanager
def few_nodes(labeled: np.ndarray, n: int) -> Iterator[None]:
    """Graphs of ``n`` rows and the labeled ones."""
    find_nodes = candidates.find_nodes

    def restricted(views: Any, indices: Any, weights: np.ndarray, n_neighbors: int) -> Any:
        kept = np.union1d(np.random.default_rng(0).choice(weights.size, n, replace=False), labeled)
        own = np.where(np.isin(np.arange(weights.size), kept), weights, 0.0)
        return find_nodes(views, indices, own, n_neighbors)

    with patch.object(candidates, "find_nodes", restricted):
        yield


@contextmanager
def few_compared(labeled: np.ndarray, n: int) -> Iterator[None]:
    """New rows are compared with ``n`` nodes and the labeled ones."""
    build = mixture.build_candidates

    def limited(*arguments: Any, **options: Any) -> Any:
        return build(*arguments[:5], n, *arguments[6:], **options)

    with patch.object(mixture, "build_candidates", limited):
        yield


@contextmanager
def default(labeled: np.ndarray, n: int) -> Iterator[None]:
    """Graphs as they are."""
    yield


GRAPHS: dict[str, Callable[[np.ndarray, int], Any]] = {
    "a fifth of the rows": few_nodes,
    "all rows, a fifth compared": few_compared,
    "all rows": default,
}


def accuracies(name: str, split: int, graphs: str) -> tuple[float, float]:
    """In percent, on unlabeled rows and on rows that were left out."""
    data = load_set(name)
    y = draw_labels(data, split)
    hidden = np.random.default_rng(split).permutation(np.flatnonzero(y < 0))
    left_out = hidden[: hidden.size // LEFT_OUT]
    rows = np.setdiff1d(np.arange(y.size), left_out)
    with GRAPHS[graphs](np.flatnonzero(y[rows] >= 0), rows.size // PART):
        model = CMVMED(views=data.views, approximation="nystroem").fit(data.X[rows], y[rows])
    unlabeled = y[rows] < 0
    return (
        100.0 * float(np.mean(model.transduction_[unlabeled] == data.y[rows][unlabeled])),
        100.0 * float(np.mean(model.predict(data.X[left_out]) == data.y[left_out])),
    )


def table(found: dict[str, dict[str, np.ndarray]]) -> str:
    """A line for each set, and their means; ``found`` has (splits, 2) by set and graphs."""
    lines = [f"| set | {' | '.join(GRAPHS)} |", "| --- |" + " --- |" * len(GRAPHS)]
    means = {name: {graphs: own[graphs].mean(axis=0) for graphs in GRAPHS} for name, own in found.items()}
    means["mean"] = {graphs: np.mean([own[graphs] for own in means.values()], axis=0) for graphs in GRAPHS}
    lines += [
        f"| {name} | " + " | ".join("{:.1f} / {:.1f}".format(*own[graphs]) for graphs in GRAPHS) + " |"
        for name, own in means.items()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="SET")
    parser.add_argument("--splits", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in given.sets:
        splits = range(given.splits)
        found[name] = {graphs: np.array([accuracies(name, split, graphs) for split in splits]) for graphs in GRAPHS}
        print(name, {graphs: own.mean(axis=0).round(1).tolist() for graphs, own in found[name].items()}, flush=True)
    command = f"python -m benchmarks.graph_nodes --sets {' '.join(given.sets)} --splits {given.splits}"
    what = "Accuracy on unlabeled and on left-out rows, in percent, by the rows that are nodes of the graphs."
    REPORT.write_text(f"# Nodes of graphs\n\n{what} Written by `{command}`.\n\n{table(found)}\n")


if __name__ == "__main__":
    main()
