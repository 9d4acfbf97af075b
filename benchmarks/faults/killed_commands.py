"""The long commands that are killed: what they need, what they leave, and what their results are."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cmvmed
from benchmarks.faults.campaign import Fault

Process = Any  # subprocess.Popen[str]
START_SECONDS = 120.0
N_ROWS = 120
METHODS = ("SVC, labels only", "MED, each view", "MV-MED")
PROJECT = """[data]
path = "windows.csv"
id = "window"
labels = "stroke"

[views.acc]
columns = ["acc_*"]

[views.gyr]
columns = ["gyr_*"]
"""


def _wait(process: Process, folder: Path, seconds: float, seed: int) -> None:
    """Let a command run for some time."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)


def _not_checked(folder: Path, confirmed: Any) -> None:
    pass


def _ends_by_itself(process: Process, folder: Path) -> None:
    return None


@dataclass(frozen=True)
class Command:
    """A command in a folder.

    ``use`` waits for the moment of the kill, and returns what the command confirmed until then; ``check_files`` looks at
    the files after the kill; ``finish`` ends a command that does not end by itself, and may return its results.
    """

    prepare: Callable[[Path], None]
    arguments: Callable[[Path], list[str]]
    results: Callable[[Path], Any]
    check_files: Callable[[Path, Any], None] = _not_checked
    use: Callable[[Process, Path, float, int], Any] = _wait
    finish: Callable[[Process, Path], Any] = _ends_by_itself
    exit_codes: tuple[int, ...] = (0,)


def write_project(folder: Path) -> None:
    """A project of two sensors, with some labels."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(N_ROWS) % 2)
    columns = [f"{sensor}_{axis}" for sensor in ("acc", "gyr") for axis in "xyz"]
    frame = pd.DataFrame((rng.normal(size=(N_ROWS, 6)) + truth[:, None]).round(4), columns=columns)
    frame.insert(0, "window", [f"w{i:03d}" for i in range(N_ROWS)])
    frame["stroke"] = np.where(np.arange(N_ROWS) < 20, np.array(["crawl", "back"])[truth], "")
    frame.to_csv(folder / "windows.csv", index=False)
    (folder / "cmvmed.toml").write_text(PROJECT, encoding="utf-8")


# cmvmed train


def _train_results(folder: Path) -> np.ndarray:
    return np.asarray(cmvmed.load(folder / "model.cmvmed").model.label_distributions_)


def _check_complete(folder: Path, confirmed: Any) -> None:
    """A model file and a report, if there are any, are complete."""
    if (folder / "model.cmvmed").exists():
        cmvmed.load(folder / "model.cmvmed")
    page = folder / "report.html"
    if page.exists() and "</html>" not in page.read_text(encoding="utf-8")[-200:]:
        raise Fault("train: a report that is not complete", page.name)


# python -m experiments


def _reproduce_arguments(folder: Path) -> list[str]:
    chosen = [part for method in METHODS for part in ("--methods", method)]
    work = ["--datasets", "gauss", "--splits", "2", "--protocol", "defaults", *chosen]
    return ["-m", "experiments", "table1", *work, "--jobs", "2", "--results", "results.sqlite"]


def _reproduce_results(folder: Path) -> list[Any]:
    from experiments.store import ResultStore

    with ResultStore(folder / "results.sqlite", read_only=True) as store:
        rows = store.rows()
    return [replace(row, fit_seconds=None, predict_seconds=None, peak_mib=None, finished="") for row in rows]


def _check_rows(folder: Path, confirmed: Any) -> None:
    path = folder / "results.sqlite"
    if path.exists() and path.stat().st_size:
        from experiments.store import ResultStore

        with ResultStore(path) as store:
            failed = [row.error for row in store.rows() if row.status != "done"]
        if failed:
            raise Fault("reproduce: failed rows", failed[0])


# cmvmed label


def _address(process: Process, folder: Path) -> tuple[str, str] | None:
    """Origin and token of the labeling page; None if the process ended."""
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        found = re.search(r"(http://\S+)/\?token=(\S+)", (folder / "output.txt").read_text())
        if found:
            return found[1], found[2]
        time.sleep(0.05)
    return None


def _request(address: tuple[str, str], path: str, body: Any = None) -> Any:
    origin, token = address
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(origin + path, data, headers), timeout=20) as response:
        return json.load(response)


def _send_labels(process: Process, folder: Path, seconds: float, seed: int) -> dict[str, str]:
    """Send labels until the kill; those that were confirmed, by row."""
    address, confirmed, rng = _address(process, folder), {}, np.random.default_rng(seed)
    if address is None:
        return confirmed
    end = time.monotonic() + seconds * float(rng.random())
    for row in rng.permutation(N_ROWS).tolist():
        if time.monotonic() > end:
            break
        label = str(rng.choice(["crawl", "back"]))
        body = {"row": row, "action": "label", "label": label, "seen": None, "window": "w", "chosen_by": "random"}
        try:
            _request(address, "/api/labels", body)
        except (OSError, ValueError):
            break
        confirmed[f"w{row:03d}"] = label
    return confirmed


def _check_labels(folder: Path, confirmed: dict[str, str]) -> None:
    from cmvmed.workbench.label_store import LabelStore

    path = folder / "cmvmed.labels.sqlite"
    if not path.exists():
        return
    with LabelStore(path) as store:
        current = {item: event.label for item, event in store.current().items()}
    lost = {item: label for item, label in confirmed.items() if current.get(item) != label}
    if lost:
        raise Fault("label: a confirmed label is lost", repr(lost))


def _status(process: Process, folder: Path) -> Any:
    """What the page says after a restart; then Ctrl-C."""
    address = _address(process, folder)
    if address is None:
        return None
    status = _request(address, "/api/status")
    process.send_signal(2)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        raise Fault("label: Ctrl-C does not end the page within a minute", "") from None
    return sorted(one["name"] for one in status["classes"])


# Fits of rows in files and of a Dask array

STREAMED = """
import warnings, numpy as np, cmvmed
from dataclasses import replace
from cmvmed.auto.tuning import Tuning, tuning_context
warnings.simplefilter("ignore")
small = replace(Tuning(), sample_rows=200, max_exact_rows=100, min_components=20, max_components=20)
with tuning_context(small):
    model = cmvmed.CMVMED(views={"a": "a", "b": "b"}, n_stages=2, max_iter=10).fit("rows", "label")
model.save("model.cmvmed", overwrite=True)
"""
DASK = """
import warnings, numpy as np, pandas as pd, cmvmed, dask.array as da
from dataclasses import replace
from distributed import Client, LocalCluster
from cmvmed.auto.tuning import Tuning, tuning_context
warnings.simplefilter("ignore")
if __name__ == "__main__":
    frame = pd.concat([pd.read_parquet(f"rows/{i}.parquet") for i in range(3)], ignore_index=True)
    X = da.from_array(frame.drop(columns="label").to_numpy(), chunks=(100, -1))
    small = replace(Tuning(), sample_rows=200, max_exact_rows=100, min_components=20, max_components=20)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        with Client(cluster), tuning_context(small):
            model = cmvmed.CMVMED(views=[3, 3], n_stages=2, max_iter=10).fit(X, frame["label"].to_numpy())
    model.save("model.cmvmed", overwrite=True)
"""


def _write_rows(folder: Path) -> None:
    """Three files of rows, the first 30 labeled."""
    rng = np.random.default_rng(0)
    (folder / "rows").mkdir()
    for number in range(3):
        truth = rng.integers(2, size=300)
        columns = ["a0", "a1", "a2", "b0", "b1", "b2"]
        frame = pd.DataFrame(rng.normal(size=(300, 6)) + truth[:, None], columns=columns)
        frame["label"] = np.where(np.arange(300) + 300 * number < 30, truth, -1)
        frame.to_parquet(folder / "rows" / f"{number}.parquet")
    (folder / "streamed.py").write_text(STREAMED, encoding="utf-8")
    (folder / "with_dask.py").write_text(DASK, encoding="utf-8")


def _probabilities(folder: Path) -> np.ndarray:
    model = cmvmed.load(folder / "model.cmvmed")
    frame = pd.read_parquet(folder / "rows" / "1.parquet").drop(columns="label")
    X = frame if hasattr(model, "feature_names_in_") else frame.to_numpy()
    return np.asarray(model.predict_proba(X))


COMMANDS: dict[str, Command] = {
    "train": Command(write_project, lambda _: ["-m", "cmvmed", "train", "--force"], _train_results, _check_complete),
    "reproduce": Command(lambda _: None, _reproduce_arguments, _reproduce_results, _check_rows),
    "label": Command(
        write_project,
        lambda _: ["-m", "cmvmed", "label", "--no-open"],
        lambda _: None,
        _check_labels,
        _send_labels,
        _status,
        exit_codes=(0, 130, -2),  # 0 where SIGINT is ignored from the start, as in a background job
    ),
    "streamed fit": Command(_write_rows, lambda _: ["streamed.py"], _probabilities, _check_complete),
    "Dask fit": Command(_write_rows, lambda _: ["with_dask.py"], _probabilities, _check_complete),
}
