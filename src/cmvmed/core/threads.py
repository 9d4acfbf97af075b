"""The same work for each view, or each fold, side by side in threads."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import threadpool_info, threadpool_limits

Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


def algebra_threads() -> int:
    """Threads that the linear algebra may use, which the environment can limit."""
    return max((library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"), default=1)


def parallel_map(n_jobs: int | None, low_rank: bool) -> Mapper:
    """A ``map`` on ``n_jobs`` threads.

    None, where the user's joblib configuration says nothing else, is one thread; with low rank it is all that the linear algebra
    may use, since products with features gain more from a thread for each view than from threads within.
    """
    threads, workers = algebra_threads(), effective_n_jobs(n_jobs)
    if n_jobs is None and low_rank:
        workers = max(workers, threads)
    return partial(_mapped, workers, threads) if workers > 1 else map


def _mapped(workers: int, threads: int, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The function of each item, by workers that share the threads of the linear algebra."""
    items = list(items)
    workers = max(1, min(workers, len(items)))
    with threadpool_limits(max(1, threads // workers)), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))
