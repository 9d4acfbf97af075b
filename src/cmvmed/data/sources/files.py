"""Tables in files: Parquet, Feather (Arrow) and CSV, through pyarrow datasets.

Files are read a block of rows at a time, whatever the size of their row groups, and only the columns in use. The rows
of a folder are those of its files in the order of their names; folders named key=value are read as well (the keys are no
columns). A value that is null counts as NaN. After each pass, files must look as they did when they were opened.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from cmvmed._optional import import_optional
from cmvmed.data.labels import SparseLabels, joined_labels, labels_of_part
from cmvmed.data.sources.base import FLOAT_BYTES
from cmvmed.data.validation import is_number
from cmvmed.numerics.types import Array, IntArray, Matrix

READING = "Reading such files"  # subject of the error if a package is missing
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".csv": "csv",
}
BUFFER = 1 << 16  # bytes read at once from each column of a Parquet file
PAGE = 1 << 20  # bytes of a page of a Parquet column, and of its dictionary, as writers make them
RECORD_BATCH = 1 << 16  # rows that writers of Feather files put together
CSV_BLOCK = 1 << 23  # bytes that a block of a CSV file takes, as text and as numbers
TAKEN_AT_ONCE = 4096  # rows


class _Stamp(NamedTuple):
    size: int
    mtime_ns: int
    ctime_ns: int  # which no program can set back
    inode: int


@dataclass(frozen=True)
class FileStamps:
    """What files looked like when they were opened; files that are not on this machine have no stamp."""

    stamps: tuple[tuple[str, _Stamp], ...] = ()

    @classmethod
    def of(cls, paths: Iterable[str | PathLike[str]]) -> Self:
        """The stamps of files on this machine."""
        return cls(tuple((fspath(path), _stamp(path)) for path in paths))

    @classmethod
    def below(cls, folder: str | PathLike[str]) -> Self:
        """The stamps of all files in a folder and its sub-folders."""
        return cls.of(file for file in sorted(Path(folder).rglob("*")) if file.is_file())

    def check(self) -> None:
        """Raise if a file was changed, replaced or deleted."""
        for path, before in self.stamps:
            try:
                now = _stamp(path)
            except FileNotFoundError:
                raise ValueError(f"{path} was deleted while it was being read; keep files until the end.") from None
            if now != before:
                raise ValueError(
                    f"{path} was changed while it was being read, so its rows may be mixed; "
                    "repeat this on files that do not change."
                )


def _stamp(path: str | PathLike[str]) -> _Stamp:
    status = os.stat(path)
    return _Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True)
class FileTable:
    """Numeric columns of one or more files that all have them."""

    dataset: Any  # pyarrow.dataset.FileSystemDataset
    columns: tuple[str, ...]
    counts: tuple[int, ...]  # rows of each file
    column_bytes: int  # memory that reading a column takes, at most
    stamps: FileStamps = field(default_factory=FileStamps)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.counts)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes in memory."""
        return self.n_columns

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    @property
    def reading_bytes(self) -> int:
        """Memory that reading takes, beside the blocks."""
        return CSV_BLOCK if self.is_text else self.n_columns * self.column_bytes

    @property
    def place(self) -> str:
        """Where the rows come from, for messages."""
        return f"{self.dataset.files[0]}" + (f" (and {len(self.counts) - 1} more)" if len(self.counts) > 1 else "")

    def select(self, columns: Sequence[str]) -> "FileTable":
        """The same rows with the given columns, which must hold numbers."""
        self._check_names(columns)
        for name in columns:
            kind = self.dataset.schema.field(name).type
            if not _is_numeric(kind):
                raise ValueError(
                    f"Column {name!r} of {self.place} holds {kind} values, but features must be numbers. If it holds the classes, "
                    "pass its name as y; else leave it out, for instance with pyarrow.dataset.dataset(path, schema=...)."
                )
        return replace(self, columns=tuple(columns))

    def blocks(self, size: int) -> Iterator[Matrix]:
        """The rows in blocks of ``size``."""
        matrices = (matrix for fragment in self.dataset.get_fragments() for matrix in self._matrices(fragment, size))
        yield from rebatch(matrices, size, self.n_rows, self.place)
        self.stamps.check()

    def take(self, rows: IntArray) -> Matrix:
        """The rows of the given ascending numbers; files that hold none of them are not read."""
        taken = [np.empty((0, self.n_columns))]
        start = 0
        for fragment, count in zip(self.dataset.get_fragments(), self.counts, strict=True):
            first, last = np.searchsorted(rows, [start, start + count])
            if last > first:
                taken += take_from(self._matrices(fragment, TAKEN_AT_ONCE), rows[first:last] - start)
            start += count
        self.stamps.check()
        return np.concatenate(taken)

    def labels(self, column: str, unlabeled: object) -> SparseLabels:
        """The labeled rows, by a column."""
        found = joined_labels(labels_of_part(part, unlabeled) for part in self._values(column))
        return found._replace(labels=_from_text(found.labels)) if self.is_text else found

    def _values(self, column: str) -> Iterator[Any]:
        """The values of one column of any type in row order, in parts; those of CSV files as text, None if empty."""
        self._check_names([column])
        pa, schema = import_optional("pyarrow", "files", READING), self.dataset.schema
        if self.is_text:
            schema = schema.set(schema.get_field_index(column), schema.field(column).with_type(pa.string()))
        for fragment in self.dataset.get_fragments():
            for batch in _batches(fragment, schema, [column], TAKEN_AT_ONCE):
                part = batch.column(0)
                part = part.dictionary_decode() if pa.types.is_dictionary(part.type) else part
                yield [value or None for value in part.to_pylist()] if self.is_text else pa.chunked_array([part])
        self.stamps.check()

    @property
    def is_text(self) -> bool:
        """Whether the files are CSV files, whose values have no types of their own."""
        return bool(self.dataset.format.default_extname == "csv")

    def _matrices(self, fragment: Any, size: int) -> Iterator[Array]:
        batches = _batches(fragment, self.dataset.schema, list(self.columns), size)
        return (_as_matrix(batch, fragment.path) for batch in batches)

    def _check_names(self, columns: Sequence[str]) -> None:
        names = self.dataset.schema.names
        for name in columns:
            if name not in names:
                raise ValueError(f"{self.place} has no column {name!r}; its columns are {names}.")


def open_files(place: Any) -> FileTable:
    """The table in a file, in a folder of files of one format, or in a pyarrow dataset, with all of its columns."""
    dataset = _dataset_of(place)
    stamps = FileStamps.of(_local_files(dataset))
    with file_errors(dataset.files[0] if dataset.files else "the dataset"):
        names = dataset.schema.names  # which a damaged file may not have as text
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise ValueError(f"{dataset.files[0]} has two columns named {repeated[0]!r}; give each column its own name.")
    files = [_checked_file(fragment, names) for fragment in dataset.get_fragments()]
    counts = tuple(count for count, _ in files)
    largest = max((n_bytes for _, n_bytes in files), default=0)
    return FileTable(dataset, tuple(names), counts, largest, stamps)


def _local_files(dataset: Any) -> list[str]:
    """The files of a dataset if they are on this machine."""
    return list(dataset.files) if dataset.filesystem.type_name == "local" else []


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn the error of a library about a bad file into one that names the file.

    Damaged metadata lead to errors of any kind in pyarrow, Zarr and numpy.
    """
    try:
        yield
    except ImportError:
        raise
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} is not there, or was deleted while it was being read.") from error
    except MemoryError as error:  # also if a damaged file declares an absurd size
        raise MemoryError(f"{path} cannot be read: {_reason(error)}. It is damaged, or memory is short.") from error
    except Exception as error:
        raise ValueError(f"{path} cannot be read: {_reason(error)}. Replace the file or leave it out.") from error


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def rebatch(matrices: Iterator[Array], size: int, n_rows: int, place: str) -> Iterator[Array]:
    """Consecutive rows in blocks of ``size``, whatever the sizes they come in."""
    kept: list[Array] = []
    n_kept = n_seen = 0
    for matrix in matrices:
        n_seen += matrix.shape[0]
        kept.append(matrix)
        n_kept += matrix.shape[0]
        if n_kept >= size:
            joined = kept[0] if len(kept) == 1 else np.concatenate(kept)
            whole = n_kept - n_kept % size
            yield from (joined[start : start + size] for start in range(0, whole, size))
            kept, n_kept = [joined[whole:]], n_kept - whole
    if n_seen != n_rows:
        raise ValueError(
            f"{place} had {n_rows} rows when it was opened and has {n_seen} now; do not change it while it is read."
        )
    if n_kept:
        yield np.concatenate(kept)


def take_from(matrices: Iterator[Array], rows: IntArray) -> list[Array]:
    """The rows of the given ascending numbers, from consecutive blocks."""
    taken, start = [], 0
    for matrix in matrices:
        first, last = np.searchsorted(rows, [start, start + matrix.shape[0]])
        if last > first:
            taken.append(matrix[rows[first:last] - start])
        start += matrix.shape[0]
    return taken


def _dataset_of(place: Any) -> Any:
    """A pyarrow dataset of files in one format."""
    # A wrong path is reported as such also where pyarrow is missing.
    files = _files_in(Path(place)) if isinstance(place, (str, PathLike)) else []
    ds = import_optional("pyarrow.dataset", "files", READING)
    if isinstance(place, ds.Dataset):
        if not isinstance(place, ds.FileSystemDataset):
            raise ValueError(f"Only pyarrow datasets of files can be read, not {type(place).__name__}.")
        return place
    formats = sorted({FORMATS[path.suffix.lower()] for path in files})
    if len(formats) > 1:
        raise ValueError(
            f"The folder {place} mixes the formats {', '.join(formats)}; keep the files of a table in one format."
        )
    paths = [fspath(path) for path in files]
    with file_errors(paths[0]):
        dataset = ds.dataset(paths, format=formats[0])
        return ds.dataset(paths, format="csv", schema=_doubles(dataset)) if formats[0] == "csv" else dataset


def _files_in(path: Path) -> list[Path]:
    if not path.exists():
        what = f"The link {path} leads nowhere." if path.is_symlink() else f"There is no file or folder {path}."
        raise FileNotFoundError(what)
    files = list(_files_below(path)) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"The folder {path} holds no files.")
    for file in files:
        if file.suffix.lower() not in FORMATS:
            raise ValueError(f"{file} cannot be read; the formats are {', '.join(FORMATS)}, .npy, .zarr.")
    return files


def _files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder and of its folders named key=value, in the order of their names; hidden ones are left out."""
    for entry in sorted(folder.iterdir()):
        if entry.name[0] in "._":
            continue
        if entry.is_file():
            yield entry
        elif not entry.exists():
            raise FileNotFoundError(f"The link {entry} leads nowhere; restore its file, or delete the link.")
        elif "=" in entry.name:
            yield from _files_below(entry)
        else:
            raise ValueError(
                f"The folder {folder} holds the folder {entry.name!r}, whose rows would be left out: only sub-folders named "
                "key=value are read. Move it away, or put its files into the folder itself."
            )


def _doubles(dataset: Any) -> Any:
    """The schema of CSV files with numbers in double precision: types are guessed from the beginning of the first file."""
    pa = import_optional("pyarrow", "files", READING)
    if all(is_number(name) for name in dataset.schema.names):
        raise ValueError("its first line must hold the names of the columns, but holds numbers")
    guessed = [(f.name, f.type) for f in dataset.schema]
    return pa.schema([(n, pa.float64() if pa.types.is_integer(t) or pa.types.is_null(t) else t) for n, t in guessed])


def _is_numeric(kind: Any) -> bool:
    types = import_optional("pyarrow", "files", READING).types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _checked_file(fragment: Any, names: Sequence[str]) -> tuple[int, int]:
    """Rows of a file, which must have all the columns, and the memory that reading one of its columns takes."""
    with file_errors(fragment.path):
        have = set(fragment.physical_schema.names)
        count = int(fragment.count_rows())
        column_bytes = _parquet_column_bytes(fragment.metadata) if _is_parquet(fragment) else _batch_column_bytes(count)
    lacking = [name for name in names if name not in have]
    if lacking:
        raise ValueError(f"{fragment.path} has no column {lacking[0]!r}, which other files of the table have.")
    return count, column_bytes


def _batch_column_bytes(count: int) -> int:
    """A column of a record batch, as it is stored and as numbers."""
    return 2 * FLOAT_BYTES * min(count, RECORD_BATCH)


def _parquet_column_bytes(metadata: Any) -> int:
    """A page of the largest column, its dictionary if it has one, and what is read at once."""
    largest = 0
    for g in range(metadata.num_row_groups):
        columns = [metadata.row_group(g).column(c) for c in range(metadata.num_columns)]
        stored = [min(c.total_uncompressed_size, PAGE) * (2 if c.has_dictionary_page else 1) for c in columns]
        largest = max(largest, *stored)
    return largest + BUFFER


def _is_parquet(files: Any) -> bool:
    """Whether a dataset or a fragment of one is of Parquet files."""
    return bool(files.format.default_extname == "parquet")


def _batches(fragment: Any, schema: Any, columns: list[str], size: int) -> Iterator[Any]:
    """Record batches of about ``size`` rows of one file."""
    with file_errors(fragment.path):
        if _is_parquet(fragment):  # the dataset's own scanner would hold whole row groups
            parquet = import_optional("pyarrow.parquet", "files", READING)
            with fragment.filesystem.open_input_file(fragment.path) as stream:
                reader = parquet.ParquetFile(
                    stream, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True
                )
                n_left = reader.metadata.num_rows
                for batch in reader.iter_batches(size, columns=columns, use_threads=False):
                    n_left -= batch.num_rows
                    yield batch.select(columns)
                if n_left:  # the header of a page, which no checksum covers, is damaged
                    raise ValueError(f"it has {n_left} rows less than it declares")
        else:
            for batch in fragment.to_batches(
                schema, columns=columns, batch_size=size, batch_readahead=1, use_threads=False
            ):
                batch.validate(full=True)  # offsets of a damaged Feather file would lead outside of memory
                yield batch


def _as_matrix(batch: Any, path: str) -> Array:
    """A record batch of a file as a matrix, null as NaN."""
    pa = import_optional("pyarrow", "files", READING)
    matrix = np.empty((batch.num_rows, batch.num_columns))
    for i, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        if not _is_numeric(column.type):
            raise ValueError(
                f"Column {name!r} of {path} holds {column.type} values, but numbers in other files of the table; store it as "
                "numbers."
            )
        try:
            matrix[:, i] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"Column {name!r} of {path} holds a value that is not a number in double precision: {error}. Correct or round it."
            ) from error
    return matrix


def _from_text(labels: Any) -> Any:
    """Labels of a CSV file as the numbers they spell, if all of them do."""
    for kind in (int, float):
        try:
            return np.array([kind(label) for label in labels], dtype=object)
        except ValueError:
            continue
    return labels
