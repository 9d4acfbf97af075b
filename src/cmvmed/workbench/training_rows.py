"""The training rows of a project as its files hold them: identifiers, labels, groups, and the kinds of columns."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cmvmed.workbench.column_kinds import as_text, column_kind, missing_cells
from cmvmed.workbench.frames import RawTable
from cmvmed.workbench.joining import open_sources
from cmvmed.workbench.label_sources import first_column, read_labels, with_page_labels
from cmvmed.workbench.label_values import read_label_values
from cmvmed.workbench.project_file import ProjectSettings
from cmvmed.workbench.project_rows import ProjectRows
from cmvmed.workbench.readers import matching
from cmvmed.workbench.recording_rows import recordings_as_groups
from cmvmed.workbench.source_paths import training_paths
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean, plural
from cmvmed.workbench.view_columns import assign_columns

__all__ = ["read_training_rows", "row_ids"]


def read_training_rows(settings: ProjectSettings, folder: Path, page_labels: Path | None) -> ProjectRows:
    """Read the files that the settings name, relative to a folder, and the labels of the labeling page."""
    table = open_sources(settings, training_paths(settings, folder), is_training=True)
    roles = assign_columns(settings, table)
    ids = row_ids(table)
    cells, said, from_suggest = read_labels(settings, folder, table, list(ids))
    cells, about, from_page = with_page_labels(cells, page_labels, list(ids))
    said += about
    labels = read_label_values(cells, settings.data)
    groups = _groups(settings, table, ids)
    kinds = {column: _kind(settings, table, column) for columns in roles.views.values() for column in columns}
    if labels.n_trimmed:
        said.append(
            f"{plural(labels.n_trimmed, 'label has', 'labels have')} blanks around the name, which are left out."
        )
    messages = (*table.messages, *roles.messages, *said)
    drawn = settings.data.labels_drawn
    drawn = "chosen" if (from_suggest or from_page) and drawn == "unknown" else drawn
    return ProjectRows(table, ids, labels, groups, roles, kinds, messages, drawn)


def row_ids(table: RawTable) -> NDArray[np.object_]:
    """Identifiers of the rows, or their numbers if they have none."""
    ids = table.ids if table.ids is not None else [str(row + 1) for row in range(table.n_rows)]
    return np.array(ids, dtype=object)


def _groups(settings: ProjectSettings, table: RawTable, ids: NDArray[np.object_]) -> NDArray[np.object_] | None:
    name = settings.data.groups
    if name is None:
        return None if settings.windows is None else recordings_as_groups(table)
    cells = first_column(table, settings, name)
    if cells is None:
        raise ProjectError(
            f"{table.source} has no column {name!r}, which groups in [data] names.{did_you_mean(name, table.names)} Its "
            f"columns are {abbreviate(table.names)}."
        )
    missing = missing_cells(cells)
    texts = np.array([as_text(cell) for cell in cells.astype(object)], dtype=object)
    return np.where(missing, [f"row {key}" for key in ids], texts)  # a row without a group is one of its own


def _kind(settings: ProjectSettings, table: RawTable, column: str) -> str:
    if column in table.signals:
        return "sound" if table.signals[column].is_sound else "series"
    for pattern, kind in settings.kinds.items():
        if column == pattern or column in matching(pattern, [column]):
            return "empty" if missing_cells(table.frame[column]).all() else kind
    return column_kind(table.frame[column], table.decimal)
