"""Full disks: a clear error that names the file, the old file as it was, no half-written file, and no lost row.

Files are written to a small memory file system if this user may mount one, and else under a limit of the file size.
"""

import os
import resource
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cmvmed
from benchmarks.faults.campaign import CLEAR_ERROR, HELD, SKIPPED, Fault, fresh_folder, workspace

CASES = {"ci": 60, "nightly": 2000}
PAGE = 4096
ERRORS = (OSError, ValueError)


@dataclass(frozen=True)
class Case:
    """What is written, and the share of its size that there is room for."""

    output: str = "model file"
    limit: str = "file size"
    share: float = 0.5
    replaces: bool = False

    @property
    def group(self) -> str:
        """The line of the table."""
        return f"{self.output}, {self.limit}"


def draw(rng: np.random.Generator, number: int) -> Case:
    """Outputs take turns."""
    return Case(
        output=list(OUTPUTS)[number % len(OUTPUTS)],
        limit=str(rng.choice(["file size", "small disk"])),
        share=float(rng.random() * 1.2),
        replaces=bool(rng.random() < 0.5),
    )


def check(case: Case) -> str:
    """Write until there is no room, and look at what is left."""
    output, folder = OUTPUTS[case.output], fresh_folder()
    room = int(case.share * whole_size(case.output))
    try:
        with _limited(case.limit, folder, room) as place:
            if place is None:
                return SKIPPED
            return output(case, place, room)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _limited(kind: str, folder: Path, room: int) -> Iterator[Path | None]:
    """A folder with little room; None if there cannot be one here."""
    if kind == "file size":
        yield folder
        return
    size = max(PAGE, room // PAGE * PAGE)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "cmvmed-faults", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


@contextmanager
def file_size_limit(kind: str, room: int) -> Iterator[None]:
    """A limit of the size of files that this process writes, if the case is of this kind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if kind == "file size":
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def check_error(error: Exception, path: Path) -> None:
    """Raise a fault unless an error is one that a user understands: of a documented kind, and with the file."""
    if not isinstance(error, ERRORS) or type(error).__module__.split(".")[0] not in (
        "builtins",
        "cmvmed",
        "experiments",
    ):
        raise Fault(f"{type(error).__name__} when the disk is full", str(error)) from error
    if path.name not in str(error):
        raise Fault(f"{type(error).__name__} that does not name the file when the disk is full", str(error)) from error


def _write_file(case: Case, folder: Path, room: int, write: Callable[[Path], None], name: str) -> str:
    """Files that are written completely or not at all."""
    path, old = folder / name, b"old"
    if case.replaces:
        path.write_bytes(old)
    try:
        with file_size_limit(case.limit, room):
            write(path)
    except Exception as error:
        check_error(error, path)
        if (path.read_bytes() if path.exists() else None) != (old if case.replaces else None):
            raise Fault("a half-written file", str(error)) from error
        if [file.name for file in folder.iterdir() if file != path]:
            raise Fault("something is left behind", str(list(folder.iterdir()))) from error
        return CLEAR_ERROR
    if path.read_bytes() == old or path.stat().st_size == 0:
        raise Fault("nothing was written", case.output)
    return HELD


@cache
def model() -> Any:
    """A fitted model."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) < 12, np.arange(60) % 2, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cmvmed.CMVMED(n_stages=2).fit([rng.normal(size=(60, 3)), rng.normal(size=(60, 4))], y)


def _model_file(case: Case, folder: Path, room: int) -> str:
    found = _write_file(case, folder, room, lambda path: model().save(path, overwrite=True), "model.cmvmed")
    if found == HELD:
        cmvmed.load(folder / "model.cmvmed")
    return found


def _onnx_file(case: Case, folder: Path, room: int) -> str:
    return _write_file(case, folder, room, lambda path: model().to_onnx(path, overwrite=True), "model.onnx")


def _page(case: Case, folder: Path, room: int) -> str:
    from cmvmed.pages.atomic_file import atomic_file

    def write(path: Path) -> None:
        with atomic_file(path) as part:
            part.write_text("<p>" * 20_000, encoding="utf-8")

    return _write_file(case, folder, room, write, "report.html")


def _table(case: Case, folder: Path, room: int) -> str:
    import pandas as pd

    from cmvmed.cli.project_options import write_table

    frame = pd.DataFrame({"class": ["walk"] * 2000}, index=pd.Index(range(2000), name="id"))
    return _write_file(case, folder, room, lambda path: write_table(frame, path), "predictions.csv")


def _result_store(case: Case, folder: Path, room: int) -> str:
    from experiments.result_rows import Key, ResultRow
    from experiments.store import ResultStore

    def append(store: Any, number: int) -> None:
        key = Key("table1", "gauss", 30, number, "MED, each view", "defaults")
        store.add(ResultRow(**key._asdict(), status="done", accuracy=0.5, error="e" * 300))

    def read(store: Any) -> set[int]:
        return {row.split for row in store.rows()}

    return _append_rows(case, folder / "results.sqlite", room, ResultStore, append, read)


def _label_store(case: Case, folder: Path, room: int) -> str:
    from cmvmed.workbench.label_store import LabelStore

    def append(store: Any, number: int) -> None:
        store.record(f"w{number}", "label", "walk" * 60, chosen_by="random", window="w", seen=None)

    def read(store: Any) -> set[int]:
        return {int(event.item[1:]) for event in store.events()}

    return _append_rows(case, folder / "cmvmed.labels.sqlite", room, LabelStore, append, read)


def _append_rows(
    case: Case,
    path: Path,
    room: int,
    open_store: Any,
    append: Callable[[Any, int], None],
    read: Callable[[Any], set[int]],
) -> str:
    """Rows that are written one by one: those that were confirmed are there when there is room again."""
    confirmed: set[int] = set()
    outcome = HELD
    try:
        with file_size_limit(case.limit, max(room, PAGE)), open_store(path) as store:
            for number in range(N_APPENDED):
                append(store, number)
                confirmed.add(number)
    except Exception as error:
        check_error(error, path)
        outcome = CLEAR_ERROR
    copy = fresh_folder()
    try:
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, copy)
        with open_store(copy / path.name) as store:
            lost = confirmed - read(store)
    finally:
        shutil.rmtree(copy)
    if lost:
        raise Fault("rows are lost after the disk was full", f"{sorted(lost)[:5]} of {len(confirmed)}")
    return outcome


N_APPENDED = 200
OUTPUTS: dict[str, Callable[[Case, Path, int], str]] = {
    "model file": _model_file,
    "ONNX file": _onnx_file,
    "report": _page,
    "table of predictions": _table,
    "result store": _result_store,
    "label store": _label_store,
}


@cache
def whole_size(output: str) -> int:
    """Size of the file that is written if there is room."""
    folder = workspace() / f"whole-{os.getpid()}-{output.replace(' ', '-')}"
    folder.mkdir(exist_ok=True)
    OUTPUTS[output](Case(output, limit="none"), folder, 0)
    return max(file.stat().st_size for file in folder.iterdir())
