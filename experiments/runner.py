"""Run an experiment: list its rows, compute those that are not in the store, and write each one when it is finished.

Rows that two experiments have in common, such as Table 1 and Figure 2 at the numbers of labels of the table, are
computed once.

Splits are drawn in this process and sent to worker processes or to a Dask cluster, which need no data files. Split 0 of
all data sets and numbers of labels comes first, so that a run that is stopped leaves complete splits. Within a split
the order is random, so that several processes with one store share the work.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import groupby, islice
from typing import Protocol

from joblib import Parallel, delayed

from cmvmed._parent_process import exit_with_parent
from experiments.datasets import DatasetError
from experiments.evaluation import evaluate
from experiments.experiment import Cell, Experiment
from experiments.methods import Method, methods_for
from experiments.result_rows import Key, ResultRow, failed_row
from experiments.store import ResultStore
from experiments.tasks import TASKS, Split, draw_split

WORKER_SECONDS = 60.0  # how long to wait for the first worker of a Dask cluster

Job = tuple[Key, Method, Split]
Rows = Generator[ResultRow, None, None]
Executor = Callable[[Iterable[Job]], Rows]


@dataclass(frozen=True)
class Plan:
    """The rows of an experiment, and the data sets and methods that are not available.

    Attributes
    ----------
    methods : mapping of key to method
        One entry per row.
    missing_datasets, missing_methods : mapping of name to reason
    """

    methods: Mapping[Key, Method]
    missing_datasets: Mapping[str, str]
    missing_methods: Mapping[str, str]


def plan(experiment: Experiment) -> Plan:
    """List the rows of an experiment; loads its data sets and skips those that are not available."""
    views, missing_datasets = _view_names({cell.dataset for cell in experiment.cells})
    wanted: dict[Key, Method] = {}
    missing_methods: dict[str, str] = {}
    for cell in experiment.cells:
        for method in methods_for(experiment.methods, views.get(cell.dataset, [])):
            if reason := method.missing_package():
                missing_methods[method.name] = reason
            elif cell.dataset in views:
                wanted |= dict.fromkeys(_keys(experiment, cell, method.name), method)
    return Plan(wanted, missing_datasets, missing_methods)


def _view_names(datasets: Iterable[str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Names of the views by data set, and for data sets that cannot be loaded the reason."""
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
    """Compute the wanted rows that are not in the store.

    Parameters
    ----------
    wanted : mapping of key to method
    store : ResultStore
        Receives each row when it is finished. Rows that other processes add in the meantime are skipped.
    execute : callable
        Computes the rows of jobs, in any order: ``local_executor(n_jobs)`` or ``dask_executor(address)``.
    retry_failed : bool, default=False
        Whether to compute rows again that failed in an earlier run.
    on_row : callable
        Called with each new row and the number of remaining rows.
    """
    copy_shared_rows(wanted, store)
    failed_before = store.failed_keys()
    finished = store.done_keys() | (set() if retry_failed else failed_before)
    own: set[Key] = set()
    with closing(execute(_jobs(wanted, finished))) as rows:
        for row in rows:
            store.add(row)
            own.add(row.key)
            finished |= store.done_keys() | own  # failures of this run are not retried
            on_row(row, len(wanted.keys() - finished))


def copy_shared_rows(wanted: Mapping[Key, Method], store: ResultStore) -> None:
    """Add wanted rows that another experiment in the store has: split and method do not depend on the experiment."""
    finished = store.done_keys()
    others = {key[1:]: key for key in sorted(finished)}
    shared = {others[key[1:]]: key for key in wanted.keys() - finished if key[1:] in others}
    if shared:
        for row in store.rows():
            if row.key in shared:
                store.add(replace(row, spec=shared[row.key].spec))


def _jobs(wanted: Mapping[Key, Method], finished: set[Key]) -> Iterator[Job]:
    """Jobs split by split, in random order within a split; keys added to ``finished`` in the meantime are skipped."""
    groups = [list(keys) for _, keys in groupby(sorted(wanted.keys() - finished), key=lambda key: key[:4])]
    random.SystemRandom().shuffle(groups)
    groups.sort(key=lambda keys: keys[0].split)
    for group in groups:
        pending = [key for key in group if key not in finished]
        if not pending:
            continue
        first = pending[0]
        split = draw_split(TASKS[first.dataset], first.split, first.n_labeled)
        for key in pending:
            if key not in finished:
                yield key, wanted[key], split


def local_executor(n_jobs: int) -> Executor:
    """Compute rows in ``n_jobs`` worker processes with one BLAS thread each; in this process if ``n_jobs`` is 1."""

    def execute(jobs: Iterable[Job]) -> Rows:
        # max_nbytes=None: no memory-mapped arrays; batch_size=1: each row is returned when it is finished
        parallel = Parallel(
            n_jobs,
            return_as="generator_unordered",
            batch_size=1,
            max_nbytes=None,
            initializer=exit_with_parent,
            initargs=(os.getpid(),),
        )
        rows: Rows = parallel(delayed(evaluate)(*job) for job in jobs)
        return rows

    return execute


def dask_executor(address: str) -> Executor:
    """Compute rows on the Dask cluster with this scheduler address; its workers should have one thread each."""

    def execute(jobs: Iterable[Job]) -> Rows:
        try:
            distributed = import_module("distributed")
        except ImportError as error:
            raise ImportError("A Dask cluster needs dask.distributed: pip install --editable '.[dask]'") from error
        with distributed.Client(address, timeout="10s", set_as_default=False) as client:
            try:
                client.wait_for_workers(1, timeout=WORKER_SECONDS)
            except TimeoutError as error:
                raise TimeoutError(
                    f"The Dask scheduler at {address} has had no worker for {WORKER_SECONDS:g} s; start at least one."
                ) from error
            yield from _rows_from_dask(client, distributed.as_completed([]), iter(jobs))

    return execute


class _Future(Protocol):
    def result(self) -> ResultRow: ...
    def exception(self) -> BaseException | None: ...


class _Client(Protocol):
    def nthreads(self) -> Mapping[str, int]: ...
    def scatter(self, data: Split, *, hash: bool) -> _Future: ...
    def submit(
        self,
        function: Callable[..., ResultRow],
        key: Key,
        method: Method,
        split: _Future,
        *,
        pure: bool,
    ) -> _Future: ...


class _AsCompleted(Protocol):
    def __iter__(self) -> Iterator[_Future]: ...
    def add(self, future: _Future) -> None: ...


def _rows_from_dask(client: _Client, running: _AsCompleted, jobs: Iterator[Job]) -> Rows:
    """Rows in the order of completion, with two jobs per thread submitted at any time."""
    keys: dict[_Future, Key] = {}
    scattered: tuple[Split, _Future] | None = None  # the split of the last job, and its copy on the cluster

    def submit(job: Job) -> None:
        nonlocal scattered
        key, method, split = job
        if scattered is None or scattered[0] is not split:
            scattered = split, client.scatter(split, hash=False)
        future = client.submit(evaluate, key, method, scattered[1], pure=False)
        keys[future] = key
        running.add(future)

    for job in islice(jobs, 2 * sum(client.nthreads().values())):
        submit(job)
    for future in running:
        key = keys.pop(future)
        error = future.exception()  # of a worker that died repeatedly; evaluate itself does not raise
        yield future.result() if error is None else failed_row(key, error)
        for job in islice(jobs, 1):
            submit(job)
