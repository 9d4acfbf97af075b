"""``cmvmed report``: the page about a model."""

from __future__ import annotations

import webbrowser
from math import inf
from pathlib import Path
from typing import Any

import click

from cmvmed.cli.project_options import (
    check_output,
    command_line,
    force_option,
    labels_option,
    model_option,
    open_model,
    open_project,
    output_option,
    project_option,
    set_option,
)


@click.command()
@model_option
@project_option
@output_option("report.html", "Report to write.")
@labels_option
@set_option
@force_option
@click.option("--open", "open_page", is_flag=True, help="Open the report in the browser.")
def command(
    model: Path,
    project: Path,
    output: Path,
    label_files: tuple[Path, ...],
    settings: tuple[str, ...],
    force: bool,
    open_page: bool,
) -> None:
    """Write the report of a model: what to expect of it, what each view contributes, and what to do next.

    `cmvmed train` writes it, too, with a part of the learning curve. This command computes the whole curve, with up to
    nine fits to at most 400 rows.

    \b
    Examples:
      cmvmed report --open
      cmvmed report -m other.cmvmed -o other.html
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    check_output(output, force=force)
    from cmvmed.workbench.report import write_report

    opened, trained = open_project(project, settings, label_files), open_model(model)
    rows = opened.rows()
    table = trained.read_training(opened, rows)
    findings = opened.check(rows)
    options: dict[str, Any] = {"command": command_line(), "overwrite": force, "rows": rows, "curve_cost": inf}
    write_report(output, trained, table, findings, **options)
    click.echo(f"{output}: the report, for a browser")
    if open_page and not webbrowser.open(output.absolute().as_uri()):
        raise click.ClickException(f"The report is in {output}, but no browser could be opened.")
