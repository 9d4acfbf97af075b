"""Threads: the same work for several views or folds in parallel, and how many of them the linear algebra may use."""

import atexit
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from threading import Lock, Thread, current_thread, main_thread
from threading import enumerate as enumerate_threads
from time import sleep
from typing import Any, TypeAlias, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import OpenBLASController, threadpool_info, threadpool_limits

Mapper: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
Result = TypeVar("Result")

THREAD_NAME = "cmvmed linear algebra"
WAIT_SECONDS = 0.1  # between looks for an interrupt, where the system does not end the wait at one
EXIT_SECONDS = 0.5


class _BlasLimits:
    """The limits in force.

    The number of BLAS threads belongs to the process, so overlapping limits of several Python threads must not restore
    each other's values: the smallest limit applies, and the last one to end restores what was there before.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.active: list[int] = []
        self.before: threadpool_limits | None = None

    def add(self, limit: int) -> None:
        with self.lock:
            self.active.append(limit)
            with _control():
                limits = threadpool_limits(min(self.active))
            self.before = self.before or limits

    def remove(self, limit: int) -> None:
        with self.lock:
            self.active.remove(limit)
            with _control():
                if self.active:
                    threadpool_limits(min(self.active))
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
    return max((library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"), default=1)


def parallel_map(n_jobs: int | None, low_rank: bool) -> Mapper:
    """A ``map`` on ``n_jobs`` threads.

    None means one thread, unless the user's joblib configuration says otherwise. With low-rank features it means all
    threads of the linear algebra: products with features gain more from one thread per view than from threads within.
    """
    threads, workers = blas_threads(), effective_n_jobs(n_jobs)
    if n_jobs is None and low_rank:
        workers = max(workers, threads)
    return partial(_map_in_threads, workers, threads) if workers > 1 else map


def _map_in_threads(workers: int, threads: int, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The function of each item, by workers that share the threads of the linear algebra."""
    items = list(items)
    workers = max(1, min(workers, len(items)))
    with blas_limit(max(1, threads // workers)):
        return _in_other_threads(workers, function, items)


def interruptible(function: Callable[[Any], Result], argument: Any) -> Result:
    """A long call of LAPACK or BLAS that does not hold the interpreter, so that the main thread reacts to Ctrl-C meanwhile.

    The main thread, the only one that Python interrupts, waits for another one that computes. An interrupted call cannot
    be stopped: its result is discarded, and it ends with the process at the latest.
    """
    if current_thread() is not main_thread():
        return function(argument)
    result: Result = _in_other_threads(1, function, [argument])[0]
    return result


def is_computing() -> bool:
    """Whether a call that was interrupted still runs; the interpreter cannot end in order beside it."""
    return any(thread.name == THREAD_NAME for thread in enumerate_threads())


@atexit.register
def continue_on_one_thread() -> None:
    """At the end of the process, an interrupted call that still runs goes on without the threads of OpenBLAS.

    OpenBLAS ends its threads when the process does, and may wait forever for those that still compute.
    """
    if is_computing():
        with _control():
            threadpool_limits(1)
        sleep(EXIT_SECONDS)  # until the present product has ended


def _in_other_threads(workers: int, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The function of each item, by threads that the process does not wait for when it ends, unlike those of a pool."""
    pending = deque(enumerate(items))
    results: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}

    def work() -> None:
        while not errors:
            try:
                index, item = pending.popleft()
            except IndexError:
                return
            try:
                results[index] = function(item)
            except BaseException as error:  # raised again by the thread that waits
                errors[index] = error

    threads = [Thread(target=copy_context().run, args=(work,), name=THREAD_NAME, daemon=True) for _ in range(workers)]
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
    return [results[index] for index in range(len(items))]
