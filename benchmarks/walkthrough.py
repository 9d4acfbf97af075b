"""The commands of the first guide and the lines of Python of README.md: ``python -m benchmarks.walkthrough``.

Generated windows of an accelerometer and a gyroscope, 600 with 30 labels, and 200 new ones, of which some lack the
gyroscope. Commands and Python are run as a user runs them; benchmarks/results/walkthrough.txt and python_lines.md hold
them and what they print.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pages import RESULTS
from benchmarks.workbench import generated

N_ROWS, N_LABELS, N_NEW = 600, 30, 200
PYTHON_LINES = """\
import pandas as pd
from cmvmed import CMVMED

table = pd.read_csv("windows.csv")  # subject, acc_*, gyr_*, and stroke, empty in most rows
sensors = {"accelerometer": "acc_", "gyroscope": "gyr_"}  # views, and how names of their columns begin
model = CMVMED(views=sensors).fit(table.filter(regex="acc_|gyr_"), table["stroke"], groups=table["subject"])
print(model.accuracy_estimate())
print(model.predict(pd.read_csv("new.csv"))[:5])
"""


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


def python_lines(folder: Path) -> str:
    """The lines of Python and what they print, as blocks of a page."""
    program = [sys.executable, "-W", "error", "-c", PYTHON_LINES]
    done = subprocess.run(program, cwd=folder, check=True, capture_output=True, text=True)
    printed = "\n".join(textwrap.fill(line, 108) for line in done.stdout.splitlines())
    return f"```python\n{PYTHON_LINES}```\n\n```text\n{printed}\n```\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        text, lines = transcript(Path(folder), commands()), python_lines(Path(folder))
    print(text, lines, sep="\n")
    (RESULTS / "walkthrough.txt").write_text(text)
    (RESULTS / "python_lines.md").write_text(lines)


if __name__ == "__main__":
    main()
