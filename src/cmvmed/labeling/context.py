"""What is shown beside a row so that somebody can find it again: groups, times, chosen columns, links and pictures."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmvmed.workbench.project_file import ProjectSettings
from cmvmed.workbench.tables.columns import as_text, column_kind, missing_cells
from cmvmed.workbench.tables.recording_rows import WINDOW_COLUMNS
from cmvmed.workbench.tables.rows import ProjectRows
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean

PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
LINKS = ("https://", "http://")
MAX_PICTURE = 20_000_000  # bytes
MAX_TEXT = 500  # characters of a cell


def context_columns(rows: ProjectRows, settings: ProjectSettings) -> list[str]:
    """The columns that ``context`` in [data] names; without it groups, the stretch of a window, and times of no view."""
    names, chosen = [str(name) for name in rows.table.frame.columns], settings.data.context
    for name in chosen:
        if name not in names:
            raise ProjectError(
                f"There is no column {name!r}, which context in [data] names.{did_you_mean(name, names)} The columns are "
                f"{abbreviate(names)}."
            )
    if chosen:
        return list(chosen)
    used = {column for columns in rows.roles.views.values() for column in columns} | rows.roles.reserved.keys()
    groups = [column for column, role in rows.roles.reserved.items() if role == "groups"]
    window = [name for name in names if settings.windows is not None and name in WINDOW_COLUMNS]
    free = [name for name in names if name not in used and name not in window]
    times = [name for name in free if column_kind(rows.table.frame[name], rows.table.decimal) == "date"]
    return [*groups, *window, *times]


@dataclass(frozen=True)
class RowContext:
    """Cells of chosen columns, row by row.

    Parameters
    ----------
    rows : the rows of the project
    columns : those to show
    folder : of the data; pictures are files in it
    """

    rows: ProjectRows
    columns: list[str]
    folder: Path

    def cells(self, row: int) -> list[dict[str, Any]]:
        """Name, text and kind of each cell that is not empty: "text", "link" or "picture"."""
        found = []
        for column in self.columns:
            text = self._text(row, column)
            if text:
                is_picture = self._file(text) is not None
                kind = "picture" if is_picture else "link" if text.startswith(LINKS) else "text"
                found.append({"name": column, "text": text[:MAX_TEXT], "kind": kind})
        return found

    def picture(self, row: int, column: str) -> tuple[bytes, str]:
        """The picture that a cell names, and its media type."""
        file = self._file(self._text(row, column)) if column in self.columns else None
        if file is None:
            raise ValueError("There is no such picture.")
        if file.stat().st_size > MAX_PICTURE:
            raise ValueError(f"The picture {file.name} is larger than {MAX_PICTURE // 1_000_000} MB.")
        return file.read_bytes(), PICTURES[file.suffix.lower()]

    def _text(self, row: int, column: str) -> str:
        cells = self.rows.table.frame[column].iloc[[row]]
        return "" if missing_cells(cells)[0] else as_text(cells.iloc[0])

    def _file(self, text: str) -> Path | None:
        """The file of a picture in the folder of the data; None if the cell names none."""
        if Path(text).suffix.lower() not in PICTURES or text.startswith(LINKS):
            return None
        folder = self.folder.resolve()
        file = (folder / text).resolve()
        return file if file.is_relative_to(folder) and file.is_file() else None
