"""Damaged files of every format: a clear error that names the file, the same values, or a change that is not detectable.

Bits are flipped, ends cut off, blocks zeroed, replaced, removed or repeated. Where the format has a checksum of its
values, a changed value is a failure; where it has none, it is counted as not detectable. Files are read in a process of
their own, with a limit of memory and time, so that a crash of a decoder is a failure too.
"""

import multiprocessing
import os
import resource
import shutil
import time
import warnings
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.faults.campaign import CLEAR_ERROR, HELD, KNOWN, NOT_DETECTABLE, Fault, fresh_folder, workspace
from benchmarks.faults.formats import FORMATS, digest

CASES = {"ci": 40 * len(FORMATS), "nightly": 3000 * len(FORMATS)}
DAMAGES = ("flip", "flip", "flips", "truncate", "zeros", "noise", "remove", "repeat", "delete", "empty")
MAX_BLOCK = 512  # bytes
READ_SECONDS = 30.0  # of the processor, so that other work on the machine does not matter
MAX_WAIT = 600.0  # for a process that neither computes nor answers
MAX_MEMORY = 8 << 30  # bytes of address space of the reading process
# Formats whose decoders loop or end the process on some damage, before any Python code could look at it: libhdf5 on a
# damaged heap, pyarrow on damaged metadata of a column in the footer of a Parquet file.
CRASHING = ("HDF5", "HDF5 cases", "HDF5 with checksums", "Parquet, in blocks", "Parquet with checksums")
ERRORS = (ValueError, TypeError, OSError, MemoryError)


@dataclass(frozen=True)
class Case:
    """A file, and what happens to it at a place between 0 and 1 of its length."""

    format: str = "csv"
    damage: str = "flip"
    place: float = 0.0
    seed: int = 0
    file: int = 0  # of a folder


def draw(rng: np.random.Generator, number: int) -> Case:
    """Formats take turns."""
    names = list(FORMATS)
    return Case(
        format=names[number % len(names)],
        damage=str(rng.choice(DAMAGES)),
        place=float(rng.random()),
        seed=int(rng.integers(2**31)),
        file=int(rng.integers(2**10)),
    )


def check(case: Case) -> str:
    """Read the damaged file and compare with what the whole file holds."""
    folder = fresh_folder()
    try:
        path = folder / FORMATS[case.format].file
        original, expected = whole_file(case.format), whole_content(case.format)
        (shutil.copytree if original.is_dir() else shutil.copy)(original, path)
        _damage(case, path)
        is_new = FORMATS[case.format].empty_is_new and not path.read_bytes()
        found = reader().read(case.format, path)
    except DecoderFault:
        if case.format in CRASHING:
            return KNOWN
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if "error" in found:
        return _clear(case, found)
    if found == expected:
        return HELD
    if is_new:
        return NOT_DETECTABLE
    if FORMATS[case.format].protected and found["values"] != expected["values"]:
        raise Fault(f"{case.format}: values changed silently in spite of a checksum", case.damage)
    return NOT_DETECTABLE


def _clear(case: Case, found: dict[str, Any]) -> str:
    """A clear error is of a documented class of the library or of Python, and names the file."""
    if not found["documented"]:
        raise Fault(f"{case.format}: {found['error']}", found["message"])
    if FORMATS[case.format].file not in found["message"]:
        raise Fault(f"{case.format}: {found['error']} does not name the file", found["message"])
    return CLEAR_ERROR


def damaged(content: bytes, damage: str, place: float, seed: int) -> bytes:
    """Damage bytes at a place."""
    rng, size = np.random.default_rng(seed), len(content)
    data = np.frombuffer(content, dtype=np.uint8).copy()
    at, length = min(int(place * size), max(size - 1, 0)), int(rng.integers(1, MAX_BLOCK))
    if damage in ("empty", "delete") or not size:
        return b""
    if damage == "flip":
        data[at] ^= 1 << rng.integers(8)
    elif damage == "flips":
        data[rng.integers(size, size=5)] ^= (1 << rng.integers(8, size=5)).astype(np.uint8)
    elif damage == "truncate":
        return content[:at]
    elif damage == "zeros":
        data[at : at + length] = 0
    elif damage == "noise":
        data[at : at + length] = rng.integers(256, size=data[at : at + length].size)
    elif damage == "remove":
        return content[:at] + content[at + length :]
    elif damage == "repeat":
        return content[: at + length] + content[at:]
    return data.tobytes()


def _damage(case: Case, path: Path) -> None:
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    file = files[case.file % len(files)]
    if case.damage == "delete" and path.is_dir():
        file.unlink()
    else:
        file.write_bytes(damaged(file.read_bytes(), case.damage, case.place, case.seed))


@cache
def whole_file(name: str) -> Path:
    """The undamaged file of a format."""
    path = workspace() / "whole" / name.replace(" ", "_") / FORMATS[name].file
    path.parent.mkdir(parents=True)
    FORMATS[name].write(path)
    return path


@cache
def whole_content(name: str) -> dict[str, Any]:
    """What the library reads in the undamaged file; it is read once, from a copy, so that it stays as it is."""
    content = reader().read(name, whole_file(name))
    if "error" in content:
        raise RuntimeError(f"The undamaged file of {name} cannot be read: {content['message']}")
    return content


class DecoderFault(Fault):
    """The reading process died or did not answer: no Python code can prevent it."""


class Reader:
    """A process that reads files; it is started again after a crash."""

    def __init__(self) -> None:
        self._process: Any = None

    def read(self, name: str, path: Path) -> dict[str, Any]:
        """The digests of what the library reads, or its error; a fault if the process dies or does not answer."""
        if self._process is None:
            self._start()
        try:
            self._connection.send((name, str(path)))
            if self._answers():
                found: dict[str, Any] = self._connection.recv()
                return found
        except (EOFError, ConnectionError):
            code = self._end()
            raise DecoderFault(f"{name}: the reading process died", f"exit code {code}") from None
        self._end()
        raise DecoderFault(f"{name}: reading takes more than {READ_SECONDS:g} s", str(path))

    def _answers(self) -> bool:
        """Whether there is an answer within the limits of time."""
        process, end = psutil.Process(self._process.pid), time.monotonic() + MAX_WAIT
        used = sum(process.cpu_times()[:2])
        while time.monotonic() < end and sum(process.cpu_times()[:2]) - used < READ_SECONDS:
            if self._connection.poll(1.0):
                return True
        return False

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, os.getpid()), daemon=True)
        self._process.start()
        other.close()

    def _end(self) -> int | None:
        self._process.kill()
        self._process.join()
        code: int | None = self._process.exitcode
        self._process = None
        return code


@cache
def reader() -> Reader:
    """The reading process of this process."""
    return Reader()


def _serve(connection: Connection, parent: int) -> None:
    """Answer until the parent closes the connection; output of decoders goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    while os.getppid() == parent:
        try:
            name, path = connection.recv()
        except EOFError:
            return
        connection.send(read_content(name, Path(path)))


def read_content(name: str, path: Path) -> dict[str, Any]:
    """Digests of values and names, or what is needed to judge the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = FORMATS[name].read(path)
            return {part: digest(content) for part, content in found.items()}
        except BaseException as error:
            kind = type(error)
            documented = isinstance(error, ERRORS) and kind.__module__.split(".")[0] in (
                "builtins",
                "cmvmed",
                "experiments",
            )
            return {"error": kind.__name__, "message": str(error), "documented": documented}
