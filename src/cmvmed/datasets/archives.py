"""Archives read in memory, with a cap on everything a hostile file could make large.

Nothing is ever extracted to disk, so a member's name cannot place a file anywhere; names that try to are refused all
the same, because an honest archive has none. Every decompression stops at an absolute number of bytes, which bounds
memory whatever the compression ratio claims.
"""

import bz2
import gzip
import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Collection
from typing import Protocol

from cmvmed.datasets.errors import DatasetError

MAX_MEMBERS = 10_000

# lzma members are refused: their header chooses the decoder's memory.
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def gunzip(data: bytes, *, name: str, max_bytes: int) -> bytes:
    """Return the decompressed content of gzip `data`, at most `max_bytes` long."""
    return _read_to_cap(gzip.GzipFile(fileobj=io.BytesIO(data)), name, max_bytes, "gzip")


def bunzip2(data: bytes, *, name: str, max_bytes: int) -> bytes:
    """Return the decompressed content of bzip2 `data`, at most `max_bytes` long."""
    return _read_to_cap(bz2.BZ2File(io.BytesIO(data)), name, max_bytes, "bzip2")


def _read_to_cap(stream: _Readable, name: str, max_bytes: int, kind: str) -> bytes:
    try:
        content = stream.read(max_bytes + 1)
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
        raise DatasetError(f"{name} is not a whole {kind} file ({error}). Get it again.") from error
    if len(content) > max_bytes:
        raise DatasetError(f"{name} decompresses to more than {max_bytes:,} bytes, which the published file does not.")
    return content


def tar_files(data: bytes, *, name: str, max_member_bytes: int) -> dict[str, bytes]:
    """Return the regular files of an uncompressed tar archive, by member name.

    Links, devices and sparse files are refused, as are members named twice. `data` is in memory, so that no header,
    however large it claims to be, can make ``tarfile`` read more than that.
    """
    try:
        return _tar_files(data, name, max_member_bytes)
    except (tarfile.TarError, EOFError, OSError, OverflowError, RecursionError) as error:
        raise DatasetError(f"{name} is not a whole tar archive ({error}). Get it again.") from error


def _tar_files(data: bytes, name: str, max_member_bytes: int) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        # Counted member by member: a header with a negative size can make older versions of tarfile loop for ever.
        for count, member in enumerate(archive, start=1):
            if count > MAX_MEMBERS:
                raise DatasetError(f"{name} has more than {MAX_MEMBERS:,} members, which the published file does not.")
            refuse_unsafe_name(member.name, name)
            if member.isdir():
                continue
            files[member.name] = _tar_member(archive, member, name, max_member_bytes, already_seen=files)
        end = archive.offset
    # tarfile takes a damaged header for the end of the archive; only zeros may follow a true end.
    if data[end:].strip(b"\0"):
        raise DatasetError(
            f"{name} is damaged after member {len(files):,}: a header is not one of a tar archive. Get it again."
        )
    return files


def _tar_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, max_bytes: int, already_seen: Collection[str]
) -> bytes:
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
        raise DatasetError(
            f"{name} holds {member.name!r}, which is a link or special file, not a regular one; it is refused."
        )
    if not 0 <= member.size <= max_bytes:
        raise DatasetError(f"{name} holds {member.name!r} of {member.size:,} bytes; at most {max_bytes:,} are allowed.")
    if member.name in already_seen:
        raise DatasetError(f"{name} holds {member.name!r} twice; it is refused.")
    stream = archive.extractfile(member)
    assert stream is not None  # true of every regular member
    return stream.read()


def zip_files(data: bytes, wanted: Collection[str], *, name: str, max_member_bytes: int) -> dict[str, bytes]:
    """Return the members of a zip archive whose file name (the last part of the path) is in `wanted`, by file name."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DatasetError(f"{name} is not a whole zip archive ({error}). Get it again.") from error
    with archive:
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise DatasetError(f"{name} has more than {MAX_MEMBERS:,} members, which the published file does not.")
        files: dict[str, bytes] = {}
        for member in members:
            refuse_unsafe_name(member.filename, name)
            file_name = member.filename.rsplit("/", 1)[-1]
            if file_name not in wanted:
                continue
            if file_name in files:
                raise DatasetError(f"{name} holds {file_name!r} twice; it is refused.")
            files[file_name] = _zip_member(archive, member, name, max_member_bytes)
    missing = sorted(set(wanted) - files.keys())
    if missing:
        raise DatasetError(f"{name} does not hold {', '.join(missing)}: it is another archive. Get it again.")
    return files


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, max_bytes: int) -> bytes:
    if member.flag_bits & 0x1:
        raise DatasetError(f"{name} holds {member.filename!r} encrypted, which the published file does not.")
    if member.compress_type not in ZIP_METHODS:
        raise DatasetError(f"{name} holds {member.filename!r} in an unusual compression; only deflate is read.")
    try:
        stream = archive.open(member)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DatasetError(f"{name} is not a whole zip archive ({error}). Get it again.") from error
    return _read_to_cap(stream, f"{member.filename} in {name}", max_bytes, "zip")


def refuse_unsafe_name(member: str, archive: str) -> None:
    """Raise if a member's name is absolute, climbs out of its folder, or is no plain relative path."""
    unsafe = (
        member.startswith("/")
        or "\\" in member
        or "\0" in member
        or ".." in member.split("/")
        or re.match("[A-Za-z]:/", member)
    )
    if unsafe:
        raise DatasetError(
            f"{archive} holds a member named {member!r}, a path that leads outside; the archive is refused."
        )
