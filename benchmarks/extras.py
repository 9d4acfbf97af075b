"""What each extra costs: ``python -m benchmarks.extras`` writes benchmarks/results/extras.md. It needs uv.

Installs the package, and the package with each extra, into environments of their own, and sums the sizes of the
installed files. Test and documentation tools are left out.
"""

import argparse
import json
import platform
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import RESULTS, ROOT

FOR_DEVELOPERS = ("docs", "test", "suite")
SIZES = """
import importlib.metadata as metadata, json, sys
installed = metadata.distributions(path=[p for p in sys.path if p.endswith("site-packages")])
print(json.dumps({d.name: sum(f.locate().stat().st_size for f in d.files if f.locate().is_file()) for d in installed}))
"""  # run by the Python of the new environment


@dataclass(frozen=True)
class Cost:
    """Packages that an installation has, with their sizes in bytes."""

    packages: Mapping[str, int]

    def beyond(self, other: "Cost") -> "Cost":
        """Packages that the other installation lacks."""
        return Cost({name: size for name, size in self.packages.items() if name not in other.packages})

    def cells(self) -> list[str]:
        """Number of packages, megabytes, and the largest packages."""
        largest = sorted(self.packages.items(), key=lambda item: -item[1])[:3]
        named = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in largest if size >= 5e5)
        return [str(len(self.packages)), f"{sum(self.packages.values()) / 1e6:.0f}", named or "–"]


def extras() -> dict[str, list[str]]:
    """The extras for users, with their requirements."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return {name: needs for name, needs in found.items() if name not in FOR_DEVELOPERS}


def install(extra: str, python: str) -> Cost:
    """The packages of a new environment with the package and one extra, or none."""
    with tempfile.TemporaryDirectory() as folder:
        environment = str(Path(folder, "environment"))
        subprocess.run(["uv", "venv", "--quiet", "--python", python, environment], check=True)
        requirement = f"{ROOT}[{extra}]" if extra else str(ROOT)
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", environment, requirement], check=True)
        program = str(Path(environment, "bin", "python"))
        done = subprocess.run([program, "-c", SIZES], check=True, capture_output=True, text=True)
        return Cost(json.loads(done.stdout))


def table(plain: Cost, costs: Mapping[str, Cost]) -> str:
    """The table in Markdown; costs of extras are what they add to the package without extras."""
    lines: list[Sequence[str]] = [["installed", "packages", "MB", "largest, MB"], ["---"] * 4]
    lines.append(["`cmvmed`", *plain.cells()])
    lines += [[f"+ `[{name}]`", *cost.beyond(plain).cells()] for name, cost in costs.items()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=platform.python_version(), help="version of Python (default: this one)")
    arguments = parser.parse_args()
    plain = install("", arguments.python)
    costs = {name: install(name, arguments.python) for name in extras()}
    where = f"Python {arguments.python}, {platform.system()} {platform.machine()}, the newest versions of all packages."
    text = f"{table(plain, costs)}\n\n{where}\n"
    print(text)
    (RESULTS / "extras.md").write_text(text)


if __name__ == "__main__":
    main()
