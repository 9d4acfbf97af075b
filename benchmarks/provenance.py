"""Which code, day and command the figures of a result file come from.

The first line of a result file is ``# COMMAND (commit HASH, DATE)``; in a file of JSON it is the value of ``"provenance"``.
``-dirty`` behind the hash means that code had changes which were not committed.
"""

import datetime
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
CODE = ("src", "experiments", "benchmarks", ":!benchmarks/results")  # whose changes make a tree dirty
FITS = tuple(
    f"src/cmvmed/{package}"
    for package in ("auto", "core", "estimators", "graphs", "members", "model", "numerics", "views")
)
PAPER = ("src/cmvmed/baselines", "src/cmvmed/core", "src/cmvmed/numerics", "experiments")
FEATURES = ("src/cmvmed/features", "src/cmvmed/recordings", "src/cmvmed/datasets")
MEASURED = {  # the code whose changes can change the figures of a file; of all others FITS
    **dict.fromkeys(("accuracy.md", "claims.md", "prior_shift.md", "reproduction.csv", "table1.txt"), (*FITS, *PAPER)),
    **dict.fromkeys(("bounds.md", "figure1.md", "paper_variants.md"), PAPER),
    **dict.fromkeys(("difficulty.md", "feature_cost.md"), FEATURES),
    "raw_recordings.md": (*FITS, *FEATURES),
    **dict.fromkeys(("faults.json", "labeling.md", "speed.md", "walkthrough.txt"), ("src",)),
    "labeling_user.md": (*FITS, "src/cmvmed/labeling"),
    "rows.md": (*FITS, "src/cmvmed/scale"),
    "sensor_health.md": (*FITS, "src/cmvmed/monitoring"),
}
LINE = re.compile(r"# (?P<command>.+) \(commit (?P<commit>[0-9a-f]{7,40}(?:-dirty)?), (?P<date>\d{4}-\d\d-\d\d)\)")


class Provenance(NamedTuple):
    """What the heading of a result file says."""

    command: str
    commit: str
    date: str


def heading(command: str = "") -> str:
    """The line for a command; by default that of this process."""
    today = f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}"
    return f"# {command or shlex.join(['python', *sys.orig_argv[1:]])} (commit {commit()}, {today})"


def commit() -> str:
    """The short hash of the commit, marked if code has changes that are not committed."""
    changed = "-dirty" if _git("status", "--porcelain", "--", *CODE) else ""
    return f"{_git('rev-parse', '--short', 'HEAD') or 'unknown'}{changed}"


def write(path: Path, text: str, command: str = "") -> None:
    """Write figures with their heading."""
    path.write_text(f"{heading(command)}\n\n{text.strip()}\n", encoding="utf-8")


def body(path: Path) -> str:
    """A result file without its heading."""
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    return rest.lstrip("\n") if LINE.fullmatch(first) else f"{first}\n{rest}"


def read(path: Path) -> Provenance | None:
    """What the heading of a file says; None without one."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        content = json.loads(text)
        first = content.get("provenance", "") if isinstance(content, dict) else ""
    else:
        first = text.partition("\n")[0]
    found = LINE.fullmatch(first)
    return Provenance(**found.groupdict()) if found else None


def missing(paths: Iterable[Path]) -> list[str]:
    """Names of the files without a heading."""
    return [path.name for path in paths if read(path) is None]


def outdated(paths: Iterable[Path]) -> list[str]:
    """One line for each file whose figures are older than the last change of the code that they measure."""
    lines = []
    for path in paths:
        found = read(path)
        if found is not None:
            code = MEASURED.get(path.name, FITS)
            n_changes = _git("rev-list", "--count", f"{found.commit.removesuffix('-dirty')}..HEAD", "--", *code)
            if n_changes != "0":
                lines.append(f"{path.name}: {found.date}, commits since {found.commit}: {n_changes or 'unknown'}")
    return lines


def _git(*arguments: str) -> str:
    """What git prints; nothing where there is no repository or no such commit."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
