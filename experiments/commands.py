"""The command line ``python -m experiments``: its group of commands, ``report`` and ``datasets``.

Errors, interrupts and exit codes are those of the command line ``cmvmed``. What takes long to import is imported when a
command is called, so that help is fast.
"""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cmvmed.cli.main import EXIT_CODES, CommandGroup, debug_option, with_debug_option
from experiments.run_commands import DEFAULT_RESULTS, experiment_command, show_note

if TYPE_CHECKING:
    from experiments.datasets.catalog import DatasetStatus


DEFAULT_PAGE = "cmvmed-report.html"
COLORS = {"available": "green", "missing": "yellow", "damaged": "red"}


@click.group(
    name="experiments",
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@debug_option
def main() -> None:
    """Reproduce the paper's Table 1 and Figure 2, and write a page of the results.

    \b
    Examples:
      python -m experiments datasets                    which data files are available, and where to put the others
      python -m experiments table1                      5 splits, not tuned; minutes
      python -m experiments table1 --full               20 splits, also tuned; hours
      python -m experiments figure2 --full --estimate   expected time, after a first run with --splits 1
      python -m experiments all --datasets webkb --splits 3    both experiments on one data set
      python -m experiments report --open               tables, figures, and which of the paper's claims hold
    """  # noqa: D301 (\b keeps click from wrapping the lines)


@click.command(name="report")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=DEFAULT_RESULTS,
    show_default=True,
    help="File of results written by `python -m experiments`.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=DEFAULT_PAGE,
    show_default=True,
    help="Page to write; an existing file is replaced.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
def report_command(results: Path, output: Path, open_page: bool) -> None:
    """Create an HTML page of the results: tables, figures, tests, which of the paper's claims hold.

    The page is a single HTML file without scripts or external resources. It is generated from the results and shows
    which of them are missing, so it can be created at any time, even while `python -m experiments` is running.

    \b
    Examples:
      python -m experiments table1 --quick && python -m experiments report --open
      python -m experiments report --results long-run.sqlite --output long-run.html
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    from cmvmed.pages.formatting import plural
    from experiments.report import report_page, write_page
    from experiments.store import ResultStore

    with ResultStore(results, read_only=True) as store:
        show_note(store)
        rows = store.rows()
    write_page(report_page(rows, str(results)), output)
    n_failed = sum(row.status != "done" for row in rows)
    click.echo(f"{output}: {plural(len(rows) - n_failed, 'result')}, {plural(n_failed, 'failure')}")
    if open_page and not webbrowser.open(output.absolute().as_uri()):
        raise click.ClickException(f"The page was written to {output}, but no browser could be opened.")


@click.command(name="datasets")
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the data files, searched first.  [default: the environment variable CMVMED_DATA]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the list.")
def datasets_command(data_dir: Path | None, as_json: bool) -> None:
    """Show which data sets are available or missing, what each is for, and where to put the files.

    The data sets "footsteps" and "gauss" of `python -m experiments` are simulated, so they have no files and are not listed.
    Every file that is found is read and checked; nothing is downloaded. The exit code is 1 if a file is damaged, and
    0 otherwise, even if files are missing.

    \b
    Examples:
      python -m experiments datasets
      python -m experiments datasets --data-dir ~/data
      CMVMED_DATA=~/data python -m experiments datasets
      python -m experiments datasets --json | jq '.datasets[] | select(.state == "missing") | .name'
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    from experiments.datasets.catalog import check_datasets, searched_folders

    folders = searched_folders(data_dir)
    destination = next((folder for folder, origin in folders if origin != "download cache"), None)
    findings = []
    if not as_json:
        _print_folders(folders)
    for finding in check_datasets(data_dir):
        findings.append(finding)
        if not as_json:
            _print_finding(finding, destination)
    if as_json:
        searched = [{"folder": str(folder), "named_by": origin} for folder, origin in folders]
        click.echo(
            json.dumps({"searched": searched, "datasets": [_as_dict(finding) for finding in findings]}, indent=2)
        )
    else:
        _print_total(findings, destination)
    click.get_current_context().exit(any(finding.state == "damaged" for finding in findings))


def _as_dict(finding: DatasetStatus) -> dict[str, object]:
    """The finding as a JSON object."""
    entry = finding.entry
    return {
        "name": entry.name,
        "title": entry.title,
        "load_with": f"{'experiments' if entry.files else 'cmvmed'}.datasets.{entry.call}",
        "state": finding.state,
        "problem": finding.problem or None,
        "files": [str(path) for path in finding.paths],
        "bytes": finding.bytes,
        "rows": finding.rows or None,
        "classes": finding.classes or None,
        "views": dict(finding.views) or None,
        "reproduce": list(entry.tasks),
        "get": [{"put_as": f"{file.folder}/{file.name}", "from": file.url or file.homepage} for file in entry.files],
    }


def _print_folders(folders: list[tuple[Path, str]]) -> None:
    if not folders:
        click.echo("No folder was searched: neither --data-dir nor CMVMED_DATA is set.\n")
        return
    click.echo("Searched:")
    for folder, origin in folders:
        click.echo(f"  {folder}  ({origin})")
    click.echo()


def _print_finding(finding: DatasetStatus, destination: Path | None) -> None:
    entry = finding.entry
    state = click.style(f"{finding.state:9}", fg=COLORS[finding.state])
    click.echo(f"{click.style(f'{entry.name:19}', bold=True)} {state} {entry.title}")
    used_by = f"python -m experiments all --datasets {' or '.join(entry.tasks)}" if entry.tasks else "Python code only"
    click.echo(f"    for {used_by}")
    if _is_available(finding):
        views = ", ".join(f"{name} ({width})" for name, width in finding.views)
        click.echo(f"    {finding.rows:,} rows, {finding.classes} classes; views {views}")
        click.echo(f"    {_location(finding)}; {entry.call}")
    elif finding.paths:  # damaged, or some files are missing
        click.echo(f"    {finding.problem}")
    else:
        for file in entry.files:
            click.echo(f"    download {file.url or file.homepage}")
            click.echo(f"    to       {destination or '<your folder>'}/{file.folder}/{file.name}")


def _location(finding: DatasetStatus) -> str:
    if not finding.paths:
        return "included in scikit-learn"
    size = f"{finding.bytes / 1e6:.1f} MB"
    return f"{size} in {', '.join(sorted({str(path.parent) for path in finding.paths}))}"


def _is_available(finding: DatasetStatus) -> bool:
    return finding.state == "available"


def _print_total(findings: list[DatasetStatus], destination: Path | None) -> None:
    n_available = sum(map(_is_available, findings))
    click.echo(f"\n{n_available} of {len(findings)} data sets are available.", nl=False)
    if n_available < len(findings):
        folder = "" if destination else " Put the files in a folder and set --data-dir or CMVMED_DATA to its path."
        click.echo(f"{folder} The loaders also download files that have a URL (pip install pooch tqdm).")
    else:
        click.echo()


for one in (
    experiment_command("table1", "Table 1"),
    experiment_command("figure2", "Figure 2"),
    experiment_command("all", "Table 1 and Figure 2"),
    report_command,
    datasets_command,
):
    main.add_command(with_debug_option(one))
