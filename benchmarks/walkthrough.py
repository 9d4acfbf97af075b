"""The walk-through of README.md: ``python -m benchmarks.walkthrough`` writes benchmarks/results/walkthrough.txt.

Generated windows of an accelerometer and a gyroscope, 600 with 30 labels, and 200 new ones, of which some lack the
gyroscope. The commands are run as a user runs them, and the file holds them and what they print.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pages import RESULTS
from benchmarks.workbench import generated

N_ROWS, N_LABELS, N_NEW = 600, 30, 200


def write_data(folder: Path) -> None:
    """windows.csv, and new.csv without labels."""
    generated(N_ROWS, 1, N_LABELS).to_csv(folder / "windows.csv", index=False)
    generated(N_NEW, 2, 0).drop(columns="stroke").to_csv(folder / "new.csv", index=False)


def commands() -> list[list[str]]:
    """The commands of the walk-through."""
    lines = [
        ["cmvmed", "init", "windows.csv"],
        ["cmvmed", "check"],
        ["cmvmed", "train"],
        ["cmvmed", "predict", "new.csv", "-o", "predictions.csv"],
        ["head", "-n", "3", "predictions.csv"],
    ]
    return [*lines, ["cmvmed", "suggest", "-n", "3"]]


def transcript(folder: Path, lines: Sequence[Sequence[str]]) -> str:
    """The commands, each after a dollar sign, and what they print."""
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    shown = []
    for line in lines:
        program = [sys.executable, "-m", "cmvmed"] if line[0] == "cmvmed" else [line[0]]
        done = subprocess.run(
            [*program, *line[1:]], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(line)} failed: {done.stdout}")
        shown.append(f"$ {' '.join(line)}\n{done.stdout.rstrip()}\n")
    return "\n".join(shown)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        text = transcript(Path(folder), commands())
    print(text)
    (RESULTS / "walkthrough.txt").write_text(text)


if __name__ == "__main__":
    main()
