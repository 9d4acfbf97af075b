"""Files and folders as tables: delimited text, Parquet, Feather, npz, HDF5, .ts and Excel files, and folders of sounds.

A folder of sound files has one row per event. The pattern of a view, such as ``mic_a/*.wav``, says both which files belong
to it and which row each belongs to: what the ``*`` stands for identifies the row.
"""

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmvmed._file_errors import HEADER_ERRORS
from cmvmed._optional import import_optional
from cmvmed.recordings import Recordings, SensorSignals, read_hdf5
from cmvmed.recordings.hdf5_files import HDF5_FORMATS
from cmvmed.recordings.sound_files import SOUND_FORMATS, audio_header, sound_files
from cmvmed.recordings.sound_files import match_files as files_by_row
from cmvmed.recordings.ts_files import parse_ts
from cmvmed.workbench.project_file import ViewSettings
from cmvmed.workbench.tables.columns import RawTable, Signal, as_text, pandas
from cmvmed.workbench.tables.delimited import (
    DelimitedOptions,
    NotInParts,
    check_column_names,
    read_delimited,
    read_delimited_parts,
)
from cmvmed.workbench.user_errors import ProjectError, abbreviate, as_project_error, did_you_mean

PART_BYTES, PART_ROWS = 1 << 22, 20_000  # of a file that are read at a time
EXCEL = ".xlsx"
MAX_EXCEL = 1_000_000_000  # bytes of the unpacked file
TABLE_FORMATS = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".feather", ".arrow", ".npz", ".ts", *HDF5_FORMATS, EXCEL)
SPREADSHEETS = (".xls", ".ods")
FILE_COLUMN = "file"  # name of the file of a row, if there are several
FOLDER_COLUMN = "folder"  # name of the folder of a row's file: classes are often folders


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern of several files."""
    return any(sign in path for sign in "*?[")


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """Names that a name, pattern or prefix stands for, in this order of preference."""
    if pattern in names:
        return [pattern]
    if is_pattern(pattern):
        return [name for name in names if fnmatchcase(name, pattern)]
    return [name for name in names if name.startswith(pattern)]


def matching_files(pattern: Path) -> list[Path]:
    """The files and folders that match a pattern, in the order of their names."""
    anchor = Path(pattern.anchor) if pattern.is_absolute() else Path()
    return sorted(anchor.glob(str(pattern.relative_to(anchor))))


def table_files(path: Path) -> list[Path]:
    """The files of a table: one file, those of a folder, or those that match a pattern."""
    if is_pattern(str(path)):
        found = matching_files(path)
        if not found:
            raise ProjectError(f"No file matches {str(path)!r}; check the folder and the ending of the names.")
        return found
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix.lower() in TABLE_FORMATS)
        if not found:
            raise ProjectError(
                f"The folder {str(path)!r} has no file of a known format ({', '.join(TABLE_FORMATS)}); its files are: "
                f"{abbreviate(sorted(file.name for file in path.iterdir())) or 'none'}."
            )
        return found
    if not path.is_file():
        raise ProjectError(f"There is no file or folder {str(path)!r}.{_similar(path)}")
    return [path]


def read_table(path: Path, options: DelimitedOptions) -> RawTable:
    """Read a table from one file, or from several with the same columns, one below the other."""
    files = table_files(path)
    tables = [_read_file(file, options) for file in files]
    return tables[0] if len(tables) == 1 else _stacked(path, files, tables)


def read_table_parts(path: Path, options: DelimitedOptions) -> Iterator[tuple[RawTable, float]]:
    """The rows of one delimited or Parquet file some at a time, and the share of the file that is read; or ``NotInParts``."""
    (file, *others), suffix = table_files(path), path.suffix.lower()
    if others or suffix not in (".csv", ".tsv", ".txt", ".parquet", ".pq"):
        raise NotInParts
    if suffix not in (".parquet", ".pq"):
        size = file.stat().st_size
        for table, done in read_delimited_parts(file, options, PART_BYTES):
            yield table, done / size
        return
    module = import_optional("pyarrow.parquet", "workbench", "Reading Parquet files")
    arrow = import_optional("pyarrow", "workbench", "Reading Parquet files")
    with _arrow_errors(path, "Parquet"), module.ParquetFile(file) as opened:
        n_rows, done = opened.metadata.num_rows, 0
        if n_rows == 0 or _has_unstored_index(opened.schema_arrow):
            raise NotInParts
        for batch in opened.iter_batches(PART_ROWS):
            done += batch.num_rows
            yield _table_of_arrow(path, arrow.Table.from_batches([batch])), done / n_rows


def _has_unstored_index(schema: Any) -> bool:
    """Whether identifiers are numbers of which the file has only the first, the last and the step."""
    indexes = (schema.pandas_metadata or {}).get("index_columns", [])
    return any(isinstance(index, dict) and index.get("name") is not None for index in indexes)


def _similar(path: Path) -> str:
    beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = did_you_mean(path.name, beside)
    if not path.parent.is_dir():
        return f" Its folder {str(path.parent)!r} does not exist either."
    return hint or " Paths of a project are relative to the folder of the project file."


def _read_file(path: Path, options: DelimitedOptions) -> RawTable:
    suffix = path.suffix.lower()
    if suffix in SPREADSHEETS:
        raise ProjectError(
            f"{path.name} is a spreadsheet; save the sheet as xlsx or csv (comma-separated values) first."
        )
    if suffix in SOUND_FORMATS:
        raise ProjectError(f'{path.name} is a sound file; give its view files = "*{suffix}" instead of columns.')
    if suffix not in TABLE_FORMATS:
        raise ProjectError(
            f"The ending of {path.name} is not known; tables end in {', '.join(TABLE_FORMATS)}, sound files in "
            f"{', '.join(SOUND_FORMATS)}."
        )
    if path.stat().st_size == 0:
        raise ProjectError(f"{path.name} is empty: a line of column names and at least one row are needed.")
    if suffix in (".parquet", ".pq", ".feather", ".arrow"):
        table = _read_arrow(path, suffix)
    elif suffix == ".npz":
        table = _read_npz(path)
    elif suffix == ".ts":
        table = _read_ts(path)
    elif suffix == EXCEL:
        table = _read_excel(path)
    elif suffix in HDF5_FORMATS:
        table = _read_hdf5(path, options.sampling_rate)
    else:
        table = read_delimited(path, options)
    if table.n_rows == 0:
        raise ProjectError(f"{path.name} has columns but no rows; check that the file was written completely.")
    return table


def _read_arrow(path: Path, suffix: str) -> RawTable:
    kind = "Parquet" if suffix in (".parquet", ".pq") else "Feather"
    module = import_optional(f"pyarrow.{kind.lower()}", "workbench", f"Reading {kind} files")
    with _arrow_errors(path, kind):
        return _table_of_arrow(path, module.read_table(path))


@contextmanager
def _arrow_errors(path: Path, kind: str) -> Iterator[None]:
    arrow = import_optional("pyarrow", "workbench", "Reading Parquet and Feather files")
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError) as error:
        if isinstance(error, ProjectError):
            raise
        raise ProjectError(f"{path.name} cannot be read as a {kind} file ({error}); write it again.") from error


def _table_of_arrow(path: Path, content: Any) -> RawTable:
    content.validate(full=True)  # offsets of a damaged file would lead outside of memory
    frame = content.to_pandas(ignore_metadata=False)
    check_column_names(path.name, content.column_names)
    if frame.index.name is not None and str(frame.index.name) not in frame.columns:
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    return RawTable(path.name, frame.reset_index(drop=True))


def _read_excel(path: Path) -> RawTable:
    """The first sheet: a line of column names, then rows. Cells have the type that Excel gave them."""
    import_optional("openpyxl", "excel", "Reading Excel files")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_EXCEL:
            raise ValueError(f"it would unpack to {size:,} bytes, more than the {MAX_EXCEL:,} that are read")
        with pandas().ExcelFile(path, engine="openpyxl") as book:
            sheets, cells = book.sheet_names, book.parse(0, header=None, dtype=object)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, OSError, EOFError, SyntaxError) as error:
        raise ProjectError(f"{path.name} cannot be read as an Excel file ({error}); save it again.") from error
    cells = cells.dropna(axis=1, how="all")
    if len(cells) == 0 or cells.iloc[0].isna().any():
        raise ProjectError(
            f"{path.name}: the first line of the sheet {sheets[0]!r} must name each column; remove lines above it."
        )
    names = [as_text(name) for name in cells.iloc[0]]
    check_column_names(path.name, names)
    rows = cells.iloc[1:].dropna(how="all")
    frame = rows.set_axis(names, axis=1).infer_objects().reset_index(drop=True)
    said = f"{path.name}: the sheet {sheets[0]!r} is read, the first of {len(sheets)}."
    return RawTable(path.name, frame, lines=rows.index.to_numpy() + 1, messages=(said,) if len(sheets) > 1 else ())


def _read_npz(path: Path) -> RawTable:
    """Arrays (n,) are columns, (n, d) are columns ``name.0``, ..., and (n, channels, samples) are signals."""
    arrays: dict[str, NDArray[Any]] = {}
    name = ""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            for name in content.files:
                arrays[name] = content[name]
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, *HEADER_ERRORS) as error:
        raise ProjectError(f"{path.name} is not an npz file, or is damaged; write it with numpy.savez.") from error
    except ValueError as error:
        raise ProjectError(
            f"Array {name!r} of {path.name} holds Python objects, as texts of pandas are, which are not read because they can run "
            f"code; save texts as numpy.array({name or 'values'}, dtype=str), and numbers with dtype=float."
        ) from error
    n_rows = _number_of_rows(path, arrays)
    other = [name for name, array in arrays.items() if array.shape[:1] != (n_rows,)]
    verbs = ("has", "is") if len(other) == 1 else ("have", "are")
    said = (f"{path.name}: {abbreviate(other)} {verbs[0]} no entry per row and {verbs[1]} left out.",)
    columns: dict[str, Any] = {}
    signals: dict[str, Signal] = {}
    for name, array in arrays.items():
        if name in other:
            continue
        if array.ndim == 1:
            columns[name] = array
        elif array.ndim == 2:
            columns |= {f"{name}.{i}": array[:, i] for i in range(array.shape[1])}
        elif array.ndim == 3:
            signals |= {f"{name}.{c}": Signal(list(array[:, c]), is_sound=False) for c in range(array.shape[1])}
        else:
            raise ProjectError(
                f"Array {name!r} of {path.name} has {array.ndim} dimensions; (rows,), (rows, columns) and (rows, channels, "
                "samples) are known."
            )
    return RawTable(
        path.name, pandas().DataFrame(columns, index=range(n_rows)), signals, messages=said if other else ()
    )


def _number_of_rows(path: Path, arrays: Mapping[str, NDArray[Any]]) -> int:
    """Rows of the arrays of two and more dimensions, which must agree; of the columns if there is no such array."""
    rows = {name: array.shape[0] for name, array in arrays.items() if array.ndim > 1}
    rows = rows or {name: array.shape[0] for name, array in arrays.items() if array.ndim == 1}
    if len(set(rows.values())) != 1:
        sizes = ", ".join(f"{name} ({count})" for name, count in rows.items()) or "no array"
        raise ProjectError(
            f"The arrays of {path.name} must have the same number of rows, one per row of the data; they have: {sizes}."
        )
    return int(next(iter(rows.values())))


def _read_ts(path: Path) -> RawTable:
    """One signal per dimension, and the column ``class`` if the file has labels."""
    with as_project_error():
        content = parse_ts(path)
    names = [f"dim_{d}" for d in range(len(content.series[0]))]
    signals = {name: Signal([row[d] for row in content.series], is_sound=False) for d, name in enumerate(names)}
    columns = {} if content.labels is None else {"class": content.labels}
    frame = pandas().DataFrame(columns, index=range(len(content.series)))
    return RawTable(path.name, frame, signals, lines=np.array(content.lines))


def _read_hdf5(path: Path, sampling_rate: float | None) -> RawTable:
    """One signal per channel of each sensor, and the columns ``label`` and ``group`` if the file has them."""
    with as_project_error():
        recordings = read_hdf5(path, sampling_rate)
    return table_of_recordings(path.name, recordings, is_sound=False)


def table_of_recordings(source: str, recordings: Recordings, *, is_sound: bool) -> RawTable:
    """Recordings as a table, with one signal per channel of each sensor."""
    signals = {
        channel: Signal(sensor.channel(number), is_sound=is_sound)
        for sensor in recordings.sensors.values()
        for number, channel in enumerate(sensor.channel_names)
    }
    columns: dict[str, Any] = {}
    if any(label is not None for label in recordings.labels):
        columns["label"] = recordings.labels
    if recordings.groups is not None:
        columns["group"] = recordings.groups
    frame = pandas().DataFrame(columns, index=range(recordings.n))
    return RawTable(source, frame, signals, ids=recordings.ids.tolist())


def _stacked(path: Path, files: Sequence[Path], tables: Sequence[RawTable]) -> RawTable:
    """Files with the same columns, one below the other, and a column with the name of the file."""
    first = tables[0]
    for table in tables[1:]:
        missing, extra = set(first.names) - set(table.names), set(table.names) - set(first.names)
        if missing or extra:
            which = f"lacks {abbreviate(sorted(missing))}" if missing else f"also has {abbreviate(sorted(extra))}"
            raise ProjectError(
                f"The files of {path.name!r} must have the same columns, but {table.source} {which}, unlike {first.source}; give "
                "one path per view if the files are different sensors."
            )
    counts = [table.n_rows for table in tables]
    frame = pandas().concat([table.frame for table in tables], ignore_index=True)
    if FILE_COLUMN not in frame.columns:
        frame[FILE_COLUMN] = np.repeat([file.stem for file in files], counts)
    signals = {name: _joined_signal([table.signals[name] for table in tables]) for name in first.signals}
    decimals = {table.decimal for table in tables}
    if len(decimals) > 1:
        raise ProjectError(
            f"Some files of {path.name!r} have a decimal comma and others a point; set decimal in [data]."
        )
    messages = dict.fromkeys(message for table in tables for message in table.messages)
    separators = {table.separator for table in tables}
    separator = separators.pop() if len(separators) == 1 else None
    ids = None if first.ids is None else [f"{t.source}:{key}" for t in tables for key in t.ids or ()]
    return RawTable(path.name, frame, signals, decimals.pop(), separator, messages=tuple(messages), ids=ids)


def _joined_signal(parts: Sequence[Signal]) -> Signal:
    """Signals of several files, one below the other, with the sampling rate of the first."""
    items = [item for part in parts for item in part.items]
    first = parts[0].items
    if isinstance(first, SensorSignals):
        rates = {part.items.sampling_rate for part in parts if isinstance(part.items, SensorSignals)}
        if len(rates) > 1:
            raise ProjectError(
                f"Sensor {first.name!r} has different sampling rates in the files: {', '.join(f'{rate:g}' for rate in rates)} Hz."
            )
        return Signal(SensorSignals(items, first.sampling_rate, first.channel_names, name=first.name), is_sound=False)
    return Signal(items, is_sound=False)


def match_files(folder: Path, pattern: str, files: Sequence[Path]) -> dict[str, Path]:
    """Those of the files below a folder that match a pattern, by the identifier of their row."""
    with as_project_error():
        return files_by_row(folder, pattern, files)


def read_sound_folder(folder: Path, views: Sequence[ViewSettings], *, may_be_flat: bool = False) -> RawTable:
    """The rows of a folder of sound files, with one signal per view.

    ``may_be_flat`` if folders of classes, the ``*/`` at the start of the patterns, may be lacking, as for new rows.
    """
    if folder.is_file() and folder.suffix.lower() in SOUND_FORMATS:
        return _single_file(folder, views)
    if not folder.is_dir():
        raise ProjectError(f"There is no folder {str(folder)!r}; views with sound files need the folder as path.")
    found = sound_files(folder)
    files = {view.name: match_files(folder, view.files, found) for view in views if view.files is not None}
    if may_be_flat and not any(files.values()):
        views = [replace(view, files=(view.files or "").removeprefix("*/")) for view in views]
        files = {view.name: match_files(folder, view.files or "", found) for view in views}
    if not any(files.values()):
        patterns = abbreviate(view.files for view in views)
        have = abbreviate(file.relative_to(folder).as_posix() for file in found) or "no sound file"
        raise ProjectError(f"No sound file in {str(folder)!r} matches {patterns}; it has {have}.")
    empty = [view for view in views if not files[view.name]]
    messages = tuple(f"View {v.name!r}: no file matches {v.files!r}, so it is absent in all rows." for v in empty)
    ids = sorted({row for by_row in files.values() for row in by_row})
    signals = {
        view.name: Signal(
            [_path(files[view.name].get(row)) for row in ids], is_sound=True, channel=_channel(view, files)
        )
        for view in views
    }
    first = [next(by_row[row] for by_row in files.values() if row in by_row) for row in ids]
    frame = pandas().DataFrame({FOLDER_COLUMN: [file.parent.name for file in first]}, index=range(len(ids)))
    return RawTable(folder.name, frame, signals, messages=messages, ids=ids)


def _single_file(file: Path, views: Sequence[ViewSettings]) -> RawTable:
    """One event in one file, in which each view is a channel or there is one view only."""
    if len(views) > 1 and any(view.channel is None for view in views):
        raise ProjectError(
            f"{file.name} is one sound file, but the project has {len(views)} views with files of their own; give the folder that "
            "holds the files of all views."
        )
    signals = {view.name: Signal([str(file)], is_sound=True, channel=view.channel) for view in views}
    frame = pandas().DataFrame({FOLDER_COLUMN: [file.parent.name]}, index=np.arange(1))
    return RawTable(file.name, frame, signals, ids=[file.stem])


def _channel(view: ViewSettings, files: dict[str, dict[str, Path]]) -> int | None:
    """The channel of a view; a file of several channels needs one."""
    some = next(iter(files[view.name].values()), None)
    if some is None:
        return view.channel
    check_channel(view, some, audio_header(some).channels)
    return view.channel


def check_channel(view: ViewSettings, file: Path, n_channels: int) -> None:
    """Raise unless a file has the channel of a view, which a view of a file of several channels must name."""
    if view.channel is None and n_channels > 1:
        raise ProjectError(
            f"View {view.name!r}: {file.name} has {n_channels} channels; give the view channel = 0 to {n_channels - 1}, and add a "
            "view for each other channel."
        )
    if not 0 <= (view.channel or 0) < n_channels:
        raise ProjectError(
            f"View {view.name!r} has channel = {view.channel}, but {file.name} has {n_channels} channels, numbered from 0."
        )


def _path(file: Path | None) -> str | None:
    return None if file is None else str(file)
