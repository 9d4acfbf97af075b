"""The commands ``table1``, ``figure2`` and ``all``: run experiments, write each result row when it is finished, show all."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from experiments.experiment import Experiment
    from experiments.result_rows import ResultRow
    from experiments.runner import Executor, Plan
    from experiments.store import ResultStore

DEFAULT_RESULTS = "cmvmed-results.sqlite"
EXIT_CODES = (
    "Exit codes: 0 all rows are finished, 1 rows failed or a data set is missing, 2 invalid command line, "
    "130 interrupted, 143 terminated."
)
MAX_LOG_LINES = 20  # of progress per experiment, if the output is not a terminal


class LazyChoice(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A choice among names that are imported when a value is given, so that help does not import scikit-learn."""

    name = "name"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self.names = names

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, or an error that lists the valid names."""
        return click.Choice(list(self.names())).convert(value, param, ctx)


def _datasets() -> Iterable[str]:
    from experiments.tasks import TASKS

    return TASKS


def _methods() -> Iterable[str]:
    from experiments.methods import ALL_METHODS, GROUPS

    return [*GROUPS, *ALL_METHODS]


def _protocols() -> Iterable[str]:
    from experiments.experiment import PROTOCOLS

    return PROTOCOLS


OPTIONS = (
    click.option(
        "--quick/--full", "is_quick", default=True, show_default=True, help="A few splits without tuning, or all."
    ),
    click.option("--splits", type=click.IntRange(1), help="Number of random splits (full: 20)."),
    click.option(
        "--datasets",
        multiple=True,
        type=LazyChoice(_datasets),
        metavar="NAME",
        help="Only this data set, such as webkb or sensit; may be repeated.",
    ),
    click.option(
        "--methods",
        multiple=True,
        type=LazyChoice(_methods),
        metavar="NAME",
        help="Only this method, such as 'CMV-MED' or 'MED, each view', or group of methods: 'paper' (those of the paper, with "
        "its kernel), 'rbf' or 'linear+rbf' (all with this kernel); may be repeated.",
    ),
    click.option(
        "--protocol",
        multiple=True,
        type=LazyChoice(_protocols),
        metavar="[defaults|shares|tuned]",
        help="Only this protocol: default parameters; the same with thresholds at the class shares of the labels; parameters "
        "selected by 5-fold cross-validation. May be repeated.",
    ),
    click.option(
        "--results",
        type=click.Path(dir_okay=False, path_type=Path),
        default=DEFAULT_RESULTS,
        show_default=True,
        help="File of the result rows; rows that it contains are not computed again.",
    ),
    click.option("--data-dir", type=click.Path(file_okay=False, exists=True), help="Folder with the data files."),
    click.option(
        "--jobs", type=click.IntRange(1), help="Number of worker processes; the number of physical cores by default."
    ),
    click.option(
        "--dask",
        "dask_address",
        metavar="ADDRESS",
        help="Scheduler of a Dask cluster to use instead of worker processes.",
    ),
    click.option("--retry-failed", is_flag=True, help="Compute rows again that failed in an earlier run."),
    click.option(
        "--estimate",
        is_flag=True,
        help="Only print the expected time of the remaining rows, from finished ones in the file.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the table as JSON."),
)


def experiment_command(name: str, title: str) -> click.Command:
    """The command that runs an experiment, or all."""

    def run_experiment(**options: Any) -> None:
        run_experiments(name, **options)

    run_experiment.__doc__ = f"""Reproduce the paper's {title}.

    Each row is written to the file of results when it is finished. After an interruption, the same command continues
    the run. Several processes may use one file at the same time.

    \b
    Examples:
      python -m experiments {name}                      5 splits, not tuned; minutes
      python -m experiments {name} --full               20 splits, also tuned; hours
      python -m experiments {name} --methods paper      the paper's methods with its kernel
      python -m experiments {name} --full --dask tcp://host:8786
    """
    decorated: Any = run_experiment
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    made: click.Command = click.command(name=name, epilog=EXIT_CODES)(decorated)
    return made


def run_experiments(
    what: str,
    *,
    is_quick: bool,
    splits: int | None,
    datasets: tuple[str, ...],
    methods: tuple[str, ...],
    protocol: tuple[str, ...],
    results: Path,
    data_dir: str | None,
    jobs: int | None,
    dask_address: str | None,
    retry_failed: bool,
    estimate: bool,
    as_json: bool,
) -> None:
    """Compute the missing rows of an experiment, or of all, and print their tables."""
    from experiments.datasets.locations import DATA_VARIABLE
    from experiments.experiment import EXPERIMENTS, quick, restrict
    from experiments.store import ResultStore
    from experiments.summary import format_tables

    if data_dir is not None:
        os.environ[DATA_VARIABLE] = data_dir
    selected = [
        restrict(
            quick(experiment) if is_quick else experiment,
            n_splits=splits,
            datasets=datasets,
            methods=methods,
            protocols=protocol,
        )
        for experiment in EXPERIMENTS.values()
        if what in (experiment.name, "all")
    ]
    if estimate:
        _print_estimate(selected, results, jobs)
        return
    executor = _executor(jobs, dask_address)
    with ResultStore(results) as store:
        show_note(store)
        plans = [_run(experiment, store, executor, retry_failed) for experiment in selected]
        wanted = {key for one in plans for key in one.methods}
        rows = [row for row in store.rows() if row.key in wanted]
    n_failed = sum(row.status == "failed" for row in rows)
    if as_json:
        click.echo(json.dumps(_as_json(rows, plans), indent=2))
    elif rows:
        click.echo(f"\n{format_tables(rows)}\n")
        click.echo(
            f"{len(rows)} rows are in {results}. `python -m experiments report --results {results}` creates a page of them."
        )
    _print_missing(plans, n_failed)
    if n_failed or any(one.missing_datasets for one in plans):
        raise click.exceptions.Exit(1)


def show_note(store: ResultStore) -> None:
    """Print what the user should know of a file of results."""
    if store.note:
        click.echo(store.note, err=True)


def _n_jobs(jobs: int | None) -> int:
    """The number of worker processes; the number of physical cores if it is not given."""
    from joblib import cpu_count

    return jobs or int(cpu_count(only_physical_cores=True))


def _executor(jobs: int | None, dask_address: str | None) -> Executor:
    """The executor on a Dask cluster or in local processes."""
    from experiments.runner import dask_executor, local_executor

    return dask_executor(dask_address) if dask_address else local_executor(_n_jobs(jobs))


def _print_estimate(experiments: Sequence[Experiment], results: Path, jobs: int | None) -> None:
    """Print the expected time of the rows that are not in the file."""
    from experiments.runner import plan
    from experiments.store import ResultStore
    from experiments.summary import expected_times, format_times

    wanted = {key for experiment in experiments for key in plan(experiment).methods}
    with ResultStore(results, read_only=True) as store:
        show_note(store)
        rows, done = store.rows(), store.done_keys()
    shared = {key[1:] for key in done}  # a row of another experiment is not computed again
    remaining = list({key[1:]: key for key in wanted if key[1:] not in shared}.values())
    click.echo(format_times(expected_times(remaining, rows), _n_jobs(jobs)))


def _run(experiment: Experiment, store: ResultStore, executor: Executor, retry_failed: bool) -> Plan:
    """Compute the missing rows of one experiment and show the progress."""
    from experiments.runner import plan, run

    click.echo(f"{experiment.title}: loading data", err=True)
    planned = plan(experiment)
    present = store.done_keys() | (set() if retry_failed else store.failed_keys())
    n_left = len(planned.methods.keys() - present)
    click.echo(f"{len(planned.methods)} rows, {len(planned.methods) - n_left} of them finished before", err=True)
    try:
        with progress(n_left) as on_row:
            run(planned.methods, store, executor, retry_failed=retry_failed, on_row=on_row)
    except KeyboardInterrupt:
        click.echo(f"The finished rows are in {store.path}. The same command continues the run.", err=True)
        raise
    return planned


@contextmanager
def progress(n_rows: int) -> Iterator[Callable[[ResultRow, int], None]]:
    """A progress bar on the error stream, or a line now and then if that is not a terminal.

    Yields a function that takes a finished row and the number of remaining rows.
    """
    is_terminal = sys.stderr.isatty()
    interval = 1 + n_rows // MAX_LOG_LINES
    n_failed = 0
    with click.progressbar(
        length=n_rows,
        label="Computing rows",
        hidden=not n_rows,
        show_pos=True,
        item_show_func=lambda item: item,
        file=sys.stderr,
    ) as bar:

        def on_row(row: ResultRow, n_left: int) -> None:
            nonlocal n_failed
            n_failed += row.status == "failed"
            previous, failures = bar.pos, f", {n_failed} failed" if n_failed else ""
            bar.update(n_rows - n_left - bar.pos, f"{row.dataset}, split {row.split}, {row.method}{failures}")
            if not is_terminal and (n_left == 0 or bar.pos // interval > previous // interval):
                time_left = f", time left {bar.format_eta()}" if bar.eta_known and n_left else ""
                bar.label = f"{bar.pos} of {n_rows} rows{failures}{time_left}"
                bar.render_progress()

        yield on_row


def _print_missing(plans: Sequence[Plan], n_failed: int) -> None:
    missing = {name: reason for one in plans for name, reason in one.missing_datasets.items()}
    for name, reason in missing.items():
        click.echo(f"Skipped data set {name}: {reason}", err=True)
    if missing:
        click.echo(
            "`python -m experiments datasets` shows where to put the files; --data-dir sets their folder.", err=True
        )
    for reason in {r for one in plans for r in one.missing_methods.values()}:
        click.echo(f"Skipped: {reason}", err=True)
    if n_failed:
        click.echo(
            f"{n_failed} rows failed; --retry-failed computes them again, `python -m experiments report` shows the errors.",
            err=True,
        )


def _as_json(rows: Sequence[ResultRow], plans: Sequence[Plan]) -> dict[str, object]:
    from experiments.summary import summarize

    return {
        "table": [asdict(entry) for entry in summarize(rows)],
        "failed": [{**row.key._asdict(), "error": row.error} for row in rows if row.status == "failed"],
        "missing_datasets": {name: reason for one in plans for name, reason in one.missing_datasets.items()},
        "missing_methods": {name: reason for one in plans for name, reason in one.missing_methods.items()},
    }
