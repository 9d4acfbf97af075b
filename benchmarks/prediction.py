"""What a prediction costs: ``python -m benchmarks.prediction``.

A model of 6,000 rows of the scale benchmark with 1000 landmarks in each of two views, annealed on a sample as if there were
many rows, predicts ``--rows`` new rows, with its members and by the consensus alone. In turn with it, the products and
exponentials that it consists of are computed bare, in blocks of as many rows: those of the landmarks alone, and those of all
rows that the model compares new rows with. Shares are the medians of bare over actual processor time. A single row is
predicted many times, and its products and exponentials are computed bare as often. Results are written to
``benchmarks/results/prediction.md``.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from benchmarks.scale_points import N_LABELED, VIEWS, WIDTH, draw_rows, hidden
from cmvmed import CMVMED, config_context
from cmvmed.numerics.kernel_expansions import blocks_of_rows

N_FITTED, N_COMPONENTS, N_SINGLE = 6000, 1000, 1000
REPORT = Path(__file__).parent / "results" / "prediction.md"


def fitted_models() -> dict[str, CMVMED]:
    """A model with all members, and the same with the consensus alone."""
    X, y = draw_rows(N_FITTED, np.random.default_rng(0))
    model = CMVMED(views=VIEWS, approximation=N_COMPONENTS).fit(X, hidden(y, N_LABELED))
    alone = copy(model)
    alone._model = replace(model._model, members=model._model.members[-1:], pool=None)
    return {"with members": model, "consensus alone": alone}


def compared_rows(model: CMVMED) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Per view and kernel the centers that need a product and an exponential, and those that need a product."""
    sums = model._model.evaluator()._sums
    gaussians = [gaussian.centers[:-2].T for own in sums.kernels for gaussian in own.sum.gaussians]
    return gaussians, [distance.nodes for graphs in sums.graphs for distance in graphs.distances]


@dataclass(frozen=True)
class Bare:
    """The products and exponentials alone; every center has the features of one view."""

    with_exponential: Sequence[np.ndarray]  # (d, p) each
    without: Sequence[np.ndarray]

    @classmethod
    def of(cls, with_exponential: Sequence[np.ndarray], without: Sequence[np.ndarray], dtype: str) -> "Bare":
        """From centers (p, d)."""
        return cls(*([c.T.astype(dtype) for c in centers] for centers in (with_exponential, without)))

    def __call__(self, X: np.ndarray) -> None:
        """Compute them for rows whose first columns are those of a view."""
        for rows in blocks_of_rows(len(X)):
            block = X[rows, :WIDTH]
            for centers in self.with_exponential:
                kernel = block @ centers
                np.exp(kernel, out=kernel)
            for centers in self.without:
                block @ centers


def cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def shares(model: CMVMED, X: np.ndarray, repeats: int, dtype: str) -> dict[str, float]:
    """Medians of the microseconds of a row, and of the shares that bare products and exponentials have in them."""
    landmarks = [np.asarray(term.centers[0].rows) for term in model._model.view_terms]
    of_landmarks, of_all = Bare.of(landmarks, [], dtype), Bare.of(*compared_rows(model), dtype)
    scaled = (X / np.sqrt(WIDTH)).astype(dtype)
    times = []
    with config_context(prediction_dtype=dtype):
        model.predict_proba(X[:5000])
        for _ in range(repeats):
            own = cpu_seconds(lambda: model.predict_proba(X))
            bare = [cpu_seconds(partial(work, scaled)) for work in (of_landmarks, of_all)]
            times.append((own, *(seconds / own for seconds in bare)))
    own, share_of_landmarks, share_of_all = np.median(times, axis=0)
    return {"microseconds": 1e6 * own / len(X), "landmarks": share_of_landmarks, "all": share_of_all}


def single_row(model: CMVMED, X: np.ndarray, dtype: str) -> tuple[str, str]:
    """Median and shortest time of predicting one row, in milliseconds by the clock, and of what is computed bare for it."""
    bare, scaled = Bare.of(*compared_rows(model), dtype), (X[:N_SINGLE] / np.sqrt(WIDTH)).astype(dtype)
    with config_context(prediction_dtype=dtype):
        own = [timed(lambda i=i: model.predict_proba(X[i : i + 1])) for i in range(N_SINGLE)]
    return in_milliseconds(own), in_milliseconds([timed(lambda i=i: bare(scaled[i : i + 1])) for i in range(N_SINGLE)])


def in_milliseconds(times: Sequence[float]) -> str:
    return f"{np.median(times):.2f} ms ({min(times):.2f})"


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


def report(n: int, repeats: int) -> str:
    X, _ = draw_rows(n, np.random.default_rng(1))
    lines = [
        "# The cost of predictions",
        "",
        f"Written by `python -m benchmarks.prediction --rows {n} --repeats {repeats}`.",
        "",
        f"| model | precision | a row of {n:,} | bare landmarks | bare, all compared rows | one row, median (shortest) | "
        "one row, bare |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    models = fitted_models()
    for name, model in models.items():
        for dtype in ("float64", "float32"):
            found, (own, bare) = shares(model, X, repeats, dtype), single_row(model, X, dtype)
            lines.append(
                f"| {name} | {dtype} | {found['microseconds']:.1f} µs | {100 * found['landmarks']:.0f} % | "
                f"{100 * found['all']:.0f} % | {own} | {bare} |"
            )
    model = models["with members"]
    check = [timed(lambda: validate_data(model, X[:1], reset=False, ensure_all_finite=False)) for _ in range(N_SINGLE)]
    double = model.predict_proba(X[:20_000])
    with config_context(prediction_dtype="float32"):
        change = np.abs(model.predict_proba(X[:20_000]) - double)
    return "\n".join(
        [
            *lines,
            "",
            f"Of one row, scikit-learn's validation takes {in_milliseconds(check)}. In single precision "
            f"probabilities differ by at most {change.max():.1e}, {change.mean():.1e} on average.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    text = report(arguments.rows, arguments.repeats)
    REPORT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
