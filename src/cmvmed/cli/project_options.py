"""Options that the commands for a user's project share, and the project that they describe."""

from __future__ import annotations

import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import click

if TYPE_CHECKING:
    from cmvmed.workbench import Finding, Project, TrainedProject

DEFAULT_PROJECT, DEFAULT_MODEL = "cmvmed.toml", "model.cmvmed"
COLORS = {"error": "red", "warning": "yellow", "note": "blue"}

project_option = click.option(
    "--project",
    type=click.Path(path_type=Path),
    default=DEFAULT_PROJECT,
    show_default=True,
    help="Project file, or the folder of a cmvmed.toml.",
)
model_option = click.option(
    "-m",
    "--model",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_MODEL,
    show_default=True,
    help="Model file, written by `cmvmed train`.",
)
table_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Table to write: csv, parquet or feather. Without it, csv goes to the standard output.",
)
force_option = click.option("--force", is_flag=True, help="Replace existing files.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of sentences.")
labels_option = click.option(
    "--labels",
    "label_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A further file with id and label, such as one of `cmvmed suggest` that was filled in; may be repeated.",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that differs from the project file, as in model.temperature=0.3; may be repeated.",
)


def project_changes(project: Path, settings: Sequence[str], label_files: Sequence[Path]) -> dict[str, Any]:
    """What the command line changes of a project file, by key."""
    if not project.exists():
        raise click.UsageError(
            f"There is no project file {str(project)!r}. `cmvmed init DATA` writes one; --project FILE uses another."
        )
    changes = dict(map(_setting, settings))
    if label_files:
        from cmvmed.workbench import Project

        opened = Project.load(project, changes=changes)
        more = [Path(relpath(file, opened.folder)).as_posix() for file in label_files]
        changes["data.label_files"] = [*opened.settings.data.label_files, *more]
    return changes


def open_project(project: Path, settings: Sequence[str] = (), label_files: Sequence[Path] = ()) -> Project:
    """The project of a command line."""
    changes = project_changes(project, settings, label_files)
    from cmvmed.workbench import Project

    return Project.load(project, changes=changes)


def open_model(path: Path) -> TrainedProject:
    """The model of a command line."""
    if not path.exists():
        raise click.UsageError(
            f"There is no model file {str(path)!r}. `cmvmed train` writes one; --model FILE uses another."
        )
    from cmvmed.workbench import TrainedProject

    return TrainedProject.load(path)


def command_line() -> str:
    """The command line as the user gave it."""
    return shlex.join(["cmvmed", *sys.argv[1:]])


def _setting(text: str) -> tuple[str, Any]:
    """Key and value of an option ``--set``; a value that is not TOML is a text."""
    key, sign, value = text.partition("=")
    if not sign:
        raise click.UsageError(f"--set {text!r} has no value; write KEY=VALUE, as in model.temperature=0.3.")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def show(level: str, message: str, *, err: bool = True) -> None:
    """A finding, warning or note, on the error stream by default."""
    click.echo(f"{click.style(level, fg=COLORS[level], bold=True)}: {message}", err=err)


def show_findings(findings: Sequence[Finding], messages: Sequence[str], *, err: bool = True) -> None:
    """What looks wrong in the data, and what was assumed, on the error stream by default."""
    for finding in findings:
        show(finding.level, finding.message, err=err)
    for message in messages:
        show("note", message, err=err)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """The texts of the warnings that arise, each once; the list is filled at the end."""
    texts: list[str] = []
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        yield texts
    texts += dict.fromkeys(str(warning.message) for warning in caught)
