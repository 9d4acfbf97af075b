"""Accuracy of CMVMED with its defaults beside its peers: ``python -m benchmarks.accuracy``.

For every task and method: accuracy, balanced accuracy and AUC (one-vs-rest mean for more classes) in percent, expected
calibration error over the test rows of all splits together, mean ± SD over the splits, and seconds per fit and prediction.
No method is tuned; none sees a test label. The split rule is in ``benchmarks/tasks.py``. Data files are looked up as
``cmvmed.datasets`` does (``CMVMED_DATA``); a task whose file is absent is named and left out.
"""

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.rivals import METHODS
from benchmarks.tasks import TASKS, draw
from cmvmed.datasets import DatasetNotFoundError

Result = tuple[float, float, float, float, np.ndarray]


def measure(task: str, method: str, number: int) -> Result | None:
    """Accuracy, balanced accuracy, AUC, seconds, and (confidence, correct) of each test row; None if not applicable."""
    split = draw(TASKS[task], number)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        scores = METHODS[method](split)
        seconds = time.perf_counter() - start
    if scores is None:
        return None
    scores = np.nan_to_num(scores)
    guess = scores.argmax(axis=1)
    ranking = scores[:, 1] if scores.shape[1] == 2 else scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-12)
    is_distribution = bool((scores >= 0.0).all()) and np.allclose(scores.sum(axis=1), 1.0, atol=1e-6)
    auc = roc_auc_score(split.y_test, ranking, multi_class="ovr") if scores.shape[1] == 2 or is_distribution else np.nan
    confidence = scores.max(axis=1) if is_distribution else np.full(guess.size, np.nan)
    return (
        accuracy_score(split.y_test, guess),
        balanced_accuracy_score(split.y_test, guess),
        float(auc),
        seconds,
        np.column_stack([confidence, guess == split.y_test]),
    )


def calibration_error(rows: np.ndarray, n_bins: int = 15) -> float:
    """Mean over bins of confidence of |mean confidence - share correct|, weighted by their rows."""
    confidence, correct = rows.T
    if np.isnan(confidence).any():
        return float("nan")
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs((confidence[bins == b] - correct[bins == b]).sum()) for b in np.unique(bins)]
    return float(np.sum(gaps) / confidence.size)


def summary(results: list[Result | None]) -> str:
    if None in [row if row is None else 0 for row in results]:
        return " | ".join(["–"] * 5)
    values = np.array([row[:4] for row in results])
    percent, spread = 100.0 * values[:, :3].mean(axis=0), 100.0 * values[:, :3].std(axis=0, ddof=1)
    figures = [f"{m:.1f} ± {s:.1f}" if np.isfinite(m) else "–" for m, s in zip(percent, spread, strict=True)]
    error = calibration_error(np.vstack([row[4] for row in results]))
    return " | ".join([*figures, f"{error:.3f}" if np.isfinite(error) else "–", f"{values[:, 3].mean():.2f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    from benchmarks.accuracy import measure  # by its full name, so that worker processes find it

    numbers = range(arguments.first, arguments.first + arguments.splits)
    with Parallel(arguments.jobs) as parallel:
        for name in arguments.tasks:
            task = TASKS[name]
            try:
                task.load()
            except DatasetNotFoundError as error:
                print(f"\n### {name}: left out. {error}")
                continue
            print(f"\n### {name}: {task.n_labeled} labels, {task.n_unlabeled} unlabelled, {len(numbers)} splits\n")
            print(
                "| method | accuracy | balanced | AUC | calibration error | s |\n| --- | --- | --- | --- | --- | --- |"
            )
            for method in arguments.methods:
                rows = parallel(delayed(measure)(name, method, number) for number in numbers)
                print(f"| {method} | {summary(rows)} |", flush=True)
            if task.paper:
                print(f"| CMV-MED in the paper | {task.paper} | – | – | – | – |")


if __name__ == "__main__":
    main()
