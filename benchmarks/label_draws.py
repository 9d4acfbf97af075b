"""Accuracy when labels are not a random draw of the rows: ``python -m benchmarks.label_draws``.

- ads, 20 labels: drawn at random, or 10 of each class, though 14 % of the rows are advertisements;
- gauss and digits-parity, two classes of equal size, 22 labels: 11 of each class, or 20 and 2.

Training rows are those of the task's splits. Besides ``CMVMED()``: with ``labels_drawn="per_class"``, with the true class
shares as ``class_prior``, and logistic regression with balanced class weights. Accuracy in percent on held-out rows, mean
± SD over the splits.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from cmvmed import CMVMED
from experiments.baseline_pipelines import LabeledOnlyClassifier, concatenated_views
from experiments.tasks import TASKS, Split, draw_split

DRAWS: dict[str, tuple[str, tuple[int, int] | None]] = {  # by title: the task, and labels of each class
    "ads, 20 at random": ("ads", None),
    "ads, 10 and 10": ("ads", (10, 10)),
    "gauss, 11 and 11": ("gauss", (11, 11)),
    "gauss, 20 and 2": ("gauss", (20, 2)),
    "digits-parity, 11 and 11": ("digits-parity", (11, 11)),
    "digits-parity, 20 and 2": ("digits-parity", (20, 2)),
}
N_RANDOM = 20


def balanced_logistic(split: Split, truth: Any) -> Any:
    classifier = LogisticRegression(max_iter=2000, class_weight="balanced")
    return concatenated_views(split.X, LabeledOnlyClassifier(classifier))


METHODS: dict[str, Callable[[Split, Any], Any]] = {
    "CMVMED()": lambda split, truth: CMVMED(views=split.views),
    'CMVMED(labels_drawn="per_class")': lambda split, truth: CMVMED(views=split.views, labels_drawn="per_class"),
    "CMVMED(class_prior=true shares)": lambda split, truth: CMVMED(views=split.views, class_prior=float(truth.mean())),
    "logistic regression, balanced": balanced_logistic,
}


def accuracies(title: str, number: int) -> dict[str, float]:
    """Accuracy of every method on one split."""
    name, counts = DRAWS[title]
    task = TASKS[name]
    split = draw_split(task, number, task.n_train)  # with all labels
    truth = np.asarray(split.y)
    y = np.full(truth.size, -1)
    for labeled in _labeled_rows(truth, counts):
        y[labeled] = truth[labeled]
    scores = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, make in METHODS.items():
            scores[method] = 100.0 * make(split, truth).fit(split.X, y).score(split.X_test, split.y_test)
    return scores


def _labeled_rows(truth: Any, counts: tuple[int, int] | None) -> list[Any]:
    """Rows that get labels: the first of each class, or the first of all, until both classes have one."""
    if counts is not None:
        return [np.flatnonzero(truth == c)[:count] for c, count in enumerate(counts)]
    others = np.flatnonzero(truth != truth[0])
    return [np.arange(N_RANDOM), others[:1]] if others[0] >= N_RANDOM else [np.arange(N_RANDOM)]


def main() -> None:
    from benchmarks.label_draws import accuracies  # by its full name, so that worker processes find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(f"{heading()}\n\n| {options.splits} splits | " + " | ".join(DRAWS) + " |")
    print("| --- |" + " --- |" * len(DRAWS))
    with Parallel(options.jobs) as parallel:
        found = {t: parallel(delayed(accuracies)(t, i) for i in range(options.splits)) for t in DRAWS}
    for method in METHODS:
        columns = [np.array([scores[method] for scores in found[title]]) for title in DRAWS]
        print(f"| {method} | " + " | ".join(f"{c.mean():.1f} ± {c.std(ddof=1):.1f}" for c in columns) + " |")


if __name__ == "__main__":
    main()
