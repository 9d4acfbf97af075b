"""Whether enough rows are enough: ``python -m benchmarks.rows``.

Two Gaussian views of ten features with 40 labels are fitted twice for each of ``--fits`` draws: with all 12,000 rows, and
with a sample of 2,400 of them, after 600 that were annealed, as if so few were many. The table compares what all rows
change with what ``approximation_["change"]`` estimates: its mean, and how often its bounds, which are to hold in 95 % of
fits, do.

``--large N`` fits N rows of ``--data`` once with all defaults and, with ``--all``, with ``rows_tol=0``, and compares
the processor time with that of predicting them, and the accuracies on new rows. The data are ``gauss``, the rows of the
scale benchmark, or ``sensit``: 1395 real rows of SensIT Vehicle drawn with replacement, each with normal noise of a tenth
of the columns' standard deviations; its new rows are made in the same way of the other 465. Both have 100 labels and 20,000
new rows. Memory is the growth of the resident memory of a process of its own during the fit, X not counted.

Every fit is stored in ``benchmarks/results/rows.json`` when it is finished, so that a run can be continued, and the tables
are written to ``benchmarks/results/rows.md``.
"""

import argparse
import json
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale_points import N_LABELED, VIEWS, draw_rows, hidden, measured
from cmvmed import CMVMED
from cmvmed.auto.tuning import Tuning, tuning_context
from cmvmed.datasets import make_multiview_gaussian
from experiments.datasets import fetch_sensit_vehicle

N_ROWS, N_ANNEALED, N_HELD_OUT, N_NEW = 12_000, 600, 2000, 20_000
NOISE = 0.1  # standard deviations that are added to real rows that occur several times
RESULTS = Path(__file__).parent / "results" / "rows.json"
REPORT = RESULTS.with_suffix(".md")
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


def gauss(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and classes, new rows and classes."""
    X, y = draw_rows(n + N_NEW, np.random.default_rng(0))
    return X[:n], y[:n], X[n:], y[n:]


def sensit(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same of real rows, drawn with replacement and blurred; training and new rows are made of different ones."""
    data, rng = fetch_sensit_vehicle(), np.random.default_rng(0)
    X, y = np.asarray(data.data, dtype=np.float64), np.unique(data.target, return_inverse=True)[1]
    order, deviation = rng.permutation(len(X)), NOISE * X.std(axis=0)

    def enlarged(real: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        drawn = rng.choice(real, size)
        rows = X[drawn]
        for start in range(0, size, N_NEW):
            block = rows[start : start + N_NEW]
            block += deviation * rng.normal(size=block.shape)
        return rows, y[drawn]

    n_real = len(X) // 4
    return *enlarged(order[n_real:], n), *enlarged(order[:n_real], N_NEW)


DATA = {"gauss": gauss, "sensit": sensit}


def large(data: str, n: int, rows: str) -> dict[str, Any]:
    """A fit of n rows, against the prediction of the same rows."""
    warnings.simplefilter("ignore")
    X, y, X_new, y_new = DATA[data](n)
    CMVMED(views=VIEWS).fit(X[:300], hidden(y[:300], 50)).predict(X[:300])  # imports are not measured
    start = time.process_time()
    model, _, mib = measured(
        lambda: CMVMED(views=VIEWS, **({"rows_tol": 0} if rows == "all" else {})).fit(X, hidden(y, N_LABELED))
    )
    fitted = time.process_time()
    model.predict_proba(X)
    predicted = time.process_time()
    return {
        "data": data,
        "n": n,
        "rows": rows,
        "n_swept": int(model.approximation_.get("n_swept", n)),
        "fit_cpu_seconds": fitted - start,
        "predict_cpu_seconds": predicted - fitted,
        "mib": mib,
        "accuracy": float(model.score(X_new, y_new)),
        "change": model.approximation_.get("change"),
    }


def large_table(fits: list[Mapping[str, Any]]) -> str:
    """A line for each fit."""
    lines = [
        "| data | rows | used | swept over | fit | prediction of all rows | ratio | memory | accuracy | estimated loss |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for fit in sorted(fits, key=lambda fit: (fit["data"], fit["n"], fit["rows"])):
        seconds, predicting = fit["fit_cpu_seconds"], fit["predict_cpu_seconds"]
        change = fit["change"]
        lost = "–" if change is None else f"{100 * change['accuracy']:.2f} (< {100 * change['accuracy_bound']:.2f})"
        lines.append(
            f"| {fit['data']} | {fit['n']:,} | {fit['rows']} | {fit['n_swept']:,} | {seconds:.1f} s | {predicting:.1f} s | "
            f"{seconds / predicting:.2f} | {fit['mib']:.0f} MiB | {100 * fit['accuracy']:.2f} % | {lost} |"
        )
    return "\n".join(lines)


def growth(fits: list[Mapping[str, Any]], data: str) -> str:
    """The power of the number of rows with which the time of fits grows, by the smallest and the largest fit."""
    own = sorted((f["n"], f["fit_cpu_seconds"]) for f in fits if f["data"] == data and f["rows"] == "enough")
    if len(own) < 2:
        return ""
    (n, seconds), (larger, longer) = own[0], own[-1]
    power = np.log(longer / seconds) / np.log(larger / n)
    return f"From {n:,} to {larger:,} rows of {data}, the processor time of a fit grows with the rows to the power {power:.2f}."


def report(stored: Mapping[str, Any]) -> str:
    """All tables."""
    fits, large_fits = stored["fits"], list(stored["large"].values())
    parts = ["# As many rows as needed", "Written by `python -m benchmarks.rows`. Times are of the processor."]
    if large_fits:
        powers = [growth(large_fits, data) for data in DATA]
        parts += [large_table(large_fits), *(power for power in powers if power)]
    if fits:
        parts += [
            f"What sweeps over all of 12,000 rows change after a sample of 2,400, in {len(fits)} fits:",
            coverage_table(list(fits.values())),
        ]
    return "\n\n".join(parts) + "\n"


def stored_results() -> dict[str, Any]:
    """The results so far, by draw and by fit of many rows."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"fits": {}, "large": {}}


def store(kind: str, key: str, result: Mapping[str, Any]) -> None:
    """Add a result."""
    stored = stored_results()
    stored[kind][key] = result
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
    REPORT.write_text(report(stored))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--large", type=int)
    parser.add_argument("--data", choices=list(DATA), default="gauss")
    parser.add_argument("--all", action="store_true", help="with --large: also with all rows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.large:
        for rows in ("enough", "all")[: 1 + arguments.all]:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:  # whose memory no other fit has used
                result = process.submit(large, arguments.data, arguments.large, rows).result()
            store("large", f"{arguments.data} {arguments.large} {rows}", result)
            print(large_table([result]), flush=True)
        return
    for seed in range(arguments.fits):
        if str(seed) not in stored_results()["fits"]:
            store("fits", str(seed), one_fit(seed))
    print(coverage_table(list(stored_results()["fits"].values())))


if __name__ == "__main__":
    main()
