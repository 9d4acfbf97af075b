"""How fast the labeling page is: ``python -m benchmarks.labeling`` writes benchmarks/results/labeling.md.

Tables of 5,000 and 10,000 rows in three views with 3 and 50 classes are labeled as the page does it: by requests to a
running ``cmvmed label``, while its model learns. Seconds of the processor are those of the process that learns, which
other work on the machine does not change; the other seconds are those of a clock.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages import RESULTS
from cmvmed.workbench import init

CASES = [(5_000, 3), (10_000, 50)]  # rows, classes
N_VIEWS, N_COLUMNS = 3, 8
N_LABELS = 60
FITS = 3  # that are waited for


@dataclass(frozen=True)
class Measured:
    """Seconds of a session."""

    n_rows: int
    n_classes: int
    first_row: float
    first_processor: float  # seconds of the processor of the server until then
    next_row: list[float]  # while a fit runs
    status: list[float]
    fit: list[float]  # seconds of the processor


def write_rows(folder: Path, n_rows: int, n_classes: int) -> list[str]:
    """A table without labels, and its classes."""
    rng = np.random.default_rng(0)
    classes = rng.integers(n_classes, size=n_rows)
    views = [
        rng.normal(size=(n_rows, N_COLUMNS)) + 1.5 * rng.normal(size=(n_classes, N_COLUMNS))[classes]
        for _ in range(N_VIEWS)
    ]
    names = [f"view{v}_{c}" for v in range(N_VIEWS) for c in range(N_COLUMNS)]
    lines = [f"r{i},{','.join(f'{x:.4f}' for x in row)}" for i, row in enumerate(np.hstack(views))]
    (folder / "rows.csv").write_text("\n".join([",".join(["id", *names]), *lines]))
    file = folder / "cmvmed.toml"
    file.write_text(init(folder / "rows.csv", file).text)
    return [f"class {k:02d}" for k in classes]


class Client:
    """A running ``cmvmed label``."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-u", "-m", "cmvmed", "label", "--no-open"]
        self.start = time.perf_counter()
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = next(found[0] for line in self.process.stdout if (found := re.search(r"http://\S+", line)))
        self.origin, self.token = address.split("/?token=")

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer to a request."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.origin + path, data, headers)) as response:
            return json.load(response)

    def next_row(self) -> Any:
        """The row that the page proposes."""
        return self.ask("/api/next", {"strategy": "suggest", "window": "w", "skip": []})

    def label(self, row: Any, name: str) -> Any:
        """Label a row; the status."""
        body = {"row": row["row"], "action": "label", "label": name, "seen": row["revision"], "window": "w"}
        return self.ask("/api/labels", body | {"chosen_by": row["strategy"]})["status"]

    def processor_seconds(self) -> float:
        """Seconds of the processor of the server."""
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(n_rows: int, n_classes: int) -> Measured:
    """Label rows of a table as they come, and then wait for some fits."""
    with tempfile.TemporaryDirectory() as name:
        truth = write_rows(Path(name), n_rows, n_classes)
        client = Client(Path(name))
        try:
            return _measure(client, truth, n_classes)
        finally:
            client.process.kill()
            client.process.wait()


def _measure(client: Client, truth: list[str], n_classes: int) -> Measured:
    row = client.next_row()
    first, first_processor = time.perf_counter() - client.start, client.processor_seconds()
    next_row, status, fits = [], [], []
    for k in range(N_LABELS + 1000):
        said = client.label(row, truth[row["row"]])
        if said["fitted_labels"] and said["processor"] not in fits:
            fits.append(said["processor"])
        if k >= N_LABELS and len(fits) >= FITS:
            break
        start = time.perf_counter()
        row = client.next_row()
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        learning = client.ask("/api/status")["learning"]
        if learning:
            next_row.append(seconds)
            status.append(time.perf_counter() - start)
        time.sleep(0.2)  # of a fast reader
    return Measured(len(truth), n_classes, first, first_processor, next_row, status, fits)


def table(measured: list[Measured]) -> str:
    """The results as a table."""
    head = (
        "| rows | classes | first row, s | of the processor, s | next row, median and 95 %, ms | status, 95 %, ms "
        "| fit, s of the processor |"
    )
    lines = [head, "| --- " * 7 + "|"]
    for m in measured:
        half, most = 1e3 * np.quantile(m.next_row, [0.5, 0.95])
        asked = 1e3 * np.quantile(m.status, 0.95)
        cells = [f"{m.n_rows:,}", m.n_classes, f"{m.first_row:.1f}", f"{m.first_processor:.1f}"]
        cells += [f"{half:.0f}, {most:.0f}", f"{asked:.0f}", f"{np.median(m.fit):.1f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    load = f"Measured at a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors."
    return "\n".join([*lines, "", load])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, choices=[rows for rows, _ in CASES], help="measure only this case, and print it"
    )
    arguments = parser.parse_args()
    text = table([measure(*case) for case in CASES if arguments.rows in (None, case[0])])
    print(text)
    if arguments.rows is None:
        (RESULTS / "labeling.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
