"""Accuracy, processor time and memory beside other methods, from 1000 to 1,000,000 rows: ``python -m benchmarks.peers``.

Every fit runs in a process of its own with one thread (``benchmarks.peers.point``) and is stopped at the limits of processor
time and memory. A method that was stopped is not tried with more rows. Results are kept in ``benchmarks/results/peers.json`` as
they come, so that a run that was stopped goes on where it was; ``--restart`` measures what is selected anew, for example after
a change of CMVMED::

    python -m benchmarks.peers --methods CMVMED --sizes 16000 64000 --restart

Tables and picture are made from that file: ``benchmarks/results/peers.md``, which is a part of docs/scaling.md, and
``docs/peers.svg``. The real data sets are those of the suite (``CMVMED_DATA``).
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.pages import fill
from benchmarks.peers.methods import METHODS, PACKAGES, missing_packages
from benchmarks.peers.point import measure
from benchmarks.peers.report import draw_picture, write_tables
from benchmarks.peers.rows import SETS
from benchmarks.peers.store import Key, Store

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
SIZES = (1000, 4000, 16_000, 64_000, 256_000, 1_000_000)
DRAWS = {1000: 5, 4000: 5, 16_000: 3, 64_000: 3}  # beyond, one


def wanted(sets: Sequence[str], methods: Sequence[str], sizes: Sequence[int], draws: int | None) -> Iterator[Key]:
    """Fits in the order in which they are made: small ones first, methods in turn."""
    for n in sorted(sizes):
        for draw in range(DRAWS.get(n, 1) if draws is None else draws):
            for data in sets:
                yield from (Key(data, method, n, draw) for method in methods)


def run(keys: Sequence[Key], store: Store, seconds: float, gib: float) -> None:
    """Make the fits that are not in the store; those of a method that was stopped with as many rows or fewer are left out."""
    for key in keys:
        if key not in store.results and not store.was_stopped(key):
            store.add(key, measure(key, seconds, gib))
            print(f"{' '.join(map(str, key))}: {json.dumps(store.results[key])}", flush=True)


def usable(methods: Sequence[str]) -> list[str]:
    """The methods whose packages are installed, which are imported; the others are named."""
    missing = {method: missing_packages(method) for method in methods}
    for method, packages in missing.items():
        if packages:
            print(f"{method} is left out: pip install {' '.join(packages)}", file=sys.stderr)
    found = [method for method in methods if not missing[method]]
    for package in {package for method in found for package in PACKAGES.get(method, ())}:
        import_module(package)  # once, before processes are forked
    return found


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of training rows")
    parser.add_argument("--draws", type=int, help="draws of rows and labels; by default fewer of larger sizes")
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of processor time of a fit")
    parser.add_argument("--gib", type=float, default=4.0, help="limit of memory of a fit, beside data and libraries")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    parser.add_argument("--restart", action="store_true", help="forget the selected results first")
    parser.add_argument("--no-run", action="store_true", help="only make tables and picture")
    return parser.parse_args(arguments)


def main() -> None:
    given = parse()
    store = Store(given.results)
    if not given.no_run:
        keys = list(wanted(given.sets, usable(given.methods), given.sizes, given.draws))
        if given.restart:
            store.forget(keys)
        run(keys, store, given.seconds, given.gib)
    is_published = given.results == RESULTS
    draw_picture(store.results, ROOT / "docs" / "peers.svg" if is_published else given.results.with_suffix(".svg"))
    text = write_tables(store.results, given.results.with_suffix(".md"))
    if is_published:
        fill(ROOT / "docs" / "scaling.md", "peers", text)
    print(text)


if __name__ == "__main__":
    main()
