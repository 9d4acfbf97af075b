"""``cmvmed reproduce``: repeat the paper's experiments, row by row, into a file that survives interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from cmvmed.reproduction.experiment import Experiment
    from cmvmed.reproduction.runner import Executor, Plan
    from cmvmed.reproduction.store import ResultStore

DEFAULT_RESULTS = "cmvmed-results.sqlite"


class OneOf(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A choice among names that are looked up only when one is given, so that help does not wait for scikit-learn."""

    name = "name"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self.names = names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, or an error that lists the names there are."""
        return click.Choice(list(self.names())).convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        return click.Choice(list(self.names())).shell_complete(ctx, param, incomplete)


def _experiments() -> Iterable[str]:
    from cmvmed.reproduction.experiment import EXPERIMENTS

    return [*EXPERIMENTS, "all"]


def _datasets() -> Iterable[str]:
    from cmvmed.reproduction.tasks import TASKS

    return TASKS


def _methods() -> Iterable[str]:
    from cmvmed.reproduction.methods import EACH_VIEW, METHODS

    return [EACH_VIEW, *METHODS]


def _protocols() -> Iterable[str]:
    from cmvmed.reproduction.evaluation import PROTOCOLS

    return PROTOCOLS


@click.command(
    epilog="Exit codes: 0 all rows are there, 1 some failed or a data set is missing, 2 the command line was wrong, "
    "130 interrupted."
)
@click.argument("what", type=OneOf(_experiments), metavar="[table1|figure2|all]", default="all")
@click.option("--quick/--full", "is_quick", default=True, show_default=True, help="A few splits untuned, or all.")
@click.option("--splits", type=click.IntRange(1), help="Number of random splits (full: 20).")
@click.option(
    "--datasets",
    multiple=True,
    type=OneOf(_datasets),
    metavar="NAME",
    help="Only these, such as webkb or sensit; give the option repeatedly.",
)
@click.option(
    "--methods",
    multiple=True,
    type=OneOf(_methods),
    metavar="NAME",
    help="Only these, such as 'CMV-MED' or 'MED, each view'; give the option repeatedly.",
)
@click.option(
    "--protocol", multiple=True, type=OneOf(_protocols), metavar="[defaults|tuned]", help="Only this protocol."
)
@click.option(
    "--results", type=click.Path(dir_okay=False, path_type=Path), default=DEFAULT_RESULTS, show_default=True,
    help="File that the rows are kept in; what is in it is not done again.",
)  # fmt: skip
@click.option("--data-dir", type=click.Path(file_okay=False, exists=True), help="Folder with the data files.")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes; as many as there are processors if not given.")
@click.option("--dask", "dask_address", metavar="ADDRESS", help="Work on the Dask cluster with this scheduler instead.")
@click.option("--retry-failed", is_flag=True, help="Do rows again that failed before.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def command(
    what: str,
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
    as_json: bool,
) -> None:
    """Repeat the paper's Table 1, its Figure 2, or both.

    Every finished row is kept at once in the file of results. Interrupt or kill the command whenever you like: the same
    command goes on where it was. Several may work on one file at the same time.

    \b
    Examples:
      cmvmed reproduce table1                      a few splits, every method as it comes; minutes
      cmvmed reproduce table1 --full               20 splits, also with 5-fold selection; half an hour
      cmvmed reproduce --datasets webkb --splits 3 both experiments on one data set
      cmvmed reproduce --full --dask tcp://host:8786
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    from cmvmed.datasets.locations import DATA_VARIABLE
    from cmvmed.reproduction.store import ResultStore
    from cmvmed.reproduction.summary import tables

    if data_dir is not None:
        os.environ[DATA_VARIABLE] = data_dir
    chosen = _chosen(what, is_quick, n_splits=splits, datasets=datasets, methods=methods, protocols=protocol)
    executor = _executor(jobs, dask_address)
    with ResultStore(results) as store:
        plans = [_work(experiment, store, executor, retry_failed) for experiment in chosen]
        wanted = {key for one in plans for key in one.methods}
        rows = [row for row in store.rows() if row.key in wanted]
    n_failed = sum(row.status == "failed" for row in rows)
    if as_json:
        click.echo(json.dumps(_as_json(rows, plans), indent=2))
    elif rows:
        click.echo(f"\n{tables(rows)}\n")
        click.echo(f"{len(rows)} rows are in {results}. `cmvmed report --results {results}` makes a page of them.")
    _tell_what_is_missing(plans, n_failed)
    if n_failed or any(one.missing_datasets for one in plans):
        raise click.exceptions.Exit(1)


def _chosen(what: str, is_quick: bool, **restrictions: Any) -> list[Experiment]:
    """The experiments to run, and as much of them as is wanted."""
    from cmvmed.reproduction.experiment import EXPERIMENTS, quick, restrict

    named = [experiment for experiment in EXPERIMENTS.values() if what in (experiment.name, "all")]
    return [restrict(quick(experiment) if is_quick else experiment, **restrictions) for experiment in named]


def _executor(jobs: int | None, dask_address: str | None) -> Executor:
    """Where the work is done: on a cluster, or in processes of this machine."""
    from joblib import cpu_count

    from cmvmed.reproduction.runner import on_dask, on_this_machine

    return on_dask(dask_address) if dask_address else on_this_machine(jobs or cpu_count(only_physical_cores=True))


def _work(experiment: Experiment, store: ResultStore, executor: Executor, retry_failed: bool) -> Plan:
    """Do what is missing of one experiment, with a display of how far it is."""
    from cmvmed.cli.progress_bar import Progress
    from cmvmed.reproduction.runner import plan, run

    click.echo(f"{experiment.title}: loading data", err=True)
    planned = plan(experiment)
    present = store.done_keys() | (set() if retry_failed else store.failed_keys())
    n_left = len(planned.methods.keys() - present)
    click.echo(f"{len(planned.methods)} rows wanted, {len(planned.methods) - n_left} there already", err=True)
    try:
        with Progress(n_left) as progress:
            run(planned.methods, store, executor, retry_failed=retry_failed, on_row=progress.advance)
    except KeyboardInterrupt:
        click.echo(f"Stopped; what was done is in {store.path}. The same command goes on from here.", err=True)
        raise click.exceptions.Exit(130) from None
    return planned


def _tell_what_is_missing(plans: list[Plan], n_failed: int) -> None:
    missing = {name: reason for one in plans for name, reason in one.missing_datasets.items()}
    for name, reason in missing.items():
        click.echo(f"Left out: data set {name}. {reason}", err=True)
    if missing:
        click.echo("`cmvmed datasets` shows which files go where; --data-dir names their folder.", err=True)
    for reason in {r for one in plans for r in one.missing_methods.values()}:
        click.echo(f"Left out: {reason}", err=True)
    if n_failed:
        click.echo(f"{n_failed} rows failed; --retry-failed does them again, the report says why.", err=True)


def _as_json(rows: list[Any], plans: list[Plan]) -> dict[str, Any]:
    from cmvmed.reproduction.summary import entries

    return {
        "table": [asdict(entry) for entry in entries(rows)],
        "failed": [{**row.key._asdict(), "error": row.error} for row in rows if row.status == "failed"],
        "missing_datasets": {name: reason for one in plans for name, reason in one.missing_datasets.items()},
        "missing_methods": {name: reason for one in plans for name, reason in one.missing_methods.items()},
    }
