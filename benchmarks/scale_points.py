"""One measurement of the scale benchmark in a process of its own: ``python -m benchmarks.scale_points fit CMVMED 4000``.

The last line of its output is the result as JSON. Memory is the growth of the process's resident memory during the fit, data
and imported libraries not counted.
"""

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from cmvmed import CMVMED
from cmvmed.data.memory import free_memory
from cmvmed.data.sources import memory_rows
from cmvmed.data.validation import RowCheck
from cmvmed.numerics.nystroem import Landmarks
from cmvmed.scale.passes import ChunkView, GramPass, SweepPass, UnlabeledRows
from experiments.baseline_pipelines import CoTrainingClassifier

WIDTH, N_LABELED, N_TEST = 50, 100, 5000
SEPARATION = (1.1, 0.8)  # of the two views, in within-class standard deviations from the middle
VIEWS = {"first": slice(0, WIDTH), "second": slice(WIDTH, 2 * WIDTH)}
ROWS_PER_BLOCK = 25_000
WIDE, ROWS_PER_WIDE_FILE, ROWS_PER_GROUP = (
    400,
    20_000,
    2500,
)  # features of a view in files beyond memory, and their rows


class NystroemSelfTraining:
    """Nyström features of all rows, then self-training with logistic regression."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "NystroemSelfTraining":
        """Fit to labeled and unlabeled rows."""
        gamma = 1.0 / (4 * WIDTH)  # about one over the median squared distance
        self.features = make_pipeline(StandardScaler(), Nystroem(gamma=gamma, n_components=1000, random_state=0))
        self.model = SelfTrainingClassifier(LogisticRegression(max_iter=2000)).fit(self.features.fit_transform(X), y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Class of each row."""
        return self.model.predict(self.features.transform(X))


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


METHODS: dict[str, Callable[[], Any]] = {
    "CMVMED": lambda: CMVMED(views=VIEWS),
    "LabelSpreading rbf": lambda: scaled(LabelSpreading(gamma=0.1, max_iter=200)),
    "LabelSpreading knn": lambda: scaled(LabelSpreading("knn", max_iter=200)),
    "SelfTraining (LR)": lambda: scaled(SelfTrainingClassifier(LogisticRegression(max_iter=2000))),
    "Nystroem + SelfTraining (LR)": NystroemSelfTraining,
    "co-training (LR)": lambda: scaled(CoTrainingClassifier(VIEWS, LogisticRegression(max_iter=2000))),
}


def draw_rows(n: int, rng: np.random.Generator, width: int = WIDTH) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian views side by side, independent given the class, and the class."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2 * width))
    for i, separation in enumerate(SEPARATION):
        X[:, i * width : (i + 1) * width] += ((2.0 * y - 1.0) * separation / np.sqrt(width))[:, None]
    return X, y


def memory_now(field: str) -> float:
    """Resident memory of this process in MiB: "VmRSS" now, "VmHWM" the most since it was reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What the work returns, its seconds, and the MiB by which it made the process grow."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, start = memory_now("VmRSS"), time.perf_counter()
    result = work()
    return result, time.perf_counter() - start, memory_now("VmHWM") - before


def hidden(y: np.ndarray, n_labeled: int) -> np.ndarray:
    """Labels of the first rows, -1 for all others."""
    return np.where(np.arange(y.size) < n_labeled, y, -1)


def streamed_part(model: CMVMED, n_unlabeled: int, seconds: float) -> dict[str, Any]:
    """How kernels were handled, the sweeps over all rows of a fit by sample, and the seconds beside them."""
    history, sampled = model.history_, "n_annealed" in model.approximation_
    everywhere = (history["n_rows"] == n_unlabeled) & sampled
    return {
        "kind": model.approximation_["kind"],
        "sweeps": int(everywhere.sum()),
        "start_seconds": seconds - float(history["seconds"][everywhere].sum()),
    }


def fit_point(method: str, n: int) -> dict[str, Any]:
    free = free_memory()  # a method that needs more fails by itself, and takes nothing else with it
    resource.setrlimit(resource.RLIMIT_DATA, (free, free))
    rng = np.random.default_rng(0)
    small, of_small = draw_rows(300, rng)
    METHODS[method]().fit(small, hidden(of_small, N_LABELED)).predict(small)  # imports and threads are not measured
    X_test, y_test = draw_rows(N_TEST, rng)
    X, y = draw_rows(n, rng)
    cpu = time.process_time()
    model, seconds, mib = measured(lambda: METHODS[method]().fit(X, hidden(y, N_LABELED)))
    cpu = time.process_time() - cpu
    answer, predict_seconds, _ = measured(lambda: model.predict(X_test))
    more = streamed_part(model, n - N_LABELED, seconds) if isinstance(model, CMVMED) else {}
    return {
        "method": method,
        "n": n,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "mib": mib,
        "accuracy": float(np.mean(answer == y_test)),
        "predict_rows_per_second": N_TEST / predict_seconds,
    } | more


def single_point(n: int, repeats: int) -> dict[str, Any]:
    """The time of predicting one row by a model fitted to ``n`` rows."""
    rng = np.random.default_rng(0)
    X, y = draw_rows(n, rng)
    rows, _ = draw_rows(repeats, rng)
    model = CMVMED(views=VIEWS).fit(X, hidden(y, N_LABELED))
    model.predict(rows[:1])
    seconds = [timed(partial(model.predict, rows[i : i + 1]))[0] for i in range(repeats)]
    return {"n": n, "kind": model.approximation_["kind"], "ms": 1e3 * float(np.median(seconds))}


def efficiency_point(n: int, p: int, repeats: int) -> dict[str, Any]:
    """A pass over the rows of one view against the bare products and exponentials, by as many threads, in turns.

    Then the processor time that a row of one view costs in each kind of pass.
    """
    rng = np.random.default_rng(0)
    small, y = draw_rows(3 * p, rng)
    model = CMVMED(views=VIEWS, approximation=p, n_stages=1).fit(small, hidden(y, N_LABELED))
    term = model._model.consensus.terms[0]
    landmarks = Landmarks(term.kernel, term.rows.rows, np.arange(term.rows.size))
    coefficients = np.vstack([term.coefficients[:, 1:], term.constant[1:]])
    X = draw_rows(n, rng)[0][:, :WIDTH].copy()
    unlabeled = UnlabeledRows(RowCheck(("first",), (None,), (None,)), np.arange(N_LABELED), None)
    views = (ChunkView(term.rows.preprocessor, landmarks),)
    gram = GramPass(unlabeled, views)
    sweep = SweepPass(unlabeled, views, (coefficients,), np.ones(1), np.zeros(1), 0.15)
    source, rows = memory_rows([X]), np.asarray(term.rows.rows).T.copy()
    times = []
    for _ in range(repeats):
        pair = [lambda: source.reduce(gram)]
        pair.append(lambda: source.reduce(partial(_bare_chunk, rows)))
        times.append([seconds for seconds, _ in map(timed, pair)])
    passes, bare = np.array(times).T
    of_row = {
        "gram_us": timed(lambda: source.reduce(gram))[1],
        "sweep_us": timed(lambda: source.reduce(sweep))[1],
        "predict_us": timed(lambda: list(source.map(partial(_mean_of_chunk, term))))[1],
    }
    return {
        "n": n,
        "p": p,
        "seconds": float(np.median(passes)),
        "ratio": float(np.median(passes / bare)),
    } | {name: 1e6 * cpu / n for name, cpu in of_row.items()}


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock and of all processors."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def _mean_of_chunk(term: Any, first_row: int, matrices: list[np.ndarray]) -> np.ndarray:
    return term.scores(matrices, [np.ones(len(matrices[0]), dtype=bool)])


def _bare_chunk(landmarks: np.ndarray, first_row: int, matrices: list[np.ndarray]) -> tuple[np.ndarray]:
    """The work that a pass cannot avoid: a product, an exponential, a product."""
    kernel = matrices[0] @ landmarks
    np.exp(kernel, out=kernel)
    return (kernel.T @ kernel,)


def write_blocks(folder: Path, n: int) -> tuple[list[Path], np.ndarray]:
    """``n`` rows in numpy files, and their classes."""
    rng, paths, classes = np.random.default_rng(1), [], []
    for i, start in enumerate(range(0, n, ROWS_PER_BLOCK)):
        X, y = draw_rows(min(ROWS_PER_BLOCK, n - start), rng)
        paths.append(folder / f"{i:05d}.npy")
        np.save(paths[-1], X)
        classes.append(y)
    return paths, np.concatenate(classes)


def dask_point(n: int, n_workers: int, folder: Path) -> dict[str, Any]:
    """A fit to all rows, in the memory of single-threaded workers; the predictions are computed there too."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    paths, y = write_blocks(folder, n)
    shapes = [np.load(path, mmap_mode="r").shape for path in paths]
    with LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        blocks = [
            da.from_delayed(dask.delayed(np.load)(str(path)), shape, dtype=float)
            for path, shape in zip(paths, shapes, strict=True)
        ]
        X = da.concatenate(blocks).persist()
        wait(X)
        model, seconds, mib = measured(lambda: CMVMED(views=VIEWS, rows_tol=0).fit(X, hidden(y, N_LABELED)))
        answer, predict_seconds, _ = measured(lambda: model.predict(X).compute())
    return {
        "n": n,
        "workers": n_workers,
        "seconds": seconds,
        "predict_seconds": predict_seconds,
        "client_mib": mib,
        "accuracy": float(np.mean(answer == y)),
        "sweep_seconds": [float(s) for s in model.history_["seconds"]],
        "sweep_rows": [int(r) for r in model.history_["n_rows"]],
    }


def write_parquet(folder: Path, n: int) -> None:
    """``n`` rows in a folder of Parquet files for each sensor; the class is a column of the first, null where unknown."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(2)
    for name in VIEWS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for i, start in enumerate(range(0, n, ROWS_PER_WIDE_FILE)):
        X, y = draw_rows(min(ROWS_PER_WIDE_FILE, n - start), rng, WIDE)
        for k, name in enumerate(VIEWS):
            table = pa.table({f"{name}{c}": X[:, k * WIDE + c] for c in range(WIDE)})
            if name == "first":
                known = np.arange(start, start + y.size) < N_LABELED
                table = table.append_column(
                    "class", pa.array([int(c) if k else None for c, k in zip(y, known, strict=True)])
                )
                np.save(folder / f"truth{i:05d}.npy", y)
            path = folder / name / f"{i:05d}.parquet"
            pq.write_table(table, path, row_group_size=ROWS_PER_GROUP, compression="none", use_dictionary=False)


def outofcore_point(folder: Path, limit_gib: float) -> dict[str, Any]:
    """Fit and predict files under a limit of the process's data; the truth is read afterwards."""
    limit = int(limit_gib * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    X = {name: folder / name for name in VIEWS}
    model, seconds, mib = measured(lambda: CMVMED().fit(X, "class"))
    peak = memory_now("VmHWM")
    answer, predict_seconds, _ = measured(lambda: model.predict(X))
    peak = max(peak, memory_now("VmHWM"))
    truth = np.concatenate([np.load(path) for path in sorted(folder.glob("truth*.npy"))])
    size = sum(path.stat().st_size for name in VIEWS for path in (folder / name).iterdir())
    return {
        "n": int(truth.size),
        "gib_on_disk": size / 2**30,
        "limit_gib": limit_gib,
        "seconds": seconds,
        "predict_seconds": predict_seconds,
        "mib": mib,
        "peak_mib": peak,
        "sweeps": int((model.history_["n_rows"] == model.history_["n_rows"][-1]).sum()),
        "accuracy": float(np.mean(answer == truth)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    fit = kinds.add_parser("fit")
    fit.add_argument("method", choices=list(METHODS))
    fit.add_argument("n", type=int)
    dask = kinds.add_parser("dask")
    dask.add_argument("n", type=int)
    dask.add_argument("n_workers", type=int)
    dask.add_argument("folder", type=Path)
    single = kinds.add_parser("single")
    single.add_argument("n", type=int)
    single.add_argument("repeats", type=int)
    efficiency = kinds.add_parser("efficiency")
    efficiency.add_argument("n", type=int)
    efficiency.add_argument("p", type=int)
    efficiency.add_argument("repeats", type=int)
    outofcore = kinds.add_parser("outofcore")
    outofcore.add_argument("folder", type=Path)
    outofcore.add_argument("limit_gib", type=float)
    arguments = vars(parser.parse_args())
    points = {
        "fit": fit_point,
        "single": single_point,
        "dask": dask_point,
        "efficiency": efficiency_point,
        "outofcore": outofcore_point,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        print(json.dumps(points[arguments.pop("kind")](**arguments)))


if __name__ == "__main__":
    main()
