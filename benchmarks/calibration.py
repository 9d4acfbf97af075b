"""Calibration of probabilities and accuracy estimates of CMVMED on development splits that no table uses.

``python -m benchmarks.calibration`` (set CMVMED_DATA to the folder of the data files) prints one row per task: accuracy
on held-out rows, calibration error with ``members=None`` and by default (over the rows of all splits),
mean and root mean squared error of ``accuracy_estimate()``, and the number of splits whose interval (level 0.9)
contains the accuracy. Tables use all published selections of 12 course pages, so task webkb12 is here webkb with 12 labels.
"""

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.provenance import heading
from cmvmed import CMVMED
from experiments.scores import ReliabilityBins, calibration_error, reliability_bins
from experiments.tasks import TASKS, Split, draw_split

FEW_PAGES = 12


@dataclass(frozen=True)
class Measurement:
    """Results of one split."""

    accuracy: float
    uncalibrated: ReliabilityBins
    calibrated: ReliabilityBins
    estimate: float
    is_covered: bool  # whether the interval contains the accuracy


def split_of(task: str, number: int) -> Split:
    return draw_split(TASKS["webkb"], number, FEW_PAGES) if task == "webkb12" else draw_split(TASKS[task], number)


def measure(task: str, number: int) -> Measurement:
    split = split_of(task, number)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CMVMED(views=split.views).fit(split.X, split.y)
        calibrated = model.predict_proba(split.X_test)
        plain = CMVMED(views=split.views, members=None).fit(split.X, split.y).predict_proba(split.X_test)
    correct = calibrated.argmax(axis=1) == split.y_test
    estimate = model.accuracy_estimate()
    return Measurement(
        accuracy=float(correct.mean()),
        uncalibrated=reliability_bins(plain.max(axis=1), plain.argmax(axis=1) == split.y_test),
        calibrated=reliability_bins(calibrated.max(axis=1), correct),
        estimate=estimate.mean,
        is_covered=bool(estimate.low <= correct.mean() <= estimate.high),
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
    print(f"{heading()}\n")
    print(
        "| task | splits | accuracy | error of the consensus | calibrated | estimated accuracy | its error "
        "| intervals that hold |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with Parallel(options.jobs) as parallel:
        for task in options.tasks:
            measured = parallel(delayed(measure)(task, number) for number in numbers)
            accuracy, estimate = np.array([[one.accuracy, one.estimate] for one in measured]).T
            print(
                f"| {task} | {len(measured)} | {accuracy.mean():.3f} | "
                f"{calibration_error(one.uncalibrated for one in measured):.3f} | "
                f"{calibration_error(one.calibrated for one in measured):.3f} | {estimate.mean():.3f} | "
                f"{np.sqrt(np.mean((estimate - accuracy) ** 2)):.3f} | "
                f"{sum(one.is_covered for one in measured)} of {len(measured)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
