"""One fit in a process of its own, forked from this one so that packages are imported once.

A fit that takes more processor time than the limit is ended by the system (SIGXCPU); one that asks for more memory than the
limit, data and imported packages not counted, gets a MemoryError. Memory is the growth of the process's resident memory during
the fit. A small fit before is not measured, so that compilation and what is imported late are not.
"""

import math
import multiprocessing
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.gauss import memory_now
from benchmarks.peers.methods import METHODS
from benchmarks.peers.rows import read_rows
from benchmarks.peers.store import Key
from experiments.evaluation import peak_memory

SMALL = 300  # rows of the fit that is not measured
PATIENCE = 30.0  # seconds by the clock for each of processor time, on a machine that does other work too


def measure(key: Key, seconds: float, gib: float) -> dict[str, Any]:
    """The result of one fit, or why it was stopped."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, key, seconds, gib))
    process.start()
    sender.close()
    try:
        if not receiver.poll(PATIENCE * seconds):
            process.kill()
            return {"stopped": f"> {PATIENCE * seconds:g} s by the clock"}
        return dict(receiver.recv())
    except EOFError:  # it died
        process.join()
        return {"stopped": f"> {seconds:g} s" if process.exitcode == -signal.SIGXCPU else f"exit {process.exitcode}"}
    finally:
        process.join()


def _send(sender: Connection, key: Key, seconds: float, gib: float) -> None:
    """What the process does."""
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            sender.send(fit_and_predict(key, seconds, gib))
    except MemoryError:
        sender.send({"stopped": f"> {gib:g} GiB"})
    except Exception as error:  # a method that fails is shown as such
        sender.send({"stopped": f"{type(error).__name__}: {error}"[:100]})


def fit_and_predict(key: Key, seconds: float, gib: float) -> dict[str, Any]:
    """Processor time and memory of the fit, accuracy on held-out rows and the time that they take."""
    small = read_rows(key.data, SMALL, key.draw)
    METHODS[key.method](small.views).fit(small.X, small.y).predict(small.X)
    rows = read_rows(key.data, key.n, key.draw)
    model = METHODS[key.method](rows.views)
    with limited(seconds, gib), peak_memory() as peak:
        _, fit_seconds = processor_time(lambda: model.fit(rows.X, rows.y))
    answer, predict_seconds = processor_time(lambda: model.predict(rows.X_test))
    return {
        "seconds": fit_seconds,
        "mib": peak.mib,
        "accuracy": float(np.mean(answer == rows.y_test)),
        "predict_us": 1e6 * predict_seconds / rows.y_test.size,
        "n_labeled": int((rows.y >= 0).sum()),
        "n_real": rows.n_real,
        "n_test": int(rows.y_test.size),
    }


def processor_time(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work returns, and its seconds of all threads."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


@contextmanager
def limited(seconds: float, gib: float) -> Iterator[None]:
    """Limits of further processor time and memory."""
    limits = {
        resource.RLIMIT_CPU: math.ceil(time.process_time() + seconds),
        resource.RLIMIT_DATA: int(memory_now("VmData") * 2**20 + gib * 2**30),
    }
    before = {kind: resource.getrlimit(kind) for kind in limits}
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, before[kind][1]))
    try:
        yield
    finally:
        for kind in limits:
            resource.setrlimit(kind, before[kind])
