"""What is said of the columns of users' files: cells that cannot be read, and columns that new rows lack or have."""

from collections.abc import Callable, Sequence

import numpy as np

from cmvmed.workbench.column_encoders import CategoryEncoder, unseen_categories
from cmvmed.workbench.column_kinds import Cells, read_booleans, read_numbers, read_times
from cmvmed.workbench.frames import RawTable, Series
from cmvmed.workbench.readers import FILE_COLUMN
from cmvmed.workbench.sensor_encoders import SensorEncoder
from cmvmed.workbench.sound_folders import FOLDER_COLUMN
from cmvmed.workbench.user_errors import ProjectError, abbreviate, did_you_mean, plural
from cmvmed.workbench.view_encoders import ViewEncoder

__all__ = ["bad_cells", "compare_columns"]


def bad_cells(table: RawTable, column: str, kind: str, day_first: bool | None) -> list[str]:
    """What was assumed of a column, and which cells cannot be read."""
    readers: dict[str, Callable[[Series], Cells]] = {
        "number": lambda series: read_numbers(series, table.decimal),
        "boolean": read_booleans,
        "date": lambda series: read_times(series, day_first=day_first),
    }
    if kind not in readers:
        return []
    cells = readers[kind](table.frame[column])
    said = [f"Column {column!r}: {cells.note}."] if cells.note else []
    if not cells.is_readable:
        row = int(np.flatnonzero(cells.bad)[0])
        raise ProjectError(
            f"Column {column!r}, {table.place(row)}: {str(table.frame[column].iloc[row])!r} is not a {kind}, which [columns] "
            "says it is; correct the cells, or remove the line."
        )
    if cells.bad.any():
        row = int(np.flatnonzero(cells.bad)[0])
        said.append(
            f"Column {column!r} holds {kind}s except {plural(int(cells.bad.sum()), 'cell')}, such as "
            f"{str(table.frame[column].iloc[row])!r} ({table.place(row)}), taken as gaps."
        )
    return said


def compare_columns(encoders: Sequence[ViewEncoder], table: RawTable, reserved: set[str]) -> list[str]:
    """Messages about columns that new rows lack, have in addition, or write differently."""
    said, names = [], table.names
    known = {name for encoder in encoders for name in encoder.column_names}
    extra = [name for name in names if name not in known | reserved | {FILE_COLUMN, FOLDER_COLUMN}]
    for encoder in encoders:
        lacking = [name for name in encoder.column_names if name not in names]
        hint = did_you_mean(lacking[0], extra) if lacking else ""
        if len(lacking) == len(encoder.column_names):
            said.append(f"View {encoder.name!r} is absent in all rows: {table.source} has none of its columns.{hint}")
        elif lacking:
            what = "without which its signals are absent" if _are_channels(encoder, lacking) else "filled as gaps"
            said.append(f"View {encoder.name!r}: {table.source} lacks {abbreviate(lacking)}, {what}.{hint}")
        for column in encoder.columns:
            if isinstance(column, CategoryEncoder) and column.column in names:
                unseen = unseen_categories(column, table)
                said += [f"Column {column.column!r} has categories without a feature: {unseen}."] if unseen else []
    if not known & set(names):
        raise ProjectError(
            f"{table.source} has no column of the training data; they are {abbreviate(sorted(known))}, it has "
            f"{abbreviate(names)}. Check the separator and the names in its first line."
        )
    if extra:
        said.append(
            f"{table.source}: {abbreviate(extra)} {'was' if len(extra) == 1 else 'were'} not in training and not used."
        )
    return said


def _are_channels(encoder: ViewEncoder, names: Sequence[str]) -> bool:
    return any(set(names) & set(column.sources) for column in encoder.columns if isinstance(column, SensorEncoder))
