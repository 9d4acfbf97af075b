"""What the campaigns share: outcomes, faults, the run of one case, and the search for a simpler case of a failure."""

import atexit
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

HELD = "held"  # the property holds
CLEAR_ERROR = "clear error"  # the library refuses, with a message that says why
NOT_DETECTABLE = "not detectable"  # a changed value where the format has no checksum
KNOWN = "known"  # a fault of a package below this one, described in docs/robustness.md
SKIPPED = "skipped"  # cannot be tried here
FAILURE = "failure"  # counted, but no outcome of a check
OUTCOMES = (HELD, CLEAR_ERROR, NOT_DETECTABLE, KNOWN, SKIPPED)
SHRINK_SECONDS = 20.0
MAX_MESSAGE = 600  # characters
KEPT_FAILURES = 3  # of one kind

NAMES = (
    "fits",
    "relations",
    "certificates",
    "extremes",
    "exports",
    "damaged_files",
    "mutated_models",
    "tables",
    "writers",
    "threads",
    "full_disks",
    "dask_workers",
    "kills",
    "browsers",
)


class Fault(Exception):
    """A property that does not hold; ``kind`` is the same for failures with the same cause."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message[:MAX_MESSAGE]}")
        self.kind = kind


@dataclass(frozen=True)
class Campaign:
    """One module of this package."""

    name: str
    module: str
    cases: Mapping[str, int]
    draw: Callable[[np.random.Generator, int], Any]
    check: Callable[[Any], str]


@dataclass(frozen=True)
class Failure:
    """A case whose property does not hold, and the simplest similar case that was found."""

    campaign: str
    number: int
    group: str
    kind: str
    message: str
    script: str


@dataclass
class Tally:
    """Outcomes by group, and the first failures of each kind."""

    outcomes: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def add(self, group: str, outcome: str) -> None:
        """Count one case."""
        counts = self.outcomes.setdefault(group, {})
        counts[outcome] = counts.get(outcome, 0) + 1

    @property
    def n_failures(self) -> int:
        """Number of failures."""
        return sum(counts.get(FAILURE, 0) for counts in self.outcomes.values())


def campaign(name: str) -> Campaign:
    """A campaign by name."""
    module = import_module(f"benchmarks.faults.{name}")
    return Campaign(name, module.__name__, module.CASES, module.draw, module.check)


def draw_case(of: Campaign, seed: int, number: int) -> Any:
    """The case of a number; it does not depend on the cases before it."""
    return of.draw(np.random.default_rng([seed, zlib.crc32(of.name.encode()), number]), number)


def group_of(case: Any) -> str:
    """The line of the table that a case belongs to: its first field, unless it has a property ``group``."""
    return str(case.group if hasattr(case, "group") else getattr(case, fields(case)[0].name))


def run_case(of: Campaign, case: Any) -> str | Fault:
    """The outcome of a case, or its fault; an exception of another kind is a fault too."""
    try:
        outcome = of.check(case)
    except Fault as fault:
        return fault
    except Exception as error:
        return Fault(f"{type(error).__name__} in the check", str(error))
    if outcome not in OUTCOMES:
        raise ValueError(f"The outcome of a case must be one of {OUTCOMES}, but is {outcome!r}.")
    return outcome


def run_number(of: Campaign, seed: int, number: int, tally: Tally) -> Failure | None:
    """Run a case and count it; the failure, if it is one of the first of its kind, the very first with a simpler case."""
    case = draw_case(of, seed, number)
    found = run_case(of, case)
    if not isinstance(found, Fault):
        tally.add(group_of(case), found)
        return None
    tally.add(group_of(case), FAILURE)
    earlier = [failure for failure in tally.failures if failure.kind == found.kind]
    if len(earlier) == KEPT_FAILURES:
        return None
    simple = case if earlier else shrink(of, case, found.kind)
    message = str(found).replace(f"{workspace()}{os.sep}", "")
    failure = Failure(of.name, number, group_of(case), found.kind, message, script(of, simple))
    tally.failures.append(failure)
    return failure


def shrink(of: Campaign, case: Any, kind: str, seconds: float = SHRINK_SECONDS) -> Any:
    """A simpler case that fails in the same way: one field after the other is set to its default, or closer to it."""
    end, found = time.monotonic() + seconds, True
    while found and time.monotonic() < end:
        found = False
        for simpler in simpler_cases(case):
            if time.monotonic() > end:
                break
            fault = run_case(of, simpler)
            if isinstance(fault, Fault) and fault.kind == kind:
                case, found = simpler, True
                break
    return case


def simpler_cases(case: Any) -> Iterator[Any]:
    """Cases with one field nearer to its default; a tuple also loses its items one by one."""
    for one in fields(case):
        value = getattr(case, one.name)
        if one.default is MISSING or value == one.default or not one.metadata.get("shrinks", True):
            continue
        yield replace(case, **{one.name: one.default})
        if isinstance(value, tuple):
            yield from (replace(case, **{one.name: value[:i] + value[i + 1 :]}) for i in range(len(value)))
        elif type(value) is int and abs(value - one.default) > 1:
            yield replace(case, **{one.name: (value + one.default) // 2})


def script(of: Campaign, case: Any) -> str:
    """Lines of Python that repeat a case."""
    given = ", ".join(
        f"{one.name}={getattr(case, one.name)!r}" for one in fields(case) if getattr(case, one.name) != one.default
    )
    return f"from {of.module} import Case, check\n\nprint(check(Case({given})))\n"


@cache
def workspace() -> Path:
    """A folder of this process, which is deleted at its end."""
    folder = Path(tempfile.mkdtemp(prefix="cmvmed-faults-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def fresh_folder() -> Path:
    """A new empty folder; the caller deletes it."""
    return Path(tempfile.mkdtemp(dir=workspace()))
