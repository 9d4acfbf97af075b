"""Where the labels are: what marks unlabeled rows, and a file of labels beside the data."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cmvmed.workbench.frames import RawTable
from cmvmed.workbench.guessing.column_guesses import guess_labels, read_with_kinds
from cmvmed.workbench.guessing.guesses import Guess, relative_path
from cmvmed.workbench.label_values import LABEL_NAMES, likely_markers, read_label_values
from cmvmed.workbench.project_file import DataSettings
from cmvmed.workbench.readers import TABLE_FORMATS
from cmvmed.workbench.toml_text import toml_line
from cmvmed.workbench.user_errors import abbreviate, plural

__all__ = ["with_label_file", "with_markers"]


def with_markers(table: RawTable, data: DataSettings) -> tuple[DataSettings, list[Guess]]:
    """Find the values of the column of labels that mark unlabeled rows."""
    values = read_label_values(table.frame[data.labels], replace(data, unlabeled=("",)))
    sure, possible = likely_markers(values.counts, data)
    most = [label for label in possible if values.counts[label] > table.n_rows / 2]
    markers = ["", *sure, *most] if values.marked else [*sure, *most]
    data = replace(data, unlabeled=tuple(markers or [""]))
    n_unlabeled = sum(values.marked.values()) + sum(values.counts[label] for label in (*sure, *most))
    what = f"{n_unlabeled} of {plural(table.n_rows, 'row')} are not labeled: their label is {abbreviate(markers)}"
    return data, [Guess(what, toml_line("unlabeled", data.unlabeled))] if n_unlabeled else []


def with_label_file(
    place: Path, folder: Path, data: DataSettings, guesses: list[Guess], exclude: Sequence[Path]
) -> tuple[DataSettings, list[Guess]]:
    """Take a file named labels.* beside the data, if there is one."""
    beside = sorted(file for file in place.iterdir() if file.suffix.lower() in TABLE_FORMATS and file not in exclude)
    found = next((file for file in beside if "label" in file.stem.casefold()), None)
    if found is None:
        line = toml_line("labels", data.labels or "labels.csv")
        what = "no column or file of labels was found: write labels.csv with id and label, or name the column"
        if beside:
            what += (
                f". {beside[0].name} needs columns named id and label, or recording, start, end and label for parts of "
                "recordings"
            )
        return (data, guesses) if data.labels else (data, [*guesses, Guess(what, line)])
    name = relative_path(found, folder)
    rows = read_with_kinds(found)
    table = rows.table
    others = [column for column in map(str, table.frame.columns) if column.casefold() not in ("id", data.id)]
    label = guess_labels(rows, []) or others[-1]
    needs_name = label.casefold() not in LABEL_NAMES and len(others) > 1
    column = replace(data, labels=label, label_column=label if needs_name else None)
    marked, about = with_markers(table, column)
    kept = [guess for guess in guesses if not guess.line.startswith(("labels", "unlabeled"))]
    said = Guess(f"the labels are in the file {name}", toml_line("labels", name))
    return replace(marked, labels=name), [*kept, said, *about]
