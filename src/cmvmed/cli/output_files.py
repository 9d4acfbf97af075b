"""Files that commands write: checked before the work, written completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

TABLE_ENDINGS = (".csv", ".parquet", ".feather")
DIGITS = "%.6g"  # of numbers in csv files


def check_output(path: Path, *, force: bool, what: str = "file") -> None:
    """Raise unless a file can be written here; existing ones only with ``--force``."""
    if path.is_dir():
        raise click.ClickException(f"{path} is a folder; give the name of the {what} in it.")
    if path.exists() and not force:
        raise click.ClickException(f"{path} exists and was not changed; --force replaces it.")
    if not path.parent.is_dir():
        raise click.ClickException(f"The folder {path.parent} does not exist; create it first.")
    probe = _part(path)
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise click.ClickException(f"The folder {path.parent} cannot be written to: {error.strerror}.") from error


def check_table(path: Path, *, force: bool) -> None:
    """Raise unless a table can be written here, in the format that the ending names."""
    if path.suffix.lower() not in TABLE_ENDINGS:
        raise click.UsageError(f"The ending of {path} says no known format; use {', '.join(TABLE_ENDINGS)}.")
    check_output(path, force=force, what="table")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` at the end, and leaves nothing behind after an error."""
    part = _part(path)
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk
        raise
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table in the format that the ending names, with its index as the first column."""
    writers: dict[str, Callable[[Path], Any]] = {
        ".csv": lambda part: frame.to_csv(part, float_format=DIGITS),
        ".parquet": lambda part: frame.reset_index().to_parquet(part, index=False),
        ".feather": lambda part: frame.reset_index().to_feather(part),
    }
    with replaced(path) as part:
        writers[path.suffix.lower()](part)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
