"""Where the labels of a project come from: a column of the data, files with id and label, and the labeling page."""

from collections.abc import Sequence
from pathlib import Path

from cmvmed.workbench.column_kinds import missing_cells
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.frames import RawTable, Series, pandas
from cmvmed.workbench.joining import qualified
from cmvmed.workbench.label_store import LabelStore
from cmvmed.workbench.label_values import read_label_file, replace_labels
from cmvmed.workbench.project_file import DataSettings, ProjectSettings
from cmvmed.workbench.readers import TABLE_FORMATS, is_pattern, read_table, table_files
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean, plural

__all__ = ["SUGGESTION_COLUMNS", "first_column", "read_labels", "with_page_labels"]

SUGGESTION_COLUMNS = ("reason", "score")  # of the files of `cmvmed suggest`, beside id and label


def read_labels(
    settings: ProjectSettings, folder: Path, table: RawTable, ids: Sequence[str]
) -> tuple[Series, list[str], bool]:
    """Labels of the column or file, after those of further files, messages about them, and whether rows were chosen.

    Rows of a file that has the columns of ``cmvmed suggest`` were chosen.
    """
    cells, said = _first_labels(settings, folder, table, ids)
    any_chosen = False
    for path in (path for pattern in settings.data.label_files for path in _label_files(folder, pattern)):
        further = read_table(path, _options(settings.data))
        cells, about = replace_labels(cells, further, ids, settings.data)
        said += about
        any_chosen = any_chosen or set(SUGGESTION_COLUMNS) <= set(further.names)
    return cells, said, any_chosen


def with_page_labels(cells: Series, path: Path | None, ids: Sequence[str]) -> tuple[Series, list[str], bool]:
    """Labels after those of the labeling page, messages about them, and whether their rows were chosen.

    What was said last of a row on the page counts; a row that is marked as unsure is not labeled.

    Parameters
    ----------
    path : the file of labels; None, or one that does not exist, changes nothing
    """
    if path is None or not path.exists():
        return cells, [], False
    with LabelStore(path) as store:
        events, any_chosen, note = store.current(), store.any_chosen, store.note
    given = {item: event.label or "" for item, event in events.items() if event.action != "reset"}
    known = set(ids)
    unknown = [item for item in given if item not in known]
    n_labels = sum(bool(label) and item in known for item, label in given.items())
    said = [f"{plural(n_labels, 'label')} of the labeling page ({path.name})."] if given else []
    said += [note] if note else []
    if unknown:
        said.append(
            f"{plural(len(unknown), 'label')} of {path.name} belong to no row of the data: {abbreviate(unknown)}."
        )
    merged = [given.get(key, cell) for key, cell in zip(ids, cells.astype(object), strict=True)]
    return pandas().Series(merged, dtype=object), said, any_chosen


def _first_labels(
    settings: ProjectSettings, folder: Path, table: RawTable, ids: Sequence[str]
) -> tuple[Series, list[str]]:
    labels = settings.data.labels
    if labels is None:
        return pandas().Series([""] * table.n_rows, dtype=object), []
    cells = first_column(table, settings, labels)
    if cells is not None:
        return cells, []
    file = folder / labels
    if file.suffix.lower() not in TABLE_FORMATS and not file.exists():
        raise ProjectError(
            f"{table.source} has no column {labels!r}, which labels in [data] names.{did_you_mean(labels, table.names)} "
            f"Its columns are {abbreviate(table.names)}."
        )
    if not file.is_file():
        raise ProjectError(
            f"There is no file of labels {labels!r} beside the project file; labels in [data] is a column of the data "
            "or a file with id and label."
        )
    return read_label_file(read_table(file, _options(settings.data)), ids, settings.data)


def _label_files(folder: Path, pattern: str) -> list[Path]:
    """The files of labels that a name or pattern stands for, in the order of their names."""
    path = folder / pattern
    if not is_pattern(pattern) and not path.is_file():
        raise ProjectError(
            f"There is no file of labels {pattern!r}, which label_files in [data] names; paths are relative to the project file."
        )
    return table_files(path)


def _options(data: DataSettings) -> DelimitedOptions:
    return DelimitedOptions(data.separator, data.decimal, data.encoding, may_differ=True)


def first_column(table: RawTable, settings: ProjectSettings, name: str) -> Series | None:
    """The cells of a column of the common table, or of the first file of a view that has it."""
    candidates = [name, *(qualified(view.name, name) for view in settings.views if view.path is not None)]
    found = [table.frame[candidate] for candidate in candidates if candidate in table.frame.columns]
    if not found:
        return None
    cells = found[0]
    for other in found[1:]:
        cells = cells.astype(object).where(~missing_cells(cells, frozenset({""})), other)
    return cells
