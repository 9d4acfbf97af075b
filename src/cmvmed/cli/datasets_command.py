"""``cmvmed datasets``: what is there, what is missing, how to get it and where to put it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cmvmed.datasets.catalog import DatasetStatus

COLORS = {"available": "green", "missing": "yellow", "damaged": "red"}


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of data files, searched first.  [default: the environment variable CMVMED_DATA]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the list.")
def command(data_dir: Path | None, as_json: bool) -> None:
    """Show which data sets are there, which are missing, and where to put them.

    Every file that is found is read and checked; nothing is downloaded. The exit code is 1 if a file is there but
    damaged, and 0 otherwise, missing files or not.

    \b
    Examples:
      cmvmed datasets
      cmvmed datasets --data-dir ~/data
      CMVMED_DATA=~/data cmvmed datasets
      cmvmed datasets --json | jq '.datasets[] | select(.state == "missing") | .name'
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    from cmvmed.datasets.catalog import check_datasets, searched_folders

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
        click.echo(json.dumps({"searched": searched, "datasets": [as_dict(finding) for finding in findings]}, indent=2))
    else:
        _print_closing(findings, destination)
    click.get_current_context().exit(any(finding.state == "damaged" for finding in findings))


def as_dict(finding: "DatasetStatus") -> dict[str, Any]:
    """The finding for a machine to read."""
    entry = finding.entry
    return {
        "name": entry.name,
        "title": entry.title,
        "load_with": f"cmvmed.datasets.{entry.call}",
        "state": finding.state,
        "problem": finding.problem or None,
        "files": [str(path) for path in finding.paths],
        "bytes": finding.bytes,
        "rows": finding.rows or None,
        "classes": finding.classes or None,
        "views": dict(finding.views) or None,
        "get": [{"put_as": f"{file.folder}/{file.name}", "from": file.url or file.homepage} for file in entry.files],
    }


def _print_folders(folders: list[tuple[Path, str]]) -> None:
    if not folders:
        click.echo("No folder was searched: none is named by --data-dir or CMVMED_DATA.\n")
        return
    click.echo("Searched:")
    for folder, origin in folders:
        click.echo(f"  {folder}  ({origin})")
    click.echo()


def _print_finding(finding: "DatasetStatus", destination: Path | None) -> None:
    entry = finding.entry
    state = click.style(f"{finding.state:9}", fg=COLORS[finding.state])
    click.echo(f"{click.style(f'{entry.name:19}', bold=True)} {state} {entry.title}")
    if finding.state == "available":
        views = ", ".join(f"{name} ({width})" for name, width in finding.views)
        click.echo(f"    {finding.rows:,} rows, {finding.classes} classes; views {views}")
        click.echo(f"    {_where(finding)}; {entry.call}")
    elif finding.paths:  # files that are damaged, or not all of them
        click.echo(f"    {finding.problem}")
    else:
        for file in entry.files:
            click.echo(f"    get {file.url or file.homepage}")
            click.echo(f"    as  {destination or '<your folder>'}/{file.folder}/{file.name}")


def _where(finding: "DatasetStatus") -> str:
    if not finding.paths:
        return "comes with scikit-learn"
    size = f"{finding.bytes / 1e6:.1f} MB"
    return f"{size} in {', '.join(sorted({str(path.parent) for path in finding.paths}))}"


def _print_closing(findings: list["DatasetStatus"], destination: Path | None) -> None:
    there = sum(finding.state == "available" for finding in findings)
    click.echo(f"\n{there} of {len(findings)} data sets are there.", nl=False)
    if there < len(findings):
        folder = "" if destination else " Put files in a folder of yours and name it by --data-dir or CMVMED_DATA."
        click.echo(f"{folder} Their loaders also download what has an address (pip install 'cmvmed[datasets]').")
    else:
        click.echo()
