"""The commands of the first guide and the lines of Python of README.md: ``python -m benchmarks.walkthrough``.

They are run on the bundled table of a room's sensors as a user runs them; benchmarks/results/walkthrough.txt and
python_lines.md hold them and what they print.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

from benchmarks.provenance import RESULTS, write
from cmvmed.datasets import write_room

PYTHON_LINES = """\
import pandas as pd
from cmvmed import CMVMED

table = pd.read_csv("room.csv")  # columns begin with their sensor; people is mostly empty
sensors = {name: f"{name}_" for name in ("temperature", "light", "sound", "co2", "motion")}
model = CMVMED(views=sensors).fit(table.drop(columns=["time", "people"]), table["people"])
print(model.accuracy_estimate())
print(model.predict(pd.read_csv("room_new.csv"))[:5])
"""


def commands() -> list[list[str]]:
    """The commands of the walk-through."""
    return [
        ["cmvmed", "init", "--example"],
        ["cmvmed", "check"],
        ["cmvmed", "train"],
        ["cmvmed", "predict", "room_new.csv", "-o", "predictions.csv"],
        ["cmvmed", "suggest", "-n", "2"],
    ]


def transcript(folder: Path, lines: Sequence[Sequence[str]]) -> str:
    """The commands, each after a dollar sign, and what they print."""
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    shown = []
    for line in lines:
        command = [sys.executable, "-m", *line]
        done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(line)} failed: {done.stdout}")
        shown.append(f"$ {' '.join(line)}\n{done.stdout.rstrip()}\n")
    return "\n".join(shown)


def python_lines(folder: Path) -> str:
    """The lines of Python and what they print in a folder with the tables, as blocks of a page."""
    write_room(folder)
    program = [sys.executable, "-W", "error", "-c", PYTHON_LINES]
    done = subprocess.run(program, cwd=folder, check=True, capture_output=True, text=True)
    printed = "\n".join(textwrap.fill(line, 92) for line in done.stdout.splitlines())
    return f"```python\n{PYTHON_LINES}```\n\n```text\n{printed}\n```\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = transcript(Path(folder), commands())
        lines = python_lines(Path(folder))
    print(text, lines, sep="\n")
    write(RESULTS / "walkthrough.txt", text)
    write(RESULTS / "python_lines.md", lines)


if __name__ == "__main__":
    main()
