"""Threads and processes: fits and predictions at the same time are those of one after the other, bit by bit.

Several threads predict with one model, or fit models of their own; spawned processes load or unpickle the model and
predict, with the same number of threads of linear algebra.
"""

import atexit
import multiprocessing
import os
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import cmvmed
from benchmarks.faults.campaign import HELD, Fault, workspace

CASES = {"ci": 30, "nightly": 1000}
N_THREADS, N_PROCESSES = 6, 2
KINDS = ("predict in threads", "fit in threads", "predict in processes", "unpickle in processes", "fit in processes")
MODELS = {
    "CMVMED": lambda: cmvmed.CMVMED(n_stages=2),
    "CMVMED, consensus": lambda: cmvmed.CMVMED(members="consensus", n_stages=2),
    "CMVMED, nystroem": lambda: cmvmed.CMVMED(approximation=20, n_stages=2),
    "MVMED": lambda: cmvmed.MVMED(),
}


@dataclass(frozen=True)
class Case:
    """What runs at the same time, a model and its problem."""

    kind: str = "predict in threads"
    model: str = "CMVMED"
    seed: int = 0
    n_rows: int = 40
    n_columns: int = 3
    n_classes: int = 2


def draw(rng: np.random.Generator, number: int) -> Case:
    """Kinds take turns."""
    return Case(
        kind=KINDS[number % len(KINDS)],
        model=str(rng.choice(list(MODELS))),
        seed=int(rng.integers(2**31)),
        n_rows=int(rng.choice([30, 60, 150])),
        n_columns=int(rng.choice([1, 3, 17, 64])),
        n_classes=int(rng.choice([2, 3])),
    )


def _problem(case: Case) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(case.seed)
    codes = rng.permutation(np.arange(case.n_rows) % case.n_classes)
    views = [rng.normal(size=(case.n_rows, case.n_columns)) + codes[:, None] for _ in range(2)]
    return views, np.where(np.arange(case.n_rows) < 15, codes, -1)


def fit_and_predict(case: Case) -> np.ndarray:
    """Probabilities of the training rows by a fit of this process."""
    views, y = _problem(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(MODELS[case.model]().fit(views, y).predict_proba(views))


def predict_loaded(path: Path, views: list[np.ndarray]) -> np.ndarray:
    """Probabilities by the model of a file."""
    return np.asarray(cmvmed.load(path).predict_proba(views))


def predict(model: Any, views: list[np.ndarray]) -> np.ndarray:
    """Probabilities by a model."""
    return np.asarray(model.predict_proba(views))


def check(case: Case) -> str:
    """Compare what was computed at the same time with what one thread computes."""
    views, y = _problem(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[case.model]().fit(views, y)
        expected = predict(model, views)
        for found in RUNS[case.kind](case, model, views, y):
            if not np.array_equal(found, expected):
                difference = float(np.abs(found - expected).max()) if found.shape == expected.shape else np.inf
                raise Fault(f"{case.kind}: results differ", f"by {difference:.3g}, {case.model}")
    return HELD


def _in_threads(function: Any, *arguments: Any) -> list[np.ndarray]:
    with ThreadPoolExecutor(N_THREADS) as pool:
        return [one.result() for one in [pool.submit(function, *arguments) for _ in range(N_THREADS)]]


def _in_processes(function: Any, *arguments: Any) -> list[np.ndarray]:
    return [one.result() for one in [processes().submit(function, *arguments) for _ in range(N_PROCESSES)]]


def _saved(model: Any) -> Path:
    path = workspace() / f"threads-{os.getpid()}.cmvmed"
    model.save(path, overwrite=True)
    return path


RUNS: dict[str, Any] = {
    "predict in threads": lambda case, model, views, y: _in_threads(predict, model, views),
    "fit in threads": lambda case, model, views, y: _in_threads(
        lambda: predict(clone(model).fit([view.copy() for view in views], y), views)
    ),
    "predict in processes": lambda case, model, views, y: _in_processes(predict_loaded, _saved(model), views),
    "unpickle in processes": lambda case, model, views, y: _in_processes(predict, model, views),
    "fit in processes": lambda case, model, views, y: _in_processes(fit_and_predict, case),
}


@cache
def processes() -> ProcessPoolExecutor:
    """Spawned processes, which end with this one."""
    pool = ProcessPoolExecutor(N_PROCESSES, mp_context=multiprocessing.get_context("spawn"))
    atexit.register(pool.shutdown)
    return pool
