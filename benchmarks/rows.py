"""Whether enough rows are enough: ``python -m benchmarks.rows``.

Two Gaussian views of ten features with 40 labels are fitted twice for each of ``--fits`` draws: with all 12,000 rows, and
with a sample of 2,400 of them, after 600 that were annealed, as if so few were many. The table compares what all rows
change with what ``approximation_["change"]`` estimates: its mean, and how often its bounds, which are to hold in 95 % of
fits, do.

The table is written to ``benchmarks/results/rows.md``.
"""

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.provenance import RESULTS, write
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.datasets import make_multiview_gaussian

N_ROWS, N_ANNEALED, N_HELD_OUT = 12_000, 600, 2000
QUANTITIES = ("accuracy", "classes", "probability")


def changes(p: np.ndarray, sampled: np.ndarray) -> dict[str, float]:
    """What all rows change: probabilities (n, K) by a fit to all rows, and by one to a sample."""
    rows, classes = np.arange(len(p)), sampled.argmax(axis=1)
    return {
        "accuracy": float((p.max(axis=1) - p[rows, classes]).mean()),
        "classes": float((p.argmax(axis=1) != classes).mean()),
        "probability": float(0.5 * np.abs(p - sampled).sum(axis=1).mean()),
    }


def one_fit(seed: int) -> dict[str, Any]:
    """What all rows change, and what was estimated."""
    data = make_multiview_gaussian(N_ROWS, n_features=10, separation=(1.5, 1.0), labeled=40, random_state=seed)
    settings: dict[str, Any] = {"views": data.views, "approximation": 60, "random_state": seed}
    with tuning_context(replace(Tuning(), sample_rows=N_ANNEALED, held_out_rows=N_HELD_OUT)):
        whole = CMVMED(rows_tol=0, **settings).fit(data.data, data.y)
        sampled = CMVMED(rows_tol=1.0, **settings).fit(data.data, data.y)
    found = changes(whole.predict_proba(data.data), sampled.predict_proba(data.data))
    return {"true": found, "estimated": dict(sampled.approximation_["change"])}


def coverage_table(fits: list[Mapping[str, Any]]) -> str:
    """A line for each quantity."""
    lines = ["| change by all rows | mean | mean estimate | bound holds |", "| --- | --- | --- | --- |"]
    for name in QUANTITIES:
        true = np.array([fit["true"][name] for fit in fits])
        estimate, bound = (np.array([fit["estimated"][key] for fit in fits]) for key in (name, f"{name}_bound"))
        holds = f"{100 * np.mean(true <= bound):.0f} %"
        lines.append(f"| {name} | {100 * true.mean():.3f} % | {100 * estimate.mean():.3f} % | {holds} |")
    return "\n".join(lines)


def report(n_fits: int) -> str:
    """What all rows change, over draws of the rows."""
    fits = [one_fit(seed) for seed in range(n_fits)]
    return f"What sweeps over all of 12,000 rows change after a sample of 2,400, in {n_fits} fits:\n\n{coverage_table(fits)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=100)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    text = report(arguments.fits)
    write(RESULTS / "rows.md", text)
    print(text)


if __name__ == "__main__":
    main()
