"""The measurements of ``benchmarks.speed``: each is a function without arguments that returns lines of its table.

``python -m benchmarks.speed_points NAME`` makes one of them in a process of its own, and prints its lines as JSON. Seconds
are those of the processor, the least of some runs, unless a line says "clock".
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from benchmarks.gauss import N_LABELED, VIEWS, WIDTH, draw_rows, hidden, measured, memory_now
from cmvmed import CMVMED, config_context
from cmvmed.numerics.kernel_expansions import blocks_of_rows

N_TEST, N_SINGLE, N_MANY, REPEATS = 2000, 300, 20_000, 3
PEERS: dict[str, Callable[[], Any]] = {
    "ExtraTrees": lambda: ExtraTreesClassifier(random_state=0),
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "LabelSpreading knn": lambda: make_pipeline(StandardScaler(), LabelSpreading("knn", max_iter=200)),
}
NEEDS_UNLABELED = ("LabelSpreading knn",)  # the others are fitted to the labeled rows alone
THREADS = ("1", "2", "8", "32")
DASK_ROWS, ROWS_PER_BLOCK = 400_000, 25_000
PARQUET_ROWS, PARQUET_WIDTH, ROWS_PER_FILE = 10_000_000, 20, 250_000


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    what: str
    own: str
    goal: str = "–"
    peers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """Training rows, of which the first have labels and the others -1, and new rows."""

    X: np.ndarray
    y: np.ndarray
    views: dict[str, slice]
    X_test: np.ndarray
    y_test: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, views: dict[str, slice], n: int, n_labeled: int) -> "Rows":
        """The first n rows are for training."""
        return cls(X[:n], hidden(y[:n], n_labeled), views, X[n:], y[n:])

    def peer(self, name: str) -> Any:
        """A fitted peer."""
        used = slice(None) if name in NEEDS_UNLABELED else self.y >= 0
        return PEERS[name]().fit(self.X[used], self.y[used])

    def own(self, y: np.ndarray | None = None) -> CMVMED:
        """A fitted CMVMED."""
        return CMVMED(views=self.views).fit(self.X, self.y if y is None else y)


def gauss(n: int, n_labeled: int = N_LABELED) -> Rows:
    """Two classes, two views of 50 columns."""
    return Rows.of(*draw_rows(n + N_TEST, np.random.default_rng(0)), VIEWS, n, n_labeled)


def digits() -> Rows:
    """Ten classes with five labels each; the upper and the lower half of the images are the views."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    first = np.concatenate([order[y[order] == c][:5] for c in range(10)])
    order = np.concatenate([first, order[~np.isin(order, first)]])
    return Rows.of(X[order], y[order], {"upper": slice(0, 32), "lower": slice(32, 64)}, 1000, 50)


def many_classes(n_classes: int, n_views: int, width: int, n: int, n_labeled: int, separation: float) -> Rows:
    """Gaussian classes with random means; every class has as many labels."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(n_labeled) % n_classes, rng.integers(0, n_classes, n - n_labeled + N_TEST)])
    X = separation * rng.normal(size=(n_classes, n_views * width))[y] + rng.normal(size=(y.size, n_views * width))
    return Rows.of(X, y, {f"v{i}": slice(i * width, (i + 1) * width) for i in range(n_views)}, n, n_labeled)


def seconds(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Least seconds of the processor."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def in_s(value: float) -> str:
    return f"{1e3 * value:.0f} ms" if value < 0.1 else f"{value:.2f} s" if value < 10.0 else f"{value:.0f} s"


def fit_lines(what: str, rows: Rows, goal: float, repeats: int = REPEATS) -> list[Line]:
    """Time and accuracy on new rows of a fit, beside those of the peers, with the ratio of the times."""
    gauss(300).own()  # imports are not measured
    model, own, mib = measured(rows.own)
    own = min(own, seconds(rows.own, repeats - 1)) if repeats > 1 else own
    peers = {}
    for name in PEERS:
        fitted = rows.peer(name)
        taken = seconds(partial(rows.peer, name))
        accuracy = 100 * np.mean(fitted.predict(rows.X_test) == rows.y_test)
        peers[name] = f"{in_s(taken)}, {accuracy:.0f} % ({own / taken:.1f}x)"
    accuracy = 100 * model.score(rows.X_test, rows.y_test)
    return [Line(what, f"{in_s(own)}, {accuracy:.0f} %, {mib:.0f} MiB", in_s(goal), peers)]


def refit() -> list[Line]:
    """A fit with one more label after one with the same rows, as on the labeling page."""
    rows = gauss(5000)
    model, y, times = CMVMED(views=rows.views), rows.y.copy(), []
    with config_context(keep_rows=True):
        model.fit(rows.X, y)
        for row in np.flatnonzero(y < 0)[:REPEATS]:
            y[row] = row % 2
            times.append(seconds(partial(model.fit, rows.X, y), 1))
    cold = seconds(rows.own, 1)
    return [
        Line("refit of the page, 5,000 rows, one label more", f"{in_s(min(times))} (from scratch {in_s(cold)})", "1 s")
    ]


def predictions() -> list[Line]:
    """One row at a time, and many rows beside the bare products and exponentials that they consist of."""
    rows = gauss(6000)
    new, models = draw_rows(N_MANY, np.random.default_rng(1))[0], {"own": rows.own()}
    models |= {name: rows.peer(name) for name in PEERS}
    one, many = {}, {}
    for name, model in models.items():
        model.predict_proba(new[:100])
        times = [seconds(partial(model.predict_proba, new[i : i + 1]), 1) for i in range(N_SINGLE)]
        one[name] = 1e3 * float(np.median(times))
        many[name] = 1e6 * seconds(partial(model.predict_proba, new), 2) / N_MANY
    bare = 1e6 * seconds(partial(bare_products, models["own"], new), 2) / N_MANY
    cells = [{name: f"{own[name]:.2g} ({own['own'] / own[name]:.1f}x)" for name in PEERS} for own in (one, many)]
    share = f"{many['own']:.0f} µs a row, bare products {100 * bare / many['own']:.0f} %"
    return [
        Line("`predict_proba` of one row, ms", f"{one['own']:.2f} ms", "0.2 ms", cells[0]),
        Line(f"`predict_proba` of {N_MANY:,} rows, µs a row", share, "80 % bare products", cells[1]),
    ]


def bare_products(model: CMVMED, X: np.ndarray) -> None:
    """A product with all rows that new rows are compared with, and an exponential of those that kernels compare."""
    fitted = model._model
    sums = fitted.evaluator().sum_of(tuple(fitted.known_views), 0)
    gaussians = [gaussian.centers[:-2].T for own in sums.kernels.values() for gaussian in own.gaussians]
    nodes = [distance.nodes for graphs in sums.graphs for distance in graphs.distances]
    for rows in blocks_of_rows(len(X)):
        block = X[rows, :WIDTH] / 10.0
        for centers in gaussians:
            kernel = block @ centers.T
            np.exp(kernel, out=kernel)
        for own in nodes:
            block @ own.T


def clock_of_digits() -> float:
    """Seconds by the clock of a fit, the least of two."""
    rows, times = digits(), []
    rows.own()
    for _ in range(2):
        start = time.perf_counter()
        rows.own()
        times.append(time.perf_counter() - start)
    return min(times)


def threads() -> list[Line]:
    """The same fit with several numbers of BLAS threads, alone and beside a busy process."""
    program, lines = "from benchmarks.speed_points import clock_of_digits; print(clock_of_digits())", []
    for where, n_busy in (("alone", 0), ("beside a busy process", 1)):
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_busy)]
        try:
            taken = [
                float(
                    subprocess.run(
                        [sys.executable, "-W", "ignore", "-c", program],
                        env=os.environ | {"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n},
                        check=True,
                        capture_output=True,
                        text=True,
                    ).stdout.split()[-1]
                )
                for n in THREADS
            ]
        finally:
            for other in others:
                other.kill()
                other.wait()
        shown = " / ".join(f"{value:.2f}" for value in taken)
        what = f"digits by the clock with {' / '.join(THREADS)} threads, {where}"
        lines.append(Line(what, f"{shown} s ({max(taken) / taken[0]:.2f}x)", "1.2x"))
    return lines


def million() -> list[Line]:
    """A fit of a million rows beside the prediction of the same rows."""
    rows = gauss(1_000_000)
    gauss(300).own().predict(rows.X[:300])  # imports are not measured
    model, fit, mib = measured(rows.own)
    predict = seconds(partial(model.predict_proba, rows.X), 1)
    accuracy = 100 * model.score(rows.X_test, rows.y_test)
    own = f"{in_s(fit)}, {fit / predict:.2f}x predicting them, {accuracy:.0f} %, {mib:.0f} MiB"
    return [Line("fit of 1,000,000 rows", own, "1.3x, 400 MiB")]


def dask_cluster() -> list[Line]:
    """A fit with sweeps over all rows on a cluster of one and of two workers with one thread each."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    X, y = draw_rows(DASK_ROWS, np.random.default_rng(0))
    gauss(2000).own()  # imports are not measured
    clock, busiest = [], []
    for n_workers in (1, 2):
        settings: dict[str, Any] = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**settings) as cluster, Client(cluster) as client:
            blocks = da.from_array(X, chunks=(ROWS_PER_BLOCK, -1)).persist()
            wait(blocks)
            before, start = client.run(time.process_time), time.perf_counter()
            client_seconds = seconds(partial(CMVMED(views=VIEWS, rows_tol=0).fit, blocks, hidden(y, N_LABELED)), 1)
            clock.append(time.perf_counter() - start)
            after = client.run(time.process_time)
            busiest.append(client_seconds + max(after[worker] - before[worker] for worker in before))
    own = f"{clock[0]:.0f} and {clock[1]:.0f} s clock ({clock[0] / clock[1]:.2f}x faster)"
    processor = f"client and busiest worker {busiest[0] / busiest[1]:.2f}x"
    return [Line(f"Dask, {DASK_ROWS:,} rows, 1 and 2 workers", f"{own}; {processor}", "1.8x faster")]


def parquet() -> list[Line]:
    """Rows of Parquet files, which are more than memory should hold, on one machine."""
    import pandas as pd

    names = list(VIEWS)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            Path(folder, name).mkdir()
        rng = np.random.default_rng(2)
        for i, start in enumerate(range(0, PARQUET_ROWS, ROWS_PER_FILE)):
            X, y = draw_rows(min(ROWS_PER_FILE, PARQUET_ROWS - start), rng, PARQUET_WIDTH)
            for k, name in enumerate(names):
                own = X[:, k * PARQUET_WIDTH : (k + 1) * PARQUET_WIDTH]
                table = pd.DataFrame(own, columns=[f"{name}{c}" for c in range(PARQUET_WIDTH)])
                if k == 0:
                    table["class"] = pd.array(np.where(start + np.arange(y.size) < N_LABELED, y, -1), dtype="Int64")
                    table.loc[table["class"] < 0, "class"] = pd.NA
                table.to_parquet(Path(folder, name, f"{i:05d}.parquet"))
        start_clock = time.perf_counter()
        _, fit, mib = measured(lambda: CMVMED().fit({name: Path(folder, name) for name in names}, "class"))
        clock = time.perf_counter() - start_clock
    own = f"{fit:.0f} s, {clock:.0f} s clock, {mib:.0f} MiB (most {memory_now('VmHWM'):.0f})"
    return [Line(f"fit of {PARQUET_ROWS:,} rows x 2 views x {PARQUET_WIDTH} columns of Parquet files", own)]


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


POINTS: dict[str, Callable[[], list[Line]]] = {
    "fit-300": lambda: fit_lines("fit, 300 rows, 2 classes", gauss(300, 50), 0.1),
    "fit-digits": lambda: fit_lines("fit, digits, 1,000 rows, 10 classes", digits(), 0.6),
    "fit-16000": lambda: fit_lines("fit, 16,000 rows", gauss(16_000), 1.8, 1),
    "fit-1200-labels": lambda: fit_lines("fit, 1,200 labels, 400 other rows", gauss(1600, 1200), 4.0, 1),
    "fit-60-views": lambda: fit_lines("fit, 60 views, 900 rows", many_classes(2, 60, 5, 900, 100, 0.15), 10.0, 1),
    "fit-100-classes": lambda: fit_lines(
        "fit, 100 classes, 200 labels, 1,000 rows", many_classes(100, 2, 20, 1000, 200, 0.7), 2.8, 1
    ),
    "refit": refit,
    "predict": predictions,
    "threads": threads,
    "million": million,
    "dask": dask_cluster,
    "parquet": parquet,
}


if __name__ == "__main__":
    from benchmarks.speed_commands import POINTS as COMMANDS

    with quiet():
        print(json.dumps([asdict(line) for line in (POINTS | COMMANDS)[sys.argv[1]]()]))
