"""Rows that are cut from signals: cases of a long table, and windows of long recordings with labels from annotations."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed.recordings import annotations_from_frame, cut_windows, from_frame
from cmvmed.recordings.recording_files import EDF_FORMATS, read_edf_annotations
from cmvmed.workbench.column_kinds import as_text, missing_cells
from cmvmed.workbench.delimited import DelimitedOptions
from cmvmed.workbench.frames import Frame, RawTable, pandas
from cmvmed.workbench.project_file import LABEL_COLUMN, DataSettings, ProjectSettings, WindowSettings
from cmvmed.workbench.readers import read_table, table_of_cases
from cmvmed.workbench.recording_sources import (
    channel_columns,
    files_of_recordings,
    open_recordings,
    recording_column,
    require_column,
    time_column,
    with_seconds,
)
from cmvmed.workbench.user_errors import ProjectError, as_project_error, plural

__all__ = ["RECORDING_COLUMN", "WINDOW_COLUMNS", "cases_of_long_table", "read_windows", "recordings_as_groups"]

RECORDING_COLUMN = "recording"  # the name of the recording of a window
WINDOW_COLUMNS = (RECORDING_COLUMN, "start", "end")


def cases_of_long_table(table: RawTable, data: DataSettings) -> RawTable:
    """One row per case of a table with one row per sample.

    Columns of numbers that change within a case become signals; all others have one value per case.
    """
    if data.id is None or data.time is None:
        raise ProjectError(f"{table.source} has one row per sample, so id and time in [data] must name its columns.")
    frame = with_seconds(table, data.time, data.day_first)
    require_column(table, data.id, "id")
    channels = channel_columns(table, data, data.id)
    with warnings.catch_warnings(record=True) as caught, as_project_error():
        warnings.simplefilter("always")
        cases = from_frame(frame, id=data.id, time=data.time, sensors=channels, sampling_rate=data.sampling_rate)
    others = [name for name in map(str, table.frame.columns) if name not in (*channels, data.time)]
    rows = _one_row_per_case(table, data.id, others, cases.ids.tolist())
    messages = (*table.messages, *(str(warning.message) for warning in caught))
    signals = table_of_cases(table.source, cases, is_sound=False).signals
    return RawTable(table.source, rows, signals, decimal=table.decimal, messages=messages, ids=cases.ids.tolist())


def read_windows(settings: ProjectSettings, windows: WindowSettings, path: Path, annotations: Path | None) -> RawTable:
    """Windows of the recordings at a path; ``annotations`` is None for new rows."""
    data = settings.data
    options = DelimitedOptions(data.separator, data.decimal, data.encoding)
    opened = open_recordings(settings, path, options)
    table, recordings = opened.table, opened.recordings
    label = data.labels or LABEL_COLUMN
    given: Any = None
    if annotations is not None:
        given = _annotation_frame(annotations, options)
    elif table is not None and label in table.frame.columns:
        given = _annotations_in_table(table, data, label)
    with as_project_error():
        cases = cut_windows(
            recordings,
            given,
            length=windows.length,
            step=windows.step,
            label=windows.label,  # type: ignore[arg-type]
            min_overlap=windows.min_overlap,
            end=windows.end,  # type: ignore[arg-type]
            timezone=windows.timezone,
        )
    start, end = np.asarray(cases.times, dtype=np.float64).T
    columns: dict[str, Any] = {RECORDING_COLUMN: cases.groups, "start": start, "end": end}
    if table is not None and data.groups in table.frame.columns:
        columns[str(data.groups)] = _values_of_recordings(table, data, str(data.groups), cases.groups)
    if given is not None:
        columns[label] = np.array(["" if value is None else as_text(value) for value in cases.labels], dtype=object)
    said = f"{path.name}: {plural(len(recordings), 'recording')} cut into {plural(cases.n, 'window')} of {windows.length:g} s."
    return RawTable(
        path.name,
        pandas().DataFrame(columns, index=range(cases.n)),
        table_of_cases(path.name, cases, is_sound=opened.are_sounds).signals,
        messages=(*opened.messages, said),
        ids=cases.ids.tolist(),
    )


def recordings_as_groups(table: RawTable) -> NDArray[np.object_] | None:
    """The recordings of windows as groups, if there are several."""
    recordings = table.frame[RECORDING_COLUMN]
    return np.array(recordings.tolist(), dtype=object) if recordings.nunique() > 1 else None


def _values_of_recordings(table: RawTable, data: DataSettings, column: str, recordings: Any) -> list[Any]:
    """The value of a column in the recording of each window, which must be one."""
    owner = recording_column(table, data)
    if owner is None:
        values = dict.fromkeys(set(recordings), table.frame[column])
    else:
        values = {str(key): cells for key, cells in table.frame.groupby(owner, sort=False)[column]}
    for name, cells in values.items():
        if cells.nunique() > 1:
            one, other = cells.dropna().unique()[:2]
            raise ProjectError(
                f"Column {column!r} of {table.source}, which groups in [data] names, has several values in recording {name!r}, "
                f"such as {one!r} and {other!r}; a recording must be in one group. Set id to {column!r} if its values are "
                "recordings of their own."
            )
    return [values[name].iloc[0] for name in recordings]


def _annotations_in_table(table: RawTable, data: DataSettings, label: str) -> Any:
    """Stretches of rows with the same label."""
    frame = with_seconds(table, time_column(table, data), data.day_first)
    cells = table.frame[label]
    unlabeled = missing_cells(cells, frozenset(data.unlabeled) | {""})
    texts = [as_text(cell) for cell in cells.astype(object)]
    frame[label] = ["" if empty else text for text, empty in zip(texts, unlabeled, strict=True)]
    recording = recording_column(table, data)
    with as_project_error():
        return annotations_from_frame(frame, time=time_column(table, data), label=label, recording=recording)


def _annotation_frame(path: Path, options: DelimitedOptions) -> Any:
    """The annotations in a table, or in EDF+ files themselves."""
    edf = [file for file in files_of_recordings(path) if file.suffix.lower() in EDF_FORMATS]
    if edf:
        with as_project_error():
            return [entry for file in edf for entry in read_edf_annotations(file)]
    if not path.is_file():
        raise ProjectError(
            f"There is no file of annotations {str(path)!r}; annotations in [windows] is a file with recording, start, end and "
            "label."
        )
    return read_table(path, options).frame


def _one_row_per_case(table: RawTable, id_column: str, columns: Sequence[str], ids: Sequence[str]) -> Frame:
    """The cells of columns that have one value per case."""
    keys = table.frame[id_column].astype(object).map(str)
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    for key, members in table.frame.groupby(keys, sort=False):
        for name in columns:
            cells = members[name]
            known = cells[~missing_cells(cells, frozenset({""}))]
            distinct = known.unique()
            if len(distinct) > 1 and name != id_column:
                raise ProjectError(
                    f"Column {name!r} of {table.source} has several values in case {key!r}, such as {distinct[0]!r} and "
                    f"{distinct[1]!r}, where one per case is expected; add a section [windows] to cut windows, or put the column "
                    "into ignore in [data]."
                )
            rows[name].append(distinct[0] if len(distinct) else None)
    frame = pandas().DataFrame(rows)
    frame.index = frame[id_column].astype(object).map(str)
    return frame.loc[list(ids)].reset_index(drop=True)
