"""Accuracy of CMVMED with given parameters on development splits that no table uses.

``python -m benchmarks.settings '{}' '{"consensus_weight": 0.05}' --tasks digits-parity`` prints one row
per set of keyword arguments in JSON.
"""

import argparse
import json
import warnings

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED
from cmvmed.reproduction.tasks import TASKS, draw_split


def accuracy(task: str, number: int, settings: dict[str, object]) -> float:
    split = draw_split(TASKS[task], number)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CMVMED(views=split.views, **settings).fit(split.X, split.y).score(split.X_test, split.y_test)


def main() -> None:
    from benchmarks.settings import accuracy  # by its full name, so that worker processes find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="+", type=json.loads)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=3000, help="number of the first split")
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.splits)
    with Parallel(2) as parallel:
        for task in arguments.tasks:
            for settings in arguments.settings:
                scores = 100.0 * np.array(parallel(delayed(accuracy)(task, number, settings) for number in numbers))
                print(f"{task:14} {scores.mean():5.1f} ± {scores.std(ddof=1):4.1f}  {json.dumps(settings)}", flush=True)


if __name__ == "__main__":
    main()
