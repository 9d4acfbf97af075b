"""Lowest versions and SPEC 0: ``python -m benchmarks.minimum_versions`` writes benchmarks/results/minimum_versions.md.

SPEC 0 asks scientific packages to support the versions of core packages that were first released in the last 24 months.
The newest version before that, which uv finds, is the first that may be dropped. It needs uv and an index of packages.
"""

import argparse
import datetime
import re
import subprocess
import tomllib
from itertools import chain

from benchmarks.pages import RESULTS, ROOT

CORE = ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "zarr")  # of those that SPEC 0 names
MONTHS = 24


def minimums() -> dict[str, str]:
    """The lowest version of each package that pyproject.toml names; of several the highest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = {}
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        match = re.match(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement)
        if match:
            found[match[1]] = max(found.get(match[1], "0"), match[2], key=release)
    return found


def release(version: str) -> tuple[int, int]:
    """Major and minor number."""
    major, minor, *_ = [*map(int, re.findall(r"\d+", version)), 0]
    return major, minor


def newest(package: str, before: datetime.date) -> str:
    """The newest version of a package that had been released before a date."""
    command = ["uv", "pip", "compile", "-q", "--no-deps", "--no-header", "--no-annotate", "--exclude-newer"]
    done = subprocess.run(
        [*command, before.isoformat(), "-"], input=package, check=True, capture_output=True, text=True
    )
    return done.stdout.strip().partition("==")[2]


def verdict(minimum: str, dropped: str) -> str:
    """Whether the lowest version allows all that SPEC 0 asks for; ``dropped`` is the newest that it does not ask for."""
    if release(minimum) <= release(dropped):
        return "more than asked for"
    major, minor = release(dropped)
    return "as asked for" if release(minimum) in ((major, minor + 1), (major + 1, 0)) else "less than asked for"


def table(today: datetime.date) -> str:
    """The table in Markdown."""
    before = today - datetime.timedelta(days=round(MONTHS * 365.25 / 12))
    lines = [f"| package | lowest version | newest on {before} | SPEC 0 |", "| --- | --- | --- | --- |"]
    for package, minimum in ((package, minimums()[package]) for package in CORE):
        dropped = newest(package, before)
        lines.append(f"| {package} | {minimum} | {dropped} | {verdict(minimum, dropped)} |")
    return "\n".join(lines)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    text = table(datetime.datetime.now(tz=datetime.UTC).date())
    print(text)
    (RESULTS / "minimum_versions.md").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
