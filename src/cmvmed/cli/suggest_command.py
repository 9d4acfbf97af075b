"""``cmvmed suggest``: which rows to label next."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cmvmed.cli.project_options import (
    DIGITS,
    check_table,
    for_people,
    force_option,
    json_option,
    labels_option,
    model_option,
    open_model,
    open_project,
    project_option,
    random_share_option,
    set_option,
    show,
    table_option,
    write_table,
)
from cmvmed.pages.formatting import plural


@click.command()
@click.option("-n", "n_rows", type=click.IntRange(min=1), default=20, show_default=True, help="Number of rows.")
@random_share_option
@table_option
@model_option
@project_option
@labels_option
@set_option
@force_option
@json_option
def command(
    n_rows: int,
    random_share: float,
    output: Path | None,
    model: Path,
    project: Path,
    label_files: tuple[Path, ...],
    settings: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Choose the rows of a project to label next, the most useful first, and say why.

    The table has the identifiers of the rows, an empty column for their labels, the reasons, and which rows were drawn at
    random. Fill in the labels, as far as you know them, and train again with this file.

    \b
    Examples:
      cmvmed suggest -n 20 -o next.csv
      cmvmed train --labels next.csv --force       after the labels were filled in
      cmvmed suggest -n 20 --labels next.csv -o next2.csv
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    if output is not None:
        check_table(output, force=force)
    opened, trained = open_project(project, settings, label_files), open_model(model)
    table = trained.read_training(opened)
    suggestions = trained.suggest(table, n_rows, random_share=random_share)
    for message in [] if as_json else table.messages:
        show("note", message)
    if output is not None:
        write_table(suggestions, output)
    if as_json:
        rows = json.loads(suggestions.reset_index().to_json(orient="records"))
        content = {"output": None if output is None else str(output), "messages": list(table.messages), "rows": rows}
        click.echo(json.dumps(content, indent=2))
    elif output is None:
        click.echo(for_people(suggestions).to_csv(float_format=DIGITS), nl=False)
    else:
        column = suggestions.columns[0]
        click.echo(f"{output}: {plural(len(suggestions), 'row')}; fill in the column {column!r}, then:")
        click.echo(f"  cmvmed train --labels {output} --force")
        click.echo(f"Or add it to [data] in {project}, to keep it: label_files = [{json.dumps(str(output))}]")
