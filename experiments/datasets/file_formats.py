"""Compressed files, archives, MATLAB files and tables of numbers, read in memory; a damaged file is a DatasetError.

Nothing is extracted to disk, so the name of a member cannot place a file anywhere. Archives with unsafe names or with
links are refused nevertheless, because no published file has any. Every decompression stops at a given number of
bytes, which limits the memory that a file of unknown content can use.

``scipy.io.loadmat`` runs no code of a file, but it is not safe for unknown content: in scipy 1.17 a file with an invalid
data type crashes the interpreter. Only files with ``DataFile.always_verify``, whose checksum is known, are read by it.
"""

import bz2
import gzip
import io
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from experiments.datasets.locations import DatasetError

MAX_MEMBERS = 10_000
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # an LZMA header would choose the memory of the decoder
DESTINATION = "archive-members"  # for tarfile's filter, which compares paths with it; nothing is written there


def gunzip(data: bytes, *, name: str, max_bytes: int) -> bytes:
    """Return the decompressed content of gzip `data`, at most `max_bytes` long."""
    with _dataset_errors(name, "gzip file"):
        return _read_limited(gzip.GzipFile(fileobj=io.BytesIO(data)), name, max_bytes)


def bunzip2(data: bytes, *, name: str, max_bytes: int) -> bytes:
    """Return the decompressed content of bzip2 `data`, at most `max_bytes` long."""
    with _dataset_errors(name, "bzip2 file"):
        return _read_limited(bz2.BZ2File(io.BytesIO(data)), name, max_bytes)


def read_tar(data: bytes, *, name: str) -> dict[str, bytes]:
    """Return the regular files of an uncompressed tar archive, by member name.

    The members are parts of `data`, so that together they are no larger.
    """
    files: dict[str, bytes] = {}
    with _dataset_errors(name, "tar archive"), tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for count, member in enumerate(archive, start=1):
            if count > MAX_MEMBERS:
                raise DatasetError(f"{name} has more than {MAX_MEMBERS:,} members, more than the published file.")
            _check_member(member)
            if member.isdir():
                continue
            if member.name in files:
                raise DatasetError(f"{name} has two members named {member.name!r}. Get it again.")
            stream = archive.extractfile(member)
            if stream is None:
                raise tarfile.SpecialFileError(member)
            files[member.name] = stream.read()
        end = archive.offset
    # tarfile takes a damaged header for the end of the archive; only zeros may follow the real end.
    if data[end:].strip(b"\0"):
        raise DatasetError(f"{name} is damaged: the header after member {len(files):,} is invalid. Get it again.")
    return files


def read_zip(data: bytes, wanted: Collection[str], *, name: str, max_member_bytes: int) -> dict[str, bytes]:
    """Return the members of a zip archive whose file name (the last part of the path) is in `wanted`, by file name."""
    files: dict[str, bytes] = {}
    with _dataset_errors(name, "zip archive"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            _check_member(tarfile.TarInfo(member.filename))
            file_name = member.filename.rsplit("/", 1)[-1]
            if file_name not in wanted:
                continue
            if file_name in files:
                raise DatasetError(f"{name} has two members named {file_name!r}. Get it again.")
            if member.compress_type not in ZIP_METHODS:
                raise NotImplementedError(f"the compression method of {file_name!r} is not deflate")
            with archive.open(member) as stream:
                files[file_name] = _read_limited(stream, f"{file_name} in {name}", max_member_bytes)
    if missing := sorted(set(wanted) - files.keys()):
        raise DatasetError(f"{name} has no member {', '.join(missing)}: it is a different archive. Get it again.")
    return files


def _read_limited(stream: IO[bytes] | gzip.GzipFile | bz2.BZ2File, name: str, max_bytes: int) -> bytes:
    content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DatasetError(f"{name} decompresses to more than {max_bytes:,} bytes, more than the published file.")
    return content


def _check_member(member: tarfile.TarInfo) -> None:
    """Raise a TarError unless the member is a plain file or folder with a relative path inside the archive.

    These are the rules of tarfile's data filter, except that absolute paths, links and sparse files are refused too.
    """
    if tarfile.data_filter(member, DESTINATION).name != member.name:  # the filter removes a leading slash
        raise tarfile.AbsolutePathError(member)
    if not (member.isdir() or member.isreg()) or member.issparse():
        raise tarfile.SpecialFileError(member)
    if member.size < 0:  # the next header would be an earlier one, in an endless loop
        raise tarfile.HeaderError(f"{member.name!r} has a negative size")


@contextmanager
def _dataset_errors(name: str, kind: str) -> Iterator[None]:
    """Turn whatever the decoders raise for a damaged file into a DatasetError."""
    try:
        yield
    except DatasetError:
        raise
    except tarfile.FilterError as error:
        raise DatasetError(f"{name} has an unsafe member ({error}), so it is not the published file.") from error
    except (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,  # encrypted zip members, unknown compression methods, too many nested headers
        OverflowError,
        zlib.error,
        zipfile.BadZipFile,
        tarfile.TarError,
    ) as error:
        raise DatasetError(f"{name} is not a complete {kind} ({error}). Get it again.") from error


REAL_DTYPE_KINDS = "fiub"


def load_matrices(data: bytes, shapes: Mapping[str, tuple[int, int]], *, name: str) -> dict[str, NDArray[np.float64]]:
    """Return the variables named in `shapes` as float64 arrays; other variables are not read.

    Parameters
    ----------
    data : bytes
        Content of a MATLAB file, version 7.2 or earlier, whose checksum has been verified.
    shapes : mapping from str to (n_rows, n_columns)
        Names and shapes of the variables.
    name : str
        File name, for the error message.

    Raises
    ------
    DatasetError
        If it is not a MATLAB file, or a variable is absent, of another shape or not a full matrix of real numbers.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about variables that scipy cannot read, which are refused below
            variables = loadmat(io.BytesIO(data), variable_names=list(shapes))  # type: ignore[arg-type]
    except Exception as error:  # scipy documents no exceptions and raises many kinds
        reason = str(error) or type(error).__name__
        raise DatasetError(f"{name} is not a MATLAB file that scipy can read ({reason}). Get it again.") from error
    return {
        variable: _real_matrix(variables.get(variable), shape, f"the variable {variable} of {name}")
        for variable, shape in shapes.items()
    }


def _real_matrix(value: object, shape: tuple[int, int], name: str) -> NDArray[np.float64]:
    """Return a loaded variable as float64; strings, cells, structs, sparse and complex matrices are refused."""
    if value is None:
        raise DatasetError(f"There is no {name.removeprefix('the ')}: it is a different file. Get it again.")
    if not isinstance(value, np.ndarray) or value.dtype.kind not in REAL_DTYPE_KINDS:
        raise DatasetError(f"Not a full matrix of real numbers: {name}. Get the file again.")
    if value.shape != shape:
        raise DatasetError(f"Wrong shape of {name}: {value.shape}, expected {shape}. Get the file again.")
    return np.array(value, dtype=np.float64, order="C")


def parse_table(lines: Sequence[str], *, name: str, delimiter: str | None = None) -> NDArray[np.float64]:
    """Return lines of equally many numbers as an array (n_rows, n_columns); no lines give shape (0, 0)."""
    if not any(lines):
        return np.empty((0, 0))
    try:
        return np.loadtxt(lines, delimiter=delimiter, ndmin=2, comments=None)
    except ValueError as error:
        raise DatasetError(f"{name} is not a table of numbers ({error}). Get it again.") from error
