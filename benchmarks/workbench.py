"""Cost of the commands for users' files: ``python -m benchmarks.workbench`` writes benchmarks/results/workbench.md.

A generated table of 100,000 rows with an identifier, a subject, a label in 200 rows, and two views of 10 columns, of which
the second is absent in 5 % of the rows and has single gaps, as csv and as Parquet file. Each command runs in a process of
its own, as a user runs it; its time is that of the processor, which does not depend on what else runs. pandas reads the
same file for comparison.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.provenance import RESULTS

N_ROWS, N_LABELS, N_COLUMNS, N_CLASSES = 100_000, 200, 10, 3
HEAD = ["command", "csv s", "csv MB", "Parquet s", "Parquet MB"]


def generated(n_rows: int, seed: int, n_labels: int = N_LABELS) -> pd.DataFrame:
    """Rows of three classes at two sensors."""
    centers = 0.5 * np.random.default_rng(0).normal(size=(2, N_CLASSES, N_COLUMNS))
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, N_CLASSES, n_rows)
    views = [center[classes] + rng.normal(size=(n_rows, N_COLUMNS)) for center in centers]
    views[1][rng.random(n_rows) < 0.05] = np.nan
    views[1][rng.random(views[1].shape) < 0.001] = np.nan
    frame = pd.DataFrame(
        np.round(np.hstack(views), 5), columns=[f"{view}_{c}" for view in ("acc", "gyr") for c in range(N_COLUMNS)]
    )
    frame.insert(0, "window_id", [f"w{row:06d}" for row in range(n_rows)])
    frame["subject"] = [f"s{row % 50}" for row in range(n_rows)]
    labeled = np.isin(np.arange(n_rows), rng.permutation(n_rows)[:n_labels])
    frame["stroke"] = np.where(labeled, np.array(["back", "crawl", "fly"])[classes], "")
    return frame


def cost(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds of processor time, of all threads, and largest memory in MB of a process."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    messages = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {messages}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def commands(ending: str) -> dict[str, list[str]]:
    """Command lines by the name that the table shows."""
    run = [sys.executable, "-m", "cmvmed"]
    read = {".csv": "read_csv", ".parquet": "read_parquet"}[ending]
    found = {
        "pandas reads the file": [sys.executable, "-c", f"import pandas; pandas.{read}('rows{ending}')"],
        "`init`": [*run, "init", f"rows{ending}"],
        "`check`": [*run, "check"],
        "`train --no-report`": [*run, "train", "--no-report"],
        "`predict`": [*run, "predict", f"rows{ending}", "-o", f"predictions{ending}"],
    }
    found["`suggest`"] = [*run, "suggest", "-o", f"next{ending}"]
    found["`report`"] = [*run, "report"]
    return found


def measure(frame: pd.DataFrame, ending: str) -> dict[str, tuple[float, float]]:
    """Cost of all commands on a file of the format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows{ending}"
        frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
        found = {}
        for name, command in commands(ending).items():
            found[name] = cost(command, Path(folder))
            print(f"{ending} {name}: {found[name][0]:.1f} s, {found[name][1]:.0f} MB", flush=True)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    frame = generated(arguments.rows, 1)
    by_format = [measure(frame, ending) for ending in (".csv", ".parquet")]
    lines = [HEAD, ["---"] * len(HEAD)]
    for name in by_format[0]:
        cells = [cell for found in by_format for cell in (f"{found[name][0]:.1f}", f"{found[name][1]:.0f}")]
        lines.append([name, *cells])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    print(text)
    if arguments.rows == N_ROWS:
        (RESULTS / "workbench.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
