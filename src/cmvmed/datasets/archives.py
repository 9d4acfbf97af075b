"""Compressed files and archives, read in memory.

Nothing is extracted to disk, so the name of a member cannot place a file anywhere. Archives with unsafe names or with
links are refused nevertheless, because no published file has any. Every decompression stops at a given number of
bytes, which limits the memory that a file of unknown content can use.
"""

import bz2
import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO

from cmvmed.datasets.errors import DatasetError

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
