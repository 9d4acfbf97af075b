"""Difference of low-rank and exact fits: ``python -m benchmarks.agreement``.

Set CMVMED_DATA to the folder of the data files. For each task and split, all rows with at most 3000 unlabeled ones
are fitted exactly and with the default number of landmarks. The table shows the difference of accuracy on the
unlabeled rows in points (goal 0.5) and the mean absolute difference of the class probabilities (goal 0.02). The last
column is the largest difference of any probability for 400 unlabeled rows with all rows as landmarks, where nothing
is approximated (goal 1e-6). Both fits are without graphs and trees;
``benchmarks.landmarks`` compares all members.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmvmed import CMVMED
from experiments.tasks import TASKS, Task

MAX_UNLABELED = 3000
N_EXACT_UNLABELED = 400


@dataclass(frozen=True)
class Agreement:
    """Comparison of an exact and a low-rank fit of the same rows."""

    n_unlabeled: int
    exact: float  # accuracy in percent
    low_rank: float
    difference: float  # mean, of probabilities
    largest: float  # with all rows as landmarks


def draw_rows(task: Task, number: int, n_unlabeled: int) -> tuple[Any, Any, Any]:
    """Rows, their labels with -1 for unlabeled rows, and all labels."""
    rng = np.random.default_rng([number, task.n_labeled])
    data = task.load()
    codes = np.unique(np.asarray(data.target), return_inverse=True)[1]
    order = rng.permutation(codes.size)
    while np.unique(codes[order[: task.n_labeled]]).size < np.unique(codes).size:
        order = rng.permutation(codes.size)
    rows = order[: task.n_labeled + n_unlabeled]
    y = codes[rows].copy()
    y[task.n_labeled :] = -1
    return data.data[rows], y, codes[rows]


def compare(task: Task, number: int) -> Agreement:
    X, y, truth = draw_rows(task, number, MAX_UNLABELED)
    hidden = y == -1
    settings = {"views": task.load().views, "members": ["views", "lda", "consensus"]}
    exact = CMVMED(approximation="exact", **settings).fit(X, y)
    low_rank = CMVMED(approximation="nystroem", **settings).fit(X, y)
    accuracy = [100.0 * np.mean((model.transduction_ == truth)[hidden]) for model in (exact, low_rank)]
    difference = np.abs(exact.label_distributions_ - low_rank.label_distributions_)[hidden].mean()
    X, y, _ = draw_rows(task, number, N_EXACT_UNLABELED)
    exact_small = CMVMED(approximation="exact", **settings).fit(X, y)
    all_landmarks = CMVMED(approximation=len(y), **settings).fit(X, y)
    largest = np.abs(exact_small.label_distributions_ - all_landmarks.label_distributions_).max()
    return Agreement(int(hidden.sum()), *accuracy, float(difference), float(largest))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=["webkb", "ads", "sensit"])
    options = parser.parse_args()
    print("| task | split | unlabeled | exact | low rank | points | probability | all landmarks |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.tasks:
        for number in range(options.splits):
            found = compare(TASKS[name], number)
            print(
                f"| {name} | {number} | {found.n_unlabeled} | {found.exact:.1f} | {found.low_rank:.1f} | "
                f"{found.low_rank - found.exact:+.2f} | {found.difference:.4f} | {found.largest:.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
