"""Accuracy of CMVMED under other settings, on development splits that no table uses.

``python -m benchmarks.settings '{}' '{"consensus_weight": 0.05}' --tasks digits-parity`` prints one row per setting
(keyword arguments in JSON). ``--tuning '{"clip": 3}'`` fits with other tuned numbers, which are fields of
``cmvmed.auto.tuning.Tuning``; it may be repeated, and gives one row per value, for each setting.
"""

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from experiments.tasks import TASKS, draw_split


def read_tuning(text: str) -> dict[str, Any]:
    """Tuned numbers by name, from JSON; an error lists the names that there are."""
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text} is no JSON: {error}.") from error
    names = [field.name for field in fields(Tuning)]
    unknown = sorted(set(given) - set(names)) if isinstance(given, dict) else [text]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is no field of Tuning, whose fields are {', '.join(names)}.")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def accuracy(task: str, number: int, settings: dict[str, Any], tuning: dict[str, Any]) -> float:
    split = draw_split(TASKS[task], number)
    with threadpool_limits(1), warnings.catch_warnings(), tuning_context(replace(Tuning(), **tuning)):
        warnings.simplefilter("ignore")
        return CMVMED(views=split.views, **settings).fit(split.X, split.y).score(split.X_test, split.y_test)


def main(arguments: Sequence[str] | None = None) -> None:
    from benchmarks.settings import accuracy  # by its full name, so that worker processes find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "settings", nargs="*", type=json.loads, default=[{}], help="keyword arguments of CMVMED, in JSON"
    )
    parser.add_argument("--tuning", action="append", type=read_tuning, help="tuned numbers in JSON, may be repeated")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=3000, help="number of the first split")
    options = parser.parse_args(arguments)
    numbers = range(options.first, options.first + options.splits)
    with Parallel(2) as parallel:
        for task in options.tasks:
            for settings, tuning in product(options.settings, options.tuning or [{}]):
                found = parallel(delayed(accuracy)(task, number, settings, tuning) for number in numbers)
                scores = 100.0 * np.array(found)
                changes = " ".join([json.dumps(settings), *([json.dumps(tuning)] if tuning else [])])
                print(f"{task:14} {scores.mean():5.1f} ± {scores.std(ddof=1):4.1f}  {changes}", flush=True)


if __name__ == "__main__":
    main()
