"""How right probabilities and accuracy estimates of CMVMED are, on development splits that no table uses.

``python -m benchmarks.calibration`` (set CMVMED_DATA to the folder of the data files) prints one row per task: accuracy on held-out
rows, calibration error of the consensus itself and of the calibrated probabilities (pooled over splits), the mean and the root mean
squared error of ``accuracy_estimate()``, and the share of splits whose interval (level 0.9) holds the accuracy. The published
choices of 12 course pages are all used by tables, so task webkb12 is here webkb with 12 labels.
"""

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED
from cmvmed.core.consensus import soft_labels
from cmvmed.reproduction.scores import Reliability, calibration_error, reliability
from cmvmed.reproduction.tasks import TASKS, Split, draw

FEW_PAGES = 12


@dataclass(frozen=True)
class Seen:
    """One split."""

    accuracy: float
    consensus: Reliability
    calibrated: Reliability
    estimate: float
    held: bool  # the accuracy, by the interval


def split_of(task: str, number: int) -> Split:
    return draw(TASKS["webkb"], number, FEW_PAGES) if task == "webkb12" else draw(TASKS[task], number)


def measure(task: str, number: int) -> Seen:
    split = split_of(task, number)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED(views=split.views).fit(split.X, split.y)
        calibrated = model.predict_proba(split.X_test)
    scores = model.decision_function(split.X_test).reshape(len(calibrated), -1)
    consensus = soft_labels(scores, np.zeros(scores.shape[1]), model.temperature)
    right = calibrated.argmax(axis=1) == split.y_test
    estimate = model.accuracy_estimate()
    return Seen(
        accuracy=float(right.mean()),
        consensus=reliability(consensus.max(axis=1), right),
        calibrated=reliability(calibrated.max(axis=1), right),
        estimate=estimate.mean,
        held=bool(estimate.low <= right.mean() <= estimate.high),
    )


def main() -> None:
    from benchmarks.calibration import measure  # by its full name, so that worker processes find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--first", type=int, default=5000, help="number of the first split")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.splits)
    print(
        "| task | splits | accuracy | error of the consensus | calibrated | estimated accuracy | its error | intervals that hold |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with Parallel(options.jobs) as parallel:
        for task in options.tasks:
            seen = parallel(delayed(measure)(task, number) for number in numbers)
            accuracy, estimate = np.array([[one.accuracy, one.estimate] for one in seen]).T
            print(
                f"| {task} | {len(seen)} | {accuracy.mean():.3f} | {calibration_error(one.consensus for one in seen):.3f} | "
                f"{calibration_error(one.calibrated for one in seen):.3f} | {estimate.mean():.3f} | "
                f"{np.sqrt(np.mean((estimate - accuracy) ** 2)):.3f} | {sum(one.held for one in seen)} of {len(seen)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
