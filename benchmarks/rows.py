"""Whether enough rows are enough: ``python -m benchmarks.rows``.

Two Gaussian views of ten features with 40 labels are fitted twice for each of ``--fits`` draws: with all 12,000 rows, and
with a sample of 2,400 of them, after 600 that were annealed, as if so few were many. The table compares what all rows
change with what ``approximation_["change"]`` estimates: its mean, and how often its bounds, which are to hold in 95 % of
fits, do.

``--large N`` fits N rows of the scale benchmark once with ``rows="enough"`` and, with ``--all``, with ``rows="all"``, and
compares the processor time with that of predicting them, and the accuracies on 20,000 new rows.
"""

import argparse
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.scale_points import N_LABELED, VIEWS, draw_rows
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.datasets import make_multiview_gaussian

N_ROWS, N_ANNEALED, N_HELD_OUT, N_NEW = 12_000, 600, 2000, 20_000
QUANTITIES = ("accuracy", "classes", "probability")


def changes(p: np.ndarray, sampled: np.ndarray) -> dict[str, float]:
    """What all rows change: probabilities (n, K) by a fit to all rows, and by one to a sample."""
    rows, classes = np.arange(len(p)), sampled.argmax(axis=1)
    return {
        "accuracy": float((p.max(axis=1) - p[rows, classes]).mean()),
        "classes": float((p.argmax(axis=1) != classes).mean()),
        "probability": float(0.5 * np.abs(p - sampled).sum(axis=1).mean()),
    }


def one_fit(seed: int) -> tuple[dict[str, float], Mapping[str, float]]:
    """What all rows change, and what was estimated."""
    data = make_multiview_gaussian(N_ROWS, n_features=10, separation=(1.5, 1.0), labeled=40, random_state=seed)
    settings: dict[str, Any] = {"views": data.views, "n_components": 60, "random_state": seed}
    with tuning_context(replace(Tuning(), sample_rows=N_ANNEALED, held_out_rows=N_HELD_OUT)):
        whole = CMVMED(rows="all", **settings).fit(data.data, data.y)
        sampled = CMVMED(rows_tol=1.0, **settings).fit(data.data, data.y)
    found = changes(whole.predict_proba(data.data), sampled.predict_proba(data.data))
    return found, sampled.approximation_["change"]


def coverage_table(fits: list[tuple[dict[str, float], Mapping[str, float]]]) -> str:
    """A line for each quantity."""
    lines = ["| change by all rows | mean | mean estimate | bound holds |", "| --- | --- | --- | --- |"]
    for name in QUANTITIES:
        true = np.array([found[name] for found, _ in fits])
        estimate, bound = (np.array([told[key] for _, told in fits]) for key in (name, f"{name}_bound"))
        holds = f"{100 * np.mean(true <= bound):.0f} %"
        lines.append(f"| {name} | {100 * true.mean():.3f} % | {100 * estimate.mean():.3f} % | {holds} |")
    return "\n".join(lines)


def large(n: int, rows: str) -> str:
    """One line about a fit of n rows."""
    X, y = draw_rows(n + N_NEW, np.random.default_rng(0))
    hidden = np.where(np.arange(n) < N_LABELED, y[:n], -1)
    start = time.process_time()
    model = CMVMED(views=VIEWS, rows=rows).fit(X[:n], hidden)
    fitted = time.process_time()
    model.predict_proba(X[:n])
    predicted = time.process_time()
    ratio = (fitted - start) / (predicted - fitted)
    swept = model.approximation_.get("n_swept", n)
    return (
        f"{n} rows, rows={rows!r}: {swept} swept over, fit {fitted - start:.1f} s of processor time, "
        f"prediction {predicted - fitted:.1f} s, ratio {ratio:.2f}, accuracy {100 * model.score(X[n:], y[n:]):.2f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--large", type=int)
    parser.add_argument("--all", action="store_true", help="with --large: also with all rows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.large:
        for rows in ("enough", "all")[: 1 + arguments.all]:
            print(large(arguments.large, rows), flush=True)
        return
    print(coverage_table([one_fit(seed) for seed in range(arguments.fits)]))


if __name__ == "__main__":
    main()
