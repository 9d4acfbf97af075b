"""Files that are written while a fit reads them: the model is that of the old file or of the new one, never of a mixture.

A fit passes many times over a Parquet file or a Zarr array, of which it keeps a small sample. At a random moment another
writer replaces the file, writes over it, cuts it or deletes it. "Clock set back" writes over it and gives it the time that
it had.
"""

import os
import shutil
import threading
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cmvmed
from benchmarks.faults.campaign import CLEAR_ERROR, HELD, Fault, fresh_folder
from benchmarks.faults.errors import check_clear
from cmvmed.auto.tuning import Tuning, tuning_context

CASES = {"ci": 20, "nightly": 1000}
FORMATS = ("Parquet", "Zarr")
WRITERS = ("replaced", "written over", "clock set back", "cut", "deleted")
N_ROWS, N_LABELED = 900, 30
TOLERANCE = 1e-9  # of probabilities


@dataclass(frozen=True)
class Case:
    """A format, a writer and its moment: a share of the time of an undisturbed fit."""

    format: str = "Parquet"
    writer: str = "written over"
    moment: float = 0.5
    n_blocks: int = 6

    @property
    def group(self) -> str:
        """The line of the table."""
        return f"{self.format}, {self.writer}"


def draw(rng: np.random.Generator, number: int) -> Case:
    """Formats and writers take turns."""
    return Case(
        format=FORMATS[number % 2],
        writer=WRITERS[number // 2 % len(WRITERS)],
        moment=float(1.2 * rng.random()),
        n_blocks=int(rng.integers(2, 12)),
    )


def check(case: Case) -> str:
    """Fit while a writer works, and compare with fits of both contents."""
    folder = fresh_folder()
    try:
        path = write_rows(folder / "rows", case, content=0)
        timer = threading.Timer(case.moment * fitted(0)[1], write_again, (path, case))
        timer.start()
        try:
            found = predicted(path)
        except Exception as error:
            check_clear(error, (ValueError, OSError))
            return CLEAR_ERROR
        finally:
            timer.join()
    finally:
        shutil.rmtree(folder)
    differences = [float(np.abs(found - fitted(content)[0]).max()) for content in (0, 1)]
    if not min(differences) <= TOLERANCE:
        raise Fault(f"{case.group}: a model of neither content", f"it differs by {differences}")
    return HELD


def rows(content: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the old or the new content, and their labels, which are the same."""
    rng = np.random.default_rng(content)
    codes = np.arange(N_ROWS) % 2
    return rng.normal(size=(N_ROWS, 6)) + codes[:, None], np.where(np.arange(N_ROWS) < N_LABELED, codes, -1)


def write_rows(stem: Path, case: Case, content: int) -> Path:
    """Write a file or the folder of an array."""
    X, block = rows(content)[0], -(-N_ROWS // case.n_blocks)
    if case.format == "Zarr":
        import zarr

        path = stem.with_suffix(".zarr")
        zarr.create_array(str(path), data=X, chunks=(block, X.shape[1]), overwrite=True)
        return path
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = stem.with_suffix(".parquet")
    table = pa.table({f"{'ab'[j // 3]}_{j}": X[:, j] for j in range(X.shape[1])})
    pq.write_table(table, path, row_group_size=block, use_dictionary=False, compression="none")
    return path


def write_again(path: Path, case: Case) -> None:
    """What the other writer does."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [file for file in files if file.is_file() and file.name != "zarr.json"]
    new = write_rows(path.with_name("new"), case, content=1)
    if case.writer == "deleted":
        files[len(files) // 2].unlink()
    elif case.writer == "cut":
        os.truncate(files[len(files) // 2], files[len(files) // 2].stat().st_size // 2)
    elif case.writer == "replaced" and not path.is_dir():
        os.replace(new, path)
    else:
        for file in files:
            status, content = file.stat(), (new / file.relative_to(path) if path.is_dir() else new).read_bytes()
            if case.writer == "replaced":
                file.with_name("part").write_bytes(content)
                os.replace(file.with_name("part"), file)
                continue
            with file.open("r+b") as opened:
                opened.write(content)
                opened.truncate()
            if case.writer == "clock set back":
                os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def predicted(X: Any) -> np.ndarray:
    """Fit, and predict rows that do not change."""
    small = replace(Tuning(), sample_rows=200, max_exact_rows=100, min_components=20, max_components=20)
    views: Any = {"a": "a_", "b": "b_"} if isinstance(X, Path) and X.suffix == ".parquet" else [3, 3]
    with tuning_context(small), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cmvmed.CMVMED(views=views, n_stages=2, max_iter=4, members=None, rows_tol=0.0).fit(X, rows(0)[1])
        return np.asarray(model.predict_proba(rows(0)[0]))


@cache
def fitted(content: int) -> tuple[np.ndarray, float]:
    """Probabilities by an undisturbed fit, and its seconds."""
    folder = fresh_folder()
    path = write_rows(folder / "rows", Case(), content)
    predicted(path)
    start = time.monotonic()
    found = predicted(path)
    seconds = time.monotonic() - start
    shutil.rmtree(folder)
    return found, seconds
