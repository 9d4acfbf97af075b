"""``cmvmed init``: a first project file for a user's own data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cmvmed.cli.project_options import check_output, force_option, json_option
from cmvmed.pages.atomic_file import atomic_file

if TYPE_CHECKING:
    from cmvmed.workbench import Guesses


@click.command()
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--example", is_flag=True, help="Write room.csv and room_new.csv here, and use room.csv.")
@click.option(
    "--project",
    type=click.Path(dir_okay=False, path_type=Path),
    default="cmvmed.toml",
    show_default=True,
    help="Project file to write.",
)
@force_option
@click.option("--dry-run", is_flag=True, help="Show the project file without writing it.")
@json_option
def command(data: Path | None, example: bool, project: Path, force: bool, dry_run: bool, as_json: bool) -> None:
    """Look at DATA, guess views, labels, identifiers and groups, and write a project file.

    DATA is a file (csv, tsv, parquet, feather, npz, ts), a pattern of files in quotation marks, or a folder of tables
    or of sound files (wav, flac). Each guess is printed with the line of the project file to change if it is wrong.
    --example writes a table of real sensors: those of a room, and how many people were in it.

    \b
    Examples:
      cmvmed init --example
      cmvmed init windows.csv
      cmvmed init recordings/ --dry-run
      cmvmed init 'days/*.csv' --project swimming.toml --force
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    if example == (data is not None) or (example and dry_run):
        raise click.UsageError("Give the path of your data, or --example, but not --example with --dry-run.")
    if not dry_run:
        check_output(project, force=force, what="project file")
    written = _write_example(force=force) if example else []
    from cmvmed.workbench import init

    guesses = init(data or written[0], project)
    if not dry_run:
        with atomic_file(project) as part:
            part.write_text(guesses.text, encoding="utf-8")
        written.append(project)
    if as_json:
        click.echo(json.dumps(_as_json(guesses, project, written=not dry_run), indent=2))
    else:
        _print_guesses(guesses, project, written)


def _write_example(*, force: bool) -> list[Path]:
    """Write the bundled tables to the current folder; the one to learn from comes first."""
    from cmvmed.datasets import write_room
    from cmvmed.datasets.bundled import FILES

    for name in FILES.values():
        check_output(Path(name), force=force)
    return list(write_room().values())


def _as_json(guesses: Guesses, project: Path, *, written: bool) -> dict[str, object]:
    return {
        "project": str(project),
        "written": written,
        "guesses": [{"guess": guess.what, "line": guess.line} for guess in guesses.guesses],
        "messages": list(guesses.messages),
        "text": guesses.text,
    }


def _print_guesses(guesses: Guesses, project: Path, written: list[Path]) -> None:
    if written:
        click.echo(f"{', '.join(map(str, written))} {'was' if len(written) == 1 else 'were'} written.\n")
    else:
        click.echo(guesses.text)
    click.echo("Guesses; if one is wrong, change its line:")
    for line in dict.fromkeys(guess.line for guess in guesses.guesses):
        for guess in guesses.guesses:
            if guess.line == line:
                click.echo(f"  - {guess.what}")
        click.echo(f"      {click.style(line, bold=True)}")
    for message in guesses.messages:
        click.echo(f"  - {message}")
    click.echo(
        "\nIf you know roughly how often each class occurs, set class_prior in [model] at the end of the project file."
    )
    if guesses.settings.data.groups is None:
        click.echo(
            "If new rows will be of other persons, days or machines than these, say which column has them: groups in [data]."
        )
    option = "" if project == Path("cmvmed.toml") else f" --project {project}"
    click.echo(f"\nNext: cmvmed check{option}")
