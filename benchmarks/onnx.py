"""ONNX models beside the library: ``python -m benchmarks.onnx`` writes benchmarks/results/onnx.md.

Default models of simulated data and of the data sets in ``CMVMED_DATA`` predict 10,000 rows, with all views and with 20 % of the
views and 2 % of the cells missing. The views of a row are drawn from the test rows independently of each other, so that 10,000
rows differ. onnxruntime and the library get the same numbers, in single precision; one column has the difference to the library's
predictions of the numbers before they were rounded. Both use one thread; 10,000 rows are passed 1000 at a time.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.provenance import RESULTS, write
from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian
from experiments.datasets import DatasetNotFoundError
from experiments.tasks import TASKS, draw_split

N_ROWS, N_AT_A_TIME, MISSING_VIEWS, MISSING_CELLS, N_REPEATS = 10_000, 1000, 0.2, 0.02, 20
SPLIT = 3000  # of the tasks, a development split that no table uses
LANDMARKS = "gauss, landmarks"
DATA = [LANDMARKS, "gauss", "footsteps", "digits", "mfeat", "sensit", "ads", "webkb"]
HEAD = [
    "data",
    "training rows",
    "classes",
    "columns by view",
    "missing",
    "MB",
    "largest difference",
    "of rounded inputs",
    "other class",
    "one row ms",
    "library ms",
    "10,000 rows s",
    "library s",
]


@dataclass(frozen=True)
class Case:
    """A fitted model and rows like its test rows, by view."""

    name: str
    model: CMVMED
    n_train: int
    views: list[np.ndarray]


def of_task(name: str) -> Case:
    split = draw_split(TASKS[name], SPLIT)
    model = CMVMED(views=split.views).fit(split.X, split.y)
    return Case(name, model, split.y.size, [dense(split.X_test[:, columns]) for columns in split.views.values()])


def of_landmarks() -> Case:
    """Four classes and so many rows that kernels are approximated."""
    data = make_multiview_gaussian(8000, separation=(1.8, 1.5), n_classes=4, random_state=0)
    y = np.where(np.arange(4000) < 60, data.target[:4000], -1)
    model = CMVMED(views=dict(data.views)).fit(data.data[:4000], y)
    return Case(LANDMARKS, model, 4000, [data.data[4000:, columns] for columns in data.views.values()])


def dense(table: Any) -> np.ndarray:
    return np.asarray(table.toarray() if sparse.issparse(table) else table, dtype=np.float64)


def draw_rows(views: Sequence[np.ndarray], rng: np.random.Generator, *, missing: bool) -> list[np.ndarray]:
    """Some rows whose views are drawn independently, with or without missing views and cells."""
    drawn = [view[rng.integers(len(view), size=N_AT_A_TIME)] for view in views]
    if missing:
        for view in drawn:
            view[rng.random(view.shape) < MISSING_CELLS] = np.nan
            view[rng.random(N_AT_A_TIME) < MISSING_VIEWS] = np.nan
    return drawn


@dataclass
class Totals:
    """What is compared, over all rows so far."""

    difference: float = 0.0
    to_exact: float = 0.0
    other_class: int = 0
    onnx_seconds: float = 0.0
    library_seconds: float = 0.0


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the time that it took."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def measure(case: Case, n_rows: int, *, missing: bool) -> list[str]:
    """A line of the table."""
    model, content = case.model, case.model.to_onnx().SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options)
    names = [value.name for value in session.get_inputs()]
    rng, totals = np.random.default_rng(0), Totals()

    def run(views: Sequence[np.ndarray]) -> Any:
        return session.run(["label", "probabilities"], dict(zip(names, views, strict=True)))

    for _ in range(0, n_rows, N_AT_A_TIME):
        exact = draw_rows(case.views, rng, missing=missing)
        inputs = [view.astype(np.float32) for view in exact]
        X = np.hstack([view.astype(np.float64) for view in inputs])
        (label, p), by_onnx = timed(partial(run, inputs))
        expected, by_library = timed(partial(model.predict_proba, X))
        totals.onnx_seconds += by_onnx
        totals.library_seconds += by_library
        totals.difference = max(totals.difference, float(np.abs(p - expected).max()))
        totals.to_exact = max(totals.to_exact, float(np.abs(p - model.predict_proba(np.hstack(exact))).max()))
        totals.other_class += int((label != model.predict(X)).sum())
    one = partial(run, [view[:1] for view in inputs]), partial(model.predict_proba, X[:1])
    single = [np.median([timed(call)[1] for _ in range(N_REPEATS)]) for call in one]
    return [
        case.name,
        str(case.n_train),
        str(model.classes_.size),
        " + ".join(str(view.shape[1]) for view in inputs),
        "yes" if missing else "no",
        f"{len(content) / 1e6:.1f}",
        f"{totals.difference:.1g}",
        f"{totals.to_exact:.1g}",
        str(totals.other_class),
        *(f"{1e3 * s:.1f}" for s in single),
        f"{totals.onnx_seconds:.1f}",
        f"{totals.library_seconds:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    arguments = parser.parse_args()
    lines = [HEAD, ["---"] * len(HEAD)]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in arguments.data:
            try:
                case = of_landmarks() if name == LANDMARKS else of_task(name)
            except DatasetNotFoundError as error:
                print(f"{name} is left out: {error}")
                continue
            for missing in (False, True):
                lines.append(measure(case, arguments.rows, missing=missing))
                print(f"| {' | '.join(lines[-1])} |", flush=True)
    if arguments.rows == N_ROWS and set(arguments.data) == set(DATA):
        write(RESULTS / "onnx.md", "\n".join(f"| {' | '.join(line)} |" for line in lines))


if __name__ == "__main__":
    main()
