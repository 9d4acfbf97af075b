"""The archive of a model file: a zip of .npy arrays and one JSON document.

It is written completely or not at all. It is read within a memory limit: sizes that the archive and the arrays declare
are compared with each other and with the limit before memory is taken.
"""

import json
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

npy: Any = npy_format  # without types in some releases of NumPy
DOCUMENT = "model.json"
ARRAY = "arrays/{}.npy"
DTYPE_KINDS = "biufU"  # booleans, numbers and texts; no objects, which would be pickles
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every entry: the same model gives the same file
MEMORY_PER_BYTE = 32  # that a byte of JSON takes at most: "{}," becomes an empty dict
NPY_HEADER_BYTES = 4096
READ_BYTES = 1 << 20  # at a time


class ModelFileError(ValueError):
    """A file is no model file, is damaged, was written in a later version of the format, or exceeds the memory limit.

    Examples
    --------
    >>> from pathlib import Path
    >>> import cmvmed
    >>> _ = Path("notes.txt").write_text("no model")
    >>> try:
    ...     cmvmed.load("notes.txt")
    ... except cmvmed.ModelFileError as error:
    ...     print(type(error).__name__)
    ModelFileError
    """


class UnsupportedModelFile(ModelFileError):
    """What may be a model file, but of a later version, or too large for the memory limit."""


@contextmanager
def new_file(path: Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` at the end, and leaves nothing behind after an error.

    That it can be written is found out at the beginning.
    """
    _check_target(path, overwrite)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    with open(part, "xb") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            _check_target(path, overwrite)
            os.replace(part, path)
        except BaseException as error:
            if isinstance(error, OSError) and error.errno is not None and error.filename is None:
                error.filename = os.fspath(path)  # a full disk
            with suppress(OSError):  # what could not be written is tried once more
                file.close()
            with suppress(FileNotFoundError):
                part.unlink()
            raise


def _check_target(path: Path, overwrite: bool) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of the model file in it.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; choose another name, or pass overwrite=True.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist; create it first.")


def write_archive(file: IO[bytes], document: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Write the document and the arrays."""
    with zipfile.ZipFile(file, "w") as archive:
        text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        archive.writestr(_entry(DOCUMENT), text)
        for number, array in enumerate(arrays):
            with archive.open(_entry(ARRAY.format(number)), "w", force_zip64=array.nbytes > 1 << 30) as entry:
                npy.write_array(entry, array, version=(1, 0), allow_pickle=False)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


class Budget:
    """The memory that a model may take when it is loaded."""

    def __init__(self, limit: int) -> None:
        self.limit, self.left = limit, limit

    def take(self, n_bytes: int) -> None:
        """Raise unless so many bytes are left."""
        self.left -= n_bytes
        if self.left < 0:
            needed = self.limit - self.left
            raise UnsupportedModelFile(
                f"its content takes at least {needed / 2**20:,.1f} MiB of memory, more than the limit of "
                f"{self.limit / 2**20:,.1f} MiB; if you trust the file, load it within "
                "cmvmed.config_context(memory_limit=...)"
            )


class DirectoryReader:
    """The file as the zip module reads it, which makes an object of each entry of the directory before it returns."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file, self._budget, self.is_open = file, budget, False
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Read, and count the memory of the entries until the archive is open."""
        content = self._file.read(size)
        if not self.is_open:
            self._budget.take(MEMORY_PER_BYTE * len(content))
        return content


class ArchiveReader:
    """The document and the arrays of an archive, each array read once, when it is asked for."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self.budget = budget
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ModelFileError("it is a device or pipe, which may have no end")
        directory = DirectoryReader(file, budget)
        try:
            self._archive = zipfile.ZipFile(directory)
        except zipfile.BadZipFile as error:
            raise ModelFileError(
                f"it is not a zip archive, or it is damaged ({error}). Load a pickle of joblib with joblib.load, which can "
                "run any code"
            ) from error
        finally:
            directory.is_open = True
        self._entries = {entry.filename: entry for entry in self._archive.infolist()}
        if len(self._entries) < len(self._archive.infolist()):
            raise ModelFileError("two of its entries have the same name")
        self._arrays: dict[int, NDArray[Any]] = {}

    def document(self) -> Any:
        """The JSON document."""
        entry = self._known(DOCUMENT)
        self.budget.take(MEMORY_PER_BYTE * entry.file_size)
        with self._archive.open(entry) as file:
            return json.loads(file.read().decode("utf-8"), parse_constant=_no_constant)

    def array(self, number: int) -> NDArray[Any]:
        """An array by its number."""
        if number not in self._arrays:
            entry = self._known(ARRAY.format(number))
            with self._archive.open(entry) as file:
                self._arrays[number] = self._read_array(entry, file)
        return self._arrays[number]

    def all_arrays(self) -> list[NDArray[Any]]:
        """All arrays in their order; it is an error if the archive has other entries."""
        count = len(self._entries) - 1
        return [self.array(number) for number in range(count)]

    def _read_array(self, entry: zipfile.ZipInfo, file: IO[bytes]) -> NDArray[Any]:
        if npy.read_magic(file) != (1, 0):
            raise ModelFileError(f"{entry.filename} is not in version 1.0 of the npy format")
        shape, fortran, dtype = npy.read_array_header_1_0(file, max_header_size=NPY_HEADER_BYTES)
        if not is_plain(dtype):
            raise ModelFileError(f"{entry.filename} holds {dtype}, not numbers or texts")
        check_shape(shape)
        n_bytes = dtype.itemsize * product(shape)
        if n_bytes != entry.file_size - file.tell():
            raise ModelFileError(f"{entry.filename} declares {n_bytes} bytes but has {entry.file_size - file.tell()}")
        self.budget.take(n_bytes)
        content = np.empty(n_bytes, dtype=np.uint8)
        _fill(content, file)
        array: NDArray[Any] = content.view(dtype).reshape(shape, order="F" if fortran else "C")
        return array if dtype.isnative else array.astype(dtype.newbyteorder("="))

    def _known(self, name: str) -> zipfile.ZipInfo:
        entry = self._entries.get(name)
        if entry is None:
            raise ModelFileError(f"it has no entry {name}")
        if entry.flag_bits & 0x1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(f"its entry {name} is encrypted, or compressed in an unusual way")
        return entry


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether a file may hold values of a type: numbers or texts, of which none take no memory."""
    return dtype.kind in DTYPE_KINDS and dtype.itemsize > 0 and not dtype.hasobject and dtype.names is None


def check_shape(shape: Sequence[int]) -> None:
    """Raise unless a declared shape is one that an array can have."""
    if len(shape) > 8 or not all(type(length) is int and 0 <= length < 2**62 for length in shape):
        raise ModelFileError(f"an array cannot have the shape {tuple(shape)!r:.100}")


def product(shape: Sequence[int]) -> int:
    """The number of entries of an array, in whole numbers that cannot overflow."""
    size = 1
    for length in shape:
        size *= length
    return size


def _fill(content: NDArray[np.uint8], file: IO[bytes]) -> None:
    """Read as many bytes as ``content`` has; the end of the entry is read too, where its checksum is compared."""
    view, done = content.data, 0
    while done < len(view):
        n_read = file.readinto(view[done : done + READ_BYTES])  # type: ignore[attr-defined]
        if not n_read:
            raise ModelFileError("an array ends early")
        done += n_read
    if file.read(1):
        raise ModelFileError("an array is longer than it declares")


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"its document holds {name}, which is not JSON")
