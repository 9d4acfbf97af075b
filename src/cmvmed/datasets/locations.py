"""From the name of a data file to its bytes: data folder, cache, download, size and checksum.

A file is looked for in ``data_home``, then in the folder named by the environment variable ``CMVMED_DATA``, then in the
cache; what is in none of them is downloaded into the cache. The bytes that are checked are the bytes that are parsed:
no loader opens a path a second time.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cmvmed.datasets.errors import DatasetError, DatasetNotFoundError

DATA_VARIABLE = "CMVMED_DATA"
DOWNLOAD_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class DataFile:
    """A published file.

    Attributes
    ----------
    name : str
        File name.
    folder : str
        Subfolder of a data folder; the file may also lie flat in the data folder.
    url : str
        Where it is downloaded from; empty for a file that nobody publishes under this name.
    home : str
        The page or address a person is sent to.
    max_bytes : int
        Larger files are refused unread.
    sha256 : tuple of str
        Accepted checksums; empty where none is known.
    """

    name: str
    folder: str
    url: str
    home: str
    max_bytes: int
    sha256: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lookup:
    """Where to look and how strictly to check; the arguments that every ``fetch_*`` function shares."""

    data_home: str | os.PathLike[str] | None = None
    download_if_missing: bool = True
    verify: bool = True


def read(file: DataFile, lookup: Lookup) -> bytes:
    """Return the checked bytes of a file, downloading it if it is in no data folder and not in the cache."""
    path = find(file, lookup)
    return read_checked(download(file, lookup) if path is None else path, file, lookup)


def find(file: DataFile, lookup: Lookup) -> Path | None:
    """Return the first place that holds the file, or None. Nothing is downloaded."""
    for folder in [*data_folders(lookup), *cache_folders()]:
        if path := _inside(folder, file):
            return path
    return None


def first_there(files: Sequence[DataFile], lookup: Lookup) -> DataFile | None:
    """Return, of several forms of a data set, the one in the first folder that has any, or None."""
    for folder in [*data_folders(lookup), *cache_folders()]:
        for file in files:
            if _inside(folder, file):
                return file
    return None


def _inside(folder: Path, file: DataFile) -> Path | None:
    candidates = (folder / file.folder / file.name, folder / file.name)
    return next((path for path in candidates if path.is_file()), None)


def data_folders(lookup: Lookup) -> Iterator[Path]:
    """Yield the user's data folders in the order of the search; one that does not exist is an error."""
    named = (
        ("data_home", lookup.data_home),
        (f"the environment variable {DATA_VARIABLE}", os.environ.get(DATA_VARIABLE)),
    )
    for origin, value in named:
        if value is None or value == "":
            continue
        folder = Path(value).expanduser()
        if not folder.is_dir():
            raise DatasetNotFoundError(
                f"{origin} names {folder}, which is not a folder. Create it or correct the name."
            )
        yield folder


def cache_folders() -> list[Path]:
    """Return the cache folder of this package, or an empty list where pooch, which knows it, is not installed."""
    if find_spec("pooch") is None:
        return []
    import pooch

    return [Path(pooch.os_cache("cmvmed"))]


def download(file: DataFile, lookup: Lookup) -> Path:
    """Download a file into the cache with pooch: progress bar, checksum where it is known, no half-written file."""
    if not lookup.download_if_missing:
        raise not_found(file, lookup, "download_if_missing=False keeps it from being downloaded")
    if not file.url:
        raise not_found(file, lookup, "it has no address to download from")
    if find_spec("pooch") is None:
        raise not_found(file, lookup, "downloading needs pooch (pip install 'cmvmed[datasets]')")
    # pooch knows one checksum a file; a file with several accepted ones is checked after the download, by read_checked.
    known = f"sha256:{file.sha256[0]}" if lookup.verify and len(file.sha256) == 1 else None
    cache = _download_cache(file, known)
    try:
        path = cache.fetch(file.name, downloader=_downloader())
    except OSError as error:  # requests' exceptions are OSErrors
        raise not_found(file, lookup, f"the download from {file.url} failed ({type(error).__name__})") from error
    except ValueError as error:  # pooch's word for a checksum that differs
        raise DatasetError(
            f"{file.name} as downloaded from {file.url} does not have the checksum {known}: the download was "
            "cut short or the published file has changed. Try again, or pass verify=False to load the file anyway."
        ) from error
    return Path(path)


def _download_cache(file: DataFile, known: str | None) -> Any:
    import pooch

    return pooch.create(path=cache_folders()[0], base_url="", registry={file.name: known}, urls={file.name: file.url})


def _downloader() -> Any:
    import pooch

    return pooch.HTTPDownloader(progressbar=find_spec("tqdm") is not None, timeout=DOWNLOAD_TIMEOUT_SECONDS)


def not_found(file: DataFile, lookup: Lookup, why_no_download: str) -> DatasetNotFoundError:
    """Return the error that says where the file was looked for, where to get it and where to put it."""
    searched = [str(folder) for folder in [*data_folders(lookup), *cache_folders()]]
    return DatasetNotFoundError(
        f"{file.name} was not found in {', '.join(searched) or 'any folder (none is named)'}, and {why_no_download}. "
        f"Get it from {file.home}, put it in a folder of yours as {file.folder}/{file.name} (or just {file.name}), and "
        f"pass data_home=<that folder> or set {DATA_VARIABLE} to it."
    )


def read_checked(path: Path, file: DataFile, lookup: Lookup) -> bytes:
    """Return the bytes at `path` if they are no more than the file may have and carry one of its checksums."""
    if (size := path.stat().st_size) > file.max_bytes:
        raise DatasetError(
            f"{path} has {size:,} bytes; {file.name} has at most {file.max_bytes:,}. It is another file: get the right "
            f"one from {file.home}."
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    digest = hashlib.sha256(data).hexdigest()
    if lookup.verify and file.sha256 and digest not in file.sha256:
        raise DatasetError(
            f"{path} has SHA-256 {digest}, expected {' or '.join(file.sha256)}: it is truncated, altered or another "
            f"file. Get it again from {file.home}, or pass verify=False to load it anyway."
        )
    return data
