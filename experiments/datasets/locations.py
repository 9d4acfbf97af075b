"""Data files: search in the data folders and the cache, download, check of size and checksum, and the errors of loaders.

A file is searched in ``data_home``, then in the folder named by the environment variable ``CMVMED_DATA``, then in the
cache. A file that is in none of them is downloaded to the cache. The content is read once: the bytes that are checked
are the bytes that are parsed.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import IO

DATA_VARIABLE = "CMVMED_DATA"
DOWNLOAD_TIMEOUT_SECONDS = 60  # without an answer or further bytes
MAX_DOWNLOAD_SECONDS = 3600  # in total, for servers that send a few bytes now and then


class DatasetError(ValueError):
    """A data file is truncated, altered, malicious or of another format; the message names it and says what to do.

    Examples
    --------
    >>> from experiments.datasets import DatasetError, DatasetNotFoundError
    >>> issubclass(DatasetNotFoundError, DatasetError), issubclass(DatasetError, ValueError)
    (True, True)
    """


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """A data file is neither in a data folder nor in the cache, and could not be downloaded.

    Examples
    --------
    >>> from experiments.datasets import DatasetNotFoundError
    >>> issubclass(DatasetNotFoundError, FileNotFoundError)
    True
    """


@dataclass(frozen=True)
class DataFile:
    """A published file.

    Attributes
    ----------
    name : str
        File name.
    folder : str
        Subfolder of a data folder; the file may also be in the data folder itself.
    url : str
        Address for the download; empty for a file that is not published under this name.
    homepage : str
        Page or address that error messages give to the user.
    max_bytes : int
        Larger files are refused before they are read.
    sha256 : tuple of str
        Accepted checksums; empty if none is known.
    always_verify : bool
        Check the checksum even with ``verify=False``, because the parser is not safe for other content.
    """

    name: str
    folder: str
    url: str
    homepage: str
    max_bytes: int
    sha256: tuple[str, ...] = ()
    always_verify: bool = False


@dataclass(frozen=True)
class FetchOptions:
    """The parameters that all ``fetch_*`` functions share."""

    data_home: str | os.PathLike[str] | None = None
    download_if_missing: bool = True
    verify: bool = True


def read_file(file: DataFile, options: FetchOptions) -> bytes:
    """Return the checked content of a file, which is downloaded if it is in no data folder and not in the cache."""
    path = find_file(file, options)
    return read_verified(download(file, options) if path is None else path, file, options)


def find_file(file: DataFile, options: FetchOptions) -> Path | None:
    """Return the first path of the file in the data folders and the cache, or None. Nothing is downloaded."""
    for folder in [*data_folders(options), *cache_folders()]:
        if path := _path_in(folder, file):
            return path
    return None


def first_available(files: Sequence[DataFile], options: FetchOptions) -> DataFile | None:
    """Return, of several versions of a data set, the one in the first folder that has any, or None."""
    for folder in [*data_folders(options), *cache_folders()]:
        for file in files:
            if _path_in(folder, file):
                return file
    return None


def _path_in(folder: Path, file: DataFile) -> Path | None:
    candidates = (folder / file.folder / file.name, folder / file.name)
    return next((path for path in candidates if path.is_file()), None)


def data_folders(options: FetchOptions) -> Iterator[Path]:
    """Yield the data folders of the user in search order; a folder that does not exist is an error."""
    sources = (
        ("data_home", options.data_home),
        (f"the environment variable {DATA_VARIABLE}", os.environ.get(DATA_VARIABLE)),
    )
    for source, value in sources:
        if value is None or value == "":
            continue
        folder = Path(value).expanduser()
        if not folder.is_dir():
            raise DatasetNotFoundError(
                f"{source} names {folder}, which is not a folder. Create it or correct the name."
            )
        yield folder


def cache_folders() -> list[Path]:
    """Return the cache folder of this package, or an empty list if pooch, which manages it, is not installed."""
    if find_spec("pooch") is None:
        return []
    import pooch

    return [Path(pooch.os_cache("cmvmed"))]


def download(file: DataFile, options: FetchOptions) -> Path:
    """Download a file to the cache with pooch, which checks the checksum if it is known and keeps no partial file."""
    if not options.download_if_missing:
        raise not_found(file, options, "download_if_missing=False prevents the download")
    if not file.url:
        raise not_found(file, options, "it has no address to download from")
    if find_spec("pooch") is None:
        raise not_found(file, options, "the download needs pooch (pip install pooch tqdm)")
    import pooch

    # pooch takes one checksum per file; a file with several accepted ones is checked later, by read_verified.
    checksum = f"sha256:{file.sha256[0]}" if _must_verify(file, options) and len(file.sha256) == 1 else None
    cache = pooch.create(
        path=cache_folders()[0], base_url="", registry={file.name: checksum}, urls={file.name: file.url}
    )
    try:
        path = cache.fetch(file.name, downloader=_limited_downloader(file))
    except OSError as error:  # includes the exceptions of requests
        raise not_found(file, options, f"the download from {file.url} failed ({type(error).__name__})") from error
    except DatasetError:
        raise
    except ValueError as error:  # raised by pooch for a wrong checksum
        raise DatasetError(
            f"{file.name} as downloaded from {file.url} does not have the checksum {checksum}: the download was "
            f"truncated or the published file has changed. Try again{_verify_hint(file)}."
        ) from error
    return Path(path)


def _downloader() -> Callable[..., object]:
    import pooch

    downloader: Callable[..., object] = pooch.HTTPDownloader(
        progressbar=find_spec("tqdm") is not None, timeout=DOWNLOAD_TIMEOUT_SECONDS
    )
    return downloader


def _limited_downloader(file: DataFile) -> Callable[..., None]:
    """A downloader for pooch that ends when a file is larger than it can be, or takes too long."""
    download_to = _downloader()

    def fetch(url: str, output_file: str, cache: object) -> None:
        with open(output_file, "wb") as output:
            download_to(url, _LimitedOutput(output, file), cache)

    return fetch


class _LimitedOutput:
    """A file that refuses more bytes than a data file can have, and bytes that come too late."""

    def __init__(self, output: IO[bytes], file: DataFile) -> None:
        self.output, self.file = output, file
        self.size, self.deadline = 0, time.monotonic() + MAX_DOWNLOAD_SECONDS

    def write(self, chunk: bytes) -> int:
        """Write further bytes."""
        self.size += len(chunk)
        if self.size > self.file.max_bytes:
            raise DatasetError(
                f"The download of {self.file.name} from {self.file.url} was ended after {self.size:,} bytes, because the "
                f"file has at most {self.file.max_bytes:,}. The address holds a different file: see {self.file.homepage}."
            )
        if time.monotonic() > self.deadline:
            raise TimeoutError(f"the download took more than {MAX_DOWNLOAD_SECONDS} s")
        return self.output.write(chunk)

    def flush(self) -> None:
        """Flush the file."""
        self.output.flush()


def not_found(file: DataFile, options: FetchOptions, why_not_downloaded: str) -> DatasetNotFoundError:
    """Return the error that names the searched folders, the source of the file and where to put it."""
    searched = [str(folder) for folder in [*data_folders(options), *cache_folders()]]
    return DatasetNotFoundError(
        f"{file.name} was not found in {', '.join(searched) or 'any folder (none is given)'}, and "
        f"{why_not_downloaded}. Get it from {file.homepage}, put it in a folder as {file.folder}/{file.name} (or just "
        f"{file.name}), and pass data_home=<that folder> or set {DATA_VARIABLE} to it."
    )


def read_verified(path: Path, file: DataFile, options: FetchOptions) -> bytes:
    """Return the content of `path` if it is not larger than the file can be and has one of its checksums."""
    if (size := path.stat().st_size) > file.max_bytes:
        raise DatasetError(
            f"{path} has {size:,} bytes; {file.name} has at most {file.max_bytes:,}. It is a different file: get the "
            f"right one from {file.homepage}."
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    digest = hashlib.sha256(data).hexdigest()
    if _must_verify(file, options) and digest not in file.sha256:
        raise DatasetError(
            f"{path} has SHA-256 {digest}, expected {' or '.join(file.sha256)}: it is truncated, altered or a "
            f"different file. Get it again from {file.homepage}{_verify_hint(file)}."
        )
    return data


def _must_verify(file: DataFile, options: FetchOptions) -> bool:
    return bool(file.sha256) and (options.verify or file.always_verify)


def _verify_hint(file: DataFile) -> str:
    return "" if file.always_verify else ", or pass verify=False to load it anyway"


def describe(name: str, **values: object) -> str:
    """Return the text `name` of ``DESCR``, with `values` filled in."""
    return files("experiments.datasets").joinpath("descriptions", f"{name}.txt").read_text("utf-8").format(**values)
