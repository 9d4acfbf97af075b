"""``cmvmed reproduce report``: an HTML page of the results."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cmvmed.reproduction.store import ResultStore

RESULTS, OUTPUT = "cmvmed-results.sqlite", "cmvmed-report.html"


@click.command(name="report")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=RESULTS,
    show_default=True,
    help="File of results written by `cmvmed reproduce`.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=OUTPUT,
    show_default=True,
    help="Page to write; an existing file is replaced.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
def report_command(results: Path, output: Path, open_page: bool) -> None:
    """Create an HTML page of the results: tables, figures, tests, which of the paper's claims hold.

    The page is a single HTML file without scripts or external resources. It is generated from the results and shows
    which of them are missing, so it can be created at any time, even while `cmvmed reproduce` is running.

    \b
    Examples:
      cmvmed reproduce table1 --quick && cmvmed reproduce report --open
      cmvmed reproduce report --results long-run.sqlite --output long-run.html
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    from cmvmed.pages.formatting import plural
    from cmvmed.reproduction.paper_report import report_page, write_page
    from cmvmed.reproduction.store import ResultStore

    with ResultStore(results, read_only=True) as store:
        show_note(store)
        rows = store.rows()
    write_page(report_page(rows, str(results)), output)
    n_failed = sum(row.status != "done" for row in rows)
    click.echo(f"{output}: {plural(len(rows) - n_failed, 'result')}, {plural(n_failed, 'failure')}")
    if open_page and not webbrowser.open(output.absolute().as_uri()):
        raise click.ClickException(f"The page was written to {output}, but no browser could be opened.")


def show_note(store: ResultStore) -> None:
    """Print what the user should know of a file of results."""
    if store.note:
        click.echo(store.note, err=True)
