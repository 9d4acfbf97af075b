"""Dask workers that are killed, paused, late or added during a fit: its predictions are those of an undisturbed fit.

A fit passes many times over the blocks of a dask array, with a sample so small that most rows are in blocks only.
"""

import atexit
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import cmvmed
from benchmarks.faults.campaign import CLEAR_ERROR, HELD, Fault
from benchmarks.faults.errors import check_clear
from cmvmed.auto.tuning import Tuning, tuning_context

CASES = {"ci": 5, "nightly": 300}
N_ROWS, N_LABELED, N_WORKERS = 900, 30, 2
TOLERANCE = 1e-6  # of probabilities: sums over blocks are added in another order
FIT_SECONDS = 120.0
PAUSE = 1.0  # seconds


@dataclass(frozen=True)
class Case:
    """What happens to a worker, and when: a share of the time of an undisturbed fit."""

    event: str = "killed"
    moment: float = 0.5
    persisted: bool = False
    n_blocks: int = 9


def draw(rng: np.random.Generator, number: int) -> Case:
    """Events take turns."""
    return Case(
        event=list(EVENTS)[number % len(EVENTS)],
        moment=float(rng.random()),
        persisted=bool(rng.random() < 0.5),
        n_blocks=int(rng.integers(2, 19)),
    )


def check(case: Case) -> str:
    """Fit while the event happens, and compare."""
    expected, seconds = reference()
    X = dask_rows(case.n_blocks)
    X = X.persist() if case.persisted else X
    before, at_moment = EVENTS[case.event]
    before()
    timer = threading.Timer(case.moment * seconds, at_moment)
    timer.start()
    try:
        found = _fit(X)
    except Exception as error:
        check_clear(error, (ValueError, OSError))
        return CLEAR_ERROR
    finally:
        timer.join()
        restore()
    difference = float(np.abs(found - expected).max())
    if not difference <= TOLERANCE:
        raise Fault(f"{case.event}: predictions differ", f"by {difference:.3g}")
    return HELD


@cache
def rows() -> tuple[np.ndarray, np.ndarray]:
    """The rows of all cases, and their labels."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.arange(N_ROWS) % 2)
    return rng.normal(size=(N_ROWS, 8)) + codes[:, None], np.where(np.arange(N_ROWS) < N_LABELED, codes, -1)


def dask_rows(n_blocks: int) -> Any:
    """The rows in blocks."""
    import dask.array as da

    return da.from_array(rows()[0], chunks=(-(-N_ROWS // n_blocks), -1))


def _fit(X: Any) -> np.ndarray:
    """Fit within a time limit, and predict rows in memory."""
    found: list[np.ndarray | BaseException] = []

    def work() -> None:
        small = replace(Tuning(), sample_rows=200, max_exact_rows=100, min_components=20, max_components=20)
        try:
            with tuning_context(small), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                settings = {"views": [4, 4], "n_stages": 2, "max_iter": 4, "members": None}
                model = cmvmed.CMVMED(**settings).fit(X, rows()[1])
                found.append(np.asarray(model.predict_proba(rows()[0])))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(FIT_SECONDS)
    if not found:
        raise Fault(f"a fit takes more than {FIT_SECONDS:g} s", repr(X))
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


@cache
def cluster() -> Any:
    """Two workers in processes of their own, and a client; they end with this process."""
    import logging

    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    made = LocalCluster(
        n_workers=N_WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    client = Client(made)
    atexit.register(_close, made, client)
    return made, client


def _close(made: Any, client: Any) -> None:
    """End client and workers; a worker that was lost shortly before may be one that dask does not know any more."""
    client.close()
    with suppress(KeyError):
        made.close()


@cache
def reference() -> tuple[np.ndarray, float]:
    """Predictions of an undisturbed fit, and its time."""
    cluster()[1].wait_for_workers(N_WORKERS, timeout=60)
    _fit(dask_rows(9))
    start = time.monotonic()
    return _fit(dask_rows(9)), time.monotonic() - start


def worker_processes() -> list[int]:
    """The process numbers of the workers."""
    return [int(info["pid"]) for info in cluster()[1].run(lambda: {"pid": os.getpid()}).values()]


def restore() -> None:
    """As many workers as at the start."""
    made, client = cluster()
    made.scale(N_WORKERS)
    client.wait_for_workers(N_WORKERS, timeout=60)


def _signal_one(number: signal.Signals) -> int:
    pid = min(worker_processes())
    os.kill(pid, number)
    return pid


def _kill() -> None:
    _signal_one(signal.SIGKILL)


def _pause() -> None:
    pid = _signal_one(signal.SIGSTOP)
    time.sleep(PAUSE)
    os.kill(pid, signal.SIGCONT)


def _remove_all() -> None:
    made, client = cluster()
    made.scale(0)
    end = time.monotonic() + 30.0
    while client.nthreads() and time.monotonic() < end:
        time.sleep(0.05)


def _scale(n: int) -> Callable[[], None]:
    return lambda: cluster()[0].scale(n)


def _nothing() -> None:
    pass


# What happens before the fit, and at a moment during it.
EVENTS: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
    "killed": (_nothing, _kill),
    "paused": (_nothing, _pause),
    "late": (_remove_all, _scale(N_WORKERS)),
    "added": (_nothing, _scale(N_WORKERS + 1)),
    "retired": (_nothing, _scale(1)),
}
