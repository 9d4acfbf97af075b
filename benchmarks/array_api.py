"""Predictions of arrays of other libraries beside those of numpy's: ``python -m benchmarks.array_api``.

A landmark model predicts rows in memory, given as arrays of numpy, torch and array-api-strict, in turn, with one thread. Shown
are the processor time relative to numpy in the same run, the largest change of a probability, and what the question whether X
belongs to another library adds to the prediction of a single row. On the processor nothing is to be gained; the figures say
what it costs that formulas are written once for all libraries.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # which scikit-learn asks for; before scipy is imported

import numpy as np
import sklearn
from threadpoolctl import threadpool_limits

from benchmarks.pages import RESULTS, ROOT, fill
from benchmarks.scale_points import N_LABELED, VIEWS, draw_rows, hidden
from cmvmed import CMVMED
from cmvmed.data.array_api import array_place, on_host

N_TRAIN, N_ROWS, REPEATS, SINGLE_REPEATS = 4000, 10_000, 3, 200
LIBRARIES = ("torch", "array_api_strict")


def processor_time(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(model: CMVMED, X: np.ndarray) -> list[str]:
    """Lines of a table, one for each library that is installed."""
    arrays = {"numpy": X} | {name: import_module(name).asarray(X) for name in LIBRARIES if find_spec(name)}
    times: dict[str, list[float]] = {name: [] for name in arrays}
    for _ in range(REPEATS):
        for name, rows in arrays.items():
            times[name].append(processor_time(partial(model.predict_proba, rows)))
    ratios = {name: np.array(times[name]) / np.array(times["numpy"]) for name in arrays}
    reference = model.predict_proba(X)
    changes = {name: np.abs(on_host(model.predict_proba(rows)) - reference).max() for name, rows in arrays.items()}
    return [
        "| library | processor time relative to numpy, median (least to most) | largest change of a probability |",
        "| --- | --- | --- |",
        *(
            f"| {name} {import_module(name).__version__} | {np.median(r):.2f} ({r.min():.2f} to {r.max():.2f}) | "
            f"{changes[name]:.0e} |"
            for name, r in ratios.items()
        ),
    ]


def added_to_single_rows(model: CMVMED, X: np.ndarray) -> str:
    """Time of the question where an array is, beside that of predicting it, without dispatch."""
    asked = [processor_time(lambda: [array_place(X[:1]) for _ in range(SINGLE_REPEATS)]) for _ in range(REPEATS)]
    whole = [processor_time(lambda: [model.predict(X[:1]) for _ in range(SINGLE_REPEATS)]) for _ in range(REPEATS)]
    micro = 1e6 / SINGLE_REPEATS
    return (
        f"The question takes {micro * np.median(asked):.1f} µs of the {micro * np.median(whole):.0f} µs in which one row of "
        "numpy is predicted without dispatch."
    )


def main() -> None:
    rng = np.random.default_rng(0)
    X, y = draw_rows(N_TRAIN, rng)
    rows, _ = draw_rows(N_ROWS, rng)
    with threadpool_limits(1):
        if find_spec("torch"):
            import_module("torch").set_num_threads(1)
        model = CMVMED(views=VIEWS, n_jobs=1).fit(X, hidden(y, N_LABELED))
        single = added_to_single_rows(model, rows)
        with sklearn.config_context(array_api_dispatch=True):
            table = compare(model, rows)
    n_landmarks = model.approximation_["n_components"]
    head = f"{N_ROWS:,} rows, two views of 50 columns, {n_landmarks} landmarks, {REPEATS} repetitions in turn:"
    text = "\n".join([head, "", *table, "", single]) + "\n"
    (RESULTS / "array_api.md").write_text(text)
    fill(ROOT / "docs" / "scaling.md", "array_api", text)
    print(text)


if __name__ == "__main__":
    main()
