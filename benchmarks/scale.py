"""What a fit costs from a thousand to a million rows, on a cluster and beyond memory: ``python -m benchmarks.scale``.

Every measurement runs in a process of its own (``benchmarks.scale_points``) with a time limit, and its result is kept at once in
``benchmarks/results/scale.json``: a run that was stopped goes on where it was, ``--again`` measures its parts anew. Tables and
figure are made from that file (``benchmarks.scale_report``): ``benchmarks/results/scale.md``, the measured part of
``docs/scaling.md``, and ``docs/scaling.svg``.

Parts: "growth" (time and memory by the number of rows, beside other methods), "single" (prediction of one row), "efficiency" (a
pass against bare products), "threads" and "dask" (one against two), "outofcore" (4 GiB of Parquet files with 1.5 GiB of memory).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.pages import fill
from benchmarks.scale_points import METHODS, WIDE, write_parquet
from benchmarks.scale_report import write_report

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "scale.json"
PARTS = ("growth", "single", "efficiency", "threads", "dask", "outofcore")
SIZES = (1000, 4000, 16_000, 64_000, 256_000, 1_000_000)
REPEATS = {1000: 5, 4000: 5, 16_000: 3}  # fits of each method, in turn with the others'; beyond, one
OWN_REPEATS = 3  # of CMVMED where others are fitted once


@dataclass
class Measurements:
    """Results by the name of the measurement, kept in a file."""

    path: Path
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            self.results = json.loads(self.path.read_text())

    def forget(self, parts: Sequence[str]) -> None:
        """Drop the results of some parts."""
        kinds = {"fit" if part == "growth" else part for part in parts}
        self.results = {name: result for name, result in self.results.items() if name.split()[0] not in kinds}

    def measure(self, name: str, arguments: Sequence[str], time_limit: float) -> dict[str, Any]:
        """Measure unless it was measured before; keep and print the result."""
        if name not in self.results:
            self.keep(name, run_point(arguments, time_limit))
        return self.results[name]

    def runs(self, name: str) -> list[dict[str, Any]]:
        """The runs so far of a measurement that is repeated."""
        known = self.results.get(name)
        return [] if known is None else known.get("runs", [known])

    def keep(self, name: str, result: dict[str, Any]) -> None:
        """Write the result down, and print it."""
        self.results[name] = result
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.results, indent=1, sort_keys=True) + "\n")
        os.replace(part, self.path)
        shown = {key: value for key, value in result.items() if key != "runs"}
        print(f"{name}: {json.dumps(shown)}", flush=True)


def run_point(arguments: Sequence[str], time_limit: float, **environment: str) -> dict[str, Any]:
    """The result of one measurement, or why there is none."""
    command = [sys.executable, "-m", "benchmarks.scale_points", *arguments]
    # the other pool reserves a gigabyte of addresses
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", **environment}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"> {time_limit:.0f} s"}
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    reason = (done.stderr.strip().splitlines() or ["killed"])[-1]
    return {"failed": "out of memory" if done.returncode == -9 or "MemoryError" in reason else reason[:200]}


def measure_growth(kept: Measurements, sizes: Sequence[int], time_limit: float, peer_limit: float) -> None:
    """All methods at all sizes; a method that failed once is not tried with more rows."""
    given_up: set[str] = set()
    for n in sizes:
        for repeat in range(REPEATS.get(n, OWN_REPEATS)):
            for method in METHODS:
                own, name = method == "CMVMED", f"fit {method} {n}"
                runs = kept.runs(name)
                if method not in given_up and len(runs) <= repeat < REPEATS.get(n, OWN_REPEATS if own else 1):
                    runs = [*runs, run_point(["fit", method, str(n)], time_limit if own else peer_limit)]
                    kept.keep(name, middle(runs))
                given_up |= {method} if any("failed" in run for run in runs) else set()


def middle(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The run whose time is the median, the lower one of two, beside all of them; or the one that failed."""
    failed = [run for run in runs if "failed" in run]
    if failed:
        return failed[0]
    ordered = sorted(runs, key=lambda run: run["seconds"])
    return ordered[(len(ordered) - 1) // 2] | {"runs": list(runs)}


def measure_threads(kept: Measurements, n: int, time_limit: float) -> None:
    """Fits with one thread and with two, in turn."""
    for repeat in range(OWN_REPEATS):
        for threads in ("1", "2"):
            name, limits = f"threads {n} {threads}", {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
            runs = kept.runs(name)
            if len(runs) <= repeat:
                kept.keep(name, middle([*runs, run_point(["fit", "CMVMED", str(n)], time_limit, **limits)]))


def measure_dask(kept: Measurements, n: int, time_limit: float) -> None:
    for n_workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            kept.measure(f"dask {n} {n_workers}", ["dask", str(n), str(n_workers), folder], time_limit)


def measure_outofcore(kept: Measurements, gib: float, limit_gib: float, time_limit: float) -> None:
    name = f"outofcore {gib:g} {limit_gib:g}"
    if name in kept.results:
        return
    if shutil.disk_usage(tempfile.gettempdir()).free < 1.5 * gib * 2**30:
        raise SystemExit(f"Not enough room for {gib} GiB in {tempfile.gettempdir()}; set TMPDIR to a larger disk.")
    with tempfile.TemporaryDirectory() as folder:
        write_parquet(Path(folder), int(gib * 2**30 / (2 * WIDE * 8)))
        kept.measure(name, ["outofcore", folder, str(limit_gib)], time_limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS), help="none: make the report only")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="rows of part growth")
    parser.add_argument("--time-limit", type=float, default=900.0, help="seconds for each measurement of part growth")
    parser.add_argument("--peer-limit", type=float, default=300.0, help="the same for the other methods")
    parser.add_argument("--efficiency-rows", type=int, default=1_000_000)
    parser.add_argument("--thread-rows", type=int, default=256_000)
    parser.add_argument("--dask-rows", type=int, default=1_000_000)
    parser.add_argument("--gib", type=float, default=4.0, help="size of the files of part outofcore")
    parser.add_argument("--limit-gib", type=float, default=1.5, help="memory of part outofcore")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results are kept")
    parser.add_argument("--again", action="store_true", help="forget earlier results of the parts")
    given = parser.parse_args()
    kept = Measurements(given.results)
    if given.again:
        kept.forget(given.parts)
    if "growth" in given.parts:
        measure_growth(kept, given.sizes, given.time_limit, given.peer_limit)
    if "single" in given.parts:
        for n in (1000, 4000):
            kept.measure(f"single {n}", ["single", str(n), "500"], given.time_limit)
    if "efficiency" in given.parts:
        n = given.efficiency_rows
        kept.measure(f"efficiency {n}", ["efficiency", str(n), "1000", "3"], 4 * given.time_limit)
    if "threads" in given.parts:
        measure_threads(kept, given.thread_rows, given.time_limit)
    if "dask" in given.parts:
        measure_dask(kept, given.dask_rows, 4 * given.time_limit)
    if "outofcore" in given.parts:
        measure_outofcore(kept, given.gib, given.limit_gib, 8 * given.time_limit)
    figure = ROOT / "docs" / "scaling.svg" if given.results == RESULTS else given.results.with_suffix(".svg")
    text = write_report(kept.results, given.results.with_suffix(".md"), figure)
    if given.results == RESULTS:
        picture = "![Seconds and memory of fits over the number of rows](scaling.svg)"
        fill(ROOT / "docs" / "scaling.md", "measured", f"{text}\n{picture}")
    print(text)


if __name__ == "__main__":
    main()
