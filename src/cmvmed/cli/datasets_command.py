"""``cmvmed datasets``: which data sets are available or missing, and where to put the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cmvmed.datasets.catalog import DatasetStatus

COLORS = {"available": "green", "missing": "yellow", "damaged": "red"}


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the data files, searched first.  [default: the environment variable CMVMED_DATA]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the list.")
def command(data_dir: Path | None, as_json: bool) -> None:
    """Show which data sets are available or missing, what each is for, and where to put the files.

    The data sets "footsteps" and "gauss" of `cmvmed reproduce` are simulated, so they have no files and are not listed.
    Every file that is found is read and checked; nothing is downloaded. The exit code is 1 if a file is damaged, and
    0 otherwise, even if files are missing.

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
        _print_total(findings, destination)
    click.get_current_context().exit(any(finding.state == "damaged" for finding in findings))


def as_dict(finding: DatasetStatus) -> dict[str, object]:
    """The finding as a JSON object."""
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
    used_by = f"cmvmed reproduce --datasets {' or '.join(entry.tasks)}" if entry.tasks else "Python code only"
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
        click.echo(f"{folder} The loaders also download files that have a URL (pip install 'cmvmed[datasets]').")
    else:
        click.echo()
