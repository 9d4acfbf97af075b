"""How long imports take: ``python -m benchmarks.import_time`` writes benchmarks/results/import_time.md.

Each line is imported by new processes in turn, and the smallest processor time is kept. Run it twice if files of
compiled code do not exist yet.
"""

import argparse
import platform
import subprocess
import sys

from benchmarks.provenance import RESULTS

STATEMENTS = (
    "import cmvmed",
    "import cmvmed.cli.main",
    "import numpy",
    "from sklearn.semi_supervised import LabelSpreading",
    "from cmvmed import CMVMED",
)
PROGRAM = """
import sys, time
start = time.process_time()
{statement}
print(time.process_time() - start, *sys.modules)
"""


def imported(statement: str) -> tuple[float, set[str]]:
    """Seconds of processor time of an import in a new process, and the modules that are loaded afterwards."""
    program = PROGRAM.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    seconds, *modules = done.stdout.split()
    return float(seconds), set(modules)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    runs = [{statement: imported(statement) for statement in STATEMENTS} for _ in range(arguments.repeats)]
    lines = ["| statement | processor time, s | modules |", "| --- | --- | --- |"]
    for statement in STATEMENTS:
        seconds = min(run[statement][0] for run in runs)
        lines.append(f"| `{statement}` | {seconds:.2f} | {len(runs[0][statement][1])} |")
    where = f"Python {platform.python_version()} with pandas installed, which scikit-learn imports if it is there."
    text = "\n".join([*lines, "", f"Smallest of {arguments.repeats} runs. {where}", ""])
    print(text)
    (RESULTS / "import_time.md").write_text(text)


if __name__ == "__main__":
    main()
