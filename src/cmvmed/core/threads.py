"""Threads: the same work for several views or folds in parallel, and how many of them the linear algebra may use."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

from joblib import effective_n_jobs
from threadpoolctl import OpenBLASController, threadpool_info, threadpool_limits

Mapper: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


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
    with blas_limit(max(1, threads // workers)), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))
