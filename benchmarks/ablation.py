"""What each ingredient of CMVMED gives, and what bounds it: ``python -m benchmarks.ablation``.

One row per change to the defaults, one column per task: accuracy in percent, mean ± SD over splits 0, 1, ... of
``experiments.tasks``. Two rows know what no user knows: the true class shares of the test rows, and the labels of all
training rows.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from cmvmed import CMVMED
from cmvmed.members.pool import KINDS
from experiments.tasks import TASKS, Split, draw_split


def with_true_shares(split: Split) -> CMVMED:
    """A model that is given the class shares of the test rows; never zero."""
    counts = np.bincount(split.y_test, minlength=split.n_classes) + 0.5
    return CMVMED(class_prior=counts / counts.sum())


# Models by the name of what they change; a function makes one for the split.
VARIANTS: dict[str, CMVMED | Callable[[Split], CMVMED]] = {
    "defaults": CMVMED(),
    "without the consensus": CMVMED(members=list(KINDS)),
    "the consensus alone": CMVMED(members="consensus"),
    "without trees": CMVMED(members=["views", "lda", "graph", "view_graphs", "consensus"]),
    "without graphs": CMVMED(members=["views", "lda", "trees", "trees_all", "consensus"]),
    "the consensus, not calibrated": CMVMED(members=None),
    "class prior of the labels": CMVMED(class_prior="labels"),
    "no class prior": CMVMED(class_prior=None),
    "CMVMED.paper()": CMVMED.paper(),
    "as printed": CMVMED.paper(algorithm="printed"),
    "true class shares": with_true_shares,
}
ALL_LABELS = "labels of all training rows"


def accuracies(task: str, number: int) -> dict[str, float]:
    """Accuracy of every variant on one split."""
    split = draw_split(TASKS[task], number)
    scores = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, variant in VARIANTS.items():
            model = clone(variant) if isinstance(variant, CMVMED) else variant(split)
            model.set_params(views=split.views)
            scores[name] = model.fit(split.X, split.y).score(split.X_test, split.y_test)
        if TASKS[task].n_published is None:
            known = draw_split(TASKS[task], number, TASKS[task].n_train)
            model = CMVMED(views=known.views)
            scores[ALL_LABELS] = model.fit(known.X, known.y).score(known.X_test, known.y_test)
    return scores


def main() -> None:
    from benchmarks.ablation import accuracies  # by its full name, so that worker processes find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[name for name in TASKS if name != "mfeat"])
    parser.add_argument("--splits", type=int, default=20)
    arguments = parser.parse_args()
    cells: dict[str, list[str]] = {name: [] for name in (*VARIANTS, ALL_LABELS)}
    with Parallel(2) as parallel:
        for task in arguments.tasks:
            found = parallel(delayed(accuracies)(task, number) for number in range(arguments.splits))
            for name, row in cells.items():
                scores = 100.0 * np.array([scores[name] for scores in found if name in scores])
                row.append(f"{scores.mean():.1f} ± {scores.std(ddof=1):.1f}" if scores.size else "–")
    print(f"{heading()}\n\n| {arguments.splits} splits | " + " | ".join(arguments.tasks) + " |")
    print("| --- |" + " --- |" * len(arguments.tasks))
    for name, row in cells.items():
        print(f"| {name} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
