"""What users wait for, in one table: ``python -m benchmarks.speed``.

Fits, predictions, commands, threads and many rows, beside classifiers of scikit-learn in the same process. Rows of the table may
be named (``python -m benchmarks.speed fit-300 train``); the others stay as they are. Each is measured in a process of its
own with one thread of linear algebra. "parquet", ten million rows, is measured only if it is named. The table goes to
benchmarks/results/speed.md and to docs/scaling.md. Use an idle machine.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.pages import fill, speed_table
from benchmarks.provenance import RESULTS, ROOT, write
from benchmarks.speed_commands import POINTS as COMMANDS
from benchmarks.speed_points import PEERS, POINTS

REPORT = RESULTS / "speed.md"
NAMES = [*(name for name in POINTS if name not in ("threads", "million", "dask", "parquet")), *COMMANDS]
NAMES += ["threads", "million", "dask", "parquet"]
ONLY_IF_NAMED = ("parquet",)
HEAD = ["name", "what", "CMVMED", "goal", *PEERS, "commit"]


def measure(name: str, commit: str) -> list[list[str]]:
    """The lines of one row of the table, measured in a new process; or why there are none."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed_points", name]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return [[name, "failed", reason.replace("|", " ")[:200], *["–"] * (len(HEAD) - 4), commit]]
    lines = json.loads(done.stdout.splitlines()[-1])
    return [
        [name, one["what"], one["own"], one["goal"], *(one["peers"].get(peer, "–") for peer in PEERS), commit]
        for one in lines
    ]


def read_table(path: Path) -> dict[str, list[list[str]]]:
    """The lines of an earlier run by name; empty if there is none."""
    found: dict[str, list[list[str]]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] in NAMES:
            found.setdefault(cells[0], []).append(cells)
    return found


def table(lines: dict[str, list[list[str]]]) -> str:
    """All lines in the order of the names."""
    cells = [HEAD, ["---"] * len(HEAD), *(line for name in NAMES for line in lines.get(name, []))]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--output", type=Path, default=REPORT, help="another file, without the page")
    given = parser.parse_args()
    names = given.names or [name for name in NAMES if name not in ONLY_IF_NAMED]
    commit = git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "src") else "")
    command = " ".join(["python -m benchmarks.speed", *given.names])
    lines, began = read_table(given.output), time.perf_counter()
    for name in names:
        start = time.perf_counter()
        lines[name] = measure(name, commit)
        for line in lines[name]:
            print(f"{time.perf_counter() - start:5.0f} s  {' | '.join(line)}", flush=True)
        taken = f"{(time.perf_counter() - began) / 60:.0f} min"
        text = f"{os.cpu_count()} cores; the last run took {taken}.\n\n{table(lines)}\n"
        write(given.output, text, command)  # after each, so that a run may be stopped
        if given.output == REPORT:
            fill(ROOT / "docs" / "scaling.md", "speed", speed_table(text))


if __name__ == "__main__":
    main()
