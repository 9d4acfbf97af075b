"""Coverage and size of prediction sets from 20 labels: ``python -m benchmarks.prediction_sets --draws 1000``.

Each draw has 20 labeled, 100 unlabeled and up to 300 new rows. ``CMVMED().predict_set`` with alpha=0.1 is shown beside MAPIE's
``CrossConformalClassifier`` (five folds, its default score) on logistic regression of all columns, for the same labels and
the same new rows. Coverage is the share of rows whose set holds the true class, in percent, mean ± standard error over
the draws; size is the mean number of classes of a set, and empty the share of sets without a class. Draws that a method
refuses, as MAPIE does if a fold has labels of one class only, are left out of its lines.

Simulated data are Gaussian views; every draw has data of its own. "easy" and "hard" differ in the distance of the classes.
"unequal" has classes of 80 and 20 %, "per class" ten labels of each of these. digits and mfeat (if CMVMED_DATA has it) have ten
classes, so that most have two labels and some only one, which cannot be held out.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from mapie.classification import CrossConformalClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from cmvmed import CMVMED
from cmvmed.datasets import load_digits_views, make_multiview_gaussian
from experiments.datasets import DatasetNotFoundError, fetch_multiple_features

ALPHA, N_LABELED, N_UNLABELED, N_NEW = 0.1, 20, 100, 300
CLOSE, MEDIUM, FAR = (0.7, 0.5), (1.1, 0.8), (2.0, 1.5)


def gauss(number: int, n_classes: int, separation: tuple[float, float], **parameters: Any) -> Any:
    n_rows = N_LABELED + N_UNLABELED + N_NEW
    return make_multiview_gaussian(
        n_rows, n_features=6, n_classes=n_classes, separation=separation, random_state=number, **parameters
    )


digits, mfeat = cache(load_digits_views), cache(fetch_multiple_features)


@dataclass(frozen=True)
class Task:
    """Data of each draw, and whether labels are drawn class by class."""

    load: Callable[[int], Any]
    per_class: bool = False


TASKS = {
    "two classes": Task(partial(gauss, n_classes=2, separation=MEDIUM)),
    "two classes, hard": Task(partial(gauss, n_classes=2, separation=CLOSE)),
    "two classes, easy": Task(partial(gauss, n_classes=2, separation=FAR)),
    "two classes, unequal": Task(partial(gauss, n_classes=2, separation=MEDIUM, class_weights=(0.8, 0.2))),
    "two classes, per class": Task(partial(gauss, n_classes=2, separation=MEDIUM, class_weights=(0.8, 0.2)), True),
    "four classes": Task(partial(gauss, n_classes=4, separation=(1.8, 1.4))),
    "digits": Task(lambda number: digits()),
    "mfeat": Task(lambda number: mfeat()),
}


@dataclass(frozen=True)
class Draw:
    """Rows of a draw; the first are labeled."""

    X: Any
    y: Any  # -1 for unlabeled rows
    truth: Any
    views: dict[str, slice]
    X_new: Any
    y_new: Any


def draw(task: Task, number: int) -> Draw:
    data, rng = task.load(number), np.random.default_rng([7, number])
    codes = np.unique(np.asarray(data.target), return_inverse=True)[1]
    order = rng.permutation(codes.size)
    while np.unique(codes[order[:N_LABELED]]).size <= codes.max():
        order = rng.permutation(codes.size)
    if task.per_class:
        n_each = N_LABELED // (codes.max() + 1)
        first = np.concatenate([order[codes[order] == c][:n_each] for c in range(codes.max() + 1)])
        order = np.concatenate([first, order[~np.isin(order, first)]])
    train, new = np.split(order[: N_LABELED + N_UNLABELED + N_NEW], [N_LABELED + N_UNLABELED])
    y = np.where(np.arange(train.size) < N_LABELED, codes[train], -1)
    return Draw(data.data[train], y, codes[train], dict(data.views), data.data[new], codes[new])


def sets_of_cmvmed(rows: Draw) -> tuple[Any, Any]:
    model = CMVMED(views=rows.views).fit(rows.X, rows.y)
    return model.predict_set(rows.X[N_LABELED:], ALPHA), model.predict_set(rows.X_new, ALPHA)


def sets_of_mapie(rows: Draw) -> tuple[Any, Any]:
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model = CrossConformalClassifier(classifier, confidence_level=1.0 - ALPHA, cv=5)
    model.fit_conformalize(rows.X[:N_LABELED], rows.truth[:N_LABELED])
    unlabeled, new = (model.predict_set(X)[1][:, :, 0] for X in (rows.X[N_LABELED:], rows.X_new))
    return unlabeled, new


METHODS = {"CMVMED": sets_of_cmvmed, "MAPIE": sets_of_mapie}


def measure(name: str, number: int) -> dict[str, list[float]]:
    """Coverage of unlabeled and new rows, mean size and share of empty sets of new rows, by method."""
    rows, found = draw(TASKS[name], number), {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, sets in METHODS.items():
            try:
                unlabeled, new = sets(rows)
            except ValueError:  # a class has no label in some fold
                found[method] = [np.nan] * 4
                continue
            sizes = new.sum(axis=1)
            found[method] = [
                100.0 * unlabeled[np.arange(N_UNLABELED), rows.truth[N_LABELED:]].mean(),
                100.0 * new[np.arange(sizes.size), rows.y_new].mean(),
                float(sizes.mean()),
                100.0 * float((sizes == 0).mean()),
            ]
    return found


def table_line(name: str, method: str, found: list[dict[str, list[float]]]) -> str:
    values = np.array([one[method] for one in found])
    values = values[~np.isnan(values[:, 0])]
    if not values.size:
        return f"| {name} | {method} | 0 | – | – | – | – |"
    mean, error = values.mean(axis=0), values.std(axis=0) / len(values) ** 0.5
    coverage = " | ".join(f"{mean[i]:.1f} ± {error[i]:.1f}" for i in range(2))
    return f"| {name} | {method} | {len(values)} | {coverage} | {mean[2]:.2f} | {mean[3]:.1f} |"


def main() -> None:
    from benchmarks.prediction_sets import measure  # by its full name, so that worker processes find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print(f"{heading()}\n")
    print("| data | method | draws | coverage of unlabeled rows % | of new rows % | size | empty % |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with Parallel(options.jobs) as parallel:
        for name in options.tasks:
            try:
                TASKS[name].load(0)
            except DatasetNotFoundError:
                continue
            found = parallel(delayed(measure)(name, number) for number in range(options.draws))
            for method in METHODS:
                print(table_line(name, method, found), flush=True)


if __name__ == "__main__":
    main()
