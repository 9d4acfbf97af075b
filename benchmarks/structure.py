"""Figures on the structure of the code: ``python -m benchmarks.structure``.

Modules beside each other at the top of the package, Python frames from ``fit`` to the EM loop, files of the package that one exact
fit runs through, how often the start and the agreement of the views are computed in a fit, constructor parameters, function
arguments typed ``Any``, and the longest line of prose in the documentation.
"""

import ast
import inspect
import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import numpy as np

import cmvmed
from cmvmed import CMVMED
from cmvmed.datasets import make_multiview_gaussian

PACKAGE = Path(cmvmed.__file__).parent
REPOSITORY = Path(__file__).parents[1]
COUNTED = ("agreement", "supervised_start", "independent_states")


def trace_fit() -> tuple[int, set[str], Counter[str]]:
    """Frames from ``fit`` to the first call of the EM loop, files that run, and calls of some functions, of one exact fit."""
    files: set[str] = set()
    calls: Counter[str] = Counter()
    depths: list[int] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        name, file = frame.f_code.co_name, frame.f_code.co_filename
        if event != "call" or not file.startswith(str(PACKAGE)):
            return
        files.add(file)
        calls[name] += name in COUNTED
        if name == "run_stage":
            depths.append(frames_since_fit(frame))

    data = make_multiview_gaussian(200, separation=(1.1, 0.8), random_state=0)
    y = np.where(np.arange(200) < 20, data.target, -1)
    model = CMVMED(views=dict(data.views))
    model.fit(data.data, y)  # imports what is imported on demand
    sys.setprofile(profile)
    try:
        model.fit(data.data, y)
    finally:
        sys.setprofile(None)
    return min(depths), files, calls


def frames_since_fit(frame: FrameType) -> int:
    """Frames of the package from ``fit``, which counts as the first, to this one."""
    depth, here = 0, frame
    while here is not None:
        depth += here.f_code.co_filename.startswith(str(PACKAGE))
        if here.f_code.co_name == "fit" and here.f_code.co_filename.endswith("estimators/cmvmed.py"):
            break
        here = here.f_back
    return depth


def any_arguments() -> int:
    """Arguments of functions of the package that are annotated ``Any``."""
    count = 0
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                arguments += [a for a in (node.args.vararg, node.args.kwarg) if a is not None]
                count += sum(isinstance(a.annotation, ast.Name) and a.annotation.id == "Any" for a in arguments)
    return count


def longest_prose_line() -> int:
    """Characters of the longest line of the documentation outside of tables, code and lines with an address."""
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]
    prose = (re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL) for page in pages)
    lines = (line for text in prose for line in text.splitlines())
    return max(len(line) for line in lines if "|" not in line and "http" not in line)


def main() -> None:
    frames, files, calls = trace_fit()
    parameters = inspect.signature(CMVMED).parameters
    rows = {
        "modules at the top of the package": len([p for p in PACKAGE.glob("*.py") if p.name != "__init__.py"]),
        "frames from fit to the EM loop": frames,
        "files of the package in one exact fit": len(files),
        **{f"calls of {name} in one fit": calls[name] for name in COUNTED},
        "constructor parameters of CMVMED": len(parameters),
        "arguments typed Any": any_arguments(),
        "longest line of prose in the documentation": longest_prose_line(),
    }
    for name, value in rows.items():
        print(f"{name:45} {value}")


if __name__ == "__main__":
    main()
