"""Run an experiment: plan its rows, work off those that are not in the store, write each as soon as it is there.

Splits are drawn here and sent to worker processes, or to a Dask cluster, which need no data files. The order of the work is random,
so that the time left can be told from the time taken, and several processes with one store share the work instead of
repeating it.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from typing import Any

from joblib import Parallel, delayed

from cmvmed.datasets import DatasetError
from cmvmed.reproduction.evaluation import evaluate
from cmvmed.reproduction.experiment import Cell, Experiment
from cmvmed.reproduction.methods import Method, methods_for
from cmvmed.reproduction.result_rows import Key, ResultRow
from cmvmed.reproduction.store import ResultStore
from cmvmed.reproduction.tasks import TASKS, Split, draw

Job = tuple[Key, Method, Split]
Rows = Generator[ResultRow, None, None]
Executor = Callable[[Iterable[Job]], Rows]


@dataclass(frozen=True)
class Plan:
    """The rows that an experiment wants, and what it must do without."""

    methods: Mapping[Key, Method]
    missing_datasets: Mapping[str, str]  # name to reason
    missing_methods: Mapping[str, str]


def plan(experiment: Experiment) -> Plan:
    """List the rows of an experiment. Loads its data sets; those that are not there are named and left out."""
    views, missing_datasets = _load({cell.dataset for cell in experiment.cells})
    wanted: dict[Key, Method] = {}
    missing_methods: dict[str, str] = {}
    for cell in experiment.cells:
        for method in methods_for(experiment.methods, views.get(cell.dataset, [])):
            if reason := method.missing_package():
                missing_methods[method.name] = reason
            elif cell.dataset in views:
                wanted |= dict.fromkeys(_keys(experiment, cell, method.name), method)
    return Plan(wanted, missing_datasets, missing_methods)


def _load(datasets: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Names of the views of each data set, and for those that cannot be had the reason."""
    views, missing = {}, {}
    for name in sorted(datasets):
        try:
            views[name] = list(TASKS[name].load().views)
        except (DatasetError, ImportError) as error:
            missing[name] = str(error)
    return views, missing


def _keys(experiment: Experiment, cell: Cell, method: str) -> list[Key]:
    first, n_published = experiment.first_split, TASKS[cell.dataset].n_published
    end = first + experiment.n_splits if n_published is None else min(first + experiment.n_splits, n_published)
    return [
        Key(experiment.name, cell.dataset, cell.n_labeled, number, method, protocol)
        for number in range(first, end)
        for protocol in experiment.protocols
    ]


def run(
    wanted: Mapping[Key, Method],
    store: ResultStore,
    execute: Executor,
    *,
    retry_failed: bool = False,
    on_row: Callable[[ResultRow, int], None] = lambda row, n_left: None,
) -> None:
    """Work off the wanted rows that the store does not have.

    Parameters
    ----------
    wanted : mapping of key to method
    store : ResultStore
        Gets each row as soon as it is finished. What other processes add to it meanwhile is not done again.
    execute : callable
        Turns jobs into rows, in any order: ``on_this_machine(n_jobs)`` or ``on_dask(address)``.
    retry_failed : bool, default=False
        Whether to do again what failed before.
    on_row : callable
        Called with each new row and the number of rows still to come.
    """
    failed_before = store.failed_keys()
    settled = store.done_keys() | (set() if retry_failed else failed_before)
    own: set[Key] = set()
    with closing(execute(_jobs(wanted, settled))) as rows:
        for row in rows:
            store.add(row)
            own.add(row.key)
            settled |= store.done_keys() | own  # a failure of this run is not tried again in it
            on_row(row, len(wanted.keys() - settled))


def _jobs(wanted: Mapping[Key, Method], settled: set[Key]) -> Iterator[Job]:
    """Jobs in random order of splits; ``settled`` grows meanwhile, and what it has by then is skipped."""
    groups = [list(keys) for _, keys in groupby(sorted(wanted.keys() - settled), key=lambda key: key[:4])]
    random.SystemRandom().shuffle(groups)
    for group in groups:
        pending = [key for key in group if key not in settled]
        if not pending:
            continue
        first = pending[0]
        split = draw(TASKS[first.dataset], first.split, first.n_labeled)
        for key in pending:
            if key not in settled:
                yield key, wanted[key], split


def on_this_machine(n_jobs: int) -> Executor:
    """Execute in ``n_jobs`` processes, each with one thread of linear algebra; in this process if it is one."""

    def execute(jobs: Iterable[Job]) -> Rows:
        # max_nbytes=None: workers get arrays of their own; batch_size=1: a row is written when it is there, not with the next
        parallel = Parallel(n_jobs, return_as="generator_unordered", batch_size=1, max_nbytes=None)
        work = delayed(evaluate if n_jobs == 1 else partial(_evaluate_in_worker, os.getpid()))
        rows: Rows = parallel(work(*job) for job in jobs)
        return rows

    return execute


def _evaluate_in_worker(parent: int, *job: Any) -> ResultRow:
    _end_with(parent)
    return evaluate(*job)


@cache
def _end_with(parent: int) -> None:
    """End this worker when the process that started it is killed; it would go on waiting for work."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def on_dask(address: str) -> Executor:
    """Execute on the Dask cluster whose scheduler is at the address; workers should have one thread each."""

    def execute(jobs: Iterable[Job]) -> Rows:
        distributed = _distributed()
        with distributed.Client(address, timeout="10s", set_as_default=False) as client:
            yield from _rows_from_dask(distributed, client, iter(jobs))

    return execute


def _rows_from_dask(distributed: Any, client: Any, jobs: Iterator[Job]) -> Rows:
    n_threads = sum(client.nthreads().values())
    if not n_threads:
        raise OSError(f"The Dask scheduler at {client.scheduler.address} has no workers; start some.")
    keys: dict[Any, Key] = {}
    sent: tuple[Split, Any] | None = None  # the split of the last job, and where it lies in the cluster

    def submit(job: Job) -> Any:
        nonlocal sent
        key, method, split = job
        if sent is None or sent[0] is not split:
            sent = split, client.scatter(split, hash=False)
        future = client.submit(evaluate, key, method, sent[1], pure=False)
        keys[future] = key
        return future

    running = distributed.as_completed([submit(job) for job, _ in zip(jobs, range(2 * n_threads), strict=False)])
    for future in running:
        key = keys.pop(future)
        error = future.exception()  # evaluate raises nothing: this is a worker that died again and again
        yield future.result() if error is None else _lost(key, error)
        following = next(jobs, None)
        if following is not None:
            running.add(submit(following))


def _lost(key: Key, error: BaseException) -> ResultRow:
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return ResultRow(**key._asdict(), status="failed", error=message)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("A Dask cluster needs dask.distributed: pip install 'cmvmed[dask]'") from error
    return distributed
