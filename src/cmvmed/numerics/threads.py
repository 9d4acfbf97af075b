"""Threads: the same work for several views or folds in parallel, and how many of them the linear algebra may use."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, TypeAlias, TypeVar

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import OpenBLASController, ThreadpoolController

Mapper: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
Result = TypeVar("Result")

WORKER = "cmvmed-worker"  # name of the threads that compute
WAIT_SECONDS = 0.1  # between looks for an interrupt, where the system does not end the wait at one


class _BlasLimits:
    """The limits in force.

    The number of BLAS threads belongs to the process, so overlapping limits of several Python threads must not restore
    each other's values: the smallest limit applies, and the last one to end restores what was there before.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.active: list[int] = []
        self.before: Any = None  # what restores the numbers of threads

    def add(self, limit: int) -> None:
        with self.lock:
            self.active.append(limit)
            with _control():
                limits = _libraries().limit(limits=min(self.active))
            self.before = self.before or limits

    def remove(self, limit: int) -> None:
        with self.lock:
            self.active.remove(limit)
            with _control():
                if self.active:
                    _libraries().limit(limits=min(self.active))
                elif self.before is not None:
                    self.before.restore_original_limits()
                    self.before = None


@contextmanager
def _control() -> Iterator[None]:
    """Let this Python thread set the number of OpenBLAS threads, which newer threadpoolctl reserves for one thread at a time."""
    release = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    release(force=True)
    try:
        yield
    finally:
        release(force=True)


_LIMITS = _BlasLimits()
_SEEN: dict[
    int, ThreadpoolController
] = {}  # the libraries that compute in threads, by the number of modules at that time


def _libraries() -> ThreadpoolController:
    """The libraries that compute in threads, looked for again after new modules were imported: that takes milliseconds."""
    if len(sys.modules) not in _SEEN:
        _SEEN.clear()
        _SEEN[len(sys.modules)] = ThreadpoolController()
    return next(iter(_SEEN.values()))


@contextmanager
def blas_limit(n_threads: int | None) -> Iterator[None]:
    """Limit the linear algebra of the process to ``n_threads`` threads; None sets no limit. Safe in concurrent threads."""
    if n_threads is None:
        yield
        return
    _LIMITS.add(n_threads)
    try:
        yield
    finally:
        _LIMITS.remove(n_threads)


def blas_threads() -> int:
    """Number of threads that the linear algebra may use now, which the environment can limit."""
    return max((library["num_threads"] for library in _libraries().info() if library["user_api"] == "blas"), default=1)


def usable_threads() -> int:
    """The same, but no more than the processors that the process may use, by its affinity and the quota of its container."""
    return min(blas_threads(), int(cpu_count()))


def parallel_map(n_jobs: int | None, low_rank: bool) -> Mapper:
    """A ``map`` on ``n_jobs`` threads, in each of which the linear algebra uses one.

    None means one thread, unless the user's joblib configuration says otherwise. With low-rank features it means all
    threads of the linear algebra: products with features gain more from one thread per view than from threads within.
    """
    workers = effective_n_jobs(n_jobs)
    if n_jobs is None and low_rank:
        workers = max(workers, usable_threads())
    return partial(_map_in_threads, workers) if workers > 1 else map


def interruptible(function: Callable[[Any], Result], argument: Any) -> Result:
    """A long call of LAPACK or BLAS that does not hold the interpreter, so that the main thread reacts to Ctrl-C meanwhile.

    The main thread, the only one that Python interrupts, waits for another one that computes. An interrupted call cannot
    be stopped: its result is discarded, and it ends with the process at the latest.
    """
    if current_thread() is not main_thread():
        return function(argument)
    result: Result = _map_in_threads(1, function, [argument])[0]
    return result


def _map_in_threads(workers: int, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The function of each item, by threads that the process does not wait for when it ends, unlike those of a pool.

    Each limits the linear algebra to one thread as long as it runs, interrupted or not: at the end of a process OpenBLAS
    waits for its own threads, which an interrupted call would keep busy.
    """
    pending = deque(enumerate(items))
    n_items = len(pending)
    results: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}

    def work() -> None:
        with blas_limit(1):
            while not errors:
                try:
                    index, item = pending.popleft()
                except IndexError:
                    return
                try:
                    results[index] = function(item)
                except BaseException as error:  # raised again by the thread that waits
                    errors[index] = error

    workers = min(workers, n_items)
    threads = [Thread(target=copy_context().run, args=(work,), name=WORKER, daemon=True) for _ in range(workers)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(WAIT_SECONDS)
    except BaseException:
        pending.clear()
        raise
    if errors:
        raise errors[min(errors)]
    return [results[index] for index in range(n_items)]
