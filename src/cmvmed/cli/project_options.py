"""What the commands for a user's project share: options, the files they read and write, and how they show messages."""

from __future__ import annotations

import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, repeat
from os.path import relpath
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import click

from cmvmed.pages.atomic_file import atomic_file

if TYPE_CHECKING:
    import pandas as pd

    from cmvmed.workbench import Finding, Project, TrainedProject

DEFAULT_PROJECT, DEFAULT_MODEL = "cmvmed.toml", "model.cmvmed"
TABLE_ENDINGS = (".csv", ".parquet", ".feather")
FORMULA_SIGNS = "'=+@\t\r-"  # with which a cell begins that may have to be escaped
DIGITS = "%.6g"  # of numbers in csv files
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
    help="A further file with id and label, such as a filled-in file of `cmvmed suggest`; may be repeated.",
)
random_share_option = click.option(
    "--random-share",
    type=click.FloatRange(0.0, 1.0),
    default=0.2,
    show_default=True,
    help="Share of random rows among the labels; they show the accuracy and the class shares.",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that replaces that of the project file, as in model.temperature=0.3; may be repeated.",
)


def output_option(default: str, text: str) -> Callable[[Any], Any]:
    """The option of a file to write."""
    given = click.Path(path_type=Path)
    return click.option("-o", "--output", type=given, default=default, show_default=True, help=text)


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


def open_project(project: Path, settings: Sequence[str], label_files: Sequence[Path]) -> Project:
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


def check_output(path: Path, *, force: bool, what: str = "file") -> None:
    """Raise unless a file can be written here; existing ones only with ``--force``."""
    if path.is_dir():
        raise click.ClickException(f"{path} is a folder; give the name of the {what} in it.")
    if path.exists() and not force:
        raise click.ClickException(f"{path} exists and was not changed; --force replaces it.")
    if not path.parent.is_dir():
        raise click.ClickException(f"The folder {path.parent} does not exist; create it first.")
    try:
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise click.ClickException(f"The folder {path.parent} cannot be written to: {error.strerror}.") from error


def check_table(path: Path, *, force: bool) -> None:
    """Raise unless a table can be written here, in the format that the ending names."""
    if path.suffix.lower() not in TABLE_ENDINGS:
        raise click.UsageError(f"{path} has no known ending; use {', '.join(TABLE_ENDINGS)}.")
    check_output(path, force=force, what="table")


def for_people(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with texts that a spreadsheet does not take for formulas."""
    from cmvmed.workbench.tables.delimited import escaped_cell

    def escaped(cells: Any) -> list[Any]:
        """Few cells begin as a formula does, so that others need no call."""
        return [
            escaped_cell(own) if isinstance(own, str) and own[:1] in FORMULA_SIGNS else own for own in cells.tolist()
        ]

    shown = frame.copy(deep=False)
    if shown.index.dtype.kind not in "biuf":
        shown.index = shown.index.__class__(escaped(shown.index), name=shown.index.name)
    for name in shown.columns[[dtype.kind not in "biuf" for dtype in shown.dtypes]]:
        shown[name] = escaped(shown[name])
    return shown


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table in the format that the ending names, with its index as the first column."""
    with table_writer(path) as add:
        add(frame)


@contextmanager
def table_writer(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yields a function that adds rows to a table in the format that the ending names, with their index as the first column.

    The file appears at the end, completely or not at all.
    """
    with atomic_file(path) as file, ExitStack() as opened:
        if path.suffix.lower() == ".csv":
            heads = chain([True], repeat(False))
            yield lambda rows: for_people(rows).to_csv(file, mode="a", header=next(heads), float_format=DIGITS)
        else:
            yield partial(_add_to_arrow, {}, file, path.suffix.lower(), opened)


def _add_to_arrow(state: dict[str, Any], file: Path, suffix: str, opened: ExitStack, rows: pd.DataFrame) -> None:
    """Add rows to a Parquet or Feather file, which the first ones open."""
    from cmvmed._optional import import_optional

    arrow = import_optional("pyarrow", "workbench", "Writing Parquet and Feather files")
    table = arrow.Table.from_pandas(rows.reset_index(), schema=state.get("schema"), preserve_index=False)
    if not state:
        state["schema"] = table.schema
        if suffix == ".parquet":
            parquet = import_optional("pyarrow.parquet", "workbench", "Writing Parquet files")
            state["writer"] = opened.enter_context(parquet.ParquetWriter(file, table.schema))
        else:
            compressed = arrow.ipc.IpcWriteOptions(compression="lz4")
            state["writer"] = opened.enter_context(arrow.ipc.new_file(str(file), table.schema, options=compressed))
    state["writer"].write_table(table)


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
