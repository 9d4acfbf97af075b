"""Predictions and fits of arrays of other libraries beside those of numpy's: ``python -m benchmarks.array_api``.

A landmark model predicts rows in memory, given as arrays of numpy, torch and array-api-strict, in turn, with one thread, and
is fitted to more rows than are annealed at once. Shown are the processor time relative to numpy in the same run, the largest
change of a probability, and what the question whether X belongs to another library adds to the prediction of a single row. On
the processor nothing is to be gained; the figures say what it costs that formulas are written for all libraries.
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

from benchmarks.gauss import N_LABELED, VIEWS, draw_rows, hidden
from benchmarks.pages import RESULTS, ROOT, fill
from cmvmed import CMVMED
from cmvmed.data.array_api import array_place, on_host

N_TRAIN, N_ROWS, REPEATS, SINGLE_REPEATS = 4000, 10_000, 3, 200
N_FIT, FIT_COMPONENTS = 20_000, 400
LIBRARIES = ("torch", "array_api_strict")


def processor_time(work: Callable[[], Any]) -> float:
    return timed(work)[1]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What some work gives, and the processor time that it takes."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def compare(work: Callable[[Any], Any], X: np.ndarray) -> list[str]:
    """Lines of a table, one for each library that is installed, for work that gives probabilities of the rows X."""
    arrays = {"numpy": X} | {name: import_module(name).asarray(X) for name in LIBRARIES if find_spec(name)}
    times: dict[str, list[float]] = {name: [] for name in arrays}
    changes = dict.fromkeys(arrays, 0.0)
    for _ in range(REPEATS):
        reference: Any = None
        for name, rows in arrays.items():
            p, seconds = timed(partial(work, rows))
            times[name].append(seconds)
            reference = p if reference is None else reference
            changes[name] = max(changes[name], np.abs(on_host(p) - reference).max())
    ratios = {name: np.array(times[name]) / np.array(times["numpy"]) for name in arrays}
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


def compare_fits(rng: np.random.Generator) -> list[str]:
    """The table of fits, and what is above it."""
    X, y = draw_rows(N_FIT, rng)
    model = CMVMED(views=VIEWS, approximation=FIT_COMPONENTS, n_jobs=1, rows_tol=0, random_state=0)
    table = compare(lambda rows: model.fit(rows, hidden(y, N_LABELED)).label_distributions_, X)
    found = model.approximation_
    return [
        f"Fit of {N_FIT:,} rows, {FIT_COMPONENTS} landmarks, {found['n_annealed']:,} unlabeled rows annealed by numpy and "
        f"{found['n_swept']:,} swept over where they are:",
        "",
        *table,
    ]


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
            predictions, fits = compare(model.predict_proba, rows), compare_fits(rng)
    n_landmarks = model.approximation_["n_components"]
    head = f"Prediction of {N_ROWS:,} rows, two views of 50 columns, {n_landmarks} landmarks, {REPEATS} repetitions in turn:"
    text = "\n".join([head, "", *predictions, "", single, "", *fits]) + "\n"
    (RESULTS / "array_api.md").write_text(text)
    fill(ROOT / "docs" / "scaling.md", "array_api", text)
    print(text)


if __name__ == "__main__":
    main()
